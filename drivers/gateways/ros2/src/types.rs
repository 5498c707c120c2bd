//! Names and hashes of types. PURE.

use std::fmt;

use crate::cdr::Cdr;

/// A message that is sent on topics, or one half of a service.
pub trait RosMessage: Cdr {
    /// The type of the topic or service.
    const TYPE: RosType;
}

/// The type of a topic or service.
///
/// Peers with the same name but different hashes do not receive each other's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosType {
    /// The package, such as `sensor_msgs`.
    pub package: &'static str,
    /// Whether it is a message or a service.
    pub kind: Kind,
    /// The name, such as `LaserScan`.
    pub name: &'static str,
    /// The hash of the definition, as 64 hexadecimal digits.
    pub hash: &'static str,
}

/// The kinds of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message of a topic.
    Message,
    Service,
    /// A topic or service of an action.
    Action,
}

impl RosType {
    /// The name in keys and tokens, such as `sensor_msgs::msg::dds_::LaserScan_`.
    #[must_use]
    pub fn dds_name(&self) -> String {
        format!("{}::{}::dds_::{}_", self.package, self.kind, self.name)
    }

    /// The hash in keys and tokens, such as `RIHS01_64c1...`.
    #[must_use]
    pub fn hash_text(&self) -> String {
        format!("RIHS01_{}", self.hash)
    }
}

/// As in ROS: `sensor_msgs/msg/LaserScan`.
impl fmt::Display for RosType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.package, self.kind, self.name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        })
    }
}
