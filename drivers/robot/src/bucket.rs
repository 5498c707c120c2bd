//! Token buckets: how often something may happen. PURE.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::limits::{MAX_SOURCES, SWEEP_PERIOD};

/// A token bucket that holds what comes in one second.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    per_s: f64,
    tokens: f64,
    filled: Duration,
}

impl Bucket {
    /// Creates a full one.
    #[must_use]
    pub fn new(per_s: u32) -> Self {
        let per_s = f64::from(per_s);
        Self {
            per_s,
            tokens: per_s,
            filled: Duration::ZERO,
        }
    }

    /// Takes one token; `false` if there is none.
    pub fn take(&mut self, now: Duration) -> bool {
        self.take_many(now, 1)
    }

    /// Takes several tokens, or none if there are too few.
    pub fn take_many(&mut self, now: Duration, count: u32) -> bool {
        self.tokens = self.level(now);
        self.filled = self.filled.max(now);
        let enough = self.tokens >= f64::from(count);
        if enough {
            self.tokens -= f64::from(count);
        }
        enough
    }

    fn is_full(&self, now: Duration) -> bool {
        self.level(now) >= self.per_s
    }

    fn level(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        (self.tokens + passed * self.per_s).min(self.per_s)
    }
}

/// A token bucket for each key, such as the address of a stranger. Bounded: if all keys are in use,
/// new ones get nothing.
#[derive(Debug)]
pub struct Buckets<K> {
    per_s: u32,
    buckets: HashMap<K, Bucket>,
    swept: Option<Duration>,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Creates them with this rate for each key.
    #[must_use]
    pub fn new(per_s: u32) -> Self {
        Self {
            per_s,
            buckets: HashMap::new(),
            swept: None,
        }
    }

    /// Takes one token of a key; `false` if there is none.
    pub fn take(&mut self, now: Duration, key: K) -> bool {
        let per_s = self.per_s;
        self.has_room_for(now, &key) && {
            let bucket = self.buckets.entry(key);
            bucket.or_insert_with(|| Bucket::new(per_s)).take(now)
        }
    }

    /// Whether a key has a bucket or can get one.
    pub fn has_room_for(&mut self, now: Duration, key: &K) -> bool {
        if self.buckets.len() < MAX_SOURCES || self.buckets.contains_key(key) {
            return true;
        }
        // A full bucket contains no more information than a new one.
        if (self.swept).is_none_or(|swept| now.saturating_sub(swept) >= SWEEP_PERIOD) {
            self.swept = Some(now);
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        self.buckets.len() < MAX_SOURCES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_full_buckets_make_room() {
        let mut buckets = Buckets::new(10);
        let taken = (0..6000_u32).filter(|key| buckets.take(Duration::ZERO, *key));
        assert_eq!(taken.count(), MAX_SOURCES);
        let later = Duration::from_millis(200);
        assert!(buckets.take(later, 7000));
        assert!(buckets.buckets.len() < 10);
    }
}
