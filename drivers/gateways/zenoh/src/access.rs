//! Rights in the fleet: the access rules of a router, and the certificates for them. PURE.
//!
//! Zenoh's router binds rules to the names in certificates. A rule must contain the whole key
//! expression that a peer uses; messages that match no rule are dropped without an error.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use self::ros::RosRobot;
use crate::limits::{LEASE, MAX_ROUTED, MAX_SESSIONS};
use crate::names::{Name, ROS_OPERATOR};
use crate::router::scouting;

pub mod certificates;
mod ros;

pub use ros::RosTable;

/// The file with the rights of a fleet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rights {
    pub router: RouterTable,
    pub robot: Vec<RobotTable>,
    pub operator: Vec<OperatorTable>,
    /// If present, robots are also nodes of ROS 2.
    pub ros: Option<RosTable>,
}

/// The table `[router]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RouterTable {
    /// The host names and addresses by which robots and operators reach it.
    pub names: Vec<String>,
    /// The addresses to listen on.
    pub listen: Vec<String>,
}

/// The table `[[robot]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RobotTable {
    /// The name in keys and in its certificate.
    pub name: Name,
    /// The namespace in ROS 2, as in the configuration of the robot; its name if there is none.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// The table `[[operator]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorTable {
    /// The name in keys and in the certificate.
    pub name: Name,
    /// The robots that the operator sees, queries and drives.
    #[serde(default)]
    pub drives: Vec<Name>,
    /// The robots that the operator sees and queries, but does not move.
    #[serde(default)]
    pub watches: Vec<Name>,
    /// Of these robots, the operator hears data only at the rate that they have for this operator.
    #[serde(default)]
    pub own_rate: Vec<Name>,
}

/// Only this machine.
impl Default for RouterTable {
    fn default() -> Self {
        Self {
            names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            listen: vec!["tls/127.0.0.1:7447".to_owned()],
        }
    }
}

/// The reason why rights are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RightsError {
    /// Two robots or operators with one name would have one certificate.
    #[error("the name '{0}' appears twice: robots and operators need different names")]
    Twice(Name),
    /// The files of the authority and of the router have these names.
    #[error("the name '{0}' is reserved for a file of the fleet: use another one")]
    Reserved(Name),
    /// The nodes of ROS 2 are an operator of this name for every robot.
    #[error("the name '{0}' is that of the nodes of ROS 2: use another one")]
    Nodes(Name),
    /// A right for a robot that is not listed.
    #[error("operator '{operator}' has a right for the robot '{robot}', which is not listed")]
    UnknownRobot { operator: Name, robot: Name },
    /// The keys of one robot would also be keys of the other one.
    #[error(
        "robots '{robot}' and '{other}': one namespace of ROS 2 contains the other one: set \
`namespace` to distinct names"
    )]
    NamespaceInOther {
        robot: Name,
        /// The robot that has its namespace there.
        other: Name,
    },
    /// Rules need keys.
    #[error("[ros] names no layout: use `rmw_zenoh`, `ros2dds`, or both")]
    NoLayout,
    /// Rules need keys that begin with the namespace of the robot.
    #[error(
        "robot '{robot}': '{namespace}' is not a namespace of ROS 2 for one robot: set `namespace` \
         to a name such as '/r1', as in its configuration"
    )]
    Namespace { robot: Name, namespace: String },
}

impl Rights {
    /// Checks that the names are those of different robots and operators.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self) -> Result<(), RightsError> {
        let mut names = BTreeSet::new();
        for name in self.names() {
            if ["ca", "router"].contains(&name.as_str()) {
                return Err(RightsError::Reserved(name.clone()));
            }
            if name.as_str() == ROS_OPERATOR {
                return Err(RightsError::Nodes(name.clone()));
            }
            if !names.insert(name) {
                return Err(RightsError::Twice(name.clone()));
            }
        }
        if self.ros.as_ref().is_some_and(|ros| ros.layouts.is_empty()) {
            return Err(RightsError::NoLayout);
        }
        let nodes = self.ros_robots()?;
        for (index, node) in nodes.iter().enumerate() {
            let mut others = nodes.iter().skip(index + 1);
            if let Some(other) = others.find(|other| node.shares_keys_with(other)) {
                return Err(RightsError::NamespaceInOther {
                    robot: node.name().clone(),
                    other: other.name().clone(),
                });
            }
        }
        let robots: BTreeSet<_> = self.robot.iter().map(|robot| &robot.name).collect();
        for operator in &self.operator {
            let all = operator.drives.iter().chain(&operator.watches);
            let mut all = all.chain(&operator.own_rate);
            if let Some(robot) = all.find(|robot| !robots.contains(robot)) {
                return Err(RightsError::UnknownRobot {
                    operator: operator.name.clone(),
                    robot: robot.clone(),
                });
            }
        }
        Ok(())
    }

    /// The names of all robots and operators: those of their certificates.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        let robots = self.robot.iter().map(|robot| &robot.name);
        robots.chain(self.operator.iter().map(|operator| &operator.name))
    }

    /// The robots as nodes of ROS 2.
    fn ros_robots(&self) -> Result<Vec<RosRobot<'_>>, RightsError> {
        let robots = self.ros.iter().flat_map(|ros| {
            let all = self.robot.iter();
            all.map(move |robot| RosRobot::new(ros, robot))
        });
        robots.collect()
    }

    /// The configuration of the router. Its certificate and that of the authority are in this folder.
    #[must_use]
    pub fn router(&self, folder: &Path) -> Value {
        let mut rules = vec![rule(
            "may-subscribe",
            &["ingress"],
            // Wide, because subscriptions are: what comes back is decided on the way out.
            &[
                "declare_subscriber",
                "declare_liveliness_subscriber",
                "liveliness_query",
            ],
            &["amber/**".to_owned()],
        )];
        let mut policies = Vec::new();
        // Invalid ones were found by `check`.
        let nodes = self.ros_robots().unwrap_or_default();
        for RobotTable { name, .. } in &self.robot {
            rules.extend(of_robot(name));
            let mut own = vec![format!("{name}-owns")];
            for node in nodes.iter().filter(|node| node.name() == name) {
                add(&mut rules, &mut own, node.owns());
                rules.push(node.heard());
            }
            policies.push(json!({ "subjects": [name], "rules": own }));
        }
        for operator in &self.operator {
            let who = &operator.name;
            let mut own = vec!["may-subscribe".to_owned()];
            let seen: BTreeSet<_> = operator.drives.iter().chain(&operator.watches).collect();
            for robot in seen {
                let drives = operator.drives.contains(robot);
                match operator.own_rate.contains(robot) {
                    true => {
                        own.push(format!("{who}-hears-{robot}"));
                        own.push(format!("{robot}-known"));
                        rules.push(of_slow_operator(who, robot));
                    }
                    false => own.push(format!("{robot}-heard")),
                }
                own.push(format!("{who}-uses-{robot}"));
                rules.extend(of_operator(who, robot, drives));
                for node in nodes.iter().filter(|node| node.name() == robot) {
                    own.push(node.heard_id());
                    add(&mut rules, &mut own, node.used(who, drives));
                }
            }
            if let Some(ros) = &self.ros {
                add(&mut rules, &mut own, ros::of_operator(ros, who));
            }
            policies.push(json!({ "subjects": [who], "rules": own }));
        }
        let subjects: Vec<_> = (self.names())
            .map(|name| json!({ "id": name, "cert_common_names": [name] }))
            .collect();
        json!({
            "mode": "router",
            "listen": { "endpoints": self.router.listen },
            "scouting": scouting(),
            "timestamping": { "enabled": true },
            "transport": {
                "unicast": { "max_sessions": MAX_SESSIONS },
                "link": {
                    "rx": { "max_message_size": MAX_ROUTED },
                    "protocols": ["tls"],
                    "tx": { "lease": LEASE.as_millis() as u64, "keep_alive": 4 },
                    "tls": {
                        "root_ca_certificate": folder.join("ca.pem"),
                        "listen_certificate": folder.join("router.pem"),
                        "listen_private_key": folder.join("router.key"),
                        "enable_mtls": true,
                        // There are no revocation lists: rights end with certificates.
                        "close_link_on_expiration": true,
                    },
                },
            },
            "access_control": {
                "enabled": true,
                "default_permission": "deny",
                "rules": rules,
                "subjects": subjects,
                "policies": policies,
            },
        })
    }
}

/// All kinds of messages, for the keys of one owner.
const EVERYTHING: [&str; 9] = [
    "put",
    "delete",
    "declare_subscriber",
    "query",
    "reply",
    "declare_queryable",
    "liveliness_token",
    "liveliness_query",
    "declare_liveliness_subscriber",
];
/// The data that the owner of keys sends to others.
const SERVED: [&str; 6] = [
    "put",
    "delete",
    "reply",
    "liveliness_token",
    "declare_subscriber",
    "declare_queryable",
];

/// Adds rules, and their names to those of a subject.
fn add(rules: &mut Vec<Value>, own: &mut Vec<String>, more: impl IntoIterator<Item = Value>) {
    for rule in more {
        own.extend(rule["id"].as_str().map(str::to_owned));
        rules.push(rule);
    }
}

/// The rights of a robot for its own keys, and the data that operators receive from it.
fn of_robot(robot: &Name) -> [Value; 3] {
    let all = [format!("amber/{robot}/**")];
    let owns = rule(
        &format!("{robot}-owns"),
        &["ingress", "egress"],
        &EVERYTHING,
        &all,
    );
    let heard = rule(&format!("{robot}-heard"), &["egress"], &SERVED, &all);
    // What it takes, so that queries find it.
    let declares = ["declare_subscriber", "declare_queryable"];
    let known = rule(&format!("{robot}-known"), &["egress"], &declares, &all);
    [owns, heard, known]
}

/// The data for an operator with an individual rate: everything except the data for others.
fn of_slow_operator(who: &Name, robot: &Name) -> Value {
    let own = ["data", "call", "drive"].map(|way| format!("*/*/{way}/{who}"));
    let all = ["alive/*", "info", "events", "seat", "operators/*/*"].map(str::to_owned);
    let devices = ["alive/*", "health", "description"].map(|it| format!("*/*/{it}"));
    let keys = own.into_iter().chain(all).chain(devices);
    let keys = keys.chain([format!("seat/{who}")]);
    let keys: Vec<_> = keys.map(|rest| format!("amber/{robot}/{rest}")).collect();
    let messages = ["put", "delete", "reply", "liveliness_token"];
    rule(
        &format!("{who}-hears-{robot}"),
        &["egress"],
        &messages,
        &keys,
    )
}

/// The queries and orders that an operator may send.
fn of_operator(who: &Name, robot: &Name, drives: bool) -> Vec<Value> {
    let key = |rest: &str| format!("amber/{robot}/{rest}");
    let mut asks = vec![
        key("info"),
        key("seat"),
        key("*/*/health"),
        key("*/*/description"),
        key(&format!("*/*/call/{who}")),
    ];
    let mut messages = vec!["query"];
    if drives {
        asks.push(key(&format!("*/*/drive/{who}")));
        asks.push(key(&format!("seat/{who}")));
        asks.push(key(&format!("operators/{who}/*")));
        messages.extend(["put", "liveliness_token"]);
    }
    vec![rule(
        &format!("{who}-uses-{robot}"),
        &["ingress"],
        &messages,
        &asks,
    )]
}

fn rule(id: &str, flows: &[&str], messages: &[&str], keys: &[String]) -> Value {
    json!({
        "id": id,
        "permission": "allow",
        "flows": flows,
        "messages": messages,
        "key_exprs": keys,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(text: &str) -> Rights {
        toml::from_str(text).unwrap()
    }

    const FLEET: &str = "
        [[robot]]
        name = 'r1'
        [[robot]]
        name = 'r2'
        [[operator]]
        name = 'alice'
        drives = ['r1']
        watches = ['r2']";

    #[test]
    fn an_operator_has_a_key_to_drive_only_for_the_robots_in_drives() {
        let rights = rights(FLEET);
        rights.check().unwrap();
        let router = rights.router(Path::new("/etc/fleet"));
        let rules = router["access_control"]["rules"].as_array().unwrap();
        let keys = |id: &str| {
            let rule = rules.iter().find(|rule| rule["id"] == id).unwrap();
            rule["key_exprs"].to_string()
        };
        assert!(keys("alice-uses-r1").contains("amber/r1/*/*/drive/alice"));
        assert!(keys("alice-uses-r1").contains("amber/r1/seat/alice"));
        assert!(!keys("alice-uses-r2").contains("drive"));
        assert!(!keys("alice-uses-r2").contains("seat/alice"));
        assert!(keys("alice-uses-r2").contains("amber/r2/*/*/call/alice"));
        assert_eq!(router["access_control"]["default_permission"], "deny");
        let tls = &router["transport"]["link"]["tls"];
        assert_eq!(tls["listen_certificate"], "/etc/fleet/router.pem");
        let accepted = zenoh::Config::from_json5(&router.to_string());
        assert!(accepted.is_ok(), "{accepted:?}");
    }

    #[test]
    fn an_operator_with_a_rate_of_the_own_hears_no_other_data() {
        let rights = rights(&format!("{FLEET}\nown_rate = ['r2']"));
        rights.check().unwrap();
        let router = rights.router(Path::new("/etc/fleet"));
        let policies = router["access_control"]["policies"].as_array().unwrap();
        let alice = policies.iter().find(|it| it["subjects"][0] == "alice");
        let alice = alice.unwrap()["rules"].to_string();
        assert!(
            alice.contains("r1-heard") && !alice.contains("r2-heard"),
            "{alice}"
        );
        assert!(alice.contains("alice-hears-r2"), "{alice}");
        let rules = router["access_control"]["rules"].as_array().unwrap();
        let hears = rules.iter().find(|rule| rule["id"] == "alice-hears-r2");
        let keys = hears.unwrap()["key_exprs"].to_string();
        assert!(keys.contains("\"amber/r2/*/*/data/alice\""), "{keys}");
        assert!(!keys.contains("data\""), "{keys}");
        let accepted = zenoh::Config::from_json5(&router.to_string());
        assert!(accepted.is_ok(), "{accepted:?}");
    }

    #[test]
    fn a_node_of_ros_2_is_driven_by_the_operators_in_drives() {
        let text = FLEET.replace("name = 'r2'", "name = 'r2'\nnamespace = '/lab/r2'");
        let rights = self::rights(&format!("ros = {{ domain = 7 }}\n{text}"));
        rights.check().unwrap();
        let router = rights.router(Path::new("/etc/fleet"));
        let control = &router["access_control"];
        let rules = control["rules"].as_array().unwrap();
        // All keys that a subject may put.
        let puts = |subject: &str| {
            let mut policies = control["policies"].as_array().unwrap().iter();
            let policy = policies.find(|it| it["subjects"][0] == subject).unwrap();
            let own = policy["rules"].as_array().unwrap();
            let is_put = |rule: &&Value| {
                let (flows, messages) = (rule["flows"].to_string(), rule["messages"].to_string());
                flows.contains("ingress") && messages.contains("put") && own.contains(&rule["id"])
            };
            let keys = rules
                .iter()
                .filter(is_put)
                .map(|it| it["key_exprs"].to_string());
            keys.collect::<String>()
        };
        assert!(puts("alice").contains("7/r1/cmd_vel/**"));
        for name in ["initialpose", "map_saver/save_map", "navigate_to_pose"] {
            assert!(puts("alice").contains(&format!("7/r1/{name}/**")), "{name}");
        }
        // The robot sees the clients of its action.
        let sees = rules
            .iter()
            .find(|it| it["id"] == "r2-sees-drivers")
            .unwrap();
        let client = "@ros2_lv/7/*/*/*/SC/*/*/*/%lab%r2%navigate_to_pose%_action%send_goal/**";
        assert!(sees["key_exprs"].to_string().contains(client), "{sees}");
        assert!(!puts("alice").contains("lab"));
        assert!(puts("r2").contains("7/lab/r2/**") && !puts("r2").contains("7/r1"));
        let mut ids: Vec<_> = rules.iter().map(|rule| rule["id"].to_string()).collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all);
        let accepted = zenoh::Config::from_json5(&router.to_string());
        assert!(accepted.is_ok(), "{accepted:?}");

        for (ros, namespace) in [("{}", "/"), ("{ layouts = ['ros2dds'] }", "/amber")] {
            let name = format!("name = 'r2'\nnamespace = '{namespace}'");
            let other = FLEET.replace("name = 'r2'", &name);
            let error = self::rights(&format!("ros = {ros}\n{other}"))
                .check()
                .unwrap_err();
            let expected = format!("robot 'r2': '{namespace}' is not");
            assert!(error.to_string().contains(&expected), "{error}");
        }
        for namespace in ["/r1", "/r1/second"] {
            let name = format!("name = 'r2'\nnamespace = '{namespace}'");
            let other = FLEET.replace("name = 'r2'", &name);
            let error = self::rights(&format!("ros = {{}}\n{other}")).check();
            let error = error.unwrap_err().to_string();
            assert!(error.contains("'r1' and 'r2'"), "{error}");
        }
        let none = self::rights(&format!("ros = {{ layouts = [] }}\n{FLEET}")).check();
        assert_eq!(none, Err(RightsError::NoLayout));
    }

    #[test]
    fn a_bridge_drives_the_robots_of_its_operator() {
        let rights = rights(&format!(
            "ros = {{ layouts = ['ros2dds', 'rmw_zenoh'] }}\n{FLEET}"
        ));
        rights.check().unwrap();
        let router = rights.router(Path::new("/etc/fleet"));
        let rules = router["access_control"]["rules"].as_array().unwrap();
        // Whether a rule names a key expression that contains this one.
        let allows = |id: &str, key: &str| {
            let rule = rules.iter().find(|rule| rule["id"] == id).unwrap();
            let keys = rule["key_exprs"].as_array().unwrap().iter();
            let keys =
                keys.map(|key| zenoh::key_expr::keyexpr::new(key.as_str().unwrap()).unwrap());
            let key = zenoh::key_expr::keyexpr::new(key).unwrap();
            keys.into_iter().any(|all| all.includes(key))
        };
        let token =
            |name: &str| format!("@/f9/@ros2_lv/MP/{name}§cmd_vel/geometry_msgs§msg§Twist/:::");
        assert!(allows("alice-drives-ros-r1", "r1/cmd_vel"));
        assert!(!allows("alice-drives-ros-r1", "r1/scan"));
        assert!(!rules.iter().any(|rule| rule["id"] == "alice-drives-ros-r2"));
        assert!(allows("alice-nodes-r1", &token("r1")) && allows("r1-sees-drivers", &token("r1")));
        // That of a robot with a longer name is another one.
        for id in ["alice-nodes-r1", "r1-sees-drivers", "r1-owns-ros"] {
            assert!(
                !allows(id, &token("r2")) && !allows(id, &token("r10")),
                "{id}"
            );
        }
        assert!(allows("alice-listens-ros-r2", "r2/map/@adv/pub/**"));
        assert!(allows("alice-asks-ros-r2", "r2/map/@adv/**"));
        assert!(allows("alice-looks-ros", "@/*/@ros2_lv/**"));
        assert!(!allows("alice-looks-ros", "r2/scan") && !allows("r2-owns-ros", "r1/scan"));
        assert!(allows("r2-owns-ros", "tf") && !allows("r2-owns-ros", "amber/r1/info"));
        let accepted = zenoh::Config::from_json5(&router.to_string());
        assert!(accepted.is_ok(), "{accepted:?}");
    }

    #[test]
    fn wrong_rights_are_refused() {
        let twice = format!("{FLEET}\n[[robot]]\nname = 'alice'");
        let error = rights(&twice).check().unwrap_err();
        assert!(error.to_string().contains("'alice' appears twice"));
        let error = rights("[[robot]]\nname = 'ca'").check().unwrap_err();
        assert!(error.to_string().contains("'ca' is reserved for a file"));
        let error = rights("[[operator]]\nname = 'ros'").check().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("'ros' is that of the nodes of ROS 2")
        );
        let unknown = "[[operator]]\nname = 'bob'\nwatches = ['r3']";
        let error = rights(unknown).check().unwrap_err();
        assert!(error.to_string().contains("'r3', which is not listed"));
    }
}
