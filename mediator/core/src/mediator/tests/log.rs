//! The log about drivers, as clients read it.

use amber_proto::mediator::log_line;

use super::*;

fn read(world: &mut World, wanted: mediator::ReadLog) -> mediator::LogPage {
    match world.ask(local(9), request::What::ReadLog(wanted)) {
        reply::What::Log(page) => page,
        other => panic!("{other:?}"),
    }
}

fn about(device: Device) -> mediator::ReadLog {
    mediator::ReadLog {
        device: Some(control::wire_device(device)),
        ..mediator::ReadLog::default()
    }
}

/// `>` before lines of the mediator.
fn texts(page: &mediator::LogPage) -> Vec<String> {
    let text = |line: &mediator::LogLine| match line.source() {
        log_line::Source::Driver => line.text.clone(),
        log_line::Source::Mediator => format!("> {}", line.text),
    };
    page.lines.iter().map(text).collect()
}

#[test]
fn the_log_tells_the_life_of_a_driver_across_restarts() {
    let mut world = World::new(&["5:0,5:1=x", "77:3=y"]);
    let says = |world: &mut World, line| world.core.driver_said(world.now, DUMMY, line);
    says(&mut world, " WARN the lamp is hot");
    world.exits(DUMMY, 1);
    world.advance(SECOND);
    says(&mut world, "plain words");
    let page = read(&mut world, about(dummy()));
    let expected = [
        "> started as process 101",
        "> up",
        "WARN the lamp is hot",
        "> exited with code 1",
        "> started as process 103",
        "> up",
        "plain words",
    ];
    assert_eq!(texts(&page), expected);
    let levels: Vec<_> = page.lines.iter().map(|line| line.level).collect();
    let [warn, info] = [log_line::Level::Warn, log_line::Level::Info].map(|it| Some(it.into()));
    assert_eq!(levels, [info, info, warn, warn, info, info, None]);
    let numbers = page.lines.iter().map(|line| line.number);
    assert!(numbers.eq(1..=7));
    // Its second device is the same driver.
    let second = "5:1".parse().unwrap();
    assert_eq!(read(&mut world, about(second)), page);
    let all = read(&mut world, mediator::ReadLog::default());
    assert_eq!((all.lines.len(), all.newest), (9, 9));
}

#[test]
fn a_stop_by_request_is_in_the_log() {
    let mut world = World::new(&["5:0=x"]);
    let stop = request::What::ChangeDriver(mediator::ChangeDriver {
        device: control::wire_device(dummy()),
        action: mediator::change_driver::Action::Stop.into(),
    });
    world.ask(local(1), stop);
    world.exits(DUMMY, 0);
    let page = read(&mut world, about(dummy()));
    let expected = [
        "> stopping, as requested",
        "> stopping",
        "> exited with code 0",
    ];
    assert_eq!(texts(&page)[2..], expected);
}

#[test]
fn trouble_of_a_device_is_in_the_log() {
    let mut world = World::new(&["5:0=x"]);
    world.says(DUMMY, None, mediator::Health::in_trouble("it is hot"));
    world.advance(SECOND * 2);
    world.says(DUMMY, None, mediator::Health::ok());
    let page = read(&mut world, about(dummy()));
    let expected = [
        "> dummy:0 does not work: it is hot",
        "> dummy:0 works again after 2.0 s",
    ];
    assert_eq!(texts(&page)[2..], expected);
}

#[test]
fn the_lines_of_a_driver_that_is_no_longer_configured_stay() {
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    world.core.apply(world.now, &config(&["77:3=y"]));
    world.settle();
    world.exits(DUMMY, 0);
    let page = read(&mut world, about(dummy()));
    assert_eq!(texts(&page)[2], "> no longer in the configuration");
    let unknown = request::What::ReadLog(about("9:9".parse().unwrap()));
    let reply::What::Refused(refusal) = world.ask(local(9), unknown) else {
        panic!("not refused");
    };
    assert_eq!(refusal.reason(), refusal::Reason::NoSuchDevice);
}

#[test]
fn a_client_follows_the_log_by_numbers() {
    let mut world = World::new(&["5:0=x"]);
    let after = |world: &mut World, after| {
        let wanted = mediator::ReadLog {
            after: Some(after),
            ..mediator::ReadLog::default()
        };
        read(world, wanted)
    };
    let page = after(&mut world, 2);
    assert_eq!((page.lines.len(), page.newest, page.more), (0, 2, false));
    world.core.driver_said(world.now, DUMMY, "new");
    assert_eq!(texts(&after(&mut world, 2)), ["new"]);
    let flood = 3 * limits::KEPT_LOG_LINES as u64;
    for _ in 0..flood {
        world.core.driver_said(world.now, DUMMY, "flood");
    }
    let page = after(&mut world, 3);
    let missing = page.lines[0].number - 4;
    assert_eq!(
        missing,
        2 * limits::KEPT_LOG_LINES as u64,
        "the gap is visible"
    );
    assert!(page.more);
    assert_eq!(page.newest, 3 + flood);
}

#[test]
fn lines_of_the_last_seconds_can_be_asked_for() {
    let mut world = World::new(&["5:0=x"]);
    world.advance(SECOND * 10);
    world.core.driver_said(world.now, DUMMY, "late");
    let since = |world: &mut World, since_ms| {
        let wanted = mediator::ReadLog {
            since_ms: Some(since_ms),
            ..mediator::ReadLog::default()
        };
        texts(&read(world, wanted)).len()
    };
    assert_eq!(since(&mut world, 5000), 1);
    assert_eq!(since(&mut world, 60_000), 3);
    assert_eq!(since(&mut world, u64::MAX), 3);
}
