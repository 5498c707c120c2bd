//! The servos, their limits, and the commands for them. PURE.

use std::collections::{BTreeMap, BTreeSet};

use amber_proto::maestro::DriverMsg;
use serde::Deserialize;

use super::Order;

/// The largest speed, in 25 us/s.
pub const MAX_SPEED: u16 = (1 << 14) - 1;

/// The longest pulse that a controller can be asked for, in microseconds.
const MAX_US: f64 = 4095.75;

/// The limits of one servo, as in the file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ServoOptions {
    /// Its number, from 0.
    pub id: u8,
    /// The smallest angle.
    pub min_deg: Option<i32>,
    /// The largest angle.
    pub max_deg: Option<i32>,
    /// The shortest pulse.
    pub min_us: Option<f64>,
    /// The longest pulse.
    pub max_us: Option<f64>,
    /// The pulse at 0 degrees.
    pub zero_us: Option<f64>,
    /// The change of the pulse width per degree.
    pub us_per_deg: Option<f64>,
    /// Whether it turns on and on, as a motor does: a servo for continuous rotation, or a motor
    /// controller of a model. It gets no pulses without a client and without the driver.
    #[serde(default)]
    pub continuous: bool,
}

/// The range of one servo.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Servo {
    min_deg: i32,
    max_deg: i32,
    min_us: f64,
    max_us: f64,
    zero_us: f64,
    us_per_deg: f64,
}

/// The range of the Hitec servos of the Capo robot.
const USUAL: Servo = Servo {
    min_deg: 0,
    max_deg: 180,
    min_us: 600.0,
    max_us: 2_400.0,
    zero_us: 2_400.0,
    us_per_deg: -10.0,
};

/// All servos.
#[derive(Clone, Debug, PartialEq)]
pub struct Servos {
    count: u8,
    special: BTreeMap<u8, Servo>,
    continuous: BTreeSet<u8>,
}

/// The reason why a request is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// It is not a request for this device.
    #[error("not a request for servos")]
    Unknown,
    /// The servo does not exist.
    #[error("servo {0} does not exist, the last one is {1}")]
    NoServo(u32, u8),
    /// The angle is out of range.
    #[error("servo {servo} turns from {min_deg} to {max_deg} degrees, not to {angle}")]
    Angle {
        servo: u8,
        /// The requested angle.
        angle: i32,
        /// The smallest angle.
        min_deg: i32,
        /// The largest angle.
        max_deg: i32,
    },
    /// The pulse width is out of range.
    #[error("servo {servo} takes pulses of {min_us} to {max_us} us, not of {us}")]
    Pulse {
        servo: u8,
        /// The resulting pulse width.
        us: f64,
        /// The shortest pulse.
        min_us: f64,
        /// The longest pulse.
        max_us: f64,
    },
    /// The speed is out of range.
    #[error("speed {0} is not within 0 to {MAX_SPEED}")]
    Speed(i32),
    /// The lists of servos and angles differ in length.
    #[error("{0} servos, but {1} angles")]
    Lengths(usize, usize),
}

impl Servos {
    /// Creates `count` servos, some with their own limits.
    ///
    /// # Errors
    /// Describes the invalid value.
    pub fn new(count: u8, options: &[ServoOptions]) -> Result<Self, String> {
        let mut special = BTreeMap::new();
        let mut continuous = BTreeSet::new();
        for options in options {
            let id = options.id;
            if id >= count {
                return Err(format!(
                    "servo {id} does not exist, the last one is {}",
                    count - 1
                ));
            }
            let servo = Servo {
                min_deg: options.min_deg.unwrap_or(USUAL.min_deg),
                max_deg: options.max_deg.unwrap_or(USUAL.max_deg),
                min_us: options.min_us.unwrap_or(USUAL.min_us),
                max_us: options.max_us.unwrap_or(USUAL.max_us),
                zero_us: options.zero_us.unwrap_or(USUAL.zero_us),
                us_per_deg: options.us_per_deg.unwrap_or(USUAL.us_per_deg),
            };
            let is_sound = servo.min_deg <= servo.max_deg
                && servo.min_us > 0.0
                && servo.min_us <= servo.max_us
                && servo.max_us <= MAX_US
                && servo.zero_us.is_finite()
                && servo.us_per_deg.is_finite();
            if !is_sound {
                return Err(format!(
                    "servo {id}: min must not exceed max, and pulses must be above 0 and at most {MAX_US} us"
                ));
            }
            if special.insert(id, servo).is_some() {
                return Err(format!("servo {id} is defined twice"));
            }
            if options.continuous {
                continuous.insert(id);
            }
        }
        Ok(Self {
            count,
            special,
            continuous,
        })
    }

    /// The servos that turn on and on, as motors do.
    #[must_use]
    pub fn continuous(&self) -> &BTreeSet<u8> {
        &self.continuous
    }

    /// The longest pulse of any servo, in microseconds.
    #[must_use]
    pub fn longest_us(&self) -> f64 {
        let special = self.special.values().map(|servo| servo.max_us);
        // Servos that are not described may exist.
        let is_any_usual = usize::from(self.count) > self.special.len();
        special
            .chain(is_any_usual.then_some(USUAL.max_us))
            .fold(0.0, f64::max)
    }

    /// Converts a message to orders, either all or none. Only the first request in the message
    /// takes effect, as in the original.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn read(&self, message: &DriverMsg) -> Result<Vec<Order>, Refusal> {
        if let Some(one) = &message.set_angle_command {
            return Ok(vec![self.target(one.servo_address, one.angle)?]);
        }
        if let Some(same) = &message.set_same_angle_command {
            let servos = same.servo_addresses.iter();
            return servos
                .map(|servo| self.target(*servo, same.angle))
                .collect();
        }
        if let Some(each) = &message.set_different_angles_command {
            let (servos, angles) = (&each.servo_addresses, &each.angles);
            if servos.len() != angles.len() {
                return Err(Refusal::Lengths(servos.len(), angles.len()));
            }
            let pairs = servos.iter().zip(angles);
            return pairs
                .map(|(servo, angle)| self.target(*servo, *angle))
                .collect();
        }
        let Some(wanted) = &message.set_speed_command else {
            return Err(Refusal::Unknown);
        };
        let (servo, _) = self.servo(wanted.servo_address)?;
        let speed = u16::try_from(wanted.speed).ok();
        let speed = speed.filter(|speed| *speed <= MAX_SPEED);
        let speed = speed.ok_or(Refusal::Speed(wanted.speed))?;
        Ok(vec![Order::Speed { servo, speed }])
    }

    fn target(&self, address: u32, angle: i32) -> Result<Order, Refusal> {
        let (servo, turns) = self.servo(address)?;
        let Servo {
            min_deg,
            max_deg,
            min_us,
            max_us,
            ..
        } = turns;
        if !(min_deg..=max_deg).contains(&angle) {
            return Err(Refusal::Angle {
                servo,
                angle,
                min_deg,
                max_deg,
            });
        }
        let us = turns.zero_us + turns.us_per_deg * f64::from(angle);
        if !(min_us..=max_us).contains(&us) {
            return Err(Refusal::Pulse {
                servo,
                us,
                min_us,
                max_us,
            });
        }
        Ok(Order::Turn { servo, angle, us })
    }

    fn servo(&self, address: u32) -> Result<(u8, Servo), Refusal> {
        let id = u8::try_from(address).ok().filter(|id| *id < self.count);
        let id = id.ok_or(Refusal::NoServo(address, self.count - 1))?;
        Ok((id, self.special.get(&id).copied().unwrap_or(USUAL)))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn servos(text: &str) -> Servos {
        #[derive(Deserialize)]
        struct File {
            #[serde(default)]
            servo: Vec<ServoOptions>,
        }
        let file: File = toml::from_str(text).unwrap();
        Servos::new(24, &file.servo).unwrap()
    }

    /// The usual servo at a pulse width.
    fn target(servo: u8, us: u16) -> Order {
        Order::Turn {
            servo,
            angle: (2400 - i32::from(us)) / 10,
            us: us.into(),
        }
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<Vec<Order>, &str>) {
        let message = DriverMsg::decode(bytes).unwrap();
        let found = servos("")
            .read(&message)
            .map_err(|refusal| refusal.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn client_messages_become_commands() {
        check(
            b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a",
            Ok(vec![target(2, 1500)]),
        );
        check(
            b"\x10\x01\xba\x04\x06\x0a\x02\x00\x01\x10\x2d",
            Ok(vec![target(0, 1950), target(1, 1950)]),
        );
        check(
            b"\x10\x01\xc2\x04\x09\x0a\x02\x00\x01\x12\x03\x2d\x87\x01",
            Ok(vec![target(0, 1950), target(1, 1050)]),
        );
        // Lists that are not packed.
        check(
            b"\x10\x01\xba\x04\x06\x08\x00\x08\x01\x10\x2d",
            Ok(vec![target(0, 1950), target(1, 1950)]),
        );
        let speed = Order::Speed {
            servo: 2,
            speed: 20,
        };
        check(b"\x10\x01\xca\x04\x04\x08\x02\x10\x14", Ok(vec![speed]));
        // The first of several requests.
        check(
            b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a\xca\x04\x04\x08\x02\x10\x14",
            Ok(vec![target(2, 1500)]),
        );
    }

    #[test]
    fn an_impossible_request_is_not_carried_out_in_part() {
        check(b"\x10\x01", Err("not a request for servos"));
        check(
            b"\x10\x01\xb2\x04\x04\x08\x18\x10\x5a",
            Err("servo 24 does not exist, the last one is 23"),
        );
        check(
            b"\x10\x01\xb2\x04\x05\x08\x84\x01\x10\x5a",
            Err("servo 132 does not exist, the last one is 23"),
        );
        check(
            b"\x10\x01\xb2\x04\x05\x08\x02\x10\xb5\x01",
            Err("servo 2 turns from 0 to 180 degrees, not to 181"),
        );
        check(
            b"\x10\x01\xc2\x04\x07\x0a\x02\x00\x01\x12\x01\x2d",
            Err("2 servos, but 1 angles"),
        );
    }

    #[test]
    fn each_servo_has_its_own_limits() {
        let servos = servos(
            "[[servo]]\nid = 3\nmin_us = 992\nmax_us = 2000\n\
             [[servo]]\nid = 4\ncontinuous = true\nmin_deg = -45\nmax_deg = 45\nzero_us = 1500\nus_per_deg = 8.25\n",
        );
        assert_eq!(servos.target(3, 140), Ok(target(3, 1000)));
        let refused = servos.target(3, 20).unwrap_err().to_string();
        assert_eq!(
            refused,
            "servo 3 takes pulses of 992 to 2000 us, not of 2200"
        );
        let one = Order::Turn {
            servo: 4,
            angle: 1,
            us: 1508.25,
        };
        assert_eq!(servos.target(4, 1), Ok(one));
        assert!(servos.target(4, 46).is_err());
        assert_eq!(servos.target(5, 180), Ok(target(5, 600)));
        assert_eq!(servos.continuous(), &[4].into());
        assert_eq!(servos.longest_us(), 2400.0);
    }

    #[test]
    fn invalid_limits_are_rejected() {
        let options = ServoOptions {
            id: 3,
            min_deg: None,
            max_deg: None,
            min_us: None,
            max_us: None,
            zero_us: None,
            us_per_deg: None,
            continuous: false,
        };
        let wrong = |options: ServoOptions| Servos::new(6, &[options]).is_err();
        assert!(!wrong(options));
        assert!(wrong(ServoOptions { id: 6, ..options }));
        for us in [0.0, 4096.0, f64::NAN] {
            let max_us = Some(us);
            assert!(wrong(ServoOptions { max_us, ..options }), "{us}");
        }
        let min_deg = Some(181);
        assert!(wrong(ServoOptions { min_deg, ..options }));
        assert!(Servos::new(6, &[options, options]).is_err());
    }
}
