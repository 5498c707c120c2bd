//! All gateways at the rates of busy robots, at the same time: what that costs, and whether anything is
//! lost. IO.
//!
//! ```text
//!   Galileo     64 sessions, a PING of each side and a scan ten times per second in each
//!   rosbridge   10 pages that subscribe to the scan
//!   JSON relay  an image of 1 MB from a robot to a control, ten times per second
//!   Apollo      a PointCloud of 682 points, 40 times per second
//!   RflySim     10 vehicles: true state, estimate and message of the autopilot, 100 times per second
//! ```

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_driver::devices::hokuyo::{self, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::{Devices, Reply};
use amber_gateways::apollo::frame::Frame;
use amber_gateways::apollo::reassembly::{Outcome, Reassembly};
use amber_gateways::rflysim::codec::{
    ExternalMessage, FullEstimate, NO_COLLISION, Packet, Truth168,
};
use amber_gateways::rflysim::ports::{Port, Vehicle};
use amber_proto::Device;
use amber_proto::gateway::GatewayStatus;
use amber_proto::hokuyo::Scan;
use anyhow::Context;
use serde::Serialize;
use serde_json::{Value, json};
use socket2::SockRef;

use super::{Mediator, start};

const SESSIONS: usize = 64;
const PAGES: usize = 10;
const VEHICLES: u16 = 10;
const IMAGE: usize = 1_000_000;
/// The bytes of an image in one fragment: a multiple of three.
const FRAGMENT: usize = 42_000;
const POINTS: u16 = 682;
/// Slow and fast scanners: scans per second.
const SCANS: [u64; 2] = [10, 40];
/// Scans tell their number by this distance and this step, and begin again after so many.
const FIRST_MM: i32 = 500;
/// See [`FIRST_MM`].
const STEP_MM: i32 = 10;
/// See [`FIRST_MM`].
const NUMBERS: u32 = 400;
/// From then on the memory of a process should not grow.
const WARM_UP: Duration = Duration::from_secs(30);
/// What is on its way arrives within this time.
const LAST: Duration = Duration::from_secs(2);

/// What a gateway has cost.
#[derive(Serialize)]
pub(super) struct Row {
    gateway: &'static str,
    load: String,
    cpu_percent: f64,
    /// After the first 30 s, and at the end.
    memory_mb: [f64; 2],
    sent: u64,
    arrived: u64,
    /// Counted by the gateway itself, with the reasons.
    dropped: u64,
    reasons: Vec<String>,
}

impl Row {
    /// Whether all has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.sent == self.arrived && self.dropped == 0 && self.sent > 0
    }
}

/// The driver of the scanners: one on each device.
pub(super) fn scanners() -> std::process::ExitCode {
    let devices = (0..)
        .zip(SCANS)
        .fold(Devices::new(), |devices, (id, rate)| {
            let period = Duration::from_millis(1000 / rate);
            devices.add(
                scanner(id),
                hokuyo::driver(Scanner {
                    link: None,
                    number: 0,
                    period,
                    due: None,
                }),
            )
        });
    amber_driver::serve_many(devices)
}

fn scanner(id: u32) -> Device {
    format!("hokuyo:{id}")
        .parse()
        .unwrap_or_else(|_| unreachable!())
}

struct Scanner {
    link: Option<HokuyoLink>,
    number: u32,
    period: Duration,
    due: Option<Instant>,
}

/// A scan that shows its number by its distances.
fn scan(number: u32) -> Scan {
    let angle = |step: u16| -120.0 + f64::from(step) * 240.0 / f64::from(POINTS - 1);
    let distance_mm = FIRST_MM + STEP_MM * (number % NUMBERS) as i32;
    Scan {
        angles: (0..POINTS).map(angle).collect(),
        distances: vec![distance_mm; POINTS.into()],
    }
}

/// The number of the scan with this distance.
fn number_of(distance_m: f64) -> Option<u32> {
    let step = (distance_m * 1000.0 - f64::from(FIRST_MM)) / f64::from(STEP_MM);
    let number = step.round();
    (number >= 0.0 && number < f64::from(NUMBERS)).then_some(number as u32)
}

/// Numbers of scans as they arrive at one receiver.
#[derive(Default)]
struct Series {
    last: Option<u32>,
    arrived: u64,
    lost: u64,
}

impl Series {
    fn take(&mut self, distance_m: Option<f64>) {
        let Some(number) = distance_m.and_then(number_of) else {
            self.lost += 1;
            return;
        };
        if let Some(last) = self.last {
            self.lost += u64::from((number + NUMBERS - last - 1) % NUMBERS);
        }
        self.last = Some(number);
        self.arrived += 1;
    }
}

impl HokuyoDriver for Scanner {
    async fn start(
        &mut self,
        link: HokuyoLink,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.link = Some(link);
        self.due = Some(amber_driver::now() + self.period);
        Ok(())
    }

    async fn scan(&mut self, reply: Reply<ScanAnswer>) {
        reply.send(ScanAnswer {
            scan: scan(0),
            timestamp_ms: None,
        });
    }

    fn wake_at(&self) -> Option<Instant> {
        self.due
    }

    async fn wake(&mut self) {
        self.due = self.due.map(|due| due + self.period);
        self.number += 1;
        if let Some(link) = &self.link {
            let _ = link.scans(ScansData {
                scan: scan(self.number),
                timestamp_ms: None,
            });
        }
    }
}

/// What was sent to a gateway or should come from it, and what has arrived.
#[derive(Default)]
struct Count {
    sent: u64,
    arrived: u64,
}

/// Runs all loads at the same time.
pub(super) fn measure(amber: &Path, duration: Duration) -> anyhow::Result<Vec<Row>> {
    let this = std::env::current_exe()?;
    let folder = tempfile::tempdir()?;
    let clouds = receiver("127.0.0.1:0")?;
    let first = u16::try_from(1 + 16 * (std::process::id() % 250))?;
    let galileo = "listen = \"127.0.0.1:0\"\nmax_sessions_per_ip = 64\n".to_owned();
    let apollo = format!(
        "[[send]]\nmessage = \"point-cloud\"\ndevice = \"hokuyo:1\"\nto = \"{}\"\nrate_hz = 40\n",
        clouds.local_addr()?
    );
    let vehicles = (1..=VEHICLES).map(|id| {
        let number = first + id - 1;
        format!(
            "[[foreign]]\nnumber = {number}\nlocation = \"location:{id}\"\n\
             imu = \"ninedof:{id}\"\nwheels = \"roboclaw:{id}\"\n"
        )
    });
    let mut drivers = vec![format!("hokuyo:0,hokuyo:1='{}' scanners", this.display())];
    let emulated = (1..=VEHICLES).map(|id| format!(",location:{id},ninedof:{id},roboclaw:{id}"));
    for (number, devices, name, options) in [
        (0, String::new(), "galileo", galileo),
        (
            1,
            String::new(),
            "rosbridge",
            "listen = \"127.0.0.1:0\"\n".to_owned(),
        ),
        (
            2,
            String::new(),
            "json-relay",
            "listen = \"127.0.0.1:0\"\n".to_owned(),
        ),
        (3, String::new(), "apollo", apollo),
        (4, emulated.collect(), "rflysim", vehicles.collect()),
    ] {
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, options)?;
        drivers.push(format!(
            "gateway:{number}{devices}=amber driver {name} --config {}",
            file.display()
        ));
    }
    let (mediator, address) = start(amber, &drivers)?;
    let client = Client::connect(address)?;
    let at = |gateway| super::listening(&client, gateway);
    let (galileo, rosbridge, relay) = (at(0)?, at(1)?, at(2)?);
    // It has no socket of its own before it sends.
    at(3)?;
    at(4)?;

    let ends = Arc::new(AtomicBool::new(false));
    let sessions = Sessions::open(galileo)?;
    let pages = (0..PAGES).map(|_| Page::open(rosbridge));
    let pages = pages.collect::<anyhow::Result<Vec<_>>>()?;
    let images = Images::open(relay)?;
    let begin = status_of_all(&client)?;
    let processes = Processes::find(&mediator)?;
    let started = Instant::now();
    let cpu = processes.cpu()?;
    let telemetry_sent = Arc::new(AtomicU64::new(0));
    let (sessions, pages, images, clouds, telemetry) = {
        let run = |ends: &Arc<AtomicBool>| ends.clone();
        let sessions = thread::spawn({
            let ends = run(&ends);
            move || sessions.run(&ends)
        });
        let pages: Vec<_> = (pages.into_iter())
            .map(|page| {
                let ends = run(&ends);
                thread::spawn(move || page.run(&ends))
            })
            .collect();
        let images = thread::spawn({
            let ends = run(&ends);
            move || images.run(&ends)
        });
        let clouds = thread::spawn({
            let ends = run(&ends);
            move || receive_clouds(&clouds, &ends)
        });
        let telemetry = thread::spawn({
            let (ends, sent) = (run(&ends), telemetry_sent.clone());
            move || send_telemetry(first, &sent, &ends)
        });
        (sessions, pages, images, clouds, telemetry)
    };
    let warm = duration.min(WARM_UP);
    thread::sleep(warm);
    let before = processes.memory_mb()?;
    thread::sleep(duration.saturating_sub(warm));
    let after = processes.memory_mb()?;
    let spent = processes.cpu()?;
    let passed_s = started.elapsed().as_secs_f64();
    ends.store(true, Ordering::Relaxed);
    telemetry
        .join()
        .map_err(|_| anyhow::anyhow!("telemetry"))??;
    thread::sleep(LAST);
    let end = status_of_all(&client)?;
    let galileo = joined(sessions)?;
    let mut rosbridge = Count::default();
    for page in pages {
        let count = joined(page)?;
        rosbridge.sent += count.sent;
        rosbridge.arrived += count.arrived;
    }
    let rflysim = Count {
        sent: telemetry_sent.load(Ordering::Relaxed),
        arrived: end[4].rx() - begin[4].rx(),
    };
    let counts = [
        galileo,
        rosbridge,
        joined(images)?,
        joined(clouds)?,
        rflysim,
    ];
    let loads = [
        format!("{SESSIONS} sessions: scans and PINGs, 10 Hz each"),
        format!("{PAGES} pages: scans at 10 Hz"),
        "images of 1 MB at 10 Hz".to_owned(),
        "PointCloud at 40 Hz".to_owned(),
        format!("{VEHICLES} vehicles: 3 packets at 100 Hz each"),
    ];
    let rows = (NAMES.iter().zip(loads).zip(counts)).enumerate();
    let rows = rows.map(|(index, ((gateway, load), count))| Row {
        gateway,
        load,
        cpu_percent: (spent[index] - cpu[index]) / passed_s * 100.0,
        memory_mb: [before[index], after[index]],
        sent: count.sent,
        arrived: count.arrived,
        dropped: end[index].lost() - begin[index].lost(),
        reasons: end[index].reasons(),
    });
    Ok(rows.collect())
}

/// The commands of the gateways, by the numbers of their devices.
const NAMES: [&str; 5] = ["galileo", "rosbridge", "json-relay", "apollo", "rflysim"];

fn joined(thread: thread::JoinHandle<anyhow::Result<Count>>) -> anyhow::Result<Count> {
    thread
        .join()
        .map_err(|_| anyhow::anyhow!("a load has failed"))?
}

/// A gateway's own counters.
struct Counters(GatewayStatus);

impl Counters {
    fn rx(&self) -> u64 {
        self.0.rx.unwrap_or_default()
    }

    fn lost(&self) -> u64 {
        self.0.bad.unwrap_or_default() + self.0.dropped.unwrap_or_default()
    }

    fn reasons(&self) -> Vec<String> {
        let reasons = self.0.reasons.iter();
        let text = reasons.map(|it| format!("{} {}", it.count(), it.text()));
        text.collect()
    }
}

fn status_of_all(client: &Client) -> anyhow::Result<Vec<Counters>> {
    let status = (0..).take(NAMES.len()).map(|number| {
        let status = client.gateway(number).status();
        Ok(Counters(status?))
    });
    status.collect()
}

/// The processes of the gateways.
struct Processes(Vec<u32>);

impl Processes {
    fn find(mediator: &Mediator) -> anyhow::Result<Self> {
        let output = Command::new("ps")
            .args(["-e", "-o", "pid=,ppid=,args="])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mediator = mediator.0.id().to_string();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        let parents: HashMap<&str, &str> = lines.iter().map(|line| (line[0], line[1])).collect();
        let is_inside = |pid: &str| {
            std::iter::successors(Some(pid), |pid| parents.get(pid).copied())
                .any(|it| it == mediator)
        };
        let find = |name: &&str| {
            let command = format!("driver {name} --config");
            let mut found = lines
                .iter()
                .filter(|line| line.join(" ").contains(&command));
            let line = found.find(|line| line[0] != mediator && is_inside(line[0]));
            let line = line.with_context(|| format!("no process of {name}"))?;
            Ok(line[0].parse()?)
        };
        Ok(Self(NAMES.iter().map(find).collect::<anyhow::Result<_>>()?))
    }

    /// Seconds of CPU time so far.
    fn cpu(&self) -> anyhow::Result<Vec<f64>> {
        let seconds = self.0.iter().map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let (_, rest) = text.rsplit_once(')').context("no process name")?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
            let per_s = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100);
            Ok(ticks as f64 / per_s as f64)
        });
        seconds.collect()
    }

    fn memory_mb(&self) -> anyhow::Result<Vec<f64>> {
        let memory = self.0.iter().map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kb: f64 = line
                .context("no VmRSS")?
                .trim()
                .trim_end_matches(" kB")
                .parse()?;
            Ok(kb / 1024.0)
        });
        memory.collect()
    }
}

/// A socket with a large buffer that waits for at most 100 ms.
fn receiver(address: &str) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_recv_buffer_size(8 << 20)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(socket)
}

/// Clients of Galileo on the path `scan`.
struct Sessions(Vec<(UdpSocket, Vec<u8>)>);

impl Sessions {
    fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let session = |_| {
            let socket = receiver("127.0.0.1:0")?;
            socket.connect(gateway)?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.send(format!("\x01udp://{gateway}/scan?token=\0").as_bytes())?;
            let mut buffer = [0; 2048];
            let length = socket.recv(&mut buffer)?;
            let reply: Value = serde_json::from_slice(&buffer[6..length])?;
            let id = serde_json::from_value(reply["client_id"].clone()).context("refused")?;
            socket.set_nonblocking(true)?;
            Ok((socket, id))
        };
        Ok(Self(
            (0..SESSIONS).map(session).collect::<anyhow::Result<_>>()?,
        ))
    }

    fn run(self, ends: &AtomicBool) -> anyhow::Result<Count> {
        const PING: Duration = Duration::from_millis(100);
        let mut series: Vec<Series> = self.0.iter().map(|_| Series::default()).collect();
        let (mut pings, mut pongs) = (0, 0);
        let (mut next, mut last) = (Instant::now(), None);
        let mut buffer = [0; 2048];
        loop {
            let now = Instant::now();
            let is_ended = ends.load(Ordering::Relaxed);
            if is_ended && now > *last.get_or_insert(now + LAST / 2) {
                break;
            }
            let is_due = !is_ended && now >= next;
            if is_due {
                next += PING;
            }
            for ((socket, id), series) in self.0.iter().zip(&mut series) {
                let send = |op| socket.send(&[&[2], &id[..], &[op]].concat());
                if is_due {
                    send(9)?;
                    pings += 1;
                }
                while let Ok(length) = socket.recv(&mut buffer) {
                    match buffer[5] {
                        9 => drop(send(10)?),
                        10 => pongs += 1,
                        1 => {
                            let scan: Value = serde_json::from_slice(&buffer[6..length])?;
                            series.take(scan["ranges"][0].as_f64());
                        }
                        other => anyhow::bail!("frame {other} of Galileo"),
                    }
                }
            }
            thread::sleep(Duration::from_millis(4));
        }
        let arrived: u64 = series.iter().map(|it| it.arrived).sum();
        let lost: u64 = series.iter().map(|it| it.lost).sum();
        anyhow::ensure!(
            series.iter().all(|it| it.arrived > 0),
            "a session without scans"
        );
        Ok(Count {
            sent: pings + arrived + lost,
            arrived: pongs + arrived,
        })
    }
}

/// A page that shows the scan.
struct Page(tungstenite::WebSocket<TcpStream>);

impl Page {
    fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(gateway)?;
        let (mut link, _) = tungstenite::client(format!("ws://{gateway}/"), stream)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        let text = json!({ "op": "subscribe", "topic": "/scan", "queue_length": 10 });
        link.send(text.to_string().into())?;
        let timeout = Some(Duration::from_millis(500));
        link.get_ref().set_read_timeout(timeout)?;
        Ok(Self(link))
    }

    fn run(mut self, ends: &AtomicBool) -> anyhow::Result<Count> {
        let mut series = Series::default();
        while !ends.load(Ordering::Relaxed) {
            match self.0.read() {
                Ok(tungstenite::Message::Text(text)) => {
                    let message: Value = serde_json::from_str(&text)?;
                    let ranges = message["msg"]["ranges"].as_array();
                    series.take(ranges.and_then(|it| it.iter().find_map(Value::as_f64)));
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Count {
            sent: series.arrived + series.lost,
            arrived: series.arrived,
        })
    }
}

/// A robot and a control of the JSON relay.
struct Images {
    robot: UdpSocket,
    control: UdpSocket,
}

impl Images {
    fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let images = Self {
            robot: receiver("127.0.0.1:0")?,
            control: receiver("127.0.0.1:0")?,
        };
        images.robot.connect(gateway)?;
        images.control.connect(gateway)?;
        images.say("register")?;
        Ok(images)
    }

    /// A registration or heartbeat of both.
    fn say(&self, kind: &str) -> anyhow::Result<()> {
        for (socket, role) in [(&self.robot, "robot"), (&self.control, "control")] {
            let data = json!({ "client_type": role, "client_id": "load", "timestamp": 1 });
            let text = json!({ "type": kind, "data": data }).to_string();
            socket.send(text.as_bytes())?;
        }
        Ok(())
    }

    fn run(self, ends: &AtomicBool) -> anyhow::Result<Count> {
        const PERIOD: Duration = Duration::from_millis(100);
        /// Between two fragments, so that they fit into the usual receive buffer.
        const PAUSE: Duration = Duration::from_millis(2);
        let fragments = IMAGE.div_ceil(FRAGMENT);
        // They are made once: the load must not take the time of the gateway.
        let messages: Vec<String> = (1..=fragments)
            .map(|number| fragment(number, fragments))
            .collect();
        let control = self.control.try_clone()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let told = stopped.clone();
        let receiving = thread::spawn(move || receive_images(&control, fragments as u64, &told));
        let (mut sent, mut next) = (0, Instant::now());
        while !ends.load(Ordering::Relaxed) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next += PERIOD;
            sent += 1;
            if sent % 50 == 0 {
                self.say("heartbeat")?;
            }
            for message in &messages {
                self.robot.send(message.as_bytes())?;
                thread::sleep(PAUSE);
            }
        }
        thread::sleep(LAST / 2);
        stopped.store(true, Ordering::Relaxed);
        let arrived = receiving.join().map_err(|_| anyhow::anyhow!("images"))??;
        Ok(Count { sent, arrived })
    }
}

/// A fragment of an image of zeros, from 1.
fn fragment(number: usize, fragments: usize) -> String {
    let bytes = FRAGMENT.min(IMAGE - (number - 1) * FRAGMENT);
    let image = "A".repeat(bytes / 3 * 4);
    let data = json!({ "sequence": number, "total": fragments, "image": image, "timestamp": 1 });
    json!({ "type": "image_fragment", "data": data }).to_string()
}

/// The number of a fragment. Reading all of it as JSON would take longer than passing it on.
fn sequence(message: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"sequence\":";
    const NEAR: usize = 200;
    let (first, last) = (
        &message[..NEAR.min(message.len())],
        &message[message.len().saturating_sub(NEAR)..],
    );
    [first, last].into_iter().find_map(|part| {
        let at = part.windows(KEY.len()).position(|it| it == KEY)? + KEY.len();
        let digits: Vec<u8> = part[at..]
            .iter()
            .copied()
            .take_while(u8::is_ascii_digit)
            .collect();
        String::from_utf8(digits).ok()?.parse().ok()
    })
}

/// Returns the number of whole images.
fn receive_images(socket: &UdpSocket, fragments: u64, ends: &AtomicBool) -> anyhow::Result<u64> {
    let mut buffer = vec![0; 65_536];
    let (mut whole, mut seen) = (0, 0);
    while !ends.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let sequence = sequence(&buffer[..length]).context("no fragment")?;
        // The server sends the fragments in order.
        seen = match sequence == seen + 1 {
            true => sequence,
            false => u64::from(sequence == 1),
        };
        whole += u64::from(seen == fragments && sequence == fragments);
        if seen == fragments {
            seen = 0;
        }
    }
    Ok(whole)
}

/// Messages of Apollo, until they end.
fn receive_clouds(socket: &UdpSocket, ends: &AtomicBool) -> anyhow::Result<Count> {
    use amber_gateways::apollo::messages::PointCloud;
    let mut series = Series::default();
    let mut reassembly = Reassembly::default();
    let mut buffer = [0; 2048];
    let begin = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let (_, frame) = Frame::decode(&buffer[..length])?;
        let outcome = reassembly.handle_frame(begin.elapsed(), 0.0, from.ip(), &frame);
        if let Outcome::Complete(message) = outcome {
            let cloud: PointCloud = prost::Message::decode(&*message.bytes)?;
            anyhow::ensure!(
                cloud.point.len() == usize::from(POINTS),
                "points are missing"
            );
            let point = &cloud.point[0];
            series.take(Some(f64::from(point.x().hypot(point.y()))));
        }
    }
    Ok(Count {
        sent: series.arrived + series.lost,
        arrived: series.arrived,
    })
}

/// The state of all vehicles, 100 times per second.
fn send_telemetry(first: u16, sent: &AtomicU64, ends: &AtomicBool) -> anyhow::Result<()> {
    const PERIOD: Duration = Duration::from_millis(10);
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut next = Instant::now();
    let mut number = 0_u32;
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += PERIOD;
        number += 1;
        for id in first..first + VEHICLES {
            let vehicle = Vehicle::new(id).context("no such vehicle")?;
            for packet in telemetry(vehicle, number) {
                let port = vehicle.port(packet.port());
                socket.send_to(&packet.encode(), ("127.0.0.1", port))?;
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

fn telemetry(vehicle: Vehicle, number: u32) -> [Packet; 3] {
    let (id, time_s) = (i32::from(vehicle.number()), f64::from(number) / 100.0);
    let north_m = f64::from(number % 1000) / 100.0;
    let truth = Truth168 {
        copter_id: id,
        vehicle_type: 3,
        reserved: 0,
        velocity_m_s: [1.0, 0.0, 0.0],
        angles_rad: [0.0; 3],
        quaternion: [1.0, 0.0, 0.0, 0.0],
        motors_rpm: [4000.0; 8],
        acceleration_m_s2: [0.0, 0.0, -9.8],
        rates_rad_s: [0.0; 3],
        time_s,
        position_m: [north_m, 0.0, -10.0],
        gps_position: [40.0, 116.0, 50.0],
    };
    let estimate = FullEstimate {
        time_boot_ms: number * 10,
        copter_id: id.unsigned_abs(),
        gps_position: [400_000_000, 1_160_000_000, 50_000],
        gps_velocity_cm_s: [100, 0, 0],
        gps_home: [400_000_000, 1_160_000_000, 40_000],
        relative_altitude_mm: 10_000,
        heading_mdeg: 0,
        satellites_visible: 12,
        fix_type: 3,
        reserved_int: 0,
        angles_rad: [0.0; 3],
        position_m: [north_m as f32, 0.0, -10.0],
        velocity_m_s: [1.0, 0.0, 0.0],
        horizontal_accuracy_m: 0.5,
        vertical_accuracy_m: 0.5,
        reserved_float: 1.0,
    };
    let message = ExternalMessage {
        copter_id: id,
        time_s,
        controls: [0.5; 8],
    };
    let packets = [
        Packet::Truth168(truth),
        Packet::FullEstimate(NO_COLLISION, estimate),
        Packet::External(message),
    ];
    debug_assert_eq!(packets[2].port(), Port::External);
    packets
}

/// Prints the table of docs/gateways.md.
pub(super) fn print_table(rows: &[Row], duration: Duration) {
    println!("{} s:", duration.as_secs());
    println!("| gateway | load | CPU | memory after 30 s | at the end | sent | lost |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let [before, after] = row.memory_mb;
        println!(
            "| {} | {} | {:.1} % | {before:.1} MB | {after:.1} MB | {} | {} |",
            row.gateway,
            row.load,
            row.cpu_percent,
            row.sent,
            row.sent.saturating_sub(row.arrived),
        );
    }
    for row in rows.iter().filter(|row| !row.reasons.is_empty()) {
        println!("{}: {}", row.gateway, row.reasons.join(", "));
    }
}
