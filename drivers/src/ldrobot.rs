//! Driver for laser scanners of LDROBOT: LD06, LD19 (also sold as STL-19P), STL-27L and LD14P. IO.
//!
//! They see all around and send all the time; an LD14P can be started and stopped. `packet`, `product`
//! and `logic` are pure; `scanner` carries out the outputs of `logic`, and says what all laser
//! scanners guarantee. Further guarantees for clients:
//!
//! - All scans have the same number of points (option `points`), one in each equal part of the turn,
//!   at the angle at which it was measured.
//! - A part without a valid measurement has the code 1, which means that nothing is known. A point is
//!   0 only if the scanner looked there and got no echo.
//! - A scan is a turn from the rear to the rear, and its time is that of its last measurement.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::hokuyo;
use serde::Deserialize;

use self::logic::LdrobotLogic;
pub use self::product::Product;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};
use crate::scanner::driver::LaserDriver;
use crate::scanner::layout::{self, Layout, NoEcho, Points, Sectors};
use crate::scanner::turns::Mount;

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub mod packet;
pub(crate) mod probe;
mod product;

/// The driver of an LDROBOT laser scanner.
pub type Ldrobot<C> = LaserDriver<LdrobotLogic, C>;

/// Settings of the scanner.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The scanner: its packets do not say which one it is.
    pub product: Product,
    /// How it is mounted.
    pub mount: Mount,
    /// The points of a scan.
    pub layout: Layout,
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
    /// The scanner, which does not say itself what it is [default: ld19]
    #[arg(long, value_enum)]
    pub model: Option<Product>,
    /// Bits per second [default: 230400; 921600 for stl-27l]
    #[arg(long)]
    pub baud: Option<u32>,
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
    /// Ignore nearer objects [default: as the scanner measures: 20, 30 or 100]
    #[arg(long, value_name = "MM")]
    pub min_mm: Option<u16>,
    /// Farther objects count as none [default: as the scanner measures: 8000, 12000 or 25000]
    #[arg(long, value_name = "MM")]
    pub max_mm: Option<u16>,
    /// Points in a scan: 36 to 2900, or `compatible` for the 682 points of an URG-04LX, for old
    /// programs that know no others [default: 400; 972 for stl-27l, 340 for ld14p]
    #[arg(long, value_name = "NUMBER")]
    pub points: Option<Points>,
    /// What a missing echo means [default: free; unknown for ld14p]
    #[arg(long, value_enum)]
    pub no_echo: Option<NoEcho>,
    /// Whether single points in the air are invalid [default: true for ld06 and ld19, else false]
    #[arg(long, value_name = "BOOL")]
    pub filter: Option<bool>,
    /// Minimum interval between published scans [default: 50]
    #[arg(long, value_name = "MS")]
    pub publish_ms: Option<u64>,
    /// Longest silence of the scanner [default: 500]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        Ok(hokuyo::driver(Ldrobot::new(settings, endpoint)))
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
    pub fn settings(self) -> Result<(Settings, Endpoint), OptionsError> {
        let product = self.model.unwrap_or_default();
        let endpoint = serial(
            (self.port, "/dev/ttyUSB0"),
            (self.baud, product.baud()),
            4_000_000,
        )?;
        let points = self.points.unwrap_or(Points::Count(product.points()));
        if let Points::Count(count) = points {
            check("points", count, layout::POINTS)?;
        }
        let (min_mm, max_mm) = product.range_mm();
        let min_mm = self.min_mm.unwrap_or(min_mm);
        let min_mm = check("min_mm", min_mm, layout::MIN_MM..=layout::MAX_MM - 1)?;
        let max_mm = self.max_mm.unwrap_or(max_mm);
        let max_mm = check("max_mm", max_mm, min_mm + 1..=layout::MAX_MM)?;
        let publish_ms = check("publish_ms", self.publish_ms.unwrap_or(50), 0..=1_000)?;
        let timeout_ms = check("timeout_ms", self.timeout_ms.unwrap_or(500), 10..=10_000)?;
        let settings = Settings {
            product,
            mount: Mount {
                angle_deg: check("angle_deg", self.angle_deg.unwrap_or(0.0), -180.0..=180.0)?,
                is_mirrored: self.mirrored.unwrap_or(false),
            },
            layout: Layout {
                points,
                blank: self.blank_deg.unwrap_or_default(),
                min_mm,
                max_mm,
                no_echo: self.no_echo.unwrap_or(product.no_echo()),
            },
            filters: self.filter.unwrap_or(product.has_ghosts()),
            publish: Duration::from_millis(publish_ms),
            timeout: Duration::from_millis(timeout_ms),
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port model baud angle_deg mirrored blank_deg min_mm max_mm points
            no_echo filter publish_ms timeout_ms)
    }
}

#[cfg(test)]
mod tests;
