//! The Capo robot between walls: its motion, its contacts, and the view of its laser scanner. PURE.
//!
//! Metres, radians and seconds; x to the right, y up, angles counter-clockwise. Time is a
//! [`Duration`] since the start of the simulation. The same seed and the same calls give the same
//! world.
//!
//! Four wheels, two on each side. The robot turns by skidding, as if its wheels were [`TRACK_M`]
//! apart. Instead, it may stand on wheels that also drive it sideways ([`Drives::Body`]). It never
//! overlaps a wall: a move into a wall becomes sliding along it, or no move at all, and counts as a
//! contact.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Outline, Point, Pose, Segment, Walls};

use crate::wheels::{Drive, Motor, Reading, Wheel, metres_per_second, pulses_of};

/// The effective distance between left and right wheels in turns.
pub const TRACK_M: f64 = 0.42;

/// The outline for contacts: wheelbase plus two radii, by the outer width.
pub const OUTLINE: Outline = Outline {
    half_length_m: 0.185,
    half_width_m: 0.165,
};

/// The time step of the world.
pub const STEP: Duration = Duration::from_millis(5);

/// A touch within this time after another one belongs to the same contact.
const SAME_CONTACT_S: f64 = 0.25;
/// A wheel that can roll at least this fraction of its distance slides for the rest.
const ROLLS: f64 = 0.5;
/// How long poses are remembered.
const MEMORY_S: f64 = 0.6;
/// How often a robot is pushed off walls before the move is cancelled.
const MAX_PUSHES: usize = 8;
/// The additional distance of a push.
const PUSH_MARGIN_M: f64 = 1e-6;
/// The grid for finding a start position in a map that has none.
const SEARCH_STEP_M: f64 = 0.1;

/// The strongest acceleration of a robot on omni wheels, at their floor: beyond this they slip.
const GRIP_M_S2: f64 = 3.0;
/// The same for its turns: that of wheels 125 mm from the centre.
const GRIP_RAD_S2: f64 = GRIP_M_S2 / 0.125;

/// What moves the robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drives {
    /// The motors of the four wheels, per [`Wheel`].
    Wheels([Drive; 4]),
    /// Wheels of another kind, which would give the body this speed if they never slipped.
    Body(BodySpeed),
}

/// The speed of a body in its own frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BodySpeed {
    /// Metres per second ahead.
    pub ahead_m_s: f64,
    /// Metres per second to the left.
    pub left_m_s: f64,
    /// Radians per second counter-clockwise.
    pub turn_rad_s: f64,
}

/// The robot and its surroundings.
#[derive(Clone, Debug)]
pub struct World {
    walls: Walls,
    /// The speed of a robot on omni wheels; 0 for one with four motors.
    body: BodySpeed,
    motors: [Motor; 4],
    readings: [Reading; 4],
    pose: Pose,
    past: VecDeque<(f64, Pose)>,
    now: Duration,
    contacts: u64,
    last_touch_s: Option<f64>,
    travelled_m: f64,
    random: fastrand::Rng,
}

/// Why the robot cannot start.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// A wall is in the way.
    #[error("a robot cannot stand there: a wall is closer than {radius_m:.2} m", radius_m = OUTLINE.radius_m())]
    OnWall,
    /// There is no free space between the walls.
    #[error("no room for a robot between the walls")]
    NoRoom,
}

impl World {
    /// Creates a robot at rest.
    ///
    /// # Errors
    /// It would overlap a wall.
    pub fn new(walls: Vec<Segment>, start: Pose, seed: u64) -> Result<Self, StartError> {
        let walls = Walls::new(walls);
        if !walls.is_free(OUTLINE, start) {
            return Err(StartError::OnWall);
        }
        Ok(Self {
            walls,
            body: BodySpeed::default(),
            motors: Default::default(),
            readings: [Reading::default(); 4],
            pose: start,
            past: VecDeque::from([(0.0, start)]),
            now: Duration::ZERO,
            contacts: 0,
            last_touch_s: None,
            travelled_m: 0.0,
            random: fastrand::Rng::with_seed(seed),
        })
    }

    /// Advances by one [`STEP`] with these commands.
    pub fn step(&mut self, drives: impl Into<Drives>) {
        let drives = drives.into();
        self.now += STEP;
        let dt_s = STEP.as_secs_f64();
        for (motor, drive) in self.motors.iter_mut().zip(drives.motors()) {
            motor.step(dt_s, drive);
        }
        self.body = match drives {
            Drives::Wheels(_) => BodySpeed::default(),
            Drives::Body(wanted) => self.body.towards(wanted, dt_s),
        };
        let speed = self.body_speed();
        if speed != BodySpeed::default() {
            let wanted = match drives {
                Drives::Wheels(_) => {
                    (self.pose).along_arc(speed.ahead_m_s * dt_s, speed.turn_rad_s * dt_s)
                }
                Drives::Body(_) => {
                    let way = Point::new(speed.ahead_m_s, speed.left_m_s).times(dt_s);
                    self.pose.along(way, speed.turn_rad_s * dt_s)
                }
            };
            let next = self.slide(wanted);
            if next != wanted {
                self.touch();
                match drives {
                    Drives::Wheels(motors) => self.press(motors, next),
                    // The wheels slip.
                    Drives::Body(_) => self.body = BodySpeed::between(self.pose, next, dt_s),
                }
            }
            self.travelled_m += next.at.minus(self.pose.at).length();
            self.pose = next;
        }
        for (reading, motor) in self.readings.iter_mut().zip(&self.motors) {
            *reading = motor.reading(&mut self.random);
        }
        self.remember();
    }

    /// Advances the time while nothing moves.
    pub fn rest_until(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.remember();
    }

    /// Whether nothing will move with these commands.
    #[must_use]
    pub fn is_at_rest(&self, drives: impl Into<Drives>) -> bool {
        let drives = drives.into();
        let stands = BodySpeed::default();
        let mut pairs = self.motors.iter().zip(drives.motors());
        pairs.all(|(motor, drive)| motor.is_at_rest(drive))
            && self.body == stands
            && !matches!(drives, Drives::Body(wanted) if wanted != stands)
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The true pose of the robot.
    #[must_use]
    pub fn pose(&self) -> Pose {
        self.pose
    }

    /// The pose at a time within the last half second.
    #[must_use]
    pub fn pose_at(&self, time: Duration) -> Pose {
        let time_s = time.as_secs_f64();
        let after = self.past.partition_point(|(at_s, _)| *at_s <= time_s);
        let (Some(before), Some(next)) =
            (self.past.get(after.saturating_sub(1)), self.past.get(after))
        else {
            return self.pose;
        };
        let part = ((time_s - before.0) / (next.0 - before.0)).clamp(0.0, 1.0);
        let way = next.1.at.minus(before.1.at);
        let turn = next.1.heading - before.1.heading;
        Pose {
            at: before.1.at.plus(way.times(part)),
            heading: before.1.heading + turn * part,
        }
    }

    /// Moves the robot to another pose.
    ///
    /// # Errors
    /// A wall is there; nothing has changed.
    pub fn place(&mut self, pose: Pose) -> Result<(), StartError> {
        if !self.walls.is_free(OUTLINE, pose) {
            return Err(StartError::OnWall);
        }
        self.pose = pose;
        self.past.clear();
        self.remember();
        Ok(())
    }

    /// The controllers' measurements, per [`Wheel`].
    #[must_use]
    pub fn readings(&self) -> [Reading; 4] {
        self.readings
    }

    /// The true speeds of the wheels in metres per second, per [`Wheel`].
    #[must_use]
    pub fn wheel_speeds(&self) -> [f64; 4] {
        let speed = |motor: &Motor| metres_per_second(motor.speed_qpps());
        let [a, b, c, d] = &self.motors;
        [speed(a), speed(b), speed(c), speed(d)]
    }

    /// How often the robot started to touch a wall.
    #[must_use]
    pub fn contacts(&self) -> u64 {
        self.contacts
    }

    /// Whether it touches a wall now.
    #[must_use]
    pub fn is_touching(&self) -> bool {
        let now_s = self.now.as_secs_f64();
        self.last_touch_s
            .is_some_and(|touch_s| now_s - touch_s < SAME_CONTACT_S)
    }

    /// The distance driven so far, without turns on the spot.
    #[must_use]
    pub fn travelled_m(&self) -> f64 {
        self.travelled_m
    }

    /// The distance from its centre to the nearest wall.
    #[must_use]
    pub fn clearance_m(&self) -> f64 {
        self.walls.clearance_m(self.pose.at)
    }

    /// The length of a beam from the robot's centre, sent at a time within the last half second, at
    /// an angle counter-clockwise from ahead.
    #[must_use]
    pub fn beam(&self, time: Duration, angle: f64, limit_m: f64) -> Option<f64> {
        let pose = self.pose_at(time);
        self.walls.cast(pose.at, pose.heading + angle, limit_m)
    }

    /// The walls around the robot.
    #[must_use]
    pub fn walls(&self) -> &Walls {
        &self.walls
    }

    /// Adds walls, such as the faces of a box that somebody puts on the floor.
    ///
    /// # Errors
    /// The robot stands there; nothing has changed.
    pub fn add_walls(&mut self, walls: &[Segment]) -> Result<(), StartError> {
        self.set_walls([self.walls.segments(), walls].concat())
    }

    /// Replaces all walls: something among them has moved.
    ///
    /// # Errors
    /// The robot stands there; nothing has changed.
    pub fn set_walls(&mut self, walls: Vec<Segment>) -> Result<(), StartError> {
        let all = Walls::new(walls);
        if !all.is_free(OUTLINE, self.pose) {
            return Err(StartError::OnWall);
        }
        self.walls = all;
        Ok(())
    }

    /// Blocks or releases a wheel.
    pub fn set_stuck(&mut self, wheel: Wheel, stuck: bool) {
        self.motors[wheel.index()].set_stuck(stuck);
    }

    /// Slows down wheels that a wall prevents from rolling: they have grip, so they stop while
    /// their motors are on. Along a wall they slide.
    fn press(&mut self, drives: [Drive; 4], next: Pose) {
        let dt_s = STEP.as_secs_f64();
        let turn = next.heading - self.pose.heading;
        let ahead = next.at.minus(self.pose.at).turned(-self.pose.heading).x;
        let sides_m = [ahead - turn * TRACK_M / 2.0, ahead + turn * TRACK_M / 2.0];
        for (index, (motor, drive)) in self.motors.iter_mut().zip(drives).enumerate() {
            // Left wheels have even indices.
            let rolled_qpps = pulses_of(sides_m[index % 2]) / dt_s;
            let speed_qpps = motor.speed_qpps();
            let possible = rolled_qpps * speed_qpps.signum();
            if possible < ROLLS * speed_qpps.abs() {
                let slowed_qpps = possible.max(0.0) * speed_qpps.signum();
                motor.press(dt_s, drive, slowed_qpps);
            }
        }
    }

    /// The true speed of the robot, unless a wall is in the way.
    fn body_speed(&self) -> BodySpeed {
        let [front_left, front_right, rear_left, rear_right] = self.wheel_speeds();
        let left = (front_left + rear_left) / 2.0;
        let right = (front_right + rear_right) / 2.0;
        BodySpeed {
            ahead_m_s: (left + right) / 2.0 + self.body.ahead_m_s,
            left_m_s: self.body.left_m_s,
            turn_rad_s: (right - left) / TRACK_M + self.body.turn_rad_s,
        }
    }

    /// The pose that the walls allow instead of the wanted one.
    fn slide(&self, wanted: Pose) -> Pose {
        let straight = Pose {
            at: wanted.at,
            heading: self.pose.heading,
        };
        let turned = Pose {
            at: self.pose.at,
            heading: wanted.heading,
        };
        [wanted, straight, turned]
            .into_iter()
            .find_map(|pose| self.pushed_off(pose))
            .unwrap_or(self.pose)
    }

    /// A free pose beside the walls that this pose overlaps.
    fn pushed_off(&self, mut pose: Pose) -> Option<Pose> {
        // A push may at most undo the step and its turn.
        let way = pose.at.minus(self.pose.at).length();
        let turn = (pose.heading - self.pose.heading).abs();
        let reach = 2.0 * (way + turn * OUTLINE.radius_m()) + 2.0 * PUSH_MARGIN_M;
        for _ in 0..MAX_PUSHES {
            let Some(push) = self.walls.way_off(OUTLINE, pose) else {
                let near = pose.at.minus(self.pose.at).length() <= reach;
                let open = self.walls.is_open(self.pose.at, pose.at);
                return (near && open).then_some(pose);
            };
            let length = push.length();
            pose.at = pose.at.plus(push.times((length + PUSH_MARGIN_M) / length));
        }
        None
    }

    fn touch(&mut self) {
        if !self.is_touching() {
            self.contacts += 1;
        }
        self.last_touch_s = Some(self.now.as_secs_f64());
    }

    fn remember(&mut self) {
        let now_s = self.now.as_secs_f64();
        self.past.push_back((now_s, self.pose));
        while self.past.len() > 2 && self.past[1].0 < now_s - MEMORY_S {
            self.past.pop_front();
        }
    }
}

impl From<[Drive; 4]> for Drives {
    fn from(motors: [Drive; 4]) -> Self {
        Self::Wheels(motors)
    }
}

impl Drives {
    /// The commands of the four motors.
    fn motors(self) -> [Drive; 4] {
        match self {
            Self::Wheels(motors) => motors,
            Self::Body(_) => [Drive::RELEASED; 4],
        }
    }
}

impl BodySpeed {
    /// The speed after a time, if the wheels would have this other one.
    fn towards(self, wanted: Self, dt_s: f64) -> Self {
        let ahead = wanted.ahead_m_s - self.ahead_m_s;
        let left = wanted.left_m_s - self.left_m_s;
        let turn = wanted.turn_rad_s - self.turn_rad_s;
        let effort = ahead.hypot(left) / GRIP_M_S2 + turn.abs() / GRIP_RAD_S2;
        if effort <= dt_s {
            return wanted;
        }
        let part = dt_s / effort;
        Self {
            ahead_m_s: self.ahead_m_s + ahead * part,
            left_m_s: self.left_m_s + left * part,
            turn_rad_s: self.turn_rad_s + turn * part,
        }
    }

    /// The mean speed from one pose to another.
    fn between(from: Pose, to: Pose, dt_s: f64) -> Self {
        let heading = f64::midpoint(from.heading, to.heading);
        let way = to.at.minus(from.at).turned(-heading);
        Self {
            ahead_m_s: way.x / dt_s,
            left_m_s: way.y / dt_s,
            turn_rad_s: (to.heading - from.heading) / dt_s,
        }
    }
}

/// Finds a start position in a map that has none: one of the candidates, or the position with the
/// most space that is surrounded by walls.
///
/// # Errors
/// There is no free space.
pub fn find_start(walls: &[Segment], candidates: &[Pose]) -> Result<Pose, StartError> {
    let walls = Walls::new(walls.to_vec());
    let free = |pose: &Pose| walls.is_free(OUTLINE, *pose);
    if let Some(pose) = candidates.iter().copied().find(free) {
        return Ok(pose);
    }
    let (low, high) = walls.bounds();
    // Large maps are searched on a coarser grid.
    let step_m = SEARCH_STEP_M.max((high.x - low.x).max(high.y - low.y) / 100.0);
    let count = |length: f64| (length / step_m).ceil() as usize;
    let (columns, rows) = (count(high.x - low.x), count(high.y - low.y));
    (0..columns * rows)
        .map(|index| {
            let (column, row) = (index % columns, index / columns);
            let offset = Point::new(column as f64 + 0.5, row as f64 + 0.5);
            low.plus(offset.times(step_m))
        })
        .map(|at| Pose { at, heading: 0.0 })
        .filter(|pose| walls.is_free(OUTLINE, *pose) && is_inside(&walls, pose.at))
        .max_by(|a, b| walls.clearance_m(a.at).total_cmp(&walls.clearance_m(b.at)))
        .ok_or(StartError::NoRoom)
}

/// Whether walls are visible in all directions.
fn is_inside(walls: &Walls, place: Point) -> bool {
    (0..36).all(|ray| {
        let angle = f64::from(ray) * 10f64.to_radians() + 0.01;
        walls.cast(place, angle, f64::INFINITY).is_some()
    })
}

#[cfg(test)]
mod tests;
