//! Liveliness tokens: how nodes, publishers and the others announce themselves. PURE.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use crate::attachment::Gid;
use crate::keys::{is_full_name, is_namespace};

/// The first part of every token.
const PREFIX: &str = "@ros2_lv";
/// The name of a node without an enclave, and of the root namespace.
const EMPTY: &str = "%";

/// A node or one of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The ROS domain.
    pub domain: u32,
    /// The id of the Zenoh session, in lower-case hexadecimal digits.
    pub session: String,
    /// The number of the node in the session.
    pub node: u32,
    /// The number of the node or endpoint in the session.
    pub entity: u32,
    /// The namespace of the node, such as `/robot1` or `/`.
    pub namespace: String,
    /// The name of the node, without its namespace.
    pub node_name: String,
    /// The endpoint; `None` for the node itself.
    pub endpoint: Option<Endpoint>,
}

/// A publisher, subscription, service or client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub kind: EntityKind,
    /// The full name of the topic or service.
    pub name: String,
    /// The type, such as `sensor_msgs::msg::dds_::LaserScan_`.
    pub dds_type: String,
    /// The hash, such as `RIHS01_64c1...`.
    pub hash: String,
    /// The quality of service as text: that of a [`crate::Qos`], or of another program.
    pub qos: String,
}

/// The kinds of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// It publishes a topic.
    Publisher,
    /// It subscribes to a topic.
    Subscription,
    /// It serves a service.
    Service,
    /// It calls a service.
    Client,
}

/// This is not a token of a ROS 2 node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token of a ROS 2 node")]
pub struct NotAToken;

impl Token {
    /// The identity of the endpoint in attachments.
    #[must_use]
    pub fn gid(&self) -> Gid {
        Gid::of_token(&self.to_string())
    }
}

impl Gid {
    /// The identity of the endpoint with this token, with all that newer versions append to it.
    #[must_use]
    pub fn of_token(token: &str) -> Self {
        Self(xxh3_128(token.as_bytes()).to_le_bytes())
    }
}

impl EntityKind {
    const ALL: [Self; 4] = [
        Self::Publisher,
        Self::Subscription,
        Self::Service,
        Self::Client,
    ];

    /// Its name in tokens, such as `MP`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Publisher => "MP",
            Self::Subscription => "MS",
            Self::Service => "SS",
            Self::Client => "SC",
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    pub(crate) fn is_of_topic(self) -> bool {
        matches!(self, Self::Publisher | Self::Subscription)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            session,
            node,
            entity,
            ..
        } = self;
        let kind = self.endpoint.as_ref().map_or("NN", |it| it.kind.code());
        let namespace = mangled(&self.namespace);
        let name = &self.node_name;
        write!(
            f,
            "{PREFIX}/{domain}/{session}/{node}/{entity}/{kind}/{EMPTY}/{namespace}/{name}"
        )?;
        match &self.endpoint {
            None => Ok(()),
            Some(it) => {
                let name = mangled(&it.name);
                write!(f, "/{name}/{}/{}/{}", it.dds_type, it.hash, it.qos)
            }
        }
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    /// Reads a token. What newer versions append to the token of an endpoint is left out.
    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let parts: Vec<&str> = text.split('/').collect();
        let [
            PREFIX,
            domain,
            session,
            node,
            entity,
            kind,
            _enclave,
            namespace,
            name,
            rest @ ..,
        ] = &parts[..]
        else {
            return Err(NotAToken);
        };
        let number = |text: &str| text.parse().map_err(|_| NotAToken);
        let endpoint = match (*kind, rest) {
            ("NN", []) => None,
            (code, [topic, dds_type, hash, qos, ..]) => {
                let kind = EntityKind::from_code(code).ok_or(NotAToken)?;
                let topic = unmangled(topic);
                if !is_full_name(&topic) {
                    return Err(NotAToken);
                }
                Some(Endpoint {
                    kind,
                    name: topic,
                    dds_type: (*dds_type).to_owned(),
                    hash: (*hash).to_owned(),
                    qos: (*qos).to_owned(),
                })
            }
            _ => return Err(NotAToken),
        };
        let namespace = match *namespace {
            EMPTY => "/".to_owned(),
            mangled => unmangled(mangled),
        };
        if !is_namespace(&namespace) {
            return Err(NotAToken);
        }
        Ok(Self {
            domain: number(domain)?,
            session: (*session).to_owned(),
            node: number(node)?,
            entity: number(entity)?,
            namespace,
            node_name: (*name).to_owned(),
            endpoint,
        })
    }
}

/// A name as one part of a key.
fn mangled(name: &str) -> String {
    name.replace('/', "%")
}

fn unmangled(part: &str) -> String {
    part.replace('%', "/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::messages::Twist;
    use crate::qos::Qos;
    use crate::types::RosMessage;

    fn token(namespace: &str, endpoint: Option<Endpoint>) -> Token {
        Token {
            domain: 0,
            session: "f9207b4e".into(),
            node: 0,
            entity: 10,
            namespace: namespace.into(),
            node_name: "teleop".into(),
            endpoint,
        }
    }

    fn cmd_vel() -> Endpoint {
        Endpoint {
            kind: EntityKind::Publisher,
            name: "/robot1/cmd_vel".into(),
            dds_type: Twist::TYPE.dds_name(),
            hash: Twist::TYPE.hash_text(),
            qos: Qos::DEFAULT.to_string(),
        }
    }

    #[test]
    fn the_tokens_are_those_of_real_nodes() {
        let publisher = token("/desk", Some(cmd_vel()));
        let text = format!(
            "@ros2_lv/0/f9207b4e/0/10/MP/%/%desk/teleop/%robot1%cmd_vel/\
             geometry_msgs::msg::dds_::Twist_/RIHS01_{}/::,10:,:,:,,",
            Twist::TYPE.hash
        );
        assert_eq!(publisher.to_string(), text);
        assert_eq!(text.parse(), Ok(publisher));
        let node = token("/", None);
        assert_eq!(node.to_string(), "@ros2_lv/0/f9207b4e/0/10/NN/%/%/teleop");
        assert_eq!(node.to_string().parse(), Ok(node));
        // Newer versions append more.
        let newer: Token = format!("{text}/backends:cpu:").parse().unwrap();
        assert_eq!(newer.endpoint, Some(cmd_vel()));
    }

    /// The examples in the design document of `rmw_zenoh`.
    #[test]
    fn the_published_examples_are_read_and_written() {
        let string = "std_msgs::msg::dds_::String_/\
            RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
        let (one, two) = (
            "aac3178e146ba6f1fc6e6a4085e77f21",
            "8b20917502ee955ac4476e0266340d5c",
        );
        for (text, name, kind) in [
            (
                format!("@ros2_lv/2/{one}/0/0/NN/%/%/listener"),
                "listener",
                None,
            ),
            (
                format!("@ros2_lv/2/{one}/0/10/MS/%/%/listener/%chatter/{string}/::,10:,:,:,,"),
                "listener",
                Some(EntityKind::Subscription),
            ),
            (
                format!("@ros2_lv/2/{two}/0/10/MP/%/%/talker/%chatter/{string}/::,7:,:,:,,"),
                "talker",
                Some(EntityKind::Publisher),
            ),
        ] {
            let token: Token = text.parse().unwrap();
            assert_eq!((token.domain, token.node_name.as_str()), (2, name));
            assert_eq!(token.endpoint.as_ref().map(|it| it.kind), kind);
            assert_eq!(token.to_string(), text);
            // Lyrical may append a part to those of endpoints: everything else stays.
            let newer = format!("{text}/backends:cpu:").parse::<Token>();
            assert_eq!(newer.ok(), kind.map(|_| token));
        }
    }

    #[test]
    fn the_identity_is_the_hash_of_the_token() {
        // The published value for no bytes at all: the low half comes first.
        let empty = xxh3_128(b"").to_le_bytes();
        assert_eq!(empty[..4], [0x7f, 0x49, 0x8d, 0x46]);
        assert_eq!(empty[8..12], [0xd8, 0x98, 0x47, 0x01]);
        let token = token("/", None);
        assert_eq!(
            token.gid().0,
            xxh3_128(token.to_string().as_bytes()).to_le_bytes()
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "@ros2_lv/0/f9/0/10/NN/%/%",
            "@ros2_lv/x/f9/0/10/NN/%/%/teleop",
            "@ros2_lv/0/f9/0/10/NN/%/%/teleop/more",
            "@ros2_lv/0/f9/0/10/XX/%/%/teleop/%a/T/H/::,10:,:,:,,",
            "@ros2_lv/0/f9/0/10/MP/%/%/teleop/a/T/H/::,10:,:,:,,",
            "@ros2_lv/0/f9/0/10/MP/%/%/teleop/%a/T/H",
            "@ros2_lw/0/f9/0/10/NN/%/%/teleop",
        ] {
            assert_eq!(text.parse::<Token>(), Err(NotAToken), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(@ros2_lv)?(/[a-zMPN0-9%:,_]{0,5}){0,14}") {
            if let Ok(token) = text.parse::<Token>() {
                let again: Result<Token, _> = token.to_string().parse();
                prop_assert_eq!(again, Ok(token));
            }
        }
    }
}
