//! The four kinds of numbers, each with its own type, and device names. PURE.

use std::fmt;
use std::str::FromStr;

use crate::mediator;

/// The type of a device; see [`DeviceType::NAMES`] for those with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceType(pub i32);

/// The number of a device among those of its type, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub i32);

/// A client or driver in the mediator's number space; always positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub i32);

/// The number of a request, repeated in its answer. 0 marks published data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SynNum(pub u32);

/// The address of a device: type and id, written `hokuyo:0` or `77:3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// The type of the device.
    pub device_type: DeviceType,
    /// The number among the devices of that type.
    pub id: DeviceId,
}

impl DeviceType {
    /// The name, for types that have one.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES
            .iter()
            .find(|(number, _)| *number == self)
            .map(|(_, name)| *name)
    }

    /// All names and aliases.
    fn words() -> impl Iterator<Item = &'static (Self, &'static str)> {
        Self::NAMES.iter().chain(&Self::ALIASES)
    }
}

impl Device {
    /// The mediator itself, 0:0.
    pub const MEDIATOR: Self = Self::new(DeviceType::MEDIATOR, 0);

    /// The `id`-th device of a kind.
    pub const fn new(device_type: DeviceType, id: i32) -> Self {
        Self {
            device_type,
            id: DeviceId(id),
        }
    }
}

impl From<Device> for mediator::Device {
    fn from(device: Device) -> Self {
        Self {
            r#type: device.device_type.0,
            id: device.id.0,
        }
    }
}

impl From<mediator::Device> for Device {
    fn from(device: mediator::Device) -> Self {
        Self::new(DeviceType(device.r#type), device.id)
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SynNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.device_type, self.id))
    }
}

/// The reasons why a text is not the address of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDeviceError {
    /// The type is neither a number nor a known name.
    #[error("unknown device type '{name}'{}", did_you_mean(name))]
    Type {
        /// The type as written.
        name: String,
    },
    /// The part after the colon is not a number.
    #[error("invalid device id '{0}': use a number such as 0")]
    Id(String),
}

fn did_you_mean(name: &str) -> String {
    let near = |known: &&'static str| {
        let distance = strsim::damerau_levenshtein(name, known);
        (distance <= 1 + known.len() / 4).then_some((distance, *known))
    };
    let words = DeviceType::words().map(|(_, known)| known);
    match words.filter_map(near).min_by_key(|(distance, _)| *distance) {
        Some((_, known)) => format!("; did you mean '{known}'?"),
        None => String::new(),
    }
}

impl FromStr for DeviceType {
    type Err = ParseDeviceError;

    /// Reads a number, a name such as `hokuyo`, or an alias such as `laser`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(number) = text.parse() {
            return Ok(Self(number));
        }
        let name = text.to_ascii_lowercase().replace('_', "-");
        let known = Self::words().find(|(_, known)| *known == name);
        known
            .map(|(number, _)| *number)
            .ok_or_else(|| ParseDeviceError::Type { name: text.into() })
    }
}

impl FromStr for Device {
    type Err = ParseDeviceError;

    /// Reads `hokuyo`, `laser`, `hokuyo:0` or `4:0`; the id is 0 unless given.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (device_type, id) = text.split_once(':').unwrap_or((text, "0"));
        Ok(Self {
            device_type: device_type.parse()?,
            id: DeviceId(id.parse().map_err(|_| ParseDeviceError::Id(id.into()))?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_survive_parsing_and_printing() {
        for (text, device_type, id, written) in [
            ("hokuyo", 4, 0, "hokuyo:0"),
            ("Hokuyo:1", 4, 1, "hokuyo:1"),
            ("4:0", 4, 0, "hokuyo:0"),
            ("laser", 4, 0, "hokuyo:0"),
            ("Wheels:1", 2, 1, "roboclaw:1"),
            ("imu", 1, 0, "ninedof:0"),
            ("servos", 7, 0, "maestro:0"),
            ("77:3", 77, 3, "77:3"),
            ("drive_to_point", 8, 0, "drive-to-point:0"),
            ("-4:2147483647", -4, i32::MAX, "-4:2147483647"),
        ] {
            let device: Device = text.parse().unwrap();
            assert_eq!(device, Device::new(DeviceType(device_type), id));
            assert_eq!(device.to_string(), written);
            assert_eq!(written.parse(), Ok(device));
        }
    }

    #[test]
    fn invalid_devices_are_reported() {
        for (text, error) in [
            (
                "hokujo",
                "unknown device type 'hokujo'; did you mean 'hokuyo'?",
            ),
            ("lasr", "unknown device type 'lasr'; did you mean 'laser'?"),
            ("spoon", "unknown device type 'spoon'"),
            ("", "unknown device type ''"),
            ("hokuyo:x", "invalid device id 'x': use a number such as 0"),
            ("hokuyo:", "invalid device id '': use a number such as 0"),
            (
                "4:99999999999",
                "invalid device id '99999999999': use a number such as 0",
            ),
        ] {
            assert_eq!(text.parse::<Device>().unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn padding_is_respected() {
        assert_eq!(
            format!("{:10}|", Device::new(DeviceType::DUMMY, 0)),
            "dummy:0   |"
        );
    }
}
