//! Who wants to know the speeds, and what has been measured for them. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;

use crate::roboclaw::protocol::Motor;
use crate::roboclaw::units::{Unit, WHEELS};

/// How many may wait for the speeds.
const MAX_ASKERS: usize = 256;

/// How long somebody who asks for the speeds is taken to be waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Those who wait. All who have asked before a reading begins share it.
#[derive(Debug, Default)]
pub(super) struct Questions {
    askers: VecDeque<(Origin, Instant)>,
    reading: Option<Reading>,
    unanswered: u64,
}

/// The speeds that have been read so far, in the order of [`WHEELS`].
#[derive(Debug)]
struct Reading {
    qpps: [i32; 4],
    done: usize,
    askers: Vec<Origin>,
}

impl Questions {
    /// Somebody wants to know.
    pub(super) fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.unanswered += 1;
        }
        self.askers.push_back((origin, now));
    }

    /// Somebody wants to know, and never will.
    pub(super) fn refuse(&mut self) {
        self.unanswered += 1;
    }

    /// What is to be read now, if somebody waits for it.
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

    /// It has been read. With the last wheel come the speeds of all, and who
    /// has waited for them.
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

    /// Nothing can be read: those for whom it was begun get no answer.
    pub(super) fn give_up_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.unanswered += reading.askers.len() as u64;
        }
    }

    /// All who wait; they are answered in another way.
    pub(super) fn take_all(&mut self) -> Vec<Origin> {
        let reading = self.reading.take().into_iter();
        let read_for = reading.flat_map(|reading| reading.askers);
        let waiting = self.askers.drain(..).map(|(origin, _)| origin);
        read_for.chain(waiting).collect()
    }

    /// How many never got an answer.
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
