//! Recognizes the chip by its registers. PURE, except for the [`Bus`].

use super::chip::is_present;
use crate::i2c::Bus;
use crate::i2c::registers::Problem;
use crate::probe::{Identity, NoAnswer};

/// The addresses that are asked: of boards for servos with few soldered pads, and of boards for motors.
const ADDRESSES: [u8; 9] = [0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x60];

/// Reads the identity at the usual addresses.
///
/// # Errors
/// No such chip is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    ask_at(bus, &ADDRESSES)
}

/// Reads the identity at each of these addresses.
///
/// # Errors
/// See [`ask`].
pub(crate) fn ask_at(bus: &mut dyn Bus, addresses: &[u8]) -> Result<Identity, NoAnswer> {
    let mut found = Vec::new();
    for address in addresses.iter().copied() {
        match is_present(bus, address) {
            Ok(true) => found.push(address),
            Ok(false) | Err(Problem::Chip(_)) => {}
            Err(Problem::Bus(text)) => return Err(NoAnswer::Failed(text)),
        }
    }
    let Some(first) = found.first() else {
        return Err(NoAnswer::Silent);
    };
    let names = found.iter().map(|at| format!("PCA9685 at {at:#04x}"));
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
    use amber_sim::pca9685::Pca9685;

    use super::*;
    use crate::i2c::fake::Fake;

    #[test]
    fn a_board_is_recognized_and_nothing_is_written() {
        for address in [0x40, 0x43, 0x60] {
            let bus = Fake::of(Pca9685::new(address, Duration::ZERO));
            let found = ask(&mut bus.clone()).unwrap();
            assert_eq!(found.text, format!("PCA9685 at {address:#04x}"));
            assert_eq!(found.options, [format!("--address={address:#04x}")]);
            let state = bus.state();
            assert!(state.written.iter().all(|(_, written)| written.len() == 1));
        }
    }

    #[test]
    fn other_chips_and_a_broken_bus_are_no_boards() {
        let bus = Fake::of(Mpu::new(Model::Mpu6050, Errors::none(), Duration::ZERO));
        assert_eq!(ask(&mut bus.clone()), Err(NoAnswer::Silent));
        bus.state().broken = Some("the bus is stuck".into());
        let error = NoAnswer::Failed("the bus is stuck".into());
        assert_eq!(ask(&mut bus.clone()), Err(error));
    }
}
