//! All decisions of the mediator. PURE.
//!
//! ```text
//!                 +--------------------- this crate ----------------------+
//!  datagrams ---> |  router: clients, devices, queues    supervise: state |
//!  driver frames->|  Core: the two together, and the mediator as a device |
//!  exits, time -->|                                                       |
//!                 +------+-------------------+----------------------+-----+
//!                        v                   v                      v
//!                  datagrams out      bytes for pipes      processes to start and end
//! ```
//!
//! There are no sockets, processes or clocks here: time is an argument, and the actions to perform
//! are return values. This crate has no dependency that does IO.
//! The shell of the crate amber-mediator does the IO; in the tests, the simulation replaces it.
//!
//! - [`Core`]: combines router and supervision, and answers as device 0.
//! - [`config`]: the settings, read from TOML and the command line.
//! - [`access`]: which addresses may use which device. [`rate`]: rate limits.
//! - [`router`]: which frame goes where. [`queue`]: the frames that wait for one driver.
//!   [`gate`]: limits the unread bytes in a driver's pipe.
//! - [`supervise`]: the life of one driver process, as a state machine.
//! - [`feeds`]: copies of frames for recorders.
//! - [`origin`]: whether a source address is genuine. [`links`]: whether a host uses an
//!   address. [`lanes`]: which socket sends.
//! - [`counters`], [`limits`]: all counters and all maxima.
//!
//! Four promises hold: the mediator does not decode messages for others (except the number of a
//! request to an unavailable device, and CLIENT_DIED); it counts every drop; no input from a
//! peer can make this code panic; and a client that has never contacted the mediator itself sees
//! only what drivers send it.

pub mod access;
pub mod address;
pub mod config;
pub mod counters;
pub mod feeds;
pub mod gate;
pub mod hash;
pub mod lanes;
pub mod limits;
pub mod links;
mod mediator;
pub mod moment;
pub mod origin;
pub mod queue;
pub mod rate;
pub mod router;
pub mod supervise;
mod text;

pub use mediator::{Core, ShellTask, Ticket};
