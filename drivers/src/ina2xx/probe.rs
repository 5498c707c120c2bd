//! Recognizes the sensors: by their identity, and an INA219 by how its registers fit together. PURE,
//! except for the [`Bus`].

use super::part::{ADDRESSES, Part, identity};
use crate::i2c::Bus;
use crate::i2c::registers::Problem;
use crate::probe::{Identity, NoAnswer};

/// Looks at all addresses.
///
/// # Errors
/// No sensor is on the bus, or the bus does not work.
pub(crate) fn ask(bus: &mut dyn Bus) -> Result<Identity, NoAnswer> {
    let mut found = Vec::new();
    for address in ADDRESSES {
        match identity(bus, address, None) {
            Ok(part) => found.push((address, part)),
            Err(Problem::Chip(_)) => {}
            Err(Problem::Bus(text)) => return Err(NoAnswer::Failed(text)),
        }
    }
    let Some((first, part)) = found.first() else {
        return Err(NoAnswer::Silent);
    };
    let mut options = vec![format!("--address={first:#04x}")];
    if *part == Part::Ina219 {
        // It has no identity that the driver could read.
        options.push("--chip=ina219".to_owned());
    }
    let names = found.iter().map(|(at, part)| match part {
        Part::Ina219 => format!("probably {part} at {at:#04x}"),
        _ => format!("{part} at {at:#04x}"),
    });
    Ok(Identity {
        options,
        ..Identity::usable(names.collect::<Vec<_>>().join(", "))
    })
}
