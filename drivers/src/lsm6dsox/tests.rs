//! Tests of the chips on a fake bus, with a simulated time, and of the options.

use amber_sim::lsm6dsox::{LsmChips, Model as Product};

use super::*;
use crate::i2c::fake::RESTING;
use crate::motion_sensor::board::Board;
use crate::motion_sensor::fake::{self, MS, check_strangers, near};
use crate::motion_sensor::sensors::Sensors;

type Bench = fake::Bench<Settings, LsmChips>;

fn ready(product: Product) -> Bench {
    Bench::ready(Settings::default(), product)
}

#[test]
fn each_sensor_is_set_up_and_read() {
    for (product, name, has_compass) in [
        (Product::Lsm6dsox, "LSM6DSOX", true),
        (Product::Lsm6ds33, "LSM6DS3 or LSM6DS33", true),
        (Product::Lsm6dsr, "LSM6DSR or ISM330DHCX", true),
        (Product::Alone, "LSM6DSOX", false),
    ] {
        let mut bench = Bench::new(Settings::default(), product);
        let first = bench.read();
        assert_eq!(first.raw, Measured::default());
        assert!(first.settling.accel && first.settling.gyro);
        bench.bus.state().truth.turn_deg_s = [10.0, -10.0, 100.0];
        let reading = bench.read_for(400 * MS);
        assert_eq!(reading.settling, Sensors::default());
        assert_eq!(reading.lacking.magnet, !has_compass, "{name}");
        near(reading.raw.accel_mg, [0.0, 0.0, 1000.0], 0.122);
        near(reading.raw.gyro_deg_s, [10.0, -10.0, 100.0], 0.0175);
        match has_compass {
            true => near(reading.raw.magnet_mgauss, [0.0, 200.0, -450.0], 0.15),
            false => assert_eq!(reading.raw.magnet_mgauss, None),
        }
        let mut notes = bench.notes();
        notes.sort();
        let mut expected = vec![format!("ready: accelerometer and gyroscope {name} at 0x6a")];
        expected.extend(has_compass.then(|| "ready: magnetometer LIS3MDL at 0x1c".to_owned()));
        assert_eq!(notes, expected);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn a_second_driver_with_the_same_settings_changes_nothing() {
    let mut bench = Bench::new(Settings::default(), Product::Lsm6dsox);
    bench.read_for(400 * MS);
    let resets = [
        bench.written(0x6A)[0].clone(),
        bench.written(0x1C)[0].clone(),
    ];
    assert_eq!(resets, [vec![0x12, 0x01], vec![0x21, 0x04]]);
    bench.bus.state().written.clear();
    bench.board = Board::of(Settings::default().chips(), bench.now);
    let raw = bench.read_for(100 * MS).raw;
    assert!(raw.accel_mg.is_some() && raw.magnet_mgauss.is_some());
    assert!(bench.written(0x6A).is_empty() && bench.written(0x1C).is_empty());
}

#[test]
fn ranges_and_mounts_are_used() {
    let text = "axes = \"-y,x,z\"\nmagnet_axes = \"y,-x,z\"\naccel_g = 16\ngyro_deg_s = 2000\n";
    let options: Options = toml::from_str(text).unwrap();
    let settings = options.setup().unwrap().0.settings;
    let mut bench = Bench::new(settings, Product::Lsm6dsox);
    bench.bus.state().truth.specific_force_g = [1.0, 12.0, 3.0];
    bench.bus.state().truth.turn_deg_s = [100.0, 1_500.0, 0.0];
    let reading = bench.read_for(400 * MS).raw;
    near(reading.accel_mg, [-12_000.0, 1_000.0, 3_000.0], 0.5);
    near(reading.gyro_deg_s, [-1_500.0, 100.0, 0.0], 0.1);
    near(reading.magnet_mgauss, [200.0, 0.0, -450.0], 0.15);
}

#[test]
fn the_heading_rises_as_the_robot_turns_to_the_right() {
    ready(Product::Lsm6dsox).check_headings();
}

#[test]
fn a_sensor_that_was_reset_is_set_up_again_and_logged() {
    let write = |at, register, value| move |bench: &mut Bench| bench.write(at, &[register, value]);
    type Fault<'a> = &'a dyn Fn(&mut Bench);
    let both = "it has lost its settings: ";
    let inertial = "accelerometer and gyroscope: ";
    let faults: [(Fault<'_>, &str, &str, usize); 4] = [
        (&Bench::restart, inertial, both, 2),
        (&write(0x6A, 0x12, 0x01), inertial, both, 1),
        (
            &write(0x6A, 0x11, 0x5C),
            inertial,
            "another program has changed register 0x11",
            1,
        ),
        (
            &write(0x1C, 0x21, 0x60),
            "magnetometer: ",
            "another program has changed register 0x21",
            1,
        ),
    ];
    for (fault, chip, text, count) in faults {
        let mut bench = ready(Product::Lsm6dsox);
        bench.check_recovery(fault);
        near(bench.read().raw.magnet_mgauss, [0.0, 200.0, -450.0], 0.15);
        let notes = bench.notes();
        assert_eq!(notes.len(), count, "{notes:?}");
        assert!(notes[0].starts_with(&format!("{chip}{text}")), "{notes:?}");
        bench.read_for(3_000 * MS);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn a_missing_sensor_says_what_to_check_and_comes_back() {
    let mut bench = ready(Product::Lsm6dsox);
    bench.bus.state().missing = vec![0x6A, 0x1C];
    assert_eq!(bench.read_for(5_000 * MS).raw, Measured::default());
    let trouble = bench.board.trouble().unwrap();
    for text in [
        "accelerometer and gyroscope: no answer at 0x6a and 0x6b: check its power, the wires SDA and SCL",
        "magnetometer: no answer at 0x1c: check its power",
    ] {
        assert!(trouble.contains(text), "{trouble}");
    }
    bench.notes();
    bench.restart();
    bench.bus.state().missing.clear();
    let raw = bench.read_for(6_000 * MS).raw;
    assert!(raw.accel_mg.is_some() && raw.magnet_mgauss.is_some());
    let notes = bench.notes();
    let are_back = notes.iter().all(|it| it.contains("works again after "));
    assert!(notes.len() == 2 && are_back, "{notes:?}");
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn one_chip_is_read_without_the_other() {
    let mut bench = ready(Product::Lsm6dsox);
    bench.bus.state().missing = vec![0x6A];
    let raw = bench.read_for(1_000 * MS).raw;
    assert!(raw.accel_mg.is_none() && raw.magnet_mgauss.is_some());
    bench.bus.state().missing = vec![0x1C];
    let raw = bench.read_for(4_000 * MS).raw;
    assert!(raw.accel_mg.is_some() && raw.magnet_mgauss.is_none());
}

#[test]
fn a_field_beyond_the_range_is_not_a_reading() {
    let mut bench = ready(Product::Lsm6dsox);
    bench.bus.state().truth.field_gauss = [0.0, 5.0, 0.0];
    assert_eq!(bench.read_for(100 * MS).raw.magnet_mgauss, None);
    let note = "magnetometer: the magnetic field is out of range; retrying";
    assert_eq!(bench.notes(), [note]);
    bench.bus.state().truth = RESTING;
    assert!(bench.read_for(100 * MS).raw.magnet_mgauss.is_some());
}

#[test]
fn other_chips_and_garbage_are_not_sensors() {
    check_strangers(&Settings::default(), 2);
}

#[test]
fn the_command_line_wins_over_the_file_and_unknown_options_are_refused() {
    let text = "bus = \"sim:/tmp/x\"\naddress = \"0x6a\"\naccel_g = 8\nmeasure_bias = false\n";
    let file: Options = toml::from_str(text).unwrap();
    let mut flags = Options::default();
    flags.board.address = Some("6b".into());
    let (setup, location) = flags.or(file).setup().unwrap();
    assert_eq!(location, BusLocation::Simulated("/tmp/x".into()));
    let expected = Settings {
        placement: Placement {
            address: Some(0x6B),
            mount: Mount::default(),
        },
        ranges: Ranges::default().with_accel_g(8).unwrap(),
        ..Settings::default()
    };
    assert_eq!(setup.settings, expected);
    assert!(toml::from_str::<Options>("low_pass_hz = 44").is_err());
}
