//! A reload affects changed drivers only.

use super::*;

#[test]
fn a_reload_leaves_unchanged_drivers_alone() {
    let mut world = World::new(&["5:0=same", "77:3=old", "6:0=goes"]);
    let before = world.running.clone();
    let text = world
        .core
        .apply(world.now, &config(&["5:0=same", "77:3=new", "8:0=comes"]));
    assert_eq!(
        text,
        "configuration read; drivers unchanged: 1, restarted: 1, added: 1, removed: 1"
    );
    world.settle();
    // The old drivers are still ending.
    let text = world
        .core
        .apply(world.now, &config(&["5:0=same", "77:3=new", "8:0=comes"]));
    assert_eq!(
        text,
        "configuration read; drivers unchanged: 3, restarted: 0, added: 0, removed: 0"
    );
    world.settle();
    world.exits(OTHER, 0);
    world.exits(DriverKey(2), 0);
    world.settle();
    assert_eq!(world.running.get(&DUMMY), before.get(&DUMMY));
    assert_ne!(world.running.get(&OTHER), before.get(&OTHER));
    assert_eq!(world.core.driver_config(OTHER).unwrap().command, ["new"]);
    assert_eq!(world.running.len(), 3);
    let refused = mediator::Device { r#type: 6, id: 0 };
    assert!(matches!(
        world.ask(local(1), request::What::DescribeDriver(refused)),
        reply::What::Refused(_)
    ));
}

#[test]
fn a_reload_removes_all_drivers_only_on_purpose() {
    let mut world = World::new(&["5:0=x"]);
    assert!(world.core.would_lose_all_drivers(&config(&[])));
    assert!(!world.core.would_lose_all_drivers(&config(&["6:0=y"])));
    let on_purpose = Config {
        no_drivers: true,
        ..config(&[])
    };
    assert!(!world.core.would_lose_all_drivers(&on_purpose));
    world.core.apply(world.now, &on_purpose);
    world.settle();
    // There is nothing left to lose.
    assert!(!world.core.would_lose_all_drivers(&config(&[])));
}

#[test]
fn a_driver_waits_for_the_end_of_its_predecessor() {
    let mut world = World::new(&["5:0=x"]);
    world.core.apply(world.now, &config(&["5:0,5:1=x"]));
    world.settle();
    assert_eq!(
        world.running.keys().collect::<Vec<_>>(),
        [&DUMMY],
        "the serial port is taken"
    );
    world.exits(DUMMY, 0);
    assert_eq!(world.running.keys().collect::<Vec<_>>(), [&OTHER]);
    assert_eq!(world.describe(dummy()).devices.len(), 2);
}

#[test]
fn a_driver_that_replaces_two_waits_for_both() {
    let mut world = World::new(&["5:0=x", "5:1=x"]);
    world.core.apply(world.now, &config(&["5:0,5:1=x"]));
    world.settle();
    world.exits(DUMMY, 0);
    let running: Vec<_> = world.running.keys().copied().collect();
    assert_eq!(running, [OTHER], "the other serial port is taken");
    world.exits(OTHER, 0);
    let running: Vec<_> = world.running.keys().copied().collect();
    assert_eq!(running, [DriverKey(2)]);
}

#[test]
fn a_driver_cannot_be_started_before_its_devices_are_free() {
    let mut world = World::new(&["5:0=x"]);
    world.core.apply(world.now, &config(&["5:0,5:1=x"]));
    world.announce(local(1));
    let running = world.running.clone();
    for event in [Event::Start, Event::Restart, Event::Stop, Event::Start] {
        world.core.driver_event(world.now, OTHER, event);
        world.settle();
        assert_eq!(world.running, running, "the serial port is taken");
    }
    world.send(local(1), dummy(), b"\x10\x01\x18\x05");
    let (ack, reason, message) = refusal_of(&world.take(local(1))[0]);
    assert_eq!((ack, reason), (Some(SynNum(5)), Reason::Restarting));
    assert_eq!(
        message,
        "it starts when the previous driver of this device has ended"
    );
    world.exits(DUMMY, 0);
    assert_eq!(world.running.keys().collect::<Vec<_>>(), [&OTHER]);
}

#[test]
fn a_driver_that_was_stopped_while_it_waited_stays_down() {
    let mut world = World::new(&["5:0=x"]);
    world.core.apply(world.now, &config(&["5:0,5:1=x"]));
    world.core.driver_event(world.now, OTHER, Event::Stop);
    world.settle();
    world.exits(DUMMY, 0);
    assert!(world.running.is_empty());
}

#[test]
fn a_stopped_driver_stays_down_when_its_configuration_changes() {
    let mut world = World::new(&["5:0=old"]);
    world.core.driver_event(world.now, DUMMY, Event::Stop);
    world.settle();
    world.exits(DUMMY, 0);
    world.core.apply(world.now, &config(&["5:0=new"]));
    world.settle();
    assert!(world.running.is_empty());
    world.core.driver_event(world.now, DUMMY, Event::Start);
    world.settle();
    assert_eq!(world.core.driver_config(DUMMY).unwrap().command, ["new"]);
}
