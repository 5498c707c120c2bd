//! The CPU time and memory of processes. IO.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

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

/// The CPU time of all threads of a process.
fn cpu_of(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let nanoseconds = (tasks.into_iter().flatten().flatten())
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Duration::from_nanos(nanoseconds.sum())
}

/// The memory of processes in bytes: resident (RSS), and in proportion where they share it (PSS).
pub(crate) fn memory_of(pids: &[u32]) -> (u64, u64) {
    let all = pids.iter().map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        (kilobytes(&text, "Rss:"), kilobytes(&text, "Pss:"))
    });
    all.fold((0, 0), |sum, it| (sum.0 + it.0 * 1024, sum.1 + it.1 * 1024))
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

/// The children of processes, with their names.
pub(crate) fn children(parents: &[u32]) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may contain anything.
        let (head, tail) = stat.rsplit_once(')')?;
        let parent: u32 = tail.split_whitespace().nth(1)?.parse().ok()?;
        let name = head.split_once('(')?.1.to_owned();
        parents.contains(&parent).then_some((pid, name))
    })
    .collect()
}
