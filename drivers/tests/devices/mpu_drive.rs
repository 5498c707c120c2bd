//! Compares the output of the MPU driver during a drive with the true motion of the robot.

use amber_drivers::mpu::Settings;
use amber_sim::Devices;
use amber_sim::mpu::{DEVICE, Model, Options};

use crate::motion_drive::{Drive, MS, calibrate_magnet, check_headings, check_turns};

fn drive(model: Model, seed: u64) -> Drive<Settings> {
    let settings = Settings {
        measures_bias: true,
        ..Settings::default()
    };
    let devices = Devices {
        mpu: Options { model: Some(model) },
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
        (Model::Mpu6050, 1),
        (Model::Mpu6500, 2),
        (Model::Mpu9250, 3),
        (Model::Mpu9255, 4),
        (Model::Copy, 5),
    ] {
        let mut drive = drive(model, seed);
        check_turns(&mut drive);
        let has_compass = matches!(model, Model::Mpu9250 | Model::Mpu9255);
        let latest = drive.latest.unwrap();
        assert_eq!(latest.magnet.is_some(), has_compass);
        assert_eq!(latest.attitude.is_some(), has_compass);
    }
}

#[test]
fn after_a_calibration_a_turn_by_90_degrees_is_one_of_the_heading() {
    for (model, seed) in [
        (Model::Mpu9250, 1),
        (Model::Mpu9255, 2),
        (Model::Mpu9250, 3),
    ] {
        let mut drive = drive(model, seed);
        calibrate_magnet(&mut drive);
        assert_ne!(drive.logic.calibration().magnet_mgauss(), [0.0; 3]);
        check_headings(&mut drive);
    }
}
