//! What the mediator needs from the program that runs it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, io};

use amber_core::config::{Config, ConfigError};

/// The functions and settings that the mediator needs from the program that runs it.
pub struct Hooks {
    /// Reads the configuration again; called on another thread.
    pub reload: Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>,
    /// Changes the log filter; the error explains why the filter is invalid.
    pub set_log_level: SetLogLevel,
    /// Changes the maximum number of log lines per second.
    pub set_log_rate: Box<dyn Fn(u32)>,
    /// The number of log lines lost so far.
    pub log_lines_lost: Box<dyn Fn() -> u64>,
    /// The program that `amber` stands for in commands; it also runs as `amber guard`.
    pub amber: PathBuf,
    /// The arguments of `amber` for a process that runs next to the mediator, if there is one.
    /// It must end when its stdin ends. Gets the addresses that the mediator listens on.
    pub companion: CompanionFor,
    /// The reaction to SIGHUP.
    pub hangup: Hangup,
}

/// The reaction to SIGHUP, which the system also sends when a terminal is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hangup {
    /// Read the configuration again, as services do.
    #[default]
    Reload,
    /// Stop the mediator.
    End,
}

/// See [`Hooks`].
pub type CompanionFor = Box<dyn Fn(&[SocketAddr]) -> Option<Vec<String>>>;

/// See [`Hooks`].
pub type SetLogLevel = Box<dyn Fn(&str) -> Result<(), String>>;

/// The running program, for [`Hooks::amber`].
///
/// # Errors
/// The system does not report it.
pub fn this_program() -> io::Result<PathBuf> {
    env::current_exe()
}
