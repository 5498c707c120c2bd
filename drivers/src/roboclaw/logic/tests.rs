//! Tests of the rules with a simulated clock.

use std::time::Duration;

use amber_driver::ClientId;
use amber_driver::proto::SynNum;

use super::*;
use crate::roboclaw::fake::{FakePair, Mood};
use crate::roboclaw::protocol::{Check, Shape};
use crate::roboclaw::{Options, Preset};
use crate::wheels::{Output, StopFor};

mod single;
mod trouble;

const ALICE: ClientId = ClientId(1);
const BOB: ClientId = ClientId(2);

const AHEAD: WheelSpeeds = WheelSpeeds {
    front_left_mm_s: 300,
    front_right_mm_s: 300,
    rear_left_mm_s: 300,
    rear_right_mm_s: 300,
};

/// The logic, controllers and a clock.
struct Robot {
    logic: WheelLogic,
    pair: FakePair,
    now: Instant,
    /// How long an exchange takes.
    exchange: Duration,
    plugged: bool,
    opened: usize,
    lines: Vec<(Line, bool)>,
    notes: Vec<Note>,
    answers: Vec<(Origin, WheelSpeeds)>,
    published: Vec<(WheelSpeeds, Duration)>,
}

impl Robot {
    fn new(check: Check) -> Self {
        Self::with(check, |_| {})
    }

    fn with(check: Check, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = capo();
        settings.check = Some(check).filter(|check| *check == Check::LegacyAck);
        change(&mut settings);
        let now = Instant::now();
        let mut robot = Self {
            logic: WheelLogic::new(settings, now),
            pair: FakePair::new(check),
            now,
            exchange: Duration::from_millis(2),
            plugged: true,
            opened: 0,
            lines: Vec::new(),
            notes: Vec::new(),
            answers: Vec::new(),
            published: Vec::new(),
        };
        robot.settle();
        robot
    }

    /// Carries out every step that needs no timer.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            let step = self.logic.poll_action(self.now);
            self.drain();
            match step {
                None | Some(ControllerAction::End) => return,
                Some(step) => self.carry_out(step),
            }
            self.drain();
        }
        panic!("it never comes to rest");
    }

    fn carry_out(&mut self, step: ControllerAction) {
        match step {
            ControllerAction::Open if self.plugged => {
                self.opened += 1;
                self.logic.opened();
            }
            ControllerAction::Open => self.logic.open_failed(self.now, "no such file"),
            ControllerAction::Close | ControllerAction::End => {}
            ControllerAction::Set(line, active) => self.lines.push((line, active)),
            ControllerAction::Wait(duration) => self.now += duration,
            ControllerAction::Exchange { packet, shape } => {
                self.now += self.exchange;
                let result = if self.plugged {
                    self.exchange(&packet, shape)
                } else {
                    Err(ExchangeError::Port("gone".into()))
                };
                self.logic.exchanged(self.now, result);
            }
        }
    }

    fn exchange(&mut self, packet: &[u8], shape: Shape) -> Result<Vec<u8>, ExchangeError> {
        let reply = self.pair.reply(packet);
        let is_whole = match shape {
            Shape::Nothing => return Ok(Vec::new()),
            Shape::UntilSilence => !reply.is_empty(),
            Shape::Bytes(count) => reply.len() == count,
        };
        if is_whole {
            return Ok(reply);
        }
        self.now += Duration::from_millis(110);
        match reply.is_empty() {
            true => Err(ExchangeError::Silent),
            false => Err(ExchangeError::Half),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Answer(origin, speeds) => self.answers.push((origin, speeds)),
                Output::Publish(speeds, age) => self.published.push((speeds, age)),
                Output::Say(note) => self.notes.push(note),
            }
        }
    }

    /// Advances the clock from timer to timer.
    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.settle();
        }
        self.now = self.now.max(end);
    }

    fn drive(&mut self, client: ClientId, speeds: WheelSpeeds) {
        self.logic.drive(self.now, &[client], speeds);
        self.settle();
    }

    fn ask(&mut self, syn: u32) {
        let origin = Origin {
            clients: vec![ALICE],
            syn: Some(SynNum(syn)),
            ..Origin::default()
        };
        self.logic.ask(self.now, origin);
        self.settle();
    }

    fn turns(&self) -> bool {
        self.pair.speeds != [[0; 2]; 2]
    }

    fn warnings(&self) -> Vec<String> {
        let warnings = self.notes.iter().filter(|note| note.is_warning());
        warnings.map(Note::to_string).collect()
    }
}

/// The robot of the laboratory.
fn capo() -> Settings {
    settings(Options {
        preset: Some(Preset::Capo),
        ..Options::default()
    })
}

fn settings(options: Options) -> Settings {
    options.setup().unwrap().0.settings
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn at_the_start_the_wheels_are_stopped_and_all_settings_are_sent() {
    for (check, status_bytes) in [
        (Check::Legacy, 1),
        (Check::LegacyAck, 1),
        (Check::Crc16, 2),
        (Check::Crc16, 4),
    ] {
        let mut settings = capo();
        settings.check = Some(check).filter(|check| *check == Check::LegacyAck);
        let mut robot = Robot::new(check);
        robot.pair = FakePair::new(check);
        robot.pair.status_bytes = status_bytes;
        robot.pair.speeds = [[5; 2]; 2];
        robot.logic = WheelLogic::new(settings, robot.now);
        robot.settle();
        assert!(robot.logic.is_ready() && !robot.turns(), "{check:?}");
        let heard = robot.pair.heard.iter();
        let commands: Vec<u8> = heard.map(|(_, command, _)| *command).take(16).collect();
        assert_eq!(
            commands,
            [
                21, 21, 90, 90, 37, 37, 28, 29, 92, 93, 14, 28, 29, 92, 93, 14
            ]
        );
        assert_eq!(robot.warnings(), [""; 0]);
    }
}

#[test]
fn a_stranger_keeps_the_speed_control_that_its_controllers_have_stored() {
    let stored = FakePair::new(Check::Crc16).pid;
    let start = |options: Options| {
        let robot = Robot::with(Check::Crc16, |all| *all = settings(options));
        assert!(robot.logic.is_ready());
        let heard = robot.pair.heard.iter();
        let commands: Vec<u8> = heard.map(|(_, command, _)| *command).take(12).collect();
        (robot.pair.pid, commands)
    };
    let (pid, commands) = start(Options::default());
    assert_eq!(pid, stored);
    assert_eq!(commands[..8], [21, 21, 90, 90, 37, 37, 14, 14]);

    // What is stated is set, the rest stays.
    let stated = Options {
        pid_p: Some(7),
        max_qpps: Some(13_800),
        ..Options::default()
    };
    let (pid, commands) = start(stated);
    assert_eq!(pid, [[[7, 32_768, 16_384, 13_800]; 2]; 2]);
    assert_eq!(commands[4..], [37, 37, 55, 28, 56, 29, 14, 55]);
    // What is stored already is not written.
    let same = Options {
        pid_i: Some(32_768),
        ..Options::default()
    };
    let (_, commands) = start(same);
    assert_eq!(commands[4..10], [37, 37, 55, 56, 14, 55]);
}

#[test]
fn commands_go_to_the_front_and_then_to_the_rear() {
    let mut robot = Robot::new(Check::Crc16);
    robot.pair.heard.clear();
    let speeds = WheelSpeeds {
        front_left_mm_s: -300,
        ..AHEAD
    };
    robot.drive(ALICE, speeds);
    let both: Vec<_> = (robot.pair.take(37).into_iter())
        .map(|(unit, _)| unit)
        .collect();
    assert_eq!(both, Unit::BOTH);
    assert_eq!(robot.pair.speeds, [[1484, -1484], [1484, 1484]]);
}

#[test]
fn only_the_newest_waiting_command_is_sent() {
    let mut robot = Robot::new(Check::Crc16);
    robot.pair.heard.clear();
    for front_left_mm_s in 1..=20 {
        let speeds = WheelSpeeds {
            front_left_mm_s,
            ..AHEAD
        };
        robot.logic.drive(robot.now, &[ALICE], speeds);
    }
    robot.settle();
    assert_eq!(robot.pair.take(37).len(), 2);
    assert_eq!(robot.pair.speeds[0][1], 98);
}

#[test]
fn replies_hold_speeds_measured_after_the_request() {
    let mut robot = Robot::new(Check::Legacy);
    robot.drive(ALICE, AHEAD);
    robot.pair.speeds = [[1484, -1484], [494, 0]];
    robot.pair.heard.clear();
    for syn in [1, 2, 3] {
        let origin = Origin {
            clients: vec![BOB],
            syn: Some(SynNum(syn)),
            ..Origin::default()
        };
        robot.logic.ask(robot.now, origin);
    }
    robot.settle();
    assert_eq!(robot.pair.take(18).len(), 2, "read once for all");
    let read = WheelSpeeds {
        front_right_mm_s: 299,
        front_left_mm_s: -299,
        rear_right_mm_s: 99,
        rear_left_mm_s: 0,
    };
    let answers: Vec<_> = (robot.answers.iter())
        .map(|(origin, speeds)| (origin.syn.unwrap().0, *speeds))
        .collect();
    assert_eq!(answers, [(1, read), (2, read), (3, read)]);
}

#[test]
fn a_request_that_waits_for_a_slow_bus_is_answered() {
    let mut robot = Robot::new(Check::Crc16);
    robot.logic.ask(robot.now, Origin::default());
    // The reply to the exchange before it is late.
    robot.now += Duration::from_millis(1_500);
    robot.settle();
    assert_eq!(robot.answers.len(), 1);
    assert_eq!(robot.logic.counters().unanswered, 0);
}

#[test]
fn subscribers_share_one_measurement_each_period() {
    let mut robot = Robot::new(Check::Crc16);
    robot.settle();
    let published = |robot: &mut Robot| {
        let all = std::mem::take(&mut robot.published);
        all.len()
    };
    robot.advance(seconds(1));
    assert_eq!(published(&mut robot), 0, "nobody listens");
    robot.pair.speeds = [[1484; 2]; 2];
    robot.logic.set_listened(robot.now, true);
    robot.advance(seconds(1));
    let (speeds, age) = *robot.published.last().unwrap();
    assert_eq!(speeds, WheelSpeeds::sides(299, 299));
    // Four exchanges of 2 ms.
    assert!((4..=8).contains(&age.as_millis()), "{age:?}");
    let count = published(&mut robot);
    assert!((19..=21).contains(&count), "{count} in a second");
    robot.logic.set_listened(robot.now, false);
    robot.advance(seconds(1));
    assert!(published(&mut robot) <= 1);
}

#[test]
fn continuous_drive_commands_leave_room_for_requests() {
    let mut robot = Robot::new(Check::Crc16);
    robot.ask(1);
    robot.answers.clear();
    let origin = Origin::default();
    robot.logic.ask(robot.now, origin);
    for i in 0..40 {
        let speeds = WheelSpeeds {
            rear_left_mm_s: i,
            ..AHEAD
        };
        robot.logic.drive(robot.now, &[ALICE], speeds);
        if let Some(step) = robot.logic.poll_action(robot.now) {
            robot.carry_out(step);
        }
        robot.drain();
    }
    assert_eq!(robot.answers.len(), 1);
    let rear = (robot.pair.take(37).into_iter()).filter(|(unit, _)| *unit == Unit::Rear);
    assert!(rear.count() >= 10, "both controllers get commands");
}

#[test]
fn repeated_commands_leave_room_for_measurements_on_a_slow_bus() {
    // Beside many busy programs, the exchanges with a simulated bus take so long.
    for millis in [60, 100, 130] {
        let mut robot = Robot::new(Check::Crc16);
        robot.exchange = Duration::from_millis(millis);
        let end = robot.now + seconds(20);
        let (mut next_command, mut answered) = (robot.now, robot.now);
        let mut longest = Duration::ZERO;
        robot.logic.ask(robot.now, Origin::default());
        while robot.now < end {
            while next_command <= robot.now {
                robot.logic.drive(robot.now, &[ALICE], AHEAD);
                next_command += Duration::from_millis(200);
            }
            match robot.logic.poll_action(robot.now) {
                Some(step) => robot.carry_out(step),
                None => robot.now = next_command,
            }
            robot.drain();
            if !robot.answers.is_empty() {
                longest = longest.max(robot.now - answered);
                answered = robot.now;
                robot.answers.clear();
                robot.logic.ask(robot.now, Origin::default());
            }
        }
        longest = longest.max(robot.now - answered);
        assert!(longest < seconds(2), "{millis} ms: {longest:?}");
        let heard = std::mem::take(&mut robot.pair.heard);
        let count = |command| heard.iter().filter(|(_, it, _)| *it == command).count();
        assert!(count(37) >= 20, "commands are still repeated");
        assert!(count(90) >= 10, "the status is still read");
    }
}

#[test]
fn a_too_fast_command_is_dropped_counted_and_does_not_reset_the_idle_timer() {
    let mut robot = Robot::new(Check::Crc16);
    robot.drive(ALICE, AHEAD);
    for i in 0..395 {
        robot.advance(Duration::from_millis(10));
        let rear_right_mm_s = if i % 2 == 0 { 1201 } else { -1201 };
        robot.drive(
            ALICE,
            WheelSpeeds {
                rear_right_mm_s,
                ..AHEAD
            },
        );
    }
    assert_eq!(robot.logic.counters().too_fast, 395);
    assert_eq!(robot.pair.speeds, [[1484; 2]; 2]);
    // The first is logged at once, then one per second, with the number of dropped commands.
    assert_eq!(
        robot.warnings()[..2],
        [
            "dropped a command: 1201 mm/s is more than max_speed_mm_s = 1200",
            "dropped 100 commands: 1201 mm/s is more than max_speed_mm_s = 1200",
        ]
    );
    assert!(robot.warnings().len() <= 5, "{:?}", robot.warnings());
    robot.advance(Duration::from_millis(200));
    assert!(!robot.turns(), "4 s after the last accepted command");
    robot.drive(
        ALICE,
        WheelSpeeds {
            rear_right_mm_s: 1200,
            ..AHEAD
        },
    );
    assert!(robot.turns());
}

#[test]
fn the_wheels_stop_four_seconds_after_the_last_command() {
    let mut robot = Robot::new(Check::Crc16);
    robot.advance(seconds(3));
    robot.drive(ALICE, AHEAD);
    robot.advance(Duration::from_millis(3_900));
    assert!(robot.turns());
    robot.drive(ALICE, AHEAD);
    robot.advance(Duration::from_millis(3_900));
    assert!(robot.turns());
    robot.advance(Duration::from_millis(150));
    assert!(!robot.turns());
    assert!(robot.notes.contains(&Note::Stopped(StopReason::Idle)));
    robot.pair.heard.clear();
    robot.advance(seconds(60));
    assert_eq!(robot.pair.take(37), [], "once");
}

#[test]
fn the_wheels_stop_when_the_commanding_client_is_gone() {
    let mut robot = Robot::new(Check::Crc16);
    robot.drive(ALICE, AHEAD);
    robot.logic.client_died(BOB);
    robot.settle();
    assert!(robot.turns());
    robot.drive(BOB, AHEAD);
    robot.logic.client_died(ALICE);
    robot.settle();
    assert!(robot.turns(), "Bob has taken over");
    robot.logic.client_died(BOB);
    robot.settle();
    assert!(!robot.turns());

    let mut robot = Robot::with(Check::Crc16, |settings| settings.stop_for = StopFor::Anyone);
    robot.drive(ALICE, AHEAD);
    robot.logic.client_died(BOB);
    robot.settle();
    assert!(!robot.turns());
}

#[test]
fn a_client_that_stopped_the_wheels_leaves_without_a_log_message() {
    let mut robot = Robot::new(Check::Crc16);
    robot.drive(ALICE, AHEAD);
    robot.logic.drive(robot.now, &[ALICE], WheelSpeeds::STOP);
    robot.logic.client_died(ALICE);
    robot.settle();
    assert!(!robot.turns());
    let gone = Note::Stopped(StopReason::ClientDied(ALICE));
    assert!(!robot.notes.contains(&gone));
}

#[test]
fn shutdown_stops_the_wheels_and_releases_the_motors() {
    for check in [Check::Legacy, Check::Crc16] {
        let mut robot = Robot::new(check);
        robot.drive(ALICE, AHEAD);
        robot.pair.heard.clear();
        robot.logic.shut_down();
        robot.settle();
        let commands: Vec<u8> = (robot.pair.heard.iter())
            .map(|(_, command, _)| *command)
            .collect();
        assert_eq!(commands, [37, 37, 34, 34]);
        assert!(!robot.turns());
        assert_eq!(
            robot.logic.poll_action(robot.now),
            Some(ControllerAction::End)
        );
    }
}

#[test]
fn without_clients_the_controllers_get_packets_often_enough() {
    for (tenths, of_each) in [(4, 71), (10, 29)] {
        let mut robot = Robot::with(Check::Crc16, |settings| {
            settings.watchdog_tenths = Some(tenths);
            settings.error_interval = None;
        });
        robot.pair.heard.clear();
        robot.advance(seconds(10));
        let heard = robot.pair.take(90).len();
        assert!(heard >= 2 * of_each, "{tenths}: {heard}");
    }
}
