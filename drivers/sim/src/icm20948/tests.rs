//! Tests of the sensor through its registers, with a simulated time.

use super::*;
use crate::motion_sensor::testing::{Bench, MS};

/// Awake, with 8 g and 500 degrees per second.
fn ready() -> Bench<IcmChips> {
    let mut bench = Bench::new(Model::Icm20948);
    // 20, -10 and -40 uT on the axes of the magnetometer.
    bench.truth.field_gauss = [0.2, 0.1, 0.4];
    for setting in [
        [0x06, 0x01],
        [0x7F, 0x20],
        [0x00, 0x04],
        [0x01, 0x1B],
        [0x11, 0x04],
        [0x14, 0x1D],
        [0x7F, 0x00],
    ] {
        bench.write(ADDRESS, &setting);
    }
    bench.wait(60 * MS);
    bench
}

#[test]
fn the_sensor_has_its_identity_and_its_first_state() {
    let mut bench = Bench::<IcmChips>::new(Model::Icm20948);
    assert_eq!(bench.read(ADDRESS, 0x00, 1), [0xEA]);
    assert_eq!(bench.read(ADDRESS, 0x05, 2), [0x40, 0x41]);
    assert!(bench.is_silent(0x68) && bench.is_silent(COMPASS_ADDRESS));
    bench.wait(100 * MS);
    assert_eq!(bench.read(ADDRESS, 0x1A, 1), [0x00], "it is asleep");
}

#[test]
fn a_host_reads_the_bytes_of_the_hardware_sheet() {
    let mut bench = ready();
    assert_eq!(bench.read(ADDRESS, 0x1A, 1), [0x01]);
    let expected = [
        0xFE, 0x00, 0x01, 0x00, 0x10, 0x00, 0x02, 0x8F, 0xFD, 0x71, 0x19, 0x96,
    ];
    assert_eq!(bench.read(ADDRESS, 0x2D, 12), expected);
    // 28 degrees.
    assert_eq!(bench.read(ADDRESS, 0x39, 2), [0x09, 0x21]);
    bench.write(ADDRESS, &[0x0F, 0x02]);
    assert_eq!(bench.read(COMPASS_ADDRESS, 0x00, 2), [0x48, 0x09]);
    bench.write(COMPASS_ADDRESS, &[0x31, 0x08]);
    bench.wait(10 * MS);
    let field = [0x01, 0x85, 0x00, 0xBD, 0xFF, 0xF5, 0xFE, 0x00, 0x00];
    assert_eq!(bench.read(COMPASS_ADDRESS, 0x10, 9), field);
}

#[test]
fn the_sensor_reads_its_magnetometer_itself() {
    let mut bench = ready();
    bench.write(ADDRESS, &[0x0F, 0x02]);
    bench.write(ADDRESS, &[0x03, 0x20]);
    assert!(bench.is_silent(COMPASS_ADDRESS), "it has its own bus");
    // The mode by slave 4, and the data by slave 0.
    for setting in [
        [0x7F, 0x30],
        [0x13, 0x0C],
        [0x14, 0x31],
        [0x16, 0x08],
        [0x15, 0x80],
        [0x03, 0x8C],
        [0x04, 0x11],
        [0x05, 0x89],
        [0x7F, 0x00],
    ] {
        bench.write(ADDRESS, &setting);
    }
    assert_eq!(bench.read(ADDRESS, 0x17, 1), [0x40]);
    assert_eq!(bench.read(ADDRESS, 0x17, 1), [0x00]);
    bench.wait(20 * MS);
    let field = [0x85, 0x00, 0xBD, 0xFF, 0xF5, 0xFE];
    assert_eq!(bench.read(ADDRESS, 0x3B, 6), field);
    // A read by slave 4, and one of nobody.
    for (address, status) in [(0x8C, 0x40), (0x8D, 0x50)] {
        for setting in [
            [0x7F, 0x30],
            [0x13, address],
            [0x14, 0x01],
            [0x15, 0x80],
            [0x7F, 0x00],
        ] {
            bench.write(ADDRESS, &setting);
        }
        assert_eq!(bench.read(ADDRESS, 0x17, 1), [status]);
    }
    bench.write(ADDRESS, &[0x7F, 0x30]);
    assert_eq!(bench.read(ADDRESS, 0x17, 1), [0x09]);
}

#[test]
fn after_a_reset_the_settings_are_gone() {
    let mut bench = ready();
    bench.write(ADDRESS, &[0x06, 0x80]);
    assert_eq!(bench.read(ADDRESS, 0x06, 1), [0xC1]);
    bench.write(ADDRESS, &[0x06, 0x01]);
    bench.wait(50 * MS);
    assert_eq!(bench.read(ADDRESS, 0x06, 1), [0x41], "that was too early");
    bench.write(ADDRESS, &[0x7F, 0x20]);
    assert_eq!(bench.read(ADDRESS, 0x00, 2), [0x00, 0x01]);
}
