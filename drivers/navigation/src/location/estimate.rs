//! One pose from many particles. PURE.
//!
//! The mean of all particles is useless while there are several hypotheses: it lies between them.
//! The estimate is the mean of the cluster with the largest sum of weights, as in AMCL.

use amber_map::{Point, Pose, wrap};

use super::particles::Particle;
use super::refine::Matrix;

/// Particles of a cluster are this close to its mean.
const RADIUS_M: f64 = 0.3;
const RADIUS_RAD: f64 = 0.5;
/// How often the mean is moved to that of the particles around it.
const SHIFTS: usize = 3;

/// The mean of a group of particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// The weighted mean.
    pub pose: Pose,
    /// The part of all weights that it has, 0 to 1.
    pub mass: f64,
    /// The covariance of x, y and heading: m², m·rad, rad².
    pub covariance: Matrix,
}

impl Cluster {
    /// The standard deviation of the position, in metres: of the larger axis and the smaller one
    /// together.
    #[must_use]
    pub fn spread_m(&self) -> f64 {
        (self.covariance[0][0] + self.covariance[1][1]).sqrt()
    }

    /// Whether a particle is near the pose.
    #[must_use]
    pub fn has(&self, particle: &Particle) -> bool {
        near(particle, self.pose).is_some()
    }
}

/// The cluster with the largest weight, or `None` without particles. The weights sum up to 1.
#[must_use]
pub fn heaviest(particles: &[Particle]) -> Option<Cluster> {
    let mut pose = heaviest_bin(particles)?;
    for _ in 0..SHIFTS {
        pose = Around::new(particles, pose)?.mean();
    }
    let around = Around::new(particles, pose)?;
    Some(Cluster {
        pose: around.mean(),
        mass: around.mass.min(1.0),
        covariance: around.covariance(particles),
    })
}

/// The pose in the middle of the heaviest bin.
fn heaviest_bin(particles: &[Particle]) -> Option<Pose> {
    let turn = std::f64::consts::TAU;
    let sectors = (turn / RADIUS_RAD).ceil();
    let key = |particle: &Particle| {
        let cell = |length_m: f64| (length_m / RADIUS_M).floor() as i64;
        let sector = (particle.pose.heading.rem_euclid(turn) / turn * sectors) as i64;
        (cell(particle.pose.at.x), cell(particle.pose.at.y), sector)
    };
    let mut keys: Vec<_> = particles
        .iter()
        .enumerate()
        .map(|(index, particle)| (key(particle), index))
        .collect();
    keys.sort_unstable();
    let bins = keys.chunk_by(|a, b| a.0 == b.0);
    let weight = |bin: &[((i64, i64, i64), usize)]| -> f64 {
        bin.iter().map(|(_, index)| particles[*index].weight).sum()
    };
    let best = bins.max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
    let heaviest = best
        .iter()
        .max_by(|a, b| particles[a.1].weight.total_cmp(&particles[b.1].weight))?;
    Some(particles[heaviest.1].pose)
}

/// Sums over the particles around a pose.
struct Around {
    centre: Pose,
    mass: f64,
    at: Point,
    turn: f64,
}

impl Around {
    fn new(particles: &[Particle], centre: Pose) -> Option<Self> {
        let mut new = Self {
            centre,
            mass: 0.0,
            at: Point::default(),
            turn: 0.0,
        };
        for particle in particles {
            if let Some((way, turn)) = near(particle, centre) {
                new.mass += particle.weight;
                new.at = new.at.plus(way.times(particle.weight));
                new.turn += turn * particle.weight;
            }
        }
        (new.mass > 0.0).then_some(new)
    }

    fn mean(&self) -> Pose {
        Pose {
            at: self.centre.at.plus(self.at.times(1.0 / self.mass)),
            heading: wrap(self.centre.heading + self.turn / self.mass),
        }
    }

    fn covariance(&self, particles: &[Particle]) -> Matrix {
        let mean = self.mean();
        let mut sums = [[0.0; 3]; 3];
        for particle in particles {
            if near(particle, self.centre).is_none() {
                continue;
            }
            let way = particle.pose.at.minus(mean.at);
            let errors = [way.x, way.y, wrap(particle.pose.heading - mean.heading)];
            for (row, sums) in sums.iter_mut().enumerate() {
                for (sum, error) in sums.iter_mut().zip(errors) {
                    *sum += particle.weight * errors[row] * error / self.mass;
                }
            }
        }
        sums
    }
}

/// The way and the turn to a particle of the cluster.
fn near(particle: &Particle, centre: Pose) -> Option<(Point, f64)> {
    let way = particle.pose.at.minus(centre.at);
    if way.length() > RADIUS_M {
        return None;
    }
    let turn = wrap(particle.pose.heading - centre.heading);
    (turn.abs() <= RADIUS_RAD).then_some((way, turn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::gaussian;

    fn cloud(centre: Pose, sigma: [f64; 3], count: usize, weight: f64) -> Vec<Particle> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut draw = |sigma: f64| sigma * gaussian(&mut random);
        (0..count)
            .map(|_| Particle {
                pose: Pose::new(
                    centre.at.x + draw(sigma[0]),
                    centre.at.y + draw(sigma[1]),
                    centre.heading + draw(sigma[2]),
                ),
                weight: weight / count as f64,
            })
            .collect()
    }

    #[test]
    fn the_estimate_is_the_mean_of_the_heaviest_cluster() {
        // The lighter cluster has more particles. The heavy one is at the seam of the angles.
        let heavy = Pose::new(1.0, -2.0, std::f64::consts::PI);
        let mut particles = cloud(heavy, [0.03, 0.05, 0.04], 400, 0.7);
        particles.extend(cloud(Pose::new(3.0, -2.0, 0.0), [0.1, 0.1, 0.1], 4000, 0.3));
        let found = heaviest(&particles).unwrap();
        assert!((found.mass - 0.7).abs() < 1e-9, "{found:?}");
        assert!(found.pose.at.minus(heavy.at).length() < 0.01, "{found:?}");
        assert!(
            wrap(found.pose.heading - heavy.heading).abs() < 0.01,
            "{found:?}"
        );
        for (axis, sigma) in [0.03f64, 0.05, 0.04].into_iter().enumerate() {
            let found = found.covariance[axis][axis].sqrt();
            assert!((found / sigma - 1.0).abs() < 0.15, "{axis} {found}");
        }
    }

    #[test]
    fn without_particles_there_is_no_estimate() {
        assert_eq!(heaviest(&[]), None);
    }
}
