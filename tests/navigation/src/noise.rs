//! The errors of laser scanners. PURE.

use amber_map::{Point, Walls};
use amber_navigation::random::gaussian;
use amber_navigation::scan::Echo;
use amber_sim::hokuyo::{Model, is_dark};

use super::laser::Scanner;

/// The noise of a URG-04LX up to 1 m, and per metre beyond.
const SIGMA_M: f64 = 0.01;
/// Beams without an echo.
const DROP_OUTS: f64 = 0.01;
/// Beams along a wall that are lost: from this angle of incidence on, this share.
const GRAZING_DEG: f64 = 80.0;
const GRAZING_LOST: f64 = 0.2;
/// At an edge, this share of the beams hits both surfaces and ends in between.
const EDGE_M: f64 = 0.1;
const MIXED: f64 = 0.3;
/// The range of a URG-04LX.
const MIN_RANGE_M: f64 = 0.02;
const MAX_RANGE_M: f64 = 5.6;

/// The errors of a scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Independent errors of each beam: 10 mm up to 1 m, 1 % beyond.
    White,
    /// In addition: a constant error per surface, drop-outs, lost beams at grazing
    /// incidence, and mixed pixels at edges.
    Full,
    /// That of the simulated URG-04LX, which follows captures of a real one: neighbouring beams have
    /// similar errors, and dark places give no echo. The bias of surfaces is added. Another scanner
    /// has the errors of [`Noise::Full`], and no echo from dark places.
    Captured,
}

/// A beam without errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ray {
    pub(super) angle_rad: f64,
    distance_m: f64,
    end: Point,
    direction: f64,
}

impl Ray {
    pub(super) fn new(angle_rad: f64, distance_m: f64, origin: Point, direction: f64) -> Self {
        let way = Point::new(distance_m, 0.0).turned(direction);
        Self {
            angle_rad,
            distance_m,
            end: origin.plus(way),
            direction,
        }
    }
}

/// The bias of a surface, as a part of the maximum: -1 to 1.
pub(super) fn bias(random: &mut fastrand::Rng) -> f64 {
    2.0 * random.f64() - 1.0
}

impl Noise {
    /// The measured echoes.
    pub(super) fn measure(
        self,
        scanner: Scanner,
        rays: &[Ray],
        walls: &Walls,
        biases_m: &[f64],
        short_beams: f64,
        random: &mut fastrand::Rng,
    ) -> Vec<Echo> {
        let (range_m, sigma) = match scanner {
            Scanner::Urg04Lx if self == Self::Captured => {
                return captured(rays, walls, biases_m, short_beams, random);
            }
            Scanner::Urg04Lx => ((MIN_RANGE_M, MAX_RANGE_M), (SIGMA_M, SIGMA_M)),
            Scanner::Round(round) => (round.range_m, round.sigma),
        };
        let mut echoes = Vec::with_capacity(rays.len());
        for (index, ray) in rays.iter().enumerate() {
            let mut distance_m = ray.distance_m;
            if self != Self::White {
                let is_dark = self == Self::Captured && is_dark(ray.end);
                if is_dark || random.f64() < DROP_OUTS {
                    echoes.push(Echo::Nothing);
                    continue;
                }
                let neighbour_m = rays.get(index + 1).map_or(distance_m, |ray| ray.distance_m);
                if (neighbour_m - distance_m).abs() > EDGE_M && random.f64() < MIXED {
                    distance_m += (neighbour_m - distance_m) * random.f64();
                } else if let Some(wall) = nearest(walls, ray.end) {
                    let way = walls.segments()[wall].to.minus(walls.segments()[wall].from);
                    let along = (way.y.atan2(way.x) - ray.direction).sin().abs();
                    let grazing = along < GRAZING_DEG.to_radians().cos();
                    if grazing && random.f64() < GRAZING_LOST {
                        echoes.push(Echo::Nothing);
                        continue;
                    }
                    distance_m += bias_of(biases_m, wall);
                }
            }
            distance_m += sigma.0.max(sigma.1 * distance_m) * gaussian(random);
            if random.f64() < short_beams {
                distance_m *= random.f64();
            }
            let valid = (range_m.0..=range_m.1).contains(&distance_m);
            // The scanner reports whole millimetres.
            let echo = Echo::At((distance_m * 1000.0).round() / 1000.0);
            echoes.push(if valid { echo } else { Echo::Nothing });
        }
        echoes
    }
}

/// A measurement of the simulated scanner.
fn captured(
    rays: &[Ray],
    walls: &Walls,
    biases_m: &[f64],
    short_beams: f64,
    random: &mut fastrand::Rng,
) -> Vec<Echo> {
    let model = Model::Urg04Lx;
    let has_bias = biases_m.iter().any(|bias_m| *bias_m != 0.0);
    let distance_m = |ray: &Ray| {
        let wall = has_bias.then(|| nearest(walls, ray.end)).flatten();
        let bias_m = wall.map_or(0.0, |wall| bias_of(biases_m, wall));
        (!is_dark(ray.end)).then_some(ray.distance_m + bias_m)
    };
    let first = model.first_step() as usize;
    let mut distances = vec![None; first];
    distances.extend(rays.iter().map(distance_m));
    let measured = model.measure(&distances, random).distances;
    let echoes = measured[first..first + rays.len()].iter().map(|mm| {
        let distance_m = f64::from(*mm) / 1000.0;
        match mm {
            0 => Echo::Nothing,
            6 => Echo::TooNear,
            1..20 => Echo::Invalid,
            _ if random.f64() < short_beams => Echo::At(MIN_RANGE_M + random.f64() * distance_m),
            _ => Echo::At(distance_m),
        }
    });
    echoes.collect()
}

/// The bias of a wall; none for a wall that was added later.
fn bias_of(biases_m: &[f64], wall: usize) -> f64 {
    biases_m.get(wall).copied().unwrap_or_default()
}

/// The wall that a beam hit.
fn nearest(walls: &Walls, end: Point) -> Option<usize> {
    let distances = walls.segments().iter().map(|wall| wall.distance(end));
    let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map(|(index, _)| index)
}
