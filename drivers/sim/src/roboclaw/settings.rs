//! The settings of a controller. PURE.

use super::data::longs;

/// The settings that survive a reset once they are saved in the EEPROM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) velocity: [Velocity; 2],
    /// P, I, D, windup, dead zone, lowest and highest position, per motor.
    pub(super) position: [[u32; 7]; 2],
    pub(super) encoder_modes: [u8; 2],
    /// In tenths of a volt.
    pub(super) main_limits: [u16; 2],
    /// In tenths of a volt.
    pub(super) logic_limits: [u16; 2],
    /// Acceleration and deceleration for commands without their own, per motor; 0 for the limit of
    /// the motor.
    pub(super) accelerations: [[u32; 2]; 2],
    /// Highest and lowest current of each motor, in 10 mA.
    pub(super) currents: [[u32; 2]; 2],
    /// The functions of S3, S4, S5, D1 and D2. Nothing is connected to them.
    pub(super) pins: [u8; 5],
    /// How the signals of a remote control are decoded. None is connected.
    pub(super) controls: [u8; 24],
    pub(super) config: u16,
    pub(super) pwm_modes: [u8; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Velocity {
    pub(super) p: u32,
    pub(super) i: u32,
    pub(super) d: u32,
    pub(super) qpps: u32,
}

/// Packet serial at 38400 baud.
const CONFIG: u16 = 0x0063;

/// In 10 mA: more current is a fault.
const MAX_CURRENT: u32 = 500;

impl Settings {
    pub(super) fn new() -> Self {
        let velocity = Velocity {
            p: 65_536,
            i: 32_768,
            d: 16_384,
            qpps: 44_000,
        };
        Self {
            velocity: [velocity; 2],
            position: [[0; 7]; 2],
            encoder_modes: [0; 2],
            main_limits: [105, 340],
            logic_limits: [45, 340],
            accelerations: [[0; 2]; 2],
            currents: [[MAX_CURRENT, 0]; 2],
            pins: [0; 5],
            controls: [0; 24],
            config: CONFIG,
            pwm_modes: [0; 2],
        }
    }

    /// The count for a position in parts of the whole range, -32767 to 32767.
    pub(super) fn count_of_part(&self, channel: usize, part: i16) -> i32 {
        let [.., low, high] = self.position[channel].map(u32::cast_signed);
        let end = if part < 0 { low } else { high };
        let count = f64::from(part).abs() / 32_767.0 * f64::from(end);
        count.round() as i32
    }
}

impl Velocity {
    /// Encodes the settings in the order for reading, which differs from the order for writing.
    pub(super) fn report(self) -> Vec<u8> {
        longs([self.p, self.i, self.d, self.qpps])
    }
}
