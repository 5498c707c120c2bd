//! A simulation of the mediator and both SDKs.
//!
//! ```text
//!   clients                    network                  the mediator            processes
//!   real SDK logic    <-- lost, doubled, late -->  the real core, as     <--  pipes that stall,
//!   old ones               refused, spoofed        shell.rs drives it    -->  cut and end
//!   nuisances                                           |                     real sessions, old
//!                                                     model                   and bad drivers
//!                                         checks each step by what it saw
//! ```
//!
//! There is no socket, process, thread or real clock: one seed decides every event and its time, so
//! a failing run is reproducible. [`World`] contains the peers and acts as the mediator's shell;
//! [`model`] computes the expected behaviour, and [`invariant`] lists the invariants by name.
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
pub mod parts;
pub mod pictures;
pub mod process;
pub mod programs;
pub mod random;
pub mod setup;
pub mod summary;
pub mod weather;
pub mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

pub use self::invariant::{Broken, Invariant};
pub use self::random::Random;
pub use self::summary::Summary;
pub use self::world::{Log, World};

/// A run that violated an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the step.
    pub step: u64,
    /// The invariant, and the observation.
    pub broken: Broken,
    /// The last events, if they were logged.
    pub last: Vec<String>,
}

/// Simulates one run. `start` is only the base of instants.
///
/// # Errors
/// An invariant was violated.
pub fn simulate(start: Instant, seed: u64, log: Log) -> Result<Summary, Box<Failure>> {
    let mut world = World::new(start, Random::seeded(seed), log);
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
