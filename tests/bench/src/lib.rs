//! Compares the mediator with a minimal implementation of its job.
//!
//! `scripts/bench` builds everything and runs `bench`. It starts three *candidates* in turns, each
//! with the same driver (`bench-echo`), and applies the same loads to them from this process:
//!
//! ```text
//!   bench (load) -- UDP -- candidate -- pipes -- bench-echo
//! ```
//!
//! - `floor`: one thread that rewrites headers, one system call per message,
//! - `floor -b`: the same with batches; the reference,
//! - `amber`: the mediator with its default settings.
//!
//! Only ratios carry over to other machines. The reports therefore show medians over the rounds,
//! ratios, the worst ratio within one round, and goals for them.
//!
//! `scripts/bench neighbours` compares with other brokers (`neighbours/`).

pub mod batch;
pub mod chart;
pub mod fairness;
pub mod goals;
pub mod load;
pub mod probe;
pub mod process;
pub mod report;
pub mod results;
pub mod run;
pub mod samples;
