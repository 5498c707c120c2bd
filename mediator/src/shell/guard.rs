//! The net under the stop ladder: a process that ends all drivers when the
//! mediator is killed and cannot do so itself. IO.
//!
//! The guard is told the process group of each driver. Its stdin ends when the
//! mediator ends, however that happens; then it sends SIGTERM to all groups, so
//! that motors can be stopped, and SIGKILL to what is left after a moment.
//! (Drivers also get SIGTERM by their parent-death signal; but that does not
//! reach what they have started themselves.)

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, setsid, write};
use tokio::process::{Child, Command};
use tracing::warn;

/// How long drivers have to stop their motors when the mediator was killed.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// A guard that was killed comes back after this.
const PAUSE: Duration = Duration::from_millis(500);

/// How the mediator tells the guard what it needs to know.
#[derive(Debug)]
pub(super) struct Guard {
    program: PathBuf,
    stdin: RefCell<Option<OwnedFd>>,
    groups: RefCell<BTreeSet<u32>>,
}

impl Guard {
    /// Starts `program guard`, and starts it again when it ends.
    pub(super) fn start(program: PathBuf) -> Rc<Self> {
        let guard = Rc::new(Self {
            program,
            stdin: RefCell::default(),
            groups: RefCell::default(),
        });
        let child = guard.spawn();
        tokio::task::spawn_local(guard.clone().keep_running(child));
        guard
    }

    /// Where a driver can announce itself, before it is replaced by its
    /// program: one line of [`watch_line`]. So there is no moment at which the
    /// mediator can be killed and the guard does not know a driver that runs.
    pub(super) fn announce_to(&self) -> Option<RawFd> {
        self.stdin.borrow().as_ref().map(AsRawFd::as_raw_fd)
    }

    /// A driver with this process group runs.
    pub(super) fn watch(&self, group: u32) {
        self.groups.borrow_mut().insert(group);
        self.tell(&format!("+{group}\n"));
    }

    /// Nothing of this process group is left.
    pub(super) fn forget(&self, group: u32) {
        self.groups.borrow_mut().remove(&group);
        self.tell(&format!("-{group}\n"));
    }

    /// A driver could not be started. It may have announced itself, and its
    /// number is anybody's now.
    pub(super) fn forget_what_is_gone(&self) {
        self.tell("?\n");
    }

    fn tell(&self, line: &str) {
        if let Some(stdin) = &*self.stdin.borrow() {
            // A guard that is gone is noticed by who waits for it. Lines are
            // short: they are written whole or, with a full pipe, not at all.
            let _ = write(stdin, line.as_bytes());
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut child = Command::new(&self.program)
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        let stdin = child
            .stdin
            .take()
            .map(|stdin| stdin.into_owned_fd())
            .transpose()?;
        if let Some(stdin) = &stdin {
            fcntl(stdin.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        *self.stdin.borrow_mut() = stdin;
        for group in self.groups.borrow().iter() {
            self.tell(&format!("+{group}\n"));
        }
        Ok(child)
    }

    async fn keep_running(self: Rc<Self>, mut child: io::Result<Child>) {
        loop {
            let ended = match &mut child {
                Ok(child) => child.wait().await.map(|status| status.to_string()),
                Err(error) => Ok(error.to_string()),
            };
            warn!(
                guard = ended.unwrap_or_else(|error| error.to_string()),
                "without a guard, children of drivers may outlive a killed mediator"
            );
            tokio::time::sleep(PAUSE).await;
            child = self.spawn();
        }
    }
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
