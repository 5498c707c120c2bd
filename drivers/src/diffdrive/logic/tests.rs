//! Tests of the rules with a simulated clock and the simulated board.

use amber_driver::ClientId;
use amber_sim::diffdrive::{self as sim, Diffdrive};
use amber_sim::wheels::{Drive, Reading as Measured};
use amber_values::WheelSpeeds;

use super::*;
use crate::diffdrive::Options;
use crate::wheels::testing::{ALICE, BOB, Heard, question};

const MS: Duration = Duration::from_millis(1);
const AHEAD: WheelSpeeds = WheelSpeeds::all(300);

/// What happens to the answers of the board.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cable {
    Well,
    Silent,
    /// The first byte has a wrong bit.
    Garbled,
    /// Something else comes first.
    Noisy,
}

/// The logic, a board, its wheels, and a clock.
struct Robot {
    logic: DiffdriveLogic,
    board: Diffdrive,
    pulses: [f64; 2],
    began: Instant,
    now: Instant,
    plugged: bool,
    cable: Cable,
    opened: usize,
    closed: usize,
    ended: bool,
    /// Without the line ends.
    sent: Vec<String>,
    heard: Heard,
}

impl Robot {
    /// A robot that is ready.
    fn new() -> Self {
        Self::with(sim::Firmware::Bridge, |_| {})
    }

    fn with(firmware: sim::Firmware, change: impl FnOnce(&mut Options)) -> Self {
        let mut robot = Self::starting(firmware, change);
        robot.advance(3_000);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        robot
    }

    /// A robot that was just switched on.
    fn starting(firmware: sim::Firmware, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options {
            counts_per_turn: Some(1_865.0),
            wheel_diameter_mm: Some(120.0),
            ..Options::default()
        };
        change(&mut options);
        let (settings, _) = options.settings().unwrap();
        let now = Instant::now();
        Self {
            logic: DiffdriveLogic::new(settings, now),
            board: Diffdrive::new(firmware, Duration::ZERO),
            pulses: [0.0; 2],
            began: now,
            now,
            plugged: true,
            cable: Cable::Well,
            opened: 0,
            closed: 0,
            ended: false,
            sent: Vec::new(),
            heard: Heard::default(),
        }
    }

    fn time(&self) -> Duration {
        self.now - self.began
    }

    /// Moves the wheels until then.
    fn pass(&mut self, until: Instant) {
        while self.now < until {
            for (pulses, drive) in self.pulses.iter_mut().zip(self.board.drives()) {
                if let Drive::Speed { qpps, .. } = drive {
                    *pulses += qpps * MS.as_secs_f64();
                }
            }
            self.now += MS;
            let [left, right] = self.pulses.map(|pulses| pulses.round() as i64);
            let reading = |pulses| Measured {
                pulses,
                ..Measured::default()
            };
            let time = self.time();
            (self.board).handle_readings(time, [left, right, left, right].map(reading));
        }
    }

    /// Carries out every action that needs no timer.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            let action = self.logic.poll_action(self.now);
            self.heard.listen(&mut self.logic);
            match action {
                None => return,
                Some(StreamAction::End) => {
                    self.ended = true;
                    return;
                }
                Some(StreamAction::Open) if self.plugged => {
                    self.opened += 1;
                    self.logic.opened(self.now);
                }
                Some(StreamAction::Open) => self.logic.failed(self.now, "it does not exist"),
                Some(StreamAction::Close) => self.closed += 1,
                Some(StreamAction::Write(bytes)) => self.write(&bytes),
            }
        }
        panic!("it never comes to rest");
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.sent
            .extend(text.split_terminator('\r').map(str::to_owned));
        if !self.plugged {
            return self.logic.failed(self.now, "it is gone");
        }
        if self.cable != Cable::Silent {
            self.board.handle_bytes(self.time(), bytes);
        }
        self.pass(self.now + 2 * MS);
        while let Some(answer) = self.board.poll_output() {
            match self.cable {
                Cable::Well => self.logic.handle_bytes(self.now, &answer),
                Cable::Silent => {}
                Cable::Garbled => {
                    let garbled = [&[answer[0] ^ 0x40], &answer[1..]].concat();
                    self.logic.handle_bytes(self.now, &garbled);
                }
                Cable::Noisy => {
                    self.logic.handle_bytes(self.now, b"\xFF\x00~\n");
                    self.logic.handle_bytes(self.now, &answer);
                }
            }
        }
    }

    /// Advances the clock from timer to timer.
    fn advance(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        self.settle();
        let mut turns = 0;
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= end) {
            turns += 1;
            assert!(turns < 10_000, "timers that do nothing");
            self.pass(due);
            self.logic.handle_timeout(self.now);
            self.settle();
        }
        self.pass(end);
    }

    /// Advances the clock until this is true.
    fn until(&mut self, is_true: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if is_true(self) {
                return;
            }
            self.advance(1);
        }
        panic!("it never comes true: {:?}", self.heard.notes);
    }

    fn drive(&mut self, client: ClientId, speeds: WheelSpeeds) -> Option<Refusal> {
        let refusal = self.logic.drive(self.now, &[client], speeds);
        self.settle();
        refusal
    }

    fn ask(&mut self) {
        self.logic.ask(self.now, question());
        self.settle();
    }

    fn turns(&self) -> bool {
        self.board.drives() != [Drive::RELEASED; 4]
    }

    /// The commands for the motors since the last call.
    fn motors(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().filter(|it| it.starts_with('m')).collect()
    }
}

#[test]
fn a_board_that_starts_is_waited_for_and_its_motors_are_stopped_first() {
    for (firmware, option, gains, expected) in [
        (
            sim::Firmware::Bridge,
            None,
            None,
            &["", "", "m 0 0", "e"][..],
        ),
        (
            sim::Firmware::Bridge,
            None,
            Some("20:12:0:50"),
            &["", "", "m 0 0", "u 20:12:0:50", "e"],
        ),
        (
            sim::Firmware::Andino,
            None,
            Some("20:12:0:50"),
            &["", "", "m 0 0", "u 20 12 0 50", "e"],
        ),
        (
            sim::Firmware::Bridge,
            Some(Firmware::Bridge),
            None,
            &["e", "", "m 0 0", "e"],
        ),
    ] {
        let mut robot = Robot::starting(firmware, |options| {
            options.firmware = option;
            options.gains = gains.map(|it| it.parse().unwrap());
        });
        robot.advance(1_600);
        assert!(!robot.logic.is_ready());
        assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
        robot.sent.clear();
        robot.until(|robot| robot.logic.is_ready());
        assert_eq!(robot.sent, expected, "{firmware:?} {option:?}");
        assert!(robot.time() < 2_000 * MS, "{:?}", robot.time());
        assert!(!robot.turns());
        let name = match firmware {
            sim::Firmware::Andino => "Andino",
            _ => "ros_arduino_bridge",
        };
        let ready = format!("ready: firmware of {name}, speeds in steps of 6.06 mm/s");
        assert_eq!(robot.heard.notes, [ready]);
    }
}

#[test]
fn commands_are_sent_at_once_and_repeated_until_the_idle_stop() {
    for (firmware, command) in [
        (sim::Firmware::Bridge, "m 49 -33"),
        (sim::Firmware::Andino, "m 1470 -990"),
    ] {
        let mut robot = Robot::with(firmware, |_| {});
        robot.motors();
        robot.drive(ALICE, WheelSpeeds::sides(300, -200));
        robot.advance(20);
        assert_eq!(robot.motors(), [command]);
        robot.advance(3_900);
        assert!(robot.turns(), "longer than the firmware itself allows");
        assert_eq!(robot.motors(), [command; 7]);
        robot.advance(200);
        assert!(!robot.turns());
        assert_eq!(robot.motors(), ["m 0 0"]);
        assert_eq!(
            robot.heard.notes[1..],
            ["stopped the wheels: no command has arrived"]
        );
        robot.advance(60_000);
        assert_eq!(robot.motors(), [""; 0], "a stop is not repeated");
    }
}

#[test]
fn without_the_driver_the_firmware_stops_the_wheels_or_not() {
    for (firmware, stops) in [
        (sim::Firmware::Bridge, true),
        (sim::Firmware::Andino, true),
        (sim::Firmware::BridgeWithoutStop, false),
    ] {
        let mut robot = Robot::with(firmware, |_| {});
        robot.drive(ALICE, AHEAD);
        robot.advance(1_700);
        // The driver does not run.
        robot.pass(robot.now + 2_000 * MS);
        assert_eq!(robot.turns(), !stops, "{firmware:?}");
        // It goes on, and does not drive on.
        robot.logic.handle_timeout(robot.now);
        robot.advance(500);
        assert!(!robot.turns(), "{firmware:?}");
        let why = "stopped the wheels: no command has reached the controllers for some time";
        assert!(
            robot.heard.notes.contains(&why.to_owned()),
            "{:?}",
            robot.heard.notes
        );
    }
}

#[test]
fn only_the_newest_waiting_command_is_sent_and_commands_leave_room_for_the_encoders() {
    let mut robot = Robot::new();
    robot.motors();
    for speed in 1..=20 {
        robot
            .logic
            .drive(robot.now, &[ALICE], WheelSpeeds::all(10 * speed));
    }
    robot.advance(20);
    assert_eq!(robot.motors(), ["m 33 33"]);
    robot.logic.set_listened(robot.now, true);
    for step in 0..1_000 {
        robot.drive(ALICE, WheelSpeeds::all(300 + step % 2 * 100));
        robot.advance(1);
    }
    assert!(
        robot.heard.published.len() >= 18,
        "{}",
        robot.heard.published.len()
    );
    assert!(robot.motors().len() > 200);
}

#[test]
fn speeds_are_measured_after_the_request_and_published() {
    let mut robot = Robot::new();
    robot.drive(ALICE, WheelSpeeds::sides(300, -200));
    robot.advance(300);
    robot.ask();
    robot.ask();
    assert_eq!(robot.heard.answers, []);
    robot.advance(60);
    // 49 and 33 counts per frame; a count in a tenth of a second is 2 mm/s.
    let is_right = |speeds: &WheelSpeeds| {
        let (left_mm_s, right_mm_s) = (speeds.front_left_mm_s, speeds.front_right_mm_s);
        assert_eq!(*speeds, WheelSpeeds::sides(left_mm_s, right_mm_s));
        (left_mm_s - 297).abs() <= 4 && (right_mm_s + 200).abs() <= 4
    };
    assert_eq!(robot.heard.answers.len(), 2);
    assert!(
        robot.heard.answers.iter().all(is_right),
        "{:?}",
        robot.heard.answers
    );
    assert_eq!(robot.heard.published, []);
    robot.logic.set_listened(robot.now, true);
    robot.advance(1_000);
    assert!(
        (19..=21).contains(&robot.heard.published.len()),
        "{:?}",
        robot.heard.published
    );
    for (speeds, age) in &robot.heard.published {
        assert!(is_right(speeds), "{speeds:?}");
        assert!((40..=60).contains(&age.as_millis()), "{age:?}");
    }
    // Odometry of ten seconds.
    robot.heard.published.clear();
    let (before, begin) = (robot.pulses[0], robot.now);
    for _ in 0..10 {
        robot.drive(ALICE, WheelSpeeds::sides(300, -200));
        robot.advance(1_000);
    }
    let sum_mm: i32 = (robot.heard.published.iter())
        .map(|(speeds, _)| speeds.front_left_mm_s)
        .sum();
    let count = robot.heard.published.len() as f64;
    let passed_s = (robot.now - begin).as_secs_f64();
    let counted_mm = f64::from(sum_mm) / count * passed_s;
    let moved_mm = (robot.pulses[0] - before) / 1_865.0 * std::f64::consts::PI * 120.0;
    assert!(
        (counted_mm / moved_mm - 1.0).abs() < 0.01,
        "{counted_mm} {moved_mm}"
    );
}

#[test]
fn the_rules_of_all_wheels_hold() {
    let mut robot = Robot::new();
    assert_eq!(
        robot.drive(ALICE, WheelSpeeds::all(-1_201)),
        Some(Refusal::TooFast {
            fastest_mm_s: 1_201,
            max_mm_s: 1_200
        })
    );
    assert!(!robot.turns());
    robot.drive(ALICE, AHEAD);
    robot.drive(BOB, AHEAD);
    robot.advance(20);
    robot.logic.client_died(ALICE);
    robot.advance(20);
    assert!(robot.turns(), "Bob has taken over");
    robot.logic.client_died(BOB);
    robot.advance(20);
    assert!(!robot.turns());
    let twisted = WheelSpeeds {
        rear_left_mm_s: 100,
        ..AHEAD
    };
    robot.motors();
    robot.drive(ALICE, twisted);
    robot.advance(20);
    robot.drive(ALICE, twisted);
    robot.advance(20);
    assert_eq!(robot.motors(), ["m 33 49"; 2]);
    let is_about = |note: &&String| note.contains("two speeds for one side");
    assert_eq!(robot.heard.notes.iter().filter(is_about).count(), 1);
}

#[test]
fn one_bad_answer_does_no_harm() {
    for cable in [Cable::Silent, Cable::Garbled, Cable::Noisy] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.logic.set_listened(robot.now, true);
        for _ in 0..10 {
            robot.cable = cable;
            let count = robot.sent.len();
            robot.until(|robot| robot.sent.len() > count);
            robot.cable = Cable::Well;
            robot.drive(ALICE, AHEAD);
            robot.advance(500);
        }
        assert_eq!((robot.opened, robot.closed), (1, 0), "{cable:?}");
        assert!(robot.turns());
        assert!(robot.logic.service.counters.bad_replies >= 5, "{cable:?}");
        for (speeds, _) in &robot.heard.published {
            assert!(
                (280..=315).contains(&speeds.front_left_mm_s),
                "{cable:?}: {speeds:?}"
            );
        }
        assert!(
            robot.heard.published.len() > 30,
            "{cable:?}: {}",
            robot.heard.published.len()
        );
    }
}

#[test]
fn a_board_that_is_gone_is_stopped_blindly_and_waits_for_a_new_command_when_it_is_back() {
    for (cable, problem) in [
        (Cable::Silent, "the board does not answer: check "),
        (
            Cable::Garbled,
            "the board sends answers that do not fit: check ",
        ),
    ] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.cable = cable;
        robot.sent.clear();
        robot.until(|robot| robot.closed > 0);
        assert_eq!(
            robot.sent[robot.sent.len() - 2..],
            ["", "m 0 0"],
            "{cable:?}"
        );
        let trouble = robot.logic.trouble().unwrap().into_owned();
        assert!(trouble.starts_with(problem), "{trouble}");
        for _ in 0..10 {
            assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
            robot.ask();
            robot.advance(100);
        }
        assert_eq!(robot.heard.answers, []);
        robot.cable = Cable::Well;
        robot.motors();
        robot.advance(6_000);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        let motors = robot.motors();
        assert!(
            !motors.is_empty() && motors.iter().all(|it| it == "m 0 0"),
            "{motors:?}"
        );
        assert!(
            robot
                .heard
                .notes
                .last()
                .unwrap()
                .contains("10 commands were dropped")
        );
        robot.drive(ALICE, AHEAD);
        robot.advance(10);
        assert!(robot.turns());
    }
}

#[test]
fn an_unplugged_board_stands_still_until_it_is_back_and_commanded_again() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(1_000);
    robot.plugged = false;
    robot.advance(5_000);
    let problem = robot.logic.trouble().unwrap().into_owned();
    assert_eq!(problem, "it does not exist");
    robot.plugged = true;
    robot.board = robot.board.restarted(robot.time());
    let back = robot.now;
    robot.until(|robot| robot.logic.is_ready());
    assert!(robot.now - back < 4_000 * MS, "{:?}", robot.now - back);
    robot.advance(1_000);
    assert!(!robot.turns());
    robot.drive(ALICE, AHEAD);
    robot.advance(10);
    assert!(robot.turns());
}

#[test]
fn a_board_that_restarts_by_itself_stands_still_until_it_is_commanded_again() {
    let mut robot = Robot::with(sim::Firmware::Bridge, |options| {
        // Patience enough for the start of the board: the port stays open.
        options.reply_timeout_ms = Some(1_000);
    });
    robot.drive(ALICE, AHEAD);
    robot.advance(3_000);
    robot.drive(ALICE, AHEAD);
    robot.advance(20);
    robot.board = robot.board.restarted(robot.time());
    robot.logic.set_listened(robot.now, true);
    robot.advance(3_500);
    assert_eq!((robot.opened, robot.closed), (1, 0));
    assert!(!robot.turns());
    let restarted = "the board has restarted: its counts began anew";
    let last = robot.heard.notes.last().unwrap();
    assert!(last.starts_with(restarted), "{:?}", robot.heard.notes);
    for (speeds, _) in &robot.heard.published {
        assert!((0..=300).contains(&speeds.front_left_mm_s), "{speeds:?}");
    }
}

#[test]
fn shutdown_stops_the_wheels_even_if_an_answer_is_lost() {
    for cable in [Cable::Well, Cable::Garbled, Cable::Silent] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(100);
        robot.motors();
        robot.cable = cable;
        robot.logic.shut_down();
        let begin = robot.now;
        robot.advance(300);
        robot.cable = Cable::Well;
        robot.until(|robot| robot.ended);
        assert!(!robot.turns(), "{cable:?}");
        assert!(
            robot.now - begin < 900 * MS,
            "{cable:?}: {:?}",
            robot.now - begin
        );
    }
}

#[test]
fn a_board_that_never_answers_is_explained() {
    for (cable, problem) in [
        (
            Cable::Silent,
            "the board does not answer at 57600 baud: check --baud (57600 or 115200), --port",
        ),
        (
            Cable::Garbled,
            "what arrives at 57600 baud is not from firmware like ros_arduino_bridge: check --baud",
        ),
    ] {
        let mut robot = Robot::starting(sim::Firmware::Bridge, |_| {});
        robot.cable = cable;
        robot.advance(4_900);
        assert_eq!(robot.logic.trouble(), None);
        robot.advance(20_000);
        let trouble = robot.logic.trouble().unwrap().into_owned();
        assert!(trouble.starts_with(problem), "{trouble}");
        assert!(robot.sent.iter().all(String::is_empty), "{:?}", robot.sent);
        assert_eq!(robot.heard.notes.len(), 1, "{:?}", robot.heard.notes);
        robot.cable = Cable::Well;
        robot.advance(7_500);
        assert!(robot.logic.is_ready());
    }
}
