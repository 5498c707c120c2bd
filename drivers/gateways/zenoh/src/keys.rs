//! The Zenoh keys of the fleet. PURE.
//!
//! ```text
//! amber/<robot>/alive/<boot>                    token: the robot is there
//! amber/<robot>/info                            query: version, devices, counters (JSON)
//! amber/<robot>/events                          published: events of the mediator
//! amber/<robot>/operators/<who>/<instance>      token of an operator
//! amber/<robot>/seat                            published on change, and query: who drives (JSON)
//! amber/<robot>/seat/<who>                      query: take it, wait for it, release it (JSON)
//! amber/<robot>/<type>/<id>/alive/<boot>        token: the driver is up
//! amber/<robot>/<type>/<id>/data                published: what the device publishes
//! amber/<robot>/<type>/<id>/data/<who>          the same for one operator, at an individual rate
//! amber/<robot>/<type>/<id>/health              published on change, and query (JSON)
//! amber/<robot>/<type>/<id>/description         query: a FileDescriptorSet
//! amber/<robot>/<type>/<id>/call/<who>          query: requests that move nothing
//! amber/<robot>/<type>/<id>/drive/<who>         put or query: messages that may move the robot
//! ```
//!
//! Messages are whole `DriverMsg`s as on Amber's own wire. Zenoh does not identify the sender,
//! so the operator is in the key, and the access rules of the router bind it to a certificate.

use amber_proto::{Device, DeviceId, DeviceType};

use crate::names::Name;

/// The first part of all keys.
pub const ROOT: &str = "amber";

/// All robots: tokens.
pub const ALL_ROBOTS_ALIVE: &str = "amber/*/alive/*";
/// All devices of all robots: tokens.
pub const ALL_DEVICES_ALIVE: &str = "amber/*/*/*/alive/*";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotKeys(String);

/// The subject of a message or query for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub device: Device,
    /// The permitted kind of message.
    pub way: Way,
    /// The operator.
    pub who: Name,
}

/// The two keys on which devices accept messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Only messages that move nothing.
    Call,
    /// All messages.
    Drive,
}

impl RobotKeys {
    /// The keys of the robot with this name.
    #[must_use]
    pub fn new(robot: &Name) -> Self {
        Self(format!("{ROOT}/{robot}"))
    }

    /// A key of the robot itself, such as `info`.
    #[must_use]
    pub fn own(&self, what: &str) -> String {
        format!("{}/{what}", self.0)
    }

    /// A key of a device, such as `data`.
    #[must_use]
    pub fn of(&self, device: Device, what: &str) -> String {
        let Device { device_type, id } = device;
        format!("{}/{device_type}/{id}/{what}", self.0)
    }

    /// The same key of all devices.
    #[must_use]
    pub fn of_all(&self, what: &str) -> String {
        format!("{}/*/*/{what}", self.0)
    }

    /// The token of this start of the robot.
    #[must_use]
    pub fn alive(&self, boot: &str) -> String {
        self.own(&format!("alive/{boot}"))
    }

    /// The key on which a device accepts messages.
    #[must_use]
    pub fn address(&self, address: &Address) -> String {
        let Address { device, way, who } = address;
        self.of(*device, &format!("{}/{who}", way.name()))
    }

    /// The key on which an operator requests a seat.
    #[must_use]
    pub fn seat(&self, who: &Name) -> String {
        self.own(&format!("seat/{who}"))
    }

    /// The published data of a device for one operator.
    #[must_use]
    pub fn own_data(&self, device: Device, who: &Name) -> String {
        self.of(device, &format!("data/{who}"))
    }

    /// The tokens of all operators of this robot.
    #[must_use]
    pub fn operators(&self) -> String {
        self.own("operators/*/*")
    }

    /// The token of one program of an operator.
    #[must_use]
    pub fn operator(&self, who: &Name, instance: u64) -> String {
        self.own(&format!("operators/{who}/{instance:016x}"))
    }
}

impl Way {
    /// The part of the key.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Drive => "drive",
        }
    }
}

impl Address {
    /// Reads the key of a message for a device. The robot is not looked at: queries may be for
    /// several.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        let parts: Vec<&str> = key.split('/').collect();
        let [ROOT, _robot, device_type, id, way, who] = parts[..] else {
            return None;
        };
        Some(Self {
            device: device(device_type, id)?,
            way: match way {
                "call" => Way::Call,
                "drive" => Way::Drive,
                _ => return None,
            },
            who: who.parse().ok()?,
        })
    }
}

/// Reads the token of an operator.
#[must_use]
pub fn parse_operator(key: &str) -> Option<(Name, u64)> {
    let parts: Vec<&str> = key.split('/').collect();
    let [ROOT, _robot, "operators", who, instance] = parts[..] else {
        return None;
    };
    let instance = u64::from_str_radix(instance, 16).ok()?;
    Some((who.parse().ok()?, instance))
}

/// Reads the key on which an operator requests a seat.
#[must_use]
pub fn parse_seat(key: &str) -> Option<Name> {
    let parts: Vec<&str> = key.split('/').collect();
    let [ROOT, _robot, "seat", who] = parts[..] else {
        return None;
    };
    who.parse().ok()
}

/// Reads the token of a robot: its name and the number of this start.
#[must_use]
pub fn parse_alive(key: &str) -> Option<(Name, &str)> {
    let parts: Vec<&str> = key.split('/').collect();
    let [ROOT, robot, "alive", boot] = parts[..] else {
        return None;
    };
    Some((robot.parse().ok()?, boot))
}

/// Reads the token of a device: its robot, and the number of this start.
#[must_use]
pub fn parse_device_alive(key: &str) -> Option<(Name, Device, &str)> {
    let parts: Vec<&str> = key.split('/').collect();
    let [ROOT, robot, device_type, id, "alive", boot] = parts[..] else {
        return None;
    };
    Some((robot.parse().ok()?, device(device_type, id)?, boot))
}

/// A device by the name or number of its type.
fn device(device_type: &str, id: &str) -> Option<Device> {
    let device_type: DeviceType = device_type.parse().ok()?;
    Some(Device {
        device_type,
        id: DeviceId(id.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_read() {
        let keys = RobotKeys::new(&"r1".parse().unwrap());
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        assert_eq!(keys.own("info"), "amber/r1/info");
        assert_eq!(keys.of(hokuyo, "data"), "amber/r1/hokuyo/0/data");
        assert_eq!(keys.of_all("health"), "amber/r1/*/*/health");
        let own = keys.own_data(hokuyo, &"bob".parse().unwrap());
        assert_eq!(own, "amber/r1/hokuyo/0/data/bob");
        let address = Address {
            device: Device::new(DeviceType(77), 3),
            way: Way::Drive,
            who: "alice".parse().unwrap(),
        };
        let key = keys.address(&address);
        assert_eq!(key, "amber/r1/77/3/drive/alice");
        assert_eq!(Address::parse(&key), Some(address));
        let alice = "alice".parse().unwrap();
        let token = keys.operator(&alice, 255);
        assert_eq!(token, "amber/r1/operators/alice/00000000000000ff");
        assert_eq!(parse_operator(&token), Some((alice, 255)));
        let bob: Name = "bob".parse().unwrap();
        assert_eq!(keys.seat(&bob), "amber/r1/seat/bob");
        assert_eq!(parse_seat("amber/*/seat/bob"), Some(bob));
        let robot = "r1".parse().unwrap();
        assert_eq!(parse_alive(&keys.alive("ab")), Some((robot, "ab")));
        let token = keys.of(hokuyo, "alive/ab");
        assert_eq!(parse_device_alive(&token).unwrap().1, hokuyo);
    }

    #[test]
    fn other_keys_are_not_read() {
        for key in [
            "",
            "amber/r1/hokuyo/0/call",
            "amber/r1/hokuyo/0/call/alice/more",
            "amber/r1/hokuyo/0/look/alice",
            "amber/r1/spoon/0/call/alice",
            "amber/r1/hokuyo/x/call/alice",
            "amber/r1/*/0/call/alice",
            "amber/r1/hokuyo/0/call/*",
            "other/r1/hokuyo/0/call/alice",
        ] {
            assert_eq!(Address::parse(key), None, "{key}");
        }
        // A query for all robots.
        assert!(Address::parse("amber/*/hokuyo/0/call/alice").is_some());
        assert_eq!(parse_operator("amber/r1/operators/alice/xyz"), None);
        assert_eq!(parse_alive("amber/*/alive"), None);
        assert_eq!(parse_seat("amber/r1/seat"), None);
        assert_eq!(parse_seat("amber/r1/seat/*"), None);
    }
}
