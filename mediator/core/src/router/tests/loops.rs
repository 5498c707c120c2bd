//! Two peers that answer each other endlessly are detected.

use super::*;

/// A driver that sends every frame back with the same header.
fn echo(world: &mut World, seen: Seen) -> Seen {
    let mut all = Seen::default();
    for (driver, header, message) in seen.drivers {
        let more = world.write(driver, &header, &message);
        all.drivers.extend(more.drivers);
        all.clients.extend(more.clients);
    }
    all
}

#[test]
fn two_drivers_that_answer_each_other_are_counted_as_a_loop() {
    let mut world = World::new(&["5:0", "77:3"]);
    let mut seen = world.write(1, &header(Some(device("5:0")), None), b"ask");
    for _ in 0..2 * limits::LOOP_FRAMES {
        world.now += Duration::from_micros(20);
        seen = echo(&mut world, seen);
        assert_eq!(seen.drivers.len(), 1, "one frame in, one frame out");
    }
    assert_eq!(world.router.counters.counted(Count::Loops), 1);
}

#[test]
fn a_client_and_a_driver_that_answer_each_other_are_counted_as_a_loop() {
    let mut world = World::new(&["5:0"]);
    let mut loops = |gap: Duration| {
        // The first request begins the use.
        for _ in 0..=limits::LOOP_FRAMES {
            world.now += gap;
            let seen = world.request(A, "5:0", b"again");
            assert_eq!(echo(&mut world, seen).clients.len(), 1);
        }
        world.router.counters.counted(Count::Loops)
    };
    // A program may intend a thousand requests a second.
    assert_eq!(loops(Duration::from_millis(1)), 0);
    assert_eq!(loops(Duration::from_micros(50)), 1);
}

/// A request with its number, to a Dummy.
fn numbered(number: u32) -> Vec<u8> {
    let message = amber_proto::DriverMsg {
        r#type: amber_proto::MsgType::Ping.into(),
        syn_num: Some(number),
        ..Default::default()
    };
    message.encode_to_vec()
}

#[test]
fn a_client_that_sends_a_new_request_after_each_answer_is_not_a_loop() {
    let mut world = World::new(&["5:0"]);
    for number in 1..=3 * u32::from(limits::LOOP_FRAMES) {
        world.now += Duration::from_micros(50);
        let seen = world.request(A, "5:0", &numbered(number));
        assert_eq!(echo(&mut world, seen).clients.len(), 1);
    }
    assert_eq!(world.router.counters.counted(Count::Loops), 0);
}

#[test]
fn a_request_that_returns_with_its_number_is_a_loop() {
    let mut world = World::new(&["5:0"]);
    for _ in 0..=2 * limits::LOOP_FRAMES {
        world.now += Duration::from_micros(50);
        let seen = world.request(A, "5:0", &numbered(7));
        assert_eq!(echo(&mut world, seen).clients.len(), 1);
    }
    assert_eq!(world.router.counters.counted(Count::Loops), 1);
}

#[test]
fn one_way_floods_and_streams_do_not_count_as_loops() {
    let mut world = World::new(&["5:0"]);
    for _ in 0..3 * limits::LOOP_FRAMES {
        world.now += Duration::from_micros(20);
        world.request(A, "5:0", b"flood");
    }
    for _ in 0..3 * limits::LOOP_FRAMES {
        world.write(0, &header(None, Some(2)), b"stream");
    }
    assert_eq!(world.router.counters.counted(Count::Loops), 0);
}

const MEDIATOR: u16 = crate::config::DEFAULT_PORT;

#[test]
fn a_client_that_sends_from_the_port_of_the_mediator_is_served() {
    let mut world = World::new(&["5:0"]);
    assert_eq!(
        world.request(MEDIATOR, "5:0", b"ask"),
        to_driver(0, b"\x1a\x01\x02", b"ask")
    );
    let answer = world.write(0, b"\x1a\x01\x02", b"answer");
    assert_eq!(answer, to_client(MEDIATOR, b"\x08\x05\x10\0", b"answer"));
    // The mediator itself does not send to it: no PONG.
    assert_eq!(
        world.datagram(MEDIATOR, &frame(&[], &[0x10, 2])),
        Seen::default()
    );
    assert_eq!(world.dropped(DropReason::DatagramFromMediator), 1);
}

#[test]
fn two_mediators_that_are_clients_of_each_other_do_not_loop_forever() {
    // The driver of each answers every message.
    let mut worlds = [World::new(&["5:0"]), World::new(&["5:0"])];
    let mut datagram = frame(&header(Some(device("5:0")), None), b"x");
    let mut bounces = 0;
    for to in [0, 1].into_iter().cycle() {
        let asked = worlds[to].datagram(MEDIATOR, &datagram).drivers.pop();
        let Some((_, header, message)) = asked else {
            assert_eq!(worlds[to].dropped(DropReason::RateLimited), 1);
            break;
        };
        let mut answers = worlds[to].write(0, &header, &message).clients;
        datagram = answers.pop().expect("an answer").1;
        bounces += 1;
        assert!(bounces < 10_000, "without end");
    }
    assert!(bounces > 100, "a slow client is served");
}
