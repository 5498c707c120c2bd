//! Outlines that are quadrilaterals. PURE.

use super::picture::{Px, area, cross, length, minus};

/// An outline may be so far beside the quadrilateral, as a part of its length.
const TOLERANCE: f64 = 0.03;
/// Smaller ones cannot be read: a cell of a marker would have less than two pixels.
pub(super) const MIN_SIDE_PX: f64 = 9.0;
/// The area of the outline compared with that of the quadrilateral.
const MIN_FILL: f64 = 0.8;

/// The corners of an outline that is a convex quadrilateral, clockwise as the outline is.
pub(super) fn quad(outline: &[Px]) -> Option<[Px; 4]> {
    let total: f64 = (outline.iter().zip(outline.iter().cycle().skip(1)))
        .map(|(one, next)| length(minus(*next, *one)))
        .sum();
    let tolerance_px = TOLERANCE * total;
    // The point that is farthest from any other one is a corner.
    let one = farthest(outline, *outline.first()?)?;
    let other = farthest(outline, outline[one])?;
    let (one, other) = (one.min(other), one.max(other));
    let mut corners = vec![outline[one]];
    split(&outline[one..=other], tolerance_px, &mut corners);
    corners.push(outline[other]);
    let mut rest = outline[other..].to_vec();
    rest.extend_from_slice(&outline[..=one]);
    split(&rest, tolerance_px, &mut corners);
    let corners: [Px; 4] = corners.try_into().ok()?;
    let is_convex = (0..4).all(|index| {
        let [one, next, after] = [0, 1, 2].map(|step| corners[(index + step) % 4]);
        cross(minus(next, one), minus(after, next)) > 0.0
    });
    let is_large = (0..4).all(|index| {
        let side = minus(corners[(index + 1) % 4], corners[index]);
        length(side) >= MIN_SIDE_PX
    });
    let is_full = area(outline) > MIN_FILL * area(&corners);
    (is_convex && is_large && is_full).then_some(corners)
}

fn farthest(outline: &[Px], from: Px) -> Option<usize> {
    let distances = outline.iter().map(|at| length(minus(*at, from)));
    let farthest = distances.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    farthest.map(|(index, _)| index)
}

/// The corners between the ends of a line, as Douglas and Peucker find them. It gives up beyond what a
/// quadrilateral has.
fn split(line: &[Px], tolerance_px: f64, corners: &mut Vec<Px>) {
    const TOO_MANY: usize = 5;
    let (Some(&first), Some(&last)) = (line.first(), line.last()) else {
        return;
    };
    let way = minus(last, first);
    let beside = |at: Px| match length(way) {
        0.0 => length(minus(at, first)),
        long => cross(way, minus(at, first)).abs() / long,
    };
    let widest = (line.iter().map(|at| beside(*at)).enumerate()).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((index, beside_px)) = widest else {
        return;
    };
    if beside_px <= tolerance_px || corners.len() >= TOO_MANY {
        return;
    }
    split(&line[..=index], tolerance_px, corners);
    corners.push(line[index]);
    split(&line[index..], tolerance_px, corners);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points along a polygon, one per pixel.
    fn outline(corners: &[Px]) -> Vec<Px> {
        let sides = corners.iter().zip(corners.iter().cycle().skip(1));
        let points = sides.flat_map(|(from, to)| {
            let way = minus(*to, *from);
            let count = length(way).ceil() as u32;
            (0..count).map(move |step| {
                let part = f64::from(step) / f64::from(count);
                [from[0] + part * way[0], from[1] + part * way[1]]
            })
        });
        points.collect()
    }

    #[test]
    fn quadrilaterals_have_their_corners() {
        for corners in [
            [[10.0, 10.0], [50.0, 10.0], [50.0, 50.0], [10.0, 50.0]],
            [[30.0, 5.0], [55.0, 30.0], [30.0, 55.0], [5.0, 30.0]],
            [[10.0, 10.0], [30.0, 20.0], [31.0, 60.0], [10.0, 80.0]],
        ] {
            let found = quad(&outline(&corners)).unwrap();
            for corner in corners {
                let near = |at: &Px| length(minus(*at, corner)) < 1.5;
                assert!(found.iter().any(near), "{found:?}");
            }
        }
    }

    #[test]
    fn other_shapes_are_none() {
        let round: Vec<Px> = (0..200)
            .map(|step| {
                let (sin, cos) = (f64::from(step) * 0.0314).sin_cos();
                [40.0 + 30.0 * cos, 40.0 + 30.0 * sin]
            })
            .collect();
        let triangle = outline(&[[10.0, 10.0], [60.0, 10.0], [10.0, 60.0]]);
        let arrow = outline(&[[10.0, 10.0], [60.0, 30.0], [10.0, 50.0], [30.0, 30.0]]);
        let small = outline(&[[0.0, 0.0], [8.0, 0.0], [8.0, 8.0], [0.0, 8.0]]);
        for other in [round, triangle, arrow, small, vec![], vec![[1.0, 1.0]; 40]] {
            assert_eq!(quad(&other), None);
        }
    }
}
