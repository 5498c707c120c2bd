//! What the two models of laser scanner can see, and how wrong they are. PURE.

use std::f64::consts::PI;
use std::time::Duration;

use crate::wheels::gaussian;

/// A model of laser scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// 240 degrees, 5.6 m, 10 scans per second.
    Urg04Lx,
    /// 270 degrees, 60 m, 40 scans per second.
    Utm30Lx,
}

/// One turn of the laser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// When it passed step 0.
    pub start: Duration,
    /// How long a full turn takes.
    pub turn: Duration,
}

/// What one turn of the laser measured, one entry for each step from 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Millimetres, or a code below [`Model::min_mm`] for why there are none.
    pub distances: Vec<u32>,
    /// How strong the echoes were, without a unit.
    pub intensities: Vec<u32>,
}

impl Model {
    /// The name in replies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Urg04Lx => "URG-04LX",
            Self::Utm30Lx => "UTM-30LX",
        }
    }

    /// The smallest valid distance; what is less is a code.
    #[must_use]
    pub fn min_mm(self) -> u32 {
        match self {
            Self::Urg04Lx => 20,
            Self::Utm30Lx => 23,
        }
    }

    /// The largest valid distance.
    #[must_use]
    pub fn max_mm(self) -> u32 {
        match self {
            Self::Urg04Lx => 5_600,
            Self::Utm30Lx => 60_000,
        }
    }

    /// Steps of a full turn.
    #[must_use]
    pub fn steps_per_turn(self) -> u32 {
        match self {
            Self::Urg04Lx => 1_024,
            Self::Utm30Lx => 1_440,
        }
    }

    /// The first step that is measured.
    #[must_use]
    pub fn first_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 44,
            Self::Utm30Lx => 0,
        }
    }

    /// The last step that is measured.
    #[must_use]
    pub fn last_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 725,
            Self::Utm30Lx => 1_080,
        }
    }

    /// The last step that can be asked for.
    #[must_use]
    pub fn end_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 768,
            Self::Utm30Lx => 1_080,
        }
    }

    /// The step that looks ahead.
    #[must_use]
    pub fn front_step(self) -> u32 {
        match self {
            Self::Urg04Lx => 384,
            Self::Utm30Lx => 540,
        }
    }

    /// Turns of the laser per minute.
    #[must_use]
    pub fn rpm(self) -> u32 {
        match self {
            Self::Urg04Lx => 600,
            Self::Utm30Lx => 2_400,
        }
    }

    /// The direction of a step: radians counter-clockwise from ahead.
    #[must_use]
    pub fn angle(self, step: u32) -> f64 {
        let steps = f64::from(step) - f64::from(self.front_step());
        steps * 2.0 * PI / f64::from(self.steps_per_turn())
    }

    /// When the beam of a step is sent.
    #[must_use]
    pub fn beam_time(self, sweep: Sweep, step: u32) -> Duration {
        sweep.start + sweep.turn * step / self.steps_per_turn()
    }

    /// The time that the measuring part of a turn takes.
    #[must_use]
    pub fn sweep_time(self, turn: Duration) -> Duration {
        turn * (self.last_step() + 1) / self.steps_per_turn()
    }

    /// What the device makes of true distances in metres, one for each step
    /// from 0 to the last; `None` is no wall within sight.
    pub fn measure(self, distances_m: &[Option<f64>], random: &mut fastrand::Rng) -> Scan {
        let edge = |step: usize| {
            let near = |other: Option<&Option<f64>>| match (distances_m[step], other) {
                (Some(a), Some(Some(b))) => (a - b).abs() < 0.1,
                (None, Some(None)) | (_, None) => true,
                _ => false,
            };
            let before = step.checked_sub(1).and_then(|step| distances_m.get(step));
            !near(before) || !near(distances_m.get(step + 1))
        };
        let mut scan = Scan::default();
        for (step, distance_m) in distances_m.iter().enumerate() {
            let measured = (step as u32) >= self.first_step();
            let distance = match distance_m {
                _ if !measured => self.not_measured(),
                Some(distance_m) => self.distance(*distance_m, edge(step), random),
                None => self.nothing(),
            };
            let strength = distance_m.map_or(0.0, |distance_m| {
                4_000.0 / (0.25 + distance_m / 8.0) + 60.0 * gaussian(random)
            });
            scan.distances.push(distance);
            scan.intensities
                .push(strength.clamp(137.0, 16_219.0) as u32);
        }
        let steps = self.end_step() as usize + 1;
        scan.distances.resize(steps, self.not_measured());
        scan.intensities.resize(steps, 0);
        scan
    }

    fn distance(self, true_m: f64, at_edge: bool, random: &mut fastrand::Rng) -> u32 {
        let true_mm = true_m * 1000.0;
        let (min, max) = (f64::from(self.min_mm()), f64::from(self.max_mm()));
        if true_mm < min {
            return self.too_near();
        }
        if true_mm > max {
            return self.nothing();
        }
        match self {
            Self::Urg04Lx => {
                let weak = (true_mm - 4_095.0) / (max - 4_095.0);
                if random.f64() < weak {
                    return self.nothing();
                }
                if at_edge && random.f64() < 0.01 {
                    return 7;
                }
                let sigma = 3.0 + 0.003 * true_mm;
                (true_mm + sigma * gaussian(random)).round().clamp(min, max) as u32
            }
            Self::Utm30Lx => {
                let sigma = if true_mm < 10_000.0 { 10.0 } else { 30.0 };
                (true_mm + sigma * gaussian(random)).round().clamp(min, max) as u32
            }
        }
    }

    fn nothing(self) -> u32 {
        match self {
            Self::Urg04Lx => 0,
            Self::Utm30Lx => 1,
        }
    }

    fn too_near(self) -> u32 {
        match self {
            Self::Urg04Lx => 6,
            Self::Utm30Lx => 4,
        }
    }

    fn not_measured(self) -> u32 {
        19
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_is_on_the_right() {
        for (model, first, last) in [
            (Model::Urg04Lx, -119.531, 119.883),
            (Model::Utm30Lx, -135.0, 135.0),
        ] {
            let degrees = |step| model.angle(step).to_degrees();
            assert!((degrees(model.first_step()) - first).abs() < 0.001);
            assert!((degrees(model.last_step()) - last).abs() < 0.001);
            assert_eq!(degrees(model.front_step()), 0.0);
        }
    }

    #[test]
    fn the_noise_is_that_of_the_model() {
        for (model, true_m, sigma_mm) in [
            (Model::Urg04Lx, 1.0, 6.0),
            (Model::Urg04Lx, 3.0, 12.0),
            (Model::Utm30Lx, 5.0, 10.0),
            (Model::Utm30Lx, 20.0, 30.0),
        ] {
            let mut random = fastrand::Rng::with_seed(3);
            let distances = vec![Some(true_m); model.last_step() as usize + 1];
            let scan = model.measure(&distances, &mut random);
            let errors: Vec<f64> = scan.distances
                [model.first_step() as usize..=model.last_step() as usize]
                .iter()
                .map(|distance| f64::from(*distance) - true_m * 1000.0)
                .collect();
            let square: f64 = errors.iter().map(|error| error * error).sum();
            let sigma = (square / errors.len() as f64).sqrt();
            assert!(
                (sigma / sigma_mm - 1.0).abs() < 0.15,
                "{model:?} {true_m}: {sigma}"
            );
        }
    }

    #[test]
    fn what_cannot_be_measured_is_a_code() {
        for (model, distance_m, code) in [
            (Model::Urg04Lx, None, 0),
            (Model::Urg04Lx, Some(5.7), 0),
            (Model::Urg04Lx, Some(0.01), 6),
            (Model::Utm30Lx, None, 1),
            (Model::Utm30Lx, Some(60.5), 1),
            (Model::Utm30Lx, Some(0.01), 4),
        ] {
            let mut random = fastrand::Rng::with_seed(3);
            let distances = vec![distance_m; 50];
            let scan = model.measure(&distances, &mut random);
            assert_eq!(scan.distances[49], code, "{model:?} {distance_m:?}");
        }
    }

    #[test]
    fn far_echoes_of_the_urg_get_rare() {
        let count = |distance_m| {
            let mut random = fastrand::Rng::with_seed(3);
            let scan = Model::Urg04Lx.measure(&[Some(distance_m); 726], &mut random);
            let scan = &scan.distances[44..];
            scan.iter().filter(|distance| **distance == 0).count()
        };
        assert_eq!(count(4.0), 0);
        assert!((100..300).contains(&count(4.5)));
        assert!((450..650).contains(&count(5.4)));
    }
}
