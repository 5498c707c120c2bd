//! What newer firmware has: settings, limits, and measurements in one reply.

use super::*;

#[test]
fn settings_of_the_newest_firmware_are_read_as_written() {
    let mut bench = Bench::new(V4_2_4);
    for (write, data, read, reply) in [
        (
            68,
            "00 00 10 00 00 00 20 00",
            81,
            "00 00 10 00 00 00 20 00 00*8",
        ),
        (
            69,
            "00 00 00 03 00 00 00 04",
            81,
            "00 00 10 00 00 00 20 00 00 00 00 03 00 00 00 04",
        ),
        (74, "01 02 03 04 05", 75, "01 02 03 04 05"),
        (76, "07 08 09*20 0A 0B", 77, "07 08 09*20 0A 0B"),
        (98, "80 63", 99, "80 63"),
        (
            133,
            "00 00 02 BC 00 00 00 00",
            135,
            "00 00 02 BC 00 00 00 00",
        ),
        (
            134,
            "00 00 01 2C 00 00 00 01",
            136,
            "00 00 01 2C 00 00 00 01",
        ),
        (148, "01 00", 149, "01 00"),
        // 5 for each volt above 6.
        (2, "14", 59, "00 64 01 54 00"),
        (3, "32", 59, "00 64 00 A0 00"),
        (57, "00 70 01 00 02", 59, "00 70 01 00 02"),
        (58, "00 30 01 00", 60, "00 30 01 00"),
        (70, "40 00", 72, "40 00 7F FF"),
        (71, "20 00", 72, "40 00 20 00"),
        (109, "01 00 02 00", 110, "01 00 02 00"),
        (112, "03 00 04 00", 113, "03 00 04 00"),
    ] {
        assert_eq!(bench.write(0x80, write, &hex(data)), [0xFF], "{write}");
        assert_eq!(bench.read(0x80, read), hex(reply), "{read}");
    }
    assert_eq!(bench.write(0x80, 80, &[0; 4]), NOTHING, "wrong key");
    assert_eq!(bench.write(0x80, 80, &hex("E2 2E AB 7A")), [0xFF]);
    assert_eq!(bench.read(0x80, 59), hex("00 69 01 54 00"));
    assert_eq!(bench.read(0x80, 149), [0, 0]);
    for older in [Legacy, LegacyAck, V4_1_11] {
        assert_eq!(older.form(99), None);
    }
}

#[test]
fn firmware_4_1_34_has_the_short_forms_of_the_library_of_2019() {
    let mut bench = Bench::new(V4_1_34);
    for (write, data, read, reply) in [
        (57, "00 70 01 00", 59, "00 70 01 00"),
        (68, "00 00 10 00", 81, "00 00 10 00 00*4"),
        (69, "00 00 20 00", 81, "00 00 10 00 00 00 20 00"),
        (70, "40 00", 72, "40 00 7F FF"),
        (74, "01 02 03", 75, "01 02 03"),
        (76, "07 08", 77, "07 08"),
        (98, "80 63", 99, "80 63"),
        (
            109,
            "00 00 01 00 00 00 02 00",
            110,
            "00 00 01 00 00 00 02 00",
        ),
        (115, "01 FE", 116, "01 FE"),
        (133, "00 00 02 BC 00*4", 135, "00 00 02 BC 00*4"),
        (148, "01", 149, "01"),
    ] {
        assert_eq!(bench.write(0x80, write, &hex(data)), [0xFF], "{write}");
        assert_eq!(bench.read(0x80, read), hex(reply), "{read}");
    }
    assert_eq!(bench.read(0x80, 90), [0; 4]);
    // The key for saving, but none for the defaults.
    assert_eq!(bench.write(0x80, 94, &hex("E2 2E AB 7A")), [0xFF]);
    assert_eq!(bench.write(0x80, 80, &[]), [0xFF]);
    assert_eq!(bench.read(0x80, 149), [0]);
    // A word of the EEPROM: the end of writing is reported.
    assert_eq!(bench.write(0x80, 253, &[5, 0x12, 0x34]), [0xFF, 0xAA]);
    let reply = bench.exchange("80 FC 05");
    let check = crc16(&[0x80, 0xFC, 5, 0x12, 0x34]).to_be_bytes();
    assert_eq!(reply, [&[0x12, 0x34], &check[..]].concat());
}

#[test]
fn words_of_the_eeprom_outlive_a_reset() {
    let mut bench = Bench::new(V4_2_4);
    assert_eq!(bench.write(0x81, 253, &[200, 0xBE, 0xEF]), [0xFF]);
    bench.bus.handle_reset(bench.now);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.exchange("81 FC C8")[..2], [0xBE, 0xEF]);
    assert_eq!(bench.exchange("80 FC C8")[..2], [0xFF, 0xFF]);
}

#[test]
fn voltages_temperatures_and_encoders_can_be_read_together() {
    let mut bench = Bench::new(Mcp);
    bench.bus.set_battery_v(Some(12.0));
    bench.bus.set_temperature_c(Some(31.2));
    assert_eq!(bench.read(0x80, 100), hex("00 78 00 32"));
    assert_eq!(bench.read(0x80, 101), hex("01 38 01 38"));
    assert_eq!(bench.read(0x80, 103), [0, 0]);
    // Offsets are added to the voltages.
    assert_eq!(bench.write(0x80, 115, &[3, 0xFE]), [0xFF]);
    assert_eq!(bench.read(0x80, 116), [3, 0xFE]);
    assert_eq!(bench.read(0x80, 100), hex("00 7B 00 30"));
    assert_eq!(bench.read(0x80, 24), hex("00 7B"));
    for command in [115, 116, 200] {
        assert_eq!(V4_2_4.form(command), None, "{command}");
    }
}

#[test]
fn deviations_beyond_their_limits_are_faults() {
    let mut bench = Bench::new(V4_2_4).wheel(Wheel::RearRight, at_speed(0));
    assert_eq!(bench.write(0x80, 35, &speed_bytes(1000)), [0xFF]);
    assert_eq!(bench.read(0x80, 111), hex("03 E8 00 00"));
    assert_eq!(bench.read(0x80, 90), [0; 4]);
    assert_eq!(bench.write(0x80, 109, &hex("03 00 03 00")), [0xFF]);
    assert_eq!(bench.read(0x80, 90), hex("00 00 01 00"));
    let far = [&speed_bytes(5000)[..], &[1]].concat();
    assert_eq!(bench.write(0x80, 120, &far), [0xFF]);
    assert_eq!(bench.write(0x80, 112, &hex("00 64 00 64")), [0xFF]);
    assert_eq!(bench.read(0x80, 114), hex("00 00 13 88"));
    assert_eq!(bench.read(0x80, 90)[2] & 0x08, 0x08);
}

#[test]
fn an_emergency_stop_can_be_reset_on_an_mcp() {
    let mut bench = Bench::new(Mcp);
    bench.bus.force_faults(Faults {
        emergency_stop: true,
        ..Faults::default()
    });
    assert_eq!(bench.read(0x80, 90), hex("00 00 00 01"));
    assert_eq!(bench.write(0x80, 200, &[]), [0xFF]);
    assert_eq!(bench.read(0x80, 90), [0; 4]);
}

#[test]
fn the_default_speed_limits_moves_to_a_position() {
    let mut bench = Bench::new(V4_2_4);
    assert_eq!(bench.write(0x80, 70, &hex("40 00")), [0xFF]);
    let far = [&speed_bytes(1_000_000)[..], &[1]].concat();
    assert_eq!(bench.write(0x80, 119, &far), [0xFF]);
    let Drive::Speed { qpps, .. } = bench.drive(Wheel::RearRight) else {
        panic!("{:?}", bench.drive(Wheel::RearRight));
    };
    // Half of the 44000 of a new controller.
    assert!((qpps - 22_000.0).abs() < 2.0, "{qpps}");
}

#[test]
fn raw_speeds_are_per_second_except_in_old_firmware() {
    for (firmware, qpps) in [(Legacy, 11), (V4_1_11, 1484), (V4_2_4, 1484)] {
        let mut bench = Bench::new(firmware).wheel(Wheel::RearRight, at_speed(1484));
        let reply = speed_bytes(qpps);
        assert_eq!(bench.read(0x80, 30), [reply.as_slice(), &[0]].concat());
        assert_eq!(bench.read(0x80, 79), [reply.as_slice(), &[0; 4]].concat());
    }
}

fn speed_bytes(qpps: i32) -> [u8; 4] {
    qpps.to_be_bytes()
}

#[test]
fn the_status_holds_all_measurements() {
    let reading = Reading {
        speed_qpps: -1000,
        pulses: 70_000,
        current_a: 1.5,
        duty: 0.5,
    };
    let mut bench = Bench::new(V4_2_4).wheel(Wheel::RearLeft, reading);
    bench.write(0x80, 37, &[0, 0, 0, 0, 0xFF, 0xFF, 0xFC, 0x00]);
    let status = bench.read(0x80, 73);
    let clock = u32::from_be_bytes(status[..4].try_into().unwrap());
    assert_eq!(u128::from(clock), bench.now.as_millis());
    let rest = "00 00 00 00  00 FA 00 FA  00 7D 00 32  00 00 40 00  00 00 00 96 \
         00 00 00 00 00 01 11 70  00 00 00 00 FF FF FC 00  00 00 00 00 FF FF FC 18 \
         00 00 FF E8  00 00 00 00";
    assert_eq!(status[4..], hex(rest));
}

#[test]
fn the_current_limit_can_be_set() {
    let reading = Reading {
        current_a: 8.0,
        ..Reading::default()
    };
    let mut bench = Bench::new(V4_2_4).wheel(Wheel::RearLeft, reading);
    bench.write(0x80, 134, &hex("00 00 03 E8 00*4"));
    bench.wait(Duration::from_millis(400));
    assert_eq!(bench.read(0x80, 90), [0; 4]);
}

#[test]
fn a_long_overcurrent_is_a_fault() {
    let mut bench = Bench::new(Legacy).wheel(
        Wheel::RearLeft,
        Reading {
            current_a: 8.0,
            ..Reading::default()
        },
    );
    assert_eq!(bench.read(0x80, 90), [0]);
    bench.wait(Duration::from_millis(200));
    assert_eq!(bench.read(0x80, 90), [2]);
    assert_eq!(bench.read(0x81, 90), [0]);
    assert_eq!(bench.read(0x80, 49), hex("00 00 03 20"));
}

#[test]
fn averages_are_over_a_second() {
    let mut bench = Bench::new(V4_2_4);
    for step in 0..40 {
        bench.readings[Wheel::RearRight.index()].pulses = step * 50;
        bench.wait(Duration::from_millis(50));
    }
    let average = i32::from_be_bytes(bench.read(0x80, 108)[..4].try_into().unwrap());
    assert!((950..=1050).contains(&average), "{average}");
}
