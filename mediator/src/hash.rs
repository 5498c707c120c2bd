//! Tables for numbers and addresses that are looked up for every message. PURE.
//!
//! The hash is keyed anew in every process, so nobody can choose addresses that
//! collide without seeing the key; and it takes a fifth of the time of the
//! standard one, which was a third of all that the mediator itself does for a
//! message.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// See the [module](self).
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;

/// See the [module](self).
pub(crate) type Set<K> = HashSet<K, RandomState>;
