//! Commands of ROS 2 nodes, as messages for the devices of the robot. PURE.
//!
//! The messages are handled like those of any operator, so the seat, the life of a command (half a
//! second) and the speed limits are the same: see `robot::orders`.

use std::time::Duration;

use amber_navigation::kinematics::Twist as Motion;
use amber_proto::{Device, DeviceMessage, drive_to_point, location, mapping, roboclaw};
use amber_robot::maps;
use amber_robot::robot::RobotSetup;
use amber_ros2::attachment::{AttachmentError, Gid};
use amber_ros2::messages::{
    PoseStamped, PoseWithCovarianceStamped, SaveMapRequest, Twist, TwistStamped,
};
use amber_ros2::{Attachment, CdrError, RosMessage, RosType, decode};
use amber_values::{Row, Target, WheelSpeeds};
use bytes::Bytes;
use prost::Message;

use super::clock::Clock;
use super::config::RosConfig;
use super::convert;
use super::layout::Layout;
use super::topics::Topic;
use crate::limits::MAX_CLOCKS;

/// The meaning of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `cmd_vel` without a header.
    Twist,
    /// `cmd_vel` with a header.
    TwistStamped,
    /// `goal_pose`.
    Goal,
    /// `initialpose`.
    Here,
}

/// The metadata of a message.
#[derive(Clone, Copy, Debug)]
pub enum Envelope<'a> {
    /// From a node with `rmw_zenoh`: its attachment.
    Attachment(Option<&'a [u8]>),
    /// From a bridge: neither number nor identity. Zenoh may have stamped it on its way, so this is
    /// the time of the bridge or of the first router, in nanoseconds since 1970.
    Stamp(Option<u64>),
}

/// A message for a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub device: Device,
    /// A `DriverMsg`.
    pub message: Bytes,
}

/// The reason why a message of ROS is dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// All nodes with `rmw_zenoh` send an attachment.
    #[error("no attachment: the sender is not a node of ROS 2")]
    NoAttachment,
    /// It is not that of a node.
    #[error(transparent)]
    Attachment(#[from] AttachmentError),
    /// The payload.
    #[error(transparent)]
    Cdr(#[from] CdrError),
    /// A newer one of the same publisher has arrived before.
    #[error("a newer message has arrived before")]
    Late,
    /// Its content.
    #[error(transparent)]
    Refused(#[from] convert::Refusal),
}

/// Reads the messages of one topic.
#[derive(Debug)]
pub struct Inbox {
    wish: Wish,
    robot: RobotSetup,
    config: RosConfig,
    /// The publisher of the last message, and its number, with `rmw_zenoh`.
    last: Option<(Gid, i64)>,
    clocks: Clocks,
}

/// The clocks of publishers, those in headers apart. The newest are at the end.
#[derive(Debug, Default)]
struct Clocks(Vec<((Option<Gid>, bool), Clock)>);

impl Clocks {
    fn of(&mut self, publisher: Option<Gid>, is_header: bool) -> &mut Clock {
        let key = (publisher, is_header);
        let known = self.0.iter().position(|(known, _)| *known == key);
        let entry = match known {
            Some(index) => self.0.remove(index),
            None => (key, Clock::default()),
        };
        if self.0.len() >= MAX_CLOCKS {
            self.0.remove(0);
        }
        self.0.push(entry);
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }
}

impl Wish {
    /// The topics that a robot with this configuration subscribes to in a layout.
    ///
    /// With `rmw_zenoh`, each type has its own key. Behind a bridge, a topic has one type.
    #[must_use]
    pub fn all(layout: Layout, config: &RosConfig) -> Vec<(Topic, Self, RosType)> {
        let has_plain = layout == Layout::RmwZenoh || !config.has_stamped_cmd_vel;
        let has_stamped = layout == Layout::RmwZenoh || config.has_stamped_cmd_vel;
        let plain = has_plain.then_some((Topic::CmdVel, Self::Twist, Twist::TYPE));
        let stamped =
            has_stamped.then_some((Topic::CmdVel, Self::TwistStamped, TwistStamped::TYPE));
        let goal = Some((Topic::GoalPose, Self::Goal, PoseStamped::TYPE));
        let here = PoseWithCovarianceStamped::TYPE;
        let here = Some((Topic::InitialPose, Self::Here, here));
        let all = [plain, stamped, goal, here].into_iter().flatten();
        all.filter(|(topic, ..)| config.topics.contains(*topic))
            .collect()
    }
}

impl Dropped {
    /// The name of its counter.
    #[must_use]
    pub fn counter(&self) -> &'static str {
        match self {
            Self::NoAttachment | Self::Attachment(_) => "ros_dropped_attachment",
            Self::Cdr(_) => "ros_dropped_unreadable",
            Self::Late | Self::Refused(convert::Refusal::Old) => "ros_dropped_late",
            Self::Refused(convert::Refusal::Future) => "ros_dropped_future",
            Self::Refused(convert::Refusal::NotFinite) => "ros_dropped_not_finite",
            Self::Refused(convert::Refusal::Frame { .. }) => "ros_dropped_frame",
        }
    }
}

impl Inbox {
    /// Nothing has arrived.
    #[must_use]
    pub fn new(wish: Wish, robot: RobotSetup, config: RosConfig) -> Self {
        Self {
            wish,
            robot,
            config,
            last: None,
            clocks: Clocks::default(),
        }
    }

    /// Whether its messages set goals, which hold without further messages.
    #[must_use]
    pub fn is_for_goals(&self) -> bool {
        self.wish == Wish::Goal
    }

    /// Whether its messages say where the robot is.
    #[must_use]
    pub fn is_for_poses(&self) -> bool {
        self.wish == Wish::Here
    }

    /// The publisher of the last message, if it has named itself.
    #[must_use]
    pub fn author(&self) -> Option<Gid> {
        Some(self.last?.0)
    }

    /// How many milliseconds the clock of the last publisher is ahead of that of the robot, or behind
    /// if negative, if that is trouble.
    #[must_use]
    pub fn clock_trouble_ms(&self) -> Option<i64> {
        self.clocks.0.last()?.1.trouble_ms()
    }

    /// A message of a node. `now` is any clock that never goes back, `now_ns` is that of the robot.
    ///
    /// A node with `rmw_zenoh` says when it has sent the message, and counts. A message from a
    /// bridge can be old, too, if it was stamped on its way; that it comes after a newer one is
    /// not noticed, but Zenoh delivers the messages of one publisher in their order.
    ///
    /// # Errors
    /// The reason why it is dropped.
    pub fn read(
        &mut self,
        now: Duration,
        now_ns: u64,
        envelope: Envelope<'_>,
        payload: &[u8],
    ) -> Result<Command, Dropped> {
        let (source_ns, number) = match envelope {
            Envelope::Attachment(bytes) => {
                let attachment = Attachment::decode(bytes.ok_or(Dropped::NoAttachment)?)?;
                let source_ns = u64::try_from(attachment.source_ns).ok();
                (source_ns, Some((attachment.gid, attachment.sequence)))
            }
            Envelope::Stamp(stamp_ns) => (stamp_ns, None),
        };
        if let (Some((gid, sequence)), Some((last, newest))) = (number, self.last)
            && gid == last
            && sequence <= newest
        {
            return Err(Dropped::Late);
        }
        let publisher = number.map(|(gid, _)| gid);
        let agree = self.config.clocks_agree;
        let mut check = |is_header, stamp_ns: Option<u64>| match stamp_ns.filter(|ns| *ns > 0) {
            Some(stamp_ns) => {
                let clock = self.clocks.of(publisher, is_header);
                clock.check(now, now_ns, stamp_ns, agree)
            }
            None => Ok(()),
        };
        let command = match self.wish {
            Wish::Twist => {
                let twist = decode::<Twist>(payload)?;
                check(false, source_ns)?;
                self.drive(convert::motion(&twist)?)?
            }
            Wish::TwistStamped => {
                let command = decode::<TwistStamped>(payload)?;
                check(false, source_ns)?;
                check(true, convert::stamp_ns(&command))?;
                self.drive(convert::motion(&command.twist)?)?
            }
            Wish::Goal => {
                let goal = convert::goal(&decode::<PoseStamped>(payload)?, &self.config.frames)?;
                Command {
                    device: self.robot.targets,
                    message: targets(&[goal]),
                }
            }
            Wish::Here => {
                let known = decode::<PoseWithCovarianceStamped>(payload)?;
                let mut message = location::DriverMsg::data();
                message.set_pose = Some(convert::here(&known, &self.config.frames)?);
                Command {
                    device: self.robot.location,
                    message: message.encode_to_vec().into(),
                }
            }
        };
        self.last = number.or(self.last);
        Ok(command)
    }

    fn drive(&self, motion: Motion) -> Result<Command, convert::Refusal> {
        let Motion {
            forward_m_s,
            turn_rad_s,
        } = slowed(motion, self.config.fastest);
        let speeds = self.robot.speeds(forward_m_s, turn_rad_s);
        Ok(Command {
            device: self.robot.wheels,
            message: wheels(speeds.ok_or(convert::Refusal::NotFinite)?),
        })
    }
}

/// The message that saves the map that is being made, under the name in a request.
#[must_use]
pub fn save_map(robot: &RobotSetup, request: &SaveMapRequest) -> Command {
    let mut message = mapping::DriverMsg::data();
    // The answer is asked for: the number is that of the client that asks.
    message.syn_num = Some(1);
    message.save_map = Some(mapping::SaveMap {
        name: Some(maps::name_of(&request.map_url).to_owned()),
        // As the map savers of ROS.
        replace: Some(true),
        ..mapping::SaveMap::default()
    });
    Command {
        device: robot.mapping,
        message: message.encode_to_vec().into(),
    }
}

/// The answer of the driver to [`save_map`].
///
/// # Errors
/// The reason why the map is not saved.
pub fn saved(answer: Bytes) -> Result<(), String> {
    let answer = mapping::DriverMsg::decode(answer);
    let answer = answer.map_err(|_| "the answer of the driver cannot be read".to_owned())?;
    match (answer.saved_map, answer.save_refused) {
        (Some(_), _) => Ok(()),
        (None, Some(why)) => Err(why),
        (None, None) => Err("the driver does not save maps".to_owned()),
    }
}

/// The messages that stop the robot: its targets, and its wheels.
#[must_use]
pub fn stop(robot: &RobotSetup) -> [Command; 2] {
    [
        Command {
            device: robot.targets,
            message: targets(&[]),
        },
        Command {
            device: robot.wheels,
            message: wheels(WheelSpeeds::STOP),
        },
    ]
}

/// The same arc, at most as fast as this.
fn slowed(motion: Motion, fastest: Motion) -> Motion {
    let part = |value: f64, fastest: f64| match value.abs() > fastest {
        true => fastest / value.abs(),
        false => 1.0,
    };
    let forward = part(motion.forward_m_s, fastest.forward_m_s);
    let turn = part(motion.turn_rad_s, fastest.turn_rad_s);
    motion.scaled(forward.min(turn))
}

fn wheels(speeds: WheelSpeeds) -> Bytes {
    let mut message = roboclaw::DriverMsg::data();
    message.motors_command = Some(speeds.into());
    message.encode_to_vec().into()
}

fn targets(targets: &[Target]) -> Bytes {
    let mut message = drive_to_point::DriverMsg::data();
    message.set_targets = Some(true);
    message.targets = Some(Target::table(targets));
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use amber_robot::errand::Errand;
    use amber_robot::motion::{self, Motion as Moved};
    use amber_ros2::encode;
    use amber_ros2::messages::{Header, Pose};
    use proptest::prelude::*;

    use super::*;
    use crate::config::Controls;
    use crate::ros::config::RosTable;

    const NOW_NS: u64 = 1_700_000_000_000_000_000;
    const NOW: Duration = Duration::from_secs(7);

    fn inbox(wish: Wish, table: &str) -> Inbox {
        let table: RosTable = toml::from_str(table).unwrap();
        let config = table.checked(&"r1".parse().unwrap()).unwrap().unwrap();
        Inbox::new(wish, Controls::default().robot, config)
    }

    fn attachment(sequence: i64, age_ms: u64) -> [u8; 33] {
        let source_ns = (NOW_NS - age_ms * 1_000_000) as i64;
        let gid = Gid([7; 16]);
        Attachment {
            sequence,
            source_ns,
            gid,
        }
        .encode()
    }

    fn attached(bytes: &[u8]) -> Envelope<'_> {
        Envelope::Attachment(Some(bytes))
    }

    fn twist(forward: f64, turn: f64) -> Twist {
        let mut twist = Twist::default();
        (twist.linear.x, twist.angular.z) = (forward, turn);
        twist
    }

    /// The wheel speeds that a command causes.
    fn speeds(command: &Command) -> WheelSpeeds {
        match motion::of(command.device, command.device, &command.message) {
            Ok(Moved::Wheels(speeds, None)) => speeds,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_motion_becomes_wheel_speeds_within_all_limits() {
        for (table, forward, turn, left, right) in [
            ("", 0.1, 0.5, -5, 205),
            // The robot has at most 400 mm/s.
            ("", 2.0, 0.0, 400, 400),
            ("max_forward_m_s = 0.2", 0.4, 0.0, 200, 200),
            ("max_forward_m_s = 0.2", -0.4, 0.0, -200, -200),
            // The same arc, slower.
            ("max_turn_rad_s = 0.5", 0.2, 1.0, -5, 205),
        ] {
            let mut inbox = inbox(Wish::Twist, table);
            let payload = encode(&twist(forward, turn));
            let command = inbox.read(NOW, NOW_NS, attached(&attachment(0, 10)), &payload);
            let found = speeds(&command.unwrap());
            assert_eq!(found, WheelSpeeds::sides(left, right), "{table} {forward}");
        }
    }

    #[test]
    fn old_and_late_commands_are_dropped() {
        let payload = encode(&twist(0.2, 0.0));
        let mut strict = inbox(Wish::Twist, "");
        let mut read = |sequence, age_ms| {
            strict.read(
                NOW,
                NOW_NS,
                attached(&attachment(sequence, age_ms)),
                &payload,
            )
        };
        assert!(read(3, 490).is_ok());
        assert_eq!(read(3, 0), Err(Dropped::Late));
        assert_eq!(read(4, 510).unwrap_err().counter(), "ros_dropped_late");
        assert!(read(5, 0).is_ok());
        // Without agreement, the fastest command is the measure.
        let mut lenient = inbox(Wish::Twist, "clocks_agree = false");
        let mut read = |sequence, age_ms| {
            let found = lenient.read(
                NOW,
                NOW_NS,
                attached(&attachment(sequence, age_ms)),
                &payload,
            );
            (found.is_ok(), lenient.clock_trouble_ms())
        };
        assert_eq!(read(1, 9_000), (true, Some(-9_000)));
        assert_eq!(read(2, 9_490), (true, Some(-9_000)));
        assert_eq!(read(3, 9_510), (false, Some(-9_000)));
        // Another publisher has another clock.
        let other = Attachment {
            sequence: 1,
            source_ns: NOW_NS as i64,
            gid: Gid([8; 16]),
        };
        let found = lenient.read(NOW, NOW_NS, attached(&other.encode()), &payload);
        assert_eq!((found.is_ok(), lenient.clock_trouble_ms()), (true, None));
        for publisher in 0..=255 {
            let other = Attachment {
                gid: Gid([publisher; 16]),
                ..other
            };
            let _ = lenient.read(NOW, NOW_NS, attached(&other.encode()), &payload);
        }
        assert_eq!(lenient.clocks.0.len(), MAX_CLOCKS);

        // Nothing comes from the future.
        let mut strict = inbox(Wish::Twist, "");
        let early = Attachment {
            source_ns: NOW_NS as i64 + 510_000_000,
            ..other
        };
        let early = strict.read(NOW, NOW_NS, attached(&early.encode()), &payload);
        assert_eq!(early.unwrap_err().counter(), "ros_dropped_future");
        assert_eq!(strict.clock_trouble_ms(), Some(510));

        // The header counts as well.
        let mut stamped = inbox(Wish::TwistStamped, "");
        let message = |age_ms: u64| {
            encode(&TwistStamped {
                header: Header::new(NOW_NS - age_ms * 1_000_000, "base_link"),
                twist: twist(0.2, 0.0),
            })
        };
        assert!(
            stamped
                .read(NOW, NOW_NS, attached(&attachment(1, 0)), &message(100))
                .is_ok()
        );
        let old = stamped.read(NOW, NOW_NS, attached(&attachment(2, 0)), &message(600));
        assert_eq!(old, Err(Dropped::Refused(convert::Refusal::Old)));
    }

    #[test]
    fn commands_of_a_bridge_have_at_most_a_stamp() {
        let payload = encode(&twist(0.2, 0.0));
        let stamp = |age_ms: u64| Envelope::Stamp(Some(NOW_NS - age_ms * 1_000_000));
        let mut strict = inbox(Wish::Twist, "layouts = ['ros2dds']");
        let mut read = |envelope| {
            strict
                .read(NOW, NOW_NS, envelope, &payload)
                .map(|it| speeds(&it))
        };
        assert_eq!(read(stamp(490)), Ok(WheelSpeeds::all(200)));
        assert_eq!(read(stamp(510)).unwrap_err().counter(), "ros_dropped_late");
        // Without a stamp it counts when it arrives, as often as it does.
        assert!(read(Envelope::Stamp(None)).is_ok() && read(Envelope::Stamp(None)).is_ok());
        let mut lenient = inbox(Wish::Twist, "clocks_agree = false");
        assert!(lenient.read(NOW, NOW_NS, stamp(9_000), &payload).is_ok());
    }

    #[test]
    fn a_bridge_has_one_type_of_commands() {
        let wishes = |layout, table: &str| {
            let all = Wish::all(layout, &inbox(Wish::Twist, table).config);
            all.into_iter().map(|(_, wish, _)| wish).collect::<Vec<_>>()
        };
        use Wish::{Goal, Here, Twist, TwistStamped};
        let stamped = "stamped_cmd_vel = true";
        assert_eq!(wishes(Layout::Ros2dds, ""), [Twist, Goal, Here]);
        assert_eq!(wishes(Layout::Ros2dds, stamped), [TwistStamped, Goal, Here]);
        let both = [Twist, TwistStamped, Goal, Here];
        assert_eq!(wishes(Layout::RmwZenoh, stamped), both);
        assert_eq!(wishes(Layout::Ros2dds, "topics = ['goal_pose']"), [Goal]);
    }

    #[test]
    fn what_a_node_would_not_send_is_dropped() {
        let go = encode(&twist(0.2, 0.0));
        let usual = attachment(1, 0);
        let nan = encode(&twist(f64::NAN, 0.0));
        for (attachment, payload, counter) in [
            (None, &go[..], "ros_dropped_attachment"),
            (Some(&usual[..32]), &go[..], "ros_dropped_attachment"),
            (Some(&usual[..]), &go[..20], "ros_dropped_unreadable"),
            (Some(&usual[..]), &[], "ros_dropped_unreadable"),
            (Some(&usual[..]), &nan[..], "ros_dropped_not_finite"),
        ] {
            let mut inbox = inbox(Wish::Twist, "");
            let dropped = inbox
                .read(NOW, NOW_NS, Envelope::Attachment(attachment), payload)
                .unwrap_err();
            assert_eq!(dropped.counter(), counter, "{dropped}");
        }
    }

    #[test]
    fn a_goal_becomes_a_target_and_stop_ends_it() {
        let mut inbox = inbox(Wish::Goal, "");
        let goal = |frame: &str| {
            encode(&PoseStamped {
                header: Header::new(0, frame),
                pose: Pose::flat(1.0, -2.0, 0.0),
            })
        };
        // Goals do not grow old: they wait for the robot anyway.
        let command = inbox
            .read(NOW, NOW_NS, attached(&attachment(1, 9_000)), &goal("map"))
            .unwrap();
        let robot = Controls::default().robot;
        let errand = Errand::Targets(robot.targets);
        let begun = motion::of(command.device, robot.wheels, &command.message);
        assert_eq!(begun, Ok(Moved::Begin(errand)));
        let sent = drive_to_point::DriverMsg::decode(command.message).unwrap();
        let sent = Target::rows(&sent.targets.unwrap()).unwrap();
        assert_eq!(sent, [Target::new(1.0, 2.0)]);
        let elsewhere = inbox.read(NOW, NOW_NS, attached(&attachment(2, 0)), &goal("r1/odom"));
        assert_eq!(elsewhere.unwrap_err().counter(), "ros_dropped_frame");

        let [targets, wheels] = stop(&robot);
        let ended = motion::of(targets.device, robot.wheels, &targets.message);
        assert_eq!(ended, Ok(Moved::End(errand)));
        assert_eq!(speeds(&wheels), WheelSpeeds::STOP);
    }

    #[test]
    fn a_node_says_where_the_robot_is() {
        let mut inbox = inbox(Wish::Here, "");
        let known = |frame: &str, x: f64| {
            let mut known = PoseWithCovarianceStamped {
                header: Header::new(0, frame),
                ..PoseWithCovarianceStamped::default()
            };
            known.pose.pose = Pose::flat(x, -2.0, 0.5);
            (known.pose.covariance[0][0], known.pose.covariance[1][1]) = (0.25, 0.25);
            encode(&known)
        };
        let mut read = |payload: &[u8]| {
            let attachment = attachment(1, 9_000);
            let read = inbox.read(NOW, NOW_NS, attached(&attachment), payload);
            inbox.last = None;
            read
        };
        let command = read(&known("map", 1.0)).unwrap();
        assert_eq!(command.device, Controls::default().robot.location);
        let sent = location::DriverMsg::decode(command.message).unwrap();
        let pose = sent.set_pose.unwrap();
        // The map of Amber has y down.
        assert_eq!((pose.x, pose.y, pose.sigma), (1.0, 2.0, Some(0.5)));
        assert!((pose.alfa + 0.5).abs() < 1e-9 && pose.sigma_alfa.is_none());
        let dropped = |read: Result<Command, Dropped>| read.unwrap_err().counter();
        assert_eq!(dropped(read(&known("r1/odom", 1.0))), "ros_dropped_frame");
        assert_eq!(
            dropped(read(&known("map", f64::NAN))),
            "ros_dropped_not_finite"
        );
    }

    #[test]
    fn a_map_is_saved_under_the_name_of_the_file() {
        let robot = Controls::default().robot;
        for (url, name) in [("file:///tmp/lab", "lab"), ("lab", "lab"), ("", "map")] {
            let request = SaveMapRequest {
                map_url: url.to_owned(),
                ..SaveMapRequest::default()
            };
            let command = save_map(&robot, &request);
            let sent = mapping::DriverMsg::decode(command.message).unwrap();
            assert_eq!(sent.save_map.unwrap().name(), name);
        }
        let mut answer = mapping::DriverMsg::data();
        let mut read = |change: &dyn Fn(&mut mapping::DriverMsg)| {
            change(&mut answer);
            saved(answer.encode_to_vec().into())
        };
        assert!(read(&|_| {}).unwrap_err().contains("does not save maps"));
        let refused = read(&|it| it.save_refused = Some("there is no map".to_owned()));
        assert_eq!(refused.unwrap_err(), "there is no map");
        assert_eq!(read(&|it| it.saved_map = Some(Default::default())), Ok(()));
        assert!(saved(Bytes::from_static(b"\xff")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(
            attachment in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
            payload in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            for wish in [Wish::Twist, Wish::TwistStamped, Wish::Goal, Wish::Here] {
                let attached = Envelope::Attachment(attachment.as_deref());
                let _ = inbox(wish, "").read(NOW, NOW_NS, attached, &payload);
                let _ = inbox(wish, "").read(NOW, NOW_NS, Envelope::Stamp(None), &payload);
            }
        }

        #[test]
        fn wheels_never_exceed_their_limit(forward: f64, turn: f64) {
            let payload = encode(&twist(forward, turn));
            let read = inbox(Wish::Twist, "").read(NOW, NOW_NS, attached(&attachment(1, 0)), &payload);
            if let Ok(command) = read {
                prop_assert!(speeds(&command).fastest_mm_s() <= 400);
            }
        }
    }
}
