//! Driver for teleoperation: a person moves one arm by hand, and another one follows it. IO.
//!
//! ```text
//!  arm:1, the leader --positions--> logic (PURE) --follow--> arm:0, the follower
//! ```
//!
//! It is a client of the drivers of both arms; the leader may be one of another mediator. The rules for
//! motion are those of the follower's driver: limits, speed, and a slow approach at first and after each
//! pause.
//!
//! Guarantees for clients:
//!
//! - Nothing moves without a request, and nothing goes on by itself after an arm was away.
//! - The follower moves only while the motors of the leader are off and its own are on.
//! - It holds its place 0.15 s after the last measurement of the leader, also if this driver is killed or
//!   hangs. Measurements that are older are not followed.
//! - A lease of this device is also one of the follower, in the same name.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::teleop;
use amber_proto::{Device, DeviceType};
use serde::Deserialize;

use self::driver::ArmsTeleop;
use self::logic::Pair;
use crate::options::{OptionsError, layered, read};

mod driver;
mod logic;

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, and with `[[joints]]` if their names or directions differ
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The arm that a person moves [default: arm:1]
    #[arg(long, value_name = "DEVICE")]
    pub leader: Option<String>,
    /// The mediator of the leader, if it is another one
    #[arg(long, value_name = "HOST[:PORT]")]
    pub leader_of: Option<String>,
    /// The arm that follows [default: arm:0]
    #[arg(long, value_name = "DEVICE")]
    pub follower: Option<String>,
    /// Which joint follows which. Without it, those with the same name.
    #[arg(skip)]
    pub joints: Option<Vec<JointPair>>,
}

/// A joint of the follower, in the file.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct JointPair {
    /// Its name.
    pub follower: String,
    /// The joint of the leader. Absent: the one with the same name.
    pub leader: Option<String>,
    /// The position of the leader is multiplied by this, ...
    #[serde(default = "one")]
    pub scale: f64,
    /// ... and then this is added to it.
    #[serde(default)]
    pub offset: f64,
}

fn one() -> f64 {
    1.0
}

/// Checked options.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    leader: Device,
    /// `None`: the own one.
    leader_of: Option<String>,
    follower: Device,
    /// `None`: those with the same name.
    pairs: Option<Vec<Pair>>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// A file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        Ok(teleop::driver(ArmsTeleop::new(self.or(file).settings()?)))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: leader leader_of follower joints)
    }

    /// The settings for these options. Ignores `config`.
    fn settings(self) -> Result<Settings, OptionsError> {
        let invalid = |name, problem| OptionsError::Value { name, problem };
        let arm = |name, given: Option<String>, usual| {
            let text = given.unwrap_or_else(|| format!("arm:{usual}"));
            let device: Device = text
                .parse()
                .map_err(|error| invalid(name, format!("{error}")))?;
            match device.device_type {
                DeviceType::ARM => Ok(device),
                _ => Err(invalid(name, format!("{device} is not an arm"))),
            }
        };
        let leader = arm("leader", self.leader, 1)?;
        let follower = arm("follower", self.follower, 0)?;
        if leader == follower && self.leader_of.is_none() {
            let problem = format!("{leader} cannot follow itself");
            return Err(invalid("leader", problem));
        }
        let pair = |joint: JointPair| {
            let name = joint.follower;
            if !joint.scale.is_finite() || joint.scale == 0.0 || !joint.offset.is_finite() {
                let problem =
                    format!("scale and offset of {name} must be numbers, and the scale not 0");
                return Err(invalid("joints", problem));
            }
            Ok(Pair {
                leader: joint.leader.unwrap_or_else(|| name.clone()),
                follower: name,
                scale: joint.scale,
                offset: joint.offset,
            })
        };
        let pairs = self.joints.map(|all| all.into_iter().map(pair).collect());
        Ok(Settings {
            leader,
            leader_of: self.leader_of,
            follower,
            pairs: pairs.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<Settings, String> {
        let options: Options = toml::from_str(text).unwrap();
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn the_second_arm_leads_the_first_one() {
        let settings = settings("").unwrap();
        assert_eq!(settings.leader.to_string(), "arm:1");
        assert_eq!(settings.follower.to_string(), "arm:0");
        assert_eq!((settings.leader_of, settings.pairs), (None, None));
    }

    #[test]
    fn a_file_says_which_joint_follows_which() {
        let settings = settings(
            "leader = 'arm:0'\nleader_of = 'desk'\n\
             [[joints]]\nfollower = 'elbow'\nscale = -1\noffset = 5\n\
             [[joints]]\nfollower = 'hand'\nleader = 'gripper'",
        );
        let pair = |leader: &str, follower: &str, scale, offset| Pair {
            leader: leader.into(),
            follower: follower.into(),
            scale,
            offset,
        };
        let pairs = settings.unwrap().pairs.unwrap();
        let expected = [
            pair("elbow", "elbow", -1.0, 5.0),
            pair("gripper", "hand", 1.0, 0.0),
        ];
        assert_eq!(pairs, expected);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, problem) in [
            ("leader = 'maestro:0'", "leader: maestro:0 is not an arm"),
            ("follower = 'arm:1'", "leader: arm:1 cannot follow itself"),
            (
                "[[joints]]\nfollower = 'elbow'\nscale = 0",
                "joints: scale and offset of elbow must be numbers, and the scale not 0",
            ),
        ] {
            assert_eq!(settings(text).unwrap_err(), problem);
        }
    }
}
