//! An I2C bus: one transfer after the other. IO.
//!
//! Transfers block for a millisecond, and for a second when the bus is stuck,
//! so they belong on a thread of their own.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::connection::in_words;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod stream;

/// A bus that is open.
pub trait Bus: Send {
    /// Writes some bytes to a chip, if there are any, and then reads some, if
    /// any are wanted.
    ///
    /// # Errors
    /// Nobody is at the address, or the bus itself does not work.
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError>;
}

/// Why a transfer has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// Nobody has answered at the address.
    #[error("no answer")]
    Nak,
    /// The bus does not work, and should be opened again.
    #[error("{0}")]
    Broken(String),
}

/// Opens a bus, again and again.
pub trait OpenBus: Send + 'static {
    /// Opens it anew. May block as a transfer may.
    ///
    /// # Errors
    /// In words, when it is not there.
    fn open(&mut self) -> Result<Box<dyn Bus>, String>;
}

impl<F> OpenBus for F
where
    F: FnMut() -> Result<Box<dyn Bus>, String> + Send + 'static,
{
    fn open(&mut self) -> Result<Box<dyn Bus>, String> {
        self()
    }
}

/// Where a bus is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The system's, such as `/dev/i2c-1`.
    System(PathBuf),
    /// That of a simulated robot: a Unix socket.
    Simulated(PathBuf),
}

/// In front of the path of a socket.
const SIMULATED: &str = "sim:";

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = match text.strip_prefix(SIMULATED) {
            Some(path) => (path, Self::Simulated as fn(PathBuf) -> Self),
            None => (text, Self::System as fn(PathBuf) -> Self),
        };
        match place {
            ("", _) => Err("the path is missing, as in /dev/i2c-1 or sim:/tmp/bus".into()),
            (path, kind) => Ok(kind(path.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(path) => write!(f, "{}", path.display()),
            Self::Simulated(path) => write!(f, "{SIMULATED}{}", path.display()),
        }
    }
}

impl OpenBus for Place {
    fn open(&mut self) -> Result<Box<dyn Bus>, String> {
        self.try_open()
            .map_err(|error| in_words(&error, &self.to_string()))
    }
}

impl Place {
    fn try_open(&self) -> io::Result<Box<dyn Bus>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::System(path) => Ok(Box::new(linux::LinuxBus::open(path)?)),
            #[cfg(not(target_os = "linux"))]
            Self::System(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "I2C buses of this system are not supported, only those of Linux",
            )),
            #[cfg(unix)]
            Self::Simulated(path) => Ok(Box::new(stream::StreamBus::open(path)?)),
            #[cfg(not(unix))]
            Self::Simulated(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, place) in [
            ("/dev/i2c-1", Place::System("/dev/i2c-1".into())),
            ("sim:/tmp/bus", Place::Simulated("/tmp/bus".into())),
        ] {
            assert_eq!(text.parse::<Place>().as_ref(), Ok(&place));
            assert_eq!(place.to_string(), text);
        }
        for text in ["", "sim:"] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_bus_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        for mut place in [Place::System(path.clone()), Place::Simulated(path)] {
            let error = place.open().err();
            assert_eq!(error, Some(format!("{place} is not there")));
        }
    }
}
