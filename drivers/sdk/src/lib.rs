//! Write a driver for a robot device in Rust.
//!
//! A driver is a process. The mediator starts it, writes what clients ask to
//! its stdin and reads the answers from its stdout:
//!
//! ```text
//!             stdin   +---------+  handlers, one at a time  +-------------+
//! mediator ---------->| session |-------------------------->| your Driver |
//!          <----------|         |<--------------------------|             |
//!             stdout  +---------+  answers, published data  +-------------+
//! ```
//!
//! You write a type that implements [`Driver`] and give it to [`serve`]. PINGs,
//! subscriptions, clients that die, the end of stdin and signals are seen to.
//! This is the whole Dummy driver:
//!
//! ```no_run
#![doc = include_str!("../../examples/rust/src/bin/dummy_driver.rs")]
//! ```
//!
//! # How it runs
//!
//! - Handlers get `&mut self` and run **one at a time**, so a driver needs no
//!   locks. They may wait (for hardware, for another device): meanwhile PINGs
//!   are answered, subscribers are taken down, and requests wait their turn.
//!   When too many wait, the oldest request of whoever has most of them goes.
//! - Everything runs on **one thread**. A handler that blocks it (a
//!   computation, a blocking read) holds up the answer to PINGs, too, and a
//!   driver that leaves PINGs unanswered is started again: use
//!   [`tokio::task::spawn_blocking`] for that.
//! - When data comes at its own pace, read it in a task or thread of your own
//!   and publish it with the [`Link`] that [`Driver::start`] gets.
//! - Other devices are called through [`Link::devices`], with the same proxies
//!   that clients use, over the same stdin and stdout.
//! - A driver that cannot reach its hardware stays up and says so with
//!   [`Link::trouble`], and when it can again with [`Link::recovered`]:
//!   `amber events` and `amber status` tell people.
//! - Log to **stderr**, with `tracing` or `eprintln!`; the mediator takes it
//!   into its log. stdout is the wire.
//! - A **panic** ends the process, and the mediator starts it again.
//!
//! # Where to look
//!
//! `session`, `subscribers`, `queue` and `health` decide and touch no stream; `pipe`
//! reads and writes any stream, `stdio` is the process around it.

use std::error::Error;
use std::io;
use std::time::Duration;

use amber_proto::DeviceMessage;

mod health;
mod link;
mod pipe;
pub mod queue;
mod request;
pub mod session;
mod stdio;
pub mod subscribers;

pub use amber_client::{self as client, Client};
pub use amber_proto::{self as proto, ClientId, Device};
pub use link::{Link, SendError};
pub use pipe::{serve_on, serve_until};
pub use request::{Origin, Request};
pub use session::MessageTooLong;
pub use stdio::{claim_stdout, init_logging, serve};

/// What a device does; only [`Driver::request`] must be written.
///
/// The handlers run one at a time; see the [crate's documentation](crate).
/// A handler is dropped unfinished only when the process is asked to
/// terminate, and then [`Driver::shutdown`] comes next.
#[allow(async_fn_in_trait)] // They are only ever run on one thread.
pub trait Driver {
    /// The `DriverMsg` of the device, such as `amber_proto::dummy::DriverMsg`.
    type Message: DeviceMessage + Clone;

    /// Comes first, before any message.
    ///
    /// Hardware that is missing is no reason to fail: a driver that runs and
    /// tries again is found at once when the cable is plugged in.
    ///
    /// # Errors
    /// Whatever makes it pointless to run. It is logged and the process ends,
    /// and the mediator starts it again after a while.
    async fn start(
        &mut self,
        _link: Link<Self::Message>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    /// Somebody asks. Returns the answer, if there is one.
    ///
    /// Type and numbers are filled in. A request without a number (synNum) is
    /// carried out, but its answer is dropped: nobody could tell it from
    /// published data. To answer later, keep the origin, return `None`, and
    /// call [`Link::answer`].
    async fn request(&mut self, request: Request<Self::Message>) -> Option<Self::Message>;

    /// How often [`Driver::publish`] is called while somebody listens.
    fn period(&self) -> Option<Duration> {
        None
    }

    /// The data that all subscribers get now; `None` when there is none.
    async fn publish(&mut self) -> Option<Self::Message> {
        None
    }

    /// The same in a process that serves several devices, for one of them.
    async fn publish_for(&mut self, _device: Device) -> Option<Self::Message> {
        self.publish().await
    }

    /// A client has subscribed that was not subscribed before.
    async fn subscribed(&mut self, _client: ClientId) {}

    /// A client has gone; what it had set in motion should stop. Its
    /// subscriptions have ended before.
    async fn client_died(&mut self, _client: ClientId) {}

    /// Comes last: stop what moves. Also called when serving ends by an error,
    /// but not after a panic.
    async fn shutdown(&mut self) {}
}

/// Why serving has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The system lacks something.
    #[error("cannot run")]
    Runtime(#[source] io::Error),
    /// [`Driver::start`] failed.
    #[error("cannot start")]
    Start(#[source] Box<dyn Error + Send + Sync>),
    /// stdin cannot be read, or holds what is no frame.
    #[error("cannot read from the mediator")]
    Read(#[source] io::Error),
    /// stdout cannot be written.
    #[error("cannot write to the mediator")]
    Write(#[source] io::Error),
}
