//! The topics and services of the gateway. PURE.

use super::definitions::short;

/// The content and direction of a topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
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
    /// The pose of the robot, as the client knows it.
    Here,
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
    Battery,
    /// The position on Earth.
    Gps,
    /// A gamepad at the robot.
    Gamepad,
    /// What the robot feels.
    Bumper,
    /// What the camera sees.
    Picture,
    /// The optics of the camera.
    CameraInfo,
    /// The pose on the map.
    Pose,
    /// The same without time and frame.
    BarePose,
    /// The same with its covariance.
    CovariantPose,
    /// The map. A client gets it when it subscribes, and when it changes.
    Map,
    /// The poses of the moving frames.
    Frames,
    /// The poses of the frames that are fixed on the robot. A client gets them when it subscribes.
    FixedFrames,
    /// What the gateway has not carried out.
    Log,
}

impl Output {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Scan,
        Self::Odometry,
        Self::Imu,
        Self::Battery,
        Self::Gps,
        Self::Gamepad,
        Self::Bumper,
        Self::Picture,
        Self::CameraInfo,
        Self::Pose,
        Self::BarePose,
        Self::CovariantPose,
        Self::Map,
        Self::Frames,
        Self::FixedFrames,
        Self::Log,
    ];

    /// The type of its messages, as ROS 2 writes it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Scan => "sensor_msgs/msg/LaserScan",
            Self::Odometry => "nav_msgs/msg/Odometry",
            Self::Imu => "sensor_msgs/msg/Imu",
            Self::Battery => "sensor_msgs/msg/BatteryState",
            Self::Gps => "sensor_msgs/msg/NavSatFix",
            Self::Gamepad => "sensor_msgs/msg/Joy",
            Self::Bumper => "irobot_create_msgs/msg/HazardDetectionVector",
            Self::Picture => "sensor_msgs/msg/CompressedImage",
            Self::CameraInfo => "sensor_msgs/msg/CameraInfo",
            Self::Pose => "geometry_msgs/msg/PoseStamped",
            Self::BarePose => "geometry_msgs/msg/Pose",
            Self::CovariantPose => "geometry_msgs/msg/PoseWithCovarianceStamped",
            Self::Map => "nav_msgs/msg/OccupancyGrid",
            Self::Frames | Self::FixedFrames => "tf2_msgs/msg/TFMessage",
            Self::Log => "rcl_interfaces/msg/Log",
        }
    }

    /// Whether a new subscriber gets the last message.
    #[must_use]
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Map | Self::FixedFrames)
    }

    /// Whether only the newest message may wait for a client, whatever queue it asks for: pictures are
    /// large, and old ones are of no use.
    #[must_use]
    pub fn newest_only(self) -> bool {
        matches!(self, Self::Picture)
    }
}

impl Direction {
    /// The type of its messages, as ROS 2 writes it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::In(Input::Twist) => "geometry_msgs/msg/Twist",
            Self::In(Input::Goal) => "geometry_msgs/msg/PoseStamped",
            Self::In(Input::Here) => "geometry_msgs/msg/PoseWithCovarianceStamped",
            Self::Out(output) => output.kind(),
        }
    }

    /// Whether a client's type is that of the channel, or a type that stands for it.
    #[must_use]
    pub fn has_kind(self, kind: &str) -> bool {
        let kind = short(kind);
        let other = match self {
            Self::In(Input::Twist) => "geometry_msgs/TwistStamped",
            Self::Out(Output::Frames | Output::FixedFrames) => "tf/tfMessage",
            Self::Out(Output::Log) => "rosgraph_msgs/Log",
            _ => "",
        };
        kind == other || kind == short(self.kind())
    }
}

/// A service that clients call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// Stops the robot and clears its goal.
    Stop,
    /// Halts everything that moves, or releases the halt.
    Halt,
    /// Saves the map that is being made.
    SaveMap,
    /// The clock of the robot.
    Time,
    /// Lists topics, services and types.
    About(Question),
}

/// A request about topics, services, types and parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// All topics and their types.
    Topics,
    /// The same with the definitions of the types.
    TopicsAndRawTypes,
    TopicsForType,
    TopicType,
    /// The nodes that publish a topic.
    Publishers,
    /// The nodes that subscribe to a topic.
    Subscribers,
    /// All services.
    Services,
    ServicesForType,
    ServiceType,
    /// The nodes with a service of one type.
    ServiceProviders,
    /// The node with a service.
    ServiceNode,
    /// The definition of a request.
    RequestDetails,
    /// The definition of a response.
    ResponseDetails,
    /// The definition of a message.
    MessageDetails,
    /// All nodes: the gateway.
    Nodes,
    /// The topics and services of a node.
    NodeDetails,
    /// All action servers.
    ActionServers,
    /// All parameters: there are none.
    ParameterNames,
    /// Whether a parameter exists.
    HasParameter,
    /// The value of a parameter.
    Parameter,
    /// The version of ROS.
    Version,
}

/// A service, with the definitions of its request and response.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name, without the leading slash.
    pub name: &'static str,
    /// What it does.
    pub service: Service,
    /// Its type, as ROS 2 writes it.
    pub kind: &'static str,
    /// The members of a request.
    pub request: &'static str,
    /// The members of a response.
    pub response: &'static str,
}

/// Names without the leading slash. The first type of a name is the one that clients are told; the
/// others are for clients that ask for them. Some names are what ROS 1 and ROS 2 programs use by
/// default.
const TOPICS: [(&str, Direction); 22] = [
    ("cmd_vel", Direction::In(Input::Twist)),
    ("goal", Direction::In(Input::Goal)),
    ("goal_pose", Direction::In(Input::Goal)),
    ("move_base_simple/goal", Direction::In(Input::Goal)),
    ("initialpose", Direction::In(Input::Here)),
    ("scan", Direction::Out(Output::Scan)),
    ("odom", Direction::Out(Output::Odometry)),
    ("imu", Direction::Out(Output::Imu)),
    ("battery_state", Direction::Out(Output::Battery)),
    ("fix", Direction::Out(Output::Gps)),
    ("joy", Direction::Out(Output::Gamepad)),
    ("hazard_detection", Direction::Out(Output::Bumper)),
    (
        "camera/image_raw/compressed",
        Direction::Out(Output::Picture),
    ),
    ("camera/camera_info", Direction::Out(Output::CameraInfo)),
    ("pose", Direction::Out(Output::Pose)),
    // Of most web pages, and of `robot_pose_publisher`.
    ("robot_pose", Direction::Out(Output::BarePose)),
    ("robot_pose", Direction::Out(Output::Pose)),
    ("amcl_pose", Direction::Out(Output::CovariantPose)),
    ("map", Direction::Out(Output::Map)),
    ("tf", Direction::Out(Output::Frames)),
    ("tf_static", Direction::Out(Output::FixedFrames)),
    // Viewers recognize the version of ROS by its type.
    ("rosout", Direction::Out(Output::Log)),
];

macro_rules! offers {
    ($($name:literal $service:expr, $kind:literal: $request:literal => $response:literal;)*) => {
        [$(Offer {
            name: $name,
            service: $service,
            kind: $kind,
            request: $request,
            response: $response,
        },)*]
    };
}

const fn about(question: Question) -> Service {
    Service::About(question)
}

// The definitions are those of `rosapi_msgs`.
const SERVICES: [Offer; 26] = offers! {
    "stop" Service::Stop, "std_srvs/srv/Trigger": "" => "bool success\nstring message\n";
    "halt" Service::Halt, "std_srvs/srv/SetBool":
        "bool data\n" => "bool success\nstring message\n";
    "save_map" Service::SaveMap, "nav2_msgs/srv/SaveMap":
        "string map_topic\nstring map_url\nstring image_format\nstring map_mode\n\
         float32 free_thresh\nfloat32 occupied_thresh\n" => "bool result\n";
    "map_saver/save_map" Service::SaveMap, "nav2_msgs/srv/SaveMap":
        "string map_topic\nstring map_url\nstring image_format\nstring map_mode\n\
         float32 free_thresh\nfloat32 occupied_thresh\n" => "bool result\n";
    "rosapi/get_time" Service::Time, "rosapi_msgs/srv/GetTime":
        "" => "builtin_interfaces/Time time\n";
    "rosapi/topics" about(Question::Topics), "rosapi_msgs/srv/Topics":
        "" => "string[] topics\nstring[] types\n";
    "rosapi/topics_and_raw_types" about(Question::TopicsAndRawTypes),
        "rosapi_msgs/srv/TopicsAndRawTypes":
        "" => "string[] topics\nstring[] types\nstring[] typedefs_full_text\n";
    "rosapi/topics_for_type" about(Question::TopicsForType), "rosapi_msgs/srv/TopicsForType":
        "string type\n" => "string[] topics\n";
    "rosapi/topic_type" about(Question::TopicType), "rosapi_msgs/srv/TopicType":
        "string topic\n" => "string type\n";
    "rosapi/publishers" about(Question::Publishers), "rosapi_msgs/srv/Publishers":
        "string topic\n" => "string[] publishers\n";
    "rosapi/subscribers" about(Question::Subscribers), "rosapi_msgs/srv/Subscribers":
        "string topic\n" => "string[] subscribers\n";
    "rosapi/services" about(Question::Services), "rosapi_msgs/srv/Services":
        "" => "string[] services\n";
    "rosapi/services_for_type" about(Question::ServicesForType),
        "rosapi_msgs/srv/ServicesForType":
        "string type\n" => "string[] services\n";
    "rosapi/service_type" about(Question::ServiceType), "rosapi_msgs/srv/ServiceType":
        "string service\n" => "string type\n";
    "rosapi/service_providers" about(Question::ServiceProviders),
        "rosapi_msgs/srv/ServiceProviders":
        "string service\n" => "string[] providers\n";
    "rosapi/service_node" about(Question::ServiceNode), "rosapi_msgs/srv/ServiceNode":
        "string service\n" => "string node\n";
    "rosapi/service_request_details" about(Question::RequestDetails),
        "rosapi_msgs/srv/ServiceRequestDetails":
        "string type\n" => "rosapi_msgs/TypeDef[] typedefs\n";
    "rosapi/service_response_details" about(Question::ResponseDetails),
        "rosapi_msgs/srv/ServiceResponseDetails":
        "string type\n" => "rosapi_msgs/TypeDef[] typedefs\n";
    "rosapi/message_details" about(Question::MessageDetails), "rosapi_msgs/srv/MessageDetails":
        "string type\n" => "rosapi_msgs/TypeDef[] typedefs\n";
    "rosapi/nodes" about(Question::Nodes), "rosapi_msgs/srv/Nodes": "" => "string[] nodes\n";
    "rosapi/node_details" about(Question::NodeDetails), "rosapi_msgs/srv/NodeDetails":
        "string node\n" => "string[] subscribing\nstring[] publishing\nstring[] services\n";
    "rosapi/action_servers" about(Question::ActionServers), "rosapi_msgs/srv/GetActionServers":
        "" => "string[] action_servers\n";
    "rosapi/get_param_names" about(Question::ParameterNames), "rosapi_msgs/srv/GetParamNames":
        "" => "string[] names\n";
    "rosapi/has_param" about(Question::HasParameter), "rosapi_msgs/srv/HasParam":
        "string name\n" => "bool exists\n";
    "rosapi/get_param" about(Question::Parameter), "rosapi_msgs/srv/GetParam":
        "string name\nstring default_value\n" =>
        "string value\nbool successful\nstring reason\n";
    "rosapi/get_ros_version" about(Question::Version), "rosapi_msgs/srv/GetROSVersion":
        "" => "uint8 version\nstring distro\n";
};

/// The channels with this name, with or without its leading slash: one for each type, the usual one
/// first.
pub fn find(name: &str) -> impl Iterator<Item = Direction> + use<> {
    let name = bare(name).to_owned();
    let same = TOPICS.iter().filter(move |(other, _)| *other == name);
    same.map(|(_, channel)| *channel)
}

/// All topics once, with their usual types. Names have no leading slash.
pub fn topics() -> impl Iterator<Item = (&'static str, Direction)> {
    let is_first = |index: usize, name: &str| {
        let mut before = TOPICS[..index].iter();
        !before.any(|(other, _)| *other == name)
    };
    let all = TOPICS.iter().enumerate();
    all.filter_map(move |(index, (name, channel))| {
        is_first(index, name).then_some((*name, *channel))
    })
}

/// All services.
pub fn services() -> impl Iterator<Item = &'static Offer> {
    SERVICES.iter()
}

/// The service with this name, with or without its leading slash.
pub fn service(name: &str) -> Option<&'static Offer> {
    let name = bare(name);
    SERVICES.iter().find(|offer| offer.name == name)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}
