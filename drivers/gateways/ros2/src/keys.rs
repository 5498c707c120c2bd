//! Names of topics and services, and their Zenoh keys. PURE.

use std::fmt;

use crate::types::RosType;

/// The longest name: long enough for a namespace and a topic.
pub const MAX_NAME: usize = 200;

/// The key on which a topic is published, or a service is served.
///
/// ```
/// use amber_ros2::messages::LaserScan;
/// use amber_ros2::{DataKey, RosMessage};
///
/// let key = DataKey::new(0, "/robot1/scan", &LaserScan::TYPE);
/// assert!(key.to_string().starts_with("0/robot1/scan/sensor_msgs::msg::dds_::LaserScan_/RIHS01_64c1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataKey {
    /// The ROS domain.
    pub domain: u32,
    /// The full name, with a slash at the front.
    pub name: String,
    /// The type, such as `sensor_msgs::msg::dds_::LaserScan_`.
    pub dds_type: String,
    /// The hash, such as `RIHS01_64c1...`.
    pub hash: String,
}

/// This is not the key of a topic or service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a ROS 2 topic or service")]
pub struct NotAKey;

/// The reason why a text is not a name of ROS 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid ROS 2 name '{0}': use letters, digits, '_' and '/', and no part may begin with a digit"
)]
pub struct InvalidName(pub String);

impl DataKey {
    /// The key of a name with a slash at the front.
    #[must_use]
    pub fn new(domain: u32, name: &str, ros_type: &RosType) -> Self {
        Self {
            domain,
            name: name.to_owned(),
            dds_type: ros_type.dds_name(),
            hash: ros_type.hash_text(),
        }
    }

    /// Reads a key.
    ///
    /// # Errors
    /// It has too few parts, or the domain is not a number.
    pub fn parse(key: &str) -> Result<Self, NotAKey> {
        let (domain, rest) = key.split_once('/').ok_or(NotAKey)?;
        let (rest, hash) = rest.rsplit_once('/').ok_or(NotAKey)?;
        let (name, dds_type) = rest.rsplit_once('/').ok_or(NotAKey)?;
        let mut parts = name.split('/').chain([dds_type, hash]);
        let has_empty_part = parts.any(str::is_empty);
        if has_empty_part || !is_plain_number(domain) {
            return Err(NotAKey);
        }
        Ok(Self {
            domain: domain.parse().map_err(|_| NotAKey)?,
            name: format!("/{name}"),
            dds_type: dds_type.to_owned(),
            hash: hash.to_owned(),
        })
    }
}

impl fmt::Display for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.trim_start_matches('/');
        write!(f, "{}/{name}/{}/{}", self.domain, self.dds_type, self.hash)
    }
}

/// A full name: that of a namespace such as `/robot1` or `/`, and a name in it.
///
/// # Errors
/// The result is not a name of ROS 2.
pub fn full_name(namespace: &str, name: &str) -> Result<String, InvalidName> {
    let full = match name.strip_prefix('/') {
        Some(_) => name.to_owned(),
        None => format!("{}/{name}", namespace.trim_end_matches('/')),
    };
    match is_full_name(&full) {
        true => Ok(full),
        false => Err(InvalidName(full)),
    }
}

/// Whether this is a name with all namespaces.
#[must_use]
pub fn is_full_name(name: &str) -> bool {
    let parts = name.strip_prefix('/').map(|rest| rest.split('/'));
    name.len() <= MAX_NAME && parts.is_some_and(|mut parts| parts.all(is_name_part))
}

/// Whether this is a namespace: `/`, or a full name.
#[must_use]
pub fn is_namespace(name: &str) -> bool {
    name == "/" || is_full_name(name)
}

fn is_name_part(part: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_with_digit = part.bytes().next().is_none_or(|byte| byte.is_ascii_digit());
    !begins_with_digit && part.bytes().all(allowed) && !part.contains("__")
}

/// Only digits: `parse` would also accept a sign.
fn is_plain_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::{LaserScan, TriggerRequest};
    use crate::types::RosMessage;

    #[test]
    fn keys_are_those_of_real_nodes() {
        let key = DataKey::new(0, "/robot1/scan", &LaserScan::TYPE);
        let text = format!(
            "0/robot1/scan/sensor_msgs::msg::dds_::LaserScan_/RIHS01_{}",
            LaserScan::TYPE.hash
        );
        assert_eq!(key.to_string(), text);
        assert_eq!(DataKey::parse(&text), Ok(key));
        let service = DataKey::new(7, "/robot1/stop", &TriggerRequest::TYPE).to_string();
        assert!(service.starts_with("7/robot1/stop/std_srvs::srv::dds_::Trigger_/RIHS01_eeff"));
    }

    #[test]
    fn other_keys_are_refused() {
        for key in [
            "", "0", "0/a/b", "x/a/b/c", "+1/a/b/c", "0//b/c", "0//a/b/c", "0/a//c", "0/a/b/",
        ] {
            assert_eq!(DataKey::parse(key), Err(NotAKey), "{key}");
        }
        assert!(DataKey::parse("0/a/b/c").is_ok());
    }

    #[test]
    fn names_are_checked() {
        let full = |namespace, name| full_name(namespace, name);
        assert_eq!(full("/robot1", "scan").unwrap(), "/robot1/scan");
        assert_eq!(full("/", "scan").unwrap(), "/scan");
        assert_eq!(full("/robot1", "/tf").unwrap(), "/tf");
        assert_eq!(full("/fleet/r2", "imu/data").unwrap(), "/fleet/r2/imu/data");
        for (namespace, name) in [
            ("/robot1", ""),
            ("/robot 1", "scan"),
            ("/1robot", "scan"),
            ("robot1", "scan"),
            ("/r", "a__b"),
            ("/r", "a//b"),
            ("/r", "ä"),
            ("/r", "a*"),
        ] {
            assert!(full(namespace, name).is_err(), "{namespace} {name}");
        }
        assert!(full("/r", &"a".repeat(MAX_NAME)).is_err());
        assert!(is_namespace("/") && is_namespace("/r") && !is_namespace("r"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(key in ".{0,60}") {
            if let Ok(read) = DataKey::parse(&key) {
                let again = DataKey::parse(&read.to_string()).unwrap();
                prop_assert_eq!(again.dds_type, read.dds_type);
            }
        }
    }
}
