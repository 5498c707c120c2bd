//! Filters implausible poses: frames have no checksum, and a flipped bit can change the marker or
//! the position. PURE.

use std::time::{Duration, Instant};

use amber_values::MarkerPose;

use super::markers::wrap_deg;

/// A pose older than this is not compared with the next one.
const MEMORY: Duration = Duration::from_secs(1);

/// The jump of poses while the robot stands still, and its maximum speed.
const JUMP_CM: f64 = 15.0;
const FASTEST_CM_PER_S: f64 = 200.0;

/// The same for angles.
const JUMP_DEG: f64 = 15.0;
const FASTEST_DEG_PER_S: f64 = 360.0;

/// Accepts a pose that is close to the previous one, and after a jump the second pose that agrees.
#[derive(Clone, Debug, Default)]
pub(super) struct Plausible {
    last: Option<(Instant, MarkerPose)>,
    suspect: Option<(Instant, MarkerPose)>,
    /// Whether poses from different markers share one frame.
    is_map: bool,
}

impl Plausible {
    pub(super) fn new(is_map: bool) -> Self {
        Self {
            is_map,
            ..Self::default()
        }
    }

    /// Whether to accept a pose.
    pub(super) fn accepts(&mut self, now: Instant, pose: MarkerPose) -> bool {
        let is_recent =
            |(at, _): &(Instant, MarkerPose)| now.saturating_duration_since(*at) <= MEMORY;
        let last = self.last.filter(is_recent);
        let suspect = self.suspect.filter(is_recent);
        let follows = |before| self.follows(now, pose, before);
        if last.is_none_or(follows) || suspect.is_some_and(follows) {
            self.last = Some((now, pose));
            self.suspect = None;
            return true;
        }
        self.suspect = Some((now, pose));
        false
    }

    fn follows(&self, now: Instant, pose: MarkerPose, (at, before): (Instant, MarkerPose)) -> bool {
        if !self.is_map && pose.marker != before.marker {
            return false;
        }
        let seconds = now.saturating_duration_since(at).as_secs_f64();
        let way_cm = (pose.x_cm - before.x_cm).hypot(pose.y_cm - before.y_cm);
        let turn_deg = wrap_deg(pose.heading_deg - before.heading_deg).abs();
        way_cm <= JUMP_CM + FASTEST_CM_PER_S * seconds
            && turn_deg <= JUMP_DEG + FASTEST_DEG_PER_S * seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pose(marker: u32, x_cm: f64, heading_deg: f64) -> MarkerPose {
        MarkerPose {
            x_cm,
            y_cm: 0.0,
            z_cm: 240.0,
            heading_deg,
            marker,
            timestamp_ms: None,
            lost_ms: None,
        }
    }

    fn check(is_map: bool, poses: &[(MarkerPose, bool)]) {
        let mut plausible = Plausible::new(is_map);
        let mut now = Instant::now();
        for (pose, expected) in poses {
            assert_eq!(plausible.accepts(now, *pose), *expected, "{pose:?}");
            now += Duration::from_millis(100);
        }
    }

    #[test]
    fn a_jump_counts_when_it_is_confirmed() {
        let here = (pose(7, 0.0, 179.0), true);
        check(
            false,
            &[
                here,
                (pose(7, 30.0, -170.0), true),
                (pose(7, 800.0, -170.0), false),
                here,
                (pose(7, 0.0, 50.0), false),
                (pose(7, -800.0, 50.0), false),
                (pose(7, -801.0, 51.0), true),
                (pose(7, -802.0, 52.0), true),
            ],
        );
    }

    #[test]
    fn a_new_marker_needs_confirmation_unless_both_are_on_a_map() {
        check(
            false,
            &[
                (pose(7, 0.0, 0.0), true),
                (pose(8, 0.0, 0.0), false),
                (pose(8, 0.0, 0.0), true),
            ],
        );
        check(
            true,
            &[
                (pose(7, 0.0, 0.0), true),
                (pose(8, 1.0, 0.0), true),
                (pose(8, 500.0, 0.0), false),
            ],
        );
    }

    #[test]
    fn after_a_pause_any_pose_is_accepted() {
        let mut plausible = Plausible::new(true);
        let now = Instant::now();
        assert!(plausible.accepts(now, pose(7, 0.0, 0.0)));
        let later = now + MEMORY + Duration::from_millis(1);
        assert!(plausible.accepts(later, pose(8, 900.0, 0.0)));
    }
}
