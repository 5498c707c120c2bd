//! Moves with turning motors: positions, and ramps of buffered profiles.

use super::*;
use crate::wheels::Motor;

const STEP: Duration = Duration::from_millis(5);

/// Controllers with motors.
struct Driven {
    bench: Bench,
    motors: [Motor; 4],
    random: fastrand::Rng,
}

impl Driven {
    fn new() -> Self {
        let mut driven = Self {
            bench: Bench::new(V4_2_4),
            motors: Default::default(),
            random: fastrand::Rng::with_seed(1),
        };
        for command in [28, 29] {
            let data = [0, 65_536, 32_768, 13_800].map(u32::to_be_bytes).concat();
            driven.write(command, &data);
        }
        driven
    }

    fn step(&mut self) {
        let drives = self.bench.bus.drives();
        for (motor, drive) in self.motors.iter_mut().zip(drives) {
            motor.step(STEP.as_secs_f64(), drive);
        }
        for (reading, motor) in self.bench.readings.iter_mut().zip(&self.motors) {
            *reading = motor.reading(&mut self.random);
        }
        self.bench.wait(STEP);
    }

    /// Lets the motors turn until the buffers of the rear controller are empty.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            self.step();
            let request = [0x80, 47];
            if self.bench.send(&request)[..2] == [0x80, 0x80] {
                return;
            }
        }
        panic!("the moves do not end");
    }

    fn write(&mut self, command: u8, data: &[u8]) {
        assert_eq!(self.bench.write(0x80, command, data), [0xFF], "{command}");
    }

    fn right(&self) -> &Motor {
        &self.motors[Wheel::RearRight.index()]
    }

    fn pulses(&self) -> [i64; 2] {
        [Wheel::RearRight, Wheel::RearLeft].map(|wheel| self.bench.readings[wheel.index()].pulses)
    }
}

fn longs(numbers: &[i32], last: u8) -> Vec<u8> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_be_bytes()).collect();
    bytes.push(last);
    bytes
}

#[test]
fn a_position_is_reached_with_the_requested_deceleration_and_held() {
    for target in [10_000, -7_000] {
        let mut driven = Driven::new();
        driven.write(65, &longs(&[5_000, 4_000, 2_000, target], 1));
        let mut fastest: f64 = 0.0;
        let mut speed_1000_before = None;
        for _ in 0..4_000 {
            driven.step();
            fastest = fastest.max(driven.right().speed_qpps().abs());
            let left = i64::from(target.abs()) - driven.pulses()[0].abs();
            if left <= 1_000 && speed_1000_before.is_none() {
                speed_1000_before = Some(driven.right().speed_qpps().abs());
            }
            assert!(left >= -2, "no overshoot: {left}");
        }
        assert!((3_900.0..4_001.0).contains(&fastest), "{fastest}");
        // v = sqrt(2 a s)
        let speed = speed_1000_before.unwrap();
        assert!((speed - 2_000.0).abs() < 150.0, "{speed}");
        assert!((driven.pulses()[0] - i64::from(target)).abs() <= 2);
        assert_eq!(driven.right().speed_qpps(), 0.0);
        assert_eq!(driven.bench.read(0x80, 47), [0x80, 0x80], "it is done");
        // The position is held: if the encoder count changes, the motor moves back.
        driven.write(22, &(target - 500).to_be_bytes());
        for _ in 0..400 {
            driven.step();
        }
        assert!((driven.pulses()[0] - i64::from(target) - 500).abs() <= 2);
        // It is held until the next command.
        driven.write(34, &[0; 4]);
        driven.write(22, &target.to_be_bytes());
        let before = driven.pulses();
        driven.step();
        assert_eq!(driven.pulses(), before);
    }
}

#[test]
fn positions_of_both_motors_and_in_every_form() {
    let position = [5_000, 4_000, 5_000, 3_000, 5_000, 4_000, 5_000, -2_000];
    let range = [0, 0, 0, 0, 0, -4_000, 6_000];
    for (command, data) in [
        (67, longs(&position, 1)),
        (121, longs(&[3_000, -2_000], 1)),
        (124, longs(&[4_000, 3_000, 4_000, -2_000], 1)),
        // Half of the ranges that 61 and 62 set.
        (127, hex("40 00 C0 00 01")),
    ] {
        let mut driven = Driven::new();
        for settings in [61, 62] {
            let data: Vec<u8> = range.iter().flat_map(|n: &i32| n.to_be_bytes()).collect();
            driven.write(settings, &data);
        }
        driven.write(command, &data);
        driven.finish();
        let [first, second] = driven.pulses();
        assert!((first - 3_000).abs() <= 2, "{command}: {first}");
        assert!((second + 2_000).abs() <= 2, "{command}: {second}");
    }
}

#[test]
fn a_buffered_profile_ends_in_a_ramp_to_rest() {
    // 10000 pulses at 5000/s, and then a ramp of 5000/s²: 2500 pulses more.
    for (command, profile, ramp, motors) in [
        (44, vec![5_000, 5_000, 10_000], vec![5_000, 0, 0], 1),
        (
            46,
            vec![5_000, 5_000, 10_000, -5_000, 10_000],
            vec![5_000, 0, 0, 0, 0],
            2,
        ),
        (
            51,
            vec![5_000, 5_000, 10_000, 5_000, -5_000, 10_000],
            vec![5_000, 0, 0, 5_000, 0, 0],
            2,
        ),
    ] {
        let mut driven = Driven::new();
        driven.write(command, &longs(&profile, 1));
        driven.write(command, &longs(&ramp, 0));
        assert_eq!(driven.bench.read(0x80, 47)[0], 1);
        driven.finish();
        let pulses = driven.pulses();
        for (pulses, sign) in pulses.iter().zip([1, -1]).take(motors) {
            let way = pulses * sign;
            assert!((12_470..=12_560).contains(&way), "{command}: {way}");
        }
        assert_eq!(driven.right().speed_qpps(), 0.0);
    }
}
