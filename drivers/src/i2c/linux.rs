//! An I2C bus of Linux, `/dev/i2c-N`. IO.

use std::io;
use std::path::Path;

use i2cdev::core::{I2CMessage, I2CTransfer};
use i2cdev::linux::{LinuxI2CBus, LinuxI2CMessage};
use nix::errno::Errno;

use super::{Bus, BusError};

pub(super) struct LinuxBus {
    bus: LinuxI2CBus,
    joins: Joins,
}

/// Whether a repeated start joins the write and the read of a transfer, or a stop separates them.
/// The original found a controller that does not support the repeated start.
#[derive(Clone, Copy, PartialEq)]
enum Joins {
    Unknown,
    Yes,
    No,
}

impl LinuxBus {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            bus: LinuxI2CBus::new(path)?,
            joins: Joins::Unknown,
        })
    }

    fn joined(&mut self, address: u16, written: &[u8], read: &mut [u8]) -> Result<(), io::Error> {
        let write = LinuxI2CMessage::write(written).with_address(address);
        let read = LinuxI2CMessage::read(read).with_address(address);
        self.bus.transfer(&mut [write, read])?;
        Ok(())
    }

    fn apart(&mut self, address: u16, written: &[u8], read: &mut [u8]) -> Result<(), io::Error> {
        if !written.is_empty() {
            let write = LinuxI2CMessage::write(written).with_address(address);
            self.bus.transfer(&mut [write])?;
        }
        if !read.is_empty() {
            let read = LinuxI2CMessage::read(read).with_address(address);
            self.bus.transfer(&mut [read])?;
        }
        Ok(())
    }
}

impl Bus for LinuxBus {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let address = address.into();
        if written.is_empty() || read.is_empty() || self.joins == Joins::No {
            return self.apart(address, written, read).map_err(bus_error);
        }
        match self.joined(address, written, read).map_err(bus_error) {
            Err(BusError::Broken(_)) if self.joins == Joins::Unknown => {
                self.apart(address, written, read).map_err(bus_error)?;
                self.joins = Joins::No;
                Ok(())
            }
            result => {
                if result.is_ok() {
                    self.joins = Joins::Yes;
                }
                result
            }
        }
    }
}

/// I2C controllers report a missing chip in several ways.
fn bus_error(error: io::Error) -> BusError {
    const SILENCE: [Errno; 3] = [Errno::ENXIO, Errno::EREMOTEIO, Errno::EIO];
    match error.raw_os_error().map(Errno::from_raw) {
        Some(errno) if SILENCE.contains(&errno) => BusError::Nak,
        Some(Errno::ETIMEDOUT) => BusError::Broken("the bus is stuck".into()),
        _ => BusError::Broken(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers everything that can be tested without hardware.
    #[test]
    fn a_file_that_is_not_a_bus_is_reported() {
        let mut bus = LinuxBus::open(Path::new("/dev/null")).unwrap();
        let mut byte = [0];
        match bus.transfer(0x19, &[0x0F], &mut byte) {
            Err(BusError::Broken(text)) => assert!(text.contains("ioctl"), "{text}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_missing_chip_and_a_stuck_bus_give_different_errors() {
        let error = |errno: Errno| bus_error(io::Error::from_raw_os_error(errno as i32));
        for errno in [Errno::ENXIO, Errno::EREMOTEIO, Errno::EIO] {
            assert_eq!(error(errno), BusError::Nak);
        }
        for errno in [Errno::ETIMEDOUT, Errno::ENODEV, Errno::EOPNOTSUPP] {
            assert!(matches!(error(errno), BusError::Broken(_)));
        }
    }
}
