//! Web pages of hostile machines, and networks that stall. IO.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amber_harness::wait_for;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::driver::unix_ms;
use crate::net::{Namespace, Networks};
use crate::site::{Programs, Site, SiteOptions};
use crate::suite::{Attack, Context, Seen};

/// See the [module](self).
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "page-lock-out",
        expected: "300 WebSockets that never say hello and 140 connections that read no answers, all \
                   of one host, keep no page with a token out, and the terminal names the host",
        run: page_lock_out,
    },
    Attack {
        name: "metrics-lock-out",
        expected: "140 connections of one host to `amber metrics` that read no answers keep no other \
                   host out, and the terminal names the host",
        run: metrics_lock_out,
    },
    Attack {
        name: "stalled-commands",
        expected: "motion commands over rosbridge and the dashboard that a network has held for 3 s \
                   do not move the robot when it returns, and new ones do",
        run: stalled_commands,
    },
];

/// The robot as its two networks see it.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

const CONFIG: &str = r#"
    [mediator]
    listen = ["0.0.0.0:26233"]
    [[driver]]
    device = "roboclaw:0"
    command = ["$attack", "driver", "wheels", "--file", "wheels.log"]
    [[driver]]
    device = "gateway:0"
    command = ["amber", "driver", "rosbridge", "--listen", "0.0.0.0:9090", "--allow", "10.0.0.0/8"]
"#;

/// A robot, and a program that serves pages on it, such as `amber dashboard`.
fn serving(
    context: &Context,
    networks: &Networks,
    command: &str,
    port: u16,
) -> anyhow::Result<(Site, Served)> {
    let place = SiteOptions {
        network: Some(&networks.robot),
        ..SiteOptions::default()
    };
    let site = Site::start(&context.programs, &place, CONFIG)?;
    let listen = format!("0.0.0.0:{port}");
    let words = [command, "--listen", &listen, "-m", "127.0.0.1:26233"];
    let served = Served::start(&context.programs, &networks.robot, &words)?;
    Ok((site, served))
}

/// A program that serves pages on the robot.
struct Served {
    process: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Served {
    fn start(programs: &Programs, robot: &Namespace, words: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(&programs.amber);
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = robot.run(|| Ok(command.spawn()?))?;
        let (sender, lines) = std::sync::mpsc::channel();
        let out = process.stdout.take().context("no stdout")?;
        let err = process.stderr.take().context("no stderr")?;
        let streams: [Box<dyn Read + Send>; 2] = [Box::new(out), Box::new(err)];
        for stream in streams {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Ok(Self { process, lines })
    }

    /// A line with this text.
    fn line(&self, text: &str) -> anyhow::Result<String> {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(20));
            let line = line.with_context(|| format!("no line with '{text}'"))?;
            if line.contains(text) {
                return Ok(line);
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn networks() -> anyhow::Result<Result<Networks, Seen>> {
    Ok(Networks::new().map_err(|error| Seen::skip(format!("{error:#}"))))
}

fn connect(from: &Namespace, to: SocketAddr) -> anyhow::Result<TcpStream> {
    from.run(|| {
        let stream = TcpStream::connect_timeout(&to, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(Duration::from_secs(3)))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    })
}

/// A page that has opened its WebSocket, and not said anything.
fn socket(from: &Namespace, to: SocketAddr, path: &str) -> anyhow::Result<WebSocket<TcpStream>> {
    let stream = connect(from, to)?;
    match tungstenite::client(format!("ws://{to}{path}"), stream) {
        Ok((socket, _)) => Ok(socket),
        Err(error) => bail!("{error}"),
    }
}

fn say(socket: &mut WebSocket<TcpStream>, message: &Value) -> anyhow::Result<()> {
    Ok(socket.send(message.to_string().into())?)
}

/// The next message of this kind.
fn hear(socket: &mut WebSocket<TcpStream>, kind: &str) -> anyhow::Result<Value> {
    loop {
        match socket.read()? {
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text)?;
                if message["t"] == kind {
                    return Ok(message);
                }
            }
            Message::Close(close) => bail!("closed: {close:?}"),
            _ => {}
        }
    }
}

/// Loads a file by HTTP.
fn get(from: &Namespace, to: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = connect(from, to)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    anyhow::ensure!(
        answer.starts_with("HTTP/1.1 200 "),
        "{}",
        answer.lines().next().unwrap_or("nothing")
    );
    Ok(answer)
}

/// Connections of a host that send requests and read no answers.
fn send_and_never_read(from: &Namespace, to: SocketAddr, path: &str) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\n\r\n").repeat(2000);
    let send = || {
        let mut stream = connect(from, to).ok()?;
        stream.set_nonblocking(true).ok()?;
        loop {
            match stream.write(request.as_bytes()) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(stream),
                Err(_) => return None,
            }
        }
    };
    (0..140).filter_map(|_| send()).collect()
}

fn page_lock_out(context: &Context) -> anyhow::Result<Seen> {
    let networks = match networks()? {
        Ok(networks) => networks,
        Err(skip) => return Ok(skip),
    };
    let (_site, dashboard) = serving(context, &networks, "dashboard", 8026)?;
    let line = dashboard.line("#")?;
    let token = line.rsplit('#').next().unwrap_or_default().to_owned();
    let (near, far) = (
        SocketAddr::from((NEAR, 8026)),
        SocketAddr::from((FAR, 8026)),
    );
    let operator = || -> anyhow::Result<()> {
        get(&networks.far, far, "/app.js")?;
        let mut page = socket(&networks.far, far, "/socket")?;
        say(&mut page, &json!({ "t": "hello", "token": token }))?;
        hear(&mut page, "hello")?;
        Ok(())
    };
    operator().context("before the attack")?;
    let is_over = AtomicBool::new(false);
    let (opened, stuck) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tries = context.pick(10, 40);
    let mut failures = Vec::new();
    thread::scope(|scope| {
        // Each holds its connections, and opens new ones for those that were closed.
        scope.spawn(|| {
            let mut held = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                held.push(socket(&networks.neighbour, near, "/socket"));
                opened.fetch_add(1, Ordering::Relaxed);
                if held.len() > 300 {
                    drop(held.remove(0));
                }
            }
        });
        scope.spawn(|| keep_unread(&networks.neighbour, near, "/app.js", &stuck, &is_over));
        let _ = wait_for("the attack to begin", || {
            let has_begun =
                opened.load(Ordering::Relaxed) > 60 && stuck.load(Ordering::Relaxed) > 0;
            Ok(has_begun.then_some(()))
        });
        failures = failures_of(tries, operator);
        is_over.store(true, Ordering::Relaxed);
    });
    let is_told = dashboard.line("refused 10.77.0.2").is_ok();
    let text = format!(
        "{}; {} connections without a token",
        kept_out(tries, &failures, is_told),
        opened.into_inner(),
    );
    Ok(Seen::new(failures.is_empty() && is_told, text))
}

fn metrics_lock_out(context: &Context) -> anyhow::Result<Seen> {
    let networks = match networks()? {
        Ok(networks) => networks,
        Err(skip) => return Ok(skip),
    };
    let (_site, metrics) = serving(context, &networks, "metrics", 9464)?;
    let (near, far) = (
        SocketAddr::from((NEAR, 9464)),
        SocketAddr::from((FAR, 9464)),
    );
    let operator = || get(&networks.far, far, "/metrics").map(drop);
    wait_for("the metrics", || Ok(operator().ok()))?;
    let is_over = AtomicBool::new(false);
    let stuck = AtomicUsize::new(0);
    let tries = context.pick(10, 40);
    let mut failures = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| keep_unread(&networks.neighbour, near, "/metrics", &stuck, &is_over));
        let _ = wait_for("the attack to begin", || {
            Ok((stuck.load(Ordering::Relaxed) > 0).then_some(()))
        });
        failures = failures_of(tries, operator);
        is_over.store(true, Ordering::Relaxed);
    });
    let is_told = metrics.line("refused 10.77.0.2").is_ok();
    let text = kept_out(tries, &failures, is_told);
    Ok(Seen::new(failures.is_empty() && is_told, text))
}

/// Holds connections that read no answers, and opens new ones for those that were closed, until the
/// end. `stuck` gets their number.
fn keep_unread(
    from: &Namespace,
    to: SocketAddr,
    path: &str,
    stuck: &AtomicUsize,
    is_over: &AtomicBool,
) {
    while !is_over.load(Ordering::Relaxed) {
        let held = send_and_never_read(from, to, path);
        stuck.fetch_max(held.len(), Ordering::Relaxed);
        thread::sleep(Duration::from_secs(1));
    }
}

/// The errors of an operator who tries this often.
fn failures_of(tries: usize, operator: impl Fn() -> anyhow::Result<()>) -> Vec<String> {
    let try_once = |_| {
        let result = operator();
        thread::sleep(Duration::from_millis(100));
        Some(format!("{:#}", result.err()?))
    };
    (0..tries).filter_map(try_once).collect()
}

/// What was seen of an attack on others' places, in words.
fn kept_out(tries: usize, failures: &[String], is_told: bool) -> String {
    format!(
        "{} of {tries} refused{}; the terminal {} the host",
        failures.len(),
        failures
            .first()
            .map_or(String::new(), |first| format!(" ({first})")),
        if is_told { "names" } else { "does not name" },
    )
}

/// The times and speeds of the commands that the wheels got.
fn commands(site: &Site) -> Vec<(u64, i64)> {
    let text = fs::read_to_string(site.folder().join("wheels.log")).unwrap_or_default();
    let command = |line: &str| {
        let (ms, speed) = line.split_once(' ')?;
        Some((ms.parse().ok()?, speed.parse().ok()?))
    };
    text.lines().filter_map(command).collect()
}

/// The message with which a program commands this speed, in mm/s.
type Drive = Box<dyn Fn(i64) -> Value + Send>;

/// When each speed was commanded last, in ms since 1970.
type Sent = Mutex<HashMap<i64, u64>>;

/// Sends a command every 50 ms, each with another speed, and answers pings, until the end.
fn keep_driving(
    mut socket: WebSocket<TcpStream>,
    command: &Drive,
    sent: &Sent,
    is_over: &AtomicBool,
) -> anyhow::Result<()> {
    socket
        .get_mut()
        .set_read_timeout(Some(Duration::from_millis(5)))?;
    let mut due = Instant::now();
    let mut speeds = (100..400).cycle().peekable();
    while !is_over.load(Ordering::Relaxed) {
        if let Some(speed) = speeds.next_if(|_| due <= Instant::now()) {
            due += Duration::from_millis(50);
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.insert(speed, unix_ms());
            drop(sent);
            say(&mut socket, &command(speed))?;
        }
        match socket.read() {
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn stalled_commands(context: &Context) -> anyhow::Result<Seen> {
    let mut texts = Vec::new();
    let mut holds = true;
    for way in ["rosbridge", "dashboard"] {
        let (is_good, text) = match stalled(context, way)? {
            Ok(seen) => seen,
            Err(skip) => return Ok(skip),
        };
        holds &= is_good;
        texts.push(format!("{way}: {text}"));
    }
    Ok(Seen::new(holds, texts.join("; ")))
}

fn stalled(context: &Context, way: &str) -> anyhow::Result<Result<(bool, String), Seen>> {
    let networks = match networks()? {
        Ok(networks) => networks,
        Err(skip) => return Ok(Err(skip)),
    };
    let (site, dashboard) = serving(context, &networks, "dashboard", 8026)?;
    let line = dashboard.line("#")?;
    let token = line.rsplit('#').next().unwrap_or_default().to_owned();
    let start = Instant::now();
    let (socket, command): (_, Drive) = if way == "rosbridge" {
        let socket = wait_for("the gateway", || {
            Ok(socket(&networks.neighbour, (NEAR, 9090).into(), "/").ok())
        })?;
        let twist = |speed| {
            let m_s = speed as f64 / 1000.0;
            json!({ "op": "publish", "topic": "/cmd_vel", "msg": { "linear": { "x": m_s } } })
        };
        (socket, Box::new(twist))
    } else {
        let mut socket = socket(&networks.neighbour, (NEAR, 8026).into(), "/socket")?;
        let at = move || start.elapsed().as_secs_f64() * 1000.0;
        say(
            &mut socket,
            &json!({ "t": "hello", "token": token, "at": at() }),
        )?;
        hear(&mut socket, "hello")?;
        let drive = move |speed| json!({ "t": "drive", "left": speed, "right": speed, "guard": false, "at": at() });
        (socket, Box::new(drive))
    };
    let is_over = AtomicBool::new(false);
    let sent = Sent::default();
    let seen = thread::scope(|scope| {
        let (sent, is_over) = (&sent, &is_over);
        let driving = scope.spawn(move || keep_driving(socket, &command, sent, is_over));
        let seen = stall(&site, &networks, sent);
        is_over.store(true, Ordering::Relaxed);
        match driving.join() {
            Ok(driven) => driven.context("the connection ended").and(seen),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    seen.map(Ok)
}

/// Stalls the network of a robot that drives, and tells how old the commands are that move it then.
fn stall(site: &Site, networks: &Networks, sent: &Sent) -> anyhow::Result<(bool, String)> {
    wait_for("the robot to drive", || {
        Ok((commands(site).len() > 20).then_some(()))
    })?;
    // Frames for a card that does not exist: the programs see no error, only silence.
    let nobody = "lladdr 02:00:00:00:00:09 nud permanent";
    networks
        .robot
        .ip(&format!("neigh replace 10.77.0.2 dev robot0 {nobody}"))?;
    networks
        .neighbour
        .ip(&format!("neigh replace 10.77.0.1 dev peer0 {nobody}"))?;
    // Less than the time after which a silent page is gone.
    thread::sleep(Duration::from_secs(3));
    let before = commands(site);
    let has_stopped = before.last().is_some_and(|(_, speed)| *speed == 0);
    networks.robot.ip("neigh del 10.77.0.2 dev robot0")?;
    networks.neighbour.ip("neigh del 10.77.0.1 dev peer0")?;
    let returned_ms = unix_ms();
    let moves = || {
        let commands = commands(site).split_off(before.len());
        commands
            .into_iter()
            .filter(|(_, speed)| *speed != 0)
            .collect::<Vec<_>>()
    };
    let moves = wait_for("the robot to drive again", || {
        let moves = moves();
        Ok((moves.len() >= 20).then_some(moves))
    })?;
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
    let age_ms = |(at_ms, speed): &(u64, i64)| {
        let sent_ms = sent.get(speed).copied().unwrap_or_default();
        at_ms.saturating_sub(sent_ms)
    };
    let oldest_ms = moves.iter().map(age_ms).max().unwrap_or_default();
    let again_ms = moves[0].0.saturating_sub(returned_ms);
    let text = format!(
        "the oldest command that moves it is {oldest_ms} ms old (at most {MAX_AGE_MS}), it drives \
         again after {again_ms} ms"
    );
    Ok((has_stopped && oldest_ms <= MAX_AGE_MS, text))
}

/// Half a second is the promise. The rest is for programs that wait for their turn.
const MAX_AGE_MS: u64 = 700;
