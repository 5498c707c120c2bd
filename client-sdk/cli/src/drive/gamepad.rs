//! Drives with a gamepad: hold a button, and move the stick.
//!
//! ```text
//!  a gamepad of this computer --+
//!                               +--> source (IO): GamepadState --> hand (PURE): speeds
//!  the device `gamepad` --------+
//! ```

use amber_terminal::Failure;

pub(super) use self::hand::PadHand;
pub(super) use self::source::{Which, open};

mod hand;
mod source;

/// What to do, in a line for people.
pub(super) const HELP: &str = "hold the left shoulder button and move the left stick; with the right \
                               one it is twice as fast; Ctrl-C ends";

/// Why driving ended: nothing comes from the gamepad any more.
pub(super) fn gone() -> Failure {
    Failure::new("the gamepad is gone: it was unplugged, or its battery is empty")
        .hint("the wheels were stopped")
}
