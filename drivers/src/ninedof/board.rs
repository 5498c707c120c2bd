//! The three chips, each at its own address. PURE, except for the [`Bus`].

use std::time::{Duration, Instant};

use super::registers::{
    ACCEL_ADDRESS, ACCEL_SETTINGS, GYRO_ADDRESSES, GYRO_SETTINGS, Gain, INERTIAL, MAGNET_ADDRESS,
    MAGNET_ID, MAGNET_SETTINGS, MAGNET_STATUS, Raw, Setting, WHO_AM_I, gyro_name, inertial_sample,
    magnet_sample, magnet_settings,
};
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer, verify};
use crate::motion_sensor::board;
use crate::motion_sensor::chip::{self, Sample, SetUp};
use crate::motion_sensor::sensors::{Sensor, Sensors};

/// The board of these chips.
pub type Board = board::Board<Raw>;

impl Board {
    /// Creates the chips, in an unknown state.
    pub fn new(gain: Gain, now: Instant) -> Self {
        Self::of(chips(gain), now)
    }
}

/// The chips, with this sensitivity of the magnetometer.
pub(super) fn chips(gain: Gain) -> Vec<Box<dyn chip::Chip<Raw>>> {
    let chip = |sensor| {
        let address = match sensor {
            Sensor::Accel => ACCEL_ADDRESS,
            Sensor::Magnet => MAGNET_ADDRESS,
            // Until it is found.
            Sensor::Gyro => GYRO_ADDRESSES[0],
        };
        let chip = Chip {
            sensor,
            gain,
            address,
        };
        Box::new(chip) as Box<dyn chip::Chip<Raw>>
    };
    Sensor::ALL.map(chip).into()
}

#[derive(Debug)]
struct Chip {
    sensor: Sensor,
    gain: Gain,
    address: u8,
}

impl chip::Chip<Raw> for Chip {
    fn sensors(&self) -> Sensors {
        Sensors::only(self.sensor)
    }

    fn name(&self) -> &'static str {
        self.sensor.full_name()
    }

    fn set_up(&mut self, _step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        let (name, settings): (&str, &[Setting]) = match self.sensor {
            Sensor::Accel => {
                // The accelerometer has no documented identity register, but it must answer.
                read::<1>(bus, ACCEL_ADDRESS, WHO_AM_I)?;
                ("LSM303DLHC", &ACCEL_SETTINGS)
            }
            Sensor::Gyro => {
                let (address, name) = find_gyro(bus)?;
                self.address = address;
                (name, &GYRO_SETTINGS)
            }
            Sensor::Magnet => {
                let id = read::<3>(bus, MAGNET_ADDRESS, MAGNET_ID)?;
                if &id != b"H43" {
                    let text = format!(
                        "unexpected chip at {MAGNET_ADDRESS:#04x}, with identity {id:02x?}"
                    );
                    return Err(Problem::Chip(text));
                }
                ("LSM303DLHC", &magnet_settings(self.gain))
            }
        };
        let address = self.address;
        for setting in settings {
            transfer(bus, address, setting, &mut [])?;
        }
        for [register, value] in settings {
            verify(bus, address, *register, *value, 0xFF)?;
        }
        Ok(SetUp::Done {
            name: format!("{name} at {address:#04x}"),
            settle: Duration::ZERO,
        })
    }

    fn has_begun(&mut self, bus: &mut dyn Bus) -> Result<bool, Problem> {
        if self.sensor != Sensor::Magnet {
            return Ok(true);
        }
        let [status] = read(bus, self.address, MAGNET_STATUS)?;
        Ok(status & 1 != 0)
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Raw>, Problem> {
        let address = self.address;
        let sample = match self.sensor {
            Sensor::Accel => inertial_sample(&ACCEL_SETTINGS, read(bus, address, INERTIAL)?),
            Sensor::Gyro => inertial_sample(&GYRO_SETTINGS, read(bus, address, INERTIAL)?),
            Sensor::Magnet => magnet_sample(self.gain, read(bus, address, MAGNET_SETTINGS)?),
        };
        Ok(sample.map(|digits| Raw::of(self.sensor, digits)))
    }
}

fn find_gyro(bus: &mut dyn Bus) -> Result<(u8, &'static str), Problem> {
    let mut found = "no answer".to_owned();
    for address in GYRO_ADDRESSES {
        match read(bus, address, WHO_AM_I) {
            Ok([who_am_i]) => match gyro_name(who_am_i) {
                Some(name) => return Ok((address, name)),
                None => {
                    found =
                        format!("unexpected chip at {address:#04x}, with identity {who_am_i:#04x}")
                }
            },
            Err(Problem::Chip(_)) => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(Problem::Chip(found))
}

#[cfg(test)]
mod tests;
