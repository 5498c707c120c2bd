//! The registers of the chip, in two pages. PURE.
//!
//! Interrupts, the power modes, the map of the axes and the settings of the sensors store what is written
//! but have no effect.

use std::time::Duration;

use super::fusion::{Fusion, Profile, Sample};
use crate::motion_sensor::Senses;
use crate::ninedof::{Chip, Clock, TEMPERATURE_C};

const CHIP_ID: u8 = 0x00;
/// The identities of the chip and of its sensors, and the versions of its programs.
const IDENTITIES: [u8; 7] = [0xA0, 0xFB, 0x32, 0x0F, 0x11, 0x03, 0x15];
const PAGE_ID: u8 = 0x07;
const ACC_DATA_X_LSB: u8 = 0x08;
const TEMP: u8 = 0x34;
const CALIB_STAT: u8 = 0x35;
const ST_RESULT: u8 = 0x36;
const SYS_STATUS: u8 = 0x39;
const UNIT_SEL: u8 = 0x3B;
const OPR_MODE: u8 = 0x3D;
const SYS_TRIGGER: u8 = 0x3F;
const AXIS_MAP_CONFIG: u8 = 0x41;
const ACC_OFFSET_X_LSB: u8 = 0x55;
const MAG_RADIUS_MSB: u8 = 0x6A;
const REGISTERS: u8 = 0x80;

const CONFIG_MODE: u8 = 0x00;
/// In SYS_TRIGGER.
const RESET: u8 = 0x20;

/// The times until it answers: after it got power, and after a reset.
const AFTER_POWER: Duration = Duration::from_millis(400);
const AFTER_RESET: Duration = Duration::from_millis(650);
/// After it has left the configuration mode, its data are 0 for this time.
const BEFORE_DATA: Duration = Duration::from_millis(100);
/// Samples per second.
const RATE_HZ: f64 = 100.0;

/// A mode: which sensors measure, and whether it computes the attitude.
const ACCEL_MODES: [u8; 9] = [0x01, 0x04, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C];
const MAGNET_MODES: [u8; 8] = [0x02, 0x04, 0x06, 0x07, 0x09, 0x0A, 0x0B, 0x0C];
const GYRO_MODES: [u8; 7] = [0x03, 0x05, 0x06, 0x07, 0x08, 0x0B, 0x0C];

fn is_fusion(mode: u8) -> bool {
    (0x08..=0x0C).contains(&mode)
}

#[derive(Clone, Debug)]
pub(super) struct Bno {
    starts: Duration,
    pages: [[u8; REGISTERS as usize]; 2],
    page: u8,
    pointer: u8,
    clock: Option<Clock>,
    fusion: Fusion,
    profile: Profile,
}

impl Bno {
    pub(super) fn new(now: Duration) -> Self {
        Self::starting(now + AFTER_POWER)
    }

    fn starting(starts: Duration) -> Self {
        let mut pages = [[0; REGISTERS as usize]; 2];
        pages[0][..IDENTITIES.len()].copy_from_slice(&IDENTITIES);
        pages[0][usize::from(ST_RESULT)] = 0x0F;
        pages[0][usize::from(UNIT_SEL)] = 0x80;
        pages[0][usize::from(AXIS_MAP_CONFIG)] = 0x24;
        // The settings of accelerometer, magnetometer and gyroscope.
        pages[1][0x08..0x0C].copy_from_slice(&[0x0D, 0x0B, 0x38, 0x00]);
        Self {
            starts,
            pages,
            page: 0,
            pointer: 0,
            clock: None,
            fusion: Fusion::default(),
            profile: Profile::default(),
        }
    }

    pub(super) fn is_started(&self, now: Duration) -> bool {
        now >= self.starts
    }

    /// Takes the latest sample, if there is a new one.
    pub(super) fn measure(&mut self, now: Duration, senses: &mut Senses<'_>) {
        let Some((_, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        let sample = self.fusion.take(time, senses, &mut self.profile);
        self.show(&sample);
    }

    fn mode(&self) -> u8 {
        self.pages[0][usize::from(OPR_MODE)] & 0x0F
    }

    /// Puts a sample into the data registers, in the chosen units.
    fn show(&mut self, sample: &Sample) {
        let (mode, units) = (self.mode(), self.pages[0][usize::from(UNIT_SEL)]);
        let unit = |bit: u8, clear: f64, set: f64| if units & bit == 0 { clear } else { set };
        let per_g = unit(0x01, 980.665, 1_000.0);
        let per_deg_s = unit(0x02, 16.0, 900.0_f64.to_radians());
        let per_deg = unit(0x04, 16.0, 900.0_f64.to_radians());
        let fused = f64::from(u8::from(is_fusion(mode)));
        let on = |modes: &[u8]| f64::from(u8::from(modes.contains(&mode)));
        let groups: [(&[f64], f64); 7] = [
            (&sample.accel_g, per_g * on(&ACCEL_MODES)),
            (&sample.field_gauss, 1_600.0 * on(&MAGNET_MODES)),
            (&sample.gyro_deg_s, per_deg_s * on(&GYRO_MODES)),
            (&sample.euler_deg, per_deg * fused),
            (&sample.quaternion, 16_384.0 * fused),
            (&sample.linear_g, per_g * fused),
            (&sample.gravity_g, per_g * fused),
        ];
        let words = groups
            .into_iter()
            .flat_map(|(values, per_unit)| values.iter().map(move |it| it * per_unit));
        let first = usize::from(ACC_DATA_X_LSB);
        for (bytes, word) in self.pages[0][first..].chunks_exact_mut(2).zip(words) {
            // The conversion limits.
            bytes.copy_from_slice(&(word.round() as i16).to_le_bytes());
        }
        self.pages[0][usize::from(TEMP)] = TEMPERATURE_C as u8;
        self.pages[0][usize::from(CALIB_STAT)] = sample.levels;
    }

    fn set_mode(&mut self, now: Duration, mode: u8) {
        self.pages[0][usize::from(OPR_MODE)] = mode;
        self.pages[0][usize::from(ACC_DATA_X_LSB)..=usize::from(CALIB_STAT)].fill(0);
        self.pages[0][usize::from(SYS_STATUS)] = match mode {
            CONFIG_MODE => 0,
            mode if is_fusion(mode) => 5,
            _ => 6,
        };
        self.fusion = Fusion::default();
        let since = now + BEFORE_DATA;
        self.clock = (mode != CONFIG_MODE).then(|| Clock::new(since, RATE_HZ));
    }
}

impl Chip for Bno {
    fn point(&mut self, register: u8) {
        self.pointer = register & (REGISTERS - 1);
    }

    fn write(&mut self, now: Duration, value: u8) {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        let is_configuring = self.mode() == CONFIG_MODE;
        match (self.page, register) {
            (_, PAGE_ID) => self.page = value & 1,
            (0, OPR_MODE) => {
                // From one mode to another the way is through the configuration.
                if is_configuring || value & 0x0F == CONFIG_MODE {
                    self.set_mode(now, value & 0x0F);
                }
            }
            (0, SYS_TRIGGER) if value & RESET != 0 => *self = Self::starting(now + AFTER_RESET),
            (0, CHIP_ID..=SYS_STATUS) => {}
            _ if !is_configuring => {}
            (0, ACC_OFFSET_X_LSB..=MAG_RADIUS_MSB) => {
                self.profile.write(register - ACC_OFFSET_X_LSB, value);
            }
            (page, _) => self.pages[usize::from(page)][usize::from(register)] = value,
        }
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        match (self.page, register) {
            (page, PAGE_ID) => page,
            (0, ACC_OFFSET_X_LSB..=MAG_RADIUS_MSB) => match self.mode() {
                CONFIG_MODE => self.profile.read(register - ACC_OFFSET_X_LSB),
                _ => 0,
            },
            (page, _) => self.pages[usize::from(page)][usize::from(register)],
        }
    }
}
