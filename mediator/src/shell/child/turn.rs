//! One turn of a driver: whole frames from what was read of its stdout. IO: it reads the clock.

use std::time::{Duration, Instant};

use amber_core::Core;
use amber_core::address::DriverKey;
use amber_core::limits::{
    DRIVER_TURN, DRIVER_TURN_BYTES, DRIVER_TURN_DATAGRAMS, FRAMES_PER_LOOK, JUNK_FRAMES, READ_BYTES,
};
use amber_core::router::Portion;
use amber_proto::Frame;

/// The result of one turn of a driver.
pub(super) struct Turn {
    /// There were only valid frames.
    pub(super) sane: bool,
    pub(super) frames: usize,
    /// Datagrams need the buffer until they are sent.
    pub(super) lends: bool,
    /// More whole frames may be left.
    pub(super) unfinished: bool,
    /// Many frames, none of which had any effect.
    pub(super) is_junk: bool,
    pub(super) time: Duration,
}

/// Gives whole frames from the buffer to the core, until the turn is over. `now` is when the data
/// was read.
pub(super) fn hand_over(
    core: &mut Core,
    now: Instant,
    key: DriverKey,
    buffer: &mut Buffer,
) -> Turn {
    // The clock is not read for a single frame, which is the usual case of a publication.
    let mut start = None;
    let (effects, datagrams) = (core.driver_effects(), core.outbox().datagrams().len());
    let bytes = core.outbox().bytes_to_send();
    let may_lend = !core.outbox().borrows();
    let mut turn = Turn {
        sane: true,
        frames: 0,
        lends: false,
        unfinished: false,
        is_junk: false,
        time: Duration::ZERO,
    };
    while let Some(frame) = Frame::from_stream(buffer.filled()) {
        if turn.frames > 0 {
            let start = *start.get_or_insert_with(Instant::now);
            if turn.frames.is_multiple_of(FRAMES_PER_LOOK) || frame.header.len() > LONG_HEADER {
                turn.time = start.elapsed();
            }
        }
        let caused = core.outbox().datagrams().len() - datagrams;
        let bytes_caused = core.outbox().bytes_to_send() - bytes;
        let is_over = caused >= DRIVER_TURN_DATAGRAMS || bytes_caused >= DRIVER_TURN_BYTES;
        if is_over || turn.time >= DRIVER_TURN {
            turn.unfinished = true;
            break;
        }
        let mut portion = Portion {
            done: buffer.done,
            datagrams: DRIVER_TURN_DATAGRAMS - caused,
            bytes: DRIVER_TURN_BYTES - bytes_caused,
            unfinished: false,
        };
        let length = frame.wire_len();
        let at = may_lend.then_some(buffer.start);
        if !core.driver_frame_portion(now, key, frame, at, &mut portion) {
            turn.sane = false;
            turn.lends = may_lend && core.outbox().borrows();
            return turn;
        }
        if portion.unfinished {
            buffer.done = portion.done;
            turn.unfinished = true;
            break;
        }
        buffer.done = 0;
        buffer.start += length;
        turn.frames += 1;
    }
    turn.lends = may_lend && core.outbox().borrows();
    turn.is_junk = turn.frames >= JUNK_FRAMES && core.driver_effects() == effects;
    if turn.is_junk {
        turn.time = start.map_or(Duration::ZERO, |start| start.elapsed());
    }
    turn.sane = core.driver_prefix(now, key, buffer.filled());
    turn
}

/// A header from this length on may name many clients: the clock is checked before each.
const LONG_HEADER: usize = 1024;

/// The size of a page of memory on most systems. On others, only speed depends on it.
pub(super) const PAGE_BYTES: usize = 4096;

/// Bytes that were read but not used yet.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The clients that have had their copy of the first frame: it takes several turns.
    pub(super) done: usize,
    /// The last frame is incomplete.
    pub(super) partial: bool,
}

impl Buffer {
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The buffer to read into; large enough for the contents of a pipe.
    ///
    /// It starts where a page starts, as the contents of a pipe do, and what is left over lies just
    /// before it: elsewhere, the system's copy takes more than twice as long on some processors
    /// (docs/notes/performance.md).
    pub(super) fn space(&mut self) -> &mut [u8] {
        let left = self.end - self.start;
        // At most one frame is incomplete, so the longest frame bounds this.
        let room = left.next_multiple_of(PAGE_BYTES);
        let needed = PAGE_BYTES + room + READ_BYTES;
        self.bytes.resize(self.bytes.len().max(needed), 0);
        let page = self.bytes.as_ptr().align_offset(PAGE_BYTES);
        let filled = self.start..self.end;
        self.end = page + room;
        self.start = self.end - left;
        self.bytes.copy_within(filled, self.start);
        &mut self.bytes[self.end..]
    }
}
