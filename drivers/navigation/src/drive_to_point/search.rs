//! A turn on the spot while the pose is undecided, so that the laser sees more of the room. PURE.
//!
//! Two rooms can look alike from one place. The location driver decides when it has seen enough, so the
//! robot turns once around. The collision monitor still decides whether it moves at all.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::wrap;

use super::{DriveToPoint, State, TURN_ROOM_M};
use crate::kinematics::Twist;

/// Most poses are decided at rest, within this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// Slow enough for people nearby, and for scans that take a tenth of a second.
const RATE_RAD_S: f64 = 0.6;
/// The turn has failed after this time, for example because something is in the way.
const LONGEST: Duration = Duration::from_secs(20);

/// The turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    since: Duration,
    /// 1 to the left, -1 to the right, 0 if there is no room.
    direction: f64,
    /// The last heading by the wheels, and the angle since the start.
    heading: f64,
    turned_rad: f64,
}

impl DriveToPoint {
    /// The motion while the pose is undecided. After a whole turn, the robot stands.
    pub(super) fn search(&mut self, now: Duration) -> (State, Twist) {
        let heading = self.monitor.odometry().pose_at(now).heading;
        let room_m = |angle_rad: f64| self.monitor.turn_room_m(now, angle_rad);
        let mut search = self.search.unwrap_or_else(|| Search {
            since: now,
            direction: [1.0, -1.0]
                .into_iter()
                .find(|direction| room_m(direction * TAU) >= TURN_ROOM_M)
                .unwrap_or_default(),
            heading,
            turned_rad: 0.0,
        });
        search.turned_rad += wrap(heading - search.heading).abs();
        search.heading = heading;
        self.search = Some(search);
        let time = now.saturating_sub(search.since);
        if time < PATIENCE {
            (State::Searching, Twist::STOP)
        } else if search.direction == 0.0 || search.turned_rad >= TAU || time > LONGEST {
            (State::NoPose, Twist::STOP)
        } else {
            let twist = Twist {
                forward_m_s: 0.0,
                turn_rad_s: search.direction * RATE_RAD_S,
            };
            (State::Searching, twist)
        }
    }
}
