//! One servo: its registers. PURE.

use std::time::Duration;

use crate::bus_servos::{self, Drive, Motor};
use crate::control::BusServo;

/// The registers below this one are its memory.
const MEMORY: usize = 40;
const REGISTERS: usize = 128;

const REPLY_LEVEL: u8 = 8;
const MIN: u8 = 9;
const MAX: u8 = 11;
const MAX_TEMPERATURE: u8 = 13;
const MAX_VOLTAGE: u8 = 14;
const MIN_VOLTAGE: u8 = 15;
const PHASE: u8 = 18;
const OFFSET: u8 = 31;
const MODE: u8 = 33;
const TORQUE: u8 = 40;
const ACCELERATION: u8 = 41;
const GOAL: u8 = 42;
const SPEED: u8 = 46;
const POSITION: u8 = 56;

/// The fastest that its motor turns, in steps per second.
const FASTEST: f64 = 2_870.0;

/// What a servo speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// STS3215: 4096 steps in a turn.
    Sts,
    /// SCS0009: 1024 steps in 300 degrees.
    Scs,
}

/// A servo.
#[derive(Clone, Debug)]
pub struct Servo {
    family: Family,
    registers: [u8; REGISTERS],
    /// What it has after it was switched off and on.
    memory: [u8; MEMORY],
    /// How often a register of its memory was written, for good.
    pub memory_writes: u32,
    /// What its registers turn.
    pub motor: Motor,
    waiting: Option<(u8, Vec<u8>)>,
    /// Whether its cable is out, or it is dead.
    pub is_mute: bool,
    /// Whether a goal switches its motor on, which is not known of all of them.
    pub wakes_by_goal: bool,
    /// The voltage of its supply.
    pub volts: f64,
    /// How warm it is.
    pub temperature_c: u8,
}

impl Servo {
    pub(super) fn new(id: u8, family: Family) -> Self {
        let mut memory = [0; MEMORY];
        let mut set = |at: u8, values: &[u8]| {
            memory[usize::from(at)..][..values.len()].copy_from_slice(values);
        };
        match family {
            Family::Sts => {
                set(0, &[3, 10, 0, 0x09, 0x03, id, 0, 0, 1, 0, 0, 0xFF, 0x0F]);
                set(PHASE, &[12, 44, 47, 32, 32, 0, 16, 0, 1, 1]);
                set(28, &[0xF4, 0x01, 1]);
                set(34, &[20, 200, 80, 10, 200, 10]);
            }
            Family::Scs => {
                set(0, &[3, 10, 1, 0x05, 0x04, id, 0, 0, 1, 0, 20, 0x03, 0xEB]);
                set(PHASE, &[1, 37, 37, 15, 0, 0]);
            }
        }
        set(MAX_TEMPERATURE, &[70, 80, 40]);
        set(
            16,
            &match family {
                Family::Sts => 1000_u16.to_le_bytes(),
                Family::Scs => 1000_u16.to_be_bytes(),
            },
        );
        let mut servo = Self {
            family,
            registers: [0; REGISTERS],
            memory,
            memory_writes: 0,
            motor: Motor::at(match family {
                Family::Sts => 2048.0,
                Family::Scs => 512.0,
            }),
            waiting: None,
            is_mute: false,
            wakes_by_goal: false,
            volts: 7.4,
            temperature_c: 31,
        };
        bus_servos::Servo::power_cycle(&mut servo);
        servo
    }

    /// What it speaks.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Where it is, in its steps: as it reports it, but never wrapped.
    #[must_use]
    pub fn steps(&self) -> f64 {
        self.motor.shaft - f64::from(self.signed(OFFSET, 11))
    }

    /// How fast it turns, in steps per second.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.motor.speed
    }

    /// Whether its motor is on.
    #[must_use]
    pub fn has_torque(&self) -> bool {
        self.registers[usize::from(TORQUE)] == 1
    }

    /// Whether it turns on and on.
    #[must_use]
    pub fn is_wheel(&self) -> bool {
        self.family == Family::Sts && self.registers[usize::from(MODE)] == 1
    }

    /// Turns its shaft by hand.
    pub fn push_to(&mut self, steps: f64) {
        self.motor.shaft = steps + f64::from(self.signed(OFFSET, 11));
    }

    /// Whether it answers what was written.
    pub(super) fn confirms(&self) -> bool {
        self.registers[usize::from(REPLY_LEVEL)] != 0
    }

    /// The bits of its alarms.
    pub(super) fn error(&self) -> u8 {
        let decivolts = (self.volts * 10.0).round() as u8;
        let allowed = self.byte(MIN_VOLTAGE)..=self.byte(MAX_VOLTAGE);
        let is_hot = self.temperature_c > self.byte(MAX_TEMPERATURE);
        let is_overloaded = self.motor.is_overloaded();
        u8::from(!allowed.contains(&decivolts))
            | (u8::from(is_hot) << 2)
            | (u8::from(is_overloaded) << 5)
    }

    /// The values of registers.
    pub(super) fn read(&mut self, at: u8, count: u8) -> Option<Vec<u8>> {
        self.measure();
        let (at, count) = (usize::from(at), usize::from(count));
        Some(self.registers.get(at..at + count)?.to_vec())
    }

    pub(super) fn write(&mut self, at: u8, values: &[u8]) {
        for (at, value) in (usize::from(at)..).zip(values) {
            self.write_byte(at, *value);
        }
        let written = at..at.saturating_add(values.len() as u8);
        if self.wakes_by_goal && written.contains(&GOAL) {
            self.registers[usize::from(TORQUE)] = 1;
        }
        self.decide();
    }

    fn write_byte(&mut self, at: usize, value: u8) {
        match at {
            // What it is.
            0..=4 => {}
            5..MEMORY => {
                self.registers[at] = value;
                if self.registers[self.lock()] == 0 {
                    self.memory[at] = value;
                    self.memory_writes += 1;
                }
            }
            40 if value == 128 => {
                let offset = self.motor.shaft.round() as i32 - 2048;
                let offset = signed_bytes(offset.clamp(-2047, 2047), 11);
                for (at, byte) in (usize::from(OFFSET)..).zip(offset) {
                    self.write_byte(at, byte);
                }
            }
            40 => {
                self.registers[at] = value;
                if value == 0 {
                    self.motor.relax();
                }
            }
            41..=55 => self.registers[at] = value,
            // What it measures.
            _ => {}
        }
    }

    /// Keeps values until it is told to act.
    pub(super) fn register(&mut self, at: u8, values: &[u8]) {
        self.waiting = Some((at, values.to_vec()));
    }

    pub(super) fn act(&mut self) {
        if let Some((at, values)) = self.waiting.take().filter(|_| !self.is_mute) {
            self.write(at, &values);
        }
    }

    /// What its registers want of its motor.
    fn drive(&self) -> Drive {
        if !self.has_torque() {
            return Drive::Off;
        }
        let (unit, fastest) = match self.family {
            Family::Sts if self.byte(PHASE) & 4 == 0 => (50.0, FASTEST),
            Family::Sts => (1.0, FASTEST),
            Family::Scs => (1.0, FASTEST / 4.0),
        };
        let told = f64::from(self.signed(SPEED, 15)) * unit;
        if self.is_wheel() {
            return Drive::On(told.clamp(-fastest, fastest));
        }
        let (min, max) = (self.word(MIN), self.word(MAX));
        let goal = self.signed(GOAL, 15);
        let goal = match (min, max) {
            (0, 0) => goal,
            (min, max) => goal.clamp(min.into(), i32::from(max).max(min.into())),
        };
        Drive::To {
            place: f64::from(goal + self.signed(OFFSET, 11)),
            speed: match told == 0.0 {
                true => fastest,
                false => told.abs().min(fastest),
            },
        }
    }

    /// Its acceleration, in steps per second squared.
    fn acceleration(&self) -> f64 {
        f64::from(self.byte(ACCELERATION)) * 100.0
    }

    /// Something has changed.
    fn decide(&mut self) {
        let (drive, acceleration) = (self.drive(), self.acceleration());
        self.motor.decide(drive, acceleration);
    }

    /// Writes what it measures into its registers.
    fn measure(&mut self) {
        let steps = self.steps().round() as i32;
        let position = match self.family {
            Family::Sts if self.byte(PHASE) & 16 == 0 => steps.rem_euclid(4096),
            _ => steps,
        };
        let wanted = self.motor.wants(self.drive());
        let load = match self.motor.is_blocked {
            _ if wanted == 0.0 => 0,
            true => 1000,
            false => 100,
        };
        let load = load * (wanted.signum() as i32);
        let error = self.error();
        self.set(POSITION, signed(position, 15));
        self.set(58, signed(self.motor.speed.round() as i32, 15));
        self.set(60, signed(load, 10));
        self.registers[62] = (self.volts * 10.0).round() as u8;
        self.registers[63] = self.temperature_c;
        self.registers[64] = self.waiting.is_some().into();
        self.registers[65] = error;
        self.registers[66] = (self.motor.speed != 0.0).into();
        self.set(69, signed(load.abs() / 10, 15));
    }

    fn lock(&self) -> usize {
        match self.family {
            Family::Sts => 55,
            Family::Scs => 48,
        }
    }

    fn byte(&self, at: u8) -> u8 {
        self.registers[usize::from(at)]
    }

    fn word(&self, at: u8) -> u16 {
        let bytes = [self.byte(at), self.byte(at + 1)];
        match self.family {
            Family::Sts => u16::from_le_bytes(bytes),
            Family::Scs => u16::from_be_bytes(bytes),
        }
    }

    fn set(&mut self, at: u8, value: u16) {
        let bytes = match self.family {
            Family::Sts => value.to_le_bytes(),
            Family::Scs => value.to_be_bytes(),
        };
        self.registers[usize::from(at)..][..2].copy_from_slice(&bytes);
    }

    /// A number with a bit for its sign. SCS have no offset.
    fn signed(&self, at: u8, bit: u32) -> i32 {
        if at == OFFSET && self.family == Family::Scs {
            return 0;
        }
        let word = self.word(at);
        let magnitude = i32::from(word & ((1 << bit) - 1));
        if word & (1 << bit) == 0 {
            magnitude
        } else {
            -magnitude
        }
    }
}

impl bus_servos::Servo for Servo {
    fn id(&self) -> u8 {
        self.registers[5]
    }

    fn hears(&self) -> bool {
        !self.is_mute
    }

    fn advance(&mut self, passed: Duration) {
        let (drive, acceleration) = (self.drive(), self.acceleration());
        self.motor.advance(passed, drive, acceleration);
    }

    fn is_busy(&self) -> bool {
        self.motor.is_busy(self.has_torque())
    }

    fn turn_by_hand(&mut self, steps: f64) {
        let way = steps - self.steps();
        self.motor.turn_by_hand(way);
    }

    fn power_cycle(&mut self) {
        self.registers = [0; REGISTERS];
        self.registers[..MEMORY].copy_from_slice(&self.memory);
        let limit = [self.registers[16], self.registers[17]];
        self.registers[48..50].copy_from_slice(&limit);
        self.registers[self.lock()] = 1;
        self.motor.speed = 0.0;
        self.motor.relax();
        self.waiting = None;
    }

    fn show(&self) -> BusServo {
        BusServo {
            id: self.registers[5],
            steps: self.steps(),
            steps_per_s: self.speed(),
            torque: self.has_torque(),
            memory_writes: self.memory_writes,
        }
    }
}

fn signed(value: i32, bit: u32) -> u16 {
    // The largest number has so many bits.
    let magnitude = value.unsigned_abs().min((1 << bit) - 1) as u16;
    if value < 0 {
        magnitude | (1 << bit)
    } else {
        magnitude
    }
}

fn signed_bytes(value: i32, bit: u32) -> [u8; 2] {
    signed(value, bit).to_le_bytes()
}
