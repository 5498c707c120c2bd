//! Tests of the rules with a simulated clock and the simulated robot.

use amber_sim::create2::{Around, Create2, Mode};
use amber_sim::wheels::{Drive, PULSES_PER_TURN, Reading, WHEEL_RADIUS_M};

use super::*;
use crate::create2::Options;
use crate::wheels::testing::{ALICE, Heard, question};

const MS: Duration = Duration::from_millis(1);
const AHEAD: WheelSpeeds = WheelSpeeds::all(300);
const BACK: WheelSpeeds = WheelSpeeds::all(-100);
const TURN: WheelSpeeds = WheelSpeeds::sides(-200, 200);

const FREE: Around = Around {
    bumps: [false; 2],
    is_lifted: false,
    has_cliff: false,
    has_charger: false,
    is_docked: false,
};
const LIFTED: Around = Around {
    is_lifted: true,
    ..FREE
};
const DOCKED: Around = Around {
    is_docked: true,
    ..FREE
};
const CLIFF: Around = Around {
    has_cliff: true,
    ..FREE
};
const BUMPED: Around = Around {
    bumps: [true, false],
    ..FREE
};

/// What happens to the frames.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cable {
    Well,
    Silent,
    /// Each frame has a wrong bit.
    Garbled,
    /// Every fourth frame has a wrong bit.
    Noisy,
}

/// The logic, a robot, its wheels, and a clock.
struct Robot {
    logic: Create2Logic,
    create: Create2,
    pulses: [f64; 2],
    began: Instant,
    now: Instant,
    plugged: bool,
    cable: Cable,
    frames: usize,
    opened: usize,
    ended: bool,
    /// With their times.
    sent: Vec<(Instant, Vec<u8>)>,
    heard: Heard,
}

impl Robot {
    /// A robot that is ready and in safe mode.
    fn new() -> Self {
        let mut robot = Self::starting(FREE);
        robot.until(|robot| robot.create.mode() == Mode::Safe);
        robot.advance(100);
        robot
    }

    /// A robot that was just switched on.
    fn starting(around: Around) -> Self {
        let (settings, _) = Options::default().settings().unwrap();
        let now = Instant::now();
        let mut create = Create2::default();
        create.handle_around(around);
        Self {
            logic: Create2Logic::new(settings, now),
            create,
            pulses: [0.0; 2],
            began: now,
            now,
            plugged: true,
            cable: Cable::Well,
            frames: 0,
            opened: 0,
            ended: false,
            sent: Vec::new(),
            heard: Heard::default(),
        }
    }

    fn time(&self) -> Duration {
        self.now - self.began
    }

    /// Moves the wheels for a millisecond, and passes on what the robot sends.
    fn pass(&mut self) {
        for (pulses, drive) in self.pulses.iter_mut().zip(self.create.drives()) {
            if let Drive::Speed { qpps, .. } = drive {
                *pulses += qpps * MS.as_secs_f64();
            }
        }
        self.now += MS;
        let [left, right] = self.pulses.map(|pulses| pulses.floor() as i64);
        let reading = |pulses| Reading {
            pulses,
            ..Reading::default()
        };
        let time = self.time();
        (self.create).handle_readings(time, [left, right, left, right].map(reading));
        while let Some(mut bytes) = self.create.poll_output() {
            self.frames += 1;
            let is_wrong = match self.cable {
                Cable::Well | Cable::Silent => false,
                Cable::Garbled => true,
                Cable::Noisy => self.frames.is_multiple_of(4),
            };
            if is_wrong {
                bytes[5] ^= 8;
            }
            if self.plugged && self.cable != Cable::Silent {
                self.logic.handle_bytes(self.now, &bytes);
                self.settle();
            }
        }
    }

    /// Carries out every action that needs no timer.
    fn settle(&mut self) {
        for _ in 0..100 {
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
                Some(StreamAction::Close) => {}
                Some(StreamAction::Write(_)) if !self.plugged => {
                    self.logic.failed(self.now, "it is gone");
                }
                Some(StreamAction::Write(bytes)) => {
                    let time = self.time();
                    self.create.handle_bytes(time, &bytes);
                    self.sent.push((self.now, bytes));
                }
            }
        }
        panic!("it never comes to rest");
    }

    /// Advances the clock, and handles timers when they are due.
    fn advance(&mut self, millis: u64) {
        self.settle();
        for _ in 0..millis {
            self.pass();
            if self.logic.wake_at().is_some_and(|due| due <= self.now) {
                self.logic.handle_timeout(self.now);
                self.settle();
            }
        }
    }

    /// Advances the clock until this is true.
    #[track_caller]
    fn until(&mut self, is_true: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if is_true(self) {
                return;
            }
            self.advance(1);
        }
        panic!("it never comes true: {:?}", self.heard.notes);
    }

    fn drive(&mut self, speeds: WheelSpeeds) -> Option<String> {
        let refusal = self.logic.drive(self.now, &[ALICE], speeds);
        self.settle();
        refusal.map(|refusal| refusal.to_string())
    }

    fn turns(&self) -> bool {
        let still = |drive: &Drive| drive.is_zero();
        !self.create.drives().iter().all(still)
    }

    /// The commands since the last call.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn sense(&mut self, around: Around) {
        self.create.handle_around(around);
    }

    /// Waits for the end of something that was sensed.
    fn forget(&mut self) {
        self.sense(FREE);
        self.until(|robot| robot.logic.hindrance().is_none());
    }

    /// The speeds that it was sent last, of the left and the right wheel.
    fn speeds(&mut self) -> Option<[i16; 2]> {
        let last = self.sent().pop()?;
        let number = |at: usize| i16::from_be_bytes([last[at], last[at + 1]]);
        (last[0] == 145).then(|| [number(3), number(1)])
    }
}

#[test]
fn a_robot_is_started_and_taken_into_safe_mode_with_pauses_between_the_commands() {
    let mut robot = Robot::starting(FREE);
    assert_eq!(
        robot.drive(AHEAD).as_deref(),
        Some("the controllers are unreachable")
    );
    robot.advance(300);
    assert!(robot.logic.is_ready());
    let times: Vec<_> = robot.sent.iter().map(|(at, _)| *at).collect();
    let mut pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(pauses.all(|pause| pause >= GAP));
    let stream = Command::Stream(PACKETS).encode();
    let expected = [
        Command::Start.encode(),
        stream,
        Command::Safe.encode(),
        Command::STAND.encode(),
    ];
    assert_eq!(robot.sent(), expected);
    assert_eq!(robot.create.mode(), Mode::Safe);
    assert_eq!(
        robot.heard.notes,
        ["ready: Create 2 or Roomba, battery 15.1 V"]
    );
}

#[test]
fn commands_are_sent_at_once_and_repeated_until_the_idle_stop() {
    let mut robot = Robot::new();
    robot.sent();
    robot.drive(WheelSpeeds::sides(300, -200));
    robot.advance(20);
    assert_eq!(robot.speeds(), Some([300, -200]));
    robot.advance(3_900);
    let sent = robot.sent();
    let same = Command::Drive {
        left: 300,
        right: -200,
    };
    assert!((15..=16).contains(&sent.len()), "{}", sent.len());
    assert!(sent.iter().all(|it| *it == same.encode()));
    assert!(robot.turns());
    robot.advance(150);
    assert!(!robot.turns());
    assert_eq!(robot.speeds(), Some([0, 0]));
    assert_eq!(
        robot.heard.notes[1..],
        ["stopped the wheels: no command has arrived"]
    );
}

#[test]
fn only_the_newest_waiting_command_is_sent() {
    let mut robot = Robot::new();
    robot.sent();
    for speed in 1..=20 {
        robot
            .logic
            .drive(robot.now, &[ALICE], WheelSpeeds::all(10 * speed));
    }
    robot.advance(20);
    assert_eq!(robot.sent().len(), 1);
    for step in 0..1_000 {
        robot.drive(WheelSpeeds::all(300 + step % 2 * 100));
        robot.advance(1);
    }
    assert!((48..=51).contains(&robot.sent().len()));
    let fast = robot.drive(WheelSpeeds::all(501));
    assert_eq!(fast.unwrap(), "501 mm/s is more than max_speed_mm_s = 500");
}

#[test]
fn speeds_are_measured_and_published() {
    let mut robot = Robot::new();
    robot.drive(WheelSpeeds::sides(300, -200));
    robot.advance(300);
    robot.logic.ask(robot.now, question());
    robot.logic.ask(robot.now, question());
    assert_eq!(robot.heard.answers, []);
    robot.advance(31);
    let is_right = |speeds: &WheelSpeeds| {
        let (left_mm_s, right_mm_s) = (speeds.front_left_mm_s, speeds.front_right_mm_s);
        assert_eq!(*speeds, WheelSpeeds::sides(left_mm_s, right_mm_s));
        (left_mm_s - 300).abs() <= 6 && (right_mm_s + 200).abs() <= 6
    };
    assert_eq!(robot.heard.answers.len(), 2);
    assert!(
        robot.heard.answers.iter().all(is_right),
        "{:?}",
        robot.heard.answers
    );
    // Odometry of ten seconds, in which the counts wrap.
    robot.logic.set_listened(robot.now, true);
    let before = robot.pulses;
    for _ in 0..10 {
        robot.drive(WheelSpeeds::sides(300, -200));
        robot.advance(1_000);
    }
    assert!((195..=201).contains(&robot.heard.published.len()));
    let mut told_mm = 0.0;
    for (speeds, age) in &robot.heard.published {
        assert!(is_right(speeds), "{speeds:?}");
        assert!((40..=80).contains(&age.as_millis()), "{age:?}");
        told_mm += f64::from(speeds.front_left_mm_s) * 10.0 / robot.heard.published.len() as f64;
    }
    let turns = (robot.pulses[0] - before[0]) / PULSES_PER_TURN;
    let moved_mm = turns * std::f64::consts::TAU * WHEEL_RADIUS_M * 1_000.0;
    assert!(
        (told_mm / moved_mm - 1.0).abs() < 0.01,
        "{told_mm} {moved_mm}"
    );
}

#[test]
fn a_wheel_in_the_air_or_a_charger_stops_the_robot_until_it_is_gone_and_a_command_comes() {
    for (around, text) in [
        (LIFTED, "a wheel hangs in the air"),
        (DOCKED, "the robot stands on its dock"),
        (
            Around {
                has_charger: true,
                ..FREE
            },
            "a charger is plugged into the robot",
        ),
    ] {
        let mut robot = Robot::new();
        robot.drive(AHEAD);
        robot.advance(500);
        robot.sense(around);
        robot.advance(50);
        assert_eq!(robot.create.mode(), Mode::Passive);
        let hindrance = robot.logic.hindrance().unwrap();
        assert!(hindrance.starts_with(text), "{hindrance}");
        for speeds in [AHEAD, BACK, TURN] {
            let refusal = robot.drive(speeds).unwrap();
            assert!(refusal.starts_with(text), "{refusal}");
            robot.advance(100);
        }
        assert_eq!(
            robot.drive(WheelSpeeds::STOP),
            None,
            "a stop is not refused"
        );
        robot.forget();
        robot.advance(2_000);
        assert_eq!(
            robot.create.mode(),
            Mode::Passive,
            "nobody has commanded it"
        );
        robot.drive(AHEAD);
        robot.advance(100);
        assert_eq!(robot.create.mode(), Mode::Safe);
        assert!(robot.turns());
        let stopped = robot
            .heard
            .notes
            .iter()
            .filter(|it| it.contains("stopped the wheels: "));
        assert_eq!(stopped.count(), 1, "{:?}", robot.heard.notes);
    }
}

#[test]
fn on_its_dock_the_robot_stays_passive_at_the_start() {
    let mut robot = Robot::starting(DOCKED);
    robot.advance(2_000);
    assert!(robot.logic.is_ready());
    assert_eq!(robot.create.mode(), Mode::Passive);
    assert!(robot.sent().iter().all(|it| it[0] == 128 || it[0] == 148));
    assert!(
        robot
            .drive(BACK)
            .unwrap()
            .starts_with("the robot stands on its dock")
    );
    robot.forget();
    robot.drive(BACK);
    robot.advance(100);
    assert!(robot.turns());
}

#[test]
fn at_a_cliff_or_a_bump_the_robot_stops_and_drives_only_back_or_turns() {
    for (around, text, mode) in [
        (CLIFF, "there is no floor", Mode::Passive),
        (BUMPED, "the bumper is pressed", Mode::Safe),
    ] {
        let mut robot = Robot::new();
        robot.drive(AHEAD);
        robot.advance(500);
        robot.sense(around);
        robot.advance(40);
        assert!(!robot.turns());
        assert_eq!(robot.create.mode(), mode);
        assert!(robot.drive(AHEAD).unwrap().starts_with(text));
        let curve = WheelSpeeds::sides(300, -100);
        assert!(robot.drive(curve).unwrap().starts_with(text));
        for speeds in [BACK, TURN] {
            assert_eq!(robot.drive(speeds), None);
            robot.advance(100);
            assert!(robot.turns(), "{text}");
        }
        // The bumper bounces.
        robot.sense(FREE);
        robot.advance(100);
        assert!(robot.drive(AHEAD).is_some());
        robot.forget();
        assert_eq!(robot.drive(AHEAD), None);
        let noted = robot.heard.notes.iter().filter(|it| it.starts_with(text));
        assert_eq!(noted.count(), 1, "{:?}", robot.heard.notes);
    }
}

#[test]
fn what_the_robot_feels_is_told_at_once_and_unknown_without_it() {
    let angles = |robot: &Robot| -> Result<Vec<f64>, String> {
        let felt = robot.logic.contacts(robot.now)?;
        assert!(felt.age < 20 * MS, "{:?}", felt.age);
        let pressed = felt.contacts.iter().filter(|it| it.pressed());
        Ok(pressed.map(|it| it.angle()).collect())
    };
    let starting = Robot::starting(FREE);
    let unknown = angles(&starting).unwrap_err();
    assert_eq!(unknown, "the robot has not said what it feels");
    let mut robot = Robot::new();
    for (around, expected) in [
        (FREE, &[][..]),
        (BUMPED, &[45.0]),
        (CLIFF, &[60.0, 15.0, -15.0, -60.0]),
        (LIFTED, &[90.0, -90.0]),
        (FREE, &[]),
    ] {
        robot.sense(around);
        robot.advance(20);
        assert_eq!(angles(&robot).unwrap(), expected, "{around:?}");
    }
    robot.cable = Cable::Silent;
    robot.advance(600);
    let unknown = angles(&robot).unwrap_err();
    assert!(unknown.starts_with("the robot sends nothing"), "{unknown}");
}

#[test]
fn a_robot_that_leaves_safe_mode_for_an_unknown_reason_waits_for_a_command() {
    let mut robot = Robot::new();
    robot.drive(AHEAD);
    robot.advance(200);
    let time = robot.time();
    // Somebody presses a button, which has the effect of START.
    robot.create.handle_bytes(time, &[128]);
    robot.advance(1_000);
    assert!(!robot.turns());
    assert_eq!(robot.create.mode(), Mode::Passive);
    let note = robot
        .heard
        .notes
        .iter()
        .find(|it| it.starts_with("the robot has left safe mode and"));
    assert!(note.is_some(), "{:?}", robot.heard.notes);
    robot.drive(AHEAD);
    robot.advance(100);
    assert!(robot.turns());
}

#[test]
fn a_robot_that_does_not_enter_safe_mode_is_a_trouble_until_it_does() {
    let mut robot = Robot::new();
    let time = robot.time();
    robot.create.handle_bytes(time, &[128]);
    robot.advance(100);
    robot.drive(AHEAD);
    // It has heard SAFE, but something keeps it from that.
    for _ in 0..600 {
        let time = robot.time();
        robot.create.handle_bytes(time, &[128]);
        robot.advance(2);
    }
    let hindrance = robot.logic.hindrance();
    assert_eq!(hindrance, Some(STUBBORN));
    robot.advance(1_000);
    assert!(!robot.turns(), "an old command");
    robot.drive(AHEAD);
    robot.advance(100);
    assert!(robot.turns());
    assert_eq!(robot.logic.hindrance(), None);
}

#[test]
fn damaged_frames_are_left_out() {
    let mut robot = Robot::new();
    robot.cable = Cable::Noisy;
    robot.logic.set_listened(robot.now, true);
    for second in 0..5 {
        robot.drive(AHEAD);
        if second == 1 {
            robot.heard.published.clear();
        }
        robot.advance(1_000);
    }
    assert_eq!(robot.opened, 1);
    assert!(robot.turns());
    assert!(robot.heard.published.len() > 50);
    for (speeds, _) in &robot.heard.published {
        assert!((280..=320).contains(&speeds.front_left_mm_s), "{speeds:?}");
    }
    let bad = robot.logic.service.counters.bad_replies;
    assert!((70..=100).contains(&bad), "{bad}");
}

#[test]
fn a_robot_that_falls_silent_is_stopped_blindly_and_waits_for_a_new_command_when_it_is_back() {
    for cable in [Cable::Silent, Cable::Garbled] {
        let mut robot = Robot::new();
        robot.drive(AHEAD);
        robot.advance(500);
        robot.cable = cable;
        robot.advance(SILENCE.as_millis() as u64 + 20);
        assert!(!robot.turns(), "{cable:?}");
        let trouble = robot.logic.trouble().unwrap().into_owned();
        assert!(
            trouble.starts_with("the robot sends nothing any more: "),
            "{trouble}"
        );
        for _ in 0..10 {
            assert!(robot.drive(AHEAD).is_some());
            robot.advance(100);
        }
        robot.cable = Cable::Well;
        robot.until(|robot| robot.logic.is_ready());
        robot.advance(500);
        assert!(!robot.turns(), "an old command");
        let back = robot.heard.notes.last().unwrap();
        assert!(back.contains("10 commands were dropped"), "{back}");
        robot.drive(AHEAD);
        robot.advance(50);
        assert!(robot.turns());
    }
}

#[test]
fn an_unplugged_robot_drives_on_and_is_stopped_when_it_is_plugged_in() {
    let mut robot = Robot::new();
    robot.drive(AHEAD);
    robot.advance(500);
    robot.plugged = false;
    robot.logic.failed(robot.now, "it is gone");
    robot.advance(5_000);
    assert!(
        robot.turns(),
        "it has no watchdog: the documentation says so"
    );
    assert_eq!(robot.logic.trouble().unwrap(), "it does not exist");
    robot.plugged = true;
    robot.until(|robot| robot.logic.is_ready());
    robot.advance(500);
    assert!(!robot.turns());
    robot.drive(AHEAD);
    robot.advance(50);
    assert!(robot.turns());
}

#[test]
fn a_robot_that_never_answers_is_explained() {
    for (cable, problem) in [
        (
            Cable::Silent,
            "the robot does not answer at 115200 baud: press its CLEAN button",
        ),
        (
            Cable::Garbled,
            "what arrives at 115200 baud is not from a Create 2 or a Roomba: ",
        ),
    ] {
        let mut robot = Robot::starting(FREE);
        robot.cable = cable;
        robot.advance(2_900);
        assert_eq!(robot.logic.trouble(), None);
        robot.advance(10_000);
        let trouble = robot.logic.trouble().unwrap().into_owned();
        assert!(trouble.starts_with(problem), "{trouble}");
        assert_eq!(robot.heard.notes.len(), 1, "{:?}", robot.heard.notes);
        robot.cable = Cable::Well;
        robot.until(|robot| robot.logic.is_ready());
    }
}

#[test]
fn at_the_end_the_robot_stands_in_passive_mode_and_is_quiet() {
    let mut robot = Robot::new();
    robot.drive(AHEAD);
    robot.advance(500);
    robot.sent();
    robot.logic.shut_down();
    let begin = robot.now;
    robot.until(|robot| robot.ended);
    assert!(robot.now - begin < 100 * MS);
    let expected = [Command::STAND, Command::Quiet, Command::Start].map(Command::encode);
    assert_eq!(robot.sent(), expected);
    assert_eq!(
        (robot.create.mode(), robot.create.next_timeout()),
        (Mode::Passive, None)
    );
}

#[test]
fn a_driver_that_was_frozen_does_not_drive_on() {
    for frozen_ms in [400, 900] {
        let mut robot = Robot::new();
        robot.drive(AHEAD);
        robot.advance(500);
        robot.sent();
        let time = robot.time() + Duration::from_millis(frozen_ms);
        robot
            .create
            .handle_bytes(time, &robot.logic.last_words().unwrap());
        robot.now += Duration::from_millis(frozen_ms);
        // The frames of this time are read first.
        robot.advance(1);
        let expected = [[300, 300], [0, 0]][usize::from(frozen_ms > 800)];
        assert_eq!(robot.speeds(), Some(expected), "{frozen_ms}");
        robot.advance(1_000);
        assert_eq!(robot.turns(), frozen_ms < 800);
    }
}

#[test]
fn what_the_guard_writes_stops_the_wheels_even_behind_half_a_command() {
    let half = Command::Drive {
        left: 300,
        right: 300,
    };
    for cut in 0..5 {
        let mut robot = Robot::new();
        robot.drive(AHEAD);
        robot.advance(100);
        let time = robot.time();
        robot.create.handle_bytes(time, &half.encode()[..cut]);
        let last_words = robot.logic.last_words().unwrap();
        robot.create.handle_bytes(time, &last_words);
        assert!(!robot.turns(), "{cut}");
    }
}

#[test]
fn the_battery_is_that_of_the_robot() {
    let mut robot = Robot::starting(FREE);
    assert!(robot.logic.battery(robot.now).is_err());
    robot.advance(500);
    let reading = robot.logic.battery(robot.now).unwrap();
    assert!((15_000..15_200).contains(&reading.mv), "{reading:?}");
    assert!(!reading.is_low && reading.age < 20 * MS, "{reading:?}");
    assert!(robot.logic.battery_to_publish(robot.now).is_some());
    assert!(
        robot
            .logic
            .battery_to_publish(robot.now + 999 * MS)
            .is_none()
    );
    assert!(
        robot
            .logic
            .battery_to_publish(robot.now + 1_000 * MS)
            .is_some()
    );
}
