//! The PNG picture of the robot: from above, with its front at the top. PURE.

use std::io;

use amber_client::picture::canvas::{Canvas, Colour, LINE_HEIGHT, text_width};
use amber_proto::robot::Shape;

use super::plot::{half_size_m, parts};

/// The size of the drawing in pixels, without the legend.
const SIZE: f64 = 480.0;
const MARGIN: f64 = 16.0;
const DIRECTION: f64 = 40.0;

const BACKGROUND: Colour = [255, 255, 255];
const BODY: Colour = [205, 220, 240];
const EDGE: Colour = [32, 88, 168];
const PART: Colour = [214, 40, 32];
const TEXT: Colour = [56, 60, 66];

/// The picture; without an outline, it says that this is unknown.
///
/// # Errors
/// The file could not be created, because of a bug or a lack of memory.
pub(super) fn png(shape: &Shape) -> io::Result<Vec<u8>> {
    drawn(shape).png()
}

fn drawn(shape: &Shape) -> Canvas {
    let Some((ahead_m, aside_m)) = half_size_m(shape) else {
        let mut canvas = Canvas::new(
            SIZE as usize,
            (LINE_HEIGHT + 2.0 * MARGIN) as usize,
            BACKGROUND,
        );
        canvas.text(
            (MARGIN, MARGIN),
            "the outline of the robot is unknown",
            TEXT,
        );
        return canvas;
    };
    let pixels_per_m = SIZE / (2.0 * ahead_m.max(aside_m));
    let lines: Vec<String> = legend(shape).collect();
    let width = lines
        .iter()
        .map(|line| text_width(line))
        .fold(SIZE, f64::max)
        + 2.0 * MARGIN;
    let drawing_height = 2.0 * ahead_m * pixels_per_m + 2.0 * MARGIN;
    let height = drawing_height + lines.len() as f64 * (LINE_HEIGHT + 5.0) + MARGIN;
    let mut canvas = Canvas::new(width.ceil() as usize, height.ceil() as usize, BACKGROUND);
    let centre = (width / 2.0, drawing_height / 2.0);
    let pixels =
        |x_m: f64, y_m: f64| (centre.0 - y_m * pixels_per_m, centre.1 - x_m * pixels_per_m);
    let (half_length, half_width) = (shape.length() / 2.0, shape.width() / 2.0);
    let corners = [
        pixels(half_length, half_width),
        pixels(half_length, -half_width),
        pixels(-half_length, -half_width),
        pixels(-half_length, half_width),
    ];
    canvas.rectangle(corners[0], corners[2], BODY);
    for (index, from) in corners.into_iter().enumerate() {
        canvas.line(from, corners[(index + 1) % 4], 3.0, EDGE);
    }
    // The front.
    let tip = pixels(half_length * 0.8, 0.0);
    canvas.arrow(tip, -std::f64::consts::FRAC_PI_2, 14.0, EDGE);
    canvas.disc(pixels(0.0, 0.0), 4.0, EDGE);
    for (sign, _, place) in parts(shape) {
        let at = pixels(place.x(), place.y());
        let (sin, cos) = place.yaw().sin_cos();
        let to = (at.0 - DIRECTION * sin, at.1 - DIRECTION * cos);
        canvas.line(at, to, 3.0, PART);
        canvas.disc(at, 7.0, PART);
        canvas.text(
            (at.0 + 12.0, at.1 - LINE_HEIGHT / 2.0),
            &sign.to_string(),
            TEXT,
        );
    }
    for (line, row) in lines.iter().zip(0..) {
        let top = drawing_height + f64::from(row) * (LINE_HEIGHT + 5.0);
        canvas.text((MARGIN, top), line, TEXT);
    }
    canvas
}

fn legend(shape: &Shape) -> impl Iterator<Item = String> {
    let mm = |m: f64| (m * 1000.0).round() + 0.0;
    let outline = format!("outline {} x {} mm", mm(shape.length()), mm(shape.width()));
    let parts = parts(shape).map(move |(sign, name, place)| {
        format!(
            "{sign} {name}: {} mm ahead, {} mm to the left",
            mm(place.x()),
            mm(place.y())
        )
    });
    let missing = shape.laser.is_none();
    let missing = missing.then(|| "the place of the laser is unknown".to_owned());
    std::iter::once(outline).chain(parts).chain(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::shown::tests::shape;

    #[test]
    fn a_picture_of_any_shape_is_a_file() {
        let mut far = shape();
        if let Some(laser) = &mut far.laser {
            laser.x = Some(1e6);
        }
        for shape in [shape(), far, Shape::default()] {
            let png = png(&shape).unwrap();
            assert!(png.starts_with(b"\x89PNG"));
        }
    }

    #[test]
    fn the_legend_says_what_is_missing() {
        let lines: Vec<_> = legend(&shape()).collect();
        assert_eq!(
            lines,
            [
                "outline 400 x 300 mm",
                "L laser: 120 mm ahead, -50 mm to the left"
            ]
        );
        let unknown = Shape {
            laser: None,
            ..shape()
        };
        assert!(legend(&unknown).last().unwrap().contains("unknown"));
    }
}
