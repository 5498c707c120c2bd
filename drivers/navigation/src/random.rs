//! Random numbers. PURE.

use std::f64::consts::PI;

/// A random number with mean 0 and standard deviation 1 (Box and Muller, 1958).
#[must_use]
pub fn gaussian(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (2.0 * PI * random.f64()).cos()
}
