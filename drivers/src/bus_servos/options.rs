//! Options that the drivers of all servos on a bus have. PURE.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Kind;
use super::wire::MAX_ID;
use crate::options::{OptionsError, check, millis};

/// The most servos on a bus: more would not answer in time.
const MAX_SERVOS: usize = 32;

/// The rules for the servos.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The servos, by their ids, which differ.
    pub servos: Vec<(u8, Kind)>,
    /// The fastest way to an angle, in degrees per second.
    pub max_speed_deg_s: u32,
    /// The fastest wheel, in degrees per second.
    pub max_wheel_speed_deg_s: u32,
    /// Wheels stop this long after the last command.
    pub idle_stop: Option<Duration>,
    /// The time between two measurements.
    pub interval: Duration,
    /// How long an answer may take, beside the time on the wire.
    pub reply_timeout: Duration,
    /// Bits per second.
    pub baud: u32,
}

/// The same as options.
#[derive(Clone, Debug, Default)]
pub struct SharedOptions {
    /// The ids of the servos that turn to angles.
    pub ids: Option<Vec<u8>>,
    /// The ids of the servos that turn on and on.
    pub wheels: Option<Vec<u8>>,
    /// In degrees per second.
    pub max_speed_deg_s: Option<u32>,
    /// In degrees per second.
    pub max_wheel_speed_deg_s: Option<u32>,
    /// 0 for never.
    pub idle_stop_ms: Option<u64>,
    /// The time between two measurements.
    pub interval_ms: Option<u64>,
    /// How long an answer may take.
    pub reply_timeout_ms: Option<u64>,
}

impl SharedOptions {
    /// The rules for these options at this number of bits per second.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn rules(self, baud: u32) -> Result<Rules, OptionsError> {
        let invalid = |name, problem: String| OptionsError::Value { name, problem };
        let all = |kind| move |id| (id, kind);
        let joints = self.ids.unwrap_or_default().into_iter();
        let wheels = self.wheels.unwrap_or_default().into_iter();
        let servos = joints
            .map(all(Kind::Joint))
            .chain(wheels.map(all(Kind::Wheel)));
        let servos: Vec<_> = servos.collect();
        if servos.is_empty() {
            let problem = "name the servos by their ids, such as --ids 1,2,3".to_owned();
            return Err(invalid("ids", problem));
        }
        if servos.len() > MAX_SERVOS {
            let problem = format!("{} servos are more than {MAX_SERVOS}", servos.len());
            return Err(invalid("ids", problem));
        }
        let mut known = BTreeSet::new();
        for (id, kind) in &servos {
            let name = match kind {
                Kind::Joint => "ids",
                Kind::Wheel => "wheels",
            };
            check(name, *id, 0..=MAX_ID)?;
            if !known.insert(*id) {
                return Err(invalid(name, format!("servo {id} is named twice")));
            }
        }
        let speed =
            |name, given: Option<u32>, usual| check(name, given.unwrap_or(usual), 1..=1_000);
        let time = |name, given: Option<u64>, usual, range| {
            let ms = check(name, given.unwrap_or(usual), range)?;
            Ok::<_, OptionsError>(Duration::from_millis(ms))
        };
        Ok(Rules {
            servos,
            max_speed_deg_s: speed("max_speed_deg_s", self.max_speed_deg_s, 120)?,
            max_wheel_speed_deg_s: speed("max_wheel_speed_deg_s", self.max_wheel_speed_deg_s, 270)?,
            idle_stop: millis(self.idle_stop_ms, 4_000),
            interval: time("interval_ms", self.interval_ms, 50, 10..=1_000)?,
            reply_timeout: time("reply_timeout_ms", self.reply_timeout_ms, 20, 2..=2_000)?,
            baud,
        })
    }
}
