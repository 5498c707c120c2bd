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

use super::fan::{Fan, View};
use crate::deskew::end_of;
use crate::odometry::Odometry;
use crate::scan::Scan;

/// Of a coarse scanner, so many of the last scans support a beam that may have hit something thin...
const LAST_SCANS: usize = 2;
/// ...if they are not older than this...
const LAST_TIME: Duration = Duration::from_millis(1_000);
/// ...and have measured something at this place.
const SAME_PLACE_M: f64 = 0.06;
/// Points that the laser no longer sees are kept only this near to the robot.
const MEMORY_RANGE_M: f64 = 1.5;
/// Remembered points closer than this to each other count as one.
const MEMORY_CELL_M: f64 = 0.02;
/// The maximum number of remembered points: the outline of everything within
/// [`MEMORY_RANGE_M`] has about 500 cells.
const MAX_REMEMBERED: usize = 2_000;
/// Points up to this distance are averaged with those of the scans before...
const STEADY_RANGE_M: f64 = 1.0;
/// ...if they are this close: three standard deviations of the noise of a URG-04LX. What moves
/// faster is not averaged.
const STEADY_M: f64 = 0.025;
/// The maximum number of scans for an average: a UTM-30LX sends 18 in 450 ms.
const MAX_STEADY: usize = 8;
/// The directions in which points of different scans are compared: those of a URG-04LX are 0.0061
/// rad apart.
const STEADY_STEPS: usize = 1_024;
/// With no echo, an object is remembered only this long: dark walls give none, but neither does a
/// free view.
const NO_ECHO_MEMORY: Duration = Duration::from_secs(1);
/// One that was this near is remembered as if it were hidden: many scanners have no echo from what is
/// nearer than 0.1 to 0.2 m.
const TOO_NEAR_FOR_ECHO_M: f64 = 0.25;

/// Points that the robot may touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacles {
    seen: Vec<Point>,
    seen_at: Duration,
    /// The near points of earlier scans, as they were measured.
    earlier: VecDeque<(Duration, Vec<Point>)>,
    /// All points of the last coarse scans that are not far away.
    last: VecDeque<(Duration, Vec<Point>)>,
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
        steady: Duration,
    ) {
        let fan = Fan::new(scan);
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
            let is_beside_eye = point.minus(eye.at).length() <= TOO_NEAR_FOR_ECHO_M;
            let keeps = match fan.view(eye.local(point)) {
                View::NoEcho if !is_beside_eye => age <= memory.min(NO_ECHO_MEMORY),
                View::Hidden | View::NoEcho => age <= memory,
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
        let ends = fan.hits().map(|(index, beam, distance_m)| {
            let robot = odometry.pose_at(scan.time_of(index));
            (index, end_of(beam, distance_m, robot, laser))
        });
        let ends: Vec<(usize, Point)> = ends.collect();
        let mut seen = ends.clone();
        seen.retain(|(index, point)| fan.is_object(*index, || self.measured_at(now, *point)));
        if fan.is_coarse() {
            let is_near = |point: &Point| point.minus(eye.at).length() <= MEMORY_RANGE_M;
            let near = ends.into_iter().map(|(_, point)| point).filter(is_near);
            self.last.truncate(LAST_SCANS - 1);
            self.last.push_front((now, near.collect()));
        }
        self.steady(now, eye, &mut seen, steady);
        self.seen = fan.filled(&seen, eye.at);
    }

    /// How many of the last scans have measured something at a place.
    fn measured_at(&self, now: Duration, place: Point) -> usize {
        let is_same = |point: &Point| point.minus(place).length() <= SAME_PLACE_M;
        let recent = |(time, points): &&(Duration, Vec<Point>)| {
            now.saturating_sub(*time) <= LAST_TIME && points.iter().any(is_same)
        };
        self.last.iter().filter(recent).count()
    }

    /// Replaces each near point by the mean of what this scan and earlier ones of this time have
    /// measured in its direction.
    fn steady(&mut self, now: Duration, eye: Pose, seen: &mut [(usize, Point)], steady: Duration) {
        let is_near = |point: &Point| point.minus(eye.at).length() <= STEADY_RANGE_M;
        let measured = seen.iter().map(|(_, point)| *point).filter(is_near);
        let measured: Vec<Point> = measured.collect();
        self.earlier
            .retain(|(time, _)| now.saturating_sub(*time) <= steady);
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
        self.last.clear();
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

#[cfg(test)]
mod tests {
    use crate::kinematics::{SkidSteer, Wheels};
    use crate::scan::{Beam, Echo};

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
        obstacles.handle_scan(scan, Pose::default(), odometry, ms(3000), ms(450));
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
    fn a_thin_post_counts_when_some_coarse_scans_have_seen_it() {
        let odometry = Odometry::new(SkidSteer::default());
        for (echoes, counts) in [
            (vec![Echo::At(0.8)], [0, 0, 1]),
            (vec![Echo::At(0.8); 2], [0, 2, 2]),
            (vec![Echo::At(0.8); 3], [3, 3, 3]),
        ] {
            let mut obstacles = Obstacles::default();
            for (index, count) in counts.into_iter().enumerate() {
                let time = ms(180 * index as u64);
                handle(&mut obstacles, &odometry, &scan(time, &echoes));
                assert_eq!(obstacles.seen().count(), count, "{echoes:?} {index}");
            }
        }
        // Errors are elsewhere each time.
        let mut obstacles = Obstacles::default();
        for index in 0..20_u32 {
            let distance_m = 0.5 + 0.1 * f64::from(index % 7);
            let echoes = [Echo::At(distance_m)];
            handle(
                &mut obstacles,
                &odometry,
                &scan(ms(180 * u64::from(index)), &echoes),
            );
            assert_eq!(obstacles.seen().count(), 0, "{index}");
        }
    }

    /// A turn of a scanner that looks all around, clockwise, from the rear to the rear.
    fn turn(taken: Duration, echo: impl Fn(f64) -> Echo) -> Scan {
        let beams = (0..360).map(|index| {
            let degrees = 179.5 - f64::from(index);
            Beam {
                angle_rad: degrees.to_radians(),
                echo: echo(degrees),
            }
        });
        Scan {
            start: taken,
            beam_time: Duration::ZERO,
            beams: beams.collect(),
        }
    }

    #[test]
    fn a_scan_of_a_whole_turn_has_no_gap_at_the_rear() {
        let odometry = Odometry::new(SkidSteer::default());
        let rear = |near: Echo, degrees: f64| {
            turn(ms(0), |it| match it.abs() > degrees {
                true => near,
                false => Echo::At(2.0),
            })
        };
        // A post of four beams, two on either side.
        let mut obstacles = Obstacles::default();
        handle(&mut obstacles, &odometry, &rear(Echo::At(0.5), 178.0));
        let near = obstacles.seen().filter(|point| point.length() < 1.0);
        assert_eq!(near.count(), 4);
        // Exactly behind the robot, what has gone is forgotten at once.
        handle(&mut obstacles, &odometry, &turn(ms(100), |_| Echo::At(2.0)));
        assert!(obstacles.points().all(|point| point.length() > 1.0));
        // A dark post behind the robot, between two that are not.
        let dark = turn(ms(0), |it| match it.abs() {
            179.0.. => Echo::Nothing,
            175.0.. => Echo::At(0.5),
            _ => Echo::At(2.0),
        });
        let mut obstacles = Obstacles::default();
        handle(&mut obstacles, &odometry, &dark);
        let behind = |point: &Point| point.x < -0.4 && point.y.abs() < 0.003;
        assert!(obstacles.seen().any(|point| behind(&point)));
    }

    #[test]
    fn an_object_that_is_too_near_for_an_echo_is_remembered() {
        let odometry = Odometry::new(SkidSteer::default());
        for (distance_m, kept_ms) in [(0.2, 3000), (0.4, 1000)] {
            let mut obstacles = Obstacles::default();
            let echoes = [Echo::At(distance_m); 5];
            handle(&mut obstacles, &odometry, &scan(ms(0), &echoes));
            for time in (100..4000).step_by(100) {
                handle(&mut obstacles, &odometry, &scan(ms(time), &[]));
                let is_kept = obstacles.points().count() > 0;
                assert_eq!(is_kept, time <= kept_ms, "{distance_m} {time}");
            }
        }
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
