//! Access rules decide by address and device, and can change at run time.

use amber_proto::mediator::event::Kind;

use super::*;
use crate::access::{Access, Action as Say, Network, Rule};

fn deny(from: &str, devices: &[&str]) -> Rule {
    Rule {
        action: Say::Deny,
        from: vec![Network::parse(from, |_| None).unwrap()],
        devices: devices.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

fn with_rules(drivers: &[&str], rules: &[Rule]) -> Config {
    Config {
        access: Access(rules.to_vec()),
        ..config(drivers)
    }
}

/// A client on another machine that has contacted the mediator and used 5:0.
fn world_with_client() -> World {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::Subscribe));
    // Long enough that a PING is shorter.
    world.send(remote(), dummy(), b"a request with some bytes");
    world.advance(SECOND * 2);
    let ping = decode(world.take(remote()).last().expect("a PING"));
    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    world.drivers_got.clear();
    world.take(remote());
    world
}

#[test]
fn a_client_without_access_gets_no_answer_and_takes_no_memory() {
    let mut world = World::new(&[]);
    let rules = [deny("192.168.0.0/16", &[])];
    world.core.apply(world.now, &with_rules(&["5:0=x"], &rules));
    world.settle();
    world.send(remote(), dummy(), b"drive");
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::Ping));
    assert!(world.take(remote()).is_empty());
    assert!(world.drivers_got.is_empty());
    assert!(world.core.router.clients.is_empty());
    assert_eq!(
        world.core.router.counters.dropped(DropReason::AccessDenied),
        2
    );
    world.send(local(1), dummy(), b"drive");
    assert_eq!(world.drivers_got.len(), 1, "others are served");
}

#[test]
fn a_client_with_access_to_the_mediator_is_told_why_a_device_is_denied() {
    let mut world = world_with_client();
    let rules = [deny("192.168.1.7", &["77:3"])];
    let config = with_rules(&["5:0=x", "77:3=y"], &rules);
    world.core.apply(world.now, &config);
    world.settle();
    world.take(remote());
    world.send(remote(), "77:3".parse().unwrap(), b"\x10\x01\x18\x07");
    let (ack, reason, words) = refusal_of(&world.take(remote())[0]);
    assert_eq!((ack, reason), (Some(SynNum(7)), Reason::NotAllowed));
    assert_eq!(words, "the mediator denies 192.168.1.7 access to 77:3");
    world.send(remote(), dummy(), b"on");
    assert_eq!(world.drivers_got.len(), 1, "the other device is open");
}

#[test]
fn a_reload_ends_forbidden_uses_only() {
    let mut world = world_with_client();
    world.send(local(1), dummy(), b"x");
    world.drivers_got.clear();
    let rules = [deny("192.168.1.7", &["5:0"])];
    let config = with_rules(&["5:0=x", "77:3=y"], &rules);
    world.core.apply(world.now, &config);
    world.settle();
    let died = (DUMMY, b"\x1a\x01\x03".to_vec(), plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got, [died], "its motors stop");
    let told = world.take(remote());
    assert_eq!(refusal_of(&told[0]).1, Reason::NotAllowed);
    let reloaded = decode(&told[1]).event.map(|event| event.kind());
    assert_eq!(reloaded, Some(Kind::ConfigurationReloaded));
    // When the client leaves later, the driver is not told again.
    world.drivers_got.clear();
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::ClientDied));
    assert!(world.drivers_got.is_empty());
    // Back to no rules.
    world
        .core
        .apply(world.now, &self::config(&["5:0=x", "77:3=y"]));
    world.settle();
    world.send(remote(), dummy(), b"drive");
    assert_eq!(world.drivers_got.len(), 1);
}

#[test]
fn a_client_that_loses_access_to_the_mediator_gets_no_more_messages_of_it() {
    let mut world = world_with_client();
    let rules = [deny("192.168.1.7", &["mediator"])];
    let config = with_rules(&["5:0=x", "77:3=y"], &rules);
    world.core.apply(world.now, &config);
    world.settle();
    world.exits(DUMMY, 1);
    world.advance(SECOND * 10);
    assert!(world.take(remote()).is_empty());
    world.send(remote(), dummy(), b"still served");
    assert!(
        world
            .drivers_got
            .iter()
            .any(|(_, _, message)| message == b"still served")
    );
}
