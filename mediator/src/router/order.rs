//! Who gives way to whom: lines of entries, each in the order in which they
//! were moved to its end. PURE.
//!
//! Entries are the numbers of slots that somebody else owns. Everything costs
//! the same, however many there are.

const NOBODY: u32 = u32::MAX;

/// See the [module](self); `N` lines, at most 256, of which the first gives way
/// first.
#[derive(Debug)]
pub(super) struct Order<const N: usize> {
    links: Vec<Link>,
    fronts: [u32; N],
    backs: [u32; N],
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// The line it stands in, if any.
    line: Option<u8>,
    before: u32,
    after: u32,
}

impl<const N: usize> Default for Order<N> {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            fronts: [NOBODY; N],
            backs: [NOBODY; N],
        }
    }
}

impl<const N: usize> Order<N> {
    /// Moves an entry to the end of a line, wherever it stood.
    pub(super) fn move_to_end(&mut self, slot: u32, line: usize) {
        if self.backs[line] == slot {
            return;
        }
        self.remove(slot);
        let at = slot as usize;
        if self.links.len() <= at {
            let nowhere = Link {
                line: None,
                before: NOBODY,
                after: NOBODY,
            };
            self.links.resize(at + 1, nowhere);
        }
        let before = std::mem::replace(&mut self.backs[line], slot);
        self.links[at] = Link {
            line: Some(line as u8),
            before,
            after: NOBODY,
        };
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = slot,
            None => self.fronts[line] = slot,
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize) else {
            return;
        };
        let Some(line) = link.line.take() else { return };
        let line = usize::from(line);
        let Link { before, after, .. } = *link;
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => self.fronts[line] = after,
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => self.backs[line] = before,
        }
    }

    /// The entry that gives way to the next one.
    pub(super) fn first(&self) -> Option<u32> {
        self.fronts.iter().copied().find(|slot| *slot != NOBODY)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as lists that are searched from end to end.
        #[test]
        fn it_is_a_row_of_lists(steps in prop::collection::vec((0u32..8, 0usize..4), 0..100)) {
            let mut order = Order::<3>::default();
            let mut model: [VecDeque<u32>; 3] = Default::default();
            for (slot, line) in steps {
                for list in &mut model {
                    list.retain(|other| *other != slot);
                }
                if line < 3 {
                    order.move_to_end(slot, line);
                    model[line].push_back(slot);
                } else {
                    order.remove(slot);
                }
                let first = model.iter().find_map(|list| list.front().copied());
                prop_assert_eq!(order.first(), first);
            }
            let mut left: Vec<u32> = model.into_iter().flatten().collect();
            left.reverse();
            while let Some(first) = order.first() {
                prop_assert_eq!(Some(first), left.pop());
                order.remove(first);
            }
            prop_assert!(left.is_empty());
        }
    }
}
