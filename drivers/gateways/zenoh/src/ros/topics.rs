//! The topics and services of the node. PURE.

use amber_ros2::messages::{
    DiagnosticArray, Imu, JointState, LaserScan, MagneticField, OccupancyGrid, Odometry, Path,
    PoseStamped, PoseWithCovarianceStamped, Text, TfMessage, TriggerRequest, Twist, TwistStamped,
};
use amber_ros2::{Qos, RosMessage, RosType};
use serde::Deserialize;

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
    /// The pose on the map.
    Pose,
    /// The map.
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
    /// Service: stops the robot.
    Stop,
}

/// Several topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicSet(u32);

impl Topic {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Scan,
        Self::Odom,
        Self::Tf,
        Self::TfStatic,
        Self::JointStates,
        Self::Imu,
        Self::Mag,
        Self::Pose,
        Self::Map,
        Self::RobotDescription,
        Self::Plan,
        Self::Diagnostics,
        Self::CmdVel,
        Self::GoalPose,
        Self::Stop,
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
            Self::Pose => "pose",
            Self::Map => "map",
            Self::RobotDescription => "robot_description",
            Self::Plan => "plan",
            Self::Diagnostics => "diagnostics",
            Self::CmdVel => "cmd_vel",
            Self::GoalPose => "goal_pose",
            Self::Stop => "stop",
        }
    }

    /// The types. A motion may have a header or not.
    #[must_use]
    pub fn types(self) -> Vec<RosType> {
        match self {
            Self::Scan => vec![LaserScan::TYPE],
            Self::Odom => vec![Odometry::TYPE],
            Self::Tf | Self::TfStatic => vec![TfMessage::TYPE],
            Self::JointStates => vec![JointState::TYPE],
            Self::Imu => vec![Imu::TYPE],
            Self::Mag => vec![MagneticField::TYPE],
            Self::Pose => vec![PoseWithCovarianceStamped::TYPE],
            Self::Map => vec![OccupancyGrid::TYPE],
            Self::RobotDescription => vec![Text::TYPE],
            Self::Plan => vec![Path::TYPE],
            Self::Diagnostics => vec![DiagnosticArray::TYPE],
            Self::CmdVel => vec![Twist::TYPE, TwistStamped::TYPE],
            Self::GoalPose => vec![PoseStamped::TYPE],
            Self::Stop => vec![TriggerRequest::TYPE],
        }
    }

    /// The quality of service that peers expect.
    #[must_use]
    pub fn qos(self) -> Qos {
        match self {
            Self::Scan | Self::Imu | Self::Mag => Qos::SENSOR_DATA,
            Self::TfStatic | Self::Map | Self::RobotDescription => Qos::LATCHED,
            Self::Tf => Qos::DEFAULT.with_depth(100),
            _ => Qos::DEFAULT,
        }
    }

    /// Whether programs send it to the robot.
    #[must_use]
    pub fn is_input(self) -> bool {
        matches!(self, Self::CmdVel | Self::GoalPose | Self::Stop)
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
