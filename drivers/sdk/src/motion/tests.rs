//! Tests of lease, halt and expiry of devices.

use std::time::Duration;

use amber_proto::DeviceType;
use amber_proto::motion::lease_request::Action;
use amber_proto::motion::motion_report::News;
use amber_proto::motion::{HaltRequest, LeaseRequest};

use super::*;

const WHEELS: Option<Device> = None;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The motions of a process with their own clock.
struct Bench {
    motions: Motions,
    start: Instant,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            motions: Motions::default(),
            start: now,
            now,
        }
    }

    /// Lets time pass up to this time since the start, with all timeouts in between.
    fn at(&mut self, at_ms: u64) -> &mut Self {
        let end = self.start + ms(at_ms);
        while let Some(due) = self.motions.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.motions.timeout(self.now);
        }
        self.now = end;
        self
    }

    fn lease(&mut self, client: i32, action: Action, name: &str) -> MotionState {
        self.lease_for(client, None, action, name)
    }

    fn lease_for(
        &mut self,
        client: i32,
        for_client: Option<i32>,
        action: Action,
        name: &str,
    ) -> MotionState {
        let request = LeaseRequest {
            action: action.into(),
            name: Some(name.into()),
            period_ms: Some(1000),
        };
        let request = Request::Lease {
            request: &request,
            for_client: for_client.map(ClientId),
        };
        (self.motions).request(self.now, WHEELS, ClientId(client), request)
    }

    fn halt(&mut self, client: i32, halt: bool) -> MotionState {
        let name = Some("the operator".into());
        let request = HaltRequest { halt, name };
        let request = Request::Halt(&request);
        (self.motions).request(self.now, WHEELS, ClientId(client), request)
    }

    fn command(
        &mut self,
        client: i32,
        motion: Motion,
        valid_ms: Option<u64>,
    ) -> Result<(), String> {
        self.command_for(client, None, motion, valid_ms)
    }

    fn command_for(
        &mut self,
        client: i32,
        for_client: Option<i32>,
        motion: Motion,
        valid_ms: Option<u64>,
    ) -> Result<(), String> {
        let command = Command {
            motion,
            client: Some(ClientId(client)),
            for_client: for_client.map(ClientId),
            valid_until: valid_ms.map(|valid| self.now + ms(valid)),
        };
        let done = self.motions.command(self.now, WHEELS, command);
        done.map_err(|refusal| refusal.to_string())
    }

    /// The clients whose motion was stopped since the last call.
    fn stops(&mut self) -> Vec<Option<i32>> {
        let stops = std::iter::from_fn(|| self.motions.poll_stop());
        let stops = stops.filter(|(_, stop)| stop.cause.is_some());
        stops
            .map(|(_, stop)| stop.client.map(|client| client.0))
            .collect()
    }

    fn news(&mut self) -> Vec<(News, String)> {
        let now = self.now;
        let reports = std::iter::from_fn(|| self.motions.poll_report(now));
        let news = reports.map(|(_, report)| (report.news(), report.text().to_owned()));
        news.collect()
    }
}

#[test]
fn without_lease_and_validity_the_newest_command_wins_and_nothing_is_stopped() {
    let mut bench = Bench::new();
    for client in [7, 9, 7] {
        assert_eq!(bench.command(client, Motion::Moves, None), Ok(()));
    }
    assert_eq!(bench.command(9, Motion::Errand, None), Ok(()));
    assert_eq!(bench.motions.next_timeout(), None);
    bench.at(3_600_000);
    assert_eq!((bench.stops(), bench.news()), (vec![], vec![]));
}

#[test]
fn the_device_stops_when_the_last_command_is_no_longer_valid() {
    let mut bench = Bench::new();
    bench.command(7, Motion::Moves, Some(300)).unwrap();
    bench.at(200).command(7, Motion::Moves, Some(300)).unwrap();
    assert_eq!(bench.at(499).stops(), []);
    assert_eq!(bench.at(500).stops(), [Some(7)]);
    let text = "stopped: the last command of client 7 is no longer valid";
    assert_eq!(bench.news(), [(News::Stopped, text.to_owned())]);
    assert_eq!(bench.at(5000).stops(), [], "it is stopped once");

    bench.command(7, Motion::Moves, Some(300)).unwrap();
    bench.command(7, Motion::Stops, None).unwrap();
    assert_eq!(bench.at(6000).stops(), [], "it stands already");

    bench.command(7, Motion::Moves, Some(300)).unwrap();
    bench.command(9, Motion::Moves, None).unwrap();
    assert_eq!(
        bench.at(7000).stops(),
        [],
        "the newest command has no limit"
    );
}

#[test]
fn a_command_that_waited_too_long_moves_nothing() {
    let mut bench = Bench::new();
    let refused = bench.command(7, Motion::Moves, Some(0)).unwrap_err();
    assert_eq!(refused, "the command came too late: it is no longer valid");
    assert_eq!(bench.command(7, Motion::Stops, Some(0)), Ok(()));
    assert_eq!(bench.stops(), []);
    assert_eq!(bench.halt(1, false).too_late, Some(1));
}

#[test]
fn a_new_command_at_the_last_moment_is_not_stopped_by_the_end_of_the_old_one() {
    let mut bench = Bench::new();
    bench.command(7, Motion::Moves, Some(100)).unwrap();
    // The driver was busy, so no timeout came.
    bench.now += ms(150);
    bench.command(7, Motion::Moves, Some(100)).unwrap();
    assert_eq!(bench.stops(), []);
}

#[test]
fn while_a_client_holds_the_lease_only_it_moves_the_device_and_everybody_may_stop_it() {
    let mut bench = Bench::new();
    let taken = bench.lease(7, Action::Take, "amber goto");
    assert_eq!((taken.yours, taken.refused), (Some(true), None));
    assert_eq!(bench.command(7, Motion::Moves, None), Ok(()));
    let why = "amber goto holds the lease of this device";
    for _ in 0..3 {
        assert_eq!(bench.command(9, Motion::Moves, None).unwrap_err(), why);
    }
    let other = bench.lease(9, Action::Take, "a page");
    assert_eq!(
        (other.yours, other.refused.as_deref()),
        (Some(false), Some(why))
    );
    assert_eq!(other.holder.unwrap().name.as_deref(), Some("amber goto"));
    assert_eq!(other.refused_for_holder, Some(3));
    assert_eq!(bench.command(9, Motion::Stops, None), Ok(()));
    assert_eq!(bench.command(7, Motion::Errand, None), Ok(()));
    let news = bench.news();
    let refused = format!("refused a command of client 9: {why}");
    assert_eq!(news[0], (News::Lease, "amber goto holds the lease".into()));
    assert_eq!(news[1], (News::Refused, refused));
    assert_eq!(news.len(), 2, "one of several in a second: {news:?}");
}

#[test]
fn commands_keep_a_lease_and_its_end_stops_what_it_moved() {
    let mut bench = Bench::new();
    bench.lease(7, Action::Take, "a");
    bench.at(900).command(7, Motion::Moves, None).unwrap();
    bench.at(1800);
    assert_eq!(bench.lease(7, Action::Keep, "").refused, None);
    assert_eq!(bench.at(2799).stops(), []);
    assert_eq!(bench.at(2800).stops(), [Some(7)]);
    assert_eq!(bench.command(9, Motion::Moves, None), Ok(()));
    let kept = bench.lease(7, Action::Keep, "");
    assert_eq!(
        kept.refused.unwrap(),
        "nobody holds the lease of this device"
    );
    let ended = "a did not keep its lease; nobody holds it now";
    assert_eq!(
        bench.news().last().unwrap(),
        &(News::Lease, ended.to_owned())
    );
}

#[test]
fn a_lease_ends_when_its_client_releases_it_or_is_gone() {
    let mut bench = Bench::new();
    for gone in [false, true] {
        bench.lease(7, Action::Take, "a");
        bench.command(7, Motion::Errand, None).unwrap();
        match gone {
            false => drop(bench.lease(7, Action::Release, "")),
            true => bench.motions.client_gone(bench.now, ClientId(7)),
        }
        let stops: Vec<_> = std::iter::from_fn(|| bench.motions.poll_stop()).collect();
        assert_eq!(stops.len(), 1);
        assert_eq!(stops[0].1.client, Some(ClientId(7)));
        assert!(
            stops[0].1.outdated.contains(&ClientId(7)),
            "what waits must not move it"
        );
        assert_eq!(bench.command(9, Motion::Moves, None), Ok(()));
        bench.command(9, Motion::Stops, None).unwrap();
    }
}

#[test]
fn a_lease_stops_what_others_moved_before() {
    let mut bench = Bench::new();
    bench.command(9, Motion::Errand, None).unwrap();
    bench.lease(7, Action::Take, "a");
    assert_eq!(bench.stops(), [Some(9)]);
    bench.command(7, Motion::Errand, None).unwrap();
    bench.lease(7, Action::Release, "a");
    assert_eq!(bench.stops(), [Some(7)]);
    bench.command(7, Motion::Errand, None).unwrap();
    bench.lease(7, Action::Take, "a");
    assert_eq!(bench.stops(), [], "its own motion goes on");
}

#[test]
fn force_takes_the_lease_and_stops_the_old_holder() {
    let mut bench = Bench::new();
    bench.lease(7, Action::Take, "a");
    bench.command(7, Motion::Moves, None).unwrap();
    assert_eq!(bench.lease(9, Action::TakeByForce, "b").yours, Some(true));
    assert_eq!(bench.stops(), [Some(7)]);
    let why = "b holds the lease of this device";
    assert_eq!(bench.command(7, Motion::Moves, None).unwrap_err(), why);
    assert_eq!(bench.lease(7, Action::Keep, "a").refused.unwrap(), why);
    let forced = (News::Lease, "b took the lease from a by force".to_owned());
    assert!(bench.news().contains(&forced));
}

#[test]
fn clients_get_the_lease_in_turn_and_those_that_fall_silent_leave_the_list() {
    let mut bench = Bench::new();
    bench.lease(1, Action::Take, "one");
    for (client, name) in [(2, "two"), (3, "three"), (4, "four")] {
        let state = bench.lease(client, Action::Wait, name);
        assert_eq!((state.yours, state.refused), (Some(false), None));
    }
    bench.at(800);
    bench.lease(1, Action::Keep, "");
    for client in [2, 4] {
        bench.lease(client, Action::Wait, "still here");
    }
    bench.at(1500);
    let state = bench.lease(1, Action::Release, "");
    assert_eq!(state.holder.unwrap().client_id, 2);
    assert_eq!(state.waiting.len(), 1, "client 3 said nothing for a second");
    assert!(
        bench
            .lease(5, Action::Take, "five")
            .refused
            .unwrap()
            .contains("still here")
    );
    bench.motions.client_gone(bench.now, ClientId(2));
    assert_eq!(bench.lease(4, Action::Wait, "four").yours, Some(true));

    // Between two holders nobody overtakes the list.
    bench.lease(6, Action::Wait, "six");
    bench.lease(4, Action::Release, "");
    assert_eq!(bench.lease(7, Action::Take, "seven").yours, Some(false));
    assert_eq!(bench.lease(6, Action::Wait, "six").yours, Some(true));
}

#[test]
fn a_driver_and_its_client_share_a_lease() {
    let mut bench = Bench::new();
    let request = LeaseRequest {
        action: Action::Take.into(),
        name: Some("amber goto via drive-to-point:0".into()),
        period_ms: None,
    };
    let request = Request::Lease {
        request: &request,
        for_client: Some(ClientId(7)),
    };
    (bench.motions).request(bench.now, WHEELS, ClientId(50), request);
    assert_eq!(bench.command(50, Motion::Moves, None), Ok(()));
    assert_eq!(bench.command(7, Motion::Moves, None), Ok(()));
    assert!(bench.command(9, Motion::Moves, None).is_err());
    bench.lease(50, Action::Release, "");

    // The client has the lease itself, and the driver acts for it.
    bench.lease(7, Action::Take, "a");
    assert_eq!(bench.command_for(50, Some(7), Motion::Moves, None), Ok(()));
    assert!(bench.command_for(50, Some(9), Motion::Moves, None).is_err());
}

#[test]
fn a_halted_device_refuses_motion_until_the_release() {
    let mut bench = Bench::new();
    bench.command(7, Motion::Moves, None).unwrap();
    let halted = bench.halt(3, true);
    assert_eq!(halted.halt.unwrap().by.as_deref(), Some("the operator"));
    assert_eq!(bench.stops(), [Some(7)]);
    let why = "the device was halted by the operator";
    assert_eq!(bench.command(7, Motion::Moves, None).unwrap_err(), why);
    assert_eq!(bench.command(7, Motion::Stops, None), Ok(()));
    bench.halt(8, true);
    assert_eq!(bench.stops(), [Some(8)], "each halt stops");

    bench.lease(7, Action::Take, "a");
    assert_eq!(bench.command(7, Motion::Moves, None).unwrap_err(), why);
    let refused = bench.halt(9, false).refused.unwrap();
    assert_eq!(refused, "a holds the lease of this device");
    assert_eq!(bench.halt(7, false).halt, None);
    assert_eq!(bench.command(7, Motion::Moves, None), Ok(()));
    let kinds: Vec<_> = bench.news().into_iter().map(|(kind, _)| kind).collect();
    let expected = [News::Halted, News::Refused, News::Lease, News::HaltReleased];
    assert_eq!(kinds, expected);
}

fn lease_lost(how: &str, to: Option<i32>) -> StopCause {
    StopCause::LeaseLost {
        how: how.into(),
        to: to.map(ClientId),
    }
}

#[test]
fn a_stop_has_a_cause() {
    type Ends = fn(&mut Bench);
    let gone: Ends = |bench| bench.motions.client_gone(bench.now, ClientId(7));
    let table: [(bool, Ends, StopCause); 7] = [
        (
            false,
            |bench| {
                bench.at(300);
            },
            StopCause::Expired,
        ),
        (false, gone, StopCause::ClientGone),
        (true, gone, StopCause::ClientGone),
        (
            true,
            |bench| drop(bench.lease(7, Action::Release, "")),
            lease_lost("a released the lease", None),
        ),
        (
            true,
            |bench| drop(bench.lease(9, Action::TakeByForce, "b")),
            lease_lost("b took the lease from a by force", Some(9)),
        ),
        (
            false,
            |bench| drop(bench.lease(9, Action::Take, "b")),
            lease_lost("b holds the lease", Some(9)),
        ),
        (
            true,
            |bench| drop(bench.halt(3, true)),
            StopCause::Halted {
                by: "the operator".into(),
            },
        ),
    ];
    for (has_lease, ends, expected) in table {
        let mut bench = Bench::new();
        if has_lease {
            bench.lease(7, Action::Take, "a");
        }
        bench.command(7, Motion::Errand, Some(300)).unwrap();
        ends(&mut bench);
        let stops: Vec<_> = std::iter::from_fn(|| bench.motions.poll_stop()).collect();
        let causes: Vec<_> = stops.into_iter().filter_map(|(_, it)| it.cause).collect();
        assert_eq!(causes, [expected]);
    }
}

#[test]
fn a_halt_survives_the_restart_of_the_driver() {
    let halted = read_halts("roboclaw:0=the operator\nnonsense\n7:2=a = b");
    let two = Device::new(DeviceType::MAESTRO, 2);
    assert_eq!(halted[&two], "a = b");
    assert_eq!(halted.len(), 2);
    for device in [None, Some(two)] {
        let mut motions = Motions::new(halted.clone(), false);
        let command = Command {
            motion: Motion::Moves,
            client: Some(ClientId(7)),
            for_client: None,
            valid_until: None,
        };
        let now = Instant::now();
        let refused = motions.command(now, device, command).unwrap_err();
        let by = device.map_or("the operator", |_| "a = b").to_owned();
        assert_eq!(refused, Refusal::Halted { by });
        let other = Some(Device::new(DeviceType::MAESTRO, 3));
        assert_eq!(motions.command(now, other, command), Ok(()));
    }
}

#[test]
fn the_motion_of_a_client_that_is_gone_is_stopped_unless_the_driver_does_it() {
    for handles in [false, true] {
        let mut bench = Bench::new();
        bench.motions = Motions::new(BTreeMap::new(), handles);
        bench.command(7, Motion::Errand, None).unwrap();
        bench.motions.client_gone(bench.now, ClientId(9));
        assert_eq!(bench.stops(), []);
        bench.motions.client_gone(bench.now, ClientId(7));
        let expected = match handles {
            true => vec![],
            false => vec![Some(7)],
        };
        assert_eq!(bench.stops(), expected);
    }
}

#[test]
fn names_are_one_short_printable_line() {
    let mut bench = Bench::new();
    for (name, shown) in [
        ("", "client 7"),
        (" \t ", "client 7"),
        ("a\u{1b}[2J", "a\\x1b[2J"),
        ("two\nlines", "two\\nlines"),
    ] {
        let state = bench.lease(7, Action::Take, name);
        assert_eq!(
            state.holder.unwrap().name.as_deref(),
            Some(shown),
            "{name:?}"
        );
    }
    let state = bench.lease(7, Action::Take, &"\u{17c}".repeat(99));
    assert_eq!(state.holder.unwrap().name().len(), 100);
}

#[test]
fn the_waiting_list_is_bounded() {
    let mut bench = Bench::new();
    bench.lease(0, Action::Take, "");
    for client in 1..=16 {
        assert_eq!(bench.lease(client, Action::Wait, "").refused, None);
    }
    let state = bench.lease(17, Action::Wait, "");
    assert_eq!(state.refused.unwrap(), "16 clients wait already");
    assert_eq!(state.waiting.len(), 16);
}

#[test]
fn a_driver_that_cannot_move_says_why_to_all_who_ask() {
    let why = || Some("the wheels refuse: amber drive holds the lease of this device".to_owned());
    let mut bench = Bench::new();
    assert!(bench.lease(7, Action::Take, "amber goto").yours());
    bench.lease(8, Action::Wait, "a page");
    bench.command(7, Motion::Errand, None).unwrap();
    bench.motions.block(bench.now, WHEELS, why());
    assert_eq!(bench.stops(), [Some(7)]);
    for (client, action) in [(7, Action::Keep), (7, Action::Take), (8, Action::Wait)] {
        let state = bench.lease(client, action, "amber goto");
        assert_eq!((state.refused, state.holder), (why(), None), "{action:?}");
    }
    let refused = bench.command(9, Motion::Moves, None);
    assert_eq!(refused, Err(why().unwrap()));
    assert_eq!(bench.command(9, Motion::Stops, None), Ok(()));

    bench.motions.block(bench.now, WHEELS, None);
    assert!(bench.lease(8, Action::Take, "a page").yours());
    assert_eq!(bench.command(8, Motion::Moves, None), Ok(()));

    bench.motions.block(bench.now, WHEELS, why());
    assert!(bench.lease(7, Action::TakeByForce, "amber goto").yours());
    assert_eq!(bench.command(7, Motion::Moves, None), Ok(()));
}

#[test]
fn a_driver_of_the_holder_shares_its_lease() {
    const DRIVER: i32 = 30;
    let mut bench = Bench::new();
    assert!(bench.lease(7, Action::Take, "a page").yours());
    for action in [Action::Take, Action::Keep] {
        let state = bench.lease_for(DRIVER, Some(7), action, "a page via drive-to-point:0");
        assert!(state.yours(), "{action:?}: {state:?}");
        assert_eq!(state.holder.unwrap().name(), "a page");
    }
    // It ends its part, and the client still holds the lease.
    bench.lease_for(DRIVER, None, Action::Release, "");
    assert_eq!(bench.command(7, Motion::Moves, None), Ok(()));
    assert!(bench.command(9, Motion::Moves, None).is_err());

    // The other way round: the client takes over what its driver holds.
    bench.lease(7, Action::Release, "a page");
    let state = bench.lease_for(DRIVER, Some(7), Action::Take, "a page via drive-to-point:0");
    assert!(state.yours());
    assert!(bench.lease(7, Action::Take, "a page").yours());
    assert!((bench.lease_for(DRIVER, Some(7), Action::Keep, "")).yours());
    assert!(!bench.lease_for(DRIVER, Some(9), Action::Keep, "").yours());
}

#[test]
fn a_lease_gets_another_period_if_the_driver_itself_was_late() {
    let mut bench = Bench::new();
    bench.lease(7, Action::Take, "a page");
    assert!(bench.lease(8, Action::Wait, "amber goto").refused.is_none());
    // The driver did not run until 1.3 s, when both leases had ended at 1 s.
    bench.now = bench.start + ms(1300);
    bench.motions.timeout(bench.now);
    let state = bench.lease(7, Action::Keep, "a page");
    assert!(state.yours(), "{:?}", state.refused);
    assert_eq!(state.waiting.len(), 1);
    // Only once, until there is a sign of the client.
    bench.at(2299).lease(8, Action::Wait, "amber goto");
    bench.now = bench.start + ms(2500);
    bench.motions.timeout(bench.now);
    bench.now = bench.start + ms(3700);
    bench.motions.timeout(bench.now);
    assert!(!bench.lease(7, Action::Keep, "a page").yours());
}

#[test]
fn a_lease_ends_in_time_if_the_driver_was_not_late() {
    let mut bench = Bench::new();
    bench.lease(7, Action::Take, "a page");
    assert!(!bench.at(1001).lease(7, Action::Keep, "a page").yours());
}

#[test]
fn a_moment_in_which_the_driver_did_not_run_gives_time_also_before_the_end_of_the_lease() {
    let mut bench = Bench::new();
    bench.lease(7, Action::Take, "a page");
    // The whole machine stood from 0.1 s to 0.95 s, and what the client sends then takes its time.
    bench.at(100);
    bench.now = bench.start + ms(950);
    bench.motions.timeout(bench.now);
    assert!(bench.at(1100).lease(7, Action::Keep, "a page").yours());
}
