//! The serial port of a scanner: finds its speed, and lets its motor turn. IO.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::wire::{Question, STOP};
use crate::connection::{Connect, Connection, open_without_dtr};
use crate::probe::exchange;

/// How long a scanner may take to say what it is. It is asked twice.
const PATIENCE: Duration = Duration::from_millis(300);

/// A serial port whose speed may not be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialPort {
    /// The device file.
    pub path: PathBuf,
    /// Bits per second, at least one; the most likely first.
    pub bauds: Vec<u32>,
}

impl SerialPort {
    /// The adapter of an A1 stops the motor while the line DTR is set.
    fn open(&self, index: usize) -> io::Result<Box<dyn Connection>> {
        open_without_dtr(&self.path, self.bauds[index])
    }
}

impl Connect for SerialPort {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        if self.bauds.len() > 1 {
            for index in 0..self.bauds.len() {
                let mut port = self.open(index)?;
                if answers(&mut *port).await {
                    // Next time, this one first.
                    self.bauds[..=index].rotate_right(1);
                    return Ok(port);
                }
            }
        }
        // If there is no scanner, the driver finds that out, and says so.
        self.open(0)
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// Whether a scanner answers. Stops its scan.
async fn answers(port: &mut dyn Connection) -> bool {
    let request = [&STOP[..], &Question::Info.request()].concat();
    let mut received = Vec::new();
    let read = |bytes: &[u8]| {
        received.extend_from_slice(bytes);
        Question::Info.answer(&received)
    };
    exchange(port, &request, PATIENCE, read).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn a_scanner_answers_also_while_it_scans() {
        let (mut port, heard) = device(|_| {
            let points = [0x3E, 0x41, 0x2D, 0xA5, 0x5A].repeat(40);
            let info = [&[0xA5, 0x5A, 20, 0, 0, 0, 4, 0x18][..], &[0; 19]].concat();
            [points, info].concat()
        });
        assert!(answers(&mut *port).await);
        assert_eq!(*heard.lock().unwrap(), [0xA5, 0x25, 0xA5, 0x50]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_speed_or_another_device_does_not_answer() {
        let (mut port, _) = device(|_| vec![0x54, 0x2C, 0xA5, 0x5A, 1]);
        assert!(!answers(&mut *port).await);
    }

    #[tokio::test]
    async fn a_port_that_does_not_exist_is_an_error() {
        let mut port = SerialPort {
            path: "/nowhere/port".into(),
            bauds: vec![115_200, 256_000],
        };
        let error = port.connect().await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(port.place(), "/nowhere/port");
    }
}
