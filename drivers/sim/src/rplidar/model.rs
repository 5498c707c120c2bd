//! The scanners, and what they say of themselves. PURE.

use super::packet::Format;

/// An RPLIDAR of Slamtec.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A1M8: 12 m, 5.5 turns per second, up to 8000 points per second
    A1,
    /// A2M8: 12 m, 10 turns per second, up to 8000 points per second
    A2,
    /// A3M1: 25 m, 10 turns per second, up to 16000 points per second
    A3,
    /// C1M1: 12 m, 10 turns per second, 5000 points per second
    C1,
    /// S1M1: 40 m, 10 turns per second, up to 9200 points per second
    S1,
    /// S2M1: 30 m, 10 turns per second, up to 32000 points per second
    S2,
    /// S3M1: 40 m, 10 turns per second, up to 32000 points per second
    S3,
}

/// What starts the motor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Starter {
    /// The power.
    Power,
    /// The command for its power.
    Pwm,
    /// The command for its speed.
    Rpm,
    /// The start of a scan.
    Scan,
}

/// A way to scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    /// The time between two points.
    pub(super) sample_us: f64,
    pub(super) format: Format,
}

const fn mode(name: &'static str, sample_us: f64, format: Format) -> Mode {
    Mode {
        name,
        sample_us,
        format,
    }
}

const A1: &[Mode] = &[
    mode("Standard", 508.0, Format::Nodes),
    mode("Express", 254.0, Format::Express),
    mode("Boost", 127.0, Format::Ultra),
    mode("Sensitivity", 127.0, Format::Ultra),
    mode("Stability", 201.0, Format::Ultra),
];
const A3: &[Mode] = &[
    mode("Standard", 250.0, Format::Nodes),
    mode("Express", 125.0, Format::Express),
    mode("Boost", 62.5, Format::Ultra),
    mode("Sensitivity", 62.5, Format::Ultra),
    mode("Stability", 100.0, Format::Ultra),
];
const C1: &[Mode] = &[
    mode("Standard", 200.0, Format::Nodes),
    mode("DenseBoost", 200.0, Format::Dense),
];
const S1: &[Mode] = &[
    mode("Standard", 217.0, Format::Nodes),
    mode("DenseBoost", 108.5, Format::Dense),
];
const S2: &[Mode] = &[
    mode("Standard", 62.5, Format::Nodes),
    mode("DenseBoost", 31.25, Format::Dense),
];

impl Model {
    /// The number that it says, and its firmware: minor, major.
    pub(super) fn identity(self) -> [u8; 3] {
        match self {
            Self::A1 => [0x18, 29, 1],
            Self::A2 => [0x28, 29, 1],
            Self::A3 => [0x31, 27, 1],
            Self::C1 => [0x41, 1, 1],
            Self::S1 => [0x61, 2, 1],
            Self::S2 => [0x71, 2, 1],
            Self::S3 => [0x81, 2, 1],
        }
    }

    pub(super) fn modes(self) -> &'static [Mode] {
        match self {
            Self::A1 | Self::A2 => A1,
            Self::A3 => A3,
            Self::C1 => C1,
            Self::S1 => S1,
            Self::S2 | Self::S3 => S2,
        }
    }

    /// The mode that it recommends.
    pub(super) fn typical(self) -> u16 {
        match self {
            Self::A1 | Self::A2 | Self::A3 => 3,
            _ => 1,
        }
    }

    /// Turns per second at the usual power or speed.
    pub(super) fn usual_hz(self) -> f64 {
        match self {
            Self::A1 => 5.5,
            _ => 10.0,
        }
    }

    pub(super) fn starter(self) -> Starter {
        match self {
            Self::A1 => Starter::Power,
            Self::A2 | Self::A3 => Starter::Pwm,
            Self::C1 => Starter::Scan,
            Self::S1 | Self::S2 | Self::S3 => Starter::Rpm,
        }
    }

    /// Whether it triangulates, and so looks sideways.
    pub(super) fn looks_sideways(self) -> bool {
        matches!(self, Self::A1 | Self::A2 | Self::A3)
    }

    /// The limits of its distances in mm.
    pub(super) fn range_mm(self) -> (f64, f64) {
        match self {
            Self::A1 | Self::A2 => (150.0, 12_000.0),
            Self::A3 => (200.0, 25_000.0),
            Self::C1 => (50.0, 12_000.0),
            Self::S1 => (100.0, 40_000.0),
            Self::S2 => (50.0, 30_000.0),
            Self::S3 => (50.0, 40_000.0),
        }
    }
}
