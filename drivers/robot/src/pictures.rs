//! How the users of one camera want its pictures. PURE.

use std::time::Duration;

/// How a program wants the pictures of a camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PictureWish {
    /// The time between two pictures, in milliseconds. If it is shorter than that of the camera, each
    /// picture; 0 counts as 1.
    pub period_ms: u32,
    /// In pixels: the camera makes wider pictures smaller by a whole factor. `None`: as they are.
    pub max_width: Option<u32>,
}

impl PictureWish {
    /// The time between two pictures. It is never 0, which ends a subscription.
    #[must_use]
    pub fn period(self) -> Duration {
        Duration::from_millis(self.period_ms.max(1).into())
    }

    /// One that serves both: the shorter period, and the larger width.
    #[must_use]
    pub fn stronger(self, other: Self) -> Self {
        Self {
            period_ms: self.period_ms.min(other.period_ms),
            max_width: self
                .max_width
                .zip(other.max_width)
                .map(|(one, other)| one.max(other)),
        }
    }
}

/// The wishes of all users of one camera. A camera makes only one kind of picture for a client.
#[derive(Debug, Default)]
pub struct PictureWishes(Vec<PictureWish>);

impl PictureWishes {
    /// One more user.
    pub fn add(&mut self, wish: PictureWish) {
        self.0.push(wish);
    }

    /// A user with this wish has left.
    pub fn remove(&mut self, wish: PictureWish) {
        if let Some(place) = self.0.iter().position(|other| *other == wish) {
            self.0.swap_remove(place);
        }
    }

    /// One that serves all; `None` if nobody wants pictures.
    #[must_use]
    pub fn strongest(&self) -> Option<PictureWish> {
        self.0.iter().copied().reduce(PictureWish::stronger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_wish_counts_as_long_as_somebody_has_it() {
        let wish = |period_ms, max_width| PictureWish {
            period_ms,
            max_width,
        };
        let mut all = PictureWishes::default();
        assert_eq!(all.strongest(), None);
        let (slow, narrow, whole) = (
            wish(1_000, Some(640)),
            wish(100, Some(320)),
            wish(2_000, None),
        );
        for (added, expected) in [
            (slow, slow),
            (narrow, wish(100, Some(640))),
            (narrow, wish(100, Some(640))),
            (whole, wish(100, None)),
        ] {
            all.add(added);
            assert_eq!(all.strongest(), Some(expected));
        }
        for (removed, expected) in [
            (narrow, Some(wish(100, None))),
            (narrow, Some(wish(1_000, None))),
            // There is none like this.
            (narrow, Some(wish(1_000, None))),
            (whole, Some(slow)),
            (slow, None),
        ] {
            all.remove(removed);
            assert_eq!(all.strongest(), expected);
        }
        assert_eq!(wish(0, None).period(), Duration::from_millis(1));
    }
}
