//! Recognizes the sensor by its identity register. PURE, except for the [`Bus`].

use super::registers::{ADDRESSES, identity};
use crate::i2c::Bus;
use crate::motion_sensor::found;
use crate::probe::{Identity, NoAnswer};

/// Reads the identity at both addresses.
///
/// # Errors
/// No sensor is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    found::ask(bus, &ADDRESSES, identity)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use amber_sim::icm20948::{Icm20948, Model};
    use amber_sim::mpu::{self, Mpu};
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::i2c::fake::Fake;
    use crate::motion_sensor::fake::Stranger;

    #[test]
    fn the_sensor_is_recognized_and_no_setting_is_written() {
        let bus = Fake::of(Icm20948::new(
            Model::Icm20948,
            Errors::none(),
            Duration::ZERO,
        ));
        let found = ask(&mut bus.clone()).unwrap();
        assert_eq!(found.text, "ICM-20948 at 0x69");
        assert_eq!(found.options, ["--address=0x69"]);
        let state = bus.state();
        assert!(state.written.iter().all(|(_, written)| written.len() == 1));
    }

    /// It and the MPU have the same addresses.
    #[test]
    fn neither_is_the_other() {
        let mpu = Mpu::new(mpu::Model::Mpu9250, Errors::none(), Duration::ZERO);
        assert_eq!(ask(&mut Fake::of(mpu)), Err(NoAnswer::Silent));
        let icm = Icm20948::new(Model::Icm20948, Errors::none(), Duration::ZERO);
        let found = crate::mpu::probe::ask(&mut Fake::of(icm));
        assert_eq!(found, Err(NoAnswer::Silent));
        for byte in 0..=255 {
            assert_eq!(ask(&mut Stranger(byte)), Err(NoAnswer::Silent));
        }
    }
}
