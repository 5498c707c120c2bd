//! What simulated motion sensors share that an option adds to the robot: their chips on a bus, moved
//! by the robot. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. As in
//! [`ninedof`](crate::ninedof), a sample is computed only when it is read.

use std::fmt::Debug;
use std::time::Duration;

use crate::i2c::{Reply, Transfer};
use crate::ninedof::{Axes, Chip, Errors, Motion, Noise, Truth, carry_out};
use crate::twin::Twin;
use crate::world::World;

pub(crate) mod latch;

/// The chips of a family of sensors.
pub trait Chips: Clone + Debug + Send + 'static {
    /// Its members.
    type Model: Copy + Debug + Send + 'static;
    /// The noise of single samples.
    const NOISE: Noise;
    /// Changes the seed, so that two sensors of one robot have different errors.
    const SEED: u64;

    /// The largest bias of the gyroscope at rest, in degrees per second.
    fn most_bias_deg_s(_model: Self::Model) -> f64 {
        5.0
    }

    /// Chips that were just powered on.
    fn new(model: Self::Model, now: Duration) -> Self;

    /// The chip at an address, with its latest sample; `None` if none answers there.
    fn chip(
        &mut self,
        now: Duration,
        address: u8,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip>;
}

/// What the chips feel: the true motion, with their errors.
pub struct Senses<'a> {
    errors: &'a mut Errors,
    truth: Truth<'a>,
}

/// Chips on a bus.
#[derive(Clone, Debug)]
pub struct Board<C: Chips> {
    model: C::Model,
    chips: C,
    errors: Errors,
}

impl Senses<'_> {
    /// Acceleration in g, and turn rate in degrees per second.
    pub fn inertia(&mut self, time: Duration) -> (Axes, Axes) {
        let motion = (self.truth)(time);
        (self.errors.accel(motion), self.errors.gyro(motion))
    }

    /// The magnetic field in gauss.
    pub fn field_gauss(&mut self, time: Duration) -> Axes {
        self.errors.magnet((self.truth)(time))
    }

    /// The field of the robot itself, in gauss.
    pub fn hard_iron_gauss(&self) -> Axes {
        self.errors.hard_iron_gauss
    }

    /// The bias of the gyroscope, in degrees per second.
    pub fn gyro_bias_deg_s(&self) -> Axes {
        self.errors.gyro_bias_deg_s
    }
}

impl<C: Chips> Board<C> {
    /// Creates a board that was just powered on.
    #[must_use]
    pub fn new(model: C::Model, errors: Errors, now: Duration) -> Self {
        Self {
            model,
            chips: C::new(model, now),
            errors,
        }
    }

    /// Creates a board with the errors of a seed.
    #[must_use]
    pub fn of_seed(model: C::Model, seed: u64) -> Self {
        let errors = Errors::drawn(seed ^ C::SEED, C::NOISE, C::most_bias_deg_s(model));
        Self::new(model, errors, Duration::ZERO)
    }

    /// A power cycle: the settings are lost.
    pub fn restart(&mut self, now: Duration) {
        self.chips = C::new(self.model, now);
    }

    /// The measurement errors.
    #[must_use]
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Carries out a transfer.
    pub fn transfer(&mut self, now: Duration, transfer: &Transfer, truth: Truth) -> Reply {
        self.errors.drift(now);
        let mut senses = Senses {
            errors: &mut self.errors,
            truth,
        };
        match self.chips.chip(now, transfer.address, &mut senses) {
            Some(chip) => carry_out(chip, now, transfer),
            None => Reply::Nak,
        }
    }
}

impl<C: Chips> Twin for Board<C> {
    fn handle_transfer(&mut self, now: Duration, transfer: &Transfer, world: &World) -> Reply {
        self.transfer(now, transfer, &|time| Motion::of(world, time))
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }
}

/// A value as digits, limited to the range.
pub(crate) fn digits(axes: Axes, per_unit: f64) -> [i16; 3] {
    // The conversion limits.
    axes.map(|value| (value * per_unit).round() as i16)
}

#[cfg(test)]
pub(crate) mod testing {
    //! A perfect sensor with constant true motion, and a time that advances.

    use super::*;

    pub(crate) const MS: Duration = Duration::from_millis(1);

    /// The motion of the hardware sheet.
    pub(crate) const TRUTH: Motion = Motion {
        specific_force_g: [-0.125, 0.0625, 1.0],
        turn_deg_s: [10.0, -10.0, 100.0],
        field_gauss: [0.2, -0.1, -0.4],
        speed_m_s: 0.0,
    };

    pub(crate) struct Bench<C: Chips> {
        pub(crate) sensor: Board<C>,
        pub(crate) truth: Motion,
        pub(crate) now: Duration,
    }

    impl<C: Chips> Bench<C> {
        pub(crate) fn new(model: C::Model) -> Self {
            Self {
                sensor: Board::new(model, Errors::none(), Duration::ZERO),
                truth: TRUTH,
                now: Duration::ZERO,
            }
        }

        pub(crate) fn transfer(&mut self, address: u8, written: &[u8], read: u8) -> Reply {
            let transfer = Transfer {
                address,
                written: written.to_vec(),
                read,
            };
            let truth = self.truth;
            self.sensor.transfer(self.now, &transfer, &|_| truth)
        }

        pub(crate) fn write(&mut self, address: u8, bytes: &[u8]) {
            assert_eq!(self.transfer(address, bytes, 0), Reply::Ack(vec![]));
        }

        pub(crate) fn read(&mut self, address: u8, register: u8, count: u8) -> Vec<u8> {
            match self.transfer(address, &[register], count) {
                Reply::Ack(bytes) => bytes,
                Reply::Nak => panic!("no chip at {address:#x}"),
            }
        }

        pub(crate) fn is_silent(&mut self, address: u8) -> bool {
            self.transfer(address, &[0x00], 1) == Reply::Nak
        }

        pub(crate) fn wait(&mut self, time: Duration) {
            self.now += time;
        }
    }
}
