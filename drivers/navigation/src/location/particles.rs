//! Weighted particles: weights, resampling, and how many particles are needed. PURE.

use amber_map::Pose;

/// One hypothesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Particle {
    /// The pose of the robot.
    pub pose: Pose,
    /// The probability; the sum over all particles is 1.
    pub weight: f64,
}

/// The number of particles by KLD sampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleSize {
    /// The side length of a bin in metres.
    pub bin_m: f64,
    /// The range of headings of a bin in radians.
    pub bin_rad: f64,
    /// The maximum error of the distribution.
    pub error: f64,
    /// The quantile of the normal distribution for the probability that the error is smaller: 2.326
    /// for 99 %.
    pub quantile: f64,
    /// The smallest number of particles.
    pub min: usize,
    /// The largest number of particles.
    pub max: usize,
}

impl Default for SampleSize {
    fn default() -> Self {
        Self {
            bin_m: 0.1,
            bin_rad: 10f64.to_radians(),
            error: 0.05,
            quantile: 2.326,
            min: 300,
            max: 5000,
        }
    }
}

impl SampleSize {
    /// The number of particles for a distribution over this number of bins: Fox, "Adapting the
    /// sample size in particle filters through KLD-sampling", International Journal of Robotics
    /// Research 22 (2003), equation 7.
    #[must_use]
    pub fn particles_for(&self, bins: usize) -> usize {
        if bins < 2 {
            return self.min;
        }
        let free = bins as f64 - 1.0;
        let part = 2.0 / (9.0 * free);
        let cube = (1.0 - part + part.sqrt() * self.quantile).powi(3);
        let count = free / (2.0 * self.error) * cube;
        (count.ceil() as usize).clamp(self.min, self.max)
    }

    /// The number of bins that contain particles.
    #[must_use]
    pub fn bins(&self, particles: &[Particle]) -> usize {
        let cell = |length_m: f64| (length_m / self.bin_m).floor() as i32;
        let turn = std::f64::consts::TAU;
        let mut keys: Vec<_> = particles
            .iter()
            .map(|particle| {
                let sector = (particle.pose.heading.rem_euclid(turn) / self.bin_rad) as i32;
                (cell(particle.pose.at.x), cell(particle.pose.at.y), sector)
            })
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }
}

/// Multiplies each weight by a likelihood, given as a logarithm, and scales the sum to 1.
pub fn weigh(particles: &mut [Particle], logs: &[f64]) {
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (particle, log) in particles.iter_mut().zip(logs) {
        particle.weight *= (log - best).exp();
    }
    scale(particles);
}

/// Scales the sum of the weights to 1; equal weights if all are 0.
pub fn scale(particles: &mut [Particle]) {
    let sum: f64 = particles.iter().map(|particle| particle.weight).sum();
    let equal = 1.0 / particles.len().max(1) as f64;
    for particle in particles {
        particle.weight = if sum > 0.0 && sum.is_finite() {
            particle.weight / sum
        } else {
            equal
        };
    }
}

/// The number of particles with equal weights that would be as good.
#[must_use]
pub fn effective(particles: &[Particle]) -> f64 {
    let squares: f64 = particles
        .iter()
        .map(|particle| particle.weight.powi(2))
        .sum();
    if squares > 0.0 { 1.0 / squares } else { 0.0 }
}

/// Draws particles in proportion to their weights, with low variance: one random number selects all
/// (Probabilistic Robotics, Thrun, Burgard, Fox, 2005, table 4.4). The weights become equal.
#[must_use]
pub fn resample(particles: &[Particle], count: usize, random: &mut fastrand::Rng) -> Vec<Particle> {
    let Some(last) = particles.last() else {
        return Vec::new();
    };
    let step = 1.0 / count as f64;
    let offset = random.f64() * step;
    let mut rest = particles.iter();
    let mut current = *last;
    let mut sum = 0.0;
    let mut draw = |index: usize| {
        let target = offset + index as f64 * step;
        while sum <= target {
            let Some(next) = rest.next() else { break };
            current = *next;
            sum += next.weight;
        }
        Particle {
            weight: step,
            ..current
        }
    };
    (0..count).map(&mut draw).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn particles(weights: &[f64]) -> Vec<Particle> {
        let particle = |(index, weight): (usize, &f64)| Particle {
            pose: Pose::new(index as f64, 0.0, 0.0),
            weight: *weight,
        };
        weights.iter().enumerate().map(particle).collect()
    }

    /// Values computed from the formula with another program, for error 0.05 and 99 %.
    #[test]
    fn the_sample_size_follows_the_formula() {
        let size = SampleSize {
            min: 1,
            max: 1_000_000,
            ..SampleSize::default()
        };
        for (bins, count) in [
            (0, 1),
            (1, 1),
            (2, 66),
            (10, 217),
            (100, 1347),
            (1000, 11060),
        ] {
            assert_eq!(size.particles_for(bins), count, "{bins}");
        }
        let bounded = SampleSize::default();
        assert_eq!(bounded.particles_for(1), 300);
        assert_eq!(bounded.particles_for(100_000), 5000);
    }

    #[test]
    fn bins_are_counted_once() {
        let size = SampleSize::default();
        let pose = |x, heading| Particle {
            pose: Pose::new(x, 0.0, heading),
            weight: 0.0,
        };
        let full = std::f64::consts::TAU;
        let all = [
            pose(0.01, 0.1),
            pose(0.09, 0.1 + full),
            pose(0.11, 0.1),
            pose(0.11, 0.3),
        ];
        assert_eq!(size.bins(&all), 3);
        assert_eq!(size.bins(&[]), 0);
    }

    #[test]
    fn weights_follow_the_likelihoods() {
        let mut all = particles(&[0.5, 0.25, 0.25]);
        weigh(&mut all, &[-1000.0, -1000.0 + 2f64.ln(), -3000.0]);
        let weights: Vec<f64> = all.iter().map(|particle| particle.weight).collect();
        assert!((weights[0] - 0.5).abs() < 1e-9 && (weights[1] - 0.5).abs() < 1e-9);
        assert_eq!(weights[2], 0.0);
        weigh(&mut all, &[f64::NEG_INFINITY; 3]);
        assert!((effective(&all) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn resampling_needs_particles() {
        assert!(resample(&[], 10, &mut fastrand::Rng::with_seed(1)).is_empty());
    }

    proptest! {
        #[test]
        fn resampling_preserves_the_expectation(
            weights in prop::collection::vec(0.0..1.0f64, 1..20),
            count in 1..100usize,
            seed in 0..1000u64,
        ) {
            prop_assume!(weights.iter().sum::<f64>() > 0.0);
            let mut all = particles(&weights);
            scale(&mut all);
            let drawn = resample(&all, count, &mut fastrand::Rng::with_seed(seed));
            prop_assert_eq!(drawn.len(), count);
            // Low variance: each particle is drawn as often as expected, up to one.
            for particle in &all {
                let times = drawn.iter().filter(|other| other.pose == particle.pose).count();
                let expected = particle.weight * count as f64;
                prop_assert!((times as f64 - expected).abs() < 1.0 + 1e-6, "{times} {expected}");
            }
            let sum: f64 = drawn.iter().map(|particle| particle.weight).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn over_many_draws_the_mean_is_exact() {
        let all = particles(&[0.05, 0.15, 0.3, 0.5]);
        let mut random = fastrand::Rng::with_seed(3);
        let mut sum = 0.0;
        for _ in 0..20_000 {
            let drawn = resample(&all, 3, &mut random);
            sum += drawn.iter().map(|particle| particle.pose.at.x).sum::<f64>() / 3.0;
        }
        let mean = sum / 20_000.0;
        assert!((mean - 2.25).abs() < 0.01, "{mean}");
    }
}
