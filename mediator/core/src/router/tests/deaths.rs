//! Drivers are told once about lost clients, and clients about lost drivers.

use super::*;
use crate::access::Access;

#[test]
fn announced_users_are_told_once_that_a_driver_died() {
    let mut world = World::new(&["5:0", "77:3"]);
    for port in [A, B] {
        world.request(port, "5:0", b"");
    }
    world.announce(A);
    world.announce(1003);
    assert_eq!(
        world.driver_down(0),
        to_client(A, b"\x08\x05\x10\0", b"\x10\x05")
    );
    assert_eq!(world.driver_down(0), Seen::default());
    assert_eq!(world.driver_down(1), Seen::default(), "it has no users");
}

#[test]
fn a_driver_that_sends_requests_to_another_is_its_client() {
    let mut world = World::new(&["5:0", "77:3"]);
    world.write(1, &header(Some(device("5:0")), None), b"ask");
    assert_eq!(world.driver_down(1).drivers, [client_died(0, 2)]);
    world.router.driver_up(world.keys[1]);
    // The new process has another id, and has sent no request yet.
    assert_eq!(world.driver_down(1), Seen::default());
}

#[test]
fn an_announced_driver_is_told_about_dead_and_unknown_devices() {
    let mut world = World::new(&["5:0", "77:3"]);
    let asker = said(Sender::DriverAsClient(world.keys[1]));
    world.router.announce(world.now, &asker);
    let ask = b"\x10\x01\x18\x07";
    world.write(1, &header(Some(device("5:0")), None), ask);
    let died = to_driver(1, &header(Some(device("5:0")), None), b"\x10\x05");
    assert_eq!(world.driver_down(0), died);
    let refused = to_driver(1, &header(Some(device("9:9")), None), b"\x10\x05\x20\x07");
    let answer = world.write(1, &header(Some(device("9:9")), None), ask);
    assert_eq!(bare(answer), refused);
}

#[test]
fn each_used_driver_is_told_that_a_client_is_gone() {
    let mut world = World::new(&["5:0", "77:3", "6:0,6:1"]);
    world.request(A, "5:0", b"");
    world.request(A, "6:1", b"");
    world.request(A, "5:0", b"");
    world.router.client_gone(ClientId(4));
    let mut told = vec![client_died(0, 4)];
    // Of the devices of one process, only those that it used.
    told.push((2, header(Some(device("6:1")), Some(4)), vec![0x10, 4]));
    assert_eq!(world.seen().drivers, told);
    world.router.client_gone(ClientId(4));
    assert_eq!(world.seen(), Seen::default());
}

#[test]
fn a_restarted_driver_is_not_told_about_clients_of_its_predecessor() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.driver_down(0);
    world.router.driver_up(world.keys[0]);
    world.router.client_gone(ClientId(2));
    assert_eq!(world.seen(), Seen::default());
}

#[test]
fn frames_of_a_driver_that_is_being_stopped_are_dropped() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.driver_down(0);
    assert_eq!(world.write(0, b"\x1a\x01\x02", b"late"), Seen::default());
    assert_eq!(world.dropped(DropReason::DriverStopping), 1);
}

#[test]
fn only_announced_clients_are_told_about_unknown_devices() {
    let mut world = World::new(&["5:0"]);
    let ask = b"\x10\x01\x18\x09";
    assert_eq!(world.request(A, "123:4", ask), Seen::default());
    world.announce(A);
    let answer = b"\x10\x05\x20\x09";
    let wire = header(Some(device("123:4")), None);
    assert_eq!(
        bare(world.request(A, "123:4", ask)),
        to_client(A, &wire, answer)
    );
    assert_eq!(
        bare(world.request(A, "123:4", b"\xff")),
        to_client(A, &wire, b"\x10\x05")
    );
    assert_eq!(world.dropped(DropReason::UnknownDevice), 3);
}

#[test]
fn unknown_device_answers_are_limited() {
    let mut world = World::new(&[]);
    world.announce(A);
    let limit = u64::from(limits::REFUSALS_PER_SECOND);
    let answers = |world: &mut World| -> usize {
        (0..limit + 5)
            .map(|_| world.request(A, "9:9", b"").clients.len())
            .sum()
    };
    assert_eq!(answers(&mut world) as u64, limit);
    assert_eq!(world.dropped(DropReason::AnswerRateLimited), 5);
    world.now += Duration::from_secs(1);
    assert_eq!(answers(&mut world) as u64, limit);
}

#[test]
fn a_driver_that_is_down_is_like_an_unknown_device() {
    let mut world = World::new(&["5:0"]);
    world.announce(A);
    world.driver_down(0);
    let refused = to_client(A, b"\x08\x05\x10\0", b"\x10\x05\x20\x07");
    assert_eq!(bare(world.request(A, "5:0", b"\x10\x01\x18\x07")), refused);
    assert_eq!(
        world.request(B, "5:0", b"\x10\x01\x18\x07"),
        Seen::default()
    );
    assert_eq!(world.dropped(DropReason::DriverDown), 2);
}

const CLIENT_DIED: &[u8] = b"\x10\x04";

#[test]
fn a_driver_is_told_once_that_a_client_leaves() {
    let mut world = World::new(&["5:0", "77:3"]);
    world.request(A, "5:0", b"");
    world.request(A, "77:3", b"");
    // Unchanged, even with a number.
    let numbered = b"\x10\x04\x18\x09";
    let told = world.request(A, "5:0", numbered);
    assert_eq!(told, to_driver(0, b"\x1a\x01\x03", numbered));
    // A second time, or a datagram that the network duplicated: ignored.
    assert_eq!(world.request(A, "5:0", CLIENT_DIED), Seen::default());
    assert_eq!(world.dropped(DropReason::NothingToTell), 1);
    world.router.client_gone(ClientId(3));
    assert_eq!(
        world.seen().drivers,
        [client_died(1, 3)],
        "the other driver"
    );
}

#[test]
fn a_client_that_leaves_a_driver_may_come_back() {
    let mut world = World::new(&["5:0"]);
    for _ in 0..2 {
        world.request(A, "5:0", b"x");
        let told = world.request(A, "5:0", CLIENT_DIED);
        assert_eq!(told.drivers, [client_died(0, 2)]);
    }
    assert_eq!(world.router.clients.len(), 1);
}

#[test]
fn a_driver_is_not_told_about_an_unknown_client_that_leaves() {
    let mut world = World::new(&["5:0"]);
    assert_eq!(world.request(A, "5:0", CLIENT_DIED), Seen::default());
    assert!(world.router.clients.is_empty(), "no client becomes known");
    world.request(A, "5:0", b"x");
    world.driver_down(0);
    world.router.driver_up(world.keys[0]);
    assert_eq!(world.request(A, "5:0", CLIENT_DIED), Seen::default());
}

#[test]
fn a_client_can_leave_one_of_two_devices_of_a_process() {
    let mut world = World::new(&["6:0,6:1"]);
    world.request(A, "6:0", b"");
    world.request(A, "6:1", b"");
    let left = world.request(A, "6:0", CLIENT_DIED);
    let header_of = |text: &str| header(Some(device(text)), Some(2));
    assert_eq!(left, to_driver(0, &header_of("6:0"), CLIENT_DIED));
    world.router.client_gone(ClientId(2));
    let told = [(0, header_of("6:1"), CLIENT_DIED.to_vec())];
    assert_eq!(world.seen().drivers, told);
}

#[test]
fn a_driver_with_a_full_pipe_is_told_about_each_client_that_it_saw() {
    for leave in [true, false] {
        let mut world = World::new(&["5:0"]);
        let key = world.keys[0];
        world.request(A, "5:0", b"seen");
        world.router.ping_driver(key, b"");
        world.router.queue_mut(key).unwrap().wrote(0);
        // More than fits. The last frames are from clients that it never sees.
        let said = frame(&header(Some(device("5:0")), None), b"x");
        for _ in 0..2 * limits::QUEUE_FRAMES {
            let from = client(A);
            world
                .router
                .datagram(world.now, from, &said, &mut world.out);
        }
        world
            .router
            .datagram(world.now, client(B), &said, &mut world.out);
        if leave {
            let left = frame(&header(Some(device("5:0")), None), CLIENT_DIED);
            for port in [A, B, A, B] {
                world
                    .router
                    .datagram(world.now, client(port), &left, &mut world.out);
            }
        }
        for id in [2, 3] {
            world.router.client_gone(ClientId(id));
        }
        world.router.queue_mut(key).unwrap().writable();
        let told = world.seen().drivers;
        let obituaries = told.iter().filter(|(_, _, message)| message == CLIENT_DIED);
        assert_eq!(obituaries.collect::<Vec<_>>(), [&client_died(0, 2)]);
        world.router.totals().check(world.router.waiting()).unwrap();
    }
}

fn out_of_order() -> mediator::Unavailable {
    mediator::Unavailable {
        reason: mediator::unavailable::Reason::OutOfOrder.into(),
        ..Default::default()
    }
}

#[test]
fn a_driver_that_reported_its_death_is_still_told_about_lost_clients() {
    let mut world = World::new(&["5:0"]);
    let key = world.keys[0];
    world.announce(A);
    world.request(A, "5:0", b"drive");
    world
        .router
        .driver_says_dead(key, None, &out_of_order(), &mut world.out);
    let died = to_client(A, b"\x08\x05\x10\0", b"\x10\x05");
    assert_eq!(bare(world.seen()), died);
    world.router.client_gone(ClientId(2));
    assert_eq!(world.seen().drivers, [client_died(0, 2)]);
}

#[test]
fn repeated_death_reports_are_passed_on_once_per_request() {
    let mut world = World::new(&["5:0", "77:3"]);
    let key = world.keys[0];
    world.announce(A);
    let asker = said(Sender::DriverAsClient(world.keys[1]));
    world.router.announce(world.now, &asker);
    for round in 1..4 {
        world.request(A, "5:0", b"x");
        world.write(1, &header(Some(device("5:0")), None), b"x");
        for _ in 0..100 {
            world
                .router
                .driver_says_dead(key, None, &out_of_order(), &mut world.out);
        }
        let seen = world.seen();
        assert_eq!(
            (seen.clients.len(), seen.drivers.len()),
            (1, 1),
            "round {round}"
        );
    }
    assert_eq!(world.router.counters.counted(Count::DriversSaidDead), 300);
    // When it really ends afterwards, its users are not told again.
    assert_eq!(world.driver_down(0), Seen::default());
}

#[test]
fn subscribers_learn_that_a_device_has_died_again_without_a_request_in_between() {
    let mut world = World::new(&["5:0", "77:3"]);
    let key = world.keys[0];
    world.announce(A);
    let asker = said(Sender::DriverAsClient(world.keys[1]));
    world.router.announce(world.now, &asker);
    world.request(A, "5:0", b"subscribe");
    world.write(1, &header(Some(device("5:0")), None), b"subscribe");
    world.seen();
    for round in 1..4 {
        for _ in 0..2 {
            world
                .router
                .driver_says_dead(key, None, &out_of_order(), &mut world.out);
        }
        let seen = world.seen();
        let told = (seen.clients.len(), seen.drivers.len());
        assert_eq!(told, (1, 1), "round {round}");
        // The device is back, and its streams with it.
        for user in [3, 2] {
            world.write(0, &header(None, Some(user)), b"data");
        }
        world.seen();
    }
}

#[test]
fn a_driver_reports_one_of_its_devices_and_keeps_the_others() {
    let mut world = World::new(&["6:0,6:1"]);
    let key = world.keys[0];
    world.announce(A);
    world.request(A, "6:0", b"x");
    world.request(A, "6:1", b"x");
    for _ in 0..3 {
        let about = Some(device("6:1"));
        world
            .router
            .driver_says_dead(key, about, &out_of_order(), &mut world.out);
    }
    let died = |header: &[u8]| to_client(A, header, b"\x10\x05");
    assert_eq!(bare(world.seen()), died(b"\x08\x06\x10\x01"));
    // The other one is still in use, so its end is told, too.
    world
        .router
        .driver_says_dead(key, None, &out_of_order(), &mut world.out);
    assert_eq!(bare(world.seen()), died(b"\x08\x06\x10\0"));
}

#[test]
fn dropped_answers_are_counted_for_the_driver_that_is_being_stopped() {
    let mut world = World::new(&["5:0", "77:3"]);
    world.request(A, "5:0", b"");
    world.driver_down(0);
    let seen = world.write(0, &header(None, Some(3)), b"late");
    assert_eq!(seen, Seen::default());
    let traffic = |world: &World, driver: usize| {
        let route = world.router.route(world.keys[driver]).unwrap();
        (route.traffic.frames_out, route.traffic.dropped_stopping)
    };
    assert_eq!(traffic(&world, 0), (1, 1));
    assert_eq!(traffic(&world, 1), (0, 0));
}

#[test]
fn rules_that_end_several_uses_of_a_process_are_told_for_each_if_it_saw_the_client() {
    for is_seen in [true, false] {
        let mut world = World::new(&["6:0,6:1"]);
        let key = world.keys[0];
        if !is_seen {
            // The pipe is full.
            world.router.ping_driver(key, b"");
            world.router.queue_mut(key).unwrap().wrote(0);
        }
        world.request(A, "6:0", b"");
        world.request(A, "6:1", b"");
        let deny_all = crate::access::Rule {
            action: crate::access::Action::Deny,
            from: Vec::new(),
            devices: Vec::new(),
        };
        world
            .router
            .set_access(Access(vec![deny_all]), &mut world.out);
        world.router.queue_mut(key).unwrap().writable();
        let died: Vec<Vec<u8>> = (world.seen().drivers.into_iter())
            .filter_map(|(_, header, message)| (message == CLIENT_DIED).then_some(header))
            .collect();
        let header_of = |text: &str| header(Some(device(text)), Some(2));
        let expected = match is_seen {
            true => vec![header_of("6:0"), header_of("6:1")],
            false => Vec::new(),
        };
        assert_eq!(died, expected);
    }
}
