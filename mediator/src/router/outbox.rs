//! Datagrams on their way out, as plain data. PURE.
//!
//! The router writes each frame once, however many clients it goes to; the
//! shell sends all entries and clears the box.

use std::net::SocketAddr;
use std::ops::Range;

use amber_proto::Frame;
use amber_proto::frame::PartTooLong;

/// Where a client is: its address, and which of our sockets it talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    /// Index of our socket.
    pub socket: u8,
    /// Address and port of the client.
    pub address: SocketAddr,
}

/// Datagrams on their way out.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<(ClientAddress, Range<usize>)>,
}

/// A frame in the outbox.
#[derive(Clone, Debug)]
pub struct Written(Range<usize>);

impl Outbox {
    /// Writes a frame, for any number of [`Outbox::send`].
    ///
    /// # Errors
    /// A part is longer than 32 767 bytes.
    pub fn write(&mut self, header: &[u8], message: &[u8]) -> Result<Written, PartTooLong> {
        let start = self.bytes.len();
        Frame { header, message }.encode(&mut self.bytes)?;
        Ok(Written(start..self.bytes.len()))
    }

    /// Sends a frame to one client.
    pub fn send(&mut self, to: ClientAddress, frame: &Written) {
        self.datagrams.push((to, frame.0.clone()));
    }

    /// What is to be sent, in order.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = (ClientAddress, &[u8])> {
        self.datagrams
            .iter()
            .map(|(to, range)| (*to, &self.bytes[range.clone()]))
    }

    /// Whether there is nothing to send and nothing to forget: a frame may have
    /// been written for clients that turned out to be unknown.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything, once it is sent.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
    }
}
