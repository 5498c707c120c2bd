//! Driver for laser scanners of Slamtec: RPLIDAR A1, A2, A3, C1, S1, S2 and S3. IO.
//!
//! They see all around. The driver asks a scanner what it is and which modes it has, starts its
//! motor and its scan, and stops both at the end. `wire`, `survey` (what it says of itself),
//! `capsule` and `stream` (its points), `product` and `logic` are pure; `port` finds its speed.
//! `scanner` carries out the outputs of `logic`, and says what all laser scanners guarantee.
//! Further guarantees for clients:
//!
//! - All scans have the same number of points (option `points`), one in each equal part of the turn,
//!   at the angle at which it was measured.
//! - A part without a valid measurement has the code 1, which means that nothing is known. These
//!   scanners report an object that is dark or too near like no object.
//! - A scan is a turn from the rear to the rear, and its time is that of its last measurement.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::hokuyo;
use serde::Deserialize;

use self::logic::RplidarLogic;
pub use self::port::SerialPort;
pub use self::product::Product;
use crate::options::{OptionsError, check, layered, read};
use crate::scanner::driver::LaserDriver;
use crate::scanner::layout::{self, NoEcho, Points};
use crate::scanner::sectors::Sectors;
use crate::scanner::turns::Mount;

pub mod capsule;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
mod port;
pub(crate) mod probe;
mod product;
pub mod stream;
pub mod survey;
pub mod wire;

/// The driver of an RPLIDAR.
pub type Rplidar<C> = LaserDriver<RplidarLogic, C>;

/// The speeds of all models, in bits per second.
const BAUDS: [u32; 4] = [115_200, 256_000, 460_800, 1_000_000];

/// Settings of the scanner.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The scanner; `None` for what it says itself.
    pub model: Option<Product>,
    /// The name of the mode; `None` for the typical one.
    pub mode: Option<String>,
    /// How it is mounted.
    pub mount: Mount,
    /// The points of a scan; `None` for as many as the mode measures.
    pub points: Option<Points>,
    /// Sectors in which it sees the robot itself.
    pub blank: Sectors,
    /// Nearer objects are ignored; `None` for the limit of the model.
    pub min_mm: Option<u16>,
    /// Farther objects count as none; `None` for the limit of the mode.
    pub max_mm: Option<u16>,
    /// What a missing echo means.
    pub no_echo: NoEcho,
    /// Whether lonely points are invalid.
    pub filters: bool,
    /// Minimum interval between scans for subscribers.
    pub publish: Duration,
    /// The longest silence.
    pub timeout: Duration,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyUSB0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the scanner [default: /dev/ttyUSB0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// The scanner; if it is another one, the driver says so [default: what it says itself]
    #[arg(long, value_enum)]
    pub model: Option<Product>,
    /// Bits per second [default: those at which it answers, of 115200, 256000, 460800 and 1000000]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Mode, such as standard, express, boost or sensitivity; a wrong one makes the driver list all
    /// [default: typical, which the scanner recommends]
    #[arg(long, value_name = "NAME")]
    pub mode: Option<String>,
    /// Rotation of its front mark to the right, relative to the front of the robot; not in addition
    /// to laser_angle_deg of the robot [default: 0]
    #[arg(long, value_name = "DEG", allow_negative_numbers = true)]
    pub angle_deg: Option<f64>,
    /// Whether it is mounted upside down; not in addition to laser_mirrored of the robot [default:
    /// false]
    #[arg(long, value_name = "BOOL")]
    pub mirrored: Option<bool>,
    /// Sectors in which it sees the robot itself, such as -140:-130,130:140: nothing is known there
    #[arg(long, value_name = "DEG:DEG,...", allow_hyphen_values = true)]
    pub blank_deg: Option<Sectors>,
    /// Ignore nearer objects [default: as the model measures: 50 to 200]
    #[arg(long, value_name = "MM")]
    pub min_mm: Option<u16>,
    /// Farther objects count as none [default: as the mode measures]
    #[arg(long, value_name = "MM")]
    pub max_mm: Option<u16>,
    /// Points in a scan: 36 to 2900, or `compatible` for the 682 points of an URG-04LX, for old
    /// programs that know no others [default: nine tenths of what the mode measures in a turn]
    #[arg(long, value_name = "NUMBER")]
    pub points: Option<Points>,
    /// What a missing echo means: dark and too near objects give none, either [default: unknown]
    #[arg(long, value_enum)]
    pub no_echo: Option<NoEcho>,
    /// Whether single points in the air are invalid [default: false]
    #[arg(long, value_name = "BOOL")]
    pub filter: Option<bool>,
    /// Minimum interval between published scans [default: 50]
    #[arg(long, value_name = "MS")]
    pub publish_ms: Option<u64>,
    /// Longest silence of the scanner while it scans [default: 500]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, port) = self.complete()?.settings()?;
        Ok(hokuyo::driver(Rplidar::new(settings, port)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, SerialPort), OptionsError> {
        let bauds = match (self.baud, self.model) {
            (Some(baud), _) => vec![check("baud", baud, 2_400..=4_000_000)?],
            (None, Some(product)) => product.bauds().to_vec(),
            (None, None) => BAUDS.to_vec(),
        };
        let port = SerialPort {
            path: self.port.unwrap_or_else(|| "/dev/ttyUSB0".into()),
            bauds,
        };
        if let Some(Points::Count(count)) = self.points {
            check("points", count, layout::POINTS)?;
        }
        let lowest = layout::MIN_MM;
        if let Some(min_mm) = self.min_mm {
            check("min_mm", min_mm, lowest..=layout::MAX_MM - 1)?;
        }
        if let Some(max_mm) = self.max_mm {
            check(
                "max_mm",
                max_mm,
                self.min_mm.unwrap_or(lowest) + 1..=layout::MAX_MM,
            )?;
        }
        let publish_ms = check("publish_ms", self.publish_ms.unwrap_or(50), 0..=1_000)?;
        let timeout_ms = check("timeout_ms", self.timeout_ms.unwrap_or(500), 10..=10_000)?;
        let settings = Settings {
            model: self.model,
            mode: self.mode,
            mount: Mount {
                angle_deg: check("angle_deg", self.angle_deg.unwrap_or(0.0), -180.0..=180.0)?,
                is_mirrored: self.mirrored.unwrap_or(false),
            },
            points: self.points,
            blank: self.blank_deg.unwrap_or_default(),
            min_mm: self.min_mm,
            max_mm: self.max_mm,
            no_echo: self.no_echo.unwrap_or(NoEcho::Unknown),
            filters: self.filter.unwrap_or(false),
            publish: Duration::from_millis(publish_ms),
            timeout: Duration::from_millis(timeout_ms),
        };
        Ok((settings, port))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port model baud mode angle_deg mirrored blank_deg min_mm max_mm
            points no_echo filter publish_ms timeout_ms)
    }
}

#[cfg(test)]
mod tests;
