//! Data about processes and sockets, from /proc on Linux. IO.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::param::clock_ticks_per_second;

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
    let number = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
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

/// A process with a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// Its process id.
    pub pid: u32,
    /// Its process group.
    pub group: u32,
    /// Its command.
    pub command: String,
}

/// All processes with this text in their environment, which child processes inherit. Excludes
/// processes that have ended but were not reaped.
pub fn marked(mark: &str) -> Vec<Marked> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| look(pid, mark)).collect()
}

/// Sends a signal to a process if it still has the mark, since its id may have been reused. Returns
/// false if not.
pub fn signal(pid: u32, mark: &str, signal: Signal) -> bool {
    look(pid, mark).is_some() && kill(Pid::from_raw(pid.cast_signed()), signal).is_ok()
}

fn look(pid: u32, mark: &str) -> Option<Marked> {
    let folder = Path::new("/proc").join(pid.to_string());
    let environment = fs::read(folder.join("environ")).ok()?;
    let mut words = environment.split(|byte| *byte == 0);
    words.find(|word| *word == mark.as_bytes())?;
    let stat = fields_of(pid)?;
    let command = fs::read(folder.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (stat.first()? != "Z").then_some(Marked {
        pid,
        group: stat.get(2)?.parse().ok()?,
        command: command.trim_end().to_owned(),
    })
}

/// The fields of /proc/PID/stat after the name: state, parent, group and so on.
fn fields_of(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn marked_processes_are_found_with_their_children() {
        let mark = format!("AMBER_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 1000 & echo up; wait"])
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut up).unwrap();
        // The shell may print "up" before its child has executed the program.
        let (found, sleeps) = loop {
            let found = marked(&mark);
            if let Some(sleeps) = found.iter().find(|p| p.command == "sleep 1000").cloned() {
                break (found, sleeps);
            }
            std::thread::yield_now();
        };
        assert!(found.iter().any(|p| p.pid == shell.id()));
        assert!(!signal(
            sleeps.pid,
            "AMBER_TEST_MARK=other",
            Signal::SIGKILL
        ));
        assert!(signal(shell.id(), &mark, Signal::SIGKILL));
        assert!(signal(sleeps.pid, &mark, Signal::SIGKILL));
        shell.wait().unwrap();
        while !marked(&mark).is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_uses_resources() {
        let now = footprint(std::process::id()).unwrap();
        assert!(now.resident_kib > 100 && now.descriptors > 2 && now.threads > 0);
        assert_eq!(footprint(u32::MAX), None);
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
