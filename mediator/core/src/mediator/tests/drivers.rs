//! Lost drivers are detected, and clients are told why.

use super::*;

#[test]
fn an_announced_client_is_told_about_dead_and_unknown_devices() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"\x10\x01\x18\x05");
    world.exits(DUMMY, 1);
    let told = world.take(local(1));
    assert_eq!(told.len(), 1);
    let death = "its driver exited with code 1".to_owned();
    assert_eq!(
        refusal_of(&told[0]),
        (None, Reason::Restarting, death.clone())
    );
    world.send(local(1), dummy(), b"\x10\x01\x18\x06");
    let told = world.take(local(1));
    assert_eq!(
        refusal_of(&told[0]),
        (Some(SynNum(6)), Reason::Restarting, death)
    );
}

#[test]
fn a_request_to_an_unavailable_device_fails_with_the_reason() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    let ask = |world: &mut World, device: Device| {
        world.take(local(1));
        world.send(local(1), device, b"\x10\x01\x18\x06");
        let (ack, reason, words) = refusal_of(&world.take(local(1))[0]);
        assert_eq!(ack, Some(SynNum(6)));
        (reason, words)
    };
    let none = ask(&mut world, "5:7".parse().unwrap());
    assert_eq!(
        none,
        (Reason::NoSuchDevice, "no driver serves dummy:7".into())
    );
    world.core.driver_event(world.now, DUMMY, Event::Restart);
    world.settle();
    let restarting = (Reason::Restarting, "it is being restarted".into());
    assert_eq!(ask(&mut world, dummy()), restarting);
    world.core.driver_event(world.now, DUMMY, Event::Stop);
    world.settle();
    let stopping = (Reason::Stopped, "it is being stopped".into());
    assert_eq!(ask(&mut world, dummy()), stopping);
    world.exits(DUMMY, 0);
    let stopped = (
        Reason::Stopped,
        "it is down: stopped; exited with code 0".into(),
    );
    assert_eq!(ask(&mut world, dummy()), stopped);
    world.core.driver_event(world.now, DUMMY, Event::Start);
    world.settle();
    for _ in 0..limits::DEATHS {
        while world.running.is_empty() {
            world.advance(Duration::from_millis(10));
        }
        world.exits(DUMMY, 3);
    }
    let (reason, words) = ask(&mut world, dummy());
    assert_eq!(reason, Reason::Failed);
    assert_eq!(
        words,
        "its driver died 10 times within 60 s, last: exited with code 3"
    );
}

#[test]
fn a_driver_that_dies_too_often_is_given_up_until_a_start() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for _ in 0..limits::DEATHS - 1 {
        world.exits(DUMMY, 3);
        world.advance(limits::BACKOFF_MAX / 2);
        while world.running.is_empty() {
            world.advance(Duration::from_millis(10));
        }
    }
    world.exits(DUMMY, 3);
    let events = world.events(local(1));
    assert_eq!(
        events[events.len() - 2..],
        [Kind::DeviceDown, Kind::DeviceFailed]
    );
    let driver = world.describe(dummy());
    assert_eq!(driver.state(), DriverState::Failed);
    assert_eq!(
        driver.reason(),
        "died 10 times within 60 s, last: exited with code 3"
    );

    let start = mediator::ChangeDriver {
        device: control::wire_device(dummy()),
        action: mediator::change_driver::Action::Start.into(),
    };
    let done = world.ask(local(9), request::What::ChangeDriver(start));
    assert_eq!(done, reply::What::Done("dummy:0: starting".into()));
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
}

#[test]
fn text_on_stdout_is_bad_framing_with_a_hint() {
    let mut world = World::new(&["5:0=x"]);
    assert!(!world.core.driver_prefix(world.now, DUMMY, b"starting up\n"));
    world.settle();
    assert!(world.actions.ends_with(&[
        (DUMMY, ProcessAction::CloseInput),
        (DUMMY, ProcessAction::Terminate)
    ]));
    world.exits(DUMMY, 1);
    let driver = world.describe(dummy());
    assert_eq!(driver.state(), DriverState::Backoff);
    assert!(
        driver.reason().contains("73 74 61 72 74 69 6e 67"),
        "{}",
        driver.reason()
    );
    assert!(
        driver.reason().contains("starting up"),
        "{}",
        driver.reason()
    );
    assert!(
        driver.hint().contains("stdout carries the protocol"),
        "{}",
        driver.hint()
    );
}

#[test]
fn a_start_failure_is_shown_with_its_hint_and_retried() {
    let mut world = World::new(&[]);
    world.spawn_fails = true;
    world.core.apply(world.now, &config(&["5:0=x"]));
    world.settle();
    let driver = world.describe(dummy());
    assert_eq!(driver.reason(), "could not be started: no such file");
    assert_eq!(driver.hint(), "check the path");
    world.spawn_fails = false;
    world.advance(limits::BACKOFF_MAX);
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
    assert_eq!(world.describe(dummy()).hint, None);
}

#[test]
fn a_driver_that_stops_answering_pings_is_stopped() {
    let mut world = World::new(&["5:0=x"]);
    world.advance(SECOND * 60);
    assert!(
        world
            .actions
            .iter()
            .all(|(_, action)| *action == ProcessAction::Spawn)
    );
    world.drivers_answer = false;
    world.advance(SECOND * 21);
    assert!(world.actions.contains(&(DUMMY, ProcessAction::Terminate)));
}

#[test]
fn a_driver_that_never_answered_keeps_running_after_three_pings() {
    let mut world = World::new(&[]);
    world.drivers_answer = false;
    world.core.apply(world.now, &config(&["5:0=x"]));
    world.settle();
    world.advance(SECOND * 600);
    assert_eq!(world.driver_pings, 3);
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
}

#[test]
fn a_driver_reports_its_own_death() {
    let mut world = World::new(&["5:0=x"]);
    world.announce(local(1));
    world.send(local(1), dummy(), b"x");
    let died = plain(MsgType::DriverDied);
    world.core.driver_frame(
        world.now,
        DUMMY,
        Frame {
            header: b"",
            message: &died,
        },
    );
    world.settle();
    let told = world.take(local(1));
    assert_eq!(told.len(), 1);
    assert_eq!(refusal_of(&told[0]).1, Reason::OutOfOrder);
}

#[test]
fn a_driver_reports_the_death_of_one_device_with_the_reason() {
    let mut world = World::new(&["5:0,5:1=x"]);
    world.announce(local(1));
    let other = Device::new(DeviceType::DUMMY, 1);
    world.send(local(1), dummy(), b"x");
    world.send(local(1), other, b"x");
    let mut died = mediator::DriverMsg::of_kind(MsgType::DriverDied);
    died.unavailable = Some(mediator::Unavailable {
        reason: Reason::Failed.into(),
        message: Some("the robot r2 has left the fleet".repeat(20)),
        hint: Some("look".into()),
    });
    let header = amber_proto::HeaderBytes::new(Some(other), None);
    world.core.driver_frame(
        world.now,
        DUMMY,
        Frame {
            header: header.as_slice(),
            message: &died.encode_to_vec(),
        },
    );
    world.settle();
    let told = world.take(local(1));
    assert_eq!(told.len(), 1);
    let (ack, reason, text) = refusal_of(&told[0]);
    assert_eq!((ack, reason), (None, Reason::OutOfOrder));
    assert!(text.starts_with("the robot r2 has left the fleet"));
    assert!(text.len() <= limits::TEXT_BYTES);
    let why = decode(&told[0]).unavailable.unwrap();
    assert_eq!(why.hint(), "look");
}

#[test]
fn a_driver_that_is_stopped_before_its_start_is_down_for_its_clients() {
    let mut world = World::new(&[]);
    world.announce(local(1));
    world.core.apply(world.now, &config(&["5:0=x"]));
    // Before the shell has performed any action.
    world.core.driver_event(world.now, DUMMY, Event::Stop);
    world.settle();
    world.exits(DUMMY, 0);
    assert_eq!(world.describe(dummy()).state(), DriverState::Down);
    world.take(local(1));
    world.send(local(1), dummy(), b"\x10\x01\x18\x07");
    let answers = world.take(local(1));
    assert_eq!(decode(&answers[0]).kind(), Some(MsgType::DriverDied));
}

#[test]
fn the_last_words_are_kept_and_floods_are_counted() {
    let mut world = World::new(&["5:0=x"]);
    for i in 0..1000 {
        world
            .core
            .driver_said(world.now, DUMMY, &format!("line {i} {}", "ä".repeat(1000)));
    }
    let driver = world.describe(dummy());
    assert_eq!(driver.last_words.len(), limits::LAST_WORDS);
    assert!(driver.last_words[0].starts_with("line 980 "));
    let counters = driver.counters.unwrap();
    assert_eq!(counters.stderr_lines(), 1000);
    assert_eq!(
        counters.stderr_dropped(),
        1000 - u64::from(limits::STDERR_LINES_PER_SECOND)
    );
}

#[test]
fn a_frame_about_the_drivers_own_device_is_for_the_mediator() {
    let mut world = World::new(&["5:0,5:1=x"]);
    world.drivers_got.clear();
    let own = HeaderBytes::new(Some(dummy()), None);
    let pong = plain(MsgType::Pong);
    let frame = Frame {
        header: own.as_slice(),
        message: &pong,
    };
    world.core.driver_frame(world.now, DUMMY, frame);
    world.settle();
    assert!(
        world.drivers_got.is_empty(),
        "it is not a request to itself"
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
fn a_shutdown_stops_all_drivers_and_starts_none() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.exits(OTHER, 1);
    world.core.shut_down(world.now);
    world.settle();
    assert!(!world.core.is_finished());
    let reload = request::What::Reload(mediator::Reload {});
    assert!(matches!(
        world.ask(local(1), reload),
        reply::What::Refused(_)
    ));
    assert_eq!(world.core.poll_task(), None);
    world.advance(SECOND * 3);
    let ladder: Vec<_> = world
        .actions
        .iter()
        .filter(|(key, _)| *key == DUMMY)
        .map(|(_, action)| *action)
        .collect();
    assert_eq!(
        ladder[1..4],
        [
            ProcessAction::CloseInput,
            ProcessAction::Terminate,
            ProcessAction::Kill
        ]
    );
    world.exits(DUMMY, 0);
    assert!(world.core.is_finished());
    world.advance(SECOND * 60);
    assert!(world.running.is_empty());
}

#[test]
fn a_driver_that_never_reads_is_restarted_while_clients_come_and_go() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.stalled.insert(DUMMY);
    let mut peak = 0;
    // The driver has seen all of these clients, so it must be told about each.
    for i in 0..3 * limits::LIFE_CYCLE_FRAMES as u32 {
        let route = world.core.router.queue_mut(DUMMY).unwrap();
        let frame = Frame {
            header: b"",
            message: b"",
        };
        route
            .push(Lane::ClientDied(ClientId(i as i32 + 10)), frame)
            .unwrap();
        world.send(local(1), dummy(), b"x");
        peak = peak.max(world.core.router.route(DUMMY).unwrap().queue.len());
        if world.actions.contains(&(DUMMY, ProcessAction::Terminate)) {
            break;
        }
    }
    assert!(world.actions.contains(&(DUMMY, ProcessAction::Terminate)));
    assert!(peak <= limits::LIFE_CYCLE_FRAMES + limits::QUEUE_FRAMES + 2);
    world.exits(DUMMY, 1);
    assert_eq!(world.core.router.counters.counted(Count::DriversDeaf), 1);
    let driver = world.describe(dummy());
    assert!(driver.reason().starts_with("does not read: "), "{driver:?}");
    assert_eq!(driver.hint(), "does its main loop still read stdin?");
}

#[test]
fn the_hint_is_kept_after_a_restart() {
    let mut world = World::new(&["5:0=x"]);
    world.core.driver_prefix(world.now, DUMMY, b"starting up\n");
    world.settle();
    world.exits(DUMMY, 1);
    world.advance(SECOND * 5);
    let driver = world.describe(dummy());
    assert_eq!(driver.state(), DriverState::Up);
    assert_eq!(driver.hint, None);
    assert!(
        driver
            .last_exit_hint()
            .contains("stdout carries the protocol")
    );
    assert!(driver.last_exit().contains("wrote an invalid frame"));
    // The next exit has another cause.
    world.exits(DUMMY, 1);
    world.advance(SECOND * 5);
    assert_eq!(world.describe(dummy()).last_exit_hint, None);
}
