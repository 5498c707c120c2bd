//! Real processes for tests and measurements: their start, their output, their use of resources, and
//! their end. Only for Linux, and only for this repository.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

pub mod processes;
mod program;
pub mod usage;

pub use program::{Program, copy_program};

/// Longer than anything takes that a test waits for, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks until there is an answer, for [`PATIENCE`].
///
/// # Errors
/// There is no answer in time, or asking fails.
pub fn wait_for<T>(
    what: &str,
    ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    within(PATIENCE, ask)?.with_context(|| format!("waited {PATIENCE:?} in vain for {what}"))
}

/// Asks until there is an answer, or the time is over.
///
/// # Errors
/// Asking fails.
pub fn within<T>(
    time: Duration,
    mut ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let deadline = Instant::now() + time;
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}
