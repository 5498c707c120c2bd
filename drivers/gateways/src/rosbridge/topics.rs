//! The topics and services of the gateway. PURE.

use serde_json::{Value, json};

/// The content and direction of a topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Channel {
    /// From clients to the robot.
    In(Input),
    /// From the robot to clients.
    Out(Output),
}

/// The data that clients publish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Input {
    /// Motion.
    Twist,
    /// A target.
    Goal,
}

/// The data that clients subscribe to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Output {
    /// Scans of the laser.
    Scan,
    /// The pose and motion from the wheel speeds.
    Odometry,
    /// Acceleration and turn rate.
    Imu,
    /// The pose on the map.
    Pose,
    /// The map. A client gets it when it subscribes, and when it changes.
    Map,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Scan, Self::Odometry, Self::Imu, Self::Pose, Self::Map];
}

/// A service that clients call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// Stops the robot and clears its goal.
    Stop,
    /// Saves the map that is being made.
    SaveMap,
    /// The clock of the robot.
    Time,
    /// Lists topics, services and types.
    About(Question),
}

/// A request about topics and services.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// All topics and their types.
    Topics,
    /// The topics of one type.
    TopicsForType,
    /// The type of a topic.
    TopicType,
    /// All services.
    Services,
    /// The services of one type.
    ServicesForType,
    /// The type of a service.
    ServiceType,
    /// All nodes: the gateway.
    Nodes,
}

/// Names without the leading slash, types as ROS 2 writes them. The first name of a channel is the
/// one that clients are told; the others are what ROS 1 and ROS 2 programs use by default.
const TOPICS: [(&str, Channel, &str); 10] = [
    (
        "cmd_vel",
        Channel::In(Input::Twist),
        "geometry_msgs/msg/Twist",
    ),
    (
        "goal",
        Channel::In(Input::Goal),
        "geometry_msgs/msg/PoseStamped",
    ),
    (
        "goal_pose",
        Channel::In(Input::Goal),
        "geometry_msgs/msg/PoseStamped",
    ),
    (
        "move_base_simple/goal",
        Channel::In(Input::Goal),
        "geometry_msgs/msg/PoseStamped",
    ),
    (
        "scan",
        Channel::Out(Output::Scan),
        "sensor_msgs/msg/LaserScan",
    ),
    (
        "odom",
        Channel::Out(Output::Odometry),
        "nav_msgs/msg/Odometry",
    ),
    ("imu", Channel::Out(Output::Imu), "sensor_msgs/msg/Imu"),
    (
        "pose",
        Channel::Out(Output::Pose),
        "geometry_msgs/msg/PoseStamped",
    ),
    (
        "robot_pose",
        Channel::Out(Output::Pose),
        "geometry_msgs/msg/PoseStamped",
    ),
    (
        "map",
        Channel::Out(Output::Map),
        "nav_msgs/msg/OccupancyGrid",
    ),
];

const SERVICES: [(&str, Service, &str); 11] = [
    ("stop", Service::Stop, "std_srvs/srv/Trigger"),
    ("save_map", Service::SaveMap, "nav2_msgs/srv/SaveMap"),
    (
        "map_saver/save_map",
        Service::SaveMap,
        "nav2_msgs/srv/SaveMap",
    ),
    ("rosapi/get_time", Service::Time, "rosapi_msgs/srv/GetTime"),
    (
        "rosapi/topics",
        Service::About(Question::Topics),
        "rosapi_msgs/srv/Topics",
    ),
    (
        "rosapi/topics_for_type",
        Service::About(Question::TopicsForType),
        "rosapi_msgs/srv/TopicsForType",
    ),
    (
        "rosapi/topic_type",
        Service::About(Question::TopicType),
        "rosapi_msgs/srv/TopicType",
    ),
    (
        "rosapi/services",
        Service::About(Question::Services),
        "rosapi_msgs/srv/Services",
    ),
    (
        "rosapi/services_for_type",
        Service::About(Question::ServicesForType),
        "rosapi_msgs/srv/ServicesForType",
    ),
    (
        "rosapi/service_type",
        Service::About(Question::ServiceType),
        "rosapi_msgs/srv/ServiceType",
    ),
    (
        "rosapi/nodes",
        Service::About(Question::Nodes),
        "rosapi_msgs/srv/Nodes",
    ),
];

/// The name of the gateway in the list of nodes.
const NODE: &str = "/amber";

/// The channel with this name, with or without its leading slash.
pub fn find(name: &str) -> Option<Channel> {
    topic(name).map(|(_, channel, _)| *channel)
}

/// The type of the messages on a channel.
pub fn type_of(channel: Channel) -> &'static str {
    let found = TOPICS.iter().find(|(_, other, _)| *other == channel);
    found.map_or("", |(.., kind)| kind)
}

/// Whether a client's type is that of the channel. Twists may be stamped.
pub fn has_type(channel: Channel, kind: &str) -> bool {
    let kind = short(kind);
    let stamped = channel == Channel::In(Input::Twist) && kind == "geometry_msgs/TwistStamped";
    stamped || kind == short(type_of(channel))
}

/// The service with this name, with or without its leading slash.
pub fn service(name: &str) -> Option<Service> {
    let name = bare(name);
    let found = SERVICES.iter().find(|(other, ..)| *other == name);
    found.map(|(_, service, _)| *service)
}

/// The answer of a service about topics and services. What does not exist gives an empty answer, as
/// from the original server.
pub fn answer(question: Question, args: &Value) -> Value {
    let arg = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or("");
    let slash = |name: &&str| format!("/{name}");
    match question {
        Question::Topics => json!({
            "topics": TOPICS.iter().map(|(name, ..)| slash(name)).collect::<Vec<_>>(),
            "types": TOPICS.map(|(.., kind)| kind),
        }),
        Question::TopicsForType => {
            let kind = short(arg("type"));
            let same = TOPICS.iter().filter(|(.., other)| short(other) == kind);
            json!({ "topics": same.map(|(name, ..)| slash(name)).collect::<Vec<_>>() })
        }
        Question::TopicType => {
            json!({ "type": topic(arg("topic")).map_or("", |(.., kind)| kind) })
        }
        Question::Services => {
            json!({ "services": SERVICES.iter().map(|(name, ..)| slash(name)).collect::<Vec<_>>() })
        }
        Question::ServicesForType => {
            let kind = short(arg("type"));
            let same = SERVICES.iter().filter(|(.., other)| short(other) == kind);
            json!({ "services": same.map(|(name, ..)| slash(name)).collect::<Vec<_>>() })
        }
        Question::ServiceType => {
            let name = bare(arg("service"));
            let found = SERVICES.iter().find(|(other, ..)| *other == name);
            json!({ "type": found.map_or("", |(.., kind)| kind) })
        }
        Question::Nodes => json!({ "nodes": [NODE] }),
    }
}

fn topic(name: &str) -> Option<&'static (&'static str, Channel, &'static str)> {
    let name = bare(name);
    TOPICS.iter().find(|(other, ..)| *other == name)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// A type as ROS 1 writes it: without `msg/` and `srv/`.
fn short(kind: &str) -> String {
    kind.replace("/msg/", "/").replace("/srv/", "/")
}
