//! Scans. PURE.

use amber_values::{Point, Scan};

use crate::frames::{laser, timestamp};
use crate::limits::MAX_RANGES;
use crate::messages::LaserScan;

/// The part of a step by which an angle may differ from equal steps, at most by half a fine step.
const TOLERANCE: f64 = 0.1;
/// The longest step of scans whose angles have unequal steps.
const FINE_DEG: f64 = 0.25;

/// A scan with equal steps, in the form of other robot systems (REP 103): counter-clockwise, in
/// metres and radians.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvenScan {
    /// The angle of the first distance.
    pub start_rad: f64,
    /// The angle of the last distance.
    pub end_rad: f64,
    /// The distances. Infinite: nothing is in range. Not a number: no measurement.
    pub ranges_m: Vec<f64>,
}

impl From<&Scan> for EvenScan {
    fn from(scan: &Scan) -> Self {
        let points = scan.points();
        let (ranges_m, start_deg, end_deg) = match is_even(points) {
            // From right to left: the other way round.
            true => {
                let ends = points.last().zip(points.first());
                let (start, end) = ends.map_or((0.0, 0.0), |(a, b)| (a.angle_deg, b.angle_deg));
                (points.iter().rev().map(range_m).collect(), start, end)
            }
            false => spread(points),
        };
        Self {
            // A difference, so that 0 stays positive.
            start_rad: 0.0 - start_deg.to_radians(),
            end_rad: 0.0 - end_deg.to_radians(),
            ranges_m,
        }
    }
}

impl EvenScan {
    /// The angle between two distances.
    #[must_use]
    pub fn step_rad(&self) -> f64 {
        let steps = self.ranges_m.len().saturating_sub(1).max(1);
        (self.end_rad - self.start_rad) / steps as f64
    }
}

/// A scan in the frame of its laser.
pub(crate) fn laser_scan(scan: &Scan, device_id: i32, measured_ns: u64) -> LaserScan {
    let even = EvenScan::from(scan);
    LaserScan {
        timestamp: timestamp(measured_ns),
        frame_id: laser(device_id),
        pose: crate::frames::pose(amber_map::Pose::default(), 0.0),
        start_angle: even.start_rad,
        end_angle: even.end_rad,
        ranges: even.ranges_m,
        intensities: Vec::new(),
    }
}

/// A distance in metres. Infinite: nothing is in range. Not a number: the laser failed there.
fn range_m(point: &Point) -> f64 {
    match point.distance_mm {
        0 => f64::INFINITY,
        mm if point.is_valid() => f64::from(mm) / 1000.0,
        _ => f64::NAN,
    }
}

fn is_even(points: &[Point]) -> bool {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return true;
    };
    let steps = (points.len() - 1).max(1) as f64;
    let step = (last.angle_deg - first.angle_deg) / steps;
    let mut all = points.iter().enumerate();
    let tolerance = (TOLERANCE * step).min(FINE_DEG / 2.0);
    step >= 0.0
        && all.all(|(index, point)| {
            let even = first.angle_deg + index as f64 * step;
            (point.angle_deg - even).abs() <= tolerance
        })
}

/// Distances at equal steps: each point gets the next of them.
fn spread(points: &[Point]) -> (Vec<f64>, f64, f64) {
    let mut sorted: Vec<_> = points.iter().collect();
    sorted.sort_by(|a, b| b.angle_deg.total_cmp(&a.angle_deg));
    let start_deg = sorted.first().map_or(0.0, |point| point.angle_deg);
    let end_deg = sorted.last().map_or(0.0, |point| point.angle_deg);
    let span_deg = start_deg - end_deg;
    let gaps = sorted
        .windows(2)
        .map(|pair| pair[0].angle_deg - pair[1].angle_deg);
    let smallest = gaps.filter(|gap| *gap > 0.0).fold(span_deg, f64::min);
    let steps = (span_deg / (TOLERANCE * smallest).min(FINE_DEG)).ceil();
    // Not a number if all angles are the same.
    let steps = match steps.is_finite() {
        true => steps.clamp(1.0, MAX_RANGES as f64 - 1.0),
        false => 1.0,
    };
    let mut ranges = vec![f64::NAN; steps as usize + 1];
    for point in sorted {
        let share = match span_deg > 0.0 {
            true => (start_deg - point.angle_deg) / span_deg,
            false => 0.0,
        };
        let range = &mut ranges[(share * steps).round() as usize];
        // The nearest one counts; any other value is more than not a number.
        *range = range.min(range_m(point));
    }
    (ranges, start_deg, end_deg)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn converted(angles: &[f64], distances: &[i32]) -> LaserScan {
        laser_scan(&Scan::new(angles, distances, None).unwrap(), 0, 5)
    }

    /// Angle, counter-clockwise, and distance of all points.
    fn points(scan: &LaserScan) -> Vec<(f64, f64)> {
        let steps = scan.ranges.len().saturating_sub(1).max(1) as f64;
        let step = (scan.end_angle - scan.start_angle) / steps;
        let all = scan.ranges.iter().enumerate();
        all.filter(|(_, range)| range.is_finite())
            .map(|(index, range)| (scan.start_angle + index as f64 * step, *range))
            .collect()
    }

    #[test]
    fn the_right_is_negative_and_comes_first() {
        let scan = converted(&[-90.0, 0.0, 90.0], &[1000, 2000, 3000]);
        assert_eq!(scan.ranges, [3.0, 2.0, 1.0]);
        assert!((scan.start_angle + std::f64::consts::FRAC_PI_2).abs() < 1e-9);
        assert!((scan.end_angle - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
        assert_eq!(scan.frame_id, "laser");
        assert_eq!(scan.timestamp.unwrap().nanos, 5);
    }

    #[test]
    fn an_even_scan_has_a_step() {
        let scan = Scan::new(&[-90.0, 0.0, 90.0], &[1000, 2000, 3000], None).unwrap();
        let even = EvenScan::from(&scan);
        assert!((even.step_rad() - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
        assert_eq!(EvenScan::default().step_rad(), 0.0);
    }

    #[test]
    fn nothing_in_range_is_infinite_and_an_error_is_not_a_number() {
        let scan = converted(&[0.0, 1.0, 2.0, 3.0], &[0, 7, -1, 20]);
        assert_eq!(scan.ranges[0], 0.02);
        assert!(scan.ranges[1].is_nan() && scan.ranges[2].is_nan());
        assert_eq!(scan.ranges[3], f64::INFINITY);
    }

    #[test]
    fn scans_without_points_or_with_one() {
        assert!(converted(&[], &[]).ranges.is_empty());
        let one = converted(&[10.0], &[500]);
        assert_eq!(
            (one.ranges, one.start_angle),
            (vec![0.5], -10f64.to_radians())
        );
        assert_eq!(converted(&[1.0, 1.0], &[500, 300]).ranges, [0.3, 0.5]);
    }

    #[test]
    fn unequal_steps_are_filled_up() {
        let scan = converted(&[-10.0, 0.0, 1.0, 20.0], &[100, 200, 300, 400]);
        let found = points(&scan);
        assert_eq!(scan.ranges.len(), 301);
        for (angle_deg, range_m) in [(10.0f64, 0.1), (0.0, 0.2), (-1.0, 0.3), (-20.0, 0.4)] {
            let is = |(angle, range): &(f64, f64)| {
                (angle - angle_deg.to_radians()).abs() < 1e-9 && *range == range_m
            };
            assert!(found.iter().any(is), "{angle_deg}: {found:?}");
        }
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn few_points_far_apart_keep_their_angles() {
        // The middle one is 10 degrees from the middle, which is less than a tenth of a step.
        let scan = converted(&[-58.4, 68.9, 175.4], &[20, 30, 40]);
        let is = |(angle, range): &(f64, f64)| {
            (angle + 68.9f64.to_radians()).abs() < 0.003 && *range == 0.03
        };
        assert!(points(&scan).iter().any(is));
    }

    proptest! {
        #[test]
        fn every_point_is_found_near_its_angle(
            points_in in prop::collection::vec((-180f64..180.0, 20i32..6000), 0..40),
        ) {
            let (angles, distances): (Vec<f64>, Vec<i32>) = points_in.iter().copied().unzip();
            let scan = converted(&angles, &distances);
            prop_assert!(scan.ranges.len() <= MAX_RANGES.max(40));
            let found = points(&scan);
            for (angle_deg, distance_mm) in points_in {
                let angle = -angle_deg.to_radians();
                let limit = f64::from(distance_mm) / 1000.0;
                // Another point in the same direction may be nearer.
                let near = |(other, range): &(f64, f64)| {
                    (other - angle).abs() < 0.003 && *range <= limit + 1e-9
                };
                prop_assert!(found.iter().any(near), "{angle_deg}");
            }
        }
    }
}
