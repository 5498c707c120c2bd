use amber_proto::mediator::DriverState;

use super::*;
use crate::parts::tests::drivers;

/// A hub on a virtual clock.
struct Bench {
    hub: Hub,
    now_ms: u64,
}

impl Bench {
    /// A robot whose wheels somebody moves.
    fn held_by(holder: Option<&str>) -> Self {
        let up = DriverState::Up;
        let mut all = drivers(&[(2, 0, up), (9, 0, up), (8, 0, up)]);
        let wheels = all[0].devices[0];
        all[0].motions.push(amber_proto::mediator::DeviceMotion {
            device: wheels,
            holder: holder.map(str::to_owned),
            ..Default::default()
        });
        let mut hub = Hub::new("127.0.0.1:26233".into(), 600);
        hub.handle_drivers(Duration::ZERO, Ok(all));
        Self { hub, now_ms: 1_000 }
    }

    fn robot() -> Self {
        Self::held_by(None)
    }

    fn page(&mut self, role: Role) -> ViewerId {
        let id = self.hub.open(role, "127.0.0.1".into());
        self.outputs();
        id.unwrap()
    }

    fn say(&mut self, id: ViewerId, said: &Said) -> Vec<Output> {
        let now = Duration::from_millis(self.now_ms);
        self.hub.handle(now, id, said.clone());
        self.outputs()
    }

    fn close(&mut self, id: ViewerId) -> Vec<Output> {
        self.hub.close(id);
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.hub.take()).collect()
    }
}

/// The texts that a page is told.
fn told(outputs: &[Output], page: ViewerId) -> String {
    let lines = outputs.iter().filter_map(|output| match output {
        Output::Line(id, Frame::Text(text)) if *id == page => Some(text.as_str()),
        _ => None,
    });
    lines.collect()
}

fn stops(outputs: &[Output]) -> usize {
    let is_stop = |output: &&Output| matches!(output, Output::Stop(..));
    outputs.iter().filter(is_stop).count()
}

#[test]
fn a_stop_halts_the_robot_if_another_page_or_program_would_drive_on() {
    for (holder, halts) in [
        (None, false),
        (Some("amber goto via drive-to-point:0"), true),
        (Some("dashboard 10.0.0.9 page 1"), true),
        (
            Some("dashboard 127.0.0.1 page 2 via drive-to-point:0"),
            true,
        ),
        (
            Some("dashboard 127.0.0.1 page 1 via collision-avoidance:0"),
            false,
        ),
    ] {
        let mut bench = Bench::held_by(holder);
        let page = bench.page(Role::Drive);
        let outputs = bench.say(page, &Said::Stop);
        let stop = Stop {
            parts: bench.hub.parts(),
            halts,
            name: "dashboard 127.0.0.1 page 1".to_owned(),
        };
        assert_eq!(outputs, [Output::Stop(page, stop)], "{holder:?}");
    }
}

#[test]
fn a_page_that_may_only_look_stops_nothing() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Look);
    let outputs = bench.say(page, &Said::Stop);
    assert!(told(&outputs, page).contains("view-only"));
    assert_eq!(stops(&outputs), 0);
}

#[test]
fn a_flood_is_ignored_but_never_a_stop() {
    let mut bench = Bench::robot();
    let page = bench.page(Role::Drive);
    let flood = (0..500).flat_map(|_| bench.say(page, &describe("dummy:0")));
    let sent: Vec<_> = flood.collect();
    let complaints = told(&sent, page).matches("too many messages").count();
    assert_eq!(complaints, 1);
    for _ in 0..100 {
        assert_eq!(stops(&bench.say(page, &Said::Stop)), 1);
    }
    bench.now_ms += 1_000;
    let again = bench.say(page, &describe("dummy:0"));
    assert!(matches!(again[..], [Output::Describe(..)]), "{again:?}");
}

#[test]
fn pages_are_told_how_many_are_open() {
    let mut bench = Bench::robot();
    let one = bench.page(Role::Drive);
    let other = bench.hub.open(Role::Look, "b".into()).unwrap();
    let shown = |outputs: Vec<Output>, page, open: usize| {
        let frame = frames::text(&json!({ "t": "pages", "open": open }));
        outputs.contains(&Output::Show(page, Subject::Pages, frame))
    };
    assert!(shown(bench.outputs(), one, 2));
    assert!(shown(bench.close(other), one, 1));
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
    let token = Some("secret".to_owned());
    for (text, said) in [
        (r#"{"t":"stop"}"#, Some(Said::Stop)),
        (
            r#"{"t":"describe","id":1,"device":"dummy"}"#,
            Some(describe("dummy")),
        ),
        (r#"{"t":"hello"}"#, Some(Said::Hello { token: None })),
        (
            r#"{"t":"hello","token":"secret"}"#,
            Some(Said::Hello { token }),
        ),
        (r#"{"t":"describe","id":1}"#, None),
        (r#"{"t":"format"}"#, None),
        ("", None),
    ] {
        assert_eq!(serde_json::from_str(text).ok(), said, "{text}");
    }
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
    for mediator in ["mediator:0", "0:0"] {
        let outputs = bench.say(looking, &describe(mediator));
        assert!(told(&outputs, looking).contains("do not show the mediator"));
        assert!(!outputs.iter().any(|it| matches!(it, Output::Describe(..))));
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
