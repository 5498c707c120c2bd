//! The serial port of a scanner: finds its speed, and lets its motor turn. IO.

use std::io;
use std::path::PathBuf;

use super::probe::info;
use crate::connection::{Connect, Connection, open_without_dtr};

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
                if info(&mut *port).await.is_ok() {
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

#[cfg(test)]
mod tests {
    use super::*;

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
