//! Compares the output of the NineDof driver during a drive with the true motion of the robot.

use amber_drivers::motion_sensor::service::ServiceKind;
use amber_drivers::ninedof::Settings;
use amber_drivers::ninedof::units::Numbers;
use amber_sim::{Devices, ninedof};

use crate::motion_drive::{Drive, MS, origin};

impl Drive<Settings> {
    fn new(seed: u64) -> Self {
        let settings = Settings {
            numbers: Numbers::Right,
            measures_bias: true,
        };
        Self::with(settings, ninedof::DEVICE, Devices::default(), seed)
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
