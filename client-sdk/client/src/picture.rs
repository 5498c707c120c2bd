//! A picture of a scan: free space, obstacles and distance rings. PURE.

use std::io;

use self::canvas::{Canvas, Colour, LINE_HEIGHT, Place, text_width};
use self::view::{View, label};
use crate::scan::{Point, Scan};

pub mod canvas;
pub mod view;

/// Width and height in pixels.
const SIZE: usize = 800;
const MIDDLE: f64 = SIZE as f64 / 2.0;
const MARGIN: f64 = 16.0;
/// Neighbours that are farther apart have an unseen area between them.
const MAX_STEP_DEG: f64 = 1.5;

const UNSEEN: Colour = [236, 236, 232];
const FREE: Colour = [255, 255, 255];
const RING: Colour = [196, 200, 204];
const TEXT: Colour = [96, 104, 112];
/// The direction of an arrow to the front, clockwise from the right.
const UP: f64 = -std::f64::consts::FRAC_PI_2;
const MET: Colour = [200, 40, 32];
const ROBOT: Colour = [32, 72, 136];

/// The scan as a PNG file, straight ahead upwards and the right on the right.
///
/// It reaches `range_m` metres, at least 0.1 and at most 100, or as far as
/// nearly all points if that is absent. Free space is white, obstacles are red,
/// unseen areas are grey.
///
/// # Errors
/// The file could not be created, because of a bug or a lack of memory.
pub fn png(scan: &Scan, range_m: Option<f64>) -> io::Result<Vec<u8>> {
    let view = View::of(scan, range_m);
    let pixels_per_m = (MIDDLE - MARGIN) / view.range_m;
    let mut canvas = Canvas::new(SIZE, SIZE, UNSEEN);
    free(&mut canvas, scan, view, pixels_per_m);
    for ring_m in view.rings() {
        canvas.circle((MIDDLE, MIDDLE), ring_m * pixels_per_m, 1.0, RING);
    }
    for point in scan.valid_points() {
        let (ahead_m, right_m) = point.x_y_m();
        if ahead_m.hypot(right_m) <= view.range_m * 1.01 {
            let at = (
                MIDDLE + right_m * pixels_per_m,
                MIDDLE - ahead_m * pixels_per_m,
            );
            canvas.disc(at, 2.2, MET);
        }
    }
    canvas.arrow((MIDDLE, MIDDLE), UP, 9.0, ROBOT);
    for ring_m in view.rings() {
        let text = label(ring_m);
        // Straight behind the robot, where scanners have no points.
        let left = MIDDLE - text_width(&text) / 2.0;
        let top = MIDDLE + ring_m * pixels_per_m - LINE_HEIGHT - 4.0;
        canvas.text((left, top), &text, TEXT);
    }
    canvas.png()
}

/// Paints the area that the laser went through.
fn free(canvas: &mut Canvas, scan: &Scan, view: View, pixels_per_m: f64) {
    let mut beams = scan.points().to_vec();
    beams.sort_by(|a, b| a.angle_deg.total_cmp(&b.angle_deg));
    canvas.fill(|(x, y): Place| {
        let ahead_m = (MIDDLE - y) / pixels_per_m;
        let right_m = (x - MIDDLE) / pixels_per_m;
        let distance_m = ahead_m.hypot(right_m);
        if distance_m > view.range_m {
            return None;
        }
        let seen = beam(&beams, right_m.atan2(ahead_m).to_degrees())?;
        (f64::from(seen.distance_mm) > distance_m * 1000.0).then_some(FREE)
    });
}

/// The beam in a direction, of beams in ascending order.
fn beam(beams: &[Point], angle_deg: f64) -> Option<Point> {
    let after = beams.partition_point(|point| point.angle_deg < angle_deg);
    let around = [after.checked_sub(1), Some(after)];
    let around = around.into_iter().flatten().filter_map(|k| beams.get(k));
    let off = |point: &Point| (point.angle_deg - angle_deg).abs();
    around
        .filter(|point| off(point) < MAX_STEP_DEG / 2.0)
        .min_by(|a, b| off(a).total_cmp(&off(b)))
        .copied()
        .filter(Point::is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE_M: f64 = 2.0;

    /// A picture read again: the colour at metres to the front and right.
    struct Picture(Vec<u8>);

    impl Picture {
        fn of(scan: &Scan) -> Self {
            let file = std::io::Cursor::new(png(scan, Some(RANGE_M)).unwrap());
            let mut reader = png::Decoder::new(file).read_info().unwrap();
            let mut pixels = vec![0; SIZE * SIZE * 3];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!((info.width, info.height), (SIZE as u32, SIZE as u32));
            Self(pixels)
        }

        fn at(&self, x_m: f64, y_m: f64) -> Colour {
            let pixels_per_m = (SIZE as f64 / 2.0 - MARGIN) / RANGE_M;
            let column = (SIZE as f64 / 2.0 + y_m * pixels_per_m) as usize;
            let row = (SIZE as f64 / 2.0 - x_m * pixels_per_m) as usize;
            let start = (row * SIZE + column) * 3;
            self.0[start..start + 3].try_into().unwrap()
        }
    }

    #[test]
    fn points_stand_where_the_laser_met_something() {
        let angles: Vec<_> = (-120..=120).map(f64::from).collect();
        let distance = |angle: f64| match angle {
            0.0.. => 1500,
            _ => 1000,
        };
        let distances: Vec<_> = angles.iter().map(|angle| distance(*angle)).collect();
        let picture = Picture::of(&Scan::new(&angles, &distances, None).unwrap());
        assert_eq!(picture.at(1.5, 0.0), MET);
        assert_eq!(picture.at(0.0, 1.5), MET, "the right");
        assert_eq!(picture.at(0.0, -1.0), MET, "the left");
        assert_eq!(picture.at(0.0, 1.2), FREE);
        assert_eq!(picture.at(0.0, -1.2), UNSEEN, "behind something");
        assert_eq!(picture.at(-0.8, 0.1), UNSEEN, "behind the robot");
        assert_eq!(picture.at(0.0, 0.0), ROBOT);
    }

    #[test]
    fn nothing_in_range_is_not_taken_for_free() {
        let picture = Picture::of(&Scan::new(&[0.0], &[0], None).unwrap());
        assert_eq!(picture.at(0.7, 0.0), UNSEEN);
    }
}
