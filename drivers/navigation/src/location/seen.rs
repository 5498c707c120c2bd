//! What two scans have in common. PURE.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::{Point, Pose};

use crate::scan::{Beam, Scan};

/// The end of a beam is at the same place as before if its distance from the scanner differs by less
/// than this plus this part.
const SAME_M: f64 = 0.06;
const SAME_PART: f64 = 0.04;

/// An earlier scan.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The middle of the scan.
    pub(super) time: Duration,
    beams: Vec<Beam>,
}

impl Seen {
    pub(super) fn new(scan: &Scan) -> Self {
        Self {
            time: scan.middle(),
            beams: scan.beams.clone(),
        }
    }

    /// The part of the beams of a later scan that end where this scan has seen something, too. Only
    /// directions in which both scans have an echo count; `None` if there are fewer than `min_beams`.
    ///
    /// `moved` is the later pose of the scanner in the frame of the earlier one. It must be so short
    /// that the scanner still sees mostly the same surfaces.
    pub(super) fn common(&self, later: &Self, moved: Pose, min_beams: usize) -> Option<f64> {
        let both = later.beams.iter().filter_map(|beam| {
            let way = Point::new(beam.distance_m()?, 0.0);
            let end = moved.global(way.turned(beam.angle_rad));
            Some((end.length(), self.distance_m(end.y.atan2(end.x))?))
        });
        let (mut same, mut count) = (0_u32, 0_u32);
        for (now_m, before_m) in both {
            same += u32::from((now_m - before_m).abs() < SAME_M + SAME_PART * before_m);
            count += 1;
        }
        (count as usize >= min_beams).then(|| f64::from(same) / f64::from(count))
    }

    /// The distance of the beam that is nearest to a direction. The steps between beams are equal.
    fn distance_m(&self, angle_rad: f64) -> Option<f64> {
        let (first, last) = (self.beams.first()?.angle_rad, self.beams.last()?.angle_rad);
        let steps = self.beams.len().checked_sub(1).filter(|&it| it > 0)?;
        let step = (last - first) / steps as f64;
        let way = (angle_rad - first) * step.signum();
        // Half a step before the first beam still belongs to it.
        let way = (way + step.abs() / 2.0).rem_euclid(TAU);
        self.beams.get((way / step.abs()) as usize)?.distance_m()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Echo;

    /// One beam per degree, inside of a square room of 4 m, from a place in it.
    fn room(from: Pose, degrees: impl Iterator<Item = i32>) -> Seen {
        let beams = degrees.map(|degree| {
            let angle_rad = f64::from(degree).to_radians();
            let way = Point::new(1.0, 0.0).turned(from.heading + angle_rad);
            let reach = |at: f64, way: f64| (2.0 * way.signum() - at) / way;
            Beam {
                angle_rad,
                echo: Echo::At(reach(from.at.x, way.x).min(reach(from.at.y, way.y))),
            }
        });
        Seen {
            time: Duration::ZERO,
            beams: beams.collect(),
        }
    }

    #[test]
    fn a_scan_from_another_place_has_everything_in_common() {
        let here = Pose::new(0.3, -0.2, 0.4);
        let moved = Pose::new(0.2, 0.1, -0.9);
        let there = here.global_pose(moved);
        let sectors = [(-120, 1), (120, -1), (-180, 1), (0, 1), (359, -1)];
        for (first, step) in sectors {
            let count = if first == -120 || first == 120 {
                241
            } else {
                360
            };
            let degrees = || (0..count).map(|index| first + step * index);
            let (before, later) = (room(here, degrees()), room(there, degrees()));
            let common = before.common(&later, moved, 100).unwrap();
            assert!(common > 0.99, "{first}: {common}");
            let unmoved = before.common(&later, Pose::default(), 100).unwrap();
            assert!(unmoved < 0.8, "{first}: {unmoved}");
        }
    }

    #[test]
    fn beams_without_an_echo_do_not_count() {
        let here = Pose::default();
        let before = room(here, -120..=120);
        let mut later = before.clone();
        for beam in &mut later.beams[..140] {
            beam.echo = Echo::Nothing;
        }
        assert_eq!(before.common(&later, here, 100), Some(1.0));
        assert_eq!(before.common(&later, here, 102), None);
        assert_eq!(later.common(&before, here, 102), None);
        for beam in &mut later.beams[190..] {
            beam.echo = Echo::At(0.5);
        }
        assert_eq!(before.common(&later, here, 100), Some(50.0 / 101.0));
        let single = room(here, 0..1);
        assert_eq!(single.common(&single, here, 1), None);
    }
}
