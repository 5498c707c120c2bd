//! The measurement errors of scanners: noise, mixed pixels at edges, beams without an echo, and
//! error codes, as in captures of real ones. PURE.
//!
//! The noise of a URG is similar in neighbouring beams and different in each scan: at 1 m a beam
//! varies by 7.7 mm between scans, but neighbours differ by 1 mm. Beams without an echo come in
//! runs: where echoes are weak, and where a wall is too dark or too shiny.

use amber_map::Point;

use super::model::{Model, Scan};
use crate::wheels::gaussian;

/// Neighbouring beams whose ends are this far apart hit different objects.
const EDGE_M: f64 = 0.1;
/// This fraction of the beams that just miss the nearer object hit a part of it and measure a
/// distance in between.
const MIXED: f64 = 0.5;
/// The noise of a URG up to [`NEAR_MM`], and its increase per millimetre beyond.
const URG_SIGMA_MM: f64 = 7.7;
const URG_SIGMA_PER_MM: f64 = 0.003;
const NEAR_MM: f64 = 1_000.0;
/// The correlation of the noise between neighbouring beams of a URG.
const ALIKE: f64 = 0.993_9;
/// The same for the strength of weak echoes.
const WEAK_ALIKE: f64 = 0.8;
/// Beyond this distance a URG detects echoes only at random.
const WEAK_FROM_MM: f64 = 4_095.0;
/// The codes of a URG at edges and beside beams without an echo, with their frequency: "neighbours
/// bad", and "bad in the last two scans".
const CODES: [(u32, f64); 2] = [(7, 0.065), (9, 0.055)];
/// The size of dark places on walls, and their fraction.
const DARK_M: f64 = 0.1;
const DARK_ONE_IN: u64 = 12;

/// Whether a wall is too dark or too shiny for a URG at this position. Positions keep their colour,
/// so gaps in scans stay in place.
#[must_use]
pub fn is_dark(place: Point) -> bool {
    let cell = |length: f64| (length / DARK_M).floor() as i64 as u64;
    // Neighbouring cells get unrelated numbers.
    let mixed = (cell(place.x).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        ^ (cell(place.y).wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 33).is_multiple_of(DARK_ONE_IN)
}

/// Noise of standard deviation 1 that changes slowly from beam to beam.
struct Drifting {
    alike: f64,
    now: f64,
}

impl Drifting {
    fn new(alike: f64, random: &mut fastrand::Rng) -> Self {
        let now = gaussian(random);
        Self { alike, now }
    }

    fn next(&mut self, random: &mut fastrand::Rng) -> f64 {
        let new = (1.0 - self.alike * self.alike).sqrt();
        self.now = self.alike * self.now + new * gaussian(random);
        self.now
    }
}

impl Model {
    /// The measured values for true distances in metres, one for each step from 0 to the last;
    /// `None` is no echo.
    pub fn measure(self, distances_m: &[Option<f64>], random: &mut fastrand::Rng) -> Scan {
        let mut noise = Drifting::new(ALIKE, random);
        let mut weakness = Drifting::new(WEAK_ALIKE, random);
        let mut scan = Scan::default();
        for (step, true_m) in distances_m.iter().enumerate() {
            let neighbours = [step.checked_sub(1), Some(step + 1)]
                .map(|other| other.and_then(|other| distances_m.get(other)).copied());
            let (noise, weakness) = (noise.next(random), weakness.next(random));
            let distance = match true_m {
                _ if (step as u32) < self.first_step() => self.not_measured(),
                None => self.nothing(),
                Some(true_m) => match self.error_code(*true_m, neighbours, weakness, random) {
                    Some(code) => code,
                    None => {
                        let seen_m = mixed(*true_m, neighbours, random);
                        self.noisy(seen_m * 1000.0, noise, random)
                    }
                },
            };
            let strength = true_m.map_or(0.0, |true_m| {
                4_000.0 / (0.25 + true_m / 8.0) + 60.0 * gaussian(random)
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

    /// The error code of a beam, if it has no valid distance.
    fn error_code(
        self,
        true_m: f64,
        neighbours: [Option<Option<f64>>; 2],
        weakness: f64,
        random: &mut fastrand::Rng,
    ) -> Option<u32> {
        let true_mm = true_m * 1000.0;
        let (min, max) = (f64::from(self.min_mm()), f64::from(self.max_mm()));
        if true_mm < min {
            return Some(self.too_near());
        }
        if true_mm > max {
            return Some(self.nothing());
        }
        if self == Self::Utm30Lx {
            return None;
        }
        let lost = (true_mm - WEAK_FROM_MM) / (max - WEAK_FROM_MM);
        if part_below(weakness) < lost {
            return Some(self.nothing());
        }
        let is_odd = |other: Option<f64>| other.is_none_or(|other| (other - true_m).abs() > EDGE_M);
        if !neighbours.into_iter().flatten().any(is_odd) {
            return None;
        }
        let chance = random.f64();
        let mut sum = 0.0;
        CODES.into_iter().find_map(|(code, part)| {
            sum += part;
            (chance < sum).then_some(code)
        })
    }

    fn noisy(self, seen_mm: f64, drifting: f64, random: &mut fastrand::Rng) -> u32 {
        let error_mm = match self {
            Self::Urg04Lx => {
                let beyond = (seen_mm - NEAR_MM).max(0.0);
                (URG_SIGMA_MM + URG_SIGMA_PER_MM * beyond) * drifting
            }
            Self::Utm30Lx if seen_mm < 10_000.0 => 10.0 * gaussian(random),
            Self::Utm30Lx => 30.0 * gaussian(random),
        };
        let (min, max) = (f64::from(self.min_mm()), f64::from(self.max_mm()));
        (seen_mm + error_mm).round().clamp(min, max) as u32
    }
}

/// The measurement of a beam that may hit an edge: a distance between the nearer object beside it
/// and its own end.
fn mixed(true_m: f64, neighbours: [Option<Option<f64>>; 2], random: &mut fastrand::Rng) -> f64 {
    let nearer = neighbours.into_iter().flatten().flatten();
    let nearest = nearer.fold(f64::INFINITY, f64::min);
    if nearest > true_m - EDGE_M || random.f64() > MIXED {
        return true_m;
    }
    nearest + (true_m - nearest) * random.f64()
}

/// The normal distribution function, accurate to about a hundredth.
fn part_below(value: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * value).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many scans of the same view.
    fn scans(model: Model, distances: &[Option<f64>]) -> Vec<Vec<u32>> {
        let mut random = fastrand::Rng::with_seed(3);
        let measured = model.first_step() as usize..=model.last_step() as usize;
        (0..400)
            .map(|_| model.measure(distances, &mut random).distances[measured.clone()].to_vec())
            .collect()
    }

    fn wall(model: Model, distance_m: f64) -> Vec<Option<f64>> {
        vec![Some(distance_m); model.last_step() as usize + 1]
    }

    #[test]
    fn the_noise_matches_the_model() {
        for (model, true_m, sigma_mm) in [
            (Model::Urg04Lx, 0.5, 7.7),
            (Model::Urg04Lx, 1.0, 7.7),
            (Model::Urg04Lx, 3.0, 13.7),
            (Model::Utm30Lx, 5.0, 10.0),
            (Model::Utm30Lx, 20.0, 30.0),
        ] {
            let scans = scans(model, &wall(model, true_m));
            // Over time, for each beam.
            for beam in [0, 300, 600] {
                let errors = scans
                    .iter()
                    .map(|scan| f64::from(scan[beam]) - true_m * 1000.0);
                let square: f64 = errors.map(|error| error * error).sum();
                let sigma = (square / scans.len() as f64).sqrt();
                let near = (sigma / sigma_mm - 1.0).abs() < 0.15;
                assert!(near, "{model:?} {true_m}: {sigma}");
            }
        }
    }

    #[test]
    fn neighbouring_beams_of_a_urg_have_similar_errors() {
        let scans = scans(Model::Urg04Lx, &wall(Model::Urg04Lx, 1.0));
        let pairs = scans.iter().flat_map(|scan| scan.windows(2));
        let mut steps: Vec<u32> = pairs.map(|pair| pair[0].abs_diff(pair[1])).collect();
        steps.sort_unstable();
        assert_eq!(steps[steps.len() / 2], 1, "the median");
        let equal = steps.iter().filter(|step| **step == 0).count() as f64;
        let part = equal / steps.len() as f64;
        assert!((0.37..0.47).contains(&part), "{part}");
    }

    #[test]
    fn beams_without_an_echo_and_beams_that_are_too_near_have_codes() {
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
    fn far_echoes_of_the_urg_are_missing_in_runs() {
        let lost = |distance_m| {
            let scans = scans(Model::Urg04Lx, &wall(Model::Urg04Lx, distance_m));
            let beams = (scans.len() * scans[0].len()) as f64;
            let zeros = scans.iter().flatten().filter(|value| **value == 0).count();
            let starts = scans
                .iter()
                .flat_map(|scan| scan.windows(2))
                .filter(|pair| pair[0] != 0 && pair[1] == 0);
            (
                zeros as f64 / beams,
                zeros as f64 / starts.count().max(1) as f64,
            )
        };
        assert_eq!(lost(4.0).0, 0.0);
        let (part, run) = lost(4.5);
        assert!((0.22..0.32).contains(&part), "{part}");
        assert!(run > 2.5, "{run} beams in a row");
        let (part, _) = lost(5.4);
        assert!((0.8..0.92).contains(&part), "{part}");
    }

    #[test]
    fn at_edges_pixels_are_mixed_and_have_codes() {
        let mut distances = wall(Model::Urg04Lx, 2.0);
        distances[300..400].fill(Some(1.0));
        let scans = scans(Model::Urg04Lx, &distances);
        let at = |step: usize| scans.iter().map(move |scan| scan[step - 44]);
        for far in [299, 400] {
            let between = at(far).filter(|value| (1_060..1_940).contains(value));
            let part = between.count() as f64 / scans.len() as f64;
            assert!((0.3..0.5).contains(&part), "{part}");
        }
        for beside in [299, 300, 399, 400] {
            for (code, part) in CODES {
                let count = at(beside).filter(|value| *value == code).count();
                let found = count as f64 / scans.len() as f64;
                assert!((found - part).abs() < 0.04, "{code} at {beside}: {found}");
            }
        }
        // Other beams have neither.
        assert!(at(350).all(|value| (960..1_040).contains(&value)));
        assert!(at(600).all(|value| (1_940..2_060).contains(&value)));
    }

    #[test]
    fn some_places_are_dark_and_stay_so() {
        let place = |index: u32| Point::new(f64::from(index) * 0.01, 3.0);
        let dark = (0..100_000).filter(|index| is_dark(place(*index))).count();
        let part = dark as f64 / 100_000.0;
        assert!((0.07..0.1).contains(&part), "{part}");
        // In runs of about ten beams: a cell spans ten of these positions.
        let starts = (1..100_000)
            .filter(|index| is_dark(place(*index)) && !is_dark(place(index - 1)))
            .count();
        assert!(dark / starts >= 9, "{dark} in {starts}");
    }
}
