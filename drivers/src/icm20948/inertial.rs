//! The accelerometer and the gyroscope. PURE, except for the [`Bus`].

use std::time::Duration;

use super::registers::{
    ACCEL_XOUT_H, ADDRESSES, INT_STATUS_1, PWR_MGMT_1, RESET, Scale, WHO_AM_I, changed_range,
    identity_in_any_bank, inertia, verify, write_all,
};
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::found::find;
use crate::motion_sensor::inertia::Inertia;
use crate::motion_sensor::options::Placement;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::units::Measured;

/// After a reset, the registers can be written.
const AFTER_RESET: Duration = Duration::from_millis(100);
/// The gyroscope turns steadily, and the filters have forgotten what was before the settings.
const FILTERED: Duration = Duration::from_millis(80);

/// The ranges are in another bank, so they are compared only with every so many samples. Hardly any other
/// program changes them while it lets all other settings be.
const SAMPLES_PER_CHECK: u8 = 64;

#[derive(Debug)]
pub(super) struct Inertial {
    placement: Placement,
    scale: Scale,
    /// Where it was found.
    at: u8,
    /// Whether it is still there, as far as is known.
    is_known: bool,
    latest: Latest<Inertia>,
    /// Samples since the ranges were compared.
    unchecked: u8,
}

impl Inertial {
    pub(super) fn new(placement: Placement, scale: Scale) -> Self {
        Self {
            placement,
            scale,
            at: ADDRESSES[0],
            is_known: false,
            latest: Latest::default(),
            unchecked: 0,
        }
    }
}

impl Chip<Measured> for Inertial {
    fn sensors(&self) -> Sensors {
        Sensors::INERTIAL
    }

    fn name(&self) -> &'static str {
        "accelerometer and gyroscope"
    }

    /// A reset also removes what other programs have left, such as offsets.
    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        let known = self.is_known.then_some(self.at);
        let address = self.placement.address.or(known);
        let (at, name) = find(bus, &ADDRESSES, address, identity_in_any_bank)?;
        let done = |settle| SetUp::Done {
            name: format!("{name} at {at:#04x}"),
            settle,
        };
        if step > 0 {
            write_all(bus, at, self.scale)?;
            verify(bus, at, self.scale)?;
            return Ok(done(FILTERED));
        }
        self.at = at;
        self.is_known = true;
        self.latest = Latest::default();
        self.unchecked = 0;
        // A driver with the same settings may use it at the same time.
        match verify(bus, at, self.scale) {
            Ok(()) => return Ok(done(Duration::ZERO)),
            Err(Problem::Chip(_)) => {}
            Err(problem) => return Err(problem),
        }
        transfer(bus, at, &[PWR_MGMT_1, RESET], &mut [])?;
        Ok(SetUp::Continues(AFTER_RESET))
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let [status] = read(bus, self.at, INT_STATUS_1)?;
        let data = read(bus, self.at, ACCEL_XOUT_H)?;
        // After the data, so that they were measured with these settings.
        let head = read(bus, self.at, WHO_AM_I)?;
        let sample = self.latest.judge(inertia(status, data, head));
        self.unchecked += 1;
        if self.unchecked >= SAMPLES_PER_CHECK {
            self.unchecked = 0;
            if let Some(change) = changed_range(bus, self.at, self.scale)? {
                return Ok(Sample::Changed(change));
            }
        }
        let mount = self.placement.mount;
        Ok(sample.map(|digits| mount.turned(self.scale.measured(&digits))))
    }

    fn forget(&mut self) {
        self.is_known = false;
    }
}
