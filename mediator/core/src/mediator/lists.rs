//! Recent lists, kept for programs on other machines. PURE.
//!
//! A list of thousands of clients takes tenths of a millisecond to make. However many programs
//! request it, it is made once per [`LIST_AGE`].

use std::sync::Arc;
use std::time::Instant;

use crate::limits::{LIST_AGE, LIST_PARTS};

/// One page of a list, and its first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Drivers(Page),
    Clients(Page),
}

/// A part of a list that fits into one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The entries before it.
    pub(super) skip: u32,
    /// The space for its entries, in bytes.
    pub(super) bytes: usize,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Lists, the oldest first.
    kept: Vec<(Instant, List, Arc<[u8]>)>,
}

impl Lists {
    /// The encoded list, if there is a recent one.
    pub(super) fn find(&mut self, now: Instant, list: List) -> Option<Arc<[u8]>> {
        let recent = |made: Instant| now.saturating_duration_since(made) < LIST_AGE;
        self.kept.retain(|(made, ..)| recent(*made));
        let found = self.kept.iter().find(|(_, kept, _)| *kept == list)?;
        Some(found.2.clone())
    }

    /// Keeps a list that was just made.
    pub(super) fn keep(&mut self, now: Instant, list: List, encoded: Vec<u8>) -> Arc<[u8]> {
        if self.kept.len() == LIST_PARTS {
            self.kept.remove(0);
        }
        let encoded: Arc<[u8]> = encoded.into();
        self.kept.push((now, list, encoded.clone()));
        encoded
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn page(skip: u32) -> Page {
        Page { skip, bytes: 1000 }
    }

    #[test]
    fn few_lists_are_kept_for_a_short_time() {
        let (mut lists, start) = (Lists::default(), Instant::now());
        assert_eq!(lists.find(start, List::Clients(page(0))), None);
        lists.keep(start, List::Clients(page(0)), vec![1]);
        lists.keep(start, List::Drivers(page(0)), vec![2]);
        let late = start + LIST_AGE - Duration::from_millis(1);
        assert_eq!(
            lists.find(late, List::Clients(page(0))).as_deref(),
            Some(&[1][..])
        );
        assert_eq!(
            lists.find(late, List::Drivers(page(0))).as_deref(),
            Some(&[2][..])
        );
        assert_eq!(lists.find(late, List::Clients(page(9))), None);
        assert_eq!(lists.find(start + LIST_AGE, List::Clients(page(0))), None);
        for skip in 0..2 * LIST_PARTS as u32 {
            lists.keep(late, List::Clients(page(skip)), vec![]);
            assert!(lists.kept.len() <= LIST_PARTS);
        }
    }
}
