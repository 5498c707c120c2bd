//! Measures the mediator against the least code that can do its job.
//!
//! `scripts/bench` builds everything and runs `bench`. It starts three
//! *candidates* in turns, each with the same driver (`bench-echo`), and puts
//! the same loads on them from this process:
//!
//! ```text
//!   bench (load) -- UDP -- candidate -- pipes -- bench-echo
//! ```
//!
//! - `floor`: one thread that rewrites headers, one system call per message,
//! - `floor -b`: the same with batches: the yardstick,
//! - `amber`: the mediator as it is delivered.
//!
//! Only ratios within one round carry over to other machines, so that is what
//! is reported: medians over the rounds, and the goals that they are held to.

pub mod batch;
pub mod chart;
pub mod fairness;
pub mod goals;
pub mod load;
pub mod peers;
pub mod probe;
pub mod process;
pub mod report;
pub mod results;
pub mod run;
pub mod samples;
