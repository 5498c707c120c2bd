//! Many clients: memory stays within the limits.

use super::*;

#[test]
fn a_full_table_forgets_the_client_that_was_silent_longest() {
    let mut world = World::with_clients(&["5:0"], 2);
    world.request(A, "5:0", b"");
    world.request(B, "5:0", b"");
    world.request(A, "5:0", b"");
    let seen = world.request(1003, "5:0", b"new");
    assert_eq!(
        seen.drivers,
        [
            client_died(0, 3),
            (0, header(None, Some(4)), b"new".to_vec())
        ]
    );
    assert_eq!(world.router.clients.len(), 2);
    assert_eq!(world.router.counters.counted(Count::ClientsEvicted), 1);
}

#[test]
fn a_huge_client_limit_allocates_nothing() {
    let mut world = World::with_clients(&["dummy:0"], usize::MAX);
    assert_eq!(world.request(A, "dummy:0", b"x").drivers.len(), 1);
}

#[test]
fn ids_count_up_and_wrap_and_are_never_used_twice() {
    let mut world = World::with_clients(&["5:0"], 3);
    world.router.next_id = i32::MAX;
    for (port, id) in [(A, i32::MAX), (B, 2), (1003, 3)] {
        let seen = world.request(port, "5:0", b"");
        assert_eq!(
            seen.drivers[0].1,
            header(None, Some(id)),
            "1 is the driver's"
        );
    }
}

#[test]
fn answers_to_a_driver_that_never_reads_are_bounded() {
    let mut world = World::new(&["dummy:0"]);
    let key = world.keys[0];
    world.router.ping_driver(key, b"");
    world.router.queue_mut(key).unwrap().wrote(0);
    for from in [Sender::Driver(key), Sender::DriverAsClient(key)] {
        for _ in 0..2 * limits::QUEUE_FRAMES {
            world.router.reply(from, b"pong", &mut world.out);
        }
    }
    let queue = world.router.queue_mut(key).unwrap();
    assert_eq!(queue.len(), limits::QUEUE_FRAMES + 1);
}

/// From another machine, so that it must become known.
fn elsewhere(port: u16) -> ClientAddress {
    ClientAddress {
        socket: 0,
        address: (Ipv4Addr::new(10, 0, 0, 1), port).into(),
    }
}

fn ask(world: &mut World, from: ClientAddress, to: &str) {
    let bytes = frame(&header(Some(device(to)), None), b"x");
    world
        .router
        .datagram(world.now, from, &bytes, &mut world.out);
    world.seen();
}

#[test]
fn newcomers_are_evicted_first_and_proved_users_last() {
    let mut world = World::with_clients(&["5:0", "77:3"], 4);
    let [newcomer, idle, user, proved] = [1, 2, 3, 4].map(elsewhere);
    for from in [proved, user, idle] {
        ask(&mut world, from, if from == idle { "77:3" } else { "5:0" });
    }
    world.now += limits::NEWCOMER;
    for from in [proved, user, idle] {
        ask(&mut world, from, if from == idle { "77:3" } else { "5:0" });
    }
    let id = world.router.clients.at(&proved).unwrap().id;
    world.router.clients.client_mut(id).unwrap().prove();
    ask(&mut world, proved, "5:0");
    // Now one of them uses no device.
    world.driver_down(1);
    ask(&mut world, user, "5:0");
    ask(&mut world, newcomer, "5:0");

    let mut gone = Vec::new();
    for port in 100..104 {
        ask(&mut world, elsewhere(port), "5:0");
        let evicted = world.router.poll_evicted().expect("an evicted client");
        assert_eq!(evicted.room, RoomFor::AnyHost);
        assert_eq!(evicted.newcomer, elsewhere(port).address);
        gone.push(evicted.client.address());
        // The new client does not count.
        let id = world.router.clients.at(&elsewhere(port)).unwrap().id;
        world.router.clients.client_mut(id).unwrap().prove();
        ask(&mut world, elsewhere(port), "5:0");
    }
    assert_eq!(gone, [newcomer, idle, user, proved].map(|at| at.address));
}

#[test]
fn a_full_host_evicts_one_of_its_own_clients() {
    let mut world = World::with_clients(&["5:0", "77:3"], 100);
    world.router.set_clients_per_host("4".parse().unwrap());
    let stranger = |port| ClientAddress {
        socket: 0,
        address: (Ipv4Addr::new(10, 0, 0, 2), port).into(),
    };
    // These are newcomers, and the first to go if the table were full.
    for port in 1..=4 {
        ask(&mut world, stranger(port), "5:0");
    }
    let [newcomer, idle, user, proved] = [1, 2, 3, 4].map(elsewhere);
    for _ in 0..2 {
        for from in [proved, user, idle] {
            ask(&mut world, from, if from == idle { "77:3" } else { "5:0" });
        }
        world.now += limits::NEWCOMER;
    }
    let id = world.router.clients.at(&proved).unwrap().id;
    world.router.clients.client_mut(id).unwrap().prove();
    ask(&mut world, proved, "5:0");
    world.driver_down(1);
    // It is heard, but its device is down. So nobody has been silent.
    ask(&mut world, idle, "77:3");
    ask(&mut world, user, "5:0");
    ask(&mut world, newcomer, "5:0");

    let mut gone = Vec::new();
    for port in 100..104 {
        ask(&mut world, elsewhere(port), "5:0");
        let evicted = world.router.poll_evicted().expect("an evicted client");
        assert_eq!(evicted.room, RoomFor::ItsHost);
        assert_eq!(evicted.newcomer, elsewhere(port).address);
        gone.push(evicted.client.address());
        let id = world.router.clients.at(&elsewhere(port)).unwrap().id;
        world.router.clients.client_mut(id).unwrap().prove();
        ask(&mut world, elsewhere(port), "5:0");
    }
    assert_eq!(gone, [newcomer, idle, user, proved].map(|at| at.address));
    assert_eq!(world.router.clients.len(), 8);
    for port in 1..=4 {
        assert!(world.router.clients.at(&stranger(port)).is_some());
    }
    let counters = &world.router.counters;
    assert_eq!(counters.counted(Count::ClientsEvictedForHost), 4);
    assert_eq!(counters.counted(Count::ClientsEvicted), 4);
}

#[test]
fn a_lower_host_limit_applies_when_the_next_client_comes() {
    let mut world = World::with_clients(&["5:0"], 100);
    for port in 1..=10 {
        ask(&mut world, elsewhere(port), "5:0");
    }
    world.router.set_clients_per_host("3".parse().unwrap());
    ask(&mut world, elsewhere(1), "5:0");
    assert_eq!(
        world.router.clients.len(),
        10,
        "no eviction without a new client"
    );
    ask(&mut world, elsewhere(11), "5:0");
    let left = world.router.clients.in_order();
    let left: Vec<u16> = left.iter().map(|client| client.address().port()).collect();
    assert_eq!(left, [1, 10, 11]);
    world.router.set_clients_per_host("5".parse().unwrap());
    for port in 12..20 {
        ask(&mut world, elsewhere(port), "5:0");
    }
    assert_eq!(world.router.clients.len(), 5);
}

#[test]
fn a_full_host_evicts_none_of_another_host() {
    let mut world = World::with_clients(&["5:0"], 4);
    world.router.set_clients_per_host("2".parse().unwrap());
    for port in [1, 2, 1, 2] {
        ask(&mut world, client(port), "5:0");
    }
    ask(&mut world, elsewhere(1), "5:0");
    ask(&mut world, elsewhere(2), "5:0");
    // The table and this host are full: the host evicts one of its own.
    ask(&mut world, client(3), "5:0");
    let evicted = world.router.poll_evicted().unwrap();
    assert_eq!(evicted.client.address().port(), 1);
    // For a host with room, any newcomer goes.
    let other = ClientAddress {
        socket: 0,
        address: (Ipv4Addr::new(10, 0, 0, 7), 1).into(),
    };
    ask(&mut world, other, "5:0");
    let evicted = world.router.poll_evicted().unwrap();
    assert_eq!(evicted.client.address, elsewhere(1).into());
    assert_eq!(evicted.room, RoomFor::AnyHost);
    assert!(world.router.poll_evicted().is_none());
}

/// A host with this many clients that use a device, and were silent for a while.
fn host_of_silent_clients(
    clients: u16,
    address: &dyn Fn(u16) -> ClientAddress,
    is_proved: bool,
) -> World {
    let mut world = World::with_clients(&["5:0"], 4096);
    let limit = std::num::NonZeroUsize::new(clients.into()).unwrap();
    world.router.set_clients_per_host(limit);
    for port in 1..=clients {
        ask(&mut world, address(port), "5:0");
        if is_proved {
            prove(&mut world, address(port));
        }
    }
    world.now += limits::NEWCOMER;
    // Now they are no newcomers.
    for port in 1..=clients {
        ask(&mut world, address(port), "5:0");
    }
    world.now += limits::SILENT;
    world
}

fn prove(world: &mut World, at: ClientAddress) {
    let id = world.router.clients.at(&at).unwrap().id;
    world.router.clients.client_mut(id).unwrap().prove();
    world.router.clients.rank_again(id);
}

fn is_known(world: &World, at: ClientAddress) -> bool {
    world.router.clients.at(&at).is_some()
}

#[test]
fn clients_that_arrive_together_at_a_full_host_do_not_evict_each_other() {
    let local = |port| client(port);
    let hosts: [(&dyn Fn(u16) -> ClientAddress, bool); 3] =
        [(&local, true), (&elsewhere, false), (&elsewhere, true)];
    for (address, is_proved) in hosts {
        for burst in [2, 16, 200] {
            let mut world = host_of_silent_clients(1024, address, is_proved);
            let newcomers = 2000..2000 + burst;
            for port in newcomers.clone() {
                ask(&mut world, address(port), "5:0");
                if is_proved {
                    prove(&mut world, address(port));
                }
            }
            for port in newcomers.clone() {
                assert!(is_known(&world, address(port)), "{port} of {burst}");
            }
            // Those that were silent longest made room.
            for port in 1..=1024 {
                assert_eq!(is_known(&world, address(port)), port > burst, "{port}");
            }
            let counters = &world.router.counters;
            let counted = |count| counters.counted(count);
            assert_eq!(counted(Count::ClientsEvictedForHost), u64::from(burst));
            let is_local = address(1).address.ip().is_loopback();
            let for_local = if is_local { u64::from(burst) } else { 0 };
            assert_eq!(counted(Count::ClientsEvictedForLocal), for_local);
        }
    }
}

#[test]
fn a_burst_at_a_full_host_evicts_its_own_clients_only_when_none_is_silent() {
    for address in [&|port| client(port), &elsewhere] as [&dyn Fn(u16) -> ClientAddress; 2] {
        let mut world = host_of_silent_clients(16, address, false);
        // Eight of them are heard again; they are known for long.
        for port in 9..=16 {
            ask(&mut world, address(port), "5:0");
        }
        for port in 100..108 {
            ask(&mut world, address(port), "5:0");
        }
        for port in (9..=16).chain(100..108) {
            assert!(is_known(&world, address(port)), "{port}");
        }
        // Now a client that was just heard has to go: of another machine, one that may be forged.
        ask(&mut world, address(200), "5:0");
        let is_local = address(1).address.ip().is_loopback();
        let gone = if is_local { 9 } else { 100 };
        for port in (9..=16).chain(100..108).chain([200]) {
            assert_eq!(is_known(&world, address(port)), port != gone, "{port}");
        }
    }
}

#[test]
fn forged_addresses_of_a_full_host_displace_no_client_that_was_just_heard() {
    let mut world = host_of_silent_clients(1024, &elsewhere, false);
    for port in 1..=100 {
        ask(&mut world, elsewhere(port), "5:0");
    }
    for port in 2000..22_000 {
        ask(&mut world, elsewhere(port), "5:0");
    }
    for port in 1..=100 {
        assert!(is_known(&world, elsewhere(port)), "{port}");
    }
    assert_eq!(world.router.clients.len(), 1024);
}

#[test]
fn local_clients_that_arrive_together_at_a_full_table_do_not_evict_each_other() {
    let mut world = World::with_clients(&["5:0"], 64);
    for port in 1..=32 {
        ask(&mut world, elsewhere(port), "5:0");
        ask(&mut world, client(port), "5:0");
    }
    world.now += limits::NEWCOMER;
    for port in 1..=32 {
        ask(&mut world, elsewhere(port), "5:0");
        ask(&mut world, client(port), "5:0");
    }
    world.now += limits::SILENT;
    for port in 100..148 {
        ask(&mut world, client(port), "5:0");
        let evicted = world.router.poll_evicted().unwrap();
        assert_eq!(evicted.room, RoomFor::AnyHost);
    }
    for port in 100..148 {
        assert!(is_known(&world, client(port)), "{port}");
    }
    let counted = world.router.counters.counted(Count::ClientsEvictedForLocal);
    assert_eq!(counted, 48);
}
