//! A running program with its output. IO.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{PATIENCE, wait_for, within};

/// The lines to keep: those at the start, which are usually looked for, and the last ones, which
/// explain a failure.
const FIRST_LINES: usize = 10_000;
const LAST_LINES: usize = 1000;
/// The time that a program has to end by itself.
const GRACE: Duration = Duration::from_secs(10);

/// A program that runs until this is dropped, and what it prints.
#[derive(Debug)]
pub struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Output>,
}

impl Program {
    /// Starts a program without input. Its output is kept.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let streams = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = streams.spawn();
        Ok(Self::of(
            child.with_context(|| format!("cannot start {command:?}"))?,
        ))
    }

    /// A program that runs already. The output that has a pipe is kept, and the input stays open if it
    /// has one.
    pub fn of(mut child: Child) -> Self {
        let output = Arc::new(Output::default());
        if let Some(stdout) = child.stdout.take() {
            collect(stdout, output.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            collect(stderr, output.clone());
        }
        Self {
            stdin: child.stdin.take(),
            child,
            output,
        }
    }

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far, on both streams, line by line. Very long output has a gap.
    pub fn output(&self) -> Vec<String> {
        let lines = self.output.lock();
        lines.first.iter().chain(&lines.last).cloned().collect()
    }

    /// The last lines of [`Program::output`].
    pub fn last_lines(&self, number: usize) -> Vec<String> {
        let mut lines = self.output();
        lines.split_off(lines.len().saturating_sub(number))
    }

    /// Waits for a line that contains all these texts.
    ///
    /// # Errors
    /// There is none in time, or the program has closed its output. The error has the output.
    pub fn line_with(&self, texts: &[&str]) -> anyhow::Result<String> {
        let fits = |line: &str| texts.iter().all(|text| line.contains(text));
        self.find(&format!("a line with {texts:?}"), |line| {
            fits(line).then(|| line.to_owned())
        })
    }

    /// Waits for a line with this text, and returns what follows it.
    ///
    /// # Errors
    /// As for [`Program::line_with`].
    pub fn after(&self, text: &str) -> anyhow::Result<String> {
        self.find(&format!("a line with {text:?}"), |line| {
            line.split_once(text).map(|(_, rest)| rest.to_owned())
        })
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(self.pid().cast_signed()), signal)?)
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// How it ended; `None` while it runs.
    ///
    /// # Errors
    /// The system does not say.
    pub fn try_wait(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        wait_for("the end of a process", || self.try_wait())
    }

    /// Waits for its end; `None` if it still runs after this time.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended_within(&mut self, time: Duration) -> anyhow::Result<Option<ExitStatus>> {
        within(time, || self.try_wait())
    }

    /// Waits for its end, and returns all that it has printed.
    ///
    /// # Errors
    /// It, or a process that has its output, does not end in time.
    pub fn finish(mut self) -> anyhow::Result<(ExitStatus, Vec<String>)> {
        let status = self.wait()?;
        wait_for("the end of the output", || {
            Ok((self.output.lock().open == 0).then_some(()))
        })?;
        Ok((status, self.output()))
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn find(
        &self,
        what: &str,
        mut fits: impl FnMut(&str) -> Option<String>,
    ) -> anyhow::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = 0;
        let mut lines = self.output.lock();
        loop {
            let all = lines.first.iter().chain(&lines.last);
            if let Some(found) = all.skip(seen).find_map(|line| fits(line)) {
                return Ok(found);
            }
            // Once lines are missing, those that follow the gap are looked at again.
            seen = lines.first.len();
            let left = deadline.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || lines.open == 0;
            ensure!(!is_over, "no {what} in:\n{}", lines.text());
            let changed = self.output.changed.wait_timeout(lines, left);
            lines = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.stdin = None;
        // It may be stopped.
        let _ = self.signal(Signal::SIGCONT);
        let _ = self.signal(Signal::SIGTERM);
        if !matches!(self.ended_within(GRACE), Ok(Some(_))) {
            self.kill();
        }
    }
}

#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    first: Vec<String>,
    last: VecDeque<String>,
    /// The number of streams that may bring more.
    open: usize,
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn push(&mut self, line: String) {
        if self.first.len() < FIRST_LINES {
            return self.first.push(line);
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn text(&self) -> String {
        let all: Vec<_> = self
            .first
            .iter()
            .chain(&self.last)
            .map(String::as_str)
            .collect();
        all.join("\n")
    }
}

fn collect(stream: impl Read + Send + 'static, output: Arc<Output>) {
    output.lock().open += 1;
    thread::spawn(move || {
        let lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
        for line in lines {
            output
                .lock()
                .push(String::from_utf8_lossy(&line).into_owned());
            output.changed.notify_all();
        }
        output.lock().open -= 1;
        output.changed.notify_all();
    });
}

/// Copies a program, so that it can be started at once.
///
/// A process of its own does so. A copy by this one would be open for writing also in each process
/// that another thread starts meanwhile, until that has become its program, and nobody could run it
/// (`ETXTBSY`).
///
/// # Errors
/// The program cannot be copied.
pub fn copy_program(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp").arg(from).arg(to).status()?;
    ensure!(copied.success(), "{} was not copied", from.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn both_streams_are_kept_and_waited_for() {
        let program = shell("echo 'listening on 1'; sleep 0.1; echo 'INFO ready: a' >&2; exit 3");
        assert_eq!(program.after("listening on ").unwrap(), "1");
        let line = program.line_with(&["INFO", "ready"]).unwrap();
        assert_eq!(line, "INFO ready: a");
        let failure = program.line_with(&["never"]).unwrap_err().to_string();
        assert!(failure.contains("never") && failure.contains("listening on 1"));
        let (status, output) = program.finish().unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(output, ["listening on 1", "INFO ready: a"]);
    }

    #[test]
    fn a_program_ends_with_its_handle_also_if_it_was_stopped() {
        let program = shell("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done");
        program.line_with(&["up"]).unwrap();
        program.signal(Signal::SIGSTOP).unwrap();
        let pid = Pid::from_raw(program.pid().cast_signed());
        drop(program);
        assert!(kill(pid, None).is_err());
    }

    #[test]
    fn long_output_keeps_its_start_and_its_end() {
        let mut lines = Lines::default();
        let all = FIRST_LINES + LAST_LINES + 5;
        (0..all).for_each(|number| lines.push(number.to_string()));
        assert_eq!(lines.first[0], "0");
        assert_eq!(lines.last[0], (FIRST_LINES + 5).to_string());
        assert_eq!(lines.last[LAST_LINES - 1], (all - 1).to_string());
    }
}
