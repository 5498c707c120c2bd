//! Keys and tokens of `zenoh-bridge-ros2dds`. PURE.
//!
//! ```text
//!  key:    robot1/scan                                         the name alone
//!  token:  @/1a2b.../@ros2_lv                                  here is a bridge
//!  token:  @/1a2b.../@ros2_lv/MP/robot1§scan/sensor_msgs§msg§LaserScan/:0:0:0,5:typehash=...;
//! ```
//!
//! A bridge joins nodes that use DDS to Zenoh. For the nodes behind other bridges it speaks this
//! layout, so a program that speaks it looks like a bridge with nodes. Payloads are those of
//! `rmw_zenoh`. There is no domain, no type in the key, and no attachment. So a name has one type:
//! a bridge ignores a second one.
//!
//! The format is that of version 1.10. Bridges that run in a namespace put it before each name.

use std::fmt;
use std::str::FromStr;

use crate::keys::{InvalidName, NotAKey, is_full_name};
use crate::qos::Qos;
use crate::token::{EntityKind, NotAToken};
use crate::types::{Kind, RosType};

/// The first part of every token.
const FIRST: &str = "@";
/// The third part.
const MARK: &str = "@ros2_lv";
/// The replacement of a slash in one part of a key.
const SLASH: &str = "§";

/// A bridge, or an endpoint of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeToken {
    /// The id of the Zenoh session, in lower-case hexadecimal digits.
    pub session: String,
    /// The endpoint; `None` for the bridge itself.
    pub endpoint: Option<BridgeEndpoint>,
}

/// A publisher, subscription, service or client behind a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeEndpoint {
    pub kind: EntityKind,
    /// The full name of the topic or service.
    pub name: String,
    /// The type, such as `sensor_msgs/msg/LaserScan`.
    pub ros_type: String,
    /// The quality of service as text: that of [`qos`], or of a bridge. Services have none.
    pub qos: Option<String>,
}

/// The key of a topic or service, from its full name.
///
/// ```
/// assert_eq!(amber_ros2::ros2dds::data_key("/robot1/scan"), "robot1/scan");
/// ```
#[must_use]
pub fn data_key(name: &str) -> &str {
    name.trim_start_matches('/')
}

/// The full name of a topic or service, from its key.
///
/// # Errors
/// It is the key of something else.
pub fn name_of(key: &str) -> Result<String, NotAKey> {
    let name = format!("/{key}");
    match is_full_name(&name) {
        true => Ok(name),
        false => Err(NotAKey),
    }
}

/// A name as one part of a key.
///
/// # Errors
/// It is not a full name.
pub fn name_part(name: &str) -> Result<String, InvalidName> {
    match is_full_name(name) {
        true => Ok(mangled(name)),
        false => Err(InvalidName(name.to_owned())),
    }
}

/// The quality of service, with the hash of the type: DDS nodes since Iron show it.
///
/// ```text
/// RELIABILITY:DURABILITY:HISTORY,DEPTH  as numbers of DDS, all types without keys
/// ```
#[must_use]
pub fn qos(qos: &Qos, ros_type: &RosType) -> String {
    let reliability = u8::from(!qos.is_best_effort);
    let durability = u8::from(qos.is_transient_local);
    let (history, depth) = match qos.depth {
        Some(depth) => (0, depth),
        None => (1, 1),
    };
    let hash = ros_type.hash_text();
    format!(":{reliability}:{durability}:{history},{depth}:typehash={hash};")
}

impl BridgeEndpoint {
    /// An endpoint with a full name.
    #[must_use]
    pub fn new(kind: EntityKind, name: &str, ros_type: &RosType, of_topic: &Qos) -> Self {
        let is_topic = ros_type.kind == Kind::Message;
        Self {
            kind,
            name: name.to_owned(),
            ros_type: ros_type.to_string(),
            qos: is_topic.then(|| qos(of_topic, ros_type)),
        }
    }
}

impl fmt::Display for BridgeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FIRST}/{}/{MARK}", self.session)?;
        let Some(it) = &self.endpoint else {
            return Ok(());
        };
        let (name, ros_type) = (mangled(&it.name), it.ros_type.replace('/', SLASH));
        write!(f, "/{}/{name}/{ros_type}", it.kind.code())?;
        match &it.qos {
            Some(qos) => write!(f, "/{qos}"),
            None => Ok(()),
        }
    }
}

impl FromStr for BridgeToken {
    type Err = NotAToken;

    /// Reads a token. Those of actions are refused.
    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(NotAToken);
        }
        let [FIRST, session, MARK, endpoint @ ..] = parts.as_slice() else {
            return Err(NotAToken);
        };
        let endpoint = match endpoint {
            [] => None,
            [kind, name, ros_type, qos @ ..] => {
                let kind = EntityKind::from_code(kind).ok_or(NotAToken)?;
                let name = format!("/{}", name.replace(SLASH, "/"));
                let qos = match (kind.is_of_topic(), qos) {
                    (true, [qos]) => Some((*qos).to_owned()),
                    (false, []) => None,
                    _ => return Err(NotAToken),
                };
                if !is_full_name(&name) {
                    return Err(NotAToken);
                }
                Some(BridgeEndpoint {
                    kind,
                    name,
                    ros_type: ros_type.replace(SLASH, "/"),
                    qos,
                })
            }
            _ => return Err(NotAToken),
        };
        Ok(Self {
            session: (*session).to_owned(),
            endpoint,
        })
    }
}

/// A full name without the slash at the front.
fn mangled(name: &str) -> String {
    data_key(name).replace('/', SLASH)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::{LaserScan, Odometry, TfMessage, TriggerRequest, TwistStamped};
    use crate::types::RosMessage;

    fn token(endpoint: Option<BridgeEndpoint>) -> BridgeToken {
        let session = "f9207b4e".into();
        BridgeToken { session, endpoint }
    }

    #[test]
    fn keys_are_names_without_the_first_slash() {
        assert_eq!(data_key("/robot1/scan"), "robot1/scan");
        assert_eq!(data_key("/tf"), "tf");
        assert_eq!(name_of("robot1/scan"), Ok("/robot1/scan".into()));
        for key in ["", "/robot1", "robot1//scan", "@/1", "robot1/scan/@adv/pub"] {
            assert_eq!(name_of(key), Err(NotAKey), "{key}");
        }
        assert_eq!(name_part("/lab/r1/scan").unwrap(), "lab§r1§scan");
        assert!(name_part("lab").is_err());
    }

    #[test]
    fn the_tokens_are_those_of_real_bridges() {
        let scan = BridgeEndpoint::new(
            EntityKind::Publisher,
            "/robot1/scan",
            &LaserScan::TYPE,
            &Qos::SENSOR_DATA,
        );
        let text = format!(
            "@/f9207b4e/@ros2_lv/MP/robot1§scan/sensor_msgs§msg§LaserScan/\
             :0:0:0,5:typehash=RIHS01_{};",
            LaserScan::TYPE.hash
        );
        assert_eq!(token(Some(scan.clone())).to_string(), text);
        assert_eq!(text.parse(), Ok(token(Some(scan))));
        let stop = BridgeEndpoint::new(
            EntityKind::Service,
            "/robot1/stop",
            &TriggerRequest::TYPE,
            &Qos::DEFAULT,
        );
        let text = "@/f9207b4e/@ros2_lv/SS/robot1§stop/std_srvs§srv§Trigger";
        assert_eq!(token(Some(stop.clone())).to_string(), text);
        assert_eq!(text.parse(), Ok(token(Some(stop))));
        let bridge = "@/f9207b4e/@ros2_lv";
        assert_eq!(token(None).to_string(), bridge);
        assert_eq!(bridge.parse(), Ok(token(None)));
    }

    #[test]
    fn tokens_of_the_original_bridge_are_read() {
        // Version 1.10.2 with nodes of Jazzy: it leaves out what the nodes leave out.
        let node = "@/b15f42f08147201181a081d735ba937e/@ros2_lv";
        let hash = TwistStamped::TYPE.hash_text();
        let commands =
            format!("{node}/MP/r1§cmd_vel/geometry_msgs§msg§TwistStamped/:1:::typehash={hash};");
        let poses = format!(
            "{node}/MS/r1§odom/nav_msgs§msg§Odometry/:1:::typehash={};",
            Odometry::TYPE.hash_text()
        );
        let service = format!(
            "{node}/SS/stamped§get_type_description/\
             type_description_interfaces§srv§GetTypeDescription"
        );
        // Bridges of Humble show no hash.
        let humble = "@/f9/@ros2_lv/MS/cmd_vel/geometry_msgs§msg§Twist/:1:0:0,10".to_owned();
        for (text, kind, name, ros_type) in [
            (
                commands,
                EntityKind::Publisher,
                "/r1/cmd_vel",
                "TwistStamped",
            ),
            (poses, EntityKind::Subscription, "/r1/odom", "Odometry"),
            (humble, EntityKind::Subscription, "/cmd_vel", "Twist"),
            (
                service,
                EntityKind::Service,
                "/stamped/get_type_description",
                "GetTypeDescription",
            ),
        ] {
            let read: BridgeToken = text.parse().unwrap();
            let endpoint = read.endpoint.as_ref().unwrap();
            assert_eq!((endpoint.kind, endpoint.name.as_str()), (kind, name));
            assert!(
                endpoint.ros_type.ends_with(&format!("/{ros_type}")),
                "{text}"
            );
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn the_quality_of_service_has_the_numbers_of_dds() {
        let text = |qos| super::qos(&qos, &TfMessage::TYPE);
        let hash = TfMessage::TYPE.hash;
        assert_eq!(
            text(Qos::LATCHED),
            format!(":1:1:0,1:typehash=RIHS01_{hash};")
        );
        assert!(text(Qos::DEFAULT.with_depth(100)).starts_with(":1:0:0,100:"));
        let all = Qos {
            depth: None,
            ..Qos::DEFAULT
        };
        assert!(text(all).starts_with(":1:0:1,1:"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "@/f9",
            "@//@ros2_lv",
            "@/f9/@ros2_lw",
            "@/f9/@ros2_lv/MP",
            "@/f9/@ros2_lv/MP/a/std_msgs§msg§String",
            "@/f9/@ros2_lv/MP/a/std_msgs§msg§String/:::/more",
            "@/f9/@ros2_lv/MP/1a/std_msgs§msg§String/:::",
            "@/f9/@ros2_lv/SS/a/std_srvs§srv§Trigger/:::",
            "@/f9/@ros2_lv/AS/navigate/nav2_msgs§action§NavigateToPose",
            "@ros2_lv/0/f9/0/10/NN/%/%/teleop",
        ] {
            assert_eq!(text.parse::<BridgeToken>(), Err(NotAToken), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "(@/f9/@ros2_lv(/(MP|MS|SS|SC))?)?(/[a-zM§0-9:,_]{0,5}){0,4}",
        ) {
            if let Ok(token) = text.parse::<BridgeToken>() {
                prop_assert_eq!(token.to_string(), text);
            }
        }

        #[test]
        fn every_name_survives(parts in prop::collection::vec("[a-z][a-z0-9_]?", 1..5)) {
            let name = format!("/{}", parts.join("/"));
            prop_assume!(is_full_name(&name));
            prop_assert_eq!(name_of(data_key(&name)), Ok(name.clone()));
            let endpoint =
                BridgeEndpoint::new(EntityKind::Client, &name, &TriggerRequest::TYPE, &Qos::DEFAULT);
            let text = token(Some(endpoint.clone())).to_string();
            prop_assert_eq!(text.parse(), Ok(token(Some(endpoint))));
        }
    }
}
