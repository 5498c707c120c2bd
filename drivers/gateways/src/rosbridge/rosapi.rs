//! The answers of the services of `rosapi`. PURE.
//!
//! What does not exist gives an empty answer, as from the original server.

use serde_json::{Value, json};

use super::actions::ACTION;
use super::definitions::{details, details_of, fields_of, full_text, short};
use super::topics::{Direction, Offer, Question, find, service, services, topics};

/// The name of the gateway in the list of nodes.
const NODE: &str = "/amber";
/// The release of ROS 2 whose definitions the messages have.
const RELEASE: &str = "jazzy";

/// The arguments of a call: named, or as a list in the order of the definition of the request.
struct Args<'a> {
    offer: &'a Offer,
    args: &'a Value,
}

impl<'a> Args<'a> {
    fn text(&self, name: &str) -> &'a str {
        let found = match self.args {
            Value::Array(items) => {
                let mut fields = fields_of(self.offer.request);
                let place = fields.position(|field| field.name == name);
                place.and_then(|place| items.get(place))
            }
            args => args.get(name),
        };
        found.and_then(Value::as_str).unwrap_or("")
    }
}

/// The answer of a service about topics, services, types and parameters.
pub(super) fn answer(offer: &Offer, question: Question, args: &Value) -> Value {
    let args = Args { offer, args };
    match question {
        Question::Topics => {
            json!({ "topics": names(|_| true), "types": kinds(str::to_owned) })
        }
        Question::TopicsAndRawTypes => json!({
            "topics": names(|_| true),
            "types": kinds(str::to_owned),
            "typedefs_full_text": kinds(full_text),
        }),
        Question::TopicsForType => {
            let kind = args.text("type");
            let has_kind = |name: &str| find(name).any(|channel| is(channel.kind(), kind));
            let same = topics().filter(|(name, _)| has_kind(name));
            json!({ "topics": same.map(|(name, _)| slash(name)).collect::<Vec<_>>() })
        }
        Question::TopicType => {
            let channel = find(args.text("topic")).next();
            json!({ "type": channel.map_or("", Direction::kind) })
        }
        Question::Publishers => {
            json!({ "publishers": nodes(is_output(args.text("topic")) == Some(true)) })
        }
        Question::Subscribers => {
            json!({ "subscribers": nodes(is_output(args.text("topic")) == Some(false)) })
        }
        Question::Services => json!({ "services": service_names(|_| true) }),
        Question::ServicesForType => {
            let kind = args.text("type");
            json!({ "services": service_names(|offer| is(offer.kind, kind)) })
        }
        Question::ServiceType => {
            json!({ "type": service(args.text("service")).map_or("", |offer| offer.kind) })
        }
        // ROS asks by the type, in a member with this name.
        Question::ServiceProviders => {
            let kind = args.text("service");
            json!({ "providers": nodes(services().any(|offer| is(offer.kind, kind))) })
        }
        Question::ServiceNode => {
            let exists = service(args.text("service")).is_some();
            json!({ "node": if exists { NODE } else { "" } })
        }
        Question::RequestDetails => half(args.text("type"), "Request", |offer| offer.request),
        Question::ResponseDetails => half(args.text("type"), "Response", |offer| offer.response),
        Question::MessageDetails => json!({ "typedefs": details(args.text("type")) }),
        Question::Nodes => json!({ "nodes": [NODE] }),
        Question::NodeDetails => {
            let is_known = args.text("node").trim_start_matches('/') == &NODE[1..];
            let all = |is_out: bool| {
                names(|channel| is_known && matches!(channel, Direction::Out(_)) == is_out)
            };
            json!({
                "subscribing": all(false),
                "publishing": all(true),
                "services": service_names(|_| is_known),
            })
        }
        Question::ActionServers => json!({ "action_servers": [format!("/{ACTION}")] }),
        Question::ParameterNames => json!({ "names": [] }),
        Question::HasParameter => json!({ "exists": false }),
        Question::Parameter => parameter(&args),
        Question::Version => json!({ "version": 2, "distro": RELEASE }),
    }
}

/// The value is a JSON text; clients parse it.
fn parameter(args: &Args<'_>) -> Value {
    // The name in ROS 2 and in ROS 1.
    let defaults = [args.text("default_value"), args.text("default")];
    match defaults.iter().find(|text| !text.is_empty()) {
        Some(default) => json!({ "value": default, "successful": true, "reason": "" }),
        None => json!({
            "value": "null",
            "successful": false,
            "reason": "the gateway has no parameters",
        }),
    }
}

fn half(kind: &str, name: &str, definition: fn(&Offer) -> &'static str) -> Value {
    let offer = services().find(|offer| is(offer.kind, kind));
    let typedefs = offer.map_or_else(Vec::new, |offer| {
        details_of(&format!("{}_{name}", short(offer.kind)), definition(offer))
    });
    json!({ "typedefs": typedefs })
}

fn is(kind: &str, other: &str) -> bool {
    short(kind) == short(other)
}

fn slash(name: &str) -> String {
    format!("/{name}")
}

fn names(wanted: impl Fn(Direction) -> bool) -> Vec<String> {
    let some = topics().filter(|(_, channel)| wanted(*channel));
    some.map(|(name, _)| slash(name)).collect()
}

fn kinds(told: fn(&str) -> String) -> Vec<String> {
    topics().map(|(_, channel)| told(channel.kind())).collect()
}

fn service_names(wanted: impl Fn(&Offer) -> bool) -> Vec<String> {
    let some = services().filter(|offer| wanted(offer));
    some.map(|offer| slash(offer.name)).collect()
}

fn nodes(is_one: bool) -> Vec<&'static str> {
    if is_one { vec![NODE] } else { Vec::new() }
}

/// Whether the robot publishes a topic. `None` if there is no such topic.
fn is_output(topic: &str) -> Option<bool> {
    let channel = find(topic).next()?;
    Some(matches!(channel, Direction::Out(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rosbridge::topics::Service;

    fn ask(name: &str, args: Value) -> Value {
        let offer = service(&format!("/rosapi/{name}")).unwrap();
        let Service::About(question) = offer.service else {
            panic!("{offer:?}");
        };
        answer(offer, question, &args)
    }

    #[test]
    fn questions_have_answers() {
        let cases = [
            (
                "topic_type",
                json!({"topic": "/scan"}),
                json!({"type": "sensor_msgs/msg/LaserScan"}),
            ),
            (
                "topic_type",
                json!({"topic": "/robot_pose"}),
                json!({"type": "geometry_msgs/msg/Pose"}),
            ),
            (
                "topic_type",
                json!({"topic": "/nowhere"}),
                json!({"type": ""}),
            ),
            (
                "topics_for_type",
                json!({"type": "sensor_msgs/LaserScan"}),
                json!({"topics": ["/scan"]}),
            ),
            (
                "topics_for_type",
                json!({"type": "geometry_msgs/Pose"}),
                json!({"topics": ["/robot_pose"]}),
            ),
            (
                "publishers",
                json!({"topic": "/scan"}),
                json!({"publishers": ["/amber"]}),
            ),
            (
                "publishers",
                json!({"topic": "/cmd_vel"}),
                json!({"publishers": []}),
            ),
            (
                "subscribers",
                json!({"topic": "/cmd_vel"}),
                json!({"subscribers": ["/amber"]}),
            ),
            (
                "subscribers",
                json!({"topic": "/nowhere"}),
                json!({"subscribers": []}),
            ),
            (
                "services_for_type",
                json!({"type": "std_srvs/Trigger"}),
                json!({"services": ["/stop"]}),
            ),
            (
                "service_type",
                json!({"service": "/stop"}),
                json!({"type": "std_srvs/srv/Trigger"}),
            ),
            (
                "service_node",
                json!({"service": "/stop"}),
                json!({"node": "/amber"}),
            ),
            (
                "service_providers",
                json!({"service": "std_srvs/Trigger"}),
                json!({"providers": ["/amber"]}),
            ),
            ("nodes", Value::Null, json!({"nodes": ["/amber"]})),
            (
                "action_servers",
                json!({}),
                json!({"action_servers": ["/navigate_to_pose"]}),
            ),
            ("get_param_names", json!({}), json!({"names": []})),
            (
                "has_param",
                json!({"name": "/use_sim_time"}),
                json!({"exists": false}),
            ),
            (
                "get_param",
                json!({"name": "/use_sim_time", "default": "false"}),
                json!({"value": "false", "successful": true, "reason": ""}),
            ),
            (
                "get_ros_version",
                json!({}),
                json!({"version": 2, "distro": "jazzy"}),
            ),
        ];
        for (name, args, expected) in cases {
            assert_eq!(ask(name, args.clone()), expected, "{name} {args}");
        }
        let none = ask("get_param", json!({"name": "/x"}));
        assert_eq!(
            (&none["value"], &none["successful"]),
            (&json!("null"), &json!(false))
        );
    }

    #[test]
    fn arguments_may_be_a_list() {
        for (args, expected) in [
            (json!(["/scan"]), "sensor_msgs/msg/LaserScan"),
            (json!([]), ""),
            (json!([7]), ""),
        ] {
            assert_eq!(ask("topic_type", args)["type"], expected);
        }
        assert_eq!(ask("get_param", json!(["/x", "7"]))["value"], "7");
    }

    #[test]
    fn viewers_get_the_definitions_of_all_topics() {
        let all = ask("topics_and_raw_types", json!({}));
        let list = |name: &str| all[name].as_array().unwrap();
        let count = list("topics").len();
        assert_eq!(list("types").len(), count);
        assert_eq!(list("typedefs_full_text").len(), count);
        assert!(list("typedefs_full_text").iter().all(|text| text != ""));
        let mut unique: Vec<_> = list("topics").iter().map(Value::to_string).collect();
        unique.dedup();
        assert_eq!(unique.len(), count);
        assert!(list("types").contains(&json!("rcl_interfaces/msg/Log")));
        assert_eq!(ask("topics", json!({}))["topics"], all["topics"]);
    }

    #[test]
    fn nodes_messages_and_services_have_details() {
        let node = ask("node_details", json!({"node": "/amber"}));
        let has = |member: &str, name: &str| {
            let list = node[member].as_array().unwrap();
            list.contains(&json!(name))
        };
        assert!(has("subscribing", "/cmd_vel") && !has("subscribing", "/scan"));
        assert!(has("publishing", "/scan") && has("services", "/stop"));
        let other = ask("node_details", json!({"node": "/other"}));
        assert_eq!(
            other,
            json!({"subscribing": [], "publishing": [], "services": []})
        );

        let message = ask("message_details", json!({"type": "geometry_msgs/Twist"}));
        let types: Vec<_> = message["typedefs"].as_array().unwrap().iter().collect();
        assert_eq!(types.len(), 2);
        assert_eq!(types[0]["fieldnames"], json!(["linear", "angular"]));
        assert_eq!(types[1]["type"], "geometry_msgs/Vector3");

        let kind = json!({"type": "std_srvs/srv/Trigger"});
        let request = ask("service_request_details", kind.clone());
        assert_eq!(request["typedefs"][0]["fieldnames"], json!([]));
        let response = ask("service_response_details", kind);
        let typedef = &response["typedefs"][0];
        assert_eq!(typedef["type"], "std_srvs/Trigger_Response");
        assert_eq!(typedef["fieldtypes"], json!(["bool", "string"]));
        let nothing = ask("message_details", json!({"type": "x/Y"}));
        assert_eq!(nothing, json!({"typedefs": []}));
    }

    #[test]
    fn definitions_of_services_name_known_types() {
        for offer in services() {
            for text in [offer.request, offer.response] {
                assert_eq!(fields_of(text).count(), text.lines().count(), "{offer:?}");
            }
        }
    }
}
