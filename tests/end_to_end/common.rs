//! A mediator process, and peers that exchange raw datagrams with it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

pub use amber_harness::PATIENCE;
use amber_harness::Program;
use amber_proto::mediator::{self, DriverState, Reply, Request, reply, request};
use amber_proto::{Device, DeviceMessage, Frame, HeaderBytes, MsgType, SynNum};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prost::Message;
use tempfile::TempDir;

pub const AMBER: &str = env!("CARGO_BIN_EXE_amber");

/// The top folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Polls until there is a result.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub fn is_running(pid: u32) -> bool {
    // A zombie has ended but was not reaped.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}

pub fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

/// `amber demo` whose drivers have found their devices, and the folder of its simulated devices.
pub fn ready_demo() -> (Mediator, TempDir) {
    let (demo, folder) = demo();
    demo.wait_until_ready();
    (demo, folder)
}

/// `amber demo`, and the folder of its simulated devices.
pub fn demo() -> (Mediator, TempDir) {
    start_demo(&[])
}

/// The same with another robot.
pub fn demo_of(robot: &str) -> (Mediator, TempDir) {
    start_demo(&["--robot", robot])
}

/// The same with one more driver that can import the Python package.
pub fn demo_with(driver: &str) -> (Mediator, TempDir) {
    start_demo(&["--driver", driver])
}

/// The same with more drivers.
pub fn demo_with_all(drivers: &[String]) -> (Mediator, TempDir) {
    let drivers = drivers
        .iter()
        .flat_map(|driver| ["--driver", driver.as_str()]);
    start_demo(&drivers.collect::<Vec<_>>())
}

/// The same with another map.
pub fn demo_on(map: &Path, driver: &str) -> (Mediator, TempDir) {
    start_demo(&["--map", map.to_str().unwrap(), "--driver", driver])
}

fn start_demo(more: &[&str]) -> (Mediator, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(AMBER);
    command.env("AMBER_SIM_DIR", folder.path().join("sim"));
    command.env("PYTHONPATH", root().join("client-sdk/python/src"));
    // Tests wait for lines of the log.
    command
        .args(["demo", "--verbose", "--port", "0"])
        .args(more);
    command.current_dir(root());
    (Mediator::run(command), folder)
}

/// The folder of the Rust examples.
pub fn rust_examples() -> PathBuf {
    let folder = Path::new(AMBER).parent().unwrap();
    assert!(
        folder.join("follow_wall").exists(),
        "the examples in drivers/examples/rust are not built; `cargo test --workspace` does it"
    );
    folder.to_owned()
}

/// A running `amber mediator`, or another command that prints its address.
pub struct Mediator {
    program: Program,
    pub address: SocketAddr,
}

impl Mediator {
    /// Starts `amber mediator` with these drivers.
    pub fn start(drivers: &[&str]) -> Self {
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", "127.0.0.1:0"]);
        for driver in drivers {
            command.args(["--driver", driver]);
        }
        Self::run(command)
    }

    /// Starts `amber mediator` with this configuration, stored as `amber.toml` in the folder.
    pub fn configured(text: &str) -> (Self, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("amber.toml");
        fs::write(&path, text).unwrap();
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", "127.0.0.1:0", "-c"]);
        command.arg(&path);
        (Self::run(command), folder)
    }

    /// Starts any command that prints `listening on ADDRESS`.
    pub fn run(mut command: Command) -> Self {
        let program = Program::start(&mut command).unwrap();
        let address = program.after("listening on ").unwrap().parse().unwrap();
        Self { program, address }
    }

    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// The output so far, on both streams.
    pub fn output(&self) -> Vec<String> {
        self.program.output()
    }

    /// Waits until the drivers of the simulated robot have found their devices.
    #[track_caller]
    pub fn wait_until_ready(&self) {
        for device in amber_sim::robot::Device::built_in() {
            self.wait_for_line_with(&["INFO ready: ", &format!(" driver={device}:0")]);
        }
    }

    /// Waits for a line with this text and returns the line.
    #[track_caller]
    pub fn wait_for_line(&self, text: &str) -> String {
        self.wait_for_line_with(&[text])
    }

    #[track_caller]
    pub fn wait_for_line_with(&self, texts: &[&str]) -> String {
        match self.program.line_with(texts) {
            Ok(line) => line,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until it exits.
    pub fn wait(&mut self) -> ExitStatus {
        self.program.wait().unwrap()
    }

    pub fn peer(&self) -> Peer {
        self.peer_at([127, 0, 0, 1])
    }

    /// The same with another address of this machine. Its port is closed once it is dropped: no other
    /// program of the tests uses that address.
    pub fn peer_at(&self, ip: [u8; 4]) -> Peer {
        Peer::new(self.address, ip)
    }

    /// Runs `amber` as a client of this mediator.
    pub fn amber(&self, args: &[&str]) -> Command {
        let mut command = Command::new(AMBER);
        command
            .args(args)
            .env("AMBER_MEDIATOR", self.address.to_string())
            .stdin(Stdio::null());
        command
    }

    pub fn describe(&self, device: &str) -> mediator::Driver {
        let device: Device = device.parse().unwrap();
        let device = mediator::Device {
            r#type: device.device_type.0,
            id: device.id.0,
        };
        match self.peer().ask(request::What::DescribeDriver(device)) {
            reply::What::Driver(driver) => driver,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a driver is in a state.
    #[track_caller]
    pub fn wait_for_state(&self, device: &str, state: DriverState) -> mediator::Driver {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let driver = self.describe(device);
            if driver.state() == state {
                return driver;
            }
            let log = || self.output().join("\n");
            assert!(
                Instant::now() < deadline,
                "{device} is not {state:?}: {driver:?}\n{}",
                log()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn statistics(&self) -> mediator::Statistics {
        match self
            .peer()
            .ask(request::What::GetStatistics(mediator::GetStatistics {}))
        {
            reply::What::Statistics(statistics) => statistics,
            other => panic!("{other:?}"),
        }
    }

    pub fn dropped(&self, name: &str) -> u64 {
        let statistics = self.statistics();
        statistics
            .dropped
            .iter()
            .find(|counter| counter.name == name)
            .unwrap()
            .value
    }

    /// The number of clients that have left.
    pub fn gone(&self) -> u64 {
        self.counted("clients_gone")
    }

    pub fn counted(&self, name: &str) -> u64 {
        let counters = self.statistics().counters;
        counters
            .iter()
            .find(|counter| counter.name == name)
            .unwrap()
            .value
    }

    pub fn reload(&self) -> reply::What {
        self.peer().ask(request::What::Reload(mediator::Reload {}))
    }
}

impl Drop for Mediator {
    fn drop(&mut self) {
        if self.program.try_wait().is_ok_and(|status| status.is_none()) {
            signal(self.pid(), Signal::SIGTERM);
            self.wait();
        }
        if thread::panicking() {
            eprintln!("the mediator printed:\n{}", self.output().join("\n"));
        }
    }
}

/// A running command and its output.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    notes: Receiver<String>,
}

impl Running {
    pub fn start(mediator: &Mediator, args: &[&str]) -> Self {
        let mut command = mediator.amber(args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let notes = lines_of(child.stderr.take().unwrap());
        Self {
            child,
            lines,
            notes,
        }
    }

    #[cfg(feature = "web")]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on stderr.
    #[track_caller]
    pub fn note(&mut self) -> String {
        self.notes.recv_timeout(PATIENCE).expect("a note")
    }

    /// The next line.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// Sends Ctrl-C.
    pub fn interrupt(mut self) {
        signal(self.child.id(), Signal::SIGINT);
        self.wait();
    }

    /// Closes the pipe that it prints to.
    pub fn close_pipe(mut self) {
        self.lines = mpsc::channel().1;
        self.wait();
    }

    fn wait(&mut self) {
        let status = wait_for("its end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn lines_of(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    // Ends and closes the pipe when the receiver is dropped.
    thread::spawn(move || {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line))
    });
    lines
}

/// A client that sends only the raw datagrams of a test.
pub struct Peer {
    socket: UdpSocket,
}

impl Peer {
    fn new(mediator: SocketAddr, ip: [u8; 4]) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::from(ip), 0)).unwrap();
        socket.connect(mediator).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    pub fn send_datagram(&self, bytes: &[u8]) {
        self.socket.send(bytes).unwrap();
    }

    pub fn send(&self, device: Device, message: &[u8]) {
        self.send_datagram(&frame(Some(device), message));
    }

    /// The next datagram.
    #[track_caller]
    pub fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 16];
        let length = self.socket.recv(&mut buffer).expect("a datagram");
        buffer.truncate(length);
        buffer
    }

    /// Whether a datagram is waiting.
    pub fn has_datagram(&self) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let waits = self.socket.peek(&mut [0]).is_ok();
        self.socket.set_nonblocking(false).unwrap();
        waits
    }

    /// Repeats a message until an echo returns, because a driver may still be starting.
    #[track_caller]
    pub fn wait_for_echo(&self, device: Device, message: &[u8]) {
        let expected = frame(Some(device), message);
        wait_for("an echo", || {
            self.send(device, message);
            self.socket
                .set_read_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            let mut buffer = vec![0; 1 << 16];
            let answer = self
                .socket
                .recv(&mut buffer)
                .ok()
                .map(|n| buffer[..n].to_vec());
            self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
            answer.filter(|answer| *answer == expected)
        });
        // Late echoes of earlier tries.
        while self.has_datagram() {
            self.receive();
        }
    }

    /// Sends a request to the mediator itself.
    #[track_caller]
    pub fn ask(&self, what: request::What) -> reply::What {
        let mut message = mediator::DriverMsg::data();
        message.set_syn(Some(SynNum(7)));
        message.request = Some(Request { what: Some(what) });
        self.send(Device::MEDIATOR, &message.encode_to_vec());
        loop {
            let datagram = self.receive();
            let frame = Frame::from_datagram(&datagram).unwrap();
            let message = mediator::DriverMsg::decode(frame.message).unwrap();
            if let Some(Reply { what: Some(what) }) = message.reply {
                return what;
            }
        }
    }

    /// Announces the client, so that the mediator may send messages to it.
    pub fn announce(&self) {
        self.send(Device::MEDIATOR, &message(MsgType::Ping));
        assert_eq!(
            self.receive(),
            frame(Some(Device::MEDIATOR), &message(MsgType::Pong))
        );
    }
}

pub fn frame(device: Option<Device>, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = HeaderBytes::new(device, None);
    Frame {
        header: header.as_slice(),
        message,
    }
    .encode(&mut bytes)
    .unwrap();
    bytes
}

pub fn message(kind: MsgType) -> Vec<u8> {
    mediator::DriverMsg::of_kind(kind).encode_to_vec()
}

pub fn device(text: &str) -> Device {
    text.parse().unwrap()
}

/// The folder of the tests in a browser; `None` if there is no browser here.
pub(crate) fn browser_tests() -> Option<PathBuf> {
    let script = root().join("client-sdk/dashboard/tests/browser");
    let works = Command::new("node")
        .arg("check.mjs")
        .current_dir(&script)
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP pages in a browser: needs chromium and `npm install` in \
             client-sdk/dashboard/tests/browser"
        );
    }
    works.then_some(script)
}

/// Whether a server answers a close frame. Without the answer, a browser reports a lost connection.
pub(crate) fn is_close_answered(socket: &mut tungstenite::WebSocket<TcpStream>) -> bool {
    socket.close(None).unwrap();
    loop {
        match socket.read() {
            Ok(tungstenite::Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => {
                return true;
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
