//! Processes of a fleet on this machine: a mediator with its drivers, a robot, a Zenoh router.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use amber_harness::PATIENCE;
use amber_harness::Program;
use amber_zenoh::problem::Problem;
use amber_zenoh::stamp::{DataStamp, OrderStamp};
use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;
use zenoh::liveliness::LivelinessToken;
use zenoh::sample::SampleKind;
use zenoh::{Config, Session, Wait};

pub(crate) mod cable;
pub(crate) mod world;

/// Polls until there is a result.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The binary `amber`: `AMBER` names it, or it was built in the main workspace.
pub(crate) fn amber() -> Command {
    Command::new(amber_path())
}

pub(crate) fn amber_path() -> PathBuf {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/debug/amber");
    let path = std::env::var_os("AMBER").map_or_else(|| PathBuf::from(usual), PathBuf::from);
    let hint = "hint: `cargo build -p amber-mediator --bin amber` in the main workspace";
    assert!(path.is_file(), "{} is missing\n{hint}", path.display());
    path
}

/// A process and what it prints.
pub(crate) struct Process(Program);

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(Program::start(&mut command).unwrap())
    }

    /// Waits for a line with this text, and returns what follows the text.
    #[track_caller]
    pub(crate) fn line(&self, text: &str) -> String {
        self.0.after(text).unwrap()
    }

    /// Sends a signal, such as `KILL`.
    pub(crate) fn signal(&self, signal: &str) {
        kill(self.0.pid(), signal);
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.pid()
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.0.output().join("\n"));
        }
    }
}

pub(crate) fn kill(pid: u32, signal: &str) {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, &pid.to_string()]);
    assert!(kill.status().unwrap().success());
}

/// A mediator with a driver for `dummy:0`.
pub(crate) fn dummy_mediator() -> (Process, String) {
    mediator_with("dummy:0=amber driver dummy")
}

pub(crate) fn mediator_with(driver: &str) -> (Process, String) {
    let mut command = amber();
    command.args(["mediator", "--listen", "127.0.0.1:0"]);
    command.args(["--driver", driver]);
    listening(Process::start(command))
}

/// `amber-zenoh call` and the like, for the robot r2.
pub(crate) fn private(router: &Router, verb: &str, args: &[&str]) -> std::process::Output {
    let folder = amber_path();
    let folder = folder.parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = amber_zenoh();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.args([verb, "--robot", "r2", "--operator", "alice"]);
    command.args(["--connect", &router.endpoint]);
    command.args(args).output().unwrap()
}

/// The simulated robot with all its drivers, and the folder of its devices.
pub(crate) fn demo() -> (Process, String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = amber();
    // Tests wait for lines of the log.
    command.args(["demo", "--verbose", "--port", "0"]);
    command.env("AMBER_SIM_DIR", folder.path().join("sim"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let (demo, address) = listening(Process::start(command));
    (demo, address, folder)
}

fn listening(process: Process) -> (Process, String) {
    let address = process.line("listening on ");
    (process, address)
}

/// `amber-zenoh robot`.
pub(crate) fn robot(name: &str, mediator: &str, router: &Router) -> Process {
    let mut command = amber_zenoh();
    command.args(["robot", "--name", name, "--mediator", mediator]);
    command.args(["--connect", &router.endpoint]);
    Process::start(command)
}

/// The same with a configuration file.
pub(crate) fn robot_with(name: &str, mediator: &str, router: &Router, file: &Path) -> Process {
    let mut command = amber_zenoh();
    command.args(["robot", "--name", name, "--mediator", mediator]);
    command
        .args(["--connect", &router.endpoint, "--config"])
        .arg(file);
    Process::start(command)
}

/// What `amber-zenoh seat` prints about the robot r1.
pub(crate) fn seat(router: &Router, who: &str, args: &[&str]) -> String {
    let mut command = amber_zenoh();
    command.args(["seat", "--robot", "r1", "--operator", who]);
    command.args(["--connect", &router.endpoint]).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The true state of the simulated robot in the folder of [`demo`].
pub(crate) fn truth(folder: &TempDir) -> Value {
    let mut command = amber();
    command.args(["sim", "state", "--json", "--dir"]);
    let output = command.arg(folder.path().join("sim")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same with the certificate of this name in a folder.
pub(crate) fn secure_robot(
    name: &str,
    certificate: &str,
    folder: &Path,
    mediator: &str,
    router: &Router,
) -> Process {
    let mut command = amber_zenoh();
    command.args(["robot", "--name", name, "--mediator", mediator]);
    command.args(["--connect", &router.endpoint]);
    command.args(["--config", &settings(name, certificate, folder)]);
    Process::start(command)
}

/// Writes a file with the settings for a certificate of this folder. Returns its path.
pub(crate) fn settings(name: &str, certificate: &str, folder: &Path) -> String {
    let file = folder.join(name).with_extension("toml");
    let path = |file: &str| folder.join(file).display().to_string();
    let text = format!(
        "[zenoh]\nca = '{}'\ncertificate = '{}'\nkey = '{}'\n\
        [[rate]]\noperator = 'slow'\nmax_hz = 5\n",
        path("ca.pem"),
        path(&format!("{certificate}.pem")),
        path(&format!("{certificate}.key")),
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// Whether the router takes a client that knows the authority, but has no certificate.
pub(crate) fn connects(router: &Router, folder: &Path) -> bool {
    let mut config = client(router);
    config["transport"]["link"]["tls"] = json!({ "root_ca_certificate": folder.join("ca.pem") });
    let config = Config::from_json5(&config.to_string()).unwrap();
    zenoh::open(config).wait().is_ok()
}

pub(crate) fn amber_zenoh() -> Command {
    Command::new(env!("CARGO_BIN_EXE_amber-zenoh"))
}

/// What `amber-zenoh fleet --json` prints.
pub(crate) fn fleet(router: &Router, more: &[&str]) -> Value {
    let mut command = amber_zenoh();
    command.args(["fleet", "--json", "--deadline", "30s"]);
    let output = command
        .args(["--connect", &router.endpoint])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `amber-zenoh router`.
pub(crate) struct Router {
    pub(crate) endpoint: String,
    listen: String,
    config: Option<PathBuf>,
    process: Option<Process>,
}

impl Router {
    pub(crate) fn start() -> Self {
        let endpoint = format!("tcp/127.0.0.1:{}", free_port());
        Self::with(endpoint.clone(), endpoint, None)
    }

    /// With the configuration that `amber-zenoh access` has written, but on a free port.
    fn secure(folder: &Path) -> Self {
        let port = free_port();
        let listen = format!("tls/127.0.0.1:{port}");
        let config = folder.join("router.json5");
        Self::with(format!("tls/localhost:{port}"), listen, Some(config))
    }

    fn with(endpoint: String, listen: String, config: Option<PathBuf>) -> Self {
        let mut router = Self {
            endpoint,
            listen,
            config,
            process: None,
        };
        router.begin();
        router
    }

    /// Begins again after [`Router::end`], with another identity.
    pub(crate) fn begin(&mut self) {
        let mut command = amber_zenoh();
        command.args(["router", "--listen", &self.listen]);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        let process = Process::start(command);
        process.line("the router listens on ");
        self.process = Some(process);
    }

    /// A router at another address, which is not started here.
    fn elsewhere(endpoint: String) -> Self {
        Self {
            listen: endpoint.clone(),
            endpoint,
            config: None,
            process: None,
        }
    }

    pub(crate) fn with_process<T>(&self, look: impl Fn(&Process) -> T) -> T {
        look(self.process.as_ref().unwrap())
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, signal: &str) {
        self.process.as_ref().unwrap().signal(signal);
    }

    /// Kills it, as if its machine lost power.
    pub(crate) fn end(&mut self) {
        let mut process = self.process.take().unwrap();
        process.signal("KILL");
        process.wait();
    }
}

/// A folder with the certificates of these rights, which its guard removes, and a router that keeps
/// to them.
pub(crate) fn with_rights(rights: &str) -> (TempDir, PathBuf, Router) {
    let guard = tempfile::tempdir().unwrap();
    let file = guard.path().join("rights.toml");
    std::fs::write(&file, rights).unwrap();
    let folder = guard.path().join("out");
    let mut access = amber_zenoh();
    access.arg("access").arg(&file).arg("--out").arg(&folder);
    let output = access.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let router = Router::secure(&folder);
    (guard, folder, router)
}

/// The settings of a session that does not say what it does.
pub(crate) fn client(router: &Router) -> Value {
    json!({
        "mode": "client",
        "connect": { "endpoints": [router.endpoint] },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
        "transport": { "link": { "tx": { "lease": 2000 } } },
    })
}

pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// A program of an operator that uses nothing but Zenoh.
pub(crate) struct Operator {
    pub(crate) session: Session,
    who: &'static str,
    instance: u64,
    sequence: u64,
    started: Instant,
}

impl Operator {
    pub(crate) fn new(router: &Router, who: &'static str) -> Self {
        let mut config = client(router);
        config["adminspace"] = json!({ "enabled": true });
        Self::with(who, config)
    }

    /// With the certificate of this name in a folder.
    pub(crate) fn secure(
        router: &Router,
        who: &'static str,
        certificate: &str,
        folder: &Path,
    ) -> Self {
        let mut config = client(router);
        config["transport"]["link"]["tls"] = json!({
            "root_ca_certificate": folder.join("ca.pem"),
            "connect_certificate": folder.join(certificate).with_extension("pem"),
            "connect_private_key": folder.join(certificate).with_extension("key"),
            "enable_mtls": true,
        });
        Self::with(who, config)
    }

    /// With these settings of Zenoh.
    pub(crate) fn with(who: &'static str, config: Value) -> Self {
        let config = Config::from_json5(&config.to_string()).unwrap();
        let session = wait_for("a session", || zenoh::open(config.clone()).wait().ok());
        Self {
            session,
            who,
            instance: fastrand::u64(..),
            sequence: 0,
            started: Instant::now(),
        }
    }

    /// The token of the program.
    pub(crate) fn token(&self, robot: &str) -> LivelinessToken {
        let key = format!(
            "amber/{robot}/operators/{}/{:016x}",
            self.who, self.instance
        );
        self.session.liveliness().declare_token(key).wait().unwrap()
    }

    /// Sends a message on a key such as `amber/r1/dummy/0/call`, and waits for the answer.
    pub(crate) fn ask(&mut self, key: &str, message: impl Message) -> Result<Bytes, Problem> {
        self.try_ask(key, message).expect("an answer")
    }

    /// The same; `None` if nobody answers.
    pub(crate) fn try_ask(
        &mut self,
        key: &str,
        message: impl Message,
    ) -> Option<Result<Bytes, Problem>> {
        let stamp = self.stamp();
        let answers = (self.session)
            .get(format!("{key}/{}?deadline_ms=20000", self.who))
            .payload(message.encode_to_vec())
            .attachment(stamp)
            .timeout(PATIENCE)
            .wait()
            .unwrap();
        let answer = answers.recv().ok()?;
        Some(match answer.result() {
            Ok(sample) => Ok(Bytes::copy_from_slice(&sample.payload().to_bytes())),
            Err(error) => {
                let text = error.payload().to_bytes();
                Err(serde_json::from_slice(&text).expect("a problem"))
            }
        })
    }

    /// Sends an order on a key such as `amber/r1/roboclaw/0/drive`, without an answer.
    pub(crate) fn put(&mut self, key: &str, message: impl Message) {
        let stamp = self.stamp();
        let put = self
            .session
            .put(format!("{key}/{}", self.who), message.encode_to_vec());
        put.attachment(stamp).wait().unwrap();
    }

    /// The JSON that a key answers; `None` without an answer.
    pub(crate) fn json(&self, key: &str) -> Option<Value> {
        let answers = self.session.get(key).timeout(PATIENCE).wait().unwrap();
        let answer = answers.recv().ok()?;
        let sample = answer.result().expect("no error");
        serde_json::from_slice(&sample.payload().to_bytes()).ok()
    }

    /// The problem that a key answers.
    pub(crate) fn problem(&self, key: &str) -> Problem {
        let answers = self.session.get(key).timeout(PATIENCE).wait().unwrap();
        let answer = answers.recv().expect("an answer");
        let error = answer.result().expect_err("a problem").payload().to_bytes();
        serde_json::from_slice(&error).expect("a problem")
    }

    /// Tokens as they come (true) and go (false).
    pub(crate) fn tokens(&self, key: &str) -> Receiver<(String, bool)> {
        let (sender, tokens) = mpsc::channel();
        let session = self.session.clone();
        (session.liveliness().declare_subscriber(key))
            .history(true)
            .callback(move |sample| {
                let is_there = sample.kind() == SampleKind::Put;
                let _ = sender.send((sample.key_expr().as_str().to_owned(), is_there));
            })
            .background()
            .wait()
            .unwrap();
        tokens
    }

    /// What is published on a key.
    pub(crate) fn published(&self, key: &str) -> Receiver<(Option<DataStamp>, Bytes)> {
        let (sender, published) = mpsc::channel();
        (self.session.declare_subscriber(key))
            .callback(move |sample| {
                let stamp = sample.attachment().map(|bytes| bytes.to_bytes());
                let stamp = stamp.and_then(|bytes| DataStamp::decode(&bytes));
                let payload = Bytes::copy_from_slice(&sample.payload().to_bytes());
                let _ = sender.send((stamp, payload));
            })
            .background()
            .wait()
            .unwrap();
        published
    }

    fn stamp(&mut self) -> Vec<u8> {
        self.sequence += 1;
        let stamp = OrderStamp {
            instance: self.instance,
            sequence: self.sequence,
            sent_ns: Some(self.started.elapsed().as_nanos() as u64),
        };
        stamp.encode()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.session.close().wait();
    }
}

/// Waits until a token comes (true) or goes (false); returns its key.
#[track_caller]
pub(crate) fn next(tokens: &Receiver<(String, bool)>, is_there: bool) -> String {
    loop {
        let (key, there) = tokens.recv_timeout(PATIENCE).expect("a token");
        if there == is_there {
            return key;
        }
    }
}
