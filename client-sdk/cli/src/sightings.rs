//! Markers in a picture, as a line for people. IO.

use std::fmt::Write as _;

use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, print_text};
use serde_json::{Map, Value};

/// Shows the markers of a picture. `false` if it is another message, or JSON is wanted: that has all fields.
///
/// # Errors
/// The output cannot be written.
pub(super) fn show(
    device: Device,
    values: &Map<String, Value>,
    json: bool,
) -> Result<bool, Failure> {
    let seen = values.get("sightings").and_then(Value::as_object);
    match seen {
        Some(seen) if !json && device.device_type == DeviceType::MARKERS => {
            print_text(&line(seen))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Where the robot is, and each marker with its distance and direction. PURE.
fn line(seen: &Map<String, Value>) -> String {
    let number = |of: &Value, name: &str| of.get(name).and_then(Value::as_f64);
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some(robot) = seen.get("robot") {
        let of = |name: &str| number(robot, name).unwrap_or_default();
        let _ = write!(
            out,
            "robot x {:6.2} y {:6.2} m  heading {:6.1} deg  (+-{:.2} m, {:.1} deg)",
            of("x"),
            of("y"),
            of("heading").to_degrees(),
            of("position_sigma"),
            of("heading_sigma").to_degrees()
        );
    } else if let Some(why) = seen.get("no_pose").and_then(Value::as_str) {
        let _ = write!(out, "no pose: {why}");
    }
    let list = |name: &str| seen.get(name).and_then(Value::as_array);
    for marker in list("found").into_iter().flatten() {
        let id = number(marker, "id").unwrap_or_default();
        let _ = write!(out, "  | {id}");
        let place = ["x", "z", "distance"].map(|name| number(marker, name));
        if let [Some(x), Some(z), Some(distance_m)] = place {
            let deg = x.atan2(z).to_degrees();
            let side = if deg < 0.0 { "left" } else { "right" };
            let _ = write!(out, ": {distance_m:.2} m, {:.0} deg {side}", deg.abs());
        }
        if marker.get("known") != Some(&true.into()) {
            out += " (not in the file)";
        }
    }
    for id in list("moved").into_iter().flatten() {
        let _ = write!(out, "  | {id} stands elsewhere than in the file");
    }
    format!("{}\n", out.trim_start())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(seen: Value, expected: &str) {
        assert_eq!(line(seen.as_object().unwrap()), expected);
    }

    #[test]
    fn a_picture_is_one_line() {
        check(
            json!({
                "robot": {
                    "x": 2.504, "y": 1.3, "heading": -0.5,
                    "position_sigma": 0.021, "heading_sigma": 0.008, "used": [3, 7],
                },
                "found": [
                    { "id": 3, "x": -0.5, "z": 2.0, "distance": 2.06, "known": true },
                    { "id": 7, "x": 0.3, "z": 1.5, "distance": 1.53, "known": true },
                    { "id": 40 },
                ],
                "moved": [5],
            }),
            "robot x   2.50 y   1.30 m  heading  -28.6 deg  (+-0.02 m, 0.5 deg)  \
             | 3: 2.06 m, 14 deg left  | 7: 1.53 m, 11 deg right  | 40 (not in the file)  \
             | 5 stands elsewhere than in the file\n",
        );
        check(
            json!({ "no_pose": "no marker of the file is in view" }),
            "no pose: no marker of the file is in view\n",
        );
    }

    #[test]
    fn json_and_other_devices_have_their_usual_form() {
        let values = json!({ "sightings": {} });
        let values = values.as_object().unwrap();
        let markers = Device::new(DeviceType::MARKERS, 0);
        assert_eq!(show(markers, values, true), Ok(false));
        assert_eq!(
            show(Device::new(DeviceType(201), 0), values, false),
            Ok(false)
        );
        assert_eq!(show(markers, &Map::new(), false), Ok(false));
    }
}
