//! The gamepads of this machine: for `amber drive --gamepad`, and for the driver `gamepad`.
//!
//! ```text
//!  /dev/input/event* --> node (IO): finds it --> Description, Events --> pad (PURE): GamepadState
//!  bytes of another program --> reader (PURE) -----^
//! ```
//!
//! The numbers are those of `linux/input-event-codes.h`.

#![warn(missing_docs)]

mod event;
mod node;
mod pad;
mod reader;

pub use self::event::{ABS, Description, Event, KEY, REPORT, Range, SYN};
pub use self::node::{Gamepad, Trouble};
pub use self::pad::{DEAD_ZONE, Pad};
pub use self::reader::{Garbage, Reader, Said};
