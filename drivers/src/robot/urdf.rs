//! The shape of the robot as URDF, the format of ROS. PURE.
//!
//! The frames have the names that the gateways use: `base_link` is the origin of the shape, and the
//! laser is at `laser`. The joints of the wheels are those of the joint states in ROS 2.

use std::f64::consts::PI;
use std::fmt::Write as _;

use amber_driver::devices::robot::{Place, Shape};

/// The height of the body if it is unknown.
const HEIGHT_M: f64 = 0.15;
/// The width of a wheel and the size of a sensor: only for the picture.
const WHEEL_WIDTH_M: f64 = 0.03;
const SENSOR_M: f64 = 0.05;

/// The text of the file.
pub(super) fn text(shape: &Shape) -> String {
    let name = match shape.name() {
        "" => "robot",
        name => name,
    };
    let mut out = format!(
        "<?xml version=\"1.0\"?>\n<robot name=\"{}\">\n",
        escaped(name)
    );
    body(shape, &mut out);
    wheels(shape, &mut out);
    for (name, place) in [
        ("laser", &shape.laser),
        ("camera", &shape.camera),
        ("imu", &shape.imu),
    ] {
        if let Some(place) = place {
            sensor(name, place, &mut out);
        }
    }
    out.push_str("</robot>\n");
    out
}

/// The outline as a box that stands on the wheels.
fn body(shape: &Shape, out: &mut String) {
    let height_m = shape.height.unwrap_or(HEIGHT_M);
    // The wheels are in the box or carry it.
    let bottom_m = shape.wheel_radius().min(height_m / 2.0);
    let size = format!(
        "<geometry><box size=\"{} {} {}\"/></geometry>",
        number(shape.length()),
        number(shape.width()),
        number(height_m - bottom_m)
    );
    let origin = origin([0.0, 0.0, f64::midpoint(bottom_m, height_m)], [0.0; 3]);
    let _ = write!(
        out,
        "  <link name=\"base_link\">\n    \
         <visual>{origin}{size}</visual>\n    \
         <collision>{origin}{size}</collision>\n  \
         </link>\n"
    );
}

/// Four wheels, if their places are known.
fn wheels(shape: &Shape, out: &mut String) {
    let (Some(radius_m), Some(distance_m), Some(base_m)) =
        (shape.wheel_radius, shape.wheel_distance, shape.wheel_base)
    else {
        return;
    };
    for (name, ahead, left) in [
        ("front_left_wheel", 0.5, 0.5),
        ("front_right_wheel", 0.5, -0.5),
        ("rear_left_wheel", -0.5, 0.5),
        ("rear_right_wheel", -0.5, -0.5),
    ] {
        let across = origin([0.0; 3], [std::f64::consts::FRAC_PI_2, 0.0, 0.0]);
        let at = origin([ahead * base_m, left * distance_m, radius_m], [0.0; 3]);
        let _ = write!(
            out,
            "  <link name=\"{name}_link\">\n    \
             <visual>{across}<geometry><cylinder radius=\"{}\" length=\"{}\"/></geometry></visual>\n  \
             </link>\n  \
             <joint name=\"{name}\" type=\"continuous\">\n    \
             <parent link=\"base_link\"/><child link=\"{name}_link\"/>\n    \
             {at}<axis xyz=\"0 1 0\"/>\n  \
             </joint>\n",
            number(radius_m),
            number(WHEEL_WIDTH_M),
        );
    }
}

/// A part with a small box for the picture.
fn sensor(name: &str, place: &Place, out: &mut String) {
    let size = number(SENSOR_M);
    let roll = if place.upside_down() { PI } else { 0.0 };
    let _ = write!(
        out,
        "  <link name=\"{name}\">\n    \
         <visual><geometry><box size=\"{size} {size} {size}\"/></geometry></visual>\n  \
         </link>\n  \
         <joint name=\"{name}_joint\" type=\"fixed\">\n    \
         <parent link=\"base_link\"/><child link=\"{name}\"/>\n    \
         {}\n  \
         </joint>\n",
        origin(
            [place.x(), place.y(), place.z()],
            [roll, place.pitch(), place.yaw()]
        ),
    );
}

/// A place in its parent: metres, and turns around x, y and z in radians.
fn origin(xyz: [f64; 3], rpy: [f64; 3]) -> String {
    let list = |numbers: [f64; 3]| numbers.map(number).join(" ");
    format!("<origin xyz=\"{}\" rpy=\"{}\"/>", list(xyz), list(rpy))
}

/// Micrometres are enough, and 0.1 + 0.2 is 0.3.
fn number(value: f64) -> String {
    // A sum, so that -0 becomes 0.
    let rounded = (value * 1e6).round() / 1e6 + 0.0;
    rounded.to_string()
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no control characters.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            length: Some(0.4),
            width: Some(0.3),
            laser: Some(Place {
                x: Some(0.1),
                y: Some(-0.02),
                z: Some(0.25),
                yaw: Some(-1.5),
                ..Place::default()
            }),
            ..Shape::default()
        }
    }

    #[test]
    fn the_frames_are_those_of_the_gateways() {
        let text = text(&shape());
        assert!(text.contains("<robot name=\"robot\">"), "{text}");
        let at = "<parent link=\"base_link\"/><child link=\"laser\"/>\n    \
                  <origin xyz=\"0.1 -0.02 0.25\" rpy=\"0 0 -1.5\"/>";
        assert!(text.contains(at), "{text}");
        assert!(text.contains("<box size=\"0.4 0.3 0.15\"/>"), "{text}");
        // Nothing is known of wheels and camera.
        assert!(
            !text.contains("wheel") && !text.contains("camera"),
            "{text}"
        );
    }

    #[test]
    fn a_laser_upside_down_is_turned_around_its_front() {
        let mut upside_down = shape();
        upside_down.laser.as_mut().unwrap().upside_down = Some(true);
        let text = text(&upside_down);
        assert!(text.contains("rpy=\"3.141593 0 -1.5\""), "{text}");
    }

    #[test]
    fn wheels_turn_around_their_axles() {
        let text = text(&Shape {
            wheel_radius: Some(0.06),
            wheel_distance: Some(0.28),
            wheel_base: Some(0.2),
            ..shape()
        });
        let joint = "<joint name=\"rear_right_wheel\" type=\"continuous\">\n    \
                     <parent link=\"base_link\"/><child link=\"rear_right_wheel_link\"/>\n    \
                     <origin xyz=\"-0.1 -0.14 0.06\" rpy=\"0 0 0\"/><axis xyz=\"0 1 0\"/>";
        assert!(text.contains(joint), "{text}");
    }

    #[test]
    fn a_name_cannot_break_the_file() {
        let named = Shape {
            name: Some("A<b> \"&\u{7}".into()),
            ..shape()
        };
        let text = text(&named);
        assert!(text.contains("name=\"A&lt;b&gt; &quot;&amp; \""), "{text}");
    }
}
