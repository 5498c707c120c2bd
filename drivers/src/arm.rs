//! Driver for an arm: joints with names, behind the servos of any maker. IO.
//!
//! ```text
//!  clients --positions--> logic (PURE): set points, 50 times a second --angles--> bus-servos:0
//!                           ^                                                          |
//!                           +------------------- measurements <------------------------+
//! ```
//!
//! It is a client of the servos, so that one driver serves arms of all makers, and theirs keeps its own
//! limits and its guard. `calibration` (the file of LeRobot), `joints`, `kinematics` (where the hand is),
//! `path` and `logic` are pure; `driver` is the client of the servos.
//!
//! Guarantees for clients:
//!
//! - Nothing moves at the start, nor after servos were away. Torque stays as it is. A joint whose motor
//!   is off is not moved.
//! - Commands concern all joints that they name, or none; while one is followed, joints that do not
//!   answer are left out, and begin where they are when they are back.
//! - A joint is no faster than its limit, and its set point is never far ahead of it. After a pause it
//!   approaches slowly what it is to follow.
//! - What a client moves stops when that client is gone, at a halt, when the lease or the validity of a
//!   command ends, and when this driver ends. If this driver is killed or hangs, the servos hold their
//!   places 0.3 s after its last command.
//! - Without a calibration that fits the servos, nothing moves.

use std::fs;
use std::path::{Path, PathBuf};

use amber_driver::Driver;
use amber_driver::devices::arm;
use amber_proto::{Device, DeviceType};
use serde::Deserialize;

use self::calibration::JointCalibration;
use self::driver::ArmOfServos;
use self::joints::Arm;
use self::logic::Rules;
use crate::options::{OptionsError, check, layered, read};

mod calibration;
mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod joints;
mod kinematics;
mod logic;
mod path;

pub use self::joints::Model;

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `model = "so101"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The servos of the joints [default: bus-servos:0]
    #[arg(long, value_name = "DEVICE")]
    pub servos: Option<String>,
    /// What the arm is [default: an arm with the joints of the calibration]
    #[arg(long, value_enum)]
    pub model: Option<Model>,
    /// Calibration file of LeRobot; without one, the arm cannot be moved
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// The fastest turn of a joint [default: 120]
    #[arg(long, value_name = "DEG_S")]
    pub max_speed_deg_s: Option<u32>,
}

/// Checked options.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Settings {
    servos: Device,
    rules: Rules,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// A file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let (settings, arm) = self.or(file).settings()?;
        Ok(arm::driver(ArmOfServos::new(settings, arm)))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: servos model calibration max_speed_deg_s)
    }

    /// The settings for these options. Ignores `config`, and reads the calibration.
    fn settings(self) -> Result<(Settings, Arm), OptionsError> {
        let servos = match self.servos {
            None => Device::new(DeviceType::BUS_SERVOS, 0),
            Some(text) => {
                let invalid = |problem| OptionsError::Value {
                    name: "servos",
                    problem,
                };
                let device: Device = text.parse().map_err(|error| invalid(format!("{error}")))?;
                if device.device_type != DeviceType::BUS_SERVOS {
                    return Err(invalid(format!("{device} is not a bus-servos")));
                }
                device
            }
        };
        let most = check(
            "max_speed_deg_s",
            self.max_speed_deg_s.unwrap_or(120),
            1..=1_000,
        )?;
        let arm = match (self.model, self.calibration) {
            (None, None) => {
                return Err(OptionsError::Missing {
                    name: "--calibration",
                    hint: "give the calibration file of LeRobot, or at least --model",
                });
            }
            (model, None) => Arm::new(model, None).map_err(|problem| OptionsError::Value {
                name: "model",
                problem,
            })?,
            (model, Some(path)) => {
                let calibration = calibration(&path)?;
                let unfit = |problem: String| unusable(&path, &problem);
                Arm::new(model, Some(calibration)).map_err(unfit)?
            }
        };
        let rules = Rules {
            max_speed_deg_s: most.into(),
        };
        Ok((Settings { servos, rules }, arm))
    }
}

fn calibration(path: &Path) -> Result<Vec<(String, JointCalibration)>, OptionsError> {
    let text = fs::read_to_string(path).map_err(|error| unusable(path, &error.to_string()))?;
    calibration::read(&text).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, problem: &str) -> OptionsError {
    OptionsError::Unusable {
        problem: format!("{}: {problem}", path.display()),
        hint: "--calibration names a file as LeRobot writes it, one for each arm".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::calibration::tests::SO101;

    fn settings(text: &str) -> Result<(Settings, Arm), String> {
        let options: Options = toml::from_str(text).unwrap();
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn an_arm_needs_a_model_or_a_calibration() {
        let (settings, arm) = settings("model = 'so101'").unwrap();
        assert_eq!(settings.servos.to_string(), "bus-servos:0");
        assert!((settings.rules.max_speed_deg_s - 120.0).abs() < 1e-9);
        assert!(!arm.is_calibrated());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm.json");
        fs::write(&path, SO101).unwrap();
        let of_file = format!("calibration = '{}'", path.display());
        let (_, arm) = self::settings(&of_file).unwrap();
        assert!(arm.is_calibrated());
    }

    #[test]
    fn invalid_values_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm.json");
        fs::write(&path, SO101.replace("gripper", "hand")).unwrap();
        let other = format!("model = 'koch'\ncalibration = '{}'", path.display());
        for (text, problem) in [
            ("", "--calibration is required"),
            (
                "model = 'so101'\nservos = 'maestro:0'",
                "servos: maestro:0 is not a bus-servos",
            ),
            (
                "model = 'so101'\nmax_speed_deg_s = 0",
                "max_speed_deg_s: 0 is not within 1 to 1000",
            ),
            (
                "calibration = '/nowhere/arm.json'",
                "/nowhere/arm.json: No such file",
            ),
            (&other, "arm.json: it lacks the joint gripper of koch"),
        ] {
            let why = settings(text).unwrap_err();
            assert!(why.contains(problem), "{text}: {why}");
        }
    }
}
