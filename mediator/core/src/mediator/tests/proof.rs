//! The mediator's answers cannot be used to flood a third party: an unverified address gets no
//! more bytes than it has sent.

use super::*;

fn ask_for_drivers() -> Vec<u8> {
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let list = request::What::ListDrivers(mediator::ListDrivers::default());
    message.request = Some(Request { what: Some(list) });
    message.encode_to_vec()
}

#[test]
fn a_remote_request_waits_until_its_address_is_proved() {
    let mut world = World::new(&["5:0=x"]);
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    let datagrams = world.take(remote());
    assert_eq!(datagrams.len(), 1);
    let ping = decode(&datagrams[0]);
    assert_eq!(ping.kind(), Some(MsgType::Ping));
    let asked = frame(Some(Device::MEDIATOR), &ask_for_drivers());
    assert!(datagrams[0].len() <= asked.len());

    // A wrong number proves nothing.
    let mut wrong = ping.clone();
    wrong.set_syn(Some(SynNum(ping.syn().unwrap().0 ^ 1)));
    world.send(remote(), Device::MEDIATOR, &pong(&wrong));
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::Pong));
    assert!(world.take(remote()).is_empty());

    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    let answer = decode(&world.take(remote())[0]);
    assert!(matches!(
        answer.reply,
        Some(Reply {
            what: Some(reply::What::Drivers(_))
        })
    ));
    // From now on it is answered at once.
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    assert!(decode(&world.take(remote())[0]).reply.is_some());
}

#[test]
fn a_waiting_request_is_not_carried_out_for_the_next_client_at_that_address() {
    let mut world = World::new(&["5:0=x"]);
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    let ping = decode(&world.take(remote())[0]);
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::ClientDied));
    let unproved = world.core.router.counters.dropped(DropReason::Unproved);
    assert_eq!(unproved, 1, "it is counted");

    // An old client, which never contacts the mediator; the PONG comes too late.
    world.send(remote(), dummy(), b"x");
    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    assert!(world.take(remote()).is_empty());
}

#[test]
fn the_proof_of_one_address_does_not_count_for_another() {
    let mut world = World::new(&[]);
    let other: SocketAddr = ([192, 168, 1, 7], 4001).into();
    for from in [remote(), other] {
        world.send(from, Device::MEDIATOR, &ask_for_drivers());
    }
    let ping = decode(&world.take(remote())[0]);
    world.take(other);
    world.send(other, Device::MEDIATOR, &pong(&ping));
    assert!(world.take(other).is_empty());
}

#[test]
fn changes_need_a_proved_address() {
    let mut world = World::new(&["5:0=x"]);
    world.core.admin = Admin::Anyone;
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let stop = request::What::ChangeDriver(mediator::ChangeDriver {
        device: control::wire_device(dummy()),
        action: mediator::change_driver::Action::Stop.into(),
    });
    message.request = Some(Request { what: Some(stop) });
    world.send(remote(), Device::MEDIATOR, &message.encode_to_vec());
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
    let ping = decode(&world.take(remote())[0]);
    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    assert_eq!(world.describe(dummy()).state(), DriverState::Stopping);
}

#[test]
fn requests_that_wait_for_proof_are_bounded() {
    let mut world = World::new(&[]);
    for port in 1..=1000 {
        let from = ([192, 168, 1, 7], port).into();
        world.send(from, Device::MEDIATOR, &ask_for_drivers());
    }
    assert_eq!(
        world.core.unproved.requests().count(),
        limits::UNPROVED_REQUESTS
    );
    let mut long = ask_for_drivers();
    // An unknown field.
    long.extend([0xfa, 0x0f, 0xac, 0x02]);
    long.extend([0; 300]);
    world.send(remote(), Device::MEDIATOR, &long);
    assert_eq!(
        world.core.unproved.requests().count(),
        limits::UNPROVED_REQUESTS
    );
    assert!(
        world
            .core
            .unproved
            .requests()
            .all(|(from, _)| from.address != remote())
    );
}

#[test]
fn an_unproved_address_never_gets_more_than_it_sent() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(&["5:0=x", "77:3,77:4=y"]);
        let (mut sent, mut got) = (0, 0);
        for _ in 0..300 {
            let mut send = |world: &mut World, to: Device, message: &[u8]| {
                sent += frame(Some(to), message).len();
                world.send(remote(), to, message);
            };
            let device = *random.choice(&["5:0", "77:3", "77:4", "9:9"]).unwrap();
            match random.u8(0..8) {
                0 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Ping)),
                1 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Subscribe)),
                2 => send(&mut world, Device::MEDIATOR, &ask_for_drivers()),
                3 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Pong)),
                4 => send(&mut world, device.parse().unwrap(), b"\x10\x01\x18\x07"),
                5 => send(&mut world, device.parse().unwrap(), b""),
                6 => world.advance(Duration::from_millis(random.u64(0..3000))),
                _ => {
                    let key = *random.choice(&[DUMMY, OTHER]).unwrap();
                    if world.running.contains_key(&key) {
                        world.exits(key, 1);
                    }
                }
            }
            got += world.take(remote()).iter().map(Vec::len).sum::<usize>();
            assert!(got <= sent, "seed {seed}: {got} bytes for {sent}");
        }
        assert!(got > 0, "seed {seed}");
        assert!(world.core.router.counters.dropped(DropReason::Unproved) > 0);
    }
}

/// A driver publishes so many messages to clients with these ids.
fn publish(world: &mut World, ids: &[i32], message: &[u8]) {
    let header = amber_proto::DriverHdr {
        client_ids: ids.to_vec(),
        ..amber_proto::DriverHdr::default()
    };
    let header = header.encode_to_vec();
    let frame = Frame {
        header: &header,
        message,
    };
    assert!(world.core.driver_frame(world.now, DUMMY, frame));
    world.settle();
}

/// A driver with subscribers at these addresses publishes 2 kB ten times a second. Returns the
/// bytes that they are sent in this time.
fn bytes_sent(world: &mut World, subscribers: &[SocketAddr], time: Duration) -> usize {
    const PAUSE: Duration = Duration::from_millis(100);
    let message = [0; 2000];
    let ids = |world: &World| -> Vec<i32> {
        let id = |address: &SocketAddr| {
            let from = ClientAddress {
                socket: 0,
                address: *address,
            };
            world
                .core
                .router
                .clients
                .at(&from)
                .map(|client| client.id.0)
        };
        subscribers.iter().filter_map(id).collect()
    };
    let mut sent = 0;
    for _ in 0..time.as_millis() / PAUSE.as_millis() {
        let ids = ids(world);
        publish(world, &ids, &message);
        world.advance(PAUSE);
        for address in subscribers {
            sent += world.take(*address).iter().map(Vec::len).sum::<usize>();
        }
    }
    sent
}

/// The robot is in the network of 192.168.1.7.
fn world_with_networks() -> World {
    let mut world = World::new(&["5:0=x"]);
    let interface = |address: &str, network: &str| Interface {
        address: address.parse().unwrap(),
        network: network.parse().unwrap(),
        resolves: true,
    };
    world.core.set_interfaces(&[
        interface("127.0.0.1", "127.0.0.0/8"),
        interface("192.168.1.1", "192.168.1.0/24"),
    ]);
    world
}

fn subscribe(world: &mut World, host: &str, ports: u16) -> Vec<SocketAddr> {
    let ip: std::net::IpAddr = host.parse().unwrap();
    let all: Vec<SocketAddr> = (0..ports).map(|port| (ip, 1000 + port).into()).collect();
    for from in &all {
        world.send(*from, dummy(), &plain(MsgType::Subscribe));
    }
    all
}

#[test]
fn forged_subscriptions_cannot_flood_a_host() {
    const MB: usize = 1_000_000;
    for (host, most) in [
        // Elsewhere: a burst and a few bytes a second.
        ("10.1.2.3", MB),
        // A neighbour: the rate that is allowed there.
        ("192.168.1.7", 11 * MB),
    ] {
        let mut world = world_with_networks();
        let victims = subscribe(&mut world, host, 500);
        // Without a bound this is 100 MB.
        let bytes = bytes_sent(&mut world, &victims, 10 * SECOND);
        assert!((500_000..most).contains(&bytes), "{host}: {bytes} bytes");
        let counters = world.core.router.totals();
        assert!(
            counters.dropped(DropReason::UnprovedStream) > 40_000,
            "{host}"
        );
        // The host has used up its allowance, and others have theirs.
        let other = subscribe(&mut world, "192.168.1.8", 1);
        assert!(bytes_sent(&mut world, &other, SECOND) >= 20_000);
    }
}

#[test]
fn an_old_client_in_the_network_of_the_robot_may_listen_for_hours() {
    let mut world = world_with_networks();
    let listeners = subscribe(&mut world, "192.168.1.7", 10);
    let local = subscribe(&mut world, "192.168.1.1", 10);
    let sent = |world: &mut World, to: &[SocketAddr]| bytes_sent(world, to, 3 * SECOND);
    for _ in 0..3 {
        // Ten clients with 20 kB a second each.
        assert!(sent(&mut world, &listeners) >= 600_000);
        assert!(sent(&mut world, &local) >= 600_000);
        world.advance(Duration::from_secs(2 * 3600));
    }
    assert_eq!(
        world
            .core
            .router
            .counters
            .dropped(DropReason::UnprovedStream),
        0
    );
}

#[test]
fn a_client_elsewhere_that_proves_its_address_gets_everything() {
    let mut world = world_with_networks();
    let distant: SocketAddr = ([10, 1, 2, 3], 4000).into();
    let request = ask_for_drivers();
    world.send(distant, Device::MEDIATOR, &request);
    let ping = decode(&world.take(distant)[0]);
    world.send(distant, Device::MEDIATOR, &pong(&ping));
    world.send(distant, dummy(), &plain(MsgType::Subscribe));
    world.take(distant);
    let from = ClientAddress {
        socket: 0,
        address: distant,
    };
    let id = world.core.router.clients.at(&from).unwrap().id.0;
    for _ in 0..1000 {
        publish(&mut world, &[id], &[0; 2000]);
    }
    assert_eq!(world.take(distant).len(), 1000);
    assert_eq!(
        world
            .core
            .router
            .counters
            .dropped(DropReason::UnprovedStream),
        0
    );
}
