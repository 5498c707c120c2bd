//! Requests for the speeds, and the reading for them. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;

use crate::roboclaw::protocol::Motor;
use crate::roboclaw::units::{Unit, WHEELS};

/// Maximum number of requests that wait for the speeds.
const MAX_ASKERS: usize = 256;

/// How long a client is assumed to wait for the speeds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The waiting requests. All requests made before a reading starts share it.
#[derive(Debug, Default)]
pub(super) struct Questions {
    askers: VecDeque<(Origin, Instant)>,
    reading: Option<Reading>,
    unanswered: u64,
}

/// The speeds read so far, in the order of [`WHEELS`].
#[derive(Debug)]
struct Reading {
    qpps: [i32; 4],
    done: usize,
    askers: Vec<Origin>,
}

impl Questions {
    /// Adds a request.
    pub(super) fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.unanswered += 1;
        }
        self.askers.push_back((origin, now));
    }

    /// Counts a request that will never get a reply.
    pub(super) fn refuse(&mut self) {
        self.unanswered += 1;
    }

    /// The motor to read now, if a request is waiting.
    pub(super) fn next(&mut self, now: Instant) -> Option<(Unit, Motor)> {
        if self.reading.is_none() {
            self.forget_askers(now);
            if self.askers.is_empty() {
                return None;
            }
            self.reading = Some(Reading {
                qpps: [0; 4],
                done: 0,
                askers: self.askers.drain(..).map(|(origin, _)| origin).collect(),
            });
        }
        self.reading.as_ref().map(|reading| WHEELS[reading.done])
    }

    /// Adds the speed of a motor. After the last wheel, returns all speeds and the requests that
    /// waited for them.
    pub(super) fn read(&mut self, qpps: i32) -> Option<([i32; 4], Vec<Origin>)> {
        let reading = self.reading.as_mut()?;
        reading.qpps[reading.done] = qpps;
        reading.done += 1;
        if reading.done < WHEELS.len() {
            return None;
        }
        let reading = self.reading.take()?;
        Some((reading.qpps, reading.askers))
    }

    /// The reading failed: the requests that it was for get no reply.
    pub(super) fn give_up_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.unanswered += reading.askers.len() as u64;
        }
    }

    /// Takes all waiting requests, for a reply without a reading.
    pub(super) fn take_all(&mut self) -> Vec<Origin> {
        let reading = self.reading.take().into_iter();
        let read_for = reading.flat_map(|reading| reading.askers);
        let waiting = self.askers.drain(..).map(|(origin, _)| origin);
        read_for.chain(waiting).collect()
    }

    /// The number of requests that never got a reply.
    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered
    }

    fn forget_askers(&mut self, now: Instant) {
        while let Some((_, since)) = self.askers.front() {
            if now.saturating_duration_since(*since) < PATIENCE {
                break;
            }
            self.askers.pop_front();
            self.unanswered += 1;
        }
    }
}
