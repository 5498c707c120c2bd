//! How much may lie unread in the pipe of a driver. PURE.
//!
//! What is in a pipe can neither be overtaken nor dropped. A pipe holds 64 KiB:
//! of short commands to a driver that takes a millisecond for each, that is
//! most of a second, in which a newcomer waits and the commands grow stale. So a
//! driver gets little ahead, and all else waits in its [queue](crate::queue), where
//! clients take turns and the news of a death overtakes commands:
//!
//! - A driver whose pace is not known yet gets [`AHEAD_BYTES_FIRST`].
//! - A driver that **answers** tells us at once that it goes on. It gets ahead what it
//!   takes in [`AHEAD`], and one frame at least.
//! - A driver that is **silent** is looked at from time to time, and gets what it
//!   takes until then ([`AHEAD_SILENT`]), and one frame at least.
//!
//! All of it is learned. The gate closes when as much is unread as is allowed. It opens
//! when a look at the pipe shows that less is unread; the driver is looked at when it
//! says something, and after a pause. What it took since the gate closed is its pace.
//! When nothing is left, it might have taken more, and gets more ahead. A driver that
//! has mostly said something when it has taken something answers.
//!
//! On a busy machine a fast driver seems slow: each frame takes as long as both sides
//! need to notice each other. So once in `TURNS_UNTIL_PROBE` turns three frames go
//! at once. When the pace rises with them, the driver gets more.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::limits::{
    AHEAD, AHEAD_BYTES, AHEAD_BYTES_FAST, AHEAD_BYTES_FIRST, AHEAD_LOOK, AHEAD_LOOK_MAX,
    AHEAD_SILENT,
};

/// So often a driver must have said something when it took something, less the times
/// when it had not, before it counts as one that answers.
const ANSWERS_LIKELY: u8 = 2;

/// More answers than this count no more: a driver that falls silent is noticed soon.
const ANSWERS_MAX: u8 = 4;

/// Turns of a driver that gets one frame at a time until three go at once: hardly
/// one newcomer in a hundred meets them.
const TURNS_UNTIL_PROBE: u32 = 512;

/// See the [module](self).
#[derive(Debug)]
pub struct Gate {
    /// It is open while less than this is unread.
    allowed: usize,
    /// What is unread at most.
    unread: usize,
    /// Since when the driver has had something to read all the time.
    busy: Option<Busy>,
    /// Excess over what was allowed, written to complete a frame, which so is at
    /// least as long.
    beyond: usize,
    /// Since when it has taken everything each time.
    eager: Option<Eager>,
    voice: Voice,
    probe: Probe,
    /// When the pipe was looked at last.
    looked: Option<Instant>,
    /// How long until it is looked at again, when nothing is heard.
    pause: Duration,
}

#[derive(Debug)]
struct Busy {
    since: Instant,
    /// What there was to read then, and has come since.
    bytes: usize,
    /// It has not taken all in time before, so how soon it takes the rest says nothing.
    late: bool,
}

/// A driver that has taken everything each time when it is looked at: it may have waited
/// for more.
#[derive(Debug)]
struct Eager {
    since: Instant,
    /// What was written since then.
    bytes: usize,
    /// Bytes added by the most recent write.
    last: usize,
    /// It has said something since that was written.
    said: bool,
}

/// Whether the driver answers what it takes.
#[derive(Debug, Default)]
struct Voice {
    /// It has said something since it was judged last.
    heard: bool,
    /// It has taken something since.
    took: bool,
    judged: Option<Instant>,
    /// How often it had said something, less the times when it had not.
    answers: u8,
}

/// Whether a driver that gets little ahead would take more.
#[derive(Debug, Default)]
struct Probe {
    /// Turns since the last attempt.
    turns: u32,
    /// The pace with less ahead, in bytes per second, while an attempt lasts.
    before: Option<f64>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            allowed: AHEAD_BYTES_FIRST,
            unread: 0,
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
    /// How many bytes may be written now, and to finish the frame in which
    /// they end. `look` says how many lie in the pipe; it and the clock are asked
    /// only when it matters.
    pub fn room(&mut self, now: impl FnOnce() -> Instant, look: impl FnOnce() -> usize) -> usize {
        // The first look is the time from which the next one is due.
        if self.looked.is_some() && self.busy.is_none() && self.unread < self.allowed {
            return self.allowed - self.unread;
        }
        self.look(now(), look());
        self.allowed.saturating_sub(self.unread)
    }

    /// So many were written, of what there was [room](Self::room) for.
    pub fn wrote(&mut self, bytes: usize) {
        self.beyond = bytes.saturating_sub(self.allowed.saturating_sub(self.unread));
        self.unread += bytes;
        if let Some(eager) = &mut self.eager {
            eager.wrote(bytes);
        }
        if let Some(busy) = &mut self.busy {
            busy.bytes += bytes;
        }
    }

    /// A whole frame has come from the driver, or several. When something waits
    /// for it, it is time to ask for [room](Self::room).
    pub fn said(&mut self) {
        if let Some(eager) = &mut self.eager {
            eager.said = true;
        }
        self.voice.heard = true;
    }

    /// When to ask for [room](Self::room) again, if the driver says nothing until then.
    /// None when it is open: then only the pipe itself can be full.
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
                self.allowed = part(taken, ahead, time).clamp(1, AHEAD_BYTES);
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

    /// It has taken all that it had to read, and was waiting for us, unless this was one
    /// slow frame. Of that only what is beyond the time that is allowed is known.
    fn learn_of_turn(&mut self, taken: usize, ahead: Duration, time: Duration) {
        let is_slow = self.beyond >= part(taken, AHEAD, time);
        if time > AHEAD_LOOK / 2 && !is_slow {
            // It waited for long, so this was no answer, or we are late ourselves.
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

    /// It has taken all that there was.
    fn learn_of_eager(&mut self, now: Instant, ahead: Duration) {
        let eager = self.eager.get_or_insert(Eager::since(now));
        let (done, time) = (eager.done(), now.duration_since(eager.since));
        if eager.said || time >= AHEAD_LOOK {
            *eager = Eager::since(now);
        }
        self.allow_more(done, ahead, time);
    }

    /// It has taken so much in some time, and is to have ahead at least what it takes in
    /// another.
    fn allow_more(&mut self, taken: usize, ahead: Duration, time: Duration) {
        let twice = 2 * self.allowed.max(taken);
        let more = twice.min(2 * part(taken, ahead, time)).min(AHEAD_BYTES);
        self.allowed = self.allowed.max(more);
        if part(taken, 3 * AHEAD, time) >= AHEAD_BYTES_FAST {
            self.allowed = self.allowed.max(AHEAD_BYTES_FAST);
        }
    }
}

/// What of so many bytes that were taken in some time falls to another time.
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

    /// What it is done with. It may have taken what was written last and not be done with
    /// that, unless it has answered.
    fn done(&self) -> usize {
        match self.said {
            true => self.bytes,
            false => self.bytes - self.last,
        }
    }
}

impl Voice {
    /// Silence counts only when there was time to say something.
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
    /// It has taken so much in one turn, at this pace. How much it may have ahead
    /// for the sake of an attempt.
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
