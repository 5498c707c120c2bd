//! The conformance kit: tests whether a driver or a client follows the protocol.
//!
//! ```text
//!  table of checks --> run --> bench --stdin/stdout--> the driver
//!                       |        frames, junk, end of stdin
//!                       v
//!                    diagnose: from wrong bytes to the mistake --> report
//! ```
//!
//! [`run`] starts the driver as the mediator would and runs the checks of [`list`].
//! Checks share one process until one fails. Each failure shows what was sent, what
//! was received, what was expected, why it matters and the usual fix. [`run_client`]
//! does the same for clients: it is a mediator that loses, duplicates and swaps
//! answers.
//!
//! The first lines of each module contain PURE or IO. PURE code only
//! computes: it has no sockets, files, clocks or tasks, and gets the time as an
//! argument. IO code uses sockets, files, clocks and processes.

mod bench;
mod checks;
pub mod cli;
mod client;
mod devices;
pub mod diagnose;
mod limits;
mod plausible;
pub mod report;
mod run;
mod sample;

pub use checks::list;
pub use client::{ClientPlan, run_client};
pub use report::{Checked, Outcome, Report};
pub use run::{Plan, run};
