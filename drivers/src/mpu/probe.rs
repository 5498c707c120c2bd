//! Recognizes the sensor by its identity register. PURE, except for the [`Bus`].

use super::part::{ADDRESSES, identity};
use crate::motion_sensor::bus::Bus;
use crate::motion_sensor::chip::Problem;
use crate::probe::{Identity, NoAnswer};

/// Reads the identity at both addresses.
///
/// # Errors
/// No sensor is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    let mut found = Vec::new();
    for address in ADDRESSES {
        match identity(bus, address, false) {
            Ok(part) => found.push((address, part.name)),
            Err(Problem::Chip(_)) => {}
            Err(Problem::Bus(text)) => return Err(NoAnswer::Failed(text)),
        }
    }
    let Some((first, _)) = found.first() else {
        return Err(NoAnswer::Silent);
    };
    let names = found
        .iter()
        .map(|(at, name)| format!("{name} at {at:#04x}"));
    Ok(Identity {
        options: vec![format!("--address={first:#04x}")],
        ..Identity::usable(names.collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use amber_sim::mpu::{Model, Mpu};
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::motion_sensor::fake::Fake;

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
        ) -> Result<(), crate::motion_sensor::bus::BusError> {
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
