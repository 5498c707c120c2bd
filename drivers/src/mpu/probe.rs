//! Recognizes the sensor by its identity register. PURE, except for the [`Bus`].

use super::part::{ADDRESSES, identity};
use crate::i2c::Bus;
use crate::motion_sensor::found;
use crate::probe::{Identity, NoAnswer};

/// Reads the identity at both addresses.
///
/// # Errors
/// No sensor is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    found::ask(
        bus,
        &ADDRESSES,
        |bus, at| Ok(identity(bus, at, false)?.name),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use amber_sim::mpu::{Model, Mpu};
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::i2c::fake::Fake;

    #[test]
    fn each_sensor_is_recognized_and_no_setting_is_written() {
        for (model, name) in [
            (Model::Mpu6050, "MPU-6050 at 0x68"),
            (Model::Mpu6500, "MPU-6500 at 0x68"),
            (Model::Mpu9250, "MPU-9250 at 0x68"),
            (Model::Mpu9255, "MPU-9255 at 0x68"),
            (Model::Copy, "ICM-20689 at 0x68"),
        ] {
            let bus = Fake::of(Mpu::new(model, Errors::none(), Duration::ZERO));
            let found = ask(&mut bus.clone()).unwrap();
            assert_eq!((found.text.as_str(), found.unusable), (name, None));
            assert_eq!(found.options, ["--address=0x68"]);
            let state = bus.state();
            assert!(state.written.iter().all(|(_, written)| written.len() == 1));
        }
    }

    /// A clock chip has any bytes in its registers.
    struct Clock([u8; 2]);

    impl Bus for Clock {
        fn transfer(
            &mut self,
            _: u8,
            written: &[u8],
            read: &mut [u8],
        ) -> Result<(), crate::i2c::BusError> {
            let [who_am_i, power] = self.0;
            read.fill(if written == [0x75] { who_am_i } else { power });
            Ok(())
        }
    }

    #[test]
    fn other_chips_and_a_broken_bus_are_no_sensors() {
        for bytes in [
            [0x68, 0x68],
            [0x00, 0x40],
            [0xFF, 0xFF],
            [0x19, 0x59],
            [0xEA, 0x41],
        ] {
            assert_eq!(ask(&mut Clock(bytes)), Err(NoAnswer::Silent), "{bytes:?}");
        }
        let bus = Fake::of(Mpu::new(Model::Mpu6050, Errors::none(), Duration::ZERO));
        bus.state().missing = vec![0x68];
        assert_eq!(ask(&mut bus.clone()), Err(NoAnswer::Silent));
        bus.state().broken = Some("the bus is stuck".into());
        let error = NoAnswer::Failed("the bus is stuck".into());
        assert_eq!(ask(&mut bus.clone()), Err(error));
    }
}
