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

const HOUR: Duration = Duration::from_secs(3600);

/// A driver sends a message to a client.
fn answers(world: &mut World, to: SocketAddr) {
    let at = ClientAddress {
        socket: 0,
        address: to,
    };
    let id = world.core.router.clients.at(&at).unwrap().id;
    let header = HeaderBytes::new(None, Some(id));
    let (header, message) = (header.as_slice(), &b"\x10\x01"[..]);
    assert!((world.core).driver_frame(world.now, DUMMY, Frame { header, message }));
    world.settle();
}

fn known(world: &World, clients: &[SocketAddr]) -> Vec<bool> {
    let is_known = |address: &SocketAddr| {
        let (socket, address) = (0, *address);
        let at = ClientAddress { socket, address };
        world.core.router.clients.at(&at).is_some()
    };
    clients.iter().map(is_known).collect()
}

#[test]
fn silent_clients_that_hold_nothing_are_forgotten() {
    let mut config = config(&["5:0=x"]);
    config.limits.forget_clients = HOUR;
    let mut world = World::with_config(&config);
    let clients = [1, 2, 3, 4, 5].map(local);
    let [served, subscriber, waiting, streamed, listener] = clients;
    for client in [served, waiting, streamed] {
        world.send(client, dummy(), b"\x10\x01");
    }
    world.send(subscriber, dummy(), &plain(MsgType::Subscribe));
    world.send(listener, Device::MEDIATOR, &plain(MsgType::Subscribe));
    for client in [served, subscriber, streamed] {
        answers(&mut world, client);
    }
    world.drivers_got.clear();
    world.advance(HOUR / 2);
    assert_eq!(known(&world, &clients), [true; 5]);
    // It has sent a request that makes the driver publish, but is no SUBSCRIBE.
    answers(&mut world, streamed);
    world.advance(HOUR);
    answers(&mut world, streamed);
    world.advance(HOUR / 2);
    assert_eq!(known(&world, &clients), [false, true, true, true, true]);
    let died = (DUMMY, HeaderBytes::new(None, Some(ClientId(2))));
    let got = world.drivers_got.last().unwrap();
    assert_eq!((got.0, &got.1[..]), (died.0, died.1.as_slice()));
    assert_eq!(got.2, plain(MsgType::ClientDied));
    let counted = |world: &World| {
        let counters = &world.core.router.counters;
        counters.counted(Count::ClientsForgotten)
    };
    assert_eq!(counted(&world), 1);
    let events = world.take(listener);
    let event = decode(events.last().unwrap()).event.unwrap();
    let text = "127.0.0.1:1 was silent for long and held nothing";
    assert_eq!((event.kind(), event.text()), (Kind::ClientGone, text));

    world.send(subscriber, dummy(), &plain(MsgType::Unsubscribe));
    world.send(listener, Device::MEDIATOR, &plain(MsgType::Unsubscribe));
    answers(&mut world, subscriber);
    answers(&mut world, waiting);
    world.advance(3 * HOUR);
    assert_eq!(known(&world, &clients), [false; 5]);
    assert_eq!(counted(&world), 5);
}

#[test]
fn clients_are_forgotten_after_once_to_twice_the_configured_time_or_never() {
    let mut config = config(&["5:0=x"]);
    config.limits.forget_clients = HOUR;
    let mut world = World::with_config(&config);
    for (hour, port) in (0..10).zip(1..) {
        world.advance(Duration::from_secs(hour * 7 * 60));
        world.send(local(port), dummy(), b"\x10\x01");
        answers(&mut world, local(port));
        let heard = world.now;
        while known(&world, &[local(port)]) == [true] {
            world.advance(Duration::from_secs(60));
        }
        let silence = world.now - heard;
        assert!(
            (HOUR..=2 * HOUR + SECOND * 60).contains(&silence),
            "{silence:?}"
        );
    }
    config.limits.forget_clients = Duration::from_secs(u64::MAX);
    world.core.apply(world.now, &config);
    world.send(local(1), dummy(), b"\x10\x01");
    answers(&mut world, local(1));
    world.advance(24 * HOUR);
    assert_eq!(known(&world, &[local(1)]), [true]);
}

#[test]
fn the_statistics_tell_how_full_the_tables_are() {
    let mut world = World::new(&["5:0=x"]);
    let statistics = |world: &mut World| {
        let what = request::What::GetStatistics(mediator::GetStatistics {});
        match world.ask(local(1), what) {
            reply::What::Statistics(statistics) => statistics,
            other => panic!("{other:?}"),
        }
    };
    let first = statistics(&mut world);
    assert_eq!((first.clients(), first.most_clients()), (1, 4096));
    assert_eq!(first.most_clients_per_host(), 1024);
    assert_eq!(
        (first.fullest_host(), first.fullest_host_clients()),
        ("this machine", 1)
    );
    for (host, ports, name) in [
        ("192.168.1.7", 2, "192.168.1.7"),
        ("2001:db8::7", 3, "2001:db8::/64"),
        ("127.0.0.2", 4, "this machine"),
    ] {
        for port in 1..=ports {
            let host: std::net::IpAddr = host.parse().unwrap();
            world.send((host, port).into(), dummy(), b"x");
        }
        let now = statistics(&mut world);
        let clients = u32::from(ports) + u32::from(name == "this machine");
        assert_eq!(
            (now.fullest_host(), now.fullest_host_clients()),
            (name, clients)
        );
    }
}
