//! Galileo UDP: the protocol of the robots of bwbot (port 3547).
//!
//! ```text
//!  client: connect udp://HOST:PORT/PATH?token=TOKEN --> server: accept, with the id of a session
//!  client: TEXT, BINARY, PING, PONG, CLOSE         <--> server: the same
//! ```
//!
//! The path of a session is its purpose: `cmd_vel` drives, `scan` sends scans. PURE: `codec`
//! (bytes), `records` and `messages` (messages of Amber in BINARY and TEXT frames), `token`, `mapping`
//! (paths and JSON), `server` (sessions of foreign clients), `foreign` (sessions at a foreign robot),
//! `doorkeeper` (admission of sessions),
//! `proxy` (forwarded sessions), `discovery` (announcements) and `gateway` (all of them). IO:
//! `driver` (options).

pub mod codec;
pub mod discovery;
pub mod doorkeeper;
pub mod driver;
pub mod foreign;
pub mod gateway;
pub mod limits;
pub mod mapping;
pub mod messages;
pub mod proxy;
pub mod records;
pub mod server;
pub mod token;
