//! Options that the drivers of all servos on a bus have. PURE.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::wire::MAX_ID;
use super::{Kind, Maker};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, millis, read, serial};

/// The most servos on a bus: more would not answer in time.
const MAX_SERVOS: usize = 32;
/// About so many bytes are said of each servo in a round.
const BYTES_OF_SERVO: u32 = 100;

/// The robots that a driver knows by name, and what is usual for servos of their maker.
pub trait Preset:
    clap::ValueEnum + DeserializeOwned + fmt::Debug + Copy + Send + Sync + 'static
{
    /// Who has made the servos.
    type Maker: Maker;

    /// The usual port, and what the help says of it.
    const PORT: (&'static str, &'static str);
    /// Bits per second of servos from the factory, and the most that they can have.
    const BAUD: (u32, u32);
    /// What the help says of that.
    const BAUD_HELP: &'static str;

    /// The servos that turn to angles, by their ids.
    fn joints(self) -> Vec<u8>;

    /// The servos that turn on and on.
    fn wheels(self) -> Vec<u8> {
        Vec::new()
    }

    /// Bits per second.
    fn baud(self) -> u32 {
        Self::BAUD.0
    }
}

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

impl Rules {
    /// If the servos hear nothing for so long, the driver is not there any more: four times the longest
    /// time between two requests.
    #[must_use]
    pub fn silence(&self) -> Duration {
        // A byte has ten bits on the wire.
        let byte_time = Duration::from_secs(10) / self.baud;
        let answers = byte_time * BYTES_OF_SERVO * self.servos.len() as u32;
        4 * (self.interval + self.reply_timeout + answers)
    }
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
pub struct Options<P: Preset> {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"` and `ids = [1, 2, 3]`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The serial port of the bus.
    #[arg(long, value_name = "FILE", help = P::PORT.1)]
    pub port: Option<PathBuf>,
    /// Bits per second.
    #[arg(long, help = P::BAUD_HELP)]
    pub baud: Option<u32>,
    /// The servos of a known robot, unless --ids or --wheels says otherwise
    #[arg(long, value_enum)]
    pub preset: Option<P>,
    /// The servos that turn to angles, by their ids, such as 1,2,3
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub ids: Option<Vec<u8>>,
    /// The servos that turn on and on, as motors do
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub wheels: Option<Vec<u8>>,
    /// The fastest turn to an angle [default: 120]
    #[arg(long, value_name = "DEG_S")]
    pub max_speed_deg_s: Option<u32>,
    /// The fastest turn of a wheel [default: 270]
    #[arg(long, value_name = "DEG_S")]
    pub max_wheel_speed_deg_s: Option<u32>,
    /// Stop the wheels this long after the last command; 0 for never [default: 4000]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
    /// Time between two measurements [default: 50]
    #[arg(long, value_name = "MS")]
    pub interval_ms: Option<u64>,
    /// How long an answer may take [default: 20]
    #[arg(long, value_name = "MS")]
    pub reply_timeout_ms: Option<u64>,
}

impl<P: Preset> Default for Options<P> {
    fn default() -> Self {
        Self {
            config: None,
            port: None,
            baud: None,
            preset: None,
            ids: None,
            wheels: None,
            max_speed_deg_s: None,
            max_wheel_speed_deg_s: None,
            idle_stop_ms: None,
            interval_ms: None,
            reply_timeout_ms: None,
        }
    }
}

impl<P: Preset> Options<P> {
    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Rules, Endpoint), OptionsError> {
        let (usual, fastest) = P::BAUD;
        let baud = (self.baud).unwrap_or(self.preset.map_or(usual, P::baud));
        let endpoint = serial((self.port.clone(), P::PORT.0), (Some(baud), usual), fastest)?;
        Ok((self.rules(baud)?, endpoint))
    }

    /// Adds what the file says.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud preset ids wheels max_speed_deg_s max_wheel_speed_deg_s
            idle_stop_ms interval_ms reply_timeout_ms)
    }

    fn rules(self, baud: u32) -> Result<Rules, OptionsError> {
        let invalid = |name, problem: String| OptionsError::Value { name, problem };
        let all = |kind| move |id| (id, kind);
        let (joints, wheels) = match (self.ids, self.wheels, self.preset) {
            (None, None, Some(preset)) => (preset.joints(), preset.wheels()),
            (ids, wheels, _) => (ids.unwrap_or_default(), wheels.unwrap_or_default()),
        };
        let joints = joints.into_iter().map(all(Kind::Joint));
        let wheels = wheels.into_iter().map(all(Kind::Wheel));
        let servos: Vec<_> = joints.chain(wheels).collect();
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
