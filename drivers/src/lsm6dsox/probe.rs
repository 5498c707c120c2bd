//! Recognizes the sensor by its identity register. PURE, except for the [`Bus`].

use super::inertial::{ADDRESSES, identity};
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

    use amber_sim::lsm6dsox::{Lsm6dsox, Model};
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::i2c::fake::Fake;

    #[test]
    fn each_sensor_is_recognized_and_no_setting_is_written() {
        for (model, name) in [
            (Model::Lsm6dsox, "LSM6DSOX at 0x6a"),
            (Model::Lsm6ds33, "LSM6DS3 or LSM6DS33 at 0x6a"),
            (Model::Lsm6dsr, "LSM6DSR or ISM330DHCX at 0x6a"),
        ] {
            let bus = Fake::of(Lsm6dsox::new(model, Errors::none(), Duration::ZERO));
            let found = ask(&mut bus.clone()).unwrap();
            assert_eq!((found.text.as_str(), found.unusable), (name, None));
            assert_eq!(found.options, ["--address=0x6a"]);
            let state = bus.state();
            assert!(state.written.iter().all(|(_, written)| written.len() == 1));
        }
    }

    /// The gyroscope of the board of `ninedof` may have the same address.
    #[test]
    fn other_sensors_and_a_broken_bus_are_none() {
        let other = Fake::new(Errors::none());
        assert_eq!(ask(&mut other.clone()), Err(NoAnswer::Silent));
        other.state().broken = Some("the bus is stuck".into());
        let error = NoAnswer::Failed("the bus is stuck".into());
        assert_eq!(ask(&mut other.clone()), Err(error));
    }
}
