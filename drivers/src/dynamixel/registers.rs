//! The registers of Dynamixel servos of the series X, and their units. PURE.
//!
//! A turn has 4096 steps. Values have their lower byte first, and two's complement. What is below 64 is
//! memory, which can only be written while the motor is off. The driver writes only one register of it, if
//! that differs: the mode.

use std::fmt;
use std::time::Duration;

use crate::bus_servos::{self, Kind, Measured, NEAR_DEG, RESTARTED, Write};

/// What a servo is, and how it is: all registers that the driver knows.
pub const IDENTITY: (u16, u8) = (0, 147);
/// What it was told, and what it does.
pub const STATE: (u16, u8) = (64, 83);

/// How long it waits before it answers, in units of 2 us.
const DELAY: u16 = 9;
const DRIVE_MODE: u16 = 10;
/// 1: on and on; 3: to angles; 4 and 5: to angles, for several turns.
const MODE: u16 = 11;
/// What is added to what it counts.
const OFFSET: u16 = 20;
const MAX_TEMPERATURE: u16 = 31;
const SPEED_LIMIT: u16 = 44;
const MAX: u16 = 48;
const MIN: u16 = 52;
const TORQUE: u16 = 64;
/// What it has found wrong with itself.
const ERROR: u16 = 70;
/// It stops when it hears nothing for so long; 0 for never.
const WATCHDOG: u16 = 98;
/// The speed of a wheel.
const SPEED: u16 = 104;
/// The speed of the way to the goal, which is the next register.
const PROFILE: u16 = 112;
const GOAL: u16 = 116;
const POSITION: u16 = 132;

/// What is in the register of the watchdog when it has stopped the servo. Goals cannot be written then.
const STOPPED: u8 = 0xFF;
const WATCHDOG_UNIT_MS: u128 = 20;
/// No shorter than 200 ms, and the longest.
const WATCHDOG_RANGE: (u128, u128) = (10, 127);
/// In the drive mode: the speed of the way is a time.
const TIMED: u8 = 4;
/// More than this delays all answers.
const MAX_DELAY: u8 = 50;
/// Degrees per second: 0.229 turns per minute.
const SPEED_UNIT: f64 = 0.229 * 6.0;
/// In the modes for several turns.
const SEVERAL_TURNS: (i32, i32) = (-1_048_575, 1_048_575);
/// What the motor gets of its supply, if it gets all.
const FULL: f64 = 885.0;

/// The models, by their numbers, and the unit of their current in mA; 0 if they do not measure it.
const MODELS: [(u16, &str, f64); 18] = [
    (1000, "XH430-W350", 2.69),
    (1010, "XH430-W210", 2.69),
    (1020, "XM430-W350", 2.69),
    (1030, "XM430-W210", 2.69),
    (1060, "XL430-W250", 0.0),
    (1070, "XC430-W150", 0.0),
    (1080, "XC430-W240", 0.0),
    (1090, "2XL430-W250", 0.0),
    (1100, "XH540-W270", 2.69),
    (1110, "XH540-W150", 2.69),
    (1120, "XM540-W270", 2.69),
    (1130, "XM540-W150", 2.69),
    (1190, "XL330-M077", 1.0),
    (1200, "XL330-M288", 1.0),
    (1210, "XC330-T181", 1.0),
    (1220, "XC330-T288", 1.0),
    (1230, "XC330-M181", 1.0),
    (1240, "XC330-M288", 1.0),
];

/// A servo on the bus, as it says itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    registers: [u8; IDENTITY.1 as usize],
}

impl bus_servos::Model for Model {
    fn decode(data: &[u8]) -> Option<Self> {
        let registers = data.try_into().ok()?;
        Some(Self { registers })
    }

    fn max_temperature_c(&self) -> i32 {
        self.byte(MAX_TEMPERATURE).into()
    }

    fn set_up(&self, kind: Kind, silence: Duration) -> Result<Vec<Write>, String> {
        if self.known().is_none() {
            return Err(format!("is a {self}, which this driver does not know"));
        }
        if kind == Kind::Joint && self.byte(DRIVE_MODE) & TIMED != 0 {
            return Err(format!(
                "has times instead of speeds: clear bit 2 of its drive mode (register {DRIVE_MODE})"
            ));
        }
        let mut writes = Vec::new();
        let mode = match (kind, self.byte(MODE)) {
            (Kind::Joint, mode @ 3..=5) => mode,
            (Kind::Joint, _) => 3,
            (Kind::Wheel, _) => 1,
        };
        if mode != self.byte(MODE) {
            writes.extend([(TORQUE, vec![0]), (MODE, vec![mode])]);
        }
        let (least, most) = WATCHDOG_RANGE;
        let units = silence.as_millis().div_ceil(WATCHDOG_UNIT_MS);
        let watchdog = units.clamp(least, most) as u8;
        if self.byte(WATCHDOG) == STOPPED {
            // It must not go on to where it was told.
            writes.push((WATCHDOG, vec![0]));
            writes.push(match kind {
                Kind::Joint => (
                    GOAL,
                    self.within(self.number(POSITION)).to_le_bytes().to_vec(),
                ),
                Kind::Wheel => self.speed(0),
            });
        }
        if self.byte(WATCHDOG) != watchdog {
            writes.push((WATCHDOG, vec![watchdog]));
        }
        Ok(writes)
    }

    /// Without its watchdog, other programs need not speak all the time.
    fn farewell(&self) -> Option<Write> {
        Some((WATCHDOG, vec![0]))
    }

    fn advice(&self) -> Option<&'static str> {
        (self.byte(DELAY) > MAX_DELAY).then_some(
            "a servo waits before each answer: set its return delay (register 9) to 0, for example with \
             the Dynamixel Wizard",
        )
    }

    fn measured(&self, _error: u8, data: &[u8]) -> Option<Measured> {
        let mut now = self.clone();
        let state = now.registers.get_mut(usize::from(STATE.0)..)?;
        if state.len() != data.len() {
            return None;
        }
        state.copy_from_slice(data);
        let is_wheel = self.byte(MODE) == 1;
        let (position, speed) = (now.number(POSITION), now.number(128));
        let current_unit = self.known().map_or(0.0, |(_, _, unit)| unit);
        Some(Measured {
            torque: now.byte(TORQUE) == 1,
            goal: now.number(GOAL),
            goal_speed: now.number(if is_wheel { SPEED } else { PROFILE }),
            position,
            angle_deg: self.angle_deg(position),
            speed_deg_s: f64::from(speed) * SPEED_UNIT,
            load_percent: f64::from(now.short(124)) * 100.0 / FULL,
            current_ma: (current_unit > 0.0).then(|| f64::from(now.short(126)) * current_unit),
            voltage_v: f64::from(now.short(144)) / 10.0,
            temperature_c: now.byte(146).into(),
            // What is slower than its threshold is no motion for the servo itself.
            is_moving: now.byte(122) != 0 || speed.unsigned_abs() > 1,
            alarm: alarm(now.byte(ERROR)),
            lapse: match now.byte(WATCHDOG) {
                same if same == self.byte(WATCHDOG) => None,
                STOPPED => Some("the watchdog of a servo has stopped it: the bus was silent"),
                _ => Some(RESTARTED),
            },
        })
    }

    fn angle_deg(&self, step: i32) -> f64 {
        f64::from(step) * 360.0 / 4096.0
    }

    fn exact_step(&self, angle_deg: f64) -> f64 {
        angle_deg * 4096.0 / 360.0
    }

    fn limits(&self) -> (i32, i32) {
        match self.byte(MODE) {
            4 | 5 => SEVERAL_TURNS,
            _ => (self.number(MIN), self.number(MAX)),
        }
    }

    fn homing_offset(&self) -> Option<i32> {
        Some(self.offset())
    }

    /// When its motor is switched on, it counts from the beginning of a turn again, unless it counts
    /// several turns.
    fn may_hold(&self, step: i32) -> bool {
        let counted = i64::from(step) - i64::from(self.offset());
        let is_in_turn = !self.has_one_turn() || (0..4096).contains(&counted);
        let way_deg = self.angle_deg(step) - self.angle_deg(self.within(step));
        is_in_turn && way_deg.abs() <= NEAR_DEG
    }

    /// The slowest speed of the way to a goal is not 0, which means the fastest.
    fn units(&self, speed_deg_s: f64) -> i32 {
        let most = self.number(SPEED_LIMIT).clamp(1, 32_767);
        let units = (speed_deg_s / SPEED_UNIT).round() as i32;
        match units.clamp(-most, most) {
            0 if speed_deg_s > 0.0 => 1,
            0 if speed_deg_s < 0.0 => -1,
            units => units,
        }
    }

    fn goal(&self, step: i32, units: i32) -> Write {
        (PROFILE, [units, step].map(i32::to_le_bytes).concat())
    }

    fn speed(&self, units: i32) -> Write {
        (SPEED, units.to_le_bytes().to_vec())
    }

    fn torque(&self, is_on: bool) -> Write {
        (TORQUE, vec![is_on.into()])
    }

    fn is_in_groups(&self) -> bool {
        true
    }
}

impl Model {
    /// What is added to what it counts.
    pub(super) fn offset(&self) -> i32 {
        self.number(OFFSET)
    }

    /// Whether it counts from the beginning of each turn.
    pub(super) fn has_one_turn(&self) -> bool {
        self.byte(MODE) == 3
    }

    fn known(&self) -> Option<(u16, &'static str, f64)> {
        let number = self.short(0) as u16;
        MODELS.into_iter().find(|model| model.0 == number)
    }

    fn byte(&self, at: u16) -> u8 {
        self.registers[usize::from(at)]
    }

    fn short(&self, at: u16) -> i16 {
        i16::from_le_bytes([self.byte(at), self.byte(at + 1)])
    }

    fn number(&self, at: u16) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|index| self.byte(at + index)))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "model {}", self.short(0) as u16),
        }
    }
}

/// What the bits of its errors mean. They stay until it restarts.
fn alarm(error: u8) -> Option<&'static str> {
    let alarms = [
        (
            5,
            "is overloaded, and may have switched its motor off: free it, then switch its supply off \
             and on",
        ),
        (
            2,
            "was too hot, and may have switched its motor off: let it cool, then switch its supply off \
             and on",
        ),
        (
            4,
            "has had a wrong current: check its cable and its supply, then switch its supply off and on",
        ),
        (
            0,
            "has had a wrong voltage: check its supply and the limits that are stored in it, then \
             switch its supply off and on",
        ),
        (3, "has a fault in its angle sensor"),
    ];
    let mut active = alarms.into_iter();
    let active = active.find(|(bit, _)| error & (1 << bit) != 0);
    match active {
        Some((_, text)) => Some(text),
        None if error != 0 => Some("reports an error that this driver does not know"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus_servos::Model as _;

    const SILENCE: Duration = Duration::from_millis(300);
    /// 300 ms in its units.
    const WATCHED: u8 = 15;

    /// The registers of a servo from the factory whose watchdog is set.
    fn registers(number: u16) -> [u8; 147] {
        let mut registers = [0; 147];
        registers[..2].copy_from_slice(&number.to_le_bytes());
        registers[7..14].copy_from_slice(&[1, 1, 250, 0, 3, 255, 2]);
        registers[31] = 70;
        registers[44..48].copy_from_slice(&445_i32.to_le_bytes());
        registers[48..52].copy_from_slice(&4095_i32.to_le_bytes());
        registers[98] = WATCHED;
        registers
    }

    /// The same, after this was written.
    fn model(number: u16, writes: &[(usize, u8)]) -> Model {
        let mut registers = registers(number);
        for (at, value) in writes {
            registers[*at] = *value;
        }
        Model::decode(&registers).unwrap()
    }

    fn xl330() -> Model {
        model(1200, &[])
    }

    #[test]
    fn a_servo_says_what_it_is() {
        for (number, name) in [
            (1200, "XL330-M288"),
            (1190, "XL330-M077"),
            (1060, "XL430-W250"),
            (1020, "XM430-W350"),
            (350, "model 350"),
            (65_535, "model 65535"),
        ] {
            assert_eq!(model(number, &[]).to_string(), name);
        }
        assert_eq!(Model::decode(&registers(1200)[1..]), None);
        assert_eq!(xl330().limits(), (0, 4095));
        assert_eq!(model(1200, &[(11, 4)]).limits(), SEVERAL_TURNS);
        assert!(xl330().advice().unwrap().contains("register 9"));
        assert_eq!(model(1200, &[(9, 0)]).advice(), None);
    }

    #[test]
    fn registers_have_units() {
        let mut data = registers(1200)[64..].to_vec();
        let mut set = |at: usize, bytes: &[u8]| {
            data[at - 64..at - 64 + bytes.len()].copy_from_slice(bytes);
        };
        set(64, &[1]);
        set(112, &[87, 0, 0, 0, 0xB8, 0x0B, 0, 0]);
        set(124, &(-177_i16).to_le_bytes());
        set(126, &(-12_i16).to_le_bytes());
        set(128, &(-40_i32).to_le_bytes());
        set(132, &2048_i32.to_le_bytes());
        set(144, &[50, 0, 31]);
        let found = xl330().measured(0, &data).unwrap();
        assert_eq!((found.torque, found.is_moving), (true, true));
        assert_eq!((found.goal, found.goal_speed), (3000, 87));
        assert_eq!((found.position, found.temperature_c), (2048, 31));
        assert_eq!((found.alarm, found.lapse), (None, None));
        let is = [
            found.angle_deg,
            found.speed_deg_s,
            found.load_percent,
            found.voltage_v,
            found.current_ma.unwrap(),
        ];
        for (is, expected) in is.into_iter().zip([180.0, -54.96, -20.0, 5.0, -12.0]) {
            assert!((is - expected).abs() < 1e-9, "{is} {expected}");
        }
        // 126 is the current in another unit, or none.
        let current = |number| model(number, &[]).measured(0, &data).unwrap().current_ma;
        assert_eq!(current(1020), Some(-12.0 * 2.69));
        assert_eq!(current(1060), None);
        assert_eq!(xl330().measured(0, &data[1..]), None);
    }

    #[test]
    fn a_servo_that_has_forgotten_its_watchdog_has_restarted() {
        let mut data = registers(1200)[64..].to_vec();
        data[98 - 64] = 0;
        let found = xl330().measured(0, &data).unwrap();
        assert_eq!(found.lapse, Some(RESTARTED));
        data[98 - 64] = STOPPED;
        let lapse = xl330().measured(0, &data).unwrap().lapse.unwrap();
        assert!(lapse.contains("watchdog"), "{lapse}");
    }

    #[test]
    fn only_the_mode_is_written_to_the_memory_and_only_if_it_differs() {
        let set_up = |writes: &[(usize, u8)], kind| model(1200, writes).set_up(kind, SILENCE);
        let watch = (WATCHDOG, vec![WATCHED]);
        for mode in [3, 4, 5] {
            assert_eq!(set_up(&[(11, mode)], Kind::Joint), Ok(Vec::new()));
        }
        assert_eq!(set_up(&[(11, 1)], Kind::Wheel), Ok(Vec::new()));
        let writes = vec![(TORQUE, vec![0]), (MODE, vec![1])];
        assert_eq!(set_up(&[], Kind::Wheel), Ok(writes));
        let writes = vec![(TORQUE, vec![0]), (MODE, vec![3])];
        assert_eq!(set_up(&[(11, 16)], Kind::Joint), Ok(writes));
        assert_eq!(set_up(&[(98, 0)], Kind::Joint), Ok(vec![watch.clone()]));
        // It stays where it is: at 2048.
        let stopped = [(98, STOPPED), (133, 8)];
        let joint = vec![(WATCHDOG, vec![0]), (GOAL, vec![0, 8, 0, 0]), watch.clone()];
        assert_eq!(set_up(&stopped, Kind::Joint), Ok(joint));
        let wheel = vec![(WATCHDOG, vec![0]), (SPEED, vec![0; 4]), watch];
        let stopped = [(98, STOPPED), (11, 1)];
        assert_eq!(set_up(&stopped, Kind::Wheel), Ok(wheel));
    }

    #[test]
    fn the_watchdog_is_as_patient_as_the_driver_is_slow() {
        for (silence_ms, units) in [(0, 10), (300, 15), (301, 16), (2_540, 127), (60_000, 127)] {
            let silence = Duration::from_millis(silence_ms);
            let writes = model(1200, &[(98, 0)]).set_up(Kind::Joint, silence);
            assert_eq!(writes, Ok(vec![(WATCHDOG, vec![units])]), "{silence_ms}");
        }
    }

    #[test]
    fn what_would_be_misread_is_refused() {
        let why = model(350, &[]).set_up(Kind::Joint, SILENCE).unwrap_err();
        assert_eq!(why, "is a model 350, which this driver does not know");
        let timed = model(1200, &[(10, 5)]);
        let why = timed.set_up(Kind::Joint, SILENCE).unwrap_err();
        assert!(why.contains("register 10"), "{why}");
    }

    #[test]
    fn an_angle_is_a_step_within_the_limits() {
        let narrow = model(1200, &[(48, 0), (49, 12), (53, 4)]);
        assert_eq!(narrow.limits(), (1024, 3072));
        assert_eq!(narrow.step(180.0), Ok(2048));
        let why = narrow.step(89.0).unwrap_err();
        assert_eq!(why, "turns from 90.0 to 270.0 degrees, not to 89");
        assert_eq!((narrow.within(0), narrow.within(9_999)), (1024, 3072));
        assert!(narrow.may_hold(1010) && !narrow.may_hold(1000));
        // It would begin at 0 again.
        assert!(xl330().may_hold(4095) && !xl330().may_hold(4096));
        let turns = model(1200, &[(11, 4)]);
        assert!(turns.may_hold(4096));
        assert_eq!(turns.step(-720.0), Ok(-8192));
    }

    #[test]
    fn goals_and_speeds_are_bytes() {
        let goal = (112, vec![87, 0, 0, 0, 0xB8, 0x0B, 0, 0]);
        assert_eq!(xl330().goal(3000, 87), goal);
        assert_eq!(xl330().speed(-3), (104, vec![0xFD, 0xFF, 0xFF, 0xFF]));
        assert_eq!(xl330().units(120.0), 87);
        assert_eq!((xl330().units(0.0), xl330().units(-0.1)), (0, -1));
        assert_eq!(xl330().units(1e9), 445, "its limit");
    }

    #[test]
    fn the_gravest_alarm_is_said() {
        assert_eq!(alarm(0), None);
        assert!(alarm(0x21).unwrap().starts_with("is overloaded"));
        assert!(alarm(0x01).unwrap().starts_with("has had a wrong voltage"));
        assert!(alarm(0x80).is_some());
    }
}
