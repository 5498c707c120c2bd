//! The magnetometer: big-endian, X Z Y, with a pointer that always increments. PURE.

use std::time::Duration;

use super::{Axes, Chip, Clock, TEMPERATURE_C};

const CRA: u8 = 0x00;
const CRB: u8 = 0x01;
const MR: u8 = 0x02;
const OUT_X_H: u8 = 0x03;
const OUT_Y_L: u8 = 0x08;
const SR: u8 = 0x09;
const IRC: u8 = 0x0C;
const WHO_AM_I: u8 = 0x0F;
const TEMP_H: u8 = 0x31;
const TEMP_L: u8 = 0x32;

/// The self-test offset, in gauss.
const SELF_TEST_GAUSS: Axes = [1.16, 1.16, 1.08];

/// The value of an axis that is out of range.
const OVERFLOW: i16 = -4096;

/// Digits per gauss: for x and y, and for z, for each gain from 1.
const GAINS: [[f64; 2]; 7] = [
    [1100.0, 980.0],
    [855.0, 760.0],
    [670.0, 600.0],
    [450.0, 400.0],
    [400.0, 355.0],
    [330.0, 295.0],
    [230.0, 205.0],
];

#[derive(Clone, Debug)]
pub(super) struct Magnetometer {
    /// CRA, CRB, MR.
    settings: [u8; 3],
    pointer: u8,
    clock: Option<Clock>,
    output: [i16; 3],
    fresh: bool,
    /// The data bytes that have been read since the last sample, as a bit mask.
    read: u8,
}

impl Magnetometer {
    pub(super) fn new() -> Self {
        Self {
            settings: [0x10, 0x20, 0x03],
            pointer: 0,
            clock: None,
            output: [0; 3],
            fresh: false,
            read: 0,
        }
    }

    /// Takes the latest sample, if there is a new one.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        // Some but not all bytes were read: the rest must belong to the same sample.
        let is_locked = self.read != 0 && self.read != 0x3F;
        let Some((_, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        if is_locked {
            return;
        }
        let bias = match self.settings[usize::from(CRA)] & 3 {
            1 => 1.0,
            2 => -1.0,
            _ => 0.0,
        };
        let truth = sample(time);
        let [x, y, z] = [0, 1, 2].map(|axis| truth[axis] + bias * SELF_TEST_GAUSS[axis]);
        let gain = usize::from(self.settings[usize::from(CRB)] >> 5).max(1);
        let [xy_gain, z_gain] = GAINS[gain - 1];
        self.output = [x * xy_gain, y * xy_gain, z * z_gain].map(|value| {
            let digits = value.round();
            match digits.abs() <= 2047.0 {
                true => digits as i16,
                false => OVERFLOW,
            }
        });
        self.fresh = true;
        self.read = 0;
        if self.settings[usize::from(MR)] & 3 == 1 {
            // This was the single measurement.
            self.settings[usize::from(MR)] = 3;
            self.clock = None;
        }
    }

    fn set_clock(&mut self, now: Duration) {
        let code = usize::from(self.settings[usize::from(CRA)] >> 2 & 7);
        let rate_hz = [0.75, 1.5, 3.0, 7.5, 15.0, 30.0, 75.0, 220.0][code];
        self.clock = match self.settings[usize::from(MR)] & 3 {
            0 => Some(Clock::new(now, rate_hz)),
            1 => Some(Clock::new(now, 220.0)),
            _ => None,
        };
    }

    fn output_byte(&mut self, register: u8) -> u8 {
        let place = usize::from(register - OUT_X_H);
        let [x, y, z] = self.output;
        let value = [x, z, y][place / 2];
        self.read |= 1 << place;
        if self.read == 0x3F {
            self.fresh = false;
        }
        value.to_be_bytes()[place % 2]
    }

    /// Twelve bits, left-justified, 8 digits per degree; the zero point is not specified.
    fn temperature(&self) -> [u8; 2] {
        let is_on = self.settings[usize::from(CRA)] & 0x80 != 0;
        let digits = if is_on {
            (TEMPERATURE_C - 20.0) * 8.0
        } else {
            0.0
        };
        ((digits as i16) << 4).to_be_bytes()
    }

    fn advance(&mut self) {
        self.pointer = match self.pointer {
            OUT_Y_L => OUT_X_H,
            register if register < IRC || register == TEMP_H => register + 1,
            _ => 0,
        };
    }
}

impl Chip for Magnetometer {
    /// It is unknown whether the real chip uses bit 7; hosts of the original set it, so the
    /// simulation ignores it.
    fn point(&mut self, register: u8) {
        self.pointer = register & 0x7F;
    }

    fn write(&mut self, now: Duration, value: u8) {
        if let Some(setting) = self.settings.get_mut(usize::from(self.pointer)) {
            *setting = value;
            self.set_clock(now);
        }
        self.advance();
    }

    fn read(&mut self) -> u8 {
        let value = match self.pointer {
            register @ CRA..=MR => self.settings[usize::from(register)],
            register @ OUT_X_H..=OUT_Y_L => self.output_byte(register),
            SR => {
                let is_locked = self.read != 0 && self.read != 0x3F;
                u8::from(is_locked) << 1 | u8::from(self.fresh)
            }
            register @ 0x0A..=IRC => b"H43"[usize::from(register - 0x0A)],
            // A DLH has no such register.
            WHO_AM_I => 0x3C,
            register @ TEMP_H..=TEMP_L => self.temperature()[usize::from(register - TEMP_H)],
            _ => 0,
        };
        self.advance();
        value
    }
}
