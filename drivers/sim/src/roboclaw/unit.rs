//! One controller with its two motors: settings, encoders, moves, faults. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use super::packet::Firmware;
use crate::wheels::{Drive, Reading};

/// How many moves can wait for one motor.
const MAX_MOVES: usize = 64;
/// No move waits and none runs.
const NO_MOVES: u8 = 0x80;
/// Over this the current of a motor is a fault.
const OVERCURRENT_A: f64 = 5.0;
/// So long a current may be too high before it is a fault.
const OVERCURRENT: Duration = Duration::from_millis(200);
/// The window of the speed averages.
const AVERAGE: Duration = Duration::from_secs(1);
/// How often the averages keep a count.
const AVERAGE_STEP: Duration = Duration::from_millis(50);
/// The key that must come with "write settings" in newer firmware.
const SETTINGS_KEY: [u8; 4] = [0xE2, 0x2E, 0xAB, 0x7A];

/// What is wrong, apart from how a firmware writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Too much current, per motor.
    pub overcurrent: [bool; 2],
    /// The emergency stop is pressed.
    pub emergency_stop: bool,
    /// Too hot.
    pub temperature: bool,
    /// The main battery has too much voltage.
    pub battery_high: bool,
    /// The main battery has too little voltage.
    pub battery_low: bool,
}

/// A controller.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    firmware: Firmware,
    motors: [Channel; 2],
    settings: Settings,
    eeprom: Settings,
    mixed_drive: Option<f64>,
    mixed_turn: Option<f64>,
    timeout_ms: u64,
    heard: Duration,
    battery_v: f64,
    temperature_c: f64,
    forced: Faults,
}

/// One of the two outputs of a controller.
#[derive(Clone, Debug)]
struct Channel {
    drive: Drive,
    moves: VecDeque<Move>,
    running: Option<Running>,
    reading: Reading,
    /// The world's count where the encoder is zero.
    zero: i64,
    /// The encoder when its status was last brought up to date.
    seen: i64,
    underflow: bool,
    overflow: bool,
    too_much_since: Option<Duration>,
    overcurrent: bool,
    counts: VecDeque<(Duration, i64)>,
}

#[derive(Clone, Debug)]
struct Move {
    drive: Drive,
    pulses: u64,
}

#[derive(Clone, Debug)]
struct Running {
    from: i64,
    pulses: u64,
}

/// What is kept over a reset once it was written to the EEPROM.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    velocity: [Velocity; 2],
    position: [[u32; 7]; 2],
    encoder_modes: [u8; 2],
    main_limits: [u16; 2],
    logic_limits: [u16; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Velocity {
    p: u32,
    i: u32,
    d: u32,
    qpps: u32,
}

impl Unit {
    pub(super) fn new(firmware: Firmware) -> Self {
        Self {
            firmware,
            motors: [Channel::new(), Channel::new()],
            settings: Settings::new(),
            eeprom: Settings::new(),
            mixed_drive: None,
            mixed_turn: None,
            timeout_ms: 0,
            heard: Duration::ZERO,
            battery_v: 12.6,
            temperature_c: 25.0,
            forced: Faults::default(),
        }
    }

    /// What the motors are asked.
    pub(super) fn drives(&self) -> [Drive; 2] {
        [self.motors[0].drive, self.motors[1].drive]
    }

    /// The battery as this controller sees it.
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

    /// The reset line: all that is not in the EEPROM is lost.
    pub(super) fn reset(&mut self, now: Duration) {
        let readings = [self.motors[0].reading, self.motors[1].reading];
        self.settings = self.eeprom.clone();
        (self.mixed_drive, self.mixed_turn) = (None, None);
        self.timeout_ms = 0;
        self.heard = now;
        for (channel, reading) in self.motors.iter_mut().zip(readings) {
            *channel = Channel::new();
            channel.reading = reading;
            channel.set_encoder(0);
        }
    }

    /// New measurements.
    pub(super) fn handle_readings(&mut self, now: Duration, readings: [Reading; 2]) {
        for (channel, reading) in self.motors.iter_mut().zip(readings) {
            channel.handle_reading(now, reading);
        }
        if self.timeout_ms > 0 && now >= self.heard + Duration::from_millis(self.timeout_ms) {
            self.set_both(Drive::RELEASED, Drive::RELEASED);
        }
    }

    /// When the motors stop unless something is heard.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let moving = self.drives().into_iter().any(|drive| !drive.is_zero());
        (moving && self.timeout_ms > 0).then(|| self.heard + Duration::from_millis(self.timeout_ms))
    }

    /// Whether something runs that needs measurements to end.
    pub(super) fn has_moves(&self) -> bool {
        self.motors.iter().any(|channel| channel.running.is_some())
    }

    /// A valid packet for this controller came.
    pub(super) fn hear(&mut self, now: Duration) {
        self.heard = now;
    }

    /// Carries out a write command; false if it does not accept the data.
    pub(super) fn write(&mut self, command: u8, data: &[u8]) -> bool {
        let mut data = Data(data);
        match command {
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
            // The ramp of an open loop is that of the motor.
            52 | 53 => self.set(usize::from(command == 53), Drive::Duty(data.duty())),
            54 => {
                let first = data.duty();
                data.skip(if self.firmware.has_crc() { 4 } else { 2 });
                self.set_both(Drive::Duty(first), Drive::Duty(data.duty()));
            }
            57 => self.settings.main_limits = [data.u16(), data.u16()],
            58 => self.settings.logic_limits = [data.u16(), data.u16()],
            61 | 62 => {
                let [d, p, i] = [data.u32(), data.u32(), data.u32()];
                let [windup, deadzone, min, max] = [data.u32(), data.u32(), data.u32(), data.u32()];
                self.settings.position[usize::from(command == 62)] =
                    [p, i, d, windup, deadzone, min, max];
            }
            65..=67 => self.positions(command, data),
            92 | 93 => self.settings.encoder_modes[usize::from(command == 93)] = data.u8(),
            94 if data.0.is_empty() || data.0 == SETTINGS_KEY => {
                self.eeprom = self.settings.clone();
            }
            94 => return false,
            95 => self.settings = self.eeprom.clone(),
            // Voltage limits of the oldest kind are taken and have no effect.
            2 | 3 | 26 | 27 => {}
            _ => return false,
        }
        true
    }

    /// The data that answer a read command.
    pub(super) fn read(&mut self, command: u8) -> Vec<u8> {
        let [first, second] = &mut self.motors;
        let velocities = self.settings.velocity;
        match command {
            15 => vec![u8::try_from(self.timeout_ms / 100).unwrap_or(u8::MAX)],
            16 => first.encoder_report(self.firmware),
            17 => second.encoder_report(self.firmware),
            18 => speed_report(first.reading.speed_qpps),
            19 => speed_report(second.reading.speed_qpps),
            21 => [self.version().as_bytes(), b"\n\0"].concat(),
            24 => tenths(self.battery_v).to_be_bytes().to_vec(),
            25 => tenths(5.0).to_be_bytes().to_vec(),
            30 => speed_report(self.firmware.fast(first.reading.speed_qpps)),
            31 => speed_report(self.firmware.fast(second.reading.speed_qpps)),
            47 => vec![first.buffered(), second.buffered()],
            48 => words([first, second].map(|motor| motor.duty_i16() as u16)),
            49 => words([first, second].map(|motor| motor.current_10ma() as u16)),
            55 => velocities[0].report(),
            56 => velocities[1].report(),
            59 => words(self.settings.main_limits),
            60 => words(self.settings.logic_limits),
            63 => longs(self.settings.position[0]),
            64 => longs(self.settings.position[1]),
            78 => longs([first, second].map(|motor| motor.encoder() as u32)),
            79 => longs(
                [first, second].map(|motor| self.firmware.fast(motor.reading.speed_qpps) as u32),
            ),
            82 | 83 => tenths(self.temperature_c).to_be_bytes().to_vec(),
            90 => self.faults().encode(self.firmware),
            91 => self.settings.encoder_modes.to_vec(),
            108 => longs([first, second].map(|motor| motor.average_qpps() as u32)),
            _ => Vec::new(),
        }
    }

    /// All that is wrong.
    fn faults(&self) -> Faults {
        let mut faults = self.forced;
        for (flag, motor) in faults.overcurrent.iter_mut().zip(&self.motors) {
            *flag |= motor.overcurrent;
        }
        faults.temperature |= self.temperature_c > 85.0;
        let [low, high] = self.settings.main_limits;
        let volts = tenths(self.battery_v);
        faults.battery_low |= volts < low;
        faults.battery_high |= volts > high;
        faults
    }

    fn version(&self) -> &'static str {
        match self.firmware {
            Firmware::Legacy => "USB Roboclaw 2x5A v3.1.4",
            Firmware::LegacyAck => "USB Roboclaw 2x5A v4.0.4",
            Firmware::Crc16Short => "USB Roboclaw 2x7A v4.1.11",
            Firmware::Crc16 => "USB Roboclaw 2x7A v4.2.4",
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
        let limit = f64::from(self.settings.velocity[channel].qpps);
        Drive::Speed {
            qpps: f64::from(qpps).clamp(-limit, limit),
            acceleration_qpps2: acceleration.map(f64::from),
        }
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
            // M1 is the right wheel, so a turn to the right takes from it.
            let duty = |sum: f64| Drive::Duty(sum.clamp(-1.0, 1.0));
            self.set_both(duty(drive - turn), duty(drive + turn));
        }
    }

    /// Speeds for a distance, now or after what already waits.
    fn distances(&mut self, command: u8, mut data: Data<'_>) {
        let mut acceleration = matches!(command, 44..=46).then(|| data.u32());
        let channels: &[usize] = match command {
            41 | 44 => &[0],
            42 | 45 => &[1],
            _ => &[0, 1],
        };
        let mut moves = Vec::new();
        for &channel in channels {
            if command == 51 {
                acceleration = Some(data.u32());
            }
            let drive = self.speed(channel, data.i32(), acceleration);
            let pulses = u64::from(data.u32());
            moves.push((channel, Move { drive, pulses }));
        }
        let at_once = data.u8() == 1;
        for (channel, next) in moves {
            self.motors[channel].add(next, at_once);
        }
    }

    /// Moves to an encoder count; braking is the motor's own.
    fn positions(&mut self, command: u8, mut data: Data<'_>) {
        let channels: &[usize] = match command {
            65 => &[0],
            66 => &[1],
            _ => &[0, 1],
        };
        let mut moves = Vec::new();
        for &channel in channels {
            let (acceleration, speed, _braking) = (data.u32(), data.u32(), data.u32());
            let way = i64::from(data.i32()) - self.motors[channel].encoder();
            let speed = i32::try_from(speed).unwrap_or(i32::MAX);
            let qpps = if way < 0 { -speed } else { speed };
            let drive = self.speed(channel, qpps, Some(acceleration));
            let pulses = way.unsigned_abs();
            moves.push((channel, Move { drive, pulses }));
        }
        let at_once = data.u8() == 1;
        for (channel, next) in moves {
            self.motors[channel].add(next, at_once);
        }
    }
}

impl Channel {
    fn new() -> Self {
        Self {
            drive: Drive::RELEASED,
            moves: VecDeque::new(),
            running: None,
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

    fn set(&mut self, drive: Drive) {
        self.drive = drive;
        self.moves.clear();
        self.running = None;
    }

    fn add(&mut self, next: Move, at_once: bool) {
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
        self.running = self.moves.pop_front().map(|next| {
            self.drive = next.drive;
            Running {
                from: self.reading.pulses,
                pulses: next.pulses,
            }
        });
    }

    /// How many moves wait, as command 47 says it.
    fn buffered(&self) -> u8 {
        match &self.running {
            None => NO_MOVES,
            Some(_) => u8::try_from(self.moves.len()).unwrap_or(NO_MOVES - 1),
        }
    }

    fn handle_reading(&mut self, now: Duration, reading: Reading) {
        self.reading = reading;
        self.watch_encoder();
        while let Some(running) = &self.running {
            if reading.pulses.abs_diff(running.from) < running.pulses {
                break;
            }
            self.run_next();
            if self.running.is_none() {
                self.drive = Drive::Speed {
                    qpps: 0.0,
                    acceleration_qpps2: None,
                };
            }
        }
        if reading.current_a > OVERCURRENT_A {
            let since = *self.too_much_since.get_or_insert(now);
            self.overcurrent = now >= since + OVERCURRENT;
        } else {
            (self.too_much_since, self.overcurrent) = (None, false);
        }
        if self
            .counts
            .back()
            .is_none_or(|(at, _)| now >= *at + AVERAGE_STEP)
        {
            self.counts.push_back((now, reading.pulses));
        }
        while self
            .counts
            .get(1)
            .is_some_and(|(at, _)| *at + AVERAGE <= now)
        {
            self.counts.pop_front();
        }
    }

    fn encoder(&self) -> i64 {
        self.reading.pulses.wrapping_sub(self.zero)
    }

    fn set_encoder(&mut self, count: u32) {
        self.zero = self.reading.pulses.wrapping_sub(i64::from(count));
        self.seen = i64::from(count);
    }

    /// Notices when the count of 32 bits wraps.
    fn watch_encoder(&mut self) {
        let turns = |count: i64| count.div_euclid(1 << 32);
        let count = self.encoder();
        self.underflow |= turns(count) < turns(self.seen);
        self.overflow |= turns(count) > turns(self.seen);
        self.seen = count;
    }

    /// The count and its status, which reading clears.
    fn encoder_report(&mut self, firmware: Firmware) -> Vec<u8> {
        let backwards = self.reading.speed_qpps < 0;
        // Seen on an old unit; its meaning is not known.
        let unknown = if firmware.has_crc() { 0 } else { 0x80 };
        let status = u8::from(std::mem::take(&mut self.underflow))
            | u8::from(backwards) << 1
            | u8::from(std::mem::take(&mut self.overflow)) << 2
            | unknown;
        let count = self.encoder() as u32;
        [count.to_be_bytes().as_slice(), &[status]].concat()
    }

    fn average_qpps(&self) -> i32 {
        let (Some(first), Some(last)) = (self.counts.front(), self.counts.back()) else {
            return 0;
        };
        let seconds = (last.0 - first.0).as_secs_f64();
        if seconds == 0.0 {
            return 0;
        }
        ((last.1 - first.1) as f64 / seconds).round() as i32
    }

    fn duty_i16(&self) -> i16 {
        (self.reading.duty * 32_767.0).round() as i16
    }

    fn current_10ma(&self) -> i16 {
        (self.reading.current_a * 100.0).round() as i16
    }
}

impl Settings {
    fn new() -> Self {
        let velocity = Velocity {
            p: 65_536,
            i: 32_768,
            d: 16_384,
            qpps: 44_000,
        };
        Self {
            velocity: [velocity; 2],
            position: [[0; 7]; 2],
            encoder_modes: [0; 2],
            main_limits: [105, 340],
            logic_limits: [45, 340],
        }
    }
}

impl Velocity {
    /// In the order in which it is read, which is not that of writing.
    fn report(self) -> Vec<u8> {
        longs([self.p, self.i, self.d, self.qpps])
    }
}

impl Firmware {
    /// A speed in the short window of the "fast" commands.
    fn fast(self, qpps: i32) -> i32 {
        qpps / if self.has_crc() { 300 } else { 125 }
    }
}

impl Faults {
    fn encode(self, firmware: Firmware) -> Vec<u8> {
        let [first, second] = self.overcurrent;
        let flags = [
            (first, [0x01, 0x0001, 0x01_1000]),
            (second, [0x02, 0x0002, 0x02_2000]),
            (self.emergency_stop, [0x04, 0x0004, 0x00_0001]),
            (self.temperature, [0x08, 0x0008, 0x00_0002]),
            (self.battery_high, [0x10, 0x0020, 0x00_0008]),
            (self.battery_low, [0x20, 0x0800, 0x08_0000]),
        ];
        let bits = |column: usize| {
            flags
                .iter()
                .filter(|(set, _)| *set)
                .fold(0u32, |bits, (_, values)| bits | values[column])
        };
        match firmware {
            Firmware::Legacy | Firmware::LegacyAck => vec![bits(0) as u8],
            Firmware::Crc16Short => (bits(1) as u16).to_be_bytes().to_vec(),
            Firmware::Crc16 => bits(2).to_be_bytes().to_vec(),
        }
    }
}

/// The data of a request, read from the front. The packet's length was
/// checked before; what is missing all the same reads as 0.
struct Data<'a>(&'a [u8]);

impl Data<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else {
            self.0 = &[];
            return [0; N];
        };
        self.0 = rest;
        *taken
    }

    fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn duty(&mut self) -> f64 {
        (f64::from(i16::from_be_bytes(self.take())) / 32_767.0).clamp(-1.0, 1.0)
    }
}

fn speed_report(qpps: i32) -> Vec<u8> {
    [qpps.to_be_bytes().as_slice(), &[u8::from(qpps < 0)]].concat()
}

/// 64 is the middle.
fn centred(value: u8) -> f64 {
    ((f64::from(value.min(127)) - 64.0) / 63.0).clamp(-1.0, 1.0)
}

fn tenths(value: f64) -> u16 {
    (value * 10.0).round() as u16
}

fn words<const N: usize>(values: [u16; N]) -> Vec<u8> {
    values.into_iter().flat_map(u16::to_be_bytes).collect()
}

fn longs<const N: usize>(values: [u32; N]) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_be_bytes).collect()
}
