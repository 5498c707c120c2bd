//! The true readings of a board fixed to the robot, computed from the robot's motion. PURE.

use std::time::Duration;

use amber_map::Point;

use super::Axes;
use crate::world::{TRACK_M, World};

/// Standard gravity in m/s^2.
const GRAVITY_M_S2: f64 = 9.806_65;

/// The Earth's field in Krakow, in gauss: towards north, which is up on the map, and into the
/// ground.
const FIELD_NORTH_GAUSS: f64 = 0.2;
const FIELD_DOWN_GAUSS: f64 = 0.45;

/// Speeds are averaged over this time, because the body is not rigid.
const WINDOW: Duration = Duration::from_millis(20);

/// The readings of perfect chips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Proper acceleration: 1 g up at rest.
    pub specific_force_g: Axes,
    /// Turn rate in degrees per second, positive counter-clockwise about each axis.
    pub turn_deg_s: Axes,
    /// The magnetic field in gauss.
    pub field_gauss: Axes,
    /// The speed of the wheels, which makes the board vibrate.
    pub speed_m_s: f64,
}

impl Motion {
    /// The motion of the robot at a time within the last half second.
    #[must_use]
    pub fn of(world: &World, time: Duration) -> Self {
        // The world advances in steps; its last step may be before this time.
        let now = time.min(world.now());
        let before = now.saturating_sub(WINDOW);
        let earlier = before.saturating_sub(WINDOW);
        let poses = [earlier, before, now].map(|time| world.pose_at(time));
        let window_s = WINDOW.as_secs_f64();
        let velocity = |k: usize| poses[k].at.minus(poses[k - 1].at).times(1.0 / window_s);
        let pushed = velocity(2).minus(velocity(1)).times(1.0 / window_s);
        let turned = poses[2].heading - poses[1].heading;
        let heading = poses[2].heading;
        let felt = pushed.turned(-heading).times(1.0 / GRAVITY_M_S2);
        let field = Point::new(0.0, FIELD_NORTH_GAUSS).turned(-heading);
        Self {
            specific_force_g: [-felt.y, felt.x, 1.0],
            turn_deg_s: [0.0, 0.0, (turned / window_s).to_degrees()],
            field_gauss: [-field.y, field.x, -FIELD_DOWN_GAUSS],
            speed_m_s: velocity(2).length() + (turned / window_s).abs() * TRACK_M / 2.0,
        }
    }
}
