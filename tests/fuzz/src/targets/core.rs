//! The core of the mediator: requests to itself, and whole worlds around it. PURE, except for
//! the start of its clock.

use std::net::SocketAddr;
use std::time::Instant;

use amber_proto::{Device, Frame, HeaderBytes};
use amber_simulation::{Broken, Log, Random, World};

/// A request to the mediator causes an answer and an event, and makes it ask for a proof of
/// the address.
const MOST_DATAGRAMS: u64 = 4;

/// A message for the mediator itself, from the same machine and from another.
pub(super) fn control(data: &[u8]) {
    let addresses: [SocketAddr; 2] = [
        ([127, 0, 0, 1], 4000).into(),
        ([192, 168, 1, 7], 4000).into(),
    ];
    let datagram = frame(data);
    let mut world = kept(World::in_peace(Instant::now()));
    for address in addresses {
        let sent = kept(world.receives(address, &datagram));
        assert!(sent <= MOST_DATAGRAMS, "{sent} datagrams for one request");
    }
}

/// A world of the simulation, in which the bytes decide all that happens.
pub(super) fn world(data: &[u8]) {
    let random = Random::from_bytes(data);
    kept(World::new(Instant::now(), random, Log::Nothing).run());
}

fn kept<T>(outcome: Result<T, Broken>) -> T {
    outcome.unwrap_or_else(|Broken { invariant, what }| panic!("{invariant} is broken: {what}"))
}

fn frame(message: &[u8]) -> Vec<u8> {
    let header = HeaderBytes::new(Some(Device::MEDIATOR), None);
    let header = header.as_slice();
    // A datagram has no room for more.
    let message = &message[..message.len().min(32_767)];
    let mut bytes = Vec::new();
    let encoded = Frame { header, message }.encode(&mut bytes);
    encoded.expect("the message is short enough");
    bytes
}
