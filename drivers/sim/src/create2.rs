//! A simulated iRobot Create 2: bytes of the Open Interface in, sensor packets out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each `handle_*`,
//! drain [`Create2::poll_output`] until `None`. Pass [`Create2::drives`] to the world, and its
//! measurements to [`Create2::handle_readings`] before the next bytes. The base is the simulated robot:
//! both wheels of a side turn at the same speed, and the encoders are those of the front wheels.
//!
//! It follows the manual: modes, and when it leaves safe mode; commands without answers or checks; the
//! stream of 15 ms with its sums; 16-bit counts that wrap. It drives on with the last command for ever.
//! Two things are better than in reality: it takes commands without a pause between them, and it never
//! falls asleep.

mod command;
mod packet;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

use self::command::Input;
use self::packet::{Packet, range};
pub use self::twin::{DEVICE, Options};
use crate::battery::Battery;
use crate::wheels::{Drive, Reading, Wheel, metres_per_second, pulses_of};

/// The way of a wheel for one count of its encoder.
const MM_PER_COUNT: f64 = 0.444_565;
/// The distance between the wheels.
const TRACK_MM: f64 = 235.0;
/// The fastest speed of a wheel.
const MAX_MM_S: i16 = 500;
/// The interval between the frames of the stream.
const FRAME: Duration = Duration::from_millis(15);
/// The voltage of its battery, compared with that of the simulated robot.
const BATTERY: f64 = 1.2;
/// Full power.
const MAX_PWM: i16 = 255;

/// The modes of the Open Interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It waits for START.
    Off,
    /// It senses, and its motors are off.
    Passive,
    /// It obeys while nothing is dangerous.
    Safe,
    /// It always obeys.
    Full,
}

/// What the robot senses beside its wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Whether the bumper is pressed on the left and on the right.
    pub bumps: [bool; 2],
    /// Whether the wheels hang in the air.
    pub is_lifted: bool,
    /// Whether there is no floor in front of it.
    pub has_cliff: bool,
    /// Whether a charger is plugged in.
    pub has_charger: bool,
    /// Whether it stands on its dock.
    pub is_docked: bool,
}

/// A Create 2.
#[derive(Clone, Debug)]
pub struct Create2 {
    mode: Mode,
    input: Input,
    around: Around,
    /// The left and the right motor.
    motors: [Drive; 2],
    /// Requested speeds of the left and the right wheel.
    requested: [i16; 2],
    stream: Option<Stream>,
    /// The counts of the left and the right encoder.
    counts: [i64; 2],
    /// The counts when the distance and the angle were last asked for.
    distance_from: [i64; 2],
    angle_from: [i64; 2],
    battery: Battery,
    outputs: VecDeque<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Stream {
    packets: Vec<u8>,
    next: Duration,
    is_paused: bool,
}

impl Default for Create2 {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            input: Input::default(),
            around: Around::default(),
            motors: [Drive::RELEASED; 2],
            requested: [0; 2],
            stream: None,
            counts: [0; 2],
            distance_from: [0; 2],
            angle_from: [0; 2],
            battery: Battery::default(),
            outputs: VecDeque::new(),
        }
    }
}

impl Create2 {
    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        for byte in bytes {
            if let Some(command) = self.input.push(*byte) {
                self.obey(now, &command);
            }
        }
    }

    /// Sends the frames that are due.
    pub fn advance(&mut self, now: Duration) {
        while self.next_timeout().is_some_and(|due| due <= now) {
            if let Some(stream) = &mut self.stream {
                stream.next += FRAME;
                let packets = stream.packets.clone();
                self.send_frame(&packets);
            }
        }
    }

    /// When the next frame is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let stream = self.stream.as_ref().filter(|stream| !stream.is_paused);
        stream.map(|stream| stream.next)
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// The commands for the motors, per [`Wheel`].
    #[must_use]
    pub fn drives(&self) -> [Drive; 4] {
        let [left, right] = self.motors;
        [left, right, left, right]
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What it senses now.
    #[must_use]
    pub fn around(&self) -> Around {
        self.around
    }

    /// From now on, it senses this.
    pub fn handle_around(&mut self, around: Around) {
        self.around = around;
        self.watch();
    }

    /// Measurements, per [`Wheel`].
    pub fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.counts = [Wheel::FrontLeft, Wheel::FrontRight].map(|wheel| {
            let pulses = readings[wheel.index()].pulses as f64;
            (metres_per_second(pulses) * 1_000.0 / MM_PER_COUNT).floor() as i64
        });
        self.battery.handle_readings(now, readings);
        self.advance(now);
    }

    /// Leaves safe mode if that is necessary.
    fn watch(&mut self) {
        let Around {
            is_lifted,
            has_cliff,
            has_charger,
            is_docked,
            ..
        } = self.around;
        let [left, right] = self.requested.map(i32::from);
        let is_dangerous = is_lifted || has_charger || is_docked || (has_cliff && left + right > 0);
        if self.mode == Mode::Safe && is_dangerous {
            self.enter(Mode::Passive);
        }
    }

    /// A change of the mode stops the motors.
    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.motors = [Drive::RELEASED; 2];
        self.requested = [0; 2];
    }

    fn obey(&mut self, now: Duration, command: &[u8]) {
        let (opcode, data) = (command[0], &command[1..]);
        let controls = matches!(self.mode, Mode::Safe | Mode::Full);
        match opcode {
            128 => self.enter(Mode::Passive),
            7 => {
                *self = Self {
                    around: self.around,
                    counts: self.counts,
                    battery: self.battery.clone(),
                    ..Self::default()
                };
                self.outputs.push_back(b"bl-start\r\n".to_vec());
            }
            _ if self.mode == Mode::Off => {}
            130 | 131 => self.enter(Mode::Safe),
            132 => self.enter(Mode::Full),
            // The motors of its own programs are not simulated.
            133..=136 | 143 => self.enter(Mode::Passive),
            173 => {
                self.enter(Mode::Off);
                self.stream = None;
            }
            137 if controls => self.turn(drive(number(data, 0), number(data, 1))),
            145 if controls => self.turn([number(data, 1), number(data, 0)]),
            146 if controls => {
                let [left, right] = [1, 0].map(|index| number(data, index));
                self.motors = [left, right].map(|pwm| {
                    Drive::Duty(f64::from(pwm.clamp(-MAX_PWM, MAX_PWM)) / f64::from(MAX_PWM))
                });
                self.requested = [left, right].map(|pwm| pwm.clamp(-MAX_PWM, MAX_PWM));
            }
            142 => self.answer(data),
            149 => self.answer(&data[1..]),
            148 => {
                self.stream = Some(Stream {
                    packets: data[1..].to_vec(),
                    next: now + FRAME,
                    is_paused: false,
                });
            }
            150 => {
                if let Some(stream) = &mut self.stream {
                    stream.is_paused = data == [0];
                    stream.next = now + FRAME;
                }
            }
            _ => {}
        }
        self.watch();
    }

    /// Turns the left and the right wheel at these speeds in mm/s.
    fn turn(&mut self, mm_s: [i16; 2]) {
        self.requested = mm_s.map(|mm_s| mm_s.clamp(-MAX_MM_S, MAX_MM_S));
        self.motors = self.requested.map(|mm_s| Drive::Speed {
            qpps: pulses_of(f64::from(mm_s) / 1_000.0),
            acceleration_qpps2: None,
        });
    }

    /// Sends the data of packets without their ids.
    fn answer(&mut self, packets: &[u8]) {
        let packets = packets.iter().flat_map(|packet| range(*packet));
        let data: Vec<u8> = packets.flat_map(|packet| self.read(packet)).collect();
        if !data.is_empty() {
            self.outputs.push_back(data);
        }
    }

    fn send_frame(&mut self, packets: &[u8]) {
        let packet = |packet: &u8| {
            let data = range(*packet).flat_map(|packet| self.read(packet));
            let data: Vec<u8> = data.collect();
            [&[*packet], data.as_slice()].concat()
        };
        let body: Vec<u8> = packets.iter().flat_map(packet).collect();
        let mut frame = vec![19, body.len() as u8];
        frame.extend(body);
        let sum = frame.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        frame.push(sum.wrapping_neg());
        self.outputs.push_back(frame);
    }

    /// The data of a packet.
    fn read(&mut self, packet: Packet) -> Vec<u8> {
        let value = self.value(packet.0);
        let bytes = value.to_be_bytes();
        bytes[bytes.len() - packet.size()..].to_vec()
    }

    fn value(&mut self, packet: u8) -> i32 {
        let bit = |is_set: bool, bit: i32| i32::from(is_set) << bit;
        let around = self.around;
        let [left, right] = self.requested.map(i32::from);
        match packet {
            7 => {
                let [bump_left, bump_right] = around.bumps;
                let drops = bit(around.is_lifted, 2) | bit(around.is_lifted, 3);
                bit(bump_right, 0) | bit(bump_left, 1) | drops
            }
            9..=12 => around.has_cliff.into(),
            19 => {
                let [left_mm, right_mm] = self.ways_mm(self.distance_from);
                self.distance_from = self.counts;
                ((left_mm + right_mm) / 2.0) as i32
            }
            20 => {
                let [left_mm, right_mm] = self.ways_mm(self.angle_from);
                self.angle_from = self.counts;
                ((right_mm - left_mm) / TRACK_MM).to_degrees() as i32
            }
            // Full, without a current.
            21 => bit(around.has_charger || around.is_docked, 1),
            22 => (self.battery.volts() * BATTERY * 1_000.0) as i32,
            23 => (self.battery.amperes() * -1_000.0) as i32,
            24 => 25,
            25 => 2_100,
            26 => 2_696,
            28..=31 => i32::from(!around.has_cliff) * 2_000,
            34 => bit(around.has_charger, 0) | bit(around.is_docked, 1),
            35 => self.mode as i32,
            38 => (self.stream.as_ref()).map_or(0, |stream| stream.packets.len() as i32),
            41 => right,
            42 => left,
            43 => self.counts[0] as i32,
            44 => self.counts[1] as i32,
            _ => 0,
        }
    }

    /// The ways of both wheels since these counts.
    fn ways_mm(&self, from: [i64; 2]) -> [f64; 2] {
        let way = |side: usize| (self.counts[side] - from[side]) as f64 * MM_PER_COUNT;
        [way(0), way(1)]
    }
}

/// A number in the data of a command.
fn number(data: &[u8], index: usize) -> i16 {
    i16::from_be_bytes([data[2 * index], data[2 * index + 1]])
}

/// The speeds of the left and the right wheel for those of the command DRIVE: a speed, and the radius
/// of a circle to the left.
fn drive(mm_s: i16, radius_mm: i16) -> [i16; 2] {
    let mm_s = mm_s.clamp(-MAX_MM_S, MAX_MM_S);
    let share = TRACK_MM / 2.0 / f64::from(radius_mm);
    match radius_mm {
        i16::MIN | i16::MAX | 0 => [mm_s; 2],
        1 => [-mm_s, mm_s],
        -1 => [mm_s, -mm_s],
        _ => [1.0 - share, 1.0 + share].map(|share| (f64::from(mm_s) * share) as i16),
    }
}
