//! Compares the output of the NineDof driver during a drive with the true motion of the robot. The
//! robot, its chips and the driver share a simulated clock, so the test takes no real time, and a
//! seed reproduces the drive.

use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_drivers::ninedof::board::Board;
use amber_drivers::ninedof::bus::{Bus, BusError};
use amber_drivers::ninedof::calibration::Calibration;
use amber_drivers::ninedof::logic::{ImuAction, ImuLogic, Output, Settings};
use amber_drivers::ninedof::registers::Gain;
use amber_drivers::ninedof::service::ServiceKind;
use amber_drivers::ninedof::units::Numbers;
use amber_map::Map;
use amber_proto::SynNum;
use amber_proto::ninedof::{SensorData, SubscribeAction};
use amber_sim::ceiling::Ceiling;
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::robot::{Config, RobotTwin};
use amber_sim::world::find_start;
use amber_sim::{Devices, ninedof, roboclaw};

const MS: Duration = Duration::from_millis(1);
const CLIENT: i32 = 7;

/// A robot in the middle of a hall, with a driver that publishes continuously.
struct Drive {
    robot: RobotTwin,
    logic: ImuLogic,
    board: Board,
    start: Instant,
    now: Duration,
    /// The last publication.
    latest: Option<SensorData>,
}

impl Bus for Drive {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: read.len() as u8,
        };
        match (self.robot).handle_transfer(self.now, ninedof::DEVICE, &transfer) {
            Some(Reply::Ack(bytes)) => read.copy_from_slice(&bytes),
            Some(Reply::Nak) => return Err(BusError::Nak),
            None => return Err(BusError::Broken("the bus is stuck".into())),
        }
        Ok(())
    }
}

impl Drive {
    fn new(seed: u64) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices::default(),
        });
        let settings = Settings {
            numbers: Numbers::Right,
            measures_bias: true,
        };
        let start = Instant::now();
        let board = Board::new(settings.gain(), start);
        let mut logic = ImuLogic::new(settings, Calibration::default(), start);
        let all = SubscribeAction {
            freq: Some(20),
            accel: Some(true),
            gyro: Some(true),
            magnet: Some(true),
            extended: Some(true),
        };
        logic.subscribe(start, &origin(None), all);
        Self {
            robot: robot.unwrap(),
            logic,
            board,
            start,
            now: Duration::ZERO,
            latest: None,
        }
    }

    /// Advances the time, and checks each publication.
    fn run(&mut self, time: Duration, mut look: impl FnMut(&RobotTwin, SensorData)) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            self.robot.advance(self.now);
            let now = self.start + self.now;
            while let Some(step) = self.logic.poll_action(now) {
                match step {
                    ImuAction::Open => self.logic.opened(now),
                    ImuAction::Close => {}
                    ImuAction::Read(wanted) => {
                        let none = Board::new(Gain::Fine, now);
                        let mut board = std::mem::replace(&mut self.board, none);
                        let reading = board.read(now, self, wanted).unwrap();
                        self.board = board;
                        self.logic.read(now, reading, self.board.trouble());
                    }
                    ImuAction::Store(_) => self.logic.stored(None),
                }
                while let Some(output) = self.logic.poll_output() {
                    match output {
                        Output::PublishTo(_, message) => {
                            self.latest = message.sensor_data;
                            look(&self.robot, message.sensor_data.unwrap());
                        }
                        Output::Answer(_, message) => {
                            let findings = message.service_report.unwrap().findings;
                            assert!(findings.iter().all(|one| one.good()), "{findings:?}");
                        }
                        Output::Publish(_) | Output::Say(_) => {}
                    }
                }
            }
        }
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

    /// True heading in degrees, counter-clockwise, not wrapped.
    fn heading(&self) -> f64 {
        self.robot.world().pose().heading.to_degrees()
    }
}

fn origin(syn: Option<u32>) -> Origin {
    Origin {
        clients: vec![ClientId(CLIENT)],
        syn: syn.map(SynNum),
        ..Origin::default()
    }
}

fn length(axes: [f64; 3]) -> f64 {
    axes.iter().map(|axis| axis * axis).sum::<f64>().sqrt()
}

/// Speeds of the left and right wheels, in pulses per second: turns on the spot in both directions,
/// curves, and straight on.
const TURNS: [(i32, i32); 6] = [
    (1000, -1000),
    (-1000, 1000),
    (300, -300),
    (500, 900),
    (900, 500),
    (-400, -700),
];

#[test]
fn turn_rates_are_true_within_2_percent() {
    for seed in 1..=10 {
        let mut drive = Drive::new(seed);
        // The robot stands still, and its driver measures the gyroscope bias.
        drive.run(2_000 * MS, |_, _| ());
        for (left, right) in TURNS {
            drive.drive(left, right);
            // Reach the speed.
            drive.run(1_000 * MS, |_, _| ());
            let before = drive.heading();
            let (mut milli, mut whole, mut count) = (0.0, 0.0, 0.0);
            drive.run(1_000 * MS, |_, data| {
                milli += f64::from(data.gyro_milli.unwrap().z_axis) / 1000.0;
                whole += f64::from(data.gyro.unwrap().z_axis);
                count += 1.0;
            });
            let truth = drive.heading() - before;
            let (milli, whole) = (milli / count, whole / count);
            let error = (milli / truth - 1.0).abs();
            assert!(
                error < 0.02,
                "seed {seed}, {left} {right}: {milli} of {truth} deg/s"
            );
            // Old clients get whole degrees.
            assert!((whole - truth).abs() < 0.7, "{whole} of {truth} deg/s");
            // Back to the start, to avoid the walls.
            drive.drive(-left, -right);
            drive.run(2_000 * MS, |_, _| ());
            drive.drive(0, 0);
            drive.run(1_000 * MS, |_, _| ());
        }
        assert_eq!(drive.robot.world().contacts(), 0, "no contacts with walls");
    }
}

#[test]
fn gravity_is_true_within_2_percent() {
    for seed in 1..=10 {
        let mut drive = Drive::new(seed);
        drive.run(1_000 * MS, |_, _| ());
        for (left, right) in [(0, 0), (900, 900), (600, -600), (-900, -900)] {
            drive.drive(left, right);
            drive.run(1_500 * MS, |_, _| ());
            let (mut sum, mut count) = ([0.0; 3], 0.0);
            drive.run(500 * MS, |_, data| {
                let accel = data.accel.unwrap();
                for (sum, axis) in sum
                    .iter_mut()
                    .zip([accel.x_axis, accel.y_axis, accel.z_axis])
                {
                    *sum += f64::from(axis);
                }
                count += 1.0;
            });
            let mean = sum.map(|axis| axis / count);
            let error = (length(mean) / 1000.0 - 1.0).abs();
            assert!(error < 0.02, "seed {seed}, {left} {right}: {mean:?} mg");
        }
    }
}

#[test]
fn acceleration_is_measured_ahead_and_a_curve_sideways() {
    let mut drive = Drive::new(3);
    drive.run(2_000 * MS, |_, _| ());
    let offset = drive.latest.unwrap().accel.unwrap();
    let mut ahead = 0;
    drive.drive(1484, 1484);
    drive.run(300 * MS, |_, data| {
        ahead = ahead.max(data.accel.unwrap().y_axis - offset.y_axis);
    });
    // The wheels accelerate at 2 m/s^2.
    assert!((120..240).contains(&ahead), "{ahead} mg");
    drive.drive(742, 1484);
    drive.run(1_000 * MS, |_, _| ());
    let (mut right, mut count) = (0.0, 0.0);
    drive.run(1_000 * MS, |_, data| {
        right += f64::from(data.accel.unwrap().x_axis - offset.x_axis);
        count += 1.0;
    });
    // 0.225 m/s and 0.357 rad/s to the left.
    let mean = right / count;
    assert!((mean + 8.2).abs() < 6.0, "{mean} mg");
}

#[test]
fn after_a_calibration_the_heading_is_true_within_3_degrees() {
    for seed in 1..=10 {
        let mut drive = Drive::new(seed);
        drive.run(2_000 * MS, |_, _| ());
        drive.drive(-600, 600);
        let now = drive.start + drive.now;
        (drive.logic).serve(now, origin(Some(1)), ServiceKind::Magnet, Some(30_000 * MS));
        drive.run(31_000 * MS, |_, _| ());
        assert_ne!(drive.logic.calibration().magnet_mgauss(), [0.0; 3]);
        for _ in 0..8 {
            drive.drive(-300, 300);
            drive.run(2_500 * MS, |_, _| ());
            drive.drive(0, 0);
            drive.run(1_000 * MS, |_, _| ());
            let (mut sin, mut cos, mut tilt) = (0.0, 0.0, 0.0_f32);
            drive.run(500 * MS, |_, data| {
                let attitude = data.attitude.unwrap();
                let heading = f64::from(attitude.heading_deg()).to_radians();
                sin += heading.sin();
                cos += heading.cos();
                tilt = tilt
                    .max(attitude.pitch_deg().abs())
                    .max(attitude.roll_deg().abs());
            });
            let seen = sin.atan2(cos).to_degrees();
            // North is up on the map, and the true heading is counted counter-clockwise.
            let truth = 90.0 - drive.heading();
            let error = (seen - truth + 180.0).rem_euclid(360.0) - 180.0;
            assert!(error.abs() < 3.0, "seed {seed}: {seen} of {truth} degrees");
            assert!(tilt < 2.5, "seed {seed}: {tilt} degrees on level ground");
        }
    }
}
