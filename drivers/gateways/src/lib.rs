//! Gateways: programs that speak another robot protocol use Amber's devices, and Amber's clients
//! use the robots of that protocol.
//!
//! Each protocol has a folder with a codec (bytes to messages and back), a session (what to send
//! and when; the time is an argument), a mapping (its words to Amber's devices) and a driver (the
//! sockets). What all protocols need is shared.

pub mod rflysim;
#[cfg(test)]
mod testing;
