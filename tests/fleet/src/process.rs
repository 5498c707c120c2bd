//! The processes of the fleet. IO.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A process until it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Raw peers end when this is closed.
    _stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a program. What it logs goes to a file of this name, if there is a folder for it.
    pub(crate) fn start(
        mut command: Command,
        name: &str,
        logs: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let log = match logs {
            Some(folder) => File::create(folder.join(format!("{name}.log")))?.into(),
            None => Stdio::null(),
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = (command.spawn()).with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self {
            _stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            child,
        })
    }

    /// The text after this prefix in the first line that the program prints.
    pub(crate) fn first_line(&mut self, after: &str) -> anyhow::Result<String> {
        let stdout = self.stdout.as_mut().context("no stdout")?;
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let rest = line.trim_end().strip_prefix(after);
        Ok(rest
            .with_context(|| format!("unexpected output {line:?}"))?
            .to_owned())
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.pid() as i32), signal);
    }

    /// Kills it with SIGKILL, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Ends all of these, at the same time.
pub(crate) fn end(processes: Vec<Process>) {
    processes.iter().for_each(|it| it.signal(Signal::SIGTERM));
    drop(processes);
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        self.signal(Signal::SIGCONT);
        self.signal(Signal::SIGTERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }
}
