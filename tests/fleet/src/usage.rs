//! The CPU time of processes. IO.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use amber_harness::usage::cpu_of;

/// CPU times at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu: HashMap<u32, Duration>,
}

impl Reading {
    /// Reads the CPU times of these processes.
    pub(crate) fn of(pids: impl IntoIterator<Item = u32>) -> Self {
        let cpu = pids.into_iter().map(|pid| (pid, cpu_of(pid)));
        Self {
            cpu: cpu.collect(),
            at: Instant::now(),
        }
    }

    /// The CPU time of processes since an earlier reading, and the time between both.
    pub(crate) fn since(&self, earlier: &Self, pids: &[u32]) -> (Duration, Duration) {
        let used = pids.iter().filter_map(|pid| {
            let (now, before) = (self.cpu.get(pid)?, earlier.cpu.get(pid)?);
            Some(now.saturating_sub(*before))
        });
        (used.sum(), self.at - earlier.at)
    }
}
