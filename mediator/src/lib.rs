//! The mediator of Amber, as a library: the binary `amber` and the tests run it.
//!
//! All decisions are made in the crate [`amber_core`], which is pure. The [`shell`] of this crate is
//! the only place with IO. One thread owns everything, so there are no locks, and no data is passed
//! between threads.
//!
//! - [`shell`]: sockets, pipes, processes, timers.
//! - [`config_file`]: reads the configuration, and [`import`] that of the original mediator.
//! - [`log`]: lines on stderr that never block the mediator.
//!
//! It needs Linux; elsewhere, this library is empty, and the binary has the commands that are clients.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it has no
//! sockets, files, clocks or tasks, and gets the time as an argument. IO code uses sockets,
//! files, clocks and processes.

#![cfg(target_os = "linux")]

pub mod config_file;
pub mod import;
pub mod log;
pub mod shell;
