//! The mediator and both SDKs in a world of their own.
//!
//! ```text
//!   clients                    network                  the mediator            processes
//!   real SDK tables   <-- lost, doubled, late -->  the real core, as     <--  pipes that stall,
//!   old ones               refused, made up        shell.rs drives it    -->  cut and end
//!   nuisances                                           |                     real sessions, old
//!                                                     model                   and bad drivers
//!                                         checks each step by what it saw
//! ```
//!
//! There is no socket, no process, no thread and no clock: one seed decides what
//! happens and when, so a run that fails fails again. [`World`] has the peers and
//! plays the part of the mediator's shell; [`model`] knows what was promised, and
//! [`invariant`] has the promises by name.
//!
//! ```
//! let start = std::time::Instant::now();
//! let summary = amber_simulation::simulate(start, 1, amber_simulation::Log::Nothing).unwrap();
//! assert!(summary.counted("steps") > 0);
//! ```

pub mod agenda;
pub mod clients;
pub mod invariant;
pub mod messages;
pub mod model;
pub mod process;
pub mod programs;
pub mod setup;
pub mod summary;
pub mod weather;
pub mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

pub use self::invariant::{Broken, Invariant};
pub use self::summary::Summary;
pub use self::world::{Log, World};

/// A run that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which run.
    pub seed: u64,
    /// At which step.
    pub step: u64,
    /// Which promise, and what was seen.
    pub broken: Broken,
    /// What happened last, when it was logged.
    pub last: Vec<String>,
}

/// One run. `start` only gives instants something to count from.
///
/// # Errors
/// A promise was broken.
pub fn simulate(start: Instant, seed: u64, log: Log) -> Result<Summary, Box<Failure>> {
    let mut world = World::new(start, seed, log);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    let broken = match outcome {
        Ok(Ok(())) => return Ok(world.into_summary()),
        Ok(Err(broken)) => broken,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            invariant::broken(Invariant::NoPanic, text.unwrap_or("a panic"))
        }
    };
    Err(Box::new(Failure {
        seed,
        step: world.step(),
        broken,
        last: world.into_log(),
    }))
}
