//! The topics and services of the node. PURE.

use amber_ros2::Qos;
use serde::Deserialize;

use super::layout::Layout;

/// A topic or service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Scans of the laser.
    Scan,
    /// The pose and motion of the robot, according to the wheels.
    Odom,
    /// The moving frames.
    Tf,
    /// The frames that are fixed on the robot.
    TfStatic,
    /// The wheels.
    JointStates,
    /// Acceleration and turn rates.
    Imu,
    /// The magnetic field.
    Mag,
    BatteryState,
    /// The position on Earth.
    Fix,
    /// What the robot feels.
    HazardDetection,
    /// The gamepad at the robot.
    Joy,
    /// What the camera sees, as JPEG files.
    #[serde(rename = "camera/image_raw/compressed")]
    Image,
    /// The optics of the camera.
    #[serde(rename = "camera/camera_info")]
    CameraInfo,
    /// The pose on the map.
    Pose,
    Map,
    /// The shape of the robot, as URDF.
    RobotDescription,
    /// The way to the target.
    Plan,
    /// The states of all devices.
    Diagnostics,
    /// The commanded motion.
    CmdVel,
    /// The commanded target.
    GoalPose,
    /// The pose of the robot, as a node knows it.
    #[serde(rename = "initialpose")]
    InitialPose,
    /// Service: stops the robot.
    Stop,
    /// Service: saves the map that is being made.
    #[serde(rename = "map_saver/save_map")]
    SaveMap,
    /// Action: drives to a pose. It consists of the services and topics below.
    NavigateToPose,
    /// Its service for new goals.
    #[serde(skip)]
    SendGoal,
    /// Its service to cancel goals.
    #[serde(skip)]
    CancelGoal,
    /// Its service for results.
    #[serde(skip)]
    GetResult,
    /// Its topic of progress.
    #[serde(skip)]
    Feedback,
    /// Its topic of the states of goals.
    #[serde(skip)]
    Status,
}

/// Several topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicSet(u32);

impl Topic {
    /// All of them, without the parts of actions.
    pub const ALL: [Self; 24] = [
        Self::Scan,
        Self::Odom,
        Self::Tf,
        Self::TfStatic,
        Self::JointStates,
        Self::Imu,
        Self::Mag,
        Self::BatteryState,
        Self::Fix,
        Self::HazardDetection,
        Self::Joy,
        Self::Image,
        Self::CameraInfo,
        Self::Pose,
        Self::Map,
        Self::RobotDescription,
        Self::Plan,
        Self::Diagnostics,
        Self::CmdVel,
        Self::GoalPose,
        Self::InitialPose,
        Self::Stop,
        Self::SaveMap,
        Self::NavigateToPose,
    ];

    /// The name without a namespace.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Odom => "odom",
            Self::Tf => "tf",
            Self::TfStatic => "tf_static",
            Self::JointStates => "joint_states",
            Self::Imu => "imu",
            Self::Mag => "mag",
            Self::BatteryState => "battery_state",
            Self::Fix => "fix",
            Self::HazardDetection => "hazard_detection",
            Self::Joy => "joy",
            Self::Image => "camera/image_raw/compressed",
            Self::CameraInfo => "camera/camera_info",
            Self::Pose => "pose",
            Self::Map => "map",
            Self::RobotDescription => "robot_description",
            Self::Plan => "plan",
            Self::Diagnostics => "diagnostics",
            Self::CmdVel => "cmd_vel",
            Self::GoalPose => "goal_pose",
            Self::InitialPose => "initialpose",
            Self::Stop => "stop",
            Self::SaveMap => "map_saver/save_map",
            Self::NavigateToPose => "navigate_to_pose",
            Self::SendGoal => "navigate_to_pose/_action/send_goal",
            Self::CancelGoal => "navigate_to_pose/_action/cancel_goal",
            Self::GetResult => "navigate_to_pose/_action/get_result",
            Self::Feedback => "navigate_to_pose/_action/feedback",
            Self::Status => "navigate_to_pose/_action/status",
        }
    }

    /// Whether nodes of a layout find it. The clients of actions need nodes with `rmw_zenoh`.
    #[must_use]
    pub fn is_in(self, layout: Layout) -> bool {
        layout == Layout::RmwZenoh || !self.name().contains("/_action/")
    }

    /// The quality of service that peers expect.
    #[must_use]
    pub fn qos(self) -> Qos {
        match self {
            Self::Scan | Self::Imu | Self::Mag | Self::Image | Self::CameraInfo => Qos::SENSOR_DATA,
            Self::TfStatic | Self::Map | Self::RobotDescription | Self::Status => Qos::LATCHED,
            Self::Tf => Qos::DEFAULT.with_depth(100),
            _ => Qos::DEFAULT,
        }
    }
}

impl TopicSet {
    /// All topics.
    #[must_use]
    pub fn all() -> Self {
        Topic::ALL.into_iter().collect()
    }

    /// Whether a topic is one of them.
    #[must_use]
    pub fn contains(self, topic: Topic) -> bool {
        self.0 & bit(topic) != 0
    }

    /// Whether there are common topics.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Adds or removes a topic.
    pub fn set(&mut self, topic: Topic, is_in: bool) {
        match is_in {
            true => self.0 |= bit(topic),
            false => self.0 &= !bit(topic),
        }
    }
}

impl FromIterator<Topic> for TopicSet {
    fn from_iter<I: IntoIterator<Item = Topic>>(topics: I) -> Self {
        Self(topics.into_iter().fold(0, |set, topic| set | bit(topic)))
    }
}

fn bit(topic: Topic) -> u32 {
    1 << topic as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_configuration() {
        #[derive(Deserialize)]
        struct File {
            topics: Vec<Topic>,
        }
        let names: Vec<_> = Topic::ALL.iter().map(|topic| topic.name()).collect();
        let file: File = toml::from_str(&format!("topics = {names:?}")).unwrap();
        assert_eq!(file.topics, Topic::ALL);
        let error = toml::from_str::<File>("topics = ['sonar']").err().unwrap();
        assert!(error.to_string().contains("`scan`"), "{error}");
    }

    #[test]
    fn a_set_of_topics_changes() {
        let mut set: TopicSet = [Topic::Scan, Topic::Stop].into_iter().collect();
        assert!(set.contains(Topic::Stop) && !set.contains(Topic::Odom));
        set.set(Topic::Stop, false);
        set.set(Topic::Odom, true);
        let expected: TopicSet = [Topic::Scan, Topic::Odom].into_iter().collect();
        assert_eq!(set, expected);
        assert!(set.intersects(TopicSet::all()) && !set.intersects(TopicSet::default()));
    }
}
