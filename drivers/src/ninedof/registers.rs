//! The registers of the LSM303DLHC and of the L3G4200D, L3GD20 and L3GD20H: settings and data.
//! PURE.

/// One of the three sensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensor {
    /// Acceleration.
    Accel,
    /// Turn rate.
    Gyro,
    /// Magnetic field.
    Magnet,
}

/// A set of sensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensors {
    /// Acceleration.
    pub accel: bool,
    /// Turn rate.
    pub gyro: bool,
    /// Magnetic field.
    pub magnet: bool,
}

/// Raw digits of the chips, x y z; `None` for a sensor without data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    /// Twelve bits, left-justified.
    pub accel: Option<[i16; 3]>,
    /// Sixteen bits.
    pub gyro: Option<[i16; 3]>,
    /// Twelve bits, right-justified.
    pub magnet: Option<[i16; 3]>,
}

/// The sensitivity of the magnetometer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// Up to 2.5 gauss, 1.5 milligauss per digit: several times the field of the Earth and a robot
    /// together.
    Fine,
    /// Up to 8.1 gauss, 4.3 milligauss per digit, as in the original.
    Coarse,
}

/// A sample read from a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// New digits.
    Fresh([i16; 3]),
    /// Digits that were read before.
    Old([i16; 3]),
    /// The settings are gone: the chip lost power.
    Reset,
    /// Another program has changed a setting, so the digits may have another meaning.
    Changed(Change),
    /// The field is beyond the range.
    Overflow,
}

/// A register with another value than the driver has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) register: u8,
    pub(super) set: u8,
    pub(super) found: u8,
}

/// A register and the value that it must keep.
pub(super) type Setting = [u8; 2];

pub(super) const ACCEL_ADDRESS: u8 = 0x19;
pub(super) const MAGNET_ADDRESS: u8 = 0x1E;

/// Possible addresses of a gyroscope. They depend on the chip and on the level at one pin.
pub(super) const GYRO_ADDRESSES: [u8; 4] = [0x6B, 0x6A, 0x69, 0x68];

pub(super) const WHO_AM_I: u8 = 0x0F;
/// The first of three identity registers; they hold three letters.
pub(super) const MAGNET_ID: u8 = 0x0A;

/// Normal power, 400 Hz; ±4 g, high resolution, block data update.
pub(super) const ACCEL_SETTINGS: [Setting; 2] = [[0x20, 0x77], [0x23, 0x98]];
/// 760 or 800 Hz, bandwidth 50 Hz; ±500 degrees per second, block data update. The second register
/// is written first, so that it applies to the first sample.
pub(super) const GYRO_SETTINGS: [Setting; 2] = [[0x23, 0x90], [0x20, 0xEF]];

/// The first of fourteen registers, counting up: settings, status and data.
pub(super) const INERTIAL: u8 = FIRST | 0x80;
const FIRST: u8 = 0x20;
/// The first setting after the chip got power: it does not measure.
const INERTIAL_OFF: u8 = 0x07;
/// The settings of the magnetometer after it got power.
const MAGNET_OFF: [u8; 3] = [0x10, 0x20, 0x03];
/// Settings and data of the magnetometer: nine registers.
pub(super) const MAGNET_SETTINGS: u8 = 0x00;
/// Bit 0: the magnetometer has a sample.
pub(super) const MAGNET_STATUS: u8 = 0x09;

/// Temperature on, 220 Hz; the gain; continuous measurement.
pub(super) fn magnet_settings(gain: Gain) -> [Setting; 3] {
    let gain = match gain {
        Gain::Fine => 0x60,
        Gain::Coarse => 0xE0,
    };
    [[0x00, 0x9C], [0x01, gain], [0x02, 0x00]]
}

/// The name of a gyroscope with this identity.
pub(super) fn gyro_name(who_am_i: u8) -> Option<&'static str> {
    match who_am_i {
        0xD3 => Some("L3G4200D"),
        0xD4 => Some("L3GD20"),
        0xD7 => Some("L3GD20H"),
        _ => None,
    }
}

/// Decodes the registers from [`INERTIAL`], which must have these settings. The data are
/// little-endian, x y z.
pub(super) fn inertial_sample(settings: &[Setting], bytes: [u8; 14]) -> Sample {
    let [first, .., status, _, _, _, _, _, _] = bytes;
    if first == INERTIAL_OFF {
        return Sample::Reset;
    }
    for &[register, set] in settings {
        let found = bytes[usize::from(register - FIRST)];
        if found != set {
            return Sample::Changed(Change {
                register,
                set,
                found,
            });
        }
    }
    let data = &bytes[8..];
    let axis = |k: usize| i16::from_le_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [axis(0), axis(1), axis(2)];
    match status & 0x08 {
        0 => Sample::Old(digits),
        _ => Sample::Fresh(digits),
    }
}

/// Decodes the registers from [`MAGNET_SETTINGS`]: big-endian, x z y. They do not show whether a
/// sample is new, but a chip that is set up measures.
pub(super) fn magnet_sample(gain: Gain, bytes: [u8; 9]) -> Sample {
    const OVERFLOW: i16 = -4096;
    let [cra, crb, mr, data @ ..] = bytes;
    let all = [cra, crb, mr];
    if all == MAGNET_OFF {
        return Sample::Reset;
    }
    for ([register, set], found) in magnet_settings(gain).into_iter().zip(all) {
        if found != set {
            return Sample::Changed(Change {
                register,
                set,
                found,
            });
        }
    }
    let axis = |k: usize| i16::from_be_bytes([data[2 * k], data[2 * k + 1]]);
    let digits = [axis(0), axis(2), axis(1)];
    match digits.contains(&OVERFLOW) {
        true => Sample::Overflow,
        false => Sample::Fresh(digits),
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            register,
            set,
            found,
        } = self;
        write!(
            f,
            "another program has changed register {register:#04x} from {set:#04x} to {found:#04x}"
        )
    }
}

impl Sensor {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Accel, Self::Gyro, Self::Magnet];

    /// The name used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accel => "accel",
            Self::Gyro => "gyro",
            Self::Magnet => "magnet",
        }
    }
}

impl std::fmt::Display for Sensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accel => "accelerometer",
            Self::Gyro => "gyroscope",
            Self::Magnet => "magnetometer",
        })
    }
}

impl Sensors {
    /// All three.
    pub const ALL: Self = Self {
        accel: true,
        gyro: true,
        magnet: true,
    };

    /// Whether the set contains a sensor.
    pub fn has(self, sensor: Sensor) -> bool {
        match sensor {
            Sensor::Accel => self.accel,
            Sensor::Gyro => self.gyro,
            Sensor::Magnet => self.magnet,
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Adds a sensor.
    pub(super) fn add(&mut self, sensor: Sensor) {
        match sensor {
            Sensor::Accel => self.accel = true,
            Sensor::Gyro => self.gyro = true,
            Sensor::Magnet => self.magnet = true,
        }
    }

    /// Whether the two sets share a sensor.
    pub fn meet(self, other: Self) -> bool {
        (self.accel && other.accel) || (self.gyro && other.gyro) || (self.magnet && other.magnet)
    }

    /// The union of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            accel: self.accel || other.accel,
            gyro: self.gyro || other.gyro,
            magnet: self.magnet || other.magnet,
        }
    }
}

impl Raw {
    pub(super) fn set(&mut self, sensor: Sensor, digits: Option<[i16; 3]>) {
        match sensor {
            Sensor::Accel => self.accel = digits,
            Sensor::Gyro => self.gyro = digits,
            Sensor::Magnet => self.magnet = digits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes listed in the hardware sheet.
    #[test]
    fn bytes_are_decoded_to_digits() {
        let accel = |data: [u8; 7]| {
            let settings = [0x77, 0, 0, 0x98, 0, 0, 0];
            let mut bytes = [0; 14];
            bytes[..7].copy_from_slice(&settings);
            bytes[7..].copy_from_slice(&data);
            inertial_sample(&ACCEL_SETTINGS, bytes)
        };
        assert_eq!(
            accel([0x0F, 0x00, 0xFC, 0x00, 0x02, 0x00, 0x20]),
            Sample::Fresh([-1024, 512, 8192])
        );
        assert_eq!(
            accel([0x00, 0x3B, 0x02, 0xC5, 0xFD, 0x52, 0x16]),
            Sample::Old([571, -571, 5714])
        );
        assert_eq!(
            magnet_sample(
                Gain::Coarse,
                [0x9C, 0xE0, 0x00, 0x00, 0x2E, 0xFF, 0xAE, 0xFF, 0xE9]
            ),
            Sample::Fresh([46, -23, -82])
        );
    }

    #[test]
    fn lost_and_changed_settings_of_accelerometer_and_gyroscope_are_detected() {
        let mut bytes = [0; 14];
        for settings in [ACCEL_SETTINGS, GYRO_SETTINGS] {
            bytes[0] = INERTIAL_OFF;
            assert_eq!(inertial_sample(&settings, bytes), Sample::Reset);
            for [register, set] in settings {
                bytes[usize::from(register - FIRST)] = set;
            }
            assert_eq!(inertial_sample(&settings, bytes), Sample::Old([0; 3]));
            // Twice the range.
            bytes[3] ^= 0x30;
            let changed = inertial_sample(&settings, bytes);
            assert!(matches!(changed, Sample::Changed(change) if change.register == 0x23));
        }
    }

    #[test]
    fn lost_settings_and_overflows_of_a_magnetometer_are_detected() {
        let after_reset = [0x10, 0x20, 0x03, 0, 1, 0, 2, 0, 3];
        assert_eq!(magnet_sample(Gain::Fine, after_reset), Sample::Reset);
        let other_gain = [0x9C, 0xE0, 0x00, 0, 1, 0, 2, 0, 3];
        let change = Change {
            register: 0x01,
            set: 0x60,
            found: 0xE0,
        };
        assert_eq!(
            magnet_sample(Gain::Fine, other_gain),
            Sample::Changed(change)
        );
        let overflow = [0x9C, 0x60, 0x00, 0, 1, 0xF0, 0x00, 0, 3];
        assert_eq!(magnet_sample(Gain::Fine, overflow), Sample::Overflow);
    }
}
