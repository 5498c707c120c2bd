//! The accelerometer and the gyroscope. PURE, except for the [`Bus`].

use std::time::Duration;

use super::part::{self, Part};
use super::registers::{AWAKE, INT_PIN_CFG, PWR_MGMT_1, RESET, SMPLRT_DIV, Scale, inertia};
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer, verify};
use crate::motion_sensor::chip::{Change, Chip, Latest, Sample, SetUp};
use crate::motion_sensor::inertia::Inertia;
use crate::motion_sensor::options::Placement;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::setting::{Setting, verify_all, write};
use crate::motion_sensor::units::Measured;

/// After a reset, the registers can be written.
const AFTER_RESET: Duration = Duration::from_millis(100);
/// After it was woken, the gyroscope turns steadily.
const AFTER_WAKING: Duration = Duration::from_millis(30);
/// The filters have forgotten what was before the settings.
const FILTERED: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Inertial {
    placement: Placement,
    scale: Scale,
    /// Where it was found.
    at: u8,
    /// Whether it is still there, as far as is known.
    is_known: bool,
    settings: Vec<Setting>,
    latest: Latest<Inertia>,
}

impl Inertial {
    pub(super) fn new(placement: Placement, scale: Scale) -> Self {
        Self {
            placement,
            scale,
            at: part::ADDRESSES[0],
            is_known: false,
            settings: Vec::new(),
            latest: Latest::default(),
        }
    }

    fn done(part: &Part, at: u8, settle: Duration) -> SetUp {
        SetUp::Done {
            name: format!("{} at {at:#04x}", part.name),
            settle,
        }
    }

    fn verify(&self, bus: &mut dyn Bus) -> Result<(), Problem> {
        verify(bus, self.at, PWR_MGMT_1, AWAKE, 0xFF)?;
        verify_all(bus, self.at, &self.settings)
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
        let (at, part) = part::find(bus, self.placement.address.or(known))?;
        match step {
            0 => {
                self.at = at;
                self.is_known = true;
                self.settings = self.scale.settings(part);
                self.latest = Latest::default();
                // A driver with the same settings may use it at the same time.
                match self.verify(bus) {
                    Ok(()) => return Ok(Self::done(part, at, Duration::ZERO)),
                    Err(Problem::Chip(_)) => {}
                    Err(problem) => return Err(problem),
                }
                transfer(bus, at, &[PWR_MGMT_1, RESET], &mut [])?;
                Ok(SetUp::Continues(AFTER_RESET))
            }
            1 => {
                transfer(bus, at, &[PWR_MGMT_1, AWAKE], &mut [])?;
                Ok(SetUp::Continues(AFTER_WAKING))
            }
            _ => {
                write(bus, at, &self.settings)?;
                self.verify(bus)?;
                Ok(Self::done(part, at, FILTERED))
            }
        }
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Measured>, Problem> {
        let burst = read(bus, self.at, INT_PIN_CFG)?;
        // After the data, so that they were measured with these settings.
        let configs = read(bus, self.at, SMPLRT_DIV)?;
        let sample = self.latest.judge(inertia(&self.settings, burst, configs));
        if let Sample::Old(_) = sample {
            let [found] = read(bus, self.at, PWR_MGMT_1)?;
            if found != AWAKE {
                return Ok(Sample::Changed(Change {
                    register: PWR_MGMT_1,
                    set: AWAKE,
                    found,
                }));
            }
        }
        let mount = self.placement.mount;
        Ok(sample.map(|digits| mount.turned(self.scale.measured(&digits))))
    }

    fn forget(&mut self) {
        self.is_known = false;
    }
}
