//! The resources that processes use, from /proc on Linux. IO.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use crate::processes::fields_of;

/// The resource usage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory in KiB.
    pub resident_kib: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
    /// CPU time so far.
    pub cpu: Duration,
}

/// The current resource usage of a process; `None` if it has ended.
pub fn footprint(pid: u32) -> Option<Footprint> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let number = |key: &str| number_of(&status, key);
    let stat = fields_of(pid)?;
    let tick = |field: usize| stat.get(field)?.parse::<u64>().ok();
    let ms = 1000 * (tick(11)? + tick(12)?) / clock_ticks_per_second();
    Some(Footprint {
        resident_kib: number("VmRSS:")?,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
        threads: number("Threads:")?,
        cpu: Duration::from_millis(ms),
    })
}

/// The number of datagrams that the system dropped for the sockets at an address because the buffer
/// was full. The program that owns the socket cannot see this.
pub fn dropped_by_system(address: SocketAddr) -> u64 {
    let port = format!("{:04X}", address.port());
    let table = fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let drops = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let own = fields.get(1)?.rsplit(':').next()? == port;
        own.then(|| fields.last()?.parse::<u64>().ok()).flatten()
    });
    drops.sum()
}

/// The CPU time of all threads of a process, in nanoseconds.
pub fn cpu_of(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let nanoseconds = (tasks.into_iter().flatten().flatten())
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Duration::from_nanos(nanoseconds.sum())
}

/// Resident memory in bytes; `None` if the process has ended.
pub fn memory_of(pid: u32) -> Option<u64> {
    Some(1024 * number_in(&format!("/proc/{pid}/status"), "VmRSS:")?)
}

/// The memory of processes in bytes: resident (RSS), and in proportion where they share it (PSS).
pub fn shared_memory_of(pids: &[u32]) -> (u64, u64) {
    let all = pids.iter().map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let bytes = |key| 1024 * number_of(&text, key).unwrap_or_default();
        (bytes("Rss:"), bytes("Pss:"))
    });
    all.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

/// How often the threads of a process went to sleep, which equals the number of wake-ups.
pub fn sleeps_of(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    (tasks.into_iter().flatten().flatten())
        .filter_map(|task| {
            let status = task.path().join("status");
            number_in(status.to_str()?, "voluntary_ctxt_switches:")
        })
        .sum()
}

fn number_in(path: &str, key: &str) -> Option<u64> {
    number_of(&fs::read_to_string(path).ok()?, key)
}

/// The number after a key at the start of a line.
fn number_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_process_uses_resources() {
        let now = footprint(std::process::id()).unwrap();
        assert!(now.resident_kib > 100 && now.descriptors > 2 && now.threads > 0);
        assert_eq!(footprint(u32::MAX), None);
        let this = std::process::id();
        let (resident, in_proportion) = shared_memory_of(&[this]);
        assert!(resident >= in_proportion && in_proportion > 0);
        assert!(memory_of(this).unwrap() > 100_000 && cpu_of(this) > Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        assert!(sleeps_of(this) > 0);
    }

    #[test]
    fn the_system_counts_unread_datagrams() {
        let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = deaf.local_addr().unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(dropped_by_system(address), 0);
        // More than any receive buffer holds.
        for _ in 0..2000 {
            peer.send_to(&[0; 32_000], address).unwrap();
        }
        assert!(dropped_by_system(address) > 0);
    }
}
