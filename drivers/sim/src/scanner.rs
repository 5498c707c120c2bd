//! What the simulated laser scanners that measure point by point share. PURE.

use crate::wheels::gaussian;

/// The errors of distances in mm: their standard deviation, and the largest.
const SIGMA_MM: f64 = 5.0;
const MAX_ERROR_MM: f64 = 15.0;
/// The direction of a triangulated point is refined until it is exact, but at edges only so often.
const EXACT_DEG: f64 = 0.01;
const ROUNDS: u32 = 4;

/// The distance in metres of what a scanner sees; `None` without an echo. A triangulating one looks
/// sideways, the more so the farther it sees: `shift` gives the degrees for a distance in mm, and
/// `behind_deg` is that of the last point.
pub(crate) fn seen_m(
    behind_deg: &mut f64,
    head_deg: f64,
    shift: impl Fn(f64) -> f64,
    mut at: impl FnMut(f64) -> Option<f64>,
) -> Option<f64> {
    let mut seen_m = at(head_deg - *behind_deg);
    for round in 1.. {
        let wanted_deg = shift(seen_m? * 1_000.0);
        if (wanted_deg - *behind_deg).abs() < EXACT_DEG {
            break;
        }
        // At an edge, it sees neither what is near nor what is behind it.
        *behind_deg = wanted_deg;
        let is_enough = round > ROUNDS;
        seen_m = at(head_deg - wanted_deg).filter(|_| !is_enough);
    }
    seen_m
}

/// The distance in mm with an error; `None` if nothing is within these limits.
pub(crate) fn measured_mm(
    seen_m: Option<f64>,
    (min_mm, max_mm): (f64, f64),
    random: &mut fastrand::Rng,
) -> Option<f64> {
    let error_mm = (gaussian(random) * SIGMA_MM).clamp(-MAX_ERROR_MM, MAX_ERROR_MM);
    let mm = seen_m? * 1_000.0;
    (min_mm..=max_mm).contains(&mm).then_some(mm + error_mm)
}

/// Lets a robot use a scanner at its centre. The scanner has the methods of [`Twin`], and its model
/// has the limits of its distances.
///
/// [`Twin`]: crate::twin::Twin
macro_rules! twin {
    ($scanner:ty) => {
        impl crate::twin::Twin for $scanner {
            fn advance(&mut self, now: Duration, around: &mut crate::twin::Surroundings<'_>) {
                let world = around.world;
                let limit_m = self.model.range_mm().1 / 1_000.0;
                self.measure(now, around.random, |time, angle_deg| {
                    // On the robot, angles are counter-clockwise.
                    world.beam(time, -angle_deg.to_radians(), limit_m)
                });
            }

            fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
                Self::handle_bytes(self, now, bytes);
            }

            fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
                Self::poll_output(self)
            }

            fn next_timeout(&self) -> Option<Duration> {
                self.next_packet()
            }

            fn handle_plug_in(&mut self, now: Duration) {
                *self = self.restarted(now);
            }
        }
    };
}
pub(crate) use twin;
