//! The four wheels of the robot: their names, their units, and how a motor follows its command.
//! PURE.
//!
//! Speeds are in encoder pulses per second (qpps), positive forward, as in the motor controllers;
//! [`metres_per_second`] converts them.

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// Encoder pulses per turn of a wheel.
pub const PULSES_PER_TURN: f64 = 1865.0;
/// The radius of a wheel in metres.
pub const WHEEL_RADIUS_M: f64 = 0.06;
/// The maximum speed of a motor, in pulses per second.
pub const MAX_QPPS: f64 = 13_800.0;

/// The default acceleration of a motor, in qpps per second: 2 m/s².
const ACCELERATION_QPPS2: f64 = 9_894.0;
/// Braking is stronger than acceleration by this factor.
const BRAKING: f64 = 1.5;
/// The maximum braking of a motor, in qpps per second.
pub const MAX_BRAKING_QPPS2: f64 = ACCELERATION_QPPS2 * BRAKING;
/// The time constant of a motor under speed control.
const LAG_S: f64 = 0.1;
/// The time constant of a motor with a fixed voltage, or none.
const OPEN_LOOP_LAG_S: f64 = 0.3;
/// Below this speed an unpowered motor stops, in qpps.
const STANDSTILL_QPPS: f64 = 4.0;
/// The current of a blocked motor at full duty.
const STALL_CURRENT_A: f64 = 12.0;
/// Duties up to this do not overcome friction.
const DEAD_DUTY: f64 = 0.04;
/// The noise of measured currents: a fraction of the current, and a minimum.
const CURRENT_NOISE: f64 = 0.03;
const CURRENT_NOISE_A: f64 = 0.02;

/// One of the four wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wheel {
    /// Front left.
    FrontLeft,
    /// Front right.
    FrontRight,
    /// Rear left.
    RearLeft,
    /// Rear right.
    RearRight,
}

/// A controller's command for a motor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drive {
    /// A fraction of the full voltage, -1 to 1; at 0 the wheel coasts.
    Duty(f64),
    /// A speed that the controller holds.
    Speed {
        /// The speed, in pulses per second.
        qpps: f64,
        /// The acceleration in qpps per second; the motor's own limit if absent.
        acceleration_qpps2: Option<f64>,
    },
}

/// A controller's measurements of a motor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The speed with measuring noise; exactly 0 at rest.
    pub speed_qpps: i32,
    /// Pulses since the start, forward minus backward.
    pub pulses: i64,
    /// The current through the motor.
    pub current_a: f64,
    /// The voltage on the motor as a fraction of the full voltage, -1 to 1.
    pub duty: f64,
}

/// A motor and its wheel.
#[derive(Clone, Debug, Default)]
pub struct Motor {
    speed_qpps: f64,
    pulses: f64,
    current_a: f64,
    duty: f64,
    stuck: bool,
}

impl Wheel {
    /// All wheels, in the order of all arrays of wheels.
    pub const ALL: [Self; 4] = [
        Self::FrontLeft,
        Self::FrontRight,
        Self::RearLeft,
        Self::RearRight,
    ];

    /// The index of this wheel in arrays of wheels.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FrontLeft => "front-left",
            Self::FrontRight => "front-right",
            Self::RearLeft => "rear-left",
            Self::RearRight => "rear-right",
        }
    }
}

impl fmt::Display for Wheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wheel {
    type Err = UnknownWheel;

    fn from_str(name: &str) -> Result<Self, UnknownWheel> {
        Self::ALL
            .into_iter()
            .find(|wheel| wheel.name() == name)
            .ok_or_else(|| UnknownWheel(name.to_owned()))
    }
}

/// No wheel has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such wheel (front-left, front-right, rear-left, rear-right): {0:?}")]
pub struct UnknownWheel(String);

impl Drive {
    /// No voltage.
    pub const RELEASED: Self = Self::Duty(0.0);

    /// Whether the command is zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Self::Duty(duty) => duty == 0.0,
            Self::Speed { qpps, .. } => qpps == 0.0,
        }
    }
}

impl Motor {
    /// Advances the time.
    pub fn step(&mut self, dt_s: f64, drive: Drive) {
        let before = self.speed_qpps;
        let (target, lag_s, acceleration) = match drive {
            Drive::Duty(duty) => (open_loop_qpps(duty), OPEN_LOOP_LAG_S, None),
            Drive::Speed {
                qpps,
                acceleration_qpps2,
            } => {
                // A requested ramp is followed closely.
                let lag_s = if acceleration_qpps2.is_some() {
                    0.0
                } else {
                    LAG_S
                };
                (qpps.clamp(-MAX_QPPS, MAX_QPPS), lag_s, acceleration_qpps2)
            }
        };
        if self.stuck {
            self.speed_qpps = 0.0;
            self.duty = stalled_duty(drive, target);
            self.current_a = STALL_CURRENT_A * self.duty.abs();
            return;
        }
        let braking = before * (target - before) < 0.0;
        let strongest = if braking {
            MAX_BRAKING_QPPS2
        } else {
            ACCELERATION_QPPS2
        };
        let limit = acceleration.map_or(strongest, |asked| asked.clamp(0.0, strongest));
        // The exact step response of a first-order lag, so that long steps are safe.
        let wanted = (target - before) * (1.0 - (-dt_s / lag_s).exp());
        self.speed_qpps += wanted.clamp(-limit * dt_s, limit * dt_s);
        if target == 0.0 && self.speed_qpps.abs() < STANDSTILL_QPPS {
            self.speed_qpps = 0.0;
        }
        self.pulses += (before + self.speed_qpps) / 2.0 * dt_s;
        let acceleration_m_s2 = metres_per_second((self.speed_qpps - before) / dt_s);
        self.current_a = match drive {
            Drive::Duty(0.0) => 0.0,
            Drive::Duty(duty) if self.speed_qpps == 0.0 => STALL_CURRENT_A * duty.abs(),
            _ if self.speed_qpps == 0.0 => 0.0,
            _ => {
                let speed = metres_per_second(self.speed_qpps).abs();
                0.2 + 0.3 * speed + 0.8 * acceleration_m_s2.abs()
            }
        };
        self.duty = match drive {
            Drive::Duty(duty) => duty,
            Drive::Speed { .. } => (self.speed_qpps / MAX_QPPS).clamp(-1.0, 1.0),
        };
    }

    /// An external force, such as a wall, has slowed the wheel down to this speed in the last step:
    /// the motor pushes against it.
    pub fn press(&mut self, dt_s: f64, drive: Drive, speed_qpps: f64) {
        self.pulses -= (self.speed_qpps - speed_qpps) / 2.0 * dt_s;
        self.speed_qpps = speed_qpps;
        let target = match drive {
            Drive::Duty(duty) => duty,
            Drive::Speed { qpps, .. } => qpps,
        };
        self.duty = stalled_duty(drive, target);
        self.current_a = STALL_CURRENT_A * self.duty.abs();
    }

    /// Blocks or releases the wheel.
    pub fn set_stuck(&mut self, stuck: bool) {
        self.stuck = stuck;
    }

    /// The true speed.
    #[must_use]
    pub fn speed_qpps(&self) -> f64 {
        self.speed_qpps
    }

    /// Whether speed and current are constant with this command.
    #[must_use]
    pub fn is_at_rest(&self, drive: Drive) -> bool {
        self.speed_qpps == 0.0 && drive.is_zero() && self.current_a == 0.0
    }

    /// The measurements of a controller.
    pub fn reading(&self, random: &mut fastrand::Rng) -> Reading {
        let speed = self.speed_qpps;
        let sigma = (speed.abs() * 0.005).max(3.0);
        let noise = if speed == 0.0 {
            0.0
        } else {
            sigma * gaussian(random)
        };
        let current_a = if self.current_a == 0.0 {
            0.0
        } else {
            let sigma_a = CURRENT_NOISE_A + CURRENT_NOISE * self.current_a;
            (self.current_a + sigma_a * gaussian(random)).max(0.0)
        };
        Reading {
            speed_qpps: (speed + noise).round() as i32,
            pulses: self.pulses.floor() as i64,
            current_a,
            duty: self.duty,
        }
    }
}

/// The speed of a wheel's rim.
#[must_use]
pub fn metres_per_second(qpps: f64) -> f64 {
    qpps / PULSES_PER_TURN * 2.0 * PI * WHEEL_RADIUS_M
}

/// The encoder pulses for a distance.
#[must_use]
pub fn pulses_of(way_m: f64) -> f64 {
    way_m * PULSES_PER_TURN / (2.0 * PI * WHEEL_RADIUS_M)
}

/// A random number with mean 0 and standard deviation 1.
pub(crate) fn gaussian(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (2.0 * PI * random.f64()).cos()
}

/// The speed at a fraction of the full voltage.
fn open_loop_qpps(duty: f64) -> f64 {
    let size = duty.abs().min(1.0);
    let turning = ((size - DEAD_DUTY) / (1.0 - DEAD_DUTY)).max(0.0);
    duty.signum() * turning * MAX_QPPS
}

/// The duty of a blocked motor: a controller that sees no movement raises the voltage.
fn stalled_duty(drive: Drive, target: f64) -> f64 {
    match drive {
        Drive::Duty(duty) => duty,
        Drive::Speed { .. } if target == 0.0 => 0.0,
        Drive::Speed { .. } => target.signum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: f64 = 0.005;

    fn after(motor: &mut Motor, seconds: f64, drive: Drive) {
        for _ in 0..(seconds / STEP_S).round() as usize {
            motor.step(STEP_S, drive);
        }
    }

    fn speed(qpps: f64) -> Drive {
        Drive::Speed {
            qpps,
            acceleration_qpps2: None,
        }
    }

    #[test]
    fn a_pulse_is_a_fifth_of_a_millimetre() {
        assert!((metres_per_second(4.947_066) - 0.001).abs() < 1e-9);
        assert!((metres_per_second(13_800.0) - 2.7895).abs() < 1e-3);
    }

    #[test]
    fn a_motor_reaches_its_speed_without_jumping() {
        let mut motor = Motor::default();
        motor.step(STEP_S, speed(4947.0));
        assert!(motor.speed_qpps() <= ACCELERATION_QPPS2 * STEP_S + 1e-9);
        after(&mut motor, 2.0, speed(4947.0));
        assert!((motor.speed_qpps() - 4947.0).abs() < 1.0);
        after(&mut motor, 3.0, speed(0.0));
        assert!(motor.is_at_rest(speed(0.0)));
        assert_eq!(
            motor.reading(&mut fastrand::Rng::with_seed(1)).speed_qpps,
            0
        );
    }

    #[test]
    fn a_requested_acceleration_is_followed() {
        let mut motor = Motor::default();
        let drive = Drive::Speed {
            qpps: 2000.0,
            acceleration_qpps2: Some(1000.0),
        };
        after(&mut motor, 1.0, drive);
        assert!((motor.speed_qpps() - 1000.0).abs() < 1.0);
    }

    #[test]
    fn a_stuck_wheel_draws_current() {
        let mut motor = Motor::default();
        after(&mut motor, 1.0, speed(1000.0));
        motor.set_stuck(true);
        motor.step(STEP_S, speed(1000.0));
        let reading = motor.reading(&mut fastrand::Rng::with_seed(1));
        assert_eq!(reading.speed_qpps, 0);
        assert!(reading.current_a > 5.0);
        motor.set_stuck(false);
        after(&mut motor, 1.0, speed(1000.0));
        assert!((motor.speed_qpps() - 1000.0).abs() < 1.0);
    }

    #[test]
    fn the_noise_is_small() {
        let mut motor = Motor::default();
        after(&mut motor, 2.0, speed(1484.0));
        let mut random = fastrand::Rng::with_seed(7);
        let sum: f64 = (0..1000)
            .map(|_| f64::from(motor.reading(&mut random).speed_qpps) - 1484.0)
            .map(|error| error * error)
            .sum();
        let sigma = (sum / 1000.0).sqrt();
        assert!((6.0..9.0).contains(&sigma), "{sigma}");
    }

    #[test]
    fn a_small_duty_does_not_turn_a_wheel() {
        let mut motor = Motor::default();
        after(&mut motor, 1.0, Drive::Duty(0.03));
        assert_eq!(motor.speed_qpps(), 0.0);
        let reading = motor.reading(&mut fastrand::Rng::with_seed(1));
        assert!(reading.current_a > 0.1, "{reading:?}");
        after(&mut motor, 1.0, Drive::Duty(-0.06));
        assert!(motor.speed_qpps() < -100.0);
        after(&mut motor, 5.0, Drive::Duty(1.0));
        assert!((motor.speed_qpps() / MAX_QPPS - 1.0).abs() < 0.01);
        after(&mut motor, 3.0, Drive::RELEASED);
        assert!(motor.is_at_rest(Drive::RELEASED));
    }

    #[test]
    fn currents_have_noise_but_not_at_rest() {
        let mut motor = Motor::default();
        let mut random = fastrand::Rng::with_seed(7);
        assert_eq!(motor.reading(&mut random).current_a, 0.0);
        after(&mut motor, 2.0, speed(1484.0));
        let currents: Vec<f64> = (0..1000)
            .map(|_| motor.reading(&mut random).current_a)
            .collect();
        let mean = currents.iter().sum::<f64>() / 1000.0;
        let square: f64 = currents
            .iter()
            .map(|current| (current - mean).powi(2))
            .sum();
        let sigma = (square / 1000.0).sqrt();
        assert!((0.25..0.35).contains(&mean), "{mean}");
        assert!((0.02..0.04).contains(&sigma), "{sigma}");
    }

    #[test]
    fn wheels_have_names() {
        for wheel in Wheel::ALL {
            assert_eq!(wheel.name().parse(), Ok(wheel));
            assert_eq!(Wheel::ALL[wheel.index()], wheel);
        }
        assert!("front".parse::<Wheel>().is_err());
    }
}
