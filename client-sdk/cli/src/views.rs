//! Special output forms of values, chosen by the class in their description (`amber.value`). IO.

use std::fmt::Write as _;

use amber_client::{Error, Scan};
use amber_proto::Device;
use amber_schema::{Field, Method};
use amber_terminal::{Failure, Human, fields, note};
use serde::Serialize;
use serde_json::{Map, Value};

use super::scan::ScanShown;
use super::sightings;

/// Shows the answer to a request if its value has a special form.
///
/// # Errors
/// The value is invalid, or reports a failure.
pub(super) fn show(
    device: Device,
    method: &Method,
    values: &Map<String, Value>,
    json: bool,
) -> Result<bool, Failure> {
    if sightings::show(device, values, json)? {
        return Ok(true);
    }
    let Some((class, message)) = class(method, values) else {
        return Ok(false);
    };
    match (class, message) {
        ("WheelSpeeds", Some(speeds)) => amber_terminal::show(&Speeds::of(speeds), json)?,
        ("Scan", Some(message)) => {
            let timestamp = values.get("timestamp").and_then(Value::as_i64);
            let scan = scan(message, timestamp);
            let scan = scan.map_err(|message| Error::BadAnswer { device, message })?;
            amber_terminal::show(&ScanShown::from(&scan), json)?;
        }
        ("MarkerPose", Some(pose)) => amber_terminal::show(&Fix::of(device, pose, 0), json)?,
        ("MarkerPose", None) => {
            let text = format!("{device} has not seen a marker yet");
            let hint = "place the robot below a marker that is in the driver's file of markers";
            return Err(Failure::new(text).hint(hint));
        }
        ("ImuReading", Some(reading)) => {
            let reading = Reading::of(device, reading, 0);
            amber_terminal::show(&reading, json)?;
            if !json && reading.attitude.is_some_and(|it| !it.heading_calibrated) {
                note(
                    "the magnetometer is not calibrated: the heading may be wrong by tens of degrees",
                );
                note(format!(
                    "hint: run `amber call {device} calibrate-magnet 60` and turn the robot during that time"
                ));
            }
        }
        ("Finding", Some(report)) => {
            let findings = Findings::of(report);
            amber_terminal::show(&findings, json)?;
            if !findings.findings.iter().all(|finding| finding.good) {
                return Err(Failure::new(format!("the test of {device} failed")));
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Shows a published message if its value has a special form.
///
/// # Errors
/// The output cannot be written.
pub(super) fn show_published(
    device: Device,
    method: &Method,
    values: &Map<String, Value>,
    missed: u64,
    json: bool,
) -> Result<bool, Failure> {
    if sightings::show(device, values, json)? {
        return Ok(true);
    }
    match class(method, values) {
        Some(("MarkerPose", Some(pose))) => {
            amber_terminal::show(&Fix::of(device, pose, missed), json)?
        }
        Some(("ImuReading", Some(reading))) => {
            amber_terminal::show(&Reading::of(device, reading, missed), json)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The class of the whole answer or of its only message, and the message with the value.
fn class<'a>(
    method: &'a Method,
    values: &'a Map<String, Value>,
) -> Option<(&'a str, Option<&'a Map<String, Value>>)> {
    let all = || method.answer.iter().chain(&method.may_answer);
    let of = |field: &Field| values.get(&field.name).and_then(Value::as_object);
    if let Some(class) = &method.value {
        return Some((class, of(all().next()?)));
    }
    let mut fields = all();
    let (field, None) = (fields.next()?, fields.next()) else {
        return None;
    };
    match (&field.value, &field.fields[..]) {
        (Some(class), _) => Some((class, of(field))),
        // A list of these values.
        (None, [list]) => list.value.as_deref().map(|class| (class, of(field))),
        _ => None,
    }
}

fn number(message: &Map<String, Value>, name: &str) -> f64 {
    (message.get(name).and_then(Value::as_f64)).unwrap_or_default()
}

fn whole(message: &Map<String, Value>, name: &str) -> Option<u32> {
    let value = message.get(name)?.as_u64()?;
    u32::try_from(value).ok()
}

fn scan(message: &Map<String, Value>, timestamp_ms: Option<i64>) -> Result<Scan, String> {
    let list = |name: &str| message.get(name).and_then(Value::as_array);
    let (angles, distances) = (list("angles"), list("distances"));
    let angles = angles.into_iter().flatten();
    let distances = distances.into_iter().flatten();
    // JSON has no NaN: null stands for it.
    let angles: Vec<_> = angles.map(|it| it.as_f64().unwrap_or(f64::NAN)).collect();
    let distances = distances.map(|it| it.as_i64().and_then(|it| i32::try_from(it).ok()));
    let distances: Vec<_> = distances.map(Option::unwrap_or_default).collect();
    Scan::new(&angles, &distances, timestamp_ms).map_err(|error| error.to_string())
}

/// Wheel speeds for people and programs.
#[derive(Debug, Serialize)]
struct Speeds {
    front_left_mm_s: i64,
    front_right_mm_s: i64,
    rear_left_mm_s: i64,
    rear_right_mm_s: i64,
}

impl Speeds {
    fn of(message: &Map<String, Value>) -> Self {
        let speed = |name: &str| (message.get(name).and_then(Value::as_i64)).unwrap_or_default();
        Self {
            front_left_mm_s: speed("frontLeftSpeed"),
            front_right_mm_s: speed("frontRightSpeed"),
            rear_left_mm_s: speed("rearLeftSpeed"),
            rear_right_mm_s: speed("rearRightSpeed"),
        }
    }
}

impl Human for Speeds {
    fn human(&self) -> String {
        let mm_s = |speed: i64| Some(format!("{speed:>5} mm/s"));
        fields(&[
            ("front left", mm_s(self.front_left_mm_s)),
            ("front right", mm_s(self.front_right_mm_s)),
            ("rear left", mm_s(self.rear_left_mm_s)),
            ("rear right", mm_s(self.rear_right_mm_s)),
        ])
    }
}

/// A pose by markers for people and programs.
#[derive(Debug, Serialize)]
struct Fix {
    device: String,
    x_cm: f64,
    y_cm: f64,
    z_cm: f64,
    heading_deg: f64,
    marker: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_ms: Option<u32>,
    missed: u64,
}

impl Fix {
    fn of(device: Device, pose: &Map<String, Value>, missed: u64) -> Self {
        // The resolution of the device.
        let hundredths = |name: &str| (number(pose, name) * 100.0).round() / 100.0;
        Self {
            device: device.to_string(),
            x_cm: hundredths("xPos"),
            y_cm: hundredths("yPos"),
            z_cm: hundredths("zPos"),
            heading_deg: hundredths("angle"),
            marker: whole(pose, "markerID").unwrap_or_default(),
            timestamp_ms: whole(pose, "timestamp"),
            lost_ms: whole(pose, "lostMs"),
            missed,
        }
    }
}

impl Human for Fix {
    fn human(&self) -> String {
        let Self {
            x_cm,
            y_cm,
            z_cm,
            heading_deg,
            marker,
            ..
        } = self;
        let lost = self.lost_ms.map_or_else(String::new, |ms| {
            format!("  lost: {:.1} s ago", f64::from(ms) / 1000.0)
        });
        format!(
            "x {x_cm:7.2} y {y_cm:7.2} cm  heading {heading_deg:7.2} deg  \
             marker {marker}, {z_cm:.0} cm above{lost}\n"
        )
    }
}

/// A reading of an accelerometer, gyroscope and magnetometer for people and programs.
#[derive(Debug, Serialize)]
struct Reading {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    acceleration_mg: Option<Axes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_deg_s: Option<Axes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field_mgauss: Option<Axes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attitude: Option<Attitude>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<u32>,
    missed: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Axes {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Attitude {
    heading_deg: f64,
    heading_calibrated: bool,
    pitch_deg: f64,
    roll_deg: f64,
}

impl Reading {
    fn of(device: Device, reading: &Map<String, Value>, missed: u64) -> Self {
        let inner = |name: &str| reading.get(name).and_then(Value::as_object);
        let axes = |name: &str, per_unit: f64| {
            inner(name).map(|axes| Axes {
                x: number(axes, "xAxis") / per_unit,
                y: number(axes, "yAxis") / per_unit,
                z: number(axes, "zAxis") / per_unit,
            })
        };
        // Further digits are noise.
        let tenths = |value: f64| (value * 10.0).round() / 10.0;
        Self {
            device: device.to_string(),
            acceleration_mg: axes("accel", 1.0),
            rate_deg_s: axes("gyroMilli", 1000.0).or(axes("gyro", 1.0)),
            field_mgauss: axes("magnet", 1.0),
            attitude: inner("attitude").map(|attitude| Attitude {
                heading_deg: tenths(number(attitude, "headingDeg")),
                heading_calibrated: attitude.get("headingCalibrated") == Some(&true.into()),
                pitch_deg: tenths(number(attitude, "pitchDeg")),
                roll_deg: tenths(number(attitude, "rollDeg")),
            }),
            timestamp_ms: whole(reading, "timestamp"),
            missed,
        }
    }
}

impl Human for Reading {
    fn human(&self) -> String {
        let mut out = String::new();
        if let Some(Axes { x, y, z }) = self.acceleration_mg {
            let _ = write!(out, "accel {x:5.0} {y:5.0} {z:5.0} mg  ");
        }
        if let Some(Axes { x, y, z }) = self.rate_deg_s {
            let _ = write!(out, "gyro {x:7.2} {y:7.2} {z:7.2} deg/s  ");
        }
        if let Some(Axes { x, y, z }) = self.field_mgauss {
            let _ = write!(out, "magnet {x:5.0} {y:5.0} {z:5.0} milligauss  ");
        }
        if let Some(attitude) = &self.attitude {
            let Attitude {
                heading_deg,
                heading_calibrated,
                pitch_deg,
                roll_deg,
            } = attitude;
            let remark = match heading_calibrated {
                true => "",
                false => " (uncalibrated)",
            };
            let _ = write!(
                out,
                "heading {heading_deg:5.1}{remark} pitch {pitch_deg:4.1} roll {roll_deg:4.1} deg"
            );
        }
        format!("{}\n", out.trim_end())
    }
}

/// The results of a test or a calibration.
#[derive(Debug, Serialize)]
struct Findings {
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Finding {
    about: String,
    good: bool,
    text: String,
}

impl Findings {
    fn of(report: &Map<String, Value>) -> Self {
        let text = |finding: &Value, name: &str| {
            let text = finding.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let findings = report.get("findings").and_then(Value::as_array);
        let findings = findings.into_iter().flatten().map(|finding| Finding {
            about: text(finding, "about"),
            good: finding.get("good") == Some(&true.into()),
            text: text(finding, "text"),
        });
        Self {
            findings: findings.collect(),
        }
    }
}

impl Human for Findings {
    fn human(&self) -> String {
        let line = |finding: &Finding| {
            let verdict = if finding.good { "ok" } else { "no" };
            format!("{:7} {verdict}  {}\n", finding.about, finding.text)
        };
        self.findings.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use serde_json::json;

    use super::*;

    const NINEDOF: Device = Device::new(DeviceType::NINEDOF, 0);

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_reading_is_one_line_with_units() {
        let reading = object(json!({
            "accel": { "xAxis": -8, "yAxis": 12, "zAxis": 1002 },
            "gyro": { "xAxis": 0, "yAxis": 0, "zAxis": 40 },
            "gyroMilli": { "xAxis": 18, "yAxis": -500, "zAxis": 40_250 },
            "attitude": {
                "headingDeg": 87.26, "pitchDeg": 0.44, "rollDeg": -0.01, "headingCalibrated": true,
            },
            "timestamp": 5,
        }));
        let shown = Reading::of(NINEDOF, &reading, 0);
        assert_eq!(
            shown.human(),
            "accel    -8    12  1002 mg  gyro    0.02   -0.50   40.25 deg/s  \
             heading  87.3 pitch  0.4 roll -0.0 deg\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["rate_deg_s"]["z"], 40.25);
        assert_eq!(json.get("field_mgauss"), None);
        assert_eq!(json["attitude"]["heading_calibrated"], true);
    }

    #[test]
    fn a_heading_without_calibration_says_so() {
        let reading = object(json!({
            "attitude": { "headingDeg": 137.0, "pitchDeg": 0.0, "rollDeg": 0.0 },
        }));
        let shown = Reading::of(NINEDOF, &reading, 0);
        assert_eq!(
            shown.human(),
            "heading 137.0 (uncalibrated) pitch  0.0 roll  0.0 deg\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["attitude"]["heading_calibrated"], false);
    }

    #[test]
    fn findings_are_lines() {
        let report = object(json!({
            "findings": [{ "about": "gyro", "good": false, "text": "the robot moves" }],
        }));
        assert_eq!(
            Findings::of(&report).human(),
            "gyro    no  the robot moves\n"
        );
    }

    #[test]
    fn a_fix_is_one_line_with_units() {
        let pose = object(json!({
            "xPos": -3.660_000_1, "yPos": 133.58, "zPos": 200.33, "angle": 175.16,
            "markerID": 534, "timestamp": 1234, "lostMs": 2_440,
        }));
        let device = Device::new(DeviceType(201), 0);
        let shown = Fix::of(device, &pose, 0);
        assert_eq!(
            shown.human(),
            "x   -3.66 y  133.58 cm  heading  175.16 deg  marker 534, 200 cm above  \
             lost: 2.4 s ago\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (&json["x_cm"], &json["lost_ms"]),
            (&(-3.66).into(), &2440.into())
        );
    }

    #[test]
    fn without_a_fix_the_error_says_what_the_driver_needs() {
        let is_of_markers = |method: &&Method| {
            let of_answer = || {
                method
                    .may_answer
                    .iter()
                    .find_map(|field| field.value.as_deref())
            };
            !method.is_stream() && method.value.as_deref().or_else(of_answer) == Some("MarkerPose")
        };
        let mut methods = amber_reflect::built_in().iter().flat_map(|it| &it.methods);
        let method = methods.find(is_of_markers).unwrap();
        let device = Device::new(DeviceType(201), 0);
        let failure = show(device, method, &Map::new(), true).unwrap_err();
        let shown = format!("{failure:?}");
        assert!(shown.contains("201:0 has not seen a marker yet"), "{shown}");
    }

    #[test]
    fn an_invalid_scan_is_an_error() {
        let message = object(json!({ "angles": [1.0], "distances": [] }));
        assert_eq!(
            scan(&message, None).unwrap_err(),
            "1 angles but 0 distances"
        );
        let message = object(json!({ "angles": [null], "distances": [5] }));
        assert_eq!(scan(&message, None).unwrap_err(), "angle 0 is NaN");
    }
}
