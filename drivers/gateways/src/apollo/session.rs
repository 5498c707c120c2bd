//! The lines of an Apollo bridge: the messages to send, and the accepted senders. PURE.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_navigation::kinematics::Wheels;
use amber_proto::{Device, DriverMsg, MsgType};
use amber_robot::bucket::Bucket;
use amber_robot::controls::Seat;
use amber_robot::errand::Errand;
use amber_robot::helm::Helm;
use amber_robot::limits::ORDER_RATE;
use amber_robot::motion::{self, Motion};
use amber_robot::robot::{Measurement, RobotSetup, Topic, User, UserOrder};
use amber_values::{Target, WheelSpeeds};
use bytes::Bytes;
use prost::Message as _;

use super::frame::Frame;
use super::limits::{
    FRAME_PERIOD, MAX_AGE, MAX_FRAMES_AHEAD, STAMP_GUARD, TARGETS_PERIOD, TRAJECTORY_LIFE,
};
use super::mapping::{
    Area, Origin, Wish, chassis, localization, map_pose, point_cloud, wheel_speeds, wish,
};
use super::messages::{AdcTrajectory, Chassis, Header, LocalizationEstimate};
use super::reassembly::{Drop, Message, Outcome, Reassembly};
use super::split::{Format, MessageIds, split};
use crate::shared::clock::Now;
use crate::shared::event::{Emulated, Event};
use crate::shared::machine::{
    Cast, Datagram, Machine, Output, Outputs, Session, Socket, local_address,
};

/// The lines of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Amber's robot.
    pub robot: RobotSetup,
    /// Whether several senders may drive at the same time.
    pub seat: Seat,
    /// The position of its map.
    pub origin: Origin,
    /// The messages to send.
    pub send: Vec<SendLine>,
    /// The messages to receive.
    pub receive: Vec<ReceiveLine>,
}

/// Messages that are sent.
#[derive(Clone, Debug)]
pub struct SendLine {
    /// Their content.
    pub what: Sent,
    /// The name of the messages.
    pub name: String,
    /// The receiver.
    pub to: SocketAddr,
    /// The time between two messages, at least.
    pub period: Duration,
    /// Layout and length.
    pub format: Format,
}

/// The content of messages that are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sent {
    /// `Chassis` from wheels.
    Chassis(Device),
    /// `LocalizationEstimate` from a pose.
    Localization(Device),
    /// `PointCloud` from a scanner, with a time for each point or without.
    PointCloud(Device, bool),
    /// The published data of a device, for another gateway of Amber.
    Raw(Device),
}

/// Messages that are received.
#[derive(Clone, Debug)]
pub struct ReceiveLine {
    /// Their content, and its use.
    pub what: Received,
    /// The name of the messages.
    pub name: String,
    /// The local address.
    pub bind: SocketAddr,
    /// The host that may send them. It uses any port, because Apollo opens a new socket for each
    /// message.
    pub peer: IpAddr,
    /// Drop messages whose time differs by more from the time here.
    pub max_age: Option<Duration>,
}

/// The content of messages that are received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Received {
    /// `ADCTrajectory`: the robot drives along it, within this area.
    Trajectory(Area),
    /// `LocalizationEstimate`, shown on this device.
    Localization(Device),
    /// `Chassis`, shown on these wheels.
    Chassis(Device),
    /// Messages for a device, from another gateway of Amber.
    Raw(Device),
}

/// The session machine of the Apollo bridge.
#[derive(Debug)]
pub struct Apollo {
    robot: RobotSetup,
    origin: Origin,
    seat: Seat,
    helm: Helm,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
}

#[derive(Debug)]
struct Sender {
    line: SendLine,
    ids: MessageIds,
    /// The newest measurement that is not sent.
    latest: Option<(Duration, Measurement)>,
    due: Duration,
    frames: VecDeque<Vec<u8>>,
    frame_due: Duration,
}

#[derive(Debug)]
struct Receiver {
    line: ReceiveLine,
    user: User,
    reassembly: Reassembly,
    orders: Bucket,
    since: Option<Duration>,
    heard: Option<Duration>,
    trajectory: Option<Trajectory>,
}

/// The purpose of messages.
struct AmberRobot<'a> {
    robot: &'a RobotSetup,
    origin: Origin,
    helm: &'a mut Helm,
}

/// A trajectory that the robot follows.
#[derive(Debug)]
struct Trajectory {
    received: Duration,
    ordered: Option<Duration>,
    waiting: Option<Vec<Target>>,
}

/// The socket that sends. Those that receive follow.
const OUT: Socket = Socket(0);

/// The user that subscribes to the devices whose messages are sent. Those of the receivers count
/// from 1.
const RAW_USER: User = User(u32::MAX);

impl Apollo {
    /// A bridge with these lines.
    pub fn new(settings: Settings) -> Self {
        let senders = settings.send.into_iter().map(|line| Sender {
            line,
            ids: MessageIds::default(),
            latest: None,
            due: Duration::ZERO,
            frames: VecDeque::new(),
            frame_due: Duration::ZERO,
        });
        let receivers = (1..).zip(settings.receive).map(|(user, line)| Receiver {
            user: User(user),
            reassembly: Reassembly::new(line.max_age),
            line,
            orders: Bucket::new(ORDER_RATE),
            since: None,
            heard: None,
            trajectory: None,
        });
        Self {
            robot: settings.robot,
            origin: settings.origin,
            helm: Helm::new(&settings.robot, settings.seat),
            seat: settings.seat,
            senders: senders.collect(),
            receivers: receivers.collect(),
        }
    }

    fn settle(&mut self, now: Now, out: &mut Outputs) {
        for sender in &mut self.senders {
            sender.send(now, out);
            sender.build(now, &self.robot, self.origin, out);
            sender.send(now, out);
        }
        for receiver in &mut self.receivers {
            receiver.follow(now, &self.robot, &mut self.helm, out);
        }
        out.orders_of(&mut self.helm, now.elapsed);
    }
}

impl Sender {
    fn topic(&self) -> Option<Topic> {
        match self.line.what {
            Sent::Chassis(device) => Some(Topic::Wheels(device)),
            Sent::Localization(device) => Some(Topic::Pose(device)),
            Sent::PointCloud(device, _) => Some(Topic::Scans(device)),
            Sent::Raw(_) => None,
        }
    }

    /// Makes a message of the newest measurement, if one is due.
    fn build(&mut self, now: Now, robot: &RobotSetup, origin: Origin, out: &mut Outputs) {
        if now.elapsed < self.due || self.is_behind() {
            return;
        }
        let Some((at, measurement)) = self.latest.take() else {
            return;
        };
        if now.since(at) > MAX_AGE {
            return;
        }
        // Keeps the rate, unless measurements come more slowly.
        let next = self.due + self.line.period;
        self.due = if next < now.elapsed {
            now.elapsed + self.line.period
        } else {
            next
        };
        let time_s = (now.unix.saturating_sub(STAMP_GUARD)).as_secs_f64();
        let id = self.ids.next_id();
        let header = Header {
            timestamp_sec: Some(time_s),
            module_name: Some("amber".to_owned()),
            sequence_num: Some(id),
        };
        let message = match (self.line.what, measurement) {
            (Sent::Chassis(_), Measurement::Wheels(speeds)) => {
                chassis(header, robot.drive, speeds).encode_to_vec()
            }
            (Sent::Localization(_), Measurement::Pose(pose)) if pose.is_known() => {
                localization(header, origin, pose).encode_to_vec()
            }
            (Sent::PointCloud(_, stamps), Measurement::Scan(scan)) => {
                point_cloud(header, &scan, stamps).encode_to_vec()
            }
            _ => return,
        };
        self.push(now, id, time_s, message, out);
    }

    /// Whether too many frames wait for another message. Then the newest measurement waits.
    fn is_behind(&self) -> bool {
        self.frames.len() > MAX_FRAMES_AHEAD
    }

    fn push(&mut self, now: Now, id: u32, time_s: f64, message: Vec<u8>, out: &mut Outputs) {
        if self.is_behind() {
            let to = self.line.to;
            return out
                .tally
                .dropped(now.elapsed, "the last messages are still being sent", to);
        }
        match split(self.line.format, &self.line.name, id, time_s, message) {
            Ok(frames) => {
                if self.frames.is_empty() {
                    self.frame_due = self.frame_due.max(now.elapsed);
                }
                self.frames.extend(frames);
            }
            Err(error) => out
                .tally
                .dropped(now.elapsed, "message does not fit", error),
        }
    }

    /// Sends a frame, if one is due. After a pause there is still only one at a time: receivers lose
    /// frames that arrive in bursts.
    fn send(&mut self, now: Now, out: &mut Outputs) {
        if self.frame_due <= now.elapsed
            && let Some(frame) = self.frames.pop_front()
        {
            self.frame_due = now.elapsed + FRAME_PERIOD;
            out.send(OUT, self.line.to, frame);
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let frame = (!self.frames.is_empty()).then_some(self.frame_due);
        let message = (self.latest.as_ref()).and_then(|_| (!self.is_behind()).then_some(self.due));
        frame.into_iter().chain(message).min()
    }
}

impl Receiver {
    fn emulated(&self) -> Option<(Device, Emulated)> {
        match self.line.what {
            Received::Localization(device) => Some((device, Emulated::Location)),
            Received::Chassis(device) => Some((device, Emulated::Wheels)),
            Received::Trajectory(_) | Received::Raw(_) => None,
        }
    }

    fn uses_amber(&self) -> bool {
        matches!(self.line.what, Received::Trajectory(_) | Received::Raw(_))
    }

    fn take(
        &mut self,
        now: Now,
        from: SocketAddr,
        bytes: &[u8],
        out: &mut Outputs,
    ) -> Option<Message> {
        let frame = match Frame::decode(bytes) {
            Ok((_, frame)) => frame,
            Err(error) => {
                tracing::debug!("{error}");
                out.tally
                    .bad(now.elapsed, "not a frame of the Apollo bridge", from);
                return None;
            }
        };
        if frame.name != self.line.name {
            out.tally
                .dropped(now.elapsed, "message with another name", from);
            return None;
        }
        self.heard = Some(now.elapsed);
        self.since.get_or_insert(now.elapsed);
        let (wall_s, before) = (now.unix.as_secs_f64(), self.reassembly.abandoned());
        let outcome = self
            .reassembly
            .handle_frame(now.elapsed, wall_s, from.ip(), &frame);
        for _ in before..self.reassembly.abandoned() {
            out.tally.dropped(now.elapsed, "incomplete message", from);
        }
        match outcome {
            Outcome::Complete(message) => Some(message),
            Outcome::Incomplete => None,
            Outcome::Dropped(drop) => {
                out.tally.dropped(now.elapsed, reason(drop), from);
                None
            }
        }
    }

    fn handle(
        &mut self,
        now: Now,
        from: SocketAddr,
        message: &Message,
        amber: &mut AmberRobot<'_>,
        out: &mut Outputs,
    ) {
        let AmberRobot {
            robot,
            origin,
            ref mut helm,
        } = *amber;
        let bytes = &message.bytes[..];
        let bad = |out: &mut Outputs| out.tally.bad(now.elapsed, "malformed message", from);
        match self.line.what {
            Received::Localization(device) => {
                let pose = LocalizationEstimate::decode(bytes).ok();
                match pose.and_then(|estimate| map_pose(&estimate, origin)) {
                    Some(pose) => out.push(Output::Show(device, Measurement::Pose(pose))),
                    None => bad(out),
                }
            }
            Received::Chassis(device) => {
                match Chassis::decode(bytes)
                    .ok()
                    .and_then(|chassis| wheel_speeds(&chassis))
                {
                    Some(speeds) => out.push(Output::Show(device, Measurement::Wheels(speeds))),
                    None => bad(out),
                }
            }
            Received::Trajectory(area) => match AdcTrajectory::decode(bytes) {
                Ok(trajectory) => match wish(&trajectory, origin, area) {
                    Ok(Wish::Drive(targets)) => {
                        let new = Trajectory {
                            received: now.elapsed,
                            ordered: None,
                            waiting: None,
                        };
                        let current = self.trajectory.get_or_insert(new);
                        current.received = now.elapsed;
                        current.waiting = Some(targets);
                    }
                    Ok(Wish::Stop) => self.halt(robot, helm, out),
                    Err(error) => {
                        out.tally.dropped(now.elapsed, error.reason(), from);
                        self.halt(robot, helm, out);
                    }
                },
                Err(_) => bad(out),
            },
            Received::Raw(device) => {
                if !self.orders.take(now.elapsed) {
                    out.tally
                        .dropped(now.elapsed, "too many messages for a device", from);
                } else if DriverMsg::decode(bytes).is_ok() {
                    self.pass_on(now, device, bytes.to_vec().into(), robot, helm, out);
                } else {
                    bad(out);
                }
            }
        }
    }

    /// Forwards a message of another gateway. Motion goes through the controls, like any other.
    fn pass_on(
        &self,
        now: Now,
        device: Device,
        message: Bytes,
        robot: &RobotSetup,
        helm: &mut Helm,
        out: &mut Outputs,
    ) {
        let occupied = |out: &mut Outputs| {
            let peer = self.line.peer;
            (out.tally).dropped(now.elapsed, "another line drives", peer);
        };
        let message = match motion::of(device, robot.wheels, &message) {
            Ok(Motion::Wheels(speeds, rest)) => {
                let wheels = Wheels::from(speeds).limited(robot.drive.max_wheel_m_s);
                let driven = helm.drive(now.elapsed, self.user, device, wheels.into());
                if driven.is_err() {
                    occupied(out);
                }
                match rest {
                    Some(request) => request,
                    None => return,
                }
            }
            Ok(Motion::Begin(errand)) => match helm.begin(now.elapsed, self.user, errand) {
                Ok(()) => {
                    // The replaced motion stops first.
                    out.orders_of(helm, now.elapsed);
                    message
                }
                Err(_) => return occupied(out),
            },
            Ok(Motion::End(errand)) => {
                helm.forget(errand);
                message
            }
            Ok(Motion::None) => message,
            Err(_) => {
                let peer = self.line.peer;
                return out.tally.bad(now.elapsed, "malformed message", peer);
            }
        };
        out.order(self.user, UserOrder::Message(device, message));
    }

    /// Orders the newest targets, or ends a trajectory that is not renewed.
    fn follow(&mut self, now: Now, robot: &RobotSetup, helm: &mut Helm, out: &mut Outputs) {
        self.reassembly.handle_timeout(now.elapsed);
        let Some(trajectory) = &mut self.trajectory else {
            return;
        };
        if now.since(trajectory.received) >= TRAJECTORY_LIFE {
            out.tally.dropped(
                now.elapsed,
                "no new trajectory for a second",
                self.line.peer,
            );
            return self.halt(robot, helm, out);
        }
        let errand = Errand::Targets(robot.targets);
        let is_due = trajectory
            .ordered
            .is_none_or(|at| now.since(at) >= TARGETS_PERIOD);
        if let (true, Some(targets)) = (is_due, trajectory.waiting.take_if(|_| is_due)) {
            if helm.begin(now.elapsed, self.user, errand).is_err() {
                // It may get the seat later.
                let peer = self.line.peer;
                (out.tally).dropped(now.elapsed, "another line drives", peer);
                return;
            }
            out.orders_of(helm, now.elapsed);
            trajectory.ordered = Some(now.elapsed);
            out.order(self.user, UserOrder::Targets(robot.targets, targets));
        }
    }

    /// Stops the robot, if this line has set it in motion.
    fn halt(&mut self, robot: &RobotSetup, helm: &mut Helm, out: &mut Outputs) {
        let errand = Errand::Targets(robot.targets);
        if self.trajectory.take().is_some() && helm.has(self.user, errand) {
            helm.forget(errand);
            out.order(self.user, UserOrder::Targets(robot.targets, Vec::new()));
            out.order(self.user, UserOrder::Drive(robot.wheels, WheelSpeeds::STOP));
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let trajectory = self.trajectory.as_ref();
        let end = trajectory.map(|it| it.received + TRAJECTORY_LIFE);
        let order = trajectory.filter(|it| it.waiting.is_some());
        let order = order.map(|it| it.ordered.map_or(Duration::ZERO, |at| at + TARGETS_PERIOD));
        [end, order, self.reassembly.next_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Machine for Apollo {
    fn protocol(&self) -> &'static str {
        "apollo"
    }

    fn seat(&self) -> Seat {
        self.seat
    }

    fn emulated(&self) -> Vec<(Device, Emulated)> {
        self.receivers
            .iter()
            .filter_map(Receiver::emulated)
            .collect()
    }

    fn start(&mut self, _now: Now, out: &mut Outputs) {
        if !self.senders.is_empty() {
            let local = local_address(self.senders.iter().map(|sender| sender.line.to.ip()));
            out.push(Output::Bind(OUT, local, Cast::Unicast));
        }
        for (socket, receiver) in (1..).zip(&self.receivers) {
            out.push(Output::Bind(
                Socket(socket),
                receiver.line.bind,
                Cast::Unicast,
            ));
            if receiver.uses_amber() {
                out.push(Output::Open(
                    receiver.user,
                    Some(SocketAddr::new(receiver.line.peer, 0)),
                ));
            }
        }
        for sender in &self.senders {
            if let Some(topic) = sender.topic() {
                out.push(Output::Watch(topic));
            }
        }
        let raw = self
            .senders
            .iter()
            .filter_map(|sender| match sender.line.what {
                Sent::Raw(device) => Some(device),
                _ => None,
            });
        let raw: Vec<_> = raw.collect();
        if !raw.is_empty() {
            out.push(Output::Open(RAW_USER, None));
        }
        for device in raw {
            let mut subscribe = DriverMsg::default();
            subscribe.set_type(MsgType::Subscribe);
            let message = subscribe.encode_to_vec().into();
            out.order(RAW_USER, UserOrder::Message(device, message));
        }
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let from = datagram.from;
        let index = usize::try_from(datagram.socket.0)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let Some(receiver) = index.and_then(|index| self.receivers.get_mut(index)) else {
            return out.tally.dropped(now.elapsed, "unexpected datagram", from);
        };
        if from.ip().to_canonical() != receiver.line.peer.to_canonical() {
            return out
                .tally
                .dropped(now.elapsed, "not from the configured host", from);
        }
        if let Some(message) = receiver.take(now, from, datagram.bytes, out) {
            let mut amber = AmberRobot {
                robot: &self.robot,
                origin: self.origin,
                helm: &mut self.helm,
            };
            receiver.handle(now, from, &message, &mut amber, out);
        }
        self.settle(now, out);
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        match event {
            Event::Measured(device, measurement) => {
                for sender in &mut self.senders {
                    let wanted = match (sender.line.what, &measurement) {
                        (Sent::Chassis(wanted), Measurement::Wheels(_))
                        | (Sent::Localization(wanted), Measurement::Pose(_))
                        | (Sent::PointCloud(wanted, _), Measurement::Scan(_)) => wanted == device,
                        _ => false,
                    };
                    if wanted {
                        if sender.latest.is_some() && sender.is_behind() {
                            let reason = "the last messages are still being sent";
                            out.tally.dropped(now.elapsed, reason, sender.line.to);
                        }
                        sender.latest = Some((now.elapsed, measurement.clone()));
                    }
                }
            }
            Event::Message(_, device, bytes) => {
                for sender in &mut self.senders {
                    if sender.line.what == Sent::Raw(device) && now.elapsed >= sender.due {
                        sender.due = now.elapsed + sender.line.period;
                        let id = sender.ids.next_id();
                        let time_s = now.unix.saturating_sub(STAMP_GUARD).as_secs_f64();
                        sender.push(now, id, time_s, bytes.to_vec(), out);
                    }
                }
            }
            Event::Asked(..)
            | Event::Image(_)
            | Event::Refused(..)
            | Event::Trip(..)
            | Event::Saved(..) => {}
        }
        self.settle(now, out);
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        self.settle(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let senders = self.senders.iter().filter_map(Sender::next_timeout);
        senders
            .chain(self.receivers.iter().filter_map(Receiver::next_timeout))
            .chain(self.helm.next_due())
            .min()
    }

    /// It sends frames half a millisecond apart.
    fn is_precise(&self) -> bool {
        true
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
        for receiver in &mut self.receivers {
            receiver.halt(&self.robot, &mut self.helm, out);
        }
        self.helm.stop();
        out.orders_of(&mut self.helm, now.elapsed);
    }

    fn knows(&self, socket: Socket, from: SocketAddr) -> bool {
        let index = usize::try_from(socket.0)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let receiver = index.and_then(|index| self.receivers.get(index));
        receiver.is_some_and(|it| it.line.peer.to_canonical() == from.ip().to_canonical())
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        let heard = self.receivers.iter().filter_map(|receiver| {
            Some(Session {
                address: SocketAddr::new(receiver.line.peer, 0),
                purpose: receiver.line.name.clone(),
                age: now.since(receiver.since?),
                silence: now.since(receiver.heard?),
                user: receiver.uses_amber().then_some(receiver.user),
                drives: receiver.trajectory.is_some(),
            })
        });
        heard.collect()
    }
}

fn reason(drop: Drop) -> &'static str {
    match drop {
        Drop::Duplicate => "duplicate frame",
        Drop::Old => "frame of an old message",
        Drop::Contradiction => "frames of one message contradict each other",
        Drop::Age => "message out of date",
        Drop::Full => "too many incomplete messages",
    }
}

#[cfg(test)]
mod tests;
