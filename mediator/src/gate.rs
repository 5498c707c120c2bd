//! How much may lie unread in the pipe of a driver. PURE.
//!
//! What is in a pipe can neither be overtaken nor dropped. A pipe holds 64 KiB:
//! of short commands to a driver that takes a millisecond for each, that is
//! most of a second, in which a newcomer waits and the commands grow stale. So a
//! driver gets as much ahead as it takes in a millisecond, and one frame
//! at least. All else waits in its [queue](crate::queue), where clients take turns.
//!
//! How fast a driver reads is learned. Each time the gate closes, time runs until
//! the next look; what has gone from the pipe meanwhile is what the driver has
//! taken. When nothing is left it might have taken more.

use std::time::{Duration, Instant};

use crate::limits::{AHEAD, AHEAD_BYTES, AHEAD_BYTES_FAST, AHEAD_BYTES_FIRST};

/// See the [module](self).
#[derive(Debug)]
pub struct Gate {
    /// It is open while less than this is unread.
    allowed: usize,
    /// What is unread at most.
    unread: usize,
    /// Since when the driver has had something to read all the time.
    busy: Option<Busy>,
}

#[derive(Debug)]
struct Busy {
    since: Instant,
    /// What there was to read then, and has come since.
    bytes: usize,
    /// It has not taken all in time before, so how soon it takes the rest says nothing.
    late: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            allowed: AHEAD_BYTES_FIRST,
            unread: 0,
            busy: None,
        }
    }
}

impl Gate {
    /// How many bytes may be written now, and to finish the frame in which
    /// they end. `look` says how many lie in the pipe; it is asked only when it
    /// matters.
    pub fn room(&mut self, now: impl FnOnce() -> Instant, look: impl FnOnce() -> usize) -> usize {
        if self.busy.is_some() || self.unread >= self.allowed {
            self.unread = look();
            self.learn(now());
        }
        self.allowed.saturating_sub(self.unread)
    }

    /// So many were written.
    pub fn wrote(&mut self, bytes: usize) {
        self.unread += bytes;
        if let Some(busy) = &mut self.busy {
            busy.bytes += bytes;
        }
    }

    fn learn(&mut self, now: Instant) {
        if let Some(busy) = &self.busy {
            let time = now.duration_since(busy.since).max(Duration::from_micros(1));
            let taken = busy.bytes.saturating_sub(self.unread);
            let in_time = (taken as f64 * AHEAD.as_secs_f64() / time.as_secs_f64()) as usize;
            let late = busy.late;
            if self.unread == 0 {
                // It was waiting for us, unless this was one slow frame.
                let fast = taken >= AHEAD_BYTES_FAST || time < AHEAD / 2;
                if fast && !late {
                    let twice = 2 * self.allowed.max(taken);
                    let more = twice.min(2 * in_time).min(AHEAD_BYTES);
                    self.allowed = self.allowed.max(more);
                }
                self.busy = None;
            } else if time >= AHEAD {
                // It always has something to read. Who is slow needs but half of that:
                // one frame ahead instead of two, when each takes a millisecond.
                let enough = match in_time {
                    ..AHEAD_BYTES_FAST => in_time / 2,
                    _ => in_time,
                };
                self.allowed = enough.clamp(1, AHEAD_BYTES);
                self.busy = Some(Busy {
                    since: now,
                    bytes: self.unread,
                    late: true,
                });
            }
        }
        if self.busy.is_none() && self.unread >= self.allowed {
            self.busy = Some(Busy {
                since: now,
                bytes: self.unread,
                late: false,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that takes so many bytes a second, a frame at a time, and a mediator
    /// with more for it than it can take, that looks whenever a frame was taken
    /// and every `look`.
    struct Pair {
        start: Instant,
        now: Duration,
        gate: Gate,
        pipe: usize,
        frame: usize,
        each: Duration,
        most: usize,
        taken: usize,
    }

    impl Pair {
        fn new(frame: usize, each: Duration) -> Self {
            Self {
                start: Instant::now(),
                now: Duration::ZERO,
                gate: Gate::default(),
                pipe: 0,
                frame,
                each,
                most: 0,
                taken: 0,
            }
        }

        fn fill(&mut self) {
            let now = self.start + self.now;
            loop {
                let room = self.gate.room(|| now, || self.pipe);
                if room == 0 {
                    break;
                }
                let bytes = room.div_ceil(self.frame) * self.frame;
                self.gate.wrote(bytes);
                self.pipe += bytes;
            }
            self.most = self.most.max(self.pipe);
        }

        /// The driver answers each frame, which makes us look.
        fn run_answering(&mut self, time: Duration) {
            let end = self.now + time;
            self.most = 0;
            while self.now < end {
                self.fill();
                self.now += self.each;
                self.pipe = self.pipe.saturating_sub(self.frame);
                self.taken += self.frame;
            }
        }

        /// It is silent, so we look from time to time.
        fn run_silent(&mut self, time: Duration, look: Duration) {
            let end = self.now + time;
            self.most = 0;
            while self.now < end {
                self.fill();
                self.now += look;
                let could = (look.as_secs_f64() / self.each.as_secs_f64()) as usize * self.frame;
                let taken = could.min(self.pipe);
                self.pipe -= taken;
                self.taken += taken;
            }
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slow_driver_gets_one_frame_ahead() {
        for each in [MS, 10 * MS, 1000 * MS] {
            let mut pair = Pair::new(80, each);
            // What it was trusted with at first has to go.
            pair.run_answering(200 * each);
            pair.run_answering(200 * each);
            assert!(pair.most <= 2 * 80, "{each:?}: {} bytes", pair.most);
        }
    }

    #[test]
    fn a_fast_driver_gets_what_it_takes_in_time() {
        let mut pair = Pair::new(80, Duration::from_micros(2));
        pair.run_answering(20 * MS);
        pair.run_answering(20 * MS);
        assert!(pair.most >= 20_000, "only {} bytes", pair.most);
        assert_eq!(pair.taken, 40 * 500 * 80, "it never waits");
    }

    #[test]
    fn a_fast_driver_that_is_silent_is_learned_by_looking() {
        let mut pair = Pair::new(80, Duration::from_micros(2));
        pair.run_silent(50 * MS, MS * 3 / 2);
        pair.taken = 0;
        pair.run_silent(50 * MS, MS * 3 / 2);
        // Most of what it could take: we look later than it would need us.
        let all = 25_000 * 80;
        assert!(pair.taken > all * 3 / 5, "{} of {all}", pair.taken);
    }

    #[test]
    fn who_becomes_slow_gets_less_and_who_becomes_fast_more() {
        let mut pair = Pair::new(80, Duration::from_micros(2));
        pair.run_answering(20 * MS);
        pair.each = 5 * MS;
        pair.run_answering(10_000 * MS);
        pair.run_answering(1000 * MS);
        assert!(pair.most <= 2 * 80, "{} bytes", pair.most);
        pair.each = Duration::from_micros(2);
        pair.run_answering(20 * MS);
        assert!(pair.most >= 20_000, "{} bytes", pair.most);
    }

    #[test]
    fn a_look_in_the_middle_of_a_slow_frame_makes_nobody_fast() {
        // Looks come twice around each frame: just before it is taken, and just after.
        let mut pair = Pair::new(80, MS);
        let soon = Duration::from_micros(20);
        for _ in 0..1000 {
            pair.fill();
            pair.now += MS - soon;
            pair.fill();
            pair.now += soon;
            pair.pipe = pair.pipe.saturating_sub(80);
        }
        pair.most = 0;
        for _ in 0..1000 {
            pair.fill();
            pair.now += MS - soon;
            pair.fill();
            pair.now += soon;
            pair.pipe = pair.pipe.saturating_sub(80);
        }
        assert!(pair.most <= 4 * 80, "{} bytes", pair.most);
    }

    #[test]
    fn nobody_looks_at_a_pipe_that_has_room() {
        let mut gate = Gate::default();
        let never = || unreachable!("there is room");
        assert!(gate.room(Instant::now, never) > 0);
        gate.wrote(AHEAD_BYTES_FIRST - 1);
        assert_eq!(gate.room(Instant::now, never), 1);
        gate.wrote(1);
        assert_eq!(gate.room(Instant::now, || 100), AHEAD_BYTES_FIRST - 100);
    }

    #[test]
    fn a_driver_that_never_reads_gets_nothing_more() {
        let mut pair = Pair::new(80, 100_000 * MS);
        pair.run_silent(1000 * MS, MS);
        let before = pair.pipe;
        pair.run_silent(1000 * MS, MS);
        assert_eq!(pair.pipe, before);
        assert!(before <= AHEAD_BYTES_FIRST + 80);
    }
}
