//! Reports of drivers about who moves their devices.

use amber_proto::motion::motion_report::News;
use amber_proto::motion::{self, Halt, LeaseClient, MotionReport};

use super::*;

fn report(news: News, text: &str, holder: Option<&str>, halted_by: Option<&str>) -> MotionReport {
    MotionReport {
        holder: holder.map(|name| LeaseClient {
            client_id: 7,
            name: Some(name.to_owned()),
            ..LeaseClient::default()
        }),
        waiting: Some(2),
        halt: halted_by.map(|by| Halt {
            by: Some(by.to_owned()),
            since_ms: None,
        }),
        news: Some(news.into()),
        text: Some(text.to_owned()),
    }
}

fn tells(world: &mut World, about: Option<Device>, report: MotionReport) {
    let message = motion::DriverMsg {
        motion_report: Some(report),
        ..motion::DriverMsg::data()
    };
    world.tells_mediator(DUMMY, about, &message);
}

fn events(world: &mut World) -> Vec<(Kind, String)> {
    let sent = world.take(local(1));
    let events = sent.iter().filter_map(|bytes| decode(bytes).event);
    let events = events.map(|event| (event.kind(), event.text.unwrap_or_default()));
    events.collect()
}

#[test]
fn a_lease_is_an_event_and_shown_until_its_end() {
    let mut world = World::new(&["5:0,5:1=x"]);
    let other = Device::new(DeviceType::DUMMY, 1);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    let taken = report(
        News::Lease,
        "amber goto holds\nthe lease",
        Some("amber goto"),
        None,
    );
    tells(&mut world, Some(other), taken);
    let expected = mediator::DeviceMotion {
        device: control::wire_device(other),
        holder: Some("amber goto".into()),
        halted_by: None,
        waiting: Some(2),
    };
    assert_eq!(world.describe(other).motions, [expected]);
    let ended = report(News::Stopped, "stopped", None, None);
    tells(&mut world, Some(other), ended);
    assert!(world.describe(other).motions.is_empty());
    let text = "amber goto holds the lease".to_owned();
    let stopped = (Kind::DeviceMotionStopped, "stopped".to_owned());
    assert_eq!(events(&mut world), [(Kind::DeviceLease, text), stopped]);
    let counters = &world.core.router.counters;
    assert_eq!(counters.dropped(DropReason::MediatorMessage), 0);
}

#[test]
fn a_halt_survives_the_process_of_the_driver_and_a_lease_does_not() {
    let mut world = World::new(&["5:0=x"]);
    let halted = report(News::Halted, "halted", Some("a"), Some("the\noperator"));
    tells(&mut world, None, halted);
    assert_eq!(world.core.halts(DUMMY).unwrap(), "5:0=the operator");
    world.exits(DUMMY, 1);
    world.advance(SECOND);
    let motions = world.describe(dummy()).motions;
    assert_eq!(motions.len(), 1);
    assert_eq!(motions[0].halted_by.as_deref(), Some("the operator"));
    assert_eq!(
        (motions[0].holder.as_deref(), motions[0].waiting()),
        (None, 0)
    );
    tells(
        &mut world,
        None,
        report(News::HaltReleased, "released", None, None),
    );
    assert_eq!(world.core.halts(DUMMY), None);
}

#[test]
fn a_flood_of_reports_is_few_events_and_the_last_state_is_true() {
    let mut world = World::new(&["5:0=x"]);
    world.send(local(1), Device::MEDIATOR, &plain(MsgType::Subscribe));
    for k in 0..500 {
        let holder = (k % 2 == 0).then_some("a");
        tells(&mut world, None, report(News::Lease, "again", holder, None));
    }
    assert_eq!(events(&mut world).len(), 10);
    assert!(world.describe(dummy()).motions.is_empty());
    let counters = &world.core.router.counters;
    assert_eq!(counters.dropped(DropReason::MotionEvents), 490);
}
