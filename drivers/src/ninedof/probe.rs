//! Recognizes the motion sensors by the identity registers of their chips. PURE, except for the
//! [`Bus`].

use super::registers::{
    ACCEL_ADDRESS, GYRO_ADDRESSES, MAGNET_ADDRESS, MAGNET_ID, WHO_AM_I, gyro_name,
};
use crate::i2c::Bus;
use crate::probe::{Identity, NoAnswer, read_registers};

/// The identity of the accelerometer.
const ACCEL_ID: u8 = 0x33;

/// Reads the identities.
///
/// # Errors
/// None of the chips is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    let has_magnet = read_registers(bus, MAGNET_ADDRESS, MAGNET_ID)? == Some(*b"H43");
    let has_accel = read_registers(bus, ACCEL_ADDRESS, WHO_AM_I)? == Some([ACCEL_ID]);
    let mut found = Vec::new();
    if has_magnet {
        found.push("a magnetometer".to_owned());
    }
    if has_accel {
        found.push("an accelerometer".to_owned());
    }
    // The last two addresses may be those of other chips, such as clocks and converters.
    let addresses = match has_magnet {
        true => &GYRO_ADDRESSES[..],
        false => &GYRO_ADDRESSES[..2],
    };
    for address in addresses {
        let name = read_registers(bus, *address, WHO_AM_I)?.and_then(|[id]| gyro_name(id));
        if let Some(name) = name {
            found.push(format!("a gyroscope {name}"));
            break;
        }
    }
    // Other boards also have such an accelerometer.
    if found.is_empty() || (found.len() == 1 && has_accel) {
        return Err(NoAnswer::Silent);
    }
    Ok(Identity::usable(found.join(", ")))
}

#[cfg(test)]
mod tests {
    use amber_sim::ninedof::Errors;

    use super::*;
    use crate::i2c::fake::Fake;

    #[test]
    fn the_chips_are_recognized_and_no_setting_is_written() {
        let mut bus = Fake::new(Errors::none());
        let found = ask(&mut bus).unwrap();
        let expected = "a magnetometer, an accelerometer, a gyroscope L3GD20";
        assert_eq!(found, Identity::usable(expected));
        let state = bus.state();
        assert!(state.written.iter().all(|(_, written)| written.len() == 1));
    }

    #[test]
    fn a_part_of_the_board_is_enough_but_not_an_accelerometer_alone() {
        let bus = Fake::new(Errors::none());
        bus.state().missing = vec![MAGNET_ADDRESS];
        let found = ask(&mut bus.clone()).unwrap();
        assert_eq!(found.text, "an accelerometer, a gyroscope L3GD20");
        bus.state().missing.push(0x6B);
        assert_eq!(ask(&mut bus.clone()), Err(NoAnswer::Silent));
        bus.state().broken = Some("the bus is stuck".into());
        let error = NoAnswer::Failed("the bus is stuck".into());
        assert_eq!(ask(&mut bus.clone()), Err(error));
    }
}
