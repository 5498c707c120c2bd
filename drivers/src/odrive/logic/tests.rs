//! Tests of the rules with a simulated clock and the simulated ODrive.

use amber_driver::ClientId;
use amber_sim::odrive::{Odrive, Variant};
use amber_sim::wheels::{Drive, PULSES_PER_TURN, Reading as Measured};
use amber_values::WheelSpeeds;

use super::*;
use crate::odrive::Options;
use crate::wheels::testing::{ALICE, BOB, Heard, question};

const MS: Duration = Duration::from_millis(1);
const AHEAD: WheelSpeeds = WheelSpeeds::all(300);

/// What happens to the answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cable {
    Well,
    Silent,
    /// A byte has a wrong bit.
    Garbled,
}

/// The logic, the ODrive, its wheels, and a clock.
struct Robot {
    logic: OdriveLogic,
    odrive: Odrive,
    turns_s: [f64; 2],
    turns: [f64; 2],
    began: Instant,
    now: Instant,
    plugged: bool,
    cable: Cable,
    closed: usize,
    ended: bool,
    /// Without sums and line ends.
    sent: Vec<String>,
    heard: Heard,
}

impl Robot {
    /// A robot that is ready.
    fn new() -> Self {
        let mut robot = Self::starting(Variant::Calibrated);
        robot.advance(500);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        robot
    }

    /// A robot that was just switched on.
    fn starting(variant: Variant) -> Self {
        let options = Options {
            wheel_diameter_mm: Some(120.0),
            ..Options::default()
        };
        let (settings, _) = options.settings().unwrap();
        let now = Instant::now();
        Self {
            logic: OdriveLogic::new(settings, now),
            odrive: Odrive::new(variant),
            turns_s: [0.0; 2],
            turns: [0.0; 2],
            began: now,
            now,
            plugged: true,
            cable: Cable::Well,
            closed: 0,
            ended: false,
            sent: Vec::new(),
            heard: Heard::default(),
        }
    }

    /// Moves the wheels until then: they follow a speed at once.
    fn pass(&mut self, until: Instant) {
        while self.now < until {
            self.now += MS;
            let wheels = self.turns_s.iter_mut().zip(&mut self.turns);
            for ((turns_s, turns), drive) in wheels.zip(self.odrive.drives()) {
                *turns_s = match drive {
                    Drive::Speed { qpps, .. } => qpps / PULSES_PER_TURN,
                    Drive::Duty(_) => 0.0,
                };
                *turns += *turns_s * MS.as_secs_f64();
            }
            let [left, right] = [0, 1].map(|side| Measured {
                speed_qpps: (self.turns_s[side] * PULSES_PER_TURN).round() as i32,
                pulses: (self.turns[side] * PULSES_PER_TURN) as i64,
                ..Measured::default()
            });
            let time = self.now - self.began;
            self.odrive
                .handle_readings(time, [left, right, left, right]);
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
                Some(StreamAction::Open) if self.plugged => self.logic.opened(self.now),
                Some(StreamAction::Open) => self.logic.failed(self.now, "it does not exist"),
                Some(StreamAction::Close) => self.closed += 1,
                Some(StreamAction::Write(bytes)) => self.write(&bytes),
            }
        }
        panic!("it never comes to rest");
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let lines = text
            .split_terminator('\n')
            .map(|line| line.split('*').next().unwrap());
        self.sent.extend(lines.map(str::to_owned));
        if !self.plugged {
            return self.logic.failed(self.now, "it is gone");
        }
        let time = self.now - self.began;
        if self.cable != Cable::Silent {
            self.odrive.handle_bytes(time, bytes);
        }
        let answers: Vec<_> = std::iter::from_fn(|| self.odrive.poll_output()).collect();
        self.pass(self.now + MS);
        for mut answer in answers {
            match self.cable {
                Cable::Silent => continue,
                Cable::Garbled => answer[0] ^= 0x40,
                Cable::Well => {}
            }
            self.logic.handle_bytes(self.now, &answer);
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

    /// Another program says this to the ODrive.
    fn say(&mut self, line: &str) {
        let time = self.now - self.began;
        self.odrive
            .handle_bytes(time, format!("{line}\n").as_bytes());
    }

    /// What the ODrive answers to another program.
    fn answer(&mut self) -> String {
        let answer = std::iter::from_fn(|| self.odrive.poll_output()).flatten();
        String::from_utf8(answer.collect()).unwrap()
    }

    /// Whether a motor is told to turn.
    fn turns(&self) -> bool {
        self.odrive.drives().iter().any(|drive| !drive.is_zero())
    }

    /// The commands for the motors since the last call.
    fn motors(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent).into_iter();
        sent.filter(|it| it.starts_with(['v', 'w'])).collect()
    }

    fn trouble(&self) -> String {
        self.logic.trouble().unwrap_or_default().into_owned()
    }
}

#[test]
fn it_is_stopped_and_watched_before_it_is_ready() {
    let mut robot = Robot::starting(Variant::Calibrated);
    assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
    robot.until(|robot| robot.logic.is_ready());
    assert!(robot.now - robot.began < 300 * MS);
    let expected = [
        "",
        "i",
        "",
        "v 0 0.0000",
        "v 1 0.0000",
        "w axis0.config.watchdog_timeout 0.5",
        "u 0",
        "w axis0.config.enable_watchdog 1",
        "w axis1.config.watchdog_timeout 0.5",
        "u 1",
        "w axis1.config.enable_watchdog 1",
        "sc",
        "f 0",
        "f 1",
        "r axis0.error",
        "r axis1.error",
        "r axis0.current_state",
        "r axis1.current_state",
        "r vbus_voltage",
    ];
    assert_eq!(robot.sent[..expected.len()], expected);
    assert_eq!(robot.heard.notes, ["ready: ODrive with firmware 0.5.6"]);
    let battery = robot.logic.battery(robot.now).unwrap();
    assert_eq!((battery.mv, battery.is_low), (12_600, false));
    // It is fed, and stays without errors.
    robot.advance(60_000);
    assert_eq!(robot.trouble(), "");
    assert_eq!(robot.heard.notes.len(), 1);
}

#[test]
fn commands_are_sent_at_once_and_repeated_until_the_idle_stop() {
    let mut robot = Robot::new();
    robot.motors();
    robot.drive(ALICE, WheelSpeeds::sides(300, -200));
    let motors = robot.motors();
    let expected = [
        "v 0 0.7958",
        "v 1 -0.5305",
        "w axis0.requested_state 8",
        "w axis1.requested_state 8",
    ];
    assert_eq!(motors, expected);
    robot.advance(3_900);
    assert!(robot.turns(), "longer than the watchdog allows");
    robot.ask();
    robot.advance(100);
    assert_eq!(robot.heard.answers, [WheelSpeeds::sides(300, -200)]);
    robot.advance(100);
    assert!(!robot.turns());
    assert_eq!(
        robot.heard.notes[1..],
        ["stopped the wheels: no command has arrived"]
    );
    robot.motors();
    robot.advance(2_000);
    assert!(robot.motors().iter().all(|it| it.ends_with(" 0.0000")));
    // Then the wheels can be turned by hand.
    robot.advance(2_000);
    let released = ["w axis0.requested_state 1", "w axis1.requested_state 1"];
    let motors = robot.motors();
    assert_eq!(motors[motors.len() - 2..], released);
    assert_eq!(robot.trouble(), "");
}

#[test]
fn without_the_driver_the_watchdog_releases_the_motors() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(1_700);
    // The driver does not run.
    robot.pass(robot.now + 600 * MS);
    assert!(!robot.turns());
    robot.logic.handle_timeout(robot.now);
    robot.advance(500);
    assert!(!robot.turns());
    let late = "stopped the wheels: no command has reached the controllers for some time";
    assert!(
        robot.heard.notes.contains(&late.to_owned()),
        "{:?}",
        robot.heard.notes
    );
    // The error is forgiven.
    let released = "axis 0 was released by its watchdog: no command has reached it for some time";
    assert!(
        robot.heard.notes.contains(&released.to_owned()),
        "{:?}",
        robot.heard.notes
    );
    assert_eq!(robot.trouble(), "");
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
}

#[test]
fn the_rules_of_all_wheels_hold() {
    let mut robot = Robot::new();
    let refusal = robot.drive(ALICE, WheelSpeeds::all(-1_201));
    assert!(matches!(refusal, Some(Refusal::TooFast { .. })));
    robot.drive(ALICE, AHEAD);
    robot.drive(BOB, AHEAD);
    robot.advance(20);
    robot.logic.client_died(ALICE);
    robot.advance(20);
    assert!(robot.turns(), "Bob has taken over");
    robot.logic.client_died(BOB);
    robot.advance(20);
    assert!(!robot.turns());
    robot.logic.set_listened(robot.now, true);
    for step in 0..500 {
        robot.drive(ALICE, WheelSpeeds::sides(300 + step % 2 * 100, 300));
        robot.advance(1);
    }
    assert!(
        robot.heard.published.len() > 8,
        "{}",
        robot.heard.published.len()
    );
    robot.drive(ALICE, WheelSpeeds::STOP);
    assert!(!robot.turns());
    let twisted = WheelSpeeds {
        rear_left_mm_s: 100,
        ..AHEAD
    };
    for _ in 0..2 {
        robot.advance(20);
        robot.motors();
        robot.drive(ALICE, twisted);
        assert_eq!(robot.motors(), ["v 0 0.5305", "v 1 0.7958"]);
    }
    let is_about = |note: &&String| note.contains("two speeds for one side");
    assert_eq!(robot.heard.notes.iter().filter(is_about).count(), 1);
}

#[test]
fn the_battery_is_told_and_published_once_a_second() {
    let mut robot = Robot::starting(Variant::Calibrated);
    let refused = robot.logic.battery(robot.now).unwrap_err();
    assert_eq!(refused, "the ODrive has not reported the battery");
    robot.advance(500);
    let mut count = 0;
    for _ in 0..35 {
        robot.advance(50);
        count += usize::from(robot.logic.battery_to_publish(robot.now).is_some());
    }
    assert_eq!(count, 2);
    robot.odrive.set_battery_v(Some(10.0));
    robot.advance(500);
    assert_eq!(robot.logic.battery(robot.now).unwrap().mv, 10_000);
    robot.cable = Cable::Silent;
    robot.advance(2_000);
    let refused = robot.logic.battery(robot.now).unwrap_err();
    assert!(refused.contains("does not answer"), "{refused}");
}

#[test]
fn an_error_of_one_axis_stops_both_until_it_is_cleared() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(200);
    robot.odrive.set_error(1, 0x40);
    robot.advance(100);
    let [left, right, ..] = robot.odrive.drives();
    assert!(left != Drive::RELEASED && left.is_zero(), "{left:?}");
    assert_eq!(right, Drive::RELEASED);
    assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Errors));
    let problem = "driving disabled: axis 1 has the error 0x40: `dump_errors(odrv0)`";
    assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
    robot.odrive.set_error(1, 0);
    robot.advance(200);
    assert_eq!(robot.trouble(), "");
    assert!(!robot.turns(), "an old command");
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
    // A motor that is not calibrated.
    let mut robot = Robot::starting(Variant::Uncalibrated);
    robot.advance(500);
    for _ in 0..20 {
        robot.drive(ALICE, AHEAD);
        robot.advance(100);
    }
    let problem = " does not control its motor: calibrate it";
    assert!(robot.trouble().contains(problem), "{}", robot.trouble());
    assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Errors));
    robot.advance(6_000);
    assert_eq!(robot.drive(ALICE, AHEAD), None);
}

#[test]
fn one_bad_answer_does_no_harm() {
    for cable in [Cable::Silent, Cable::Garbled] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.logic.set_listened(robot.now, true);
        for _ in 0..10 {
            robot.cable = cable;
            let count = robot.sent.len();
            robot.until(|robot| {
                robot.sent[count..]
                    .iter()
                    .any(|it| it.starts_with(['f', 'r']))
            });
            robot.cable = Cable::Well;
            robot.drive(ALICE, AHEAD);
            robot.advance(400);
        }
        assert_eq!(robot.closed, 0, "{cable:?}");
        assert!(robot.turns());
        assert!(robot.logic.service.counters.bad_replies >= 5);
        assert!(
            robot
                .heard
                .published
                .iter()
                .all(|(speeds, _)| *speeds == AHEAD)
        );
        assert!(
            robot.heard.published.len() > 30,
            "{}",
            robot.heard.published.len()
        );
    }
}

#[test]
fn an_odrive_that_is_gone_is_stopped_blindly_and_waits_for_a_new_command_when_it_is_back() {
    for (cable, problem) in [
        (Cable::Silent, "the ODrive does not answer: check "),
        (
            Cable::Garbled,
            "the ODrive sends answers that do not fit: check ",
        ),
    ] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.cable = cable;
        robot.sent.clear();
        robot.until(|robot| robot.closed > 0);
        let last = &robot.sent[robot.sent.len() - 3..];
        assert_eq!(last, ["", "v 0 0.0000", "v 1 0.0000"]);
        assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
        assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
        robot.cable = Cable::Well;
        robot.advance(4_000);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        assert!(!robot.turns());
        robot.drive(ALICE, AHEAD);
        assert!(robot.turns());
    }
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.plugged = false;
    robot.advance(5_000);
    assert_eq!(robot.trouble(), "it does not exist");
    assert!(!robot.turns());
    robot.plugged = true;
    robot.advance(3_000);
    assert_eq!(
        robot.trouble(),
        "",
        "the watchdog has expired meanwhile, and is forgiven"
    );
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
}

#[test]
fn the_end_stops_the_wheels_and_leaves_no_motor_controlled() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.motors();
    robot.logic.shut_down();
    robot.advance(10);
    assert!(robot.ended);
    assert_eq!(robot.motors(), ["v 0 0.0000", "v 1 0.0000"]);
    robot.pass(robot.now + 600 * MS);
    assert_eq!(robot.odrive.drives(), [Drive::RELEASED; 4]);
    // Nothing is left of a driver that has not driven for some time.
    let mut robot = Robot::new();
    robot.advance(3_500);
    robot.motors();
    robot.logic.shut_down();
    robot.advance(10);
    let expected = [0, 1].map(|axis| format!("w axis{axis}.config.enable_watchdog 0"));
    assert_eq!(robot.motors(), expected);
    robot.pass(robot.now + 600 * MS);
    robot.say("r axis0.error");
    assert_eq!(robot.answer(), "0\r\n");
}

#[test]
fn an_axis_that_somebody_else_releases_is_a_problem() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(1_500);
    robot.say("w axis1.requested_state 1");
    robot.advance(500);
    let problem = "driving disabled: axis 1 does not control its motor";
    assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
    assert!(!robot.turns());
    robot.advance(6_000);
    assert_eq!(robot.trouble(), "");
    robot.drive(ALICE, AHEAD);
    assert!(robot.odrive.drives().iter().all(|drive| !drive.is_zero()));
}

#[test]
fn what_is_no_odrive_is_explained_and_gets_no_command() {
    for (cable, problem) in [
        (
            Cable::Silent,
            "the ODrive does not answer at 115200 baud: check its supply",
        ),
        (
            Cable::Garbled,
            "what arrives at 115200 baud is not from an ODrive with the ASCII protocol",
        ),
    ] {
        let mut robot = Robot::starting(Variant::Calibrated);
        robot.cable = cable;
        robot.advance(10_000);
        assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
        assert!(robot.sent.iter().all(|it| it.is_empty() || it == "i"));
        assert_eq!(robot.heard.notes.len(), 1, "{:?}", robot.heard.notes);
        robot.cable = Cable::Well;
        robot.advance(6_000);
        assert!(robot.logic.is_ready());
    }
}
