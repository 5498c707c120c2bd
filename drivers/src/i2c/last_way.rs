//! The way to a chip for a guard: a descriptor on which a plain `write` reaches the chip. IO.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use amber_driver::Guard;
use i2cdev::linux::LinuxI2CDevice;

use super::{BusLocation, stream};

/// An open bus with a chosen address, apart from that of the driver.
enum LastWay {
    System(LinuxI2CDevice),
    Simulated(UnixStream),
}

impl AsRawFd for LastWay {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::System(device) => device.as_raw_fd(),
            Self::Simulated(socket) => socket.as_raw_fd(),
        }
    }
}

/// Starts a guard for a chip on a bus, and tells it what to write.
pub(super) fn guard(location: &BusLocation, address: u8, writes: &[Vec<u8>]) -> io::Result<Guard> {
    let (way, writes) = match location {
        // Fails if a driver of the kernel has this address.
        BusLocation::System(path) => {
            let device = LinuxI2CDevice::new(path, address.into())?;
            (LastWay::System(device), writes.to_vec())
        }
        BusLocation::Simulated(path) => {
            let writes = writes.iter().map(|bytes| {
                let request = stream::request(address, bytes, 0);
                request.map_err(|error| io::Error::other(error.to_string()))
            });
            let socket = UnixStream::connect(path)?;
            (
                LastWay::Simulated(socket),
                writes.collect::<Result<_, _>>()?,
            )
        }
    };
    let guard = Guard::start(way)?;
    guard.arm(&writes);
    Ok(guard)
}
