//! Galileo UDP: the protocol of the robots of bwbot (port 3547).
//!
//! ```text
//!  client: connect udp://HOST:PORT/PATH?token=TOKEN --> server: accept, with the id of a session
//!  client: TEXT, BINARY, PING, PONG, CLOSE         <--> server: the same
//! ```
//!
//! The path of a session says what it is for: `cmd_vel` drives, `scan` sends scans. `codec` (bytes),
//! `records` and `messages` (messages of Amber in BINARY and TEXT frames), `token`, `mapping` (paths and JSON) and `server`
//! (sessions) are PURE; `driver` (options) is IO.

pub mod codec;
pub mod driver;
pub mod gateway;
pub mod limits;
pub mod mapping;
pub mod messages;
pub mod records;
pub mod server;
pub mod token;
