//! The serial port of a receiver: finds its speed by what it sends. IO.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::nmea::{Parser, Sentence};
use crate::connection::{Connect, Connection, Endpoint};
use crate::probe::{NoAnswer, hear};

/// Receivers send each second.
pub(super) const PATIENCE: Duration = Duration::from_millis(1_100);

/// A serial port whose speed may not be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialPort {
    /// The device file.
    pub path: PathBuf,
    /// Bits per second, at least one; the most likely first.
    pub bauds: Vec<u32>,
}

impl SerialPort {
    async fn open(&self, index: usize) -> io::Result<Box<dyn Connection>> {
        let (path, baud) = (self.path.clone(), self.bauds[index]);
        Endpoint::Serial { path, baud }.connect().await
    }
}

impl Connect for SerialPort {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        if self.bauds.len() > 1 {
            for index in 0..self.bauds.len() {
                let mut port = self.open(index).await?;
                if let Ok(Some(_)) = first_sentence(&mut *port).await {
                    // Next time, this one first.
                    self.bauds[..=index].rotate_right(1);
                    return Ok(port);
                }
            }
        }
        // If there is no receiver, the driver finds that out, and says so.
        self.open(0).await
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// Listens until a sentence with a right sum arrives; `None` if none does.
pub(super) async fn first_sentence(
    port: &mut dyn Connection,
) -> Result<Option<Sentence>, NoAnswer> {
    let mut parser = Parser::default();
    let read = |bytes: &[u8]| {
        parser.push(bytes);
        parser.poll()
    };
    hear(port, PATIENCE, read).await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    async fn hears(sent: &[u8]) -> bool {
        let (mut ours, mut theirs) = duplex(1024);
        theirs.write_all(sent).await.unwrap();
        let heard = first_sentence(&mut ours).await;
        drop(theirs);
        heard.unwrap().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_speed_is_right_if_a_whole_sentence_arrives() {
        assert!(hears(b"3,M,,*4D\r\n$GNRMC,,V,,,,,,,,,,N,V*37\r\n").await);
        assert!(!hears(b"$GNRMC,,V,,,,,,,,,,N,V*38\r\n").await);
        assert!(!hears(&[0x80, 0x1C, 0xE0, 0xFC].repeat(100)).await);
    }

    #[tokio::test]
    async fn a_port_that_does_not_exist_is_an_error() {
        let mut port = SerialPort {
            path: "/nowhere/port".into(),
            bauds: vec![9_600, 38_400],
        };
        let error = port.connect().await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(port.place(), "/nowhere/port");
    }
}
