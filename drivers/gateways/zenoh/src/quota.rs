//! Limits for what waits: for all operators together, and for each of them. PURE.
//!
//! One operator with many programs cannot take what the others need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::names::Name;

/// How many things may wait.
#[derive(Clone, Debug)]
pub struct Quota {
    all: usize,
    each: usize,
    used: Arc<Mutex<HashMap<Name, usize>>>,
}

/// One of the things that wait; its place is free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    who: Name,
    used: Arc<Mutex<HashMap<Name, usize>>>,
}

impl Quota {
    /// So many for all together, and so many for each operator.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all,
            each,
            used: Arc::default(),
        }
    }

    /// A place for this operator; `None` if there is none.
    #[must_use]
    pub fn take(&self, who: &Name) -> Option<Place> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let own = used.get(who).copied().unwrap_or_default();
        let total: usize = used.values().sum();
        if own >= self.each || total >= self.all {
            return None;
        }
        used.insert(who.clone(), own + 1);
        Some(Place {
            who: who.clone(),
            used: self.used.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = used.get_mut(&self.who) {
            *own -= 1;
            // Names that ask for nothing take no memory.
            if *own == 0 {
                used.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_places_of_others() {
        let quota = Quota::new(5, 3);
        let name = |text: &str| text.parse::<Name>().unwrap();
        let (alice, bob) = (name("alice"), name("bob"));
        let taken: Vec<_> = (0..5).map_while(|_| quota.take(&alice)).collect();
        assert_eq!(taken.len(), 3);
        let others: Vec<_> = (0..5).map_while(|_| quota.take(&bob)).collect();
        assert_eq!(others.len(), 2);
        assert!(quota.take(&name("carol")).is_none());
        drop(taken);
        assert!(quota.take(&alice).is_some());
        drop(others);
        assert!(quota.used.lock().unwrap().is_empty());
    }
}
