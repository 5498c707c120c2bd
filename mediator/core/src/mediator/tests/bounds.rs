//! No client takes more than its share, and every drop is counted.

use super::*;

/// Addresses in another network, all different.
fn made_up(i: u32) -> SocketAddr {
    let [_, a, b, c] = i.to_be_bytes();
    ([10, a, b, c], 4000 + (i % 7) as u16).into()
}

#[test]
fn a_hundred_thousand_forged_addresses_displace_no_known_client() {
    let mut world = World::new(&["5:0=x"]);
    let known: Vec<SocketAddr> = (0..50)
        .map(|i| ([192, 168, 1, 1], 5000 + i).into())
        .collect();
    for _ in 0..3 {
        for client in &known {
            world.send(*client, dummy(), b"x");
        }
        world.now += limits::NEWCOMER;
    }
    let ids = |world: &World| -> Vec<ClientId> {
        let clients = &world.core.router.clients;
        known
            .iter()
            .filter_map(|address| {
                let address = *address;
                Some(clients.at(&ClientAddress { socket: 0, address })?.id)
            })
            .collect()
    };
    let before = ids(&world);
    assert_eq!(before.len(), known.len());
    for i in 0..100_000 {
        world.send(made_up(i), dummy(), b"x");
        world.drivers_got.clear();
        assert!(world.core.router.clients.len() <= limits::CLIENTS);
    }
    assert_eq!(ids(&world), before, "none of them was forgotten");
    world.send(known[0], dummy(), b"still here");
    let last = world.drivers_got.last().unwrap();
    assert_eq!(last.1, HeaderBytes::new(None, Some(before[0])).as_slice());
}

#[test]
fn forged_addresses_do_not_fill_the_memory_of_a_slow_driver() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), dummy(), b"x");
    world.stalled.insert(DUMMY);
    for i in 0..100_000 {
        world.send(made_up(i), dummy(), b"x");
    }
    let waiting = world.core.router.route(DUMMY).unwrap().queue.len();
    // The driver may have seen the frames offered to the pipe, so it must be told.
    assert!(
        waiting <= limits::QUEUE_FRAMES + limits::CLIENTS + 2,
        "{waiting}"
    );
    assert!(
        world.running.contains_key(&DUMMY),
        "a driver is not at fault for many clients"
    );
    world.stalled.clear();
    world.send(local(1), dummy(), b"served");
    assert!(
        world
            .drivers_got
            .iter()
            .any(|(_, _, message)| message == b"served")
    );
}

/// Programs that subscribe and then only listen, on the robot and on other machines; and one
/// that opens a port per request and proves its address.
#[test]
fn a_host_that_opens_ports_without_end_displaces_no_other_host() {
    let other_desk = |i: u16| SocketAddr::from(([192, 168, 1, 9], 7000 + i));
    let broken_here = |i: u16| local(27_000 + i);
    let broken_there = |i: u16| SocketAddr::from(([192, 168, 1, 7], 27_000 + i));
    for broken in [&broken_here as &dyn Fn(u16) -> SocketAddr, &broken_there] {
        let mut world = World::new(&["5:0=x"]);
        let is_known = |world: &World, address| {
            let at = ClientAddress { socket: 0, address };
            world.core.router.clients.at(&at).is_some()
        };
        for _ in 0..3 {
            for i in 0..50 {
                world.send(other_desk(i), dummy(), b"x");
            }
            world.now += limits::NEWCOMER;
        }
        for i in 0..30_000 {
            let from = broken(i);
            world.send(from, dummy(), b"x");
            let at = ClientAddress {
                socket: 0,
                address: from,
            };
            let clients = &mut world.core.router.clients;
            let id = clients.at(&at).unwrap().id;
            clients.client_mut(id).unwrap().prove();
            // Now it counts as a client that uses a device and has a proved address.
            world.send(from, dummy(), b"x");
            world.drivers_got.clear();
        }
        for i in 0..50 {
            assert!(is_known(&world, other_desk(i)), "{i}");
        }
        let clients = world.core.router.clients.len();
        assert_eq!(clients, 50 + limits::CLIENTS_PER_HOST);
        let counters = &world.core.router.counters;
        let made_room = 30_000 - limits::CLIENTS_PER_HOST as u64;
        assert_eq!(counters.counted(Count::ClientsEvictedForHost), made_room);
    }
}

#[test]
fn a_reload_changes_the_limit_per_host() {
    let mut config = config(&["5:0=x"]);
    let mut world = World::with_config(&config);
    for (limit, ports) in [(5, 1..10), (3, 10..20), (8, 20..40)] {
        config.limits.clients_per_host = std::num::NonZeroUsize::new(limit).unwrap();
        world.core.apply(world.now, &config);
        for port in ports {
            world.send(remote_port(port), dummy(), b"x");
            world.send(made_up(port.into()), dummy(), b"x");
        }
        let of_one = |client: &&crate::router::Client| client.address().ip() == remote().ip();
        let clients = world.core.router.clients.in_order();
        assert_eq!(clients.into_iter().filter(of_one).count(), limit);
    }
    assert_eq!(world.core.router.clients.len(), 8 + 39, "of others none");
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.take(local(1));
    world.send(remote_port(99), dummy(), b"x");
    let event = decode(&world.take(local(1))[0]).event.unwrap();
    assert!(
        event
            .text()
            .ends_with("was evicted for 192.168.1.7:99 because its host had too many clients"),
        "{event:?}"
    );
}

fn remote_port(port: u16) -> SocketAddr {
    (remote().ip(), port).into()
}

#[test]
fn an_evicted_client_is_reported_like_any_lost_client() {
    let mut config = config(&["5:0=x"]);
    config.limits.clients = std::num::NonZeroUsize::new(2).unwrap();
    let mut world = World::with_config(&config);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.take(local(1));
    world.send(made_up(1), dummy(), b"x");
    world.drivers_got.clear();
    world.send(made_up(2), dummy(), b"x");
    assert_eq!(world.drivers_got[0].2, plain(MsgType::ClientDied));
    assert_eq!(world.drivers_got.len(), 2, "and then the new one");
    let events = world.take(local(1));
    let event = decode(&events[0]).event.unwrap();
    assert_eq!(event.kind(), Kind::ClientGone);
    assert!(
        event
            .text()
            .ends_with("was evicted for 10.0.0.2:4002 because the table was full"),
        "{event:?}"
    );
}

#[test]
fn events_about_lost_clients_are_limited_and_counted() {
    let mut config = config(&["5:0=x"]);
    config.limits.clients = std::num::NonZeroUsize::new(2).unwrap();
    let mut world = World::with_config(&config);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for i in 0..1000 {
        world.send(made_up(i), dummy(), b"x");
    }
    let told = world.events(local(1)).len() as u64;
    assert_eq!(told, u64::from(limits::CLIENT_EVENTS_PER_SECOND));
    let unsaid = world
        .core
        .router
        .counters
        .dropped(DropReason::EventRateLimited);
    assert_eq!(told + unsaid, 999);
}

#[test]
fn datagrams_of_a_remote_client_are_limited() {
    let mut config = config(&["5:0=x"]);
    config.limits.datagrams_per_second = 100;
    let mut world = World::with_config(&config);
    let flood = |world: &mut World, from: SocketAddr| {
        world.drivers_got.clear();
        for _ in 0..1000 {
            world.send(from, dummy(), b"x");
        }
        world.drivers_got.len()
    };
    // The first datagram has made it known.
    assert_eq!(flood(&mut world, remote()), 101);
    assert_eq!(
        world.core.router.counters.dropped(DropReason::RateLimited),
        899
    );
    world.advance(SECOND / 2);
    assert_eq!(flood(&mut world, remote()), 50);
    // Other machines are not affected, and this machine is not limited.
    assert_eq!(flood(&mut world, made_up(1)), 101);
    assert_eq!(flood(&mut world, local(1)), 1000);
}

#[test]
fn requests_to_the_mediator_are_limited_per_sender() {
    let mut world = World::new(&["5:0=x"]);
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let list = request::What::ListClients(mediator::ListClients::default());
    message.request = Some(Request { what: Some(list) });
    let message = message.encode_to_vec();
    for _ in 0..1000 {
        world.send(local(1), Device::MEDIATOR, &message);
    }
    let limit = limits::REQUESTS_PER_SECOND as usize;
    assert_eq!(world.take(local(1)).len(), limit);
    world.send(local(2), Device::MEDIATOR, &message);
    assert_eq!(world.take(local(2)).len(), 1);
    let header = HeaderBytes::new(Some(Device::MEDIATOR), None);
    let frame = Frame {
        header: header.as_slice(),
        message: &message,
    };
    for _ in 0..1000 {
        world.core.driver_frame(world.now, DUMMY, frame);
        world.settle();
    }
    assert_eq!(world.drivers_got.len(), limit);
    let dropped = world
        .core
        .router
        .counters
        .dropped(DropReason::RequestRateLimited);
    assert_eq!(dropped, 2 * (1000 - limit as u64));
}

#[test]
fn all_ports_of_another_machine_share_one_request_rate() {
    let mut world = World::new(&["5:0=x"]);
    let remote = |port| SocketAddr::from(([192, 168, 1, 7], port));
    let list = || request::What::ListClients(mediator::ListClients { skip: None });
    // Each port proves its address with a request, which counts.
    for port in 1..=50 {
        world.ask(remote(port), list());
        world.advance(SECOND);
    }
    // PINGs of the mediator.
    (1..=50).for_each(|port| drop(world.take(remote(port))));
    let before = world
        .core
        .router
        .counters
        .dropped(DropReason::RequestRateLimited);
    let mut answers = 0;
    for _ in 0..200 {
        for port in 1..=50 {
            world.request(remote(port), list());
            answers += world.take(remote(port)).len();
        }
    }
    let dropped = world
        .core
        .router
        .counters
        .dropped(DropReason::RequestRateLimited)
        - before;
    assert_eq!(answers, limits::REQUESTS_PER_SECOND as usize);
    assert_eq!(dropped, 50 * 200 - answers as u64);
    // Programs on this machine and on other machines are not slowed down.
    world.ask(local(1), list());
    world.ask(([192, 168, 1, 8], 1).into(), list());
}

#[test]
fn other_machines_share_one_list_and_this_one_gets_the_latest() {
    let mut world = World::new(&["5:0=x"]);
    let remote = |last| SocketAddr::from(([192, 168, 1, last], 1));
    let total = |world: &mut World, from| {
        let what = request::What::ListClients(mediator::ListClients { skip: None });
        match world.ask(from, what) {
            reply::What::Clients(list) => list.total,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(total(&mut world, remote(1)), 1);
    assert_eq!(total(&mut world, remote(2)), 1, "the same list");
    assert_eq!(total(&mut world, local(1)), 3);
    world.advance(limits::LIST_AGE);
    assert_eq!(total(&mut world, remote(2)), 3);
}

#[test]
fn datagrams_that_cannot_be_answered_are_dropped() {
    let mut world = World::new(&["5:0=x"]);
    for (address, why) in [
        ("192.168.1.7:0", DropReason::DatagramSource),
        ("0.0.0.0:4000", DropReason::DatagramSource),
        ("255.255.255.255:4000", DropReason::DatagramSource),
        ("224.0.0.1:4000", DropReason::DatagramSource),
        ("[ff02::1]:4000", DropReason::DatagramSource),
        ("[::]:4000", DropReason::DatagramSource),
        ("[::ffff:224.0.0.1]:4000", DropReason::DatagramForged),
        ("[::ffff:127.0.0.1]:4000", DropReason::DatagramForged),
        ("[::ffff:10.0.0.1]:4000", DropReason::DatagramForged),
    ] {
        let before = world.core.router.counters.dropped(why);
        world.send(
            address.parse().unwrap(),
            Device::MEDIATOR,
            &plain(MsgType::Ping),
        );
        world.send(address.parse().unwrap(), dummy(), b"x");
        assert_eq!(
            world.core.router.counters.dropped(why),
            before + 2,
            "{address}"
        );
    }
    assert!(world.got.is_empty());
    assert!(world.core.router.clients.is_empty());
}
