//! The points of a scan from the samples of a turn. PURE.
//!
//! Programs expect scans of constant length, with angles that grow in equal steps. A scanner that turns
//! freely measures at other angles in each turn. So a turn is divided into equal parts, and each part
//! gives one point: the nearest object in it, at its own angle.

use std::str::FromStr;
use std::time::Duration;

use amber_proto::hokuyo::{Scan, Scanner};
use serde::Deserialize;

use super::sectors::Sectors;
use super::turns::{Echo, Mount, Sample};

/// The smallest distance: messages use smaller numbers as codes.
pub const MIN_MM: u16 = 20;
/// The largest distance.
pub const MAX_MM: u16 = 60_000;
/// The number of points: a scan with more might not fit into a message.
pub const POINTS: std::ops::RangeInclusive<u16> = 36..=2_900;

/// The code for "no object within range".
const NOTHING: i32 = 0;
/// A code for "nothing is known", which does not mean that an object is too near.
pub(super) const INVALID: i32 = 1;

/// The points of an URG-04LX: how many, the last angle, and the angle between two, in degrees, as the
/// original driver reported them.
const URG_POINTS: u16 = 682;
const URG_END_DEG: f64 = 119.885;
const URG_STEP_DEG: f64 = 0.352_085_168_869_309_85;

/// The angles of an URG-04LX in degrees, ascending, as the original driver reported them.
#[must_use]
pub fn urg_angles() -> Vec<f64> {
    let before_end = (0..URG_POINTS).rev();
    before_end
        .map(|steps| URG_END_DEG - URG_STEP_DEG * f64::from(steps))
        .collect()
}

/// How a turn becomes a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The points.
    pub points: Points,
    /// Sectors in which the scanner sees the robot itself.
    pub blank: Sectors,
    /// Nearer objects are ignored.
    pub min_mm: u16,
    /// Farther objects count as none.
    pub max_mm: u16,
    /// What a missing echo means.
    pub no_echo: NoEcho,
}

/// The points of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PointsText")]
pub enum Points {
    /// So many, all around.
    Count(u16),
    /// The 682 angles of an URG-04LX, for old programs that know no others.
    Compatible,
}

/// Points in a file: a number or a name.
#[derive(Deserialize)]
#[serde(untagged)]
enum PointsText {
    Count(u16),
    Name(String),
}

impl TryFrom<PointsText> for Points {
    type Error = String;

    fn try_from(text: PointsText) -> Result<Self, String> {
        match text {
            PointsText::Count(count) => Ok(Self::Count(count)),
            PointsText::Name(name) => name.parse(),
        }
    }
}

impl FromStr for Points {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("compatible", _) => Ok(Self::Compatible),
            (_, Ok(count)) => Ok(Self::Count(count)),
            _ => Err(format!("{text:?} is neither a number nor \"compatible\"")),
        }
    }
}

/// What a missing echo means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoEcho {
    /// Nothing is within range
    Free,
    /// Nothing is known: there may be an object that is dark or too near
    Unknown,
}

/// The angles of the points of a scan, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Of the first point.
    pub first_deg: f64,
    /// Of the last point.
    pub last_deg: f64,
    /// Between two points.
    pub step_deg: f64,
}

impl Points {
    /// Their number.
    #[must_use]
    pub fn count(self) -> u16 {
        match self {
            Self::Count(count) => count,
            Self::Compatible => URG_POINTS,
        }
    }

    /// Where they are, up to half a step.
    #[must_use]
    pub fn span(self) -> Span {
        match self {
            Self::Count(count) => {
                let step_deg = 360.0 / f64::from(count.max(1));
                Span {
                    first_deg: step_deg / 2.0 - 180.0,
                    last_deg: 180.0 - step_deg / 2.0,
                    step_deg,
                }
            }
            Self::Compatible => Span {
                first_deg: URG_END_DEG - URG_STEP_DEG * f64::from(URG_POINTS - 1),
                last_deg: URG_END_DEG,
                step_deg: URG_STEP_DEG,
            },
        }
    }
}

impl Layout {
    /// What the scans of a scanner are, without its name.
    #[must_use]
    pub fn describe(&self, mount: Mount, turn_time: Option<Duration>) -> Scanner {
        let span = self.points.span();
        let turn_s = turn_time.map(|time| time.as_secs_f64());
        Scanner {
            min_distance: Some(self.min_mm.into()),
            max_distance: Some(self.max_mm.into()),
            first_angle: Some(span.first_deg),
            last_angle: Some(span.last_deg),
            angle_step: Some(span.step_deg),
            turn_time: turn_s.map(|turn_s| (turn_s * 1e6).round() as u32),
            point_time: turn_s.map(|turn_s| (turn_s * 1e9 * span.step_deg / 360.0) as u32),
            turns_right: Some(!mount.is_mirrored),
            ..Scanner::default()
        }
    }

    /// The scan of a turn. The angles of its samples are on the robot.
    #[must_use]
    pub fn scan(&self, samples: &[Sample]) -> Scan {
        match self.points {
            Points::Count(count) => self.around(samples, count.max(1)),
            Points::Compatible => self.as_urg(samples),
        }
    }

    fn around(&self, samples: &[Sample], count: u16) -> Scan {
        let step_deg = 360.0 / f64::from(count);
        let centre = |index| (f64::from(index) + 0.5) * step_deg - 180.0;
        // Where nothing was measured, nothing is known.
        let mut points: Vec<_> = (0..count)
            .map(|index| (None, (centre(index), INVALID)))
            .collect();
        for sample in samples {
            let index = ((sample.angle_deg + 180.0) / step_deg).max(0.0) as usize;
            let value = self.value(sample);
            let (rank, point) = &mut points[index.min(usize::from(count) - 1)];
            if rank.is_none_or(|before| rank_of(value) < before) {
                *rank = Some(rank_of(value));
                *point = (sample.angle_deg, value);
            }
        }
        let (angles, distances) = points.into_iter().map(|(_, point)| point).unzip();
        Scan { angles, distances }
    }

    /// Each point is the nearest object within its step. The samples may be farther apart than the
    /// points: then it is the next sample.
    fn as_urg(&self, samples: &[Sample]) -> Scan {
        let mut sorted: Vec<_> = samples
            .iter()
            .map(|sample| (sample.angle_deg, self.value(sample)))
            .collect();
        sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let reach_deg = 1.5 * 360.0 / samples.len().max(1) as f64;
        let value_at = |angle_deg: f64| {
            let half = URG_STEP_DEG / 2.0;
            let from = sorted.partition_point(|(it, _)| *it < angle_deg - half);
            let to = sorted.partition_point(|(it, _)| *it <= angle_deg + half);
            let within = sorted[from..to].iter().map(|(_, value)| *value);
            if let Some(value) = within.min_by_key(|value| rank_of(*value)) {
                return value;
            }
            let nearby = [from.checked_sub(1), Some(from)].into_iter().flatten();
            nearby
                .filter_map(|index| sorted.get(index))
                .map(|(it, value)| ((it - angle_deg).abs(), *value))
                .filter(|(off_deg, _)| *off_deg <= reach_deg)
                .min_by(|(a, _), (b, _)| a.total_cmp(b))
                .map_or(INVALID, |(_, value)| value)
        };
        let angles = urg_angles();
        let distances = angles
            .iter()
            .map(|angle_deg| value_at(*angle_deg))
            .collect();
        Scan { angles, distances }
    }

    /// The number in the message.
    fn value(&self, sample: &Sample) -> i32 {
        match sample.echo {
            _ if self.blank.contain(sample.angle_deg) => INVALID,
            Echo::At(mm) if mm < self.min_mm.max(MIN_MM) => INVALID,
            Echo::At(mm) if mm > self.max_mm.min(MAX_MM) => NOTHING,
            Echo::At(mm) => mm.into(),
            Echo::Nothing => match self.no_echo {
                NoEcho::Free => NOTHING,
                NoEcho::Unknown => INVALID,
            },
            Echo::Invalid => INVALID,
        }
    }
}

/// Which of several values counts: the lowest rank. The nearest object first, and what is unknown
/// before what is free.
fn rank_of(value: i32) -> (u8, i32) {
    match value {
        INVALID => (1, 0),
        NOTHING => (2, 0),
        mm => (0, mm),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layout(points: Points) -> Layout {
        Layout {
            points,
            blank: Sectors::default(),
            min_mm: MIN_MM,
            max_mm: 12_000,
            no_echo: NoEcho::Free,
        }
    }

    fn sample(angle_deg: f64, echo: Echo) -> Sample {
        Sample {
            head_deg: angle_deg,
            angle_deg,
            echo,
            intensity: 200,
            time: Duration::ZERO,
        }
    }

    /// A turn in a world where each distance tells its angle.
    fn turn(count: u32, from_deg: f64) -> Vec<Sample> {
        (0..count)
            .map(|index| {
                let way_deg = from_deg + f64::from(index) * 360.0 / f64::from(count);
                let angle_deg = way_deg.rem_euclid(360.0) - 180.0;
                sample(angle_deg, Echo::At(truth_mm(angle_deg)))
            })
            .collect()
    }

    fn truth_mm(angle_deg: f64) -> u16 {
        (1000.0 + 5.0 * (angle_deg + 180.0)).round() as u16
    }

    proptest! {
        #[test]
        fn every_point_is_at_its_own_angle(
            samples in 100_u32..3_000,
            from_deg in 0.0..1.0,
            count in 36_u16..=2_900,
        ) {
            let scan = layout(Points::Count(count)).scan(&turn(samples, from_deg));
            prop_assert_eq!(scan.angles.len(), usize::from(count));
            prop_assert_eq!(scan.distances.len(), usize::from(count));
            prop_assert!(scan.angles.is_sorted_by(|a, b| a < b));
            prop_assert!(scan.angles.iter().all(|it| (-180.0..180.0).contains(it)));
            let step_deg = 360.0 / f64::from(count);
            let mut measured = 0;
            for (index, (angle_deg, mm)) in scan.angles.iter().zip(&scan.distances).enumerate() {
                let centre = (index as f64 + 0.5) * step_deg - 180.0;
                prop_assert!((angle_deg - centre).abs() <= step_deg / 2.0 + 1e-9);
                prop_assert!(*mm == INVALID || *mm == i32::from(truth_mm(*angle_deg)));
                measured += u32::from(*mm != INVALID);
            }
            // Each part with a sample has a distance; no part of nothing is called free.
            prop_assert!(measured <= samples);
            if samples > u32::from(count) {
                prop_assert_eq!(measured, u32::from(count));
            }
        }

        #[test]
        fn old_programs_get_the_angles_that_they_know(samples in 300_u32..3_000) {
            let scan = layout(Points::Compatible).scan(&turn(samples, 0.3));
            prop_assert_eq!(&scan.angles, &urg_angles());
            let step_deg = 360.0 / f64::from(samples);
            for (angle_deg, mm) in scan.angles.iter().zip(&scan.distances) {
                let off_mm = (i32::from(truth_mm(*angle_deg)) - mm).abs();
                prop_assert!(f64::from(off_mm) <= 5.0 * (step_deg.max(URG_STEP_DEG) / 2.0) + 1.0);
            }
        }
    }

    #[test]
    fn the_angles_of_a_urg_are_those_of_the_original() {
        let angles = urg_angles();
        assert_eq!(
            (angles.len(), angles[0], angles[681]),
            (682, -119.885, 119.885)
        );
        let span = Points::Compatible.span();
        assert_eq!((span.first_deg, span.last_deg), (angles[0], angles[681]));
    }

    #[test]
    fn values_that_are_no_distance_have_their_code() {
        let mut layout = layout(Points::Count(36));
        layout.min_mm = 100;
        layout.blank = "90:100".parse().unwrap();
        for (angle_deg, echo, expected) in [
            (0.0, Echo::At(100), 100),
            (0.0, Echo::At(99), INVALID),
            (0.0, Echo::At(6), INVALID),
            (0.0, Echo::At(12_000), 12_000),
            (0.0, Echo::At(12_001), NOTHING),
            (0.0, Echo::Nothing, NOTHING),
            (0.0, Echo::Invalid, INVALID),
            (95.0, Echo::At(500), INVALID),
            (95.0, Echo::Nothing, INVALID),
        ] {
            let value = layout.value(&sample(angle_deg, echo));
            assert_eq!(value, expected, "{angle_deg} {echo:?}");
        }
        layout.no_echo = NoEcho::Unknown;
        assert_eq!(layout.value(&sample(0.0, Echo::Nothing)), INVALID);
    }

    #[test]
    fn the_nearest_object_counts_and_what_is_unknown_is_not_free() {
        let layout = layout(Points::Count(36));
        let value = |echoes: &[Echo]| {
            let samples: Vec<_> = (echoes.iter()).map(|echo| sample(5.0, *echo)).collect();
            layout.scan(&samples).distances[18]
        };
        assert_eq!(value(&[Echo::At(900), Echo::At(700), Echo::Nothing]), 700);
        assert_eq!(
            value(&[Echo::Nothing, Echo::Invalid, Echo::Nothing]),
            INVALID
        );
        assert_eq!(value(&[Echo::Nothing]), NOTHING);
        assert_eq!(value(&[]), INVALID);
    }

    #[test]
    fn points_are_a_number_or_a_name() {
        assert_eq!("400".parse(), Ok(Points::Count(400)));
        assert_eq!("compatible".parse(), Ok(Points::Compatible));
        assert!("many".parse::<Points>().is_err());
    }
}
