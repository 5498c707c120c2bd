//! Where the robot is, by the markers in a picture whose places are known. PURE.
//!
//! All markers together are compared with what the camera would see from a pose of the robot. The height
//! of the camera and its tilt are known, but not exactly, so they are fitted as well, near the known
//! values. The fit begins at both poses of each marker; if two different ends explain the picture, there is
//! no answer.
//!
//! A marker may stand elsewhere than the file says. Then the markers do not fit together. With three or
//! more in view, the one without which the others agree has moved; it is left out until it agrees again.
//! With two in view, nobody knows which one it is, and both are doubted: a doubted marker alone gives no
//! answer.

use std::collections::BTreeMap;

use amber_map::{Point, Pose, wrap};

use super::fit::{N, Step, fit, invert};
use super::picture::{Px, minus};
use super::pose::{CORNERS, poses, side_px};
use super::projection::{Optics, Rotation, Vector, norm, plus, seen, times};

/// One marker alone is enough within this distance.
pub const ALONE_M: f64 = 1.5;
/// More markers make no difference. The largest ones count.
const MAX_MARKERS: usize = 8;
/// The standard deviation of a corner.
const CORNER_PX: f64 = 0.3;
/// The standard deviations of what is known of the camera: its height, and how it is tilted.
const HEIGHT_M: f64 = 0.02;
const TILT_RAD: f64 = 0.0175;
/// The same if the height is unknown.
const ANY_HEIGHT_M: f64 = 0.5;
/// The standard deviation of the place of a marker in the file, along each axis.
const PLACED_M: f64 = 0.01;
/// Markers agree if their residuals are not larger than this many times those that are expected, in
/// squares: by corners, and by places in the file.
const MAX_NOISE: f64 = 6.0;
const MAX_MISPLACED: f64 = 4.0;
/// Another pose explains the picture as well if the sum of its squares is not larger by more than this.
const ALIKE: f64 = 25.0;
/// Poses that differ by more are different.
const SAME_M: f64 = 0.1;
const SAME_RAD: f64 = 0.1;
/// A less certain answer is none.
const MAX_SIGMA_M: f64 = 0.5;
/// So often must a marker agree with others before it is trusted again.
const TRUST_AFTER: u32 = 20;

/// A marker whose place is known, in the plane frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Its centre, and the direction in which it looks.
    pub pose: Pose,
    /// The height of its centre above the floor, in metres.
    pub height_m: f64,
    /// The side of its black square, in metres.
    pub side_m: f64,
}

impl Known {
    /// Its corners, clockwise from the upper left one as one sees it.
    fn corners(&self) -> [Vector; 4] {
        let (sin, cos) = self.pose.heading.sin_cos();
        CORNERS.map(|[right, up]| {
            let right_m = right * self.side_m;
            [
                self.pose.at.x - sin * right_m,
                self.pose.at.y + cos * right_m,
                self.height_m + up * self.side_m,
            ]
        })
    }
}

/// Where the camera is on the robot: x ahead, y to the left, angles counter-clockwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mount {
    /// Its place, and the direction in which it looks.
    pub pose: Pose,
    /// The height above the floor in metres, if it is known.
    pub height_m: Option<f64>,
    /// How far it looks downwards, in radians.
    pub pitch_rad: f64,
    /// Whether it is mounted upside down.
    pub upside_down: bool,
}

/// The pose of the robot, by markers.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// In the plane frame.
    pub pose: Pose,
    /// The standard deviation of the position in metres: in both directions together.
    pub sigma_m: f64,
    /// The standard deviation of the heading in radians.
    pub sigma_rad: f64,
    /// The markers that it rests on.
    pub used: Vec<u32>,
}

/// Why there is no pose.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoFix {
    /// No marker of the file is in view.
    #[error("no marker of the file is in view")]
    Unknown,
    /// Only one is, and it is far away.
    #[error(
        "marker {id} alone is {distance_m:.1} m away: two are needed, or one within {ALONE_M} m"
    )]
    Alone {
        /// Its number.
        id: u32,
        /// From the camera.
        distance_m: f64,
    },
    /// The markers can be seen like this from several places.
    #[error("{} can be seen like this from several places", words(.0))]
    Ambiguous(Vec<u32>),
    /// The markers do not agree.
    #[error("{} do not fit together: one stands elsewhere than in the file", words(.0))]
    Disagree(Vec<u32>),
    /// A marker does not stand where the file says.
    #[error("{} may stand elsewhere than in the file", words(.0))]
    Doubted(Vec<u32>),
    /// The place follows only roughly.
    #[error("the position is uncertain by {sigma_m:.1} m")]
    Uncertain {
        /// The standard deviation.
        sigma_m: f64,
    },
}

/// "marker 3", or "markers 3, 5 and 7".
fn words(ids: &[u32]) -> String {
    match ids {
        [] => "no marker".to_owned(),
        [id] => format!("marker {id}"),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(u32::to_string).collect();
            format!("markers {} and {last}", first.join(", "))
        }
    }
}

/// The markers of a file, and what pictures have told about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    known: BTreeMap<u32, Known>,
    /// Those that stand elsewhere than in the file, with how often they must still agree.
    moved: BTreeMap<u32, u32>,
    /// Those of which one in two stands elsewhere, with the same.
    doubted: BTreeMap<u32, u32>,
}

impl Places {
    /// Markers by their numbers.
    #[must_use]
    pub fn new(known: BTreeMap<u32, Known>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// A marker of the file.
    #[must_use]
    pub fn known(&self, id: u32) -> Option<&Known> {
        self.known.get(&id)
    }

    /// Those that stand elsewhere than in the file.
    pub fn moved(&self) -> impl Iterator<Item = u32> {
        self.moved.keys().copied()
    }

    /// Where the robot is, by the markers in one picture.
    ///
    /// # Errors
    /// They do not tell it.
    pub fn locate(
        &mut self,
        optics: &Optics,
        mount: &Mount,
        found: &[(u32, [Px; 4])],
    ) -> Result<Fix, NoFix> {
        let all = self.views(optics, found);
        let (moved, trusted): (Vec<View>, Vec<View>) =
            (all.into_iter()).partition(|view| self.moved.contains_key(&view.id));
        let heights_m = trusted.iter().chain(&moved).map(|view| view.known.height_m);
        let mean_m = heights_m.sum::<f64>() / (trusted.len() + moved.len()).max(1) as f64;
        let scene = Scene {
            optics,
            mount,
            height_m: mount.height_m.unwrap_or(mean_m),
        };
        match &trusted[..] {
            [] if moved.is_empty() => Err(NoFix::Unknown),
            [] => Err(NoFix::Doubted(ids(&moved))),
            [one] => self.alone(scene, one),
            _ => self.together(scene, trusted, &moved),
        }
    }

    /// The known markers in view, the largest ones first. One that is seen twice tells nothing.
    fn views(&self, optics: &Optics, found: &[(u32, [Px; 4])]) -> Vec<View> {
        let once = found
            .iter()
            .filter(|(id, _)| found.iter().filter(|(other, _)| other == id).count() == 1);
        let mut views: Vec<View> = once
            .filter_map(|(id, corners)| View::new(*id, *self.known.get(id)?, optics, corners))
            .collect();
        views.sort_by(|a, b| b.side_px.total_cmp(&a.side_px));
        views.truncate(MAX_MARKERS);
        views
    }

    fn alone(&self, scene: Scene<'_>, view: &View) -> Result<Fix, NoFix> {
        let id = view.id;
        if self.doubted.contains_key(&id) {
            return Err(NoFix::Doubted(vec![id]));
        }
        if view.distance_m > ALONE_M {
            let distance_m = view.distance_m;
            return Err(NoFix::Alone { id, distance_m });
        }
        let views = [view.clone()];
        let solved = scene.solve(&views)?;
        match solved.agrees {
            true => scene.certain(&solved, &views),
            false => Err(NoFix::Doubted(vec![id])),
        }
    }

    fn together(
        &mut self,
        scene: Scene<'_>,
        mut trusted: Vec<View>,
        moved: &[View],
    ) -> Result<Fix, NoFix> {
        let mut solved = scene.solve(&trusted)?;
        if !solved.agrees {
            let Some((without, better)) = scene.odd_one(&trusted) else {
                for view in &trusted {
                    self.doubted.insert(view.id, TRUST_AFTER);
                }
                return Err(NoFix::Disagree(ids(&trusted)));
            };
            self.moved.insert(trusted[without].id, TRUST_AFTER);
            trusted.remove(without);
            solved = better;
        }
        let is_doubted = |view: &View| self.doubted.contains_key(&view.id);
        let is_sure = trusted.len() > 2 || !trusted.iter().all(is_doubted);
        for view in &trusted {
            agreed(&mut self.doubted, view.id);
        }
        if !is_sure {
            return Err(NoFix::Doubted(ids(&trusted)));
        }
        for view in moved {
            let with: Vec<View> = trusted.iter().chain([view]).cloned().collect();
            match scene.solve(&with) {
                Ok(solved) if solved.agrees => agreed(&mut self.moved, view.id),
                _ => {
                    self.moved.insert(view.id, TRUST_AFTER);
                }
            }
        }
        scene.certain(&solved, &trusted)
    }
}

/// A marker has agreed with others once more.
fn agreed(waiting: &mut BTreeMap<u32, u32>, id: u32) {
    if let Some(count) = waiting.get_mut(&id) {
        *count -= 1;
        if *count == 0 {
            waiting.remove(&id);
        }
    }
}

fn ids(views: &[View]) -> Vec<u32> {
    let mut ids: Vec<_> = views.iter().map(|view| view.id).collect();
    ids.sort_unstable();
    ids
}

/// A known marker in a picture.
#[derive(Clone, Debug)]
struct View {
    id: u32,
    known: Known,
    /// Where its corners are seen: right and down per metre ahead.
    directions: [Px; 4],
    /// Where the camera may be in front of it: to its right, above it, ahead of it, and in which direction
    /// the camera looks, in the same axes.
    from: Vec<(Vector, Vector)>,
    side_px: f64,
    distance_m: f64,
}

impl View {
    fn new(id: u32, known: Known, optics: &Optics, corners: &[Px; 4]) -> Option<Self> {
        let poses = poses(optics, corners, known.side_m)?;
        let mut directions = [[0.0; 2]; 4];
        for (direction, corner) in directions.iter_mut().zip(corners) {
            *direction = optics.direction(*corner)?;
        }
        let from = poses.all().map(|pose| {
            let at = pose.rotation.turn_back(times(pose.at, -1.0));
            (at, pose.rotation.turn_back([0.0, 0.0, 1.0]))
        });
        Some(Self {
            id,
            known,
            directions,
            from: from.collect(),
            side_px: side_px(corners),
            distance_m: norm(poses.best.at),
        })
    }
}

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Guess {
    pose: Pose,
    /// How much the camera is higher, looks farther down and is more inclined than known.
    extra: Vector,
}

/// A guess that explains the picture best.
#[derive(Clone, Debug)]
struct Solved {
    guess: Guess,
    normal: [Step; N],
    /// The sum of squares, per degree of freedom.
    noise: f64,
    /// How x, y and heading change if a marker stands beside its place in the file.
    shifts: Vec<Vector>,
    agrees: bool,
    /// Whether another pose explains the picture as well.
    is_ambiguous: bool,
}

#[derive(Clone, Copy, Debug)]
struct Scene<'a> {
    optics: &'a Optics,
    mount: &'a Mount,
    /// The height of the camera; if it is unknown, that of what it sees.
    height_m: f64,
}

impl Scene<'_> {
    /// The pose from which all markers are seen as they are.
    fn solve(self, views: &[View]) -> Result<Solved, NoFix> {
        let starts = views.iter().flat_map(|view| {
            let from = view.from.iter();
            from.map(|(at, ahead)| self.start(&view.known, *at, *ahead))
        });
        let fits: Vec<_> = starts.map(|start| self.fit(start, views)).collect();
        let best = fits.iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
        let Some(best) = best.filter(|it| it.cost.is_finite()) else {
            return Err(NoFix::Unknown);
        };
        let differs = |other: Guess| {
            let way = other.pose.at.minus(best.best.pose.at);
            let turn = wrap(other.pose.heading - best.best.pose.heading);
            way.length() > SAME_M || turn.abs() > SAME_RAD
        };
        let freedoms = (views.len() * 8 + 3 - N) as f64;
        let noise = best.cost / freedoms;
        let is_alike = |cost: f64| cost - best.cost < ALIKE * noise.max(1.0);
        let is_ambiguous = (fits.iter()).any(|it| differs(it.best) && is_alike(it.cost));
        let (shifts, misplaced) = self.shifts(best.best, views);
        let allowed = MAX_NOISE * freedoms + MAX_MISPLACED * misplaced;
        Ok(Solved {
            guess: best.best,
            normal: best.normal,
            noise,
            shifts,
            agrees: best.cost <= allowed,
            is_ambiguous,
        })
    }

    /// The effect of markers that stand beside their places in the file: how the pose changes for each of
    /// these errors, and the sum of squares that they all leave.
    fn shifts(self, best: Guess, views: &[View]) -> (Vec<Vector>, f64) {
        let exact: Vec<View> = views
            .iter()
            .map(|view| View {
                directions: view.known.corners().map(|at| seen(self.local(&best, at))),
                ..view.clone()
            })
            .collect();
        // What is fitted besides the pose is exact, too.
        let start = best;
        let (mut shifts, mut left) = (Vec::new(), 0.0);
        for index in 0..views.len() {
            for way in [Point::new(PLACED_M, 0.0), Point::new(0.0, PLACED_M)] {
                let mut shifted = exact.clone();
                let known = &mut shifted[index].known;
                known.pose.at = known.pose.at.plus(way);
                let fit = self.fit_around(start, best.extra, &shifted);
                let moved = fit.best.pose.at.minus(best.pose.at);
                let turned = wrap(fit.best.pose.heading - best.pose.heading);
                shifts.push([moved.x, moved.y, turned]);
                left += fit.cost;
            }
        }
        (shifts, left)
    }

    /// The pose of the robot for a place of the camera in front of a marker.
    fn start(self, known: &Known, [right, _, out]: Vector, ahead: Vector) -> Guess {
        let turned = |right: f64, out: f64| Point::new(out, right).turned(known.pose.heading);
        let camera = known.pose.at.plus(turned(right, out));
        let ahead = turned(ahead[0], ahead[2]);
        let heading = ahead.y.atan2(ahead.x) - self.mount.pose.heading;
        let at = camera.minus(self.mount.pose.at.turned(heading));
        Guess {
            pose: Pose { at, heading },
            extra: [0.0; 3],
        }
    }

    fn fit(self, start: Guess, views: &[View]) -> super::fit::Fit<Guess> {
        self.fit_around(start, [0.0; 3], views)
    }

    /// The best guess, if height and tilt of the camera are expected here.
    fn fit_around(self, start: Guess, expected: Vector, views: &[View]) -> super::fit::Fit<Guess> {
        let corners: Vec<_> = views.iter().map(|view| view.known.corners()).collect();
        let scale = self.optics.px_per_rad() / CORNER_PX;
        let height_m = match self.mount.height_m {
            Some(_) => HEIGHT_M,
            None => ANY_HEIGHT_M,
        };
        let sigmas = [height_m, TILT_RAD, TILT_RAD];
        let residuals = |guess: &Guess| -> Vec<f64> {
            let pairs = corners.iter().flatten();
            let pairs = pairs.zip(views.iter().flat_map(|view| &view.directions));
            let errors = pairs.flat_map(|(at, direction)| {
                minus(seen(self.local(guess, *at)), *direction).map(|it| it * scale)
            });
            let extra = (0..3).map(|it| (guess.extra[it] - expected[it]) / sigmas[it]);
            errors.chain(extra).collect()
        };
        let changed = |guess: &Guess, step: &Step| {
            let [x, y, heading, extra @ ..] = *step;
            Guess {
                pose: Pose::new(
                    guess.pose.at.x + x,
                    guess.pose.at.y + y,
                    guess.pose.heading + heading,
                ),
                extra: plus(guess.extra, extra),
            }
        };
        fit(start, residuals, changed)
    }

    /// A place in the optical frame of the camera.
    fn local(self, guess: &Guess, [x, y, z]: Vector) -> Vector {
        let on_robot = guess.pose.local(Point::new(x, y));
        let camera = self.mount.pose.local(on_robot);
        let [higher_m, down_rad, inclined_rad] = guess.extra;
        let way = [camera.x, camera.y, z - self.height_m - higher_m];
        let roll_rad = match self.mount.upside_down {
            true => std::f64::consts::PI + inclined_rad,
            false => inclined_rad,
        };
        let roll = Rotation::around([roll_rad, 0.0, 0.0]);
        let pitch = Rotation::around([0.0, self.mount.pitch_rad + down_rad, 0.0]);
        let [ahead, left, up] = roll.then(&pitch).turn_back(way);
        [-left, -up, ahead]
    }

    /// The marker without which all others agree, if there is only one, and the pose by the others.
    fn odd_one(self, views: &[View]) -> Option<(usize, Solved)> {
        if views.len() < 3 {
            return None;
        }
        let agreeing = (0..views.len()).filter_map(|without| {
            let mut rest = views.to_vec();
            rest.remove(without);
            let solved = self.solve(&rest).ok()?;
            (solved.agrees && !solved.is_ambiguous).then_some((without, solved))
        });
        let mut agreeing: Vec<_> = agreeing.collect();
        match agreeing.len() {
            1 => agreeing.pop(),
            _ => None,
        }
    }

    /// The pose with its uncertainty, if that is not too large.
    fn certain(self, solved: &Solved, views: &[View]) -> Result<Fix, NoFix> {
        let covariance = invert(&solved.normal).filter(|_| !solved.is_ambiguous);
        let Some(covariance) = covariance else {
            return Err(NoFix::Ambiguous(ids(views)));
        };
        let variance = |axis: usize| {
            let misplaced: f64 = solved.shifts.iter().map(|shift| shift[axis].powi(2)).sum();
            covariance[axis][axis] * solved.noise.max(1.0) + misplaced
        };
        let sigma_m = (variance(0) + variance(1)).sqrt();
        let sigma_rad = variance(2).sqrt();
        let is_certain = sigma_m <= MAX_SIGMA_M;
        if !is_certain {
            return Err(NoFix::Uncertain { sigma_m });
        }
        let Pose { at, heading } = solved.guess.pose;
        Ok(Fix {
            pose: Pose {
                at,
                heading: wrap(heading),
            },
            sigma_m,
            sigma_rad,
            used: ids(views),
        })
    }
}

#[cfg(test)]
mod tests;
