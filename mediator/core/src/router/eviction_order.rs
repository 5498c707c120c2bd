//! Eviction order: several lists of slot numbers; an entry moves to the end of a list. PURE.
//!
//! The slots belong to the caller. Each operation takes constant time. The links are stored
//! apart from the lists, so many orders can share them, as long as each entry is in only one
//! order.

const NO_SLOT: u32 = u32::MAX;

/// The neighbours of each entry in its list. Each list is a ring: the last entry precedes the
/// first.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Neighbours>);

#[derive(Clone, Copy, Debug)]
struct Neighbours {
    before: u32,
    after: u32,
}

impl Neighbours {
    const NONE: Self = Self {
        before: NO_SLOT,
        after: NO_SLOT,
    };
}

/// `N` lists, by their first entries. Entries of the first list are evicted first.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvictionOrder<const N: usize>([u32; N]);

impl<const N: usize> Default for EvictionOrder<N> {
    fn default() -> Self {
        Self([NO_SLOT; N])
    }
}

impl Links {
    fn get(&self, slot: u32) -> Neighbours {
        self.0
            .get(slot as usize)
            .copied()
            .unwrap_or(Neighbours::NONE)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Neighbours>()
    }

    /// Makes `after` the successor of `before`.
    fn join(&mut self, before: u32, after: u32) {
        self.0[before as usize].after = after;
        self.0[after as usize].before = before;
    }
}

impl<const N: usize> EvictionOrder<N> {
    /// Moves an entry to the end of a list, from wherever it is in this order.
    pub(super) fn move_to_end(&mut self, links: &mut Links, slot: u32, line: usize) {
        let front = self.0[line];
        if front != NO_SLOT && links.get(front).before == slot {
            return;
        }
        self.remove(links, slot);
        if links.0.len() <= slot as usize {
            links.0.resize(slot as usize + 1, Neighbours::NONE);
        }
        let front = self.0[line];
        if front == NO_SLOT {
            self.0[line] = slot;
            links.join(slot, slot);
        } else {
            links.join(links.get(front).before, slot);
            links.join(slot, front);
        }
    }

    /// Removes an entry, if it is in this order.
    pub(super) fn remove(&mut self, links: &mut Links, slot: u32) {
        let Neighbours { before, after } = links.get(slot);
        if after == NO_SLOT {
            return;
        }
        if let Some(front) = self.0.iter_mut().find(|front| **front == slot) {
            *front = if after == slot { NO_SLOT } else { after };
        }
        links.join(before, after);
        links.0[slot as usize] = Neighbours::NONE;
    }

    /// The first entry of each list that has one, with the number of the list.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (usize, u32)> {
        let all = self.0.iter().copied().enumerate();
        all.filter(|(_, slot)| *slot != NO_SLOT)
    }

    /// The first entry of all lists.
    pub(super) fn first(&self) -> Option<u32> {
        self.firsts().next().map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares it with plain vectors. Two orders share the links, one for even and one for
        /// odd entries.
        #[test]
        fn it_behaves_like_plain_lists(steps in prop::collection::vec((0u32..16, 0usize..4), 0..200)) {
            let mut links = Links::default();
            let mut orders = [EvictionOrder::<3>::default(); 2];
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
                    let lists = model.iter().enumerate();
                    let firsts = lists.filter_map(|(line, list)| Some((line, *list.front()?)));
                    prop_assert!(order.firsts().eq(firsts));
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
