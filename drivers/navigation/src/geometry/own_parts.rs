//! Finds the parts of the robot that its laser sees. PURE.
//!
//! While the robot turns, walls and obstacles move through the scans. What stays in the same direction
//! of the laser, at the same distance and as near as the outline of the robot, turns with it: a mast, a
//! cable or a wheel.
//!
//! Each heading of the robot counts equally: else a wall beside a robot that stands there for long, and
//! only turns a little, would look like a part of it.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::{Outline, Point, Pose};

use super::Config;
use crate::odometry::Motion;
use crate::scan::{Echo, Scan};

/// The directions of the laser are told apart by this, in degrees: two or more beams of most scanners.
const BIN_DEG: usize = 2;
const BINS: usize = 360 / BIN_DEG;
/// A sector is wider than what was seen by this on both sides: a beam at the edge hits the part only
/// sometimes.
const EDGE_DEG: f64 = 1.0;
/// Gaps of so many directions within a part count as a part of it.
const MAX_GAP: usize = 1;
/// Parts may protrude from the outline by this, and distances have errors.
const MARGIN_M: f64 = 0.05;
/// The distance of a part has a smaller standard deviation.
const MAX_SIGMA_M: f64 = 0.03;
/// A part is seen in this part of the scans.
const MIN_SHARE: f64 = 0.9;
/// The headings of the robot that are told apart, how many are needed, and how many scans count in each.
const HEADINGS: usize = 24;
const MIN_HEADINGS: usize = 8;
const MAX_SCANS: u32 = 4;
const MIN_SCANS: u32 = 16;
/// Slower turns tell nothing.
const MIN_RATE_RAD_S: f64 = 0.1;
/// After a longer time without scans, the heading is another one, but which one does not matter.
const MAX_STEP: Duration = Duration::from_millis(500);
/// If more is as near all the time, the robot is in a box, or its outline is wrong.
const MAX_DIRECTIONS: usize = 300 / BIN_DEG;

/// A part of the robot, as the laser sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Its left and its right border in degrees to the right, as scans have them. Across the rear, the
    /// left one is larger.
    pub(super) from_deg: f64,
    pub(super) to_deg: f64,
    /// Its least mean distance; 0 if it is too near to be measured.
    pub(super) distance_m: f64,
}

/// What the laser has seen in each direction while the robot turned.
#[derive(Clone, Debug)]
pub(super) struct OwnParts {
    directions: Vec<Direction>,
    /// How many scans have counted at each heading.
    taken: [u32; HEADINGS],
    /// By the wheels, since the start.
    heading_rad: f64,
    last: Option<Duration>,
}

/// One direction of the laser.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// Nearer objects may be parts of the robot.
    limit_m: f64,
    scans: u32,
    /// In how many of them it was near, and the sums of these distances and of their squares.
    near: u32,
    sum_m: f64,
    squares: f64,
}

impl OwnParts {
    pub(super) fn new(config: &Config) -> Self {
        let direction = |bin: usize| {
            let right_rad = middle_deg(bin).to_radians();
            let beam_rad = if config.is_mirrored {
                right_rad
            } else {
                -right_rad
            };
            Direction {
                limit_m: way_out_m(config.outline, config.mount, beam_rad) + MARGIN_M,
                ..Direction::default()
            }
        };
        Self {
            directions: (0..BINS).map(direction).collect(),
            taken: [0; HEADINGS],
            heading_rad: 0.0,
            last: None,
        }
    }

    /// Adds a scan. `around` is the motion by the wheels around it.
    pub(super) fn add(&mut self, scan: &Scan, around: &Motion, is_mirrored: bool) {
        let rate_rad_s = around.pose.heading / around.time_s.max(0.01);
        let time = scan.middle();
        let step = self.last.map_or(Duration::ZERO, |last| {
            time.saturating_sub(last).min(MAX_STEP)
        });
        self.last = Some(time);
        self.heading_rad += rate_rad_s * step.as_secs_f64();
        if rate_rad_s.abs() < MIN_RATE_RAD_S {
            return;
        }
        let heading = self.heading_rad.rem_euclid(TAU) / TAU * HEADINGS as f64;
        let taken = &mut self.taken[(heading as usize).min(HEADINGS - 1)];
        if *taken == MAX_SCANS {
            return;
        }
        *taken += 1;
        let mut nearest = [None; BINS];
        for beam in &scan.beams {
            let distance_m = match beam.echo {
                Echo::At(distance_m) => distance_m,
                Echo::TooNear => 0.0,
                Echo::Nothing => f64::INFINITY,
                Echo::Invalid => continue,
            };
            let side = if is_mirrored { 1.0 } else { -1.0 };
            let bin = bin_of(side * beam.angle_rad.to_degrees());
            let before = nearest[bin].unwrap_or(f64::INFINITY);
            nearest[bin] = Some(distance_m.min(before));
        }
        for (direction, distance_m) in self.directions.iter_mut().zip(nearest) {
            if let Some(distance_m) = distance_m {
                direction.add(distance_m);
            }
        }
    }

    /// The parts that are known so far, from left to right.
    pub(super) fn parts(&self) -> Vec<Part> {
        let headings = self.taken.iter().filter(|taken| **taken > 0).count();
        if headings < MIN_HEADINGS {
            return Vec::new();
        }
        let own: Vec<usize> = (0..BINS)
            .filter(|bin| self.directions[*bin].is_own())
            .collect();
        if own.len() > MAX_DIRECTIONS {
            return Vec::new();
        }
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for bin in own {
            match runs.last_mut() {
                Some((_, last)) if bin - *last <= MAX_GAP + 1 => *last = bin,
                _ => runs.push((bin, bin)),
            }
        }
        // The first and the last one may be one part at the rear.
        if let [(first, end), .., (begin, last)] = runs[..]
            && first + BINS - last <= MAX_GAP + 1
        {
            runs.pop();
            runs[0] = (begin, end + BINS);
        }
        runs.into_iter().map(|run| self.part(run)).collect()
    }

    /// The part in these directions; the last one may be beyond the rear.
    fn part(&self, (first, last): (usize, usize)) -> Part {
        let distances = (first..=last).map(|bin| self.directions[bin % BINS]);
        let distances = distances.filter(Direction::is_own);
        Part {
            from_deg: wrapped_deg(left_deg(first) - EDGE_DEG),
            to_deg: wrapped_deg(left_deg(last + 1) + EDGE_DEG),
            distance_m: distances
                .map(|it| it.mean_m())
                .fold(f64::INFINITY, f64::min),
        }
    }
}

impl Direction {
    fn add(&mut self, distance_m: f64) {
        self.scans += 1;
        if distance_m < self.limit_m {
            self.near += 1;
            self.sum_m += distance_m;
            self.squares += distance_m * distance_m;
        }
    }

    fn mean_m(&self) -> f64 {
        self.sum_m / f64::from(self.near.max(1))
    }

    fn is_own(&self) -> bool {
        let mean_m = self.mean_m();
        let variance = self.squares / f64::from(self.near.max(1)) - mean_m * mean_m;
        self.scans >= MIN_SCANS
            && f64::from(self.near) >= MIN_SHARE * f64::from(self.scans)
            && variance <= MAX_SIGMA_M * MAX_SIGMA_M
    }
}

/// The way from the laser out of the robot in the direction of a beam; 0 if there is none.
fn way_out_m(outline: Outline, mount: Pose, beam_rad: f64) -> f64 {
    let ahead = Point::new(1.0, 0.0).turned(mount.heading + beam_rad);
    let (mut enter, mut leave) = (0.0_f64, f64::INFINITY);
    for (at, along, half) in [
        (mount.at.x, ahead.x, outline.half_length_m),
        (mount.at.y, ahead.y, outline.half_width_m),
    ] {
        // Parallel to these sides.
        if along.abs() < 1e-9 {
            if at.abs() > half {
                return 0.0;
            }
            continue;
        }
        let (one, other) = ((-half - at) / along, (half - at) / along);
        enter = enter.max(one.min(other));
        leave = leave.min(one.max(other));
    }
    if leave < enter { 0.0 } else { leave }
}

fn bin_of(right_deg: f64) -> usize {
    let from_rear = (right_deg + 180.0).rem_euclid(360.0);
    ((from_rear / BIN_DEG as f64) as usize).min(BINS - 1)
}

/// The left border of a direction, which may be beyond the rear.
fn left_deg(bin: usize) -> f64 {
    (bin * BIN_DEG) as f64 - 180.0
}

fn middle_deg(bin: usize) -> f64 {
    left_deg(bin) + BIN_DEG as f64 / 2.0
}

/// The same angle from -180 to below 180.
fn wrapped_deg(deg: f64) -> f64 {
    (deg + 180.0).rem_euclid(360.0) - 180.0
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::scan::Beam;

    const MOUNT: Pose = Pose::new(0.1, 0.0, 0.0);
    /// Of a robot of 40 by 30 cm.
    const OUTLINE: Outline = Outline {
        half_length_m: 0.2,
        half_width_m: 0.15,
    };

    fn config(is_mirrored: bool) -> Config {
        Config {
            outline: OUTLINE,
            is_mirrored,
            ..Config::new(MOUNT)
        }
    }

    /// What is seen at this heading, in degrees to the right as in a scan.
    type View = fn(heading_deg: f64, right_deg: f64) -> Echo;

    /// What it is, the view, and the sectors that are found.
    type Case = (&'static str, View, Vec<(f64, f64)>);

    /// What is found while a robot turns by 10 degrees between two scans, at these headings.
    fn found(
        config: &Config,
        headings_deg: impl IntoIterator<Item = f64>,
        view: View,
    ) -> Vec<Part> {
        let mut parts = OwnParts::new(config);
        let mut before_deg = 0.0;
        for (index, heading_deg) in headings_deg.into_iter().enumerate() {
            let beams = (0..450).map(|beam| {
                // No beam is at the border of a direction.
                let right_deg = (f64::from(beam) + 0.3) * 0.8 - 180.0;
                let side = if config.is_mirrored { 1.0 } else { -1.0 };
                Beam {
                    angle_rad: side * right_deg.to_radians(),
                    echo: view(heading_deg, right_deg),
                }
            });
            let scan = Scan {
                start: Duration::from_millis(100 * index as u64),
                beam_time: Duration::ZERO,
                beams: beams.collect(),
            };
            let turn_rad = (heading_deg - before_deg).to_radians();
            before_deg = heading_deg;
            let around = Motion {
                pose: Pose::new(0.0, 0.0, turn_rad),
                path_m: 0.0,
                turns_rad: turn_rad.abs(),
                time_s: 0.1,
                unknown_s: 0.0,
            };
            parts.add(&scan, &around, config.is_mirrored);
        }
        parts.parts()
    }

    fn turn() -> impl Iterator<Item = f64> {
        (1..=36).map(|step| f64::from(step) * 10.0)
    }

    /// A room with a wall on one side, which turns through the scans.
    fn room(heading_deg: f64, right_deg: f64) -> Echo {
        let side_deg = (heading_deg - right_deg).rem_euclid(360.0);
        match side_deg {
            0.0..60.0 => Echo::At(0.3),
            60.0..90.0 => Echo::Nothing,
            _ => Echo::At(1.0 + side_deg / 100.0),
        }
    }

    #[test]
    fn parts_of_the_robot_are_found_and_nothing_else() {
        let sides = |parts: &[Part]| -> Vec<(f64, f64)> {
            parts.iter().map(|it| (it.from_deg, it.to_deg)).collect()
        };
        let cases: [Case; 9] = [
            ("nothing", room, vec![]),
            (
                "two masts behind it",
                |heading_deg, right_deg| match right_deg.abs() {
                    130.0..140.0 => Echo::At(0.18),
                    _ => room(heading_deg, right_deg),
                },
                vec![(-141.0, -129.0), (129.0, 141.0)],
            ),
            (
                "across the rear, with noise",
                |heading_deg, right_deg| match right_deg.abs() {
                    170.0.. => Echo::At(0.2 + 0.01 * (heading_deg + 7.0 * right_deg).sin()),
                    _ => room(heading_deg, right_deg),
                },
                vec![(169.0, -169.0)],
            ),
            (
                "a cable too near to be measured, between two beams",
                |heading_deg, right_deg| match right_deg {
                    90.0..92.0 => Echo::TooNear,
                    _ => room(heading_deg, right_deg),
                },
                vec![(89.0, 93.0)],
            ),
            (
                "what is masked already",
                |heading_deg, right_deg| match right_deg {
                    90.0..100.0 => Echo::Invalid,
                    _ => room(heading_deg, right_deg),
                },
                vec![],
            ),
            (
                "constant, but not as near as the robot",
                |heading_deg, right_deg| match right_deg {
                    90.0..100.0 => Echo::At(0.3),
                    _ => room(heading_deg, right_deg),
                },
                vec![],
            ),
            (
                "near, but now and then",
                |heading_deg, right_deg| match (right_deg, heading_deg % 40.0) {
                    (90.0..100.0, 10.0..) => Echo::At(0.1),
                    _ => room(heading_deg, right_deg),
                },
                vec![],
            ),
            (
                "near, at any distance",
                |heading_deg, right_deg| match right_deg {
                    90.0..100.0 => Echo::At(0.11 + 0.08 * heading_deg.to_radians().sin()),
                    _ => room(heading_deg, right_deg),
                },
                vec![],
            ),
            ("in a box", |_, _| Echo::At(0.1), vec![]),
        ];
        for (what, view, expected) in cases {
            for is_mirrored in [false, true] {
                let parts = found(&config(is_mirrored), turn(), view);
                assert_eq!(sides(&parts), expected, "{what} {is_mirrored}");
            }
        }
    }

    #[test]
    fn a_wall_beside_a_robot_that_turns_a_little_is_no_part_of_it() {
        // A wall that moves with the heading, as near as the robot is wide.
        let wall: View = |heading_deg, right_deg| match (heading_deg - right_deg).rem_euclid(360.0)
        {
            60.0..120.0 => Echo::At(0.16),
            _ => Echo::At(2.0),
        };
        let wiggle = (0..200).map(|step| f64::from(step % 2) * 10.0);
        assert_eq!(found(&config(false), wiggle.clone(), wall), []);
        // Also if it turns away at last.
        let away = (1..=13).map(|step| 10.0 + f64::from(step) * 10.0);
        assert_eq!(found(&config(false), wiggle.chain(away), wall), []);
        // A part is not found before the robot has turned far enough.
        let mast: View = |heading_deg, right_deg| match right_deg {
            90.0..100.0 => Echo::At(0.1),
            _ => room(heading_deg, right_deg),
        };
        let short = (1..=9).map(|step| f64::from(step) * 10.0);
        assert_eq!(found(&config(false), short, mast), []);
        let parts = found(&config(false), turn(), mast);
        assert_eq!(parts.len(), 1);
        assert!((parts[0].distance_m - 0.1).abs() < 1e-9, "{parts:?}");
    }

    #[test]
    fn the_outline_is_left_by_the_shortest_way() {
        let way =
            |x: f64, y: f64, beam_rad: f64| way_out_m(OUTLINE, Pose::new(x, y, PI / 2.0), beam_rad);
        for (x, y, beam_deg, expected_m) in [
            (0.0, 0.0, 0.0, 0.15),
            (0.0, 0.0, -90.0, 0.2),
            (0.1, 0.0, -90.0, 0.1),
            (0.1, 0.0, 90.0, 0.3),
            (0.1, 0.05, 0.0, 0.1),
            // Ahead of the robot: looking away, back, and past it.
            (0.3, 0.0, -90.0, 0.0),
            (0.3, 0.0, 90.0, 0.5),
            (0.3, 0.0, 0.0, 0.0),
        ] {
            let found_m = way(x, y, f64::to_radians(beam_deg));
            assert!(
                (found_m - expected_m).abs() < 1e-6,
                "{x} {y} {beam_deg}: {found_m}"
            );
        }
    }
}
