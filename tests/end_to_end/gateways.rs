//! Gateways with real processes: programs for other robots drive the robot of the demo.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use amber_sim::control::SimulationState;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::{demo_with, signal, wait_for};
use crate::robot::{AT_ONCE_S, Robot, drives, stands};

/// The life of a motion command with braking, and a margin for a busy machine.
const DEAD_MAN_S: f64 = 0.5 + AT_ONCE_S;

/// The demo with the gateway for Galileo on a free port.
struct Galileo {
    robot: Robot,
    address: SocketAddr,
}

impl Galileo {
    fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    fn at(listen: SocketAddr) -> Self {
        let driver = format!("gateway:0=amber driver galileo --listen {listen}");
        let robot = Robot::of(demo_with(&driver));
        let address = wait_for("the gateway", || {
            let status = status(&robot)?;
            status["listening"][0].as_str()?.parse().ok()
        });
        Self { robot, address }
    }

    fn connect(&self, path: &str) -> Client {
        Client::connect(self.address, path)
    }
}

fn status(robot: &Robot) -> Option<Value> {
    let mut command = robot.demo.amber(&["call", "gateway", "status", "--json"]);
    serde_json::from_slice(&command.output().ok()?.stdout).ok()
}

/// A client as the TypeScript listing: it sends PINGs, answers PINGs and takes frames.
struct Client {
    socket: UdpSocket,
    to: SocketAddr,
    id: [u8; 4],
}

impl Client {
    fn connect(to: SocketAddr, path: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let connect = format!("\x01udp://{to}/{path}?token=undefined\0");
        socket.send_to(connect.as_bytes(), to).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut buffer = [0; 2048];
        let length = socket.recv(&mut buffer).expect("an answer within 5 s");
        // Strict: nothing behind the JSON.
        let reply: Value = serde_json::from_slice(&buffer[6..length]).unwrap();
        assert_eq!(reply["status"], true, "{reply}");
        let id = serde_json::from_value(reply["client_id"].clone()).unwrap();
        let client = Self { socket, to, id };
        client.send(9, b"");
        client
    }

    fn send(&self, op: u8, body: &[u8]) {
        let frame = [&[2], &self.id[..], &[op], body].concat();
        self.socket.send_to(&frame, self.to).unwrap();
    }

    fn text(&self, message: &Value) {
        self.send(1, message.to_string().as_bytes());
    }

    fn drive(&self, x_m_s: f64, z_rad_s: f64) {
        self.text(&json!({ "linear": { "x": x_m_s }, "angular": { "z": z_rad_s } }));
    }

    /// The next frame that is neither PING nor PONG: its operation and its body.
    fn next(&self) -> (u8, Vec<u8>) {
        let mut buffer = [0; 2048];
        loop {
            let length = self.socket.recv(&mut buffer).expect("a frame within 5 s");
            assert_eq!((buffer[0], &buffer[1..5]), (2, &self.id[..]));
            match buffer[5] {
                9 => self.send(10, b""),
                10 => {}
                op => return (op, buffer[6..length].to_vec()),
            }
        }
    }

    fn next_text(&self) -> Value {
        let (op, body) = self.next();
        assert_eq!(op, 1);
        serde_json::from_slice(&body).unwrap()
    }

    /// Waits for the CLOSE of the server.
    fn until_closed(&self) {
        while self.next().0 != 8 {}
    }
}

/// Lets the robot drive until it is fast, by commands at 10 Hz.
fn driving(robot: &Robot, client: &Client) {
    robot.until("it drives", |state| {
        client.drive(0.3, 0.0);
        drives(state)
    });
}

fn stops_within(robot: &Robot, limit_s: f64, begin: &SimulationState) {
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - begin.time_s;
    assert!(took_s < limit_s, "{took_s} s");
}

#[test]
fn a_foreign_client_drives_one_metre() {
    let galileo = Galileo::start();
    let robot = &galileo.robot;
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let begin = robot.state();
    let client = galileo.connect("cmd_vel");
    let way_m = |state: &SimulationState| (state.x_m - begin.x_m).hypot(state.y_m - begin.y_m);
    robot.until("one metre", |state| {
        client.drive(0.3, 0.0);
        way_m(state) >= 0.95
    });
    client.drive(0.0, 0.0);
    let end = robot.until("it stands", stands);
    let moved_m = way_m(&end);
    // Between two checks of the robot it keeps moving.
    assert!((0.95..1.6).contains(&moved_m), "{moved_m} m");
    assert_eq!(end.contacts, 0);

    let status = status(robot).unwrap();
    assert_eq!(
        (&status["protocol"], &status["sessions"]),
        (&json!("galileo"), &json!(1))
    );
    let peer = &status["peers"][0];
    assert_eq!(peer["purpose"], "cmd_vel");
    let address = client.socket.local_addr().unwrap().to_string();
    assert_eq!(peer["address"], address);
    assert_eq!(status["bad"], json!(0));
}

#[test]
fn the_wheels_stop_when_the_foreign_client_is_silent_or_closes() {
    let galileo = Galileo::start();
    let robot = &galileo.robot;
    let client = galileo.connect("cmd_vel");
    driving(robot, &client);
    // It sends PINGs, but no commands.
    let silent = robot.state();
    client.send(9, b"");
    stops_within(robot, DEAD_MAN_S, &silent);
    driving(robot, &client);
    client.send(8, b"");
    let closed = robot.state();
    stops_within(robot, AT_ONCE_S, &closed);
    wait_for("the end of the session", || {
        (status(robot)?["sessions"] == 0).then_some(())
    });
}

#[test]
fn the_wheels_stop_when_the_gateway_ends_and_the_client_notices() {
    let galileo = Galileo::start();
    let robot = &galileo.robot;
    let client = galileo.connect("cmd_vel");
    driving(robot, &client);
    // Stopped by the mediator: it says good-bye.
    assert!(robot.amber(&["stop", "gateway:0"]));
    let stopped = robot.state();
    client.until_closed();
    stops_within(robot, AT_ONCE_S, &stopped);
}

#[test]
fn the_wheels_stop_when_the_gateway_is_killed_and_old_sessions_are_closed() {
    // The next gateway must have the same port.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap();
    drop(free);
    let galileo = Galileo::at(listen);
    let robot = &galileo.robot;
    let client = galileo.connect("cmd_vel");
    driving(robot, &client);
    let before = robot.demo.describe("gateway:0").pid();
    signal(before, Signal::SIGKILL);
    let killed = robot.state();
    // The mediator notices that the session's client is gone, or the driver of the wheels that no
    // command comes.
    stops_within(robot, 8.0, &killed);
    wait_for("a new gateway", || {
        (robot.demo.describe("gateway:0").pid() != before && status(robot).is_some()).then_some(())
    });
    // It does not know the session.
    client.send(9, b"");
    client.until_closed();
}

#[test]
fn foreign_clients_get_scans_poses_and_messages() {
    let galileo = Galileo::start();
    let scan = galileo.connect("scan").next_text();
    assert!(scan["ranges"].as_array().unwrap().len() > 100);
    assert!(scan["angle_min"].as_f64().unwrap() < -1.0);
    let odometry = galileo.connect("odom").next_text();
    assert_eq!(odometry["twist"]["twist"]["linear"]["x"], json!(0.0));
    let imu = galileo.connect("imu").next_text();
    let up = imu["linear_acceleration"]["z"].as_f64().unwrap();
    assert!((9.0..11.0).contains(&up), "{imu}");

    let wheels = Client::connect(galileo.address, "roboclaw/0");
    let status = galileo
        .robot
        .demo
        .amber(&["status", "gateway:0", "--json"])
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let address = wheels.socket.local_addr().unwrap().to_string();
    let sessions = status["gateway"]["sessions"].as_array().unwrap();
    let session = sessions.iter().find(|it| it["peer"] == json!(address));
    assert_eq!(session.unwrap()["purpose"], "roboclaw/0", "{status}");

    wheels.text(&json!({ "synNum": 7, "currentSpeedRequest": true }));
    let answer = wheels.next_text();
    assert_eq!(answer["ackNum"], 7);
    assert_eq!(answer["currentSpeed"]["frontLeftSpeed"], 0);
}

#[test]
fn a_scan_travels_as_binary_records() {
    let galileo = Galileo::start();
    let client = galileo.connect("amber/4/0");
    // DATA, synNum 1, get_single_scan, in one record with index 0.
    let message = b"\x10\x01\x18\x01\xc0\x02\x01";
    let record = [&[0, 0, 0, 0, 0, 7], &message[..]].concat();
    client.send(2, &record);
    let mut joined = Vec::new();
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < Duration::from_secs(20));
        let (op, body) = client.next();
        assert_eq!(op, 2);
        let head = u16::from_be_bytes([body[4], body[5]]);
        let length = usize::from(head & 0x7fff);
        joined.extend_from_slice(&body[6..6 + length]);
        if head & 0x8000 == 0 {
            break;
        }
    }
    let answer: amber_proto::hokuyo::DriverMsg = prost::Message::decode(&*joined).unwrap();
    assert_eq!(answer.ack_num, Some(1));
    assert_eq!(answer.scan.unwrap().distances.len(), 682);
}

#[test]
fn a_taken_port_is_explained() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let driver = format!("gateway:0=amber driver galileo --listen {address}");
    let robot = Robot::of(demo_with(&driver));
    let port = address.port();
    let expected = format!("another program uses UDP port {port} of 127.0.0.1");
    wait_for("the reason", || {
        let troubles = robot.demo.describe("gateway:0").troubles;
        troubles
            .iter()
            .find(|it| it.text.contains(&expected))
            .map(drop)
    });
    drop(other);
    wait_for("the port", || {
        let is_open = status(&robot)?["listening"][0] == json!(address.to_string());
        is_open.then_some(())
    });
}
