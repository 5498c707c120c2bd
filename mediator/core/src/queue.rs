//! The frames that wait for one driver. PURE.
//!
//! While the pipe takes everything, frames are gathered in one buffer and written together. When
//! the pipe or the buffer is full, the rest waits per client. Clients take turns, so no client
//! can keep the driver busy alone. Beyond the bounds, the client with most waiting loses its
//! *oldest* frame, because a stale motion command is worse than none. Life-cycle frames
//! (CLIENT_DIED, PING) go first and are never dropped. When a client dies or leaves a device,
//! its waiting frames are dropped: none arrives after that message. A frame that the pipe
//! has taken in part is always completed.
//!
//! A driver is told about the end of a client if and only if the pipe has taken at least part
//! of one of its frames. Until then the client is a newcomer: either all its frames wait
//! (`unseen`), or the first of them is in the batch but not yet written (`offered`).
//!
//! Life-cycle frames have no separate bound. There are hardly more of them than clients: a
//! client of which the driver was offered nothing needs no CLIENT_DIED
//! ([`Queue::forget_unseen`]), and no frame of a new client is offered before the life-cycle
//! frames are written. If there are too many all the same, the driver does not read:
//! [`Queue::is_deaf`].

mod spare;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::VecDeque;
use std::iter;
use std::ops::AddAssign;

use amber_proto::frame::PartTooLong;
use amber_proto::{ClientId, Frame};

use self::spare::Spare;
use self::waiting::{Most, Waiting};
use crate::address::Host;
use crate::hash::{Map, Set};
use crate::limits;

/// The kind of a frame, which decides its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// From the mediator itself: goes first, is never dropped.
    LifeCycle,
    /// A life-cycle frame that reports the death of this client.
    ClientDied(ClientId),
    /// A life-cycle frame that says that this client left the device in the header, while it
    /// uses others of the same process.
    Left(ClientId),
    /// From a client, or from another driver.
    Client(ClientId),
    /// From a client of which this process has not been told yet.
    NewClient(ClientId),
}

/// A participant in the turns: all clients of a host together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    /// The clients of one machine.
    Host(Host),
    /// A driver that sends requests to other drivers.
    Alone(ClientId),
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of waiting client frames.
    pub frames: usize,
    /// Maximum number of bytes of waiting client frames.
    pub bytes: usize,
    /// Maximum number of waiting life-cycle frames before the driver counts as hung.
    pub life_cycle: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            frames: limits::QUEUE_FRAMES,
            bytes: limits::QUEUE_BYTES,
            life_cycle: limits::LIFE_CYCLE_FRAMES,
        }
    }
}

/// The fate of all frames. At any time, `queued` is the sum of the other counters and
/// [`Queue::len`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that came in.
    pub queued: u64,
    /// Frames that the pipe has taken completely.
    pub written: u64,
    /// Dropped because the queue was full.
    pub dropped_full: u64,
    /// Dropped because their client died or left the device.
    pub dropped_client_gone: u64,
    /// Dropped because the driver ended first, or closed its stdin.
    pub dropped_driver_gone: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.queued += other.queued;
        self.written += other.written;
        self.dropped_full += other.dropped_full;
        self.dropped_client_gone += other.dropped_client_gone;
        self.dropped_driver_gone += other.dropped_driver_gone;
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Queue {
    bounds: Bounds,
    /// The frames that are offered to the pipe, in order.
    batch: Vec<Offered>,
    /// The bytes of the frames in `batch` without their own buffer, in order.
    bytes: Vec<u8>,
    /// The number of bytes of `batch` that the pipe has taken.
    written: usize,
    /// The number of bytes that may still be gathered for the pipe.
    room: usize,
    /// The pipe is full: wait until it is writable.
    blocked: bool,
    life_cycle: VecDeque<(Lane, Vec<u8>)>,
    /// Clients with a CLIENT_DIED in `life_cycle`.
    obituaries: Set<ClientId>,
    /// Headers of frames in `life_cycle` that say that a client left one device. The client's
    /// own frames for that device have the same header.
    farewells: Set<Box<[u8]>>,
    waiting: Waiting,
    /// Newcomers without frames in `batch`.
    unseen: Set<ClientId>,
    /// Newcomers with frames in `batch`, and the offset of their first frame. They are
    /// newcomers until `written` passes that offset.
    offered: Map<ClientId, usize>,
    spare: Spare,
    tally: Tally,
}

/// A frame in the batch.
#[derive(Debug)]
struct Offered {
    lane: Lane,
    host: Option<Host>,
    /// Where it begins and ends among all bytes of the batch.
    start: usize,
    end: usize,
    /// The offset in [`Queue::bytes`], unless the frame has its own bytes: long frames are
    /// copied only once.
    at: usize,
    own: Option<Vec<u8>>,
    /// For a message about a newcomer: the offset of that client's first frame. If that frame is
    /// not written, the message must not be written either.
    about: Option<usize>,
}

impl Offered {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl Queue {
    /// An empty queue.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            batch: Vec::new(),
            bytes: Vec::new(),
            written: 0,
            room: usize::MAX,
            blocked: false,
            life_cycle: VecDeque::new(),
            obituaries: Set::default(),
            farewells: Set::default(),
            waiting: Waiting::default(),
            unseen: Set::default(),
            offered: Map::default(),
            spare: Spare::default(),
            tally: Tally::default(),
        }
    }

    /// Adds a frame. This may drop other frames, or the frame itself.
    ///
    /// # Errors
    /// A part is longer than 32 767 bytes; the queue is unchanged.
    pub fn push(&mut self, lane: Lane, frame: Frame<'_>) -> Result<(), PartTooLong> {
        self.push_from(None, lane, frame)
    }

    /// The same, for a client that shares its turns with others of its host. Without a host it
    /// has its own turns.
    ///
    /// # Errors
    /// See [`Queue::push`].
    pub fn push_from(
        &mut self,
        host: Option<Host>,
        lane: Lane,
        frame: Frame<'_>,
    ) -> Result<(), PartTooLong> {
        let about = match lane {
            Lane::ClientDied(client) | Lane::Left(client) => self.first_unwritten(client),
            Lane::LifeCycle | Lane::Client(_) | Lane::NewClient(_) => None,
        };
        // A first frame may always be added. News about a newcomer are gathered behind its
        // frames, whatever their size.
        let room = self.batch.is_empty() || about.is_some() || self.gathers(limits::WRITE_BYTES);
        let is_unseen_leaving = matches!(lane, Lane::Left(client) if self.unseen.contains(&client));
        let flows = room && self.is_flowing() && !is_unseen_leaving;
        if flows && frame.wire_len() < limits::LONG_WAITING_FRAME {
            let at = self.bytes.len();
            frame.encode(&mut self.bytes)?;
            self.gathered(lane, host, about, at, None);
        } else {
            let mut bytes = self.spare.take(frame.wire_len());
            frame.encode(&mut bytes)?;
            if flows {
                self.gathered(lane, host, about, self.bytes.len(), Some(bytes));
                self.tally.queued += 1;
                return Ok(());
            }
            if about.is_some() {
                self.set_rest_aside();
            }
            self.wait(lane, host, bytes);
            self.enforce();
            if about.is_some() && !self.blocked {
                self.refill();
            }
        }
        self.tally.queued += 1;
        Ok(())
    }

    /// A client died. If the driver has seen nothing of it, and CLIENT_DIED could overtake its
    /// frames, drops these frames and returns true: the driver must not be told. Returns false
    /// if the driver must be told.
    pub fn forget_unseen(&mut self, client: ClientId) -> bool {
        if self.first_unwritten(client).is_some() && !self.is_flowing() {
            self.set_rest_aside();
        }
        let unseen = self.unseen.remove(&client);
        if unseen {
            self.tally.dropped_client_gone += self.waiting.forget(client);
        }
        if !self.blocked {
            self.refill();
        }
        unseen
    }

    /// Limits what is written until the next call to this many bytes, plus the rest of the last
    /// frame. Without a call there is no limit. A frame that the pipe has taken in part is
    /// always completed: the driver cannot use part of a frame.
    pub fn offer(&mut self, room: usize) {
        self.room = room.max(usize::from(self.written > 0));
        if !self.blocked {
            self.refill();
        }
    }

    /// The bytes to write now, in pieces. None if nothing waits, if all that was
    /// [offered](Queue::offer) is written, or if the pipe is full and [`Queue::writable`] was not
    /// called since.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let frames = match self.blocked || self.room == 0 {
            true => &[],
            false => self.on_offer(),
        };
        let mut frames = frames.iter().peekable();
        iter::from_fn(move || {
            let first = frames.next()?;
            let from = self.written.saturating_sub(first.start);
            if let Some(own) = &first.own {
                return Some(&own[from..]);
            }
            let mut end = first.at + first.len();
            // Frames without their own bytes are adjacent.
            while let Some(next) = frames.next_if(|next| next.own.is_none()) {
                end = next.at + next.len();
            }
            Some(&self.bytes[first.at + from..end])
        })
    }

    /// All [pieces](Queue::pieces) joined.
    pub fn chunk(&self) -> Vec<u8> {
        self.pieces().collect::<Vec<_>>().concat()
    }

    /// The frames of the batch that are not written and fit into the room.
    fn on_offer(&self) -> &[Offered] {
        let first = self
            .batch
            .partition_point(|frame| frame.end <= self.written);
        let room = self.written.saturating_add(self.room);
        let last = self.batch.partition_point(|frame| frame.end < room);
        &self.batch[first..self.batch.len().min(last + 1)]
    }

    /// The pipe took `bytes` of the [pieces](Queue::pieces). If that is not all of them, the pipe
    /// is full, or the driver has enough ahead.
    pub fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        self.room = self.room.saturating_sub(bytes);
        if self.written == self.gathered_bytes() {
            self.tally.written += self.batch.len() as u64;
            for buffer in self.batch.drain(..).filter_map(|frame| frame.own) {
                self.spare.keep(buffer);
            }
            self.bytes.clear();
            self.offered.clear();
            self.written = 0;
            self.refill();
        } else {
            self.block();
        }
    }

    /// Stops writing until the pipe is writable.
    pub fn block(&mut self) {
        self.blocked = true;
        self.set_rest_aside();
        self.enforce();
    }

    /// The pipe takes bytes again.
    pub fn writable(&mut self) {
        self.blocked = false;
        self.refill();
    }

    /// Whether the caller must wait for the pipe.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether the driver has left too many life-cycle frames unread.
    pub fn is_deaf(&self) -> bool {
        self.life_cycle.len() > self.bounds.life_cycle
    }

    /// The number of waiting frames, including partly written ones.
    pub fn len(&self) -> usize {
        self.batch.len() + self.life_cycle.len() + self.waiting.frames()
    }

    /// The number and bytes of client frames that wait behind the batch, to which the
    /// [`Bounds`] apply.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.frames(), self.waiting.bytes())
    }

    /// Whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fate of all frames so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Drops all waiting frames: the driver has ended or closed its stdin.
    pub fn clear(&mut self) {
        let mut tally = self.tally;
        tally.dropped_driver_gone += self.len() as u64;
        *self = Self {
            tally,
            ..Self::new(self.bounds)
        };
    }

    /// Moves the frames of the batch that are not begun back to the waiting frames, where they
    /// can be overtaken and dropped.
    fn set_rest_aside(&mut self) {
        let done = self
            .batch
            .partition_point(|frame| frame.end <= self.written);
        self.tally.written += done as u64;
        let begun = self
            .batch
            .get(done)
            .is_some_and(|frame| frame.start < self.written);
        let mut rest = self.batch.split_off(done + usize::from(begun));
        for frame in &mut rest {
            if frame.own.is_none() {
                frame.own = Some(self.bytes[frame.at..frame.at + frame.len()].into());
            }
        }
        // What remains is the frame that was begun.
        for buffer in self.batch.drain(..done).filter_map(|frame| frame.own) {
            self.spare.keep(buffer);
        }
        let kept = match self.batch.first_mut() {
            None => {
                self.bytes.clear();
                self.written..self.written
            }
            Some(frame) => {
                let kept = frame.start..frame.end;
                if frame.own.is_none() {
                    self.bytes.truncate(frame.at + kept.len());
                    self.bytes.drain(..frame.at);
                }
                (frame.start, frame.end, frame.at) = (0, kept.len(), 0);
                frame.about = None;
                kept
            }
        };
        self.written -= kept.start;
        for Offered { lane, about, .. } in &rest {
            if let Lane::ClientDied(client) = lane
                && self.offered.get(client).copied() == *about
            {
                self.offered.remove(client);
            }
        }
        let unwritten = |start: usize| start >= kept.end;
        let newcomers = self.offered.drain().filter(|(_, start)| unwritten(*start));
        self.unseen.extend(newcomers.map(|(client, _)| client));
        // Newcomers, and uses of devices, that ended before any of their frames was written.
        let (mut dead, mut left) = (Set::default(), Set::<Box<[u8]>>::default());
        for offered in rest.into_iter().rev() {
            let Offered {
                lane, host, about, ..
            } = offered;
            let frame = offered.own.unwrap_or_default();
            let is_pointless = about.is_some_and(unwritten);
            match lane {
                Lane::ClientDied(client) if is_pointless => {
                    dead.insert(client);
                    self.tally.dropped_client_gone += 1;
                }
                Lane::Left(_) if is_pointless => {
                    left.insert(header_part(&frame).into());
                    self.tally.dropped_client_gone += 1;
                }
                Lane::LifeCycle | Lane::ClientDied(_) | Lane::Left(_) => {
                    self.note(lane, &frame);
                    self.life_cycle.push_front((lane, frame));
                }
                // CLIENT_DIED has overtaken the frame.
                Lane::Client(client) | Lane::NewClient(client)
                    if self.obituaries.contains(&client)
                        || self.farewells.contains(header_part(&frame))
                        || dead.contains(&client)
                        || left.contains(header_part(&frame)) =>
                {
                    self.tally.dropped_client_gone += 1;
                }
                Lane::Client(client) | Lane::NewClient(client) => {
                    (self.waiting).push_front(source(host, client), client, frame);
                }
            }
        }
    }

    /// Adds a frame to the waiting frames.
    fn wait(&mut self, lane: Lane, host: Option<Host>, frame: Vec<u8>) {
        match lane {
            Lane::LifeCycle => {}
            Lane::ClientDied(client) => {
                self.tally.dropped_client_gone += self.waiting.forget(client);
            }
            Lane::Left(client) => {
                let header = header_part(&frame);
                self.tally.dropped_client_gone += self.waiting.forget_headed(client, header);
                if self.unseen.contains(&client) {
                    self.tally.dropped_client_gone += 1;
                    return;
                }
            }
            Lane::Client(client) => {
                return (self.waiting).push_back(source(host, client), client, frame);
            }
            Lane::NewClient(client) => {
                self.unseen.insert(client);
                return (self.waiting).push_back(source(host, client), client, frame);
            }
        }
        self.note(lane, &frame);
        self.life_cycle.push_back((lane, frame));
    }

    /// Remembers which waiting frames this message overtakes.
    fn note(&mut self, lane: Lane, frame: &[u8]) {
        match lane {
            Lane::ClientDied(client) => drop(self.obituaries.insert(client)),
            Lane::Left(_) => drop(self.farewells.insert(header_part(frame).into())),
            Lane::LifeCycle | Lane::Client(_) | Lane::NewClient(_) => {}
        }
    }

    /// Adds a frame to the batch. Its bytes are its own, or at the end of [`Queue::bytes`].
    fn gathered(
        &mut self,
        lane: Lane,
        host: Option<Host>,
        about: Option<usize>,
        at: usize,
        own: Option<Vec<u8>>,
    ) {
        let start = self.gathered_bytes();
        let length = match &own {
            Some(own) => own.len(),
            None => self.bytes.len() - at,
        };
        self.batch.push(Offered {
            lane,
            host,
            start,
            end: start + length,
            at,
            own,
            about,
        });
        match lane {
            Lane::NewClient(client) => {
                self.unseen.remove(&client);
                self.offered.insert(client, start);
            }
            Lane::Client(client) if !self.unseen.is_empty() && self.unseen.remove(&client) => {
                self.offered.insert(client, start);
            }
            _ => {}
        }
    }

    /// The offset of a client's first frame in the batch, if the driver has seen nothing of
    /// that client.
    fn first_unwritten(&self, client: ClientId) -> Option<usize> {
        let start = self.offered.get(&client).copied();
        start.filter(|start| *start >= self.written)
    }

    /// Whether the next frame goes to the batch, if there is room.
    fn is_flowing(&self) -> bool {
        !self.blocked && self.waiting.is_empty() && self.life_cycle.is_empty()
    }

    /// Whether to gather more for the pipe, up to `most` bytes.
    fn gathers(&self, most: usize) -> bool {
        self.gathered_bytes() < most.min(self.room)
    }

    /// The length of the batch in bytes.
    fn gathered_bytes(&self) -> usize {
        self.batch.last().map_or(0, |frame| frame.end)
    }

    fn refill(&mut self) {
        // What is copied here, and not taken by the pipe, is copied once more.
        while self.gathers(limits::WRITE_BYTES) && self.bytes.len() < limits::REFILL_BYTES {
            let Some((lane, host, frame)) = self.next() else {
                break;
            };
            let at = self.bytes.len();
            if frame.len() >= limits::LONG_WAITING_FRAME {
                self.gathered(lane, host, None, at, Some(frame));
            } else {
                self.bytes.extend_from_slice(&frame);
                self.gathered(lane, host, None, at, None);
            }
        }
    }

    fn next(&mut self) -> Option<(Lane, Option<Host>, Vec<u8>)> {
        if let Some((lane, frame)) = self.life_cycle.pop_front() {
            match lane {
                Lane::ClientDied(client) => drop(self.obituaries.remove(&client)),
                Lane::Left(_) => drop(self.farewells.remove(header_part(&frame))),
                Lane::LifeCycle | Lane::Client(_) | Lane::NewClient(_) => {}
            }
            return Some((lane, None, frame));
        }
        let (source, client, frame) = self.waiting.next()?;
        let host = match source {
            Source::Host(host) => Some(host),
            Source::Alone(_) => None,
        };
        Some((Lane::Client(client), host, frame))
    }

    fn enforce(&mut self) {
        let Bounds { frames, bytes, .. } = self.bounds;
        loop {
            let most = if self.waiting.frames() > frames {
                Most::Frames
            } else if self.waiting.bytes() > bytes {
                Most::Bytes
            } else {
                return;
            };
            if !self.waiting.drop_oldest(most) {
                return;
            }
            self.tally.dropped_full += 1;
        }
    }
}

fn source(host: Option<Host>, client: ClientId) -> Source {
    host.map_or(Source::Alone(client), Source::Host)
}

/// The header of an encoded frame, with its length.
fn header_part(frame: &[u8]) -> &[u8] {
    let length = frame
        .first_chunk()
        .map_or(0, |length| u16::from_be_bytes(*length));
    &frame[..frame.len().min(2 + usize::from(length))]
}
