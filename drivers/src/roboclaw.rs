//! Driver for RoboClaw motor controllers: two that share a serial line and drive four wheels, or one
//! that drives the wheels of both sides. IO.
//!
//! ```text
//!  requests --> driver ----------> logic --packets--> protocol
//!                 ^                  |                   |
//!              answers <-------------+     bus (the only one at the port)
//! ```
//!
//! `protocol`, `units` and `logic` are pure; `bus`, `gpio` and `driver` carry out the steps of
//! `logic`. `wheels` says what all wheels guarantee. Further guarantees for clients:
//!
//! - Speeds are truncated towards zero. Without subscribers and requests, nothing is measured.
//! - If the driver is killed or frozen, the controllers stop by themselves after `watchdog_ms`, and
//!   the wheels roll out.
//! - The controllers keep the speed control and the kind of encoders that they have stored, unless an
//!   option states them.
//! - The main battery is told as the controllers measured it last, with its time, and published with
//!   the speeds once a second. While the controllers do not answer, requests for it are refused.
//! - After a controller has reported a low battery, driving is disabled until the driver is
//!   restarted. The voltage recovers without load, so the driver cannot tell a charged battery from
//!   an empty one.
//! - Driving is also disabled while a controller has an error, and from when it is hotter than
//!   `temperature_critical` until it has cooled below `temperature_drop`.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use serde::Deserialize;

use self::driver::Setup;
use self::gpio::Gpio;
use self::logic::{Settings, Tuning};
use self::protocol::Check;
use self::units::{Layout, Wheel};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, millis, read, serial};
use crate::wheels::{StopFor, Wiring};

mod bus;
pub mod driver;
#[cfg(test)]
mod fake;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod gpio;
pub mod logic;
pub(crate) mod probe;
pub mod protocol;
pub(crate) mod stored;
pub mod units;

/// Options of the driver. The command line overrides the file; the defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyO3"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the controllers [default: /dev/ttyO3]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second [default: 38400]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Packet format [default: auto]
    #[arg(long, value_enum)]
    pub protocol: Option<Protocol>,
    /// Address of the only controller, 128 to 135: M1 drives the right side, M2 the left one
    /// [default: there are two controllers, --front and --rear]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["front", "rear"])]
    pub address: Option<u8>,
    /// Address of the front controller, 128 to 135 [default: 129]
    #[arg(long, value_name = "ADDRESS")]
    pub front: Option<u8>,
    /// Address of the rear controller, 128 to 135 [default: 128]
    #[arg(long, value_name = "ADDRESS")]
    pub rear: Option<u8>,
    /// Radius of the wheels [default: 60]
    #[arg(long, value_name = "MM")]
    pub wheel_radius_mm: Option<f64>,
    /// Encoder pulses per turn of a wheel [default: 1865]
    #[arg(long, value_name = "COUNT")]
    pub pulses_per_turn: Option<f64>,
    /// Whether the left wheels are connected as the right ones [default: false]
    #[arg(long, value_name = "BOOL")]
    pub swap_sides: Option<bool>,
    /// Whether the left wheels turn and count backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_left: Option<bool>,
    /// Whether the right wheels turn and count backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_right: Option<bool>,
    /// Set the speed control and the encoders as for this robot, at each start [default: none, the
    /// controllers keep what they have stored]
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Pulses per second of a motor at full power, set at each start [default: as stored]
    #[arg(long, value_name = "QPPS")]
    pub max_qpps: Option<u32>,
    /// Proportional constant, times 65536, set at each start [default: as stored]
    #[arg(long, value_name = "P")]
    pub pid_p: Option<u32>,
    /// Integral constant, times 65536, set at each start [default: as stored]
    #[arg(long, value_name = "I")]
    pub pid_i: Option<u32>,
    /// Differential constant, times 65536, set at each start [default: as stored]
    #[arg(long, value_name = "D")]
    pub pid_d: Option<u32>,
    /// Drop commands with a wheel faster than this; 0 for no limit [default: 1200]
    #[arg(long, value_name = "MM_S")]
    pub max_speed_mm_s: Option<u32>,
    /// Stop the wheels this long after the last command; 0 for never [default: 4000]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
    /// With a reset line: reset the controllers this long after the last command; 0 for never
    /// [default: 7000]
    #[arg(long, value_name = "MS")]
    pub idle_reset_ms: Option<u64>,
    /// Clients whose death stops the wheels [default: commander]
    #[arg(long, value_enum)]
    pub stop_for: Option<StopFor>,
    /// Let the controllers stop by themselves after this time without a packet, 300 to 25500; 0 for
    /// never [default: 400]
    #[arg(long, value_name = "MS")]
    pub watchdog_ms: Option<u64>,
    /// Time limit for a reply of a controller [default: 100]
    #[arg(long, value_name = "MS")]
    pub reply_timeout_ms: Option<u64>,
    /// Interval between checks for errors; 0 for never [default: 700]
    #[arg(long, value_name = "MS")]
    pub error_interval_ms: Option<u64>,
    /// Interval between battery measurements; 0 for never [default: 10000]
    #[arg(long, value_name = "MS")]
    pub battery_interval_ms: Option<u64>,
    /// Interval between temperature measurements; 0 for never [default: 5000]
    #[arg(long, value_name = "MS")]
    pub temperature_interval_ms: Option<u64>,
    /// Stop above this temperature, in tenths of a degree Celsius [default: 700]
    #[arg(long, value_name = "TENTHS")]
    pub temperature_critical: Option<i32>,
    /// Drive again below this temperature, in tenths of a degree Celsius [default: 600]
    #[arg(long, value_name = "TENTHS")]
    pub temperature_drop: Option<i32>,
    /// Number of repeated readings that confirm an alarm, 1 to 100 [default: 3]
    #[arg(long, value_name = "COUNT")]
    pub critical_repeats: Option<u8>,
    /// Interval between measurements of the speeds while there are subscribers [default: 50]
    #[arg(long, value_name = "MS")]
    pub speeds_interval_ms: Option<u64>,
    /// File of the GPIO line that resets both controllers, active low, such as
    /// /sys/class/gpio/gpio136/value [default: none]
    #[arg(long, value_name = "FILE")]
    pub reset_gpio: Option<PathBuf>,
    /// How long the controllers need after a reset [default: 260]
    #[arg(long, value_name = "MS")]
    pub reset_delay_ms: Option<u64>,
    /// File of a green LED, active low [default: none]
    #[arg(long, value_name = "FILE")]
    pub led_green: Option<PathBuf>,
    /// File of a red LED, active low [default: none]
    #[arg(long, value_name = "FILE")]
    pub led_red: Option<PathBuf>,
}

/// A robot whose speed control is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The Capo robot: P 327680, I 262144, D 0, 13800 pulses per second, quadrature encoders
    Capo,
}

impl Preset {
    fn tuning(self) -> Tuning {
        match self {
            Self::Capo => Tuning {
                p: Some(327_680),
                i: Some(262_144),
                d: Some(0),
                max_qpps: Some(13_800),
                quadrature: true,
            },
        }
    }
}

/// Packet format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Detect the format of the controllers
    #[default]
    Auto,
    /// 7-bit checksum, writes not acknowledged
    Legacy,
    /// 7-bit checksum, writes acknowledged
    LegacyAck,
    /// CRC16
    Crc16,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (setup, endpoint) = self.complete()?.setup()?;
        Ok(roboclaw::driver(driver::driver(setup, endpoint)))
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
    pub fn setup(self) -> Result<(Setup, Endpoint), OptionsError> {
        let layout = self.layout()?;
        let endpoint = serial((self.port, "/dev/ttyO3"), (self.baud, 38_400), 460_800)?;
        let preset = self.preset.map(Preset::tuning).unwrap_or_default();
        let watchdog_ms = self.watchdog_ms.unwrap_or(400);
        let watchdog_tenths = match watchdog_ms {
            0 => None,
            _ => Some(check("watchdog_ms", watchdog_ms, 300..=25_500)?.div_ceil(100)),
        };
        let critical = self.temperature_critical.unwrap_or(700);
        let gpio = Gpio {
            reset: self.reset_gpio,
            green: self.led_green,
            red: self.led_red,
        };
        let settings = Settings {
            layout,
            check: match self.protocol.unwrap_or_default() {
                Protocol::Auto => None,
                Protocol::Legacy => Some(Check::Legacy),
                Protocol::LegacyAck => Some(Check::LegacyAck),
                Protocol::Crc16 => Some(Check::Crc16),
            },
            wheel: Wheel {
                radius_mm: check(
                    "wheel_radius_mm",
                    self.wheel_radius_mm.unwrap_or(60.0),
                    1.0..=10_000.0,
                )?,
                pulses_per_turn: check(
                    "pulses_per_turn",
                    self.pulses_per_turn.unwrap_or(1_865.0),
                    1.0..=10_000_000.0,
                )?,
                wiring: Wiring {
                    swaps_sides: self.swap_sides.unwrap_or(false),
                    reverses_left: self.reverse_left.unwrap_or(false),
                    reverses_right: self.reverse_right.unwrap_or(false),
                },
            },
            tuning: Tuning {
                p: self.pid_p.or(preset.p),
                i: self.pid_i.or(preset.i),
                d: self.pid_d.or(preset.d),
                max_qpps: self.max_qpps.or(preset.max_qpps),
                quadrature: preset.quadrature,
            },
            max_speed_mm_s: Some(self.max_speed_mm_s.unwrap_or(1_200)).filter(|max| *max > 0),
            idle_stop: millis(self.idle_stop_ms, 4_000),
            idle_reset: millis(self.idle_reset_ms, 7_000),
            lines: gpio.lines(),
            reset_delay: millis(self.reset_delay_ms, 260).unwrap_or_default(),
            error_interval: millis(self.error_interval_ms, 700),
            battery_interval: millis(self.battery_interval_ms, 10_000),
            temperature_interval: millis(self.temperature_interval_ms, 5_000),
            temperature_critical: critical,
            temperature_drop: check(
                "temperature_drop",
                self.temperature_drop.unwrap_or(critical.min(600)),
                i32::MIN..=critical,
            )?,
            repeats: check(
                "critical_repeats",
                self.critical_repeats.unwrap_or(3),
                1..=100,
            )?,
            watchdog_tenths: watchdog_tenths.and_then(|tenths| u8::try_from(tenths).ok()),
            stop_for: self.stop_for.unwrap_or_default(),
            speeds_interval: Duration::from_millis(check(
                "speeds_interval_ms",
                self.speeds_interval_ms.unwrap_or(50),
                10..=1_000,
            )?),
        };
        let reply_timeout_ms = self.reply_timeout_ms.unwrap_or(100);
        let reply_timeout_ms = check("reply_timeout_ms", reply_timeout_ms, 1..=5_000)?;
        let setup = Setup {
            settings,
            gpio,
            reply_timeout: Duration::from_millis(reply_timeout_ms),
        };
        Ok((setup, endpoint))
    }

    fn layout(&self) -> Result<Layout, OptionsError> {
        let wrong = |name, problem| OptionsError::Value { name, problem };
        if let Some(address) = self.address {
            let address = check("address", address, 0x80..=0x87)?;
            return match (self.front, self.rear) {
                (None, None) => Ok(Layout::One { address }),
                _ => Err(wrong(
                    "address",
                    "is for one controller, front and rear are for two".to_owned(),
                )),
            };
        }
        let front = check("front", self.front.unwrap_or(0x81), 0x80..=0x87)?;
        let rear = check("rear", self.rear.unwrap_or(0x80), 0x80..=0x87)?;
        match front == rear {
            false => Ok(Layout::Pair { front, rear }),
            true => Err(wrong("front", format!("is {front}, the same as rear"))),
        }
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud protocol address front rear wheel_radius_mm pulses_per_turn
            swap_sides reverse_left reverse_right preset max_qpps pid_p pid_i pid_d max_speed_mm_s idle_stop_ms idle_reset_ms stop_for
            watchdog_ms reply_timeout_ms error_interval_ms battery_interval_ms
            temperature_interval_ms temperature_critical temperature_drop critical_repeats
            speeds_interval_ms reset_gpio reset_delay_ms led_green led_red)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_defaults_fit_the_capo_robot() {
        let (setup, endpoint) = Options::default().setup().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyO3 at 38400 baud");
        let settings = setup.settings;
        let pair = Layout::Pair {
            front: 0x81,
            rear: 0x80,
        };
        assert_eq!(settings.layout, pair);
        assert_eq!(settings.tuning, Tuning::default());
        assert_eq!(settings.max_speed_mm_s, Some(1200));
        assert_eq!(settings.idle_stop, Some(Duration::from_secs(4)));
        assert_eq!(settings.wheel.qpps(300), 1484);
        assert_eq!(settings.check, None);
        assert_eq!(setup.gpio, Gpio::default());
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roboclaw.toml");
        let text = "port = \"/dev/a\"\nbaud = 115200\nprotocol = \"legacy-ack\"\nfront = 0x82\n";
        fs::write(&path, text).unwrap();
        let flags = Options {
            config: Some(path.clone()),
            port: Some("/dev/b".into()),
            ..Options::default()
        };
        let file: Options = read(flags.config.as_deref()).unwrap();
        let (setup, endpoint) = flags.or(file).setup().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/b at 115200 baud");
        assert_eq!(setup.settings.check, Some(Check::LegacyAck));
        let pair = Layout::Pair {
            front: 0x82,
            rear: 0x80,
        };
        assert_eq!(setup.settings.layout, pair);

        fs::write(&path, "max_sped_mm_s = 3\n").unwrap();
        let wrong = Options {
            config: Some(path),
            ..Options::default()
        };
        let error = wrong.driver().err().unwrap();
        assert_eq!(error.hint(), Some("did you mean `max_speed_mm_s`?"));
    }

    #[test]
    fn single_constants_win_over_those_of_a_preset() {
        let options = Options {
            preset: Some(Preset::Capo),
            pid_p: Some(1),
            ..Options::default()
        };
        let (setup, _) = options.setup().unwrap();
        let expected = Tuning {
            p: Some(1),
            ..Preset::Capo.tuning()
        };
        assert_eq!(setup.settings.tuning, expected);
    }

    #[test]
    fn invalid_values_are_rejected() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.setup().map(|_| ()).unwrap_err().to_string()
        };
        let same = with(|options| options.front = Some(128));
        assert_eq!(same, "front: is 128, the same as rear");
        assert!(with(|options| options.rear = Some(1)).starts_with("rear: 1 is not"));
        assert!(with(|options| options.address = Some(1)).starts_with("address: 1 is not"));
        let both = with(|options| (options.address, options.rear) = (Some(0x80), Some(0x81)));
        assert_eq!(
            both,
            "address: is for one controller, front and rear are for two"
        );
        assert!(with(|options| options.watchdog_ms = Some(100)).starts_with("watchdog_ms"));
        assert!(with(|options| options.wheel_radius_mm = Some(0.0)).contains("wheel_radius_mm"));
        assert!(with(|options| options.temperature_drop = Some(701)).contains("temperature_drop"));
    }
}
