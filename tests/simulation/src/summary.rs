//! Counts events, to show that each kind of fault occurred. PURE.

use std::collections::BTreeMap;
use std::fmt;

use amber_core::counters::{Count, Counters, DropReason};

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    happened: BTreeMap<&'static str, u64>,
    dropped: BTreeMap<&'static str, u64>,
    digest: u64,
}

impl Summary {
    /// Counts an event.
    pub fn count(&mut self, what: &'static str) {
        self.count_many(what, 1);
    }

    /// Counts an event several times.
    pub fn count_many(&mut self, what: &'static str, many: u64) {
        if many > 0 {
            *self.happened.entry(what).or_default() += many;
        }
    }

    /// The count of an event.
    pub fn counted(&self, what: &str) -> u64 {
        self.happened.get(what).copied().unwrap_or(0)
    }

    /// The count of a drop reason.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.dropped.get(why.name()).copied().unwrap_or(0)
    }

    /// Adds the final counters of a mediator.
    pub fn add(&mut self, counters: &Counters) {
        for why in DropReason::ALL
            .iter()
            .filter(|why| counters.dropped(**why) > 0)
        {
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

    /// Adds bytes to the [`Summary::digest`].
    pub fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// A number that is equal for two runs only if the same bytes were transferred in the same
    /// order.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Combines two summaries.
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
