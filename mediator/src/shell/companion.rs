//! A process that runs next to the mediator, such as the one that announces it. IO.
//!
//! It reads datagrams of anyone, so it has its own process: its faults cannot affect the mediator.
//! Its stdin ends when the mediator ends, for any reason, and then it must also end. If it ends
//! earlier, it is started again after a pause. Nothing depends on it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use tracing::warn;

use super::process::end_of;

/// A companion that has ended is started again after this time.
pub(super) const PAUSE: Duration = Duration::from_secs(60);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Companion {
    program: PathBuf,
    arguments: Vec<String>,
    process: Option<Child>,
    /// When this is closed, the companion knows that the mediator has ended.
    stdin: Option<ChildStdin>,
}

impl Companion {
    /// A companion that is not started yet, and runs as `program arguments...`.
    pub(super) const fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        Self {
            program,
            arguments,
            process: None,
            stdin: None,
        }
    }

    /// Starts it. Returns false on failure.
    pub(super) fn start(&mut self) -> bool {
        match self.spawn() {
            Ok(()) => true,
            Err(error) => {
                self.miss(&error.to_string());
                false
            }
        }
    }

    fn spawn(&mut self) -> io::Result<()> {
        let mut process = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        self.stdin = process.stdin.take();
        self.process = Some(process);
        Ok(())
    }

    /// A process has ended. Returns true if it was the companion: start it again after [`PAUSE`].
    pub(super) fn has_ended(&mut self) -> bool {
        let Some(ended) = self.process.as_mut().and_then(end_of) else {
            return false;
        };
        self.process = None;
        self.stdin = None;
        self.miss(&ended);
        true
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    fn miss(&self, why: &str) {
        let what = self.arguments.first().map_or("", String::as_str);
        warn!(
            "`amber {what}` has ended ({why}); restarting it in {} s",
            PAUSE.as_secs()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Waits until it has ended.
    fn await_end(companion: &mut Companion) {
        while !companion.has_ended() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_companion_ends_with_its_stdin_and_can_be_started_again() {
        let mut companion = Companion::new("/bin/cat".into(), Vec::new());
        assert!(companion.start());
        assert!(companion.pid().is_some() && !companion.has_ended());
        // As when the mediator ends.
        companion.stdin = None;
        await_end(&mut companion);
        assert_eq!(companion.pid(), None);
        assert!(companion.start());
        companion.stdin = None;
        await_end(&mut companion);
    }

    #[test]
    fn a_program_that_is_missing_is_no_companion() {
        let mut companion = Companion::new("/no/such/program".into(), Vec::new());
        assert!(!companion.start());
        assert!(!companion.has_ended());
    }
}
