//! Recognizes the sensor by its identity registers. PURE, except for the [`Bus`].

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

    use amber_sim::bno055::{Bno055, Model};
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::i2c::fake::Fake;
    use crate::motion_sensor::fake::{MS, Stranger};

    #[test]
    fn the_sensor_is_recognized_once_it_has_started_and_no_setting_is_written() {
        let sensor = Bno055::new(Model::Bno055, Errors::none(), Duration::ZERO);
        let bus = Fake::of(sensor);
        assert_eq!(ask(&mut bus.clone()), Err(NoAnswer::Silent));
        bus.pass(400 * MS);
        let found = ask(&mut bus.clone()).unwrap();
        assert_eq!(found.text, "BNO055 (program 3.11) at 0x28");
        assert_eq!(found.options, ["--address=0x28"]);
        let state = bus.state();
        assert!(state.written.iter().all(|(_, written)| written.len() == 1));
    }

    #[test]
    fn other_chips_and_a_broken_bus_are_no_sensors() {
        for byte in 0..=255 {
            assert_eq!(ask(&mut Stranger(byte)), Err(NoAnswer::Silent));
        }
        let bus = Fake::new(Errors::none());
        bus.state().broken = Some("the bus is stuck".into());
        let error = NoAnswer::Failed("the bus is stuck".into());
        assert_eq!(ask(&mut bus.clone()), Err(error));
    }
}
