//! The net under the stop ladder: a process that ends all drivers when the
//! mediator is killed and cannot do so itself. IO.
//!
//! The guard is told the process group of each driver. Its stdin ends when the
//! mediator ends, however that happens; then it sends SIGTERM to all groups, so
//! that motors can be stopped, and SIGKILL to what is left after a moment.
//! (Drivers also get SIGTERM by their parent-death signal; but that does not
//! reach what they have started themselves.)

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, setsid, write};
use tracing::warn;

/// How long drivers have to stop their motors when the mediator was killed.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// A guard that was killed comes back after this.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// How the mediator tells the guard what it needs to know.
#[derive(Debug)]
pub(super) struct Guard {
    program: PathBuf,
    process: Option<Child>,
    stdin: Option<ChildStdin>,
    groups: BTreeSet<u32>,
}

impl Guard {
    /// A guard that is yet to be started, as `program guard`.
    pub(super) fn new(program: PathBuf) -> Self {
        Self {
            program,
            process: None,
            stdin: None,
            groups: BTreeSet::new(),
        }
    }

    /// Starts it, or another one. False when that fails.
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
        let mut process = Command::new(&self.program)
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        self.stdin = process.stdin.take();
        self.process = Some(process);
        if let Some(stdin) = &self.stdin {
            fcntl(stdin.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        for group in &self.groups {
            self.tell(&format!("+{group}\n"));
        }
        Ok(())
    }

    /// A process has ended. True when it was the guard, so that another is to be
    /// started after [`PAUSE`].
    pub(super) fn has_ended(&mut self) -> bool {
        let ended = match self.process.as_mut().map(Child::try_wait) {
            None | Some(Ok(None)) => return false,
            Some(Ok(Some(status))) => status.to_string(),
            Some(Err(error)) => error.to_string(),
        };
        self.process = None;
        self.stdin = None;
        miss(&ended);
        true
    }

    /// Where a driver can announce itself, before it is replaced by its
    /// program: one line of [`watch_line`]. So there is no moment at which the
    /// mediator can be killed and the guard does not know a driver that runs.
    pub(super) fn announce_to(&self) -> Option<RawFd> {
        self.stdin.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// A driver with this process group runs.
    pub(super) fn watch(&mut self, group: u32) {
        self.groups.insert(group);
        self.tell(&format!("+{group}\n"));
    }

    /// Nothing of this process group is left.
    pub(super) fn forget(&mut self, group: u32) {
        self.groups.remove(&group);
        self.tell(&format!("-{group}\n"));
    }

    /// A driver could not be started. It may have announced itself, and its
    /// number is anybody's now.
    pub(super) fn forget_what_is_gone(&self) {
        self.tell("?\n");
    }

    fn tell(&self, line: &str) {
        if let Some(stdin) = &self.stdin {
            // A guard that is gone is noticed when it has ended. Lines are
            // short: they are written whole or, with a full pipe, not at all.
            let _ = write(stdin, line.as_bytes());
        }
    }
}

fn miss(why: &str) {
    warn!(
        guard = why,
        "without a guard, children of drivers may outlive a killed mediator"
    );
}

/// `+PID`, written without allocating: for use between fork and exec.
pub(super) fn watch_line(pid: u32, line: &mut [u8; 16]) -> &[u8] {
    let mut at = line.len() - 1;
    line[at] = b'\n';
    let mut rest = pid;
    loop {
        at -= 1;
        line[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    at -= 1;
    line[at] = b'+';
    &line[at..]
}

/// The guard itself, what `amber guard` does: reads from stdin until its end.
pub fn guard() -> ExitCode {
    // Signals for the terminal's programs are not for us, nor are those by which
    // a service manager ends all that is left: drivers come first.
    let _ = setsid();
    let _ = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]).thread_block();
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        take_note(&mut groups, &line, has_members);
    }
    for group in &groups {
        let _ = killpg(*group, Signal::SIGTERM);
    }
    let deadline = Instant::now() + GRACE;
    groups.retain(has_members);
    while !groups.is_empty() && Instant::now() < deadline {
        thread::sleep(POLL);
        groups.retain(has_members);
    }
    for group in &groups {
        let _ = killpg(*group, Signal::SIGKILL);
    }
    ExitCode::SUCCESS
}

/// One line of the mediator: a group to end, one that has ended, or `?` when
/// some may have ended without being named.
fn take_note(groups: &mut BTreeSet<Pid>, line: &str, is_there: impl FnMut(&Pid) -> bool) {
    let group = line.get(1..).and_then(|group| group.parse::<i32>().ok());
    match (line.as_bytes().first(), group) {
        (Some(b'+'), Some(group)) if group > 1 => {
            groups.insert(Pid::from_raw(group));
        }
        (Some(b'-'), Some(group)) => {
            groups.remove(&Pid::from_raw(group));
        }
        (Some(b'?'), _) => groups.retain(is_there),
        _ => {}
    }
}

fn has_members(group: &Pid) -> bool {
    // No signal is sent: a group without members is an error.
    killpg(*group, None).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_ended_in_silence_are_forgotten_when_asked() {
        let mut groups = BTreeSet::new();
        for line in ["+7", "+8", "+9", "-9", "+1", "+-5", "+x", ""] {
            take_note(&mut groups, line, |_| false);
        }
        assert_eq!(groups, [7, 8].map(Pid::from_raw).into());
        take_note(&mut groups, "?", |group| group.as_raw() == 7);
        assert_eq!(groups, [Pid::from_raw(7)].into());
    }

    #[test]
    fn lines_are_written_without_allocating() {
        for pid in [1, 10, 32_768, u32::MAX] {
            assert_eq!(
                watch_line(pid, &mut [0; 16]),
                format!("+{pid}\n").as_bytes()
            );
        }
    }
}
