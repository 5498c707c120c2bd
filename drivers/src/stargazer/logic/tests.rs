//! Tests of the rules with a simulated clock and robot.

use amber_driver::proto::SynNum;
use amber_map::{Map, MapPose};
use amber_sim::ceiling::Ceiling;
use amber_sim::robot::{self, Fault, RobotTwin};
use amber_sim::stargazer as sim;
use amber_sim::{Devices, roboclaw};

use super::*;
use crate::stargazer::Options;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const DEVICE: robot::Device = sim::DEVICE;

/// The logic, a robot and a clock.
struct Bench {
    logic: MarkerLogic,
    robot: RobotTwin,
    begin: Instant,
    now: Duration,
    is_open: bool,
    answers: Vec<Known>,
    published: Vec<(Duration, Fix)>,
    to_clients: Vec<(Duration, Vec<i32>, Fix)>,
    notes: Vec<Note>,
    ended: bool,
}

fn client(id: i32) -> Origin {
    Origin {
        clients: vec![ClientId(id)],
        syn: Some(SynNum(1)),
        ..Origin::default()
    }
}

impl Bench {
    /// In the middle of the hall, with a marker file.
    fn new(options: &str) -> Self {
        let map = Map::flat();
        let ceiling = Ceiling::over(&map);
        let markers = toml::from_str(&ceiling.file()).unwrap();
        let mut robot = RobotTwin::new(robot::Config {
            walls: map.walls,
            start: MapPose::new(3.0, 2.6, 0.0).into(),
            seed: 1,
            speed: 1.0,
            ceiling,
            devices: Devices::default(),
        })
        .unwrap();
        let device: &mut sim::Stargazer = robot.twin_mut().unwrap();
        // As sensitive to fast characters as a real device.
        device.set_min_pause(10 * MS);
        // The computed fixes are checked to the millimetre.
        device.set_noise(false);
        let options: Options = toml::from_str(options).unwrap();
        let (settings, _) = options.settings(markers).unwrap();
        let begin = Instant::now();
        Self {
            logic: MarkerLogic::new(settings, begin),
            robot,
            begin,
            now: Duration::ZERO,
            is_open: false,
            answers: Vec::new(),
            published: Vec::new(),
            to_clients: Vec::new(),
            notes: Vec::new(),
            ended: false,
        }
    }

    fn device(&self) -> &sim::Stargazer {
        self.robot.twin().unwrap()
    }

    fn instant(&self) -> Instant {
        self.begin + self.now
    }

    fn settle(&mut self) {
        loop {
            while let Some(bytes) = self.robot.poll_output(self.now, DEVICE) {
                if self.is_open {
                    self.logic.handle_bytes(self.instant(), &bytes);
                }
            }
            if self.is_open && !self.robot.is_plugged(DEVICE) {
                self.is_open = false;
                self.logic.failed(self.instant(), "unplugged");
            }
            let Some(output) = self.logic.poll_output() else {
                return;
            };
            match output {
                Output::Open if self.robot.is_plugged(DEVICE) => {
                    self.is_open = true;
                    self.logic.opened(self.instant());
                }
                Output::Open => self.logic.failed(self.instant(), "unplugged"),
                Output::Close => self.is_open = false,
                Output::Write(byte) => self.robot.handle_bytes(self.now, DEVICE, &[byte]),
                Output::Answer(origin, known) => {
                    assert!(origin.syn.is_some());
                    self.answers.push(known);
                }
                Output::PublishTo(origin, fix) => {
                    let clients = origin.clients.iter().map(|client| client.0).collect();
                    self.to_clients.push((self.now, clients, fix));
                }
                Output::Publish(fix) => self.published.push((self.now, fix)),
                Output::Say(note) => self.notes.push(note),
                Output::End => self.ended = true,
            }
        }
    }

    /// Advances the clock from timer to timer.
    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        loop {
            let ours = self.logic.wake_at().map(|at| at - self.begin);
            let theirs = self.robot.next_timeout(self.now);
            let due = [ours, theirs].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            self.robot.advance(self.now);
            self.settle();
            self.logic.handle_timeout(self.instant());
            self.settle();
        }
        self.now = end;
        self.robot.advance(end);
    }

    fn ask(&mut self) -> Option<Known> {
        self.logic.ask(self.instant(), client(1));
        self.settle();
        self.answers.pop()
    }

    fn drive(&mut self, left_qpps: i32, right_qpps: i32) {
        for address in [0x81, 0x80] {
            let (right, left) = (right_qpps.to_be_bytes(), left_qpps.to_be_bytes());
            let mut packet = [&[address, 37], right.as_slice(), &left].concat();
            packet.extend(roboclaw::crc16(&packet).to_be_bytes());
            let wheels = roboclaw::DEVICE;
            self.robot.handle_bytes(self.now, wheels, &packet);
            while self.robot.poll_output(self.now, wheels).is_some() {}
        }
    }

    /// Moves the robot to a place on the map.
    fn place(&mut self, x_m: f64, y_m: f64) {
        self.robot
            .place(MapPose::new(x_m, y_m, 0.0).into())
            .unwrap();
    }

    fn begin_fault(&mut self, fault: Fault) {
        self.robot.begin(self.now, fault, None);
        self.settle();
    }
}

/// The distance between a fix and the true position, in mm and degrees.
#[track_caller]
fn error(bench: &Bench, time: Duration, fix: &Fix) -> (f64, f64) {
    let MapPose {
        x_m,
        y_m,
        heading_rad,
        ..
    } = bench.robot.world().pose_at(time).into();
    let MarkerPose {
        x_cm,
        y_cm,
        heading_deg,
        ..
    } = fix.pose;
    let way_mm = (x_cm * 10.0 - x_m * 1000.0).hypot(y_cm * 10.0 - y_m * 1000.0);
    let turn_deg = (heading_deg - heading_rad.to_degrees() + 540.0).rem_euclid(360.0) - 180.0;
    (way_mm, turn_deg.abs())
}

#[test]
fn fixes_follow_the_robot_during_a_drive() {
    let mut bench = Bench::new("");
    let mut markers = BTreeSet::new();
    // Through the hall, with several turns.
    for (left, right, turns) in [
        (2000, 2000, 120),
        (600, -600, 40),
        (-700, -1000, 40),
        (-900, 900, 80),
        (1000, 1000, 20),
    ] {
        bench.drive(left, right);
        for _ in 0..turns {
            bench.advance(50 * MS);
            for (time, fix) in std::mem::take(&mut bench.published) {
                let (way_mm, turn_deg) = error(&bench, time, &fix);
                assert!(way_mm <= 20.0 && turn_deg <= 1.0, "{way_mm} {turn_deg}");
                markers.insert(fix.pose.marker);
            }
        }
    }
    assert!(markers.len() > 1, "{markers:?}");
    assert!(bench.robot.world().travelled_m() > 2.5);
    let counters = bench.logic.counters();
    assert!(counters.fixes > 100, "{counters:?}");
    assert_eq!((counters.implausible, counters.strangers), (0, 0));
    assert_eq!(bench.notes[..2], [Note::InView(true), Note::Ready(None)]);
}

#[test]
fn in_a_dead_zone_nothing_is_published_and_replies_hold_the_last_fix() {
    let mut bench = Bench::new("");
    assert_eq!(bench.ask(), Some(Known::Nothing));
    bench
        .logic
        .subscribe(bench.instant(), &client(2), Rate::Period(100 * MS));
    bench.advance(SECOND);
    assert!(matches!(bench.ask(), Some(Known::Fresh(_))));
    bench.place(0.4, 2.9);
    bench.advance(200 * MS);
    let (before, after) = (bench.published.len(), bench.to_clients.len());
    bench.advance(3 * SECOND);
    assert_eq!(
        (bench.published.len(), bench.to_clients.len()),
        (before, after)
    );
    match bench.ask() {
        Some(Known::Old(fix, age)) => {
            assert!((3 * SECOND..4 * SECOND).contains(&age), "{age:?}");
            assert!((fix.pose.x_cm - 300.0).abs() < 2.0);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.notes.last(), Some(&Note::InView(false)));

    bench.place(3.5, 2.6);
    bench.advance(300 * MS);
    assert!(matches!(bench.ask(), Some(Known::Fresh(_))));
    assert!(bench.published.len() > before && bench.to_clients.len() > after);
}

#[test]
fn each_client_gets_fixes_at_its_own_rate() {
    let mut bench = Bench::new("");
    bench.advance(SECOND);
    let now = bench.instant();
    bench.logic.subscribe(now, &client(2), Rate::EachFix);
    bench.logic.subscribe(now, &client(3), Rate::EachFix);
    bench
        .logic
        .subscribe(now, &client(3), Rate::Period(500 * MS));
    let heard = |bench: &mut Bench, time| {
        bench.advance(time);
        let heard = std::mem::take(&mut bench.to_clients);
        let mut clients: Vec<_> = heard
            .into_iter()
            .flat_map(|(_, clients, _)| clients)
            .collect();
        clients.sort_unstable();
        [2, 3].map(|id| clients.iter().filter(|client| **client == id).count())
    };
    assert_eq!(heard(&mut bench, SECOND), [10, 12]);
    // The two kinds are independent.
    bench.logic.unsubscribe(&client(3), Rate::EachFix);
    assert_eq!(heard(&mut bench, SECOND), [10, 2]);
    bench.logic.unsubscribe(&client(3), Rate::Period(MS));
    bench.logic.client_died(ClientId(2));
    assert_eq!(heard(&mut bench, SECOND), [0, 0]);
    bench
        .logic
        .subscribe(bench.instant(), &client(3), Rate::Period(200 * MS));
    bench.logic.client_died(ClientId(3));
    assert_eq!(heard(&mut bench, SECOND), [0, 0]);
}

#[test]
fn a_stopped_device_is_started() {
    let mut bench = Bench::new("");
    for byte in b"~#CalcStop`" {
        bench.robot.handle_bytes(bench.now, DEVICE, &[*byte]);
        bench.now += 20 * MS;
    }
    assert!(!bench.device().is_running());
    bench.advance(5 * SECOND);
    assert!(bench.device().is_running());
    assert!(
        bench.notes.contains(&Note::Ready(None)),
        "{:?}",
        bench.notes
    );
    assert!(bench.published.len() > 10);
}

#[test]
fn parameters_are_set_before_anything_else() {
    let mut bench = Bench::new("set = [\"IDNum=9\", \"MarkType=HLD1S\", \"ThrVal=220\"]");
    bench.advance(15 * SECOND);
    for (name, value) in [("IDNum", "9"), ("MarkType", "HLD1S"), ("ThrVal", "220")] {
        assert_eq!(bench.device().parameter(name), Some(value));
    }
    let written = Note::Written("IDNum, ThrVal".into());
    let ready = Note::Ready(Some("02.0904.16".into()));
    let at = |note| bench.notes.iter().position(|other| *other == note);
    assert!(
        at(written).unwrap() < at(ready).unwrap(),
        "{:?}",
        bench.notes
    );
    assert!(matches!(bench.ask(), Some(Known::Fresh(_))));

    // The device stores parameters, so nothing is written the next time.
    bench.begin_fault(Fault::Unplug(DEVICE));
    bench.robot.clear();
    bench.notes.clear();
    bench.advance(15 * SECOND);
    let is_back = |note: &Note| matches!(note, Note::Back(_));
    assert!(bench.notes.iter().any(is_back), "{:?}", bench.notes);
    assert!(
        !bench
            .notes
            .iter()
            .any(|note| matches!(note, Note::Written(_)))
    );
}

#[test]
fn a_device_that_accepts_no_parameters_is_reported() {
    let mut bench = Bench::new("set = [\"IDNum=9\"]");
    bench.begin_fault(Fault::Stall(DEVICE));
    bench.advance(10 * SECOND);
    let trouble = "the StarGazer does not answer CalcStop";
    assert_eq!(bench.logic.trouble(), Some(trouble));
    assert_eq!(bench.notes, [Note::Trouble(trouble.into())]);
    bench.robot.clear();
    bench.advance(20 * SECOND);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn there_are_no_replies_while_the_device_is_unplugged_or_silent() {
    let mut bench = Bench::new("");
    bench.advance(SECOND);
    for (fault, trouble) in [
        (Fault::Unplug(DEVICE), "unplugged"),
        (Fault::Stall(DEVICE), "the StarGazer is silent"),
    ] {
        bench.begin_fault(fault);
        bench.advance(3 * SECOND);
        assert_eq!(bench.logic.trouble(), Some(trouble));
        let before = bench.published.len();
        bench.advance(20 * SECOND);
        assert_eq!((bench.ask(), bench.published.len()), (None, before));
        bench.robot.clear();
        bench.advance(5 * SECOND);
        assert_eq!(bench.logic.trouble(), None);
        assert!(matches!(bench.ask(), Some(Known::Fresh(_))));
        assert!(matches!(bench.notes.last(), Some(Note::Back(_))));
    }
}

#[test]
fn flipped_bits_give_no_wrong_positions() {
    let mut bench = Bench::new("");
    bench.advance(SECOND);
    bench.begin_fault(Fault::Corrupt(DEVICE));
    bench.drive(400, 900);
    let mut worst_mm = 0.0_f64;
    for _ in 0..300 {
        bench.advance(100 * MS);
        for (time, fix) in std::mem::take(&mut bench.published) {
            worst_mm = worst_mm.max(error(&bench, time, &fix).0);
        }
    }
    let counters = bench.logic.counters();
    assert!(
        bench.logic.spoilt() > 10 && counters.implausible > 0,
        "{counters:?}"
    );
    assert!(counters.fixes > 150, "{counters:?}");
    // A wrong digit within the robot's range of motion cannot be detected.
    assert!(worst_mm < 600.0, "{worst_mm}");
}

#[test]
fn invalid_data_is_reported() {
    let mut bench = Bench::new("");
    bench.advance(SECOND);
    bench.begin_fault(Fault::Stall(DEVICE));
    for _ in 0..30 {
        bench.logic.handle_bytes(bench.instant(), b"garbage");
        bench.advance(100 * MS);
    }
    let trouble = "the StarGazer sends only invalid data";
    assert_eq!(bench.logic.trouble(), Some(trouble));
}

#[test]
fn an_unknown_marker_is_logged_once_and_gives_no_fix() {
    let mut bench = Bench::new("");
    bench.begin_fault(Fault::Stall(DEVICE));
    let fix = b"~^I534|+175.16|-3.66|-33.58|200.33`";
    for _ in 0..5 {
        bench.logic.handle_bytes(bench.instant(), fix);
        bench.settle();
    }
    assert_eq!(bench.ask(), Some(Known::Nothing));
    assert_eq!(bench.notes, [Note::Stranger(534), Note::Ready(None)]);
    assert_eq!(bench.logic.counters().strangers, 5);
}

#[test]
fn it_ends_at_once_without_further_output() {
    let mut bench = Bench::new("");
    bench.advance(SECOND);
    bench.logic.shut_down();
    bench.settle();
    assert!(bench.ended && bench.logic.wake_at().is_none());
}

#[test]
fn the_number_of_subscribers_is_limited() {
    let mut bench = Bench::new("");
    for id in 0..2000 {
        bench
            .logic
            .subscribe(bench.instant(), &client(id), Rate::EachFix);
    }
    bench.settle();
    assert!(bench.notes.contains(&Note::TooMany));
    assert_eq!(bench.logic.each_fix[&None].len(), MAX_LISTENERS);
}
