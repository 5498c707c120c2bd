//! The last seconds of a feed, in memory. PURE.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use amber_proto::feed::{Record, What};

use crate::known::Known;
use crate::{Error, Recording, limits};

/// Keeps the newest records of a feed. Old ones go in pieces of up to a second.
#[derive(Debug)]
pub struct Ring {
    span_ns: u64,
    max_bytes: usize,
    /// The state before the first record.
    before: Known,
    pieces: VecDeque<Arc<Piece>>,
    open: Piece,
    bytes: usize,
}

/// Records that follow each other.
#[derive(Clone, Debug, Default)]
struct Piece {
    records: Vec<u8>,
    first_ns: u64,
    last_ns: u64,
}

/// The contents of a ring at one moment. Cheap to create, so that another thread can write it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    before: Known,
    pieces: Vec<Arc<Piece>>,
}

impl Ring {
    /// A ring for the records of this time, or of less if they have more bytes.
    pub fn new(span: Duration, max_bytes: usize) -> Self {
        Self {
            span_ns: u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            max_bytes,
            before: Known::default(),
            pieces: VecDeque::new(),
            open: Piece::default(),
            bytes: 0,
        }
    }

    /// Adds a record, and its bytes.
    pub fn add(&mut self, record: &Record<'_>, bytes: &[u8]) {
        let time_ns = record.time_ns;
        let age_ns = time_ns.saturating_sub(self.open.first_ns);
        let length = self.open.records.len() + bytes.len();
        if length > limits::PIECE_BYTES || age_ns > limits::PIECE_NS {
            self.close_piece();
        }
        if self.open.records.is_empty() {
            self.open.first_ns = time_ns;
        }
        self.open.last_ns = time_ns;
        self.open.records.extend_from_slice(bytes);
        self.bytes += bytes.len();
        while let Some(oldest) = self.pieces.front() {
            let is_old = oldest.last_ns < time_ns.saturating_sub(self.span_ns);
            if !is_old && self.bytes <= self.max_bytes {
                break;
            }
            self.bytes -= oldest.records.len();
            for record in records(&oldest.records) {
                self.before.note(&record.what);
            }
            self.pieces.pop_front();
        }
    }

    /// The number of bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The time between the oldest and the newest record.
    pub fn span(&self) -> Duration {
        let first = self.pieces.front().map_or(&self.open, |piece| piece);
        Duration::from_nanos(self.open.last_ns.saturating_sub(first.first_ns))
    }

    /// The current contents.
    pub fn snapshot(&mut self) -> Snapshot {
        let last_ns = self.open.last_ns;
        self.close_piece();
        self.open.last_ns = last_ns;
        Snapshot {
            before: self.before.clone(),
            pieces: self.pieces.iter().cloned().collect(),
        }
    }

    fn close_piece(&mut self) {
        let piece = std::mem::take(&mut self.open);
        if !piece.records.is_empty() {
            self.pieces.push_back(Arc::new(piece));
        }
    }
}

impl Snapshot {
    /// Writes all records. They end like a feed: nothing between them is missing except for
    /// recorded gaps.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write<W: Write>(&self, to: &mut Recording<W>) -> Result<(), Error> {
        let first_ns = self.pieces.first().map_or(0, |piece| piece.first_ns);
        let last_ns = self.pieces.last().map_or(0, |piece| piece.last_ns);
        let before = self.before.records(first_ns);
        let pieces = self.pieces.iter().map(|piece| &piece.records[..]);
        for bytes in [&before[..]].into_iter().chain(pieces) {
            for record in records(bytes) {
                to.add(&record)?;
            }
        }
        to.add(&Record {
            time_ns: last_ns,
            what: What::End,
        })
    }

    /// The time between the oldest and the newest record.
    pub fn span(&self) -> Duration {
        let (first, last) = (self.pieces.first(), self.pieces.last());
        let ends = first.zip(last);
        let nanos = ends.map(|(first, last)| last.last_ns.saturating_sub(first.first_ns));
        Duration::from_nanos(nanos.unwrap_or_default())
    }
}

/// The records in a buffer, up to its end or the first invalid one.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (record, length) = Record::parse(bytes).ok().flatten()?;
        bytes = &bytes[length..];
        Some(record)
    })
    // The end of the feed itself may be the last record that is kept; the snapshot has its own.
    .filter(|record| record.what != What::End)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use amber_proto::feed::{Direction, Writer};
    use amber_proto::{ClientId, Device, DeviceType};
    use amber_reflect::Schemas;

    use super::*;
    use crate::Info;

    const SECOND: u64 = 1_000_000_000;

    /// A frame each 100 ms.
    fn filled(ring: &mut Ring, frames: u64) {
        let mut feed = Vec::new();
        let mut writer = Writer {
            bytes: &mut feed,
            time_ns: 0,
        };
        writer.start("1.2.3");
        writer.peer(ClientId(3), "127.0.0.1:4711");
        writer.peer(ClientId(4), "127.0.0.1:4712");
        for number in 0..frames {
            writer.time_ns = number * SECOND / 10;
            let device = Device::new(DeviceType::DUMMY, 0);
            writer.frame(
                Direction::FromDriver,
                device,
                "",
                [ClientId(3)],
                &[7; 10_000],
            );
            if number == 1 {
                writer.peer_gone(ClientId(4));
            }
        }
        let mut rest = &feed[..];
        while let Some((record, length)) = Record::parse(rest).unwrap() {
            ring.add(&record, &rest[..length]);
            rest = &rest[length..];
        }
    }

    fn info(ring: &mut Ring) -> Info {
        let mut file = Cursor::new(Vec::new());
        let mut recording = Recording::new(&mut file, Arc::new(Schemas::built_in())).unwrap();
        ring.snapshot().write(&mut recording).unwrap();
        recording.finish(None).unwrap();
        Info::read(&mut file).unwrap()
    }

    fn messages(info: &Info, topic: &str) -> u64 {
        let channel = info.channels.iter().find(|it| it.topic == topic);
        channel.map_or(0, |channel| channel.messages)
    }

    #[test]
    fn a_snapshot_has_the_last_seconds_and_the_peers_of_before() {
        let mut ring = Ring::new(Duration::from_secs(30), usize::MAX);
        filled(&mut ring, 1000);
        let info = info(&mut ring);
        let frames = messages(&info, "/dummy/0/message");
        // Thirty seconds, and at most one piece more.
        assert!((300..=312).contains(&frames), "{frames}");
        assert!(info.is_complete());
        assert_eq!(info.last_ns, Some(999 * SECOND / 10));
        assert_eq!(info.metadata["amber.start"]["mediator_version"], "1.2.3");
        // The other one had left before.
        assert_eq!(messages(&info, "/amber/peers"), 1);
        assert!(ring.span() >= Duration::from_secs(30));
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut ring = Ring::new(Duration::from_secs(3600), 500_000);
        filled(&mut ring, 1000);
        assert!(ring.bytes() <= 500_000, "{}", ring.bytes());
        let frames = messages(&info(&mut ring), "/dummy/0/message");
        assert!((35..=50).contains(&frames), "{frames}");
    }

    #[test]
    fn a_snapshot_does_not_change_the_next_one() {
        let mut ring = Ring::new(Duration::from_secs(30), usize::MAX);
        filled(&mut ring, 100);
        let first = info(&mut ring);
        assert_eq!(info(&mut ring), first);
    }
}
