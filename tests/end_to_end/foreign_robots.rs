//! Amber's clients drive robots of other systems through gateways, and those robots stop when
//! anything between them is lost. The foreign robots are simulated here: each speaks its protocol
//! over UDP, and moves as it was commanded last.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_client::blocking::{Client, Roboclaw};
use amber_client::{OrderState, Target, WheelSpeeds, new_order_id};
use amber_gateways::apollo::messages::{Chassis, LocalizationEstimate, PointEnu, Pose};
use amber_gateways::apollo::split::{Format, split};
use amber_gateways::rflysim::codec::{Packet, ShortCommand, Truth168, decode, ignored};
use amber_gateways::rflysim::ports::{Port, Vehicle};
use amber_proto::{Frame, HeaderBytes};
use nix::sys::signal::Signal;
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, device, signal, wait_for};

/// Within this time a robot stands: the life of a motion command, and a margin for a busy machine.
const DEAD_MAN: Duration = Duration::from_millis(500 + 1500);
/// The same for a stop that is sent at once.
const AT_ONCE: Duration = Duration::from_millis(1500);

/// What the robots do.
#[derive(Clone, Copy, Debug)]
struct Motion {
    speed_m_s: f64,
    since: Instant,
    way_m: f64,
    /// The robot stops then if no command comes.
    until: Option<Instant>,
}

impl Motion {
    fn command(&mut self, speed_m_s: f64, life: Option<Duration>) {
        self.advance();
        self.speed_m_s = speed_m_s;
        self.until = life.map(|life| Instant::now() + life);
    }

    /// Ahead to this place, without a life.
    fn fly_to(&mut self, way_m: f64) {
        self.advance();
        let rest_m = way_m - self.way_m;
        self.command(if rest_m > 0.01 { 1.0 } else { 0.0 }, None);
    }

    fn advance(&mut self) {
        let now = Instant::now();
        let until = self.until.map_or(now, |until| until.min(now));
        self.way_m += self.speed_m_s * until.saturating_duration_since(self.since).as_secs_f64();
        if self.until.is_some_and(|until| until <= now) {
            self.speed_m_s = 0.0;
        }
        self.since = now;
    }
}

/// A robot of another system.
struct ForeignRobot {
    address: SocketAddr,
    motion: Arc<Mutex<Motion>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a robot does with a datagram, or `None` from time to time.
type Behaviour = Box<dyn FnMut(&UdpSocket, &mut Motion, Option<(&[u8], SocketAddr)>) + Send>;

impl ForeignRobot {
    fn start(address: impl Into<SocketAddr>, mut behaviour: Behaviour) -> Self {
        let socket = UdpSocket::bind(address.into()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let motion = Arc::new(Mutex::new(Motion {
            speed_m_s: 0.0,
            since: Instant::now(),
            way_m: 0.0,
            until: None,
        }));
        let ends = Arc::new(AtomicBool::new(false));
        let (shared, told) = (motion.clone(), ends.clone());
        let thread = thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !told.load(Ordering::Relaxed) {
                let received = socket.recv_from(&mut buffer).ok();
                let datagram = received.map(|(length, from)| (&buffer[..length], from));
                behaviour(&socket, &mut shared.lock().unwrap(), datagram);
            }
        });
        Self {
            address,
            motion,
            ends,
            thread: Some(thread),
        }
    }

    fn motion(&self) -> Motion {
        let mut motion = self.motion.lock().unwrap();
        motion.advance();
        *motion
    }

    /// Waits until it stands; fails if that takes longer.
    fn stands_within(&self, limit: Duration) {
        let begin = Instant::now();
        wait_for("the foreign robot to stand", || {
            (self.motion().speed_m_s == 0.0).then_some(())
        });
        let took = begin.elapsed();
        assert!(took < limit, "{took:?}");
    }

    /// A robot that speaks Galileo.
    fn galileo() -> Self {
        let mut sessions: HashMap<SocketAddr, ([u8; 4], String)> = HashMap::new();
        let mut reported = Instant::now();
        Self::start(
            ([127, 0, 0, 1], 0),
            Box::new(move |socket, motion, datagram| {
                if reported.elapsed() >= Duration::from_millis(100) {
                    reported = Instant::now();
                    let status = json!({ "currentSpeedX": motion.speed_m_s });
                    let pose = json!({ "x": motion.way_m, "y": 0, "theta": 0 });
                    for (to, (id, path)) in &sessions {
                        let report = match &path[..] {
                            "galileo/status" => &status,
                            "pose" => &pose,
                            _ => continue,
                        };
                        let text = report.to_string();
                        let frame = [&[2], &id[..], &[1], text.as_bytes()].concat();
                        socket.send_to(&frame, to).unwrap();
                    }
                }
                let Some((bytes, from)) = datagram else {
                    return;
                };
                if bytes[0] == 1 {
                    let url = String::from_utf8(bytes[1..].to_vec()).unwrap();
                    let path = url.split('?').next().unwrap().splitn(4, '/').nth(3);
                    let id = [7, 0, 0, u8::try_from(sessions.len()).unwrap() + 1];
                    sessions.insert(from, (id, path.unwrap().to_owned()));
                    let text = json!({ "status": true, "client_id": id }).to_string();
                    let reply = [&[2], &id[..], &[1], text.as_bytes()].concat();
                    socket.send_to(&reply, from).unwrap();
                    return;
                }
                let Some((id, path)) = sessions.get(&from) else {
                    return;
                };
                assert_eq!(bytes[1..5], *id);
                match bytes[5] {
                    1 if path == "cmd_vel" => {
                        let twist: Value = serde_json::from_slice(&bytes[6..]).unwrap();
                        motion.command(twist["linear"]["x"].as_f64().unwrap(), None);
                    }
                    8 => drop(sessions.remove(&from)),
                    9 => {
                        let pong = [&[2], &id[..], &[10]].concat();
                        socket.send_to(&pong, from).unwrap();
                    }
                    _ => {}
                }
            }),
        )
    }

    /// A server of the JSON relay that is a robot itself. It drives at 1 m/s for 300 ms after each
    /// command.
    fn json_relay() -> Self {
        Self::start(
            ([127, 0, 0, 1], 0),
            Box::new(|_, motion, datagram| {
                let Some((bytes, _)) = datagram else {
                    return;
                };
                let message: Value = serde_json::from_slice(bytes).unwrap();
                if message["type"] == "control_command" {
                    assert_eq!(message["data"]["command"], "forward");
                    motion.command(1.0, Some(Duration::from_millis(300)));
                }
            }),
        )
    }

    /// A vehicle of RflySim, which reports its true state.
    fn rflysim(vehicle: Vehicle) -> Self {
        let mut sent = Instant::now();
        Self::start(
            ([127, 0, 0, 1], vehicle.port(Port::Control)),
            Box::new(move |socket, motion, datagram| {
                if sent.elapsed() >= Duration::from_millis(20) {
                    sent = Instant::now();
                    let state = Packet::Truth168(Truth168 {
                        copter_id: vehicle.number().into(),
                        vehicle_type: 3,
                        reserved: 0,
                        velocity_m_s: [motion.speed_m_s as f32, 0.0, 0.0],
                        angles_rad: [0.0; 3],
                        quaternion: [1.0, 0.0, 0.0, 0.0],
                        motors_rpm: [0.0; 8],
                        acceleration_m_s2: [0.0; 3],
                        rates_rad_s: [0.0; 3],
                        time_s: 0.0,
                        position_m: [motion.way_m, 0.0, 0.0],
                        gps_position: [0.0; 3],
                    });
                    let to = ([127, 0, 0, 1], vehicle.port(Port::Truth));
                    let _ = socket.send_to(&state.encode(), SocketAddr::from(to));
                }
                match datagram.map(|(bytes, _)| decode(Port::Control, bytes).unwrap()) {
                    // To a place at 1 m/s.
                    Some(Packet::FullCommand(command))
                        if command.modes & ignored::POSITION == 0 =>
                    {
                        motion.fly_to(command.position_m[0].into());
                    }
                    Some(Packet::ShortCommand(ShortCommand { mode: 2, controls })) => {
                        motion.fly_to(controls[0].into());
                    }
                    Some(Packet::FullCommand(command)) => {
                        motion.command(command.velocity_m_s[0].into(), None);
                    }
                    Some(Packet::ShortCommand(ShortCommand { mode, controls })) => {
                        assert_eq!(mode, 1);
                        motion.command(controls[0].into(), None);
                    }
                    _ => {}
                }
            }),
        )
    }
}

impl Drop for ForeignRobot {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the foreign robot got something unexpected");
        }
    }
}

/// The gateway of a robot: the devices and the command of its driver.
struct Gateway {
    devices: &'static str,
    command: String,
    /// Holds its configuration.
    _folder: TempDir,
}

impl Gateway {
    fn new(devices: &'static str, driver: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        fs::write(&file, text).unwrap();
        Self {
            devices,
            command: format!("driver {driver} --config {}", file.display()),
            _folder: folder,
        }
    }

    fn galileo(robot: SocketAddr) -> Self {
        let text = format!(
            r#"
            listen = "127.0.0.1:0"
            [[foreign]]
            robot = "{robot}"
            wheels = "roboclaw:1"
            location = "location:1"
            max_speed_mm_s = 2000
            "#
        );
        Self::new("gateway:0,roboclaw:1,location:1", "galileo", &text)
    }

    fn json_relay(server: SocketAddr) -> Self {
        let text = format!("role = \"control\"\nserver = \"{server}\"");
        Self::new("gateway:0,roboclaw:1", "json-relay", &text)
    }

    fn rflysim(vehicle: Vehicle, mode: &str) -> Self {
        let text = format!(
            r#"
            [[foreign]]
            number = {vehicle}
            mode = "{mode}"
            wheels = "roboclaw:1"
            location = "location:1"
            targets = "drive-to-point:1"
            "#
        );
        let devices = "gateway:0,roboclaw:1,location:1,drive-to-point:1";
        Self::new(devices, "rflysim", &text)
    }

    /// What the vehicle reports arrives at these ports.
    fn apollo(chassis: u16, localization: u16) -> Self {
        let text = format!(
            r#"
            send = []
            [[receive]]
            message = "chassis"
            device = "roboclaw:1"
            bind = "127.0.0.1:{chassis}"
            peer = "127.0.0.1"
            [[receive]]
            message = "localization"
            device = "location:1"
            bind = "127.0.0.1:{localization}"
            peer = "127.0.0.1"
            "#
        );
        Self::new("gateway:0,roboclaw:1,location:1", "apollo", &text)
    }

    /// A mediator with this gateway.
    fn mediator(&self) -> Mediator {
        Mediator::start(&[&format!("{}=amber {}", self.devices, self.command)])
    }

    /// The gateway alone: the test has the place of its mediator.
    fn alone(&self) -> Child {
        Command::new(AMBER)
            .args(self.command.split(' '))
            .env("AMBER_DEVICE", self.devices)
            .env("AMBER_MEDIATOR", "127.0.0.1:9")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Others may run these tests at the same time: each process has vehicles of its own.
fn vehicle(offset: u32) -> Vehicle {
    let number = 1 + offset + 8 * (std::process::id() % 500);
    Vehicle::new(u16::try_from(number).unwrap()).unwrap()
}

const GO: WheelSpeeds = WheelSpeeds::all(1_000);

/// The wheels, for commands that are repeated until the gateway accepts them.
fn repeated(client: &Client) -> Roboclaw {
    client.roboclaw(1).without_waiting(|_| ())
}

/// A client of Amber drives a metre; then no more commands come.
fn one_metre(robot: &ForeignRobot, gateway: &Gateway) {
    let mediator = gateway.mediator();
    let client = Client::connect(mediator.address).unwrap();
    let wheels = repeated(&client);
    wait_for("one metre", || {
        wheels.drive(GO).unwrap();
        (robot.motion().way_m >= 1.0).then_some(())
    });
    robot.stands_within(DEAD_MAN);
    let way_m = robot.motion().way_m;
    assert!((1.0..2.5).contains(&way_m), "{way_m} m");
    client.close();
}

/// The wheels and the pose of the robot are shown to clients.
fn is_shown(robot: &ForeignRobot, gateway: &Gateway) {
    let mediator = gateway.mediator();
    let client = Client::connect(mediator.address).unwrap();
    let (wheels, location) = (repeated(&client), client.location(1));
    let speeds = wait_for("its speed", || {
        wheels.drive(GO).unwrap();
        let speeds = wheels.speeds().ok()?;
        (speeds.front_left_mm_s != 0).then_some(speeds)
    });
    assert_eq!(speeds, GO);
    let pose = wait_for("its pose", || {
        let pose = location.pose().ok()?;
        pose.is_known().then_some(pose)
    });
    let way_m = robot.motion().way_m;
    let shown_m = pose.x_m.hypot(pose.y_m);
    assert!((0.0..=way_m).contains(&shown_m), "{pose:?}, {way_m} m");
    client.close();
}

#[test]
fn a_client_of_amber_drives_a_robot_of_galileo_one_metre() {
    let robot = ForeignRobot::galileo();
    let gateway = Gateway::galileo(robot.address);
    one_metre(&robot, &gateway);
    is_shown(&robot, &gateway);
}

#[test]
fn a_client_of_amber_drives_a_robot_of_a_json_relay_one_metre() {
    let robot = ForeignRobot::json_relay();
    one_metre(&robot, &Gateway::json_relay(robot.address));
}

#[test]
fn a_client_of_amber_drives_a_vehicle_of_rflysim_one_metre() {
    for (offset, mode) in [(0, "full"), (1, "simple")] {
        let vehicle = vehicle(offset);
        let robot = ForeignRobot::rflysim(vehicle);
        let gateway = Gateway::rflysim(vehicle, mode);
        one_metre(&robot, &gateway);
        is_shown(&robot, &gateway);
    }
}

#[test]
fn a_vehicle_of_rflysim_flies_one_metre_to_a_target() {
    for (offset, mode) in [(2, "full"), (3, "simple")] {
        let vehicle = vehicle(offset);
        let robot = ForeignRobot::rflysim(vehicle);
        let gateway = Gateway::rflysim(vehicle, mode);
        let mediator = gateway.mediator();
        let client = Client::connect(mediator.address).unwrap();
        let targets = client.drive_to_point(1);
        wait_for("its pose", || {
            client.location(1).pose().ok()?.is_known().then_some(())
        });
        // North is up on the map, where y of messages points down.
        let target = Target {
            radius_m: 0.1,
            ..Target::new(0.0, -1.1)
        };
        let id = new_order_id();
        targets.go(id, &[target], None).unwrap();
        wait_for("the end of the order", || {
            let state = targets.order(id).ok()?.state();
            (state == OrderState::Arrived).then_some(())
        });
        assert_eq!(targets.next_targets().unwrap().targets, []);
        robot.stands_within(AT_ONCE);
        let way_m = robot.motion().way_m;
        assert!((0.98..1.12).contains(&way_m), "{way_m} m");
        client.close();
    }
}

/// Apollo's bridge has no command that Amber could send. Its vehicle drives a metre by itself, and
/// Amber's clients see it.
#[test]
fn a_client_of_amber_sees_a_vehicle_of_apollo_drive_one_metre() {
    let (chassis_port, localization_port) = (free_port(), free_port());
    let mut sent = Instant::now();
    let mut number = 0;
    let robot = ForeignRobot::start(
        ([127, 0, 0, 1], 0),
        Box::new(move |socket, motion, _| {
            if sent.elapsed() < Duration::from_millis(20) {
                return;
            }
            sent = Instant::now();
            number += 1;
            motion.advance();
            let chassis = Chassis {
                engine_started: Some(true),
                speed_mps: Some(motion.speed_m_s as f32),
                ..Chassis::default()
            };
            let position = PointEnu {
                x: Some(motion.way_m),
                y: Some(2.0),
                z: None,
            };
            let pose = LocalizationEstimate {
                pose: Some(Pose {
                    position: Some(position),
                    heading: Some(0.0),
                    ..Pose::default()
                }),
                ..LocalizationEstimate::default()
            };
            for (port, name, message) in [
                (chassis_port, "Chassis", chassis.encode_to_vec()),
                (
                    localization_port,
                    "LocalizationEstimate",
                    pose.encode_to_vec(),
                ),
            ] {
                for frame in split(Format::default(), name, number, 0.0, message).unwrap() {
                    let _ = socket.send_to(&frame, ("127.0.0.1", port));
                }
            }
        }),
    );
    let gateway = Gateway::apollo(chassis_port, localization_port);
    let mediator = gateway.mediator();
    let client = Client::connect(mediator.address).unwrap();
    let pose = || {
        let pose = client.location(1).pose().ok()?;
        pose.is_known().then_some(pose)
    };
    let begin = wait_for("its pose", pose);
    assert!((begin.x_m, begin.y_m) == (0.0, -2.0), "{begin:?}");
    robot.motion.lock().unwrap().command(0.5, None);
    wait_for("its speed", || {
        (client.roboclaw(1).speeds().ok()? == WheelSpeeds::all(500)).then_some(())
    });
    let seen = wait_for("one metre", || pose().filter(|pose| pose.x_m >= 1.0));
    let way_m = robot.motion().way_m;
    // Not more than a moment behind.
    assert!(
        (seen.x_m..seen.x_m + 0.5).contains(&way_m),
        "{seen:?}, {way_m} m"
    );
    client.close();
}

/// A UDP port that nobody uses now.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// The robot drives by commands of a client while `lose` ends something.
fn stops_after(robot: &ForeignRobot, gateway: &Gateway, lose: impl FnOnce(&Mediator)) {
    let mediator = gateway.mediator();
    let client = Client::connect(mediator.address).unwrap();
    let wheels = repeated(&client);
    wait_for("the foreign robot to move", || {
        wheels.drive(GO).unwrap();
        (robot.motion().speed_m_s > 0.0).then_some(())
    });
    lose(&mediator);
    robot.stands_within(AT_ONCE);
}

#[test]
fn foreign_robots_stop_when_the_gateway_is_stopped_or_the_mediator_is_killed() {
    let galileo = ForeignRobot::galileo();
    let relay = ForeignRobot::json_relay();
    let number = vehicle(4);
    let copter = ForeignRobot::rflysim(number);
    for (robot, gateway) in [
        (&galileo, Gateway::galileo(galileo.address)),
        (&relay, Gateway::json_relay(relay.address)),
        (&copter, Gateway::rflysim(number, "full")),
    ] {
        stops_after(robot, &gateway, |mediator| {
            let stopped = mediator.amber(&["stop", "gateway:0"]).output().unwrap();
            assert!(stopped.status.success(), "{stopped:?}");
        });
        stops_after(robot, &gateway, |mediator| {
            signal(mediator.pid(), Signal::SIGKILL);
        });
    }
}

/// Wheel speeds from client 5 for roboclaw:1, as the mediator passes them on.
fn drive_frame() -> Vec<u8> {
    let speeds = [1, 2, 3, 4].map(|field| [field << 3, 0xe8, 0x07]).concat();
    let length = u8::try_from(speeds.len()).unwrap();
    // DATA, motorsCommand.
    let message = [&[0x10, 1, 0xa2, 1, length], &speeds[..]].concat();
    let header = HeaderBytes::new(Some(device("roboclaw:1")), None);
    let header = [header.as_slice(), &[0x1a, 1, 5]].concat();
    let frame = Frame {
        header: &header,
        message: &message,
    };
    let mut bytes = Vec::new();
    frame.encode(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_gateway_that_loses_its_mediator_stops_the_robot_and_fails() {
    let robot = ForeignRobot::galileo();
    let gateway = Gateway::galileo(robot.address);
    for is_lost in [false, true] {
        let mut process = gateway.alone();
        let mut stdin = process.stdin.take().unwrap();
        wait_for("the foreign robot to move", || {
            stdin.write_all(&drive_frame()).unwrap();
            (robot.motion().speed_m_s > 0.0).then_some(())
        });
        if is_lost {
            drop((process.stdout.take(), process.stderr.take()));
        }
        drop(stdin);
        robot.stands_within(AT_ONCE);
        let status = wait_for("the end of the gateway", || process.try_wait().unwrap());
        assert_eq!(status.code(), Some(i32::from(is_lost)));
    }
}
