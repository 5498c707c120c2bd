//! What `amber call` and `amber watch` do with an accelerometer, gyroscope and
//! magnetometer. IO.

use std::fmt::Write as _;
use std::time::Duration;

use amber_proto::Device;
use serde::Serialize;

use super::Failure;
use super::output::{self, Human, note};
use crate::client::Client;
use crate::proxy::{Finding, ImuReading, NineDof, Sensors, Vector};

/// The default period of `amber watch`.
pub(super) const USUAL_PERIOD: Duration = Duration::from_millis(100);

/// The requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Request {
    Data(Sensors),
    SelfTest,
    CalibrateGyro(Duration),
    CalibrateMagnet(Duration),
}

impl Request {
    /// `data [SENSORS]`
    pub(super) fn data(args: &[String]) -> Option<Self> {
        let sensors = match args {
            [] => Sensors::ALL,
            [sensors] => sensors.parse().ok()?,
            _ => return None,
        };
        Some(Self::Data(sensors))
    }

    /// `calibrate-gyro [SECONDS]`
    pub(super) fn calibrate_gyro(args: &[String]) -> Option<Self> {
        Some(Self::CalibrateGyro(time(args, 2)?))
    }

    /// `calibrate-magnet [SECONDS]`
    pub(super) fn calibrate_magnet(args: &[String]) -> Option<Self> {
        Some(Self::CalibrateMagnet(time(args, 60)?))
    }
}

/// The time of a self-test; it takes about as long.
const SELF_TEST: Duration = Duration::from_secs(1);

/// The given seconds, or the default.
fn time(args: &[String], usual_s: u64) -> Option<Duration> {
    match args {
        [] => Some(Duration::from_secs(usual_s)),
        [seconds] => super::seconds(seconds).ok(),
        _ => None,
    }
}

/// Sends the request, and shows the answer.
pub(super) async fn call(
    client: &Client,
    device: Device,
    request: Request,
    json: bool,
) -> Result<(), Failure> {
    let ninedof = client.ninedof(device.id.0);
    let findings = match request {
        Request::Data(sensors) => {
            let reading = ninedof.data(sensors).await?;
            output::show(&ReadingShown::of(device, &reading, 0), json)?;
            if !json && reading.attitude.is_some_and(|it| !it.heading_calibrated) {
                note(
                    "the magnetometer is not calibrated: the heading may be wrong by tens of degrees",
                );
                note(format!(
                    "hint: run `amber call {device} calibrate-magnet 60` and turn the robot during that time"
                ));
            }
            return Ok(());
        }
        Request::SelfTest => ninedof.self_test(Some(SELF_TEST)).await?,
        Request::CalibrateGyro(time) => calibrate_gyro(&ninedof, time, json).await?,
        Request::CalibrateMagnet(time) => calibrate_magnet(&ninedof, time, json).await?,
    };
    let shown = FindingsShown::from(findings);
    output::show(&shown, json)?;
    match shown.findings.iter().all(|finding| finding.good) {
        true => Ok(()),
        false => Err(Failure::new(format!("the test of {device} failed"))),
    }
}

async fn calibrate_gyro(
    ninedof: &NineDof,
    time: Duration,
    json: bool,
) -> Result<Vec<Finding>, Failure> {
    if !json {
        note(format!(
            "keep the robot still for {:.0} s",
            time.as_secs_f64()
        ));
    }
    Ok(ninedof.calibrate_gyro(Some(time)).await?)
}

async fn calibrate_magnet(
    ninedof: &NineDof,
    time: Duration,
    json: bool,
) -> Result<Vec<Finding>, Failure> {
    if !json {
        note(format!(
            "turn the robot all the way round within {:.0} s, e.g. with `amber drive`",
            time.as_secs_f64()
        ));
    }
    Ok(ninedof.calibrate_magnet(Some(time)).await?)
}

/// A reading for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct ReadingShown {
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

#[derive(Debug, Serialize)]
struct Axes {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Debug, Serialize)]
struct Attitude {
    heading_deg: f64,
    heading_calibrated: bool,
    pitch_deg: f64,
    roll_deg: f64,
}

impl ReadingShown {
    pub(super) fn of(device: Device, reading: &ImuReading, missed: u64) -> Self {
        let axes = |vector: Option<Vector>| vector.map(|Vector { x, y, z }| Axes { x, y, z });
        Self {
            device: device.to_string(),
            acceleration_mg: axes(reading.acceleration_mg),
            rate_deg_s: axes(reading.rate_deg_s),
            field_mgauss: axes(reading.field_mgauss),
            attitude: reading.attitude.map(|attitude| Attitude {
                // More digits are noise.
                heading_deg: tenths(attitude.heading_deg),
                heading_calibrated: attitude.heading_calibrated,
                pitch_deg: tenths(attitude.pitch_deg),
                roll_deg: tenths(attitude.roll_deg),
            }),
            timestamp_ms: reading.timestamp_ms,
            missed,
        }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

impl Human for ReadingShown {
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

#[derive(Debug, Serialize)]
struct FindingsShown {
    findings: Vec<FindingShown>,
}

#[derive(Debug, Serialize)]
struct FindingShown {
    about: String,
    good: bool,
    text: String,
}

impl From<Vec<Finding>> for FindingsShown {
    fn from(findings: Vec<Finding>) -> Self {
        let shown = findings.into_iter().map(|finding| FindingShown {
            about: finding.about,
            good: finding.good,
            text: finding.text,
        });
        Self {
            findings: shown.collect(),
        }
    }
}

impl Human for FindingsShown {
    fn human(&self) -> String {
        let line = |finding: &FindingShown| {
            let verdict = if finding.good { "ok" } else { "no" };
            format!("{:7} {verdict}  {}\n", finding.about, finding.text)
        };
        self.findings.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;
    use crate::proxy;

    const DEVICE: Device = Device::new(DeviceType::NINEDOF, 0);

    fn args(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn requests_are_read() {
        let gyro = "gyro".parse().unwrap();
        assert_eq!(Request::data(&args("")), Some(Request::Data(Sensors::ALL)));
        assert_eq!(Request::data(&args("gyro")), Some(Request::Data(gyro)));
        let magnet = |text: &str| Request::calibrate_magnet(&args(text));
        let lasts = |seconds| Some(Request::CalibrateMagnet(Duration::from_secs(seconds)));
        assert_eq!((magnet(""), magnet("30")), (lasts(60), lasts(30)));
        for wrong in ["sonar", "gyro accel"] {
            assert_eq!(Request::data(&args(wrong)), None, "{wrong}");
        }
        for wrong in ["0", "-1", "soon", "1 2"] {
            assert_eq!(Request::calibrate_gyro(&args(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_reading_is_one_line_with_units() {
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: -8.0,
                y: 12.0,
                z: 1002.0,
            }),
            rate_deg_s: Some(Vector {
                x: 0.018,
                y: -0.5,
                z: 40.25,
            }),
            field_mgauss: None,
            attitude: Some(proxy::Attitude {
                heading_deg: 87.26,
                heading_calibrated: true,
                pitch_deg: 0.44,
                roll_deg: -0.01,
            }),
            timestamp_ms: Some(5),
        };
        let shown = ReadingShown::of(DEVICE, &reading, 0);
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
        let reading = ImuReading {
            attitude: Some(proxy::Attitude {
                heading_deg: 137.0,
                heading_calibrated: false,
                pitch_deg: 0.0,
                roll_deg: 0.0,
            }),
            ..ImuReading::default()
        };
        let shown = ReadingShown::of(DEVICE, &reading, 0);
        assert_eq!(
            shown.human(),
            "heading 137.0 (uncalibrated) pitch  0.0 roll  0.0 deg\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["attitude"]["heading_calibrated"], false);
    }

    #[test]
    fn findings_are_lines() {
        let findings = FindingsShown::from(vec![Finding {
            about: "gyro".into(),
            good: false,
            text: "the robot moves".into(),
        }]);
        assert_eq!(findings.human(), "gyro    no  the robot moves\n");
    }
}
