//! Who gives way to whom: lines of entries, each in the order in which they
//! were moved to its end. PURE.
//!
//! Entries are the numbers of slots that somebody else owns. Everything costs
//! the same, however many there are. What links them is apart from the lines:
//! many orders can share it, as long as an entry stands in one of them.

const NOBODY: u32 = u32::MAX;

/// The neighbours of each entry in its line, which is a ring: whoever comes
/// first has the last one before him.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

impl Link {
    const NONE: Self = Self {
        before: NOBODY,
        after: NOBODY,
    };
}

/// `N` lines, of which the first gives way first; the front of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<const N: usize>([u32; N]);

impl<const N: usize> Default for Order<N> {
    fn default() -> Self {
        Self([NOBODY; N])
    }
}

impl Links {
    fn get(&self, slot: u32) -> Link {
        self.0.get(slot as usize).copied().unwrap_or(Link::NONE)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Link>()
    }

    /// Puts `after` right behind `before`.
    fn join(&mut self, before: u32, after: u32) {
        self.0[before as usize].after = after;
        self.0[after as usize].before = before;
    }
}

impl<const N: usize> Order<N> {
    /// Moves an entry to the end of a line, wherever in this order it stood.
    pub(super) fn move_to_end(&mut self, links: &mut Links, slot: u32, line: usize) {
        let front = self.0[line];
        if front != NOBODY && links.get(front).before == slot {
            return;
        }
        self.remove(links, slot);
        if links.0.len() <= slot as usize {
            links.0.resize(slot as usize + 1, Link::NONE);
        }
        let front = self.0[line];
        if front == NOBODY {
            self.0[line] = slot;
            links.join(slot, slot);
        } else {
            links.join(links.get(front).before, slot);
            links.join(slot, front);
        }
    }

    /// Takes an entry out, if it is in.
    pub(super) fn remove(&mut self, links: &mut Links, slot: u32) {
        let Link { before, after } = links.get(slot);
        if after == NOBODY {
            return;
        }
        if let Some(front) = self.0.iter_mut().find(|front| **front == slot) {
            *front = if after == slot { NOBODY } else { after };
        }
        links.join(before, after);
        links.0[slot as usize] = Link::NONE;
    }

    /// The entry that gives way to the next one.
    pub(super) fn first(&self) -> Option<u32> {
        self.0.iter().copied().find(|slot| *slot != NOBODY)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The same as lists that are searched from end to end; two orders share
        /// the links, one for even and one for odd entries.
        #[test]
        fn it_is_a_row_of_lists(steps in prop::collection::vec((0u32..16, 0usize..4), 0..200)) {
            let mut links = Links::default();
            let mut orders = [Order::<3>::default(); 2];
            let mut models: [[VecDeque<u32>; 3]; 2] = Default::default();
            for (slot, line) in steps {
                let (order, model) = (&mut orders[slot as usize % 2], &mut models[slot as usize % 2]);
                for list in model.iter_mut() {
                    list.retain(|other| *other != slot);
                }
                if line < 3 {
                    order.move_to_end(&mut links, slot, line);
                    model[line].push_back(slot);
                } else {
                    order.remove(&mut links, slot);
                }
                for (order, model) in orders.iter().zip(&models) {
                    let first = model.iter().find_map(|list| list.front().copied());
                    prop_assert_eq!(order.first(), first);
                }
            }
            for (order, model) in orders.iter_mut().zip(models) {
                let mut left: Vec<u32> = model.into_iter().flatten().collect();
                left.reverse();
                while let Some(first) = order.first() {
                    prop_assert_eq!(Some(first), left.pop());
                    order.remove(&mut links, first);
                }
                prop_assert!(left.is_empty());
            }
        }
    }
}
