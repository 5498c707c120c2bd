//! Where a sensor is that has one of several addresses. PURE, except for the [`Bus`].

use crate::i2c::Bus;
use crate::i2c::registers::{NO_ANSWER, Problem};
use crate::probe::{Identity, NoAnswer};

/// Finds a sensor: at this address, or at the first that has it. `identity` tells what is at an
/// address; an error if it is something else.
pub(crate) fn find<T>(
    bus: &mut dyn Bus,
    addresses: &[u8],
    address: Option<u8>,
    mut identity: impl FnMut(&mut dyn Bus, u8) -> Result<T, Problem>,
) -> Result<(u8, T), Problem> {
    let mut unexpected = None;
    let places = match &address {
        Some(address) => std::slice::from_ref(address),
        None => addresses,
    };
    for at in places {
        match identity(bus, *at) {
            Ok(found) => return Ok((*at, found)),
            Err(Problem::Chip(text)) if text == NO_ANSWER => {}
            Err(Problem::Chip(text)) => unexpected = unexpected.or(Some(text)),
            Err(problem) => return Err(problem),
        }
    }
    let places: Vec<_> = places.iter().map(|it| format!("{it:#04x}")).collect();
    let text = unexpected.unwrap_or_else(|| {
        let places = places.join(" and ");
        format!("{NO_ANSWER} at {places}: check its power, the wires SDA and SCL, and --bus")
    });
    Err(Problem::Chip(text))
}

/// The problem of a chip that is something else.
pub(crate) fn unexpected(at: u8, identity: u8) -> Problem {
    let text = format!("unexpected chip at {at:#04x}, with identity {identity:#04x}");
    Problem::Chip(text)
}

/// All sensors at these addresses, for `amber init`. `identity` must only read.
///
/// # Errors
/// No sensor is on the bus, or the bus does not work.
pub(crate) fn ask<T: AsRef<str>>(
    bus: &mut dyn Bus,
    addresses: &[u8],
    mut identity: impl FnMut(&mut dyn Bus, u8) -> Result<T, Problem>,
) -> Result<Identity, NoAnswer> {
    let mut found = Vec::new();
    for address in addresses {
        match identity(bus, *address) {
            Ok(name) => found.push((*address, name)),
            Err(Problem::Chip(_)) => {}
            Err(Problem::Bus(text)) => return Err(NoAnswer::Failed(text)),
        }
    }
    let Some((first, _)) = found.first() else {
        return Err(NoAnswer::Silent);
    };
    let names = found
        .iter()
        .map(|(at, name)| format!("{} at {at:#04x}", name.as_ref()));
    Ok(Identity {
        options: vec![format!("--address={first:#04x}")],
        ..Identity::usable(names.collect::<Vec<_>>().join(", "))
    })
}
