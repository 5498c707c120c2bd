//! Tests of the sensor on a fake bus, with a simulated time, and of the options.

use std::time::Duration;

use amber_sim::bno055::{Bno055 as Twin, BnoChips, Model as Product};
use amber_sim::ninedof::Errors;

use super::*;
use crate::i2c::fake::Fake;
use crate::i2c::{Bus, BusError};
use crate::motion_sensor::board::Board;
use crate::motion_sensor::fake::{self, MS, check_strangers, near};
use crate::motion_sensor::sensors::Sensors;

type Bench = fake::Bench<Settings, BnoChips>;

/// A sensor with little noise, and no other errors. Without any noise it would seem to be stuck.
fn new(settings: Settings) -> Bench {
    let mut errors = Errors::none();
    errors.noise.accel_g = 0.002;
    Bench::of(settings, Twin::new(Product::Bno055, errors, Duration::ZERO))
}

/// A sensor that already measures.
fn ready() -> Bench {
    let mut bench = new(Settings::default());
    bench.pass(400 * MS);
    bench.read_for(500 * MS);
    assert_eq!(bench.board.trouble(), None);
    bench.notes();
    bench
}

/// Turns round until the sensor is calibrated. Returns what it has learned.
fn calibrated(bench: &mut Bench) -> Profile {
    bench.read_for(1_500 * MS);
    bench.bus.state().truth.turn_deg_s = [0.0, 0.0, 90.0];
    for _ in 0..600 {
        if let Some(profile) = bench.read_for(10 * MS).raw.profile {
            return profile;
        }
    }
    panic!("no profile")
}

#[test]
fn the_sensor_is_set_up_and_read() {
    let mut bench = ready();
    bench.bus.state().truth.turn_deg_s = [10.0, -10.0, 100.0];
    let reading = bench.read_for(50 * MS);
    assert_eq!(reading.settling, Sensors::default());
    assert_eq!(reading.lacking, Sensors::default());
    let measured = reading.raw.measured;
    near(measured.accel_mg, [0.0, 0.0, 1000.0], 12.0);
    near(measured.gyro_deg_s, [10.0, -10.0, 100.0], 0.07);
    near(measured.magnet_mgauss, [0.0, 200.0, -450.0], 0.7);
    let written = bench.written(0x28);
    assert_eq!(written[0], [0x3D, 0x00]);
    assert!(written.contains(&vec![0x3B, 0x01]) && written.contains(&vec![0x3F, 0x00]));
    assert_eq!(written.last(), Some(&vec![0x3D, 0x0C]));
    // A second driver with the same settings changes nothing.
    bench.bus.state().written.clear();
    bench.board = Board::of(Settings::default().chips(), bench.now);
    assert!(bench.read_for(50 * MS).raw.world.is_some());
    assert!(bench.written(0x28).is_empty());
}

/// It answers only after 0.4 s, and computes after 0.2 s more.
#[test]
fn a_sensor_that_was_just_switched_on_is_awaited() {
    let mut bench = new(Settings::default());
    assert!(bench.read_for(3_000 * MS).raw.world.is_some());
    let notes = bench.notes();
    let ready = "ready: motion sensor BNO055 (program 3.11) at 0x28";
    assert!(notes.iter().any(|note| note == ready), "{notes:?}");
    bench.read_for(3_000 * MS);
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn the_heading_rises_as_the_robot_turns_to_the_right() {
    ready().check_headings();
}

#[test]
fn the_mount_turns_the_attitude_as_well() {
    let text = "axes = \"-y,x,z\"\n";
    let options: Options = toml::from_str(text).unwrap();
    let mut bench = new(options.setup().unwrap().0.settings);
    bench.pass(400 * MS);
    let raw = bench.read_for(500 * MS).raw;
    near(raw.measured.magnet_mgauss, [-200.0, 0.0, -450.0], 0.7);
    let attitude = bench
        .model
        .attitude(raw, raw.measured, &Calibration::default());
    let attitude = attitude.unwrap();
    // Its x axis is ahead, and y points to the north.
    assert!((attitude.heading_deg() - 90.0).abs() < 0.5, "{attitude:?}");
    assert_eq!(attitude.heading_calibrated, Some(false));
}

#[test]
fn a_sensor_that_was_reset_is_set_up_again_and_logged() {
    let write = |register, value| move |bench: &mut Bench| bench.write(0x28, &[register, value]);
    type Fault<'a> = &'a dyn Fn(&mut Bench);
    let faults: [(Fault<'_>, &str); 3] = [
        (&Bench::restart, "no answer"),
        (&write(0x3F, 0x20), "no answer"),
        (&write(0x3D, 0x00), "it has lost its settings: "),
    ];
    for (fault, text) in faults {
        let mut bench = ready();
        bench.bus.state().truth.turn_deg_s = [0.0, 0.0, 90.0];
        fault(&mut bench);
        for _ in 0..200 {
            let measured = bench.read_for(10 * MS).raw.measured;
            if measured.gyro_deg_s.is_some() {
                near(measured.gyro_deg_s, [0.0, 0.0, 90.0], 0.07);
                near(measured.accel_mg, [0.0, 0.0, 1000.0], 12.0);
            }
        }
        assert!(bench.read_for(50 * MS).raw.world.is_some(), "{text}");
        let notes = bench.notes();
        assert!(
            notes[0].starts_with(&format!("motion sensor: {text}")),
            "{notes:?}"
        );
        bench.read_for(3_000 * MS);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn what_the_sensor_has_learned_is_told_once_and_written_back() {
    let mut bench = ready();
    let profile = calibrated(&mut bench);
    bench.bus.state().truth.turn_deg_s = [0.0, 0.0, 0.0];
    assert_eq!(bench.read_for(2_000 * MS).raw.profile, None);
    assert_eq!(bench.notes(), Vec::<String>::new(), "that is no fault");

    let calibration = Calibration::default().with_profile(profile);
    let mut settings = Settings::default();
    settings.recall(&calibration);
    let mut bench = new(settings);
    bench.pass(400 * MS);
    bench.read_for(500 * MS);
    let written = [&[0x55], &profile.bytes()[..]].concat();
    assert!(bench.written(0x28).contains(&written));
    let text = calibration.to_toml();
    assert!(text.contains("[bno055]\nprofile = \""), "{text}");
    assert_eq!(Calibration::from_toml(&text), Ok(calibration));
    for wrong in ["", "00", "zz", &"0".repeat(43), &"é".repeat(22)] {
        let text = format!("[bno055]\nprofile = \"{wrong}\"\n");
        let error = Calibration::from_toml(&text).unwrap_err();
        assert!(error.contains("44 hexadecimal digits"), "{error}");
    }
}

#[test]
fn it_calibrates_itself_and_says_how_far_it_is() {
    let mut bench = ready();
    let model = Settings::default();
    let raw = bench.read().raw;
    let wrong = model.own_calibration(ServiceKind::Magnet, raw).unwrap();
    assert!(
        wrong
            .unwrap_err()
            .contains("level 0 of 3; turn the robot round")
    );
    assert_eq!(model.own_calibration(ServiceKind::SelfTest, raw), None);
    calibrated(&mut bench);
    bench.bus.state().truth.turn_deg_s = [0.0; 3];
    bench.read_for(1_500 * MS);
    let raw = bench.read().raw;
    assert!(
        model
            .own_calibration(ServiceKind::Gyro, raw)
            .unwrap()
            .is_ok()
    );
    let nothing = model.own_calibration(ServiceKind::Gyro, Fused::default());
    assert_eq!(nothing, Some(Err("no answer".into())));
}

/// Flips a bit in one of so many replies of at least this length.
struct Spoilt<'a> {
    bus: &'a mut Fake<Twin>,
    random: &'a mut fastrand::Rng,
    one_in: usize,
    shortest: usize,
}

impl Bus for Spoilt<'_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        self.bus.transfer(address, written, read)?;
        if read.len() >= self.shortest && self.random.usize(..self.one_in) == 0 {
            let place = self.random.usize(..read.len());
            read[place] ^= 0x80;
        }
        Ok(())
    }
}

#[test]
fn wrong_bits_give_no_wrong_attitude() {
    let mut bench = ready();
    let mut random = fastrand::Rng::with_seed(1);
    let mut count = 0;
    for _ in 0..2_000 {
        bench.pass(10 * MS);
        let mut bus = Spoilt {
            bus: &mut bench.bus,
            random: &mut random,
            one_in: 50,
            shortest: 1,
        };
        let reading = bench.board.read(bench.now, &mut bus, Sensors::ALL);
        let raw = reading.unwrap().raw;
        let attitude = (bench.model).attitude(raw, raw.measured, &Calibration::default());
        let Some(attitude) = attitude else { continue };
        count += 1;
        let heading = (attitude.heading_deg() + 180.0).rem_euclid(360.0) - 180.0;
        assert!(heading.abs() < 2.5, "{attitude:?}");
        assert!(attitude.pitch_deg().abs() < 2.0 && attitude.roll_deg().abs() < 2.0);
    }
    assert!(count > 1_500, "{count}");
}

#[test]
fn damage_that_does_not_end_is_a_problem_that_says_what_to_do() {
    let mut bench = ready();
    let mut random = fastrand::Rng::with_seed(1);
    let says_what_to_do = (0..200).any(|_| {
        bench.pass(10 * MS);
        let mut bus = Spoilt {
            bus: &mut bench.bus,
            random: &mut random,
            one_in: 1,
            shortest: 20,
        };
        let _ = bench.board.read(bench.now, &mut bus, Sensors::ALL);
        let trouble = bench.board.trouble().unwrap_or_default();
        trouble.contains("dtoverlay=i2c-gpio")
    });
    assert!(says_what_to_do);
    bench.read_for(6_000 * MS);
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_sensor_that_another_program_has_set_up_is_set_up_again() {
    for last in [[0x3B, 0x00], [0x3B, 0x01]] {
        let mut bench = ready();
        for bytes in [[0x3D, 0x00], last, [0x3D, 0x0C]] {
            bench.write(0x28, &bytes);
        }
        let measured = bench.read_for(1_500 * MS).raw.measured;
        near(measured.accel_mg, [0.0, 0.0, 1000.0], 12.0);
        let note = "motion sensor: another program has set it up anew; retrying";
        assert_eq!(bench.notes(), [note]);
    }
}

#[test]
fn changed_settings_are_noticed_after_some_samples() {
    let mut bench = ready();
    for bytes in [[0x3D, 0x00], [0x3B, 0x00], [0x3D, 0x0C]] {
        bench.write(0x28, &bytes);
    }
    // The driver looks again only when the sensor computes.
    bench.pass(200 * MS);
    let measured = bench.read_for(1_500 * MS).raw.measured;
    near(measured.accel_mg, [0.0, 0.0, 1000.0], 12.0);
    let notes = bench.notes();
    assert!(
        notes[0].contains("has changed register 0x3b from 0x01 to 0x00"),
        "{notes:?}"
    );
}

#[test]
fn other_chips_and_garbage_are_not_sensors() {
    check_strangers(&Settings::default(), 1);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let file: Options = toml::from_str("address = \"0x28\"\ncrystal = true\n").unwrap();
    let mut flags = Options::default();
    flags.board.address = Some("29".into());
    let (setup, _) = flags.or(file).setup().unwrap();
    assert_eq!(setup.settings.placement.address, Some(0x29));
    assert!(setup.settings.has_crystal && !setup.settings.measures_bias());
}
