//! Talk to robot devices through the mediator of Amber.

#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
pub mod proxy;
pub mod subscription;
pub mod transport;

mod client;
mod dispatch;
mod liveness;
mod pending;
mod subscriptions;
mod wire;

pub use amber_proto as proto;
pub use client::{Announcement, Client, DEFAULT_DEADLINE};
pub use error::{Error, Result};
pub use proxy::{Dummy, DummyStatus, Mediator, Proxy};
pub use subscription::{Event, Interruption, Subscription, Update};
