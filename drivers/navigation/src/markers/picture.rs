//! Grey pictures, and their brightness between pixels. PURE.

/// A point in a picture, in pixels: to the right and down. The centre of the first pixel is at (0, 0).
pub type Px = [f64; 2];

/// A grey picture: one byte per pixel, row by row from the upper left corner; 0 is black.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    width: usize,
    height: usize,
    pixels: &'a [u8],
}

impl<'a> Picture<'a> {
    /// `None` if there are not as many pixels as there should be, or none.
    #[must_use]
    pub fn new(width: usize, height: usize, pixels: &'a [u8]) -> Option<Self> {
        let is_right = width > 0 && height > 0 && width.checked_mul(height) == Some(pixels.len());
        is_right.then_some(Self {
            width,
            height,
            pixels,
        })
    }

    /// In pixels.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// In pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    pub(super) fn row(&self, y: usize) -> &'a [u8] {
        &self.pixels[y * self.width..][..self.width]
    }

    /// The brightness at a place between pixels; beside the picture, that of its edge.
    pub(super) fn at(&self, [x, y]: Px) -> f64 {
        let clamped = |value: f64, size: usize| value.clamp(0.0, (size - 1) as f64);
        let (x, y) = (clamped(x, self.width), clamped(y, self.height));
        let (left, top) = (x as usize, y as usize);
        let (right, bottom) = (
            (left + 1).min(self.width - 1),
            (top + 1).min(self.height - 1),
        );
        let (part_x, part_y) = (x - left as f64, y - top as f64);
        let of = |x: usize, y: usize| f64::from(self.pixels[y * self.width + x]);
        let upper = of(left, top) * (1.0 - part_x) + of(right, top) * part_x;
        let lower = of(left, bottom) * (1.0 - part_x) + of(right, bottom) * part_x;
        upper * (1.0 - part_y) + lower * part_y
    }
}

pub(super) fn minus(one: Px, other: Px) -> Px {
    [one[0] - other[0], one[1] - other[1]]
}

pub(super) fn length(way: Px) -> f64 {
    way[0].hypot(way[1])
}

/// Positive if `other` points to the right of `one`, as one sees it in the picture.
pub(super) fn cross(one: Px, other: Px) -> f64 {
    one[0] * other[1] - one[1] * other[0]
}

/// The area of a polygon; positive if its corners are clockwise, as one sees them.
pub(super) fn area(corners: &[Px]) -> f64 {
    let after = corners.iter().cycle().skip(1);
    let twice: f64 = (corners.iter().zip(after))
        .map(|(one, next)| cross(*one, *next))
        .sum();
    twice / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brightness_is_interpolated() {
        let picture = Picture::new(2, 2, &[0, 100, 100, 200]).unwrap();
        for (at, expected) in [
            ([0.0, 0.0], 0.0),
            ([1.0, 0.0], 100.0),
            ([0.5, 0.0], 50.0),
            ([0.5, 0.5], 100.0),
            ([9.0, 9.0], 200.0),
            ([-1.0, 5.0], 100.0),
        ] {
            assert_eq!(picture.at(at), expected, "{at:?}");
        }
    }

    #[test]
    fn sizes_must_fit() {
        for (width, height, count) in [(0, 0, 0), (2, 2, 3), (usize::MAX, 2, 4)] {
            assert_eq!(Picture::new(width, height, &vec![0; count]), None);
        }
    }

    #[test]
    fn clockwise_areas_are_positive() {
        let square = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]];
        assert_eq!(area(&square), 4.0);
    }
}
