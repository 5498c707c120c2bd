//! A process that ends all drivers if the mediator is killed and cannot do so itself. IO.
//!
//! Mediator and guard share a [`Table`] of the running drivers in memory. The guard's stdin
//! ends when the mediator ends, however that happens. Then the guard reads the table and sends
//! SIGTERM to each driver and everything that it has started, so that motors can be stopped.
//! Processes that remain after a moment get SIGKILL.
//!
//! Unlike a pipe, a table cannot fill up: a guard that was frozen, or started later, sees the
//! current state. Drivers also get SIGTERM by their parent-death signal, but that does not
//! reach processes that they have started.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_name;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, setsid};
use tracing::warn;

use super::process::{
    Environment, MOTION_GUARD_GRACE, Process, Stat, all, end_of, may_be_motion_guard, signal, stat,
    with_descendants,
};
use super::strays::{TAG, is_from};

/// How long drivers have to stop their motors after the mediator was killed.
const GRACE: Duration = Duration::from_secs(1);
/// How long the guard repeats SIGKILL for processes that do not end.
const KILLING: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
/// A killed guard is replaced after this time.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// The name of the guard's process. It differs from `amber`, so that
/// `killall -9 amber` and `pkill -9 amber` leave the guard to do its work.
const NAME: &std::ffi::CStr = c"driver-guard";

/// The mediator's side of the guard.
#[derive(Debug)]
pub(super) struct Guard {
    program: PathBuf,
    /// See [`Table`].
    token: String,
    process: Option<Child>,
    /// When this is closed, the guard knows that the mediator has ended.
    stdin: Option<ChildStdin>,
    table: Option<Table>,
    /// The contents of the table, or its future contents while there is none.
    entries: Vec<Entry>,
}

/// The place of an entry in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Entry {
    #[default]
    Free,
    /// A driver is being started, and writes its own pid into the table.
    Reserved,
    Runs(Process),
}

/// The place where a driver writes its pid between fork and exec. So the guard knows every running
/// driver, even if the mediator is killed at that moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announce {
    pub(super) table: RawFd,
    pub(super) offset: u64,
}

impl Guard {
    /// A guard that is not started yet. It runs as `program guard`, and its drivers' tags begin
    /// with `token`.
    pub(super) fn new(program: PathBuf, token: &str) -> Self {
        Self {
            program,
            token: token.to_owned(),
            process: None,
            stdin: None,
            table: None,
            entries: Vec::new(),
        }
    }

    /// Starts the guard, or a replacement. Returns false on failure.
    pub(super) fn start(&mut self) -> bool {
        match self.spawn() {
            Ok(()) => true,
            Err(error) => {
                miss(&error.to_string());
                false
            }
        }
    }

    fn spawn(&mut self) -> io::Result<()> {
        let table = self.table()?.0.try_clone()?;
        let mut process = Command::new(&self.program)
            .arg0(NAME.to_str().unwrap_or_default())
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(table)
            .process_group(0)
            .spawn()?;
        self.stdin = process.stdin.take();
        self.process = Some(process);
        Ok(())
    }

    fn table(&mut self) -> io::Result<&Table> {
        let table = match self.table.take() {
            Some(table) => table,
            None => {
                let table = Table::new(&self.token)?;
                for (index, entry) in self.entries.iter().enumerate() {
                    table.write(Slot(index), *entry)?;
                }
                table
            }
        };
        Ok(self.table.insert(table))
    }

    /// A process has ended. Returns true if it was the guard: start another after [`PAUSE`].
    pub(super) fn has_ended(&mut self) -> bool {
        let Some(ended) = self.process.as_mut().and_then(end_of) else {
            return false;
        };
        self.process = None;
        self.stdin = None;
        miss(&ended);
        true
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Reserves an entry for a driver that is about to be started.
    pub(super) fn reserve(&mut self) -> Slot {
        let free = self.entries.iter().position(|entry| *entry == Entry::Free);
        let slot = Slot(free.unwrap_or(self.entries.len()));
        if free.is_none() {
            self.entries.push(Entry::Free);
        }
        self.set(slot, Entry::Reserved);
        slot
    }

    pub(super) fn announce_at(&self, slot: Slot) -> Option<Announce> {
        let table = self.table.as_ref()?;
        Some(Announce {
            table: table.0.as_raw_fd(),
            offset: slot.offset(),
        })
    }

    /// The driver was started.
    pub(super) fn watch(&mut self, slot: Slot, pid: u32) {
        let pid = Pid::from_raw(pid.cast_signed());
        // Without the start time, the pid alone identifies it.
        let start = match stat(pid) {
            Ok(Some(stat)) => stat.process.start,
            _ => UNKNOWN,
        };
        self.set(slot, Entry::Runs(Process { pid, start }));
    }

    /// The driver has ended, or could not be started. Call this while its pid cannot be reused.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.set(slot, Entry::Free);
    }

    fn set(&mut self, slot: Slot, entry: Entry) {
        self.entries[slot.0] = entry;
        if let Some(table) = &self.table
            && let Err(error) = table.write(slot, entry)
        {
            // The table is in memory, so this was the last entry that fits.
            warn!(%error, "the guard does not know a driver");
        }
    }
}

fn miss(why: &str) {
    warn!(
        guard = why,
        "without a guard, processes that drivers have started may outlive a killed mediator"
    );
}

/// The running drivers, in memory that mediator and guard share. It begins with a token in
/// hexadecimal digits, with which the tags of all drivers begin. Then follow entries of
/// [`ENTRY`] bytes: pid, four zero bytes, start time.
#[derive(Debug)]
struct Table(File);

const TOKEN: usize = 16;
const ENTRY: usize = 16;
/// Stands for an unknown start time.
const UNKNOWN: u64 = 0;

impl Slot {
    fn offset(self) -> u64 {
        (TOKEN + self.0 * ENTRY) as u64
    }
}

impl Table {
    fn new(token: &str) -> io::Result<Self> {
        let file = File::from(memfd_create(c"amber-drivers", MFdFlags::MFD_CLOEXEC)?);
        file.write_all_at(token.as_bytes(), 0)?;
        Ok(Self(file))
    }

    fn write(&self, slot: Slot, entry: Entry) -> io::Result<()> {
        let mut bytes = [0; ENTRY];
        if let Entry::Runs(process) = entry {
            bytes[..4].copy_from_slice(&process.pid.as_raw().to_ne_bytes());
            bytes[8..].copy_from_slice(&process.start.to_ne_bytes());
        }
        self.0.write_all_at(&bytes, slot.offset())
    }

    fn read(&self) -> io::Result<(String, Vec<Process>)> {
        let mut bytes = vec![0; self.0.metadata()?.len() as usize];
        self.0.read_exact_at(&mut bytes, 0)?;
        let (token, entries) = bytes.split_at_checked(TOKEN).unwrap_or_default();
        let processes = entries.chunks_exact(ENTRY).filter_map(|entry| {
            let pid = i32::from_ne_bytes(entry[..4].try_into().ok()?);
            let start = u64::from_ne_bytes(entry[8..].try_into().ok()?);
            let pid = Pid::from_raw(pid);
            (pid.as_raw() > 1).then_some(Process { pid, start })
        });
        let token = String::from_utf8_lossy(token).into_owned();
        Ok((token, processes.collect()))
    }
}

/// The guard itself (`amber guard`): waits for the end of stdin. Its stdout is the table.
pub fn guard() -> ExitCode {
    // The guard must survive signals to the terminal's programs, and those by which a service
    // manager ends all processes: it ends the drivers first.
    let _ = setsid();
    let _ = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]).thread_block();
    let _ = set_name(NAME);
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    let table = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let Ok((token, drivers)) = table.and_then(|file| Table(file).read()) else {
        return ExitCode::FAILURE;
    };
    let mut family = Family::new(token, drivers);
    family.look(Tags::Later);
    let told = family.signal(Signal::SIGTERM, &BTreeSet::new());
    // Reading the environment of a process that hangs in the kernel may take long, so that
    // follows later.
    family.look(Tags::Now);
    family.signal(Signal::SIGTERM, &told);
    let begin = Instant::now();
    while family.is_alive() && begin.elapsed() < GRACE {
        thread::sleep(POLL);
    }
    family.look(Tags::Now);
    let begin = Instant::now();
    while !family.members.is_empty() && begin.elapsed() < KILLING {
        let spared = match begin.elapsed() < MOTION_GUARD_GRACE {
            true => family.motion_guards(),
            false => BTreeSet::new(),
        };
        family.signal(Signal::SIGKILL, &spared);
        thread::sleep(POLL);
        family.look(Tags::Now);
    }
    ExitCode::SUCCESS
}

/// Drivers, and the processes that they started.
struct Family {
    token: String,
    drivers: Vec<Process>,
    members: BTreeSet<Process>,
}

/// Whether to read the tags of processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tags {
    Now,
    Later,
}

impl Family {
    fn new(token: String, drivers: Vec<Process>) -> Self {
        Self {
            token,
            drivers,
            members: BTreeSet::new(),
        }
    }

    /// Finds the current members: the drivers, their process groups, processes with a tag of
    /// this mediator, previous members, and all descendants of these.
    fn look(&mut self, tags: Tags) {
        // If the system does not tell, only previous members are known.
        let Ok(mut stats) = all() else { return };
        forget_ended(&mut self.drivers, &stats);
        let own = Pid::from_raw(process::id().cast_signed());
        stats.retain(|stat| !stat.is_zombie && stat.process.pid != own);
        let roots = stats.iter().filter(|stat| {
            let is = |driver: &Process| [stat.process.pid, stat.group].contains(&driver.pid);
            self.drivers.iter().any(is)
                || self.members.contains(&stat.process)
                || (tags == Tags::Now && self.is_tagged(stat.process.pid))
        });
        let roots = roots.map(|stat| stat.process.pid).collect();
        let family = with_descendants(&stats, roots);
        self.members = family.into_iter().map(|stat| stat.process).collect();
    }

    fn is_tagged(&self, pid: Pid) -> bool {
        let tag = Environment::of(pid).unwrap_or_default().variable(TAG);
        tag.is_some_and(|tag| is_from(&self.token, &tag))
    }

    /// Signals all members that were not signalled before. Returns the ones that it signalled.
    fn signal(&self, with: Signal, before: &BTreeSet<Process>) -> BTreeSet<Process> {
        let targets: BTreeSet<Process> = self.members.difference(before).copied().collect();
        for target in &targets {
            // A process that cannot be verified is checked again, or left alone.
            let _ = signal(*target, with);
        }
        targets
    }

    /// The members that stop motors after the end of their driver.
    fn motion_guards(&self) -> BTreeSet<Process> {
        let members = self.members.iter().copied();
        members
            .filter(|member| may_be_motion_guard(member.pid))
            .collect()
    }

    /// Whether a member still lives.
    fn is_alive(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| {
            stat(member.pid).is_ok_and(|stat| {
                stat.is_some_and(|stat| stat.process == *member && !stat.is_zombie)
            })
        })
    }
}

/// Removes drivers that have ended with their whole process group, because their pid may be
/// reused, and those whose pid was reused.
fn forget_ended(drivers: &mut Vec<Process>, stats: &[Stat]) {
    drivers.retain(|driver| {
        let leader = stats.iter().find(|stat| stat.process.pid == driver.pid);
        match leader {
            Some(leader) => driver.start == UNKNOWN || leader.process.start == driver.start,
            // While a process group has members, no process gets its number.
            None => stats.iter().any(|stat| stat.group == driver.pid),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, start: u64) -> Process {
        Process {
            pid: Pid::from_raw(pid),
            start,
        }
    }

    #[test]
    fn the_table_is_right_after_any_number_of_changes() {
        let mut guard = Guard::new("amber".into(), "0123456789abcdef");
        let early = guard.reserve();
        guard.set(early, Entry::Runs(process(7, 70)));
        // The table also has the entries from before it existed.
        guard.table().unwrap();
        let kept = guard.reserve();
        guard.set(kept, Entry::Runs(process(8, 80)));
        // A pipe would be full after about five thousand.
        for pid in 100..20_000 {
            let slot = guard.reserve();
            guard.set(slot, Entry::Runs(process(pid, 1)));
            guard.forget(slot);
        }
        let last = guard.reserve();
        let announce = guard.announce_at(last).unwrap();
        let table = guard.table.as_ref().unwrap();
        let written = 9_i32.to_ne_bytes();
        table.0.write_all_at(&written, announce.offset).unwrap();
        let (token, drivers) = table.read().unwrap();
        assert_eq!(token, "0123456789abcdef");
        let expected = [process(7, 70), process(8, 80), process(9, UNKNOWN)];
        assert_eq!(drivers, expected);
        assert_eq!(guard.entries.len(), 3, "places are used again");
    }

    #[test]
    fn ended_drivers_and_reused_pids_are_forgotten() {
        let stat = |pid, start, group| Stat {
            process: process(pid, start),
            parent: Pid::from_raw(1),
            group: Pid::from_raw(group),
            is_zombie: false,
        };
        let mut drivers = vec![
            process(7, 70),
            process(8, 80),
            process(9, UNKNOWN),
            process(10, 100),
            process(11, 110),
        ];
        let stats = [
            stat(7, 70, 1),
            stat(8, 81, 8),
            stat(9, 5, 9),
            stat(12, 5, 10),
        ];
        forget_ended(&mut drivers, &stats);
        let expected = [process(7, 70), process(9, UNKNOWN), process(10, 100)];
        assert_eq!(drivers, expected);
    }
}
