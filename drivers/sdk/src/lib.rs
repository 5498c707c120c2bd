//! Write a driver for a robot device in Rust.
//!
//! A driver is a process. The mediator starts it, writes the requests of
//! clients to its stdin and reads the answers from its stdout:
//!
//! ```text
//!             stdin   +---------+  methods, one at a time   +-------------+
//! mediator ---------->| session |-------------------------->| your driver |
//!          <----------|         |<--------------------------|             |
//!             stdout  +---------+  answers, published data  +-------------+
//! ```
//!
//! The `.proto` file of the device describes its requests and streams. The
//! trait of its drivers is generated from it: one method per `rpc`, with the
//! comments of the file. You implement the trait and pass your driver to
//! [`serve`], which handles PINGs, subscriptions, clients that die, unknown
//! requests, the end of stdin and signals. This is the complete Dummy driver:
//!
//! ```no_run
#![doc = include_str!("../examples/dummy.rs")]
//! ```
//!
//! The traits for Amber's own devices are in [`devices`]. For a device of your
//! own, `amber_sdk::device!` generates the trait from its `.proto` file.
//!
//! Programs use this crate as `amber_sdk::driver`, with the feature `driver` of amber-sdk.
//!
//! # Methods of a description
//!
//! | description | method |
//! |---|---|
//! | `ask` | gets the arguments and a [`Reply`]: answer it now, keep it and answer later from any task, or refuse |
//! | `tell` | gets the arguments and an [`Outcome`], which reports whether the command is carried out |
//! | `stream` | none: return the data from `publish` every `period`, or send it with the link from `start` |
//! | `stream` with a `request` | gets a [`StreamRequest`] when a client starts, changes or stops it, and when the client is gone. [`Periodic`] tracks which clients are due |
//!
//! Arguments are those of the messages; flags do not appear. An answer or
//! publication with several fields is a struct. [`Driver`] is the trait below
//! the generated ones: it has whole messages and no methods per request. Use it
//! for a gateway, or a device without a description.
//!
//! Several devices, also of different types, run in one process with
//! [`serve_many`].
//!
//! # How it runs
//!
//! - Handlers get `&mut self` and run **one at a time**, so a driver needs no
//!   locks. They may wait for hardware or another device: meanwhile PINGs are
//!   answered, subscriptions are recorded, and requests are queued. When the
//!   queue is full, the oldest request of the client with the most requests is
//!   dropped.
//! - Everything runs on **one thread**. A handler that blocks it (a long
//!   computation, a blocking read) also delays the answers to PINGs, and the
//!   mediator restarts a driver that does not answer them. Use
//!   [`tokio::task::spawn_blocking`] for such work.
//! - If the device sends data at its own pace, read it in your own task or
//!   thread and publish it with the [`Link`] that `start` receives.
//! - Other devices are called through [`Link::devices`], with the same proxies
//!   that clients use, over the same stdin and stdout.
//! - A driver that cannot reach its hardware keeps running and reports it with
//!   [`Link::trouble`], and later with [`Link::recovered`]. `amber events` and
//!   `amber status` show both.
//! - Log to **stderr**, with `tracing` or `eprintln!`; the mediator adds it to
//!   its log. stdout carries frames only; see [`serve`] and [`claim_stdout`]
//!   for what happens to other output.
//! - A **panic** ends the process, and the mediator starts it again.
//! - Hardware that goes on with its last command when the driver is killed needs a [`Guard`].
//!
//! # Where to look
//!
//! `session`, `subscribers`, `periodic`, `queue`, `motion`, `orders` and `health` make
//! decisions without IO (PURE); `pipe` reads and writes any stream, `many` joins the
//! pipes of several devices, `stdio` is the process around it, and `guard` is
//! another one that outlives it (IO). The first lines of each module contain
//! PURE or IO.

#![warn(missing_docs)]

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

use amber_proto::DeviceMessage;

// Generated code names this crate.
extern crate self as amber_driver;

pub mod devices;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(not(target_os = "linux"))]
#[path = "guard/none.rs"]
mod guard;
mod health;
mod link;
mod many;
mod motion;
#[cfg(feature = "options")]
pub mod options;
pub mod orders;
pub mod periodic;
mod pipe;
#[doc(hidden)]
pub mod queue;
mod reply;
mod request;
#[doc(hidden)]
pub mod session;
mod stdio;
#[doc(hidden)]
pub mod subscribers;
#[cfg(test)]
mod testing;

pub use amber_client::{self as client, Client};
pub use amber_proto::{self as proto, ClientId, Device};
pub use guard::Guard;
pub use link::{HolderWatch, Link, SendError};
pub use many::Devices;
pub use motion::{Holder, Motion, Moves, StopCause};
pub use periodic::Periodic;
pub use pipe::serve_on;
pub use reply::{Outcome, Reply, StreamRequest, UnknownRequests};
pub use request::{MessageTooLong, Origin, Request};
pub use stdio::{claim_stdout, init_logging, named_devices, serve, serve_many};

/// The behaviour of a device, with whole messages. Only [`Driver::request`] is
/// required. For a device with a description, implement its generated trait
/// instead.
///
/// The handlers run one at a time; see the [crate's documentation](crate). A
/// handler is dropped unfinished only when the process receives a signal to
/// terminate; [`Driver::shutdown`] is called next.
#[allow(async_fn_in_trait)] // They are only ever run on one thread.
pub trait Driver {
    /// The `DriverMsg` of the device, such as `amber_proto::dummy::DriverMsg`.
    type Message: DeviceMessage + Clone;

    /// The description of the device, for clients that do not have its `.proto`
    /// file: a serialized `google.protobuf.FileDescriptorSet`. The mediator gets
    /// it after [`Driver::start`]. The generated trait of your own device has
    /// one.
    fn description(&self) -> Option<&'static [u8]> {
        None
    }

    /// The requests that move something, for lease, halt and expiry; `None` if there are none.
    /// Generated traits have it.
    fn moves(&self) -> Option<Moves<Self::Message>> {
        None
    }

    /// Whether every command, a request without an answer, is followed by a report: by
    /// [`Link::accepted`] or [`Link::refused`]. Clients that ask are told so, and then wait for the
    /// report for as long as for an answer. Generated traits report always.
    fn reports_outcomes(&self) -> bool {
        false
    }

    /// Called first, before any message.
    ///
    /// Do not fail if the hardware is missing: a driver that keeps running and
    /// retries finds it as soon as the cable is plugged in.
    ///
    /// # Errors
    /// Anything that prevents the driver from working. It is logged, the
    /// process ends, and the mediator starts it again later.
    async fn start(
        &mut self,
        _link: Link<Self::Message>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Handles a request. Returns the answer, if there is one.
    ///
    /// Type and numbers are filled in. The answer to a request without a number
    /// (synNum) is dropped, because the client could not tell it from published
    /// data. To answer later, keep the origin, return `None`, and call
    /// [`Link::answer`].
    async fn request(&mut self, request: Request<Self::Message>) -> Option<Self::Message>;

    /// The time between two calls of [`Driver::publish`], which happen only
    /// while there are subscribers.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// Returns the data to send to all subscribers now; `None` if there is
    /// none.
    async fn publish(&mut self) -> Option<Self::Message> {
        None
    }

    /// The same for one device, in a process that serves several.
    async fn publish_for(&mut self, _device: Device) -> Option<Self::Message> {
        self.publish().await
    }

    /// When to call [`Driver::wake`]. Asked again after every call of a handler.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// Called at the time of [`Driver::wake_at`], for work that is due at a certain time, such as
    /// publishing to clients that each have their own period; see [`Periodic`].
    async fn wake(&mut self) {}

    /// Called when a client subscribes that was not subscribed before.
    async fn subscribed(&mut self, _client: ClientId) {}

    /// Called when a client has left or died: stop all motion that it started.
    /// Its subscriptions have already ended.
    async fn client_died(&mut self, _client: ClientId) {}

    /// Called last: stop everything that moves. Also called when serving ends
    /// with an error, but not after a panic.
    async fn shutdown(&mut self) {}
}

/// The current time on the clock of tokio, which tests can pause.
///
/// For the times that PURE code gets, such as [`Periodic`].
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The reason why serving has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system cannot provide the runtime.
    #[error("cannot run")]
    Runtime(#[source] io::Error),
    /// [`Driver::start`] failed.
    #[error("cannot start")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// stdin cannot be read, or contains something that is not a frame.
    #[error("cannot read from the mediator")]
    Read(#[source] io::Error),
    /// stdout cannot be written.
    #[error("cannot write to the mediator")]
    Write(#[source] io::Error),
    /// The mediator has ended without stopping the driver. The driver was shut down.
    #[error("the mediator is gone")]
    Lost,
}
