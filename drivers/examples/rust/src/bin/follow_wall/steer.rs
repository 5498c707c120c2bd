//! Computes the speeds of the wheels from a laser scan, to keep a wall on the right-hand side.
//! PURE.

use amber_sdk::{Scan, WheelSpeeds};

const SPEED_MM_S: f64 = 200.0;
/// The distance to keep.
const WALL_MM: f64 = 600.0;
/// If an obstacle ahead is nearer, turn left.
const FREE_MM: f64 = 700.0;
/// Half of the width that must be free.
const HALF_WIDTH_MM: f64 = 260.0;

/// The reaction to a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reaction {
    /// Millimetres to the wall on the right; `None` if none is near.
    pub wall_mm: Option<i32>,
    pub speeds: WheelSpeeds,
}

pub fn steer(scan: &Scan) -> Reaction {
    let wall_mm = scan.nearest(40.0..=120.0).map(|point| point.distance_mm);
    if ahead_mm(scan) < FREE_MM {
        return Reaction {
            wall_mm,
            speeds: sides(-SPEED_MM_S / 2.0, SPEED_MM_S / 2.0),
        };
    }
    // Without a wall, steer as if it were far away, to find one.
    let beside = wall_mm.map_or(2.0 * WALL_MM, f64::from).min(2.0 * WALL_MM);
    // Too far away: the left wheels turn faster, which steers right.
    let turn = ((beside - WALL_MM) / 800.0).clamp(-0.5, 0.5) * SPEED_MM_S;
    Reaction {
        wall_mm,
        speeds: sides(SPEED_MM_S + turn, SPEED_MM_S - turn),
    }
}

/// The free distance straight ahead.
fn ahead_mm(scan: &Scan) -> f64 {
    let ahead = scan.valid_points().filter_map(|point| {
        let (forward_m, right_m) = point.x_y_m();
        // Points exactly beside the robot are ahead only by a rounding error.
        (forward_m > 0.001 && right_m.abs() * 1000.0 < HALF_WIDTH_MM).then_some(forward_m * 1000.0)
    });
    ahead.fold(f64::INFINITY, f64::min)
}

fn sides(left_mm_s: f64, right_mm_s: f64) -> WheelSpeeds {
    WheelSpeeds::sides(left_mm_s.round() as i32, right_mm_s.round() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wall and speeds for points given as degrees and millimetres.
    fn steered(points: &[(f64, i32)]) -> (Option<i32>, i32, i32) {
        let (angles, distances): (Vec<_>, Vec<_>) = points.iter().copied().unzip();
        let step = steer(&Scan::new(&angles, &distances, None).unwrap());
        let WheelSpeeds {
            front_left_mm_s: left,
            front_right_mm_s: right,
            ..
        } = step.speeds;
        assert_eq!(step.speeds, WheelSpeeds::sides(left, right));
        (step.wall_mm, left, right)
    }

    #[test]
    fn scans_give_the_expected_speeds() {
        for (points, expected, why) in [
            (&[(90.0, 600)][..], (Some(600), 200, 200), "just right"),
            (
                &[(90.0, 520)],
                (Some(520), 180, 220),
                "too near: to the left",
            ),
            (
                &[(90.0, 680)],
                (Some(680), 220, 180),
                "too far: to the right",
            ),
            (&[(90.0, 300)], (Some(300), 125, 275), "nearer: turn more"),
            (
                &[(80.0, 100)],
                (Some(100), -100, 100),
                "within its own width: turn",
            ),
            (
                &[(90.0, 5000)],
                (Some(5000), 300, 100),
                "no sharper turn than this",
            ),
            (&[], (None, 300, 100), "no wall: look for one to the right"),
            (
                &[(-90.0, 300)],
                (None, 300, 100),
                "the left side is ignored",
            ),
            (&[(0.0, 650)], (None, -100, 100), "a wall ahead: turn"),
            (
                &[(0.0, 650), (90.0, 600)],
                (Some(600), -100, 100),
                "a corner: turn",
            ),
            (
                &[(0.0, 750), (90.0, 600)],
                (Some(600), 200, 200),
                "a corner far ahead",
            ),
            (
                &[(30.0, 600)],
                (None, 300, 100),
                "300 mm aside is not in the way",
            ),
            (&[(20.0, 600)], (None, -100, 100), "205 mm aside is"),
            (&[(180.0, 100)], (None, 300, 100), "behind is not ahead"),
            (
                &[(0.0, 5), (90.0, 0)],
                (None, 300, 100),
                "codes are not distances",
            ),
            (
                &[(40.0, 900), (90.0, 600)],
                (Some(600), 200, 200),
                "the nearest counts",
            ),
        ] {
            assert_eq!(steered(points), expected, "{why}");
        }
    }

    #[test]
    fn the_speed_limit_of_the_wheels_is_kept() {
        for angle in -120..=120 {
            for distance in [0, 20, 100, 259, 600, 701, 1200, 5600, 60_000] {
                let (_, left, right) = steered(&[(f64::from(angle), distance)]);
                assert!(
                    left.abs() <= 300 && right.abs() <= 300,
                    "{angle} {distance}"
                );
            }
        }
    }
}
