//! Many datagrams with one system call. IO.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};

/// Datagrams in one batch.
pub const BATCH: usize = 64;

/// The maximum size of a datagram.
const DATAGRAM: usize = 1 << 16;

/// The buffers for receiving a batch.
pub struct Receiver {
    bytes: Vec<u8>,
    headers: MultiHeaders<SockaddrIn>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self {
            bytes: vec![0; BATCH * DATAGRAM],
            headers: MultiHeaders::preallocate(BATCH, None),
        }
    }
}

impl Receiver {
    /// Takes the waiting datagrams, at most [`BATCH`], without blocking. The datagrams stay
    /// readable until the next batch overwrites them.
    pub fn receive(&mut self, socket: RawFd) -> Datagrams<'_> {
        let mut lengths = [(0, None); BATCH];
        let mut count = 0;
        let mut slices = self.bytes.chunks_exact_mut(DATAGRAM);
        let mut slices: [_; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(slices.next().unwrap_or_default())]);
        let flags = MsgFlags::MSG_DONTWAIT;
        // Whatever the error is, nothing can be read.
        if let Ok(messages) = recvmmsg(socket, &mut self.headers, &mut slices, flags, None) {
            for (message, entry) in messages.zip(&mut lengths) {
                *entry = (message.bytes, message.address);
                count += 1;
            }
        }
        Datagrams {
            bytes: &self.bytes,
            lengths,
            count,
        }
    }
}

/// The received datagrams.
pub struct Datagrams<'a> {
    bytes: &'a [u8],
    lengths: [(usize, Option<SockaddrIn>); BATCH],
    count: usize,
}

impl Datagrams<'_> {
    /// The datagrams in order, with their senders.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<SockaddrIn>)> {
        (self.bytes.chunks_exact(DATAGRAM))
            .zip(&self.lengths[..self.count])
            .map(|(bytes, (length, from))| (&bytes[..*length], *from))
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Sends batches.
pub struct Sender(MultiHeaders<SockaddrIn>);

impl Default for Sender {
    fn default() -> Self {
        Self(MultiHeaders::preallocate(BATCH, None))
    }
}

impl Sender {
    /// Sends frames, at most [`BATCH`], to the connected address. Skips frames that the system
    /// rejects.
    pub fn send_all(&mut self, socket: RawFd, frames: &[Vec<u8>]) {
        let mut datagrams = [[IoSlice::new(&[]); 2]; BATCH];
        for (datagram, frame) in datagrams.iter_mut().zip(frames) {
            datagram[0] = IoSlice::new(frame);
        }
        let count = frames.len();
        self.send(socket, &datagrams[..count], &[None; BATCH][..count]);
    }

    /// Sends all of them, at most [`BATCH`], to the addresses, or to the connected address. Skips
    /// frames that the system rejects.
    pub fn send(
        &mut self,
        socket: RawFd,
        datagrams: &[[IoSlice<'_>; 2]],
        to: &[Option<SockaddrIn>],
    ) {
        let mut done = 0;
        while done < datagrams.len() {
            let (rest, to) = (&datagrams[done..], &to[done..]);
            let sent = sendmmsg(socket, &mut self.0, rest, to, [], MsgFlags::empty());
            done += match sent {
                Ok(sent) => sent.count().max(1),
                Err(Errno::EINTR) => 0,
                Err(_) => 1,
            };
        }
    }
}
