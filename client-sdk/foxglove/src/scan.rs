//! Scans. PURE.

use amber_values::{EvenScan, Scan};

use crate::frames::{laser, timestamp};
use crate::messages::LaserScan;

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
            prop_assert!(scan.ranges.len() <= 7_200);
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
