//! Where the decisions of a world come from: a seed, or the bytes of a fuzzer. PURE.

use std::ops::{Bound, RangeBounds};

use fastrand::Rng;

/// Makes decisions. It has the methods of [`Rng`] that worlds use.
///
/// With bytes, each decision takes the next byte, or two if it has more than 256
/// outcomes. So a small change of the bytes is a small change of the world, and a
/// fuzzer can search for worlds that reach new code. After the last byte, decisions
/// come from a constant seed.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
    /// The bytes that are left, in reverse order; `None` for a world from a seed.
    bytes: Option<Vec<u8>>,
}

/// Methods that draw an integer from a range.
macro_rules! integers {
    ($($int:ident),*) => {$(
        #[doc = concat!("A number in `range`, as [`Rng::", stringify!($int), "`].")]
        ///
        /// # Panics
        /// The range is empty.
        pub fn $int(&mut self, range: impl RangeBounds<$int>) -> $int {
            if self.bytes.as_ref().is_none_or(Vec::is_empty) {
                return self.rng.$int(range);
            }
            let low = match range.start_bound() {
                Bound::Included(low) => *low,
                Bound::Excluded(low) => *low + 1,
                Bound::Unbounded => $int::MIN,
            };
            let high = match range.end_bound() {
                Bound::Included(high) => *high,
                Bound::Excluded(high) => *high - 1,
                Bound::Unbounded => $int::MAX,
            };
            assert!(low <= high, "empty range: {low} to {high}");
            let offset = self.at_most(high.abs_diff(low) as u64);
            low.wrapping_add(offset as $int)
        }
    )*};
}

impl Random {
    /// Decisions from a seed: the same seed makes the same world.
    pub fn seeded(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            bytes: None,
        }
    }

    /// Decisions from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            rng: Rng::with_seed(0),
            bytes: Some(bytes.iter().rev().copied().collect()),
        }
    }

    /// Whether there were bytes, and none is left.
    pub fn is_used_up(&self) -> bool {
        self.bytes.as_ref().is_some_and(Vec::is_empty)
    }

    integers!(u8, u16, u32, u64, usize, i32);

    /// True or false, as [`Rng::bool`].
    pub fn bool(&mut self) -> bool {
        match self.byte() {
            Some(byte) => byte & 1 == 1,
            None => self.rng.bool(),
        }
    }

    /// A number from 0 to less than 1, as [`Rng::f64`].
    pub fn f64(&mut self) -> f64 {
        match self.byte() {
            Some(byte) => f64::from(byte) / 256.0,
            None => self.rng.f64(),
        }
    }

    /// One of several, as [`Rng::choice`].
    pub fn choice<I>(&mut self, all: I) -> Option<I::Item>
    where
        I: IntoIterator,
        I::IntoIter: ExactSizeIterator,
    {
        let mut all = all.into_iter();
        match all.len() {
            0 => None,
            len => all.nth(self.usize(0..len)),
        }
    }

    /// A source of its own, for a peer. It takes no bytes: what the peer does must not
    /// depend on how many others draw from the same bytes.
    pub fn fork(&mut self) -> Self {
        Self {
            rng: self.rng.fork(),
            bytes: None,
        }
    }

    /// A number from 0 to `most`, from the bytes.
    fn at_most(&mut self, most: u64) -> u64 {
        let first = u64::from(self.byte().unwrap_or(0));
        if most < 256 {
            return first % (most + 1);
        }
        let drawn = first << 8 | u64::from(self.byte().unwrap_or(0));
        let scaled = u128::from(drawn) * (u128::from(most) + 1);
        (scaled >> 16) as u64
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes.as_mut()?.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_until_they_are_used_up() {
        let mut random = Random::from_bytes(&[3, 1, 255, 255, 128, 200]);
        assert_eq!(random.u8(0..2), 1);
        assert!(random.bool());
        assert_eq!(random.u64(1000..2001), 2000);
        assert_eq!(random.f64(), 0.5);
        assert!(!random.is_used_up());
        assert_eq!(random.choice([7, 8, 9]), Some(9));
        assert!(random.is_used_up());
        assert!((5..9).contains(&random.i32(5..9)));
    }

    #[test]
    fn every_range_is_kept_with_any_bytes() {
        for byte in 0..=u8::MAX {
            let mut random = Random::from_bytes(&[byte; 32]);
            assert!((10..20).contains(&random.u16(10..20)));
            assert!((-2..200).contains(&random.i32(-2..200)));
            assert!((7000..7500).contains(&random.u16(7000..7500)));
            assert!(random.usize(0..=3) <= 3);
            assert!(random.u16(1..) >= 1);
            let _ = (random.u64(..), random.u32(..), random.u8(..));
            assert!((0.0..1.0).contains(&random.f64()));
            assert!(!random.is_used_up());
        }
    }

    #[test]
    fn seeds_decide_as_fastrand_does() {
        let (mut random, mut rng) = (Random::seeded(7), Rng::with_seed(7));
        assert_eq!(random.u64(5..40), rng.u64(5..40));
        assert_eq!(random.f64(), rng.f64());
        assert_eq!(random.choice([1, 2, 3]), rng.choice([1, 2, 3]));
        assert_eq!(random.fork().u32(..), rng.fork().u32(..));
        assert!(!random.is_used_up());
    }
}
