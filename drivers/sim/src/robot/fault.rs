//! The names of devices and of faults. PURE.

use std::fmt;
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
#[error("no such device ({all}): {name:?}", all = Device::ALL.map(Device::name).join(", "))]
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
