//! Counts the traffic independently of the core's counters. PURE.

use amber_core::Core;
use amber_core::counters::{Count, DropReason};

use super::{Cause, Changes, Model};
use crate::invariant::{Check, Invariant, broken, holds};

/// The observed numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    datagrams: u64,
    frames: u64,
    sent: u64,
    copies: u64,
    pub(super) unknown: u64,
    pub(super) starts: u64,
    written: u64,
}

impl Model {
    pub(super) fn check_accounts(&mut self, changes: &Changes<'_>, copies: usize) -> Check {
        let seen = &mut self.seen;
        match changes.call.cause {
            Cause::Datagram(..) => seen.datagrams += 1,
            Cause::Frame(..) => seen.frames += 1,
            _ => {}
        }
        seen.copies += copies as u64;
        seen.sent += changes.call.sent.len() as u64;
        let counts = &changes.after;
        let pairs = [
            (Count::Datagrams, seen.datagrams),
            (Count::DriverFrames, seen.frames),
            (Count::CopiesToClients, seen.copies),
            (Count::DatagramsToSend, seen.sent),
            (Count::DriverFramesWritten, seen.written),
        ];
        for (count, seen) in pairs {
            holds(
                Invariant::AllAccountedFor,
                counts.counted(count) == seen,
                || {
                    format!(
                        "{}: the core counts {}, the model {seen}",
                        count.name(),
                        counts.counted(count)
                    )
                },
            )?;
        }
        let unknown = counts.dropped(DropReason::UnknownClient);
        holds(Invariant::AllAccountedFor, unknown == seen.unknown, || {
            format!(
                "frames named {} unknown clients, the core counts {unknown}",
                seen.unknown
            )
        })?;
        let waiting = changes.call.core.router().waiting();
        let accounted = counts.check(waiting);
        accounted.map_err(|what| broken(Invariant::AllAccountedFor, what))?;
        self.check_bounds(changes.call.core)
    }

    fn check_bounds(&self, core: &Core) -> Check {
        let clients = core.router().clients.len();
        holds(Invariant::BoundsHold, clients <= self.clients, || {
            format!("{clients} clients are known, the limit is {}", self.clients)
        })?;
        for life in self.lives.values() {
            let Some(route) = core.router().route(life.key) else {
                continue;
            };
            let (frames, bytes) = route.queue.waiting();
            let fits = frames <= self.bounds.frames && bytes <= self.bounds.bytes;
            holds(Invariant::BoundsHold, fits, || {
                format!("{frames} frames, {bytes} bytes are queued for {}", life.pid)
            })?;
        }
        Ok(())
    }

    /// Whole frames were written to the stdin of a process.
    pub fn written(&mut self, frames: u64) {
        self.seen.written += frames;
    }

    /// Checks the counters when nothing is left to do.
    ///
    /// # Errors
    /// They do not add up.
    pub fn settled(&self, core: &Core) -> Check {
        let totals = core.router().totals();
        let sent = totals.check_sent();
        sent.map_err(|what| broken(Invariant::AllAccountedFor, what))?;
        let starts = totals.counted(Count::DriverStarts);
        holds(
            Invariant::AllAccountedFor,
            starts == self.seen.starts,
            || {
                format!(
                    "the core counts {starts} starts, the model {}",
                    self.seen.starts
                )
            },
        )?;
        let written = totals.counted(Count::DriverFramesWritten);
        holds(
            Invariant::AllAccountedFor,
            written == self.seen.written,
            || {
                format!(
                    "the core counts {written} frames, but {} were written",
                    self.seen.written
                )
            },
        )?;
        for life in self.lives.values().filter(|life| life.up()) {
            let route = core.router().route(life.key);
            let deaf = route.is_some_and(|route| route.queue.is_deaf());
            holds(Invariant::BoundsHold, !deaf, || {
                format!("{} leaves too much unread, but keeps running", life.pid)
            })?;
        }
        Ok(())
    }
}
