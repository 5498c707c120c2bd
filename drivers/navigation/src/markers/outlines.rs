//! The outlines of dark areas: what is darker than its surroundings. PURE.
//!
//! A pixel is dark if it is darker than the mean of the square around it, so shadows do not matter. The
//! outlines are followed as Suzuki and Abe describe it (1985); those of holes are left out.

use super::picture::{Picture, Px, area};

/// Half the sides of the squares: small ones for markers far away, larger ones for soft edges.
pub(super) const REACHES: [usize; 2] = [5, 14];
/// How much darker a dark pixel is.
const DARKER: u32 = 7;
/// A shorter outline is too small for a marker.
const MIN_POINTS: usize = 32;
/// An outline that is longer than so many times width and height of the picture is no square.
const MAX_TURNS: usize = 2;

const IS_DARK: u8 = 1;
const IS_OUTLINE: u8 = 2;

/// The eight neighbours, clockwise from the right one.
const NEIGHBOURS: [(i32, i32); 8] = [
    (1, 0),
    (1, 1),
    (0, 1),
    (-1, 1),
    (-1, 0),
    (-1, -1),
    (0, -1),
    (1, -1),
];
const LEFT: usize = 4;

/// The outlines of the dark areas, clockwise. Each point is the centre of a dark pixel.
pub(super) fn outlines(picture: Picture<'_>, reach: usize, mut take: impl FnMut(&[Px])) {
    let (width, height) = (picture.width(), picture.height());
    let mut marks = Marks::new(picture, reach);
    let max_points = MAX_TURNS * (width + height);
    let mut points = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (x, y) = (x as i32, y as i32);
            let begins = marks.at(x, y) == IS_DARK && marks.at(x - 1, y) & IS_DARK == 0;
            if !begins {
                continue;
            }
            points.clear();
            let count = marks.follow((x, y), |(x, y)| {
                if points.len() <= max_points {
                    points.push([f64::from(x), f64::from(y)]);
                }
            });
            if !(MIN_POINTS..=max_points).contains(&count) {
                continue;
            }
            // They were followed counter-clockwise, and those of holes clockwise.
            if area(&points) < 0.0 {
                points.reverse();
                take(&points);
            }
        }
    }
}

struct Marks {
    width: usize,
    height: usize,
    marks: Vec<u8>,
}

impl Marks {
    fn new(picture: Picture<'_>, reach: usize) -> Self {
        let (width, height) = (picture.width(), picture.height());
        let sums = sums(picture);
        let mut marks = Vec::with_capacity(width * height);
        for y in 0..height {
            let rows = [y.saturating_sub(reach), (y + reach + 1).min(height)];
            let [upper, lower] = rows.map(|row| &sums[row * (width + 1)..][..width + 1]);
            let row = picture.row(y);
            for (x, pixel) in row.iter().enumerate() {
                let (left, right) = (x.saturating_sub(reach), (x + reach + 1).min(width));
                let count = ((rows[1] - rows[0]) * (right - left)) as u32;
                // The sums of large pictures wrap, but their differences do not.
                let sum = (lower[right].wrapping_sub(lower[left]))
                    .wrapping_sub(upper[right].wrapping_sub(upper[left]));
                let is_dark = (u32::from(*pixel) + DARKER) * count < sum;
                marks.push(u8::from(is_dark));
            }
        }
        Self {
            width,
            height,
            marks,
        }
    }

    fn index(&self, x: i32, y: i32) -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        (x < self.width && y < self.height).then_some(y * self.width + x)
    }

    fn at(&self, x: i32, y: i32) -> u8 {
        self.index(x, y).map_or(0, |index| self.marks[index])
    }

    fn mark(&mut self, (x, y): (i32, i32)) {
        if let Some(index) = self.index(x, y) {
            self.marks[index] |= IS_OUTLINE;
        }
    }

    /// Follows an outline from a pixel whose left neighbour is not dark. Returns its length.
    fn follow(&mut self, start: (i32, i32), mut take: impl FnMut((i32, i32))) -> usize {
        let step = |(x, y): (i32, i32), direction: usize| {
            let (dx, dy) = NEIGHBOURS[direction % 8];
            (x + dx, y + dy)
        };
        self.mark(start);
        let is_dark = |marks: &Self, at, direction| {
            let (x, y) = step(at, direction);
            marks.at(x, y) & IS_DARK != 0
        };
        let Some(first) = (LEFT..LEFT + 8).find(|direction| is_dark(self, start, *direction))
        else {
            take(start);
            return 1;
        };
        let last = step(start, first);
        // The direction back to where we came from.
        let (mut at, mut from, mut count) = (start, first % 8, 0);
        loop {
            // Counter-clockwise from there.
            let direction = (1..=8)
                .map(|turn| from + 8 - turn)
                .find(|direction| is_dark(self, at, *direction))
                .unwrap_or(from);
            take(at);
            count += 1;
            self.mark(at);
            let next = step(at, direction);
            if next == start && at == last {
                return count;
            }
            at = next;
            from = (direction + 4) % 8;
        }
    }
}

/// For each corner between pixels, the sum of all pixels above and to the left of it.
fn sums(picture: Picture<'_>) -> Vec<u32> {
    let (width, height) = (picture.width(), picture.height());
    let mut sums = vec![0_u32; (width + 1) * (height + 1)];
    for y in 0..height {
        let (above, below) = sums.split_at_mut((y + 1) * (width + 1));
        let above = &above[y * (width + 1)..];
        let mut of_row = 0_u32;
        for (x, pixel) in picture.row(y).iter().enumerate() {
            of_row += u32::from(*pixel);
            below[x + 1] = above[x + 1].wrapping_add(of_row);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The areas of the outlines of what `#` draws, sorted.
    fn areas(draw: impl Fn(i32, i32) -> bool) -> Vec<f64> {
        const SIZE: i32 = 60;
        let pixels: Vec<u8> = (0..SIZE * SIZE)
            .map(|index| match draw(index % SIZE, index / SIZE) {
                true => 20,
                false => 220,
            })
            .collect();
        let picture = Picture::new(SIZE as usize, SIZE as usize, &pixels).unwrap();
        let mut areas = Vec::new();
        outlines(picture, 14, |points| areas.push(area(points)));
        areas.sort_by(f64::total_cmp);
        areas
    }

    fn within(x: i32, y: i32, low: i32, high: i32) -> bool {
        (low..=high).contains(&x) && (low..=high).contains(&y)
    }

    #[test]
    fn outlines_go_through_the_outer_pixels() {
        assert_eq!(areas(|x, y| within(x, y, 20, 40)), [400.0]);
        assert_eq!(areas(|_, _| false), [0.0; 0]);
        // Too small.
        assert_eq!(areas(|x, y| within(x, y, 20, 25)), [0.0; 0]);
    }

    #[test]
    fn holes_have_no_outline_and_islands_in_them_have_one() {
        let ring = |x, y| within(x, y, 5, 55) && !within(x, y, 12, 48);
        assert_eq!(areas(ring), [2500.0]);
        let island = |x, y| ring(x, y) || within(x, y, 20, 40);
        assert_eq!(areas(island), [400.0, 2500.0]);
    }

    #[test]
    fn areas_at_the_edge_of_the_picture_have_an_outline() {
        assert_eq!(areas(|x, y| within(x, y, 0, 10)), [100.0]);
    }
}
