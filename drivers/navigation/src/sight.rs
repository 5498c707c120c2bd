//! Whether the laser sees anything: tells a covered or dead laser from a large room. PURE.
//!
//! A beam without an echo is ambiguous: nothing is within range, or the laser is covered, or broken.
//! A scan in which less than a tenth of the beams have an echo is *empty*. What was seen before
//! tells what an empty scan means:
//!
//! - Most of its beams have an error, or end right in front of the laser: the laser is **blind**.
//! - The walls of the last scan that was not empty should still be in view, but are not: **blind**.
//! - These walls are out of range by now, or behind the robot: the room is **open**, and the robot
//!   may go on. After 5 m it is blind, unless the room is known to be larger than the range.
//! - The laser has never seen anything: blind, unless the room is known to be that large.
//!
//! A blind laser stays blind until a scan is not empty, because driving on would only take the robot
//! to where nothing is expected.

use std::time::Duration;

use amber_map::{Point, Pose};

use crate::deskew::end_of;
use crate::odometry::Odometry;
use crate::scan::{Beam, Echo, Scan};

/// In words, for people.
pub const BLIND: &str = "the laser sees nothing: it is covered or broken, or the room is larger \
                         than its range (option large_rooms)";

/// A scan is empty if fewer of its beams have an echo.
const MIN_SHARE: f64 = 0.1;
/// The laser is covered if so many beams of an empty scan have an error or end too near.
const COVERED_SHARE: f64 = 0.5;
/// An empty scan contradicts the last one if that one lets expect at least so many echoes, ...
const EXPECTED_SHARE: f64 = 0.05;
/// ...and fewer than this part of them are there.
const FOUND_PART: f64 = 0.25;
/// Walls up to this distance are expected to give an echo, since each laser for rooms sees that far, ...
const SURE_M: f64 = 3.0;
/// ...and up to this part of the longest distance so far.
const SURE_PART: f64 = 0.8;
/// This part of the echoes of a scan is shorter than the range that it proves.
const RANGE_QUANTILE: f64 = 0.95;
/// How far the robot drives through an open room without an echo, in metres.
const OPEN_M: f64 = 5.0;
/// One beam in so many is remembered.
const EVERY: usize = 4;
/// After this time without a useful scan the robot crawls...
const CRAWL_AFTER: Duration = Duration::from_millis(300);
/// ...and then it stops.
const STOP_AFTER: Duration = Duration::from_secs(1);

/// The meaning of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The laser sees something.
    Clear,
    /// The laser sees nothing, and nothing is expected within its range.
    Open,
    /// The laser sees nothing although it should: the scan is useless.
    Blind,
}

/// How a robot with this view may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As it wants.
    Free,
    /// Slowly.
    Crawl,
    /// Not at all.
    Stop,
}

/// Follows what the laser sees.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    large_rooms: bool,
    /// The last scan that was not empty.
    seen: Option<Seen>,
    /// The longest distance so far.
    range_m: f64,
    /// The robot at the last scan, and the way since the last scan that was not empty.
    last: Option<Pose>,
    way_m: f64,
    blind: Option<Blind>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// Ends of beams in the odometry frame.
    ends: Vec<Point>,
    /// How many beams were looked at.
    beams: usize,
}

#[derive(Clone, Copy, Debug)]
struct Blind {
    since: Duration,
    /// The laser had not seen anything before.
    from_start: bool,
}

impl Sight {
    /// A laser that has not seen anything yet. `large_rooms`: it works in rooms that are larger than
    /// its range.
    #[must_use]
    pub fn new(large_rooms: bool) -> Self {
        Self {
            large_rooms,
            ..Self::default()
        }
    }

    /// A scan of a laser with this pose on the robot.
    pub fn look(&mut self, scan: &Scan, mount: Pose, odometry: &Odometry) -> View {
        let robot = odometry.pose_at(scan.end());
        if let Some(last) = self.last.replace(robot) {
            self.way_m += robot.at.minus(last.at).length();
        }
        let view = self.view(scan, robot.global_pose(mount));
        match view {
            View::Clear => {
                self.remember(scan, mount, odometry);
                self.way_m = 0.0;
                self.blind = None;
            }
            View::Open => self.blind = None,
            View::Blind => {
                let from_start = self.seen.is_none();
                self.blind.get_or_insert(Blind {
                    since: scan.end(),
                    from_start,
                });
            }
        }
        view
    }

    fn view(&self, scan: &Scan, laser: Pose) -> View {
        let share = share_of(&scan.beams, |echo| matches!(echo, Echo::At(_)));
        if share >= MIN_SHARE {
            return View::Clear;
        }
        let is_error = |echo| matches!(echo, Echo::TooNear | Echo::Invalid);
        if share_of(&scan.beams, is_error) >= COVERED_SHARE {
            return View::Blind;
        }
        let Some(seen) = &self.seen else {
            return match self.large_rooms && !scan.beams.is_empty() {
                true => View::Open,
                false => View::Blind,
            };
        };
        let expected = seen.share_from(laser, scan, SURE_M.max(SURE_PART * self.range_m));
        let is_expected = expected >= EXPECTED_SHARE;
        let is_missing = is_expected && share < FOUND_PART * expected;
        let is_found = is_expected && !is_missing;
        let too_far = self.way_m > OPEN_M && !self.large_rooms;
        let was_blind = self.blind.is_some() && !is_found;
        match is_missing || was_blind || too_far {
            true => View::Blind,
            false => View::Open,
        }
    }

    fn remember(&mut self, scan: &Scan, mount: Pose, odometry: &Odometry) {
        let robots = [scan.start, scan.end()].map(|time| odometry.pose_at(time));
        let count = scan.beams.len();
        let some = scan.beams.iter().enumerate().step_by(EVERY);
        let ends = some.clone().filter_map(|(index, beam)| {
            // Exact enough: the nearer of the poses at the ends of the scan.
            let robot = robots[usize::from(2 * index >= count)];
            Some(end_of(*beam, beam.distance_m()?, robot, mount))
        });
        self.seen = Some(Seen {
            ends: ends.collect(),
            beams: some.len(),
        });
        let mut distances: Vec<f64> = scan.beams.iter().filter_map(Beam::distance_m).collect();
        let long = (distances.len() as f64 * RANGE_QUANTILE) as usize;
        if long < distances.len() {
            let (_, long_m, _) = distances.select_nth_unstable_by(long, f64::total_cmp);
            self.range_m = self.range_m.max(*long_m);
        }
    }

    /// The robot was carried away: what it has seen says nothing about this place.
    pub fn forget(&mut self) {
        *self = Self {
            range_m: self.range_m,
            ..Self::new(self.large_rooms)
        };
    }

    /// How the robot may move.
    #[must_use]
    pub fn pace(&self, now: Duration) -> Pace {
        let Some(blind) = self.blind else {
            return Pace::Free;
        };
        match now.saturating_sub(blind.since) {
            _ if blind.from_start => Pace::Stop,
            age if age >= STOP_AFTER => Pace::Stop,
            age if age >= CRAWL_AFTER => Pace::Crawl,
            _ => Pace::Free,
        }
    }
}

impl Seen {
    /// The share of the beams of a scan from here that should end at what was seen.
    fn share_from(&self, laser: Pose, scan: &Scan, range_m: f64) -> f64 {
        let (Some(first), Some(last)) = (scan.beams.first(), scan.beams.last()) else {
            return 0.0;
        };
        let (low, high) = match first.angle_rad <= last.angle_rad {
            true => (first.angle_rad, last.angle_rad),
            false => (last.angle_rad, first.angle_rad),
        };
        let is_in_view = |end: &&Point| {
            let local = laser.local(**end);
            local.length() <= range_m && (low..=high).contains(&local.y.atan2(local.x))
        };
        self.ends.iter().filter(is_in_view).count() as f64 / self.beams.max(1) as f64
    }
}

fn share_of(beams: &[Beam], is_counted: impl Fn(Echo) -> bool) -> f64 {
    let counted = beams.iter().filter(|beam| is_counted(beam.echo)).count();
    counted as f64 / beams.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinematics::{SkidSteer, Wheels};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

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

    /// A robot that drives at a speed, with its sight.
    struct Driven {
        sight: Sight,
        odometry: Odometry,
        now: Duration,
    }

    impl Driven {
        fn new(large_rooms: bool) -> Self {
            let mut odometry = Odometry::new(SkidSteer::default());
            odometry.handle_wheels(Duration::ZERO, Wheels::STOP);
            Self {
                sight: Sight::new(large_rooms),
                odometry,
                now: Duration::ZERO,
            }
        }

        /// The view of the last of some scans, ten per second.
        fn run(&mut self, scans: u32, wheels: Wheels, echo: impl Fn(i32, Pose) -> Echo) -> View {
            let mut view = View::Blind;
            for _ in 0..scans {
                self.now += ms(100);
                self.odometry.handle_wheels(self.now, wheels);
                let pose = self.odometry.pose_at(self.now);
                let scan = scan(self.now, |degrees| echo(degrees, pose));
                view = self.sight.look(&scan, Pose::default(), &self.odometry);
            }
            view
        }
    }

    const AHEAD: Wheels = Wheels {
        front_left_m_s: 0.5,
        front_right_m_s: 0.5,
        rear_left_m_s: 0.5,
        rear_right_m_s: 0.5,
    };

    /// A wall across the way behind the robot's start, seen up to 4 m.
    fn wall_behind(degrees: i32, robot: Pose) -> Echo {
        let angle_rad = f64::from(degrees).to_radians() + robot.heading;
        let distance_m = -(robot.at.x + 0.5) / angle_rad.cos();
        match angle_rad.cos() < 0.0 && distance_m < 4.0 {
            true => Echo::At(distance_m),
            false => Echo::Nothing,
        }
    }

    #[test]
    fn a_laser_that_suddenly_sees_nothing_is_blind_and_the_robot_crawls_and_stops() {
        let nothing: [fn(i32, Pose) -> Echo; 3] = [
            |_, _| Echo::Nothing,
            |_, _| Echo::TooNear,
            |degrees, _| match degrees {
                7 => Echo::At(1.5),
                _ => Echo::Nothing,
            },
        ];
        for nothing in nothing {
            for large_rooms in [false, true] {
                let mut driven = Driven::new(large_rooms);
                assert_eq!(driven.run(1, AHEAD, |_, _| Echo::At(2.0)), View::Clear);
                assert_eq!(driven.run(1, AHEAD, nothing), View::Blind);
                let since = driven.now;
                let pace = |driven: &Driven, after| driven.sight.pace(since + ms(after));
                assert_eq!(pace(&driven, 200), Pace::Free);
                assert_eq!(pace(&driven, 300), Pace::Crawl);
                assert_eq!(pace(&driven, 1000), Pace::Stop);
                // Turning until the walls would be behind the robot does not make it see again.
                let turn = Wheels::sides(-0.3, 0.3);
                assert_eq!(driven.run(60, turn, nothing), View::Blind);
                assert_eq!(driven.run(1, AHEAD, |_, _| Echo::At(1.0)), View::Clear);
                assert_eq!(driven.sight.pace(driven.now), Pace::Free);
            }
        }
    }

    #[test]
    fn walls_that_go_out_of_range_leave_an_open_room() {
        let mut driven = Driven::new(false);
        assert_eq!(driven.run(1, AHEAD, wall_behind), View::Clear);
        // Turned away from the only wall, and on into the hall.
        let view = driven.run(60, AHEAD, wall_behind);
        assert_eq!(view, View::Open);
        assert_eq!(driven.sight.pace(driven.now), Pace::Free);
        // After some metres without any echo the laser may as well be dead...
        assert_eq!(driven.run(80, AHEAD, wall_behind), View::Blind);
        assert_eq!(driven.sight.pace(driven.now + ms(1000)), Pace::Stop);
        // ...unless the hall is known to be large.
        let mut driven = Driven::new(true);
        assert_eq!(driven.run(140, AHEAD, wall_behind), View::Open);
        // Back at the wall it must be seen again.
        let round = Wheels::sides(-0.3, 0.3);
        driven.run(22, round, |_, _| Echo::Nothing);
        assert_eq!(driven.run(140, AHEAD, |_, _| Echo::Nothing), View::Blind);
    }

    #[test]
    fn a_laser_that_never_saw_anything_stops_at_once_except_in_large_rooms() {
        let mut driven = Driven::new(false);
        assert_eq!(driven.run(1, AHEAD, |_, _| Echo::Nothing), View::Blind);
        assert_eq!(driven.sight.pace(driven.now), Pace::Stop);
        let mut driven = Driven::new(true);
        assert_eq!(driven.run(1, AHEAD, |_, _| Echo::Nothing), View::Open);
        assert_eq!(driven.run(1, AHEAD, |_, _| Echo::Invalid), View::Blind);
        assert_eq!(driven.sight.pace(driven.now), Pace::Stop);
    }

    #[test]
    fn a_carried_robot_begins_again() {
        let mut driven = Driven::new(true);
        driven.run(1, AHEAD, |_, _| Echo::At(2.0));
        driven.sight.forget();
        assert_eq!(driven.run(1, AHEAD, |_, _| Echo::Nothing), View::Open);
    }
}
