//! One frame after the other, for a driver that is slow and answers. PURE.
//!
//! The next frame is written when the last one is answered: then the pipe is empty,
//! the driver is about to read, and nobody waits for more than the rest of one frame
//! that is not his own.
//!
//! What a driver says need not be the answer: it may publish something as well. Were
//! that taken for the answer, one frame too many would be on its way from then
//! on, as each answer would let the next one in. So what comes long before the usual
//! time does not count, until it turns out that it was the answer indeed.
//!
//! A fast driver may seem slow, when others keep the cores busy. So now and then
//! three frames go at once. If they take as long as one, it is fast.

use std::time::{Duration, Instant};

use crate::limits::{AHEAD_LOOK, HOLD_MAX, HOLD_UNTIL};

/// So many times the usual time an answer may take, before we do not wait for any.
const PATIENCE: u32 = 3;

/// After it was wrong not to believe an answer that came soon, so many are believed.
const TRUST: u32 = 64;

/// When so many in a row come soon, they are the answers.
const SOON_IN_A_ROW: u32 = 8;

/// No fast driver seems slower than this.
const SEEMS_SLOW: Duration = Duration::from_millis(10);

/// One attempt to write three frames at once in so many, at first and at most: hardly
/// one in a hundred newcomers may meet one.
const ATTEMPTS_APART: u32 = 256;
/// See [`ATTEMPTS_APART`].
const ATTEMPTS_APART_MAX: u32 = 1024;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Hold {
    /// A whole frame has come from the driver.
    pub(super) said: bool,
    /// What answers usually take.
    usual: Duration,
    /// That is no guess.
    is_known: bool,
    /// What was written last, until it is answered.
    awaited: Option<Awaited>,
    trust: u32,
    soon_in_a_row: u32,
    /// The length of a frame, in bytes.
    frame: usize,
    /// Frames until three are written at once.
    pub(super) until_attempt: u32,
    attempts_apart: u32,
    /// Three have just been answered like one.
    after_three: bool,
    /// When it was found fast or silent.
    ended: Option<Instant>,
}

#[derive(Debug)]
struct Awaited {
    written: Instant,
    /// When the driver cannot have begun with it yet.
    unread: Instant,
    /// Something came too soon, after so long.
    soon: Option<Duration>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One frame.
    One,
    /// Three, to find out whether that takes any longer.
    Three,
    /// The one after them, which finds a driver busy that has only read them soon.
    Fourth,
    /// One of them is not answered yet, perhaps.
    Rest,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Nothing yet.
    Wait,
    /// Write so many bytes.
    Write(usize),
    /// Hold nothing more: it is fast. So many bytes may be written.
    Fast(usize),
    /// Hold nothing more: no answers come.
    Silent,
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            said: false,
            usual: Duration::ZERO,
            is_known: false,
            awaited: None,
            trust: 0,
            soon_in_a_row: 0,
            frame: 0,
            until_attempt: ATTEMPTS_APART,
            attempts_apart: ATTEMPTS_APART,
            after_three: false,
            ended: None,
        }
    }
}

impl Hold {
    /// The driver has just taken a frame of so many bytes, and answered the last one
    /// after `usual`.
    pub(super) fn begin(&mut self, now: Instant, usual: Duration, frame: usize) {
        let anew = |ended: Instant| now.duration_since(ended) > HOLD_MAX.max(16 * usual);
        if self.ended.take().is_none_or(anew) {
            self.attempts_apart = ATTEMPTS_APART;
            self.until_attempt = ATTEMPTS_APART;
        }
        self.usual = usual;
        self.is_known = false;
        self.frame = frame;
        self.said = false;
        self.await_answer(now, Kind::One);
    }

    /// So many bytes were written, just after the pipe was looked at.
    pub(super) fn wrote(&mut self, bytes: usize, looked: Option<Instant>) {
        if self.awaited.is_some() {
            // The rest of a frame that the pipe had taken in part.
            self.frame += bytes;
            return;
        }
        let three = self.until_attempt == 0 && bytes > 2 * self.frame;
        if three {
            self.attempts_apart = (2 * self.attempts_apart).min(ATTEMPTS_APART_MAX);
            self.until_attempt = self.attempts_apart;
        } else {
            self.until_attempt = self.until_attempt.saturating_sub(1);
            self.frame = bytes;
        }
        self.said = false;
        let kind = match (three, std::mem::take(&mut self.after_three)) {
            (true, _) => Kind::Three,
            (false, true) => Kind::Fourth,
            (false, false) => Kind::One,
        };
        if let Some(now) = looked {
            self.await_answer(now, kind);
        }
    }

    /// When to look again, while no answer comes to what the driver has taken.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let awaited = self.awaited.as_ref()?;
        let patience = match (awaited.soon, awaited.kind) {
            (None, Kind::One | Kind::Three | Kind::Fourth) => {
                (PATIENCE * self.usual).max(AHEAD_LOOK)
            }
            (Some(_), _) | (_, Kind::Rest) => self.usual * 3 / 2,
        };
        Some(awaited.unread + patience.min(HOLD_MAX))
    }

    /// So many bytes lie in the pipe.
    pub(super) fn look(&mut self, now: Instant, unread: usize) -> Verdict {
        let said = std::mem::take(&mut self.said);
        let Some(awaited) = &mut self.awaited else {
            return match unread {
                0 => self.next(),
                _ => Verdict::Wait,
            };
        };
        if unread > 0 {
            awaited.unread = now;
            awaited.soon = None;
            return Verdict::Wait;
        }
        let time = now.duration_since(awaited.unread);
        if said {
            let soon = self.is_known && 4 * time < 3 * self.usual;
            if !soon || self.trust > 0 {
                self.trust -= u32::from(soon);
                return self.answered(now, time);
            }
            awaited.soon.get_or_insert(time);
        }
        if self.deadline().is_some_and(|deadline| now < deadline) {
            return Verdict::Wait;
        }
        self.expired(now)
    }

    fn answered(&mut self, now: Instant, time: Duration) -> Verdict {
        let Some(awaited) = &self.awaited else {
            return self.next();
        };
        let as_one = 2 * now.duration_since(awaited.written) < 3 * self.usual;
        self.soon_in_a_row = match awaited.soon {
            Some(_) => self.soon_in_a_row + 1,
            None => 0,
        };
        if self.soon_in_a_row >= SOON_IN_A_ROW {
            self.trust = TRUST;
        }
        match awaited.kind {
            Kind::Three if as_one => {
                self.after_three = true;
                self.next()
            }
            Kind::Fourth if as_one => self.end(now, 3),
            Kind::Three | Kind::Fourth => {
                self.await_answer(now, Kind::Rest);
                Verdict::Wait
            }
            Kind::One | Kind::Rest => {
                self.took(time);
                match time < HOLD_UNTIL {
                    true => self.end(now, 2),
                    false => self.next(),
                }
            }
        }
    }

    fn expired(&mut self, now: Instant) -> Verdict {
        let (soon, kind) = match &self.awaited {
            Some(awaited) => (awaited.soon, awaited.kind),
            None => (None, Kind::One),
        };
        match (soon, kind) {
            (Some(time), _) => {
                // Nothing else came, so that was it.
                self.trust = TRUST;
                self.took(time);
                self.next()
            }
            // All three had been answered.
            (None, Kind::Rest) => self.next(),
            (None, Kind::One | Kind::Three | Kind::Fourth) => {
                self.awaited = None;
                self.ended = Some(now);
                Verdict::Silent
            }
        }
    }

    fn next(&mut self) -> Verdict {
        self.awaited = None;
        let attempt = self.until_attempt == 0 && self.usual < SEEMS_SLOW && !self.after_three;
        Verdict::Write(if attempt { 2 * self.frame + 1 } else { 1 })
    }

    fn end(&mut self, now: Instant, frames: usize) -> Verdict {
        self.awaited = None;
        self.ended = Some(now);
        Verdict::Fast(frames * self.frame.max(1))
    }

    fn took(&mut self, time: Duration) {
        self.usual = match self.is_known {
            true => (3 * self.usual + time) / 4,
            false => time,
        };
        self.is_known = true;
    }

    fn await_answer(&mut self, now: Instant, kind: Kind) {
        self.awaited = Some(Awaited {
            written: now,
            unread: now,
            soon: None,
            kind,
        });
    }
}
