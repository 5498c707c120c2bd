//! Compares the output of the LSM6DSOX driver during a drive with the true motion of the robot.

use amber_drivers::lsm6dsox::Settings;
use amber_sim::Devices;
use amber_sim::lsm6dsox::{DEVICE, Model, Options};

use crate::motion_drive::{Drive, MS, calibrate_magnet, check_headings, check_turns};

fn drive(model: Model, seed: u64) -> Drive<Settings> {
    let settings = Settings {
        measures_bias: true,
        ..Settings::default()
    };
    let devices = Devices {
        lsm6dsox: Options { model: Some(model) },
        ..Devices::default()
    };
    let mut drive = Drive::with(settings, DEVICE, devices, seed);
    // The robot stands still, and its driver measures the gyroscope bias.
    drive.run(2_500 * MS, |_, _| ());
    drive
}

#[test]
fn turn_rates_and_gravity_are_true_within_2_percent() {
    for (model, seed) in [
        (Model::Lsm6dsox, 1),
        (Model::Lsm6ds33, 2),
        (Model::Alone, 3),
    ] {
        let mut drive = drive(model, seed);
        check_turns(&mut drive);
        let latest = drive.latest.unwrap();
        assert_eq!(latest.magnet.is_some(), model != Model::Alone);
        assert_eq!(latest.attitude.is_some(), model != Model::Alone);
    }
}

#[test]
fn after_a_calibration_a_turn_by_90_degrees_is_one_of_the_heading() {
    for (model, seed) in [(Model::Lsm6dsox, 1), (Model::Lsm6dsr, 2)] {
        let mut drive = drive(model, seed);
        calibrate_magnet(&mut drive);
        assert_ne!(drive.logic.calibration().magnet_mgauss(), [0.0; 3]);
        check_headings(&mut drive);
    }
}
