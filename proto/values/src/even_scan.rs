//! Scans as other robot systems have them: with equal steps. PURE.

use crate::{Point, Scan};

/// The distances of one scan whose angles have unequal steps: 0.05 degrees for a full turn.
const MAX_RANGES: usize = 7_200;

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
    use super::*;

    #[test]
    fn the_right_comes_first_and_is_negative() {
        let scan = Scan::new(&[-90.0, 0.0, 90.0], &[1000, 0, 7], None).unwrap();
        let even = EvenScan::from(&scan);
        assert!(even.ranges_m[0].is_nan());
        assert_eq!(even.ranges_m[1..], [f64::INFINITY, 1.0]);
        assert_eq!(even.start_rad, -std::f64::consts::FRAC_PI_2);
        assert!((even.step_rad() - std::f64::consts::FRAC_PI_2).abs() < 1e-9);
        assert_eq!(EvenScan::default().step_rad(), 0.0);
    }

    #[test]
    fn unequal_steps_are_filled_up_to_a_limit() {
        let scan = Scan::new(&[-10.0, 0.0, 1.0, 20.0], &[100, 200, 300, 400], None).unwrap();
        let even = EvenScan::from(&scan);
        assert_eq!(even.ranges_m.len(), 301);
        assert_eq!(even.ranges_m.iter().filter(|it| it.is_finite()).count(), 4);
        let scan = Scan::new(&[-180.0, 0.0, 1e-9, 180.0], &[100; 4], None).unwrap();
        assert_eq!(EvenScan::from(&scan).ranges_m.len(), MAX_RANGES);
    }
}
