//! Lines in both directions on a virtual clock.

use amber_proto::{DeviceMessage, DeviceType, roboclaw};
use amber_values::{MapPose, Scan};
use bytes::Bytes;

use super::super::frame::Layout;
use super::super::messages::{EStop, PathPoint, PointCloud, PointEnu, Pose, TrajectoryPoint};
use super::*;
use crate::testing::robot;
use crate::testing::{Bench, START_UNIX};

const PEER: &str = "127.0.0.1:5000";
const LOCATION: Device = Device::new(DeviceType::LOCATION, 1);
const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 1);

fn sending(what: Sent, name: &str, period_ms: u64) -> Bench<Apollo> {
    let line = SendLine {
        what,
        name: name.to_owned(),
        to: "127.0.0.1:8900".parse().unwrap(),
        period: Duration::from_millis(period_ms),
        format: Format::default(),
    };
    bench(vec![line], Vec::new())
}

fn receiving(what: Received, name: &str) -> Bench<Apollo> {
    let line = ReceiveLine {
        what,
        name: name.to_owned(),
        bind: "127.0.0.1:8901".parse().unwrap(),
        peer: "127.0.0.1".parse().unwrap(),
        max_age: None,
    };
    bench(Vec::new(), vec![line])
}

fn bench(send: Vec<SendLine>, receive: Vec<ReceiveLine>) -> Bench<Apollo> {
    let settings = Settings {
        robot: robot(),
        seat: Seat::Exclusive,
        origin: Origin {
            east_m: 100.0,
            north_m: 200.0,
        },
        send,
        receive,
    };
    Bench::new(Apollo::new(settings))
}

/// The times and the content of all messages, and the number of their frames.
fn messages(bench: &mut Bench<Apollo>) -> Vec<(u64, usize, Message)> {
    let mut reassembly = Reassembly::default();
    let (mut found, mut frames) = (Vec::new(), 0);
    for (at, output) in bench.take() {
        let Output::Send(_, _, bytes) = output else {
            continue;
        };
        frames += 1;
        let (layout, frame) = Frame::decode(&bytes).unwrap();
        assert_eq!(layout, Layout::Current);
        let now = Duration::from_millis(at);
        let outcome = reassembly.handle_frame(now, 0.0, [127, 0, 0, 1].into(), &frame);
        if let Outcome::Complete(message) = outcome {
            found.push((at, frames, message));
            frames = 0;
        }
    }
    found
}

#[test]
fn chassis_messages_from_wheels() {
    let device = robot().wheels;
    let mut bench = sending(Sent::Chassis(device), "Chassis", 100);
    let outputs = bench.take();
    assert!(outputs.contains(&(0, Output::Watch(Topic::Wheels(device)))));
    // Measured every 50 ms, sent every 100 ms.
    for _ in 0..20 {
        let speeds = Measurement::Wheels(WheelSpeeds::all(250));
        bench.event(Event::Measured(device, speeds));
        bench.advance_ms(50);
    }
    let found = messages(&mut bench);
    let times: Vec<_> = found.iter().map(|(at, _, _)| *at).collect();
    assert_eq!(times, (0..=10).map(|i| i * 100).collect::<Vec<_>>());
    for (number, (at, frames, message)) in (1..).zip(&found) {
        let chassis = Chassis::decode(&message.bytes[..]).unwrap();
        assert_eq!((*frames, chassis.speed_mps()), (1, 0.25));
        let header = chassis.header.unwrap();
        assert_eq!(
            (header.sequence_num(), message.message_id),
            (number, number)
        );
        // A millisecond in the past: Apollo drops messages from its future.
        let expected = START_UNIX.as_secs_f64() + (*at as f64 - 1.0) / 1000.0;
        assert!((message.time_s - expected).abs() < 1e-6);
        assert!((header.timestamp_sec() - message.time_s).abs() < 1e-9);
    }
}

#[test]
fn frames_of_a_cloud_are_paced() {
    let device = robot().scanner;
    let mut bench = sending(Sent::PointCloud(device, false), "PointCloud", 25);
    bench.take();
    let angles: Vec<f64> = (0..682).map(f64::from).collect();
    let scan = Scan::new(&angles, &[1000; 682], None).unwrap();
    bench.event(Event::Measured(device, Measurement::Scan(scan.clone())));
    bench.advance_ms(25);
    let times: Vec<_> = bench.take().iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
    bench.event(Event::Measured(device, Measurement::Scan(scan)));
    bench.advance_ms(25);
    let found = messages(&mut bench);
    let cloud = PointCloud::decode(&found[0].2.bytes[..]).unwrap();
    assert_eq!(cloud.point.len(), 682);
}

#[test]
fn a_few_scans_wait_for_the_frames_of_the_last_ones() {
    let device = robot().scanner;
    let mut bench = sending(Sent::PointCloud(device, false), "PointCloud", 5);
    bench.take();
    let scan = Scan::new(&[0.0; 682], &[1000; 682], None).unwrap();
    for _ in 0..2 {
        bench.event(Event::Measured(device, Measurement::Scan(scan.clone())));
        bench.advance_ms(5);
    }
    bench.advance_ms(10);
    assert_eq!(bench.take_sent().len(), 2 * 13);
    // They come faster than the frames may go.
    let count = 40;
    for _ in 0..count {
        bench.event(Event::Measured(device, Measurement::Scan(scan.clone())));
        bench.advance_ms(5);
    }
    bench.advance_ms(100);
    let dropped = bench.count("the last messages are still being sent");
    let whole = bench.take_sent().len() as u64 / 13;
    assert!(dropped > 0, "{whole} were sent");
    assert_eq!(whole + dropped, count);
}

#[test]
fn frames_keep_their_distance_after_a_timer_that_was_late() {
    let device = robot().scanner;
    let mut bench = sending(Sent::PointCloud(device, false), "PointCloud", 25);
    bench.advance_ms(1_000);
    bench.take();
    let scan = Scan::new(&[0.0; 682], &[1000; 682], None).unwrap();
    bench.event(Event::Measured(device, Measurement::Scan(scan)));
    assert_eq!(bench.take_sent().len(), 1);
    bench.now += Duration::from_millis(10);
    let other = Event::Measured(robot().location, Measurement::Pose(MapPose::default()));
    bench.event(other);
    assert_eq!(bench.take_sent().len(), 1);
    bench.advance_ms(5);
    assert_eq!(bench.take_sent().len(), 10);
}

#[test]
fn one_frame_at_most_for_old_receivers() {
    let device = robot().scanner;
    let mut bench = sending(Sent::PointCloud(device, false), "PointCloud", 25);
    bench.machine.senders[0].line.format.max_frames = 1;
    bench.take();
    let scan = Scan::new(&[0.0; 600], &[1000; 600], None).unwrap();
    bench.event(Event::Measured(device, Measurement::Scan(scan)));
    assert_eq!(bench.count("message does not fit"), 1);
    assert!(bench.take_sent().is_empty());
}

#[test]
fn an_unknown_pose_is_not_sent() {
    let device = robot().location;
    let mut bench = sending(Sent::Localization(device), "LocalizationEstimate", 100);
    bench.event(Event::Measured(
        device,
        Measurement::Pose(MapPose::default()),
    ));
    assert!(bench.take_sent().is_empty());
    bench.advance_ms(100);
    bench.event(Event::Measured(
        device,
        Measurement::Pose(MapPose::new(1.0, 2.0, 0.0)),
    ));
    let found = messages(&mut bench);
    let estimate = LocalizationEstimate::decode(&found[0].2.bytes[..]).unwrap();
    let position = estimate.pose.unwrap().position.unwrap();
    assert_eq!((position.x(), position.y()), (101.0, 198.0));
}

#[test]
fn what_a_device_publishes_is_sent() {
    let device = robot().scanner;
    let mut bench = sending(Sent::Raw(device), "amber.4.0", 0);
    let outputs = bench.take();
    let subscribed = outputs.iter().any(|(_, output)| {
        matches!(output, Output::Order(_, UserOrder::Message(to, bytes))
            if *to == device && DriverMsg::decode(&bytes[..]).unwrap().r#type() == MsgType::Subscribe)
    });
    assert!(subscribed);
    bench.event(Event::Message(
        User(1),
        device,
        Bytes::from_static(b"\x08\x01"),
    ));
    assert_eq!(messages(&mut bench)[0].2.bytes, b"\x08\x01");
}

fn frames(name: &str, id: u32, message: &[u8]) -> Vec<Vec<u8>> {
    split(
        Format::default(),
        name,
        id,
        START_UNIX.as_secs_f64(),
        message.to_vec(),
    )
    .unwrap()
}

fn shown(bench: &mut Bench<Apollo>) -> Vec<Measurement> {
    let outputs = bench.take().into_iter();
    let shown = outputs.filter_map(|(_, output)| match output {
        Output::Show(_, measurement) => Some(measurement),
        _ => None,
    });
    shown.collect()
}

#[test]
fn a_pose_from_apollo_is_shown() {
    let mut bench = receiving(Received::Localization(LOCATION), "LocalizationEstimate");
    assert_eq!(bench.machine.emulated(), [(LOCATION, Emulated::Location)]);
    let estimate = LocalizationEstimate {
        header: Some(Header {
            timestamp_sec: Some(5.0),
            ..Header::default()
        }),
        pose: Some(Pose {
            position: Some(PointEnu {
                x: Some(101.0),
                y: Some(202.0),
                z: None,
            }),
            orientation: None,
            heading: Some(0.5),
        }),
        measurement_time: None,
    };
    let sent = frames("LocalizationEstimate", 1, &estimate.encode_to_vec());
    bench.datagram(1, PEER, &sent[0]);
    let [Measurement::Pose(pose)] = shown(&mut bench)[..] else {
        panic!("no pose");
    };
    assert_eq!((pose.x_m, pose.y_m, pose.quality), (1.0, -2.0, 1.0));
    assert_eq!((pose.heading_rad, pose.timestamp_ms), (-0.5, Some(5_000)));
    // The same again, another sender, another name, and nonsense.
    bench.datagram(1, PEER, &sent[0]);
    assert_eq!(bench.count("frame of an old message"), 1);
    bench.datagram(1, "10.0.0.1:5000", &sent[0]);
    assert_eq!(bench.count("not from the configured host"), 1);
    bench.datagram(1, PEER, &frames("Chassis", 2, b"\x08\x01")[0]);
    assert_eq!(bench.count("message with another name"), 1);
    bench.datagram(1, PEER, b"nonsense");
    assert_eq!(bench.count("not a frame of the Apollo bridge"), 1);
    bench.datagram(1, PEER, &frames("LocalizationEstimate", 3, b"\xff")[0]);
    assert_eq!(bench.count("malformed message"), 1);
    assert!(shown(&mut bench).is_empty());
}

#[test]
fn a_speed_from_apollo_is_shown() {
    let mut bench = receiving(Received::Chassis(WHEELS), "Chassis");
    let chassis = Chassis {
        speed_mps: Some(0.3),
        ..Chassis::default()
    };
    bench.datagram(1, PEER, &frames("Chassis", 1, &chassis.encode_to_vec())[0]);
    assert_eq!(
        shown(&mut bench),
        [Measurement::Wheels(WheelSpeeds::all(300))]
    );
}

const AREA: Area = Area {
    x_m: [0.0, 10.0],
    y_m: [0.0, 10.0],
};

/// From the origin of the map to this x, in steps of 0.1 m.
fn trajectory(from: f64, to: f64) -> AdcTrajectory {
    let steps = ((to - from) * 10.0).round() as u32;
    let points = (0..=steps).map(|step| TrajectoryPoint {
        path_point: Some(PathPoint {
            x: Some(100.0 + from + f64::from(step) / 10.0),
            y: Some(201.0),
            z: None,
        }),
        v: Some(1.0),
    });
    AdcTrajectory {
        trajectory_point: points.collect(),
        ..AdcTrajectory::default()
    }
}

fn send(bench: &mut Bench<Apollo>, id: u32, trajectory: &AdcTrajectory) {
    for frame in frames("ADCTrajectory", id, &trajectory.encode_to_vec()) {
        bench.datagram(1, PEER, &frame);
    }
}

#[test]
fn a_trajectory_becomes_targets_twice_a_second_and_ends_a_second_after_the_last() {
    let mut bench = receiving(Received::Trajectory(AREA), "ADCTrajectory");
    bench.take();
    // Ten trajectories a second; each begins where the robot is.
    for id in 1..=20 {
        send(&mut bench, id, &trajectory(f64::from(id) / 10.0, 5.0));
        bench.advance_ms(100);
    }
    bench.advance_ms(3000);
    let targets = bench.take_targets();
    let times: Vec<_> = targets
        .iter()
        .map(|(at, targets)| (*at, targets.len()))
        .collect();
    assert_eq!(
        times,
        [
            (0, 10),
            (500, 10),
            (1000, 9),
            (1500, 8),
            (2000, 7),
            (2900, 0)
        ]
    );
    assert_eq!(bench.count("no new trajectory for a second"), 1);
    let first = targets[0].1[0];
    assert!((first.x_m - 0.1).abs() < 1e-6 && (first.y_m + 1.0).abs() < 1e-6);
}

#[test]
fn stops_and_trajectories_out_of_the_area_stop_the_robot() {
    let stop = AdcTrajectory {
        estop: Some(EStop {
            is_estop: Some(true),
        }),
        ..trajectory(0.0, 5.0)
    };
    for last in [stop, trajectory(0.0, 11.0), AdcTrajectory::default()] {
        let mut bench = receiving(Received::Trajectory(AREA), "ADCTrajectory");
        send(&mut bench, 1, &trajectory(0.0, 5.0));
        bench.advance_ms(100);
        bench.take();
        // An empty message has no frames, so it has a header.
        let last = AdcTrajectory {
            header: Some(Header {
                sequence_num: Some(2),
                ..Header::default()
            }),
            ..last
        };
        send(&mut bench, 2, &last);
        let outputs: Vec<_> = bench.take().into_iter().map(|(_, output)| output).collect();
        let user = User(1);
        let expected = [
            Output::Order(user, UserOrder::Targets(robot().targets, vec![])),
            Output::Order(user, UserOrder::Drive(robot().wheels, WheelSpeeds::STOP)),
        ];
        assert_eq!(outputs, expected);
        // Once.
        send(&mut bench, 3, &last);
        bench.advance_ms(5000);
        assert!(bench.take_targets().is_empty());
    }
}

#[test]
fn the_robot_stops_when_the_gateway_stops() {
    let mut bench = receiving(Received::Trajectory(AREA), "ADCTrajectory");
    send(&mut bench, 1, &trajectory(0.0, 5.0));
    bench.take();
    bench.stop();
    assert_eq!(bench.take_targets(), [(0, vec![])]);
}

#[test]
fn only_the_listed_device_gets_messages_and_not_too_many() {
    let device = robot().scanner;
    let mut bench = receiving(Received::Raw(device), "amber.4.0");
    bench.take();
    let mut message = DriverMsg::default();
    message.set_type(MsgType::Data);
    let bytes = message.encode_to_vec();
    for id in 1..=60 {
        bench.datagram(1, PEER, &frames("amber.4.0", id, &bytes)[0]);
    }
    bench.datagram(1, PEER, &frames("amber.2.0", 61, &bytes)[0]);
    let outputs = bench.take();
    let orders = outputs.iter().filter(|(_, output)| {
        matches!(output, Output::Order(User(1), UserOrder::Message(to, sent))
            if *to == device && sent == &bytes)
    });
    assert_eq!(orders.count(), 50);
    assert_eq!(bench.count("too many messages for a device"), 10);
    assert_eq!(bench.count("message with another name"), 1);
}

#[test]
fn motion_in_messages_for_a_device_ends_by_itself() {
    let device = robot().wheels;
    let mut bench = receiving(Received::Raw(device), "amber.2.0");
    bench.take();
    let mut command = roboclaw::DriverMsg::data();
    command.motors_command = Some(WheelSpeeds::all(3_000).into());
    for frame in frames("amber.2.0", 1, &command.encode_to_vec()) {
        bench.datagram(1, PEER, &frame);
    }
    bench.advance_ms(2_000);
    let (go, stop) = (WheelSpeeds::all(400), WheelSpeeds::STOP);
    assert_eq!(bench.take_drives(), [(0, go), (500, stop)]);
}

#[test]
fn a_trajectory_and_messages_for_a_device_share_the_seat() {
    let line = |what, name: &str, port: u16| ReceiveLine {
        what,
        name: name.to_owned(),
        bind: ([127, 0, 0, 1], port).into(),
        peer: "127.0.0.1".parse().unwrap(),
        max_age: None,
    };
    let area = Area {
        x_m: [-1_000.0, 1_000.0],
        y_m: [-1_000.0, 1_000.0],
    };
    let lines = vec![
        line(Received::Trajectory(area), "ADCTrajectory", 1),
        line(Received::Raw(robot().wheels), "amber.2.0", 2),
    ];
    let mut bench = bench(Vec::new(), lines);
    send(&mut bench, 1, &trajectory(101.0, 103.0));
    assert_eq!(bench.take_targets().len(), 1);
    let mut command = roboclaw::DriverMsg::data();
    command.motors_command = Some(WheelSpeeds::all(300).into());
    for frame in frames("amber.2.0", 1, &command.encode_to_vec()) {
        bench.datagram(2, PEER, &frame);
    }
    assert_eq!(bench.count("another line drives"), 1);
    assert!(bench.take_drives().is_empty());
}
