//! The state of a gamepad, from its events. PURE.
//!
//! The numbers are those of `linux/input-event-codes.h`. Positions of buttons, not their labels: the
//! left shoulder button is LB on an Xbox pad, L1 on a PlayStation pad and L on a Switch pad.

use serde::Deserialize;

/// Kinds of events: their end, a button, a stick.
pub(super) const SYN: u16 = 0;
pub(super) const KEY: u16 = 1;
pub(super) const ABS: u16 = 3;
/// Codes of [`SYN`]: all events of one moment have come, and some were lost.
pub(super) const REPORT: u16 = 0;
const DROPPED: u16 = 3;
/// Every gamepad has this button.
pub(super) const SOUTH: u16 = 0x130;
/// The button that must be held.
pub(super) const LEFT_SHOULDER: u16 = 0x136;
const RIGHT_SHOULDER: u16 = 0x137;
/// The left stick: to the right and down are positive.
pub(super) const X: u16 = 0;
pub(super) const Y: u16 = 1;

/// A stick that is moved less than this part of its way is at rest.
const DEAD: f64 = 0.12;
/// Small movements of the stick are slower by this exponent.
const EXPONENT: f64 = 1.5;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Event {
    pub(super) kind: u16,
    pub(super) code: u16,
    pub(super) value: i32,
}

impl Event {
    pub(super) const LENGTH: usize = 24;

    /// Reads a `struct input_event` of a system with 64 bits: time, kind, code and value.
    pub(super) fn read(bytes: &[u8; Self::LENGTH]) -> Self {
        let [.., a, b, c, d, e, f, g, h] = *bytes;
        Self {
            kind: u16::from_ne_bytes([a, b]),
            code: u16::from_ne_bytes([c, d]),
            value: i32::from_ne_bytes([e, f, g, h]),
        }
    }
}

/// The range of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Axis {
    pub(super) min: i32,
    pub(super) max: i32,
    /// Values so near to the centre are the centre.
    #[serde(default)]
    pub(super) flat: i32,
}

impl Axis {
    /// From -1 to 1.
    fn normal(self, value: i32) -> f64 {
        let (min, max) = (f64::from(self.min), f64::from(self.max));
        let half = (max - min) / 2.0;
        if half <= 0.0 {
            return 0.0;
        }
        ((f64::from(value) - (min + max) / 2.0) / half).clamp(-1.0, 1.0)
    }

    fn dead(self) -> f64 {
        let half = (f64::from(self.max) - f64::from(self.min)) / 2.0;
        DEAD.max(f64::from(self.flat) / half.max(1.0)).min(0.9)
    }
}

/// An axis, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Stick {
    axis: Axis,
    value: f64,
    /// It has reported that it is at rest. Before, its value may be wrong: the system reports 0 until
    /// an axis moves, and on many gamepads 0 is one end.
    was_at_rest: bool,
}

impl Stick {
    fn handle(&mut self, value: i32) {
        self.value = self.axis.normal(value);
        self.was_at_rest |= self.value.abs() <= self.axis.dead();
    }

    fn known(self) -> f64 {
        if self.was_at_rest { self.value } else { 0.0 }
    }
}

/// A gamepad.
#[derive(Clone, Debug)]
pub(in super::super) struct Pad {
    x: Stick,
    y: Stick,
    is_held: bool,
    is_fast: bool,
    /// The button was seen up, so the next press is one by a person.
    was_up: bool,
}

impl Pad {
    /// A gamepad with these axes of its left stick, whose shoulder button is pressed or not.
    pub(super) fn new([x, y]: [Axis; 2], is_pressed: bool) -> Self {
        let stick = |axis| Stick {
            axis,
            value: 0.0,
            was_at_rest: false,
        };
        Self {
            x: stick(x),
            y: stick(y),
            is_held: false,
            is_fast: false,
            was_up: !is_pressed,
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match (event.kind, event.code) {
            (KEY, LEFT_SHOULDER) => match event.value {
                0 => (self.is_held, self.was_up) = (false, true),
                _ => self.is_held = self.was_up,
            },
            (KEY, RIGHT_SHOULDER) => self.is_fast = event.value != 0,
            (ABS, X) => self.x.handle(event.value),
            (ABS, Y) => self.y.handle(event.value),
            (SYN, DROPPED) => self.doubt(),
            _ => {}
        }
    }

    /// What it reports may be wrong: nothing drives until the button is pressed again, and the stick
    /// has been at rest.
    pub(super) fn doubt(&mut self) {
        (self.is_held, self.was_up) = (false, false);
        (self.x.was_at_rest, self.y.was_at_rest) = (false, false);
    }

    /// Whether a person holds the button.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(super) fn is_fast(&self) -> bool {
        self.is_fast
    }

    /// How far the stick is moved to the right and ahead, from -1 to 1.
    pub(super) fn stick(&self) -> [f64; 2] {
        let (x, y) = (self.x.known(), -self.y.known());
        let far = x.hypot(y);
        let dead = self.x.axis.dead().max(self.y.axis.dead());
        if far <= dead {
            return [0.0; 2];
        }
        let part = ((far.min(1.0) - dead) / (1.0 - dead)).powf(EXPONENT);
        [x, y].map(|it| it / far * part)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As an Xbox pad, and as a PlayStation pad.
    const WIDE: Axis = Axis {
        min: -32_768,
        max: 32_767,
        flat: 128,
    };
    const BYTE: Axis = Axis {
        min: 0,
        max: 255,
        flat: 0,
    };

    fn event(kind: u16, code: u16, value: i32) -> Event {
        Event { kind, code, value }
    }

    fn pressed(value: i32) -> Event {
        event(KEY, LEFT_SHOULDER, value)
    }

    #[test]
    fn events_are_read_as_the_system_writes_them() {
        let read = |tail: [u8; 8]| {
            let mut bytes = [7; Event::LENGTH];
            bytes[16..].copy_from_slice(&tail);
            Event::read(&bytes)
        };
        if cfg!(target_endian = "little") {
            let stick = [0x03, 0, 0x01, 0, 0, 0xC0, 0xFF, 0xFF];
            assert_eq!(read(stick), event(ABS, Y, -16_384));
            let button = [0x01, 0, 0x36, 0x01, 0x01, 0, 0, 0];
            assert_eq!(read(button), pressed(1));
            assert_eq!(read([0, 0, 3, 0, 0, 0, 0, 0]), event(SYN, DROPPED, 0));
        }
    }

    #[test]
    fn the_stick_counts_from_the_edge_of_its_rest() {
        for (axis, rest, ahead, half) in [(WIDE, 0, -32_768, -18_350), (BYTE, 128, 0, 56)] {
            let mut pad = Pad::new([axis; 2], false);
            pad.handle(event(ABS, Y, rest));
            pad.handle(event(ABS, X, rest));
            assert_eq!(pad.stick(), [0.0; 2]);
            pad.handle(event(ABS, Y, ahead));
            let [right, forward] = pad.stick();
            assert!(
                right.abs() < 0.01 && (forward - 1.0).abs() < 0.01,
                "{axis:?}"
            );
            // Half of the way behind the rest, to the power of 1.5.
            pad.handle(event(ABS, Y, half));
            let [_, forward] = pad.stick();
            assert!((forward - 0.354).abs() < 0.01, "{axis:?}: {forward}");
        }
    }

    #[test]
    fn a_stick_that_is_moved_at_the_start_does_not_drive_before_it_was_at_rest() {
        let mut pad = Pad::new([BYTE; 2], false);
        pad.handle(pressed(1));
        pad.handle(event(ABS, Y, 0));
        assert_eq!(pad.stick(), [0.0; 2]);
        pad.handle(event(ABS, Y, 127));
        pad.handle(event(ABS, Y, 0));
        assert_eq!(pad.stick(), [0.0, 1.0]);
        // The other axis has not said anything yet.
        pad.handle(event(ABS, X, 255));
        assert_eq!(pad.stick(), [0.0, 1.0]);
    }

    #[test]
    fn a_button_that_is_pressed_at_the_start_does_not_hold() {
        let mut pad = Pad::new([WIDE; 2], true);
        pad.handle(pressed(1));
        assert!(!pad.is_held());
        pad.handle(pressed(0));
        pad.handle(pressed(1));
        assert!(pad.is_held());
        // Some events were lost: perhaps that of its release.
        pad.handle(event(SYN, DROPPED, 0));
        assert!(!pad.is_held());
        pad.handle(pressed(1));
        assert!(!pad.is_held(), "a repeated press");
        pad.handle(pressed(0));
        pad.handle(pressed(1));
        assert!(pad.is_held());
    }

    proptest! {
        #[test]
        fn nothing_drives_without_the_button(
            events in prop::collection::vec((0u16..4, 0u16..0x140, any::<i32>()), 0..200),
            axes in prop::collection::vec((any::<i32>(), any::<i32>(), any::<i32>()), 2),
            is_pressed: bool,
        ) {
            let axes = [0, 1].map(|index: usize| {
                let (min, max, flat) = axes[index];
                Axis { min, max, flat }
            });
            let mut pad = Pad::new(axes, is_pressed);
            let mut may_hold = false;
            let mut was_up = !is_pressed;
            for (kind, code, value) in events {
                pad.handle(event(kind, code, value));
                match (kind, code, value) {
                    (KEY, LEFT_SHOULDER, 0) => (may_hold, was_up) = (false, true),
                    (KEY, LEFT_SHOULDER, _) => may_hold = was_up,
                    (SYN, DROPPED, _) => (may_hold, was_up) = (false, false),
                    _ => {}
                }
                prop_assert!(!pad.is_held() || may_hold);
                let [right, forward] = pad.stick();
                prop_assert!(right.hypot(forward) <= 1.0 + 1e-9);
            }
        }
    }
}
