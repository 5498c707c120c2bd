//! One servo: its registers. PURE.
//!
//! When its watchdog stops it, its goal stays: it goes on when the watchdog is reset, as fast as it can.
//! Whether real ones do so is not known; programs must not rely on the opposite.

use std::ops::Range;
use std::time::Duration;

use crate::bus_servos::{self, Drive, Motor};
use crate::control::BusServo;

/// The registers below this one are its memory.
const MEMORY: usize = 64;
const REGISTERS: usize = 147;

const DRIVE_MODE: usize = 10;
const MODE: usize = 11;
const OFFSET: usize = 20;
const THRESHOLD: usize = 24;
const MAX_TEMPERATURE: usize = 31;
const VOLTAGES: usize = 32;
const SPEED_LIMIT: usize = 44;
const MAX: usize = 48;
const MIN: usize = 52;
const SHUTDOWN: usize = 63;
const TORQUE: usize = 64;
const LEVEL: usize = 68;
const ERROR: usize = 70;
const WATCHDOG: usize = 98;
const SPEED: usize = 104;
const ACCELERATION: usize = 108;
const PROFILE: usize = 112;
const GOAL: usize = 116;

/// What is in the register of the watchdog when it has stopped the servo.
const STOPPED: u8 = 0xFF;
const WATCHDOG_UNIT: Duration = Duration::from_millis(20);
/// The unit of speeds, 0.229 turns per minute, in steps per second.
const SPEED_UNIT: f64 = 0.229 * 4096.0 / 60.0;
/// The unit of accelerations, 214.577 turns per minute squared, in steps per second squared.
const ACCELERATION_UNIT: f64 = 214.577 * 4096.0 / 3600.0;

/// What a servo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// XL430-W250, for 12 V.
    Xl430,
    /// XL330-M288, for 5 V.
    Xl330,
}

/// Why a servo does not do something, with the number of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It does not know the instruction.
    Instruction = 2,
    /// There are no such registers, or its watchdog has stopped it.
    Range = 4,
    /// The value is beyond a limit.
    Limit = 6,
    /// The registers cannot be written, or not now.
    Access = 7,
}

/// A servo.
#[derive(Clone, Debug)]
pub struct Servo {
    of: Type,
    registers: [u8; REGISTERS],
    /// How often a register of its memory was written.
    pub memory_writes: u32,
    /// What its registers turn.
    pub motor: Motor,
    waiting: Option<(u16, Vec<u8>)>,
    silent_for: Duration,
    /// Whether its cable is out, or it is dead.
    pub is_mute: bool,
    /// The voltage of its supply.
    pub volts: f64,
    /// How warm it is.
    pub temperature_c: u8,
}

impl Servo {
    pub(super) fn new(id: u8, of: Type) -> Self {
        let mut servo = Self {
            of,
            registers: [0; REGISTERS],
            memory_writes: 0,
            motor: Motor::at(2048.0),
            waiting: None,
            silent_for: Duration::ZERO,
            is_mute: false,
            volts: match of {
                Type::Xl430 => 12.0,
                Type::Xl330 => 5.0,
            },
            temperature_c: 31,
        };
        let (model, voltages, speed_limit) = match of {
            Type::Xl430 => (1060, [140, 0, 60, 0], 265),
            Type::Xl330 => (1200, [70, 0, 35, 0], 445),
        };
        servo.set(0, model);
        // Set up for an arm: 1 000 000 baud, and no delay of answers.
        servo.registers[6..14].copy_from_slice(&[52, id, 3, 0, 0, 3, 255, 2]);
        servo.set(THRESHOLD, 10);
        servo.registers[MAX_TEMPERATURE] = 70;
        servo.registers[VOLTAGES..VOLTAGES + 4].copy_from_slice(&voltages);
        servo.set(SPEED_LIMIT, speed_limit);
        servo.set(MAX, 4095);
        servo.registers[SHUTDOWN] = 53;
        bus_servos::Servo::power_cycle(&mut servo);
        servo
    }

    /// Where it is, in its steps.
    #[must_use]
    pub fn steps(&self) -> f64 {
        self.motor.shaft + f64::from(self.number(OFFSET))
    }

    /// How fast it turns, in steps per second.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.motor.speed
    }

    /// Whether its motor is on.
    #[must_use]
    pub fn has_torque(&self) -> bool {
        self.registers[TORQUE] == 1
    }

    /// Turns its shaft by hand.
    pub fn push_to(&mut self, steps: f64) {
        self.motor.shaft = steps - f64::from(self.number(OFFSET));
    }

    /// There was a request on the bus.
    pub(super) fn hear(&mut self) {
        if !self.is_mute {
            self.silent_for = Duration::ZERO;
        }
    }

    /// The error and the values of an answer, if it answers what needs this level.
    pub(super) fn say(&self, level: u8, done: Result<Vec<u8>, Refusal>) -> Option<Vec<u8>> {
        let alert = if self.registers[ERROR] == 0 { 0 } else { 0x80 };
        let said = match done {
            Ok(values) => [&[alert], values.as_slice()].concat(),
            Err(refusal) => vec![alert | refusal as u8],
        };
        (self.registers[LEVEL] >= level).then_some(said)
    }

    /// Its model and the version of its program.
    pub(super) fn ping(&self) -> Result<Vec<u8>, Refusal> {
        Ok([&self.registers[..2], &self.registers[6..7]].concat())
    }

    pub(super) fn read(&self, at: u16, count: u16) -> Result<Vec<u8>, Refusal> {
        let span = usize::from(at)..usize::from(at) + usize::from(count);
        let shown = self.shown();
        shown.get(span).map(<[u8]>::to_vec).ok_or(Refusal::Range)
    }

    /// Nothing is written if a part of it is refused.
    pub(super) fn write(&mut self, at: u16, values: &[u8]) -> Result<Vec<u8>, Refusal> {
        let span = usize::from(at)..usize::from(at) + values.len();
        let mut next = self.clone();
        let room = next.registers.get_mut(span.clone());
        room.ok_or(Refusal::Range)?.copy_from_slice(values);
        next.check(self, &span)?;
        let has = |register| span.contains(&register);
        if span.start < MEMORY {
            next.memory_writes += values.len() as u32;
        }
        if has(MODE) {
            next.set(SPEED, 0);
        }
        if has(GOAL) && next.registers[DRIVE_MODE] & 8 != 0 {
            next.registers[TORQUE] = 1;
        }
        if has(TORQUE) && !next.has_torque() {
            next.motor.relax();
        }
        // It counts from the beginning of a turn again.
        if next.has_torque() != self.has_torque() && next.registers[MODE] == 3 {
            next.motor.shaft = next.motor.shaft.rem_euclid(4096.0);
        }
        next.decide();
        *self = next;
        Ok(Vec::new())
    }

    /// Keeps values until it is told to act.
    pub(super) fn register(&mut self, at: u16, values: &[u8]) {
        self.waiting = Some((at, values.to_vec()));
    }

    pub(super) fn act(&mut self) -> Result<Vec<u8>, Refusal> {
        match self.waiting.take() {
            Some((at, values)) => self.write(at, &values),
            None => Ok(Vec::new()),
        }
    }

    /// Whether it may become this, by writing these registers.
    fn check(&self, before: &Self, span: &Range<usize>) -> Result<(), Refusal> {
        let meets = |other: Range<usize>| span.start < other.end && other.start < span.end;
        let has_stopped = before.registers[WATCHDOG] == STOPPED;
        if has_stopped && (meets(100..108) || meets(GOAL..120)) {
            return Err(Refusal::Range);
        }
        let is_locked = meets(0..7)
            || meets(ERROR..75)
            || meets(120..REGISTERS)
            || (meets(0..MEMORY) && before.has_torque())
            || (meets(TORQUE..65) && self.has_torque() && self.is_shut_down());
        if is_locked {
            return Err(Refusal::Access);
        }
        let fastest = self.number(SPEED_LIMIT).unsigned_abs();
        let places = self.number(MIN)..=self.number(MAX);
        let is_good = (!meets(MODE..12) || [0, 1, 3, 4, 5, 16].contains(&self.registers[MODE]))
            && (!meets(WATCHDOG..99) || self.registers[WATCHDOG] <= 127)
            && (!meets(SPEED..108) || self.number(SPEED).unsigned_abs() <= fastest)
            && (!meets(GOAL..120)
                || self.registers[MODE] != 3
                || places.contains(&self.number(GOAL)));
        is_good.then_some(()).ok_or(Refusal::Limit)
    }

    /// Whether an error keeps its motor off until it restarts.
    fn is_shut_down(&self) -> bool {
        self.registers[ERROR] & self.registers[SHUTDOWN] != 0
    }

    /// What its registers want of its motor.
    fn drive(&self) -> Drive {
        let fastest = match self.of {
            Type::Xl430 => 57.0 * 4096.0 / 60.0,
            Type::Xl330 => 103.0 * 4096.0 / 60.0,
        };
        let speed = |at| f64::from(self.number(at)) * SPEED_UNIT;
        match self.registers[MODE] {
            _ if !self.has_torque() => Drive::Off,
            _ if self.registers[WATCHDOG] == STOPPED => Drive::On(0.0),
            1 => Drive::On(speed(SPEED).clamp(-fastest, fastest)),
            3..=5 => Drive::To {
                place: f64::from(self.number(GOAL)) - f64::from(self.number(OFFSET)),
                speed: match speed(PROFILE) {
                    told if told > 0.0 => told.min(fastest),
                    _ => fastest,
                },
            },
            // Current and voltage are not simulated.
            _ => Drive::On(0.0),
        }
    }

    fn acceleration(&self) -> f64 {
        f64::from(self.number(ACCELERATION)) * ACCELERATION_UNIT
    }

    /// Something has changed.
    fn decide(&mut self) {
        let (drive, acceleration) = (self.drive(), self.acceleration());
        self.motor.decide(drive, acceleration);
    }

    /// Its registers with what it measures.
    fn shown(&self) -> [u8; REGISTERS] {
        let mut shown = self.clone();
        let speed = (self.motor.speed / SPEED_UNIT).round() as i32;
        let wanted = self.motor.wants(self.drive());
        let share: f64 = match self.motor.is_blocked {
            _ if wanted == 0.0 => 0.0,
            true => 1.0,
            false => 0.1,
        };
        let share = share.copysign(wanted);
        // The current in mA, or the load.
        let (voltage, current) = ((share * 885.0) as i16, (share * 1000.0) as i16);
        shown.registers[122] = (speed.abs() > self.number(THRESHOLD)).into();
        shown.registers[124..126].copy_from_slice(&voltage.to_le_bytes());
        shown.registers[126..128].copy_from_slice(&current.to_le_bytes());
        shown.set(128, speed);
        shown.set(132, self.steps().round() as i32);
        shown.registers[144..146].copy_from_slice(&self.decivolts().to_le_bytes());
        shown.registers[146] = self.temperature_c;
        shown.registers
    }

    fn decivolts(&self) -> u16 {
        (self.volts * 10.0).round() as u16
    }

    /// The bits of what is wrong with it now.
    fn faults(&self) -> u8 {
        let limit = |at| u16::from_le_bytes([self.registers[at], self.registers[at + 1]]);
        let voltages = limit(VOLTAGES + 2)..=limit(VOLTAGES);
        u8::from(!voltages.contains(&self.decivolts()))
            | (u8::from(self.temperature_c > self.registers[MAX_TEMPERATURE]) << 2)
            | (u8::from(self.motor.is_overloaded()) << 5)
    }

    fn number(&self, at: usize) -> i32 {
        let bytes = [0, 1, 2, 3].map(|index| self.registers[at + index]);
        i32::from_le_bytes(bytes)
    }

    fn set(&mut self, at: usize, value: i32) {
        self.registers[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}

impl bus_servos::Servo for Servo {
    fn id(&self) -> u8 {
        self.registers[7]
    }

    fn hears(&self) -> bool {
        !self.is_mute
    }

    fn advance(&mut self, passed: Duration) {
        self.silent_for += passed;
        let patience = WATCHDOG_UNIT * u32::from(self.registers[WATCHDOG]);
        if self.has_torque() && !patience.is_zero() && self.silent_for >= patience {
            self.registers[WATCHDOG] = STOPPED;
            self.set(ACCELERATION, 0);
            self.set(PROFILE, 0);
        }
        let (drive, acceleration) = (self.drive(), self.acceleration());
        self.motor.advance(passed, drive, acceleration);
        self.registers[ERROR] |= self.faults();
        if self.is_shut_down() && self.has_torque() {
            self.registers[TORQUE] = 0;
            self.motor.speed = 0.0;
        }
    }

    fn is_busy(&self) -> bool {
        self.motor.is_busy(self.has_torque())
    }

    fn turn_by_hand(&mut self, steps: f64) {
        let way = steps - self.steps();
        self.motor.turn_by_hand(way);
    }

    fn power_cycle(&mut self) {
        self.registers[MEMORY..].fill(0);
        self.registers[LEVEL] = 2;
        self.set(GOAL, self.steps().round() as i32);
        self.motor.speed = 0.0;
        self.motor.relax();
        self.waiting = None;
        self.silent_for = Duration::ZERO;
    }

    fn show(&self) -> BusServo {
        BusServo {
            id: self.registers[7],
            steps: self.steps(),
            steps_per_s: self.speed(),
            torque: self.has_torque(),
            memory_writes: self.memory_writes,
        }
    }
}
