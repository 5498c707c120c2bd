//! The rules of the collision monitor. Each gives a factor for all wheels. PURE.

use std::time::Duration;

use amber_map::{Outline, Point, Pose};

use super::{Config, Footprint, Monitor, Reason};
use crate::kinematics::{Twist, Wheels};
use crate::sight::Pace;

/// An obstacle inside the margin ends the footprint this much before it.
const GAP_M: f64 = 0.001;
/// Slower wheels do not count as moving.
pub(super) const CREEP_M_S: f64 = 0.02;
/// The robot crawls this fast after its laser has seen nothing for a short time.
const BLIND_M_S: f64 = 0.1;
/// Slower wheels have no momentum to speak of.
const MOMENTUM_M_S: f64 = 0.05;
/// Backwards, the robot must know the place of its rear edge after so many steps...
const UNSEEN_STEPS: u32 = 3;
/// ...of this length of the fastest wheel: it stops within 60 mm...
const UNSEEN_STEP_M: f64 = 0.03;
/// ...with this margin behind the edge...
const UNSEEN_BEHIND_M: f64 = 0.02;
/// ...and beside it...
const UNSEEN_BESIDE_M: f64 = 0.01;
/// ...at so many points, which are 40 mm apart.
const REAR_POINTS: u32 = 9;

impl Monitor {
    /// Obstacles farther away than this do not matter at this speed.
    pub(super) fn reach_m(&self, speed_m_s: f64) -> f64 {
        let Config { braking_m_s2, .. } = self.config;
        let moving_m_s = self
            .config
            .drive
            .wheels(self.odometry.latest_twist())
            .fastest_m_s()
            .max(speed_m_s);
        let stopping_m =
            moving_m_s * self.reaction_s() + moving_m_s * moving_m_s / (2.0 * braking_m_s2);
        let margin_m = self.config.stop_ahead_m.max(self.config.limit_zone_m);
        self.config.outline.radius_m() + margin_m + stopping_m + 0.1
    }

    /// The time until the first contact, in seconds.
    pub(super) fn contact_s(&self, near: &[Point], twist: Twist) -> Option<f64> {
        let beside_m = self.beside_m(near);
        near.iter()
            .filter_map(|point| self.point_contact_s(*point, twist, beside_m))
            .min_by(f64::total_cmp)
    }

    /// The margins at the left and the right side. Beside a wall that is nearer than the margin they
    /// end at this wall, so that the robot may drive along it.
    fn beside_m(&self, near: &[Point]) -> [f64; 2] {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let mut sides_m = [self.config.stop_beside_m; 2];
        for point in near {
            let side_m = point.y.abs() - half_width_m;
            if side_m >= 0.0 && point.x <= front_m && point.x >= -rear_m {
                let margin_m = &mut sides_m[usize::from(point.y < 0.0)];
                *margin_m = margin_m.min((side_m - GAP_M).max(0.0));
            }
        }
        sides_m
    }

    fn point_contact_s(&self, point: Point, twist: Twist, beside_m: [f64; 2]) -> Option<f64> {
        let footprint = self.footprint();
        if footprint.contains(point) {
            // It may be noise, or the robot touches. Only leaving is allowed.
            return deepens(&footprint, point, twist).then_some(0.0);
        }
        let beside_m = beside_m[usize::from(point.y < 0.0)];
        self.margin(point, twist.forward_m_s, beside_m)
            .time_to_contact_s(point, twist)
    }

    /// The footprint with its margins, but at most up to just before a point.
    fn margin(&self, point: Point, forward_m_s: f64, beside_m: f64) -> Footprint {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let is_ahead = point.x > 0.0;
        let (end_m, way_m) = if is_ahead {
            (front_m, point.x - front_m)
        } else {
            (rear_m, -point.x - rear_m)
        };
        // On the spot, or away from the point, there is no direction of motion to guard.
        let towards = if is_ahead {
            forward_m_s > 0.0
        } else {
            forward_m_s < 0.0
        };
        let mut ahead_m = if towards {
            self.config.stop_ahead_m
        } else {
            self.config.stop_beside_m
        };
        let side_m = point.y.abs() - half_width_m;
        if way_m < ahead_m && side_m <= beside_m {
            ahead_m = (way_m - GAP_M).max(0.0);
        }
        let grown_m = end_m + ahead_m;
        let other_m = self.config.stop_beside_m;
        Footprint {
            front_m: if is_ahead { grown_m } else { front_m + other_m },
            rear_m: if is_ahead { rear_m + other_m } else { grown_m },
            half_width_m: half_width_m + beside_m,
        }
    }

    pub(super) fn approach(&self, contact_s: Option<f64>, speed_m_s: f64) -> (f64, Reason) {
        let Some(contact_s) = contact_s else {
            return (1.0, Reason::Free);
        };
        let safe_m_s = safe_speed_m_s(
            contact_s * speed_m_s,
            self.config.braking_m_s2,
            self.reaction_s(),
        );
        if safe_m_s < CREEP_M_S {
            (0.0, Reason::Blocked)
        } else {
            (safe_m_s / speed_m_s, Reason::Approach)
        }
    }

    /// Whether the robot is so fast that it must brake hard now.
    pub(super) fn has_momentum(&self, near: &[Point], command: Wheels) -> bool {
        let moving = self.odometry.latest_twist();
        let wheels = self.config.drive.wheels(moving);
        let speed_m_s = wheels.fastest_m_s();
        let mut pairs = wheels.all_m_s().into_iter().zip(command.all_m_s());
        let opposes = pairs.by_ref().map(|(now, next)| now * next).sum::<f64>() < -1e-9;
        if speed_m_s < MOMENTUM_M_S || opposes {
            return false;
        }
        // Twice the braking that is certain, and half the reaction: no scan has to arrive.
        let stopping_m = speed_m_s * self.reaction_s() / 2.0
            + speed_m_s * speed_m_s / (4.0 * self.config.braking_m_s2);
        let footprint = self.footprint();
        near.iter()
            .filter(|point| !footprint.contains(**point))
            .filter_map(|point| footprint.time_to_contact_s(*point, moving))
            .any(|contact_s| contact_s * speed_m_s < stopping_m)
    }

    /// The laser has seen nothing for a short time, although it should.
    pub(super) fn blind_factor(&self, now: Duration, speed_m_s: f64) -> f64 {
        match self.sight.pace(now) {
            Pace::Free => 1.0,
            Pace::Crawl => (BLIND_M_S / speed_m_s).min(1.0),
            Pace::Stop => 0.0,
        }
    }

    pub(super) fn scan_factor(&self, now: Duration) -> f64 {
        let (fresh, timeout) = (
            self.rhythm.fresh(&self.config),
            self.rhythm.timeout(&self.config),
        );
        let age = now.saturating_sub(self.heard.or(self.scanned).unwrap_or_default());
        if age <= fresh {
            1.0
        } else if age >= timeout {
            0.0
        } else {
            (timeout - age).as_secs_f64() / (timeout - fresh).as_secs_f64()
        }
    }

    pub(super) fn limit(&self, near: &[Point], twist: Twist) -> f64 {
        let zone_m = self.config.limit_zone_m;
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let zone = Footprint {
            front_m: front_m + if twist.forward_m_s > 0.0 { zone_m } else { 0.0 },
            rear_m: rear_m + if twist.forward_m_s < 0.0 { zone_m } else { 0.0 },
            half_width_m: half_width_m + zone_m,
        };
        if zone_m <= 0.0 || !near.iter().any(|point| zone.contains(*point)) {
            return 1.0;
        }
        let forward = self.config.limit_forward_m_s / twist.forward_m_s.abs();
        let turn = self.config.limit_turn_rad_s / twist.turn_rad_s.abs();
        forward.min(turn).min(1.0)
    }

    fn reaction_s(&self) -> f64 {
        self.rhythm.reaction_s(&self.config)
    }

    pub(super) fn reverse(&self, twist: Twist) -> f64 {
        if twist.forward_m_s < 0.0 && !self.sees_behind {
            (self.config.limit_reverse_m_s / -twist.forward_m_s).min(1.0)
        } else {
            1.0
        }
    }

    /// Whether the robot would drive backwards to a place where it has never looked. A scanner that
    /// sees what is behind looks there now, as ahead.
    pub(super) fn is_unseen(&self, robot: Pose, twist: Twist) -> bool {
        if self.config.reverses_blindly || self.sees_behind || twist.forward_m_s >= 0.0 {
            return false;
        }
        let Outline {
            half_length_m,
            half_width_m,
        } = self.config.outline;
        let fastest_m_s = self.config.drive.wheels(twist).fastest_m_s();
        let half_m = half_width_m + UNSEEN_BESIDE_M;
        let mut steps = (1..=UNSEEN_STEPS).map(|step| {
            let time_s = UNSEEN_STEP_M * f64::from(step) / fastest_m_s;
            robot.along_arc(twist.forward_m_s * time_s, twist.turn_rad_s * time_s)
        });
        !steps.all(|pose| {
            let mut edge = (0..=REAR_POINTS).map(|index| {
                let y_m = half_m * (2.0 * f64::from(index) / f64::from(REAR_POINTS) - 1.0);
                pose.global(Point::new(-half_length_m - UNSEEN_BEHIND_M, y_m))
            });
            edge.all(|at| self.looked.is_free(at, self.config.outline))
        })
    }

    pub(super) fn lateral(&self, twist: Twist) -> f64 {
        let lateral_m_s2 = (twist.forward_m_s * twist.turn_rad_s).abs();
        // Both factors of the product are scaled.
        (self.config.lateral_m_s2 / lateral_m_s2).sqrt().min(1.0)
    }

    /// A remembered point, nearer to the footprint by the drift of dead reckoning, but not in it.
    pub(super) fn drifted(&self, point: Point) -> Point {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let beside = Point::new(
            point.x.clamp(-rear_m, front_m),
            point.y.clamp(-half_width_m, half_width_m),
        );
        let way = point.minus(beside);
        let distance_m = way.length();
        let left_m = (distance_m - self.config.drift_m).max(GAP_M);
        if left_m < distance_m {
            beside.plus(way.times(left_m / distance_m))
        } else {
            point
        }
    }
}

/// The highest speed from which a robot stops within a distance, if it reacts after `reaction_s` and
/// then brakes evenly.
#[must_use]
pub fn safe_speed_m_s(distance_m: f64, braking_m_s2: f64, reaction_s: f64) -> f64 {
    let distance_m = distance_m.max(0.0);
    braking_m_s2 * ((reaction_s * reaction_s + 2.0 * distance_m / braking_m_s2).sqrt() - reaction_s)
}

/// Whether a point inside the footprint gets deeper inside with this motion.
fn deepens(footprint: &Footprint, point: Point, twist: Twist) -> bool {
    // The velocity of the point as seen from the robot.
    let velocity = Point::new(
        -twist.forward_m_s + twist.turn_rad_s * point.y,
        -twist.turn_rad_s * point.x,
    );
    let (outward, _) = [
        (Point::new(1.0, 0.0), footprint.front_m - point.x),
        (Point::new(-1.0, 0.0), point.x + footprint.rear_m),
        (Point::new(0.0, 1.0), footprint.half_width_m - point.y),
        (Point::new(0.0, -1.0), point.y + footprint.half_width_m),
    ]
    .into_iter()
    .min_by(|a, b| a.1.total_cmp(&b.1))
    .unwrap_or_default();
    velocity.dot(outward) < 0.0
}
