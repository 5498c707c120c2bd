//! Traces of frames.

use amber_proto::mediator::traced;

use super::*;

/// What a tracer received: direction, header, message, number of lost frames.
fn traced(datagrams: &[Vec<u8>]) -> Vec<(traced::Direction, Vec<u8>, Vec<u8>, u64)> {
    let traced = datagrams.iter().filter_map(|bytes| decode(bytes).traced);
    traced
        .map(|t| {
            (
                t.direction(),
                t.header.to_vec(),
                t.message.to_vec(),
                t.lost(),
            )
        })
        .collect()
}

fn trace(device: Device, off: bool) -> request::What {
    request::What::Trace(mediator::Trace {
        device: control::wire_device(device),
        off: Some(off),
    })
}

impl World {
    /// Asks for a trace; the shell has found out whose client this is.
    fn ask_trace(
        &mut self,
        from: SocketAddr,
        wanted: request::What,
        is_allowed: bool,
    ) -> reply::What {
        self.take(from);
        self.request(from, wanted);
        let Some(ShellTask::Trace(ticket, wanted)) = self.core.poll_task() else {
            panic!("nothing to find out")
        };
        self.core.begin_trace(self.now, ticket, &wanted, is_allowed);
        self.settle();
        let datagrams = self.take(from);
        let reply = datagrams.last().and_then(|it| decode(it).reply);
        reply.and_then(|it| it.what).unwrap()
    }
}

#[test]
fn only_programs_of_the_mediators_user_can_trace() {
    let mut world = World::new(&["5:0=x"]);
    let reply = world.ask_trace(local(1), trace(dummy(), false), false);
    let reply::What::Refused(refused) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(refused.reason(), refusal::Reason::NotAllowed);
    assert!(world.core.tracers.is_empty() && world.core.router.tap.is_empty());
}

#[test]
fn a_tracer_sees_the_frames_of_its_device_both_ways() {
    use traced::Direction::{FromDriver, ToDriver};
    let mut world = World::new(&["5:0=x", "77:3=y"]);
    assert!(matches!(
        world.ask_trace(local(1), trace(dummy(), false), true),
        reply::What::Done(_)
    ));
    world.send(local(2), dummy(), b"\x10\x02\x18\x07");
    world.send(local(2), "77:3".parse().unwrap(), b"not this");
    let (_, header, _) = world.drivers_got.last().unwrap().clone();
    let asked = world.take(local(2));
    assert!(asked.is_empty());
    let pong = Frame {
        header: &header,
        message: b"\x10\x03\x20\x07",
    };
    world.core.driver_frame(world.now, DUMMY, pong);
    world.settle();
    assert_eq!(
        traced(&world.take(local(1))),
        [
            (ToDriver, header.clone(), b"\x10\x02\x18\x07".to_vec(), 0),
            (FromDriver, header, b"\x10\x03\x20\x07".to_vec(), 0),
        ]
    );
    world.ask_trace(local(1), trace(dummy(), true), true);
    world.send(local(2), dummy(), b"\x10\x02");
    assert_eq!(traced(&world.take(local(1))), []);
    assert!(world.core.router.tap.is_empty());
}

#[test]
fn only_local_clients_can_trace() {
    let mut world = World::new(&["5:0=x"]);
    let reply::What::Refused(refused) = world.ask(remote(), trace(dummy(), false)) else {
        panic!("refused")
    };
    assert_eq!(refused.reason(), refusal::Reason::NotAllowed);
    let reply::What::Refused(refused) = world.ask(local(1), trace("4:9".parse().unwrap(), false))
    else {
        panic!("refused")
    };
    assert_eq!(refused.reason(), refusal::Reason::NoSuchDevice);
}

#[test]
fn the_trace_of_a_lost_client_ends_and_excess_frames_are_counted() {
    let mut world = World::new(&["5:0=x"]);
    world.ask_trace(local(1), trace(dummy(), false), true);
    let many = limits::TRACE_FRAMES_PER_SECOND + 10;
    for _ in 0..many {
        world.send(local(2), dummy(), b"x");
    }
    assert_eq!(traced(&world.take(local(1))).len() as u32, many - 10);
    assert_eq!(
        world.core.router.counters.dropped(DropReason::TraceFrames),
        10
    );
    // The next second's first frame reports the loss.
    world.now += SECOND;
    world.send(local(2), dummy(), &[7; 20_000]);
    let shown = traced(&world.take(local(1)));
    assert_eq!(
        (shown.len(), shown[0].2.len(), shown[0].3),
        (1, limits::TRACE_BYTES, 10)
    );
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::ClientDied));
    world.send(local(2), dummy(), b"x");
    world.send(local(2), dummy(), b"x");
    assert!(world.core.tracers.is_empty() && world.core.router.tap.is_empty());
}

#[test]
fn a_turn_with_too_many_frames_reports_the_lost_ones() {
    let mut world = World::new(&["5:0=x"]);
    world.ask_trace(local(1), trace(dummy(), false), true);
    for _ in 0..limits::TRACE_WAITING + 3 {
        let frame = Frame {
            header: b"",
            message: b"\x10\x03",
        };
        world.core.driver_frame(world.now, DUMMY, frame);
    }
    world.settle();
    assert_eq!(traced(&world.take(local(1))).len(), limits::TRACE_WAITING);
    assert_eq!(
        world.core.router.counters.dropped(DropReason::TraceFrames),
        3
    );
}

#[test]
fn the_number_of_tracers_is_limited() {
    let mut world = World::new(&["5:0=x"]);
    for port in 0..limits::TRACERS as u16 {
        world.ask_trace(local(100 + port), trace(dummy(), false), true);
    }
    let refused = world.ask_trace(local(1), trace(dummy(), false), true);
    assert!(matches!(refused, reply::What::Refused(_)));
    // A second trace by the same client replaces its first.
    let again = world.ask_trace(local(100), trace(dummy(), false), true);
    assert!(matches!(again, reply::What::Done(_)));
}
