//! Two simulated VESC motor controllers: frames in, frames out. PURE.
//!
//! The first one is at the port, the second one behind it on the CAN bus, with the number [`CAN_ID`].
//! The first drives the wheels of the left side, the second those of the right side; what they measure
//! is that of the front wheels.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each `handle_*`,
//! drain [`Vescs::poll_output`] until `None`. Pass [`Vescs::drives`] to the world, and its measurements
//! to [`Vescs::handle_readings`] before the next bytes.
//!
//! It follows the sources of the firmware: what is not a whole frame is skipped byte by byte, commands
//! are not answered, a motor is released 1 s after the last command for it, and a speed below the
//! minimum of the speed control lets it roll. Commands that change what a VESC stores are ignored. One
//! thing is better than in reality: the wheels hold the commanded speed, however the motor is tuned.

mod frame;
#[cfg(test)]
mod tests;
mod twin;
mod values;

use std::collections::VecDeque;
use std::time::Duration;

use self::frame::Input;
pub use self::frame::framed;
pub use self::twin::{DEVICE, Options};
use self::values::Measured;
use crate::battery::Battery;
use crate::wheels::{Drive, PULSES_PER_TURN, Reading, Wheel};

/// The number of the second VESC on the CAN bus.
pub const CAN_ID: u8 = 12;
/// That of the first one.
const FIRST_ID: u8 = 11;
/// Pole pairs of the motors.
const POLE_PAIRS: f64 = 7.0;
/// Turns of a motor per turn of its wheel.
const GEAR_RATIO: f64 = 10.0;
/// The speed control holds no lower speed, in electrical turns per minute. The firmware has 900 as long
/// as nobody lowers it.
const MIN_ERPM: i32 = 100;
/// A motor is released this long after the last command for it.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Below this voltage a VESC does not drive, as it is set for a battery of three cells.
const MIN_V: f64 = 10.5;
/// The fault that it reports then.
const UNDER_VOLTAGE: u8 = 2;
/// The deceleration by one ampere, in qpps per second.
const BRAKING_QPPS2_PER_A: f64 = 2_000.0;
/// The current of a blocked motor at full power.
const STALL_MA: f64 = 20_000.0;
/// The temperature of the room, and the heating per ampere.
const AMBIENT_C: f64 = 25.0;
const HEATING_C_PER_A: f64 = 0.5;

/// The firmware of both VESCs.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// Values end with the state of the kill switch
    #[value(name = "6.02")]
    V6_02,
    /// Values end with voltages
    #[value(name = "5.02")]
    V5_02,
    /// Values end with the number on the CAN bus
    #[value(name = "3.40")]
    V3_40,
    /// 6.02, and the time limit for commands is switched off
    #[value(name = "without-timeout")]
    WithoutTimeout,
}

impl Firmware {
    fn version(self) -> [u8; 2] {
        match self {
            Self::V6_02 | Self::WithoutTimeout => [6, 2],
            Self::V5_02 => [5, 2],
            Self::V3_40 => [3, 40],
        }
    }

    /// The length of values, with the number of the command.
    fn values_length(self) -> usize {
        match self {
            Self::V6_02 | Self::WithoutTimeout => 74,
            Self::V5_02 => 73,
            Self::V3_40 => 59,
        }
    }
}

/// Two VESCs.
#[derive(Clone, Debug)]
pub struct Vescs {
    firmware: Firmware,
    input: Input,
    units: [Unit; 2],
    battery: Battery,
    bus_works: bool,
    outputs: VecDeque<Vec<u8>>,
}

/// One of them, with its motor.
#[derive(Clone, Copy, Debug)]
struct Unit {
    id: u8,
    order: Order,
    /// When a command for the motor last came.
    commanded: Duration,
    reading: Reading,
}

/// What a motor is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Released,
    /// A fraction of the full voltage.
    Duty(f64),
    /// Milliamperes.
    Current(i32),
    /// Milliamperes.
    Brake(i32),
    /// Electrical turns per minute.
    Erpm(i32),
}

impl Vescs {
    /// Creates VESCs that were just switched on.
    #[must_use]
    pub fn new(firmware: Firmware) -> Self {
        let unit = |id| Unit {
            id,
            order: Order::Released,
            commanded: Duration::ZERO,
            reading: Reading::default(),
        };
        Self {
            firmware,
            input: Input::default(),
            units: [FIRST_ID, CAN_ID].map(unit),
            battery: Battery::default(),
            bus_works: true,
            outputs: VecDeque::new(),
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        self.input.push(bytes);
        while let Some(payload) = self.input.next_payload() {
            self.obey(now, 0, &payload);
        }
    }

    /// The host has disconnected.
    pub fn handle_hang_up(&mut self) {
        self.input = Input::default();
    }

    /// Releases the motors if it is time to.
    pub fn advance(&mut self, now: Duration) {
        for unit in &mut self.units {
            if unit.due(self.firmware).is_some_and(|due| due <= now) {
                unit.order = Order::Released;
            }
        }
    }

    /// When a motor is released.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let due = self.units.iter().map(|unit| unit.due(self.firmware));
        due.flatten().min()
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// The commands for the motors, per [`Wheel`].
    #[must_use]
    pub fn drives(&self) -> [Drive; 4] {
        let [left, right] = match self.fault() {
            0 => self.units.map(|unit| unit.order.drive()),
            _ => [Drive::RELEASED; 2],
        };
        [left, right, left, right]
    }

    /// Measurements, per [`Wheel`].
    pub fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.advance(now);
        self.battery.handle_readings(now, readings);
        for (unit, wheel) in (self.units.iter_mut()).zip([Wheel::FrontLeft, Wheel::FrontRight]) {
            unit.reading = readings[wheel.index()];
        }
    }

    /// From now on the battery has this voltage; `None` for its own.
    pub fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
    }

    /// Whether something draws a large current from the battery.
    pub fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
    }

    /// Whether the wires of the CAN bus are connected.
    pub fn set_bus_works(&mut self, works: bool) {
        self.bus_works = works;
    }

    /// Carries out a payload for one of them.
    fn obey(&mut self, now: Duration, index: usize, payload: &[u8]) {
        let Some((number, data)) = payload.split_first() else {
            return;
        };
        // Missing bytes read as 0.
        let mut bytes = [0; 4];
        for (byte, data) in bytes.iter_mut().zip(data) {
            *byte = *data;
        }
        let argument = i32::from_be_bytes(bytes);
        let order = match number {
            0 => return self.say(self.version()),
            4 => {
                let mut values = [&[4], &*self.measured(index).encode(u32::MAX)].concat();
                values.truncate(self.firmware.values_length());
                return self.say(values);
            }
            50 => {
                let chosen = self.measured(index).encode(argument.cast_unsigned());
                return self.say([&[50], &bytes[..], &chosen[..]].concat());
            }
            34 => {
                // What the second one gets from the bus it does not pass on.
                if let [CAN_ID, payload @ ..] = data
                    && self.bus_works
                    && index == 0
                {
                    self.obey(now, 1, payload);
                }
                return;
            }
            5 => Order::Duty((f64::from(argument) / 100_000.0).clamp(-1.0, 1.0)),
            6 => Order::Current(argument),
            7 => Order::Brake(argument),
            8 => Order::Erpm(argument),
            30 => self.units[index].order,
            _ => return,
        };
        self.units[index].order = order;
        self.units[index].commanded = now;
    }

    fn version(&self) -> Vec<u8> {
        // The serial number, and no settings: a motor controller without anything special.
        [
            &[0],
            &self.firmware.version()[..],
            b"60_MK5\0",
            &[0x5A; 12],
            &[0; 8],
        ]
        .concat()
    }

    fn measured(&self, index: usize) -> Measured {
        let unit = self.units[index];
        let turns = unit.reading.pulses as f64 / PULSES_PER_TURN;
        Measured {
            transistors_c: AMBIENT_C + HEATING_C_PER_A * unit.reading.current_a,
            motor_c: AMBIENT_C,
            motor_a: unit.reading.current_a * unit.reading.duty.signum(),
            battery_a: unit.reading.current_a * unit.reading.duty.abs(),
            duty: unit.reading.duty,
            erpm: erpm(unit.reading.speed_qpps.into()).round() as i32,
            battery_v: self.battery.volts(),
            // Six steps per electrical turn; it wraps.
            tachometer: (turns * GEAR_RATIO * POLE_PAIRS * 6.0) as i64 as i32,
            fault: self.fault(),
            id: unit.id,
        }
    }

    /// The fault of both: they share the battery.
    fn fault(&self) -> u8 {
        match self.battery.volts() < MIN_V {
            true => UNDER_VOLTAGE,
            false => 0,
        }
    }

    fn say(&mut self, payload: Vec<u8>) {
        self.outputs.push_back(framed(&payload));
    }
}

impl Unit {
    /// When the motor is released.
    fn due(&self, firmware: Firmware) -> Option<Duration> {
        let ends = self.order != Order::Released && firmware != Firmware::WithoutTimeout;
        ends.then_some(self.commanded + TIMEOUT)
    }
}

impl Order {
    fn drive(self) -> Drive {
        match self {
            Self::Released | Self::Brake(0) => Drive::RELEASED,
            Self::Duty(duty) => Drive::Duty(duty),
            Self::Current(ma) => Drive::Duty((f64::from(ma) / STALL_MA).clamp(-1.0, 1.0)),
            Self::Brake(ma) => Drive::Speed {
                qpps: 0.0,
                acceleration_qpps2: Some(f64::from(ma).abs() / 1000.0 * BRAKING_QPPS2_PER_A),
            },
            Self::Erpm(erpm) if erpm.unsigned_abs() < MIN_ERPM.unsigned_abs() => Drive::RELEASED,
            Self::Erpm(speed) => Drive::Speed {
                qpps: f64::from(speed) / erpm(1.0),
                acceleration_qpps2: None,
            },
        }
    }
}

/// Electrical turns per minute of a motor, for the encoder pulses per second of its wheel.
fn erpm(qpps: f64) -> f64 {
    qpps / PULSES_PER_TURN * 60.0 * GEAR_RATIO * POLE_PAIRS
}
