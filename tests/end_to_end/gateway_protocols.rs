//! The gateways for the JSON relay, Apollo and RflySim with real processes: programs for other
//! robots drive the robot of the demo, and Amber's clients drive other robots.

use std::cell::Cell;
use std::fs;
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process;
use std::time::Duration;

use amber_client::WheelSpeeds;
use amber_client::blocking::Client;
use amber_gateways::apollo::frame::Frame;
use amber_gateways::apollo::messages::{
    AdcTrajectory, Chassis, LocalizationEstimate, PathPoint, PointCloud, TrajectoryPoint,
};
use amber_gateways::apollo::reassembly::{Outcome, Reassembly};
use amber_gateways::apollo::split::{Format, split};
use amber_proto::DeviceMessage;
use amber_proto::camera::{Format as PictureFormat, Picture, PictureRequest, PictureStream};
use amber_proto::roboclaw::DriverMsg;
use amber_sim::control::SimulationState;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use prost::Message;
use serde_json::{Value, json};

use crate::camera;
use crate::common::{Mediator, demo_with, wait_for};
use crate::robot::{AT_ONCE_S, Robot, drives, stands};

/// The life of a motion command with braking, and a margin for a busy machine.
const DEAD_MAN_S: f64 = 0.5 + AT_ONCE_S;

fn status(robot: &Robot) -> Option<Value> {
    status_at(&robot.demo)
}

fn status_at(mediator: &Mediator) -> Option<Value> {
    let mut command = mediator.amber(&["call", "gateway", "status", "--json"]);
    serde_json::from_slice(&command.output().ok()?.stdout).ok()
}

/// The address of a socket of the gateway.
fn listening(robot: &Robot, index: usize) -> SocketAddr {
    listening_at(&robot.demo, index)
}

fn listening_at(mediator: &Mediator, index: usize) -> SocketAddr {
    wait_for("the gateway", || {
        status_at(mediator)?["listening"][index]
            .as_str()?
            .parse()
            .ok()
    })
}

fn local_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let timeout = Some(Duration::from_secs(20));
    socket.set_read_timeout(timeout).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let length = socket.recv(&mut buffer).expect("a datagram within 20 s");
    buffer.truncate(length);
    buffer
}

/// Reads all that has arrived: what comes to a full buffer is lost.
fn drain(socket: &UdpSocket) {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 65_536];
    while socket.recv(&mut buffer).is_ok() {}
    socket.set_nonblocking(false).unwrap();
}

/// Commands until the robot has driven a metre, and waits until it stands.
fn one_metre(robot: &Robot, command: impl Fn()) -> SimulationState {
    let begin = robot.state();
    let way_m = |state: &SimulationState| (state.x_m - begin.x_m).hypot(state.y_m - begin.y_m);
    let last = robot.until("one metre", |state| {
        command();
        way_m(state) >= 0.95
    });
    // No more commands come.
    let end = robot.until("it stands", stands);
    let (moved_m, took_s) = (way_m(&end), end.time_s - last.time_s);
    // Between two checks of the robot it keeps moving.
    assert!((0.95..1.6).contains(&moved_m), "{moved_m} m");
    assert!(took_s < DEAD_MAN_S, "{took_s} s");
    assert_eq!(end.contacts, 0);
    end
}

#[test]
fn a_control_of_the_json_relay_drives_one_metre() {
    let driver = "gateway:0=amber driver json-relay --listen 127.0.0.1:0";
    let robot = Robot::of(demo_with(driver));
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let server = listening(&robot, 0);
    let (control, other) = (local_socket(), local_socket());
    let send = |socket: &UdpSocket, text: &str| socket.send_to(text.as_bytes(), server).unwrap();
    send(
        &control,
        r#"{"type":"register","data":{"client_type":"control","client_id":"c1"}}"#,
    );
    send(
        &other,
        r#"{"type":"register","data":{"client_type":"robot","client_id":"r1"}}"#,
    );
    let forward = r#"{"type":"control_command","data":{"command":"forward","timestamp":5}}"#;
    one_metre(&robot, || {
        send(&control, forward);
    });
    // The other robot of the relay got the same commands.
    assert_eq!(String::from_utf8(receive(&other)).unwrap(), forward);

    drain(&control);
    send(
        &other,
        r#"{"type":"image_data","data":{"image":"aGk=","timestamp":7}}"#,
    );
    // Those of the robot's own camera come besides, in fragments.
    wait_for("the image of the other robot", || {
        let image: Value = serde_json::from_slice(&receive(&control)).unwrap();
        assert!(["image_data", "image_fragment"].contains(&image["type"].as_str().unwrap()));
        (image["data"]["image"] == "aGk=").then_some(())
    });
    let status = status(&robot).unwrap();
    assert_eq!(
        (&status["protocol"], &status["sessions"]),
        (&json!("json-relay"), &json!(2))
    );
    assert_eq!(status["bad"], json!(0));
}

#[test]
fn a_foreign_relay_drives_the_robot_one_metre() {
    let server = local_socket();
    let address = server.local_addr().unwrap();
    let driver =
        format!("gateway:0=amber driver json-relay --role robot --server {address} --id amber_0");
    let robot = Robot::of(demo_with(&driver));
    let mut buffer = [0; 1024];
    let (length, gateway) = server.recv_from(&mut buffer).unwrap();
    let first: Value = serde_json::from_slice(&buffer[..length]).unwrap();
    let expected = json!({"type": "register",
        "data": {"client_type": "robot", "client_id": "amber_0"}});
    assert_eq!(first, expected);
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let forward = br#"{"type":"control_command","data":{"command":"forward","timestamp":5}}"#;
    one_metre(&robot, || {
        server.send_to(forward, gateway).unwrap();
    });
    // The gateway takes commands only from its server.
    local_socket().send_to(forward, gateway).unwrap();
    let reason = wait_for("a dropped command", || {
        let reasons = status(&robot)?["reasons"].to_string();
        reasons.contains("not from the server").then_some(reasons)
    });
    assert!(stands(&robot.state()), "{reason}");
}

/// Amber client -> gateway -> foreign server.
#[test]
fn a_client_of_amber_drives_a_robot_of_a_foreign_relay() {
    let server = local_socket();
    let address = server.local_addr().unwrap();
    let driver = format!(
        "gateway:0,roboclaw:1=amber driver json-relay --role control --server {address} --id amber_7"
    );
    let robot = Robot::of(demo_with(&driver));
    let first: Value = serde_json::from_slice(&receive(&server)).unwrap();
    let expected = json!({"type": "register",
        "data": {"client_type": "control", "client_id": "amber_7"}});
    assert_eq!(first, expected);
    // Wheels that turn against each other: to the right.
    let speeds = ["call", "roboclaw:1", "drive", "200", "-200", "200", "-200"];
    let command = wait_for("a command", || {
        assert!(robot.amber(&speeds));
        let message: Value = serde_json::from_slice(&receive(&server)).unwrap();
        (message["type"] == "control_command").then(|| message["data"]["command"].clone())
    });
    assert_eq!(command, "right");
}

/// Camera -> gateway -> relay -> gateway -> client of Amber.
#[test]
fn a_camera_is_seen_through_a_json_relay() {
    let sim = camera::Robot::new();
    let file = sim.path("relay.toml");
    fs::write(
        &file,
        "listen = \"127.0.0.1:0\"\nmtu = 60000\ncamera_hz = 20\n",
    )
    .unwrap();
    let near = Mediator::start(&[
        &format!(
            "camera:0=amber driver camera --url http://{}/stream",
            sim.place
        ),
        &format!(
            "gateway:0=amber driver json-relay --config {}",
            file.display()
        ),
    ]);
    let server = listening_at(&near, 0);
    let far = Mediator::start(&[&format!(
        "gateway:0,roboclaw:1,camera:1=amber driver json-relay --role control --server {server} \
         --show-images-as camera:1"
    )]);
    let client = Client::connect(far.address).unwrap();
    let camera = client.camera(1);
    let is_jpeg = |picture: &Picture| {
        picture.data().starts_with(&[0xff, 0xd8, 0xff]) && picture.data().ends_with(&[0xff, 0xd9])
    };
    let picture = wait_for("a picture", || {
        camera.picture(PictureRequest::default()).ok()
    });
    assert!(is_jpeg(&picture));
    assert_eq!((picture.width(), picture.height()), (320, 240));
    let info = camera.info().unwrap();
    assert_eq!((info.is_on(), info.width()), (true, 320));

    let stream = PictureStream::default();
    let mut pictures = camera.pictures(Duration::from_millis(10), stream).unwrap();
    let mut next = || {
        let update = pictures.next_within(Duration::from_secs(20));
        update.expect("a picture").message
    };
    let (first, second) = (next(), next());
    assert!(is_jpeg(&first) && is_jpeg(&second));
    assert!(second.sequence() > first.sequence());

    let grey = PictureRequest {
        format: Some(PictureFormat::Gray8.into()),
        ..PictureRequest::default()
    };
    let refused = camera.picture(grey).unwrap_err().to_string();
    assert!(refused.contains("are JPEG files"), "{refused}");
    client.close();
}

#[test]
fn a_program_for_rflysim_arms_and_drives_one_metre() {
    // Others may run this test at the same time: each process has a vehicle of its own.
    let number = 1000 + process::id() % 3000;
    let driver = format!("gateway:0=amber driver rflysim --vehicle {number} --allow-arm");
    let offset = u16::try_from(2 * (number - 1)).unwrap();
    let truth = UdpSocket::bind(("127.0.0.1", 30_101 + offset)).unwrap();
    truth
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let robot = Robot::of(demo_with(&driver));
    assert_eq!(listening(&robot, 0).port(), 20_100 + offset);
    let program = UdpSocket::bind("127.0.0.1:0").unwrap();
    program.connect(("127.0.0.1", 20_100 + offset)).unwrap();
    let command = |mode: i32, controls: [f32; 4]| {
        let mut bytes = 1_234_567_890_i32.to_le_bytes().to_vec();
        bytes.extend(mode.to_le_bytes());
        bytes.extend(controls.iter().flat_map(|number| number.to_le_bytes()));
        program.send(&bytes).unwrap();
    };

    // Locked until it is armed.
    command(1, [0.3, 0.0, 0.0, 0.0]);
    wait_for("a dropped command", || {
        let reasons = status(&robot)?["reasons"].to_string();
        reasons
            .contains("locked: send an arm command")
            .then_some(())
    });
    assert!(stands(&robot.state()));

    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    command(9, [1.0, 0.0, 0.0, 0.0]);
    one_metre(&robot, || command(1, [0.3, 0.0, 0.0, 0.0]));

    // The state that it sends: vehicle, velocity and yaw at their places.
    let number_at =
        |bytes: &[u8], at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let state = receive(&truth);
    assert_eq!((state.len(), number_at(&state, 4)), (200, 152));
    assert_eq!(u32::try_from(number_at(&state, 8)), Ok(number));

    // Disarming stops it at once.
    robot.until("it drives", |state| {
        command(1, [0.3, 0.0, 0.0, 0.0]);
        drives(state)
    });
    command(9, [0.0; 4]);
    let disarmed = robot.state();
    let stood = robot.until("it stands", stands);
    assert!(stood.time_s - disarmed.time_s < AT_ONCE_S);
}

/// Receivers of Apollo lose frames that arrive in bursts.
#[test]
fn the_frames_of_a_point_cloud_leave_evenly() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = local_socket();
    setsockopt(&receiver, ReceiveTimestampns, &true).unwrap();
    let to = receiver.local_addr().unwrap();
    let file = folder.path().join("apollo.toml");
    let text = format!(r#"send = [{{ message = "point-cloud", to = "{to}" }}]"#);
    fs::write(&file, text).unwrap();
    let driver = format!("gateway:0=amber driver apollo --config {}", file.display());
    let _robot = Robot::of(demo_with(&driver));

    // The clock of the kernel does not depend on when this test runs.
    let mut buffer = vec![0; 2048];
    let mut next = || {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let mut control = nix::cmsg_space!(TimeSpec);
        let flags = MsgFlags::empty();
        let received = recvmsg::<()>(receiver.as_raw_fd(), &mut parts, Some(&mut control), flags);
        let received = received.expect("a frame within 20 s");
        let times = received.cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        let time = Duration::from(times.expect("a time of arrival"));
        let length = received.bytes;
        let (_, frame) = Frame::decode(&buffer[..length]).unwrap();
        (frame.message_id, time)
    };
    let mut gaps = Vec::new();
    let mut last = next();
    while gaps.len() < 300 {
        let frame = next();
        if frame.0 == last.0 {
            gaps.push(frame.1.saturating_sub(last.1));
        }
        last = frame;
    }
    gaps.sort();
    let [shortest, median, longest] = [0, 150, 299].map(|place| gaps[place]);
    eprintln!("frames of point clouds are {shortest:?}, {median:?} (median), {longest:?} apart");
    // Without a pace, nearly all would be less than 0.1 ms apart. A gateway that loses the processor
    // between its clock and the kernel's may send two at once, on a busy machine more often.
    let bursts = gaps.iter().filter(|gap| gap.as_micros() < 400).count();
    assert!(
        bursts * 4 <= gaps.len(),
        "{bursts} of {}: {gaps:?}",
        gaps.len()
    );
}

#[test]
fn apollo_gets_the_state_of_the_robot_and_its_trajectory_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = local_socket();
    let to = receiver.local_addr().unwrap();
    let file = folder.path().join("apollo.toml");
    let text = format!(
        r#"
        send = [
          {{ message = "chassis", to = "{to}" }},
          {{ message = "localization", to = "{to}" }},
          {{ message = "point-cloud", to = "{to}" }},
        ]
        [[receive]]
        message = "trajectory"
        bind = "127.0.0.1:0"
        peer = "127.0.0.1"
        area = {{ x_m = [-50, 50], y_m = [-50, 50] }}
        [[receive]]
        message = "raw"
        device = "roboclaw:0"
        bind = "127.0.0.1:0"
        peer = "127.0.0.1"
        "#
    );
    fs::write(&file, text).unwrap();
    let driver = format!("gateway:0=amber driver apollo --config {}", file.display());
    let robot = Robot::of(demo_with(&driver));

    let mut reassembly = Reassembly::default();
    let mut next = |name: &str| loop {
        let datagram = receive(&receiver);
        let (_, frame) = Frame::decode(&datagram).unwrap();
        let source = [127, 0, 0, 1].into();
        let outcome = reassembly.handle_frame(Duration::ZERO, 0.0, source, &frame);
        if let Outcome::Complete(message) = outcome
            && message.name == name
        {
            return message.bytes;
        }
    };
    let chassis = Chassis::decode(&*next("Chassis")).unwrap();
    assert_eq!((chassis.engine_started(), chassis.speed_mps()), (true, 0.0));
    let cloud = PointCloud::decode(&*next("PointCloud")).unwrap();
    assert!(cloud.point.len() > 100, "{}", cloud.point.len());
    let mut pose = || {
        let estimate = LocalizationEstimate::decode(&*next("LocalizationEstimate")).unwrap();
        let pose = estimate.pose.unwrap();
        let position = pose.position.unwrap();
        (position.x(), position.y(), pose.heading())
    };

    // From where the robot is to a metre ahead, again and again, as Apollo's planning does.
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let (x, y, heading) = wait_for("the pose", || {
        let (x, y, heading) = pose();
        // Apollo has y up.
        let error = (x - 1.5).hypot(y + 2.6) + heading.abs();
        (error < 0.1).then_some((x, y, heading))
    });
    let message = |way_m: f64| {
        let point = |step: u8| {
            let ahead_m = way_m + f64::from(step) / 10.0;
            let path_point = PathPoint {
                x: Some(x + ahead_m * heading.cos()),
                y: Some(y + ahead_m * heading.sin()),
                z: None,
            };
            TrajectoryPoint {
                path_point: Some(path_point),
                v: None,
            }
        };
        let trajectory = AdcTrajectory {
            trajectory_point: (1..=10).map(point).collect(),
            ..AdcTrajectory::default()
        };
        trajectory.encode_to_vec()
    };
    let planning = local_socket();
    let gateway = listening(&robot, 1);
    let mut id = 0;
    let mut way_m = 0.0;
    wait_for("one metre", || {
        id += 1;
        let frames = split(Format::default(), "ADCTrajectory", id, 0.0, message(way_m));
        for frame in frames.unwrap() {
            planning.send_to(&frame, gateway).unwrap();
        }
        let (now_x, now_y, _) = pose();
        way_m = (now_x - x).hypot(now_y - y);
        (way_m >= 0.95).then_some(())
    });
    // Without new trajectories it stops.
    let last = robot.state();
    let stood = robot.until("it stands", stands);
    assert!(stood.time_s - last.time_s < 1.0 + AT_ONCE_S);
    assert_eq!(stood.contacts, 0);

    // Another gateway sends wheel speeds.
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let raw = listening(&robot, 2);
    let mut speeds = DriverMsg::data();
    speeds.motors_command = Some(WheelSpeeds::all(300).into());
    let speeds = speeds.encode_to_vec();
    let id = Cell::new(0);
    one_metre(&robot, || {
        id.set(id.get() + 1);
        let frames = split(
            Format::default(),
            "amber.2.0",
            id.get(),
            0.0,
            speeds.clone(),
        );
        for frame in frames.unwrap() {
            planning.send_to(&frame, raw).unwrap();
        }
    });
}
