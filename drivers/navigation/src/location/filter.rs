//! The particle filter: Monte Carlo localization. PURE.
//!
//! Probabilistic Robotics (Thrun, Burgard, Fox, 2005): chapter 8.3, with KLD sampling (table 8.4)
//! for the number of particles. Augmented MCL (table 8.3) inserts random poses when a fast average of
//! the likelihood falls below a slow one. That also happens when a door is closed, so here the search
//! is something else, see `rivals`.

use amber_map::{Point, Pose, wrap};

use super::map::LocationMap;
use super::motion::Spread;
use super::particles::{self, Particle, SampleSize};
use crate::grid::DistanceField;
use crate::likelihood::Likelihood;
use crate::odometry::Motion;
use crate::random::gaussian;

/// Resampling starts when the particles are as good as this part of them with equal weights.
const RESAMPLE_BELOW: f64 = 0.5;
/// The probability that a measured pose is wrong.
const WRONG_POSE: f64 = 0.05;
/// The logarithm of the likelihood of a position where the robot cannot be.
const NOT_FREE_LOG: f64 = -3.0;

/// The particles.
#[derive(Clone, Debug)]
pub struct Filter {
    particles: Vec<Particle>,
    size: SampleSize,
}

impl Filter {
    /// Creates particles all over the free space.
    #[must_use]
    pub fn everywhere(map: &LocationMap, size: SampleSize, random: &mut fastrand::Rng) -> Self {
        let mut new = Self {
            particles: Vec::new(),
            size,
        };
        new.particles = (0..size.max).filter_map(|_| uniform(map, random)).collect();
        particles::scale(&mut new.particles);
        new
    }

    /// Moves all particles to the surroundings of a pose.
    pub fn place(&mut self, pose: Pose, sigma_m: f64, sigma_rad: f64, random: &mut fastrand::Rng) {
        let mut draw = |sigma: f64| sigma * gaussian(random);
        let count = self.size.min;
        self.particles = (0..count)
            .map(|_| Particle {
                pose: Pose::new(
                    pose.at.x + draw(sigma_m),
                    pose.at.y + draw(sigma_m),
                    pose.heading + draw(sigma_rad),
                ),
                weight: 1.0 / count as f64,
            })
            .collect();
    }

    /// The particles; their weights sum up to 1.
    #[must_use]
    pub fn particles(&self) -> &[Particle] {
        &self.particles
    }

    /// Moves all particles by a motion with random errors.
    pub fn predict(&mut self, motion: &Motion, spread: Spread, random: &mut fastrand::Rng) {
        for particle in &mut self.particles {
            particle.pose = spread.draw(particle.pose, motion, random);
        }
    }

    /// Weighs all particles by points in the frame of the robot, with distances from one of the fields
    /// of the map. `sharpness` scales the logarithm of the likelihood, because the errors of beams are
    /// not independent.
    pub fn weigh(
        &mut self,
        map: &LocationMap,
        (likelihood, field): (&Likelihood, &DistanceField),
        points: &[Point],
        sharpness: f64,
    ) {
        let mut logs = Vec::with_capacity(self.particles.len());
        for particle in &self.particles {
            let log = likelihood.log_of(field, particle.pose, points);
            let free = map.free.is_free(&map.field, particle.pose.at);
            logs.push(sharpness * log + if free { 0.0 } else { NOT_FREE_LOG });
        }
        particles::weigh(&mut self.particles, &logs);
    }

    /// Weighs all particles by a measured pose. A wrong measurement does not rule out all others.
    pub fn weigh_by_pose(&mut self, measured: Pose, sigma_m: f64, sigma_rad: f64) {
        let log = |particle: &Particle| {
            let way_m = particle.pose.at.minus(measured.at).length();
            let turn = wrap(particle.pose.heading - measured.heading);
            let square = (way_m / sigma_m).powi(2) + (turn / sigma_rad).powi(2);
            ((1.0 - WRONG_POSE) * (-square / 2.0).exp() + WRONG_POSE).ln()
        };
        let logs: Vec<f64> = self.particles.iter().map(log).collect();
        particles::weigh(&mut self.particles, &logs);
    }

    /// Shows places with their probabilities: one particle for each.
    pub fn show(&mut self, places: impl Iterator<Item = (Pose, f64)>) {
        let particle = |(pose, weight)| Particle { pose, weight };
        self.particles.clear();
        self.particles.extend(places.map(particle));
        particles::scale(&mut self.particles);
    }

    /// Inserts poses. Resamples if the weights differ too much or there are too many particles.
    pub fn resample(&mut self, inserted: &[Pose], random: &mut fastrand::Rng) {
        let effective = particles::effective(&self.particles);
        let uneven = effective < RESAMPLE_BELOW * self.particles.len() as f64;
        let crowded = self.particles.len() + inserted.len() > self.size.max;
        if !uneven && inserted.is_empty() {
            return;
        }
        // Where all poses fit equally well, each insertion would otherwise add to the others.
        if uneven || crowded {
            let same = particles::resample(&self.particles, self.particles.len(), random);
            let room = self.size.max.saturating_sub(inserted.len()).max(1);
            let count = self.size.particles_for(self.size.bins(&same)).min(room);
            self.particles = particles::resample(&self.particles, count, random);
        }
        let weight = 1.0 / self.particles.len().max(1) as f64;
        let place = |pose: &Pose| Particle {
            pose: *pose,
            weight,
        };
        self.particles.extend(inserted.iter().map(place));
        particles::scale(&mut self.particles);
    }

    /// The memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.particles.capacity() * size_of::<Particle>()
    }
}

fn uniform(map: &LocationMap, random: &mut fastrand::Rng) -> Option<Particle> {
    let at = map.free.draw(&map.field, random)?;
    let heading = (random.f64() - 0.5) * std::f64::consts::TAU;
    Some(Particle {
        pose: Pose { at, heading },
        weight: 1.0,
    })
}
