//! The drawing of the robot for the terminal: from above, with its front at the top. PURE.

use amber_proto::robot::{Place, Shape};

use crate::canvas::{Canvas, DOTS_HIGH, DOTS_WIDE, Ink};

/// The width of the drawing, unless the terminal is narrower.
pub(super) const COLUMNS: usize = 44;
/// The smallest drawing.
const MIN_COLUMNS: usize = 20;
/// Around the outline, for parts outside of it.
const MARGIN: f64 = 1.15;
/// The length of the line in the direction of a part.
const DIRECTION_M: f64 = 0.08;

/// The parts with their signs.
pub(super) fn parts(shape: &Shape) -> impl Iterator<Item = (char, &'static str, &Place)> {
    [
        ('L', "laser", &shape.laser),
        ('C', "camera", &shape.camera),
        ('I', "motion sensors", &shape.imu),
    ]
    .into_iter()
    .filter_map(|(sign, name, place)| {
        let place = place.as_ref()?;
        let is_number = place.x().is_finite() && place.y().is_finite();
        is_number.then_some((sign, name, place))
    })
}

/// Half of the length and of the width that hold outline and parts.
pub(super) fn half_size_m(shape: &Shape) -> Option<(f64, f64)> {
    let (length, width) = (shape.length?, shape.width?);
    if !(length > 0.0 && width > 0.0 && length.is_finite() && width.is_finite()) {
        return None;
    }
    let (mut ahead, mut aside) = (length / 2.0, width / 2.0);
    for (_, _, place) in parts(shape) {
        ahead = ahead.max(place.x().abs());
        aside = aside.max(place.y().abs());
    }
    Some((ahead * MARGIN, aside * MARGIN))
}

/// The lines of the drawing; none if the outline is unknown.
pub(super) fn draw(shape: &Shape, columns: usize, has_colours: bool) -> String {
    let Some((ahead_m, aside_m)) = half_size_m(shape) else {
        return String::new();
    };
    let columns = columns.clamp(MIN_COLUMNS, COLUMNS);
    let dots_per_m = (columns * DOTS_WIDE) as f64 / (2.0 * ahead_m.max(aside_m));
    let size = |half_m: f64, dots: usize| (2.0 * half_m * dots_per_m / dots as f64).ceil() as usize;
    let mut canvas = Canvas::new(size(aside_m, DOTS_WIDE), size(ahead_m, DOTS_HIGH));
    let centre = (canvas.size().0 / 2.0, canvas.size().1 / 2.0);
    // The front is at the top, and the left side on the left.
    let dots = |x_m: f64, y_m: f64| (centre.0 - y_m * dots_per_m, centre.1 - x_m * dots_per_m);
    let (half_length, half_width) = (shape.length() / 2.0, shape.width() / 2.0);
    let corners = [
        dots(half_length, half_width),
        dots(half_length, -half_width),
        dots(-half_length, -half_width),
        dots(-half_length, half_width),
    ];
    for (index, from) in corners.into_iter().enumerate() {
        canvas.line(from, corners[(index + 1) % 4], Ink::Wall);
    }
    for (_, _, place) in parts(shape) {
        let (sin, cos) = place.yaw().sin_cos();
        let to = dots(place.x() + DIRECTION_M * cos, place.y() + DIRECTION_M * sin);
        canvas.line(dots(place.x(), place.y()), to, Ink::Laser);
    }
    // Above the line of a camera.
    let (x, y) = dots(half_length * 0.8, 0.0);
    for (offset, letter) in (-2_i8..).zip("front".chars()) {
        let x = x + f64::from(offset) * DOTS_WIDE as f64;
        canvas.top(x, y, letter, Ink::Robot);
    }
    let (x, y) = dots(0.0, 0.0);
    canvas.top(x, y, '+', Ink::Robot);
    for (sign, _, place) in parts(shape) {
        let (x, y) = dots(place.x(), place.y());
        canvas.top(x, y, sign, Ink::Robot);
    }
    canvas.text(has_colours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::shown::tests::shape;

    /// The column and the row of a sign.
    fn place_of(drawing: &str, sign: char) -> (usize, usize) {
        let found = drawing.lines().enumerate().find_map(|(row, line)| {
            let column = line.chars().position(|it| it == sign)?;
            Some((column, row))
        });
        found.unwrap_or_else(|| panic!("no {sign} in\n{drawing}"))
    }

    #[test]
    fn a_wrong_sign_is_seen() {
        let mut shape = shape();
        let drawing = draw(&shape, 80, false);
        let (centre, laser) = (place_of(&drawing, '+'), place_of(&drawing, 'L'));
        assert!(laser.0 > centre.0, "it is on the right:\n{drawing}");
        assert!(laser.1 < centre.1, "it is ahead:\n{drawing}");
        let place = shape.laser.as_mut().unwrap();
        (place.x, place.y) = (Some(-0.12), Some(0.05));
        let drawing = draw(&shape, 80, false);
        let (centre, laser) = (place_of(&drawing, '+'), place_of(&drawing, 'L'));
        assert!(laser.0 < centre.0 && laser.1 > centre.1, "{drawing}");
        let widest = drawing.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= COLUMNS, "{drawing}");
    }

    #[test]
    fn an_unknown_outline_is_not_drawn() {
        assert_eq!(draw(&Shape::default(), 80, false), "");
        let broken = Shape {
            length: Some(f64::INFINITY),
            ..shape()
        };
        assert_eq!(draw(&broken, 80, false), "");
    }
}
