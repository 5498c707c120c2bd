//! Decides what to do with the scanner, and when. PURE.
//!
//! ```text
//!  Absent --opened--> Calming --silence--> Asking --all answered--> SpinningUp --> Starting
//!    ^                   ^                    |                                       |
//!    |                   +---- Resetting <----+ it protects itself         a complete turn
//!    |                                                                                v
//!    +-- no answer, silence, no points, or no turn for too long <------------------ Ready
//! ```
//!
//! Another program may have left a scan running, and a scanner handles questions while it scans in
//! different ways. So it is stopped at first, and at the end.

use std::time::{Duration, Instant};

use amber_proto::hokuyo::Scanner;

use super::Settings;
use super::stream::Stream;
use super::survey::{Plan, Survey};
use super::wire::{self, RESET, STOP};
use crate::scanner::clock::PointClock;
use crate::scanner::layout::{Layout, Points};
use crate::scanner::turns::{Echo, Sample, Turn, Turns};
use crate::scanner::{Model, Output, Service};

/// A stopped scanner is silent for this time.
const QUIET: Duration = Duration::from_millis(30);
/// How long it may go on sending after it was stopped.
const MAX_CALMING: Duration = Duration::from_secs(2);
/// How long an answer may take, and how often a question is asked.
const ANSWERS: Duration = Duration::from_millis(300);
const MAX_TRIES: u32 = 3;
/// How long a scanner may be deaf after a restart.
const RESTARTS: Duration = Duration::from_millis(2_500);
/// An S2 measures nonsense at the beginning unless its motor has this time.
const SPINS_UP: Duration = Duration::from_secs(1);
/// How long bytes may arrive without a point.
const GARBLED: Duration = Duration::from_secs(2);
/// How long a scan may have no complete turn: at first, it has none until the speed is stable.
const STARTS: Duration = Duration::from_secs(12);
const STANDS: Duration = Duration::from_secs(3);
/// After the stop of a scan, before the stop of the motor.
const STOPS: Duration = Duration::from_millis(20);
/// More received bytes do not wait for the rest of an answer.
const MAX_BYTES: usize = 4_096;

const SILENT: &str = "the scanner does not answer: check its supply of 5 V, whether TX and RX are exchanged, and --baud";
const FOREIGN: &str =
    "what arrives is not from an RPLIDAR: check --port, --baud, and whether it is another scanner";
const ENDED: &str = "the scanner sends nothing: check its supply of 5 V, and its wires";
const REFUSES: &str = "the scanner does not start: check its supply of 5 V, and --mode";
const STILL: &str = "the scanner does not turn: check its supply of 5 V, and whether it is blocked";
const DAMAGED: &str =
    "much of what arrives is damaged: check the wires, the supply of 5 V, and --mode";

/// The state of the scanner.
#[derive(Debug)]
pub struct RplidarLogic {
    settings: Settings,
    phase: Phase,
    /// Received bytes that are not part of a scan.
    bytes: Vec<u8>,
    survey: Survey,
    scan: Option<Scan>,
    turns: Turns,
    clock: PointClock,
    /// When bytes and a complete turn last arrived, or should have started to.
    heard: Instant,
    turned: Instant,
    /// Since when bytes of a scan arrive without a point.
    garbled: Option<Instant>,
    /// How many turns were incomplete at the last complete one.
    incomplete: u64,
    /// A scanner that protects itself was restarted.
    was_reset: bool,
    service: Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Calming { since: Instant },
    Asking { tries: u32, until: Instant },
    Resetting { until: Instant },
    SpinningUp { until: Instant },
    Starting,
    Ready,
    Stopping { until: Instant },
    Ended,
}

/// A scan that was started.
#[derive(Debug)]
struct Scan {
    plan: Plan,
    layout: Layout,
    /// `None` until its head has arrived.
    stream: Option<Stream>,
}

impl Model for RplidarLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        let mut logic = Self {
            turns: Turns::new(settings.mount),
            service: Service::new(settings.publish, now),
            survey: Survey::new(settings.model, settings.mode.as_deref()),
            settings,
            phase: Phase::Absent { until: now },
            bytes: Vec::new(),
            scan: None,
            clock: PointClock::new(now),
            heard: now,
            turned: now,
            garbled: None,
            incomplete: 0,
            was_reset: false,
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
        self.clock = PointClock::new(now);
        self.was_reset = false;
        self.calm(now);
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
        self.heard = now;
        match self.phase {
            Phase::Calming { since } if now > since + MAX_CALMING => {
                self.give_up(now, FOREIGN.into());
            }
            Phase::Asking { .. } => {
                self.keep(bytes);
                self.handle_answers(now);
            }
            Phase::Starting | Phase::Ready => self.handle_scan(now, timestamp_ms, bytes),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.wake_at().is_none_or(|due| now < due) {
            return;
        }
        match self.phase {
            Phase::Absent { .. } => self.try_again(now),
            Phase::Calming { .. } => {
                let (model, mode) = (self.settings.model, self.settings.mode.as_deref());
                self.survey = Survey::new(model, mode);
                self.ask(now, 1);
            }
            Phase::Asking { tries, .. } if tries < MAX_TRIES => self.ask(now, tries + 1),
            Phase::Asking { .. } => match self.survey.handle_silence() {
                true => self.ask(now, 1),
                false if self.bytes.is_empty() => self.give_up(now, SILENT.into()),
                false => self.give_up(now, FOREIGN.into()),
            },
            Phase::Resetting { .. } => self.calm(now),
            Phase::SpinningUp { .. } => self.start(now),
            Phase::Starting | Phase::Ready => {
                let trouble = self.trouble_of_scan(now);
                self.give_up(now, trouble.to_owned());
            }
            Phase::Stopping { .. } => self.end(),
            Phase::Opening | Phase::Ended => {}
        }
    }

    fn shut_down(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => self.end(),
            _ => {
                self.service.push(Output::Write(STOP.to_vec()));
                self.phase = Phase::Stopping { until: now + STOPS };
            }
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Opening | Phase::Ended => None,
            Phase::Calming { .. } => Some(self.heard + QUIET),
            Phase::Absent { until }
            | Phase::Asking { until, .. }
            | Phase::Resetting { until }
            | Phase::SpinningUp { until }
            | Phase::Stopping { until } => Some(until),
            Phase::Starting | Phase::Ready => {
                let due = self.silent_at().min(self.still_at());
                Some(self.garbled_at().map_or(due, |garbled| due.min(garbled)))
            }
        }
    }

    fn scanner(&self) -> Result<Scanner, &str> {
        let (Phase::Ready, Some(Scan { plan, layout, .. })) = (self.phase, &self.scan) else {
            return Err(self.trouble().unwrap_or("the scanner is still starting"));
        };
        Ok(Scanner {
            model: Some(format!("RPLIDAR {}", plan.name)),
            firmware: Some(plan.firmware.clone()),
            serial_number: Some(plan.serial.clone()),
            ..layout.describe(self.settings.mount, self.turns.turn_time())
        })
    }
}

impl RplidarLogic {
    /// Whether scans are available.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Stops whatever the scanner is doing.
    fn calm(&mut self, now: Instant) {
        self.service.push(Output::Write(STOP.to_vec()));
        self.bytes.clear();
        self.scan = None;
        self.heard = now;
        self.phase = Phase::Calming { since: now };
    }

    /// Asks the next question for the first time or again; after the last one, the scan begins.
    fn ask(&mut self, now: Instant, tries: u32) {
        let Some(question) = self.survey.question() else {
            return self.prepare(now);
        };
        self.bytes.clear();
        self.service.push(Output::Write(question.request()));
        let until = now + ANSWERS;
        self.phase = Phase::Asking { tries, until };
    }

    fn handle_answers(&mut self, now: Instant) {
        let question = self.survey.question();
        let Some(data) = question.and_then(|it| it.answer(&self.bytes)) else {
            return;
        };
        if let Err(problem) = self.survey.handle(&data) {
            return self.give_up(now, problem);
        }
        match self.survey.fault() {
            None => self.ask(now, 1),
            Some(_) if !self.was_reset => {
                self.was_reset = true;
                self.service.push(Output::Write(RESET.to_vec()));
                self.phase = Phase::Resetting {
                    until: now + RESTARTS,
                };
            }
            Some(code) => self.give_up(
                now,
                format!(
                    "the scanner has stopped to protect itself (code {code:#06x}): check whether it is \
                     blocked, and its supply of 5 V"
                ),
            ),
        }
    }

    fn prepare(&mut self, now: Instant) {
        let plan = match self.survey.plan() {
            Ok(plan) => plan,
            Err(problem) => return self.give_up(now, problem),
        };
        let until = match &plan.motor {
            Some((run, _)) => {
                self.service.push(Output::Write(run.clone()));
                now + SPINS_UP
            }
            None => now,
        };
        self.scan = Some(Scan {
            layout: self.settings.layout(&plan),
            plan,
            stream: None,
        });
        self.phase = Phase::SpinningUp { until };
        self.handle_timeout(now);
    }

    fn start(&mut self, now: Instant) {
        let Some(scan) = &self.scan else {
            return;
        };
        self.service.push(Output::Write(scan.plan.start.clone()));
        self.bytes.clear();
        self.turns.clear();
        self.clock.clear();
        (self.heard, self.turned, self.garbled) = (now, now, None);
        self.phase = Phase::Starting;
    }

    fn handle_scan(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
        let Some(scan) = &mut self.scan else {
            return;
        };
        let format = scan.plan.format;
        let Some(stream) = &mut scan.stream else {
            self.keep(bytes);
            if let Some(begin) = wire::stream(&self.bytes, format as u8, format.length()) {
                let rest = self.bytes.split_off(begin);
                self.bytes.clear();
                if let Some(scan) = &mut self.scan {
                    scan.stream = Some(Stream::new(format));
                }
                self.turned = now;
                self.handle_scan(now, timestamp_ms, &rest);
            }
            return;
        };
        stream.push(bytes);
        let points: Vec<_> = std::iter::from_fn(|| stream.poll()).flatten().collect();
        let damaged = stream.skipped().div_ceil(format.length() as u64);
        self.service.counters.strays = damaged + self.turns.incomplete();
        if points.is_empty() {
            let arrived = (!bytes.is_empty()).then_some(now);
            self.garbled = self.garbled.or(arrived);
            return;
        }
        self.garbled = None;
        // The newest byte has just arrived. The points before it are older.
        let arrived = self.clock.at(now);
        let step = scan.plan.sample_time;
        let arrives = arrived.saturating_sub(step.mul_f64(format.delay() as f64));
        let times = self.clock.times(points.len(), step, arrives);
        for (point, time) in points.iter().zip(times) {
            let turn = self.turns.push(Sample {
                head_deg: point.head_deg - format.usual_behind_deg(),
                angle_deg: point.angle_deg,
                echo: match point.mm {
                    0 => Echo::Nothing,
                    mm => Echo::At(mm),
                },
                intensity: point.quality,
                time,
            });
            if let Some(turn) = turn {
                let age = arrived.saturating_sub(turn.ended).as_millis();
                let age_ms = i64::try_from(age).unwrap_or(i64::MAX);
                self.handle_turn(now, timestamp_ms.saturating_sub(age_ms), turn);
            }
        }
    }

    fn handle_turn(&mut self, now: Instant, timestamp_ms: i64, turn: Turn) {
        let Some(Scan { plan, layout, .. }) = &self.scan else {
            return;
        };
        self.turned = now;
        self.incomplete = self.turns.incomplete();
        if self.phase == Phase::Starting {
            self.phase = Phase::Ready;
            let points = layout.points.count();
            let name = || {
                let Plan {
                    name,
                    firmware,
                    mode,
                    ..
                } = plan;
                format!("RPLIDAR {name}, firmware {firmware}, {mode}, {points} points")
            };
            self.service.works(now, name);
        }
        let filters = self.settings.filters;
        self.service.give(now, timestamp_ms, turn, layout, filters);
    }

    fn has_begun(&self) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.stream.is_some())
    }

    fn silent_at(&self) -> Instant {
        let longest = match self.phase {
            Phase::Ready => self.settings.timeout,
            // Until its speed is stable, it sends nothing.
            _ if self.has_begun() => STARTS,
            _ => ANSWERS * MAX_TRIES,
        };
        self.heard + longest
    }

    fn garbled_at(&self) -> Option<Instant> {
        self.garbled.map(|since| since + GARBLED)
    }

    fn still_at(&self) -> Instant {
        let longest = match self.phase {
            Phase::Ready => STANDS,
            _ => STARTS,
        };
        self.turned + longest
    }

    /// Why a scan is given up: which of its times is over.
    fn trouble_of_scan(&self, now: Instant) -> &'static str {
        if !self.has_begun() {
            REFUSES
        } else if now >= self.silent_at() {
            if self.is_ready() { ENDED } else { STILL }
        } else if self.garbled_at().is_some_and(|due| now >= due) {
            FOREIGN
        } else if self.turns.incomplete() > self.incomplete {
            DAMAGED
        } else {
            STILL
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(MAX_BYTES);
        self.bytes.drain(..excess);
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        match self.phase {
            Phase::Ended => {}
            Phase::Stopping { .. } => self.end(),
            _ => {
                let until = self.service.fails(now, trouble);
                self.phase = Phase::Absent { until };
                self.try_again(now);
            }
        }
    }

    fn try_again(&mut self, now: Instant) {
        if let Phase::Absent { until } = self.phase
            && now >= until
        {
            self.phase = Phase::Opening;
            self.service.push(Output::Open);
        }
    }

    /// Nothing is left to do but to stop the motor.
    fn end(&mut self) {
        let is_open = matches!(self.phase, Phase::Stopping { .. });
        let plan = self.scan.as_ref().map(|scan| &scan.plan);
        if let Some((_, stop)) = plan
            .and_then(|plan| plan.motor.as_ref())
            .filter(|_| is_open)
        {
            self.service.push(Output::Write(stop.clone()));
        }
        self.phase = Phase::Ended;
        self.service.push(Output::End);
    }
}

impl Settings {
    /// The layout of the scans of a scanner.
    fn layout(&self, plan: &Plan) -> Layout {
        let (min_mm, max_mm) = plan.product.range_mm();
        let sample_us = plan.sample_time.as_secs_f64() * 1e6;
        let points = || Points::Count(plan.product.points(sample_us));
        Layout {
            points: self.points.unwrap_or_else(points),
            blank: self.blank.clone(),
            min_mm: self.min_mm.unwrap_or(min_mm),
            max_mm: self.max_mm.or(plan.max_mm).unwrap_or(max_mm),
            no_echo: self.no_echo,
        }
    }
}

#[cfg(test)]
mod tests;
