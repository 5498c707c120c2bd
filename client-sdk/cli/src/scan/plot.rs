//! A scan drawn with characters: braille for points, dots for rings. PURE.

use amber_client::Scan;
use amber_client::picture::view::{View, label};

/// A braille character is two dots wide and four high, so that dots are about
/// as far apart in both directions.
const DOTS_WIDE: usize = 2;
const DOTS_HIGH: usize = 4;
/// The bits of the dots by row and column.
const DOTS: [[u8; DOTS_WIDE]; DOTS_HIGH] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
const BRAILLE: u32 = 0x2800;
const SMALLEST: usize = 5;

/// The scan in at most this many columns and rows, with straight ahead upwards; lines
/// end with a line end.
pub(super) fn draw(scan: &Scan, view: View, columns: usize, rows: usize) -> String {
    let mut canvas = Canvas::new(view, columns.min(2 * rows));
    for ring_m in view.rings() {
        canvas.ring(ring_m);
    }
    for ring_m in view.rings() {
        canvas.label(ring_m);
    }
    for point in scan.valid_points() {
        let (x_m, y_m) = point.x_y_m();
        canvas.point(x_m, y_m);
    }
    canvas.robot();
    canvas.text()
}

struct Canvas {
    columns: usize,
    rows: usize,
    dots_per_m: f64,
    /// What is in a cell that has no dots.
    marks: Vec<Vec<char>>,
    dots: Vec<Vec<u8>>,
}

impl Canvas {
    /// A square; both sides are odd so that there is a cell in the middle.
    fn new(view: View, columns: usize) -> Self {
        let rows = (columns / 2).max(SMALLEST);
        let rows = rows - (rows + 1) % 2;
        let columns = 2 * rows - 1;
        let radius = (columns * DOTS_WIDE) as f64 / 2.0;
        Self {
            columns,
            rows,
            dots_per_m: (radius - 1.0) / view.range_m,
            marks: vec![vec![' '; columns]; rows],
            dots: vec![vec![0; columns]; rows],
        }
    }

    /// The dot at metres to the front and to the right.
    fn dot(&self, x_m: f64, y_m: f64) -> Option<(usize, usize)> {
        let column = (self.columns * DOTS_WIDE) as f64 / 2.0 + y_m * self.dots_per_m;
        let row = (self.rows * DOTS_HIGH) as f64 / 2.0 - x_m * self.dots_per_m;
        let within = |at: f64, len: usize| (0.0..len as f64).contains(&at).then_some(at as usize);
        Some((
            within(row, self.rows * DOTS_HIGH)?,
            within(column, self.columns * DOTS_WIDE)?,
        ))
    }

    fn point(&mut self, x_m: f64, y_m: f64) {
        if let Some((row, column)) = self.dot(x_m, y_m) {
            self.dots[row / DOTS_HIGH][column / DOTS_WIDE] |=
                DOTS[row % DOTS_HIGH][column % DOTS_WIDE];
        }
    }

    /// On top of everything.
    fn robot(&mut self) {
        let (row, column) = (self.rows / 2, self.columns / 2);
        self.marks[row][column] = '▲';
        self.dots[row][column] = 0;
    }

    fn ring(&mut self, ring_m: f64) {
        // About one mark for every second cell.
        let steps = (ring_m * self.dots_per_m * std::f64::consts::PI / 2.0).max(8.0) as u32;
        for step in 0..steps {
            let (sin, cos) = (f64::from(step) / f64::from(steps) * std::f64::consts::TAU).sin_cos();
            if let Some((row, column)) = self.dot(ring_m * cos, ring_m * sin) {
                self.marks[row / DOTS_HIGH][column / DOTS_WIDE] = '·';
            }
        }
    }

    /// Straight behind the robot, where scanners do not look.
    fn label(&mut self, ring_m: f64) {
        let Some((row, column)) = self.dot(-ring_m, 0.0) else {
            return;
        };
        let text = label(ring_m);
        let start = (column / DOTS_WIDE).saturating_sub(text.len() / 2);
        let cells = self.marks[row / DOTS_HIGH].iter_mut().skip(start);
        for (cell, character) in cells.zip(text.chars()) {
            *cell = character;
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (marks, dots) in self.marks.iter().zip(&self.dots) {
            let cells = marks.iter().zip(dots);
            let line: String = cells.map(|(mark, dots)| cell(*mark, *dots)).collect();
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn cell(mark: char, dots: u8) -> char {
    match dots {
        0 => mark,
        dots => char::from_u32(BRAILLE + u32::from(dots)).unwrap_or(mark),
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

    /// Where the only point is: row and column from the middle.
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
