//! The layouts: the keys and tokens of the robot on Zenoh. PURE.
//!
//! Nodes of one layout do not see those of the other one. A robot can have both.

use amber_ros2::ros2dds::data_key;
use amber_ros2::{
    BridgeEndpoint, BridgeToken, DataKey, Endpoint, EntityKind, RosType, Token, ros2dds,
};
use serde::Deserialize;

use super::config::{NODE, RosConfig};
use super::topics::{Topic, TopicSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// That of nodes with `rmw_zenoh`.
    RmwZenoh,
    /// That of `zenoh-bridge-ros2dds`, for nodes that use DDS.
    Ros2dds,
}

/// The topics with subscribers, in each layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest([TopicSet; Layout::ALL.len()]);

impl Layout {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RmwZenoh, Self::Ros2dds];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RmwZenoh => "rmw_zenoh",
            Self::Ros2dds => "ros2dds",
        }
    }

    /// The key of a topic or service.
    #[must_use]
    pub fn key(self, config: &RosConfig, topic: Topic, ros_type: &RosType) -> String {
        let name = config.name(topic);
        match self {
            Self::RmwZenoh => DataKey::new(config.domain, &name, ros_type).to_string(),
            Self::Ros2dds => data_key(&name).to_owned(),
        }
    }

    /// The key expression of the tokens of those who publish a topic, or call a service.
    ///
    /// A node with `rmw_zenoh` has its own tokens. The nodes behind a bridge share one:
    /// it goes with the last of them, and with the bridge.
    #[must_use]
    pub fn senders(self, config: &RosConfig, topic: Topic) -> String {
        let name = config.name(topic);
        let kind = match topic {
            Topic::SendGoal => EntityKind::Client,
            _ => EntityKind::Publisher,
        };
        let kind = kind.code();
        match self {
            Self::RmwZenoh => {
                let name = name.replace('/', "%");
                format!("@ros2_lv/{}/*/*/*/{kind}/*/*/*/{name}/**", config.domain)
            }
            Self::Ros2dds => {
                let name = ros2dds::name_part(&name).expect("a checked name");
                format!("@/*/@ros2_lv/{kind}/{name}/**")
            }
        }
    }
}

/// The token of the node, or of one of its endpoints, with `rmw_zenoh`.
#[must_use]
pub fn node_token(
    config: &RosConfig,
    session: &str,
    entity: u32,
    endpoint: Option<(EntityKind, Topic, &RosType)>,
) -> Token {
    let endpoint = endpoint.map(|(kind, topic, ros_type)| Endpoint {
        kind,
        name: config.name(topic),
        dds_type: ros_type.dds_name(),
        hash: ros_type.hash_text(),
        qos: topic.qos().to_string(),
    });
    Token {
        domain: config.domain,
        session: session.to_owned(),
        node: 0,
        entity,
        namespace: config.namespace.clone(),
        node_name: NODE.to_owned(),
        endpoint,
    }
}

/// The token of the robot as a bridge, or of one of its endpoints.
#[must_use]
pub fn bridge_token(
    config: &RosConfig,
    session: &str,
    endpoint: Option<(EntityKind, Topic, &RosType)>,
) -> BridgeToken {
    let endpoint = endpoint.map(|(kind, topic, ros_type)| {
        BridgeEndpoint::new(kind, &config.name(topic), ros_type, &topic.qos())
    });
    BridgeToken {
        session: session.to_owned(),
        endpoint,
    }
}

impl Interest {
    /// A topic has subscribers in a layout, or has no more.
    pub fn set(&mut self, layout: Layout, topic: Topic, is_listened: bool) {
        self.0[layout as usize].set(topic, is_listened);
    }

    /// Whether one of these topics has subscribers.
    #[must_use]
    pub fn intersects(self, topics: TopicSet) -> bool {
        self.0.iter().any(|set| set.intersects(topics))
    }
}

#[cfg(test)]
mod tests {
    use amber_ros2::RosMessage;
    use amber_ros2::messages::{TriggerRequest, Twist};

    use super::*;
    use crate::ros::config::RosTable;

    fn config(table: &str) -> RosConfig {
        let table: RosTable = toml::from_str(table).unwrap();
        table.checked(&"r1".parse().unwrap()).unwrap().unwrap()
    }

    #[test]
    fn the_names_are_those_of_the_configuration() {
        for layout in Layout::ALL {
            let table = format!("layouts = ['{}']", layout.name());
            assert_eq!(config(&table).layouts, [layout]);
        }
    }

    #[test]
    fn keys_of_a_bridge_have_neither_domain_nor_type() {
        let config = config("domain = 7");
        let key = |layout: Layout, topic| layout.key(&config, topic, &Twist::TYPE);
        assert!(key(Layout::RmwZenoh, Topic::CmdVel).starts_with("7/r1/cmd_vel/geometry_msgs::"));
        assert_eq!(key(Layout::Ros2dds, Topic::CmdVel), "r1/cmd_vel");
        assert_eq!(key(Layout::Ros2dds, Topic::TfStatic), "tf_static");
    }

    #[test]
    fn publishers_are_found_by_their_tokens() {
        let config = config("namespace = '/lab/r1'");
        let publishers = |layout: Layout| layout.senders(&config, Topic::CmdVel);
        let clients = Layout::RmwZenoh.senders(&config, Topic::SendGoal);
        let action = "%lab%r1%navigate_to_pose%_action%send_goal";
        assert_eq!(clients, format!("@ros2_lv/0/*/*/*/SC/*/*/*/{action}/**"));
        let rmw_zenoh = "@ros2_lv/0/*/*/*/MP/*/*/*/%lab%r1%cmd_vel/**";
        assert_eq!(publishers(Layout::RmwZenoh), rmw_zenoh);
        let ros2dds = publishers(Layout::Ros2dds);
        assert_eq!(ros2dds, "@/*/@ros2_lv/MP/lab§r1§cmd_vel/**");
        // Zenoh agrees.
        let publisher = (EntityKind::Publisher, Topic::CmdVel, &Twist::TYPE);
        let token = bridge_token(&config, "f9", Some(publisher)).to_string();
        let token = zenoh::key_expr::KeyExpr::try_from(token).unwrap();
        let all = zenoh::key_expr::KeyExpr::try_from(ros2dds).unwrap();
        assert!(all.includes(&token), "{token}");
        let entity = node_token(&config, "f9", 3, Some(publisher)).to_string();
        let entity = zenoh::key_expr::KeyExpr::try_from(entity).unwrap();
        let all = zenoh::key_expr::KeyExpr::try_from(rmw_zenoh).unwrap();
        assert!(all.includes(&entity), "{entity}");
    }

    #[test]
    fn the_robot_is_a_node_or_a_bridge() {
        let config = config("");
        assert_eq!(
            bridge_token(&config, "f9", None).to_string(),
            "@/f9/@ros2_lv"
        );
        let node = node_token(&config, "f9", 0, None).to_string();
        assert_eq!(node, "@ros2_lv/0/f9/0/0/NN/%/%r1/amber");
        let stop = (EntityKind::Service, Topic::Stop, &TriggerRequest::TYPE);
        let stop = bridge_token(&config, "f9", Some(stop)).to_string();
        assert_eq!(stop, "@/f9/@ros2_lv/SS/r1§stop/std_srvs§srv§Trigger");
    }

    #[test]
    fn interest_in_one_layout_is_enough() {
        let mut interest = Interest::default();
        let scan: TopicSet = [Topic::Scan].into_iter().collect();
        interest.set(Layout::RmwZenoh, Topic::Scan, true);
        interest.set(Layout::Ros2dds, Topic::Scan, true);
        interest.set(Layout::RmwZenoh, Topic::Scan, false);
        assert!(interest.intersects(scan));
        interest.set(Layout::Ros2dds, Topic::Scan, false);
        assert!(!interest.intersects(scan));
    }
}
