//! The devices, and the names of faults. PURE.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::wheels::{UnknownWheel, Wheel};

/// A device that programs can connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The bus of the motor controllers.
    Roboclaw,
    /// The laser scanner.
    Hokuyo,
    /// The laser scanner connected over TCP.
    HokuyoTcp,
    /// The board with accelerometer, gyroscope and magnetometer, on its own bus.
    NineDof,
    /// The marker sensor.
    Stargazer,
    /// The servo controller.
    Maestro,
}

/// How programs connect to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// By a serial line or USB.
    Serial,
    /// By an I2C bus.
    I2c,
    /// By TCP.
    Tcp,
}

/// The file with the markers on the ceiling, in the folder of the devices.
pub const MARKERS: &str = "markers.toml";

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A device is unplugged.
    Unplug(Device),
    /// A device neither receives nor sends anything.
    Stall(Device),
    /// Some bits that a device sends are wrong.
    Corrupt(Device),
    /// The main battery is almost empty.
    LowBattery,
    /// A wheel does not turn.
    StuckWheel(Wheel),
}

impl Device {
    /// All devices.
    pub const ALL: [Self; 6] = [
        Self::Roboclaw,
        Self::Hokuyo,
        Self::HokuyoTcp,
        Self::NineDof,
        Self::Stargazer,
        Self::Maestro,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Roboclaw => "roboclaw",
            Self::Hokuyo => "hokuyo",
            Self::HokuyoTcp => "hokuyo-tcp",
            Self::NineDof => "ninedof",
            Self::Stargazer => "stargazer",
            Self::Maestro => "maestro",
        }
    }

    /// The names of all devices.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// How programs connect to it.
    #[must_use]
    pub fn connection(self) -> Connection {
        match self {
            Self::Roboclaw | Self::Hokuyo | Self::Stargazer | Self::Maestro => Connection::Serial,
            Self::NineDof => Connection::I2c,
            Self::HokuyoTcp => Connection::Tcp,
        }
    }

    /// The devices that every robot has; each has the name of its driver.
    pub fn built_in() -> impl Iterator<Item = Self> {
        let mut all = Self::ALL.to_vec();
        all.retain(|device| device.connection() != Connection::Tcp);
        all.into_iter()
    }

    /// Commands of `amber` that show what it does, and what they show.
    #[must_use]
    pub fn demonstrations(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Roboclaw => &[("call roboclaw speeds", "wheel speeds")],
            Self::Hokuyo => &[("scan --plot", "laser scan")],
            Self::HokuyoTcp => &[],
            Self::NineDof => &[
                ("call ninedof data", "motion sensors"),
                (
                    "watch ninedof --period 100ms --sensors accel,gyro",
                    "the same, ten times a second; Ctrl-C ends",
                ),
            ],
            Self::Stargazer => &[("call stargazer pose", "position by markers")],
            Self::Maestro => &[("call maestro set-angle 3 45", "turn a servo")],
        }
    }

    /// The command of its driver, from `amber` on. `place` is the path of the device.
    #[must_use]
    pub fn driver(self, place: &str) -> Vec<String> {
        let (name, options) = match self.connection() {
            Connection::Serial => (self.name(), ["--port".to_owned(), place.to_owned()]),
            Connection::I2c => (self.name(), ["--bus".to_owned(), format!("sim:{place}")]),
            Connection::Tcp => ("hokuyo", ["--tcp".to_owned(), place.to_owned()]),
        };
        let mut command = ["amber", "driver", name].map(str::to_owned).to_vec();
        command.extend(options);
        if self == Self::Stargazer {
            let markers = Path::new(place).with_file_name(MARKERS);
            command.extend(["--markers".to_owned(), markers.display().to_string()]);
        }
        command
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let mut all = Self::ALL.into_iter();
        all.find(|device| device.name() == name)
            .ok_or_else(|| UnknownDevice {
                name: name.to_owned(),
            })
    }
}

/// No device has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such device ({all}): {name:?}", all = Device::names())]
pub struct UnknownDevice {
    name: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unplug(device) => write!(f, "unplug {device}"),
            Self::Stall(device) => write!(f, "stall {device}"),
            Self::Corrupt(device) => write!(f, "corrupt {device}"),
            Self::LowBattery => f.write_str("low-battery"),
            Self::StuckWheel(wheel) => write!(f, "stuck-wheel {wheel}"),
        }
    }
}

/// Why a fault cannot be parsed. A fault consists of its name and, depending on the fault, a device
/// or wheel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFault {
    /// There is no such fault.
    #[error("no such fault (unplug, stall, corrupt, low-battery, stuck-wheel): {0:?}")]
    Name(String),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// There is no such wheel.
    #[error(transparent)]
    Wheel(#[from] UnknownWheel),
    /// The device or wheel is missing.
    #[error("{0} needs the name of a {1}")]
    Missing(&'static str, &'static str),
}

impl Fault {
    /// Parses a fault from its name and its device or wheel.
    ///
    /// # Errors
    /// One of them is unknown or missing.
    pub fn parse(name: &str, about: Option<&str>) -> Result<Self, UnknownFault> {
        let device = |name: &'static str| -> Result<Device, UnknownFault> {
            Ok(about
                .ok_or(UnknownFault::Missing(name, "device"))?
                .parse()?)
        };
        Ok(match name {
            "unplug" => Self::Unplug(device("unplug")?),
            "stall" => Self::Stall(device("stall")?),
            "corrupt" => Self::Corrupt(device("corrupt")?),
            "low-battery" => Self::LowBattery,
            "stuck-wheel" => {
                let missing = UnknownFault::Missing("stuck-wheel", "wheel");
                Self::StuckWheel(about.ok_or(missing)?.parse()?)
            }
            _ => return Err(UnknownFault::Name(name.to_owned())),
        })
    }
}
