//! The I2C bus of a simulated robot, over a Unix socket. IO.
//!
//! Request: the address, the number of bytes to write and the number to read, one byte each, then
//! the bytes to write. Reply: `06` and the bytes read, or `15` if no chip answered.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::{Bus, BusError};

/// Time limit for a transfer, the same as Linux uses for a real bus.
const TIMEOUT: Duration = Duration::from_secs(1);

const ACK: u8 = 0x06;
const NAK: u8 = 0x15;

pub(super) struct StreamBus {
    stream: UnixStream,
}

impl StreamBus {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            // A stale socket of a process that has ended.
            io::ErrorKind::ConnectionRefused => io::ErrorKind::NotFound.into(),
            _ => error,
        })?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { stream })
    }

    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), BusError> {
        self.stream.read_exact(bytes).map_err(broken)
    }
}

impl Bus for StreamBus {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let request = request(address, written, read.len())?;
        self.stream.write_all(&request).map_err(broken)?;
        let mut status = [0];
        self.receive(&mut status)?;
        match status {
            [ACK] => self.receive(read),
            [NAK] => Err(BusError::Nak),
            [other] => Err(BusError::Broken(format!(
                "unexpected reply from the bus: {other:#04x}"
            ))),
        }
    }
}

/// A transfer that writes these bytes, and then reads so many.
pub(super) fn request(address: u8, written: &[u8], read: usize) -> Result<Vec<u8>, BusError> {
    let count = |count: usize| {
        u8::try_from(count).map_err(|_| BusError::Broken("the transfer is too long".into()))
    };
    let head = [address, count(written.len())?, count(read)?];
    Ok([&head, written].concat())
}

fn broken(error: io::Error) -> BusError {
    BusError::Broken(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the bus is stuck".into(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "the bus is gone".into(),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a transfer while the other end reads this number of bytes and replies.
    fn transfer(read: &mut [u8], request: usize, answer: &[u8]) -> (Vec<u8>, Result<(), BusError>) {
        let (stream, mut other) = UnixStream::pair().unwrap();
        let mut bus = StreamBus { stream };
        let mut asked = vec![0; request];
        other.write_all(answer).unwrap();
        let result = bus.transfer(0x6B, &[0xA8], read);
        other.read_exact(&mut asked).unwrap();
        (asked, result)
    }

    #[test]
    fn a_transfer_is_written_and_its_reply_read() {
        let mut read = [0; 2];
        let (asked, result) = transfer(&mut read, 4, &[ACK, 1, 2]);
        assert_eq!(
            (asked.as_slice(), result),
            (&[0x6B, 1, 2, 0xA8][..], Ok(()))
        );
        assert_eq!(read, [1, 2]);
        assert_eq!(transfer(&mut read, 4, &[NAK]).1, Err(BusError::Nak));
    }

    #[test]
    fn an_invalid_reply_breaks_the_bus() {
        let (_, result) = transfer(&mut [0], 4, &[0x42]);
        assert_eq!(
            result,
            Err(BusError::Broken(
                "unexpected reply from the bus: 0x42".into()
            ))
        );
        let (stream, other) = UnixStream::pair().unwrap();
        drop(other);
        let result = StreamBus { stream }.transfer(0x19, &[], &mut [0]);
        assert_eq!(result, Err(BusError::Broken("the bus is gone".into())));
    }
}
