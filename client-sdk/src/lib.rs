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
//! let mut updates = dummy.subscribe().await?;
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
//! [`Client`] is a cheap handle. One task owns the transport and all tables; it
//! ends when the last handle is dropped, and tells the mediator.
//!
//! - **Asking.** Each call has a deadline (one second unless you say something
//!   else): UDP loses things. Mostly you know sooner: the mediator says when a
//!   device is unknown or its driver dies, and [`Error`] says which it was.
//!   Nothing is sent twice behind your back.
//! - **Listening.** A [`Subscription`] goes on by itself when a driver or the
//!   mediator was restarted, and tells you what you missed.
//! - **Dropping.** A future that is dropped takes its request back if that has
//!   not been sent; a subscription that is dropped is cancelled. Neither blocks.
//! - **Devices of your own** work like the built-in ones: [`Client::device`]
//!   takes raw bytes or any message that implements [`proto::DeviceMessage`].
//! - **Without async**: [`blocking`].
//!
//! Mediators and drivers of the original system work, too; they only tell less.
//! See [`Announcement`].

pub mod address;
pub mod blocking;
#[cfg(feature = "cli")]
pub mod cli;
pub mod error;
#[cfg(feature = "picture")]
pub mod picture;
pub mod proxy;
pub mod scan;
pub mod subscription;
pub mod transport;

mod client;
mod dispatch;
#[cfg(test)]
mod fake;
mod liveness;
mod pending;
mod subscriptions;
mod wire;

/// Compiles the Rust example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The client's task without tokio, for `tests/simulation`. No part of the
/// interface: it changes as the inside does.
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation {
    pub use crate::dispatch::simulation::{Machine, Outcome, Signalled};
}

pub use address::MediatorAddress;
pub use amber_proto as proto;
pub use client::{Announcement, Client, DEFAULT_DEADLINE};
pub use error::{Error, Result};
pub use proxy::{
    Attitude, Dummy, DummyStatus, Finding, Hokuyo, ImuReading, Maestro, Mediator, NineDof, Pose,
    Proxy, Roboclaw, Sensors, Stargazer, Vector, WheelSpeeds,
};
pub use scan::{Point, Scan, ScanError};
pub use subscription::{Event, Interruption, Subscription, Update};
