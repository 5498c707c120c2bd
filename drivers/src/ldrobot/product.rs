//! The laser scanners of LDROBOT, and how they differ. PURE.

use std::time::Duration;

use super::logic::LdrobotLogic;
use super::packet::{POINTS, Packet};
use crate::scanner::layout::NoEcho;
use crate::scanner::options;

/// A laser scanner of LDROBOT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Product {
    /// LD06
    Ld06,
    /// LD19, also sold as STL-19P and in the kit D300
    #[default]
    #[value(alias = "stl-19p")]
    #[serde(alias = "stl-19p")]
    Ld19,
    /// STL-27L
    #[value(name = "stl-27l")]
    #[serde(rename = "stl-27l")]
    Stl27l,
    /// LD14P, which measures by triangulation
    #[value(name = "ld14p")]
    #[serde(rename = "ld14p")]
    Ld14p,
}

/// The share by which the angle of a packet may exceed what the speed of the motor gives.
const MAX_SPAN: f64 = 1.5;
/// The slowest speed that counts as turning.
const MIN_SPEED_DEG_S: u16 = 360;

impl Product {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ld06 => "LD06",
            Self::Ld19 => "LD19",
            Self::Stl27l => "STL-27L",
            Self::Ld14p => "LD14P",
        }
    }

    /// Whether a program can start and stop it.
    #[must_use]
    pub fn takes_commands(self) -> bool {
        self == Self::Ld14p
    }

    /// How far the direction of a point is behind that of the head, in degrees.
    ///
    /// A scanner that triangulates looks from the side: at 1 m by 5.7 degrees.
    #[must_use]
    pub fn behind_deg(self, mm: u16) -> f64 {
        match self {
            Self::Ld06 | Self::Ld19 | Self::Stl27l => 0.0,
            Self::Ld14p => {
                let mm = f64::from(mm);
                ((0.119_23 * mm - 18.975_571) / (mm + 5.9))
                    .atan()
                    .to_degrees()
            }
        }
    }

    /// The fewest measurements per second: some products have variants.
    fn min_rate_hz(self) -> f64 {
        match self {
            Self::Ld06 | Self::Ld19 => 4_500.0,
            Self::Stl27l => 21_600.0,
            Self::Ld14p => 2_300.0,
        }
    }

    /// Whether the motor turns, and the angles of a packet fit its speed. While it starts, they do
    /// not.
    #[must_use]
    pub fn is_plausible(self, packet: &Packet) -> bool {
        let time_s = POINTS as f64 / self.min_rate_hz();
        let usual_deg = f64::from(packet.speed_deg_s) * time_s;
        packet.speed_deg_s >= MIN_SPEED_DEG_S && packet.span_deg() <= MAX_SPAN * usual_deg
    }

    /// The time between two points of a packet.
    #[must_use]
    pub fn point_time(self, packet: &Packet) -> Duration {
        let step_deg = packet.span_deg() / (POINTS - 1) as f64;
        Duration::from_secs_f64(step_deg / f64::from(packet.speed_deg_s.max(1)))
    }
}

impl options::Product for Product {
    type Logic = LdrobotLogic;

    const HELP: &'static str = "The scanner, which does not say itself what it is [default: ld19]";

    fn baud(self) -> u32 {
        match self {
            Self::Ld06 | Self::Ld19 | Self::Ld14p => 230_400,
            Self::Stl27l => 921_600,
        }
    }

    fn points(self) -> u16 {
        match self {
            Self::Ld06 | Self::Ld19 => 400,
            Self::Stl27l => 972,
            // There are two variants; the other one measures 383 times.
            Self::Ld14p => 340,
        }
    }

    fn range_mm(self) -> (u16, u16) {
        match self {
            Self::Ld06 | Self::Ld19 => (20, 12_000),
            Self::Stl27l => (30, 25_000),
            Self::Ld14p => (100, 8_000),
        }
    }

    fn no_echo(self) -> NoEcho {
        match self {
            Self::Ld06 | Self::Ld19 | Self::Stl27l => NoEcho::Free,
            // It triangulates, so near objects give none, either.
            Self::Ld14p => NoEcho::Unknown,
        }
    }

    fn has_ghosts(self) -> bool {
        matches!(self, Self::Ld06 | Self::Ld19)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn an_ld14p_looks_sideways() {
        for (mm, expected_deg) in [
            (100, -3.810),
            (150, -0.401),
            (200, 1.355),
            (300, 3.1424),
            (500, 4.593),
            (1_000, 5.692),
            (2_000, 6.244),
            (4_000, 6.522),
            (8_000, 6.660),
        ] {
            let found = Product::Ld14p.behind_deg(mm);
            assert!((found - expected_deg).abs() < 0.001, "{mm} mm: {found}");
        }
        assert_eq!(Product::Ld19.behind_deg(1_000), 0.0);
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
            assert_eq!(value.get_name(), product.name().to_lowercase());
        }
    }
}
