//! The mediator's answers as a device.

use super::*;

#[test]
fn a_ping_of_the_mediator_is_answered_with_its_number_and_device_0() {
    let mut world = World::new(&[]);
    // The recorded case "device type 0 id 0".
    let ping = [0, 4, 8, 0, 16, 0, 0, 4, 16, 2, 24, 5];
    let from = ClientAddress {
        socket: 0,
        address: local(1),
    };
    world.core.datagram(world.now, from, &ping);
    world.settle();
    assert_eq!(
        world.take(local(1)),
        [[0, 4, 8, 0, 16, 0, 0, 4, 16, 3, 32, 5]]
    );
}

#[test]
fn unreadable_messages_are_counted_and_not_answered() {
    let mut world = World::new(&[]);
    for message in [&b"ECHO"[..], b"", b"\x10\x63", b"\x18\x05"] {
        world.send(local(1), Device::MEDIATOR, message);
    }
    // The recorded cases "header without device" and "header with type only".
    let from = ClientAddress {
        socket: 0,
        address: local(1),
    };
    for datagram in [&b"\0\0\0\x04ECHO"[..], b"\0\x02\x08\x4d\0\x04ECHO"] {
        world.core.datagram(world.now, from, datagram);
    }
    world.settle();
    assert!(world.take(local(1)).is_empty());
    assert_eq!(
        world
            .core
            .router
            .counters
            .dropped(DropReason::MediatorMessage),
        6
    );
    assert!(world.core.router.clients.is_empty());
}

#[test]
fn events_report_deaths_and_restarts() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    world.exits(DUMMY, 1);
    world.advance(SECOND);
    assert_eq!(world.events(local(1)), [Kind::DeviceDown, Kind::DeviceUp]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Unsubscribe));
    world.exits(DUMMY, 1);
    assert!(world.events(local(1)).is_empty());
}

#[test]
fn evicted_listeners_are_forgotten() {
    let mut world = World::new(&["5:0=x"]);
    let limit = std::num::NonZeroUsize::new(10).unwrap();
    world.core.router.clients = crate::router::Clients::new(world.now, limit);
    for port in 1..1000 {
        world.send(local(port), Device::MEDIATOR, &plain(MsgType::Subscribe));
        assert!(world.core.events.listeners() <= 2 * (10 + 1));
    }
    world.exits(DUMMY, 1);
    assert_eq!(world.events(local(999)), [Kind::DeviceDown]);
}

#[test]
fn changes_are_for_programs_on_the_same_machine() {
    let mut world = World::new(&["5:0=x"]);
    let stop = || {
        request::What::ChangeDriver(mediator::ChangeDriver {
            device: control::wire_device(dummy()),
            action: mediator::change_driver::Action::Stop.into(),
        })
    };
    for what in [stop(), request::What::Reload(mediator::Reload {})] {
        let reply::What::Refused(refusal) = world.ask(remote(), what) else {
            panic!("refused")
        };
        assert_eq!(refusal.reason(), refusal::Reason::NotAllowed);
    }
    assert!(
        world
            .actions
            .iter()
            .all(|(_, action)| *action == ProcessAction::Spawn)
    );
    // A loopback address inside an IPv6 address proves nothing: other machines can send it.
    let forged: SocketAddr = "[::ffff:127.0.0.1]:99".parse().unwrap();
    world.request(forged, stop());
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
    assert_eq!(
        world.ask(local(1), stop()),
        reply::What::Done("dummy:0: stopping".into())
    );
    assert_eq!(
        world.actions.last(),
        Some(&(DUMMY, ProcessAction::CloseInput))
    );
    world.exits(DUMMY, 0);
    assert_eq!(world.describe(dummy()).state(), DriverState::Down);
    world.advance(SECOND * 60);
    assert!(world.running.is_empty(), "stopped means stopped");
}

#[test]
fn invalid_requests_are_refused_with_a_reason() {
    let mut world = World::new(&["5:0=x"]);
    let device = mediator::Device { r#type: 9, id: 9 };
    let reply::What::Refused(refusal) = world.ask(local(1), request::What::DescribeDriver(device))
    else {
        panic!("refused")
    };
    assert_eq!(refusal.reason(), refusal::Reason::NoSuchDevice);
    assert_eq!(refusal.message, "no driver serves collision-avoidance:9");

    let mut empty = mediator::DriverMsg::data();
    empty.set_syn(Some(SynNum(3)));
    world.send(local(1), Device::MEDIATOR, &empty.encode_to_vec());
    let answer = decode(&world.take(local(1))[0]);
    let Some(reply::What::Refused(refusal)) = answer.reply.and_then(|r| r.what) else {
        panic!("refused")
    };
    assert_eq!(refusal.reason(), refusal::Reason::BadRequest);
}

#[test]
fn answers_fit_into_a_datagram_for_any_configuration() {
    let command = format!("5:0={}", "word ".repeat(10_000));
    let mut world = World::new(&[&command]);
    for _ in 0..limits::LAST_WORDS {
        world
            .core
            .driver_said(world.now, DUMMY, &"x".repeat(limits::STDERR_LINE_BYTES));
    }
    assert!(world.describe(dummy()).command.len() > 100);

    world.announce(local(1));
    let to = Sender::Client(ClientAddress {
        socket: 0,
        address: local(1),
    });
    let ticket = Ticket {
        to,
        id: world.core.router.id_of(to),
        syn: SynNum(1),
    };
    let long = || "x".repeat(40_000);
    world.core.answer(ticket, Ok(long()));
    world.core.answer(ticket, Err((long(), Some(long()))));
    world.settle();
    assert_eq!(world.take(local(1)).len(), 2);
}

#[test]
fn long_lists_are_split_into_pages() {
    let mut config = Config::default();
    for i in 0..300 {
        config.add_driver(&format!("77:{i}=x")).unwrap();
    }
    let mut world = World::new(&[]);
    world.spawn_fails = true;
    world.core.apply(world.now, &config);
    world.settle();
    let mut seen = Vec::new();
    loop {
        let page = mediator::ListDrivers {
            skip: Some(seen.len() as u32),
        };
        let reply::What::Drivers(list) = world.ask(local(1), request::What::ListDrivers(page))
        else {
            panic!("drivers")
        };
        assert_eq!(list.total, 300);
        if list.drivers.is_empty() {
            break;
        }
        seen.extend(list.drivers.iter().map(|driver| driver.devices[0].id));
    }
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
}

#[test]
fn statistics_name_every_counter() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), dummy(), b"x");
    let what = request::What::GetStatistics(mediator::GetStatistics {});
    let reply::What::Statistics(statistics) = world.ask(local(2), what) else {
        panic!()
    };
    let counter = |name: &str| {
        statistics
            .counters
            .iter()
            .find(|c| c.name == name)
            .map(|counter| counter.value)
    };
    assert_eq!(counter("datagrams_received"), Some(2));
    assert_eq!(counter("driver_starts"), Some(1));
    assert_eq!(statistics.dropped.len(), DropReason::ALL.len());
    assert_eq!((statistics.clients(), statistics.drivers()), (2, 1));
    let asker = ClientAddress {
        socket: 0,
        address: local(2),
    };
    let known = world.core.router.clients.at(&asker).unwrap().id;
    assert_eq!(statistics.client_id, Some(known.0), "the id of the asker");
}

/// The whole datagrams that answer a request with a wish for short answers.
fn short_answers(world: &mut World, what: request::What) -> Vec<usize> {
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    message.request = Some(Request { what: Some(what) });
    message.max_answer_bytes = Some(1200);
    world.send(local(1), Device::MEDIATOR, &message.encode_to_vec());
    world.settle();
    let answers = world.take(local(1));
    answers.iter().map(|answer| answer.len()).collect()
}

#[test]
fn answers_are_as_short_as_the_client_wants_them() {
    let drivers: Vec<_> = (0..60)
        .map(|id| format!("5:{id}=/a/program/with/a/path"))
        .collect();
    let drivers: Vec<_> = drivers.iter().map(|driver| &**driver).collect();
    let mut world = World::new(&drivers);
    for port in 2..60 {
        world.request(
            local(port),
            request::What::GetStatistics(mediator::GetStatistics {}),
        );
    }
    world.request(
        local(1),
        request::What::GetStatistics(mediator::GetStatistics {}),
    );
    let long = world.take(local(1)).last().unwrap().len();
    assert!(
        long > 1200,
        "without the wish, all counters are in it: {long}"
    );
    for what in [
        request::What::GetStatistics(mediator::GetStatistics {}),
        request::What::ListDrivers(mediator::ListDrivers::default()),
        request::What::ListClients(mediator::ListClients::default()),
        request::What::ReadLog(mediator::ReadLog::default()),
        request::What::ExplainCounters(mediator::ExplainCounters {}),
    ] {
        for length in short_answers(&mut world, what.clone()) {
            assert!(length <= 1200, "{length} bytes: {what:?}");
        }
    }
}

#[test]
fn the_answer_to_a_reload_is_not_sent_to_a_new_client_at_that_address() {
    let mut world = World::new(&["5:0=x"]);
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let what = Some(request::What::Reload(mediator::Reload {}));
    message.request = Some(Request { what });
    world.send(local(1), Device::MEDIATOR, &message.encode_to_vec());
    let Some(ShellTask::Reload(ticket)) = world.core.poll_task() else {
        panic!("no reload")
    };
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::ClientDied));
    // An old client, which takes every datagram as the answer of its device.
    world.send(local(1), dummy(), b"x");
    world.core.answer(ticket, Ok("done".into()));
    world.settle();
    assert!(world.take(local(1)).is_empty());
}

#[test]
fn the_processes_are_measured_by_the_shell_and_come_in_pages() {
    let mut world = World::new(&["5:0=x", "5:1=x"]);
    let page = mediator::ListProcesses { skip: Some(1) };
    world.request(local(1), request::What::ListProcesses(page));
    let Some(ShellTask::MeasureProcesses(ticket, mut processes, total)) = world.core.poll_task()
    else {
        panic!("nothing to measure")
    };
    // The mediator itself is the first of three.
    assert_eq!((processes.len(), total), (2, 3));
    let devices = processes.iter().map(|it| it.device.unwrap().id);
    assert_eq!(devices.collect::<Vec<_>>(), [0, 1]);
    processes[0].cpu_ms = Some(70);
    world
        .core
        .answer_processes(ticket, processes.clone(), total);
    world.settle();
    let answers = world.take(local(1));
    let reply = decode(answers.last().unwrap()).reply;
    let Some(reply::What::Processes(list)) = reply.and_then(|reply| reply.what) else {
        panic!("another reply")
    };
    assert_eq!((list.processes, list.total), (processes, 3));
}

#[test]
fn every_counter_is_explained_in_a_sentence() {
    let mut world = World::new(&["5:0=x"]);
    let asked = request::What::ExplainCounters(mediator::ExplainCounters {});
    let reply::What::Counters(list) = world.ask(local(1), asked) else {
        panic!("no explanations")
    };
    assert_eq!(
        list.counters.len(),
        Count::ALL.len() + DropReason::ALL.len()
    );
    for counter in &list.counters {
        assert!(counter.help.ends_with('.'), "{counter:?}");
        assert!(!counter.help.contains("  "), "{counter:?}");
    }
}
