//! Recorded and computed exchanges, and faults on the line.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

mod moves;
mod newer;

const NOTHING: [u8; 0] = [];

/// The bytes of `80 25 00*8 FA`: two hexadecimal digits each, `*n` repeats.
fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
        let byte = u8::from_str_radix(digits, 16).expect("two hexadecimal digits");
        bytes.extend(std::iter::repeat_n(byte, times.parse().unwrap()));
    }
    bytes
}

struct Bench {
    bus: Roboclaws,
    now: Duration,
    readings: [Reading; 4],
}

impl Bench {
    fn new(firmware: Firmware) -> Self {
        let config = Config {
            firmware,
            ..Config::default()
        };
        Self {
            bus: Roboclaws::new(config),
            now: Duration::from_secs(1),
            readings: [Reading::default(); 4],
        }
    }

    fn wheel(mut self, wheel: Wheel, reading: Reading) -> Self {
        self.readings[wheel.index()] = reading;
        self.bus.handle_readings(self.now, self.readings);
        self
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.bus.handle_readings(self.now, self.readings);
    }

    fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.bus.handle_bytes(self.now, bytes);
        std::iter::from_fn(|| self.bus.poll_output(self.now))
            .flatten()
            .collect()
    }

    /// Sends one request after a pause.
    fn exchange(&mut self, request: &str) -> Vec<u8> {
        self.wait(Duration::from_millis(20));
        self.send(&hex(request))
    }

    /// The data of the reply to a read command.
    fn read(&mut self, address: u8, command: u8) -> Vec<u8> {
        self.wait(Duration::from_millis(20));
        let mut reply = self.send(&[address, command]);
        let check = reply.split_off(reply.len() - self.bus.config.firmware.check_len());
        let whole = [&[address, command], reply.as_slice()].concat();
        assert_eq!(self.bus.config.firmware.check(&whole), check);
        reply
    }

    fn write(&mut self, address: u8, command: u8, data: &[u8]) -> Vec<u8> {
        self.wait(Duration::from_millis(20));
        let mut packet = [&[address, command], data].concat();
        let check = self.bus.config.firmware.check(&packet);
        packet.extend(check);
        self.send(&packet)
    }

    fn drive(&self, wheel: Wheel) -> Drive {
        self.bus.drives()[wheel.index()]
    }
}

fn at_speed(speed_qpps: i32) -> Reading {
    Reading {
        speed_qpps,
        ..Reading::default()
    }
}

fn speed(qpps: f64) -> Drive {
    Drive::Speed {
        qpps,
        acceleration_qpps2: None,
    }
}

/// Sends one request to new controllers whose front right wheel turns at this speed.
fn check(firmware: Firmware, front_right_qpps: i32, request: &str, reply: &str) {
    let mut bench = Bench::new(firmware).wheel(Wheel::FrontRight, at_speed(front_right_qpps));
    assert_eq!(
        bench.exchange(request),
        hex(reply),
        "{request} to {firmware:?}"
    );
}

use Firmware::{Legacy, LegacyAck, Mcp, V4_1_11, V4_1_34, V4_2_4};

#[test]
fn v0_a_recorded_encoder_of_an_old_unit() {
    let mut bench = Bench::new(Legacy).wheel(
        Wheel::RearRight,
        Reading {
            pulses: 6,
            ..Reading::default()
        },
    );
    assert_eq!(bench.exchange("80 10"), hex("00 00 00 06 80 16"));
}

#[test]
fn v1_to_v3_speeds_of_both_motors() {
    let data = "00 00 05 CC FF FF FA 34";
    for (firmware, address, tail, reply) in [
        (Legacy, "81", "23", ""),
        (Legacy, "81", "A3", ""),
        (LegacyAck, "81", "23", ""),
        (LegacyAck, "81", "A3", "FF"),
        (V4_2_4, "81", "AE CE", "FF"),
        (Legacy, "80", "22", ""),
        (V4_2_4, "80", "C1 8B", "FF"),
        (V4_1_11, "80", "C1 8B", "FF"),
    ] {
        let mut bench = Bench::new(firmware);
        let request = format!("{address} 25 {data} {tail}");
        assert_eq!(bench.exchange(&request), hex(reply), "{request}");
        let (right, left, other) = if address == "81" {
            (Wheel::FrontRight, Wheel::FrontLeft, Wheel::RearLeft)
        } else {
            (Wheel::RearRight, Wheel::RearLeft, Wheel::FrontLeft)
        };
        assert_eq!(bench.drive(right), speed(1484.0), "{request}");
        assert_eq!(bench.drive(left), speed(-1484.0), "{request}");
        assert_eq!(bench.drive(other), Drive::RELEASED, "{request}");
    }
}

#[test]
fn v4_v5_stop_and_hold() {
    for (firmware, start, stop) in [
        (Legacy, "81 25 00 00 05 CC FF FF FA 34 23", "81 25 00*8 26"),
        (Legacy, "80 25 00 00 05 CC FF FF FA 34 22", "80 25 00*8 25"),
        (
            V4_2_4,
            "81 25 00 00 05 CC FF FF FA 34 AE CE",
            "81 25 00*8 5B 41",
        ),
        (
            V4_2_4,
            "80 25 00 00 05 CC FF FF FA 34 C1 8B",
            "80 25 00*8 34 04",
        ),
    ] {
        let mut bench = Bench::new(firmware);
        bench.exchange(start);
        assert!(bench.bus.drives().into_iter().any(|drive| !drive.is_zero()));
        bench.exchange(stop);
        assert!(bench.bus.drives().into_iter().all(Drive::is_zero), "{stop}");
    }
}

#[test]
fn v6_release() {
    for (firmware, address, request) in [
        (Legacy, 0x80, "80 22 00*4 22"),
        (V4_2_4, 0x81, "81 22 00*4 DD B7"),
        (V4_2_4, 0x80, "80 22 00*4 98 17"),
    ] {
        let mut bench = Bench::new(firmware);
        bench.write(address, 37, &[0, 0, 5, 0xCC, 0, 0, 5, 0xCC]);
        assert!(bench.bus.drives().contains(&speed(1484.0)));
        bench.exchange(request);
        assert_eq!(bench.bus.drives(), [Drive::RELEASED; 4], "{request}");
    }
}

#[test]
fn v7_v8_speeds_are_signed() {
    check(Legacy, 1484, "81 12", "00 00 05 CC 00 64");
    check(V4_2_4, 1484, "81 12", "00 00 05 CC 00 3A 95");
    check(Legacy, -1484, "81 12", "FF FF FA 34 01 40");
    check(V4_2_4, -1484, "81 12", "FF FF FA 34 01 6E B3");
}

#[test]
fn v9_to_v11_constants_are_written_and_read_in_different_orders() {
    for (firmware, request, reply, address, read) in [
        (
            Legacy,
            "81 1C 00 00 40 00 00 01 00 00 00 00 80 00 00 00 35 E8 7B",
            "",
            0x81,
            "00 01 00 00 00 00 80 00 00 00 40 00 00 00 35 E8",
        ),
        (
            V4_2_4,
            "80 1C 00 00 40 00 00 01 00 00 00 00 80 00 00 00 35 E8 9C 16",
            "FF",
            0x80,
            "00 01 00 00 00 00 80 00 00 00 40 00 00 00 35 E8",
        ),
        (
            Legacy,
            "80 1C 00 00 00 00 00 05 00 00 00 04 00 00 00 00 35 E8 42",
            "",
            0x80,
            "00 05 00 00 00 04 00 00 00 00 00 00 00 00 35 E8",
        ),
    ] {
        let mut bench = Bench::new(firmware);
        assert_eq!(bench.exchange(request), hex(reply));
        assert_eq!(bench.read(address, 55), hex(read), "{request}");
    }
}

#[test]
fn v12_v13_status_has_a_width_and_meanings_per_firmware() {
    check(Legacy, 0, "80 5A", "00 5A");
    check(V4_1_11, 0, "80 5A", "00 00 44 37");
    check(V4_2_4, 0, "80 5A", "00*4 87 BC");
    for (firmware, bits) in [(Legacy, "20"), (V4_1_11, "08 00"), (V4_2_4, "00 08 00 00")] {
        let mut bench = Bench::new(firmware);
        bench.bus.set_battery_v(Some(10.0));
        assert_eq!(bench.read(0x81, 90), hex(bits), "{firmware:?}");
        bench.bus.set_battery_v(None);
        assert!(bench.read(0x81, 90).iter().all(|byte| *byte == 0));
    }
    let mut bench = Bench::new(Legacy);
    bench.bus.set_battery_v(Some(10.0));
    assert_eq!(bench.exchange("81 5A"), hex("20 7B"));
}

#[test]
fn v14_v15_temperature_and_battery() {
    for (firmware, temperature, battery) in [
        (Legacy, "01 38 0C", "00 79 11"),
        (V4_2_4, "01 38 1F 48", "00 79 D8 44"),
    ] {
        let mut bench = Bench::new(firmware);
        bench.bus.set_temperature_c(Some(31.2));
        bench.bus.set_battery_v(Some(12.1));
        assert_eq!(bench.exchange("81 52"), hex(temperature));
        assert_eq!(bench.exchange("80 18"), hex(battery));
    }
}

#[test]
fn the_battery_empties_slowly_and_faster_under_load() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let mut bench = Bench::new(V4_2_4);
    let tenths = |bench: &mut Bench| bench.read(0x80, 24)[1];
    assert_eq!(tenths(&mut bench), 126);
    bench.wait(HOUR);
    let rested = tenths(&mut bench);
    assert!((123..126).contains(&rested), "{rested}");
    for reading in &mut bench.readings {
        reading.current_a = 2.0;
    }
    bench.wait(HOUR);
    bench.readings = [Reading::default(); 4];
    let used = tenths(&mut bench);
    assert!(used + 5 <= rested, "{used} after {rested}");
}

#[test]
fn v16_encoder_modes() {
    for (firmware, request, reply) in [
        (Legacy, "80 5C 00 5C", ""),
        (V4_2_4, "80 5C 00 70 88", "FF"),
    ] {
        let mut bench = Bench::new(firmware);
        bench.write(0x80, 92, &[1]);
        bench.write(0x80, 93, &[1]);
        assert_eq!(bench.read(0x80, 91), [1, 1]);
        assert_eq!(bench.exchange(request), hex(reply));
        assert_eq!(bench.read(0x80, 91), [0, 1]);
    }
}

#[test]
fn the_version_is_a_text_followed_by_two_bytes() {
    for firmware in [Legacy, LegacyAck, V4_1_11, V4_1_34, V4_2_4, Mcp] {
        let text = Bench::new(firmware).read(0x80, 21);
        assert!(text.ends_with(b"\n\0"));
        let name: &[u8] = match firmware {
            Mcp => b"MCP2",
            _ => b"USB Roboclaw 2x",
        };
        assert!(text.starts_with(name), "{firmware:?}");
        assert!(text.len() <= 48);
    }
}

#[test]
fn a_packet_in_pieces_is_one_packet_unless_there_is_a_pause() {
    let packet = hex("81 25 00 00 05 CC FF FF FA 34 AE CE");
    let mut bench = Bench::new(V4_2_4);
    let mut reply = Vec::new();
    for byte in &packet {
        bench.wait(Duration::from_millis(9));
        reply.extend(bench.send(&[*byte]));
    }
    assert_eq!(reply, [0xFF]);

    let mut bench = Bench::new(V4_2_4);
    assert_eq!(bench.send(&packet[..7]), NOTHING);
    bench.wait(Duration::from_millis(11));
    assert_eq!(bench.send(&packet[7..]), NOTHING);
    bench.wait(Duration::from_millis(11));
    assert_eq!(bench.send(&packet), [0xFF]);
}

#[test]
fn invalid_and_foreign_packets_are_ignored() {
    for request in [
        "81 25 00 00 05 CC FF FF FA 34 AE CF", // wrong checksum
        "82 12",                               // another address
        "82 25 00*8 00 00",                    // another address
        "81 F0",                               // no such command
        "12 34 56",                            // no address
    ] {
        let mut bench = Bench::new(V4_2_4);
        assert_eq!(bench.exchange(request), NOTHING, "{request}");
        assert_eq!(bench.bus.drives(), [Drive::RELEASED; 4]);
        assert_eq!(
            bench.exchange("80 5A"),
            hex("00*4 87 BC"),
            "after {request}"
        );
    }
    // A packet for another address needs no pause after it.
    let mut bench = Bench::new(V4_2_4);
    let request = "82 25 00*8 00 00 80 5A";
    assert_eq!(bench.exchange(request), hex("00*4 87 BC"));
    // The length of an unknown one cannot be known.
    assert_eq!(bench.exchange("81 F0 80 5A"), NOTHING);
}

#[test]
fn encoders_count_wrap_and_can_be_set() {
    let pulses = |pulses| Reading {
        pulses,
        ..Reading::default()
    };
    let mut bench = Bench::new(V4_2_4).wheel(Wheel::RearLeft, pulses(5));
    assert_eq!(bench.read(0x80, 17), hex("00 00 00 05 00"));
    bench.readings[Wheel::RearLeft.index()] = pulses(-2);
    assert_eq!(bench.read(0x80, 17), hex("FF FF FF FE 01"), "underflow");
    assert_eq!(bench.read(0x80, 17), hex("FF FF FF FE 00"), "reported once");
    bench.readings[Wheel::RearLeft.index()] = pulses(0);
    assert_eq!(bench.read(0x80, 17), hex("00 00 00 00 04"), "overflow");
    bench.write(0x80, 23, &[0, 0, 1, 0]);
    assert_eq!(bench.read(0x80, 78), hex("00 00 00 00 00 00 01 00"));
    bench.write(0x80, 20, &[]);
    assert_eq!(bench.read(0x80, 78), hex("00*8"));
}

#[test]
fn mixed_commands_wait_for_drive_and_turn() {
    let mut bench = Bench::new(Legacy);
    bench.write(0x81, 8, &[127]);
    assert_eq!(bench.bus.drives(), [Drive::RELEASED; 4]);
    bench.write(0x81, 10, &[0]);
    assert_eq!(bench.drive(Wheel::FrontLeft), Drive::Duty(1.0));
    // A wheel's duty is limited to full power.
    bench.write(0x81, 10, &[127]);
    assert_eq!(bench.drive(Wheel::FrontLeft), Drive::Duty(1.0));
    assert_eq!(bench.drive(Wheel::FrontRight), Drive::Duty(0.0));
    bench.bus.handle_reset(bench.now);
    bench.wait(Duration::from_millis(300));
    bench.write(0x81, 8, &[127]);
    assert_eq!(
        bench.bus.drives(),
        [Drive::RELEASED; 4],
        "a reset clears the state"
    );
}

#[test]
fn a_reset_loses_unsaved_settings() {
    let mut bench = Bench::new(V4_2_4);
    bench.write(0x80, 92, &[1]);
    assert_eq!(bench.write(0x80, 94, &[0; 4]), NOTHING, "wrong key");
    assert_eq!(bench.write(0x80, 94, &hex("E2 2E AB 7A")), [0xFF]);
    bench.write(0x80, 93, &[1]);
    bench.write(0x80, 37, &[0, 0, 1, 0, 0, 0, 1, 0]);
    bench.bus.handle_reset(bench.now);
    assert_eq!(bench.bus.drives(), [Drive::RELEASED; 4]);
    assert_eq!(bench.exchange("80 5B"), NOTHING, "mute");
    bench.wait(Duration::from_millis(250));
    assert_eq!(bench.read(0x80, 91), [1, 0]);
}

#[test]
fn the_serial_timeout_stops_the_motors() {
    let mut bench = Bench::new(V4_2_4);
    bench.write(0x80, 14, &[5]);
    assert_eq!(bench.read(0x80, 15), [5]);
    bench.write(0x80, 37, &[0, 0, 1, 0, 0, 0, 1, 0]);
    let due = bench.now + Duration::from_millis(500);
    assert_eq!(bench.bus.next_timeout(), Some(due));
    bench.wait(Duration::from_millis(470));
    assert_eq!(bench.drive(Wheel::RearLeft), speed(256.0));
    bench.read(0x80, 24);
    bench.wait(Duration::from_millis(480));
    assert_eq!(bench.drive(Wheel::RearLeft), speed(256.0));
    bench.wait(Duration::from_millis(20));
    assert_eq!(bench.bus.drives(), [Drive::RELEASED; 4]);
    assert_eq!(bench.bus.next_timeout(), None);
}

#[test]
fn moves_for_a_distance_follow_each_other() {
    let mut bench = Bench::new(V4_2_4);
    let queue = |qpps: i32, pulses: u32| {
        let mut data = [qpps.to_be_bytes(), pulses.to_be_bytes()].concat();
        data.push(0);
        data
    };
    assert_eq!(bench.read(0x80, 47), [0x80, 0x80]);
    bench.write(0x80, 41, &queue(1000, 50));
    bench.write(0x80, 41, &queue(-500, 20));
    assert_eq!(bench.read(0x80, 47), [1, 0x80]);
    assert_eq!(bench.drive(Wheel::RearRight), speed(1000.0));
    for (pulses, qpps, waiting) in [(49, 1000.0, 1), (50, -500.0, 0), (29, 0.0, 0x80)] {
        bench.readings[Wheel::RearRight.index()].pulses = pulses;
        assert_eq!(bench.read(0x80, 47)[0], waiting, "at {pulses}");
        assert_eq!(bench.drive(Wheel::RearRight), speed(qpps), "at {pulses}");
    }
}

#[test]
fn the_qpps_setting_limits_the_speed() {
    let mut bench = Bench::new(V4_2_4);
    bench.write(0x81, 28, &hex("00*12 00 00 03 E8"));
    bench.write(0x81, 35, &5000i32.to_be_bytes());
    assert_eq!(bench.drive(Wheel::FrontRight), speed(1000.0));
}

#[test]
fn replies_can_be_corrupted() {
    let mut bench = Bench::new(V4_2_4);
    bench.bus.spoil_next(Spoil::Drop);
    assert_eq!(bench.exchange("80 5A"), NOTHING);
    bench.bus.spoil_next(Spoil::Corrupt);
    let wrong = bench.exchange("80 5A");
    assert_eq!(wrong.len(), 6);
    assert_ne!(wrong, hex("00*4 87 BC"));
    bench
        .bus
        .spoil_next(Spoil::Delay(Duration::from_millis(50)));
    assert_eq!(bench.exchange("80 5A"), NOTHING);
    assert_eq!(
        bench.bus.next_timeout(),
        Some(bench.now + Duration::from_millis(50))
    );
    bench.wait(Duration::from_millis(50));
    assert_eq!(bench.send(&[]), hex("00*4 87 BC"));
}

#[test]
fn every_known_command_is_answered_in_its_form() {
    for firmware in [Legacy, LegacyAck, V4_1_11, V4_1_34, V4_2_4, Mcp] {
        for command in 0..=255 {
            let mut bench = Bench::new(firmware);
            match firmware.form(command) {
                None => assert_eq!(bench.exchange(&format!("80 {command:02X}")), NOTHING),
                Some(Form::Read) => assert!(!bench.read(0x80, command).is_empty()),
                Some(Form::ReadAt) => {
                    assert_eq!(bench.exchange(&format!("80 {command:02X} 07")).len(), 4);
                }
                // Other tests cover the keys of the settings.
                Some(Form::Write(4)) if matches!(command, 80 | 94) => {}
                Some(Form::Write(len)) => {
                    let reply: &[u8] = match firmware {
                        Legacy | LegacyAck => &[],
                        V4_1_34 if command == 253 => &[0xFF, 0xAA],
                        _ => &[0xFF],
                    };
                    let data = vec![1; len];
                    assert_eq!(bench.write(0x80, command, &data), reply, "{command}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(
        chunks in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), 0u64..30), 0..40),
        firmware in prop::sample::select(vec![Legacy, LegacyAck, V4_1_11, V4_1_34, V4_2_4, Mcp]),
    ) {
        let mut bench = Bench::new(firmware);
        for (chunk, pause_ms) in chunks {
            bench.wait(Duration::from_millis(pause_ms));
            bench.send(&chunk);
        }
        bench.wait(Duration::from_millis(20));
        prop_assert!(!bench.send(&[0x80, 90]).is_empty());
    }

    #[test]
    fn valid_packets_do_no_harm(
        packets in prop::collection::vec((0x80u8..=0x81, any::<u8>(), any::<[u8; 33]>(), any::<i64>()), 0..40),
    ) {
        let mut bench = Bench::new(V4_2_4);
        for (address, command, data, pulses) in packets {
            match V4_2_4.form(command) {
                Some(Form::Write(len)) => drop(bench.write(address, command, &data[..len])),
                Some(Form::Read) => drop(bench.read(address, command)),
                Some(Form::ReadAt) => drop(bench.send(&[address, command, data[0]])),
                None => {}
            }
            bench.readings[0].pulses = pulses >> 8;
        }
    }
}

#[test]
fn a_single_controller_drives_both_wheels_of_a_side() {
    let mut bench = Bench::new(Firmware::V4_2_4);
    bench.bus = Roboclaws::new(Config {
        is_single: true,
        ..Config::default()
    });
    let reading = at_speed(-742);
    let mut bench = bench.wheel(Wheel::RearLeft, reading);
    // M1 is the right side.
    let data = [1484_i32.to_be_bytes(), 0_i32.to_be_bytes()].concat();
    assert_eq!(bench.write(0x80, 37, &data), [0xFF]);
    for wheel in [Wheel::FrontRight, Wheel::RearRight] {
        assert_eq!(bench.drive(wheel), speed(1484.0));
    }
    for wheel in [Wheel::FrontLeft, Wheel::RearLeft] {
        assert_eq!(bench.drive(wheel), speed(0.0));
    }
    assert_eq!(bench.read(0x80, 19)[..4], (-742_i32).to_be_bytes());
    // Nobody has the other address.
    assert_eq!(bench.exchange("81 15"), [0; 0]);
}
