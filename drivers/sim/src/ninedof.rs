//! A simulated board with an accelerometer and magnetometer (LSM303DLHC) and a gyroscope (L3GD20):
//! transfers on the bus in, replies out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. A chip computes
//! its sample only when it is read, from the true motion at the time of that sample. A board that
//! is not read costs nothing.
//!
//! The axes are right-handed: x to the right, y ahead, z up.

use std::time::Duration;

use self::inertial::{Inertial, InertialChip};
use self::magnetometer::Magnetometer;
pub use self::motion::Motion;
pub use self::twin::{DEVICE, Options};
use crate::i2c::{Reply, Transfer};
use crate::wheels::gaussian;

mod inertial;
mod magnetometer;
mod motion;
#[cfg(test)]
mod tests;
mod twin;

/// The address of the accelerometer.
pub const ACCEL_ADDRESS: u8 = 0x19;
/// The address of the magnetometer.
pub const MAGNET_ADDRESS: u8 = 0x1E;
/// The address of the gyroscope.
pub const GYRO_ADDRESS: u8 = 0x6B;

/// A value for each axis.
pub type Axes = [f64; 3];

/// The chips are slightly warmer than the room.
pub(crate) const TEMPERATURE_C: f64 = 28.0;

/// The true motion at a time.
pub type Truth<'a> = &'a dyn Fn(Duration) -> Motion;

/// The three chips.
#[derive(Clone, Debug)]
pub struct NineDof {
    accel: Inertial,
    gyro: Inertial,
    magnet: Magnetometer,
    errors: Errors,
}

/// The measurement errors of the chips.
#[derive(Clone, Debug)]
pub struct Errors {
    /// The offset of the accelerometer, in g.
    pub accel_offset_g: Axes,
    /// The bias of the gyroscope at rest, in degrees per second.
    pub gyro_bias_deg_s: Axes,
    /// The field of the robot itself, in gauss.
    pub hard_iron_gauss: Axes,
    /// Standard deviations of single samples.
    pub noise: Noise,
    random: fastrand::Rng,
    drifted: Duration,
}

/// Standard deviations of single samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Of the accelerometer, in g.
    pub accel_g: f64,
    /// Of the gyroscope, in degrees per second.
    pub gyro_deg_s: f64,
    /// Of the magnetometer, in gauss.
    pub magnet_gauss: f64,
    /// The drift of the gyroscope bias per second, in degrees per second.
    pub gyro_drift_deg_s: f64,
    /// The vibration of the accelerometer on a driving robot, in g for each metre per second.
    pub shake_g_per_m_s: f64,
    /// The vibration of the gyroscope, in degrees per second for each metre per second.
    pub shake_deg_s_per_m_s: f64,
}

impl Noise {
    /// The noise of the chips: 220 ug/sqrt(Hz) and 0.03 deg/s/sqrt(Hz) over their bandwidth, and
    /// two digits of the magnetometer; drift and vibration are estimates.
    pub const USUAL: Self = Self {
        accel_g: 0.004,
        gyro_deg_s: 0.2,
        magnet_gauss: 0.002,
        gyro_drift_deg_s: 0.005,
        shake_g_per_m_s: 0.08,
        shake_deg_s_per_m_s: 1.0,
    };
}

impl Errors {
    /// No errors.
    #[must_use]
    pub fn none() -> Self {
        Self {
            accel_offset_g: [0.0; 3],
            gyro_bias_deg_s: [0.0; 3],
            hard_iron_gauss: [0.0; 3],
            noise: Noise::default(),
            random: fastrand::Rng::with_seed(0),
            drifted: Duration::ZERO,
        }
    }

    /// The errors of one board, drawn from a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        Self::drawn(seed, Noise::USUAL, 5.0)
    }

    /// The errors of a board with this noise, and a gyroscope bias up to this many degrees per second.
    pub(crate) fn drawn(seed: u64, noise: Noise, most_bias_deg_s: f64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut within = |most: f64| [(); 3].map(|()| most * (2.0 * random.f64() - 1.0));
        Self {
            accel_offset_g: within(0.012),
            gyro_bias_deg_s: within(most_bias_deg_s),
            hard_iron_gauss: within(0.1),
            noise,
            random,
            drifted: Duration::ZERO,
        }
    }

    fn noisy(&mut self, truth: Axes, offset: Axes, sigma: f64) -> Axes {
        let mut axes = [0.0; 3];
        for (axis, value) in axes.iter_mut().enumerate() {
            *value = truth[axis] + offset[axis] + sigma * gaussian(&mut self.random);
        }
        axes
    }

    pub(crate) fn accel(&mut self, motion: Motion) -> Axes {
        let shaking = self.noise.shake_g_per_m_s * motion.speed_m_s;
        let (offset, sigma) = (self.accel_offset_g, self.noise.accel_g.hypot(shaking));
        self.noisy(motion.specific_force_g, offset, sigma)
    }

    pub(crate) fn gyro(&mut self, motion: Motion) -> Axes {
        let shaking = self.noise.shake_deg_s_per_m_s * motion.speed_m_s;
        let (offset, sigma) = (self.gyro_bias_deg_s, self.noise.gyro_deg_s.hypot(shaking));
        self.noisy(motion.turn_deg_s, offset, sigma)
    }

    pub(crate) fn magnet(&mut self, motion: Motion) -> Axes {
        let (offset, sigma) = (self.hard_iron_gauss, self.noise.magnet_gauss);
        self.noisy(motion.field_gauss, offset, sigma)
    }

    /// The bias changes randomly with time.
    pub(crate) fn drift(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.drifted).as_secs_f64();
        self.drifted = now;
        let sigma = self.noise.gyro_drift_deg_s * passed.sqrt();
        for bias in &mut self.gyro_bias_deg_s {
            *bias += sigma * gaussian(&mut self.random);
        }
    }
}

impl NineDof {
    /// Creates a board that was just powered on.
    #[must_use]
    pub fn new(errors: Errors, now: Duration) -> Self {
        Self {
            accel: Inertial::new(InertialChip::Accelerometer, now),
            gyro: Inertial::new(InertialChip::Gyroscope, now),
            magnet: Magnetometer::new(),
            errors,
        }
    }

    /// A power cycle: the settings are lost.
    pub fn restart(&mut self, now: Duration) {
        *self = Self::new(self.errors.clone(), now);
    }

    /// The measurement errors of the chips.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Carries out a transfer.
    pub fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply {
        self.errors.drift(now);
        let errors = &mut self.errors;
        let chip: &mut dyn Chip = match transfer.address {
            ACCEL_ADDRESS => {
                (self.accel).measure(now, &mut |time| errors.accel(truth(time)));
                &mut self.accel
            }
            GYRO_ADDRESS => {
                (self.gyro).measure(now, &mut |time| errors.gyro(truth(time)));
                &mut self.gyro
            }
            MAGNET_ADDRESS => {
                (self.magnet).measure(now, &mut |time| errors.magnet(truth(time)));
                &mut self.magnet
            }
            _ => return Reply::Nak,
        };
        carry_out(chip, now, transfer)
    }
}

/// Writes and reads registers.
pub(crate) fn carry_out(chip: &mut dyn Chip, now: Duration, transfer: &Transfer) -> Reply {
    if let Some((register, values)) = transfer.written.split_first() {
        chip.point(*register);
        for value in values {
            chip.write(now, *value);
        }
    }
    Reply::Ack((0..transfer.read).map(|_| chip.read()).collect())
}

/// A chip with registers.
pub trait Chip {
    /// Selects the register of the next byte.
    fn point(&mut self, register: u8);
    /// Writes it.
    fn write(&mut self, now: Duration, value: u8);
    /// Reads it.
    fn read(&mut self) -> u8;
}

/// The samples that a chip has taken since it was turned on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    since: Duration,
    rate_hz: f64,
    /// The number of samples at the last check.
    seen: u64,
}

impl Clock {
    pub(crate) fn new(since: Duration, rate_hz: f64) -> Self {
        Self {
            since,
            rate_hz,
            seen: 0,
        }
    }

    /// The number of new samples, and the time of the last one.
    pub(crate) fn tick(&mut self, now: Duration) -> Option<(u64, Duration)> {
        let passed = now.checked_sub(self.since)?;
        // A small margin, so that rounding does not lose a sample.
        let count = (passed.as_secs_f64() * self.rate_hz + 1e-9) as u64;
        let more = count.checked_sub(self.seen).filter(|more| *more > 0)?;
        self.seen = count;
        let time = self.since + Duration::from_secs_f64(count as f64 / self.rate_hz);
        Some((more, time.min(now)))
    }
}
