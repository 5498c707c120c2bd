use amber_sim::ninedof::Errors;

use super::*;
use crate::i2c::BusError;
use crate::i2c::fake::{Fake, RESTING};

type Reading = board::Reading<Raw>;

const MS: Duration = Duration::from_millis(1);

/// A board on a fake bus, and a time for both.
struct Bench {
    board: Board,
    bus: Fake,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            board: Board::new(Gain::Fine, now),
            bus: Fake::new(Errors::none()),
            now,
        }
    }

    /// A board whose chips already measure.
    fn ready() -> Self {
        let mut bench = Self::new();
        bench.read(Sensors::ALL);
        bench.pass(300 * MS);
        assert_eq!(bench.read(Sensors::ALL).settling, Sensors::default());
        bench.notes();
        bench
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.bus.pass(time);
    }

    fn read(&mut self, wanted: Sensors) -> Reading {
        self.board.read(self.now, &mut self.bus, wanted).unwrap()
    }

    /// Reads every 10 ms, and returns which sensors delivered at the end.
    fn read_for(&mut self, time: Duration) -> (bool, bool, bool) {
        let end = self.now + time;
        let mut raw = Raw::default();
        while self.now < end {
            self.pass(10 * MS);
            raw = self.read(Sensors::ALL).raw;
        }
        (
            raw.accel.is_some(),
            raw.gyro.is_some(),
            raw.magnet.is_some(),
        )
    }

    fn notes(&mut self) -> Vec<String> {
        let notes = std::iter::from_fn(|| self.board.poll_note());
        notes.map(|note| note.to_string()).collect()
    }
}

#[test]
fn chips_are_set_up_when_they_are_first_read() {
    let mut bench = Bench::new();
    let first = bench.read(Sensors::ALL);
    assert_eq!(first.raw, Raw::default());
    assert_eq!(first.settling, Sensors::ALL);
    bench.pass(300 * MS);
    let second = bench.read(Sensors::ALL);
    assert_eq!(second.raw.accel, Some([0, 0, 500 << 4]));
    assert_eq!(second.raw.gyro, Some([0, 0, 0]));
    assert_eq!(second.raw.magnet, Some([0, 134, -270]));
    assert_eq!(bench.board.trouble(), None);
    assert_eq!(
        bench.notes(),
        [
            "ready: accelerometer LSM303DLHC at 0x19",
            "ready: gyroscope L3GD20 at 0x6b",
            "ready: magnetometer LSM303DLHC at 0x1e",
        ]
    );
    // A magnetometer ignores bit 7, so the driver does not set it there.
    let state = bench.bus.state();
    let registers = state.written.iter().filter(|(address, _)| *address == 0x1E);
    assert!(registers.clone().count() > 5);
    assert!(registers.into_iter().all(|(_, written)| written[0] < 0x80));
}

#[test]
fn only_the_requested_chips_are_accessed() {
    let mut bench = Bench::new();
    let gyro = Sensors {
        gyro: true,
        ..Sensors::default()
    };
    bench.read(gyro);
    bench.pass(300 * MS);
    let raw = bench.read(gyro).raw;
    assert_eq!(
        (raw.accel, raw.gyro, raw.magnet),
        (None, Some([0; 3]), None)
    );
    let state = bench.bus.state();
    assert!(state.written.iter().all(|(address, _)| *address == 0x6B));
}

#[test]
fn the_latest_sample_is_repeated_until_a_new_one_is_ready() {
    let mut bench = Bench::ready();
    bench.pass(10 * MS);
    let first = bench.read(Sensors::ALL);
    assert_eq!(bench.read(Sensors::ALL), first);
}

#[test]
fn a_missing_chip_does_not_affect_the_others_and_is_logged_once() {
    for (address, there, note) in [
        (
            0x19,
            (false, true, true),
            "accelerometer: no answer; retrying",
        ),
        (0x6B, (true, false, true), "gyroscope: no answer; retrying"),
        (
            0x1E,
            (true, true, false),
            "magnetometer: no answer; retrying",
        ),
    ] {
        let mut bench = Bench::ready();
        bench.bus.state().missing.push(address);
        assert_eq!(bench.read_for(20_000 * MS), there);
        assert_eq!(bench.notes(), [note]);
        assert_eq!(bench.board.trouble(), Some(note.replace("; retrying", "")));
        bench.bus.state().missing.clear();
        assert_eq!(bench.read_for(6_000 * MS), (true, true, true));
        let back = bench.notes();
        assert!(back[0].contains("works again after 2"), "{back:?}");
        assert_eq!(back.len(), 1);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn a_missing_chip_is_polled_less_often() {
    let mut bench = Bench::ready();
    bench.bus.state().missing = vec![0x19, 0x6B, 0x1E];
    bench.read_for(20_000 * MS);
    bench.bus.state().missing.clear();
    bench.bus.state().written.clear();
    bench.read(Sensors::ALL);
    assert!(bench.bus.state().written.is_empty(), "it waits up to 2 s");
}

#[test]
fn a_single_nak_is_not_logged() {
    let mut bench = Bench::ready();
    for _ in 0..50 {
        bench.bus.state().naks = 1;
        assert_eq!(bench.read_for(10 * MS), (true, true, true));
    }
    assert!(bench.notes().is_empty());
}

#[test]
fn a_board_that_lost_power_is_set_up_again() {
    let mut bench = Bench::ready();
    for pause in [0, 10, 10_000] {
        bench.pass(pause * MS);
        let now = bench.bus.state().now;
        bench.bus.state().chips.restart(now);
        // The driver notices the accelerometer because its samples stop.
        assert_eq!(bench.read_for(600 * MS), (true, true, true), "{pause}");
        let raw = bench.read(Sensors::ALL).raw;
        assert_eq!(raw.accel, Some([0, 0, 500 << 4]));
        assert_eq!(raw.magnet, Some([0, 134, -270]));
    }
    assert!(bench.notes().is_empty(), "this is not a problem");
}

/// Two programs may share the bus: a range that the other one sets would halve all readings.
#[test]
fn a_range_that_another_program_has_changed_is_set_again() {
    // ±8 g, 2000 degrees per second, 8.1 gauss.
    for (address, register, value, sensor) in [
        (0x19, 0x23, 0xA8, "accelerometer"),
        (0x6B, 0x23, 0xA0, "gyroscope"),
        (0x1E, 0x01, 0xE0, "magnetometer"),
    ] {
        let mut bench = Bench::ready();
        bench.bus.state().truth.turn_deg_s = [0.0, 0.0, 35.0];
        bench.pass(300 * MS);
        let right = bench.read(Sensors::ALL).raw;
        assert_eq!(right.gyro, Some([0, 0, 2000]));
        for _ in 0..3 {
            bench
                .bus
                .transfer(address, &[register, value], &mut [])
                .unwrap();
            // At no time is there another value.
            for _ in 0..50 {
                bench.pass(MS);
                let raw = bench.read(Sensors::ALL).raw;
                assert!(
                    raw.accel.is_none_or(|digits| Some(digits) == right.accel),
                    "{raw:?}"
                );
                assert!(
                    raw.gyro.is_none_or(|digits| Some(digits) == right.gyro),
                    "{raw:?}"
                );
                assert!(
                    raw.magnet.is_none_or(|digits| Some(digits) == right.magnet),
                    "{raw:?}"
                );
            }
            assert_eq!(bench.read(Sensors::ALL).raw, right, "{sensor}");
        }
        // Logged once, although it happened three times.
        let notes = bench.notes();
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        let expected =
            format!("{sensor}: another program has changed register {register:#04x} from");
        assert!(note.starts_with(&expected), "{note}");
        assert!(bench.board.trouble().unwrap().starts_with(sensor));
        assert_eq!(bench.read_for(3_000 * MS), (true, true, true));
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn samples_of_a_chip_without_settings_are_ignored() {
    let mut bench = Bench::ready();
    let now = bench.bus.state().now;
    bench.bus.state().chips.restart(now);
    bench.pass(10_000 * MS);
    let raw = bench.read(Sensors::ALL).raw;
    assert_eq!(raw, Raw::default(), "zeros are not a reading");
}

#[test]
fn an_out_of_range_field_is_not_a_reading() {
    let mut bench = Bench::ready();
    bench.bus.state().truth.field_gauss = [0.0, 5.0, 0.0];
    assert_eq!(bench.read_for(100 * MS), (true, true, false));
    assert_eq!(
        bench.notes(),
        ["magnetometer: the magnetic field is out of range; retrying"]
    );
    bench.bus.state().truth = RESTING;
    assert_eq!(bench.read_for(3_000 * MS), (true, true, true));
    assert_eq!(bench.notes().len(), 1);
}

#[test]
fn a_broken_bus_is_reported() {
    let mut bench = Bench::ready();
    bench.bus.state().broken = Some("the bus is stuck".into());
    let failed = bench.board.read(bench.now, &mut bench.bus, Sensors::ALL);
    assert_eq!(failed, Err("the bus is stuck".into()));
    bench.bus.state().broken = None;
    bench.board.reopened(bench.now);
    assert_eq!(bench.read_for(600 * MS), (true, true, true));
}

/// Answers all registers of a chip with the same byte.
struct Stranger(u8);

impl Bus for Stranger {
    fn transfer(&mut self, _: u8, _: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        read.fill(self.0);
        Ok(())
    }
}

#[test]
fn other_chips_and_garbage_are_not_sensors() {
    for byte in 0..=255 {
        let start = Instant::now();
        let mut board = Board::new(Gain::Fine, start);
        for time in 0..300 {
            let now = start + time * 10 * MS;
            let reading = board.read(now, &mut Stranger(byte), Sensors::ALL).unwrap();
            assert_eq!(reading.raw, Raw::default(), "{byte:#x}");
        }
        let notes: Vec<_> = std::iter::from_fn(|| board.poll_note()).collect();
        assert_eq!(notes.len(), 3, "{byte:#x}: {notes:?}");
    }
}
