//! Compares the output of the ICM-20948 driver during a drive with the true motion of the robot.

use amber_drivers::icm20948::Settings;
use amber_sim::Devices;
use amber_sim::icm20948::{DEVICE, Model, Options};

use crate::motion_drive::{Drive, MS, calibrate_magnet, check_headings, check_turns};

fn drive(model: Model, seed: u64) -> Drive<Settings> {
    let settings = Settings {
        measures_bias: true,
        ..Settings::default()
    };
    let devices = Devices {
        icm20948: Options { model: Some(model) },
        ..Devices::default()
    };
    let mut drive = Drive::with(settings, DEVICE, devices, seed);
    // The robot stands still, and its driver measures the gyroscope bias.
    drive.run(2_500 * MS, |_, _| ());
    drive
}

#[test]
fn turn_rates_gravity_and_headings_are_true() {
    for seed in [1, 2] {
        let mut drive = drive(Model::Icm20948, seed);
        check_turns(&mut drive);
        calibrate_magnet(&mut drive);
        assert_ne!(drive.logic.calibration().magnet_mgauss(), [0.0; 3]);
        check_headings(&mut drive);
    }
}
