//! Limits the unread bytes in the pipe of a driver. PURE.
//!
//! Frames in a pipe can neither be overtaken nor dropped. A pipe holds 64 KiB: for short
//! commands to a driver that takes a millisecond each, that is most of a second, in which a
//! newcomer waits and commands become stale. So only a few bytes are written ahead. Everything
//! else waits in the [queue](crate::queue), where clients take turns and CLIENT_DIED overtakes
//! commands:
//!
//! - A driver of unknown speed gets [`AHEAD_BYTES_FIRST`].
//! - A driver that **answers** shows immediately that it continues. It gets as much as it takes
//!   in [`AHEAD`], and at least one frame.
//! - A driver that is **silent** is checked from time to time. It gets as much as it takes until
//!   the next check ([`AHEAD_SILENT`]), and at least one frame.
//!
//! The gate learns all of this. It closes when the unread bytes reach the allowance. It opens when
//! a check of the pipe shows that fewer are unread. The pipe is checked when the driver writes a
//! frame, and after a pause. The bytes that the driver took since the gate closed give its
//! speed. If none are left, it might have taken more, and is allowed more. A driver that has
//! usually written a frame after it took one counts as answering. A driver that takes a whole pipe
//! in three times [`AHEAD`] gets what the pipe holds, with few checks.
//!
//! On a busy machine a fast driver seems slow: each frame takes as long as both sides need to
//! notice each other. So once in `TURNS_UNTIL_PROBE` turns three frames go at once. If the
//! speed rises with them, the driver is allowed more.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::limits::{
    AHEAD, AHEAD_BYTES, AHEAD_BYTES_FAST, AHEAD_BYTES_FIRST, AHEAD_LOOK, AHEAD_LOOK_MAX,
    AHEAD_SILENT,
};

/// A driver counts as answering if it wrote a frame after it took something this many times
/// more often than it did not.
const ANSWERS_LIKELY: u8 = 2;

/// The score is capped here, so that a driver that becomes silent is noticed soon.
const ANSWERS_MAX: u8 = 4;

/// A driver that gets one frame at a time gets three at once after this many turns: so hardly
/// one newcomer in a hundred is affected.
const TURNS_UNTIL_PROBE: u32 = 512;

/// See the [module](self).
#[derive(Debug)]
pub struct Gate {
    /// The gate is open while fewer bytes than this are unread.
    allowed: usize,
    /// Upper bound of the unread bytes.
    unread: usize,
    /// Bytes added by the most recent write.
    last: usize,
    /// Since when the driver has always had something to read.
    busy: Option<Busy>,
    /// Excess over the allowance, written to complete a frame. The frame is at least that long.
    beyond: usize,
    /// Since when it has taken everything at each check.
    eager: Option<Eager>,
    voice: Voice,
    probe: Probe,
    /// The time of the last check of the pipe.
    looked: Option<Instant>,
    /// The pause until the next check, if the driver writes nothing.
    pause: Duration,
}

#[derive(Debug)]
struct Busy {
    since: Instant,
    /// The unread bytes at that time, and all written since.
    bytes: usize,
    /// At the last check it had not taken everything in time, so the time for the rest is
    /// meaningless.
    late: bool,
}

/// A driver that has taken everything at each check: it may have waited for more.
#[derive(Debug)]
struct Eager {
    since: Instant,
    /// Bytes written since then.
    bytes: usize,
    /// Bytes added by the most recent write.
    last: usize,
    /// It has written a frame since that write.
    said: bool,
}

/// Tracks whether the driver writes a frame after it takes one.
#[derive(Debug, Default)]
struct Voice {
    /// It has written a frame since the last judgement.
    heard: bool,
    /// It has taken something since then.
    took: bool,
    judged: Option<Instant>,
    /// How often it had written a frame, minus how often it had not.
    answers: u8,
}

/// Tests whether a driver with a small allowance would take more.
#[derive(Debug, Default)]
struct Probe {
    /// Turns since the last attempt.
    turns: u32,
    /// The speed with less ahead, in bytes per second, during an attempt.
    before: Option<f64>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            allowed: AHEAD_BYTES_FIRST,
            unread: 0,
            last: 0,
            busy: None,
            beyond: 0,
            eager: None,
            voice: Voice::default(),
            probe: Probe::default(),
            looked: None,
            pause: AHEAD_LOOK,
        }
    }
}

impl Gate {
    /// The number of bytes that may be written now, of `waiting`; the frame in which they end may
    /// be completed. `look` returns the unread bytes in the pipe. It and the clock are called only
    /// when necessary.
    pub fn room(
        &mut self,
        waiting: usize,
        now: impl FnOnce() -> Instant,
        look: impl FnOnce() -> usize,
    ) -> usize {
        // The first check starts the pause until the next.
        if self.looked.is_some() && self.busy.is_none() && self.unread < self.allowed {
            let left = self.allowed - self.unread;
            // If not everything fits, a check follows the write. Before the write, it may show that
            // everything fits, which saves a second write.
            if waiting <= left || self.unread == 0 {
                return left;
            }
        }
        let now = now();
        // The pipe itself holds no more. A driver that becomes slow is noticed soon enough.
        let recent = |looked| now.saturating_duration_since(looked) < AHEAD_LOOK;
        if self.allowed >= AHEAD_BYTES && self.busy.is_none() && self.looked.is_some_and(recent) {
            return self.allowed;
        }
        self.look(now, look());
        self.allowed.saturating_sub(self.unread)
    }

    /// This many bytes were written.
    pub fn wrote(&mut self, bytes: usize) {
        self.beyond = bytes.saturating_sub(self.allowed.saturating_sub(self.unread));
        self.unread += bytes;
        self.last = bytes;
        if let Some(eager) = &mut self.eager {
            eager.wrote(bytes);
        }
        if let Some(busy) = &mut self.busy {
            busy.bytes += bytes;
        }
    }

    /// The driver has written one or more whole frames. If frames wait for it, ask for
    /// [room](Self::room).
    pub fn said(&mut self) {
        if let Some(eager) = &mut self.eager {
            eager.said = true;
        }
        self.voice.heard = true;
    }

    /// Whether another write like the last one would close the gate, so that its second half would
    /// wait for a check. When the driver has just written frames is a better time for the check:
    /// most likely it has read everything.
    pub fn is_about_to_close(&self) -> bool {
        self.unread > 0 && self.unread < self.allowed && self.unread + self.last > self.allowed
    }

    /// When to ask for [room](Self::room) again, if the driver writes nothing until then.
    /// `None` if the gate is open: then only the pipe itself can be full.
    pub fn look_at(&self) -> Option<Instant> {
        let looked = self.looked?;
        (self.unread >= self.allowed).then(|| looked + self.pause)
    }

    fn look(&mut self, now: Instant, unread: usize) {
        let took = unread < self.unread;
        self.pause = match took || self.voice.heard {
            true => AHEAD_LOOK,
            false => (2 * self.pause).min(AHEAD_LOOK_MAX),
        };
        self.looked = Some(now);
        self.unread = unread;
        self.voice.judge(now, took);
        self.learn(now);
    }

    fn learn(&mut self, now: Instant) {
        let ahead = match self.voice.answers {
            ANSWERS_LIKELY.. => AHEAD,
            _ => AHEAD_SILENT,
        };
        if let Some(busy) = &self.busy {
            let time = now.duration_since(busy.since);
            let taken = busy.bytes.saturating_sub(self.unread);
            if self.unread == 0 {
                if !busy.late {
                    self.learn_of_turn(taken, ahead, time);
                }
                self.busy = None;
            } else if time >= AHEAD_LOOK {
                // It always has something to read.
                let allowed = part(taken, ahead, time).clamp(1, AHEAD_BYTES);
                self.allowed = allowed.max(ahead_if_fast(taken, time));
                self.probe.before = None;
                self.busy = Some(Busy {
                    since: now,
                    bytes: self.unread,
                    late: true,
                });
            }
        } else if self.unread == 0 {
            self.learn_of_eager(now, ahead);
        }
        if self.unread > 0 {
            self.eager = None;
        }
        if self.busy.is_none() && self.unread >= self.allowed {
            self.busy = Some(Busy {
                since: now,
                bytes: self.unread,
                late: false,
            });
        }
    }

    /// It has taken all that it had to read, and was waiting for us, unless this was one slow
    /// frame. For a slow frame only the time beyond the allowed time is known.
    fn learn_of_turn(&mut self, taken: usize, ahead: Duration, time: Duration) {
        let is_slow = self.beyond >= part(taken, AHEAD, time);
        if time > AHEAD_LOOK / 2 && !is_slow {
            // It waited for long: either this was not an answer, or the mediator itself is late.
            self.voice.answers = self.voice.answers.saturating_sub(2);
        }
        self.allow_more(taken, ahead, time);
        if !is_slow && self.probe.before.is_none() {
            self.probe.turns = 0;
            return;
        }
        let pace = taken as f64 / time.as_secs_f64().max(1e-6);
        self.allowed = self.allowed.max(self.probe.turn(pace, taken));
    }

    /// It has taken everything.
    fn learn_of_eager(&mut self, now: Instant, ahead: Duration) {
        let eager = self.eager.get_or_insert(Eager::since(now));
        let (done, time) = (eager.done(), now.duration_since(eager.since));
        if eager.said || time >= AHEAD_LOOK {
            *eager = Eager::since(now);
        }
        self.allow_more(done, ahead, time);
    }

    /// It has taken `taken` bytes in `time`: allows at least what it takes in `ahead`.
    fn allow_more(&mut self, taken: usize, ahead: Duration, time: Duration) {
        let twice = 2 * self.allowed.max(taken);
        let more = twice.min(2 * part(taken, ahead, time)).min(AHEAD_BYTES);
        self.allowed = self.allowed.max(more).max(ahead_if_fast(taken, time));
    }
}

/// The allowance of a driver that has taken this much in this time, if it is fast; zero if not.
fn ahead_if_fast(taken: usize, time: Duration) -> usize {
    let takes = part(taken, 3 * AHEAD, time);
    let steps = [AHEAD_BYTES, AHEAD_BYTES_FAST];
    steps.into_iter().find(|step| takes >= *step).unwrap_or(0)
}

/// The share of `bytes`, taken in `time`, that falls to another time.
fn part(bytes: usize, of: Duration, time: Duration) -> usize {
    let time = time.max(Duration::from_micros(1));
    (bytes as f64 * of.as_secs_f64() / time.as_secs_f64()) as usize
}

impl Eager {
    fn since(now: Instant) -> Self {
        Self {
            since: now,
            bytes: 0,
            last: 0,
            said: false,
        }
    }

    fn wrote(&mut self, bytes: usize) {
        self.bytes += bytes;
        (self.last, self.said) = (bytes, false);
    }

    /// The bytes that it has finished. It may have taken the last write without finishing it,
    /// unless it has answered.
    fn done(&self) -> usize {
        match self.said {
            true => self.bytes,
            false => self.bytes - self.last,
        }
    }
}

impl Voice {
    /// Silence counts only if there was time to answer.
    fn judge(&mut self, now: Instant, took: bool) {
        self.took |= took;
        let judged = *self.judged.get_or_insert(now);
        if !self.took {
            return;
        }
        if self.heard {
            self.answers = (self.answers + 1).min(ANSWERS_MAX);
        } else if now.duration_since(judged) >= AHEAD_LOOK {
            self.answers = self.answers.saturating_sub(1);
        } else {
            return;
        }
        (self.heard, self.took, self.judged) = (false, false, Some(now));
    }
}

impl Probe {
    /// It has taken this much in one turn, at this speed. Returns how much it may have ahead
    /// for an attempt.
    fn turn(&mut self, pace: f64, taken: usize) -> usize {
        if let Some(before) = self.before.take() {
            let is_faster = 2.0 * pace > 3.0 * before;
            self.before = is_faster.then_some(pace);
            return if is_faster {
                (2 * taken).min(AHEAD_BYTES)
            } else {
                1
            };
        }
        self.turns += 1;
        if self.turns < TURNS_UNTIL_PROBE {
            return 1;
        }
        (self.turns, self.before) = (0, Some(pace));
        2 * taken + 1
    }
}
