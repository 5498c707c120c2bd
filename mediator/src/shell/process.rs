//! Processes as `/proc` shows them, and signals that reach only the intended process. IO.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{self, Child};
use std::time::Duration;

use amber_proto::mediator::ProcessUsage;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

/// A process. Its pid may be reused after its end, but not with the same start time, because
/// pids are assigned in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: Pid,
    /// In clock ticks since the system started.
    pub(super) start: u64,
}

/// The contents of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) process: Process,
    pub(super) parent: Pid,
    pub(super) group: Pid,
    /// It has ended, but its parent has not waited for it yet.
    pub(super) is_zombie: bool,
}

/// The exit status of a child of ours; `None` while it runs.
pub(super) fn end_of(child: &mut Child) -> Option<String> {
    match child.try_wait() {
        Ok(status) => status.map(|status| status.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// Reads the state of a process; `None` if no process has this pid.
///
/// # Errors
/// The system does not report it, for example because no file descriptors are left.
pub(super) fn stat(pid: Pid) -> io::Result<Option<Stat>> {
    let text = read(Path::new(&format!("/proc/{pid}/stat")))?;
    let Some(text) = text else { return Ok(None) };
    let parsed = parse_stat(pid, &String::from_utf8_lossy(&text));
    parsed.map(Some).ok_or_else(|| {
        let what = format!("/proc/{pid}/stat has an unknown format");
        io::Error::new(ErrorKind::InvalidData, what)
    })
}

fn parse_stat(pid: Pid, text: &str) -> Option<Stat> {
    // The name in parentheses may contain any characters.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let pid_at = |index: usize| fields.get(index)?.parse().ok().map(Pid::from_raw);
    Some(Stat {
        process: Process {
            pid,
            start: fields.get(19)?.parse().ok()?,
        },
        parent: pid_at(1)?,
        group: pid_at(2)?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// Adds the CPU time and the memory of a process, if the system reports them.
pub(super) fn measure(usage: &mut ProcessUsage) {
    let text = read(Path::new(&format!("/proc/{}/stat", usage.pid)));
    let Ok(Some(text)) = text else { return };
    if let Some((ticks, pages)) = parse_usage(&String::from_utf8_lossy(&text)) {
        let per_s = clock_ticks_per_second().max(1);
        usage.cpu_ms = Some(ticks * 1000 / per_s);
        usage.memory_bytes = Some(pages * page_size() as u64);
    }
}

/// The CPU time in clock ticks, and the resident memory in pages.
fn parse_usage(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Its own user and system time, then that of children it has waited for.
    let ticks = (11..=14).map(number).sum::<Option<u64>>()?;
    Some((ticks, number(21)?))
}

/// All processes that the system shows.
///
/// # Errors
/// See [`stat`].
pub(super) fn all() -> io::Result<Vec<Stat>> {
    let mut stats = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid.map(Pid::from_raw) {
            stats.extend(stat(pid)?);
        }
    }
    Ok(stats)
}

/// The children of a process.
///
/// # Errors
/// See [`stat`].
pub(super) fn children(pid: Pid) -> io::Result<Vec<Pid>> {
    if !Path::new("/proc/thread-self/children").exists() {
        // A kernel without CONFIG_PROC_CHILDREN.
        let children = all()?.into_iter().filter(|stat| stat.parent == pid);
        return Ok(children.map(|stat| stat.process.pid).collect());
    }
    let mut children = Vec::new();
    let tasks = match fs::read_dir(format!("/proc/{pid}/task")) {
        Err(error) if is_gone(&error) => return Ok(children),
        tasks => tasks?,
    };
    // Each thread has its own children.
    for task in tasks {
        let task = match task {
            Err(error) if is_gone(&error) => continue,
            task => task?,
        };
        let list = read(&task.path().join("children"))?.unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        children.extend(pids.map(Pid::from_raw));
    }
    Ok(children)
}

/// The descendants of a process, without zombies and the process itself: at most `limit`, the
/// oldest generation first.
///
/// # Errors
/// See [`stat`].
pub(super) fn descendants(root: Pid, limit: usize) -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    let mut parents = VecDeque::from([root]);
    while let Some(parent) = parents.pop_front() {
        for child in children(parent)? {
            if found.len() == limit {
                return Ok(found);
            }
            // The pid may have been reused since the list was made.
            let stat = stat(child)?.filter(|stat| stat.parent == parent && !stat.is_zombie);
            if let Some(stat) = stat {
                found.push(stat);
                parents.push_back(child);
            }
        }
    }
    Ok(found)
}

/// All of `stats` that descend from `roots`, including these.
pub(super) fn with_descendants(stats: &[Stat], roots: BTreeSet<Pid>) -> Vec<Stat> {
    let mut of_parent: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for stat in stats {
        of_parent
            .entry(stat.parent)
            .or_default()
            .push(stat.process.pid);
    }
    let mut family = roots.clone();
    let mut parents: Vec<Pid> = roots.into_iter().collect();
    while let Some(parent) = parents.pop() {
        for child in of_parent.get(&parent).into_iter().flatten() {
            if family.insert(*child) {
                parents.push(*child);
            }
        }
    }
    let is_member = |stat: &&Stat| family.contains(&stat.process.pid);
    stats.iter().filter(is_member).copied().collect()
}

/// The environment with which a process was started.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// A zero byte ends each variable. `None` if the process has ended or belongs to another user.
    variables: Option<Vec<u8>>,
}

impl Environment {
    /// # Errors
    /// See [`stat`].
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        let variables = match read(Path::new(&format!("/proc/{pid}/environ"))) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
            variables => variables?,
        };
        Ok(Self { variables })
    }

    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let variables = self.variables.as_deref().unwrap_or_default();
        let mut words = variables.split(|byte| *byte == 0);
        let value =
            words.find_map(|word| word.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Whether the process is or may be the guard of a driver (`Guard` in the SDK of drivers): it stops
    /// the motors after its driver was killed, and then ends.
    ///
    /// A process shows nothing while the kernel loads its program, and the driver runs on by then. On a
    /// busy machine that may take some milliseconds.
    pub(super) fn may_be_of_motion_guard(&self) -> bool {
        let is_empty = self.variables.as_ref().is_some_and(Vec::is_empty);
        is_empty || self.variable("AMBER_MOTION_GUARD").is_some()
    }
}

/// How long a motion guard may outlive its driver.
pub(super) const MOTION_GUARD_GRACE: Duration = Duration::from_secs(1);

/// See [`Environment::may_be_of_motion_guard`].
pub(super) fn may_be_motion_guard(pid: Pid) -> bool {
    Environment::of(pid).is_ok_and(|environment| environment.may_be_of_motion_guard())
}

/// Sends a signal to this process, but not to a later one with the same pid.
///
/// # Errors
/// It is unknown whether the pid still belongs to this process.
pub(super) fn signal(target: Process, signal: Signal) -> io::Result<()> {
    let number = rustix::process::Pid::from_raw(target.pid.as_raw());
    let Some(number) = number.filter(|_| target.pid != Pid::from_raw(process::id().cast_signed()))
    else {
        return Ok(());
    };
    // From here on the descriptor refers to one process, even if the pid is reused.
    let descriptor = pidfd_open(number, PidfdFlags::empty());
    if stat(target.pid)?.is_none_or(|stat| stat.process != target) {
        return Ok(());
    }
    // It is fine if the process has ended. A process of another user cannot be signalled.
    match (
        descriptor,
        rustix::process::Signal::from_named_raw(signal as i32),
    ) {
        (Ok(descriptor), Some(signal)) => {
            let _ = pidfd_send_signal(descriptor, signal);
        }
        // A kernel before 5.3, or no descriptors left.
        _ => {
            let _ = kill(target.pid, signal);
        }
    }
    Ok(())
}

/// Reads a file of `/proc`; `None` when its process has ended.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn process_names_with_blanks_and_parentheses_are_parsed() {
        let text = "7 (a) b) (c) S 3 5 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let pid = Pid::from_raw(7);
        let stat = parse_stat(pid, text).unwrap();
        assert_eq!(stat.process, Process { pid, start: 4711 });
        assert_eq!(stat.parent, Pid::from_raw(3));
        assert_eq!(stat.group, Pid::from_raw(5));
        assert!(!stat.is_zombie);
        assert_eq!(parse_stat(pid, "7 (x) S 1 1"), None);
    }

    #[test]
    fn the_use_of_processor_and_memory_is_measured() {
        let text = "7 (a) b) S 3 5 6 0 -1 0 0 0 0 0 10 20 3 4 20 0 1 0 4711 9999 56 0";
        assert_eq!(parse_usage(text), Some((37, 56)));
        assert_eq!(parse_usage("7 (x) S 1 1"), None);
        let mut usage = ProcessUsage {
            pid: process::id(),
            ..ProcessUsage::default()
        };
        measure(&mut usage);
        assert!(usage.memory_bytes() > 1_000_000, "{usage:?}");
        assert!(usage.cpu_ms.is_some());
        let mut none = ProcessUsage::default();
        measure(&mut none);
        assert_eq!(none.cpu_ms, None);
    }

    #[test]
    fn descendants_are_found_and_signals_reach_only_them() {
        let mut shell = Command::new("bash")
            .args(["-c", "set -m; sleep 1000 & echo $!; wait"])
            .env("AMBER_TEST_VARIABLE", "a=b")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let root = Pid::from_raw(shell.id().cast_signed());
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let sleep = Pid::from_raw(lines.next().unwrap().unwrap().parse().unwrap());
        let found = descendants(root, 10).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].process.pid, found[0].parent), (sleep, root));
        assert_eq!(found[0].group, sleep, "a job of its own");
        assert!(descendants(root, 0).unwrap().is_empty());
        let from_all = with_descendants(&all().unwrap(), [root].into());
        let pids: BTreeSet<Pid> = from_all.iter().map(|stat| stat.process.pid).collect();
        assert_eq!(pids, [root, sleep].into());
        let environment = Environment::of(sleep).unwrap();
        let value = environment.variable("AMBER_TEST_VARIABLE");
        assert_eq!(value.as_deref(), Some("a=b"));
        assert!(!environment.may_be_of_motion_guard());

        // The same pid with another start time is another process.
        let mut reused = found[0].process;
        reused.start += 1;
        signal(reused, Signal::SIGKILL).unwrap();
        assert!(stat(sleep).unwrap().is_some_and(|stat| !stat.is_zombie));
        signal(found[0].process, Signal::SIGKILL).unwrap();
        shell.wait().unwrap();
        assert_eq!(stat(root).unwrap(), None);
    }
}
