//! Network errors about addresses.

use super::*;
use crate::router::Unreachable::{self, NoRoute, PortClosed};

impl World {
    fn unreachable(&mut self, address: SocketAddr, how: Unreachable) {
        let at = ClientAddress { socket: 0, address };
        self.core.unreachable(self.now, at, how);
        self.settle();
    }

    /// The drivers that were told about the death of a client.
    fn told_of_death(&mut self) -> Vec<DriverKey> {
        let died = plain(MsgType::ClientDied);
        let got = std::mem::take(&mut self.drivers_got);
        let told = got.into_iter().filter(|(_, _, message)| *message == died);
        told.map(|(key, ..)| key).collect()
    }
}

/// A client that has sent a request and got an answer.
fn served() -> World {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.send(remote(), dummy(), b"question");
    let header = world.drivers_got[0].1.clone();
    world.drivers_got.clear();
    let answer = Frame {
        header: &header,
        message: b"answer",
    };
    world.core.driver_frame(world.now, DUMMY, answer);
    world.settle();
    assert_eq!(world.take(remote()), [frame(Some(dummy()), b"answer")]);
    world
}

#[test]
fn a_client_whose_port_is_closed_is_lost_and_its_drivers_are_told_once() {
    let mut world = served();
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.take(local(1));
    for _ in 0..3 {
        world.unreachable(remote(), PortClosed);
    }
    assert_eq!(world.told_of_death(), [DUMMY]);
    assert_eq!(world.events(local(1)), [Kind::ClientGone]);
    let counters = &world.core.router.counters;
    assert_eq!(counters.counted(Count::ClientsUnreachable), 1);
    assert_eq!(counters.counted(Count::ClientsGone), 1);
    assert_eq!(counters.counted(Count::AddressErrors), 1);
    assert_eq!(world.core.router.clients.len(), 1);
}

#[test]
fn an_error_about_the_program_that_had_the_port_before_is_not_believed() {
    let mut world = served();
    // The next program on the same port sends a datagram before the error is read.
    world.send(remote(), dummy(), b"question");
    world.unreachable(remote(), PortClosed);
    assert_eq!(world.told_of_death(), []);
    // If that program is gone, too, the next answer shows it.
    let answer = Frame {
        header: &[0x1a, 1, 3],
        message: b"answer",
    };
    world.core.driver_frame(world.now, DUMMY, answer);
    world.settle();
    assert_eq!(world.take(remote()), [frame(Some(dummy()), b"answer")]);
    world.unreachable(remote(), PortClosed);
    assert_eq!(world.told_of_death(), [DUMMY]);
}

#[test]
fn a_client_that_is_briefly_unreachable_is_kept() {
    let mut world = served();
    for _ in 0..9 {
        world.unreachable(remote(), NoRoute);
        world.advance(SECOND);
    }
    // It is heard, so the error no longer counts.
    world.send(remote(), dummy(), b"still here");
    for _ in 0..9 {
        world.unreachable(remote(), NoRoute);
        world.advance(SECOND);
    }
    assert_eq!(world.told_of_death(), []);
    // Two short interruptions far apart are not one long one.
    world.advance(limits::UNREACHABLE);
    world.unreachable(remote(), NoRoute);
    assert_eq!(world.told_of_death(), []);
    assert_eq!(world.core.router.clients.len(), 1);
}

#[test]
fn a_client_that_stays_unreachable_is_lost() {
    let mut world = served();
    for _ in 0..=10 {
        assert_eq!(world.told_of_death(), []);
        world.unreachable(remote(), NoRoute);
        world.advance(SECOND);
    }
    assert_eq!(world.told_of_death(), [DUMMY]);
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn errors_about_addresses_to_which_nothing_was_sent_are_ignored() {
    let mut world = World::new(&["5:0=x"]);
    world.send(remote(), dummy(), b"command");
    world.unreachable(remote(), PortClosed);
    world.unreachable(local(4711), PortClosed);
    assert_eq!(world.told_of_death(), []);
    assert_eq!(world.core.router.clients.len(), 1);
}
