//! Outgoing datagrams as plain data. PURE.
//!
//! The router writes each frame once for any number of clients; the shell sends all entries and
//! clears the outbox. A long message from a driver is not copied: the shell lends the outbox the
//! buffer into which it has read the message, until everything is sent.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use amber_proto::Frame;
use amber_proto::frame::PartTooLong;
use amber_proto::limits::MAX_PART;

use crate::address::{ClientAddress, PackedAddress};
use crate::limits;

/// Outgoing datagrams.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// The buffer with the messages of some datagrams.
    lent: Vec<u8>,
    /// Whether any datagram has its message there.
    borrows: bool,
    datagrams: Vec<(PackedAddress, Written)>,
    /// How many frames were written.
    frames: usize,
    /// The length of all datagrams together.
    total: usize,
}

/// A message from a driver.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub bytes: &'a [u8],
    /// Where they start in the buffer that can be lent to the outbox; the two bytes before them
    /// are their length.
    pub at: Option<usize>,
}

/// Consecutive datagrams for one client with the same length; only the last may be shorter. The
/// system can split them itself.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The client.
    pub to: PackedAddress,
    /// The length of the first datagram.
    pub segment: usize,
    outbox: &'a Outbox,
    datagrams: &'a [(PackedAddress, Written)],
}

impl<'a> Run<'a> {
    /// The number of datagrams.
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// The bytes of all datagrams, one after the other: at most two pieces for each datagram.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (outbox, mut datagrams) = (self.outbox, self.datagrams.iter().peekable());
        let mut message = None;
        iter::from_fn(move || {
            if let Some(message) = message.take() {
                return Some(message);
            }
            let (_, first) = datagrams.next()?;
            let (start, mut last) = (first.start, first);
            // What the outbox has copied is adjacent.
            while !last.is_lent() {
                let Some((_, next)) = datagrams.next() else {
                    break;
                };
                last = next;
            }
            message = last.is_lent().then(|| outbox.message(*last));
            Some(&outbox.bytes[start as usize..last.end as usize])
        })
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

/// The address of a frame's bytes in the outbox: the whole frame, or its header. Then the rest
/// is in the lent buffer.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    start: u32,
    end: u32,
    lent_start: u32,
    lent_end: u32,
}

impl Written {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn is_lent(self) -> bool {
        self.lent_start < self.lent_end
    }

    fn lent_range(self) -> Range<usize> {
        self.lent_start as usize..self.lent_end as usize
    }

    /// The length of the frame.
    pub(super) fn len(self) -> usize {
        self.range().len() + self.lent_range().len()
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
        self.frames += 1;
        let end = self.bytes.len() as u32;
        Ok(Written {
            start,
            end,
            lent_start: 0,
            lent_end: 0,
        })
    }

    /// The same for a message that may stay where it is. If [`Outbox::borrows`] is true
    /// afterwards, the caller must [lend](Outbox::lend) its buffer before anything is sent.
    ///
    /// # Errors
    /// See [`Outbox::write`].
    pub fn write_message(
        &mut self,
        header: &[u8],
        message: Message<'_>,
    ) -> Result<Written, PartTooLong> {
        match message.at {
            Some(at) if (limits::LENT_MESSAGE..=MAX_PART).contains(&message.bytes.len()) => {
                self.write_lent(header, at, message.bytes.len())
            }
            _ => self.write(header, message.bytes),
        }
    }

    fn write_lent(
        &mut self,
        header: &[u8],
        at: usize,
        length: usize,
    ) -> Result<Written, PartTooLong> {
        let head = Frame {
            header,
            message: &[],
        };
        let start = self.bytes.len();
        head.encode(&mut self.bytes)?;
        // The length of the message is in the lent buffer.
        let end = self.bytes.len() - LENGTH_BYTES;
        self.bytes.truncate(end);
        self.frames += 1;
        self.borrows = true;
        Ok(Written {
            start: start as u32,
            end: end as u32,
            // The buffer holds what was read in one turn.
            lent_start: (at - LENGTH_BYTES) as u32,
            lent_end: (at + length) as u32,
        })
    }

    /// Whether datagrams need a buffer that is or must be [lent](Outbox::lend).
    pub fn borrows(&self) -> bool {
        self.borrows
    }

    /// Lends the buffer with the messages of [`Outbox::write_message`].
    pub fn lend(&mut self, buffer: Vec<u8>) {
        self.lent = buffer;
    }

    /// Returns the lent buffer, if any. To be called after everything is sent.
    pub fn give_back(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.lent)
    }

    fn message(&self, written: Written) -> &[u8] {
        self.lent.get(written.lent_range()).unwrap_or_default()
    }

    /// Sends a frame to one client.
    pub fn send(&mut self, to: impl Into<PackedAddress>, frame: &Written) {
        self.datagrams.push((to.into(), *frame));
        self.total += frame.len();
    }

    /// Puts the datagrams for each client together, in their order, if several frames go to
    /// several clients: the pieces of a picture then form a run for each client.
    pub fn gather(&mut self) {
        if self.frames >= limits::GATHERED_FRAMES && self.datagrams.len() >= 2 * self.frames {
            self.datagrams.sort_by_key(|(to, _)| *to);
        }
    }

    /// The number of bytes to send.
    pub fn bytes_to_send(&self) -> usize {
        self.total
    }

    /// All datagrams, in order.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = (ClientAddress, Cow<'_, [u8]>)> {
        self.datagrams.iter().map(|(to, frame)| {
            let head = &self.bytes[frame.range()];
            let bytes = match frame.is_lent() {
                true => Cow::Owned([head, self.message(*frame)].concat()),
                false => Cow::Borrowed(head),
            };
            ((*to).into(), bytes)
        })
    }

    /// The run that starts at this datagram: it and those after it that one system call can
    /// send together, at most `most`.
    pub fn run_at(&self, number: usize, most: usize) -> Option<Run<'_>> {
        let rest = self.datagrams.get(number..)?;
        let run = &rest[..run_len(rest, most)];
        let (to, first) = run.first()?;
        Some(Run {
            to: *to,
            segment: first.len(),
            outbox: self,
            datagrams: run,
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
        self.frames = 0;
        self.total = 0;
        self.borrows = false;
    }
}

/// The length of the length of a message.
const LENGTH_BYTES: usize = 2;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
                let bytes = run.pieces().collect::<Vec<_>>().concat();
                let lengths: Vec<_> = bytes.chunks(run.segment).map(<[u8]>::len).collect();
                assert_eq!(lengths.len(), run.len());
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

    /// Writes messages of these lengths, some of them in a buffer that is lent.
    fn lent(outbox: &mut Outbox, messages: &[(usize, bool)]) -> Vec<Vec<u8>> {
        let (mut buffer, mut frames) = (b"begin".to_vec(), Vec::new());
        for (number, (bytes, is_lent)) in messages.iter().enumerate() {
            let message = vec![number as u8; *bytes];
            let mut frame = Vec::new();
            let (header, message) = (&b"head"[..], &message[..]);
            (Frame { header, message }).encode(&mut frame).unwrap();
            // The header of the driver is another one.
            buffer.extend_from_slice(b"id");
            buffer.extend_from_slice(&frame[6..]);
            let at = buffer.len() - bytes;
            let message = Message {
                bytes: message,
                at: is_lent.then_some(at),
            };
            let written = outbox.write_message(header, message).unwrap();
            outbox.send(client(1), &written);
            frames.push(frame);
        }
        outbox.lend(buffer);
        frames
    }

    #[test]
    fn long_messages_stay_in_the_lent_buffer() {
        let (mut outbox, long) = (Outbox::default(), limits::LENT_MESSAGE);
        let frames = lent(&mut outbox, &[(long, true)]);
        assert!(outbox.borrows());
        let pieces: Vec<_> = outbox.run_at(0, 9).unwrap().pieces().collect();
        assert_eq!(pieces, [&frames[0][..6], &frames[0][6..]]);
        let own = outbox.lent.as_ptr_range();
        assert!(own.contains(&pieces[1].as_ptr()));
        outbox.clear();
        assert!(!outbox.borrows());
        assert!(outbox.give_back().starts_with(b"begin"));
        assert_eq!(outbox.give_back(), b"");
    }

    #[test]
    fn short_messages_are_copied() {
        let (mut outbox, short) = (Outbox::default(), limits::LENT_MESSAGE - 1);
        let frames = lent(&mut outbox, &[(short, true), (short, false)]);
        assert!(!outbox.borrows());
        let run = outbox.run_at(0, 9).unwrap();
        assert_eq!(run.pieces().collect::<Vec<_>>(), [frames.concat()]);
    }

    #[test]
    fn copied_and_lent_messages_may_form_a_run() {
        let long = limits::LENT_MESSAGE;
        for lends in 0..8 {
            let messages = [0, 1, 2].map(|bit| (long, lends >> bit & 1 == 1));
            let mut outbox = Outbox::default();
            let frames = lent(&mut outbox, &messages);
            let run = outbox.run_at(0, 9).unwrap();
            assert_eq!(run.len(), 3, "{messages:?}");
            let pieces: Vec<_> = run.pieces().collect();
            assert!(pieces.len() <= 6, "{messages:?}");
            assert_eq!(pieces.concat(), frames.concat(), "{messages:?}");
            let datagrams = outbox.datagrams().map(|(_, bytes)| bytes.into_owned());
            assert_eq!(datagrams.collect::<Vec<_>>(), frames, "{messages:?}");
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
    /// The ports in the order of the datagrams, and the lengths of the runs.
    fn gathered(frames: usize, ports: &[u16]) -> (Vec<u16>, Vec<usize>) {
        let mut outbox = Outbox::default();
        for number in 0..frames {
            let frame = outbox.write(&[], &[number as u8; 20]).unwrap();
            for port in ports {
                outbox.send(client(*port), &frame);
            }
        }
        outbox.gather();
        let mut numbers = BTreeMap::<u16, Vec<u8>>::new();
        let sent = outbox.datagrams().map(|(to, bytes)| {
            let port = to.address.port();
            numbers.entry(port).or_default().push(bytes[4]);
            port
        });
        let sent = sent.collect();
        let in_order: Vec<u8> = (0..frames as u8).collect();
        assert!(numbers.values().all(|numbers| *numbers == in_order));
        assert_eq!(outbox.bytes_to_send(), 24 * frames * ports.len());
        (sent, outbox.runs(99).map(|run| run.len()).collect())
    }

    #[test]
    fn several_frames_to_several_clients_form_a_run_for_each() {
        let many = limits::GATHERED_FRAMES;
        let (ports, runs) = gathered(many, &[3, 1, 2]);
        assert!(ports.is_sorted());
        assert_eq!(runs, [many; 3]);
        // There is nothing to gain.
        assert_eq!(gathered(many, &[7]), (vec![7; many], vec![many]));
        let (ports, runs) = gathered(many - 1, &[2, 1]);
        assert_eq!(ports, [2, 1].repeat(many - 1));
        assert_eq!(runs, vec![1; 2 * (many - 1)]);
    }

    #[test]
    fn what_was_cleared_does_not_count_for_gathering() {
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            for _ in 1..limits::GATHERED_FRAMES {
                let frame = outbox.write(&[], b"x").unwrap();
                outbox.send(client(2), &frame);
                outbox.send(client(1), &frame);
            }
            outbox.gather();
            let first = outbox.datagrams().next().unwrap().0;
            assert_eq!(first, client(2));
            outbox.clear();
        }
    }
}
