//! Counters of forwarded and of dropped messages. PURE.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Named counters, shared by all tasks of a program.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Counters {
    /// Counts one.
    pub fn count(&self, name: &'static str) {
        self.add(name, 1);
    }

    /// Counts several.
    pub fn add(&self, name: &'static str, number: u64) {
        if number > 0 {
            let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *counters.entry(name).or_default() += number;
        }
    }

    /// All counters that are not 0.
    #[must_use]
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.clone()
    }
}
