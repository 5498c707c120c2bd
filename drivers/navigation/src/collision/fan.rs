//! The beams of one scan beside each other: which of them have hit an object, what lies in the gaps
//! between them, and what the scan knows about a position. PURE.

use std::f64::consts::PI;

use amber_map::Point;

use crate::scan::{Beam, Echo, Scan};

/// A beam counts only if two of its three neighbours on either side are as far: one or two beams
/// may be errors. A post of 30 mm fills eight beams at 0.5 m.
const NEIGHBOURS: isize = 3;
const SUPPORTERS: usize = 2;
/// With a coarse scanner, something that is this thin...
const THIN_M: f64 = 0.02;
/// ...fills less beams from some distance on, which is near if they are farther apart than this. There,
/// earlier scans support a beam, too.
const COARSE_RAD: f64 = 0.5 * PI / 180.0;
/// Neighbouring beams on one object differ at most by this part of the distance...
const SAME_OBJECT: f64 = 0.12;
/// ...or by this.
const SAME_OBJECT_M: f64 = 0.05;
/// A beam that is too near to be measured counts as an object at this distance.
const TOO_NEAR_M: f64 = 0.02;
/// A gap without echoes that is narrower than this counts as closed: the robot is wider.
const MAX_GAP_M: f64 = 0.3;
/// The distance of the points that close a gap.
const FILL_STEP_M: f64 = 0.02;
/// Beside an object this near...
const DARK_NEAR_M: f64 = 0.6;
/// ...a gap without echoes counts as more of it, if the gap is no wider than this at its distance: the
/// corner of a wall may be dark. Through a wider gap, the laser looks into the distance.
const DARK_M: f64 = 0.14;
/// The maximum number of beams of a scan: the UTM-30LX has 1,081.
const MAX_BEAMS: usize = 4_096;

/// The beams of a scan, sorted by their directions, in either order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fan<'a> {
    beams: &'a [Beam],
    /// Whether the first beam is beside the last one.
    is_round: bool,
    /// From this distance on, something thin fills less beams than an object must.
    thin_from_m: f64,
}

impl<'a> Fan<'a> {
    pub(super) fn new(scan: &'a Scan) -> Self {
        Self {
            beams: &scan.beams[..scan.beams.len().min(MAX_BEAMS)],
            is_round: scan.is_round() && scan.beams.len() <= MAX_BEAMS,
            thin_from_m: match scan.spacing_rad() {
                Some(spacing_rad) if spacing_rad > COARSE_RAD => {
                    THIN_M / (spacing_rad * (SUPPORTERS + 1) as f64)
                }
                _ => f64::INFINITY,
            },
        }
    }

    /// Whether something thin may fill less beams than an object must, however near it is.
    pub(super) fn is_coarse(&self) -> bool {
        self.thin_from_m.is_finite()
    }

    /// The beams that have hit something, by their places, with its distance.
    pub(super) fn hits(&self) -> impl Iterator<Item = (usize, Beam, f64)> {
        let hit = |(index, beam): (usize, &Beam)| Some((index, *beam, distance_m(beam)?));
        self.beams.iter().enumerate().filter_map(hit)
    }

    /// Whether a beam has hit an object, and is no error: those beside it say so. If it may be
    /// something thin, `seen_before` counts: how many of the last scans have seen it.
    pub(super) fn is_object(&self, index: usize, seen_before: impl FnOnce() -> usize) -> bool {
        let supporters = self.supporters(index);
        let may_be_thin = || {
            let found_m = distance_m(&self.beams[index]);
            found_m.is_some_and(|found_m| found_m >= self.thin_from_m)
        };
        supporters >= SUPPORTERS || may_be_thin() && supporters + seen_before() >= SUPPORTERS
    }

    /// The beam so many places after another one.
    fn beside(&self, index: usize, offset: isize) -> Option<&'a Beam> {
        match index.checked_add_signed(offset) {
            Some(index) if index < self.beams.len() => Some(&self.beams[index]),
            _ if !self.is_round => None,
            Some(index) => self.beams.get(index - self.beams.len()),
            None => (self.beams.len() + index)
                .checked_add_signed(offset)
                .and_then(|index| self.beams.get(index)),
        }
    }

    /// How many neighbouring beams see the same object as this one.
    fn supporters(&self, index: usize) -> usize {
        let Some(own_m) = distance_m(&self.beams[index]) else {
            return 0;
        };
        let tolerance_m = SAME_OBJECT_M.max(SAME_OBJECT * own_m);
        let beside = (-NEIGHBOURS..=NEIGHBOURS)
            .filter(|offset| *offset != 0)
            .filter_map(|offset| self.beside(index, offset))
            .filter_map(distance_m);
        let same = beside.filter(|other_m| (other_m - own_m).abs() <= tolerance_m);
        same.count()
    }

    /// The information about a position.
    pub(super) fn view(&self, point: Point) -> View {
        let angle = point.y.atan2(point.x);
        let (Some(first), Some(last)) = (self.beams.first(), self.beams.last()) else {
            return View::Hidden;
        };
        let (low, high) = (
            first.angle_rad.min(last.angle_rad),
            first.angle_rad.max(last.angle_rad),
        );
        if !self.is_round && (angle < low || angle > high) {
            return View::Hidden;
        }
        let part = (angle.clamp(low, high) - first.angle_rad) / (last.angle_rad - first.angle_rad);
        let index = (part * (self.beams.len() - 1) as f64).round() as usize;
        match self.beams.get(index).map(|beam| beam.echo) {
            Some(Echo::At(_)) => View::Seen,
            Some(Echo::Nothing) => View::NoEcho,
            Some(Echo::TooNear | Echo::Invalid) | None => View::Hidden,
        }
    }

    /// The points, and more between two of them where no beam in between has an echo and the robot
    /// would not fit through: such a place is dark or shiny rather than free. The same for a narrow
    /// gap beside a near object.
    pub(super) fn filled(&self, points: &[(usize, Point)], eye: Point) -> Vec<Point> {
        let is_blind = |beams: &[Beam]| beams.iter().all(|beam| beam.distance_m().is_none());
        let fill = |from: Point, to: Point| {
            let more = between(from, to).or_else(|| beside(eye, from, to));
            more.into_iter().flatten()
        };
        let mut all = Vec::new();
        let mut last: Option<(usize, Point)> = None;
        for &(index, point) in points {
            if let Some((before, from)) = last
                && index > before + 1
                && is_blind(&self.beams[before + 1..index])
            {
                all.extend(fill(from, point));
            }
            all.push(point);
            last = Some((index, point));
        }
        // A gap at the rear, where the scan begins and ends.
        if let (Some(&(first, to)), Some((last, from))) = (points.first(), last)
            && self.is_round
            && first + self.beams.len() > last + 1
            && is_blind(&self.beams[..first])
            && is_blind(&self.beams[last + 1..])
        {
            all.extend(fill(from, to));
        }
        all
    }
}

/// Points between two points that are not far apart.
fn between(from: Point, to: Point) -> Option<Vec<Point>> {
    let way = to.minus(from);
    let steps = (way.length() / FILL_STEP_M).ceil();
    let points = (1..steps as u32).map(|step| from.plus(way.times(f64::from(step) / steps)));
    (way.length() < MAX_GAP_M).then(|| points.collect())
}

/// Points from the nearer one of two points towards the direction of the other one, at its distance.
fn beside(eye: Point, from: Point, to: Point) -> Option<Vec<Point>> {
    let (a, b) = (from.minus(eye), to.minus(eye));
    let (near, far) = if a.length() <= b.length() {
        (a, b)
    } else {
        (b, a)
    };
    let angle_rad = amber_map::wrap(far.y.atan2(far.x) - near.y.atan2(near.x));
    let gap_m = angle_rad.abs() * near.length();
    let steps = (gap_m / FILL_STEP_M).ceil();
    let points =
        (1..steps as u32).map(|step| eye.plus(near.turned(angle_rad * f64::from(step) / steps)));
    (near.length() <= DARK_NEAR_M && gap_m <= DARK_M).then(|| points.collect())
}

/// The information of a scan about a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum View {
    /// It measured in this direction.
    Seen,
    /// No echo came back from this direction.
    NoEcho,
    /// It cannot see this direction.
    Hidden,
}

/// The distance of a beam; near things have one, too.
fn distance_m(beam: &Beam) -> Option<f64> {
    match beam.echo {
        Echo::At(distance_m) => distance_m.is_finite().then_some(distance_m),
        Echo::TooNear => Some(TOO_NEAR_M),
        Echo::Nothing | Echo::Invalid => None,
    }
}
