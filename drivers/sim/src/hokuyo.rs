//! A Hokuyo laser scanner that speaks SCIP 2.0, as a machine: bytes in, bytes
//! out. PURE.
//!
//! Time is a [`Duration`] since the simulation began and never goes back.
//! After each `handle_*` and at [`Hokuyo::next_timeout`]: while
//! [`Hokuyo::poll_sweep`] names a turn of the laser, measure it and give it to
//! [`Hokuyo::handle_scan`]; then drain [`Hokuyo::poll_output`]. Turns that
//! nobody wants are never asked for.

mod identity;
mod model;
mod part;
mod scip;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::model::{Model, Scan, Sweep};
use self::part::{Part, digits};
use self::scip::Reply;
pub use self::scip::{encode, sum};
use self::turns::Turns;

/// No request is longer than this, its string included.
const MAX_REQUEST: usize = 64;
/// The longest string that a request may carry.
const MAX_STRING: usize = 16;
/// After power-on the motor needs so long until there is a scan.
const SPIN_UP: Duration = Duration::from_secs(1);
/// A turn that should have been sent longer ago than this is left out.
const TOO_LATE: Duration = Duration::from_millis(300);
/// No more requests than this wait for a scan; a host sends one at a time.
const MAX_WAITING: usize = 16;

/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Hokuyo {
    model: Model,
    link: Link,
    line: Vec<u8>,
    outputs: VecDeque<Vec<u8>>,
    /// When the laser went on, or the motor was ready if that was later.
    laser_on: Option<Duration>,
    ready_at: Duration,
    stream: Option<Stream>,
    waiting: VecDeque<Waiting>,
    latest: Option<(Sweep, Scan)>,
    sensitive: bool,
    bits_per_s: u32,
    time_mode: bool,
    sleeping: bool,
    reboot_asked: bool,
    timer_zero: Duration,
    turns: Turns,
}

/// How a scanner is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// By a serial line or USB.
    Serial,
    /// By Ethernet; such models know the commands of SCIP 2.2.
    Ethernet,
}

/// A request for one scan that is not finished yet.
#[derive(Clone, Debug)]
struct Waiting {
    request: String,
    part: Part,
    turn: u64,
}

/// Scans that are sent without further requests.
#[derive(Clone, Debug)]
struct Stream {
    /// The request without its last two digits, and the string after them.
    echo: (String, String),
    part: Part,
    skip: u64,
    /// How many are still to come, if that was said.
    remaining: Option<u32>,
    turn: u64,
}

/// The two characters that say how a request went.
type Status = &'static str;

const DONE: Status = "00";
const UNDEFINED: Status = "0E";

impl Hokuyo {
    /// A scanner that was just switched on.
    #[must_use]
    pub fn new(model: Model, link: Link, now: Duration) -> Self {
        Self {
            model,
            link,
            line: Vec::new(),
            outputs: VecDeque::new(),
            laser_on: None,
            ready_at: now + SPIN_UP,
            stream: None,
            waiting: VecDeque::new(),
            latest: None,
            sensitive: false,
            bits_per_s: 19_200,
            time_mode: false,
            sleeping: false,
            reboot_asked: false,
            timer_zero: now,
            turns: Turns::new(model, now),
        }
    }

    /// The same device after its power was off.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self::new(self.model, self.link, now)
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
                // One more than allowed is kept, to know that it was too long.
                _ if self.line.len() <= MAX_REQUEST => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// The turn of the laser that is finished and wanted.
    #[must_use]
    pub fn poll_sweep(&mut self, now: Duration) -> Option<Sweep> {
        self.serve_known(now);
        let turn = self.next_turn()?;
        let sweep = self.turns.sweep(turn);
        (self.turns.finished(sweep) <= now).then_some(sweep)
    }

    /// What was measured in the turn that was asked for.
    pub fn handle_scan(&mut self, now: Duration, sweep: Sweep, scan: Scan) {
        self.latest = Some((sweep, scan));
        self.serve_known(now);
    }

    /// The next piece for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// When a turn will be finished that somebody wants.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let turn = self.next_turn()?;
        Some(self.turns.finished(self.turns.sweep(turn)))
    }

    /// The host is gone; the device goes on without sending.
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
                let state = identity::State {
                    model: self.model,
                    laser_on: self.laser_on.is_some(),
                    sensitive: self.sensitive,
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
                    *self = Self::new(self.model, self.link, now);
                    self.outputs = outputs;
                } else {
                    self.reboot_asked = true;
                }
            }
            ("CR", _) => {
                let status = self.change_speed(now, parameters);
                self.answer(request, status);
            }
            ("HS", _) => {
                let status = self.change_sensitivity(parameters);
                self.answer(request, status);
            }
            ("SS", _) => {
                let status = self.change_bit_rate(parameters);
                self.answer(request, status);
            }
            ("TM", _) => self.time(now, request, parameters),
            ("GD" | "GS" | "GE", _) => self.one_scan(now, request, name, parameters),
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
        for waiting in std::mem::take(&mut self.waiting) {
            self.answer(&waiting.request, "10");
        }
    }

    fn reset(&mut self, now: Duration, whole: bool) {
        self.switch_laser_off();
        self.time_mode = false;
        self.sensitive = false;
        self.timer_zero = now;
        if whole {
            self.set_speed(now, 0);
            self.bits_per_s = 19_200;
        }
    }

    fn change_speed(&mut self, now: Duration, parameters: &str) -> Status {
        let Some(speed) = digits(parameters, 2) else {
            return "01";
        };
        let speed = match speed {
            _ if self.model == Model::Utm30Lx => return "04",
            99 => 0,
            0..=10 => speed,
            _ => return "02",
        };
        if speed == self.turns.speed() {
            return "03";
        }
        self.set_speed(now, speed);
        DONE
    }

    fn set_speed(&mut self, now: Duration, speed: u32) {
        if self.turns.set_speed(now, speed) {
            self.latest = None;
            // Turns are counted anew.
            let turn = self.turns.first_from(now);
            if let Some(stream) = &mut self.stream {
                stream.turn = turn;
            }
            for waiting in &mut self.waiting {
                waiting.turn = turn;
            }
        }
    }

    fn change_sensitivity(&mut self, parameters: &str) -> Status {
        match digits(parameters, 1) {
            _ if self.model == Model::Utm30Lx => "03",
            None | Some(2..) => "01",
            Some(wanted) if (wanted == 1) == self.sensitive => "02",
            Some(wanted) => {
                self.sensitive = wanted == 1;
                DONE
            }
        }
    }

    fn change_bit_rate(&mut self, parameters: &str) -> Status {
        const RATES: [u32; 7] = [19_200, 38_400, 57_600, 115_200, 250_000, 500_000, 750_000];
        match digits(parameters, 6) {
            None => "01",
            Some(_) if self.link == Link::Ethernet => "0F",
            Some(_) if self.model == Model::Utm30Lx => "04",
            Some(rate) if !RATES.contains(&rate) => "02",
            Some(rate) if rate == self.bits_per_s => "03",
            Some(rate) => {
                self.bits_per_s = rate;
                DONE
            }
        }
    }

    fn time(&mut self, now: Duration, request: &str, parameters: &str) {
        let status = match (parameters, self.time_mode) {
            ("0", true) => "02",
            ("0", false) => {
                self.switch_laser_off();
                self.time_mode = true;
                DONE
            }
            ("1", true) => {
                let time = encode(self.time_stamp(now), 4);
                return self.push(Reply::to(request).line(DONE).line(time).end());
            }
            ("1", false) => "04",
            ("2", true) => {
                self.time_mode = false;
                DONE
            }
            ("2", false) => "03",
            _ => "01",
        };
        self.answer(request, status);
    }

    fn one_scan(&mut self, now: Duration, request: &str, name: &str, parameters: &str) {
        let part = match Part::parse(self.model, name, parameters, 10) {
            Ok(part) => part,
            Err(status) => return self.answer(request, status),
        };
        let Some(on) = self.laser_on else {
            return self.answer(request, "10");
        };
        if self.waiting.len() == MAX_WAITING {
            return self.answer(request, "0A");
        }
        // The latest that is finished, or the first one of all.
        let turn = self.turns.last_finished(now).max(self.turns.first_from(on));
        self.waiting.push_back(Waiting {
            request: request.to_owned(),
            part,
            turn,
        });
    }

    fn many_scans(&mut self, now: Duration, request: &str, name: &str, parameters: &str) {
        let checked = Part::parse(self.model, name, parameters, 13).and_then(|part| {
            let skip = digits(&parameters[10..11], 1).ok_or("06")?;
            let count = digits(&parameters[11..13], 2).ok_or("07")?;
            Ok((part, skip, count))
        });
        let (part, skip, count) = match checked {
            Ok(checked) => checked,
            Err(status) => return self.answer(request, status),
        };
        self.switch_laser_on(now);
        let from = self.laser_on.map_or(now, |on| on.max(now));
        let (command, text) = request.split_at(2 + 13);
        self.stream = Some(Stream {
            echo: (command[..13].to_owned(), text.to_owned()),
            part,
            skip: u64::from(skip),
            remaining: (count > 0).then_some(count),
            turn: self.turns.first_from(from),
        });
        self.answer(request, DONE);
    }

    /// The turn that is wanted first.
    fn next_turn(&self) -> Option<u64> {
        let streamed = self.stream.as_ref().map(|stream| stream.turn);
        let waiting = self.waiting.iter().map(|waiting| waiting.turn);
        waiting.chain(streamed).min()
    }

    /// Sends what can be sent of the latest scan, and leaves out what is too late.
    fn serve_known(&mut self, now: Duration) {
        let current = self.turns.last_finished(now);
        if let Some(stream) = &mut self.stream {
            let turns_late = self.turns.within(TOO_LATE);
            if current.saturating_sub(stream.turn) > turns_late {
                stream.turn = current;
            }
        }
        let Some((sweep, scan)) = self.latest.take() else {
            return;
        };
        let time = self.time_stamp(sweep.start);
        let (served, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|waiting| self.turns.sweep(waiting.turn) == sweep);
        self.waiting = waiting;
        for waiting in served {
            let reply = Reply::to(&waiting.request).line(DONE);
            self.push(waiting.part.block(reply, time, &scan));
        }
        self.latest = Some((sweep, scan));
        let Some(stream) = &self.stream else { return };
        if self.turns.sweep(stream.turn) == sweep {
            self.send_streamed(time);
        }
    }

    fn send_streamed(&mut self, time: u32) {
        let (Some(mut stream), Some((_, scan))) = (self.stream.take(), &self.latest) else {
            return;
        };
        let remaining = stream.remaining.map(|count| count - 1);
        let (before, after) = &stream.echo;
        let echo = format!("{before}{:02}{after}", remaining.unwrap_or_default());
        let bytes = stream.part.block(Reply::to(&echo).line("99"), time, scan);
        self.push(bytes);
        if remaining == Some(0) {
            self.switch_laser_off();
        } else {
            stream.remaining = remaining;
            stream.turn += 1 + stream.skip;
            self.stream = Some(stream);
        }
    }

    fn is_scip_2_2(&self) -> bool {
        self.model == Model::Utm30Lx || self.link == Link::Ethernet
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
