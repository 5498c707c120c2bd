//! JSON relay: control programs and robots that exchange JSON datagrams through a server.
//!
//! - [`codec`]: one JSON object per datagram (PURE)
//! - [`image`]: images in fragments (PURE)
//! - `drive`: commands as wheel speeds (PURE)
//! - [`server`]: the server, to which Amber's robot belongs (PURE)
//! - [`end`]: a robot or a control at a foreign server (PURE)
//! - `pacing`, `pictures`: images on their way to peers and to Amber's clients (PURE)
//! - `driver`: the options of `amber driver json-relay` (IO)
//! - `limits`: every maximum, with its reason

pub mod codec;
pub mod drive;
pub mod driver;
pub mod end;
pub mod image;
pub mod limits;
mod pacing;
mod pictures;
pub mod server;
mod stamps;
