//! Maps of long corridors. PURE.

use std::time::Duration;

use amber_map::{Map, Point, Pose, Segment, wrap};
use amber_navigation::kinematics::Wheels;
use amber_navigation::slam::graph::Edge;
use amber_navigation::slam::{Config, Slam};

use super::{Arrival, Course, Drive, MOUNT, Noise, Scenario};

/// The width of a corridor.
const WIDTH_M: f64 = 2.0;
/// Closed doors are this wide, and lie this deep in the wall.
const DOOR_M: f64 = 0.9;
const DEPTH_M: f64 = 0.12;
/// From one door to the next on the same side.
const APART_M: [f64; 2] = [1.5, 6.0];
/// The part of the straight corridor without a door: longer than the laser sees to both sides.
const PLAIN_M: [f64; 2] = [24.0, 36.0];
/// The wheels measure a way that is longer or shorter by up to this part.
const WAY_BIAS: f64 = 0.01;
/// The assumed track is wrong by up to this part.
const TRACK_BIAS: f64 = 0.05;
/// How long the robot drives: 120 m.
const LENGTH: Duration = Duration::from_secs(420);
/// How often long work is done.
const TASK_EVERY: Duration = Duration::from_secs(5);
/// A loop is wrong if it is off by more.
const WRONG_M: f64 = 0.3;
const WRONG_RAD: f64 = 0.1;

/// The shape of a corridor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Straight, 60 m long; the robot drives there and back.
    Straight,
    /// Around a block, 100 m long; the robot drives around it, and on to where it knows the place.
    Ring,
}

/// The map of a corridor, compared with the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mapped {
    /// The largest error of a pose after the best alignment of the whole way, and the length of the
    /// corridor.
    pub error_m: f64,
    pub length_m: f64,
    /// The difference between the largest and the smallest error of a heading.
    pub bend_rad: f64,
    /// Loops that count, and those of them that are wrong.
    pub loops: usize,
    pub wrong: usize,
}

impl Shape {
    /// Its length in metres.
    #[must_use]
    pub fn length_m(self) -> f64 {
        match self {
            Self::Straight => 60.0,
            Self::Ring => 100.0,
        }
    }

    fn map(self, random: &mut fastrand::Rng) -> Map {
        let mut map = Map::default();
        let half_m = WIDTH_M / 2.0;
        let at = Point::new;
        match self {
            Self::Straight => {
                let length_m = self.length_m();
                for y in [-half_m, half_m] {
                    let (from, to) = (at(0.0, y), at(length_m, y));
                    let out = at(0.0, y.signum() * DEPTH_M);
                    wall(&mut map, from, to, out, Some(PLAIN_M), random);
                }
                for x in [0.0, length_m] {
                    map.walls.push(segment(at(x, -half_m), at(x, half_m)));
                }
                map.nodes = vec![at(1.0, 0.0), at(length_m - 1.0, 0.0)];
            }
            Self::Ring => {
                let (x, y) = (14.5, 10.5);
                for (reach_m, sign) in [(half_m, 1.0), (-half_m, -1.0)] {
                    let (x, y) = (x + reach_m, y + reach_m);
                    let corners = [at(-x, -y), at(x, -y), at(x, y), at(-x, y)];
                    for side in 0..4 {
                        let (from, to) = (corners[side], corners[(side + 1) % 4]);
                        let way = to.minus(from);
                        let out = way.turned(-std::f64::consts::FRAC_PI_2);
                        let out = out.times(sign * DEPTH_M / way.length());
                        wall(&mut map, from, to, out, None, random);
                    }
                }
                map.nodes = vec![
                    at(-x, -y),
                    at(0.0, -y),
                    at(x, -y),
                    at(x, y),
                    at(0.0, y),
                    at(-x, y),
                ];
            }
        }
        map.thicknesses_m = vec![0.0; map.walls.len()];
        map
    }
}

fn segment(from: Point, to: Point) -> Segment {
    Segment { from, to }
}

/// A wall with closed doors, which lie `out` of it; none in the plain part.
fn wall(
    map: &mut Map,
    from: Point,
    to: Point,
    out: Point,
    plain_m: Option<[f64; 2]>,
    random: &mut fastrand::Rng,
) {
    let way = to.minus(from);
    let length_m = way.length();
    let at = |place_m: f64| from.plus(way.times(place_m / length_m));
    let (mut done_m, mut next_m) = (0.0, 0.0);
    loop {
        next_m += APART_M[0] + (APART_M[1] - APART_M[0]) * random.f64();
        if let Some([first_m, last_m]) = plain_m
            && (first_m - DOOR_M..last_m).contains(&next_m)
        {
            next_m = last_m;
        }
        let end_m = next_m + DOOR_M;
        if end_m > length_m - 1.0 {
            break;
        }
        let (outer, inner) = (at(next_m).plus(out), at(end_m).plus(out));
        map.walls.push(segment(at(done_m), at(next_m)));
        map.walls.push(segment(at(next_m), outer));
        map.walls.push(segment(outer, inner));
        map.walls.push(segment(inner, at(end_m)));
        (done_m, next_m) = (end_m, end_m);
    }
    map.walls.push(segment(at(done_m), to));
}

/// Maps a corridor with one scan of so many. The wheels and the assumed track have constant errors.
#[must_use]
pub fn mapped(shape: Shape, one_of: u32, seed: u64) -> Option<Mapped> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xC0_221D02);
    let map = shape.map(&mut random);
    let course = Course::new(&map, map.walls.clone())?;
    let scenario = Scenario {
        noise: Noise::Captured,
        length: LENGTH,
        ..Scenario::named("tracking, bias 10 mm")?
    };
    let drive = Drive::new(&course.by_hand(seed), &scenario, seed);
    let mut bias = |part: f64| 1.0 + part * (2.0 * random.f64() - 1.0);
    let (way, track) = (bias(WAY_BIAS), bias(TRACK_BIAS));
    let mut config = Config::new(MOUNT);
    config.track_m = super::vehicle::DRIVE.track_m * track;
    let mut slam = Slam::new(config);
    let (mut next_task, mut scans) = (TASK_EVERY, 0);
    for (now, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => slam.handle_wheels(
                *time,
                Wheels::sides(way * wheels.left_m_s(), way * wheels.right_m_s()),
            ),
            Arrival::Scan(scan) => {
                scans += 1;
                if scans % one_of == 0 {
                    slam.add_scan(scan.clone());
                }
            }
        }
        if *now >= next_task {
            next_task += TASK_EVERY;
            if let Some(task) = slam.task() {
                slam.apply(task.run());
            }
        }
    }
    slam.finish();
    Some(compared(&slam, &drive, shape))
}

fn compared(slam: &Slam, drive: &Drive, shape: Shape) -> Mapped {
    let truth: Vec<Pose> = slam
        .keys()
        .iter()
        .map(|key| drive.pose_at(key.time))
        .collect();
    let frame = best_frame(slam.poses(), &truth);
    let pairs = || slam.poses().iter().zip(&truth);
    let errors_m = pairs().map(|(pose, truth)| frame.global(pose.at).minus(truth.at).length());
    let turns = || pairs().map(|(pose, truth)| wrap(pose.heading + frame.heading - truth.heading));
    let is_wrong = |edge: &&Edge| {
        let is = truth[edge.from].local_pose(truth[edge.to]);
        let off_m = is.at.minus(edge.motion.at).length();
        off_m > WRONG_M || wrap(is.heading - edge.motion.heading).abs() > WRONG_RAD
    };
    let counted = || (slam.edges().iter()).filter(|it| it.is_loop && !it.is_false(slam.poses()));
    Mapped {
        error_m: errors_m.fold(0.0, f64::max),
        length_m: shape.length_m(),
        bend_rad: turns().fold(f64::MIN, f64::max) - turns().fold(f64::MAX, f64::min),
        loops: counted().count(),
        wrong: counted().filter(is_wrong).count(),
    }
}

/// The frame in which the poses are nearest to the truth: least squares of their places.
fn best_frame(poses: &[Pose], truth: &[Pose]) -> Pose {
    let count = poses.len().max(1) as f64;
    let middle = |all: &[Pose]| {
        let sum = all.iter().fold(Point::default(), |sum, it| sum.plus(it.at));
        sum.times(1.0 / count)
    };
    let (here, there) = (middle(poses), middle(truth));
    let (mut dot, mut cross) = (0.0, 0.0);
    for (pose, truth) in poses.iter().zip(truth) {
        let (a, b) = (pose.at.minus(here), truth.at.minus(there));
        dot += a.dot(b);
        cross += a.x * b.y - a.y * b.x;
    }
    let heading = cross.atan2(dot);
    Pose {
        at: there.minus(here.turned(heading)),
        heading,
    }
}
