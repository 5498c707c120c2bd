//! Options of the built-in drivers: those of the command line over those of a file.

use std::path::PathBuf;
use std::time::Duration;

pub use amber_driver::options::{OptionsError, check, read, rejected};

use crate::connection::Endpoint;

/// Fills missing options of the command line from the file. All fields must be listed except
/// `config`, which names the file, and others that only the command line has, behind `..`.
macro_rules! layered {
    ($flags:ident over $file:ident: $($field:ident)*; .. $($own:ident)*) => {
        Self {
            config: $flags.config,
            $($field: $flags.$field.or($file.$field),)*
            $($own: $flags.$own,)*
        }
    };
    ($flags:ident over $file:ident: $($field:ident)*) => {
        layered!($flags over $file: $($field)*; ..)
    };
}
pub(crate) use layered;

/// The serial port to open.
pub(crate) fn serial(
    (port, default_port): (Option<PathBuf>, &str),
    (baud, default_baud): (Option<u32>, u32),
    fastest: u32,
) -> Result<Endpoint, OptionsError> {
    let baud = check("baud", baud.unwrap_or(default_baud), 2_400..=fastest)?;
    let path = port.unwrap_or_else(|| default_port.into());
    Ok(Endpoint::Serial { path, baud })
}

/// A time in milliseconds; `None` if it is 0, which means never.
pub(crate) fn millis(given: Option<u64>, default: u64) -> Option<Duration> {
    let millis = given.unwrap_or(default);
    (millis > 0).then(|| Duration::from_millis(millis))
}
