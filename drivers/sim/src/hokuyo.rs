//! A simulated Hokuyo laser scanner with SCIP 2.0: bytes in, bytes out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each
//! `handle_*` and at [`Hokuyo::next_timeout`]: while [`Hokuyo::poll_sweep`] returns a turn of the
//! laser, measure it and pass the result to [`Hokuyo::handle_scan`]; then drain
//! [`Hokuyo::poll_output`]. Turns without a request are not measured.

mod identity;
mod measure;
mod model;
mod part;
mod scans;
mod scip;
mod settings;
#[cfg(test)]
mod tests;
mod turns;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::measure::is_dark;
pub use self::model::{Model, Scan, Sweep};
use self::part::Part;
use self::scip::Reply;
pub use self::scip::{encode, sum};
use self::turns::Turns;
pub use self::twin::{DEVICE, Options, TCP_DEVICE};

/// The maximum length of a request, with its string.
const MAX_REQUEST: usize = 64;
/// The maximum length of the string in a request.
const MAX_STRING: usize = 16;
/// The time between power-on and the first scan.
const SPIN_UP: Duration = Duration::from_secs(1);

/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Hokuyo {
    model: Model,
    link: Transport,
    quirks: Quirks,
    /// It uses SCIP 1.1 until the host requests 2.0.
    speaks_scip_1: bool,
    line: Vec<u8>,
    outputs: VecDeque<Vec<u8>>,
    /// When the laser was turned on, or when the motor was ready if that was later.
    laser_on: Option<Duration>,
    ready_at: Duration,
    stream: Option<Stream>,
    waiting: VecDeque<Waiting>,
    latest: Option<(Sweep, Scan)>,
    /// The turn of the last single scan; the next one uses a later turn.
    served: Option<u64>,
    bits_per_s: u32,
    time_mode: bool,
    sleeping: bool,
    reboot_asked: bool,
    hangs_up: bool,
    timer_zero: Duration,
    turns: Turns,
    /// The number of scans measured between the walls of a robot.
    scans: u64,
}

/// The connection of a scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Serial line or USB.
    Serial,
    /// Ethernet; such models support the commands of SCIP 2.2.
    Ethernet,
}

/// Features that differ between scanners.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Quirks {
    /// Start the laser scanner in SCIP 1.1, like units with older firmware
    #[arg(long = "hokuyo-scip1")]
    pub starts_in_scip_1: bool,
    /// Laser scanners do not support single scans (GD), like some Ethernet models
    #[arg(long = "hokuyo-without-gd")]
    pub lacks_gd: bool,
    /// Laser scanners are mounted upside down
    #[arg(long = "hokuyo-upside-down")]
    pub is_upside_down: bool,
}

/// An unfinished request for one scan.
#[derive(Clone, Debug)]
struct Waiting {
    request: String,
    part: Part,
    turn: u64,
}

/// Continuous scans.
#[derive(Clone, Debug)]
struct Stream {
    /// The request without its last two digits, and the string after them.
    echo: (String, String),
    part: Part,
    skip: u64,
    /// The number of remaining scans, if limited.
    remaining: Option<u32>,
    turn: u64,
}

/// The two status characters of a reply.
type Status = &'static str;

const DONE: Status = "00";
const UNDEFINED: Status = "0E";

impl Hokuyo {
    /// Creates a scanner that was just switched on.
    #[must_use]
    pub fn new(model: Model, link: Transport, now: Duration) -> Self {
        Self::with_quirks(model, link, Quirks::default(), now)
    }

    /// Creates a scanner with quirks.
    #[must_use]
    pub fn with_quirks(model: Model, link: Transport, quirks: Quirks, now: Duration) -> Self {
        Self {
            model,
            link,
            quirks,
            speaks_scip_1: quirks.starts_in_scip_1,
            line: Vec::new(),
            outputs: VecDeque::new(),
            laser_on: None,
            ready_at: now + SPIN_UP,
            stream: None,
            waiting: VecDeque::new(),
            latest: None,
            served: None,
            bits_per_s: 19_200,
            time_mode: false,
            sleeping: false,
            reboot_asked: false,
            hangs_up: false,
            timer_zero: now,
            turns: Turns::new(model, now),
            scans: 0,
        }
    }

    /// The same device after a power cycle.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self {
            scans: self.scans,
            ..Self::with_quirks(self.model, self.link, self.quirks, now)
        }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> Model {
        self.model
    }

    /// Whether the laser is on.
    #[must_use]
    pub fn is_laser_on(&self) -> bool {
        self.laser_on.is_some()
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    if !line.is_empty() {
                        self.handle_line(now, &line);
                    }
                }
                // Keep one byte more than allowed, to detect a request that is too long.
                _ if self.line.len() <= MAX_REQUEST => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// A turn of the laser that is finished and requested.
    #[must_use]
    pub fn poll_sweep(&mut self, now: Duration) -> Option<Sweep> {
        self.serve_known(now);
        let turn = self.next_turn()?;
        let sweep = self.turns.sweep(turn);
        (self.turns.finished(sweep) <= now).then_some(sweep)
    }

    /// The measurements of a requested turn.
    pub fn handle_scan(&mut self, now: Duration, sweep: Sweep, scan: Scan) {
        self.latest = Some((sweep, scan));
        self.serve_known(now);
    }

    /// The last measured scan.
    #[must_use]
    pub fn latest(&self) -> Option<&Scan> {
        self.latest.as_ref().map(|(_, scan)| scan)
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// Whether the scanner has dropped the connection since the last call.
    /// Send [`Hokuyo::poll_output`] first.
    pub fn poll_hang_up(&mut self) -> bool {
        std::mem::take(&mut self.hangs_up)
    }

    /// When the next requested turn will be finished.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let turn = self.next_turn()?;
        Some(self.turns.finished(self.turns.sweep(turn)))
    }

    /// The host has disconnected; the device keeps running without sending.
    pub fn handle_hang_up(&mut self) {
        self.line.clear();
        self.outputs.clear();
        self.stream = None;
        self.waiting.clear();
    }

    fn handle_line(&mut self, now: Duration, line: &[u8]) {
        let Ok(request) = std::str::from_utf8(line) else {
            let printable = String::from_utf8_lossy(line);
            return self.answer(&printable, "0H");
        };
        if line.len() > MAX_REQUEST {
            return self.answer(request, "0G");
        }
        if self.speaks_scip_1 {
            return self.handle_line_of_scip_1(request);
        }
        let (command, text) = request.split_once(';').unwrap_or((request, ""));
        if text.len() > MAX_STRING {
            return self.answer(request, "0G");
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || " ._+@".contains(c);
        if !text.chars().all(allowed) {
            return self.answer(request, "0H");
        }
        if !command.is_ascii() {
            return self.answer(request, UNDEFINED);
        }
        let (name, parameters) = command.split_at(command.len().min(2));
        let reboot_asked = std::mem::take(&mut self.reboot_asked);
        if self.time_mode && !matches!(name, "TM" | "RS" | "%S") {
            return self.answer(request, UNDEFINED);
        }
        match (name, parameters) {
            ("VV", "") => self.push(identity::version(self.model, request)),
            ("PP", "") => self.push(identity::parameters(self.model, request)),
            ("II", "") => {
                let state = identity::ScannerState {
                    model: self.model,
                    laser_on: self.laser_on.is_some(),
                    speed: self.turns.speed(),
                    rpm: self.turns.rpm(),
                    bits_per_s: self.bits_per_s,
                    time_stamp: self.time_stamp(now),
                };
                self.push(state.reply(request));
            }
            ("BM", "") => {
                let status = if self.laser_on.is_some() { "02" } else { DONE };
                self.switch_laser_on(now);
                self.answer(request, status);
            }
            ("QT", "") => {
                self.switch_laser_off();
                self.answer(request, DONE);
            }
            ("RS" | "RT", "") => {
                self.reset(now, name == "RS");
                self.answer(request, DONE);
            }
            ("RB", "") if self.is_scip_2_2() => {
                self.answer(request, if reboot_asked { DONE } else { "01" });
                if reboot_asked {
                    let outputs = std::mem::take(&mut self.outputs);
                    *self = self.restarted(now);
                    self.outputs = outputs;
                    // A serial line stays open, but a TCP connection closes.
                    self.hangs_up = self.link == Transport::Ethernet;
                } else {
                    self.reboot_asked = true;
                }
            }
            ("CR", _) => {
                let status = self.change_speed(now, parameters);
                self.answer(request, status);
            }
            ("HS", _) => {
                let status = self.refuse_sensitivity();
                self.answer(request, status);
            }
            ("SS", _) => {
                let status = self.change_bit_rate(parameters);
                self.answer(request, status);
            }
            ("TM", _) => self.time(now, request, parameters),
            ("GD" | "GS" | "GE", _) if !self.quirks.lacks_gd => {
                self.one_scan(now, request, name, parameters)
            }
            ("MD" | "MS" | "ME", _) => self.many_scans(now, request, name, parameters),
            ("%S", "T") if self.is_scip_2_2() => {
                let state = self.state();
                self.push(Reply::to(request).line(DONE).line(state).end());
            }
            ("%S", "L") if self.is_scip_2_2() => {
                self.switch_laser_off();
                self.sleeping = true;
                self.answer(request, DONE);
            }
            _ => self.answer(request, UNDEFINED),
        }
    }

    /// Supports only what a host needs to leave SCIP 1.1; rejects other requests with an echo and a
    /// status without a checksum.
    fn handle_line_of_scip_1(&mut self, request: &str) {
        let status = match request {
            "SCIP2.0" => {
                self.speaks_scip_1 = false;
                "0"
            }
            _ => "E",
        };
        self.push(format!("{request}\n{status}\n\n").into_bytes());
    }

    fn answer(&mut self, request: &str, status: Status) {
        self.push(Reply::to(request).line(status).end());
    }

    fn push(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(bytes);
    }

    fn switch_laser_on(&mut self, now: Duration) {
        self.sleeping = false;
        self.laser_on.get_or_insert(now.max(self.ready_at));
    }

    fn switch_laser_off(&mut self) {
        self.laser_on = None;
        self.stream = None;
        self.latest = None;
        self.served = None;
        for waiting in std::mem::take(&mut self.waiting) {
            self.answer(&waiting.request, "10");
        }
    }

    fn is_scip_2_2(&self) -> bool {
        self.model == Model::Utm30Lx || self.link == Transport::Ethernet
    }

    /// Milliseconds in 24 bits.
    fn time_stamp(&self, now: Duration) -> u32 {
        let ms = now.saturating_sub(self.timer_zero).as_millis();
        (ms & 0xFF_FFFF) as u32
    }

    fn state(&self) -> Status {
        if self.time_mode {
            "002"
        } else if self.stream.is_some() {
            "004"
        } else if self.laser_on.is_some() {
            "003"
        } else if self.sleeping {
            "005"
        } else {
            "000"
        }
    }
}
