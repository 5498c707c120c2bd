//! Lost clients are detected, and clients get only the messages that they want.

use super::*;

#[test]
fn a_client_that_never_spoke_to_the_mediator_sees_only_what_drivers_send() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    let old = local(1);
    let request = b"\x10\x01\x18\x05\x90\x03\x01";
    world.send(old, dummy(), request);
    world.send(old, "123:4".parse().unwrap(), request);
    world.exits(DUMMY, 1);
    world.send(old, dummy(), request);
    world.advance(SECOND * 60);
    world.core.shut_down(world.now);
    world.settle();
    assert!(world.take(old).is_empty());
}

#[test]
fn a_silent_client_that_used_to_answer_is_lost_and_its_drivers_are_told() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"drive");
    for _ in 0..5 {
        world.advance(SECOND * 2);
        assert!(!world.take(local(1)).is_empty(), "it is PINGed");
        world.send(local(1), Device::MEDIATOR, &plain(MsgType::Pong));
    }
    world.drivers_got.clear();
    world.advance(SECOND * 5);
    assert_eq!(
        world.take(local(1)).len(),
        usize::from(limits::CLIENT_PINGS)
    );
    // Drivers have ids, too: the first client has id 2.
    let died = (DUMMY, b"\x1a\x01\x02".to_vec(), plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got, [died]);
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn a_silent_client_that_never_answers_gets_three_pings_and_is_kept() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.advance(SECOND * 100);
    assert_eq!(
        world.take(local(1)).len(),
        usize::from(limits::CLIENT_PINGS)
    );
    world.send(local(1), dummy(), b"still here");
    world.advance(SECOND * 100);
    assert!(world.take(local(1)).is_empty());
    assert_eq!(world.core.router.clients.len(), 1);
}

#[test]
fn a_client_that_leaves_is_forgotten_and_its_drivers_are_told_once() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.send(local(1), dummy(), b"drive");
    world.drivers_got.clear();
    for _ in 0..2 {
        world.send(local(1), Device::MEDIATOR, &plain(MsgType::ClientDied));
    }
    assert_eq!(world.drivers_got.len(), 1);
    assert_eq!(world.drivers_got[0].2, plain(MsgType::ClientDied));
    assert!(
        world.take(local(1)).is_empty(),
        "nothing is sent to one that never announced itself"
    );
}

#[test]
fn a_busy_client_that_falls_silent_is_lost() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    for _ in 0..50 {
        world.advance(SECOND / 10);
        world.send(local(1), dummy(), b"drive");
        if !world.take(local(1)).is_empty() {
            world.send(local(1), Device::MEDIATOR, &plain(MsgType::Pong));
        }
    }
    world.drivers_got.clear();
    world.advance(SECOND * 5);
    let died = (DUMMY, b"\x1a\x01\x02".to_vec(), plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got, [died]);
    assert!(world.core.router.clients.is_empty());
}
