//! The area that the robot has seen: the known free space behind it. PURE.
//!
//! Most lasers do not cover the area behind the robot. A point there is known to be free if a beam
//! of an earlier scan went through it, or if the robot has been there. All other points are unknown
//! and may contain an obstacle.
//!
//! Poses come from dead reckoning, so a scan is forgotten after some motion, and not after some time.

use std::collections::VecDeque;

use amber_map::{Outline, Point, Pose};

use crate::odometry::Odometry;
use crate::scan::{Echo, Scan};

/// A scan is kept when the robot has moved so far since the last one...
const EVERY_M: f64 = 0.08;
/// ...or has turned by so much.
const EVERY_RAD: f64 = 0.15;
/// A scan is forgotten when the robot has driven so far since, ...
const FORGET_M: f64 = 4.0;
/// ...or has turned by so much: dead reckoning is off by some millimetres then.
const FORGET_RAD: f64 = 9.0;
/// The maximum number of kept scans: after them, one of the limits above is reached.
const MAX_SCANS: usize = 128;
/// The maximum number of beams of a scan: the UTM-30LX has 1,081.
const MAX_BEAMS: usize = 4_096;
/// A beam counts only as far as its neighbours on either side: its direction has an error.
const NEIGHBOURS: usize = 2;
/// Where so many neighbouring beams on either side have no echo, nothing is within range. A smaller gap
/// may be a dark object.
const FREE_NEIGHBOURS: usize = 8;
/// How far a beam without echo looks.
const RANGE_M: f32 = 3.0;

/// The last scans.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    scans: VecDeque<Look>,
    way_m: f64,
    turned_rad: f64,
    last: Option<Pose>,
}

/// A scan.
#[derive(Clone, Debug)]
struct Look {
    robot: Pose,
    /// The laser at the first and at the last beam, in the odometry frame.
    first: Pose,
    last: Pose,
    first_rad: f64,
    spread_rad: f64,
    /// Whether the first beam is beside the last one.
    is_round: bool,
    /// How far each beam has found nothing.
    free_m: Vec<f32>,
    /// The motion of the robot until then.
    way_m: f64,
    turned_rad: f64,
}

impl Looked {
    /// A scan of a laser with this pose on the robot.
    pub(super) fn handle_scan(&mut self, scan: &Scan, laser: Pose, odometry: &Odometry) {
        let robot = odometry.pose_at(scan.end());
        if let Some(last) = self.last {
            self.way_m += robot.at.minus(last.at).length();
            self.turned_rad += (robot.heading - last.heading).abs();
        }
        self.last = Some(robot);
        let (way_m, turned_rad) = (self.way_m, self.turned_rad);
        let is_old = |look: &Look| {
            way_m - look.way_m > FORGET_M || turned_rad - look.turned_rad > FORGET_RAD
        };
        while self.scans.len() >= MAX_SCANS || self.scans.back().is_some_and(is_old) {
            self.scans.pop_back();
        }
        let is_same =
            |look: &Look| way_m - look.way_m < EVERY_M && turned_rad - look.turned_rad < EVERY_RAD;
        if self.scans.front().is_some_and(is_same) || scan.beams.len() < 2 {
            return;
        }
        let beams = &scan.beams[..scan.beams.len().min(MAX_BEAMS)];
        let eye = |robot: Pose| robot.global_pose(laser);
        self.scans.push_front(Look {
            robot,
            first: eye(odometry.pose_at(scan.start)),
            last: eye(robot),
            first_rad: beams[0].angle_rad,
            spread_rad: beams[beams.len() - 1].angle_rad - beams[0].angle_rad,
            is_round: scan.is_round(),
            free_m: free_m(&beams.iter().map(|beam| beam.echo).collect::<Vec<_>>()),
            way_m,
            turned_rad,
        });
    }

    /// Forgets everything: the robot was carried away.
    pub(super) fn clear(&mut self) {
        self.scans.clear();
    }

    /// Whether the robot knows that a place in the odometry frame is free.
    pub(super) fn is_free(&self, at: Point, outline: Outline) -> bool {
        let was_there = |look: &Look| {
            let local = look.robot.local(at);
            local.x.abs() <= outline.half_length_m && local.y.abs() <= outline.half_width_m
        };
        let mut scans = self.scans.iter();
        scans.any(|look| was_there(look) || look.is_through(at))
    }
}

impl Look {
    /// Whether a beam went through a place.
    fn is_through(&self, at: Point) -> bool {
        // The laser moves while it turns. The pose in the middle tells roughly which beam it is.
        let mut part = 0.5;
        for _ in 0..2 {
            let local = self.eye(part).local(at);
            let angle_rad = local.y.atan2(local.x);
            part = (angle_rad - self.first_rad) / self.spread_rad;
            if self.is_round {
                part = part.clamp(0.0, 1.0);
            } else if !(0.0..=1.0).contains(&part) {
                return false;
            }
        }
        let index = (part * (self.free_m.len() - 1) as f64).round() as usize;
        let distance_m = self.eye(part).at.minus(at).length();
        distance_m < f64::from(self.free_m[index])
    }

    fn eye(&self, part: f64) -> Pose {
        let way = self.last.at.minus(self.first.at);
        Pose {
            at: self.first.at.plus(way.times(part)),
            heading: self.first.heading + (self.last.heading - self.first.heading) * part,
        }
    }
}

/// How far each beam and its neighbours have found nothing.
fn free_m(echoes: &[Echo]) -> Vec<f32> {
    let around = |index: usize, count: usize| {
        let last = (index + count).min(echoes.len() - 1);
        &echoes[index.saturating_sub(count)..=last]
    };
    let nothing = |echo: &Echo| *echo == Echo::Nothing;
    let own_m = |index: usize| match echoes[index] {
        Echo::At(distance_m) => distance_m as f32,
        Echo::Nothing if around(index, FREE_NEIGHBOURS).iter().all(nothing) => RANGE_M,
        Echo::Nothing | Echo::TooNear | Echo::Invalid => 0.0,
    };
    let own_m: Vec<f32> = (0..echoes.len()).map(own_m).collect();
    let least = |index: usize| {
        let last = (index + NEIGHBOURS).min(own_m.len() - 1);
        let near = own_m[index.saturating_sub(NEIGHBOURS)..=last].iter();
        let valid = near.filter(|length_m| **length_m > 0.0);
        let (count, least_m) = valid.fold((0, f32::INFINITY), |(count, least_m), length_m| {
            (count + 1, least_m.min(*length_m))
        });
        // One beam without an echo or too short says nothing about those beside it.
        if count > NEIGHBOURS { least_m } else { 0.0 }
    };
    (0..own_m.len()).map(least).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kinematics::{SkidSteer, Wheels};
    use crate::scan::Beam;

    const OUTLINE: Outline = Outline {
        half_length_m: 0.185,
        half_width_m: 0.165,
    };

    fn scan(end: Duration, echo: impl Fn(i32) -> Echo) -> Scan {
        let beams = (-120..=120).map(|degrees| Beam {
            angle_rad: f64::from(degrees).to_radians(),
            echo: echo(degrees),
        });
        Scan {
            start: end,
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        }
    }

    fn at_start(echo: impl Fn(i32) -> Echo) -> Looked {
        let mut looked = Looked::default();
        let odometry = Odometry::new(SkidSteer::default());
        looked.handle_scan(&scan(Duration::ZERO, echo), Pose::default(), &odometry);
        looked
    }

    #[test]
    fn known_is_what_a_beam_went_through_and_where_the_robot_was() {
        let looked = at_start(|_| Echo::At(1.0));
        for (x, y, is_free) in [
            (0.9, 0.0, true),
            (1.1, 0.0, false),
            (0.0, 0.9, true),
            (-0.5, 0.0, false),
            (-0.18, 0.16, true),
            (-0.2, 0.0, false),
        ] {
            assert_eq!(
                looked.is_free(Point::new(x, y), OUTLINE),
                is_free,
                "{x} {y}"
            );
        }
    }

    #[test]
    fn a_whole_turn_shows_what_is_exactly_behind() {
        let beams = (0..360).map(|index| Beam {
            angle_rad: (179.5 - f64::from(index)).to_radians(),
            echo: Echo::At(1.0),
        });
        let scan = Scan {
            start: Duration::ZERO,
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        };
        let mut looked = Looked::default();
        let odometry = Odometry::new(SkidSteer::default());
        looked.handle_scan(&scan, Pose::default(), &odometry);
        for y in [-0.01, 0.0, 0.01] {
            assert!(looked.is_free(Point::new(-0.9, y), OUTLINE), "{y}");
            assert!(!looked.is_free(Point::new(-1.1, y), OUTLINE), "{y}");
        }
    }

    #[test]
    fn a_wide_view_without_echo_is_free_and_a_gap_is_not() {
        let wide = at_start(|_| Echo::Nothing);
        assert!(wide.is_free(Point::new(2.0, 0.0), OUTLINE));
        let gap = at_start(|degrees| match degrees.abs() < 6 {
            true => Echo::Nothing,
            false => Echo::At(1.0),
        });
        assert!(!gap.is_free(Point::new(0.9, 0.0), OUTLINE));
        assert!(gap.is_free(Point::new(0.0, 0.9), OUTLINE));
    }

    #[test]
    fn a_turn_shows_what_is_behind_and_much_motion_makes_it_forgotten() {
        let mut odometry = Odometry::new(SkidSteer::default());
        let mut looked = Looked::default();
        let mut now = Duration::ZERO;
        let mut drive = |looked: &mut Looked, wheels: Wheels, seconds: u32| {
            for _ in 0..10 * seconds {
                now += Duration::from_millis(100);
                odometry.handle_wheels(now, wheels);
                looked.handle_scan(&scan(now, |_| Echo::At(1.0)), Pose::default(), &odometry);
            }
        };
        let behind = Point::new(-0.5, 0.0);
        drive(&mut looked, Wheels::STOP, 1);
        assert!(!looked.is_free(behind, OUTLINE));
        drive(&mut looked, Wheels::sides(-0.2, 0.2), 2);
        assert!(looked.is_free(behind, OUTLINE));
        // Standing still, nothing is forgotten.
        drive(&mut looked, Wheels::STOP, 60);
        assert!(looked.is_free(behind, OUTLINE));
        drive(&mut looked, Wheels::sides(0.5, 0.5), 12);
        assert!(!looked.is_free(behind, OUTLINE));
        looked.clear();
        assert!(looked.scans.is_empty());
    }
}
