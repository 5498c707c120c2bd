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
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, setsid};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tracing::warn;

/// How long drivers have to stop their motors when the mediator was killed.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);
/// A guard that was killed comes back after this.
const PAUSE: Duration = Duration::from_millis(500);

/// How the mediator tells the guard what it needs to know.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    lines: mpsc::UnboundedSender<Line>,
}

#[derive(Clone, Copy, Debug)]
enum Line {
    Watch(u32),
    Forget(u32),
}

impl Guard {
    /// Keeps a guard running for as long as this lives: `program guard`.
    pub(super) fn start(program: PathBuf) -> Self {
        let (lines, received) = mpsc::unbounded_channel();
        tokio::task::spawn_local(keep_running(program, received));
        Self { lines }
    }

    /// A driver with this process group runs.
    pub(super) fn watch(&self, group: u32) {
        let _ = self.lines.send(Line::Watch(group));
    }

    /// Nothing of this process group is left.
    pub(super) fn forget(&self, group: u32) {
        let _ = self.lines.send(Line::Forget(group));
    }
}

async fn keep_running(program: PathBuf, mut lines: mpsc::UnboundedReceiver<Line>) {
    let mut groups = BTreeSet::new();
    loop {
        let child = Command::new(&program)
            .arg("guard")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        let result = match child {
            Err(error) => Err(error),
            Ok(mut child) => {
                let stdin = child.stdin.take();
                let ended = tokio::select! {
                    ended = feed(stdin, &mut groups, &mut lines) => ended,
                    status = child.wait() => status.map(|_| Feed::Broken),
                };
                if let Ok(Feed::Finished) = ended {
                    return;
                }
                ended
            }
        };
        warn!(
            error = result.err().map(|error| error.to_string()),
            "the guard ended; without one, children of drivers may outlive a killed mediator"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

enum Feed {
    /// The mediator ends.
    Finished,
    /// The guard is gone.
    Broken,
}

async fn feed(
    stdin: Option<ChildStdin>,
    groups: &mut BTreeSet<u32>,
    lines: &mut mpsc::UnboundedReceiver<Line>,
) -> io::Result<Feed> {
    let Some(mut stdin) = stdin else {
        return Ok(Feed::Broken);
    };
    for group in groups.iter() {
        stdin
            .write_all(Line::Watch(*group).to_string().as_bytes())
            .await?;
    }
    while let Some(line) = lines.recv().await {
        match line {
            Line::Watch(group) => groups.insert(group),
            Line::Forget(group) => groups.remove(&group),
        };
        stdin.write_all(line.to_string().as_bytes()).await?;
    }
    Ok(Feed::Finished)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watch(group) => writeln!(f, "+{group}"),
            Self::Forget(group) => writeln!(f, "-{group}"),
        }
    }
}

/// The guard itself, what `amber guard` does: reads from stdin until its end.
pub fn guard() -> ExitCode {
    // Signals for the terminal's programs are not for us.
    let _ = setsid();
    let mut groups = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let group = line.get(1..).and_then(|group| group.parse::<i32>().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) if group > 1 => groups.insert(Pid::from_raw(group)),
            (Some(b'-'), Some(group)) => groups.remove(&Pid::from_raw(group)),
            _ => false,
        };
    }
    for group in &groups {
        let _ = killpg(*group, Signal::SIGTERM);
    }
    let deadline = Instant::now() + GRACE;
    // A group without members is an error.
    groups.retain(|group| killpg(*group, None).is_ok());
    while !groups.is_empty() && Instant::now() < deadline {
        thread::sleep(POLL);
        groups.retain(|group| killpg(*group, None).is_ok());
    }
    for group in &groups {
        let _ = killpg(*group, Signal::SIGKILL);
    }
    ExitCode::SUCCESS
}
