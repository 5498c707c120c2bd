//! The faults, and their names. PURE.

use std::fmt;

use crate::camera::PictureFault;
use crate::device::{Device, UnknownDevice};
use crate::wheels::{UnknownWheel, Wheel};

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
    /// A large current makes the voltage of the main battery dip.
    SaggingBattery,
    /// A wheel does not turn.
    StuckWheel(Wheel),
    /// Something is between the robot and the sky.
    Tunnel,
    /// The robot feels that its wheels hang in the air.
    Lift,
    /// The pictures of the camera have a fault.
    Picture(PictureFault),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unplug(device) => write!(f, "unplug {device}"),
            Self::Stall(device) => write!(f, "stall {device}"),
            Self::Corrupt(device) => write!(f, "corrupt {device}"),
            Self::LowBattery => f.write_str("low-battery"),
            Self::SaggingBattery => f.write_str("sagging-battery"),
            Self::StuckWheel(wheel) => write!(f, "stuck-wheel {wheel}"),
            Self::Tunnel => f.write_str("tunnel"),
            Self::Lift => f.write_str("lift"),
            Self::Picture(fault) => f.write_str(fault.name()),
        }
    }
}

/// Why a fault cannot be parsed. A fault consists of its name and, depending on the fault, a device
/// or wheel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFault {
    /// There is no such fault.
    #[error(
        "no such fault (unplug, stall, corrupt, low-battery, sagging-battery, stuck-wheel, tunnel, lift, {pictures}): {0:?}",
        pictures = PictureFault::ALL.map(|(_, name)| name).join(", ")
    )]
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
            "sagging-battery" => Self::SaggingBattery,
            "tunnel" => Self::Tunnel,
            "lift" => Self::Lift,
            "stuck-wheel" => {
                let missing = UnknownFault::Missing("stuck-wheel", "wheel");
                Self::StuckWheel(about.ok_or(missing)?.parse()?)
            }
            _ => {
                let mut of_pictures = PictureFault::ALL.into_iter();
                let found = of_pictures.find(|(_, known)| *known == name);
                let (fault, _) = found.ok_or_else(|| UnknownFault::Name(name.to_owned()))?;
                Self::Picture(fault)
            }
        })
    }
}
