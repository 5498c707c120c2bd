//! JSON relay: control programs and robots that exchange JSON datagrams through a server.
//!
//! - [`codec`]: one JSON object per datagram (PURE)
//! - [`image`]: images in fragments (PURE)
//! - `limits`: every maximum, with its reason

pub mod codec;
pub mod image;
pub mod limits;
