//! Feeds for recorders: copies of all messages between clients and drivers. PURE.
//!
//! Each feed has one buffer, which the shell writes to the socket of its reader. The mediator
//! never waits for a reader. If the buffer is full, whole frames are left out until half of it is
//! free again. Then a [`Gap`] records their number and time. Records other than frames are short
//! and rare, and have reserved space.
//!
//! A frame is recorded once: a request where it is queued for the driver, everything else where
//! the driver has sent it. Without a feed this costs one comparison per frame.

use std::time::{Duration, Instant};

use amber_proto::feed::{Direction, Dropped, Gap, Writer};
use amber_proto::{ClientId, Device, DeviceType};

use crate::address::DriverKey;
use crate::counters::{Counters, DropReason};
use crate::hash::Map;
use crate::limits::{DROPS_INTERVAL, FEED_BYTES, FEED_EXTRA_BYTES};
use crate::queue::Tally;

/// Numbers feeds; a number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeedKey(pub u32);

/// All open feeds.
#[derive(Debug, Default)]
pub struct Feeds {
    open: Vec<(FeedKey, Feed)>,
    /// A moment, and the nanoseconds since 1970 at that moment.
    clock: Option<(Instant, u64)>,
    time_ns: u64,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Feed {
    /// The devices to record; all if there are none.
    devices: Vec<Device>,
    bytes: Vec<u8>,
    /// The number of bytes that the reader has taken.
    taken: usize,
    gap: Option<Gap>,
    /// The last record is written.
    ended: bool,
    /// Messages and bytes in gaps so far.
    missed: (u64, u64),
    drops: Drops,
}

impl Feeds {
    /// Whether there is a feed.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The number of open feeds.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there is no feed.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Opens a feed. `since_epoch` is the wall clock at `now`; the feeds that are open together
    /// share one clock, which never goes back.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        since_epoch: Duration,
        key: FeedKey,
        devices: Vec<Device>,
        drops: Drops,
    ) {
        if self.open.is_empty() {
            self.clock = Some((now, nanos(since_epoch)));
        }
        self.set_time(now);
        let feed = Feed {
            devices,
            drops,
            ..Feed::default()
        };
        self.open.push((key, feed));
    }

    /// Closes a feed. Returns the messages and bytes that it missed in all.
    pub fn close(&mut self, key: FeedKey) -> (u64, u64) {
        let at = self.open.iter().position(|(open, _)| *open == key);
        at.map_or((0, 0), |at| self.open.swap_remove(at).1.missed)
    }

    /// Sets the time of the records that follow.
    pub fn set_time(&mut self, now: Instant) {
        if let Some((start, epoch_ns)) = self.clock {
            let time_ns = epoch_ns.saturating_add(nanos(now.saturating_duration_since(start)));
            self.time_ns = self.time_ns.max(time_ns);
        }
    }

    /// One feed.
    pub fn get_mut(&mut self, key: FeedKey) -> Option<&mut Feed> {
        let mut open = self.open.iter_mut();
        open.find(|(open, _)| *open == key).map(|(_, feed)| feed)
    }

    /// The reader of a feed has taken this many of the pending bytes.
    pub fn wrote(&mut self, now: Instant, key: FeedKey, bytes: usize) {
        self.set_time(now);
        let time_ns = self.time_ns;
        if let Some(feed) = self.get_mut(key) {
            feed.wrote(bytes, time_ns);
        }
    }

    /// Records a frame.
    pub(crate) fn frame<I: Iterator<Item = ClientId>>(
        &mut self,
        direction: Direction,
        device: Device,
        dropped: Option<DropReason>,
        clients: impl Fn() -> I,
        message: &[u8],
    ) {
        let dropped = dropped.map_or("", DropReason::name);
        for (_, feed) in &mut self.open {
            if feed.wants(device) {
                feed.frame(self.time_ns, message.len(), |writer| {
                    writer.frame(direction, device, dropped, clients(), message);
                });
            }
        }
    }

    /// Writes the last record of a feed. Nothing follows it, not even a gap.
    pub(crate) fn end(&mut self, key: FeedKey) {
        let time_ns = self.time_ns;
        if let Some(feed) = self.get_mut(key) {
            feed.write_gap(time_ns);
            feed.note(time_ns, &|writer: &mut Writer<'_>| writer.finish());
            feed.ended = true;
        }
    }

    /// Records something else for all feeds.
    pub(crate) fn note(&mut self, write: impl Fn(&mut Writer<'_>)) {
        for (_, feed) in &mut self.open {
            feed.note(self.time_ns, &write);
        }
    }

    /// Records something else for one feed.
    pub(crate) fn note_to(&mut self, key: FeedKey, write: impl Fn(&mut Writer<'_>)) {
        let time_ns = self.time_ns;
        if let Some(feed) = self.get_mut(key) {
            feed.note(time_ns, &write);
        }
    }

    /// Whether [`Feeds::note_drops`] is due.
    pub(crate) fn wants_drops(&self, now: Instant) -> bool {
        let due = |(_, feed): &(FeedKey, Feed)| feed.drops.is_due(now);
        self.open.iter().any(due)
    }

    /// Records the drops since the last call.
    pub(crate) fn note_drops(&mut self, now: Instant, drops: &Drops) {
        self.set_time(now);
        for (_, feed) in &mut self.open {
            let Feed { devices, .. } = feed;
            let wanted = |device: Option<Device>| {
                devices.is_empty() || device.is_none_or(|device| devices.contains(&device))
            };
            let mut new = feed.drops.until(drops);
            new.retain(|dropped| wanted(dropped.device));
            feed.drops = drops.clone();
            for dropped in new {
                feed.note(self.time_ns, &|writer: &mut Writer<'_>| {
                    writer.dropped(&dropped);
                });
            }
        }
    }
}

impl Feed {
    /// The bytes to write to the reader.
    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn wrote(&mut self, bytes: usize, time_ns: u64) {
        self.taken += bytes;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            // A buffer that grew for a slow reader is not kept for a fast one.
            self.bytes.shrink_to(FEED_EXTRA_BYTES);
        } else if self.taken > self.bytes.len() / 2 {
            // Each byte is moved once at most, on average.
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.end_gap(time_ns);
    }

    fn wants(&self, device: Device) -> bool {
        !self.ended && (self.devices.is_empty() || self.devices.contains(&device))
    }

    fn frame(&mut self, time_ns: u64, bytes: usize, write: impl FnOnce(&mut Writer<'_>)) {
        self.end_gap(time_ns);
        if self.gap.is_some() || self.pending().len() + bytes > FEED_BYTES {
            return self.miss(time_ns, bytes);
        }
        let bytes = &mut self.bytes;
        write(&mut Writer { bytes, time_ns });
    }

    fn note(&mut self, time_ns: u64, write: &impl Fn(&mut Writer<'_>)) {
        if self.ended {
            return;
        }
        if self.pending().len() > FEED_BYTES + FEED_EXTRA_BYTES {
            return self.miss(time_ns, 0);
        }
        let bytes = &mut self.bytes;
        write(&mut Writer { bytes, time_ns });
    }

    fn miss(&mut self, time_ns: u64, bytes: usize) {
        let gap = self.gap.get_or_insert(Gap {
            first_ns: time_ns,
            ..Gap::default()
        });
        gap.last_ns = time_ns;
        gap.messages += 1;
        gap.bytes += bytes as u64;
        self.missed.0 += 1;
        self.missed.1 += bytes as u64;
    }

    /// Records a gap once there is room again.
    fn end_gap(&mut self, time_ns: u64) {
        if self.pending().len() > FEED_BYTES / 2 {
            return;
        }
        self.write_gap(time_ns);
    }

    /// Ends a gap, even if there is no room.
    fn write_gap(&mut self, time_ns: u64) {
        if let Some(gap) = self.gap.take() {
            let time_ns = time_ns.max(gap.last_ns);
            let bytes = &mut self.bytes;
            Writer { bytes, time_ns }.gap(&gap);
        }
    }
}

/// The drops that a feed has recorded so far.
#[derive(Clone, Debug, Default)]
pub struct Drops {
    taken: Option<Instant>,
    counters: Counters,
    drivers: Map<DriverKey, (Device, Tally)>,
}

impl Drops {
    /// All drops until now: those of the router, and those of the queue of each driver.
    pub(crate) fn new(
        now: Instant,
        totals: Counters,
        drivers: impl Iterator<Item = (DriverKey, Device, Tally)>,
    ) -> Self {
        let drivers = drivers.map(|(key, device, tally)| (key, (device, tally)));
        Self {
            taken: Some(now),
            counters: totals,
            drivers: drivers.collect(),
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let age = self.taken.map(|taken| now.saturating_duration_since(taken));
        age.is_none_or(|age| age >= DROPS_INTERVAL)
    }

    /// The drops between these two.
    fn until(&self, later: &Self) -> Vec<Dropped<'static>> {
        let mut all = Vec::new();
        // Queues of drivers that are no longer configured are in the totals only.
        let mut of_queues = [0; 3];
        for (key, (device, tally)) in &later.drivers {
            let before = self.drivers.get(key).map(|(_, tally)| *tally);
            let (before, now) = (of_queue(&before.unwrap_or_default()), of_queue(tally));
            for (sum, ((reason, now), (_, before))) in
                of_queues.iter_mut().zip(now.into_iter().zip(before))
            {
                let count = now.saturating_sub(before);
                *sum += count;
                all.push(Dropped {
                    device: Some(*device),
                    reason: reason.name(),
                    count,
                });
            }
        }
        let named = of_queue(&Tally::default()).map(|(reason, _)| reason);
        for reason in DropReason::ALL {
            let queued = named.iter().position(|named| named == reason);
            let queued = queued.map_or(0, |at| of_queues[at]);
            let count = later.counters.dropped(*reason) - self.counters.dropped(*reason);
            all.push(Dropped {
                device: None,
                reason: reason.name(),
                count: count.saturating_sub(queued),
            });
        }
        all.retain(|dropped| dropped.count > 0);
        all
    }
}

fn of_queue(tally: &Tally) -> [(DropReason, u64); 3] {
    [
        (DropReason::QueueFull, tally.dropped_full),
        (DropReason::ClientGone, tally.dropped_client_gone),
        (DropReason::DriverGone, tally.dropped_driver_gone),
    ]
}

/// The devices of a request for a feed.
pub(crate) fn devices_of(wanted: &amber_proto::mediator::OpenFeed) -> Vec<Device> {
    let devices = wanted.devices.iter();
    let mut devices: Vec<_> = devices
        .map(|device| Device::new(DeviceType(device.r#type), device.id))
        .collect();
    devices.sort();
    devices.dedup();
    devices
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
