//! The announcement of a robot: its name and its text record. PURE.
//!
//! Source: RFC 6763, sections 4.1.1 (names: up to 63 bytes of UTF-8) and 6 (text records: strings
//! `key=value` of up to 255 bytes).

use std::net::SocketAddr;

use amber_proto::Device;

/// The longest list of devices, so that the record fits into one string.
const LONGEST_LIST: usize = 240;

/// A robot in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundRobot {
    /// Unique in its network.
    pub name: String,
    /// Addresses of its mediator, the best one first.
    pub addresses: Vec<SocketAddr>,
    /// The version of its mediator, if announced.
    pub version: Option<String>,
    /// Its devices, or some of them.
    pub devices: Vec<Device>,
    /// The number of devices that did not fit.
    pub more_devices: u32,
}

impl FoundRobot {
    /// Reads the text record of a robot. Invalid values count as missing.
    pub(crate) fn read<'a>(name: &str, text: impl Fn(&str) -> Option<&'a str>) -> Self {
        let devices = text("devices").unwrap_or_default().split(',');
        Self {
            name: unescaped(name),
            addresses: Vec::new(),
            version: text("version").map(str::to_owned),
            devices: devices.filter_map(|device| device.parse().ok()).collect(),
            more_devices: text("more").and_then(|more| more.parse().ok()).unwrap_or(0),
        }
    }
}

/// The text record: keys and values.
pub(crate) fn text(version: &str, devices: &[Device]) -> Vec<(&'static str, String)> {
    let mut list = String::new();
    let mut left = devices.len();
    for device in devices {
        let device = device.to_string();
        if list.len() + 1 + device.len() > LONGEST_LIST {
            break;
        }
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&device);
        left -= 1;
    }
    let mut text = vec![("version", version.to_owned()), ("devices", list)];
    if left > 0 {
        text.push(("more", left.to_string()));
    }
    text
}

/// A label for the host of a robot: letters, digits and hyphens (RFC 1123, section 2.1).
pub(crate) fn host_label(name: &str) -> String {
    let label: String = name
        .chars()
        .map(|char| match char.is_ascii_alphanumeric() {
            true => char.to_ascii_lowercase(),
            false => '-',
        })
        .collect();
    let label = label.trim_matches('-');
    // Apart from the name of the machine itself, for which another program may answer.
    format!("amber-{}", if label.is_empty() { "robot" } else { label })
}

/// The name of an instance without its escapes: `\.`, `\\` and `\DDD` (RFC 1035, section 5.1).
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..3).filter(|it| it.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
        match (number, rest.split_first()) {
            (Some(number), _) => {
                bytes.push(number);
                rest = &rest[3..];
            }
            (None, Some((escaped, others))) => {
                bytes.push(*escaped);
                rest = others;
            }
            (None, None) => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[(&str, String)]) -> FoundRobot {
        FoundRobot::read("r2", |key| {
            let (_, value) = text.iter().find(|(one, _)| *one == key)?;
            Some(value)
        })
    }

    fn devices(names: &[&str]) -> Vec<Device> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn what_a_robot_announces_is_read_back() {
        let all = devices(&["roboclaw:0", "hokuyo:0", "77:3"]);
        let robot = read(&text("0.2.0", &all));
        assert_eq!(robot.version.as_deref(), Some("0.2.0"));
        assert_eq!(robot.devices, all);
        assert_eq!(robot.more_devices, 0);
        assert!(read(&text("0.2.0", &[])).devices.is_empty());
    }

    #[test]
    fn a_list_that_is_too_long_says_how_many_are_missing() {
        let all: Vec<_> = (0..100).map(|id| Device::new(DeviceType(77), id)).collect();
        let text = text("0.2.0", &all);
        assert!(
            text.iter()
                .all(|(key, value)| key.len() + 1 + value.len() <= 255)
        );
        let robot = read(&text);
        assert_eq!(robot.devices, all[..robot.devices.len()]);
        assert_eq!(robot.devices.len() + robot.more_devices as usize, 100);
    }

    #[test]
    fn a_foreign_record_does_no_harm() {
        let robot = read(&[("devices", "?,hokuyo:0,".into()), ("more", "-1".into())]);
        assert_eq!(robot.devices, devices(&["hokuyo:0"]));
        assert_eq!((robot.version, robot.more_devices), (None, 0));
    }

    #[test]
    fn names_become_labels() {
        assert_eq!(host_label("Robot 2 (lab)"), "amber-robot-2--lab");
        assert_eq!(host_label("---"), "amber-robot");
    }

    #[test]
    fn escapes_in_names_are_undone() {
        for (escaped, name) in [
            ("r2", "r2"),
            (r"r\.2", "r.2"),
            (r"a\\b", r"a\b"),
            (r"a\032b", "a b"),
            ("end\\", "end\\"),
        ] {
            assert_eq!(unescaped(escaped), name);
        }
    }

    proptest! {
        #[test]
        fn any_name_can_be_read(name in ".*") {
            let _ = unescaped(&name);
            prop_assert!(host_label(&name).is_ascii());
        }
    }
}
