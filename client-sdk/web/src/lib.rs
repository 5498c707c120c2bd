//! Common code of commands that serve browsers: `amber dashboard`, `amber foxglove` and `amber
//! metrics --listen`.
//!
//! - [`access`] decides which requests are answered: hosts, and tokens.
//! - [`place`] opens the address, with a clear error, and ends the command at a signal.
//! - [`Server`] accepts connections, up to a limit, and passes their requests on.
//! - [`socket`] turns a request into a WebSocket.
//! - [`calls`] sends the requests of pages and viewers to devices.
//!
//! Hyper serves HTTP, because WebSockets and a handful of paths need no framework: axum would add
//! nine crates, and its routes and extractors would replace less than fifty lines here.

pub mod access;
pub mod calls;
pub mod limits;
pub mod place;
pub mod socket;

mod notes;
mod server;

pub use self::access::{Reach, Token};
pub use self::server::{Answer, Counts, Limits, Request, Server, StatusCode, head, page, plain};
