//! What Linux tells of a gamepad. PURE.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Kinds of events: what holds them together, a button, an axis.
pub const SYN: u16 = 0;
/// A button: 1 is down, and 0 up.
pub const KEY: u16 = 1;
/// An axis.
pub const ABS: u16 = 3;
/// A code of [`SYN`]: all events of one moment have come.
pub const REPORT: u16 = 0;
/// A code of [`SYN`]: some events were lost.
pub(crate) const DROPPED: u16 = 3;
/// No kind and no code is larger.
const LAST_KIND: u16 = 0x1F;
const LAST_CODE: u16 = 0x2FF;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// [`SYN`], [`KEY`], [`ABS`] or others.
    pub kind: u16,
    /// Which button or axis.
    pub code: u16,
    /// Its value.
    pub value: i32,
}

impl Event {
    /// The length in bytes.
    pub const LENGTH: usize = 24;

    /// Reads a `struct input_event` of a system with 64 bits: time, kind, code and value.
    pub fn read(bytes: &[u8; Self::LENGTH]) -> Self {
        let [.., a, b, c, d, e, f, g, h] = *bytes;
        Self {
            kind: u16::from_ne_bytes([a, b]),
            code: u16::from_ne_bytes([c, d]),
            value: i32::from_ne_bytes([e, f, g, h]),
        }
    }

    /// The same bytes; the time is 0.
    pub fn bytes(self) -> [u8; Self::LENGTH] {
        let [a, b] = self.kind.to_ne_bytes();
        let [c, d] = self.code.to_ne_bytes();
        let [e, f, g, h] = self.value.to_ne_bytes();
        let mut bytes = [0; Self::LENGTH];
        bytes[16..].copy_from_slice(&[a, b, c, d, e, f, g, h]);
        bytes
    }

    /// Whether Linux could have sent it.
    pub(crate) fn is_possible(self) -> bool {
        let is_button = self.kind == KEY;
        self.kind <= LAST_KIND
            && self.code <= LAST_CODE
            && (!is_button || (0..=2).contains(&self.value))
    }
}

/// What is known of a gamepad when it is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// The number of its maker on USB and Bluetooth.
    #[serde(default)]
    pub vendor: u16,
    /// The ranges of its axes, by their codes.
    pub axes: BTreeMap<u16, Range>,
    /// The codes of the buttons that are down.
    #[serde(default)]
    pub held: Vec<u16>,
}

impl Description {
    /// The first line of the stream of a gamepad: see [`Reader`](crate::Reader).
    pub fn line(&self) -> Vec<u8> {
        // It has nothing that JSON cannot express.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The range of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// To the left, up, or released.
    pub min: i32,
    /// To the right, down, or pressed.
    pub max: i32,
    /// Values so near to the centre are the centre.
    #[serde(default)]
    pub flat: i32,
}

impl Range {
    fn half(self) -> f64 {
        (f64::from(self.max) - f64::from(self.min)) / 2.0
    }

    /// A value of a stick, from -1 to 1.
    pub(crate) fn centred(self, value: i32) -> f64 {
        let (min, max) = (f64::from(self.min), f64::from(self.max));
        if self.half() <= 0.0 {
            return 0.0;
        }
        ((f64::from(value) - (min + max) / 2.0) / self.half()).clamp(-1.0, 1.0)
    }

    /// A value of a trigger, from 0 to 1.
    pub(crate) fn pressed(self, value: i32) -> f64 {
        if self.half() <= 0.0 {
            return 0.0;
        }
        ((f64::from(value) - f64::from(self.min)) / (2.0 * self.half())).clamp(0.0, 1.0)
    }

    /// The part of the way that is the centre: at least this one.
    pub(crate) fn dead(self, dead_zone: f64) -> f64 {
        dead_zone
            .max(f64::from(self.flat) / self.half().max(1.0))
            .min(0.9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_written_as_the_system_does() {
        let read = |tail: [u8; 8]| {
            let mut bytes = [7; Event::LENGTH];
            bytes[16..].copy_from_slice(&tail);
            let event = Event::read(&bytes);
            assert_eq!(event.bytes()[16..], tail);
            assert_eq!(event.bytes()[..16], [0; 16]);
            (event.kind, event.code, event.value)
        };
        if cfg!(target_endian = "little") {
            assert_eq!(read([3, 0, 1, 0, 0, 0xC0, 0xFF, 0xFF]), (ABS, 1, -16_384));
            assert_eq!(read([1, 0, 0x36, 1, 1, 0, 0, 0]), (KEY, 0x136, 1));
            assert_eq!(read([0, 0, 3, 0, 0, 0, 0, 0]), (SYN, DROPPED, 0));
        }
    }

    #[test]
    fn a_range_has_a_centre_and_two_ends() {
        let range = |min, max| Range { min, max, flat: 0 };
        let wide = range(-32_768, 32_767);
        let byte = range(0, 255);
        for (range, value, centred, pressed) in [
            (wide, -32_768, -1.0, 0.0),
            (wide, 32_767, 1.0, 1.0),
            (byte, 0, -1.0, 0.0),
            (byte, 255, 1.0, 1.0),
            (byte, 256, 1.0, 1.0),
            (range(0, 0), 5, 0.0, 0.0),
            (range(5, -5), 0, 0.0, 0.0),
            (range(i32::MIN, i32::MAX), i32::MAX, 1.0, 1.0),
        ] {
            assert_eq!(range.centred(value), centred, "{range:?} {value}");
            assert_eq!(range.pressed(value), pressed, "{range:?} {value}");
        }
        assert!(byte.centred(128).abs() < 0.005);
        let flat = |flat| Range { flat, ..wide }.dead(0.12);
        assert_eq!((flat(128), flat(i32::MAX)), (0.12, 0.9));
        assert!((flat(8_192) - 0.25).abs() < 1e-4);
    }
}
