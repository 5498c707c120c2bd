//! The access rules for robots that are nodes of ROS 2. PURE.
//!
//! `**` does not match parts of a key that begin with `@`, so caches and tokens have keys of their
//! own. Each layout has its own keys: see `ros::layout`.

use amber_ros2::keys::is_full_name;
use serde::Deserialize;
use serde_json::Value;

use super::{EVERYTHING, RightsError, RobotTable, SERVED, rule};
use crate::names::Name;
use crate::ros::config::is_apart;
use crate::ros::layout::Layout;

/// The table `[ros]`: robots are also nodes of ROS 2.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RosTable {
    /// The domain, as in the configuration of the robots.
    pub domain: u32,
    /// The layouts, as in the configuration of the robots.
    pub layouts: Vec<Layout>,
}

/// As in the configuration of robots.
impl Default for RosTable {
    fn default() -> Self {
        Self {
            domain: 0,
            layouts: vec![Layout::RmwZenoh],
        }
    }
}

/// The topics, services and actions of those who drive a robot.
const DRIVING: [&str; 6] = [
    "cmd_vel",
    "goal_pose",
    "initialpose",
    "stop",
    "map_saver/save_map",
    "navigate_to_pose",
];
/// What sets the robot in motion until its sender is gone: the kind of the token of a sender, and the
/// name.
const MOVING: [(&str, &str); 3] = [
    ("MP", "cmd_vel"),
    ("MP", "goal_pose"),
    ("SC", "navigate_to_pose/_action/send_goal"),
];
/// Those that may be shared by all robots.
const SHARED: [&str; 3] = ["tf", "tf_static", "diagnostics"];
/// The token of a bridge: it says nothing about robots.
const BRIDGE: &str = "@/*/@ros2_lv";
/// The admin space of sessions: a robot asks there whether the sender of a goal is alive.
const SESSIONS: &str = "@/*/*/**";

/// A robot in a domain.
pub(super) struct RosRobot<'a> {
    name: &'a Name,
    ros: &'a RosTable,
    /// Without the slash at the front.
    namespace: String,
}

impl<'a> RosRobot<'a> {
    /// The namespace is that of the table, or the name of the robot.
    ///
    /// # Errors
    /// It is not a separate namespace, so keys would not distinguish robots.
    pub(super) fn new(ros: &'a RosTable, robot: &'a RobotTable) -> Result<Self, RightsError> {
        let usual = || format!("/{}", robot.name);
        let namespace = robot.namespace.clone().unwrap_or_else(usual);
        let is_own = !ros.layouts.contains(&Layout::Ros2dds) || is_apart(&namespace);
        match namespace.strip_prefix('/') {
            Some(rest) if is_full_name(&namespace) && is_own => Ok(Self {
                name: &robot.name,
                ros,
                namespace: rest.to_owned(),
            }),
            _ => Err(RightsError::Namespace {
                robot: robot.name.clone(),
                namespace,
            }),
        }
    }

    pub(super) fn name(&self) -> &Name {
        self.name
    }

    /// Whether the namespace of one is in that of the other.
    pub(super) fn shares_keys_with(&self, other: &Self) -> bool {
        let (one, other) = (&self.namespace, &other.namespace);
        let is_in = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_in(one, other) || is_in(other, one)
    }

    /// The rights of the robot.
    pub(super) fn owns(&self) -> [Value; 4] {
        let mut keys = self.in_all(|layout| self.shown(layout));
        keys.extend(self.in_all(|layout| self.shown_tokens(layout)));
        let owns = rule(
            &format!("{}-owns-ros", self.name),
            &["ingress", "egress"],
            &EVERYTHING,
            &keys,
        );
        // Who publishes commands: what they have set in motion stops when they are gone.
        let drivers = rule(
            &format!("{}-sees-drivers", self.name),
            &["ingress", "egress"],
            &[
                "liveliness_token",
                "liveliness_query",
                "declare_liveliness_subscriber",
            ],
            &self.in_all(|layout| self.publishers(layout)),
        );
        // It asks the sessions of goals for signs of life.
        let asks = rule(
            &format!("{}-asks-sessions", self.name),
            &["ingress"],
            &["query"],
            &[SESSIONS.to_owned()],
        );
        let hears = rule(
            &format!("{}-hears-sessions", self.name),
            &["egress"],
            &["reply", "declare_queryable"],
            &[SESSIONS.to_owned()],
        );
        [owns, drivers, asks, hears]
    }

    /// The name of the rule [`RosRobot::heard`].
    pub(super) fn heard_id(&self) -> String {
        format!("{}-heard-ros", self.name)
    }

    /// The data that operators receive from it.
    pub(super) fn heard(&self) -> Value {
        let mut keys = self.in_all(|layout| self.shown(layout));
        keys.extend(self.in_all(|layout| self.shown_tokens(layout)));
        rule(&self.heard_id(), &["egress"], &SERVED, &keys)
    }

    /// The queries of an operator, and the topics to drive it.
    pub(super) fn used(&self, who: &Name, drives: bool) -> Vec<Value> {
        let name = self.name;
        let id = format!("{who}-asks-ros-{name}");
        let caches = self.in_all(|layout| self.caches(layout));
        let mut rules = vec![rule(&id, &["ingress"], &["query"], &caches)];
        if self.ros.layouts.contains(&Layout::Ros2dds) {
            let id = format!("{who}-listens-ros-{name}");
            let keys = self.shown(Layout::Ros2dds);
            rules.push(rule(&id, &["ingress"], &LISTENING, &keys));
        }
        if drives {
            let keys = self.in_all(|layout| self.driving(layout));
            let id = format!("{who}-drives-ros-{name}");
            rules.push(rule(&id, &["ingress"], &["put", "query"], &keys));
            let tokens = self.in_all(|layout| self.tokens(layout));
            let id = format!("{who}-nodes-{name}");
            rules.push(rule(&id, &["ingress"], &["liveliness_token"], &tokens));
            let sessions = [SESSIONS.to_owned()];
            let id = format!("{who}-answers-{name}");
            let answers = ["reply", "declare_queryable"];
            rules.push(rule(&id, &["ingress"], &answers, &sessions));
            let id = format!("{who}-is-asked-by-{name}");
            rules.push(rule(&id, &["egress"], &["query"], &sessions));
        }
        rules
    }

    /// The keys of all layouts.
    fn in_all(&self, of: impl Fn(Layout) -> Vec<String>) -> Vec<String> {
        self.ros.layouts.iter().flat_map(|it| of(*it)).collect()
    }

    /// Its topics, services and caches.
    fn shown(&self, layout: Layout) -> Vec<String> {
        let own = [self.namespace.as_str()].into_iter();
        let all = own.chain(SHARED).map(|name| self.key(layout, name));
        all.flat_map(|key| [format!("{key}/**"), format!("{key}/**/@adv/**")])
            .collect()
    }

    /// The caches of maps and fixed frames.
    fn caches(&self, layout: Layout) -> Vec<String> {
        let all = [self.namespace.as_str(), "tf_static"].into_iter();
        all.map(|name| format!("{}/**/@adv/**", self.key(layout, name)))
            .collect()
    }

    /// The topics and services that move and stop it.
    fn driving(&self, layout: Layout) -> Vec<String> {
        let all = DRIVING.into_iter();
        all.map(|topic| self.key(layout, &format!("{}/{topic}/**", self.namespace)))
            .collect()
    }

    fn key(&self, layout: Layout, name: &str) -> String {
        match layout {
            Layout::RmwZenoh => format!("{}/{name}", self.ros.domain),
            Layout::Ros2dds => name.to_owned(),
        }
    }

    /// Its tokens. For a bridge, those of the topics that all robots share are others.
    fn shown_tokens(&self, layout: Layout) -> Vec<String> {
        let mut tokens = self.tokens(layout);
        if layout == Layout::Ros2dds {
            tokens.extend(SHARED.map(|name| format!("{BRIDGE}/*/{name}/**")));
        }
        tokens
    }

    /// The tokens of nodes in its namespace, or of a bridge for its topics.
    fn tokens(&self, layout: Layout) -> Vec<String> {
        match layout {
            Layout::RmwZenoh => {
                let (domain, namespace) = (self.ros.domain, self.mangled(layout));
                vec![format!("@ros2_lv/{domain}/*/*/*/*/*/{namespace}/**")]
            }
            Layout::Ros2dds => {
                let own = format!("{BRIDGE}/*/{}$*/**", self.mangled(layout));
                vec![BRIDGE.to_owned(), own]
            }
        }
    }

    /// The tokens of those who publish commands for it.
    fn publishers(&self, layout: Layout) -> Vec<String> {
        let (domain, namespace) = (self.ros.domain, self.mangled(layout));
        let all = MOVING.into_iter();
        all.map(|(kind, topic)| match layout {
            Layout::RmwZenoh => {
                let topic = topic.replace('/', "%");
                format!("@ros2_lv/{domain}/*/*/*/{kind}/*/*/*/{namespace}%{topic}/**")
            }
            Layout::Ros2dds => {
                let topic = topic.replace('/', "§");
                format!("{BRIDGE}/{kind}/{namespace}{topic}/**")
            }
        })
        .collect()
    }

    /// The namespace in tokens: for bridges, with what separates it from a name.
    fn mangled(&self, layout: Layout) -> String {
        match layout {
            Layout::RmwZenoh => format!("%{}", self.namespace.replace('/', "%")),
            Layout::Ros2dds => format!("{}§", self.namespace.replace('/', "§")),
        }
    }
}

/// The rights of every operator: watch, and have nodes in the root namespace or in one with its
/// name.
pub(super) fn of_operator(ros: &RosTable, who: &Name) -> [Value; 2] {
    let domain = ros.domain;
    let (mut seen, mut own) = (Vec::new(), Vec::new());
    for layout in &ros.layouts {
        match layout {
            Layout::RmwZenoh => {
                seen.extend([
                    format!("{domain}/**"),
                    format!("{domain}/**/@adv/**"),
                    format!("@ros2_lv/{domain}/**"),
                ]);
                let namespaces = ["%".to_owned(), format!("%{who}")];
                own.extend(namespaces.map(|it| format!("@ros2_lv/{domain}/*/*/*/*/*/{it}/**")));
            }
            // Keys have no domain: topics are those of the robots that the operator sees.
            Layout::Ros2dds => {
                seen.extend([BRIDGE.to_owned(), format!("{BRIDGE}/**")]);
                own.push(BRIDGE.to_owned());
            }
        }
    }
    let id = format!("{who}-looks-ros");
    // Wide, because subscriptions are: what comes back is decided on the way out.
    let looks = rule(&id, &["ingress"], &LISTENING, &seen);
    let nodes = rule(
        &format!("{who}-nodes"),
        // The own tokens come back, as nodes expect.
        &["ingress", "egress"],
        &["liveliness_token"],
        &own,
    );
    [looks, nodes]
}

/// The rights for listening.
const LISTENING: [&str; 3] = [
    "declare_subscriber",
    "declare_liveliness_subscriber",
    "liveliness_query",
];
