//! Decides what to do with the scanner, and when. PURE.
//!
//! ```text
//!  Absent --opened--> Waking --a complete turn--> Ready
//!    ^                  |                           |
//!    +------------------+-- silence, no packet, ----+
//!                           or no turn for too long
//! ```
//!
//! The scanner sends all the time, so nothing is requested. An LD14P is started at first, and stopped
//! at the end.

use std::time::{Duration, Instant};

use amber_proto::hokuyo::Scanner;

use super::Settings;
use super::packet::{LENGTH, POINTS, Packet, Parser, STAMP_END_MS, START, STOP};
use crate::scanner::turns::{Echo, Sample, Turn, Turns, USUAL_MM};
use crate::scanner::{Model, Output, Service};

/// How long a scanner may be silent that was just switched on.
const WAKES: Duration = Duration::from_secs(2);
/// How long bytes may arrive without a packet.
const GARBLED: Duration = Duration::from_secs(2);
/// How long packets may arrive without a complete turn: at first the motor gets up to its speed.
const STARTS: Duration = Duration::from_secs(10);
const STANDS: Duration = Duration::from_secs(3);

const SILENT: &str = "the scanner sends nothing: check its supply of 5 V, and the wire of its data";
const STILL: &str = "the scanner does not turn: check its supply of 5 V, and whether it is blocked";

/// The state of the scanner.
#[derive(Debug)]
pub struct LdrobotLogic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    clock: StampClock,
    turns: Turns,
    /// How far the last point was behind the head.
    behind_deg: f64,
    /// Packets of a motor that does not turn as it should.
    implausible: u64,
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
    Waking,
    Ready,
    Ended,
}

/// Follows the time stamps of the scanner, which wrap.
#[derive(Clone, Copy, Debug, Default)]
struct StampClock {
    last_ms: Option<u16>,
    time: Duration,
}

impl StampClock {
    /// The time since the first stamp and one second more, so that there is a time before it.
    fn time(&mut self, stamp_ms: u16) -> Duration {
        let end = u32::from(STAMP_END_MS);
        let stamp = u32::from(stamp_ms) % end;
        let passed_ms = match self.last_ms {
            Some(last_ms) => (stamp + end - u32::from(last_ms)) % end,
            None => 1_000,
        };
        // Below 30000.
        self.last_ms = Some(stamp as u16);
        self.time += Duration::from_millis(passed_ms.into());
        self.time
    }
}

impl Model for LdrobotLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        let mut logic = Self {
            turns: Turns::new(settings.mount),
            service: Service::new(settings.publish, now),
            settings,
            phase: Phase::Absent { until: now },
            parser: Parser::default(),
            clock: StampClock::default(),
            behind_deg: 0.0,
            implausible: 0,
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
        self.turns.clear();
        self.clock = StampClock::default();
        (self.heard, self.decoded, self.turned) = (now, now, now);
        self.phase = Phase::Waking;
        if self.settings.product.takes_commands() {
            self.service.push(Output::Write(START.to_vec()));
        }
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
        if !matches!(self.phase, Phase::Waking | Phase::Ready) {
            return;
        }
        self.heard = now;
        self.parser.push(bytes);
        self.handle_packets(now, timestamp_ms);
        let damaged = self.parser.skipped().div_ceil(LENGTH as u64);
        self.service.counters.strays = damaged + self.implausible + self.turns.incomplete();
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { .. } => self.try_again(now),
            Phase::Waking | Phase::Ready => {
                if now >= self.silent_at() {
                    self.give_up(now, SILENT.into());
                } else if now >= self.decoded + GARBLED {
                    self.give_up(now, self.garbled());
                } else if now >= self.still_at() {
                    self.give_up(now, STILL.into());
                }
            }
            Phase::Opening | Phase::Ended => {}
        }
    }

    fn shut_down(&mut self, _now: Instant) {
        let is_open = matches!(self.phase, Phase::Waking | Phase::Ready);
        if is_open && self.settings.product.takes_commands() {
            self.service.push(Output::Write(STOP.to_vec()));
        }
        self.phase = Phase::Ended;
        self.service.push(Output::End);
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Waking | Phase::Ready => {
                let due = self.silent_at().min(self.decoded + GARBLED);
                Some(due.min(self.still_at()))
            }
            Phase::Opening | Phase::Ended => None,
        }
    }

    fn scanner(&self) -> Result<Scanner, &str> {
        if self.phase != Phase::Ready {
            return Err(self.trouble().unwrap_or("the scanner is still starting"));
        }
        let Settings {
            product,
            mount,
            ref layout,
            ..
        } = self.settings;
        // To a millisecond, which is how exactly the scanner tells the time.
        let to_ms = |time: Duration| {
            let ms = (time.as_secs_f64() * 1_000.0).round();
            Duration::from_secs_f64(ms / 1_000.0)
        };
        Ok(Scanner {
            model: Some(product.name().to_owned()),
            ..layout.describe(mount, self.turns.turn_time().map(to_ms))
        })
    }
}

impl LdrobotLogic {
    /// Whether scans are available.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn handle_packets(&mut self, now: Instant, timestamp_ms: i64) {
        let mut packets = Vec::new();
        while let Some(packet) = self.parser.poll() {
            packets.push((self.clock.time(packet.stamp_ms), packet));
        }
        // The newest packet has just arrived; the others are older.
        let Some(newest) = packets.last().map(|(time, _)| *time) else {
            return;
        };
        self.decoded = now;
        for (time, packet) in packets {
            if !self.settings.product.is_plausible(&packet) {
                self.implausible += 1;
                continue;
            }
            for sample in self.samples(time, &packet) {
                if let Some(turn) = self.turns.push(sample) {
                    let age = newest.saturating_sub(turn.ended).as_millis();
                    let age_ms = i64::try_from(age).unwrap_or(i64::MAX);
                    self.handle_turn(now, timestamp_ms.saturating_sub(age_ms), turn);
                }
            }
        }
    }

    /// The points of a packet whose last one was measured at this time of the scanner.
    fn samples(&mut self, last: Duration, packet: &Packet) -> [Sample; POINTS] {
        let product = self.settings.product;
        let point_time = product.point_time(packet);
        let usual_deg = product.behind_deg(USUAL_MM);
        std::array::from_fn(|k| {
            let (mm, intensity) = packet.points[k];
            let head_deg = packet.angle_deg(k);
            // Without a distance, the direction is about that of the last point.
            if mm > 0 {
                self.behind_deg = product.behind_deg(mm);
            }
            let before_last = (POINTS - 1 - k) as u32;
            Sample {
                head_deg: head_deg - usual_deg,
                angle_deg: head_deg - self.behind_deg,
                echo: match mm {
                    0 => Echo::Nothing,
                    _ => Echo::At(mm),
                },
                intensity,
                time: last.saturating_sub(point_time * before_last),
            }
        })
    }

    fn handle_turn(&mut self, now: Instant, timestamp_ms: i64, turn: Turn) {
        self.turned = now;
        if self.phase == Phase::Waking {
            self.phase = Phase::Ready;
            let (product, points) = (self.settings.product, self.settings.layout.points);
            let name = || format!("{}, {} points", product.name(), points.count());
            self.service.works(now, name);
        }
        let Settings {
            ref layout,
            filters,
            ..
        } = self.settings;
        self.service.give(now, timestamp_ms, turn, layout, filters);
    }

    fn silent_at(&self) -> Instant {
        let longest = match self.phase {
            Phase::Ready => self.settings.timeout,
            _ => self.settings.timeout.max(WAKES),
        };
        self.heard + longest
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
            "what arrives is not from an {}: check --model, --baud, --port and the wires",
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
