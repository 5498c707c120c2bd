//! What the tests of motion sensors share: the chips of a model on a fake bus. IO: it reads the clock
//! once.

use std::time::{Duration, Instant};

use amber_sim::motion_sensor::{self, Board as Twin};
use amber_sim::ninedof::Errors;

use super::board::{Board, Reading};
use super::calibration::Calibration;
use super::model::Model;
use super::sensors::Sensors;
use crate::i2c::fake::Fake;
use crate::i2c::{Bus, BusError};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// The chips of a model on a fake bus, and a time for both.
pub(crate) struct Bench<M: Model, C: motion_sensor::Chips> {
    pub(crate) model: M,
    pub(crate) board: Board<M::Raw>,
    pub(crate) bus: Fake<Twin<C>>,
    pub(crate) now: Instant,
}

impl<M: Model, C: motion_sensor::Chips> Bench<M, C> {
    /// A sensor without errors.
    pub(crate) fn new(model: M, product: C::Model) -> Self {
        Self::of(model, Twin::new(product, Errors::none(), Duration::ZERO))
    }

    pub(crate) fn of(model: M, twin: Twin<C>) -> Self {
        let now = Instant::now();
        Self {
            board: Board::of(model.chips(), now),
            model,
            bus: Fake::of(twin),
            now,
        }
    }

    /// A sensor that already measures.
    pub(crate) fn ready(model: M, product: C::Model) -> Self {
        let mut bench = Self::new(model, product);
        bench.read_for(500 * MS);
        assert_eq!(bench.board.trouble(), None);
        bench.notes();
        bench
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.bus.pass(time);
    }

    pub(crate) fn read(&mut self) -> Reading<M::Raw> {
        let reading = self.board.read(self.now, &mut self.bus, Sensors::ALL);
        reading.unwrap()
    }

    /// Reads every 10 ms; returns the last reading.
    pub(crate) fn read_for(&mut self, time: Duration) -> Reading<M::Raw> {
        let end = self.now + time;
        loop {
            let reading = self.read();
            if self.now >= end {
                return reading;
            }
            self.pass(10 * MS);
        }
    }

    /// A power cycle.
    pub(crate) fn restart(&mut self) {
        let mut state = self.bus.state();
        let now = state.now;
        state.chips.restart(now);
    }

    pub(crate) fn write(&mut self, address: u8, bytes: &[u8]) {
        self.bus.transfer(address, bytes, &mut []).unwrap();
    }

    pub(crate) fn notes(&mut self) -> Vec<String> {
        let notes = std::iter::from_fn(|| self.board.poll_note());
        notes.map(|note| note.to_string()).collect()
    }

    /// What was written to an address, without the registers that were read.
    pub(crate) fn written(&self, to: u8) -> Vec<Vec<u8>> {
        let state = self.bus.state();
        let written = state.written.iter();
        let written = written.filter(|(address, bytes)| *address == to && bytes.len() > 1);
        written.map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Turns the robot to the right, step by step, and compares the heading.
    #[track_caller]
    pub(crate) fn check_headings(&mut self) {
        for heading_deg in [0.0_f64, 45.0, 90.0, 200.0, 330.0] {
            let (sin, cos) = heading_deg.to_radians().sin_cos();
            self.bus.state().truth.field_gauss = [-0.2 * sin, 0.2 * cos, -0.45];
            let raw = self.read_for(50 * MS).raw;
            let calibration = Calibration::default();
            let measured = self.model.measured(raw, &calibration);
            let attitude = self.model.attitude(raw, measured, &calibration).unwrap();
            let off = f64::from(attitude.heading_deg()) - heading_deg;
            let off = (off + 180.0).rem_euclid(360.0) - 180.0;
            assert!(off.abs() < 0.5, "{heading_deg}: {attitude:?}");
        }
    }

    /// Whatever happens, the readings are those of a robot at rest that turns left at 90 degrees per
    /// second, or none.
    #[track_caller]
    pub(crate) fn check_recovery(&mut self, fault: impl FnOnce(&mut Self)) {
        self.bus.state().truth.turn_deg_s = [0.0, 0.0, 90.0];
        self.read_for(50 * MS);
        fault(self);
        for _ in 0..40 {
            let raw = self.read_for(10 * MS).raw;
            let measured = self.model.measured(raw, &Calibration::default());
            if measured.gyro_deg_s.is_some() {
                near(measured.gyro_deg_s, [0.0, 0.0, 90.0], 0.04);
                near(measured.accel_mg, [0.0, 0.0, 1000.0], 0.2);
            }
        }
        let raw = self.read().raw;
        let measured = self.model.measured(raw, &Calibration::default());
        assert!(measured.gyro_deg_s.is_some());
    }
}

/// Each axis within one digit.
#[track_caller]
pub(crate) fn near(found: Option<[f64; 3]>, expected: [f64; 3], digit: f64) {
    let found = found.unwrap();
    let mut pairs = found.iter().zip(expected);
    let is_near = pairs.all(|(a, b)| (a - b).abs() <= digit);
    assert!(is_near, "{found:?} is not {expected:?}");
}

/// Answers all registers of all chips with the same byte.
pub(crate) struct Stranger(pub(crate) u8);

impl Bus for Stranger {
    fn transfer(&mut self, _: u8, _: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        read.fill(self.0);
        Ok(())
    }
}

/// No byte that fills all registers is a sensor.
#[track_caller]
pub(crate) fn check_strangers<M: Model>(model: &M, most_notes: usize) {
    for byte in 0..=255 {
        let start = Instant::now();
        let mut board = Board::of(model.chips(), start);
        for time in 0..300 {
            let now = start + time * 10 * MS;
            let reading = board.read(now, &mut Stranger(byte), Sensors::ALL);
            assert_eq!(reading.unwrap().raw, M::Raw::default(), "{byte:#x}");
        }
        let notes = std::iter::from_fn(|| board.poll_note()).count();
        assert!((1..=most_notes).contains(&notes), "{byte:#x}: {notes}");
    }
}
