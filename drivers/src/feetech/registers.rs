//! The registers of Feetech servos, and their units. PURE.
//!
//! STS and SMS count 4096 steps in a turn, with the lower byte first. SCS count 1024 steps in 300
//! degrees, with the upper byte first. Their registers for motion have the same addresses. Signs are
//! single bits, not two's complement.

use std::fmt;
use std::time::Duration;

use crate::bus_servos::wire::{sign_magnitude, with_sign};
use crate::bus_servos::{self, Kind, Measured, RESTARTED, Write};

/// What a servo is: registers 3 to 33.
pub const IDENTITY: (u16, u8) = (3, 31);
/// How it moves, what it was told, and what it does: registers 33 to 70.
pub const STATE: (u16, u8) = (33, 38);

/// How it moves: 0 to angles, 1 on and on.
const MODE: u16 = 33;
/// Whether the motor is on.
const TORQUE: u16 = 40;
/// The goal, a time that is not used, and the speed.
const GOAL: u16 = 42;
/// The speed.
const SPEED: u16 = 46;
/// 1: what is written to the registers below 40 acts, and is lost when the servo is switched off. So the
/// memory, which wears, is not written.
const LOCK: u16 = 55;

/// What SCS have in their first register of the model.
const SCS: u8 = 5;

/// A servo on the bus, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    number: u16,
    is_scs: bool,
    /// The smallest and the largest goal, in steps.
    limits: (i32, i32),
    max_temperature_c: u8,
    mode: u8,
    /// What is subtracted from what it counts. SCS have none.
    homing_offset: Option<i32>,
    /// Steps per second in its unit of speed.
    speed_unit: i32,
}

impl bus_servos::Model for Model {
    fn decode(data: &[u8]) -> Option<Self> {
        let data: &[u8; IDENTITY.1 as usize] = data.try_into().ok()?;
        let byte = |at: u16| data[usize::from(at - IDENTITY.0)];
        let is_scs = byte(3) == SCS;
        let word = |at: u16| word(is_scs, [byte(at), byte(at + 1)]);
        let limits = (i32::from(word(9)), i32::from(word(11)));
        Some(Self {
            number: word(3),
            is_scs,
            limits: match limits {
                // Several turns.
                (0, 0) if !is_scs => (-32_767, 32_767),
                limits => limits,
            },
            max_temperature_c: byte(13),
            mode: if is_scs { 0 } else { byte(MODE) },
            homing_offset: (!is_scs).then(|| with_sign(word(31), 11)),
            speed_unit: match byte(18) & 4 {
                0 if !is_scs => 50,
                _ => 1,
            },
        })
    }

    fn max_temperature_c(&self) -> i32 {
        self.max_temperature_c.into()
    }

    fn set_up(&self, kind: Kind, _silence: Duration) -> Result<Vec<Write>, String> {
        let mode = match kind {
            Kind::Joint if self.is_scs && self.limits == (0, 0) => {
                return Err("has no limits, so it turns like a motor: set its limits".to_owned());
            }
            Kind::Wheel if self.is_scs => {
                return Err(format!(
                    "is an {self}, which this driver cannot use as a wheel"
                ));
            }
            Kind::Joint => 0,
            Kind::Wheel => 1,
        };
        Ok(match mode == self.mode {
            true => Vec::new(),
            // An old goal or speed must not move it.
            false => vec![
                (TORQUE, vec![0]),
                (LOCK, vec![1]),
                (SPEED, vec![0, 0]),
                (MODE, vec![mode]),
            ],
        })
    }

    fn measured(&self, error: u8, data: &[u8]) -> Option<Measured> {
        let data: &[u8; STATE.1 as usize] = data.try_into().ok()?;
        let byte = |at: u16| data[usize::from(at - STATE.0)];
        let number = |at, sign| with_sign(word(self.is_scs, [byte(at), byte(at + 1)]), sign);
        let position = number(56, 15);
        let percent = |tenths: i32| f64::from(tenths) / 10.0;
        Some(Measured {
            torque: byte(TORQUE) == 1,
            goal: number(GOAL, 15),
            goal_speed: number(SPEED, 15),
            position,
            angle_deg: self.angle_deg(position),
            speed_deg_s: self.speed_deg_s(number(58, 15)),
            load_percent: percent(number(60, 10)),
            current_ma: (!self.is_scs).then(|| 6.5 * f64::from(number(69, 15))),
            voltage_v: percent(byte(62).into()),
            temperature_c: byte(63).into(),
            is_moving: byte(66) != 0,
            alarm: alarm(error),
            // It forgets its mode. The register of SCS has another meaning.
            lapse: (!self.is_scs && byte(MODE) != self.mode).then_some(RESTARTED),
        })
    }

    fn angle_deg(&self, step: i32) -> f64 {
        match self.is_scs {
            true => 180.0 + f64::from(step - 512) * 300.0 / 1024.0,
            false => f64::from(step) * 360.0 / 4096.0,
        }
    }

    fn exact_step(&self, angle_deg: f64) -> f64 {
        match self.is_scs {
            true => 512.0 + (angle_deg - 180.0) * 1024.0 / 300.0,
            false => angle_deg * 4096.0 / 360.0,
        }
    }

    fn limits(&self) -> (i32, i32) {
        self.limits
    }

    fn homing_offset(&self) -> Option<i32> {
        self.homing_offset
    }

    /// The slowest speed is not 0, which may mean none or the fastest.
    fn units(&self, speed_deg_s: f64) -> i32 {
        let units = speed_deg_s / self.speed_deg_s(1);
        let units = (units.round() as i32).clamp(-32_767, 32_767);
        match units {
            0 if speed_deg_s > 0.0 => 1,
            0 if speed_deg_s < 0.0 => -1,
            units => units,
        }
    }

    fn goal(&self, step: i32, units: i32) -> Write {
        let [goal, speed] = [self.bytes(step), self.bytes(units)];
        (GOAL, [goal, [0, 0], speed].concat())
    }

    fn speed(&self, units: i32) -> Write {
        (SPEED, self.bytes(units).to_vec())
    }

    fn torque(&self, is_on: bool) -> Write {
        (TORQUE, vec![is_on.into()])
    }

    fn is_in_groups(&self) -> bool {
        !self.is_scs
    }
}

impl Model {
    pub(super) fn is_scs(&self) -> bool {
        self.is_scs
    }

    fn speed_deg_s(&self, units: i32) -> f64 {
        let steps = f64::from(units * self.speed_unit);
        match self.is_scs {
            true => steps * 300.0 / 1024.0,
            false => steps * 360.0 / 4096.0,
        }
    }

    fn bytes(&self, value: i32) -> [u8; 2] {
        let value = sign_magnitude(value, 15);
        match self.is_scs {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.number {
            521 => "STS3036",
            777 => "STS3215",
            1284 => "SCS0009",
            2825 => "STS3250",
            11_272 => "SM8512BL",
            other => return write!(f, "model {other}"),
        };
        f.write_str(name)
    }
}

fn word(is_scs: bool, bytes: [u8; 2]) -> u16 {
    match is_scs {
        true => u16::from_be_bytes(bytes),
        false => u16::from_le_bytes(bytes),
    }
}

/// What the bits of an answer mean.
fn alarm(error: u8) -> Option<&'static str> {
    let alarms = [
        (
            5,
            "is overloaded: it has reduced its torque. Free it, and switch its torque off and on; if it \
             does not answer then, switch its supply off and on",
        ),
        (2, "is too hot: let it cool"),
        (3, "draws too much current: check whether it is blocked"),
        (
            0,
            "has a wrong voltage: check its supply and the limits that are stored in it",
        ),
        (1, "has a fault in its angle sensor"),
    ];
    let mut active = alarms
        .into_iter()
        .filter(|(bit, _)| error & (1 << bit) != 0);
    active.next().map(|(_, text)| text)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bus_servos::Model as _;

    /// The registers 3 to 33 of a servo from the factory.
    pub(crate) fn identity(model: [u8; 2], limits: [u8; 4], mode: u8) -> Vec<u8> {
        let mut data = vec![0; 31];
        data[..2].copy_from_slice(&model);
        data[2] = 1;
        data[6..10].copy_from_slice(&limits);
        (data[10], data[15], data[30]) = (70, 12, mode);
        data
    }

    fn sts() -> Model {
        Model::decode(&identity([0x09, 0x03], [0, 0, 0xFF, 0x0F], 0)).unwrap()
    }

    fn scs() -> Model {
        Model::decode(&identity([0x05, 0x04], [0, 20, 0x03, 0xEB], 0)).unwrap()
    }

    #[test]
    fn a_servo_says_what_it_is() {
        assert_eq!(sts().to_string(), "STS3215");
        assert_eq!(scs().to_string(), "SCS0009");
        assert_eq!((sts().limits, scs().limits), ((0, 4095), (20, 1003)));
        let turns = Model::decode(&identity([0x09, 0x03], [0; 4], 0)).unwrap();
        assert_eq!(turns.limits, (-32_767, 32_767));
        let other = Model::decode(&identity([0x09, 0x7F], [0; 4], 0)).unwrap();
        assert_eq!(other.to_string(), "model 32521");
        assert_eq!(Model::decode(&[9, 3]), None);
    }

    #[test]
    fn registers_have_units() {
        let mut data = vec![0; 38];
        (data[0], data[7]) = (1, 1);
        // The vector of the sheet: registers 56 to 70.
        data[23..].copy_from_slice(&[
            0x00, 0x08, 0x32, 0x80, 0x64, 0x04, 0x4A, 0x1F, 0, 0, 1, 0, 8, 0x0C, 0,
        ]);
        let found = sts().measured(0, &data).unwrap();
        assert_eq!((found.position, found.temperature_c), (2048, 31));
        assert!(found.torque && found.is_moving);
        assert_eq!(found.lapse, Some(RESTARTED), "it has another mode");
        let expected = [180.0, -50.0 * 360.0 / 4096.0, -10.0, 7.4, 78.0];
        let current_ma = found.current_ma.unwrap();
        let is = [
            found.angle_deg,
            found.speed_deg_s,
            found.load_percent,
            found.voltage_v,
            current_ma,
        ];
        for (is, expected) in is.into_iter().zip(expected) {
            assert!((is - expected).abs() < 1e-9, "{is} {expected}");
        }
        data[23..25].copy_from_slice(&[0x02, 0x00]);
        let found = scs().measured(0, &data).unwrap();
        assert_eq!((found.position, found.current_ma), (512, None));
        assert!((found.angle_deg - 180.0).abs() < 1e-9);
        assert_eq!(sts().measured(0, &data[1..]), None);
    }

    #[test]
    fn an_angle_is_a_step_within_the_limits() {
        for (model, angle_deg, step) in [
            (sts(), 180.0, 2048),
            (sts(), 0.0, 0),
            (sts(), 359.95, 4095),
            (scs(), 180.0, 512),
            (scs(), 36.0, 20),
        ] {
            assert_eq!(model.step(angle_deg), Ok(step), "{model} {angle_deg}");
            assert!((model.angle_deg(step) - angle_deg).abs() < 0.15);
        }
        for angle_deg in [-0.1, 360.0, 1e300, f64::NAN, f64::INFINITY, -1e10] {
            let why = sts().step(angle_deg).unwrap_err();
            assert!(why.starts_with("turns from 0.0 to 359.9 degrees"), "{why}");
        }
    }

    #[test]
    fn goals_and_speeds_are_bytes_of_the_family() {
        assert_eq!(sts().goal(3000, 2400).1, [0xB8, 0x0B, 0, 0, 0x60, 0x09]);
        assert_eq!(scs().goal(512, 800).1, [2, 0, 0, 0, 3, 0x20]);
        assert_eq!(sts().speed(-1129), (46, vec![0x69, 0x84]));
        assert_eq!(sts().torque(true), (40, vec![1]));
        assert_eq!(sts().units(-1129.0 * 360.0 / 4096.0), -1129);
        assert_eq!((sts().units(0.0), sts().units(-0.001)), (0, -1));
        assert_eq!(sts().units(1e12), 32_767);
        let mut slow = identity([0x09, 0x03], [0; 4], 1);
        slow[15] = 8;
        let slow = Model::decode(&slow).unwrap();
        // 0.732 rpm.
        assert_eq!(slow.units(0.732 * 6.0), 1);
    }

    #[test]
    fn the_memory_of_a_servo_is_never_written() {
        assert_eq!(sts().set_up(Kind::Joint, Duration::ZERO), Ok(Vec::new()));
        let writes = sts().set_up(Kind::Wheel, Duration::ZERO).unwrap();
        let at = |wanted| writes.iter().position(|(at, _)| *at == wanted).unwrap();
        assert!(at(LOCK) < at(MODE) && at(TORQUE) < at(MODE));
        assert_eq!(writes[at(LOCK)].1, [1]);
        let memory: Vec<_> = writes.iter().filter(|(at, _)| *at < 40).collect();
        assert_eq!(memory, [&(MODE, vec![1])]);
        let wheel = Model::decode(&identity([0x09, 0x03], [0; 4], 1)).unwrap();
        assert_eq!(wheel.set_up(Kind::Wheel, Duration::ZERO), Ok(Vec::new()));
        assert!(
            scs()
                .set_up(Kind::Wheel, Duration::ZERO)
                .unwrap_err()
                .contains("SCS0009")
        );
        let endless = Model::decode(&identity([0x05, 0x04], [0; 4], 0)).unwrap();
        assert!(endless.set_up(Kind::Joint, Duration::ZERO).is_err());
    }

    #[test]
    fn the_gravest_alarm_is_said() {
        assert_eq!(alarm(0), None);
        assert!(alarm(0x21).unwrap().starts_with("is overloaded"));
        assert!(alarm(0x01).unwrap().starts_with("has a wrong voltage"));
    }
}
