//! The rules for a server, on a virtual clock.

use amber_proto::{Device, DeviceType, roboclaw};
use amber_values::{MapPose, Scan, Target, WheelSpeeds};
use bytes::Bytes;
use prost::Message;
use serde_json::Value;

use super::*;
use crate::galileo::codec::{SessionId, decode_chunk, decode_reply, encode_chunk};
use crate::galileo::records::{self, Joiner};
use crate::galileo::token::Token;
use crate::shared::motion;
use crate::shared::robot::tests::robot;
use crate::shared::robot::{Measurement, Order, User};

const CLIENT: &str = "192.168.0.9:5000";
const FAR: &str = "8.8.8.8:5000";

/// A server with its outputs, and the time.
struct World {
    server: Server,
    out: Outbox,
    now: Now,
    outputs: Vec<Output>,
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn url(path: &str) -> Vec<u8> {
    let url = format!("udp://192.168.0.132:3547/{path}?token=28b1c5");
    Frame::Connect(url.as_bytes()).encode()
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(robot());
        change(&mut config);
        let mut last = 0_u32;
        let ids = move || {
            last += 1;
            last.to_be_bytes()
        };
        let mut world = Self {
            server: Server::new(config, Box::new(ids)),
            out: Outbox::default(),
            now: Now::from_millis(1_000),
            outputs: Vec::new(),
        };
        world.server.start(&mut world.out);
        world.drain();
        assert_eq!(world.outputs.len(), 1);
        world.outputs.clear();
        world
    }

    fn drain(&mut self) {
        while let Some(output) = self.out.take() {
            self.outputs.push(output);
        }
    }

    /// A datagram arrives; returns what is sent back.
    fn receive(&mut self, from: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
        let datagram = Datagram {
            socket: SOCKET,
            from: address(from),
            bytes,
        };
        self.server
            .handle_datagram(self.now, datagram, &mut self.out);
        self.drain();
        self.sent_to(from)
    }

    /// Connects; returns the id.
    fn connect(&mut self, from: &str, path: &str) -> Option<SessionId> {
        let replies = self.receive(from, &url(path));
        assert_eq!(replies.len(), 1, "{path}");
        decode_reply(&replies[0]).unwrap()
    }

    fn session(&mut self, path: &str) -> SessionId {
        self.connect(CLIENT, path).unwrap()
    }

    fn frame(&mut self, from: &str, id: SessionId, op: Op<'_>) -> Vec<Vec<u8>> {
        self.receive(from, &Frame::Session { id, op }.encode())
    }

    fn text(&mut self, id: SessionId, text: &str) -> Vec<Vec<u8>> {
        self.frame(CLIENT, id, Op::Text(text.as_bytes()))
    }

    fn event(&mut self, event: Event) -> Vec<Vec<u8>> {
        self.server.handle_event(self.now, event, &mut self.out);
        self.drain();
        self.sent_to(CLIENT)
    }

    /// Lets time pass, with all timeouts; returns what is sent to one address, with its time since
    /// then.
    fn wait(&mut self, ms: u64, to: &str) -> Vec<(u64, Vec<u8>)> {
        let start = self.now.elapsed;
        let end = start + Duration::from_millis(ms);
        let mut sent = Vec::new();
        while let Some(due) = self.server.next_timeout().filter(|due| *due <= end) {
            self.now.elapsed = due.max(self.now.elapsed);
            self.server.handle_timeout(self.now, &mut self.out);
            self.drain();
            let at = u64::try_from((self.now.elapsed - start).as_millis()).unwrap();
            sent.extend(self.sent_to(to).into_iter().map(|bytes| (at, bytes)));
        }
        self.now.elapsed = end;
        sent
    }

    /// Takes the datagrams to one address out of the outputs.
    fn sent_to(&mut self, to: &str) -> Vec<Vec<u8>> {
        let to = address(to);
        let mut sent = Vec::new();
        self.outputs.retain(|output| match output {
            Output::Send(_, its, bytes) if *its == to => {
                sent.push(bytes.to_vec());
                false
            }
            _ => true,
        });
        sent
    }

    /// Takes the wheel speeds out of the outputs.
    fn driven(&mut self) -> Vec<WheelSpeeds> {
        let orders = std::mem::take(&mut self.outputs).into_iter();
        let speeds = orders.filter_map(|output| match output {
            Output::Order(_, Order::Drive(_, speeds)) => Some(speeds),
            _ => None,
        });
        speeds.collect()
    }

    fn count(&self, reason: &str) -> u64 {
        self.out.tally.count(reason)
    }
}

fn op(bytes: &[u8]) -> Op<'_> {
    match Frame::decode(bytes) {
        Ok(Frame::Session { op, .. }) => op,
        other => panic!("{other:?}"),
    }
}

fn json(bytes: &[u8]) -> Value {
    match op(bytes) {
        Op::Text(text) => serde_json::from_slice(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Times of the PINGs among sent frames.
fn pings(sent: &[(u64, Vec<u8>)]) -> Vec<u64> {
    let pings = sent.iter().filter(|(_, bytes)| op(bytes) == Op::Ping);
    pings.map(|(at, _)| *at).collect()
}

fn closes(sent: &[Vec<u8>]) -> usize {
    sent.iter().filter(|bytes| op(bytes) == Op::Close).count()
}

#[test]
fn a_known_path_is_accepted_and_another_rejected() {
    let mut world = World::new();
    assert!(world.connect(CLIENT, "cmd_vel").is_some());
    assert_eq!(world.connect("192.168.0.9:5001", "spoon"), None);
    assert_eq!(world.count("unknown path"), 1);
    let replies = world.receive("192.168.0.9:5002", b"\x01http://x/cmd_vel\0");
    assert_eq!(decode_reply(&replies[0]), Some(None));
    assert_eq!(world.server.sessions.len(), 1);
}

#[test]
fn the_token_is_compared_unless_there_is_none() {
    let mut open = World::new();
    let undefined = Frame::Connect(b"udp://r:1/cmd_vel?token=undefined").encode();
    assert!(
        decode_reply(&open.receive(CLIENT, &undefined)[0])
            .unwrap()
            .is_some()
    );
    let mut closed = World::with(|config| config.token = Some(Token::new("28b1c5")));
    assert_eq!(
        decode_reply(&closed.receive(CLIENT, &undefined)[0]),
        Some(None)
    );
    let none = Frame::Connect(b"udp://r:1/cmd_vel").encode();
    assert_eq!(decode_reply(&closed.receive(CLIENT, &none)[0]), Some(None));
    assert_eq!(closed.count("wrong token"), 2);
    assert!(closed.connect(CLIENT, "cmd_vel").is_some());
}

#[test]
fn after_five_wrong_tokens_an_address_is_ignored_for_a_minute() {
    let mut world = World::with(|config| config.token = Some(Token::new("right")));
    for port in 0..5 {
        assert_eq!(
            world.connect(&format!("192.168.0.9:{}", 6000 + port), "scan"),
            None
        );
    }
    assert!(world.receive("192.168.0.9:7000", &url("scan")).is_empty());
    let right = Frame::Connect(b"udp://r:1/scan?token=right").encode();
    assert!(world.receive("192.168.0.9:7000", &right).is_empty());
    assert_eq!(world.count("too many wrong tokens"), 2);
    // Others are not affected.
    assert_eq!(world.receive("192.168.0.10:7000", &right).len(), 1);
    world.wait(60_000, CLIENT);
    assert_eq!(world.receive("192.168.0.9:7000", &right).len(), 1);
}

#[test]
fn a_copy_of_a_connect_is_ignored_and_a_new_one_replaces_the_session() {
    let mut world = World::new();
    let first = world.session("cmd_vel");
    assert!(world.receive(CLIENT, &url("cmd_vel")).is_empty());
    // Another path, or later, or after a frame: a new session.
    let second = world.session("scan");
    assert_ne!(first, second);
    world.frame(CLIENT, second, Op::Ping);
    let third = world.session("scan");
    assert_ne!(second, third);
    world.wait(1_000, CLIENT);
    let fourth = world.session("scan");
    assert_ne!(third, fourth);
    assert_eq!(world.server.sessions.len(), 1);
    assert_eq!(closes(&world.frame(CLIENT, third, Op::Ping)), 1);
}

#[test]
fn nothing_but_the_reply_is_sent_for_200_ms_or_until_the_first_frame() {
    let mut world = World::new();
    world.session("cmd_vel");
    assert_eq!(pings(&world.wait(450, CLIENT)), [200, 300, 400]);
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.wait(50, CLIENT);
    assert_eq!(world.frame(CLIENT, id, Op::Pong), Vec::<Vec<u8>>::new());
    assert_eq!(pings(&world.wait(200, CLIENT)), [50, 150]);
}

#[test]
fn an_address_outside_the_local_networks_gets_only_the_reply_until_it_has_proved_itself() {
    let mut world = World::new();
    let id = world.connect(FAR, "scan").unwrap();
    let scan = Scan::new(&[-1.0, 1.0], &[1000, 1000], None).unwrap();
    world.wait(500, FAR);
    world.event(Event::Measured(
        robot().scanner,
        Measurement::Scan(scan.clone()),
    ));
    assert!(world.sent_to(FAR).is_empty());
    assert_eq!(world.frame(FAR, id, Op::Ping).len(), 1);
    world.event(Event::Measured(robot().scanner, Measurement::Scan(scan)));
    assert_eq!(world.sent_to(FAR).len(), 1);
    assert_eq!(pings(&world.wait(250, FAR)).len(), 3);
    // Unproven sessions end after a second.
    world.connect("8.8.8.8:5001", "scan").unwrap();
    world.wait(999, FAR);
    assert_eq!(world.server.sessions.len(), 2);
    world.wait(1, FAR);
    assert_eq!(world.server.sessions.len(), 1);
}

#[test]
fn pings_are_answered_and_a_silent_client_is_dropped_after_ten_seconds() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    let answers = world.frame(CLIENT, id, Op::Ping);
    assert_eq!(answers, [Frame::Session { id, op: Op::Pong }.encode()]);
    world.wait(9_999, CLIENT);
    assert_eq!(world.server.sessions.len(), 1);
    world.wait(1, CLIENT);
    assert_eq!(world.server.sessions.len(), 0);
    assert_eq!(world.outputs.last(), Some(&Output::Close(User(1))));
}

#[test]
fn a_motion_drives_the_wheels_and_holds_half_a_second() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    assert_eq!(world.outputs, [Output::Open(User(1))]);
    world.text(id, r#"{"linear":{"x":0.2},"angular":{"z":0.5}}"#);
    assert_eq!(world.driven(), [WheelSpeeds::sides(100, 300)]);
    world.wait(499, CLIENT);
    assert_eq!(world.driven(), []);
    world.wait(1, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::STOP]);
    world.text(id, r#"{"linear":{"x":1e999}}"#);
    world.text(id, "hello");
    assert_eq!(world.driven(), []);
    assert_eq!(world.count("invalid motion"), 2);
}

#[test]
fn close_silence_and_the_end_of_the_gateway_stop_the_wheels() {
    let go = r#"{"linear":{"x":0.2}}"#;
    let end = [Order::Drive(robot().wheels, WheelSpeeds::STOP)];
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.text(id, go);
    world.outputs.clear();
    assert!(world.frame(CLIENT, id, Op::Close).is_empty());
    let expected = [
        Output::Order(User(1), end[0].clone()),
        Output::Close(User(1)),
    ];
    assert_eq!(world.outputs, expected);
    assert!(world.server.sessions.is_empty());

    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.text(id, go);
    world.outputs.clear();
    world.server.stop(world.now, &mut world.out);
    world.drain();
    assert_eq!(closes(&world.sent_to(CLIENT)), 1);
    assert_eq!(world.outputs, expected);
}

#[test]
fn one_session_holds_the_controls() {
    let mut world = World::new();
    let first = world.session("cmd_vel");
    let other = "192.168.0.10:1";
    let second = world.connect(other, "cmd_vel").unwrap();
    let go = Op::Text(br#"{"linear":{"x":0.1}}"#);
    world.frame(CLIENT, first, go);
    world.frame(other, second, go);
    assert_eq!(world.driven().len(), 1);
    assert_eq!(world.count("another session drives"), 1);
    let drives: Vec<_> = world
        .server
        .sessions(world.now)
        .iter()
        .map(|it| it.drives)
        .collect();
    assert_eq!(drives, [true, false]);
    world.frame(CLIENT, first, Op::Close);
    world.frame(other, second, go);
    assert_eq!(world.driven(), [WheelSpeeds::STOP, WheelSpeeds::all(100)]);
}

#[test]
fn a_raw_motors_command_obeys_the_same_rules() {
    let mut world = World::new();
    let id = world.session("roboclaw/0");
    let all = |speed| {
        let wheels = ["frontLeft", "frontRight", "rearLeft", "rearRight"];
        let members = wheels.map(|wheel| format!("\"{wheel}Speed\":{speed}"));
        format!("{{\"motorsCommand\":{{{}}}}}", members.join(","))
    };
    world.text(id, &all(4_000));
    assert_eq!(world.driven(), [WheelSpeeds::all(400)]);
    world.wait(500, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::STOP]);
}

#[test]
fn motion_through_the_collision_avoidance_obeys_the_same_rules() {
    let speeds = r#"{"frontLeftSpeed":9000,"frontRightSpeed":9000,
        "rearLeftSpeed":9000,"rearRightSpeed":9000}"#;
    for command in [
        "setSpeed\":true,\"motorsSpeed",
        "[amber.roboclaw_proto.motorsCommand]",
    ] {
        let mut world = World::new();
        let driver = world.session("amber/9/0");
        let other = "192.168.0.10:1";
        let second = world.connect(other, "cmd_vel").unwrap();
        world.outputs.clear();
        world.text(driver, &format!("{{\"{command}\":{speeds}}}"));
        let guarded = Device::new(DeviceType::COLLISION_AVOIDANCE, 0);
        let drive = |mm_s| {
            let order = Order::Drive(guarded, WheelSpeeds::all(mm_s));
            Output::Order(User(1), order)
        };
        assert_eq!(world.outputs, [drive(400)], "{command}");
        // The wheels are the same.
        world.frame(other, second, Op::Text(br#"{"linear":{"x":0.1}}"#));
        assert_eq!(world.count("another session drives"), 1);
        world.outputs.clear();
        world.wait(500, CLIENT);
        world.outputs.retain(|it| matches!(it, Output::Order(..)));
        assert_eq!(world.outputs, [drive(0)]);
    }
}

#[test]
fn targets_and_trajectories_need_the_seat_and_end_with_their_session() {
    let targets = Device::new(DeviceType::DRIVE_TO_POINT, 0);
    let path = Device::new(DeviceType::PID_FOLLOW_TRAJECTORY, 0);
    let no_targets = Order::Targets(targets, Vec::new());
    let no_path = Order::Message(path, motion::stop_trajectory());
    let go = r#"{"targets":[{"x":1,"y":2}]}"#;
    let as_message =
        r#"{"setTargets":true,"targets":{"longitudes":[1],"latitudes":[2],"radiuses":[1]}}"#;
    for (name, start, end) in [
        ("goal", go, &no_targets),
        ("amber/8/0", as_message, &no_targets),
        ("amber/10/0", r#"{"startExecution":true}"#, &no_path),
        ("amber/10/0", r#"{"stepExecution":true}"#, &no_path),
    ] {
        let mut world = World::new();
        let id = world.session(name);
        let other = "192.168.0.10:1";
        let driver = world.connect(other, "cmd_vel").unwrap();
        let drive = Op::Text(br#"{"linear":{"x":0.1}}"#);
        world.frame(other, driver, drive);
        world.outputs.clear();
        world.text(id, start);
        assert_eq!(world.outputs, [], "{name}");
        assert_eq!(world.count("another session drives"), 1);

        world.frame(other, driver, Op::Close);
        world.outputs.clear();
        world.text(id, start);
        assert_eq!(world.outputs.len(), 1, "{name}: {:?}", world.outputs);
        world.frame(CLIENT, id, Op::Close);
        let ends = Output::Order(User(1), end.clone());
        assert_eq!(world.outputs[1], ends, "{name}");
    }
}

#[test]
fn commands_are_limited_to_fifty_per_second() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    for _ in 0..1_000 {
        world.text(id, r#"{"linear":{"x":0.2}}"#);
        world.wait(1, CLIENT);
    }
    let driven = world.driven().len();
    assert!((49..=51).contains(&driven), "{driven}");
    let id = world.session("goal");
    for _ in 0..60 {
        world.text(id, r#"{"targets":[]}"#);
    }
    assert_eq!(world.count("too many messages"), 10);
}

#[test]
fn targets_come_with_y_up_and_reports_follow() {
    let mut world = World::new();
    let id = world.session("goal");
    world.outputs.clear();
    world.text(id, r#"{"targets":[{"x":1,"y":2,"radius":0.5}]}"#);
    let target = Target {
        x_m: 1.0,
        y_m: -2.0,
        radius_m: 0.5,
    };
    let order = Order::Targets(robot().targets, vec![target]);
    assert_eq!(world.outputs, [Output::Order(User(1), order)]);
    let measured = Measurement::Targets {
        next: vec![target],
        visited: vec![],
    };
    let sent = world.event(Event::Measured(robot().targets, measured));
    assert_eq!(json(&sent[0])["next"][0]["y"], 2.0);
    world.text(id, "{}");
    assert_eq!(world.count("invalid targets"), 1);
}

#[test]
fn reports_come_ten_times_per_second_while_the_robot_measures() {
    let mut world = World::new();
    let id = world.session("odom");
    let wheels = robot().wheels;
    let watched = [
        Output::Watch(Topic::Wheels(wheels)),
        Output::Watch(Topic::Pose(robot().location)),
    ];
    assert_eq!(world.outputs, watched);
    world.frame(CLIENT, id, Op::Pong);
    world.event(Event::Measured(
        wheels,
        Measurement::Wheels(WheelSpeeds::all(200)),
    ));
    let sent = world.wait(1_000, CLIENT);
    let texts: Vec<_> = sent
        .iter()
        .filter(|(_, bytes)| op(bytes) != Op::Ping)
        .collect();
    assert_eq!(texts.len(), 10);
    assert_eq!(json(&texts[0].1)["twist"]["twist"]["linear"]["x"], 0.2);
    // Old measurements are not repeated.
    let sent = world.wait(1_000, CLIENT);
    assert!(sent.iter().all(|(_, bytes)| op(bytes) == Op::Ping));
    world.outputs.clear();
    world.frame(CLIENT, id, Op::Close);
    assert_eq!(world.outputs.len(), 2);
    assert!(matches!(
        world.outputs[0],
        Output::Unwatch(Topic::Wheels(_))
    ));
}

#[test]
fn a_status_has_what_the_robot_does() {
    let mut world = World::new();
    let go = world.connect("192.168.0.10:1", "cmd_vel").unwrap();
    world.frame("192.168.0.10:1", go, Op::Text(br#"{"linear":{"x":0.3}}"#));
    let id = world.session("galileo/status");
    world.frame(CLIENT, id, Op::Pong);
    world.event(Event::Measured(
        robot().wheels,
        Measurement::Wheels(WheelSpeeds::all(200)),
    ));
    world.event(Event::Measured(
        robot().location,
        Measurement::Pose(MapPose::new(1.0, 0.0, 0.0)),
    ));
    world.event(Event::Measured(
        robot().targets,
        Measurement::Targets {
            next: vec![Target::new(4.0, 4.0)],
            visited: vec![],
        },
    ));
    let sent = world.wait(100, CLIENT);
    let texts: Vec<_> = sent
        .iter()
        .filter(|(_, bytes)| op(bytes) != Op::Ping)
        .collect();
    let status = json(&texts[0].1);
    assert_eq!(status["controlSpeedX"], 0.3);
    assert_eq!(status["currentSpeedX"], 0.2);
    assert_eq!(status["targetDistance"], 5.0);
}

#[test]
fn motion_in_one_message_with_a_request_obeys_the_same_rules() {
    let mut world = World::new();
    let id = world.session("roboclaw/0");
    world.outputs.clear();
    let both = r#"{"synNum":7,"currentSpeedRequest":true,"motorsCommand":{
        "frontLeftSpeed":100,"frontRightSpeed":100,"rearLeftSpeed":100,"rearRightSpeed":100}}"#;
    world.text(id, both);
    let passed_on = world.outputs.iter().find_map(|output| match output {
        Output::Order(_, Order::Message(_, message)) => Some(message.clone()),
        _ => None,
    });
    let message = roboclaw::DriverMsg::decode(passed_on.unwrap()).unwrap();
    assert_eq!(message.motors_command, None);
    assert_eq!(message.current_speed_request, Some(true));
    assert_eq!(message.syn_num, Some(7));
    // The motion ends by itself.
    world.wait(600, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::all(100), WheelSpeeds::STOP]);
}

#[test]
fn messages_of_a_device_travel_as_text() {
    let mut world = World::new();
    let id = world.session("hokuyo/0");
    world.outputs.clear();
    world.text(id, r#"{"synNum":7,"get_single_scan":true}"#);
    let [Output::Order(User(1), Order::Message(device, message))] = &world.outputs[..] else {
        panic!("{:?}", world.outputs);
    };
    assert_eq!(*device, robot().scanner);
    let asked = amber_proto::hokuyo::DriverMsg::decode(message.clone()).unwrap();
    assert_eq!(
        (asked.syn_num, asked.get_single_scan),
        (Some(7), Some(true))
    );
    let mut answer = amber_proto::hokuyo::DriverMsg {
        r#type: Some(1),
        ack_num: Some(7),
        timestamp: Some(5),
        ..Default::default()
    };
    let event = |answer: &amber_proto::hokuyo::DriverMsg| {
        Event::Message(User(1), robot().scanner, answer.encode_to_vec().into())
    };
    let sent = world.event(event(&answer));
    assert_eq!(json(&sent[0])["ackNum"], 7);
    answer.scan = Some(amber_proto::hokuyo::Scan {
        angles: vec![1.0; 682],
        distances: vec![1000; 682],
    });
    assert!(world.event(event(&answer)).is_empty());
    assert_eq!(world.count("message too long for TEXT; use BINARY"), 1);
    world.text(id, r#"{"get_singel_scan":true}"#);
    assert_eq!(world.count("invalid message"), 1);
}

#[test]
fn messages_of_a_device_travel_as_binary_records() {
    let mut world = World::new();
    let id = world.session("amber/4/0");
    world.outputs.clear();
    let message = [7; 1_000];
    for (index, data) in (0..).zip(records::split(&message)) {
        let body = encode_chunk(Some(index), &data);
        world.frame(CLIENT, id, Op::Binary(&body));
    }
    let order = Order::Message(robot().scanner, Bytes::copy_from_slice(&message));
    assert_eq!(world.outputs, [Output::Order(User(1), order)]);
    let event = Event::Message(User(1), robot().scanner, Bytes::copy_from_slice(&message));
    let sent = world.event(event);
    let mut joiner = Joiner::default();
    let mut joined = Vec::new();
    for (index, frame) in (0..).zip(&sent) {
        let Op::Binary(body) = op(frame) else {
            panic!("{frame:?}");
        };
        let (its, data) = decode_chunk(body).unwrap();
        assert_eq!(its, index);
        // The C# client pads to 2042 bytes.
        joined.extend(joiner.take(&[data, &[0; 1500]].concat()).unwrap());
    }
    assert_eq!(joined, [message]);
}

#[test]
fn a_gap_in_binary_frames_is_counted_and_loses_only_its_message() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    world.outputs.clear();
    let frames: Vec<_> = records::split(&[7; 600])
        .chain(records::split(b"\x10\x01"))
        .collect();
    // Indices may start anywhere; the second frame is lost.
    for (index, data) in [(9, &frames[0]), (11, &frames[2])] {
        world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(index), data)));
    }
    assert_eq!(world.count("BINARY frames lost"), 1);
    assert_eq!(world.outputs.len(), 1);
    world.frame(CLIENT, id, Op::Binary(&[0, 0, 0]));
    assert_eq!(world.count("too short"), 1);
}

#[test]
fn lost_binary_frames_are_counted_one_by_one() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    let mut frame = |index| {
        world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(index), b"\0\0")));
        let reasons = ["BINARY frames lost", "BINARY frame out of order"];
        reasons.map(|reason| world.count(reason))
    };
    assert_eq!(frame(u32::MAX - 1), [0, 0]);
    // Indices wrap.
    assert_eq!(frame(u32::MAX), [0, 0]);
    assert_eq!(frame(4), [4, 0]);
    assert_eq!(frame(1_000), [999, 0]);
    assert_eq!(frame(999), [999, 1]);
    assert_eq!(frame(1_000), [999, 1]);
}

#[test]
fn a_path_can_be_without_index() {
    let mut world = World::with(|config| config.without_index = vec!["dummy/0".into()]);
    let id = world.session("dummy/0");
    let device = Device::new(DeviceType::DUMMY, 0);
    world.frame(
        CLIENT,
        id,
        Op::Binary(&encode_chunk(Some(0), b"\x00\x02\x10\x02")),
    );
    let sent = world.event(Event::Message(
        User(1),
        device,
        Bytes::from_static(b"\x10\x03"),
    ));
    assert_eq!(op(&sent[0]), Op::Binary(b"\x00\x02\x10\x03"));
}

#[test]
fn only_listed_devices_may_be_used() {
    let mut world = World::with(|config| config.devices = Some(vec![robot().scanner]));
    assert_eq!(world.connect(CLIENT, "roboclaw/0"), None);
    assert_eq!(world.count("device not allowed"), 1);
    assert!(world.connect(CLIENT, "hokuyo/0").is_some());
    assert!(world.connect("192.168.0.9:1", "cmd_vel").is_some());
}

#[test]
fn there_are_at_most_64_sessions_and_4_of_one_address() {
    let mut world = World::new();
    let accepted = |world: &mut World, from: &str| world.connect(from, "scan").is_some();
    for port in 0..4 {
        assert!(accepted(
            &mut world,
            &format!("192.168.0.1:{}", 1000 + port)
        ));
    }
    assert!(!accepted(&mut world, "192.168.0.1:2000"));
    // Its own place is free for a client that connects again.
    assert!(world.connect("192.168.0.1:1000", "odom").is_some());
    for host in 2..17 {
        for port in 0..4 {
            assert!(accepted(
                &mut world,
                &format!("192.168.0.{host}:{}", 1000 + port)
            ));
        }
    }
    assert_eq!(world.server.sessions.len(), 64);
    assert!(!accepted(&mut world, "192.168.0.99:1000"));
    assert_eq!(world.count("too many sessions"), 1);
    assert_eq!(world.count("too many sessions of one address"), 1);
}

#[test]
fn an_unknown_session_is_closed_at_most_ten_times_per_second() {
    let mut world = World::new();
    let id = SessionId([9, 9, 9, 9]);
    let mut closed = 0;
    for _ in 0..50 {
        let sent = world.frame(CLIENT, id, Op::Ping);
        assert!(sent.iter().all(|bytes| bytes.len() <= 6));
        closed += closes(&sent);
    }
    assert_eq!(closed, 10);
    // A CLOSE is not answered, so two ends cannot keep each other busy.
    world.wait(5_000, CLIENT);
    assert!(world.frame(CLIENT, id, Op::Close).is_empty());
}

#[test]
fn an_address_that_guesses_sessions_is_ignored_for_ten_seconds() {
    let mut world = World::new();
    let session = world.session("cmd_vel");
    let guesser = "192.168.0.9:6000";
    for guess in 0..200_u32 {
        world.frame(guesser, SessionId(guess.to_le_bytes()), Op::Ping);
    }
    assert_eq!(world.count("too many unknown sessions"), 99);
    // A session of the same address goes on.
    assert_eq!(world.frame(CLIENT, session, Op::Ping).len(), 1);
    world.wait(9_999, CLIENT);
    assert!(world.frame(guesser, SessionId([9; 4]), Op::Ping).is_empty());
    world.wait(1, CLIENT);
    assert_eq!(
        closes(&world.frame(guesser, SessionId([9; 4]), Op::Ping)),
        1
    );
}

#[test]
fn the_right_id_from_another_address_is_not_the_session() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.driven();
    let go = Op::Text(br#"{"linear":{"x":0.1}}"#);
    assert_eq!(closes(&world.frame("192.168.0.9:5001", id, go)), 1);
    assert_eq!(world.driven(), []);
    assert_eq!(world.count("unknown session"), 1);
}

#[test]
fn a_session_gets_at_most_200_datagrams_and_a_megabit_per_second() {
    let mut world = World::new();
    let id = world.session("amber/5/0");
    world.frame(CLIENT, id, Op::Binary(&encode_chunk(Some(0), &[])));
    let event = |bytes: &[u8]| {
        let device = Device::new(DeviceType::DUMMY, 0);
        Event::Message(User(1), device, Bytes::copy_from_slice(bytes))
    };
    let small: usize = (0..300)
        .map(|_| world.event(event(b"\x10\x03")).len())
        .sum();
    assert_eq!(small, 200);
    assert_eq!(world.count("session gets too much"), 100);
    world.wait(5_000, CLIENT);
    let sent = world.event(event(&[7; 200_000]));
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(
        sent.len() <= 200 && bytes <= 125_000,
        "{} {bytes}",
        sent.len()
    );
}

#[test]
fn other_datagrams_are_counted_and_not_answered() {
    let mut world = World::new();
    let id = world.session("scan");
    for bytes in [&b""[..], b"\x02\x01", b"\x07hello", b"\x02\0\0\0\x01\x0f"] {
        assert!(world.receive(CLIENT, bytes).is_empty());
    }
    assert!(world.frame(CLIENT, id, Op::Continuation).is_empty());
    assert!(world.frame(CLIENT, id, Op::Text(b"{}")).is_empty());
    let reasons = [
        "too short",
        "unknown frame type",
        "unknown operation",
        "continuation",
    ];
    assert_eq!(reasons.map(|reason| world.count(reason)), [2, 1, 1, 1]);
    assert_eq!(world.count("this path takes no messages"), 1);
}
