//! Compares the output of the driver of a battery sensor during a drive with the true battery of the
//! robot.

use std::time::{Duration, Instant};

use amber_drivers::gauge::cells::{Cells, Chemistry, Pack};
use amber_drivers::gauge::logic::BatteryLogic;
use amber_drivers::i2c::registers::Problem;
use amber_drivers::i2c::{Bus, BusError};
use amber_drivers::ina2xx::{Measured, Monitor, PACE, Settings};
use amber_map::Map;
use amber_proto::battery_state::BatteryState;
use amber_proto::battery_state::battery_state::Health;
use amber_sim::ceiling::Ceiling;
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::ina2xx::{DEVICE, Ina, Model, Options};
use amber_sim::robot::{Config, Fault, RobotTwin};
use amber_sim::world::find_start;
use amber_sim::{Devices, roboclaw};

const SECOND: Duration = Duration::from_secs(1);

/// A robot with a battery of three cells, and the driver of its sensor.
struct Drive {
    robot: RobotTwin,
    monitor: Monitor,
    logic: BatteryLogic,
    start: Instant,
    now: Duration,
}

impl Bus for Drive {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: read.len() as u8,
        };
        match self.robot.handle_transfer(self.now, DEVICE, &transfer) {
            Some(Reply::Ack(bytes)) => read.copy_from_slice(&bytes),
            Some(Reply::Nak) => return Err(BusError::Nak),
            None => return Err(BusError::Broken("the bus is stuck".into())),
        }
        Ok(())
    }
}

fn settings(shunt_mohm: f64) -> Settings {
    Settings {
        address: None,
        part: None,
        shunt_mohm,
        inverts_current: false,
    }
}

impl Drive {
    fn with(model: Model, shunt_mohm: f64) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed: 1,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices {
                ina2xx: Options {
                    model: Some(model),
                    ..Options::default()
                },
                ..Devices::default()
            },
        });
        let cells = Cells {
            number: 3,
            chemistry: Chemistry::LiPo,
        };
        let pack = Pack {
            cells: Some(cells),
            low_mv: Some(10_500),
            resistance_mohm: 0,
        };
        let start = Instant::now();
        Self {
            robot: robot.unwrap(),
            monitor: Monitor::new(settings(shunt_mohm)),
            logic: BatteryLogic::new(pack, PACE, start),
            start,
            now: Duration::ZERO,
        }
    }

    /// Measures for a time, and checks each state.
    fn run(&mut self, time: Duration, mut look: impl FnMut(&Self, Result<BatteryState, &str>)) {
        let end = self.now + time;
        while self.now < end {
            self.now += PACE.period;
            self.robot.advance(self.now);
            let now = self.start + self.now;
            let mut monitor = Monitor::new(settings(1.0));
            std::mem::swap(&mut monitor, &mut self.monitor);
            let measured = monitor.measure(now, self).map(Measured::state);
            self.monitor = monitor;
            let measured = measured.map_err(|(Problem::Chip(why) | Problem::Bus(why))| why);
            self.logic.handle(now, measured);
            look(self, self.logic.state(now));
        }
    }

    fn last(&self) -> BatteryState {
        self.logic.state(self.start + self.now).unwrap()
    }

    fn trouble(&self) -> Option<String> {
        self.logic.trouble(self.start + self.now)
    }

    /// Voltage in millivolts, and current in milliamperes.
    fn truth(&self) -> (f64, f64) {
        let (volts, amperes) = self.robot.twin::<Ina>().unwrap().truth();
        (volts * 1000.0, -amperes * 1000.0)
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
fn voltage_and_current_are_true_at_rest_and_on_the_way() {
    for (model, shunt_mohm) in [
        (Model::Ina219, 100.0),
        (Model::Ina226, 2.0),
        (Model::Ina260, 100.0),
    ] {
        let mut drive = Drive::with(model, shunt_mohm);
        drive.run(3 * SECOND, |_, _| ());
        let at_rest = drive.last();
        let (mv, ma) = drive.truth();
        assert!(
            (f64::from(at_rest.voltage()) - mv).abs() <= 4.0,
            "{model:?}"
        );
        assert!(
            (f64::from(at_rest.current()) - ma).abs() <= 2.0,
            "{model:?}"
        );
        assert_eq!(
            (at_rest.charge, at_rest.health()),
            (Some(100.0), Health::Good)
        );
        // On the spot: the motors draw their current, and it is noisy.
        drive.drive(1_500, -1_500);
        drive.run(3 * SECOND, |_, _| ());
        let moving = drive.last();
        let (mv, ma) = drive.truth();
        assert!(moving.current() < at_rest.current() - 500, "{moving:?}");
        assert!(
            (f64::from(moving.voltage()) - mv).abs() < 30.0,
            "{moving:?} {mv}"
        );
        assert!(
            (f64::from(moving.current()) - ma).abs() < 300.0,
            "{moving:?} {ma}"
        );
        assert_eq!(drive.trouble(), None);
    }
}

#[test]
fn only_a_battery_that_stays_low_is_low() {
    let mut drive = Drive::with(Model::Ina226, 2.0);
    drive.run(2 * SECOND, |_, _| ());
    for _ in 0..5 {
        drive
            .robot
            .begin(drive.now, Fault::SaggingBattery, Some(SECOND));
        let mut currents = Vec::new();
        drive.run(2 * SECOND, |drive, state| {
            currents.extend(state.unwrap().current);
            assert_eq!(drive.trouble(), None);
        });
        assert!(currents.iter().any(|ma| *ma < -10_000), "{currents:?}");
    }
    drive.robot.begin(drive.now, Fault::LowBattery, None);
    let begin = drive.now;
    let mut told = Vec::new();
    drive.run(30 * SECOND, |drive, _| {
        if told.last().map(|(_, trouble)| trouble) != Some(&drive.trouble()) {
            told.push((drive.now - begin, drive.trouble()));
        }
    });
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].0 <= 6 * SECOND && told[1].1.is_some(), "{told:?}");
    assert_eq!(drive.last().health(), Health::Low);
    drive.robot.clear();
    drive.run(15 * SECOND, |_, _| ());
    assert_eq!(
        (drive.trouble(), drive.last().health()),
        (None, Health::Good)
    );
}

#[test]
fn faults_of_the_sensor_end_with_right_values_and_no_wrong_one() {
    let mut drive = Drive::with(Model::Ina219, 100.0);
    drive.run(2 * SECOND, |_, _| ());
    for fault in [
        Fault::Unplug(DEVICE),
        Fault::Stall(DEVICE),
        Fault::Corrupt(DEVICE),
    ] {
        drive.robot.begin(drive.now, fault, Some(10 * SECOND));
        drive.run(10 * SECOND, |drive, state| {
            if let (Ok(state), false) = (state, matches!(fault, Fault::Corrupt(_))) {
                assert!((f64::from(state.voltage()) - drive.truth().0).abs() < 10.0);
            }
            let is_low = drive.trouble().is_some_and(|it| it.contains("low"));
            assert!(!is_low, "{fault}");
        });
        let is_gone = !matches!(fault, Fault::Corrupt(_));
        if is_gone {
            assert!(drive.trouble().is_some(), "{fault}");
        }
        drive.run(2 * SECOND, |_, _| ());
        assert_eq!(drive.trouble(), None, "{fault}");
        let (mv, _) = drive.truth();
        assert!((f64::from(drive.last().voltage()) - mv).abs() < 10.0);
    }
}
