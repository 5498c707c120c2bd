//! Common code of everything that serves browsers: `amber dashboard`, `amber foxglove`, `amber
//! metrics --listen`, and the gateways with WebSockets.
//!
//! - [`access`] decides which requests are answered: hosts, origins, and tokens.
//! - [`handshake`] answers the request for a WebSocket on a plain connection.
//! - [`headers`] are those of all pages.
//! - [`places`] decides who may connect, and who leaves when all places are taken.
//! - [`websocket`] has the conversation over a WebSocket.
//!
//! With the feature `server`:
//!
//! - `place` opens the address, with a clear error, and ends the command at a signal.
//! - `Server` accepts connections, and passes their requests on.
//! - `socket` turns a request into a WebSocket.
//! - `backlog` has what waits for a peer, and `mailbox` sends it.
//! - `calls` sends the requests of pages and viewers to devices.
//!
//! Hyper serves HTTP, because WebSockets and a handful of paths need no framework: axum would add
//! nine crates, and its routes and extractors would replace less than fifty lines here.

pub mod access;
pub mod handshake;
pub mod headers;
pub mod limits;
pub mod places;
pub mod websocket;

#[cfg(feature = "server")]
pub mod backlog;
#[cfg(feature = "server")]
pub mod calls;
#[cfg(feature = "server")]
pub mod mailbox;
#[cfg(feature = "server")]
pub mod place;
#[cfg(feature = "server")]
pub mod socket;

#[cfg(feature = "server")]
mod body;
#[cfg(feature = "server")]
mod notes;
#[cfg(feature = "server")]
mod server;

pub use self::access::{Access, Advice, Origins, Own, Reach, Refused, Role, Token, Tokens};
#[cfg(feature = "server")]
pub use self::body::{Body, Parts};
pub use self::places::{Counts, Limits};
#[cfg(feature = "server")]
pub use self::server::{Answer, Guest, Request, Server, StatusCode, endless, head, page, plain};
