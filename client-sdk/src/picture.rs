//! A picture of a scan: free space, obstacles and distance rings. PURE.

use std::io;

use self::view::{View, label};
use crate::scan::{Point, Scan};

pub mod view;

/// Width and height.
const SIZE: usize = 800;
/// Each pixel is the mean of this many by this many, for smooth edges.
const FINE: usize = 3;
const FINE_SIZE: usize = SIZE * FINE;
const MARGIN: f64 = 16.0;
/// Neighbours that are farther apart have something unseen between them.
const MAX_STEP_DEG: f64 = 1.5;

type Colour = [u8; 3];
const UNSEEN: Colour = [236, 236, 232];
const FREE: Colour = [255, 255, 255];
const RING: Colour = [196, 200, 204];
const TEXT: Colour = [96, 104, 112];
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
    let mut canvas = Canvas::new(view);
    canvas.free(scan);
    for ring_m in view.rings() {
        canvas.ring(ring_m);
    }
    for point in scan.valid_points() {
        canvas.point(point);
    }
    canvas.robot();
    for ring_m in view.rings() {
        canvas.label(ring_m);
    }
    Ok(encode(&canvas.pixels())?)
}

/// The picture in fine dots; lengths in pixels are of the finished one.
struct Canvas {
    fine: Vec<Colour>,
    range_m: f64,
    dots_per_m: f64,
}

impl Canvas {
    fn new(view: View) -> Self {
        Self {
            fine: vec![UNSEEN; FINE_SIZE * FINE_SIZE],
            range_m: view.range_m,
            dots_per_m: (SIZE as f64 / 2.0 - MARGIN) * FINE as f64 / view.range_m,
        }
    }

    /// Paints what the laser went through.
    fn free(&mut self, scan: &Scan) {
        let mut beams = scan.points().to_vec();
        beams.sort_by(|a, b| a.angle_deg.total_cmp(&b.angle_deg));
        for row in 0..FINE_SIZE {
            for column in 0..FINE_SIZE {
                let (x_m, y_m) = self.metres(row, column);
                let distance_m = x_m.hypot(y_m);
                if distance_m > self.range_m {
                    continue;
                }
                let seen = beam(&beams, y_m.atan2(x_m).to_degrees());
                if seen.is_some_and(|point| f64::from(point.distance_mm) > distance_m * 1000.0) {
                    self.fine[row * FINE_SIZE + column] = FREE;
                }
            }
        }
    }

    fn ring(&mut self, ring_m: f64) {
        let radius = ring_m * self.dots_per_m;
        let half_width = FINE as f64 / 2.0;
        let middle = FINE_SIZE as f64 / 2.0;
        self.paint(middle, middle, radius + half_width, RING, |across, down| {
            (across.hypot(down) - radius).abs() < half_width
        });
    }

    fn point(&mut self, point: Point) {
        let (x_m, y_m) = point.x_y_m();
        if x_m.hypot(y_m) > self.range_m * 1.01 {
            return;
        }
        let middle = FINE_SIZE as f64 / 2.0;
        let radius = 2.2 * FINE as f64;
        self.paint(
            middle + y_m * self.dots_per_m,
            middle - x_m * self.dots_per_m,
            radius,
            MET,
            |across, down| across.hypot(down) < radius,
        );
    }

    /// An arrow head, whatever the scale.
    fn robot(&mut self) {
        let middle = FINE_SIZE as f64 / 2.0;
        let size = 9.0 * FINE as f64;
        self.paint(middle, middle, size, ROBOT, |across, down| {
            down < size * 0.8 - across.abs() * 0.5 && across.abs() < (down + size) * 0.45
        });
    }

    /// Straight behind the robot, where scanners do not look.
    fn label(&mut self, ring_m: f64) {
        const SCALE: usize = 2 * FINE;
        let text = label(ring_m);
        let width = text.len() * (GLYPH_WIDTH + 1) * SCALE;
        let left = (FINE_SIZE - width) / 2;
        let top = (FINE_SIZE as f64 / 2.0 + ring_m * self.dots_per_m) as usize;
        let top = top.saturating_sub((GLYPH_HEIGHT + 3) * SCALE);
        for (k, character) in text.chars().enumerate() {
            let rows = glyph(character);
            for (row, bits) in rows.into_iter().enumerate() {
                for column in (0..GLYPH_WIDTH).filter(|at| bits >> (GLYPH_WIDTH - 1 - at) & 1 == 1)
                {
                    let x = left + (k * (GLYPH_WIDTH + 1) + column) * SCALE;
                    let y = top + row * SCALE;
                    for fine_row in y..(y + SCALE).min(FINE_SIZE) {
                        let start = fine_row * FINE_SIZE + x;
                        self.fine[start..start + SCALE].fill(TEXT);
                    }
                }
            }
        }
    }

    /// Paints a shape within a square around a place, all in fine dots.
    fn paint(
        &mut self,
        column: f64,
        row: f64,
        reach: f64,
        colour: Colour,
        is_in: impl Fn(f64, f64) -> bool,
    ) {
        let span = |at: f64| {
            let end = (at + reach + 1.0).clamp(0.0, FINE_SIZE as f64);
            (at - reach).max(0.0) as usize..end as usize
        };
        for fine_row in span(row) {
            for fine_column in span(column) {
                let across = fine_column as f64 + 0.5 - column;
                let down = fine_row as f64 + 0.5 - row;
                if is_in(across, down) {
                    self.fine[fine_row * FINE_SIZE + fine_column] = colour;
                }
            }
        }
    }

    /// Metres to the front and to the right of the scanner.
    fn metres(&self, row: usize, column: usize) -> (f64, f64) {
        let middle = FINE_SIZE as f64 / 2.0 - 0.5;
        (
            (middle - row as f64) / self.dots_per_m,
            (column as f64 - middle) / self.dots_per_m,
        )
    }

    /// The finished picture: red, green and blue of each pixel by rows.
    fn pixels(&self) -> Vec<u8> {
        let mut pixels = Vec::with_capacity(SIZE * SIZE * 3);
        for row in 0..SIZE {
            for column in 0..SIZE {
                let mut sums = [0; 3];
                for fine_row in row * FINE..(row + 1) * FINE {
                    let start = fine_row * FINE_SIZE + column * FINE;
                    for colour in &self.fine[start..start + FINE] {
                        for (sum, part) in sums.iter_mut().zip(colour) {
                            *sum += usize::from(*part);
                        }
                    }
                }
                pixels.extend(sums.map(|sum| (sum / (FINE * FINE)) as u8));
            }
        }
        pixels
    }
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

fn encode(pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE as u32, SIZE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

const GLYPH_WIDTH: usize = 5;
const GLYPH_HEIGHT: usize = 7;

/// The rows of a character from above, each with its left-most dot in the
/// highest of five bits.
fn glyph(character: char) -> [u8; GLYPH_HEIGHT] {
    match character {
        '0' => [
            0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110,
        ],
        '1' => [
            0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110,
        ],
        '2' => [
            0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111,
        ],
        '3' => [
            0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110,
        ],
        '4' => [
            0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010,
        ],
        '5' => [
            0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110,
        ],
        '6' => [
            0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110,
        ],
        '7' => [
            0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000,
        ],
        '8' => [
            0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110,
        ],
        '9' => [
            0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100,
        ],
        'm' => [
            0b00000, 0b00000, 0b11010, 0b10101, 0b10101, 0b10101, 0b10101,
        ],
        '.' => [
            0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100,
        ],
        _ => [0; GLYPH_HEIGHT],
    }
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

    #[test]
    fn all_characters_of_labels_have_a_shape() {
        for character in "0123456789.m".chars() {
            assert_ne!(glyph(character), glyph('?'), "{character}");
        }
    }
}
