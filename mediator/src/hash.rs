//! Tables for numbers and addresses that are looked up for every message. PURE.
//!
//! The hash is keyed anew in every process, so nobody can choose addresses that
//! collide without seeing the key. The standard one was a third of all that the
//! mediator itself does for a message.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// See the [module](self).
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// See the [module](self).
pub(crate) type Set<K> = HashSet<K, RandomState>;

/// Finds entries of a table by something that stands in them, without a copy
/// of it: five bytes for each, and room to grow.
#[derive(Debug, Default)]
pub(crate) struct Index {
    slots: HashTable<u32>,
    random: RandomState,
}

impl Index {
    /// The slot with a key, which `is_it` looks up.
    pub(crate) fn find<K: Hash>(&self, key: &K, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.random.hash_one(key);
        self.slots.find(hash, |slot| is_it(*slot)).copied()
    }

    /// Adds a slot with a key that no other has. `key_of` looks up the key of
    /// any slot in the index.
    pub(crate) fn insert<K: Hash>(&mut self, slot: u32, key_of: impl Fn(u32) -> Option<K>) {
        let hash_of = |key: K| self.random.hash_one(key);
        let hash = |slot: &u32| key_of(*slot).map_or(0, hash_of);
        self.slots.insert_unique(hash(&slot), slot, hash);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.slots.allocation_size()
    }

    /// Takes a slot out, whose key is this.
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
        /// The same as a map whose keys stand in it.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u8..20, any::<bool>()), 0..200)) {
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
