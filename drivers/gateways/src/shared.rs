//! The parts that all gateways share.
//!
//! ```text
//!  sockets --> gate --> Machine (PURE: session, mapping) --> outbox --> sockets
//!                              ^                                   |
//!   feeds: measurements -------+                                   +--> users: one client per session
//!   emulated devices: requests +                                   +--> emulated devices: measurements
//! ```
//!
//! PURE: `machine` (the interface of a protocol), `event` (what it hears of Amber), `gate` (allowed
//! senders and rates), `offences` (addresses ignored for a while), `stall` (whether a connection has
//! just stalled), `tally` (counters), `json` (limits of texts), `clock`. IO: `runner` (the loop),
//! `alarm` (its timer), `sockets` (UDP), `web` (WebSockets), `emulated`, `status`, `options`. The
//! crate `amber-robot` has what gateways share with other programs that drive: `helm`, `users`,
//! `feeds`.

mod alarm;
pub mod clock;
pub mod emulated;
pub mod event;
pub mod gate;
pub mod json;
pub mod machine;
pub mod offences;
pub mod options;
pub mod runner;
mod sockets;
pub mod stall;
mod status;
pub mod tally;
pub mod web;
