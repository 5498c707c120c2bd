//! Compares the output of the BNO055 driver during a drive with the true motion of the robot.

use amber_drivers::bno055::Settings;
use amber_sim::Devices;
use amber_sim::bno055::{DEVICE, Model, Options};

use crate::motion_drive::{Drive, MS, check_headings, check_turns};

#[test]
fn turn_rates_gravity_and_headings_are_true() {
    for seed in [1, 2, 3] {
        let model = Some(Model::Bno055);
        let devices = Devices {
            bno055: Options { model },
            ..Devices::default()
        };
        let mut drive = Drive::with(Settings::default(), DEVICE, devices, seed);
        // It starts, and calibrates its gyroscope while the robot stands still.
        drive.run(4_000 * MS, |_, _| ());
        let attitude = drive.latest.unwrap().attitude.unwrap();
        assert!(!attitude.heading_calibrated());
        check_turns(&mut drive);
        drive.drive(-600, 600);
        drive.run(20_000 * MS, |_, _| ());
        assert!(drive.logic.calibration().profile().is_some());
        drive.drive(0, 0);
        drive.run(2_000 * MS, |_, _| ());
        drive.drive(300, -300);
        drive.run(3_000 * MS, |_, _| ());
        check_headings(&mut drive);
        assert!(drive.latest.unwrap().attitude.unwrap().heading_calibrated());
    }
}
