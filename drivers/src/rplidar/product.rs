//! The models of RPLIDAR, and how they differ. PURE.

/// A laser scanner of Slamtec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Product {
    /// RPLIDAR A1
    A1,
    /// RPLIDAR A2
    A2,
    /// RPLIDAR A3
    A3,
    /// RPLIDAR C1
    C1,
    /// RPLIDAR S1
    S1,
    /// RPLIDAR S2
    S2,
    /// RPLIDAR S3
    S3,
}

/// What starts the motor, beside the line DTR of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motor {
    /// Nothing else, or the start of the scan.
    Itself,
    /// A command for its power, if its board obeys.
    Pwm,
    /// A command for its speed.
    Rpm,
}

/// The most points of a scan by default: many programs have no room for more.
const MAX_POINTS: f64 = 1_600.0;
/// Each point of a scan should have a measurement, also in a slightly shorter turn.
const MARGIN: f64 = 0.9;

impl Product {
    /// The product with this number of a model; `None` if it is not known.
    #[must_use]
    pub fn of(model: u8) -> Option<Self> {
        Some(match model >> 4 {
            1 => Self::A1,
            2 => Self::A2,
            3 => Self::A3,
            4 => Self::C1,
            6 => Self::S1,
            7 => Self::S2,
            8 => Self::S3,
            _ => return None,
        })
    }

    /// Its name without the number of its variant.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::A3 => "A3",
            Self::C1 => "C1",
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
        }
    }

    /// Its full name, such as "A1M8".
    #[must_use]
    pub fn full_name(self, model: u8) -> String {
        format!("{}M{}", self.name(), model & 15)
    }

    /// Bits per second of its variants.
    #[must_use]
    pub fn bauds(self) -> &'static [u32] {
        match self {
            Self::A1 => &[115_200],
            Self::A2 => &[115_200, 256_000],
            Self::A3 | Self::S1 => &[256_000],
            Self::C1 => &[460_800],
            Self::S2 => &[1_000_000],
            Self::S3 => &[1_000_000, 460_800],
        }
    }

    /// The limits of its distances in mm; some modes have another upper limit.
    #[must_use]
    pub fn range_mm(self) -> (u16, u16) {
        match self {
            Self::A1 | Self::A2 => (150, 12_000),
            Self::A3 => (200, 25_000),
            Self::C1 => (50, 12_000),
            Self::S1 => (100, 40_000),
            Self::S2 => (50, 30_000),
            Self::S3 => (50, 40_000),
        }
    }

    /// What starts its motor.
    #[must_use]
    pub fn motor(self) -> Motor {
        match self {
            Self::A1 | Self::C1 => Motor::Itself,
            Self::A2 | Self::A3 => Motor::Pwm,
            Self::S1 | Self::S2 | Self::S3 => Motor::Rpm,
        }
    }

    /// Whether its firmware always describes its modes. Those of the A series do from 1.24 on.
    #[must_use]
    pub fn has_modes(self) -> bool {
        !matches!(self, Self::A1 | Self::A2 | Self::A3)
    }

    /// Turns per second. Those of an A1 are not regulated: 5.5 to 8.
    fn usual_hz(self) -> f64 {
        match self {
            Self::A1 => 7.0,
            _ => 10.0,
        }
    }

    /// The points of a scan with this time between two measurements: a multiple of ten.
    #[must_use]
    pub fn points(self, sample_us: f64) -> u16 {
        let measured = 1e6 / sample_us / self.usual_hz() * MARGIN;
        let parts = (measured / MAX_POINTS).ceil().max(1.0);
        ((measured / parts / 10.0) as u16 * 10).max(40)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn numbers_of_models_are_those_of_the_maker() {
        for (model, name) in [
            (0x18, "A1M8"),
            (0x27, "A2M7"),
            (0x28, "A2M8"),
            (0x2C, "A2M12"),
            (0x31, "A3M1"),
            (0x41, "C1M1"),
            (0x61, "S1M1"),
            (0x71, "S2M1"),
            (0x82, "S3M2"),
        ] {
            assert_eq!(Product::of(model).unwrap().full_name(model), name);
        }
        // A YDLIDAR, which answers the same question.
        assert_eq!(Product::of(6), None);
    }

    #[test]
    fn scans_have_a_few_points_less_than_a_turn_has_measurements() {
        for (product, sample_us, points) in [
            (Product::A1, 508.0, 250),
            (Product::A1, 127.0, 1_010),
            (Product::A2, 254.0, 350),
            (Product::A3, 62.5, 1_440),
            (Product::C1, 200.0, 450),
            (Product::S1, 108.7, 820),
            // 3200 measurements.
            (Product::S2, 31.25, 1_440),
        ] {
            assert_eq!(product.points(sample_us), points, "{product:?}");
        }
        assert_eq!(Product::S2.points(0.5), 1_590);
        assert_eq!(Product::A1.points(1e9), 40);
    }

    #[test]
    fn products_have_the_same_names_in_files_and_on_the_command_line() {
        #[derive(serde::Deserialize)]
        struct File {
            model: Product,
        }
        for product in Product::value_variants() {
            let value = product.to_possible_value().unwrap();
            let file: File = toml::from_str(&format!("model = \"{}\"", value.get_name())).unwrap();
            assert_eq!(file.model, *product);
            assert_eq!(value.get_name(), product.name().to_lowercase());
        }
    }
}
