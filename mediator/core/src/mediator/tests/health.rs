//! Health reports of drivers about their devices, and the events about them.

use amber_proto::mediator::Health;

use super::*;

#[test]
fn trouble_is_one_event_and_shown_until_the_device_works_again() {
    let mut world = World::new(&["4:0=x"]);
    let hokuyo = Device::new(DeviceType::HOKUYO, 0);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for _ in 0..3 {
        world.says(DUMMY, None, Health::in_trouble("/dev/ttyACM0 is gone"));
    }
    world.advance(SECOND * 12);
    let described = world.describe(hokuyo);
    assert_eq!(described.state(), DriverState::Up);
    let trouble = mediator::Trouble {
        device: control::wire_device(hokuyo),
        text: "/dev/ttyACM0 is gone".into(),
        since_ms: 12_000,
    };
    assert_eq!(described.troubles, [trouble]);

    world.says(DUMMY, Some(hokuyo), Health::ok());
    world.says(DUMMY, None, Health::ok());
    assert!(world.describe(hokuyo).troubles.is_empty());
    let events: Vec<_> = (world.take(local(1)).iter())
        .filter_map(|bytes| decode(bytes).event)
        .map(|event| (event.kind(), event.text.unwrap_or_default()))
        .collect();
    let expected = [
        (Kind::DeviceTrouble, "/dev/ttyACM0 is gone"),
        (Kind::DeviceRecovered, "after 12.0 s"),
    ];
    assert_eq!(events, expected.map(|(kind, text)| (kind, text.to_owned())));
    assert_eq!(
        world.core.router.counters.dropped(DropReason::HealthEvents),
        3
    );
    assert_eq!(
        world
            .core
            .router
            .counters
            .dropped(DropReason::MediatorMessage),
        0
    );
}

#[test]
fn a_driver_of_several_devices_reports_one_or_all() {
    let mut world = World::new(&["5:0,5:1=x"]);
    let (one, other) = (dummy(), Device::new(DeviceType::DUMMY, 1));
    let troubled = |world: &mut World| {
        let driver = world.describe(one);
        (driver.troubles.iter())
            .map(|trouble| trouble.device.id)
            .collect::<Vec<_>>()
    };
    world.says(DUMMY, Some(other), Health::in_trouble("broken"));
    assert_eq!(troubled(&mut world), [1]);
    world.says(DUMMY, None, Health::in_trouble("no power"));
    assert_eq!(troubled(&mut world), [0, 1]);
    world.says(DUMMY, Some(one), Health::ok());
    assert_eq!(troubled(&mut world), [1]);
}

#[test]
fn trouble_ends_with_the_driver_that_reported_it() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.says(DUMMY, None, Health::in_trouble("broken"));
    world.exits(DUMMY, 1);
    assert!(world.describe(dummy()).troubles.is_empty());
    world.advance(SECOND);
    assert!(world.describe(dummy()).troubles.is_empty());
    let kinds = [Kind::DeviceTrouble, Kind::DeviceDown, Kind::DeviceUp];
    assert_eq!(world.events(local(1)), kinds);
    // A driver that is being stopped has no say, either.
    let key = DUMMY;
    world.core.driver_event(world.now, key, Event::Stop);
    world.says(key, None, Health::in_trouble("broken"));
    assert!(world.describe(dummy()).troubles.is_empty());
}

#[test]
fn events_of_a_flapping_device_are_bounded_and_end_with_its_last_state() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for _ in 0..1000 {
        world.says(DUMMY, None, Health::in_trouble("loose"));
        world.says(DUMMY, None, Health::ok());
    }
    world.says(DUMMY, None, Health::in_trouble("lost"));
    let events = world.events(local(1));
    assert_eq!(events.len(), limits::HEALTH_EVENTS as usize);
    assert_eq!(world.describe(dummy()).troubles[0].text, "lost");
    world.advance(limits::HEALTH_EVENT_INTERVAL);
    assert_eq!(world.events(local(1)), [Kind::DeviceTrouble]);
    let told = u64::from(limits::HEALTH_EVENTS) + 1;
    let untold = world.core.router.counters.dropped(DropReason::HealthEvents);
    assert_eq!(told + untold, 2001);
}

#[test]
fn invalid_data_of_a_driver_is_counted() {
    let mut world = World::new(&["5:0=x"]);
    let mut later = mediator::DriverMsg::data();
    later.health = Some(mediator::Health {
        state: 9,
        text: Some("?".into()),
    });
    for message in [&b"\x10\x01"[..], &later.encode_to_vec()] {
        let frame = Frame {
            header: b"",
            message,
        };
        assert!(world.core.driver_frame(world.now, DUMMY, frame));
    }
    world.settle();
    assert_eq!(
        world
            .core
            .router
            .counters
            .dropped(DropReason::MediatorMessage),
        2
    );
    assert!(world.describe(dummy()).troubles.is_empty());
}

#[test]
fn the_longest_description_fits_into_old_receive_buffers() {
    let devices: Vec<_> = (0..16).map(|id| format!("77:{id}")).collect();
    let driver = format!("{}=x {}", devices.join(","), "y ".repeat(4000));
    let mut world = World::new(&[&driver]);
    for _ in 0..limits::LAST_WORDS {
        world.core.driver_said(world.now, DUMMY, &"z".repeat(4096));
    }
    world.says(DUMMY, None, Health::in_trouble(&"long ".repeat(100)));
    // `ask` checks the length of each answer.
    let described = world.describe("77:0".parse().unwrap());
    assert_eq!(described.troubles.len(), limits::TROUBLES);
    assert_eq!(described.last_words.len(), limits::LAST_WORDS);
}
