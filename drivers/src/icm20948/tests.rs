//! Tests of the chips on a fake bus, with a simulated time, and of the options.

use amber_sim::icm20948::{IcmChips, Model as Product};

use super::*;
use crate::i2c::fake::RESTING;
use crate::motion_sensor::board::Board;
use crate::motion_sensor::fake::{self, MS, check_strangers, near};
use crate::motion_sensor::inertia::Ranges;
use crate::motion_sensor::sensors::Sensors;

type Bench = fake::Bench<Settings, IcmChips>;

fn ready() -> Bench {
    Bench::ready(Settings::default(), Product::Icm20948)
}

#[test]
fn the_sensor_is_set_up_and_read() {
    let mut bench = Bench::new(Settings::default(), Product::Icm20948);
    let first = bench.read();
    assert_eq!(first.raw, Measured::default());
    assert!(first.settling.accel && first.settling.gyro);
    bench.bus.state().truth.turn_deg_s = [10.0, -10.0, 100.0];
    let reading = bench.read_for(400 * MS);
    assert_eq!(reading.settling, Sensors::default());
    assert_eq!(reading.lacking, Sensors::default());
    near(reading.raw.accel_mg, [0.0, 0.0, 1000.0], 0.13);
    near(reading.raw.gyro_deg_s, [10.0, -10.0, 100.0], 0.016);
    near(reading.raw.magnet_mgauss, [0.0, 200.0, -450.0], 1.5);
    let notes = [
        "ready: accelerometer and gyroscope ICM-20948 at 0x69",
        "ready: magnetometer AK09916 at 0x0c",
    ];
    assert_eq!(bench.notes(), notes);
    assert_eq!(bench.board.trouble(), None);
    // A second driver with the same settings only selects banks.
    bench.bus.state().written.clear();
    bench.board = Board::of(Settings::default().chips(), bench.now);
    assert!(bench.read_for(100 * MS).raw.magnet_mgauss.is_some());
    let written = bench.written(0x69);
    assert!(written.iter().all(|bytes| bytes[0] == 0x7F), "{written:?}");
    assert!(bench.written(0x0C).is_empty());
}

#[test]
fn ranges_and_mount_are_used() {
    let text = "axes = \"-y,x,z\"\naccel_g = 16\ngyro_deg_s = 2000\n";
    let options: Options = toml::from_str(text).unwrap();
    let settings = options.setup().unwrap().0.settings;
    let mut bench = Bench::new(settings, Product::Icm20948);
    bench.bus.state().truth.specific_force_g = [1.0, 12.0, 3.0];
    bench.bus.state().truth.turn_deg_s = [100.0, 1_500.0, 0.0];
    let reading = bench.read_for(400 * MS).raw;
    near(reading.accel_mg, [-12_000.0, 1_000.0, 3_000.0], 0.5);
    near(reading.gyro_deg_s, [-1_500.0, 100.0, 0.0], 0.1);
    near(reading.magnet_mgauss, [-200.0, 0.0, -450.0], 1.5);
}

#[test]
fn the_heading_rises_as_the_robot_turns_to_the_right() {
    ready().check_headings();
}

#[test]
fn a_sensor_that_was_reset_is_set_up_again_and_logged() {
    let write = |register, value| move |bench: &mut Bench| bench.write(0x69, &[register, value]);
    type Fault<'a> = &'a dyn Fn(&mut Bench);
    let faults: [(Fault<'_>, &str); 5] = [
        (&Bench::restart, "it has lost its settings: "),
        (
            &write(0x06, 0x80),
            "another program has changed register 0x06",
        ),
        (
            &write(0x7F, 0x20),
            "another program has selected another bank",
        ),
        (
            &write(0x0F, 0x00),
            "another program has changed register 0x0f",
        ),
        (
            &write(0x03, 0x20),
            "another program has changed register 0x03",
        ),
    ];
    for (fault, text) in faults {
        let mut bench = ready();
        bench.check_recovery(fault);
        near(bench.read().raw.magnet_mgauss, [0.0, 200.0, -450.0], 1.5);
        let notes = bench.notes();
        assert_eq!(notes.len(), 1, "{notes:?}");
        let start = format!("accelerometer and gyroscope: {text}");
        assert!(notes[0].starts_with(&start), "{notes:?}");
        bench.read_for(3_000 * MS);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn a_changed_range_is_noticed_after_some_samples() {
    let mut bench = ready();
    for bytes in [[0x7F, 0x20], [0x14, 0x1F], [0x7F, 0x00]] {
        bench.write(0x69, &bytes);
    }
    let raw = bench.read_for(1_000 * MS).raw;
    near(raw.accel_mg, [0.0, 0.0, 1000.0], 0.13);
    let notes = bench.notes();
    assert!(
        notes[0].contains("has changed register 0x14 from 0x1b to 0x1f"),
        "{notes:?}"
    );
}

#[test]
fn a_missing_sensor_is_one_problem_that_says_what_to_check() {
    let mut bench = ready();
    bench.bus.state().missing = vec![0x69, 0x0C];
    assert_eq!(bench.read_for(5_000 * MS).raw, Measured::default());
    let trouble = bench.board.trouble().unwrap();
    let text = "accelerometer and gyroscope: no answer at 0x69 and 0x68: check its power";
    assert!(trouble.starts_with(text), "{trouble}");
    bench.restart();
    bench.bus.state().missing.clear();
    let raw = bench.read_for(5_000 * MS).raw;
    assert!(raw.accel_mg.is_some() && raw.magnet_mgauss.is_some());
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_silent_magnetometer_does_not_affect_the_others() {
    let mut bench = ready();
    bench.bus.state().missing = vec![0x0C];
    let raw = bench.read_for(1_000 * MS).raw;
    assert!(raw.accel_mg.is_some() && raw.magnet_mgauss.is_none());
    let trouble = bench.board.trouble().unwrap();
    let text = "magnetometer: no answer at 0x0c: switch the power off and on";
    assert_eq!(trouble, text);
    bench.bus.state().missing.clear();
    assert!(bench.read_for(5_000 * MS).raw.magnet_mgauss.is_some());
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_field_beyond_the_range_is_not_a_reading() {
    let mut bench = ready();
    bench.bus.state().truth.field_gauss = [0.0, 49.5, 0.0];
    assert_eq!(bench.read_for(100 * MS).raw.magnet_mgauss, None);
    let note = "magnetometer: the magnetic field is out of range; retrying";
    assert_eq!(bench.notes(), [note]);
    bench.bus.state().truth = RESTING;
    assert!(bench.read_for(100 * MS).raw.magnet_mgauss.is_some());
}

#[test]
fn other_chips_and_garbage_are_not_sensors() {
    check_strangers(&Settings::default(), 1);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let text = "address = \"0x68\"\naccel_g = 8\nlow_pass_hz = 24\n";
    let file: Options = toml::from_str(text).unwrap();
    let mut flags = Options::default();
    flags.board.address = Some("69".into());
    let (setup, location) = flags.or(file).setup().unwrap();
    assert_eq!(location, BusLocation::System("/dev/i2c-1".into()));
    assert_eq!(setup.settings.placement.address, Some(0x69));
    let scale = Scale::with(Ranges::default().with_accel_g(8).unwrap());
    assert_eq!(setup.settings.scale, scale.with_low_pass_hz(24).unwrap());
    assert!(setup.settings.measures_bias);
}
