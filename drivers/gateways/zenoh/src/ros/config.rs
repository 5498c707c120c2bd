//! The table `[ros]` in the configuration of a robot. PURE.

use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use amber_map::Mounting;
use amber_navigation::kinematics::Twist;
use amber_ros2::keys::{full_name, is_namespace};
use amber_scene::mount::Mount;
use serde::Deserialize;

use super::convert::Frames;
use super::layout::Layout;
use super::topics::{Topic, TopicSet};
use crate::names::Name;

/// The name of the node, in the namespace of the robot.
pub const NODE: &str = "amber";

/// The table `[ros]`. All keys have defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RosTable {
    /// Whether the robot is a node of ROS 2. The presence of the table implies true.
    pub enabled: Option<bool>,
    /// The layouts: `rmw_zenoh` if there are none.
    pub layouts: Option<Vec<Layout>>,
    /// The domain, as `ROS_DOMAIN_ID` of other nodes with `rmw_zenoh`.
    pub domain: Option<u32>,
    /// The namespace; that of the robot's name if there is none.
    pub namespace: Option<String>,
    /// The topics and services; all if there are none.
    pub topics: Option<Vec<Topic>>,
    /// The topic for frames.
    pub tf: TfTopic,
    /// Whether the pose on the map becomes the frame `odom` in `map`. Off if Nav2 localizes.
    pub publish_map_to_odom: Option<bool>,
    /// How often wheel speeds are requested.
    pub odom_hz: Option<f64>,
    /// How often the motion sensors measure.
    pub imu_hz: Option<f64>,
    /// How many pictures per second the camera sends at most.
    pub camera_hz: Option<f64>,
    /// Wider pictures are made smaller by a whole factor.
    pub picture_width: Option<u32>,
    pub wheel_radius_mm: Option<f64>,
    /// Position of the laser ahead of the centre between the wheels.
    pub laser_offset_mm: Option<f64>,
    /// Position of the laser to the left.
    pub laser_left_mm: Option<f64>,
    /// Its direction, to the right of that of the robot.
    pub laser_angle_deg: Option<f64>,
    /// Whether it is mounted upside down.
    pub laser_mirrored: Option<bool>,
    /// Maximum forward and backward speed for `cmd_vel`.
    pub max_forward_m_s: Option<f64>,
    /// Maximum turn rate for `cmd_vel`.
    pub max_turn_rad_s: Option<f64>,
    /// Whether nodes behind a bridge send `cmd_vel` with a header: a bridge knows one type only.
    pub stamped_cmd_vel: Option<bool>,
    /// Whether the clocks of robot and programs agree, so that late commands are noticed.
    pub clocks_agree: Option<bool>,
}

/// The topic for frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TfTopic {
    /// On `/tf` for all robots, with the namespace before each frame, as in `r1/odom`.
    #[default]
    Shared,
    /// On a `tf` in the namespace, with plain frames such as `odom`: as Nav2 wants it.
    Namespaced,
}

/// The checked table.
#[derive(Clone, Debug, PartialEq)]
pub struct RosConfig {
    /// The layouts, each once.
    pub layouts: Vec<Layout>,
    pub domain: u32,
    /// The namespace, such as `/r1` or `/`.
    pub namespace: String,
    /// The topics and services.
    pub topics: TopicSet,
    /// The topic for frames.
    pub tf: TfTopic,
    /// The names of the frames.
    pub frames: Frames,
    /// Whether the pose on the map becomes the frame `odom` in `map`.
    pub publish_map_to_odom: bool,
    /// The time between two requests for wheel speeds.
    pub odom_period: Duration,
    /// The time between two readings of the motion sensors.
    pub imu_period: Duration,
    /// The shortest time between two pictures.
    pub camera_period: Duration,
    /// The camera makes wider pictures smaller; `None` if it does not.
    pub picture_width_px: Option<u32>,
    pub wheel_radius_m: f64,
    /// The position of the laser on the robot; `None` if the drivers know it.
    pub laser: Option<Mounting>,
    /// The maximum motion for `cmd_vel`.
    pub fastest: Twist,
    /// Whether nodes behind a bridge send `cmd_vel` with a header.
    pub has_stamped_cmd_vel: bool,
    /// Whether the clocks of robot and programs agree.
    pub clocks_agree: bool,
}

impl RosTable {
    /// Checks the table; `None` if the robot is not a node of ROS 2.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(self, robot: &Name) -> Result<Option<RosConfig>, OptionsError> {
        if self.enabled == Some(false) {
            return Ok(None);
        }
        let namespace = namespace(self.namespace, robot)?;
        let layouts = layouts(self.layouts, &namespace)?;
        let prefix = match self.tf {
            TfTopic::Shared => namespace.trim_matches('/').to_owned() + "/",
            TfTopic::Namespaced => String::new(),
        };
        let period = |name, hz: Option<f64>, usual_hz| {
            let hz = check(name, hz.unwrap_or(usual_hz), 0.1..=100.0)?;
            Ok::<_, OptionsError>(Duration::from_secs_f64(1.0 / hz))
        };
        let radius_mm = self.wheel_radius_mm.unwrap_or(60.0);
        let has_laser = [
            self.laser_offset_mm,
            self.laser_left_mm,
            self.laser_angle_deg,
        ];
        let laser = Mount {
            offset_mm: self.laser_offset_mm.unwrap_or_default(),
            left_mm: self.laser_left_mm.unwrap_or_default(),
            angle_deg: self.laser_angle_deg.unwrap_or_default(),
        };
        let laser = laser.pose().map_err(|problem| OptionsError::Value {
            name: "ros",
            problem,
        })?;
        let fastest = |name, value: Option<f64>| match value {
            Some(value) => check(name, value, 0.01..=100.0),
            None => Ok(f64::INFINITY),
        };
        let topics = self.topics.map(TopicSet::from_iter);
        Ok(Some(RosConfig {
            layouts,
            domain: check("domain", self.domain.unwrap_or(0), 0..=232)?,
            topics: topics.unwrap_or_else(TopicSet::all),
            tf: self.tf,
            frames: Frames::with_prefix(prefix.trim_start_matches('/')),
            publish_map_to_odom: self.publish_map_to_odom.unwrap_or(true),
            odom_period: period("odom_hz", self.odom_hz, 20.0)?,
            imu_period: period("imu_hz", self.imu_hz, 20.0)?,
            camera_period: period("camera_hz", self.camera_hz, 10.0)?,
            picture_width_px: (self.picture_width)
                .map(|width| check("picture_width", width, 16..=8192))
                .transpose()?,
            wheel_radius_m: check("wheel_radius_mm", radius_mm, 1.0..=1_000.0)? / 1000.0,
            laser: (has_laser.iter().any(Option::is_some)).then_some(Mounting {
                pose: laser,
                is_upside_down: self.laser_mirrored.unwrap_or_default(),
            }),
            fastest: Twist {
                forward_m_s: fastest("max_forward_m_s", self.max_forward_m_s)?,
                turn_rad_s: fastest("max_turn_rad_s", self.max_turn_rad_s)?,
            },
            has_stamped_cmd_vel: self.stamped_cmd_vel.unwrap_or(false),
            clocks_agree: self.clocks_agree.unwrap_or(true),
            namespace,
        }))
    }
}

/// That of the file, or the name of the robot.
fn namespace(given: Option<String>, robot: &Name) -> Result<String, OptionsError> {
    let namespace = given.unwrap_or_else(|| format!("/{robot}"));
    // Each name in it must also be valid.
    if is_namespace(&namespace) && full_name(&namespace, Topic::JointStates.name()).is_ok() {
        return Ok(namespace);
    }
    let problem = format!(
        "'{namespace}' is not a namespace of ROS 2: set `namespace` in [ros] to '/' or a name such \
         as '/r1', of letters, digits and '_', that does not begin with a digit"
    );
    Err(OptionsError::Value {
        name: "namespace",
        problem,
    })
}

/// Those of the file, or the usual one.
fn layouts(given: Option<Vec<Layout>>, namespace: &str) -> Result<Vec<Layout>, OptionsError> {
    let mut layouts = given.unwrap_or_else(|| vec![Layout::RmwZenoh]);
    layouts.sort_unstable();
    layouts.dedup();
    let problem = match layouts.is_empty() {
        true => "name at least one of `rmw_zenoh` and `ros2dds`".to_owned(),
        false if layouts.contains(&Layout::Ros2dds) && !is_apart(namespace) => format!(
            "'{namespace}' is a namespace for other keys: with the layout `ros2dds`, set \
             `namespace` to another name"
        ),
        false => return Ok(layouts),
    };
    Err(OptionsError::Value {
        name: "layouts",
        problem,
    })
}

/// Whether keys that begin with a namespace are those of one robot, although they have no domain:
/// Amber's own keys and the topics of all robots are others.
#[must_use]
pub fn is_apart(namespace: &str) -> bool {
    let first = namespace.split('/').nth(1).unwrap_or_default();
    !["amber", "tf", "tf_static", "diagnostics"].contains(&first)
}

impl RosConfig {
    /// The full name of a topic, such as `/r1/scan`.
    #[must_use]
    pub fn name(&self, topic: Topic) -> String {
        let is_shared = match topic {
            Topic::Tf | Topic::TfStatic => self.tf == TfTopic::Shared,
            // Programs that show diagnostics look there for all robots.
            Topic::Diagnostics => true,
            _ => false,
        };
        match is_shared || self.namespace == "/" {
            true => format!("/{}", topic.name()),
            false => format!("{}/{}", self.namespace, topic.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Option<RosConfig>, OptionsError> {
        let table: RosTable = toml::from_str(text).unwrap();
        table.checked(&"r1".parse().unwrap())
    }

    #[test]
    fn the_namespace_is_that_of_the_robot() {
        let config = checked("").unwrap().unwrap();
        assert_eq!(config.name(Topic::Scan), "/r1/scan");
        assert_eq!(config.name(Topic::Tf), "/tf");
        assert_eq!(config.name(Topic::Diagnostics), "/diagnostics");
        assert_eq!(config.frames.odom, "r1/odom");
        assert_eq!(config.frames.map, "map");
        assert_eq!(config.odom_period, Duration::from_millis(50));
        assert_eq!(config.topics, TopicSet::all());
        assert_eq!(config.laser, None);
        assert!(config.publish_map_to_odom && config.clocks_agree);
        assert_eq!(checked("enabled = false").unwrap(), None);
    }

    #[test]
    fn nav2_gets_plain_frames_in_the_namespace() {
        let config = checked("tf = 'namespaced'").unwrap().unwrap();
        assert_eq!(config.name(Topic::Tf), "/r1/tf");
        assert_eq!(config.name(Topic::TfStatic), "/r1/tf_static");
        assert_eq!(config.frames.odom, "odom");
        // A single robot needs neither.
        let single = checked("namespace = '/'").unwrap().unwrap();
        assert_eq!(single.name(Topic::Scan), "/scan");
        assert_eq!(single.frames.base, "base_link");
    }

    #[test]
    fn a_robot_may_have_both_layouts() {
        let layouts = |text| checked(text).unwrap().unwrap().layouts;
        assert_eq!(layouts(""), [Layout::RmwZenoh]);
        assert_eq!(layouts("layouts = ['ros2dds']"), [Layout::Ros2dds]);
        let both = "layouts = ['ros2dds', 'rmw_zenoh', 'ros2dds']";
        assert_eq!(layouts(both), Layout::ALL);
        assert!(!checked(both).unwrap().unwrap().has_stamped_cmd_vel);
        // A single robot without a namespace.
        assert!(checked("layouts = ['ros2dds']\nnamespace = '/'").is_ok());
        assert!(checked("namespace = '/amber'").is_ok());
    }

    #[test]
    fn a_whole_table_is_read() {
        let text = "
            enabled = true
            layouts = ['ros2dds']
            stamped_cmd_vel = true
            domain = 7
            namespace = '/fleet/r1'
            topics = ['scan', 'cmd_vel']
            publish_map_to_odom = false
            odom_hz = 50
            imu_hz = 100
            camera_hz = 5
            picture_width = 320
            wheel_radius_mm = 75
            laser_offset_mm = 120
            laser_angle_deg = 90
            laser_mirrored = true
            max_forward_m_s = 0.3
            clocks_agree = false";
        let config = checked(text).unwrap().unwrap();
        assert_eq!(config.name(Topic::CmdVel), "/fleet/r1/cmd_vel");
        assert_eq!(config.frames.laser, "fleet/r1/laser");
        assert!(!config.topics.contains(Topic::Odom));
        assert!(config.has_stamped_cmd_vel);
        let laser = config.laser.unwrap();
        assert!((laser.pose.at.x - 0.12).abs() < 1e-9 && laser.pose.heading < -1.5);
        assert!(laser.is_upside_down);
        assert!(config.fastest.turn_rad_s.is_infinite());
        assert_eq!(config.odom_period, Duration::from_millis(20));
        assert_eq!(config.camera_period, Duration::from_millis(200));
        assert_eq!(config.picture_width_px, Some(320));
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, part) in [
            ("namespace = 'r1'", "'r1' is not a namespace"),
            ("namespace = '/r-1'", "set `namespace`"),
            ("namespace = '/1r'", "'/1r' is not a namespace"),
            ("domain = 233", "domain"),
            ("layouts = []", "at least one of `rmw_zenoh`"),
            (
                "layouts = ['ros2dds']\nnamespace = '/amber/r1'",
                "'/amber/r1' is a namespace for other keys",
            ),
            ("odom_hz = 0", "odom_hz"),
            ("imu_hz = 1000", "imu_hz"),
            ("camera_hz = 0", "camera_hz"),
            ("picture_width = 3", "picture_width"),
            ("wheel_radius_mm = 0", "wheel_radius_mm"),
            ("laser_offset_mm = 9000", "laser-offset-mm"),
            ("max_turn_rad_s = 0", "max_turn_rad_s"),
        ] {
            let error = checked(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let table = RosTable::default();
        let error = table.checked(&"robot-7".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("'/robot-7'"), "{error}");
        for text in [
            "topic = []",
            "topics = ['sonar']",
            "tf = 'both'",
            "layouts = ['dds']",
        ] {
            assert!(toml::from_str::<RosTable>(text).is_err(), "{text}");
        }
    }
}
