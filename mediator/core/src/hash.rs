//! Hash tables for numbers and addresses that are looked up for every message. PURE.
//!
//! The hash has a new key in every process, so addresses cannot be chosen to collide. The
//! standard hash took a third of the mediator's own time per message.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// See the [module](self).
pub type Map<K, V> = HashMap<K, V, RandomState>;

/// See the [module](self).
pub type Set<K> = HashSet<K, RandomState>;

/// Finds entries of a table by a key that is stored in the entry, without a copy of the key:
/// five bytes per entry, plus spare capacity.
#[derive(Debug, Default)]
pub(crate) struct Index {
    slots: HashTable<u32>,
    random: RandomState,
}

impl Index {
    /// The slot of the entry with a key. `is_it` checks the key of a slot.
    pub(crate) fn find<K: Hash>(&self, key: &K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.random.hash_one(key);
        self.slots.find(hash, |slot| is_it(*slot)).copied()
    }

    /// Adds a slot with a unique key. `key_of` returns the key of any slot in the index.
    pub(crate) fn insert<K: Hash>(&mut self, slot: u32, key_of: impl Fn(u32) -> Option<K>) {
        let hash_of = |key: K| self.random.hash_one(key);
        let hash = |slot: &u32| key_of(*slot).map_or(0, hash_of);
        self.slots.insert_unique(hash(&slot), slot, hash);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.slots.allocation_size()
    }

    /// Removes a slot with this key.
    pub(crate) fn remove<K: Hash>(&mut self, slot: u32, key: &K) {
        let hash = self.random.hash_one(key);
        if let Ok(entry) = self.slots.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares it with a map that stores its keys.
        #[test]
        fn it_behaves_like_a_map(steps in prop::collection::vec((0u8..20, any::<bool>()), 0..200)) {
            let (mut keys, mut index) = (Vec::new(), Index::default());
            let mut model = BTreeMap::new();
            for (key, add) in steps {
                let known = model.get(&key).copied();
                prop_assert_eq!(index.find(&key, |slot| keys[slot as usize] == key), known);
                match known {
                    None if add => {
                        let slot = keys.len() as u32;
                        keys.push(key);
                        index.insert(slot, |slot| Some(keys[slot as usize]));
                        model.insert(key, slot);
                    }
                    Some(slot) if !add => {
                        index.remove(slot, &key);
                        model.remove(&key);
                    }
                    _ => {}
                }
            }
        }
    }
}
