//! An I2C bus: one transfer after the other. IO.
//!
//! A transfer blocks for about a millisecond, or for a second if the bus is stuck, so transfers run
//! on their own thread (`on_a_thread` of `device_task`).

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use amber_driver::Guard;

use crate::connection::in_words;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(target_os = "linux")]
mod last_way;
#[cfg(target_os = "linux")]
mod linux;
pub mod registers;
#[cfg(unix)]
mod stream;

/// An open bus.
pub trait Bus: Send {
    /// Writes the bytes (if any) to a chip, then fills the read buffer (if not empty).
    ///
    /// # Errors
    /// No chip answers at the address, or the bus itself does not work.
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError>;
}

/// The reason why a transfer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// No chip answered at the address.
    #[error("no answer")]
    Nak,
    /// The bus does not work and should be reopened.
    #[error("{0}")]
    Broken(String),
}

/// Opens a bus, repeatedly.
pub trait OpenBus: Send + 'static {
    /// Opens the bus again. May block as long as a transfer.
    ///
    /// # Errors
    /// Describes why the bus cannot be opened.
    fn open(&mut self) -> Result<Box<dyn Bus>, String>;

    /// Starts a guard that writes this to a chip when the driver is killed; `None` for a bus that has
    /// none. Blocks for some milliseconds, in the runtime.
    ///
    /// # Errors
    /// Describes why there is no guard.
    fn guard(&self, _address: u8, _writes: &[Vec<u8>]) -> Result<Option<Guard>, String> {
        Ok(None)
    }
}

impl<F> OpenBus for F
where
    F: FnMut() -> Result<Box<dyn Bus>, String> + Send + 'static,
{
    fn open(&mut self) -> Result<Box<dyn Bus>, String> {
        self()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusLocation {
    /// A system bus, such as `/dev/i2c-1`.
    System(PathBuf),
    /// The bus of a simulated robot: a Unix socket.
    Simulated(PathBuf),
}

/// The prefix of a socket path.
const SIMULATED: &str = "sim:";

impl FromStr for BusLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let location = match text.strip_prefix(SIMULATED) {
            Some(path) => (path, Self::Simulated as fn(PathBuf) -> Self),
            None => (text, Self::System as fn(PathBuf) -> Self),
        };
        match location {
            ("", _) => Err("the path is missing, as in /dev/i2c-1 or sim:/tmp/bus".into()),
            (path, kind) => Ok(kind(path.into())),
        }
    }
}

impl fmt::Display for BusLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(path) => write!(f, "{}", path.display()),
            Self::Simulated(path) => write!(f, "{SIMULATED}{}", path.display()),
        }
    }
}

impl OpenBus for BusLocation {
    fn open(&mut self) -> Result<Box<dyn Bus>, String> {
        self.try_open().map_err(|error| self.unopened(&error))
    }

    fn guard(&self, address: u8, writes: &[Vec<u8>]) -> Result<Option<Guard>, String> {
        #[cfg(target_os = "linux")]
        let guard = last_way::guard(self, address, writes);
        #[cfg(not(target_os = "linux"))]
        let guard = Guard::start((address, writes));
        guard
            .map(Some)
            .map_err(|error| format!("no guard for address {address:#04x} on {self}: {error}"))
    }
}

impl BusLocation {
    /// Why it cannot be opened, and what to do.
    fn unopened(&self, error: &io::Error) -> String {
        let text = in_words(error, &self.to_string());
        match (error.kind(), self) {
            (io::ErrorKind::NotFound, Self::System(_)) => format!(
                "{text}: is I2C enabled? On a Raspberry Pi: `sudo raspi-config`, Interface Options"
            ),
            (io::ErrorKind::PermissionDenied, Self::System(_)) => {
                format!("{text}; usually `sudo usermod -aG i2c $USER`, and a new login")
            }
            _ => text,
        }
    }

    pub(crate) fn try_open(&self) -> io::Result<Box<dyn Bus>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::System(path) => Ok(Box::new(linux::LinuxBus::open(path)?)),
            #[cfg(not(target_os = "linux"))]
            Self::System(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "I2C buses are supported only on Linux",
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
    fn a_place_survives_printing_and_parsing() {
        for (text, location) in [
            ("/dev/i2c-1", BusLocation::System("/dev/i2c-1".into())),
            ("sim:/tmp/bus", BusLocation::Simulated("/tmp/bus".into())),
        ] {
            assert_eq!(text.parse::<BusLocation>().as_ref(), Ok(&location));
            assert_eq!(location.to_string(), text);
        }
        for text in ["", "sim:"] {
            assert!(text.parse::<BusLocation>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_bus_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none");
        for (mut location, hint) in [
            (BusLocation::System(path.clone()), ": is I2C enabled?"),
            (BusLocation::Simulated(path), ""),
        ] {
            let error = location.open().err().unwrap();
            let expected = format!("{location} does not exist{hint}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn a_bus_that_cannot_be_opened_says_what_to_do() {
        let system = BusLocation::System("/dev/i2c-1".into());
        let simulated = BusLocation::Simulated("/tmp/x".into());
        for (kind, location, expected) in [
            (
                io::ErrorKind::NotFound,
                &system,
                "/dev/i2c-1 does not exist: is I2C enabled?",
            ),
            (
                io::ErrorKind::NotFound,
                &simulated,
                "sim:/tmp/x does not exist",
            ),
            (
                io::ErrorKind::PermissionDenied,
                &system,
                "no permission to open /dev/i2c-1; ",
            ),
        ] {
            let text = location.unopened(&kind.into());
            assert!(text.starts_with(expected), "{text}");
        }
        let denied = system.unopened(&io::ErrorKind::PermissionDenied.into());
        assert!(denied.contains("usermod -aG i2c"), "{denied}");
    }
}
