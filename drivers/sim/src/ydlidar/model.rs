//! The scanners, and how they differ. PURE.

use super::packet::Form;

/// A laser scanner of YDLIDAR.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// X2: 8 m, 7 turns per second, 430 points in each; takes no commands
    X2,
    /// X4: 10 m, 7 turns per second, 714 points in each
    X4,
    /// X4 Pro: the same; takes no commands
    X4Pro,
    /// G2: 12 m, 7 turns per second, 714 points in each
    G2,
    /// G4: 16 m, 7 turns per second, 1285 points in each
    G4,
    /// T-mini Pro: 12 m, 10 turns per second, 400 points in each
    TMini,
}

impl Model {
    /// Bits per second.
    pub(super) fn baud(self) -> f64 {
        match self {
            Self::X2 => 115_200.0,
            Self::X4 | Self::X4Pro => 128_000.0,
            Self::G2 | Self::G4 | Self::TMini => 230_400.0,
        }
    }

    /// Measurements per second.
    pub(super) fn rate_hz(self) -> f64 {
        match self {
            Self::X2 => 3_000.0,
            Self::X4 | Self::X4Pro | Self::G2 => 5_000.0,
            Self::G4 => 9_000.0,
            Self::TMini => 4_000.0,
        }
    }

    /// Turns per second.
    pub(super) fn usual_hz(self) -> f64 {
        match self {
            Self::TMini => 10.0,
            _ => 7.0,
        }
    }

    /// Whether its packets tell how fast it turns.
    pub(super) fn tells_speed(self) -> bool {
        self != Self::X4
    }

    /// Whether it takes commands. The others scan from power-up on.
    pub(super) fn takes_commands(self) -> bool {
        !matches!(self, Self::X2 | Self::X4Pro)
    }

    /// Whether it sends the time, and says what its sensor is at the start of a scan.
    pub(super) fn is_new(self) -> bool {
        self == Self::TMini
    }

    pub(super) fn form(self) -> Form {
        match self {
            Self::X2 | Self::X4 | Self::G4 => Form::Plain,
            Self::X4Pro => Form::Whole,
            Self::G2 | Self::TMini => Form::Strength,
        }
    }

    /// What it is, its firmware (minor, major) and its hardware.
    pub(super) fn identity(self) -> [u8; 4] {
        match self {
            Self::X2 | Self::X4 | Self::X4Pro => [6, 5, 1, 1],
            Self::G2 => [15, 2, 1, 1],
            Self::G4 => [5, 0, 2, 2],
            Self::TMini => [150, 1, 1, 1],
        }
    }

    /// The limits of its distances in mm.
    pub(super) fn range_mm(self) -> (f64, f64) {
        match self {
            Self::X2 => (100.0, 8_000.0),
            Self::X4 | Self::X4Pro => (120.0, 10_000.0),
            Self::G2 => (120.0, 12_000.0),
            Self::G4 => (280.0, 16_000.0),
            Self::TMini => (30.0, 12_000.0),
        }
    }

    /// How far what is seen at a distance is behind the head: those that triangulate look from the
    /// side.
    pub(super) fn behind_deg(self, mm: f64) -> f64 {
        match self {
            Self::TMini => 0.0,
            _ => (21.8 * (mm - 155.3) / (155.3 * mm)).atan().to_degrees(),
        }
    }
}
