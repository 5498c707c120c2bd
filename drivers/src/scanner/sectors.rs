//! Sectors of a scan in which the scanner sees the robot itself. PURE.

use std::str::FromStr;

use amber_proto::hokuyo::Scan;
use amber_proto::robot::Sector;
use serde::Deserialize;

use super::layout::INVALID;
use super::turns::{Echo, Sample};

/// More sectors are a mistake: a robot has few masts and wheels. So many fit into a message with ease.
const MAX_SECTORS: usize = 32;

/// Sectors in degrees to the right of the front, as the scans have them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sectors(Vec<(f64, f64)>);

impl Sectors {
    /// Those of a message. Leaves out numbers that are none.
    #[must_use]
    pub fn of(messages: &[Sector]) -> Self {
        // Rounded, so that the borders are those of the file.
        let deg = |rad: f64| (wrapped(-rad.to_degrees()) * 1e6).round() / 1e6;
        let usable = messages
            .iter()
            .filter(|it| it.begin.is_finite() && it.end.is_finite());
        Self(
            usable
                .take(MAX_SECTORS)
                .map(|it| (deg(it.end), deg(it.begin)))
                .collect(),
        )
    }

    /// The messages, in radians counter-clockwise.
    #[must_use]
    pub fn messages(&self) -> Vec<Sector> {
        let rad = |deg: f64| -deg.to_radians() + 0.0;
        let sectors = self.0.iter();
        sectors
            .map(|(from, to)| Sector {
                begin: rad(*to),
                end: rad(*from),
            })
            .collect()
    }

    /// Their left and right borders, in degrees to the right.
    #[must_use]
    pub fn right_deg(&self) -> &[(f64, f64)] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a direction is in one of them, in degrees from -180 to 180.
    #[must_use]
    pub fn contain(&self, angle_deg: f64) -> bool {
        self.0.iter().any(|(from, to)| match from <= to {
            true => (*from..=*to).contains(&angle_deg),
            // Across the rear.
            false => angle_deg >= *from || angle_deg <= *to,
        })
    }

    /// How much of the circle they cover, in degrees: an estimate to half a degree per border.
    #[must_use]
    pub fn covered_deg(&self) -> u16 {
        let is_covered = |deg: &i16| self.contain(f64::from(*deg) + 0.5);
        (-180..180).filter(is_covered).map(|_| 1).sum()
    }

    /// Makes the measurements in these sectors invalid.
    pub fn mask_samples(&self, samples: &mut [Sample]) {
        let masked = samples.iter_mut().filter(|it| self.contain(it.angle_deg));
        masked.for_each(|sample| sample.echo = Echo::Invalid);
    }

    /// The same with the points of a scan.
    pub fn mask_points(&self, scan: &mut Scan) {
        let points = scan.angles.iter().zip(&mut scan.distances);
        let masked = points.filter(|(angle_deg, _)| self.contain(**angle_deg));
        masked.for_each(|(_, mm)| *mm = INVALID);
    }
}

/// An angle from -180 to 180 degrees.
fn wrapped(deg: f64) -> f64 {
    match (-180.0..=180.0).contains(&deg) {
        true => deg,
        false => (deg + 180.0).rem_euclid(360.0) - 180.0,
    }
}

impl FromStr for Sectors {
    type Err = String;

    /// Such as `-140:-130,130:140`.
    fn from_str(text: &str) -> Result<Self, String> {
        let sector = |text: &str| {
            let (from, to) = text.split_once(':')?;
            let degrees = |text: &str| {
                let degrees: f64 = text.trim().parse().ok()?;
                (-180.0..=180.0).contains(&degrees).then_some(degrees)
            };
            Some((degrees(from)?, degrees(to)?))
        };
        let sectors: Option<Vec<_>> = text.split(',').map(sector).collect();
        let sectors = sectors
            .ok_or_else(|| format!("{text:?} is not like -140:-130,130:140, within -180 to 180"))?;
        match sectors.len() {
            0..=MAX_SECTORS => Ok(Self(sectors)),
            count => Err(format!("{count} sectors are more than {MAX_SECTORS}")),
        }
    }
}

impl TryFrom<String> for Sectors {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sectors(text: &str) -> Sectors {
        text.parse().unwrap()
    }

    #[test]
    fn sectors_may_cross_the_rear() {
        let sectors = sectors("-140:-130, 170:-170");
        for (angle_deg, expected) in [
            (-135.0, true),
            (-129.0, false),
            (175.0, true),
            (-180.0, true),
            (-169.0, false),
            (0.0, false),
        ] {
            assert_eq!(sectors.contain(angle_deg), expected, "{angle_deg}");
        }
        assert_eq!(sectors.covered_deg(), 30);
        for text in ["", "1", "1:", "1:200", "a:b", "1:2,", "nan:1"] {
            assert!(text.parse::<Sectors>().is_err(), "{text}");
        }
        let many = ["1:2"; MAX_SECTORS + 1].join(",");
        let error = many.parse::<Sectors>().unwrap_err();
        assert_eq!(error, "33 sectors are more than 32");
        assert!(!Sectors::default().contain(0.0));
    }

    #[test]
    fn a_message_holds_the_same_sectors_counter_clockwise() {
        for text in [
            "-140:-130,130:140",
            "170:-170",
            "-180:-179.5",
            "180:-170",
            "0:0",
            "0.1:12.3",
        ] {
            let sectors = sectors(text);
            assert_eq!(Sectors::of(&sectors.messages()), sectors, "{text}");
        }
        let message = &sectors("-10:30").messages()[0];
        assert!((message.begin.to_degrees() + 30.0).abs() < 1e-9);
        assert!((message.end.to_degrees() - 10.0).abs() < 1e-9);
        // Of another program: any turn of the circle, and nonsense.
        let message = |begin: f64, end: f64| Sector { begin, end };
        let of = Sectors::of(&[
            message(190_f64.to_radians(), 200_f64.to_radians()),
            message(f64::NAN, 1.0),
        ]);
        assert_eq!(of, sectors("160:170"));
        assert!(Sectors::of(&[message(0.0, 1.0); 99]).0.len() <= MAX_SECTORS);
    }

    #[test]
    fn what_is_masked_is_neither_an_obstacle_nor_free() {
        let sectors = sectors("90:100");
        let angles = vec![89.0, 90.0, 95.0, 100.0, 101.0];
        let mut scan = Scan {
            angles: angles.clone(),
            distances: vec![500, 500, 0, 3, 0],
        };
        sectors.mask_points(&mut scan);
        assert_eq!(scan.distances, [500, INVALID, INVALID, INVALID, 0]);
        let sample = |angle_deg: f64| Sample {
            head_deg: 0.0,
            angle_deg,
            echo: Echo::At(500),
            intensity: 1,
            time: Duration::ZERO,
        };
        let mut samples: Vec<_> = angles.into_iter().map(sample).collect();
        sectors.mask_samples(&mut samples);
        let valid: Vec<_> = samples.iter().map(|it| it.echo != Echo::Invalid).collect();
        assert_eq!(valid, [true, false, false, false, true]);
    }
}
