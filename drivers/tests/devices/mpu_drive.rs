//! Compares the output of the MPU driver during a drive with the true motion of the robot.

use amber_drivers::motion_sensor::service::ServiceKind;
use amber_drivers::mpu::Settings;
use amber_sim::Devices;
use amber_sim::mpu::{DEVICE, Model, Options};

use crate::motion_drive::{Drive, MS, origin};

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
            assert!(error < 0.02, "{model:?}: {turned} of {truth} deg/s");
            assert!((gravity - 1.0).abs() < 0.02, "{model:?}: {gravity} g");
        }
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
        drive.drive(-600, 600);
        let now = drive.start + drive.now;
        (drive.logic).serve(now, origin(Some(1)), ServiceKind::Magnet, Some(30_000 * MS));
        drive.run(31_000 * MS, |_, _| ());
        assert_ne!(drive.logic.calibration().magnet_mgauss(), [0.0; 3]);
        for _ in 0..4 {
            // To the right.
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
            assert!(
                error.abs() < 3.0,
                "{model:?} {seed}: {seen} of {truth} degrees"
            );
        }
    }
}
