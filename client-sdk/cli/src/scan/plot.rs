//! A scan drawn with characters: braille for points, dots for rings. PURE.

use amber_client::Scan;
use amber_client::picture::view::{View, label};

use crate::canvas::{Canvas, DOTS_WIDE, Ink};

const SMALLEST: usize = 5;

/// The scan in at most this many columns and rows, with straight ahead upwards; lines
/// end with a line end.
pub(super) fn draw(scan: &Scan, view: View, columns: usize, rows: usize) -> String {
    let mut drawing = Drawing::new(view, columns.min(2 * rows));
    for ring_m in view.rings() {
        drawing.ring(ring_m);
    }
    for ring_m in view.rings() {
        // Straight behind the robot, where scanners have no points.
        let (x, y) = drawing.place(-ring_m, 0.0);
        drawing.canvas.label(x, y, &label(ring_m));
    }
    for point in scan.valid_points() {
        let (ahead_m, right_m) = point.x_y_m();
        let (x, y) = drawing.place(ahead_m, right_m);
        drawing.canvas.dot(x, y, Ink::Plain);
    }
    let (x, y) = drawing.place(0.0, 0.0);
    drawing.canvas.top(x, y, '▲', Ink::Robot);
    drawing.canvas.text(false)
}

struct Drawing {
    canvas: Canvas,
    dots_per_m: f64,
}

impl Drawing {
    /// A square; both sides are odd so that there is a cell in the middle.
    fn new(view: View, columns: usize) -> Self {
        let rows = (columns / 2).max(SMALLEST);
        let rows = rows - (rows + 1) % 2;
        let columns = 2 * rows - 1;
        let radius = (columns * DOTS_WIDE) as f64 / 2.0;
        Self {
            canvas: Canvas::new(columns, rows),
            dots_per_m: (radius - 1.0) / view.range_m,
        }
    }

    /// The dot at metres to the front and to the right.
    fn place(&self, ahead_m: f64, right_m: f64) -> (f64, f64) {
        let (width, height) = self.canvas.size();
        (
            width / 2.0 + right_m * self.dots_per_m,
            height / 2.0 - ahead_m * self.dots_per_m,
        )
    }

    fn ring(&mut self, ring_m: f64) {
        // About one mark for every second cell.
        let steps = (ring_m * self.dots_per_m * std::f64::consts::PI / 2.0).max(8.0) as u32;
        for step in 0..steps {
            let (sin, cos) = (f64::from(step) / f64::from(steps) * std::f64::consts::TAU).sin_cos();
            let (x, y) = self.place(ring_m * cos, ring_m * sin);
            self.canvas.mark(x, y, '·');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: View = View {
        range_m: 2.0,
        spacing_m: 1.0,
    };

    fn lines(angle_deg: f64, distance_mm: i32) -> Vec<Vec<char>> {
        let scan = Scan::new(&[angle_deg], &[distance_mm], None).unwrap();
        let text = draw(&scan, VIEW, 42, 21);
        text.lines().map(|line| line.chars().collect()).collect()
    }

    /// The position of the only point: row and column from the middle.
    fn place(angle_deg: f64, distance_mm: i32) -> Option<(isize, isize)> {
        let lines = lines(angle_deg, distance_mm);
        let is_point = |c: &char| ('\u{2801}'..='\u{28ff}').contains(c);
        let row = lines.iter().position(|line| line.iter().any(is_point))?;
        let column = lines[row].iter().position(is_point)?;
        Some((row as isize - 10, column as isize - 20))
    }

    #[test]
    fn ahead_is_up_and_the_right_is_right() {
        assert_eq!(place(0.0, 1000), Some((-5, 0)));
        assert_eq!(place(90.0, 1000), Some((0, 10)));
        assert_eq!(place(-90.0, 1000), Some((0, -10)));
        assert_eq!(place(180.0, 1000), Some((5, 0)));
    }

    #[test]
    fn invalid_and_distant_points_are_not_drawn() {
        for distance_mm in [0, 19, -5, 2200, 60_000] {
            assert_eq!(place(0.0, distance_mm), None, "{distance_mm}");
        }
    }

    #[test]
    fn the_robot_is_in_the_middle_and_rings_have_labels() {
        let lines = lines(0.0, 0);
        assert_eq!(lines.len(), 21);
        assert_eq!(lines[10][20], '▲');
        let below: String = lines[15].iter().collect();
        assert!(below.contains("1m"), "{below}");
        let last: String = lines[20].iter().collect();
        assert!(last.contains("2m"), "{last}");
        assert!(lines.iter().all(|line| line.len() <= 42));
    }

    #[test]
    fn any_size_of_terminal_works() {
        let scan = Scan::new(&[10.0, 200.0], &[500, 1000], None).unwrap();
        for (columns, rows) in [(0, 0), (1, 100), (100, 1), (7, 7), (300, 200)] {
            assert!(draw(&scan, VIEW, columns, rows).contains('▲'));
        }
    }
}
