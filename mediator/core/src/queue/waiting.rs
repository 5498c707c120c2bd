//! The waiting frames: selects the next one, and the one to drop. PURE.
//!
//! Hosts take turns, and the clients of a host share its turns: a host gains nothing by opening
//! more ports. When there are too many frames, the client with most frames of the host with
//! most frames loses its oldest.
//!
//! Each operation takes constant time on average, and logarithmic time in the number of hosts
//! and clients while frames are being dropped.

mod group;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use amber_proto::ClientId;

pub(super) use self::group::Most;
use self::group::{End, Group, Holds};
use super::Source;
use crate::hash::Map;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    hosts: Group<Source, Group<ClientId, Line>>,
    /// The host of each client. Entries stay until the client is gone or no frame waits.
    host_of: Map<ClientId, Source>,
}

impl Waiting {
    pub(super) fn frames(&self) -> usize {
        self.hosts.frames()
    }

    pub(super) fn bytes(&self) -> usize {
        self.hosts.bytes()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.frames() == 0
    }

    /// Adds a frame as the client's newest.
    pub(super) fn push_back(&mut self, source: Source, client: ClientId, frame: Vec<u8>) {
        self.host_of.insert(client, source);
        self.hosts.push(source, client, End::Back, |clients| {
            clients.push(client, client, End::Back, |line| line.push_back(frame));
        });
    }

    /// Puts a frame back as the client's oldest, and gives the client its turn back.
    pub(super) fn push_front(&mut self, source: Source, client: ClientId, frame: Vec<u8>) {
        self.host_of.insert(client, source);
        self.hosts.push(source, client, End::Front, |clients| {
            clients.push(client, client, End::Front, |line| line.push_front(frame));
        });
    }

    /// Takes the oldest frame of the client whose turn it is, and ends the turn.
    pub(super) fn next(&mut self) -> Option<(Source, ClientId, Vec<u8>)> {
        let (source, (client, frame)) = self.hosts.next(|clients| clients.next(Line::pop))?;
        self.tidy();
        Some((source, client, frame))
    }

    /// Drops the oldest frame of the client with most; ties go to the newest client.
    pub(super) fn drop_oldest(&mut self, most: Most) -> bool {
        let dropped = (self.hosts).of_most(most, |clients| clients.of_most(most, Line::pop));
        self.tidy();
        dropped.is_some()
    }

    /// Drops all frames of a client. Returns their number.
    pub(super) fn forget(&mut self, client: ClientId) -> u64 {
        self.drop_of(client, |_| true)
    }

    /// Drops the frames of a client that begin with this header. Returns their number.
    pub(super) fn forget_headed(&mut self, client: ClientId, header: &[u8]) -> u64 {
        self.drop_of(client, |frame| frame.starts_with(header))
    }

    fn drop_of(&mut self, client: ClientId, is_dropped: impl Fn(&[u8]) -> bool) -> u64 {
        let Some(source) = self.host_of.get(&client).copied() else {
            return 0;
        };
        let before = self.frames();
        let drop_some = |line: &mut Line| {
            line.retain(|frame| !is_dropped(frame));
            line.frames() > 0
        };
        let of_host = |clients: &mut Group<_, _>| clients.change(client, drop_some);
        let is_left = self.hosts.change(source, of_host).flatten();
        if is_left != Some(true) {
            self.host_of.remove(&client);
        }
        (before - self.frames()) as u64
    }

    fn tidy(&mut self) {
        if self.is_empty() {
            self.host_of.clear();
        }
    }
}

/// The capacity that an empty line keeps: most clients wait for one answer at a time.
const LINE_KEPT: usize = 8;

/// The frames of one client.
#[derive(Debug, Default)]
struct Line {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Line {
    fn push_back(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    fn push_front(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_front(frame);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        self.frames.retain(|frame| is_kept(frame));
        self.bytes = self.frames.iter().map(|frame| frame.len()).sum();
    }
}

impl Holds for Line {
    fn frames(&self) -> usize {
        self.frames.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn shrink(&mut self) {
        if self.frames.capacity() > LINE_KEPT {
            self.frames = VecDeque::new();
        }
    }
}
