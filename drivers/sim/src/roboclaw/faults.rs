//! The faults of a controller, and their encoding in each firmware. PURE.

use super::packet::Firmware;

/// The faults, independent of the firmware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Too much current, per motor.
    pub overcurrent: [bool; 2],
    /// The emergency stop is pressed.
    pub emergency_stop: bool,
    /// The controller is too hot.
    pub temperature: bool,
    /// The voltage of the main battery is too high.
    pub battery_high: bool,
    /// The voltage of the main battery is too low.
    pub battery_low: bool,
    /// The speed differs too much from the commanded one, per motor. Only newer firmware has it.
    pub speed: [bool; 2],
    /// The same for the position.
    pub position: [bool; 2],
}

impl Faults {
    pub(super) fn encode(self, firmware: Firmware) -> Vec<u8> {
        let [first, second] = self.overcurrent;
        let flags = [
            (first, [0x01, 0x0001, 0x01_1000]),
            (second, [0x02, 0x0002, 0x02_2000]),
            (self.emergency_stop, [0x04, 0x0004, 0x00_0001]),
            (self.temperature, [0x08, 0x0008, 0x00_0002]),
            (self.battery_high, [0x10, 0x0020, 0x00_0008]),
            (self.battery_low, [0x20, 0x0800, 0x08_0000]),
            (self.speed[0], [0, 0, 0x00_0100]),
            (self.speed[1], [0, 0, 0x00_0200]),
            (self.position[0], [0, 0, 0x00_0400]),
            (self.position[1], [0, 0, 0x00_0800]),
        ];
        let bits = |column: usize| {
            flags
                .iter()
                .filter(|(set, _)| *set)
                .fold(0u32, |bits, (_, values)| bits | values[column])
        };
        match firmware {
            Firmware::Legacy | Firmware::LegacyAck => vec![bits(0) as u8],
            Firmware::V4_1_11 => (bits(1) as u16).to_be_bytes().to_vec(),
            Firmware::V4_1_34 | Firmware::V4_2_4 | Firmware::Mcp => bits(2).to_be_bytes().to_vec(),
        }
    }
}
