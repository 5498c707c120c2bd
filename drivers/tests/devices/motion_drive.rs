//! A drive of the simulated robot with the driver of its motion sensors. The robot, its chips and the
//! driver share a simulated clock, so a test takes no real time, and a seed reproduces the drive.

use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_drivers::i2c::{Bus, BusError};
use amber_drivers::motion_sensor::Model;
use amber_drivers::motion_sensor::board::Board;
use amber_drivers::motion_sensor::calibration::Calibration;
use amber_drivers::motion_sensor::logic::{ImuAction, ImuLogic, Output};
use amber_drivers::motion_sensor::service::ServiceKind;
use amber_map::Map;
use amber_proto::SynNum;
use amber_proto::ninedof::{SensorData, SubscribeAction};
use amber_sim::ceiling::Ceiling;
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::robot::{Config, Device, RobotTwin};
use amber_sim::world::find_start;
use amber_sim::{Devices, roboclaw};

pub(crate) const MS: Duration = Duration::from_millis(1);
const CLIENT: i32 = 7;

/// A robot in the middle of a hall, with a driver that publishes continuously.
pub(crate) struct Drive<M: Model> {
    pub(crate) robot: RobotTwin,
    device: Device,
    pub(crate) logic: ImuLogic<M>,
    board: Board<M::Raw>,
    pub(crate) start: Instant,
    pub(crate) now: Duration,
    /// The last publication.
    pub(crate) latest: Option<SensorData>,
}

impl<M: Model> Bus for Drive<M> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: read.len() as u8,
        };
        match (self.robot).handle_transfer(self.now, self.device, &transfer) {
            Some(Reply::Ack(bytes)) => read.copy_from_slice(&bytes),
            Some(Reply::Nak) => return Err(BusError::Nak),
            None => return Err(BusError::Broken("the bus is stuck".into())),
        }
        Ok(())
    }
}

impl<M: Model> Drive<M> {
    pub(crate) fn with(settings: M, device: Device, devices: Devices, seed: u64) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices,
        });
        let start = Instant::now();
        let board = Board::of(settings.chips(), start);
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
            device,
            logic,
            board,
            start,
            now: Duration::ZERO,
            latest: None,
        }
    }

    /// Advances the time, and checks each publication.
    pub(crate) fn run(&mut self, time: Duration, mut look: impl FnMut(&RobotTwin, SensorData)) {
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
                        let none = Board::of(Vec::new(), now);
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

    pub(crate) fn drive(&mut self, left_qpps: i32, right_qpps: i32) {
        for address in [0x81, 0x80] {
            let speeds = [right_qpps, left_qpps].map(i32::to_be_bytes).concat();
            let mut packet = [&[address, 37], speeds.as_slice()].concat();
            packet.extend(roboclaw::crc16(&packet).to_be_bytes());
            self.robot.handle_bytes(self.now, roboclaw::DEVICE, &packet);
            while self.robot.poll_output(self.now, roboclaw::DEVICE).is_some() {}
        }
    }

    /// True heading in degrees, counter-clockwise, not wrapped.
    pub(crate) fn heading(&self) -> f64 {
        self.robot.world().pose().heading.to_degrees()
    }
}

/// Turn rates and gravity are true within 2 percent.
#[track_caller]
pub(crate) fn check_turns<M: Model>(drive: &mut Drive<M>) {
    for (left, right) in [(1000, -1000), (-300, 300)] {
        drive.drive(left, right);
        // Reach the speed.
        drive.run(1_000 * MS, |_, _| ());
        let before = drive.heading();
        let (mut turned, mut gravity, mut count) = (0.0, 0.0, 0.0);
        drive.run(1_000 * MS, |_, data| {
            turned += f64::from(data.gyro_milli.unwrap().z_axis) / 1000.0;
            gravity += f64::from(data.accel.unwrap().z_axis) / 1000.0;
            count += 1.0;
        });
        let truth = drive.heading() - before;
        let (turned, gravity) = (turned / count, gravity / count);
        let error = (turned / truth - 1.0).abs();
        assert!(error < 0.02, "{turned} of {truth} deg/s");
        assert!((gravity - 1.0).abs() < 0.02, "{gravity} g");
    }
}

/// Lets the robot turn while its magnetometer is calibrated.
pub(crate) fn calibrate_magnet<M: Model>(drive: &mut Drive<M>) {
    drive.drive(-600, 600);
    let now = drive.start + drive.now;
    (drive.logic).serve(now, origin(Some(1)), ServiceKind::Magnet, Some(30_000 * MS));
    drive.run(31_000 * MS, |_, _| ());
}

/// Turns to the right raise the heading by as much, within 3 degrees.
#[track_caller]
pub(crate) fn check_headings<M: Model>(drive: &mut Drive<M>) {
    for _ in 0..4 {
        drive.drive(300, -300);
        drive.run(2_500 * MS, |_, _| ());
        drive.drive(0, 0);
        drive.run(1_000 * MS, |_, _| ());
        let (mut sin, mut cos) = (0.0, 0.0);
        drive.run(500 * MS, |_, data| {
            let heading = f64::from(data.attitude.unwrap().heading_deg()).to_radians();
            sin += heading.sin();
            cos += heading.cos();
        });
        let seen = sin.atan2(cos).to_degrees();
        // North is up on the map, and the true heading is counted counter-clockwise.
        let truth = 90.0 - drive.heading();
        let error = (seen - truth + 180.0).rem_euclid(360.0) - 180.0;
        assert!(error.abs() < 3.0, "{seen} of {truth} degrees");
    }
}

pub(crate) fn origin(syn: Option<u32>) -> Origin {
    Origin {
        clients: vec![ClientId(CLIENT)],
        syn: syn.map(SynNum),
        ..Origin::default()
    }
}
