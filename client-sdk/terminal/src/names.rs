//! Reads devices of the command line, also by the names of users' devices: only their descriptions
//! know those. If a name is unknown, the program [`learn_names`] and reads the command line again.
//! PURE, but for what the program has learnt.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use amber_proto::ids::ParseDeviceError;
use amber_proto::{Device, DeviceType};

/// The types of users' devices by their names.
pub type Names = BTreeMap<String, DeviceType>;

static LEARNT: OnceLock<Names> = OnceLock::new();

/// Lets [`device`] know these names. Only the first call has an effect.
pub fn learn_names(names: impl FnOnce() -> Names) {
    let _ = LEARNT.get_or_init(names);
}

/// Reads a device such as `hokuyo`, `hokuyo:0`, `4:0` or `lamp`.
///
/// # Errors
/// The name is unknown, or the id is no number.
pub fn device(text: &str) -> Result<Device, ParseDeviceError> {
    device_with(LEARNT.get(), text)
}

fn device_with(names: Option<&Names>, text: &str) -> Result<Device, ParseDeviceError> {
    let (name, id) = text.split_once(':').unwrap_or((text, "0"));
    let device_type = type_with(names, name)?;
    // The id is read as that of Amber's devices.
    let numbered = format!("{}:{id}", device_type.0);
    numbered.parse()
}

fn type_with(names: Option<&Names>, text: &str) -> Result<DeviceType, ParseDeviceError> {
    text.parse().or_else(|error| {
        let known = names.and_then(|names| names.get(&usual(text)));
        known.copied().ok_or(error)
    })
}

/// How a name is looked up: those of Amber's devices may also have capitals and `_`.
#[must_use]
pub fn usual(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_read_like_those_of_ambers_devices() {
        let names = Names::from([("ceiling-lamp".to_owned(), DeviceType(201))]);
        for (text, id) in [("ceiling-lamp", 0), ("Ceiling_Lamp:3", 3)] {
            let device = Device::new(DeviceType(201), id);
            assert_eq!(device_with(Some(&names), text), Ok(device), "{text}");
        }
        let hokuyo = Device::new(DeviceType::HOKUYO, 1);
        assert_eq!(device_with(Some(&names), "hokuyo:1"), Ok(hokuyo));
        for (text, why) in [
            ("lamp", "unknown device type 'lamp'"),
            (":1", "unknown device type ''"),
            ("ceiling-lamp:x", "'x'"),
        ] {
            let error = device_with(Some(&names), text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(device_with(None, "ceiling-lamp").is_err());
    }
}
