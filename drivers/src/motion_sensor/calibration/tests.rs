use super::*;

fn samples(readings: impl Iterator<Item = Measured>) -> Samples {
    let mut samples = Samples::default();
    readings.for_each(|measured| samples.push(measured));
    samples
}

/// Deterministic noise: three waves with unrelated periods.
fn noise(k: usize, size: f64) -> Axes {
    let k = k as f64;
    [(k * 2.1).sin(), (k * 3.7).sin(), (k * 5.3).sin()].map(|wave| size * wave)
}

fn plus(a: Axes, b: Axes) -> Axes {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// A robot that turns by this angle in 200 readings.
fn turning(turn_deg: f64, hard_iron: Axes, noise_mgauss: f64) -> Samples {
    samples((0..200).map(|k| {
        let angle = (turn_deg * k as f64 / 200.0).to_radians();
        let field = [200.0 * angle.sin(), 200.0 * angle.cos(), -450.0];
        Measured {
            accel_mg: Some([0.0, 0.0, 1000.0]),
            gyro_deg_s: Some(plus([1.0, -2.0, 3.0 + turn_deg / 2.0], noise(k, 0.3))),
            magnet_mgauss: Some(plus(plus(field, hard_iron), noise(k, noise_mgauss))),
        }
    }))
}

fn assert_near(found: Axes, expected: Axes, error: f64) {
    let near = (found.iter().zip(expected)).all(|(a, b)| (a - b).abs() < error);
    assert!(near, "{found:?} is not {expected:?}");
}

#[test]
fn at_rest_the_mean_is_the_bias() {
    let bias = turning(0.0, [0.0; 3], 3.0).gyro_bias().unwrap();
    assert_near(bias, [1.0, -2.0, 3.0], 0.05);
}

#[test]
fn a_moving_robot_gives_no_bias() {
    // Steady turns; only the field reveals the slow ones.
    for turn_deg in [5.0, 20.0, 90.0, 360.0] {
        let moved = turning(turn_deg, [0.0; 3], 3.0).gyro_bias();
        assert_eq!(
            moved,
            Err("the robot is moving; it must stand still".into()),
            "{turn_deg}"
        );
    }
    let shaken = samples((0..100).map(|k| Measured {
        gyro_deg_s: Some(noise(k, 5.0)),
        ..Measured::default()
    }));
    assert!(shaken.gyro_bias().is_err());
    assert_eq!(
        Samples::default().gyro_bias(),
        Err("0 readings, but 20 are needed".into())
    );
}

#[test]
fn the_centre_of_a_turn_is_the_hard_iron() {
    for hard_iron in [[0.0; 3], [80.0, -60.0, 30.0], [-300.0, 250.0, 0.0]] {
        let found = turning(360.0, hard_iron, 10.0).hard_iron().unwrap();
        assert_near(found, [hard_iron[0], hard_iron[1], 0.0], 2.0);
    }
}

#[test]
fn half_a_turn_is_not_enough() {
    for (turn_deg, why) in [
        (0.0, "the robot has not turned"),
        (180.0, "the robot has not turned all the way round"),
        (300.0, "the robot has not turned all the way round"),
    ] {
        let found = turning(turn_deg, [80.0, -60.0, 0.0], 3.0).hard_iron();
        assert_eq!(found, Err(why.into()), "{turn_deg}");
    }
    let crooked = samples((0..200).map(|k| {
        let angle = (k as f64 * 1.8).to_radians();
        Measured {
            magnet_mgauss: Some([300.0 * angle.sin(), 150.0 * angle.cos(), 0.0]),
            ..Measured::default()
        }
    }));
    let why = crooked.hard_iron().unwrap_err();
    assert!(why.starts_with("the field is uneven"), "{why}");
}

#[test]
fn a_written_calibration_is_read_back() {
    let calibration = Calibration::default()
        .with_gyro([0.12345, -2.0, 3.0])
        .with_magnet([80.04, -60.06, 0.0]);
    let text = calibration.to_toml();
    assert!(
        text.starts_with("# Written by a driver of motion sensors; "),
        "{text}"
    );
    assert!(
        text.contains("[gyro]\nbias_deg_s = [0.123, -2.0, 3.0]\n"),
        "{text}"
    );
    assert!(
        text.contains("[magnet]\nhard_iron_mgauss = [80.0, -60.1, 0.0]\n"),
        "{text}"
    );
    assert_eq!(Calibration::from_toml(&text), Ok(calibration));
    let nothing = Calibration::from_toml("").unwrap();
    assert_eq!(nothing, Calibration::default());
    assert!(!nothing.knows_gyro());
}

#[test]
fn invalid_files_are_rejected() {
    for text in [
        "[gyro]\nbias = [1, 2, 3]\n",
        "[gyro]\nbias_deg_s = [1, 2]\n",
        "[gyro]\nbias_deg_s = [1.0, nan, 3.0]\n",
        "[compass]\n",
        "not a calibration file",
    ] {
        assert!(Calibration::from_toml(text).is_err(), "{text}");
    }
}

#[test]
fn findings_distinguish_good_and_bad_sensors() {
    let calibration = Calibration::new(Some([1.0, -2.0, 3.0]), None);
    let good = turning(0.0, [0.0; 3], 3.0).findings(&calibration);
    assert!(good.iter().all(Result::is_ok), "{good:?}");
    let [_, gyro, _] = turning(20.0, [0.0; 3], 3.0).findings(&calibration);
    assert!(gyro.unwrap_err().contains("10.00 deg/s at rest"));
    let dead = samples((0..50).map(|_| Measured {
        accel_mg: Some([0.0; 3]),
        gyro_deg_s: None,
        magnet_mgauss: Some([0.0; 3]),
    }));
    let [accel, gyro, magnet] = dead.findings(&calibration);
    assert!(accel.is_err() && magnet.is_err());
    assert_eq!(gyro, Err("0 readings, but 20 are needed".into()));
}
