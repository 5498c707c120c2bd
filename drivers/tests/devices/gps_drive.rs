//! Compares the output of the driver of a GPS receiver during a drive with the true place of the
//! robot.

use std::time::{Duration, Instant};

use amber_drivers::gps::Options;
use amber_drivers::gps::logic::{GpsLogic, Output};
use amber_map::Map;
use amber_proto::gps::Fix;
use amber_proto::gps::fix::{Correction, Kind};
use amber_sim::ceiling::Ceiling;
use amber_sim::gps::{self, DEVICE, Model, Origin, Receiver};
use amber_sim::robot::{Config, Fault, RobotTwin};
use amber_sim::world::find_start;
use amber_sim::{Devices, roboclaw};

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(5);
/// The metres in a degree of latitude.
const DEGREE_M: f64 = 111_320.0;
/// In the south and in the west; the x axis of the map points to the south-east.
const ORIGIN: Origin = Origin {
    latitude_deg: -33.856,
    longitude_deg: -70.5,
    bearing_deg: 135.0,
};

/// A robot with a receiver, and its driver.
struct Drive {
    robot: RobotTwin,
    logic: GpsLogic,
    start: Instant,
    now: Duration,
    published: Vec<Fix>,
}

impl Drive {
    fn with(model: Model, is_exact: bool) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed: 1,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices {
                gps: gps::Options {
                    model: Some(model),
                    origin: Some(ORIGIN),
                    is_exact,
                },
                ..Devices::default()
            },
        });
        let (settings, _) = Options::default().settings().unwrap();
        let start = Instant::now();
        Self {
            robot: robot.unwrap(),
            logic: GpsLogic::new(settings, start),
            start,
            now: Duration::ZERO,
            published: Vec::new(),
        }
    }

    /// Advances robot and driver, and looks at each published fix.
    fn run(&mut self, time: Duration, mut look: impl FnMut(&Self, &Fix)) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.robot.advance(self.now);
            let now = self.start + self.now;
            while let Some(bytes) = self.robot.poll_output(self.now, DEVICE) {
                self.logic.handle_bytes(now, &bytes);
            }
            if self.logic.wake_at().is_some_and(|due| now >= due) {
                self.logic.handle_timeout(now);
            }
            while let Some(output) = self.logic.poll_output() {
                match output {
                    Output::Open if self.robot.is_plugged(DEVICE) => self.logic.opened(now),
                    Output::Open => self.logic.failed(now, "unplugged"),
                    Output::Publish(fix) => self.published.push(fix),
                    Output::Close | Output::Say(_) | Output::End => {}
                }
            }
            for fix in std::mem::take(&mut self.published) {
                look(self, &fix);
            }
        }
    }

    fn last(&self) -> Fix {
        self.logic.fix(self.start + self.now).unwrap()
    }

    /// How far a fix is from the true place of the robot now.
    fn error_m(&self, fix: &Fix) -> f64 {
        let at = self.robot.world().pose().at;
        let receiver = self.robot.twin::<Receiver>().unwrap();
        let [latitude_deg, longitude_deg] = receiver.truth([at.x, at.y]);
        let north_m = (fix.latitude.unwrap() - latitude_deg) * DEGREE_M;
        let narrower = latitude_deg.to_radians().cos();
        let east_m = (fix.longitude.unwrap() - longitude_deg) * DEGREE_M * narrower;
        north_m.hypot(east_m)
    }

    fn drive(&mut self, left_qpps: i32, right_qpps: i32) {
        for address in [0x81, 0x80] {
            let speeds = [right_qpps, left_qpps].map(i32::to_be_bytes).concat();
            let mut packet = [&[address, 37], speeds.as_slice()].concat();
            packet.extend(roboclaw::crc16(&packet).to_be_bytes());
            self.robot.handle_bytes(self.now, roboclaw::DEVICE, &packet);
            while self.robot.poll_output(self.now, roboclaw::DEVICE).is_some() {}
        }
    }
}

#[test]
fn the_position_is_true_at_rest_and_on_the_way() {
    for (model, digit_m) in [
        (Model::NeoM8, 0.02),
        (Model::L76, 0.2),
        (Model::ZedF9p, 0.001),
    ] {
        let mut drive = Drive::with(model, true);
        drive.run(4 * SECOND, |_, _| ());
        let fix = drive.last();
        assert!(drive.error_m(&fix) <= digit_m, "{model:?}: {fix:?}");
        assert!(fix.latitude() < -33.8 && fix.longitude() < -70.4, "{fix:?}");
        let is_fixed = model == Model::ZedF9p;
        assert_eq!(fix.correction() == Correction::RtkFixed, is_fixed);
        assert_eq!(fix.accuracy_is_estimated, Some(!is_fixed));
        assert_eq!((fix.speed, fix.course), (Some(0.0), None));

        // Ahead: a step and 50 ms pass between measurement and publication.
        drive.drive(3_000, 3_000);
        let mut moving = 0;
        drive.run(3 * SECOND, |drive, fix| {
            let late_m = fix.speed() * 0.08;
            assert!(
                drive.error_m(fix) <= digit_m + late_m + 0.02,
                "{model:?}: {fix:?}"
            );
            // Where the robot points. Angles on the map are counter-clockwise.
            let heading = drive.robot.world().pose().heading.to_degrees();
            if let Some(course) = fix.course {
                let difference = (course + heading - ORIGIN.bearing_deg).rem_euclid(360.0);
                assert!(
                    difference.min(360.0 - difference) < 5.0,
                    "{fix:?} {heading}"
                );
                moving += 1;
            }
        });
        let wheels = drive.robot.world().wheel_speeds();
        let speed_m_s = wheels.iter().sum::<f64>() / 4.0;
        assert!(speed_m_s > 0.5, "{speed_m_s}");
        assert!((drive.last().speed() - speed_m_s).abs() < 0.05, "{model:?}");
        assert!(moving >= 2, "{model:?}: {moving}");
        assert_eq!(drive.logic.trouble(), None);
    }
}

#[test]
fn errors_are_as_large_as_the_driver_says() {
    for model in [Model::NeoM8, Model::ZedF9p] {
        let mut drive = Drive::with(model, false);
        let (mut squares, mut count, mut told_m) = (0.0, 0, 0.0);
        drive.run(300 * SECOND, |drive, fix| {
            if fix.latitude.is_some() {
                squares += drive.error_m(fix).powi(2);
                count += 1;
                told_m = fix.horizontal_accuracy();
            }
        });
        let error_m = (squares / f64::from(count)).sqrt();
        // The usual estimate is a careful one.
        assert!(
            error_m < told_m * 2.0 && error_m > told_m * 0.2,
            "{error_m} {told_m}"
        );
    }
}

#[test]
fn no_fault_makes_a_wrong_or_an_old_position() {
    let mut drive = Drive::with(Model::ZedF9p, true);
    drive.run(4 * SECOND, |_, _| ());
    for fault in [
        Fault::Tunnel,
        Fault::Unplug(DEVICE),
        Fault::Stall(DEVICE),
        Fault::Corrupt(DEVICE),
    ] {
        drive.robot.begin(drive.now, fault, Some(10 * SECOND));
        let begin = drive.now;
        let mut positions = 0;
        drive.run(10 * SECOND, |drive, fix| {
            if fix.latitude.is_some() {
                assert!(drive.error_m(fix) < 0.001, "{fault}: {fix:?}");
                // What was measured before is still on the way.
                positions += u32::from(drive.now > begin + SECOND);
            } else {
                assert_eq!(fix.kind(), Kind::None);
            }
        });
        let now = drive.start + drive.now;
        match fault {
            Fault::Corrupt(_) => assert!(positions > 5, "{positions}"),
            Fault::Tunnel => {
                assert_eq!(positions, 0);
                assert!(
                    drive
                        .logic
                        .trouble()
                        .is_some_and(|it| it.starts_with("no position"))
                );
            }
            _ => {
                assert_eq!(positions, 0);
                assert!(drive.logic.fix(now).is_err() && drive.logic.trouble().is_some());
            }
        }
        drive.run(6 * SECOND, |_, _| ());
        assert_eq!(drive.logic.trouble(), None, "{fault}");
        assert!(drive.error_m(&drive.last()) < 0.001, "{fault}");
    }
}
