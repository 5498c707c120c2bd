//! Decides what to do with the scanner, and when. PURE.
//!
//! ```text
//!  Absent --opened--> Calming --silence--> Asking --answered--> Starting --a turn--> Ready
//!    ^                   |                    |                    ^                  |
//!    |                   +------ packets -----+----- one wire -----+                  |
//!    +-- no answer, a fault, silence, no packet, or no turn for too long <------------+
//! ```
//!
//! Another program may have left a scan running, which hides answers. So it is stopped at first, and
//! at the end. A scanner with one wire goes on sending, and needs no start.

use std::time::{Duration, Instant};

use amber_proto::hokuyo::Scanner;

use super::packet::{
    HEAD, HEALTH, HEALTH_ANSWER, INFO, INFO_ANSWER, Packet, Parser, Point, SCAN, STOP,
};
use super::{Product, Settings};
use crate::rplidar::wire::answers;
use crate::scanner::clock::PointClock;
use crate::scanner::turns::{Echo, Sample, Turn, Turns, USUAL_MM};
use crate::scanner::{Model, Note, Output, Service};

/// A stopped scanner is silent for this time.
const QUIET: Duration = Duration::from_millis(50);
/// One that sends for longer after it was stopped has no wire for commands.
const MAX_CALMING: Duration = Duration::from_secs(1);
/// A damaged scan may look like a packet, but not as often.
const ENOUGH: u32 = 3;
/// How long an answer may take.
const ANSWERS: Duration = Duration::from_millis(300);
/// The questions, until they are answered: what it is, and whether it has a fault. Some scanners do
/// not answer the second one.
const QUESTIONS: [[u8; 2]; 5] = [INFO, INFO, INFO, HEALTH[0], HEALTH[1]];
const FIRST_ABOUT_HEALTH: usize = 3;
/// More received bytes do not wait for the rest of an answer.
const MAX_BYTES: usize = 4_096;
/// How long a scanner may be silent that was just switched on, and one that was started: its motor
/// gets up to its speed.
const WAKES: Duration = Duration::from_secs(3);
const SPINS_UP: Duration = Duration::from_secs(10);
/// How long bytes may arrive without a packet; fewer may be answers and the beginning of one.
const GARBLED: Duration = Duration::from_secs(2);
const MAX_USELESS: usize = 512;
/// How long packets may arrive without a complete turn, at first and later.
const STARTS: Duration = Duration::from_secs(12);
const STANDS: Duration = Duration::from_secs(3);
/// While the motor stands or starts, the angle of a packet may be anything.
const MAX_SPAN_DEG: f64 = 120.0;
/// The first packet of a turn may be at any angle. It is used only if it follows the one before.
const MAX_STEP_DEG: f64 = 5.0;

const DEAF: &str = "the scanner does not answer: check --model and --baud, its supply of 5 V, and \
                    whether TX and RX are exchanged";
const SILENT: &str = "the scanner sends nothing: check its supply of 5 V, and its wires";
const STILL: &str = "the scanner does not turn: check its supply of 5 V, and whether it is blocked";
const ONE_WIRE: &str = "it takes no commands: only its wire for data is connected";

/// The state of the scanner.
#[derive(Debug)]
pub struct YdlidarLogic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    /// Received bytes that may hold an answer.
    bytes: Vec<u8>,
    /// How many packets have arrived without a scan since the last command.
    unasked: u32,
    identity: Option<Identity>,
    clock: PointClock,
    /// The time between two points.
    step: Duration,
    turns: Turns,
    /// Where the head was at the last point, and how far that was behind it.
    head_deg: Option<f64>,
    behind_deg: f64,
    /// Packets of a motor that does not turn as it should.
    implausible: u64,
    /// Bytes of a scan that belong to no packet.
    damaged: u64,
    /// Bytes behind the last packet.
    useless: usize,
    /// When bytes, a packet and a complete turn last arrived, or should have started to.
    heard: Instant,
    decoded: Instant,
    turned: Instant,
    service: Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Calming { since: Instant },
    Asking { question: usize, until: Instant },
    Starting,
    Ready,
    Ended,
}

/// What a scanner says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// `None` if this driver does not know the model.
    pub(crate) product: Option<Product>,
    pub(crate) model: u8,
    pub(crate) firmware: String,
    serial: String,
}

impl Identity {
    /// The answer in the received bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        answers(bytes, INFO_ANSWER).find_map(|data| {
            let &[model, minor, major, _, ref serial @ ..] = data else {
                return None;
            };
            (serial.len() == 16).then(|| Self {
                product: Product::of(model),
                model,
                firmware: format!("{major}.{minor}"),
                // One decimal digit in each byte.
                serial: serial.iter().map(|digit| format!("{digit:X}")).collect(),
            })
        })
    }
}

impl Model for YdlidarLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        let mut logic = Self {
            turns: Turns::new(settings.mount),
            service: Service::new(settings.publish, now),
            parser: Parser::new(settings.product.forms()),
            settings,
            phase: Phase::Absent { until: now },
            bytes: Vec::new(),
            unasked: 0,
            identity: None,
            clock: PointClock::new(now),
            step: Duration::ZERO,
            head_deg: None,
            behind_deg: 0.0,
            implausible: 0,
            damaged: 0,
            useless: 0,
            heard: now,
            decoded: now,
            turned: now,
        };
        logic.try_again(now);
        logic
    }

    fn service(&self) -> &Service {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service {
        &mut self.service
    }

    fn opened(&mut self, now: Instant) {
        self.parser.clear();
        self.bytes.clear();
        self.unasked = 0;
        self.identity = None;
        self.clock = PointClock::new(now);
        self.heard = now;
        if self.settings.product.takes_commands() {
            self.service.push(Output::Write(STOP.to_vec()));
            self.phase = Phase::Calming { since: now };
        } else {
            self.begin(now);
        }
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
        self.heard = now;
        match self.phase {
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => return,
            Phase::Calming { .. } | Phase::Asking { .. } => self.handle_unasked(now, bytes),
            Phase::Starting | Phase::Ready => {
                let (is_ready, skipped) = (self.is_ready(), self.parser.skipped());
                self.parser.push(bytes);
                self.useless += bytes.len();
                self.handle_packets(now, timestamp_ms);
                // At first, there are answers between the packets.
                if is_ready {
                    self.damaged += self.parser.skipped() - skipped;
                }
            }
        }
        let damaged = self.damaged.div_ceil(HEAD as u64);
        self.service.counters.strays = damaged + self.implausible + self.turns.incomplete();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.wake_at().is_none_or(|due| now < due) {
            return;
        }
        match self.phase {
            Phase::Absent { .. } => self.try_again(now),
            Phase::Calming { .. } => self.ask(now, 0),
            Phase::Asking { question, .. } if question + 1 == FIRST_ABOUT_HEALTH => {
                let trouble = match self.bytes.is_empty() {
                    true => DEAF.into(),
                    false => self.garbled(),
                };
                self.give_up(now, trouble);
            }
            Phase::Asking { question, .. } => self.ask(now, question + 1),
            Phase::Starting | Phase::Ready => {
                let trouble = if now >= self.silent_at() {
                    SILENT.into()
                } else if self.garbled_at().is_some_and(|due| now >= due) {
                    self.garbled()
                } else {
                    STILL.into()
                };
                self.give_up(now, trouble);
            }
            Phase::Opening | Phase::Ended => {}
        }
    }

    fn shut_down(&mut self, _now: Instant) {
        let is_open = !matches!(
            self.phase,
            Phase::Absent { .. } | Phase::Opening | Phase::Ended
        );
        if is_open && self.settings.product.takes_commands() {
            self.service.push(Output::Write(STOP.to_vec()));
        }
        self.phase = Phase::Ended;
        self.service.push(Output::End);
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Opening | Phase::Ended => None,
            Phase::Calming { .. } => Some(self.heard + QUIET),
            Phase::Absent { until } | Phase::Asking { until, .. } => Some(until),
            Phase::Starting | Phase::Ready => {
                let due = self.silent_at().min(self.still_at());
                Some(self.garbled_at().map_or(due, |garbled| due.min(garbled)))
            }
        }
    }

    fn scanner(&self) -> Result<Scanner, &str> {
        if self.phase != Phase::Ready {
            return Err(self.trouble().unwrap_or("the scanner is still starting"));
        }
        let identity = self.identity.as_ref();
        let Settings { layout, mount, .. } = &self.settings;
        Ok(Scanner {
            model: Some(format!("YDLIDAR {}", self.settings.product.name())),
            firmware: identity.map(|it| it.firmware.clone()),
            serial_number: identity.map(|it| it.serial.clone()),
            ..layout.describe(*mount, self.turns.turn_time())
        })
    }
}

impl YdlidarLogic {
    /// Whether scans are available.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Asks a question; after the last one, the scan begins.
    fn ask(&mut self, now: Instant, question: usize) {
        self.bytes.clear();
        self.unasked = 0;
        match QUESTIONS.get(question) {
            Some(request) => {
                self.service.push(Output::Write(request.to_vec()));
                let until = now + ANSWERS;
                self.phase = Phase::Asking { question, until };
            }
            None => {
                self.service.push(Output::Write(SCAN.to_vec()));
                self.begin(now);
            }
        }
    }

    /// The next packets belong to a scan.
    fn begin(&mut self, now: Instant) {
        self.bytes.clear();
        self.clock.clear();
        self.turns.clear();
        self.head_deg = None;
        self.useless = 0;
        self.step = Duration::from_secs_f64(1.0 / self.settings.product.usual_rate_hz());
        (self.heard, self.decoded, self.turned) = (now, now, now);
        self.phase = Phase::Starting;
    }

    /// Bytes before the start of the scan: answers, the rest of a scan, or a scanner that takes no
    /// commands.
    fn handle_unasked(&mut self, now: Instant, bytes: &[u8]) {
        self.parser.push(bytes);
        while self.parser.poll().is_some() {
            self.unasked += 1;
        }
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(MAX_BYTES);
        self.bytes.drain(..excess);
        let sends = self.unasked >= ENOUGH;
        match self.phase {
            Phase::Calming { since } if now > since + MAX_CALMING => match sends {
                true => self.begin_unasked(now),
                false => self.give_up(now, self.garbled()),
            },
            Phase::Asking { question, .. } => match question < FIRST_ABOUT_HEALTH {
                true => match Identity::read(&self.bytes) {
                    Some(identity) => self.identify(now, identity),
                    None if sends => self.begin_unasked(now),
                    None => {}
                },
                false => self.check_health(now),
            },
            _ => {}
        }
    }

    fn begin_unasked(&mut self, now: Instant) {
        self.service.say(Note::Property(ONE_WIRE));
        self.begin(now);
    }

    fn identify(&mut self, now: Instant, identity: Identity) {
        let expected = self.settings.product;
        match identity.product {
            Some(found) if found != expected => {
                let (found, expected) = (found.name(), expected.name());
                let trouble =
                    format!("the scanner is a YDLIDAR {found}, not {expected}: check --model");
                self.give_up(now, trouble);
            }
            _ => {
                self.identity = Some(identity);
                self.ask(now, FIRST_ABOUT_HEALTH);
            }
        }
    }

    fn check_health(&mut self, now: Instant) {
        let health = answers(&self.bytes, HEALTH_ANSWER).find_map(|data| match *data {
            [state, low, high] => Some((state, u16::from_le_bytes([low, high]))),
            _ => None,
        });
        match health {
            // 1 is a warning.
            Some((0 | 1, _)) => self.ask(now, QUESTIONS.len()),
            Some((_, code)) => {
                let trouble = format!(
                    "the scanner has a fault (code {code:#06x}): check whether it is blocked, and its \
                     supply of 5 V"
                );
                self.give_up(now, trouble);
            }
            None => {}
        }
    }

    fn handle_packets(&mut self, now: Instant, timestamp_ms: i64) {
        let mut packets: Vec<Packet> = std::iter::from_fn(|| self.parser.poll()).collect();
        if !packets.is_empty() {
            self.decoded = now;
            self.useless = 0;
        }
        let arrived_count = packets.len();
        packets.retain(|packet| packet.span_deg() <= MAX_SPAN_DEG);
        self.implausible += (arrived_count - packets.len()) as u64;
        let Some(newest) = packets.last() else {
            return;
        };
        // The newest byte has just arrived. Its packet was sent after its last point was measured, by
        // ten bits per byte.
        let arrived = self.clock.at(now);
        let sent_s = newest.length as f64 * 10.0 / f64::from(self.settings.baud);
        let arrives = arrived.saturating_sub(Duration::from_secs_f64(sent_s));
        let count = packets.iter().map(|packet| packet.points.len()).sum();
        let mut times = self.clock.times(count, self.step, arrives);
        for packet in &packets {
            let follows = self.follows(packet);
            for (index, (point, time)) in packet.points.iter().zip(&mut times).enumerate() {
                if !follows {
                    continue;
                }
                let sample = self.sample(packet.angle_deg(index), *point, time);
                if let Some(turn) = self.turns.push(sample) {
                    let age = arrived.saturating_sub(turn.ended).as_millis();
                    let age_ms = i64::try_from(age).unwrap_or(i64::MAX);
                    self.handle_turn(now, timestamp_ms.saturating_sub(age_ms), turn);
                }
            }
        }
    }

    /// Whether a packet is where the head is.
    fn follows(&self, packet: &Packet) -> bool {
        let step = |before_deg: f64| (packet.angle_deg(0) - before_deg).rem_euclid(360.0);
        !packet.starts_turn || self.head_deg.is_none_or(|it| step(it) <= MAX_STEP_DEG)
    }

    fn sample(&mut self, head_deg: f64, point: Point, time: Duration) -> Sample {
        let product = self.settings.product;
        let mm = f64::from(point.quarter_mm) / 4.0;
        self.head_deg = Some(head_deg);
        // Without a distance, the direction is about that of the last point.
        if point.quarter_mm > 0 {
            self.behind_deg = product.behind_deg(mm);
        }
        Sample {
            head_deg: head_deg - product.behind_deg(USUAL_MM.into()),
            angle_deg: head_deg - self.behind_deg,
            echo: match point {
                Point { quarter_mm: 0, .. } => Echo::Nothing,
                Point {
                    is_doubtful: true, ..
                } => Echo::Invalid,
                _ => Echo::At(mm.round() as u16),
            },
            intensity: point.strength,
            time,
        }
    }

    fn handle_turn(&mut self, now: Instant, timestamp_ms: i64, turn: Turn) {
        self.turned = now;
        if let Some(turn_time) = self.turns.turn_time() {
            // Scanners can be set to other rates, which they do not tell.
            let usual = Duration::from_secs_f64(1.0 / self.settings.product.usual_rate_hz());
            let step = turn_time.div_f64(turn.samples.len() as f64);
            self.step = step.clamp(usual / 2, usual * 3);
        }
        let Settings {
            product,
            ref layout,
            filters,
            ..
        } = self.settings;
        if self.phase == Phase::Starting {
            self.phase = Phase::Ready;
            let (identity, points) = (self.identity.as_ref(), layout.points.count());
            let name = || {
                let firmware = identity.map(|it| format!(", firmware {}", it.firmware));
                let firmware = firmware.unwrap_or_default();
                format!("YDLIDAR {}{firmware}, {points} points", product.name())
            };
            self.service.works(now, name);
        }
        self.service.give(now, timestamp_ms, turn, layout, filters);
    }

    fn silent_at(&self) -> Instant {
        let longest = match self.phase {
            Phase::Ready => self.settings.timeout,
            _ if self.identity.is_some() => SPINS_UP,
            _ => WAKES,
        };
        self.heard + longest.max(self.settings.timeout)
    }

    fn garbled_at(&self) -> Option<Instant> {
        (self.useless > MAX_USELESS).then_some(self.decoded + GARBLED)
    }

    fn still_at(&self) -> Instant {
        let longest = match self.phase {
            Phase::Ready => STANDS,
            _ => STARTS,
        };
        self.turned + longest
    }

    fn garbled(&self) -> String {
        format!(
            "what arrives is not from a YDLIDAR {}: check --model, --baud, --port and the wires",
            self.settings.product.name()
        )
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        if self.phase == Phase::Ended {
            return;
        }
        let until = self.service.fails(now, trouble);
        self.phase = Phase::Absent { until };
        self.try_again(now);
    }

    fn try_again(&mut self, now: Instant) {
        if let Phase::Absent { until } = self.phase
            && now >= until
        {
            self.phase = Phase::Opening;
            self.service.push(Output::Open);
        }
    }
}

#[cfg(test)]
mod tests;
