//! Drives of the simulated robot with other wheels than those of the RoboClaws, compared with its true
//! motion. The robot and the driver share a simulated clock, so a test takes no real time, and a seed
//! reproduces the drive.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_drivers::wheels::{Model, Output, StreamAction};
use amber_map::{Map, MapPose};
use amber_sim::Devices;
use amber_sim::ceiling::Ceiling;
use amber_sim::robot::{Config, Device, Fault, RobotTwin};
use amber_sim::wheels::Wheel;
use amber_values::WheelSpeeds;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const ME: ClientId = ClientId(7);
/// How long bytes take from one end of the port to the other.
const DELAY: Duration = Duration::from_millis(3);

/// The logic of a model whose controllers are at one port.
pub(crate) trait AtPort: Model {
    fn opened(&mut self, now: Instant);
    fn failed(&mut self, now: Instant, reason: &str);
    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_action(&mut self, now: Instant) -> Option<StreamAction>;
}

/// A robot in the corridor of the flat, with a driver that publishes the speeds.
pub(crate) struct Drive<L> {
    pub(crate) robot: RobotTwin,
    pub(crate) logic: L,
    pub(crate) now: Duration,
    /// The last speeds, and when they were measured.
    pub(crate) speeds: Option<(Duration, WheelSpeeds)>,
    /// The way of the left side by the speeds.
    pub(crate) told_mm: f64,
    /// Whether the driver runs.
    pub(crate) runs: bool,
    device: Device,
    start: Instant,
    /// Bytes from the controllers, and when they arrive.
    coming: Vec<(Duration, Vec<u8>)>,
    notes: Vec<String>,
}

impl<L: AtPort> Drive<L> {
    pub(crate) fn new(
        device: Device,
        devices: Devices,
        seed: u64,
        logic: impl FnOnce(Instant) -> L,
    ) -> Self {
        let robot = RobotTwin::new(Config {
            walls: Map::flat().faces(),
            start: MapPose::new(1.5, 2.6, 0.0).into(),
            seed,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices,
        });
        let start = Instant::now();
        let mut drive = Self {
            robot: robot.unwrap(),
            logic: logic(start),
            now: Duration::ZERO,
            speeds: None,
            told_mm: 0.0,
            runs: true,
            device,
            start,
            coming: Vec::new(),
            notes: Vec::new(),
        };
        drive.logic.set_listened(start, true);
        drive.run(500 * MS);
        assert!(drive.logic.is_ready(), "{:?}", drive.notes);
        drive
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            self.robot.advance(self.now);
            let sent = std::iter::from_fn(|| self.robot.poll_output(self.now, self.device));
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
            self.logic.handle_bytes(now, &bytes);
        }
        self.logic.handle_timeout(now);
        while let Some(action) = self.logic.poll_action(now) {
            let is_plugged = self.robot.is_plugged(self.device);
            match action {
                StreamAction::Open if is_plugged => self.logic.opened(now),
                StreamAction::Write(bytes) if is_plugged => {
                    self.robot.handle_bytes(self.now, self.device, &bytes);
                }
                StreamAction::Open | StreamAction::Write(_) => self.logic.failed(now, "unplugged"),
                StreamAction::Close | StreamAction::End => {}
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
    pub(crate) fn drive(&mut self, left_mm_s: i32, right_mm_s: i32, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let speeds = WheelSpeeds::sides(left_mm_s, right_mm_s);
            self.logic.drive(self.start + self.now, &[ME], speeds);
            self.run(50 * MS);
        }
    }

    pub(crate) fn stands(&self) -> bool {
        self.robot.world().wheel_speeds() == [0.0; 4]
    }

    /// Runs until the wheels stand, and says how long that took.
    pub(crate) fn until_it_stands(&mut self) -> Duration {
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

/// Drives ahead and turns: the world and the clients see the same.
pub(crate) fn check_way<L: AtPort>(mut drive: Drive<L>) {
    let begin = drive.robot.world().pose();
    drive.drive(300, 300, 5_000 * MS);
    // Commanded as exactly as measured.
    let true_mm_s = drive.robot.world().wheel_speeds()[Wheel::FrontLeft.index()] * 1_000.0;
    assert!((true_mm_s - 300.0).abs() < 1.0, "{true_mm_s}");
    let (_, told) = drive.speeds.unwrap();
    assert!((told.rear_right_mm_s - 300).abs() < 9, "{told:?}");
    drive.drive(0, 0, 1_000 * MS);
    assert!(drive.stands());
    assert_eq!(drive.speeds.unwrap().1, WheelSpeeds::STOP);
    let moved_mm = drive.robot.world().pose().at.minus(begin.at).length() * 1_000.0;
    assert!((1_300.0..1_600.0).contains(&moved_mm), "{moved_mm}");
    let off = (drive.told_mm / moved_mm - 1.0).abs();
    assert!(off < 0.01, "told {}, moved {moved_mm}", drive.told_mm);
    drive.drive(-200, 200, 1_000 * MS);
    let (_, told) = drive.speeds.unwrap();
    assert!((told.front_left_mm_s + 200).abs() < 9, "{told:?}");
    assert!((told.front_right_mm_s - 200).abs() < 9, "{told:?}");
}

/// A fault stops the wheels until there is a new command, and is explained.
pub(crate) fn check_fault<L: AtPort>(mut drive: Drive<L>, fault: Fault, trouble: &str) {
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

/// Answers are damaged while it turns one way and the other.
pub(crate) fn check_damage<L: AtPort>(mut drive: Drive<L>) {
    let fault = Fault::Corrupt(drive.device);
    drive.robot.begin(drive.now, fault, None);
    for _ in 0..10 {
        drive.drive(100, -100, 500 * MS);
        drive.drive(-100, 100, 500 * MS);
        let (_, told) = drive.speeds.unwrap();
        assert!(told.fastest_mm_s() < 200, "{told:?}");
    }
    assert!(drive.speeds.unwrap().0 > drive.now - 5_000 * MS);
    drive.robot.clear();
    drive.run(3_000 * MS);
    assert!(drive.logic.is_ready());
}
