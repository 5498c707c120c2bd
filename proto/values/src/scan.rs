//! A laser scan: points by angle and distance. PURE.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use amber_proto::{collision_avoidance, hokuyo};

/// The range of valid distances, in mm. 0 means that nothing is within range.
/// The other values below are error codes (too near, weak echo, glare). Larger
/// values exceed the range of all scanners.
pub const VALID_MM: RangeInclusive<i32> = 20..=60_000;

/// One scan.
///
/// Angles are in degrees, positive = clockwise = to the right of straight on;
/// drivers send them in ascending order, so from left to right. Distances are
/// in mm.
///
/// ```
/// # use amber_values as amber_client;
/// use amber_client::Scan;
///
/// let scan = Scan::new(&[-90.0, 0.0, 90.0], &[2500, 0, 400], None)?;
/// assert_eq!(scan.points().len(), 3);
/// assert_eq!(scan.valid_points().count(), 2, "nothing is straight ahead");
/// let nearest = scan.nearest(0.0..=120.0).ok_or("nothing there")?;
/// assert_eq!((nearest.angle_deg, nearest.distance_mm), (90.0, 400));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    points: Vec<Point>,
    timestamp_ms: Option<i64>,
}

/// One point of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Degrees, positive = to the right; finite.
    pub angle_deg: f64,
    /// Millimetres; only those within [`VALID_MM`] are distances.
    pub distance_mm: i32,
}

/// The reasons why a scan is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The message has no scan.
    #[error("there is no scan in it")]
    Missing,
    /// The numbers of angles and distances differ.
    #[error("{angles} angles but {distances} distances")]
    UnequalLengths {
        /// The number of angles.
        angles: usize,
        /// The number of distances.
        distances: usize,
    },
    /// An angle is not a finite number.
    #[error("angle {index} is {angle}")]
    BadAngle {
        /// The index of the angle, from 0.
        index: usize,
        /// Its value: NaN or infinite.
        angle: f64,
    },
}

impl Scan {
    /// A scan from degrees, as many distances in mm, and the time when it was
    /// taken, in ms since the Unix epoch (0 and less mean unknown).
    ///
    /// # Errors
    /// The lists differ in length, or an angle is not finite.
    pub fn new(
        angles_deg: &[f64],
        distances_mm: &[i32],
        timestamp_ms: Option<i64>,
    ) -> Result<Self, ScanError> {
        if angles_deg.len() != distances_mm.len() {
            return Err(ScanError::UnequalLengths {
                angles: angles_deg.len(),
                distances: distances_mm.len(),
            });
        }
        if let Some(index) = angles_deg.iter().position(|angle| !angle.is_finite()) {
            let angle = angles_deg[index];
            return Err(ScanError::BadAngle { index, angle });
        }
        let points = angles_deg.iter().zip(distances_mm);
        Ok(Self {
            points: points
                .map(|(&angle_deg, &distance_mm)| Point {
                    angle_deg,
                    distance_mm,
                })
                .collect(),
            timestamp_ms: timestamp_ms.filter(|ms| *ms > 0),
        })
    }

    /// All points in the order in which they came: from left to right.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The points with a valid distance, within [`VALID_MM`].
    pub fn valid_points(&self) -> impl Iterator<Item = Point> + '_ {
        self.points.iter().copied().filter(Point::is_valid)
    }

    /// The nearest point in a sector, e.g. `-30.0..=30.0` for straight ahead;
    /// `None` if the sector has no valid point.
    ///
    /// A sector cannot cross the rear; use two sectors there.
    pub fn nearest(&self, sector_deg: RangeInclusive<f64>) -> Option<Point> {
        self.valid_points()
            .filter(|point| sector_deg.contains(&point.angle_deg))
            .min_by_key(|point| point.distance_mm)
    }

    /// When it was taken, in ms since the Unix epoch by the clock of the
    /// robot; `None` when the driver does not say.
    pub fn timestamp_ms(&self) -> Option<i64> {
        self.timestamp_ms
    }

    /// When it was taken by the clock of the robot, which may differ from the
    /// one here; `None` when the driver does not say.
    pub fn taken_at(&self) -> Option<SystemTime> {
        let ms = u64::try_from(self.timestamp_ms?).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms))
    }
}

impl TryFrom<&hokuyo::DriverMsg> for Scan {
    type Error = ScanError;

    fn try_from(message: &hokuyo::DriverMsg) -> Result<Self, ScanError> {
        let scan = message.scan.as_ref().ok_or(ScanError::Missing)?;
        Self::new(&scan.angles, &scan.distances, message.timestamp)
    }
}

/// Only the points: the timestamp is a field of [`hokuyo::DriverMsg`].
impl From<&Scan> for hokuyo::Scan {
    fn from(scan: &Scan) -> Self {
        let points = scan.points.iter();
        Self {
            angles: points.clone().map(|point| point.angle_deg).collect(),
            distances: points.map(|point| point.distance_mm).collect(),
        }
    }
}

/// Without a timestamp: the message has none.
impl TryFrom<collision_avoidance::Scan> for Scan {
    type Error = ScanError;

    fn try_from(scan: collision_avoidance::Scan) -> Result<Self, ScanError> {
        Self::new(&scan.angles, &scan.distances, None)
    }
}

/// Only the points.
impl From<&Scan> for collision_avoidance::Scan {
    fn from(scan: &Scan) -> Self {
        let hokuyo::Scan { angles, distances } = scan.into();
        Self { angles, distances }
    }
}

impl Point {
    /// Whether the distance is valid.
    pub fn is_valid(&self) -> bool {
        VALID_MM.contains(&self.distance_mm)
    }

    /// Its position in metres relative to the scanner, in the frame of Amber's
    /// maps: x to the front, y **to the right**.
    pub fn x_y_m(&self) -> (f64, f64) {
        let distance_m = f64::from(self.distance_mm) / 1000.0;
        let (sin, cos) = self.angle_deg.to_radians().sin_cos();
        (distance_m * cos, distance_m * sin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_do_not_fit_are_an_error() {
        for (angles, distances) in [(1, 0), (0, 1), (682, 681)] {
            assert_eq!(
                Scan::new(&vec![0.0; angles], &vec![100; distances], None),
                Err(ScanError::UnequalLengths { angles, distances })
            );
        }
        assert!(Scan::new(&[], &[], None).unwrap().points().is_empty());
    }

    #[test]
    fn an_angle_must_be_a_number() {
        for angle in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            match Scan::new(&[0.0, angle], &[1, 2], None) {
                Err(ScanError::BadAngle { index: 1, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn error_codes_and_invalid_values_are_not_distances() {
        let distances = [i32::MIN, -1, 0, 1, 19, 20, 5600, 60_000, 60_001, i32::MAX];
        let scan = Scan::new(&[0.0; 10], &distances, None).unwrap();
        let valid: Vec<_> = scan.valid_points().map(|point| point.distance_mm).collect();
        assert_eq!(valid, [20, 5600, 60_000]);
    }

    #[test]
    fn the_nearest_is_looked_for_within_the_sector() {
        let angles = [-90.0, -10.0, 0.0, 10.0, 90.0];
        let scan = Scan::new(&angles, &[300, 0, 800, 900, 400], None).unwrap();
        let nearest = |sector| scan.nearest(sector).map(|point| point.angle_deg);
        assert_eq!(nearest(-180.0..=180.0), Some(-90.0));
        assert_eq!(nearest(0.0..=180.0), Some(90.0));
        assert_eq!(nearest(-30.0..=30.0), Some(0.0));
        assert_eq!(nearest(-20.0..=-5.0), None, "0 is no distance");
        assert_eq!(nearest(10.0..=10.0), Some(10.0));
        assert_eq!(nearest(f64::NAN..=1.0), None);
    }

    #[test]
    fn the_right_is_positive() {
        for (angle_deg, x_y_m) in [
            (0.0, (2.0, 0.0)),
            (90.0, (0.0, 2.0)),
            (-90.0, (0.0, -2.0)),
            (180.0, (-2.0, 0.0)),
        ] {
            let point = Point {
                angle_deg,
                distance_mm: 2000,
            };
            let (x, y) = point.x_y_m();
            assert!((x - x_y_m.0).abs() < 1e-9 && (y - x_y_m.1).abs() < 1e-9);
        }
    }

    #[test]
    fn an_invalid_time_is_unknown() {
        let taken = |ms| Scan::new(&[], &[], ms).unwrap().taken_at();
        let expected = SystemTime::UNIX_EPOCH + Duration::from_millis(1_448_000_000_123);
        assert_eq!(taken(Some(1_448_000_000_123)), Some(expected));
        for unknown in [None, Some(0), Some(-1), Some(i64::MIN)] {
            assert_eq!(taken(unknown), None);
        }
    }

    #[test]
    fn a_message_keeps_the_scan() {
        let scan = Scan::new(&[-90.0, 0.5], &[392, 0], Some(1_448_000_000_123)).unwrap();
        let message = hokuyo::DriverMsg {
            scan: Some((&scan).into()),
            timestamp: scan.timestamp_ms(),
            ..hokuyo::DriverMsg::default()
        };
        assert_eq!(Scan::try_from(&message), Ok(scan));

        let scan = Scan::new(&[-90.0, 0.5], &[392, 0], None).unwrap();
        let message = collision_avoidance::Scan::from(&scan);
        assert_eq!(Scan::try_from(message), Ok(scan));
    }

    #[test]
    fn a_message_without_a_valid_scan_is_an_error() {
        let mut message = hokuyo::DriverMsg::default();
        assert_eq!(Scan::try_from(&message), Err(ScanError::Missing));
        message.scan = Some(hokuyo::Scan {
            angles: vec![0.0],
            distances: Vec::new(),
        });
        let unequal = ScanError::UnequalLengths {
            angles: 1,
            distances: 0,
        };
        assert_eq!(Scan::try_from(&message), Err(unequal));
    }
}
