//! Whether the parts of a robot work. PURE.

use super::{Header, message};
use crate::cdr::{Cdr, CdrError, Reader, Writer};

message! {
    /// The states of all parts.
    DiagnosticArray = "diagnostic_msgs" "DiagnosticArray" {
        /// The time; the frame is empty.
        header: Header,
        /// One entry for each part.
        status: Vec<DiagnosticStatus>,
    }
}

message! {
    /// The state of one part.
    DiagnosticStatus = "diagnostic_msgs" "DiagnosticStatus" {
        /// Whether it works.
        level: Level,
        /// The part, such as `robot1: hokuyo:0`.
        name: String,
        /// The problem, for people.
        message: String,
        /// The device.
        hardware_id: String,
        /// Details.
        values: Vec<KeyValue>,
    }
}

message! {
    /// A value with a name.
    KeyValue = "diagnostic_msgs" "KeyValue" {
        /// The name.
        key: String,
        value: String,
    }
}

/// The health of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// It works.
    pub const OK: Self = Self(0);
    /// It works, but has a problem.
    pub const WARN: Self = Self(1);
    /// It does not work.
    pub const ERROR: Self = Self(2);
    /// Its state is no longer known.
    pub const STALE: Self = Self(3);
}

impl Cdr for Level {
    const MIN_BYTES: usize = 1;

    fn write(&self, to: &mut Writer) {
        self.0.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CdrError> {
        u8::read(from).map(Self)
    }
}
