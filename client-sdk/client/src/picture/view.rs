//! The range of a picture of a scan, and the positions of its rings. PURE.

use crate::scan::Scan;

/// The minimum range of a picture, in metres.
pub const MIN_RANGE_M: f64 = 0.1;
/// The maximum range of a picture, in metres.
pub const MAX_RANGE_M: f64 = 100.0;
/// The maximum number of rings.
const MAX_RINGS: f64 = 4.0;
/// The part of the points that a picture shows at least: a glance through the
/// door does not make the room tiny.
const SHOWN: f64 = 0.98;

/// The area of a picture: a circle around the scanner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// The radius of the circle.
    pub range_m: f64,
    /// The distance between the rings.
    pub spacing_m: f64,
}

impl View {
    /// A view that shows nearly all points, or the requested range.
    pub fn of(scan: &Scan, range_m: Option<f64>) -> Self {
        if let Some(range_m) = range_m {
            // `max` turns NaN into a number.
            let range_m = range_m.max(MIN_RANGE_M).clamp(MIN_RANGE_M, MAX_RANGE_M);
            let spacing_m = spacing(range_m);
            return Self { range_m, spacing_m };
        }
        let mut distances: Vec<_> = scan.valid_points().map(|point| point.distance_mm).collect();
        distances.sort_unstable();
        let last = (distances.len() as f64 * SHOWN) as usize;
        let last = distances.get(last).or(distances.last()).copied();
        let reach_m = (f64::from(last.unwrap_or(0)) / 1000.0).max(0.5);
        let spacing_m = spacing(reach_m);
        Self {
            range_m: (reach_m / spacing_m).ceil() * spacing_m,
            spacing_m,
        }
    }

    /// The radii of the rings in metres, from the inside.
    pub fn rings(self) -> impl Iterator<Item = f64> {
        // A bit more, for radii that are not exact.
        let count = (self.range_m / self.spacing_m * 1.001) as u32;
        (1..=count).map(move |k| f64::from(k) * self.spacing_m)
    }
}

/// The text at a ring.
pub fn label(ring_m: f64) -> String {
    format!("{ring_m}m")
}

fn spacing(reach_m: f64) -> f64 {
    let spacings = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0];
    // From 40 m on there is one more size.
    let fits = spacings.into_iter().find(|m| reach_m / m <= MAX_RINGS);
    fits.unwrap_or(25.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_points_are_within_the_last_ring() {
        let check = |distances: &[i32], range: f64, rings: &[&str]| {
            let scan = Scan::new(&vec![0.0; distances.len()], distances, None).unwrap();
            let view = View::of(&scan, None);
            assert_eq!(view.range_m, range, "{distances:?}");
            let labels: Vec<_> = view.rings().map(label).collect();
            assert_eq!(labels, rings);
        };
        check(&[], 0.5, &["0.25m", "0.5m"]);
        check(&[0, 7], 0.5, &["0.25m", "0.5m"]);
        check(&[3900], 4.0, &["1m", "2m", "3m", "4m"]);
        check(&[4100], 6.0, &["2m", "4m", "6m"]);
        check(&[60_000], 75.0, &["25m", "50m", "75m"]);
        let mut glance = vec![1000; 200];
        glance.push(30_000);
        check(&glance, 1.0, &["0.25m", "0.5m", "0.75m", "1m"]);
    }

    #[test]
    fn a_range_that_was_asked_for_is_kept() {
        let scan = Scan::new(&[0.0], &[30_000], None).unwrap();
        let view = View::of(&scan, Some(2.5));
        assert_eq!(view.range_m, 2.5);
        let labels: Vec<_> = view.rings().map(label).collect();
        assert_eq!(labels, ["1m", "2m"]);
    }

    #[test]
    fn an_invalid_range_becomes_the_nearest_valid_one() {
        let scan = Scan::new(&[], &[], None).unwrap();
        for (wanted, range_m) in [
            (f64::NAN, MIN_RANGE_M),
            (-1.0, MIN_RANGE_M),
            (0.0, MIN_RANGE_M),
            (f64::INFINITY, MAX_RANGE_M),
        ] {
            assert_eq!(View::of(&scan, Some(wanted)).range_m, range_m);
        }
    }
}
