//! What Windows does in another way than Linux and macOS: signals, and what a file is. IO.
//!
//! All else in this crate is the same on every system, except for `record`, which is for Linux.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::*;
#[cfg(windows)]
pub(crate) use self::windows::*;
