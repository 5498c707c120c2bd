//! The same on systems that have no guards. IO.

use std::convert::Infallible;
use std::io;

/// Stops the hardware when the driver is killed or hangs: only on Linux.
#[derive(Debug)]
pub struct Guard(Infallible);

impl Guard {
    /// Starts a guard for an open device.
    ///
    /// # Errors
    /// Always, on this system.
    pub fn start<T>(_device: T) -> io::Result<Self> {
        let why = "only on Linux a guard stops the hardware when a driver is killed";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Sets what the guard writes.
    pub fn arm(&self, _writes: &[Vec<u8>]) {
        match self.0 {}
    }

    /// Nothing is to be written any more.
    pub fn disarm(&self) {
        match self.0 {}
    }

    /// Why a killed driver would not stop the hardware at this moment, if that is so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match self.0 {}
    }

    /// Whether the guard has written since the last call.
    #[must_use]
    pub fn has_acted(&self) -> bool {
        match self.0 {}
    }

    /// Waits until something has changed.
    pub async fn changed(&self) {
        match self.0 {}
    }
}

/// Does the work of a guard if this process is one.
pub(crate) fn run() -> Option<u8> {
    None
}
