//! The registers of the sensor, and what their bytes mean. PURE, except for the [`Bus`].

use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::calibration::Profile;
use crate::motion_sensor::chip::Digits;
use crate::motion_sensor::found::unexpected;
use crate::motion_sensor::setting::Setting;
use crate::motion_sensor::units::{Axes, Measured};

/// The addresses: with the pin ADR (or COM3) low, and high.
pub(super) const ADDRESSES: [u8; 2] = [0x28, 0x29];

/// The first of six registers: four identities, and the version of its program, low byte first.
const CHIP_ID: u8 = 0x00;
const IDENTITIES: [u8; 4] = [0xA0, 0xFB, 0x32, 0x0F];
/// On page 1 are the settings of the sensors, which it chooses itself.
const PAGE_ID: u8 = 0x07;
/// The first data register.
pub(super) const DATA: u8 = 0x08;
/// The first of those that are read twice: quaternion, linear acceleration, gravity.
pub(super) const ATTITUDE: u8 = 0x20;
/// The first of eight registers with all settings.
pub(super) const UNIT_SEL: u8 = 0x3B;
pub(super) const OPR_MODE: u8 = 0x3D;
const PWR_MODE: u8 = 0x3E;
const SYS_TRIGGER: u8 = 0x3F;
const AXIS_MAP_CONFIG: u8 = 0x41;
const AXIS_MAP_SIGN: u8 = 0x42;
/// The first of 22 registers with what it has learned.
pub(super) const PROFILE: u8 = 0x55;

/// Modes: registers can be written, and the attitude is computed from all three sensors.
pub(super) const CONFIG: u8 = 0x00;
pub(super) const NDOF: u8 = 0x0C;

/// Acceleration in milli-g, turn rate in degrees per second, no other axes.
pub(super) const SETTINGS: [Setting; 4] = [
    Setting::new(PWR_MODE, 0x00),
    Setting::new(UNIT_SEL, 0x01),
    Setting::new(AXIS_MAP_CONFIG, 0x24),
    Setting::new(AXIS_MAP_SIGN, 0x00),
];

/// That it computes.
pub(super) const RUNNING: [Setting; 1] = [Setting::masked(OPR_MODE, NDOF, 0x0F)];

/// Chooses the clock, which cannot be read back.
pub(super) fn clock(has_crystal: bool) -> [u8; 2] {
    [SYS_TRIGGER, if has_crystal { 0x80 } else { 0x00 }]
}

/// All data: accelerometer, magnetometer, gyroscope, angles, quaternion, linear acceleration, gravity,
/// temperature, levels.
pub(super) type Burst = [u8; 46];
/// Those from ATTITUDE on.
pub(super) type Again = [u8; 20];

/// One digit of a quaternion of length 1.
const PER_ONE: f64 = 16_384.0;
const PER_DEG_S: f64 = 16.0;
/// 16 digits per uT.
const MGAUSS: f64 = 10.0 / 16.0;

/// What the sensor has measured and computed, on the axes of the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fused {
    /// By its three sensors.
    pub(super) measured: Measured,
    /// Gravity, and a field that points to the north.
    pub(super) world: Option<Measured>,
    pub(super) levels: Option<Levels>,
    /// What it has learned, in the first sample after it was read.
    pub(super) profile: Option<Profile>,
}

impl Digits for Fused {
    fn and(self, other: Self) -> Self {
        Self {
            measured: self.measured.and(other.measured),
            world: self.world.or(other.world),
            levels: self.levels.or(other.levels),
            profile: self.profile.or(other.profile),
        }
    }
}

/// How well it is calibrated: 0, not at all, to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels(u8);

impl Levels {
    fn all(self) -> [u8; 4] {
        // The whole, the gyroscope, the accelerometer and the magnetometer.
        [6, 4, 2, 0].map(|place| self.0 >> place & 3)
    }

    /// Whether its heading is right.
    pub(super) fn knows_north(self) -> bool {
        let [whole, _, _, magnet] = self.all();
        whole >= 1 && magnet >= 2
    }

    /// Whether it has learned what is worth keeping. The accelerometer does not count: only a tilt calibrates
    /// it.
    pub(super) fn are_full(self) -> bool {
        let [whole, gyro, _, magnet] = self.all();
        (whole, gyro, magnet) == (3, 3, 3)
    }

    /// What to do for the gyroscope.
    pub(super) fn gyro(self) -> Result<String, String> {
        let [_, level, ..] = self.all();
        advice(level, "let the robot stand still")
    }

    /// What to do for the magnetometer.
    pub(super) fn magnet(self) -> Result<String, String> {
        let [.., level] = self.all();
        advice(level, "turn the robot round, far from iron and motors")
    }
}

fn advice(level: u8, what: &str) -> Result<String, String> {
    let text = format!("the sensor calibrates itself: level {level} of 3");
    match level {
        3 => Ok(text),
        _ => Err(format!("{text}; {what}")),
    }
}

/// What is at an address; an error if it is something else. Only reads.
pub(super) fn identity(bus: &mut dyn Bus, at: u8) -> Result<String, Problem> {
    let [a, b, c, d, low, high] = read(bus, at, CHIP_ID)?;
    match [a, b, c, d] == IDENTITIES {
        true => Ok(format!("BNO055 (program {high:x}.{low:02x})")),
        false => Err(unexpected(at, a)),
    }
}

/// The same, and selects page 0 if another one seems to be selected.
pub(super) fn identity_on_any_page(bus: &mut dyn Bus, at: u8) -> Result<String, Problem> {
    match identity(bus, at) {
        Err(Problem::Chip(text)) => {
            if read(bus, at, PAGE_ID)? != [0x01] {
                return Err(Problem::Chip(text));
            }
            transfer(bus, at, &[PAGE_ID, 0x00], &mut [])?;
            identity(bus, at)
        }
        found => found,
    }
}

fn word(bytes: &[u8], place: usize) -> f64 {
    f64::from(i16::from_le_bytes([bytes[place], bytes[place + 1]]))
}

fn axes(bytes: &[u8], place: usize) -> Axes {
    [0, 2, 4].map(|axis| word(bytes, place + axis))
}

/// The attitude in these registers; `None` if it is not sound.
pub(super) struct Turned {
    quaternion: [f64; 4],
    gravity_mg: Axes,
}

impl Turned {
    /// Reads the registers from ATTITUDE on.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let quaternion = [0, 2, 4, 6].map(|place| word(bytes, place) / PER_ONE);
        let gravity_mg = axes(bytes, 14);
        let is_sound = (length(&quaternion) - 1.0).abs() <= 0.02
            && (length(&gravity_mg) / 1000.0 - 1.0).abs() <= 0.03;
        is_sound.then_some(Self {
            quaternion,
            gravity_mg,
        })
    }

    /// Whether this and an earlier one are of the same motion: between them there was at most one new
    /// sample, with this turn rate.
    fn fits(&self, earlier: &Self, rate_deg_s: f64) -> bool {
        let turned_rad = (1.0 + 0.02 * rate_deg_s).to_radians();
        let is_near = |a: f64, b: f64, most: f64| (a - b).abs() <= most;
        let mut turns = self.quaternion.iter().zip(earlier.quaternion);
        let mut tilts = self.gravity_mg.iter().zip(earlier.gravity_mg);
        // A quaternion has half of the angle.
        turns.all(|(a, b)| is_near(*a, b, turned_rad / 2.0))
            && tilts.all(|(a, b)| is_near(*a, b, 1000.0 * turned_rad))
    }

    /// North on the axes of the board: the quaternion turns these to east, north and up.
    fn north(&self) -> Axes {
        let [w, x, y, z] = self.quaternion;
        [
            2.0 * (x * y + w * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - w * x),
        ]
    }
}

/// Decodes a burst, and what was read again. `None` if something was damaged on the way, or if the sensor
/// does not compute.
pub(super) fn fused(burst: &Burst, again: &Again) -> Option<Fused> {
    let first = usize::from(ATTITUDE - DATA);
    let (earlier, later) = (Turned::of(&burst[first..])?, Turned::of(again)?);
    let gyro_deg_s = axes(burst, 12).map(|it| it / PER_DEG_S);
    if !later.fits(&earlier, length(&gyro_deg_s)) {
        return None;
    }
    let measured = Measured {
        accel_mg: Some(axes(burst, 0)),
        gyro_deg_s: Some(gyro_deg_s),
        magnet_mgauss: Some(axes(burst, 6).map(|it| it * MGAUSS)),
    };
    let world = Measured {
        accel_mg: Some(earlier.gravity_mg),
        gyro_deg_s: None,
        magnet_mgauss: Some(earlier.north().map(|it| 1000.0 * it)),
    };
    Some(Fused {
        measured,
        world: Some(world),
        levels: Some(Levels(burst[45])),
        profile: None,
    })
}

fn length(numbers: &[f64]) -> f64 {
    numbers.iter().map(|it| it * it).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet: at rest on level ground, facing east.
    fn burst() -> Burst {
        let bytes = [
            &[0x00, 0x00, 0x00, 0x00, 0xE8, 0x03][..],
            &[0x40, 0x01, 0x60, 0xFF, 0x80, 0xFD],
            &[0x00, 0x00, 0x00, 0x00, 0xA0, 0x00],
            &[0xA0, 0x05, 0xB0, 0xFF, 0x28, 0x00],
            &[0x41, 0x2D, 0x00, 0x00, 0x00, 0x00, 0xBF, 0xD2],
            &[0x00; 6],
            &[0x00, 0x00, 0x00, 0x00, 0xE8, 0x03],
            &[28, 0xF3],
        ];
        bytes.concat().try_into().unwrap()
    }

    fn again(burst: &Burst) -> Again {
        burst[24..44].try_into().unwrap()
    }

    #[test]
    fn bytes_are_decoded() {
        let burst = burst();
        let fused = fused(&burst, &again(&burst)).unwrap();
        let expected = Measured {
            accel_mg: Some([0.0, 0.0, 1000.0]),
            gyro_deg_s: Some([0.0, 0.0, 10.0]),
            magnet_mgauss: Some([200.0, -100.0, -400.0]),
        };
        assert_eq!(fused.measured, expected);
        // Facing east, north is on the left.
        let [x, y, z] = fused.world.unwrap().magnet_mgauss.unwrap();
        assert!(
            (x + 1000.0).abs() < 0.5 && y.abs() < 0.5 && z == 0.0,
            "{x} {y} {z}"
        );
        assert!(fused.levels.unwrap().knows_north() && fused.levels.unwrap().are_full());
    }

    #[test]
    fn zeros_are_no_attitude() {
        assert_eq!(fused(&[0; 46], &[0; 20]), None);
        assert_eq!(fused(&[0xFF; 46], &[0xFF; 20]), None);
    }

    /// Of all single bits that can be wrong in the attitude, those that remain change the heading little.
    #[test]
    fn a_wrong_bit_does_not_turn_the_robot() {
        let good = burst();
        let heading = |fused: &Fused| {
            let attitude =
                crate::motion_sensor::attitude::attitude(fused.world.unwrap(), &Default::default());
            f64::from(attitude.unwrap().heading_deg())
        };
        let mut found = 0;
        for place in 24..44 {
            for bit in 0..8 {
                let mut wrong = good;
                wrong[place] ^= 1 << bit;
                for (burst, again) in [(wrong, again(&good)), (good, again(&wrong))] {
                    match fused(&burst, &again) {
                        None => found += 1,
                        Some(fused) => {
                            let off = (heading(&fused) - 90.0).abs();
                            assert!(off < 2.5, "{place} {bit}: {off}");
                        }
                    }
                }
            }
        }
        assert!(found > 80, "{found}");
    }

    #[test]
    fn a_fast_turn_is_no_damage() {
        let mut before = burst();
        // 500 degrees per second, and 5 degrees more.
        before[16..18].copy_from_slice(&8_000_i16.to_le_bytes());
        let mut again = again(&before);
        let (sin, cos) = (47.5_f64).to_radians().sin_cos();
        again[..2].copy_from_slice(&((cos * PER_ONE) as i16).to_le_bytes());
        again[6..8].copy_from_slice(&((-sin * PER_ONE) as i16).to_le_bytes());
        assert!(fused(&before, &again).is_some());
        before[16..18].copy_from_slice(&[0, 0]);
        assert!(fused(&before, &again).is_none());
    }

    #[test]
    fn levels_say_what_to_do() {
        assert!(!Levels(0x00).knows_north() && !Levels(0x33).knows_north());
        assert!(Levels(0x42).knows_north() && !Levels(0x42).are_full());
        assert!(Levels(0xF3).are_full() && Levels(0xFF).are_full());
        let [still, turn] = [Levels(0x01).gyro(), Levels(0x01).magnet()];
        assert!(
            still
                .unwrap_err()
                .ends_with("level 0 of 3; let the robot stand still")
        );
        assert!(
            turn.unwrap_err()
                .contains("level 1 of 3; turn the robot round")
        );
        assert!(Levels(0x33).gyro().is_ok() && Levels(0x33).magnet().is_ok());
    }
}
