//! The parts that all gateways share.
//!
//! ```text
//!  sockets --> gate --> Machine (PURE: session, mapping) --> outbox --> sockets
//!                              ^                                   |
//!   feeds: measurements -------+                                   +--> users: one client per session
//!   emulated devices: requests +                                   +--> emulated devices: measurements
//! ```
//!
//! PURE: `machine` (the interface of a protocol), `robot` (its devices, and what it measures),
//! `gate` (allowed senders and rates), `offences` (addresses ignored for a while), `controls` (the
//! seat, and how long motion lasts), `helm` (the same for all devices of a robot), `motion` (which
//! messages move wheels), `lag` (how late a message is), `stall` (whether a connection has just
//! stalled), `tally` (counters), `json` (limits of texts), `clock`. IO: `runner` (the loop), `alarm`
//! (its timer), `sockets` (UDP), `web` (WebSockets), `users`, `trips`, `feeds`, `emulated`, `status`,
//! `options`.

mod alarm;
pub mod clock;
pub mod controls;
pub mod emulated;
pub mod feeds;
pub mod gate;
pub mod helm;
pub mod json;
pub mod lag;
pub mod machine;
pub mod maps;
pub mod motion;
pub mod offences;
pub mod options;
pub mod robot;
pub mod runner;
mod sockets;
pub mod stall;
mod status;
pub mod tally;
mod trips;
mod users;
pub mod web;
