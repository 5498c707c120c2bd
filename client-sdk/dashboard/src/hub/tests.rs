use amber_proto::DeviceType;
use amber_proto::mediator::DriverState;

use super::*;
use crate::parts::tests::drivers;

const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
const GUARD: Device = Device::new(DeviceType::COLLISION_AVOIDANCE, 0);
const TARGETS: Device = Device::new(DeviceType::DRIVE_TO_POINT, 0);
const MAPPING: Device = Device::new(DeviceType::MAPPING, 0);
const GO: WheelSpeeds = WheelSpeeds::all(200);
const STOP: WheelSpeeds = WheelSpeeds::STOP;
const AHEAD: Said = Said::Drive {
    left: 200.0,
    right: 200.0,
    guard: false,
};
const CENTRE: Said = Said::Drive {
    left: 0.0,
    right: 0.0,
    guard: false,
};

/// The number of the request below.
const GOAL: u32 = 3;

fn goal(x: f64, y: f64) -> Said {
    Said::Goal { id: GOAL, x, y }
}

/// A hub on a virtual clock.
struct Bench {
    hub: Hub,
    now_ms: u64,
}

impl Bench {
    /// A robot with these drivers: type, id, state.
    fn new(all: &[(i32, i32, DriverState)]) -> Self {
        let mut hub = Hub::new("127.0.0.1:26233".into(), 600);
        hub.handle_drivers(Duration::ZERO, Ok(drivers(all)));
        Self { hub, now_ms: 1_000 }
    }

    fn robot() -> Self {
        let up = DriverState::Up;
        Self::new(&[(2, 0, up), (9, 0, up), (8, 0, up)])
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms)
    }

    fn page(&mut self, role: Role) -> ViewerId {
        let id = self.hub.open(role, "127.0.0.1".into());
        self.outputs();
        id.unwrap()
    }

    fn say(&mut self, id: ViewerId, said: &Said) -> Vec<Output> {
        self.hub.handle(self.now(), id, said.clone());
        self.outputs()
    }

    fn close(&mut self, id: ViewerId) -> Vec<Output> {
        self.hub.close(self.now(), id);
        self.outputs()
    }

    /// The motions and targets that are sent until a time, which comes with each.
    fn motions_until(&mut self, until_ms: u64) -> Vec<(u64, Output)> {
        let mut found = Vec::new();
        while self.now_ms < until_ms {
            self.now_ms += 1;
            if self.hub.next_due().is_some_and(|due| due <= self.now()) {
                self.hub.handle_timeout(self.now());
            }
            let motions = motions(self.outputs()).into_iter();
            found.extend(motions.map(|motion| (self.now_ms, motion)));
        }
        found
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.hub.take()).collect()
    }
}

fn motions(outputs: Vec<Output>) -> Vec<Output> {
    let is_motion = |output: &Output| {
        matches!(
            output,
            Output::Drive(..) | Output::Goal(..) | Output::EndErrand(..) | Output::Stop(..)
        )
    };
    outputs.into_iter().filter(is_motion).collect()
}

/// The texts that a page is told.
fn told(outputs: &[Output], page: ViewerId) -> String {
    let lines = outputs.iter().filter_map(|output| match output {
        Output::Line(id, Frame::Text(text)) if *id == page => Some(text.as_str()),
        _ => None,
    });
    lines.collect()
}

#[test]
fn the_wheels_stop_in_time_if_commands_stop_coming() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let sent = motions(bench.say(page, &AHEAD));
    assert_eq!(sent, [Output::Drive(page, WHEELS, GO)]);
    // The network is lost: nobody says anything.
    let sent = bench.motions_until(3_000);
    assert_eq!(sent, [(1_350, Output::Drive(page, WHEELS, STOP))]);
}

#[test]
fn the_wheels_stop_at_once_when_the_page_is_gone() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    bench.say(page, &AHEAD);
    bench.motions_until(1_100);
    let outputs = bench.close(page);
    let stop = Output::Drive(page, WHEELS, STOP);
    let at = |wanted: &Output| outputs.iter().position(|it| it == wanted);
    let left = at(&Output::Leave(page));
    assert!(at(&stop).is_some() && at(&stop) < left, "{outputs:?}");
    assert_eq!(at(&Output::Feed(false)), Some(outputs.len() - 1));
    assert_eq!(bench.motions_until(3_000), []);
}

#[test]
fn one_page_drives_and_the_others_see_it() {
    let mut bench = Bench::robot();
    let (one, other) = (bench.page(Role::Drive), bench.page(Role::Drive));
    let outputs = bench.say(one, &AHEAD);
    let seat = outputs.iter().find_map(|output| match output {
        Output::Show(id, Subject::Seat, Frame::Text(text)) if *id == other => Some(text.clone()),
        _ => None,
    });
    let seat: Value = serde_json::from_str(&seat.unwrap()).unwrap();
    assert_eq!(
        (&seat["holder"], &seat["viewers"]),
        (&json!(one.0), &json!(2))
    );
    let outputs = bench.say(other, &AHEAD);
    assert!(told(&outputs, other).contains("another page is driving"));
    assert_eq!(motions(outputs), []);
    // Neither may it set a target, or send requests that change something.
    let outputs = bench.say(other, &goal(1.0, 1.0));
    assert!(told(&outputs, other).contains("another page is driving"));
    let call = Said::Call {
        id: 1,
        device: "dummy".into(),
        method: "enable".into(),
        args: Vec::new(),
    };
    let outputs = bench.say(other, &call);
    let is_limited = |it: &Output| matches!(it, Output::Call(.., Permission::OnlyRead(why)) if why.contains("another page"));
    assert!(outputs.iter().any(is_limited), "{outputs:?}");
    // A while after the last command, the seat is free.
    bench.motions_until(2_500);
    let sent = motions(bench.say(other, &AHEAD));
    assert_eq!(sent, [Output::Drive(other, WHEELS, GO)]);
}

#[test]
fn every_driving_page_may_stop_the_robot_and_it_stays_stopped() {
    let mut bench = Bench::robot();
    let (one, other) = (bench.page(Role::Drive), bench.page(Role::Drive));
    bench.say(one, &AHEAD);
    let outputs = bench.say(other, &Said::Stop);
    assert!(told(&outputs, one).contains("release the stick"));
    let sent = motions(outputs);
    assert_eq!(sent[0], Output::Drive(one, WHEELS, STOP));
    for device in [WHEELS, TARGETS] {
        assert!(sent.contains(&Output::Stop(other, device)), "{sent:?}");
    }
    // The stick is still held.
    bench.now_ms += 50;
    assert_eq!(motions(bench.say(one, &AHEAD)), []);
    bench.say(one, &CENTRE);
    bench.now_ms += 50;
    let sent = motions(bench.say(one, &AHEAD));
    assert_eq!(sent, [Output::Drive(one, WHEELS, GO)]);
}

/// A robot whose targets another program has set.
fn held_by(holder: &str) -> Bench {
    let up = DriverState::Up;
    let mut all = drivers(&[(2, 0, up), (9, 0, up), (8, 0, up)]);
    let wheels = all[0].devices[0];
    all[0].motions.push(amber_proto::mediator::DeviceMotion {
        device: wheels,
        holder: Some(holder.into()),
        ..Default::default()
    });
    let mut bench = Bench::robot();
    bench.hub.handle_drivers(Duration::ZERO, Ok(all));
    bench
}

#[test]
fn a_stop_halts_the_robot_if_another_program_would_drive_on() {
    let halt = |page| Output::Halt(page, true);
    for (holder, is_other) in [
        ("amber goto via drive-to-point:0", true),
        ("dashboard 10.0.0.9:5", true),
        ("dashboard 127.0.0.1 via collision-avoidance:0", false),
    ] {
        let mut bench = held_by(holder);
        let page = bench.page(Role::Drive);
        let outputs = bench.say(page, &Said::Stop);
        assert_eq!(outputs.contains(&halt(page)), is_other, "{holder}");
    }
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let outputs = bench.say(page, &Said::Halt { halt: true });
    assert!(outputs.contains(&halt(page)) && outputs.contains(&Output::Stop(page, WHEELS)));
    let outputs = bench.say(page, &Said::Halt { halt: false });
    assert!(outputs.contains(&Output::Halt(page, false)));
}

#[test]
fn a_page_takes_over_from_another_one() {
    let mut bench = Bench::robot();
    let (one, other) = (bench.page(Role::Drive), bench.page(Role::Drive));
    bench.say(one, &AHEAD);
    let refused = bench.say(other, &AHEAD);
    assert!(told(&refused, other).contains(r#""t":"refused""#));
    let outputs = bench.say(other, &Said::TakeOver);
    assert!(outputs.contains(&Output::Drive(one, WHEELS, STOP)));
    assert!(outputs.contains(&Output::TakeOver(other)));
    assert!(told(&outputs, one).contains("release the stick"));
    // The first page still holds its stick.
    bench.now_ms += 50;
    assert_eq!(motions(bench.say(one, &AHEAD)), []);
    let sent = motions(bench.say(other, &AHEAD));
    assert_eq!(sent, [Output::Drive(other, WHEELS, GO)]);
}

/// A robot that makes a map. `explores` says whether it drives by itself.
fn growing(explores: bool) -> Progress {
    use amber_proto::mapping::progress::{Exploration, State};
    let mut progress = Progress::default();
    progress.set_state(State::Growing);
    if explores {
        progress.set_exploration(Exploration::Exploring);
    }
    progress
}

#[test]
fn a_page_explores_until_its_stick_a_stop_its_silence_or_its_end() {
    let up = DriverState::Up;
    let mut bench = Bench::new(&[(2, 0, up), (8, 0, up), (12, 0, up)]);
    let (page, other) = (bench.page(Role::Drive), bench.page(Role::Drive));
    bench.hub.handle_mapping(&growing(false));
    let ticket = Ticket {
        viewer: page,
        id: 4,
    };
    let explore = Said::Explore { id: 4 };
    let begin = |bench: &mut Bench| {
        let sent = bench.say(page, &explore);
        assert!(sent.contains(&Output::Explore(ticket, MAPPING)), "{sent:?}");
        bench.hub.handle_mapping(&growing(true));
    };
    let end = Output::EndErrand(page, MAPPING);
    begin(&mut bench);
    assert!(bench.say(page, &AHEAD).contains(&end));
    bench.hub.handle_mapping(&growing(false));
    assert!(!bench.say(page, &AHEAD).contains(&end), "nobody explores");
    let while_it_drives = bench.say(other, &explore);
    assert!(told(&while_it_drives, other).contains("another page"));
    bench.say(page, &CENTRE);
    bench.motions_until(9_000);
    begin(&mut bench);
    let stop = Output::Stop(other, MAPPING);
    assert!(bench.say(other, &Said::Stop).contains(&stop));
    bench.hub.handle_mapping(&growing(false));
    begin(&mut bench);
    bench.hub.handle_silence(bench.now(), other);
    assert_eq!(motions(bench.outputs()), []);
    bench.hub.handle_silence(bench.now(), page);
    assert_eq!(motions(bench.outputs()), std::slice::from_ref(&end));
    begin(&mut bench);
    assert_eq!(motions(bench.close(page)), [end]);
}

#[test]
fn a_growing_map_has_no_targets() {
    let up = DriverState::Up;
    let mut bench = Bench::new(&[(2, 0, up), (8, 0, up), (12, 0, up)]);
    let page = bench.page(Role::Drive);
    bench.hub.handle_mapping(&growing(false));
    let outputs = bench.say(page, &goal(1.0, 1.0));
    assert!(told(&outputs, page).contains("still grows"), "{outputs:?}");
    assert_eq!(motions(outputs), []);
}

#[test]
fn a_page_that_may_only_look_moves_and_changes_nothing() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Look);
    for said in [
        AHEAD,
        Said::Stop,
        Said::TakeOver,
        Said::Halt { halt: true },
        goal(1.0, 1.0),
        Said::Explore { id: 1 },
    ] {
        let outputs = bench.say(page, &said);
        assert!(told(&outputs, page).contains("view-only"), "{said:?}");
        let is_shown = |it: &Output| matches!(it, Output::Line(..) | Output::Show(..));
        assert!(outputs.iter().all(is_shown), "{said:?}: {outputs:?}");
    }
}

#[test]
fn the_guard_is_used_if_wanted_and_its_failure_is_explained() {
    let guarded = Said::Drive {
        left: 200.0,
        right: 200.0,
        guard: true,
    };
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let sent = motions(bench.say(page, &guarded));
    assert_eq!(sent, [Output::Drive(page, GUARD, GO)]);
    // A motion keeps its way until it ends, so that its stop takes the same.
    bench.now_ms += 50;
    let sent = motions(bench.say(page, &AHEAD));
    assert_eq!(sent, [Output::Drive(page, GUARD, GO)]);
    let sent = bench.motions_until(3_000);
    assert_eq!(sent, [(1_400, Output::Drive(page, GUARD, STOP))]);

    let mut bench = Bench::new(&[(2, 0, DriverState::Up), (9, 0, DriverState::Failed)]);
    let page = bench.page(Role::Drive);
    let outputs = bench.say(page, &guarded);
    assert!(told(&outputs, page).contains("collision-avoidance:0 is not running"));
    assert_eq!(motions(outputs), []);
    let sent = motions(bench.say(page, &AHEAD));
    assert_eq!(sent, [Output::Drive(page, WHEELS, GO)]);
}

#[test]
fn speeds_are_limited_and_invalid_ones_refused() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let fast = Said::Drive {
        left: 1e9,
        right: -1e9,
        guard: false,
    };
    let sent = motions(bench.say(page, &fast));
    let limited = WheelSpeeds::sides(600, -600);
    assert_eq!(sent, [Output::Drive(page, WHEELS, limited)]);
    let invalid = Said::Drive {
        left: f64::NAN,
        right: 0.0,
        guard: false,
    };
    assert!(told(&bench.say(page, &invalid), page).contains("invalid speeds"));
}

#[test]
fn a_target_ends_when_its_page_is_gone() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let sent = motions(bench.say(page, &goal(1.0, 2.0)));
    let ticket = Ticket {
        viewer: page,
        id: GOAL,
    };
    let set = Output::Goal(ticket, TARGETS, Target::new(1.0, 2.0));
    assert_eq!(sent, [set]);
    let cancelled = Output::EndErrand(page, TARGETS);
    assert_eq!(motions(bench.close(page)), [cancelled]);
}

#[test]
fn a_target_ends_when_its_page_falls_silent() {
    let mut bench = Bench::robot();
    let (page, other) = (bench.page(Role::Drive), bench.page(Role::Drive));
    bench.say(page, &goal(1.0, 2.0));
    bench.hub.handle_silence(bench.now(), other);
    assert_eq!(motions(bench.outputs()), []);
    bench.hub.handle_silence(bench.now(), page);
    let cancelled = Output::EndErrand(page, TARGETS);
    assert_eq!(motions(bench.outputs()), [cancelled]);
}

#[test]
fn the_stick_cancels_a_target() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let drive = Drive {
        targets: vec![Target::new(1.0, 2.0)],
        ..Drive::default()
    };
    bench.hub.handle_path(&Ok(drive));
    let sent = motions(bench.say(page, &AHEAD));
    assert_eq!(sent[0], Output::EndErrand(page, TARGETS));
    assert_eq!(sent[1], Output::Drive(page, WHEELS, GO));
}

#[test]
fn a_flood_is_ignored_but_never_a_stop() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let sent: Vec<_> = (0..500).flat_map(|_| bench.say(page, &AHEAD)).collect();
    let complaints = told(&sent, page).matches("too many messages").count();
    assert_eq!(complaints, 1);
    let sent = motions(bench.say(page, &Said::Stop));
    assert!(sent.contains(&Output::Drive(page, WHEELS, STOP)));
}

#[test]
fn devices_are_asked_only_while_a_page_is_open() {
    let mut bench = Bench::robot();
    let one = bench.hub.open(Role::Look, "a".into()).unwrap();
    assert!(bench.outputs().contains(&Output::Feed(true)));
    let other = bench.hub.open(Role::Look, "b".into()).unwrap();
    assert!(!bench.outputs().contains(&Output::Feed(true)));
    assert!(!bench.close(one).contains(&Output::Feed(false)));
    assert!(bench.close(other).contains(&Output::Feed(false)));
}

#[test]
fn a_page_that_comes_later_sees_what_is_known() {
    let mut bench = Bench::robot();
    bench.page(Role::Look);
    bench.hub.show(Subject::Map, Frame::Text("the map".into()));
    bench.hub.handle_event(Frame::Text("an event".into()));
    bench.outputs();
    let late = bench.hub.open(Role::Look, "b".into()).unwrap();
    let outputs = bench.outputs();
    assert!(told(&outputs, late).ends_with("an event"));
    let map = Output::Show(late, Subject::Map, Frame::Text("the map".into()));
    assert!(outputs.contains(&map));
}

#[test]
fn what_a_page_says_is_read() {
    for (text, said) in [
        (r#"{"t":"stop"}"#, Some(Said::Stop)),
        (
            r#"{"t":"drive","left":0,"right":0.0,"guard":false}"#,
            Some(CENTRE),
        ),
        (
            r#"{"t":"describe","id":1,"device":"dummy"}"#,
            Some(describe("dummy")),
        ),
        (r#"{"t":"hello"}"#, Some(Said::Hello { token: None })),
        (r#"{"t":"take_over"}"#, Some(Said::TakeOver)),
        (
            r#"{"t":"halt","halt":false}"#,
            Some(Said::Halt { halt: false }),
        ),
        (r#"{"t":"format"}"#, None),
        (
            r#"{"t":"drive","left":"fast","right":0,"guard":true}"#,
            None,
        ),
        ("", None),
    ] {
        assert_eq!(serde_json::from_str(text).ok(), said, "{text}");
    }
}

/// A message that was sent at this time of the page's clock.
fn say_at(bench: &mut Bench, id: ViewerId, at_ms: f64, said: &Said) -> Vec<Output> {
    bench.hub.sent_at(bench.now(), id, Some(at_ms));
    bench.say(id, said)
}

#[test]
fn motions_that_the_network_has_delayed_are_dropped_but_no_stop() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    // The clock of the page is another one.
    let hello = Said::Hello { token: None };
    say_at(&mut bench, page, 70_000.0, &hello);
    bench.now_ms += 3_500;
    let goal = goal(1.0, 1.0);
    for late_at in [70_000.0, 71_000.0, 72_990.0] {
        for motion in [&AHEAD, &goal] {
            let outputs = say_at(&mut bench, page, late_at, motion);
            assert_eq!(motions(outputs), [], "{late_at} {motion:?}");
        }
    }
    let call = Said::Call {
        id: 1,
        device: "maestro:0".into(),
        method: "set-angle".into(),
        args: Vec::new(),
    };
    let outputs = say_at(&mut bench, page, 71_000.0, &call);
    let is_refused = |output: &Output| matches!(output, Output::Call(.., Permission::OnlyRead(why)) if why.contains("delayed"));
    assert!(outputs.iter().any(is_refused), "{outputs:?}");
    let drive = Output::Drive(page, WHEELS, GO);
    let outputs = say_at(&mut bench, page, 73_100.0, &AHEAD);
    assert_eq!(motions(outputs), [drive], "0.4 s late");
    // A stop that comes late still stops.
    let outputs = say_at(&mut bench, page, 70_100.0, &Said::Stop);
    assert!(motions(outputs).contains(&Output::Drive(page, WHEELS, STOP)));
    say_at(&mut bench, page, 73_500.0, &CENTRE);
    bench.now_ms += 100;
    assert_eq!(motions(say_at(&mut bench, page, 73_600.0, &AHEAD)).len(), 1);
    bench.now_ms += 100;
    let outputs = say_at(&mut bench, page, 70_200.0, &CENTRE);
    assert_eq!(motions(outputs), [Output::Drive(page, WHEELS, STOP)]);
}

#[test]
fn the_last_place_is_for_a_page_that_may_drive() {
    let mut bench = Bench::robot();
    let open = |bench: &mut Bench, role| bench.hub.open(role, "127.0.0.1".into());
    let looking: Vec<_> = (0..MAX_VIEWERS)
        .map(|_| open(&mut bench, Role::Look))
        .collect();
    let placed = looking.iter().flatten().count();
    assert_eq!(placed, MAX_VIEWERS - FOR_DRIVING);
    assert!(open(&mut bench, Role::Drive).is_some());
    assert_eq!(open(&mut bench, Role::Drive), None);
    bench.close(looking[0].unwrap());
    assert_eq!(open(&mut bench, Role::Look), None);
    assert!(open(&mut bench, Role::Drive).is_some());
}

fn describe(device: &str) -> Said {
    Said::Describe {
        id: 1,
        device: device.into(),
    }
}

#[test]
fn view_only_pages_do_not_show_the_mediator() {
    let mut bench = Bench::robot();
    let (driving, looking) = (bench.page(Role::Drive), bench.page(Role::Look));
    let ticket = |viewer| Ticket { viewer, id: 1 };
    let dummy: Device = "dummy:0".parse().unwrap();
    let outputs = bench.say(looking, &describe("dummy:0"));
    assert_eq!(outputs, [Output::Describe(ticket(looking), dummy)]);
    // The mediator tells the command lines of all drivers.
    for mediator in ["mediator:0", "0:0"] {
        let call = Said::Call {
            id: 7,
            device: mediator.into(),
            method: "list-drivers".into(),
            args: Vec::new(),
        };
        for said in [describe(mediator), call] {
            let outputs = bench.say(looking, &said);
            assert!(
                told(&outputs, looking).contains("do not show the mediator"),
                "{said:?}"
            );
            let is_done = |it: &Output| matches!(it, Output::Call(..) | Output::Describe(..));
            assert!(!outputs.iter().any(is_done), "{said:?}");
        }
        let outputs = bench.say(driving, &describe(mediator));
        let described = Output::Describe(ticket(driving), Device::MEDIATOR);
        assert_eq!(outputs, [described]);
    }
}

#[test]
fn long_texts_of_pages_come_back_shortened() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let outputs = bench.say(page, &describe(&"ü".repeat(60_000)));
    let text = told(&outputs, page);
    assert!(
        text.contains("is not a device") || text.contains('…'),
        "{text}"
    );
    assert!(text.len() < 3 * MAX_NOTICE, "{}", text.len());
}
