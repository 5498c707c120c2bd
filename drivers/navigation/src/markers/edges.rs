//! The corners of a quadrilateral, to a small part of a pixel: where its edges meet. PURE.
//!
//! An edge goes from black to white across it. Where it is follows from the brightness along lines that
//! cross it: as a pixel is as bright as the part of it that is white, the mean place of the change of the
//! brightness is that of the edge. A straight line through many such places, and two of these lines, give
//! a corner.

use super::picture::{Picture, Px, cross, length, minus};

/// The edges are looked for again around where they were found.
const ROUNDS: usize = 3;
/// How far from an edge the brightness is looked at.
const MIN_REACH_PX: f64 = 1.3;
const MAX_REACH_PX: f64 = 4.0;
/// Corners do not move by more than this part of the shortest side.
const MAX_MOVE: f64 = 0.25;
/// The brightness must change by this much across an edge.
const MIN_CONTRAST: f64 = 12.0;
/// Places that are farther from the line than this are left out, in pixels.
const MAX_BESIDE_PX: f64 = 0.7;
/// The part of a side, at each end, where the other side disturbs.
const END: f64 = 0.08;
/// The cells of a side: the white around a marker is one cell wide, as is its black border.
const CELLS: f64 = 6.0;

/// Improves the corners of a black quadrilateral on white, which are clockwise. `None` if its edges are
/// unclear.
pub(super) fn sharpen(picture: Picture<'_>, coarse: [Px; 4]) -> Option<[Px; 4]> {
    let sides = (0..4).map(|index| length(minus(coarse[(index + 1) % 4], coarse[index])));
    let shortest_px = sides.fold(f64::INFINITY, f64::min);
    // Not beyond the middle of the cells at both sides of an edge.
    let reach_px = (shortest_px / CELLS / 2.0).clamp(MIN_REACH_PX, MAX_REACH_PX);
    let mut corners = coarse;
    for _ in 0..ROUNDS {
        let mut lines = [Line::default(); 4];
        for (index, line) in lines.iter_mut().enumerate() {
            *line = edge(picture, corners[index], corners[(index + 1) % 4], reach_px)?;
        }
        for (index, corner) in corners.iter_mut().enumerate() {
            *corner = lines[(index + 3) % 4].meets(lines[index])?;
        }
    }
    let max_px = 1.0 + MAX_MOVE * shortest_px;
    let mut moved = corners.iter().zip(coarse);
    let is_near = |(now, before): (&Px, Px)| length(minus(*now, before)) < max_px;
    moved.all(is_near).then_some(corners)
}

/// A straight line: a point on it, and its direction.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    at: Px,
    along: Px,
}

impl Line {
    fn meets(self, other: Self) -> Option<Px> {
        let angle = cross(self.along, other.along);
        // Less than three degrees.
        if angle.abs() < 0.05 {
            return None;
        }
        let part = cross(minus(other.at, self.at), other.along) / angle;
        Some([
            self.at[0] + part * self.along[0],
            self.at[1] + part * self.along[1],
        ])
    }

    /// The line through most of the points.
    fn through(points: &[Px]) -> Option<Self> {
        let first = Self::fitted(points.iter())?;
        let near = |at: &&Px| cross(first.along, minus(**at, first.at)).abs() < MAX_BESIDE_PX;
        Self::fitted(points.iter().filter(near))
    }

    fn fitted<'p>(points: impl Iterator<Item = &'p Px> + Clone) -> Option<Self> {
        let count = points.clone().count();
        if count < 3 {
            return None;
        }
        let sum = |of: &dyn Fn(&Px) -> f64| points.clone().map(of).sum::<f64>() / count as f64;
        let at = [sum(&|it| it[0]), sum(&|it| it[1])];
        let product =
            |one: usize, other: usize| sum(&|it| (it[one] - at[one]) * (it[other] - at[other]));
        let angle = 0.5 * (2.0 * product(0, 1)).atan2(product(0, 0) - product(1, 1));
        let (sin, cos) = angle.sin_cos();
        Some(Self {
            at,
            along: [cos, sin],
        })
    }
}

/// The edge near the line between two corners; white is to the left of the way from one to the other.
fn edge(picture: Picture<'_>, from: Px, to: Px, reach_px: f64) -> Option<Line> {
    let way = minus(to, from);
    let long = length(way);
    let is_long = long > 1.0;
    if !is_long {
        return None;
    }
    let outward = [way[1] / long, -way[0] / long];
    let count = (long as usize).clamp(8, 48);
    let places: Vec<Px> = (0..count)
        .filter_map(|index| {
            let part = END + (1.0 - 2.0 * END) * (index as f64 + 0.5) / count as f64;
            let at = [from[0] + part * way[0], from[1] + part * way[1]];
            let out_px = change(picture, at, outward, reach_px)?;
            Some([at[0] + out_px * outward[0], at[1] + out_px * outward[1]])
        })
        .collect();
    // An edge that is half hidden is none.
    if places.len() * 2 < count {
        return None;
    }
    Line::through(&places)
}

/// How far from a point, in a direction, it becomes bright.
fn change(picture: Picture<'_>, at: Px, direction: Px, reach_px: f64) -> Option<f64> {
    const STEPS: u32 = 12;
    let step_px = 2.0 * reach_px / f64::from(STEPS);
    let value = |index: u32| {
        let out_px = f64::from(index) * step_px - reach_px;
        picture.at([at[0] + out_px * direction[0], at[1] + out_px * direction[1]])
    };
    let (dark, bright) = (value(0), value(STEPS));
    if bright - dark < MIN_CONTRAST {
        return None;
    }
    let inner: f64 = (1..STEPS).map(value).sum();
    let area = (inner + (dark + bright) / 2.0) * step_px - dark * 2.0 * reach_px;
    Some(reach_px - area / (bright - dark)).filter(|out_px| out_px.abs() <= reach_px)
}
