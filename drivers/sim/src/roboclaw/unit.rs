//! One controller with its two motors, and the effect of each command. PURE.

use std::time::Duration;

use super::channel::{Goal, MotorChannel, Move};
use super::data::{Data, centred, longs, speed_report, tenths, words};
use super::faults::Faults;
use super::packet::Firmware;
use super::settings::{FULL, Settings, Velocity};
use crate::wheels::{Drive, MAX_BRAKING_QPPS2, Reading};

/// The key required by "write settings" and "restore defaults" in newer firmware.
const SETTINGS_KEY: [u8; 4] = [0xE2, 0x2E, 0xAB, 0x7A];

/// A word of the EEPROM that was never written.
const ERASED: u16 = 0xFFFF;

const LOGIC_BATTERY_V: f64 = 5.0;

/// A controller.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    firmware: Firmware,
    motors: [MotorChannel; 2],
    settings: Settings,
    eeprom: Settings,
    /// The words of the EEPROM that programs read and write. Settings are stored elsewhere.
    words: Vec<u16>,
    mixed_drive: Option<f64>,
    mixed_turn: Option<f64>,
    timeout_ms: u64,
    heard: Duration,
    now: Duration,
    battery_v: f64,
    temperature_c: f64,
    forced: Faults,
}

impl Unit {
    pub(super) fn new(firmware: Firmware) -> Self {
        Self {
            firmware,
            motors: [MotorChannel::new(), MotorChannel::new()],
            settings: Settings::new(),
            eeprom: Settings::new(),
            words: vec![ERASED; 1 + usize::from(u8::MAX)],
            mixed_drive: None,
            mixed_turn: None,
            timeout_ms: 0,
            heard: Duration::ZERO,
            now: Duration::ZERO,
            battery_v: 12.6,
            temperature_c: 25.0,
            forced: Faults::default(),
        }
    }

    /// The commands for the motors.
    pub(super) fn drives(&self) -> [Drive; 2] {
        [self.motors[0].drive(), self.motors[1].drive()]
    }

    /// The battery voltage at this controller.
    pub(super) fn set_battery_v(&mut self, volts: f64) {
        self.battery_v = volts;
    }

    /// The temperature of the board.
    pub(super) fn set_temperature_c(&mut self, celsius: f64) {
        self.temperature_c = celsius;
    }

    /// Faults that do not come from measurements.
    pub(super) fn force(&mut self, faults: Faults) {
        self.forced = faults;
    }

    /// Pulls the reset line: everything outside the EEPROM is lost.
    pub(super) fn reset(&mut self, now: Duration) {
        self.settings = self.eeprom.clone();
        (self.mixed_drive, self.mixed_turn) = (None, None);
        self.timeout_ms = 0;
        self.heard = now;
        for channel in &mut self.motors {
            *channel = channel.reset();
        }
    }

    /// Processes measurements.
    pub(super) fn handle_readings(&mut self, now: Duration, readings: [Reading; 2]) {
        self.now = now;
        let max_currents = self
            .settings
            .currents
            .map(|[max, _]| f64::from(max) / 100.0);
        let measured = readings.into_iter().zip(max_currents);
        for (channel, (reading, max_current_a)) in self.motors.iter_mut().zip(measured) {
            channel.handle_reading(now, reading, max_current_a);
        }
        if self.timeout_ms > 0 && now >= self.heard + Duration::from_millis(self.timeout_ms) {
            self.set_both(Drive::RELEASED, Drive::RELEASED);
        }
    }

    /// When the motors stop if no packet arrives.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let moving = self.drives().into_iter().any(|drive| !drive.is_zero());
        (moving && self.timeout_ms > 0).then(|| self.heard + Duration::from_millis(self.timeout_ms))
    }

    /// Whether a running move needs measurements to end.
    pub(super) fn has_moves(&self) -> bool {
        self.motors.iter().any(MotorChannel::has_moves)
    }

    /// A valid packet for this controller arrived.
    pub(super) fn hear(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Carries out a write command. Returns false if the data are invalid.
    pub(super) fn write(&mut self, command: u8, data: &[u8]) -> bool {
        let mut data = Data(data);
        match command {
            2 | 3 => {
                let limit = &mut self.settings.main_limits[usize::from(command == 3)];
                // 0.2 V per step, starting at 6 V.
                *limit = 60 + 2 * u16::from(data.u8());
            }
            0 | 1 | 4 | 5 => {
                let part = f64::from(data.u8().min(127)) / 127.0;
                let sign = if matches!(command, 1 | 5) { -1.0 } else { 1.0 };
                self.set(usize::from(command >= 4), Drive::Duty(sign * part));
            }
            6 | 7 => self.set(usize::from(command == 7), Drive::Duty(centred(data.u8()))),
            8..=13 => self.mixed(command, data.u8()),
            14 => self.timeout_ms = u64::from(data.u8()) * 100,
            20 => self
                .motors
                .iter_mut()
                .for_each(|motor| motor.set_encoder(0)),
            22 | 23 => self.motors[usize::from(command == 23)].set_encoder(data.u32()),
            28 | 29 => {
                let (d, p, i, qpps) = (data.u32(), data.u32(), data.u32(), data.u32());
                self.settings.velocity[usize::from(command == 29)] = Velocity { p, i, d, qpps };
            }
            32 | 33 => self.set(usize::from(command == 33), Drive::Duty(data.duty())),
            34 => self.set_both(Drive::Duty(data.duty()), Drive::Duty(data.duty())),
            35 | 36 => {
                let channel = usize::from(command == 36);
                let drive = self.speed(channel, data.i32(), None);
                self.set(channel, drive);
            }
            37 => {
                let (first, second) = (data.i32(), data.i32());
                self.set_both(self.speed(0, first, None), self.speed(1, second, None));
            }
            38 | 39 => {
                let channel = usize::from(command == 39);
                let acceleration = data.u32();
                let drive = self.speed(channel, data.i32(), Some(acceleration));
                self.set(channel, drive);
            }
            40 => {
                let (acceleration, first, second) = (Some(data.u32()), data.i32(), data.i32());
                let second = self.speed(1, second, acceleration);
                self.set_both(self.speed(0, first, acceleration), second);
            }
            41..=46 | 51 => self.distances(command, data),
            50 => {
                let first = (data.u32(), data.i32());
                let second = (data.u32(), data.i32());
                let second = self.speed(1, second.1, Some(second.0));
                self.set_both(self.speed(0, first.1, Some(first.0)), second);
            }
            // In open loop, the motor itself determines the ramp.
            52 | 53 => self.set(usize::from(command == 53), Drive::Duty(data.duty())),
            54 => {
                let first = data.duty();
                data.skip(if self.firmware.has_crc() { 4 } else { 2 });
                self.set_both(Drive::Duty(first), Drive::Duty(data.duty()));
            }
            57 => {
                self.settings.main_limits = [data.u16(), data.u16()];
                self.settings.auto_max = data.u8();
            }
            58 => self.settings.logic_limits = [data.u16(), data.u16()],
            61 | 62 => {
                let [d, p, i] = [data.u32(), data.u32(), data.u32()];
                let [windup, deadzone, min, max] = [data.u32(), data.u32(), data.u32(), data.u32()];
                self.settings.position[usize::from(command == 62)] =
                    [p, i, d, windup, deadzone, min, max];
            }
            65..=67 | 119..=127 => self.positions(command, data),
            68 | 69 => {
                let wanted = &mut self.settings.accelerations[usize::from(command == 69)];
                let acceleration = data.u32();
                // Older firmware has one number for both.
                let braking = if data.0.is_empty() {
                    acceleration
                } else {
                    data.u32()
                };
                *wanted = [acceleration, braking];
            }
            70 | 71 => self.settings.speeds[usize::from(command == 71)] = data.u16(),
            74 => store(&mut self.settings.pins, data.0),
            76 => store(&mut self.settings.controls, data.0),
            80 if data.0.is_empty() || data.0 == SETTINGS_KEY => self.settings = Settings::new(),
            92 | 93 => self.settings.encoder_modes[usize::from(command == 93)] = data.u8(),
            94 if data.0.is_empty() || data.0 == SETTINGS_KEY => {
                self.eeprom = self.settings.clone();
            }
            94 => return false,
            95 => self.settings = self.eeprom.clone(),
            98 => self.settings.config = data.u16(),
            109 => self.settings.speed_errors = self.pair(&mut data),
            112 => self.settings.position_errors = self.pair(&mut data),
            115 => self.settings.offsets = [data.i8(), data.i8()],
            133 | 134 => {
                let currents = &mut self.settings.currents[usize::from(command == 134)];
                *currents = [data.u32(), data.u32()];
            }
            148 => {
                let first = data.u8();
                let second = if data.0.is_empty() { first } else { data.u8() };
                self.settings.pwm_modes = [first, second];
            }
            200 => self.forced.emergency_stop = false,
            253 => {
                let address = usize::from(data.u8());
                self.words[address] = data.u16();
            }
            // In the oldest command, the limits of the logic battery have no effect.
            26 | 27 => {}
            _ => return false,
        }
        true
    }

    /// The data of the reply to a read command with an address.
    pub(super) fn read_at(&self, address: u8) -> Vec<u8> {
        words([self.words[usize::from(address)]])
    }

    /// Two numbers of a request: old firmware has them in four bytes each.
    fn pair(&self, data: &mut Data<'_>) -> [u32; 2] {
        match self.firmware {
            Firmware::V4_1_34 => [data.u32(), data.u32()],
            _ => [data.u16().into(), data.u16().into()],
        }
    }

    /// The same for a reply.
    fn pair_report(&self, numbers: [u32; 2]) -> Vec<u8> {
        match self.firmware {
            Firmware::V4_1_34 => longs(numbers),
            _ => words(numbers.map(|number| number as u16)),
        }
    }

    /// The measured voltages of main and logic battery, in tenths of a volt.
    fn voltages(&self) -> [u16; 2] {
        let [main, logic] = self.settings.offsets.map(f64::from);
        [
            tenths(self.battery_v + main / 10.0),
            tenths(LOGIC_BATTERY_V + logic / 10.0),
        ]
    }

    /// How many bytes of settings this firmware has, of those that newer firmware has.
    fn shortened<'a>(&self, short: usize, bytes: &'a [u8]) -> &'a [u8] {
        match self.firmware {
            Firmware::V4_1_34 => &bytes[..short],
            _ => bytes,
        }
    }

    /// The data of the reply to a read command.
    pub(super) fn read(&mut self, command: u8) -> Vec<u8> {
        let (voltages, temperature) = (self.voltages(), tenths(self.temperature_c));
        let [first, second] = &mut self.motors;
        let velocities = self.settings.velocity;
        match command {
            15 => vec![u8::try_from(self.timeout_ms / 100).unwrap_or(u8::MAX)],
            16 => first.encoder_report(self.firmware),
            17 => second.encoder_report(self.firmware),
            18 => speed_report(first.reading().speed_qpps),
            19 => speed_report(second.reading().speed_qpps),
            21 => [self.version().as_bytes(), b"\n\0"].concat(),
            24 => words([voltages[0]]),
            25 => words([voltages[1]]),
            30 => speed_report(self.firmware.fast(first.reading().speed_qpps)),
            31 => speed_report(self.firmware.fast(second.reading().speed_qpps)),
            47 => vec![first.buffered(), second.buffered()],
            48 => words([first, second].map(|motor| motor.duty_i16() as u16)),
            49 => words([first, second].map(|motor| motor.current_10ma() as u16)),
            55 => velocities[0].report(),
            56 => velocities[1].report(),
            59 if self.firmware < Firmware::V4_2_4 => words(self.settings.main_limits),
            59 => [
                words(self.settings.main_limits),
                vec![self.settings.auto_max],
            ]
            .concat(),
            60 => words(self.settings.logic_limits),
            63 => longs(self.settings.position[0]),
            64 => longs(self.settings.position[1]),
            72 => words(self.settings.speeds),
            73 => self.status(),
            75 => self.shortened(3, &self.settings.pins).to_vec(),
            77 => self.shortened(2, &self.settings.controls).to_vec(),
            81 => match (self.firmware, self.settings.accelerations) {
                (Firmware::V4_1_34, [[first, _], [second, _]]) => longs([first, second]),
                (_, [[first, second], [third, fourth]]) => longs([first, second, third, fourth]),
            },
            100 => words(voltages),
            101 => words([temperature; 2]),
            103 => vec![
                first.encoder_status(self.firmware),
                second.encoder_status(self.firmware),
            ],
            110 => self.pair_report(self.settings.speed_errors),
            111 => {
                let errors = [first, second].map(|motor| motor.speed_error() as u32);
                self.pair_report(errors)
            }
            113 => self.pair_report(self.settings.position_errors),
            114 => {
                let errors = [first, second].map(|motor| motor.position_error() as u32);
                self.pair_report(errors)
            }
            116 => self.settings.offsets.map(i8::cast_unsigned).to_vec(),
            99 => words([self.settings.config]),
            135 | 136 => longs(self.settings.currents[usize::from(command == 136)]),
            149 => self.shortened(1, &self.settings.pwm_modes).to_vec(),
            78 => longs([first, second].map(|motor| motor.encoder() as u32)),
            79 => longs(
                [first, second].map(|motor| self.firmware.fast(motor.reading().speed_qpps) as u32),
            ),
            82 | 83 => words([temperature]),
            90 => self.faults().encode(self.firmware),
            91 => self.settings.encoder_modes.to_vec(),
            108 => longs([first, second].map(|motor| motor.average_qpps() as u32)),
            _ => Vec::new(),
        }
    }

    /// All current faults.
    fn faults(&self) -> Faults {
        let mut faults = self.forced;
        let Settings {
            speed_errors,
            position_errors,
            ..
        } = self.settings;
        let exceeds = |error: i32, limit: u32| limit > 0 && error.unsigned_abs() > limit;
        for (index, motor) in self.motors.iter().enumerate() {
            faults.overcurrent[index] |= motor.has_overcurrent();
            faults.speed[index] |= exceeds(motor.speed_error(), speed_errors[index]);
            faults.position[index] |= exceeds(motor.position_error(), position_errors[index]);
        }
        faults.temperature |= self.temperature_c > 85.0;
        let [low, high] = self.settings.main_limits;
        let volts = tenths(self.battery_v);
        faults.battery_low |= volts < low;
        faults.battery_high |= volts > high;
        faults
    }

    /// All measurements at once, with a clock in milliseconds.
    fn status(&self) -> Vec<u8> {
        let [first, second] = &self.motors;
        let both = |value: fn(&MotorChannel) -> u32| longs([value(first), value(second)]);
        let both_short = |value: fn(&MotorChannel) -> u16| words([value(first), value(second)]);
        let temperature = tenths(self.temperature_c);
        [
            longs([self.now.as_millis() as u32]),
            self.faults().encode(Firmware::V4_2_4),
            words([temperature, temperature]),
            words(self.voltages()),
            both_short(|motor| motor.duty_i16() as u16),
            both_short(|motor| motor.current_10ma() as u16),
            both(|motor| motor.encoder() as u32),
            both(|motor| motor.wanted_qpps() as u32),
            both(|motor| motor.reading().speed_qpps as u32),
            both_short(|motor| motor.speed_error() as u16),
            both_short(|motor| motor.position_error() as u16),
        ]
        .concat()
    }

    fn version(&self) -> &'static str {
        match self.firmware {
            Firmware::Legacy => "USB Roboclaw 2x5A v3.1.4",
            Firmware::LegacyAck => "USB Roboclaw 2x5A v4.0.4",
            Firmware::V4_1_11 => "USB Roboclaw 2x7A v4.1.11",
            Firmware::V4_1_34 => "USB Roboclaw 2x7A v4.1.34",
            Firmware::V4_2_4 => "USB Roboclaw 2x7A v4.2.4",
            Firmware::Mcp => "MCP263 2x60A v1.2.6",
        }
    }

    fn set(&mut self, channel: usize, drive: Drive) {
        self.motors[channel].set(drive);
    }

    fn set_both(&mut self, first: Drive, second: Drive) {
        self.set(0, first);
        self.set(1, second);
    }

    fn speed(&self, channel: usize, qpps: i32, acceleration: Option<u32>) -> Drive {
        Drive::Speed {
            qpps: self.limited(channel, qpps),
            acceleration_qpps2: acceleration.map(f64::from),
        }
    }

    fn limited(&self, channel: usize, qpps: i32) -> f64 {
        let limit = f64::from(self.settings.velocity[channel].qpps);
        f64::from(qpps).clamp(-limit, limit)
    }

    /// Drive and turn, which work only together.
    fn mixed(&mut self, command: u8, value: u8) {
        let part = f64::from(value.min(127)) / 127.0;
        match command {
            8 => self.mixed_drive = Some(part),
            9 => self.mixed_drive = Some(-part),
            10 => self.mixed_turn = Some(part),
            11 => self.mixed_turn = Some(-part),
            12 => self.mixed_drive = Some(centred(value)),
            _ => self.mixed_turn = Some(centred(value)),
        }
        if let (Some(drive), Some(turn)) = (self.mixed_drive, self.mixed_turn) {
            // M1 is the right wheel, so a right turn slows it down.
            let duty = |sum: f64| Drive::Duty(sum.clamp(-1.0, 1.0));
            self.set_both(duty(drive - turn), duty(drive + turn));
        }
    }

    /// Speeds for a distance, now or after the waiting moves.
    fn distances(&mut self, command: u8, mut data: Data<'_>) {
        let mut acceleration = matches!(command, 44..=46).then(|| data.u32());
        let mut moves = Vec::new();
        for &channel in channels(command, [41, 44], [42, 45]) {
            if command == 51 {
                acceleration = Some(data.u32());
            }
            let next = Move {
                qpps: self.limited(channel, data.i32()),
                acceleration_qpps2: rate(acceleration.unwrap_or(0)),
                goal: Goal::Way(u64::from(data.u32())),
            };
            moves.push((channel, next));
        }
        self.add(moves, &mut data);
    }

    /// Moves to an encoder count and holds it.
    fn positions(&mut self, command: u8, mut data: Data<'_>) {
        let mut moves = Vec::new();
        for &channel in channels(command, [65, 119, 122, 125], [66, 120, 123, 126]) {
            let [mut acceleration, mut braking] = self.settings.accelerations[channel];
            let limit = self.settings.velocity[channel].qpps;
            let part = f64::from(self.settings.speeds[channel]) / f64::from(FULL);
            let mut speed = (f64::from(limit) * part.min(1.0)).round() as u32;
            if command <= 67 {
                (acceleration, speed, braking) = (data.u32(), data.u32(), data.u32());
            } else if matches!(command, 122..=124) {
                speed = data.u32();
            }
            let count = match command {
                125..=127 => self.settings.count_of_part(channel, data.i16()),
                _ => data.i32(),
            };
            let next = Move {
                qpps: self.limited(channel, i32::try_from(speed).unwrap_or(i32::MAX)),
                acceleration_qpps2: rate(acceleration),
                goal: Goal::Position {
                    count,
                    deceleration_qpps2: rate(braking).unwrap_or(MAX_BRAKING_QPPS2),
                    dead_zone: self.settings.position[channel][4],
                },
            };
            moves.push((channel, next));
        }
        self.add(moves, &mut data);
    }

    fn add(&mut self, moves: Vec<(usize, Move)>, data: &mut Data<'_>) {
        let at_once = data.u8() == 1;
        for (channel, next) in moves {
            self.motors[channel].add(next, at_once);
        }
    }
}

/// Replaces the first of some settings: those that a firmware has.
fn store(settings: &mut [u8], data: &[u8]) {
    for (setting, byte) in settings.iter_mut().zip(data) {
        *setting = *byte;
    }
}

/// The motors that a command affects: the first, the second, or both.
fn channels<const N: usize>(command: u8, first: [u8; N], second: [u8; N]) -> &'static [usize] {
    if first.contains(&command) {
        &[0]
    } else if second.contains(&command) {
        &[1]
    } else {
        &[0, 1]
    }
}

/// A rate of 0 means the default.
fn rate(qpps2: u32) -> Option<f64> {
    (qpps2 > 0).then(|| f64::from(qpps2))
}

impl Firmware {
    /// The unit of speed in commands 30, 31 and 79: old firmware reports counts per 1/125 s, newer
    /// firmware counts per second.
    fn fast(self, qpps: i32) -> i32 {
        if self.has_crc() { qpps } else { qpps / 125 }
    }
}
