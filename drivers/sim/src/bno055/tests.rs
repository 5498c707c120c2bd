//! Tests of the sensor through its registers, with a simulated time.

use super::*;
use crate::motion_sensor::testing::{Bench, MS};

const NDOF: [u8; 2] = [0x3D, 0x0C];
const CONFIG: [u8; 2] = [0x3D, 0x00];

/// Started, and at rest on level ground, facing north.
fn started() -> Bench<BnoChips> {
    let mut bench = Bench::new(Model::Bno055);
    bench.truth.specific_force_g = [0.0, 0.0, 1.0];
    bench.truth.turn_deg_s = [0.0; 3];
    bench.truth.field_gauss = [0.0, 0.2, -0.45];
    bench.wait(400 * MS);
    bench
}

#[test]
fn it_starts_slowly() {
    let mut bench = Bench::<BnoChips>::new(Model::Bno055);
    bench.wait(399 * MS);
    assert!(bench.is_silent(ADDRESS));
    bench.wait(MS);
    assert_eq!(bench.read(ADDRESS, 0x00, 4), [0xA0, 0xFB, 0x32, 0x0F]);
    assert_eq!(bench.read(ADDRESS, 0x3B, 3), [0x80, 0x00, 0x00]);
    assert!(bench.is_silent(0x29));
    bench.write(ADDRESS, &[0x3F, 0x20]);
    bench.wait(649 * MS);
    assert!(bench.is_silent(ADDRESS));
    bench.wait(MS);
    assert_eq!(bench.read(ADDRESS, 0x39, 1), [0x00]);
}

#[test]
fn a_host_reads_the_bytes_of_the_hardware_sheet() {
    let mut bench = started();
    bench.truth.turn_deg_s = [0.0, 0.0, 10.0];
    bench.truth.field_gauss = [0.2, -0.1, -0.4];
    bench.write(ADDRESS, &[0x3B, 0x80]);
    bench.write(ADDRESS, &NDOF);
    bench.wait(99 * MS);
    assert_eq!(bench.read(ADDRESS, 0x08, 46), [0; 46], "not yet");
    bench.wait(20 * MS);
    let bytes = bench.read(ADDRESS, 0x08, 18);
    assert_eq!(bytes[..6], [0x00, 0x00, 0x00, 0x00, 0xD5, 0x03]);
    assert_eq!(bytes[6..12], [0x40, 0x01, 0x60, 0xFF, 0x80, 0xFD]);
    assert_eq!(bytes[12..], [0x00, 0x00, 0x00, 0x00, 0xA0, 0x00]);
    assert_eq!(bench.read(ADDRESS, 0x34, 1), [28]);
    assert_eq!(bench.read(ADDRESS, 0x39, 1), [0x05]);
}

#[test]
fn it_computes_its_attitude() {
    let mut bench = started();
    // East.
    bench.truth.field_gauss = [-0.2, 0.0, -0.45];
    bench.write(ADDRESS, &[0x3B, 0x01]);
    bench.write(ADDRESS, &NDOF);
    bench.wait(120 * MS);
    let bytes = bench.read(ADDRESS, 0x1A, 26);
    assert_eq!(bytes[..2], [0xA0, 0x05]);
    assert_eq!(bytes[6..14], [0x41, 0x2D, 0, 0, 0, 0, 0xBF, 0xD2]);
    assert_eq!(bytes[14..20], [0; 6]);
    assert_eq!(bytes[20..], [0, 0, 0, 0, 0xE8, 0x03]);
    // A turn to the left by 45 degrees, and the field follows.
    bench.truth.turn_deg_s = [0.0, 0.0, 90.0];
    for step in 0..50 {
        let heading = (90.0 - 0.9 * f64::from(step)).to_radians();
        bench.truth.field_gauss = [-0.2 * heading.sin(), 0.2 * heading.cos(), -0.45];
        bench.wait(10 * MS);
        bench.read(ADDRESS, 0x1A, 2);
    }
    let heading = bench.read(ADDRESS, 0x1A, 2);
    let heading = f64::from(i16::from_le_bytes([heading[0], heading[1]])) / 16.0;
    assert!((heading - 45.0).abs() < 1.5, "{heading}");
}

#[test]
fn most_registers_change_only_in_the_configuration_mode() {
    let mut bench = started();
    bench.write(ADDRESS, &NDOF);
    bench.write(ADDRESS, &[0x3B, 0x01]);
    assert_eq!(bench.read(ADDRESS, 0x3B, 1), [0x80]);
    bench.write(ADDRESS, &[0x3D, 0x08]);
    assert_eq!(bench.read(ADDRESS, 0x3D, 1), [0x0C], "not directly");
    bench.write(ADDRESS, &CONFIG);
    bench.write(ADDRESS, &[0x3B, 0x01]);
    assert_eq!(bench.read(ADDRESS, 0x3B, 1), [0x01]);
    // The settings of the sensors have the numbers of data.
    bench.write(ADDRESS, &[0x07, 0x01]);
    assert_eq!(bench.read(ADDRESS, 0x08, 1), [0x0D]);
    bench.write(ADDRESS, &[0x08, 0x0E]);
    assert_eq!(bench.read(ADDRESS, 0x08, 1), [0x0E]);
    bench.write(ADDRESS, &[0x07, 0x00]);
    assert_eq!(bench.read(ADDRESS, 0x08, 1), [0x00]);
}

#[test]
fn its_calibration_is_learned_and_can_be_written_back() {
    let mut bench = started();
    bench.sensor = Bno055::of_seed(Model::Bno055, 5);
    bench.write(ADDRESS, &NDOF);
    let run = |bench: &mut Bench<BnoChips>, turn_deg_s, time_ms: u32| {
        bench.truth.turn_deg_s = [0.0, 0.0, turn_deg_s];
        for _ in 0..time_ms / 10 {
            bench.wait(10 * MS);
            bench.read(ADDRESS, 0x35, 1);
        }
        bench.read(ADDRESS, 0x35, 1)[0]
    };
    assert_eq!(run(&mut bench, 0.0, 900), 0x00);
    assert_eq!(run(&mut bench, 0.0, 300), 0x30);
    assert_eq!(run(&mut bench, 90.0, 1_000), 0x71);
    assert_eq!(run(&mut bench, 90.0, 4_000), 0xF3);
    assert_eq!(
        bench.read(ADDRESS, 0x55, 22),
        [0; 22],
        "only when it is configured"
    );
    bench.write(ADDRESS, &CONFIG);
    let profile = bench.read(ADDRESS, 0x55, 22);
    let hard_iron = bench.sensor.errors().hard_iron_gauss[0];
    let learned = f64::from(i16::from_le_bytes([profile[6], profile[7]])) / 1_600.0;
    assert!((learned - hard_iron).abs() < 0.001, "{learned} {hard_iron}");
    // After a loss of power.
    let now = bench.now;
    bench.sensor.restart(now);
    bench.wait(400 * MS);
    assert_ne!(bench.read(ADDRESS, 0x55, 22), profile);
    bench.write(ADDRESS, &[&[0x55], &profile[..]].concat());
    assert_eq!(bench.read(ADDRESS, 0x55, 22), profile);
    bench.write(ADDRESS, &NDOF);
    run(&mut bench, 0.0, 1_200);
    assert_eq!(run(&mut bench, 90.0, 300), 0xF3);
}
