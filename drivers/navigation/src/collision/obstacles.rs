//! The obstacles around the robot: the latest scan, and points of earlier scans in areas that the
//! latest one does not cover. PURE.
//!
//! Points are in the odometry frame, so they stay in place while the robot moves. Each beam is
//! placed where the robot was when that beam was measured.
//!
//! Near points are averaged over some scans. The noise of a scanner differs from scan to scan, and a
//! robot that is told to drive on would otherwise use each scan in which a wall seems farther away:
//! with a noise of 8 mm it came as near as 1 mm, with a margin of 15 mm.

use std::collections::{HashSet, VecDeque};
use std::f64::consts::PI;
use std::time::Duration;

use amber_map::{Point, Pose};

use crate::deskew::end_of;
use crate::odometry::Odometry;
use crate::scan::{Beam, Echo, Scan};

/// A beam counts only if two of its three neighbours on either side are as far: one or two beams
/// may be errors. A post of 30 mm fills eight beams at 0.5 m.
const NEIGHBOURS: usize = 3;
const SUPPORTERS: usize = 2;
/// Neighbouring beams on one object differ at most by this part of the distance...
const SAME_OBJECT: f64 = 0.12;
/// ...or by this.
const SAME_OBJECT_M: f64 = 0.05;
/// A beam that is too near to be measured counts as an object at this distance.
const TOO_NEAR_M: f64 = 0.02;
/// A gap without echoes that is narrower than this counts as closed: the robot is wider.
const MAX_GAP_M: f64 = 0.3;
/// The distance of the points that close a gap.
const FILL_STEP_M: f64 = 0.02;
/// Beside an object this near...
const DARK_NEAR_M: f64 = 0.6;
/// ...a gap without echoes counts as more of it, if the gap is no wider than this at its distance: the
/// corner of a wall may be dark. Through a wider gap, the laser looks into the distance.
const DARK_M: f64 = 0.14;
/// Points that the laser no longer sees are kept only this near to the robot.
const MEMORY_RANGE_M: f64 = 1.5;
/// Remembered points closer than this to each other count as one.
const MEMORY_CELL_M: f64 = 0.02;
/// The maximum number of remembered points: the outline of everything within
/// [`MEMORY_RANGE_M`] has about 500 cells.
const MAX_REMEMBERED: usize = 2_000;
/// The maximum number of beams of a scan: the UTM-30LX has 1,081.
const MAX_BEAMS: usize = 4_096;
/// Points up to this distance are averaged with those of the scans before...
const STEADY_RANGE_M: f64 = 1.0;
/// ...of this time...
const STEADY_TIME: Duration = Duration::from_millis(450);
/// ...if they are this close: three standard deviations of the noise of a URG-04LX. What moves
/// faster is not averaged.
const STEADY_M: f64 = 0.025;
/// The maximum number of scans for an average: a UTM-30LX sends 18 in this time.
const MAX_STEADY: usize = 8;
/// The directions in which points of different scans are compared: those of a URG-04LX are 0.0061
/// rad apart.
const STEADY_STEPS: usize = 1_024;
/// With no echo, an object is remembered only this long: dark walls give none, but neither does a
/// free view.
const NO_ECHO_MEMORY: Duration = Duration::from_secs(1);

/// Points that the robot may touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacles {
    seen: Vec<Point>,
    seen_at: Duration,
    /// The near points of earlier scans, as they were measured.
    earlier: VecDeque<(Duration, Vec<Point>)>,
    remembered: VecDeque<(Duration, Point)>,
    known: Vec<Point>,
}

impl Obstacles {
    /// Replaces what the scan sees again, and keeps the rest for some time.
    pub(super) fn handle_scan(
        &mut self,
        scan: &Scan,
        laser: Pose,
        odometry: &Odometry,
        memory: Duration,
    ) {
        let beams = &scan.beams[..scan.beams.len().min(MAX_BEAMS)];
        let now = scan.end();
        let robot = odometry.pose_at(now);
        let eye = Pose {
            at: robot.global(laser.at),
            heading: robot.heading + laser.heading,
        };
        let old = std::mem::take(&mut self.seen).into_iter();
        let old: Vec<(Duration, Point)> = old
            .map(|point| (self.seen_at, point))
            .chain(std::mem::take(&mut self.remembered))
            .collect();
        let mut cells = HashSet::new();
        for (time, point) in old {
            let age = now.saturating_sub(time);
            let near = point.minus(robot.at).length() <= MEMORY_RANGE_M;
            let keeps = match view(beams, eye.local(point)) {
                View::Hidden => age <= memory,
                View::NoEcho => age <= memory.min(NO_ECHO_MEMORY),
                View::Seen => false,
            };
            let cell = |length_m: f64| (length_m / MEMORY_CELL_M).floor() as i64;
            if near
                && keeps
                && self.remembered.len() < MAX_REMEMBERED
                && cells.insert((cell(point.x), cell(point.y)))
            {
                self.remembered.push_back((time, point));
            }
        }
        self.seen_at = now;
        let seen = beams.iter().enumerate().filter_map(|(index, beam)| {
            let distance_m = supported(beams, index)?;
            let robot = odometry.pose_at(scan.time_of(index));
            Some((index, end_of(*beam, distance_m, robot, laser)))
        });
        let mut seen: Vec<(usize, Point)> = seen.collect();
        self.steady(now, eye, &mut seen);
        self.seen = filled(seen.into_iter(), beams, eye.at);
    }

    /// Replaces each near point by the mean of what this scan and earlier ones have measured in its
    /// direction.
    fn steady(&mut self, now: Duration, eye: Pose, seen: &mut [(usize, Point)]) {
        let is_near = |point: &Point| point.minus(eye.at).length() <= STEADY_RANGE_M;
        let measured = seen.iter().map(|(_, point)| *point).filter(is_near);
        let measured: Vec<Point> = measured.collect();
        self.earlier
            .retain(|(time, _)| now.saturating_sub(*time) <= STEADY_TIME);
        self.earlier.truncate(MAX_STEADY);
        let views: Vec<Vec<f32>> = (self.earlier.iter())
            .map(|(_, points)| distances(eye, points))
            .collect();
        for (_, point) in seen.iter_mut().filter(|(_, point)| is_near(point)) {
            let way = point.minus(eye.at);
            let distance_m = way.length();
            let step = step_of(way);
            let same = (views.iter())
                .map(|view| f64::from(view[step]))
                .filter(|other_m| (other_m - distance_m).abs() <= STEADY_M);
            let (sum_m, count) = same.fold((distance_m, 1.0), |(sum_m, count), other_m| {
                (sum_m + other_m, count + 1.0)
            });
            if distance_m > 0.0 {
                *point = eye.at.plus(way.times(sum_m / count / distance_m));
            }
        }
        self.earlier.push_front((now, measured));
    }

    /// The points of the latest scan in the odometry frame.
    pub(super) fn seen(&self) -> impl Iterator<Item = Point> + '_ {
        self.seen.iter().copied()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.earlier.clear();
        self.remembered.clear();
        self.known.clear();
    }

    /// Replaces the points that are known from a map.
    pub(super) fn set_known(&mut self, known: Vec<Point>) {
        self.known = known;
    }

    /// Forgets the points that the laser no longer sees if they are of this kind.
    pub(super) fn forget_if(&mut self, is_useless: impl Fn(Point) -> bool) {
        self.remembered.retain(|(_, point)| !is_useless(*point));
    }

    /// Points in the odometry frame that the latest scan has seen, or that are known from a map.
    pub(super) fn sure(&self) -> impl Iterator<Item = Point> + '_ {
        self.seen.iter().chain(&self.known).copied()
    }

    /// Points in the odometry frame that are known from a map.
    pub(super) fn known(&self) -> impl Iterator<Item = Point> + '_ {
        self.known.iter().copied()
    }

    /// Points in the odometry frame that the laser no longer sees.
    pub(super) fn remembered(&self) -> impl Iterator<Item = Point> + '_ {
        self.remembered.iter().map(|(_, point)| *point)
    }
}

/// The distances of points from the eye, by direction; infinite where there is none.
fn distances(eye: Pose, points: &[Point]) -> Vec<f32> {
    let mut distances = vec![f32::INFINITY; STEADY_STEPS];
    for point in points {
        let way = point.minus(eye.at);
        let nearest = &mut distances[step_of(way)];
        *nearest = nearest.min(way.length() as f32);
    }
    distances
}

/// The direction of a way.
fn step_of(way: Point) -> usize {
    let turn = way.y.atan2(way.x) / (2.0 * PI) + 0.5;
    ((turn * STEADY_STEPS as f64) as usize).min(STEADY_STEPS - 1)
}

/// The points, and more between two of them where no beam in between has an echo and the robot
/// would not fit through: such a place is dark or shiny rather than free. The same for a narrow gap
/// beside a near object.
fn filled(points: impl Iterator<Item = (usize, Point)>, beams: &[Beam], eye: Point) -> Vec<Point> {
    let mut all = Vec::new();
    let mut last: Option<(usize, Point)> = None;
    for (index, point) in points {
        if let Some((before, from)) = last {
            let blind = beams[before + 1..index]
                .iter()
                .all(|beam| beam.distance_m().is_none());
            if blind && index > before + 1 {
                all.extend(
                    between(from, point)
                        .or_else(|| beside(eye, from, point))
                        .into_iter()
                        .flatten(),
                );
            }
        }
        all.push(point);
        last = Some((index, point));
    }
    all
}

/// Points between two points that are not far apart.
fn between(from: Point, to: Point) -> Option<Vec<Point>> {
    let way = to.minus(from);
    let steps = (way.length() / FILL_STEP_M).ceil();
    let points = (1..steps as u32).map(|step| from.plus(way.times(f64::from(step) / steps)));
    (way.length() < MAX_GAP_M).then(|| points.collect())
}

/// Points from the nearer one of two points towards the direction of the other one, at its distance.
fn beside(eye: Point, from: Point, to: Point) -> Option<Vec<Point>> {
    let (a, b) = (from.minus(eye), to.minus(eye));
    let (near, far) = if a.length() <= b.length() {
        (a, b)
    } else {
        (b, a)
    };
    let angle_rad = amber_map::wrap(far.y.atan2(far.x) - near.y.atan2(near.x));
    let gap_m = angle_rad.abs() * near.length();
    let steps = (gap_m / FILL_STEP_M).ceil();
    let points =
        (1..steps as u32).map(|step| eye.plus(near.turned(angle_rad * f64::from(step) / steps)));
    (near.length() <= DARK_NEAR_M && gap_m <= DARK_M).then(|| points.collect())
}

/// The information of a scan about a position.
#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    /// It measured in this direction.
    Seen,
    /// No echo came back from this direction.
    NoEcho,
    /// It cannot see this direction.
    Hidden,
}

fn view(beams: &[Beam], point: Point) -> View {
    let angle = point.y.atan2(point.x);
    // The beams are sorted, in either direction.
    let (Some(first), Some(last)) = (beams.first(), beams.last()) else {
        return View::Hidden;
    };
    let (low, high) = (
        first.angle_rad.min(last.angle_rad),
        first.angle_rad.max(last.angle_rad),
    );
    if angle < low || angle > high {
        return View::Hidden;
    }
    let part = (angle - first.angle_rad) / (last.angle_rad - first.angle_rad);
    let index = (part * (beams.len() - 1) as f64).round() as usize;
    match beams.get(index).map(|beam| beam.echo) {
        Some(Echo::At(_)) => View::Seen,
        Some(Echo::Nothing) => View::NoEcho,
        Some(Echo::TooNear | Echo::Invalid) | None => View::Hidden,
    }
}

/// The distance of a beam if a neighbouring beam sees the same object.
fn supported(beams: &[Beam], index: usize) -> Option<f64> {
    let distance = |beam: &Beam| match beam.echo {
        Echo::At(distance_m) => distance_m.is_finite().then_some(distance_m),
        Echo::TooNear => Some(TOO_NEAR_M),
        Echo::Nothing | Echo::Invalid => None,
    };
    let distance_m = distance(&beams[index])?;
    let tolerance_m = SAME_OBJECT_M.max(SAME_OBJECT * distance_m);
    let first = index.saturating_sub(NEIGHBOURS);
    let last = (index + NEIGHBOURS).min(beams.len() - 1);
    let supporters = (first..=last)
        .filter(|other| *other != index)
        .filter_map(|other| distance(&beams[other]))
        .filter(|other_m| (other_m - distance_m).abs() <= tolerance_m);
    (supporters.count() >= SUPPORTERS).then_some(distance_m)
}

#[cfg(test)]
mod tests {
    use crate::kinematics::{SkidSteer, Wheels};

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A scan of 240 degrees with these echoes ahead and nothing elsewhere.
    fn scan(taken: Duration, ahead: &[Echo]) -> Scan {
        let count = 241;
        let first = (count - ahead.len()) / 2;
        let echo = |index: usize| {
            let inside = index.checked_sub(first).and_then(|index| ahead.get(index));
            inside.copied().unwrap_or(Echo::Nothing)
        };
        let beams = (0..count).map(|index| Beam {
            angle_rad: (index as f64 - 120.0).to_radians(),
            echo: echo(index),
        });
        Scan {
            start: taken,
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        }
    }

    impl Obstacles {
        fn points(&self) -> impl Iterator<Item = Point> + '_ {
            self.sure().chain(self.remembered())
        }
    }

    fn handle(obstacles: &mut Obstacles, odometry: &Odometry, scan: &Scan) {
        obstacles.handle_scan(scan, Pose::default(), odometry, ms(3000));
    }

    #[test]
    fn one_or_two_beams_are_no_object() {
        let odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        for (echoes, points) in [
            (vec![Echo::At(1.0)], 0),
            (vec![Echo::At(1.0), Echo::At(1.05)], 0),
            (vec![Echo::At(1.0), Echo::At(1.05), Echo::At(1.0)], 3),
            (vec![Echo::At(1.0), Echo::At(2.0), Echo::At(1.0)], 0),
            // And the gap is closed.
            (
                vec![Echo::At(1.0), Echo::Invalid, Echo::At(1.0), Echo::At(1.0)],
                4,
            ),
            (vec![Echo::TooNear; 3], 3),
            // A dark corner of 80 mm before a wall behind it.
            (
                [
                    &[Echo::At(0.3); 3][..],
                    &[Echo::Nothing; 15],
                    &[Echo::At(1.0); 3],
                ]
                .concat(),
                10,
            ),
            // A wide view past it.
            (
                [
                    &[Echo::At(0.3); 3][..],
                    &[Echo::Nothing; 40],
                    &[Echo::At(1.0); 3],
                ]
                .concat(),
                6,
            ),
            (vec![Echo::At(f64::NAN); 3], 0),
        ] {
            let mut fresh = obstacles.clone();
            handle(&mut fresh, &odometry, &scan(ms(0), &echoes));
            assert_eq!(fresh.points().count(), points, "{echoes:?}");
        }
        handle(&mut obstacles, &odometry, &Scan::default());
        assert_eq!(obstacles.points().count(), 0);
    }

    #[test]
    fn an_object_behind_is_remembered_and_then_forgotten() {
        let mut odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        odometry.handle_wheels(ms(0), Wheels::STOP);
        handle(&mut obstacles, &odometry, &scan(ms(0), &[Echo::At(0.6); 5]));
        // Half a turn to the left within 1.5 s.
        let spin = Wheels::sides(-0.44, 0.44);
        for step in 1..=30 {
            odometry.handle_wheels(ms(50 * step), spin);
        }
        handle(&mut obstacles, &odometry, &scan(ms(1500), &[]));
        let robot = odometry.pose_at(ms(1500));
        let behind: Vec<_> = obstacles.points().map(|point| robot.local(point)).collect();
        assert!(!behind.is_empty());
        assert!(behind.iter().all(|point| point.x < -0.5), "{behind:?}");
        handle(&mut obstacles, &odometry, &scan(ms(2900), &[]));
        assert!(obstacles.points().count() > 0);
        handle(&mut obstacles, &odometry, &scan(ms(3100), &[]));
        assert_eq!(obstacles.points().count(), 0);
    }

    #[test]
    fn near_points_are_averaged_over_some_scans() {
        let odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        let ahead = |obstacles: &Obstacles| {
            let points = obstacles.seen().map(|point| point.x);
            points.fold(f64::INFINITY, f64::min)
        };
        for (time, distance_m, expected_m) in [
            (0, 0.410, 0.410),
            (100, 0.390, 0.400),
            (200, 0.403, 0.401),
            // Something else.
            (300, 0.350, 0.350),
            (400, 0.600, 0.600),
            // The earlier scans are too old.
            (1000, 0.610, 0.610),
            // Far points are as measured.
            (1100, 2.000, 2.000),
            (1200, 2.010, 2.010),
        ] {
            let echoes = [Echo::At(distance_m); 5];
            handle(&mut obstacles, &odometry, &scan(ms(time), &echoes));
            let found_m = ahead(&obstacles);
            // The outer beams are 2 degrees off: 0.06 %.
            assert!((found_m - expected_m).abs() < 0.002, "{time}: {found_m}");
        }
    }

    #[test]
    fn averages_stay_in_place_while_the_robot_moves() {
        let mut odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        for step in 0..5_u32 {
            let time = ms(100 * u64::from(step));
            odometry.handle_wheels(time, Wheels::sides(0.2, 0.2));
            let away_m = 0.8 - 0.02 * f64::from(step);
            handle(
                &mut obstacles,
                &odometry,
                &scan(time, &[Echo::At(away_m); 5]),
            );
            let nearest_m = obstacles.seen().map(|point| point.x);
            let nearest_m = nearest_m.fold(f64::INFINITY, f64::min);
            assert!((nearest_m - 0.8).abs() < 0.002, "{step}: {nearest_m}");
        }
    }

    #[test]
    fn remembered_points_can_be_forgotten_but_not_those_that_are_seen() {
        let mut odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        odometry.handle_wheels(ms(0), Wheels::STOP);
        handle(&mut obstacles, &odometry, &scan(ms(0), &[Echo::At(0.6); 5]));
        obstacles.forget_if(|_| true);
        assert_eq!(obstacles.points().count(), 5);
        // Nothing comes back from there, so the object is remembered.
        handle(&mut obstacles, &odometry, &scan(ms(100), &[]));
        assert_eq!(obstacles.points().count(), 5);
        obstacles.forget_if(|point| point.y > 0.0);
        assert_eq!(obstacles.points().count(), 3);
        obstacles.forget_if(|_| true);
        assert_eq!(obstacles.points().count(), 0);
    }

    #[test]
    fn an_object_that_goes_away_is_forgotten_at_once_if_the_laser_sees_past_it() {
        let odometry = Odometry::new(SkidSteer::default());
        for (after, kept_ms) in [
            (Echo::At(3.0), 0),
            (Echo::Nothing, 1000),
            (Echo::Invalid, 3000),
        ] {
            let mut obstacles = Obstacles::default();
            handle(&mut obstacles, &odometry, &scan(ms(0), &[Echo::At(0.6); 5]));
            let near = |obstacles: &Obstacles| {
                obstacles.points().filter(|point| point.x < 1.0).count() > 0
            };
            for time in (100..4000).step_by(100) {
                handle(&mut obstacles, &odometry, &scan(ms(time), &[after; 5]));
                assert_eq!(near(&obstacles), time <= kept_ms, "{after:?} {time}");
            }
        }
    }

    #[test]
    fn a_narrow_gap_without_echoes_is_closed() {
        let odometry = Odometry::new(SkidSteer::default());
        for (inside, is_closed) in [
            (Echo::Nothing, true),
            (Echo::Invalid, true),
            (Echo::At(3.0), false),
        ] {
            for (beams, fits) in [(10, false), (20, true)] {
                let mut echoes = vec![Echo::At(1.0); 3];
                echoes.extend(vec![inside; beams]);
                echoes.extend([Echo::At(1.0); 3]);
                let mut obstacles = Obstacles::default();
                handle(&mut obstacles, &odometry, &scan(ms(0), &echoes));
                let middle = |point: Point| point.y.abs() < 0.03 && point.x < 1.1;
                let closed = obstacles.points().any(middle);
                assert_eq!(closed, is_closed && !fits, "{inside:?} {beams}");
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut odometry = Odometry::new(SkidSteer::default());
        let mut obstacles = Obstacles::default();
        let mut random = fastrand::Rng::with_seed(1);
        for time in 0..100 {
            odometry.handle_wheels(ms(time * 30), Wheels::sides(-0.4, 0.4));
            let echoes: Vec<_> = (0..241).map(|_| Echo::At(0.3 + random.f64())).collect();
            handle(&mut obstacles, &odometry, &scan(ms(time * 30), &echoes));
            assert!(obstacles.remembered.len() <= MAX_REMEMBERED);
        }
    }
}
