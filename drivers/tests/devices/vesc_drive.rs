//! Drives of the simulated robot with VESCs, compared with its true motion. The robot, its VESCs and the
//! driver share a simulated clock, so a test takes no real time, and a seed reproduces the drive.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_drivers::vesc::logic::{VescAction, VescLogic};
use amber_drivers::vesc::units::Unit;
use amber_drivers::vesc::{Options, Settings};
use amber_drivers::wheels::{Model, Output};
use amber_map::{Map, MapPose};
use amber_sim::Devices;
use amber_sim::ceiling::Ceiling;
use amber_sim::robot::{Config, Fault, RobotTwin};
use amber_sim::vesc::{CAN_ID, DEVICE, Firmware};
use amber_sim::wheels::Wheel;
use amber_values::WheelSpeeds;

const MS: Duration = Duration::from_millis(1);
const ME: ClientId = ClientId(7);
/// How long bytes take from one end of the port to the other.
const DELAY: Duration = Duration::from_millis(3);

/// A robot in the corridor of the flat, with a driver that publishes the speeds.
struct Drive {
    robot: RobotTwin,
    logic: VescLogic,
    start: Instant,
    now: Duration,
    /// Bytes from the VESCs, and when they arrive.
    coming: Vec<(Duration, Vec<u8>)>,
    /// The last speeds, and when they were measured.
    speeds: Option<(Duration, WheelSpeeds)>,
    /// The way of the left side by the speeds.
    told_mm: f64,
    /// Whether the driver runs.
    runs: bool,
    notes: Vec<String>,
}

fn settings() -> Settings {
    let options = Options {
        can_id: Some(CAN_ID),
        pole_pairs: Some(7),
        gear_ratio: Some(10.0),
        wheel_diameter_mm: Some(120.0),
        min_erpm: Some(100),
        ..Options::default()
    };
    options.settings().unwrap().0
}

impl Drive {
    fn with(firmware: Firmware, seed: u64) -> Self {
        let robot = RobotTwin::new(Config {
            walls: Map::flat().faces(),
            start: MapPose::new(1.5, 2.6, 0.0).into(),
            seed,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices {
                vesc: amber_sim::vesc::Options {
                    firmware: Some(firmware),
                },
                ..Devices::default()
            },
        });
        let start = Instant::now();
        let mut drive = Self {
            robot: robot.unwrap(),
            logic: VescLogic::new(settings(), start),
            start,
            now: Duration::ZERO,
            coming: Vec::new(),
            speeds: None,
            told_mm: 0.0,
            runs: true,
            notes: Vec::new(),
        };
        drive.logic.set_listened(start, true);
        drive.run(200 * MS);
        assert!(drive.logic.is_ready(), "{:?}", drive.notes);
        drive
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            self.robot.advance(self.now);
            let sent = std::iter::from_fn(|| self.robot.poll_output(self.now, DEVICE));
            let sent: Vec<u8> = sent.flatten().collect();
            if !sent.is_empty() {
                self.coming.push((self.now + DELAY, sent));
            }
            if self.runs {
                self.step();
            }
        }
    }

    /// What the driver does in a millisecond.
    fn step(&mut self) {
        let now = self.start + self.now;
        let arrived = self.coming.iter().take_while(|(at, _)| *at <= self.now);
        let count = arrived.count();
        for (_, bytes) in self.coming.drain(..count) {
            self.logic.handle_bytes(now, Unit::First, &bytes);
        }
        self.logic.handle_timeout(now);
        while let Some(action) = self.logic.poll_action(now) {
            match action {
                VescAction::Open if self.robot.is_plugged(DEVICE) => self.logic.opened(now),
                VescAction::Write(_, bytes) if self.robot.is_plugged(DEVICE) => {
                    self.robot.handle_bytes(self.now, DEVICE, &bytes);
                }
                VescAction::Open | VescAction::Write(..) => self.logic.failed(now, "unplugged"),
                VescAction::Close | VescAction::End => {}
            }
        }
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Publish(speeds, age) => self.hear(self.now.saturating_sub(age), speeds),
                Output::Answer(..) => {}
                Output::Say(note) => self.notes.push(note.to_string()),
            }
        }
    }

    fn hear(&mut self, at: Duration, speeds: WheelSpeeds) {
        let mm_s = |speeds: WheelSpeeds| f64::from(speeds.front_left_mm_s);
        if let Some((before, last)) = self.speeds {
            let passed_s = at.saturating_sub(before).as_secs_f64();
            self.told_mm += (mm_s(last) + mm_s(speeds)) / 2.0 * passed_s;
        }
        self.speeds = Some((at, speeds));
    }

    /// Commands the wheels again and again.
    fn drive(&mut self, left_mm_s: i32, right_mm_s: i32, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let speeds = WheelSpeeds::sides(left_mm_s, right_mm_s);
            self.logic.drive(self.start + self.now, &[ME], speeds);
            self.run(50 * MS);
        }
    }

    fn wheel_mm_s(&self, wheel: Wheel) -> f64 {
        self.robot.world().wheel_speeds()[wheel.index()] * 1_000.0
    }

    fn stands(&self) -> bool {
        self.robot.world().wheel_speeds() == [0.0; 4]
    }

    /// Runs until the wheels stand, and says how long that took.
    fn until_it_stands(&mut self) -> Duration {
        let begin = self.now;
        while !self.stands() {
            self.run(MS);
            assert!(
                self.now - begin < Duration::from_secs(20),
                "{:?}",
                self.notes
            );
        }
        self.now - begin
    }
}

#[test]
fn the_way_and_the_speeds_are_those_of_the_world() {
    for (firmware, seed) in [
        (Firmware::V6_02, 1),
        (Firmware::V5_02, 2),
        (Firmware::V3_40, 3),
    ] {
        let mut drive = Drive::with(firmware, seed);
        let begin = drive.robot.world().pose();
        drive.drive(300, 300, 5_000 * MS);
        // Commanded as exactly as measured.
        let true_mm_s = drive.wheel_mm_s(Wheel::FrontLeft);
        assert!((true_mm_s - 300.0).abs() < 1.0, "{true_mm_s}");
        let (_, told) = drive.speeds.unwrap();
        assert!((told.rear_right_mm_s - 300).abs() < 9, "{told:?}");
        drive.drive(0, 0, 1_000 * MS);
        assert!(drive.stands());
        assert_eq!(drive.speeds.unwrap().1, WheelSpeeds::STOP);
        let moved_mm = drive.robot.world().pose().at.minus(begin.at).length() * 1_000.0;
        assert!((1_300.0..1_600.0).contains(&moved_mm), "{moved_mm}");
        let off = (drive.told_mm / moved_mm - 1.0).abs();
        assert!(
            off < 0.01,
            "{firmware:?}: told {}, moved {moved_mm}",
            drive.told_mm
        );
        drive.drive(-200, 200, 1_000 * MS);
        let (_, told) = drive.speeds.unwrap();
        assert!((told.front_left_mm_s + 200).abs() < 9, "{told:?}");
        assert!((told.front_right_mm_s - 200).abs() < 9, "{told:?}");
    }
}

#[test]
fn a_stop_brakes_and_a_driver_that_is_gone_lets_the_wheels_roll_out() {
    let mut drive = Drive::with(Firmware::V6_02, 1);
    drive.drive(300, 300, 2_000 * MS);
    drive.logic.client_died(ME);
    let braked = drive.until_it_stands();
    assert!((100..400).contains(&braked.as_millis()), "{braked:?}");

    drive.drive(300, 300, 2_000 * MS);
    drive.runs = false;
    let rolled = drive.until_it_stands();
    // The VESCs wait for a second, and then release the motors.
    assert!((1_200..4_000).contains(&rolled.as_millis()), "{rolled:?}");
    drive.runs = true;
    drive.run(2_000 * MS);
    assert!(drive.stands() && drive.logic.is_ready());

    let mut drive = Drive::with(Firmware::WithoutTimeout, 1);
    drive.drive(100, 100, 1_000 * MS);
    drive.runs = false;
    drive.run(5_000 * MS);
    assert!(!drive.stands());
}

#[test]
fn faults_of_the_simulation_stop_the_wheels_until_there_is_a_new_command() {
    for (fault, trouble) in [
        (Fault::Unplug(DEVICE), "unplugged"),
        (Fault::Stall(DEVICE), "the first VESC does not answer"),
        (
            Fault::LowBattery,
            "driving disabled: the first VESC reports UNDER_VOLTAGE",
        ),
    ] {
        let mut drive = Drive::with(Firmware::V6_02, 1);
        drive.drive(200, 200, 1_000 * MS);
        drive.robot.begin(drive.now, fault, None);
        let took = drive.until_it_stands();
        assert!(took < 4_000 * MS, "{fault}: {took:?}");
        drive.run(1_000 * MS);
        let said = drive.logic.trouble().unwrap_or_default().into_owned();
        assert!(said.starts_with(trouble), "{fault}: {said}");
        drive.robot.clear();
        drive.run(4_000 * MS);
        assert!(drive.stands(), "{fault}: an old command");
        assert_eq!(drive.logic.trouble(), None, "{fault}");
        drive.drive(200, 200, 1_000 * MS);
        assert!(!drive.stands(), "{fault}");
    }
}

#[test]
fn damaged_answers_do_no_harm() {
    for seed in 1..=5 {
        let mut drive = Drive::with(Firmware::V6_02, seed);
        drive.robot.begin(drive.now, Fault::Corrupt(DEVICE), None);
        for _ in 0..10 {
            drive.drive(100, -100, 500 * MS);
            drive.drive(-100, 100, 500 * MS);
            let (_, told) = drive.speeds.unwrap();
            assert!(told.fastest_mm_s() < 200, "{told:?}");
        }
        assert!(drive.speeds.unwrap().0 > drive.now - 5_000 * MS, "{seed}");
        drive.robot.clear();
        drive.run(3_000 * MS);
        assert!(drive.logic.is_ready());
    }
}
