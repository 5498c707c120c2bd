//! The laser scanners of YDLIDAR, and how they differ. PURE.

use super::logic::YdlidarLogic;
use super::packet::Form;
use crate::scanner::layout::NoEcho;
use crate::scanner::options;

/// A laser scanner of YDLIDAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Product {
    /// X2, X2L, X3
    #[value(alias = "x3")]
    #[serde(alias = "x3")]
    X2,
    /// X4
    #[default]
    X4,
    /// X4 Pro
    X4Pro,
    /// G2
    G2,
    /// G4
    G4,
    /// T-mini Pro, T-mini Plus
    TMini,
}

impl Product {
    /// The product with this number of a model; `None` if it is not known.
    #[must_use]
    pub fn of(model: u8) -> Option<Self> {
        Some(match model {
            5 | 7 | 18 => Self::G4,
            6 => Self::X4,
            14 | 15 => Self::G2,
            140 | 150 | 151 => Self::TMini,
            _ => return None,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X2 => "X2",
            Self::X4 => "X4",
            Self::X4Pro => "X4 Pro",
            Self::G2 => "G2",
            Self::G4 => "G4",
            Self::TMini => "T-mini",
        }
    }

    /// Whether it takes commands. The others have one wire, for data.
    #[must_use]
    pub fn takes_commands(self) -> bool {
        !matches!(self, Self::X2 | Self::X4Pro)
    }

    /// The forms of its points; variants differ.
    #[must_use]
    pub fn forms(self) -> &'static [Form] {
        match self {
            Self::X2 | Self::X4 => &[Form::Plain],
            Self::X4Pro => &[Form::Flagged],
            Self::G2 => &[Form::Plain, Form::Strength8],
            Self::G4 => &[Form::Plain, Form::Strength10],
            Self::TMini => &[Form::Strength8],
        }
    }

    /// Measurements per second of a new scanner; some can be set to others, and variants differ.
    #[must_use]
    pub fn usual_rate_hz(self) -> f64 {
        match self {
            Self::X2 => 3_000.0,
            Self::X4 | Self::X4Pro | Self::G2 => 5_000.0,
            Self::G4 => 9_000.0,
            Self::TMini => 4_000.0,
        }
    }

    /// How far the direction of a point is behind that of the head, in degrees.
    ///
    /// A scanner that triangulates looks from the side: at 1 m by 6.8 degrees.
    #[must_use]
    pub fn behind_deg(self, mm: f64) -> f64 {
        match self {
            Self::X2 | Self::X4 | Self::X4Pro | Self::G2 | Self::G4 => {
                (21.8 * (mm - 155.3) / (155.3 * mm)).atan().to_degrees()
            }
            Self::TMini => 0.0,
        }
    }
}

impl options::Product for Product {
    type Logic = YdlidarLogic;

    const HELP: &'static str = "The scanner: its packets do not say which one it is [default: x4]";

    fn baud(self) -> u32 {
        match self {
            Self::X2 => 115_200,
            Self::X4 | Self::X4Pro => 128_000,
            Self::G2 | Self::G4 | Self::TMini => 230_400,
        }
    }

    fn points(self) -> u16 {
        match self {
            Self::X2 => 380,
            Self::X4 | Self::X4Pro | Self::G2 => 640,
            Self::G4 => 1_150,
            // At ten turns per second.
            Self::TMini => 360,
        }
    }

    fn range_mm(self) -> (u16, u16) {
        match self {
            Self::X2 => (100, 8_000),
            Self::X4 | Self::X4Pro => (120, 10_000),
            Self::G2 => (120, 12_000),
            Self::G4 => (100, 16_000),
            Self::TMini => (30, 12_000),
        }
    }

    fn no_echo(self) -> NoEcho {
        // Dark and too near objects give none, either.
        NoEcho::Unknown
    }

    fn has_ghosts(self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn scanners_that_triangulate_look_sideways() {
        for (mm, ahead_deg) in [
            (100.0, 4.4388),
            (155.3, 0.0),
            (200.0, -1.7970),
            (500.0, -5.5275),
            (1_000.0, -6.7622),
            (2_000.0, -7.3772),
            (4_000.0, -7.6841),
            (8_000.0, -7.8374),
        ] {
            for product in [Product::X2, Product::X4, Product::G4] {
                let found = -product.behind_deg(mm);
                assert!((found - ahead_deg).abs() < 0.0001, "{mm} mm: {found}");
            }
            assert_eq!(Product::TMini.behind_deg(mm), 0.0);
        }
        // The example of the maker.
        for (mm, head_deg, expected_deg) in [
            (1_000.0, 223.78125, 217.0191),
            (8_000.0, 243.46875, 235.6313),
        ] {
            let found = head_deg - Product::X4.behind_deg(mm);
            assert!((found - expected_deg).abs() < 0.001, "{found}");
        }
    }

    #[test]
    fn products_have_the_same_names_in_files_and_on_the_command_line() {
        #[derive(serde::Deserialize)]
        struct File {
            model: Product,
        }
        for product in Product::value_variants() {
            let value = product.to_possible_value().unwrap();
            for name in value.get_name_and_aliases() {
                let file: File = toml::from_str(&format!("model = \"{name}\"")).unwrap();
                assert_eq!(file.model, *product);
            }
            let name = product.name().to_lowercase().replace(' ', "-");
            assert_eq!(value.get_name(), name);
        }
    }
}
