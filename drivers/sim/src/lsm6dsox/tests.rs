//! Tests of the chips through their registers, with a simulated time.

use super::*;
use crate::motion_sensor::testing::{Bench, MS};

fn bench(model: Model) -> Bench<LsmChips> {
    Bench::new(model)
}

#[test]
fn each_board_has_its_identity_and_its_first_state() {
    for (model, who_am_i, has_compass) in [
        (Model::Lsm6dsox, 0x6C, true),
        (Model::Lsm6ds33, 0x69, true),
        (Model::Lsm6dsr, 0x6B, true),
        (Model::Alone, 0x6C, false),
    ] {
        let mut bench = bench(model);
        assert_eq!(bench.read(ADDRESS, 0x0F, 1), [who_am_i]);
        assert_eq!(bench.read(ADDRESS, 0x10, 3), [0x00, 0x00, 0x04]);
        assert!(bench.is_silent(0x6B) && bench.is_silent(0x1E));
        assert_eq!(bench.is_silent(COMPASS_ADDRESS), !has_compass);
    }
}

#[test]
fn a_host_reads_the_bytes_of_the_hardware_sheet() {
    let mut bench = bench(Model::Lsm6dsox);
    // 4 g and 500 degrees per second, 208 Hz.
    for setting in [[0x12, 0x44], [0x10, 0x58], [0x11, 0x54]] {
        bench.write(ADDRESS, &setting);
    }
    bench.wait(50 * MS);
    assert_eq!(bench.read(ADDRESS, 0x1E, 1), [0x07]);
    let accel = [0xFF, 0xFB, 0x00, 0x02, 0x05, 0x20];
    let gyro = [0x3B, 0x02, 0xC5, 0xFD, 0x52, 0x16];
    // 28 degrees.
    let all = [&[0x00, 0x03][..], &gyro, &accel].concat();
    assert_eq!(bench.read(ADDRESS, 0x20, 14), all);
    assert_eq!(bench.read(ADDRESS, 0x1E, 1), [0x04], "reading clears it");
    bench.wait(5 * MS);
    assert_eq!(bench.read(ADDRESS, 0x1E, 1), [0x07]);
}

#[test]
fn the_magnetometer_reads_the_bytes_of_the_hardware_sheet() {
    let mut bench = bench(Model::Lsm6dsox);
    bench.truth.field_gauss = [0.2, -0.1, -0.4];
    for setting in [
        [0x20, 0xFC],
        [0x21, 0x00],
        [0x22, 0x00],
        [0x23, 0x0C],
        [0x24, 0x40],
    ] {
        bench.write(COMPASS_ADDRESS, &setting);
    }
    bench.wait(20 * MS);
    for register in [0x27, 0xA7] {
        bench.wait(13 * MS);
        let bytes = bench.read(COMPASS_ADDRESS, register, 7);
        assert_eq!(bytes[0] & 0x0F, 0x0F);
        assert_eq!(bytes[1..], [0x58, 0x05, 0x54, 0xFD, 0x4F, 0xF5]);
    }
    assert_eq!(bench.read(COMPASS_ADDRESS, 0x27, 1), [0x00]);
    bench.write(COMPASS_ADDRESS, &[0x21, 0x04]);
    assert_eq!(bench.read(COMPASS_ADDRESS, 0x20, 3), [0x10, 0x00, 0x03]);
}

#[test]
fn after_a_reset_the_settings_are_gone() {
    let mut bench = bench(Model::Lsm6ds33);
    bench.write(ADDRESS, &[0x10, 0x58]);
    bench.write(ADDRESS, &[0x12, 0x45]);
    assert_eq!(bench.read(ADDRESS, 0x10, 3), [0x00, 0x00, 0x05]);
    bench.write(ADDRESS, &[0x10, 0x58]);
    bench.wait(2 * MS);
    assert_eq!(bench.read(ADDRESS, 0x10, 3), [0x00, 0x00, 0x04]);
    bench.wait(100 * MS);
    assert_eq!(bench.read(ADDRESS, 0x1E, 1), [0x04], "it measures nothing");
}
