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
    /// How the upper limit of the main battery is found by itself. It has no effect.
    pub(super) auto_max: u8,
    /// In tenths of a volt.
    pub(super) logic_limits: [u16; 2],
    /// Added to the measured voltages of main and logic battery, in tenths of a volt.
    pub(super) offsets: [i8; 2],
    /// Acceleration and deceleration for commands without their own, per motor; 0 for the limit of
    /// the motor.
    pub(super) accelerations: [[u32; 2]; 2],
    /// The speeds of moves to a position without their own, in parts of the highest: 32767 is 1.
    pub(super) speeds: [u16; 2],
    /// A larger deviation of the speed is a fault, in pulses per second; 0 for none.
    pub(super) speed_errors: [u32; 2],
    /// A larger deviation of the position is a fault, in pulses; 0 for none.
    pub(super) position_errors: [u32; 2],
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

/// A whole, where parts are words.
pub(super) const FULL: u16 = 32_767;

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
            auto_max: 0,
            logic_limits: [45, 340],
            offsets: [0; 2],
            accelerations: [[0; 2]; 2],
            speeds: [FULL; 2],
            speed_errors: [0; 2],
            position_errors: [0; 2],
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
        let count = f64::from(part).abs() / f64::from(FULL) * f64::from(end);
        count.round() as i32
    }
}

impl Velocity {
    /// Encodes the settings in the order for reading, which differs from the order for writing.
    pub(super) fn report(self) -> Vec<u8> {
        longs([self.p, self.i, self.d, self.qpps])
    }
}
