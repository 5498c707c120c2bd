//! Outgoing datagrams as plain data. PURE.
//!
//! The router writes each frame once for any number of clients; the shell sends all entries and
//! clears the outbox.

use std::iter;
use std::net::SocketAddr;
use std::ops::Range;

use amber_proto::Frame;
use amber_proto::frame::PartTooLong;

use super::PackedAddress;
use crate::limits;

/// The address of a client, and the socket of ours that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientAddress {
    /// Index of our socket.
    pub socket: u8,
    /// Address and port of the client.
    pub address: SocketAddr,
}

/// Outgoing datagrams.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<(PackedAddress, Written)>,
}

/// Consecutive datagrams for one client with the same length; only the last may be shorter. The
/// system can split them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// The client.
    pub to: PackedAddress,
    /// All datagrams, one after the other.
    pub bytes: &'a [u8],
    /// The length of the first datagram.
    pub segment: usize,
}

impl<'a> Run<'a> {
    /// The number of datagrams.
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.bytes.len().div_ceil(self.segment)
    }
}

/// The number of datagrams at the start that form a run.
fn run_len(datagrams: &[(PackedAddress, Written)], most: usize) -> usize {
    let Some((to, first)) = datagrams.first() else {
        return 0;
    };
    let segment = first.len();
    let longest = match to.is_loopback() {
        true => limits::LOCAL_SEGMENT_BYTES,
        false => limits::SEGMENT_BYTES,
    };
    if segment > longest {
        return 1;
    }
    let goes_on = |pair: &[(PackedAddress, Written)]| {
        let ((_, before), (other, next)) = (&pair[0], &pair[1]);
        next.start == before.end && other == to && before.len() == segment && next.len() <= segment
    };
    let most = most.min(limits::RUN_BYTES / segment.max(1));
    let more = datagrams.windows(2).take(most.saturating_sub(1));
    1 + more.take_while(|pair| goes_on(pair)).count()
}

/// The address of a frame's bytes in the outbox.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    start: u32,
    end: u32,
}

impl Written {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn len(self) -> usize {
        self.range().len()
    }
}

impl Outbox {
    /// Writes a frame, for any number of [`Outbox::send`].
    ///
    /// # Errors
    /// A part is longer than 32 767 bytes.
    pub fn write(&mut self, header: &[u8], message: &[u8]) -> Result<Written, PartTooLong> {
        // The output of one turn is far below four gigabytes.
        let start = self.bytes.len() as u32;
        Frame { header, message }.encode(&mut self.bytes)?;
        let end = self.bytes.len() as u32;
        Ok(Written { start, end })
    }

    /// Sends a frame to one client.
    pub fn send(&mut self, to: impl Into<PackedAddress>, frame: &Written) {
        self.datagrams.push((to.into(), *frame));
    }

    /// All datagrams, in order.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = (ClientAddress, &[u8])> {
        self.datagrams
            .iter()
            .map(|(to, frame)| ((*to).into(), &self.bytes[frame.range()]))
    }

    /// The run that starts at this datagram: it and those after it that one system call can
    /// send together, at most `most`.
    pub fn run_at(&self, number: usize, most: usize) -> Option<Run<'_>> {
        let rest = self.datagrams.get(number..)?;
        let run = &rest[..run_len(rest, most)];
        let ((to, first), (_, last)) = (run.first()?, run.last()?);
        Some(Run {
            to: *to,
            bytes: &self.bytes[first.range().start..last.range().end],
            segment: first.len(),
        })
    }

    /// All datagrams, as runs.
    pub fn runs(&self, most: usize) -> impl Iterator<Item = Run<'_>> {
        let mut next = 0;
        iter::from_fn(move || {
            let run = self.run_at(next, most)?;
            next += run.len();
            Some(run)
        })
    }

    /// Whether there is nothing to send or clear. A frame may have been written for clients
    /// that turned out to be unknown.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Clears the outbox after sending.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(port: u16) -> ClientAddress {
        ClientAddress {
            socket: 0,
            address: ([10, 0, 0, 1], port).into(),
        }
    }

    /// Input: ports and lengths of messages. Output: ports and lengths of runs.
    fn check(datagrams: &[(u16, usize)], most: usize, runs: &[(u16, &[usize])]) {
        let mut outbox = Outbox::default();
        for (port, bytes) in datagrams {
            let frame = outbox.write(&[], &vec![0; bytes - 4]).unwrap();
            outbox.send(client(*port), &frame);
        }
        let shown: Vec<(u16, Vec<usize>)> = (outbox.runs(most))
            .map(|run| {
                let lengths = run.bytes.chunks(run.segment).map(<[u8]>::len).collect();
                (run.to.address().port(), lengths)
            })
            .collect();
        let runs: Vec<_> = runs
            .iter()
            .map(|(port, all)| (*port, all.to_vec()))
            .collect();
        assert_eq!(shown, runs, "{datagrams:?}");
    }

    #[test]
    fn consecutive_datagrams_of_one_length_for_one_client_form_a_run() {
        check(&[], 9, &[]);
        check(&[(1, 50)], 9, &[(1, &[50])]);
        check(
            &[(1, 50), (1, 50), (2, 50)],
            9,
            &[(1, &[50, 50]), (2, &[50])],
        );
        check(
            &[(1, 50), (2, 50), (1, 50)],
            9,
            &[(1, &[50]), (2, &[50]), (1, &[50])],
        );
        // A shorter datagram ends a run, a longer one cannot be part of it.
        check(
            &[(1, 50), (1, 40), (1, 40)],
            9,
            &[(1, &[50, 40]), (1, &[40])],
        );
        check(&[(1, 40), (1, 50)], 9, &[(1, &[40]), (1, &[50])]);
    }

    #[test]
    fn runs_are_bounded() {
        check(
            &[(1, 50); 5],
            2,
            &[(1, &[50, 50]), (1, &[50, 50]), (1, &[50])],
        );
        check(&[(1, 50); 2], 1, &[(1, &[50]), (1, &[50])]);
        let most = limits::RUN_BYTES / 1200;
        let (whole, rest) = (vec![1200; most], vec![1200; 64 - most]);
        check(&[(1, 1200); 64], 64, &[(1, &whole), (1, &rest)]);
        let long = limits::SEGMENT_BYTES + 1;
        check(&[(1, long); 2], 9, &[(1, &[long]), (1, &[long])]);
    }

    #[test]
    fn runs_to_this_machine_may_have_long_datagrams() {
        for (ip, runs) in [
            ("127.0.0.9", 1),
            ("::1", 1),
            ("::ffff:127.0.0.1", 2),
            ("10.0.0.1", 2),
        ] {
            let address = (ip.parse::<std::net::IpAddr>().unwrap(), 4711).into();
            let to = ClientAddress { socket: 0, address };
            let mut outbox = Outbox::default();
            for _ in 0..2 {
                let frame = outbox.write(&[], &[0; 6800]).unwrap();
                outbox.send(to, &frame);
            }
            assert_eq!(outbox.runs(9).count(), runs, "{ip}");
        }
    }

    #[test]
    fn one_frame_to_many_clients_is_written_once_and_forms_no_run() {
        let mut outbox = Outbox::default();
        let frame = outbox.write(&[], b"x").unwrap();
        for port in [1, 1, 2] {
            outbox.send(client(port), &frame);
        }
        assert_eq!(outbox.runs(9).count(), 3);
        assert_eq!(outbox.datagrams().count(), 3);
    }
}
