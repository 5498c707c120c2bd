//! Programs of all kinds on one robot: one of them drives, and each other one is told who does.
//! `scripts/fleet` checks the same for operators of a fleet.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;
use amber_gateways::apollo::split::{Format, split};
use amber_proto::DeviceMessage;
use amber_proto::roboclaw::DriverMsg;
use prost::Message as _;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::common::{Running, demo_with_all, wait_for};
use crate::driving::{FAR, robot_of};
use crate::robot::{Robot, drives, stands};

/// The time between two commands of a program.
const PERIOD: Duration = Duration::from_millis(50);
/// On a busy machine, some are told late.
const TOLD_WITHIN: Duration = Duration::from_secs(60);
/// Wheels turn back by less than this while they change their speed, in mm/s.
const TOLERANCE_MM_S: f64 = 20.0;

/// A way to turn on the spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Left,
    Right,
}

impl Turn {
    /// 1 for a turn to the left, as in mathematics.
    fn sign(self) -> f64 {
        match self {
            Self::Left => 1.0,
            Self::Right => -1.0,
        }
    }

    fn speeds(self) -> [i32; 2] {
        match self {
            Self::Left => [-100, 100],
            Self::Right => [100, -100],
        }
    }
}

/// A program that can drive the robot.
trait Program: Send {
    /// A part of the name that others see.
    fn name(&self) -> &'static str;

    /// Commands a turn, for a moment.
    fn turn(&mut self, robot: &Robot, turn: Turn);

    /// If it has ended by itself, the next turn starts it again: a goto gives up at once while the robot
    /// does not know its pose for a moment.
    fn forget_end(&mut self) {}

    /// What it has been told about a refusal.
    fn told(&mut self, robot: &Robot) -> Option<String>;

    /// It no longer drives.
    fn end(&mut self) {}

    /// Whether it turns on the spot.
    fn turns(&self) -> bool {
        true
    }
}

fn local_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn status(robot: &Robot, gateway: &str) -> Option<Value> {
    let mut command = robot.demo.amber(&["call", gateway, "status", "--json"]);
    serde_json::from_slice(&command.output().ok()?.stdout).ok()
}

fn listening(robot: &Robot, gateway: &str, index: usize) -> SocketAddr {
    wait_for("the gateway", || {
        let status = status(robot, gateway)?;
        status["listening"][index].as_str()?.parse().ok()
    })
}

/// Why a gateway does not obey a peer: for protocols that have no answer to a command.
fn refused_in_status(robot: &Robot, gateway: &str) -> Option<String> {
    let status = status(robot, gateway)?;
    let mut peers = status["peers"].as_array()?.iter();
    let refused = peers.find_map(|peer| peer["refused"].as_str())?;
    let is_driving = |peer: &Value| peer["drives"] == true;
    assert!(
        !status["peers"].as_array()?.iter().any(is_driving),
        "{status}"
    );
    Some(refused.to_owned())
}

/// A client of the gateway for Galileo. It is told in a text.
struct Galileo {
    socket: UdpSocket,
    to: SocketAddr,
    id: [u8; 4],
}

impl Galileo {
    fn connect(robot: &Robot) -> Self {
        let to = listening(robot, "gateway:0", 0);
        let socket = local_socket();
        let connect = format!("\x01udp://{to}/cmd_vel?token=undefined\0");
        socket.send_to(connect.as_bytes(), to).unwrap();
        let reply = wait_for("a session", || {
            let mut buffer = [0; 2048];
            let length = socket.recv(&mut buffer).ok()?;
            serde_json::from_slice::<Value>(&buffer[6..length]).ok()
        });
        let id = serde_json::from_value(reply["client_id"].clone()).unwrap();
        Self { socket, to, id }
    }

    fn send(&self, op: u8, body: &[u8]) {
        let frame = [&[2], &self.id[..], &[op], body].concat();
        self.socket.send_to(&frame, self.to).unwrap();
    }
}

impl Program for Galileo {
    fn name(&self) -> &'static str {
        "galileo 127.0.0.1:"
    }

    fn turn(&mut self, _robot: &Robot, turn: Turn) {
        let z = 0.5 * turn.sign();
        self.send(1, json!({ "angular": { "z": z } }).to_string().as_bytes());
    }

    fn told(&mut self, _robot: &Robot) -> Option<String> {
        let mut buffer = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            if buffer[5] == 9 {
                self.send(10, b"");
            } else if let Ok(text) = serde_json::from_slice::<Value>(&buffer[6..length])
                && let Some(why) = text["refused"].as_str()
            {
                return Some(why.to_owned());
            }
        }
        None
    }
}

/// A control of the JSON relay.
struct JsonRelay {
    socket: UdpSocket,
    to: SocketAddr,
}

impl JsonRelay {
    fn connect(robot: &Robot) -> Self {
        let (socket, to) = (local_socket(), listening(robot, "gateway:1", 0));
        let control = Self { socket, to };
        control.send(json!({
            "type": "register", "data": { "client_type": "control", "client_id": "c1" },
        }));
        control
    }

    fn send(&self, message: Value) {
        let text = message.to_string();
        self.socket.send_to(text.as_bytes(), self.to).unwrap();
    }
}

impl Program for JsonRelay {
    fn name(&self) -> &'static str {
        "json-relay 127.0.0.1:"
    }

    fn turn(&mut self, _robot: &Robot, turn: Turn) {
        let command = match turn {
            Turn::Left => "left",
            Turn::Right => "right",
        };
        let data = json!({ "command": command, "timestamp": 5 });
        self.send(json!({ "type": "control_command", "data": data }));
    }

    fn told(&mut self, robot: &Robot) -> Option<String> {
        refused_in_status(robot, "gateway:1")
    }
}

/// A program of Apollo that sends wheel speeds.
struct Apollo {
    socket: UdpSocket,
    to: SocketAddr,
    last_id: u32,
}

impl Program for Apollo {
    fn name(&self) -> &'static str {
        "apollo 127.0.0.1:"
    }

    fn turn(&mut self, _robot: &Robot, turn: Turn) {
        let [left, right] = turn.speeds();
        let mut message = DriverMsg::data();
        message.motors_command = Some(WheelSpeeds::sides(left, right).into());
        self.last_id += 1;
        let (id, bytes) = (self.last_id, message.encode_to_vec());
        for frame in split(Format::default(), "amber.2.0", id, 0.0, bytes).unwrap() {
            self.socket.send_to(&frame, self.to).unwrap();
        }
    }

    fn told(&mut self, robot: &Robot) -> Option<String> {
        refused_in_status(robot, "gateway:3")
    }
}

/// A program of RflySim.
struct RflySim(UdpSocket);

impl RflySim {
    fn command(&self, mode: i32, controls: [f32; 4]) {
        let mut bytes = 1_234_567_890_i32.to_le_bytes().to_vec();
        bytes.extend(mode.to_le_bytes());
        bytes.extend(controls.iter().flat_map(|number| number.to_le_bytes()));
        self.0.send(&bytes).unwrap();
    }
}

impl Program for RflySim {
    fn name(&self) -> &'static str {
        "rflysim"
    }

    fn turn(&mut self, _robot: &Robot, turn: Turn) {
        self.command(9, [1.0, 0.0, 0.0, 0.0]);
        // Clockwise.
        let rate = -0.5 * turn.sign();
        self.command(1, [0.0, 0.0, 0.0, rate as f32]);
    }

    fn told(&mut self, robot: &Robot) -> Option<String> {
        refused_in_status(robot, "gateway:4")
    }
}

/// A page or a program that speaks JSON over a WebSocket. It reads what arrives as long as it exists, as
/// all programs do: pings want answers, and whoever reads nothing for seconds is disconnected.
struct Socket {
    name: &'static str,
    socket: Arc<Mutex<WebSocket<TcpStream>>>,
    turn: fn(Turn) -> Value,
    /// The last refusal.
    told: Arc<Mutex<Option<String>>>,
}

impl Socket {
    fn connect(
        name: &'static str,
        (url, address): (&str, SocketAddr),
        turn: fn(Turn) -> Value,
        refusal: fn(&Value) -> Option<&Value>,
    ) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let (mut socket, _) = tungstenite::client(url, stream).unwrap();
        socket.get_mut().set_nonblocking(true).unwrap();
        let socket = Arc::new(Mutex::new(socket));
        let told = Arc::<Mutex<Option<String>>>::default();
        let (open, heard) = (Arc::downgrade(&socket), Arc::clone(&told));
        thread::spawn(move || {
            while let Some(socket) = open.upgrade() {
                let read = socket.lock().unwrap().read();
                match read {
                    Ok(Message::Text(text)) => {
                        let message: Value = serde_json::from_str(&text).unwrap();
                        if let Some(why) = refusal(&message) {
                            *heard.lock().unwrap() = why.as_str().map(str::to_owned);
                        }
                    }
                    Ok(_) => {}
                    Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                        thread::sleep(Duration::from_millis(10));
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        });
        Self {
            name,
            socket,
            turn,
            told,
        }
    }

    fn say(&self, message: &Value) {
        let mut socket = self.socket.lock().unwrap();
        socket.send(message.to_string().into()).unwrap();
    }
}

impl Program for Socket {
    fn name(&self) -> &'static str {
        self.name
    }

    fn turn(&mut self, _robot: &Robot, turn: Turn) {
        self.say(&(self.turn)(turn));
    }

    fn told(&mut self, _robot: &Robot) -> Option<String> {
        self.told.lock().unwrap().take()
    }
}

/// A command of `amber`. It is told by its error.
struct Command {
    name: &'static str,
    args: fn(Turn) -> Vec<String>,
    running: Option<Child>,
}

impl Program for Command {
    fn name(&self) -> &'static str {
        self.name
    }

    fn turn(&mut self, robot: &Robot, turn: Turn) {
        if self.running.is_none() {
            let args = (self.args)(turn);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let mut command = robot.demo.amber(&args);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            self.running = Some(command.spawn().unwrap());
        }
    }

    fn forget_end(&mut self) {
        if (self.running.as_mut()).is_some_and(|it| it.try_wait().unwrap().is_some()) {
            self.running = None;
        }
    }

    fn told(&mut self, _robot: &Robot) -> Option<String> {
        let ended = self.running.as_mut()?.try_wait().unwrap()?;
        let mut running = self.running.take()?;
        let mut error = String::new();
        running.stderr.take()?.read_to_string(&mut error).unwrap();
        assert!(!ended.success(), "{}", self.name);
        Some(error)
    }

    fn end(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().unwrap();
            running.wait().unwrap();
        }
    }

    fn turns(&self) -> bool {
        self.name == "amber drive"
    }
}

/// The holder of the lease of the wheels.
fn holder(robot: &Robot) -> Option<String> {
    let motions = robot.demo.describe("roboclaw:0").motions;
    motions.into_iter().find_map(|motion| motion.holder)
}

#[test]
fn one_program_drives_and_each_other_one_is_told_who_does() {
    let folder = tempfile::tempdir().unwrap();
    let apollo = folder.path().join("apollo.toml");
    let raw = "send = []\n[[receive]]\nmessage = \"raw\"\ndevice = \"roboclaw:0\"\nbind = \"127.0.0.1:0\"\n\
               peer = \"127.0.0.1\"\n";
    std::fs::write(&apollo, raw).unwrap();
    // Others may run this test at the same time: each process has a vehicle of its own.
    let vehicle = 4000 + std::process::id() % 500;
    let gateways = [
        "gateway:0=amber driver galileo --listen 127.0.0.1:0".to_owned(),
        "gateway:1=amber driver json-relay --listen 127.0.0.1:0".to_owned(),
        "gateway:2=amber driver rosbridge --listen 127.0.0.1:0".to_owned(),
        format!(
            "gateway:3=amber driver apollo --config {}",
            apollo.display()
        ),
        format!("gateway:4=amber driver rflysim --vehicle {vehicle} --allow-arm"),
    ];
    let robot = robot_of(Robot::of(demo_with_all(&gateways)));
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let mut dashboard = Running::start(&robot.demo, &["dashboard", "--listen", "127.0.0.1:0"]);
    let line = dashboard.line();
    let page: SocketAddr = line.trim().rsplit('/').next().unwrap().parse().unwrap();

    let rosbridge = listening(&robot, "gateway:2", 0);
    let rflysim = UdpSocket::bind("127.0.0.1:0").unwrap();
    rflysim.connect(listening(&robot, "gateway:4", 0)).unwrap();
    let hello = Socket::connect(
        "dashboard 127.0.0.1",
        (&format!("ws://{page}/socket"), page),
        |turn| {
            let [left, right] = turn.speeds();
            json!({ "t": "drive", "left": left, "right": right, "guard": false })
        },
        |message| (message["t"] == "refused").then_some(&message["text"]),
    );
    hello.say(&json!({ "t": "hello" }));
    let mut programs: Vec<Box<dyn Program>> = vec![
        Box::new(Galileo::connect(&robot)),
        Box::new(JsonRelay::connect(&robot)),
        Box::new(Socket::connect(
            "rosbridge 127.0.0.1:",
            (&format!("ws://{rosbridge}/"), rosbridge),
            |turn| {
                let msg = json!({ "angular": { "z": 0.5 * turn.sign() } });
                json!({ "op": "publish", "topic": "/cmd_vel", "msg": msg })
            },
            |message| (message["op"] == "status").then_some(&message["msg"]),
        )),
        Box::new(Apollo {
            socket: local_socket(),
            to: listening(&robot, "gateway:3", 0),
            last_id: 0,
        }),
        Box::new(RflySim(rflysim)),
        Box::new(hello),
        Box::new(Command {
            name: "amber drive",
            args: |turn| {
                let [left, right] = turn.speeds().map(|speed| speed.to_string());
                let args = ["drive", "--left", &left, "--right", &right, "--for", "600s"];
                args.map(str::to_owned).to_vec()
            },
            running: None,
        }),
        Box::new(Command {
            name: "amber goto",
            args: |_| FAR.map(str::to_owned).to_vec(),
            running: None,
        }),
    ];
    for _ in 0..programs.len() {
        let first = programs.remove(0);
        let first = drives_alone(&robot, first, &mut programs);
        programs.push(first);
    }
}

/// Ends the program that drives, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One program drives until all others have tried to, and have been told who drives.
fn drives_alone(
    robot: &Robot,
    mut first: Box<dyn Program>,
    others: &mut [Box<dyn Program>],
) -> Box<dyn Program> {
    let (name, turns) = (first.name(), first.turns());
    wait_for("nobody drives", || {
        (holder(robot).is_none() && stands(&robot.state())).then_some(())
    });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let driving = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                first.forget_end();
                first.turn(robot, Turn::Left);
                thread::sleep(PERIOD);
            }
            first.end();
            first
        });
        let over = Over(&is_over);
        wait_for(&format!("{name} drives"), || {
            let has_lease = holder(robot).is_some_and(|it| it.contains(name));
            (has_lease && drives(&robot.state())).then_some(())
        });
        let mut waiting: Vec<_> = others.iter_mut().collect();
        let deadline = Instant::now() + TOLD_WITHIN;
        while !waiting.is_empty() {
            waiting.retain_mut(|other| {
                other.turn(robot, Turn::Right);
                let told = other.told(robot);
                // An earlier text may be about the program that has driven before.
                let is_told = told.is_some_and(|told| told.contains(name));
                if is_told {
                    other.end();
                }
                !is_told
            });
            let now = holder(robot).unwrap_or_default();
            assert!(now.contains(name), "{now} drives instead of {name}");
            let wheels = robot.state().wheels_mm_per_s;
            let is_turning_back =
                wheels.front_left > TOLERANCE_MM_S || wheels.front_right < -TOLERANCE_MM_S;
            assert!(!(turns && is_turning_back), "{name}: {wheels:?}");
            let names: Vec<_> = waiting.iter().map(|it| it.name()).collect();
            assert!(
                Instant::now() < deadline,
                "not told that {name} drives: {names:?}"
            );
        }
        drop(over);
        driving.join().unwrap()
    })
}
