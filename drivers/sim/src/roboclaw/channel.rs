//! One of the two outputs of a controller: its drive, its buffered moves, and its encoder. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use super::packet::Firmware;
use crate::wheels::{Drive, MAX_BRAKING_QPPS2, Reading};

/// The maximum number of waiting moves per motor.
const MAX_MOVES: usize = 64;
/// No move is waiting or running.
const NO_MOVES: u8 = 0x80;
/// How long a current may exceed the limit before it is a fault.
const OVERCURRENT: Duration = Duration::from_millis(200);
/// The window of the speed averages.
const AVERAGE: Duration = Duration::from_secs(1);
/// The interval between the counts that the averages keep.
const AVERAGE_STEP: Duration = Duration::from_millis(50);
/// Near its target a position move slows down to this speed per remaining pulse.
const APPROACH_PER_S: f64 = 10.0;
/// A position move has arrived when it is this near and almost at rest.
const ARRIVED_PULSES: u32 = 2;
const ARRIVED_QPPS: i32 = 20;

/// One of the two outputs of a controller.
#[derive(Clone, Debug)]
pub(super) struct MotorChannel {
    drive: Drive,
    moves: VecDeque<Move>,
    running: Option<Running>,
    /// The position to hold after the last position move.
    held: Option<Move>,
    reading: Reading,
    /// The world's count at encoder zero.
    zero: i64,
    /// The encoder count at the last status update.
    seen: i64,
    underflow: bool,
    overflow: bool,
    too_much_since: Option<Duration>,
    overcurrent: bool,
    counts: VecDeque<(Duration, i64)>,
}

/// A command that can be buffered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) qpps: f64,
    pub(super) acceleration_qpps2: Option<f64>,
    pub(super) goal: Goal,
}

/// The end of a move.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// After this number of pulses. At speed 0 it ends when the motor stops: the ramp at the end of
    /// a profile.
    Way(u64),
    /// At a count of the encoder, which is then held.
    Position {
        count: i32,
        deceleration_qpps2: f64,
        /// A deviation up to this number of pulses is accepted.
        dead_zone: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Running {
    this: Move,
    from: i64,
}

impl MotorChannel {
    pub(super) fn new() -> Self {
        Self {
            drive: Drive::RELEASED,
            moves: VecDeque::new(),
            running: None,
            held: None,
            reading: Reading::default(),
            zero: 0,
            seen: 0,
            underflow: false,
            overflow: false,
            too_much_since: None,
            overcurrent: false,
            counts: VecDeque::new(),
        }
    }

    /// The same motor after a reset of the controller.
    pub(super) fn reset(&self) -> Self {
        let mut new = Self::new();
        new.reading = self.reading;
        new.set_encoder(0);
        new
    }

    pub(super) fn drive(&self) -> Drive {
        self.drive
    }

    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    pub(super) fn has_overcurrent(&self) -> bool {
        self.overcurrent
    }

    pub(super) fn has_moves(&self) -> bool {
        self.running.is_some()
    }

    /// Sets the drive.
    pub(super) fn set(&mut self, drive: Drive) {
        self.drive = drive;
        self.moves.clear();
        self.running = None;
        self.held = None;
    }

    /// Adds a move: now, or after the waiting ones.
    pub(super) fn add(&mut self, next: Move, at_once: bool) {
        if at_once {
            self.moves.clear();
            self.running = None;
        }
        if self.moves.len() < MAX_MOVES {
            self.moves.push_back(next);
        }
        if self.running.is_none() {
            self.run_next();
        }
    }

    fn run_next(&mut self) {
        self.running = self.moves.pop_front().map(|this| Running {
            this,
            from: self.reading.pulses,
        });
        if let Some(Running { this, .. }) = self.running {
            self.held = None;
            self.drive = self.drive_of(this);
        }
    }

    /// The number of waiting moves, in the form of command 47.
    pub(super) fn buffered(&self) -> u8 {
        match &self.running {
            None => NO_MOVES,
            Some(_) => u8::try_from(self.moves.len()).unwrap_or(NO_MOVES - 1),
        }
    }

    /// Processes measurements; a current above the limit for some time is a fault.
    pub(super) fn handle_reading(&mut self, now: Duration, reading: Reading, max_current_a: f64) {
        self.reading = reading;
        self.watch_encoder();
        while let Some(running) = self.running {
            if !self.is_done(running) {
                break;
            }
            self.run_next();
            if self.running.is_none() {
                self.finish(running.this);
            }
        }
        if let Some(this) = self.running.map(|running| running.this).or(self.held) {
            self.drive = self.drive_of(this);
        }
        if reading.current_a > max_current_a {
            let since = *self.too_much_since.get_or_insert(now);
            self.overcurrent = now >= since + OVERCURRENT;
        } else {
            (self.too_much_since, self.overcurrent) = (None, false);
        }
        self.watch_average(now);
    }

    /// The drive after the last move.
    fn finish(&mut self, last: Move) {
        match last.goal {
            Goal::Position { .. } => self.held = Some(last),
            Goal::Way(_) => {
                self.drive = Drive::Speed {
                    qpps: 0.0,
                    acceleration_qpps2: None,
                };
            }
        }
    }

    fn is_done(&self, running: Running) -> bool {
        let moved = self.reading.pulses.abs_diff(running.from);
        match running.this.goal {
            Goal::Way(_) if running.this.qpps == 0.0 => self.reading.speed_qpps == 0,
            Goal::Way(pulses) => moved >= pulses,
            Goal::Position {
                count, dead_zone, ..
            } => {
                self.way_to(count).unsigned_abs() <= ARRIVED_PULSES.max(dead_zone)
                    && self.reading.speed_qpps.abs() <= ARRIVED_QPPS
            }
        }
    }

    fn drive_of(&self, this: Move) -> Drive {
        match this.goal {
            Goal::Way(_) => Drive::Speed {
                qpps: this.qpps,
                acceleration_qpps2: this.acceleration_qpps2,
            },
            Goal::Position {
                count,
                deceleration_qpps2,
                dead_zone,
            } => {
                let way = self.way_to(count);
                let way = if way.unsigned_abs() <= dead_zone.max(1) {
                    0.0
                } else {
                    f64::from(way)
                };
                // Slightly below the motor's maximum, so that it can follow.
                let deceleration = deceleration_qpps2.clamp(1.0, 0.9 * MAX_BRAKING_QPPS2);
                let qpps = approach_qpps(way.abs(), deceleration).min(this.qpps.abs());
                let brakes = f64::from(self.reading.speed_qpps) * way.signum() > qpps;
                Drive::Speed {
                    qpps: if way == 0.0 { 0.0 } else { qpps * way.signum() },
                    acceleration_qpps2: match brakes || way == 0.0 {
                        true => Some(MAX_BRAKING_QPPS2),
                        false => this.acceleration_qpps2,
                    },
                }
            }
        }
    }

    /// The distance from here to a count; counts wrap.
    pub(super) fn way_to(&self, count: i32) -> i32 {
        count.wrapping_sub(self.encoder() as i32)
    }

    /// The distance to the position that it moves to or holds.
    pub(super) fn position_error(&self) -> i32 {
        let this = self.running.map(|running| running.this).or(self.held);
        match this.map(|this| this.goal) {
            Some(Goal::Position { count, .. }) => self.way_to(count),
            _ => 0,
        }
    }

    /// The commanded speed; 0 if only a voltage is commanded.
    pub(super) fn wanted_qpps(&self) -> i32 {
        match self.drive {
            Drive::Speed { qpps, .. } => qpps.round() as i32,
            Drive::Duty(_) => 0,
        }
    }

    pub(super) fn encoder(&self) -> i64 {
        self.reading.pulses.wrapping_sub(self.zero)
    }

    pub(super) fn set_encoder(&mut self, count: u32) {
        self.zero = self.reading.pulses.wrapping_sub(i64::from(count));
        self.seen = i64::from(count);
    }

    /// Detects a wrap of the 32-bit count.
    fn watch_encoder(&mut self) {
        let turns = |count: i64| count.div_euclid(1 << 32);
        let count = self.encoder();
        self.underflow |= turns(count) < turns(self.seen);
        self.overflow |= turns(count) > turns(self.seen);
        self.seen = count;
    }

    fn watch_average(&mut self, now: Duration) {
        let last = self.counts.back();
        if last.is_none_or(|(at, _)| now >= *at + AVERAGE_STEP) {
            self.counts.push_back((now, self.reading.pulses));
        }
        let is_old = |second: &(Duration, i64)| second.0 + AVERAGE <= now;
        while self.counts.get(1).is_some_and(is_old) {
            self.counts.pop_front();
        }
    }

    /// The count and its status; reading clears the status.
    pub(super) fn encoder_report(&mut self, firmware: Firmware) -> Vec<u8> {
        let status = self.encoder_status(firmware);
        let count = self.encoder() as u32;
        [count.to_be_bytes().as_slice(), &[status]].concat()
    }

    /// The status of the encoder; reading clears it.
    pub(super) fn encoder_status(&mut self, firmware: Firmware) -> u8 {
        let backwards = self.reading.speed_qpps < 0;
        // Observed on an old unit; its meaning is unknown.
        let unknown = if firmware.has_crc() { 0 } else { 0x80 };
        u8::from(std::mem::take(&mut self.underflow))
            | u8::from(backwards) << 1
            | u8::from(std::mem::take(&mut self.overflow)) << 2
            | unknown
    }

    /// The deviation from the commanded speed.
    pub(super) fn speed_error(&self) -> i32 {
        match self.drive {
            Drive::Speed { .. } => self.wanted_qpps() - self.reading.speed_qpps,
            // A voltage has no speed to deviate from.
            Drive::Duty(_) => 0,
        }
    }

    pub(super) fn average_qpps(&self) -> i32 {
        let (Some(first), Some(last)) = (self.counts.front(), self.counts.back()) else {
            return 0;
        };
        let seconds = (last.0 - first.0).as_secs_f64();
        if seconds == 0.0 {
            return 0;
        }
        ((last.1 - first.1) as f64 / seconds).round() as i32
    }

    pub(super) fn duty_i16(&self) -> i16 {
        (self.reading.duty * 32_767.0).round() as i16
    }

    pub(super) fn current_10ma(&self) -> i16 {
        (self.reading.current_a * 100.0).round() as i16
    }
}

/// The maximum speed at this distance from the target: a constant deceleration, with a gentle end
/// that does not overshoot.
fn approach_qpps(way: f64, deceleration: f64) -> f64 {
    let gentle_way = deceleration / (APPROACH_PER_S * APPROACH_PER_S);
    if way <= gentle_way {
        APPROACH_PER_S * way
    } else {
        (2.0 * deceleration * (way - gentle_way / 2.0)).sqrt()
    }
}
