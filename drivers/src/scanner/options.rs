//! The options of scanners whose model the user must say. IO: they may be in a file.
//!
//! A model decides the defaults, and how to read what the scanner sends.

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::hokuyo;
use clap::ValueEnum;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Model;
use super::driver::LaserDriver;
use super::layout::{self, Layout, NoEcho, Points};
use super::sectors::Sectors;
use super::turns::Mount;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};

/// The models of a maker.
pub trait Product:
    ValueEnum + DeserializeOwned + Copy + Debug + Default + PartialEq + Send + Sync + 'static
{
    /// The logic of their driver.
    type Logic: Model<Settings = Settings<Self>>;

    /// What the help says of the option for the model.
    const HELP: &'static str;

    /// Bits per second.
    fn baud(self) -> u32;

    /// The points of a scan: a little fewer than its measurements in a turn, so that each point has
    /// one.
    fn points(self) -> u16;

    /// The limits of its distances in mm.
    fn range_mm(self) -> (u16, u16);

    /// What a missing echo means.
    fn no_echo(self) -> NoEcho;

    /// Whether it measures single points in the air.
    fn has_ghosts(self) -> bool;
}

/// Settings of the scanner.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings<P> {
    /// The scanner.
    pub product: P,
    /// Bits per second.
    pub baud: u32,
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
#[serde(deny_unknown_fields, default, bound = "")]
pub struct Options<P: Product> {
    /// TOML file with the same options, such as `port = "/dev/ttyUSB0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the scanner [default: /dev/ttyUSB0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// The scanner.
    #[arg(long, value_enum, help = P::HELP)]
    pub model: Option<P>,
    /// Bits per second [default: those of the model]
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
    /// Ignore nearer objects [default: as the model measures]
    #[arg(long, value_name = "MM")]
    pub min_mm: Option<u16>,
    /// Farther objects count as none [default: as the model measures]
    #[arg(long, value_name = "MM")]
    pub max_mm: Option<u16>,
    /// Points in a scan: 36 to 2900, or `compatible` for the 682 points of an URG-04LX, for old
    /// programs that know no others [default: nine tenths of what the model measures in a turn]
    #[arg(long, value_name = "NUMBER")]
    pub points: Option<Points>,
    /// What a missing echo means [default: unknown if the model reports dark or too near objects like
    /// that, else free]
    #[arg(long, value_enum)]
    pub no_echo: Option<NoEcho>,
    /// Whether single points in the air are invalid [default: true if the model measures some]
    #[arg(long, value_name = "BOOL")]
    pub filter: Option<bool>,
    /// Minimum interval between published scans [default: 50]
    #[arg(long, value_name = "MS")]
    pub publish_ms: Option<u64>,
    /// Longest silence of the scanner [default: 500]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl<P: Product> Options<P> {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        let driver = LaserDriver::<P::Logic, Endpoint>::new(settings, endpoint);
        Ok(hokuyo::driver(driver))
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
    pub fn settings(self) -> Result<(Settings<P>, Endpoint), OptionsError> {
        let product = self.model.unwrap_or_default();
        let baud = self.baud.unwrap_or(product.baud());
        let port = (self.port, "/dev/ttyUSB0");
        let endpoint = serial(port, (Some(baud), baud), 4_000_000)?;
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
            baud,
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

    pub(crate) fn or(self, file: Self) -> Self {
        layered!(self over file: port model baud angle_deg mirrored blank_deg min_mm max_mm points
            no_echo filter publish_ms timeout_ms)
    }
}
