//! Tests of the chips through their registers, with a simulated time.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A perfect board with constant true motion, and a time that advances.
struct Bench {
    board: NineDof,
    truth: Motion,
    now: Duration,
}

impl Bench {
    fn new(accel_g: Axes, gyro_deg_s: Axes, field_gauss: Axes) -> Self {
        Self {
            board: NineDof::new(Errors::none(), Duration::ZERO),
            truth: Motion {
                specific_force_g: accel_g,
                turn_deg_s: gyro_deg_s,
                field_gauss,
                speed_m_s: 0.0,
            },
            now: Duration::ZERO,
        }
    }

    /// At rest on level ground.
    fn resting() -> Self {
        Self::new([0.0, 0.0, 1.0], [0.0; 3], [0.1, 0.2, -0.4])
    }

    fn transfer(&mut self, address: u8, written: &[u8], read: u8) -> Reply {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read,
        };
        let truth = self.truth;
        self.board.transfer(self.now, &transfer, &|_| truth)
    }

    fn write(&mut self, address: u8, bytes: &[u8]) {
        assert_eq!(self.transfer(address, bytes, 0), Reply::Ack(vec![]));
    }

    fn read(&mut self, address: u8, register: u8, count: u8) -> Vec<u8> {
        match self.transfer(address, &[register], count) {
            Reply::Ack(bytes) => bytes,
            Reply::Nak => panic!("no chip at {address:#x}"),
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }
}

#[test]
fn only_existing_chips_answer() {
    let mut bench = Bench::resting();
    assert_eq!(bench.read(0x19, 0x0F, 1), [0x33]);
    assert_eq!(bench.read(0x6B, 0x0F, 1), [0xD4]);
    assert_eq!(bench.read(0x1E, 0x0A, 3), b"H43");
    // Libraries use this register to tell a DLHC from a DLH.
    assert_eq!(bench.read(0x1E, 0x0F, 1), [0x3C]);
    for address in [0x00, 0x18, 0x1D, 0x68, 0x6A, 0x7F] {
        assert_eq!(bench.transfer(address, &[0x0F], 1), Reply::Nak);
    }
}

/// The bytes listed in the hardware sheet, with the settings of the original.
#[test]
fn a_host_reads_the_bytes_of_the_hardware_sheet() {
    let accel = [-64.0, 32.0, 512.0].map(|digits| digits * 0.002);
    let gyro = [571.0, -571.0, 5714.0].map(|digits| digits * 0.0175);
    let mut bench = Bench::new(accel, gyro, [0.2, -0.1, -0.4]);
    bench.write(0x19, &[0x20, 0x97]);
    bench.write(0x19, &[0x23, 0x18]);
    // With bit 7, which the original sets even for single registers.
    bench.write(0x6B, &[0xA0, 0xEF]);
    bench.write(0x6B, &[0xA3, 0x10]);
    for setting in [[0x00, 0x9C], [0x01, 0xE0], [0x02, 0x00]] {
        bench.write(0x1E, &setting);
    }
    bench.wait(300 * MS);
    assert_eq!(
        bench.read(0x19, 0xA8, 6),
        [0x00, 0xFC, 0x00, 0x02, 0x00, 0x20]
    );
    assert_eq!(
        bench.read(0x6B, 0xA8, 6),
        [0x3B, 0x02, 0xC5, 0xFD, 0x52, 0x16]
    );
    assert_eq!(
        bench.read(0x1E, 0x03, 6),
        [0x00, 0x2E, 0xFF, 0xAE, 0xFF, 0xE9]
    );
    // The original sets bit 7 here, too.
    assert_eq!(
        bench.read(0x1E, 0x83, 6),
        [0x00, 0x2E, 0xFF, 0xAE, 0xFF, 0xE9]
    );
    // A separate write and read, with a stop in between.
    bench.write(0x19, &[0xAC]);
    assert_eq!(bench.transfer(0x19, &[], 2), Reply::Ack(vec![0x00, 0x20]));
}

#[test]
fn only_bit_7_increments_the_register_number() {
    let mut bench = Bench::resting();
    bench.write(0x19, &[0xA0, 0x57, 0x01, 0x02, 0x98]);
    assert_eq!(bench.read(0x19, 0xA0, 4), [0x57, 0x01, 0x02, 0x98]);
    assert_eq!(bench.read(0x19, 0x20, 3), [0x57; 3]);
    // The identity and the data are read-only.
    bench.write(0x19, &[0x0F, 0x00]);
    bench.write(0x19, &[0x28, 0x12]);
    assert_eq!(bench.read(0x19, 0x0F, 1), [0x33]);
    assert_eq!(bench.read(0x19, 0x28, 1), [0x00]);
}

#[test]
fn the_pointer_of_the_magnetometer_wraps_within_its_data() {
    let mut bench = Bench::resting();
    bench.write(0x1E, &[0x00, 0x1C, 0xE0, 0x00]);
    assert_eq!(bench.read(0x1E, 0x00, 3), [0x1C, 0xE0, 0x00]);
    bench.wait(10 * MS);
    let data = bench.read(0x1E, 0x03, 12);
    assert_eq!(data[..6], data[6..]);
    assert_eq!(bench.read(0x1E, 0x0B, 3), [b'4', b'3', 0x1C]);
    assert_eq!(bench.read(0x1E, 0x40, 1), [0]);
}

#[test]
fn temperatures_are_read() {
    let mut bench = Bench::resting();
    assert_eq!(bench.read(0x1E, 0x31, 2), [0, 0], "off");
    bench.write(0x1E, &[0x00, 0x9C]);
    // 8 digits per degree above 20, left-justified; then from 0 again.
    assert_eq!(bench.read(0x1E, 0x31, 3), [0x04, 0x00, 0x9C]);
    bench.write(0x6B, &[0x20, 0x0F]);
    // One digit less per degree above 25.
    assert_eq!(bench.read(0x6B, 0x26, 1), [0xFD]);
}

#[test]
fn the_fifo_is_empty_and_booting_finishes() {
    let mut bench = Bench::resting();
    for address in [0x19, 0x6B] {
        bench.write(address, &[0x20, 0x57]);
        bench.write(address, &[0x24, 0xC0]);
        assert_eq!(bench.read(address, 0x24, 1), [0x40], "BOOT clears itself");
        assert_eq!(bench.read(address, 0x20, 1), [0x57], "settings stay");
        assert_eq!(bench.read(address, 0x2F, 1), [0x20]);
        bench.write(address, &[0x2F, 0x00]);
        assert_eq!(bench.read(address, 0x2F, 1), [0x20]);
    }
}

#[test]
fn self_tests_shift_the_readings() {
    let little = |bytes: &[u8]| f64::from(i16::from_le_bytes([bytes[0], bytes[1]]));
    let mut bench = Bench::resting();
    bench.write(0x19, &[0x20, 0x57]);
    bench.write(0x6B, &[0x20, 0x0F]);
    bench.wait(300 * MS);
    for (bits, accel_g, gyro_deg_s) in [(0x00, 0.0, 0.0), (0x02, 0.3, 200.0)] {
        bench.write(0x19, &[0x23, 0x98 | bits]);
        bench.write(0x6B, &[0x23, 0x90 | bits]);
        bench.wait(50 * MS);
        let accel = little(&bench.read(0x19, 0xA8, 2)) / 16.0 * 0.002;
        let gyro = little(&bench.read(0x6B, 0xA8, 2)) * 0.0175;
        assert!((accel - accel_g).abs() < 0.01, "{accel}");
        assert!((gyro - gyro_deg_s).abs() < 0.1, "{gyro}");
    }
    // The other direction.
    bench.write(0x19, &[0x23, 0x9C]);
    bench.write(0x6B, &[0x23, 0x96]);
    bench.wait(50 * MS);
    assert!(little(&bench.read(0x19, 0xA8, 2)) < 0.0);
    assert!(little(&bench.read(0x6B, 0xA8, 2)) < 0.0);
    for (bits, x_gauss) in [(0, 0.1), (1, 1.26), (2, -1.06)] {
        bench.write(0x1E, &[0x00, 0x1C | bits, 0x60, 0x00]);
        bench.wait(20 * MS);
        let bytes = bench.read(0x1E, 0x03, 6);
        let x = f64::from(i16::from_be_bytes([bytes[0], bytes[1]])) / 670.0;
        assert!((x - x_gauss).abs() < 0.01, "{x}");
    }
}

#[test]
fn driving_makes_the_board_vibrate() {
    let sigma = |speed_m_s: f64| {
        let mut bench = Bench::resting();
        bench.board = NineDof::new(Errors::of_seed(1), Duration::ZERO);
        bench.truth.speed_m_s = speed_m_s;
        bench.write(0x19, &[0x20, 0x77]);
        bench.write(0x19, &[0x23, 0x98]);
        let z: Vec<f64> = (0..500)
            .map(|_| {
                bench.wait(3 * MS);
                let bytes = bench.read(0x19, 0xAC, 2);
                f64::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 16.0 * 0.002
            })
            .collect();
        let mean = z.iter().sum::<f64>() / 500.0;
        (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / 500.0).sqrt()
    };
    assert!((0.003..0.005).contains(&sigma(0.0)), "{}", sigma(0.0));
    assert!((0.035..0.045).contains(&sigma(0.5)), "{}", sigma(0.5));
}

#[test]
fn without_power_nothing_changes() {
    let mut bench = Bench::resting();
    bench.wait(1000 * MS);
    assert_eq!(bench.read(0x19, 0xA7, 7), [0; 7]);
    assert_eq!(bench.read(0x6B, 0xA7, 7), [0; 7]);
    assert_eq!(bench.read(0x1E, 0x03, 7), [0; 7]);

    bench.write(0x19, &[0x20, 0x57]);
    bench.write(0x19, &[0x23, 0x98]);
    bench.wait(20 * MS);
    assert_eq!(bench.read(0x19, 0xAC, 2), (500_i16 << 4).to_le_bytes());
    bench.truth.specific_force_g = [0.0; 3];
    bench.write(0x19, &[0x20, 0x07]);
    bench.wait(1000 * MS);
    assert_eq!(bench.read(0x19, 0xAC, 2), (500_i16 << 4).to_le_bytes());
}

#[test]
fn scale_resolution_and_byte_order_follow_the_settings() {
    let mut bench = Bench::new([0.0, 0.0, 1.0], [0.0, 0.0, 70.0], [0.0; 3]);
    let read_z = |bench: &mut Bench, address: u8, ctrl1: u8, ctrl4: u8| {
        bench.write(address, &[0x20, 0x07]);
        bench.write(address, &[0x23, ctrl4]);
        bench.write(address, &[0x20, ctrl1]);
        bench.wait(300 * MS);
        let bytes = bench.read(address, 0xAC, 2);
        [bytes[0], bytes[1]]
    };
    for (ctrl1, ctrl4, digits) in [
        (0x57, 0x08, 1000 << 4),
        (0x57, 0x18, 500 << 4),
        (0x57, 0x28, 250 << 4),
        (0x57, 0x38, 83 << 4),
        // Ten bits and eight bits.
        (0x57, 0x30, 80 << 4),
        (0x5F, 0x00, 992 << 4),
    ] {
        let bytes = read_z(&mut bench, 0x19, ctrl1, ctrl4);
        assert_eq!(i16::from_le_bytes(bytes), digits, "{ctrl1:x} {ctrl4:x}");
    }
    let bytes = read_z(&mut bench, 0x19, 0x57, 0x58);
    assert_eq!(i16::from_be_bytes(bytes), 500 << 4);
    for (ctrl4, digits) in [(0x00, 8000), (0x10, 4000), (0x20, 1000), (0x30, 1000)] {
        let bytes = read_z(&mut bench, 0x6B, 0x0F, ctrl4);
        assert_eq!(i16::from_le_bytes(bytes), digits, "{ctrl4:x}");
    }
    // A disabled axis keeps its value.
    bench.truth.turn_deg_s = [7.0; 3];
    let bytes = read_z(&mut bench, 0x6B, 0x0B, 0x30);
    assert_eq!(i16::from_le_bytes(bytes), 1000);
}

#[test]
fn out_of_range_values_are_limited_or_overflow() {
    let mut bench = Bench::new([9.0, -9.0, 0.0], [900.0, -900.0, 0.0], [9.0, 0.1, -11.0]);
    bench.write(0x19, &[0xA0, 0x77, 0, 0, 0x98]);
    bench.write(0x6B, &[0xA0, 0xEF, 0, 0, 0x90]);
    bench.write(0x1E, &[0x00, 0x1C, 0xE0, 0x00]);
    bench.wait(300 * MS);
    assert_eq!(bench.read(0x19, 0xA8, 4), [0xF0, 0x7F, 0x00, 0x80]);
    assert_eq!(bench.read(0x6B, 0xA8, 4), [0xFF, 0x7F, 0x00, 0x80]);
    assert_eq!(bench.read(0x1E, 0x03, 4), [0xF0, 0x00, 0xF0, 0x00]);
}

#[test]
fn the_status_shows_new_and_missed_samples() {
    let mut bench = Bench::resting();
    bench.write(0x19, &[0x20, 0x57]);
    assert_eq!(bench.read(0x19, 0x27, 1), [0x00], "the first takes a while");
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x19, 0x27, 1), [0x0F]);
    assert_eq!(bench.read(0x19, 0xA8, 2).len(), 2);
    assert_eq!(bench.read(0x19, 0x27, 1), [0x06], "x was read");
    bench.read(0x19, 0xAA, 4);
    assert_eq!(bench.read(0x19, 0x27, 1), [0x00]);
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x19, 0x27, 1), [0x0F]);
    bench.wait(30 * MS);
    assert_eq!(
        bench.read(0x19, 0x27, 1),
        [0xFF],
        "some samples were not read"
    );

    bench.write(0x1E, &[0x00, 0x1C, 0xE0, 0x00]);
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x1E, 0x09, 1), [0x01]);
    bench.read(0x1E, 0x03, 3);
    assert_eq!(bench.read(0x1E, 0x09, 1), [0x03], "half is read");
    bench.read(0x1E, 0x06, 3);
    assert_eq!(bench.read(0x1E, 0x09, 1), [0x00]);
}

#[test]
fn with_block_data_update_both_bytes_belong_to_one_sample() {
    let old = (500_i16 << 4).to_le_bytes();
    for (ctrl4, second) in [(0x98, old[1]), (0x18, 0x00)] {
        let mut bench = Bench::resting();
        bench.write(0x19, &[0xA0, 0x57, 0, 0, ctrl4]);
        bench.wait(10 * MS);
        assert_eq!(bench.read(0x19, 0x2C, 1), [old[0]]);
        bench.truth.specific_force_g = [0.0; 3];
        bench.wait(10 * MS);
        assert_eq!(bench.read(0x19, 0x2D, 1), [second], "{ctrl4:x}");
        bench.wait(10 * MS);
        assert_eq!(bench.read(0x19, 0xAC, 2), [0, 0], "{ctrl4:x}");
    }
}

#[test]
fn samples_are_taken_at_the_set_rate() {
    let mut bench = Bench::resting();
    bench.write(0x19, &[0xA0, 0x27, 0, 0, 0x98]); // 10 Hz
    bench.write(0x6B, &[0xA0, 0x0F, 0, 0, 0x90]); // 95 Hz
    bench.write(0x1E, &[0x00, 0x00, 0xE0, 0x00]); // 0.75 Hz
    let mut samples = [0; 3];
    for _ in 0..4_000 {
        bench.wait(MS);
        for (count, address) in samples.iter_mut().zip([0x19, 0x6B]) {
            if bench.read(address, 0x27, 1)[0] & 8 != 0 {
                bench.read(address, 0xA8, 6);
                *count += 1;
            }
        }
        if bench.read(0x1E, 0x09, 1)[0] & 1 != 0 {
            bench.read(0x1E, 0x03, 6);
            samples[2] += 1;
        }
    }
    // The gyroscope takes a quarter of a second to start.
    assert_eq!(samples, [40, 356, 3]);
}

#[test]
fn single_mode_takes_one_measurement() {
    let mut bench = Bench::resting();
    bench.write(0x1E, &[0x00, 0x1C, 0xE0, 0x01]);
    bench.wait(10 * MS);
    assert_eq!(bench.read(0x1E, 0x09, 1), [0x01]);
    let first = bench.read(0x1E, 0x03, 6);
    assert_eq!(bench.read(0x1E, 0x02, 1), [0x03], "it sleeps");
    bench.truth.field_gauss = [0.0; 3];
    bench.wait(100 * MS);
    assert_eq!(bench.read(0x1E, 0x03, 6), first);
}

#[test]
fn after_a_restart_the_settings_are_gone() {
    let mut bench = Bench::resting();
    bench.write(0x19, &[0x20, 0x57]);
    bench.write(0x1E, &[0x02, 0x00]);
    bench.board.restart(bench.now);
    assert_eq!(bench.read(0x19, 0x20, 1), [0x07]);
    assert_eq!(bench.read(0x1E, 0x00, 3), [0x10, 0x20, 0x03]);
}

#[test]
fn the_seed_determines_the_errors() {
    let rate = |seed: u64| {
        let mut bench = Bench::resting();
        bench.board = NineDof::new(Errors::of_seed(seed), Duration::ZERO);
        bench.write(0x6B, &[0xA0, 0xEF, 0, 0, 0x90]);
        bench.wait(300 * MS);
        let readings = (0..500).map(|_| {
            bench.wait(2 * MS);
            let bytes = bench.read(0x6B, 0xAC, 2);
            f64::from(i16::from_le_bytes([bytes[0], bytes[1]])) * 0.0175
        });
        let readings: Vec<_> = readings.collect();
        let mean = readings.iter().sum::<f64>() / 500.0;
        let variance = readings
            .iter()
            .map(|rate| (rate - mean).powi(2))
            .sum::<f64>()
            / 500.0;
        (
            mean,
            variance.sqrt(),
            bench.board.errors().gyro_bias_deg_s[2],
        )
    };
    assert_eq!(rate(3), rate(3));
    assert_ne!(rate(3), rate(4));
    for seed in 0..10 {
        let (mean, sigma, bias) = rate(seed);
        assert!((mean - bias).abs() < 0.05, "seed {seed}: {mean} {bias}");
        assert!((0.15..0.25).contains(&sigma), "seed {seed}: {sigma}");
    }
}
