//! The client of a mediator: what `amber-sdk` has for programs that use devices. Programs use it by
//! that name; Amber's own crates use it directly.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it
//! has no sockets, files, clocks or tasks, and gets the time as an argument. IO
//! code uses them.

#![warn(missing_docs)]

// Generated code has the paths of a program that uses this crate.
extern crate self as amber_client;

pub mod address;
pub mod blocking;
pub mod error;
#[cfg(any(test, feature = "fake"))]
#[doc(hidden)]
pub mod fake;
#[doc(hidden)]
pub mod generated;
pub mod lease;
#[cfg(feature = "picture")]
pub mod picture;
pub mod proxy;
pub mod sources;
pub mod subscription;
#[doc(hidden)]
pub mod transport;

mod client;
mod dispatch;
mod liveness;
mod log;
mod pending;
mod subscriptions;
mod wire;

/// The client's task without tokio, for `tests/simulation`. Not a part of the
/// interface: it may change at any time.
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation {
    pub use crate::dispatch::simulation::{Machine, Outcome, Signalled};
}

pub use address::MediatorAddress;
pub use amber_proto as proto;
pub use amber_values as values;
pub use amber_values::scan::{self, Point, Scan, ScanError};
pub use client::{Announcement, Client, DEFAULT_DEADLINE};
pub use error::{Error, Result};
pub use lease::Lease;
pub use log::{LogEntry, LogReader, LogStart};
#[doc(inline)]
pub use proxy::*;
pub use subscription::{Event, Interruption, Subscription, Update};
