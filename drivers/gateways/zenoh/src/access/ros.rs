//! The access rules for robots that are nodes of ROS 2. PURE.
//!
//! `**` does not match parts of a key that begin with `@`, so caches and tokens have keys of their
//! own.

use amber_ros2::keys::is_full_name;
use serde::Deserialize;
use serde_json::Value;

use super::{RightsError, RobotTable, rule};
use crate::names::Name;

/// The table `[ros]`: robots are nodes of ROS 2, too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RosTable {
    /// The domain, as in the configuration of the robots.
    pub domain: u32,
}

/// The topics by which a robot is driven.
const DRIVING: [&str; 3] = ["cmd_vel", "goal_pose", "stop"];
/// Those that may be shared by all robots.
const SHARED: [&str; 3] = ["tf", "tf_static", "diagnostics"];

/// A robot in a domain.
pub(super) struct RosRobot<'a> {
    name: &'a Name,
    domain: u32,
    /// Without the slash at the front.
    namespace: String,
}

impl<'a> RosRobot<'a> {
    /// The namespace is that of the table, or the name of the robot.
    ///
    /// # Errors
    /// It is not a namespace of its own, so keys would not tell robots apart.
    pub(super) fn new(ros: &RosTable, robot: &'a RobotTable) -> Result<Self, RightsError> {
        let usual = || format!("/{}", robot.name);
        let namespace = robot.namespace.clone().unwrap_or_else(usual);
        match (is_full_name(&namespace), namespace.strip_prefix('/')) {
            (true, Some(rest)) => Ok(Self {
                name: &robot.name,
                domain: ros.domain,
                namespace: rest.to_owned(),
            }),
            _ => Err(RightsError::Namespace {
                robot: robot.name.clone(),
                namespace,
            }),
        }
    }

    /// Whether it is the robot with this name.
    pub(super) fn is(&self, name: &Name) -> bool {
        self.name == name
    }

    /// What the robot may do.
    pub(super) fn owns(&self) -> [Value; 2] {
        let mut keys = self.shown();
        keys.push(self.tokens_of(&self.mangled()));
        let owns = rule(
            &format!("{}-owns-ros", self.name),
            &["ingress", "egress"],
            &[
                "put",
                "delete",
                "declare_subscriber",
                "query",
                "reply",
                "declare_queryable",
                "liveliness_token",
                "liveliness_query",
                "declare_liveliness_subscriber",
            ],
            &keys,
        );
        // Who publishes commands: what they have set in motion stops when they are gone.
        let publishers = DRIVING.map(|topic| {
            let (domain, namespace) = (self.domain, self.mangled());
            format!("@ros2_lv/{domain}/*/*/*/MP/*/*/*/{namespace}%{topic}/**")
        });
        let drivers = rule(
            &format!("{}-sees-drivers", self.name),
            &["ingress", "egress"],
            &[
                "liveliness_token",
                "liveliness_query",
                "declare_liveliness_subscriber",
            ],
            &publishers,
        );
        [owns, drivers]
    }

    /// The name of the rule [`RosRobot::heard`].
    pub(super) fn heard_id(&self) -> String {
        format!("{}-heard-ros", self.name)
    }

    /// What operators hear of it.
    pub(super) fn heard(&self) -> Value {
        let mut keys = self.shown();
        keys.push(self.tokens_of(&self.mangled()));
        rule(
            &self.heard_id(),
            &["egress"],
            &[
                "put",
                "delete",
                "reply",
                "liveliness_token",
                "declare_subscriber",
                "declare_queryable",
            ],
            &keys,
        )
    }

    /// What an operator may ask, and publish to drive it.
    pub(super) fn used(&self, who: &Name, drives: bool) -> Vec<Value> {
        let domain = self.domain;
        let (name, namespace) = (self.name, &self.namespace);
        // The caches of maps and fixed frames.
        let caches = [
            format!("{domain}/{namespace}/**/@adv/**"),
            format!("{domain}/tf_static/**/@adv/**"),
        ];
        let id = format!("{who}-asks-ros-{name}");
        let mut rules = vec![rule(&id, &["ingress"], &["query"], &caches)];
        if drives {
            let keys = DRIVING.map(|topic| format!("{domain}/{namespace}/{topic}/**"));
            let id = format!("{who}-drives-ros-{name}");
            rules.push(rule(&id, &["ingress"], &["put", "query"], &keys));
            let tokens = [self.tokens_of(&self.mangled())];
            let id = format!("{who}-nodes-{name}");
            rules.push(rule(&id, &["ingress"], &["liveliness_token"], &tokens));
        }
        rules
    }

    fn shown(&self) -> Vec<String> {
        let (domain, namespace) = (self.domain, &self.namespace);
        let own = [namespace.as_str()].into_iter();
        let all = own.chain(SHARED);
        all.flat_map(|name| {
            [
                format!("{domain}/{name}/**"),
                format!("{domain}/{name}/**/@adv/**"),
            ]
        })
        .collect()
    }

    /// The tokens of nodes in a namespace.
    fn tokens_of(&self, mangled: &str) -> String {
        format!("@ros2_lv/{}/*/*/*/*/*/{mangled}/**", self.domain)
    }

    fn mangled(&self) -> String {
        format!("%{}", self.namespace.replace('/', "%"))
    }
}

/// What every operator may do: look, and have nodes in the root namespace or one of the own name.
pub(super) fn of_operator(ros: &RosTable, who: &Name) -> [Value; 2] {
    let domain = ros.domain;
    let looks = rule(
        &format!("{who}-looks-ros"),
        &["ingress"],
        // Wide, because subscriptions are: what comes back is decided on the way out.
        &[
            "declare_subscriber",
            "declare_liveliness_subscriber",
            "liveliness_query",
        ],
        &[
            format!("{domain}/**"),
            format!("{domain}/**/@adv/**"),
            format!("@ros2_lv/{domain}/**"),
        ],
    );
    let own = ["%".to_owned(), format!("%{who}")];
    let own = own.map(|namespace| format!("@ros2_lv/{domain}/*/*/*/*/*/{namespace}/**"));
    let nodes = rule(
        &format!("{who}-nodes"),
        // The own tokens come back, as nodes expect.
        &["ingress", "egress"],
        &["liveliness_token"],
        &own,
    );
    [looks, nodes]
}
