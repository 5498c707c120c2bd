//! Talk to robot devices through the mediator of Amber.
//!
//! ```text
//!   your program                         this crate's task          mediator
//!   Client, proxies  --- orders ------>  pending     calls     ---  UDP  --->
//!   calls            <-- answers ------  subscriptions         <--  or a  ---
//!   Subscriptions    <-- queues -------  liveness                   driver's pipe
//! ```
//!
//! ```no_run
//! # async fn run() -> amber_client::Result<()> {
//! use amber_client::Client;
//!
//! let client = Client::connect("127.0.0.1").await?;
//! let dummy = client.dummy(0);
//! dummy.message("hello").await?;
//! assert_eq!(dummy.status().await?.message, "hello");
//!
//! let mut updates = dummy.messages().await?;
//! while let Some(update) = updates.next().await {
//!     println!("{} ({} missed)", update.message, update.missed);
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! [`Client`] is a cheap handle. One task owns the transport and all tables. It
//! ends when you drop the last handle, and informs the mediator.
//!
//! - **Requests.** Each request has a deadline (one second by default), because
//!   UDP loses datagrams. Failures usually show earlier: the mediator reports an
//!   unknown device or a dead driver, and [`Error`] tells them apart. Nothing is
//!   retried automatically.
//! - **Commands**, such as [`Roboclaw::drive`], are requests without an answer. They wait
//!   until the driver has reported that it carries them out, which takes a round trip; a
//!   refusal is an error. A driver that does not report, such as one of the original
//!   system, is waited for once, for a quarter of a second. A program that must not wait
//!   uses [`Roboclaw::without_waiting`], which passes refusals on later.
//! - **Subscriptions.** A [`Subscription`] resumes after a restart of the driver
//!   or the mediator, and reports what you missed.
//! - **Dropping.** Dropping a future cancels its request if it is not sent yet.
//!   Dropping a subscription unsubscribes. Neither blocks.
//! - **Your own devices** work like the built-in ones: [`include_client!`] has a typed
//!   client for each device that your `.proto` file describes. [`Client::device`] takes
//!   raw bytes or any message that implements [`proto::DeviceMessage`].
//! - **Without async**: [`blocking`].
//!
//! Mediators and drivers of the original system also work, but report less. See
//! [`Announcement`].
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
pub mod transport;

mod client;
mod dispatch;
mod liveness;
mod log;
mod pending;
mod subscriptions;
mod wire;

/// Compiles the Rust examples of these pages.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/navigation.md")]
#[doc = include_str!("../../docs/driving.md")]
#[doc = include_str!("../../docs/who-drives.md")]
#[doc = include_str!("../../docs/robot.md")]
struct Pages;

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

/// Includes the clients of your own devices: those of the package that `amber_build::compile`
/// generated in `build.rs`. Use it in the module of their messages. The program must depend
/// on `amber-sdk` and `amber-proto`.
///
/// ```ignore
/// mod lamp {
///     amber_proto::include_messages!("lamp");
///     amber_client::include_client!("lamp");
/// }
///
/// let lamp = lamp::Lamp::of(&client, 0);
/// lamp.set_brightness(40).await?;
/// ```
///
/// The module `blocking` in it has the same clients for programs without async.
#[macro_export]
macro_rules! include_client {
    ($package:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $package, ".client.rs"));
    };
}
