//! The samples of the magnetometers AK8963 and AK09916, whose data do not change between the first byte
//! that is read and ST2. PURE.

use std::time::Duration;

use crate::ninedof::{Axes, Clock};

/// A sum of all axes that is beyond the range.
const OVERFLOW_GAUSS: f64 = 49.12;

#[derive(Clone, Debug, Default)]
pub(crate) struct Latch {
    clock: Option<Clock>,
    output: [i16; 3],
    has_overflown: bool,
    is_fresh: bool,
    is_overrun: bool,
    /// Data were read, but not ST2.
    is_held: bool,
}

impl Latch {
    /// Samples at this rate from now on.
    pub(crate) fn set_rate(&mut self, now: Duration, rate_hz: Option<f64>) {
        self.clock = rate_hz.map(|rate_hz| Clock::new(now, rate_hz));
    }

    /// Takes the latest sample, if there is a new one; returns whether it did. The field is in gauss.
    pub(crate) fn measure(
        &mut self,
        now: Duration,
        sample: &mut dyn FnMut(Duration) -> Axes,
        digits: impl FnOnce(Axes) -> [i16; 3],
    ) -> bool {
        let Some((more, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return false;
        };
        self.is_overrun = self.is_fresh || self.is_held || more > 1;
        if self.is_held {
            return false;
        }
        let field_gauss = sample(time);
        let sum: f64 = field_gauss.iter().map(|axis| axis.abs()).sum();
        self.has_overflown = sum >= OVERFLOW_GAUSS;
        self.output = digits(field_gauss);
        self.is_fresh = true;
        true
    }

    /// Bit 0: a sample is ready; bit 1: one was lost.
    pub(crate) fn st1(&self) -> u8 {
        u8::from(self.is_overrun) << 1 | u8::from(self.is_fresh)
    }

    /// A byte of the data.
    pub(crate) fn data(&mut self, place: u8) -> u8 {
        self.is_held = self.clock.is_some();
        self.is_fresh = false;
        let place = usize::from(place);
        self.output[place / 2].to_le_bytes()[place % 2]
    }

    /// Bit 3: the field is beyond the range.
    pub(crate) fn st2(&mut self) -> u8 {
        self.is_held = false;
        self.is_fresh = false;
        self.is_overrun = false;
        u8::from(self.has_overflown) << 3
    }
}
