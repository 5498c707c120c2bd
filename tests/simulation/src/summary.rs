//! What has happened, so that one sees that each kind of trouble really did. PURE.

use std::collections::BTreeMap;
use std::fmt;

use amber_mediator::counters::{Count, Counters, Drop};

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    happened: BTreeMap<&'static str, u64>,
    dropped: BTreeMap<&'static str, u64>,
    digest: u64,
}

impl Summary {
    /// Something has happened once more.
    pub fn count(&mut self, what: &'static str) {
        self.count_many(what, 1);
    }

    /// Something has happened so many times.
    pub fn count_many(&mut self, what: &'static str, many: u64) {
        if many > 0 {
            *self.happened.entry(what).or_default() += many;
        }
    }

    /// How often something has happened.
    pub fn counted(&self, what: &str) -> u64 {
        self.happened.get(what).copied().unwrap_or(0)
    }

    /// How often something was dropped for a reason.
    pub fn dropped(&self, why: Drop) -> u64 {
        self.dropped.get(why.name()).copied().unwrap_or(0)
    }

    /// What a mediator has counted until its end.
    pub fn add(&mut self, counters: &Counters) {
        for why in Drop::ALL.iter().filter(|why| counters.dropped(**why) > 0) {
            *self.dropped.entry(why.name()).or_default() += counters.dropped(*why);
        }
        for what in [
            Count::ClientsSeen,
            Count::ClientsGone,
            Count::ClientsEvicted,
            Count::ClientsEvictedForHost,
            Count::ClientsUnreachable,
            Count::Requests,
            Count::CopiesToClients,
            Count::CopiesToDrivers,
            Count::DriverDeaths,
            Count::DriversDeaf,
            Count::DriversSaidDead,
        ] {
            self.count_many(what.name(), counters.counted(what));
        }
    }

    /// Takes something into the [`Summary::digest`].
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A number that two runs have in common only if the same bytes went over the
    /// wires in the same order.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Two together.
    pub fn merge(&mut self, other: &Self) {
        for (what, many) in &other.happened {
            *self.happened.entry(what).or_default() += many;
        }
        for (why, many) in &other.dropped {
            *self.dropped.entry(why).or_default() += many;
        }
        self.digest ^= other.digest.rotate_left(1);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "happened:")?;
        for (what, many) in &self.happened {
            writeln!(f, "  {many:>12}  {what}")?;
        }
        writeln!(f, "dropped by the mediator:")?;
        for (why, many) in &self.dropped {
            writeln!(f, "  {many:>12}  {why}")?;
        }
        Ok(())
    }
}
