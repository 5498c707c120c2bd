//! Tests of the sensors through their registers, with a simulated time.

use super::*;
use crate::i2c::Reply;
use crate::motion_sensor::testing::{self, MS};

type Bench = testing::Bench<MpuChips>;

/// The field of the hardware sheet is 20, -10 and -40 uT on the axes of the magnetometer.
const FIELD_GAUSS: [f64; 3] = [-0.1, 0.2, 0.4];

/// With the settings of the hardware sheet, and a sample.
fn ready(model: Model) -> Bench {
    let mut bench = Bench::new(model);
    bench.truth.field_gauss = FIELD_GAUSS;
    bench.write(0x68, &[0x6B, 0x01]);
    for setting in [
        [0x6A, 0x00],
        [0x37, 0x02],
        [0x1A, 0x03],
        [0x1D, 0x03],
        [0x19, 0x04],
        [0x1B, 0x08],
        [0x1C, 0x00],
    ] {
        bench.write(0x68, &setting);
    }
    bench.wait(40 * MS);
    bench
}

#[test]
fn each_sensor_has_its_identity_and_its_first_state() {
    for (model, who_am_i, power) in [
        (Model::Mpu6050, 0x68, 0x40),
        (Model::Mpu6500, 0x70, 0x01),
        (Model::Mpu9250, 0x71, 0x01),
        (Model::Mpu9255, 0x73, 0x01),
        (Model::Copy, 0x98, 0x40),
    ] {
        let mut bench = Bench::new(model);
        assert_eq!(bench.read(0x68, 0x75, 1), [who_am_i]);
        assert_eq!(bench.read(0x68, 0x6B, 1), [power]);
        assert_eq!(bench.transfer(0x69, &[0x75], 1), Reply::Nak);
        assert_eq!(bench.transfer(0x0C, &[0x00], 1), Reply::Nak);
    }
}

#[test]
fn a_host_reads_the_bytes_of_the_hardware_sheet() {
    // 28 degrees in the units of each.
    for (model, temperature) in [
        (Model::Mpu6050, [0xF4, 0xAC]),
        (Model::Mpu9250, [0x09, 0x21]),
    ] {
        let mut bench = ready(model);
        let bytes = bench.read(0x68, 0x3B, 14);
        assert_eq!(bytes[..6], [0xF8, 0x00, 0x04, 0x00, 0x40, 0x00]);
        assert_eq!(bytes[6..8], temperature);
        assert_eq!(bytes[8..], [0x02, 0x8F, 0xFD, 0x71, 0x19, 0x96]);
    }
    let mut bench = ready(Model::Mpu9250);
    bench.write(0x0C, &[0x0A, 0x16]);
    bench.wait(10 * MS);
    let bytes = bench.read(0x0C, 0x02, 8);
    assert_eq!(bytes, [0x01, 0x6F, 0x00, 0xC9, 0xFF, 0x1A, 0xFF, 0x10]);
}

#[test]
fn an_asleep_sensor_does_not_measure() {
    let mut bench = ready(Model::Mpu6050);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x01]);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x00], "reading clears it");
    bench.wait(5 * MS);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x01]);
    bench.write(0x68, &[0x6B, 0x40]);
    bench.wait(100 * MS);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x00]);
    bench.write(0x68, &[0x6B, 0x00]);
    bench.wait(29 * MS);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x00], "it starts slowly");
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x68, 0x3A, 1), [0x01]);
}

#[test]
fn after_a_reset_the_settings_are_gone() {
    let mut bench = ready(Model::Mpu6050);
    bench.write(0x68, &[0x6B, 0x80]);
    assert_eq!(bench.read(0x68, 0x6B, 1), [0xC0]);
    bench.write(0x68, &[0x6B, 0x01]);
    bench.wait(100 * MS);
    assert_eq!(bench.read(0x68, 0x6B, 1), [0x40], "that was too early");
    assert_eq!(bench.read(0x68, 0x19, 5), [0; 5]);
    bench.write(0x68, &[0x6B, 0x01]);
    assert_eq!(bench.read(0x68, 0x6B, 1), [0x01]);
    let now = bench.now;
    bench.sensor.restart(now);
    assert_eq!(bench.read(0x68, 0x6B, 1), [0x40]);
}

#[test]
fn the_magnetometer_is_behind_the_sensor() {
    let mut bench = ready(Model::Mpu9255);
    assert_eq!(bench.read(0x0C, 0x00, 1), [0x48]);
    for hides in [[0x37, 0x00], [0x6A, 0x20]] {
        bench.write(0x68, &hides);
        assert_eq!(bench.transfer(0x0C, &[0x00], 1), Reply::Nak);
        bench.write(0x68, &[0x37, 0x02]);
        bench.write(0x68, &[0x6A, 0x00]);
    }
    let mut without = ready(Model::Mpu6500);
    assert_eq!(without.transfer(0x0C, &[0x00], 1), Reply::Nak);
}

#[test]
fn the_magnetometer_changes_its_mode_only_from_power_down() {
    let mut bench = ready(Model::Mpu9250);
    assert_eq!(bench.read(0x0C, 0x10, 3), [0; 3]);
    bench.write(0x0C, &[0x0A, 0x0F]);
    assert_eq!(bench.read(0x0C, 0x10, 3), [0xB3, 0xB4, 0xA9]);
    bench.write(0x0C, &[0x0A, 0x16]);
    assert_eq!(bench.read(0x0C, 0x0A, 1), [0x0F]);
    for mode in [0x00, 0x16] {
        bench.write(0x0C, &[0x0A, mode]);
        assert_eq!(bench.read(0x0C, 0x0A, 1), [mode]);
    }
    // 14 bits, once.
    bench.write(0x0C, &[0x0A, 0x00]);
    bench.write(0x0C, &[0x0A, 0x01]);
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x0C, 0x02, 3), [0x01, 28, 0]);
    assert_eq!(bench.read(0x0C, 0x0A, 1), [0x00]);
    bench.write(0x0C, &[0x0B, 0x01]);
    assert_eq!(bench.read(0x0C, 0x02, 3), [0, 0, 0]);
}

#[test]
fn the_field_stays_until_the_last_status_was_read() {
    let mut bench = ready(Model::Mpu9250);
    bench.write(0x0C, &[0x0A, 0x16]);
    bench.wait(10 * MS);
    let first = bench.read(0x0C, 0x03, 6);
    bench.truth.field_gauss = [0.3; 3];
    bench.wait(50 * MS);
    assert_eq!(bench.read(0x0C, 0x03, 6), first);
    assert_eq!(bench.read(0x0C, 0x09, 1), [0x10]);
    bench.wait(10 * MS);
    assert_ne!(bench.read(0x0C, 0x02, 8)[1..7], first);
    bench.truth.field_gauss = [20.0, 20.0, 20.0];
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x0C, 0x09, 1), [0x18], "overflow");
}

#[test]
fn the_seed_determines_the_errors() {
    let bias = |model, seed| Mpu::of_seed(model, seed).errors().gyro_bias_deg_s;
    assert_eq!(bias(Model::Mpu9250, 3), bias(Model::Mpu9250, 3));
    assert_ne!(bias(Model::Mpu9250, 3), bias(Model::Mpu9250, 4));
    let most = |model| {
        let all = (0..50).flat_map(|seed| bias(model, seed));
        all.map(f64::abs).fold(0.0, f64::max)
    };
    assert!((4.0..=5.0).contains(&most(Model::Mpu9250)));
    assert!((16.0..=20.0).contains(&most(Model::Mpu6050)));
}
