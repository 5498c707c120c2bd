//! The clock of a player: it runs at any rate, pauses and jumps. PURE.

use std::time::{Duration, Instant};

use super::limits::{MAX_RATE, MIN_LAP, MIN_RATE};

/// The time from the first to the last message of a recording, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first message.
    pub first_ns: u64,
    /// The last message.
    pub last_ns: u64,
}

impl Span {
    /// The length.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.last_ns.saturating_sub(self.first_ns))
    }

    /// The time since the first message.
    pub fn offset(&self, time_ns: u64) -> Duration {
        Duration::from_nanos(time_ns.saturating_sub(self.first_ns))
    }

    /// The end of a round of a repeated recording. A recording with a single message must not keep
    /// a CPU core busy.
    pub fn end_ns(&self) -> u64 {
        let shortest = u64::try_from(MIN_LAP.as_nanos()).unwrap_or(u64::MAX);
        self.last_ns.max(self.first_ns.saturating_add(shortest))
    }
}

/// A position in a recording that moves with the time.
#[derive(Clone, Debug)]
pub struct Clock {
    span: Span,
    rate: f64,
    position_ns: u64,
    /// When it was at this position; `None` while it is paused.
    since: Option<Instant>,
}

impl Clock {
    /// A paused clock at the start of a recording.
    pub fn new(span: Span) -> Self {
        Self {
            span,
            rate: 1.0,
            position_ns: span.first_ns,
            since: None,
        }
    }

    /// The recording.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The position, in nanoseconds since 1970.
    pub fn position_ns(&self, now: Instant) -> u64 {
        let Some(since) = self.since else {
            return self.position_ns;
        };
        let passed_ns = now.saturating_duration_since(since).as_nanos() as f64 * self.rate;
        // Converting to an integer saturates.
        let position_ns = self.position_ns.saturating_add(passed_ns as u64);
        position_ns.min(self.span.end_ns())
    }

    /// When it will be at a position; `None` while it is paused.
    pub fn when(&self, position_ns: u64) -> Option<Instant> {
        let since = self.since?;
        let wait_ns = position_ns.saturating_sub(self.position_ns) as f64 / self.rate;
        // A wait that is too long for the clock of the system never ends.
        since.checked_add(Duration::from_nanos(wait_ns as u64))
    }

    /// The rate, relative to the recording.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Changes the rate, within the limits.
    pub fn set_rate(&mut self, now: Instant, rate: f64) {
        self.keep(now);
        if rate.is_finite() {
            self.rate = rate.clamp(MIN_RATE, MAX_RATE);
        }
    }

    /// Whether it stands still.
    pub fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// Stands still from now on.
    pub fn pause(&mut self, now: Instant) {
        self.keep(now);
        self.since = None;
    }

    /// Runs from now on.
    pub fn resume(&mut self, now: Instant) {
        self.since = self.since.or(Some(now));
    }

    /// Jumps to a position within the recording.
    pub fn jump(&mut self, now: Instant, position_ns: u64) {
        self.position_ns = position_ns.clamp(self.span.first_ns, self.span.end_ns());
        self.since = self.since.map(|_| now);
    }

    /// Jumps forwards or backwards. Returns the new position.
    pub fn jump_by(&mut self, now: Instant, by_ms: i64) -> u64 {
        let by_ns = by_ms.saturating_mul(1_000_000);
        let to_ns = self.position_ns(now).saturating_add_signed(by_ns);
        self.jump(now, to_ns);
        self.position_ns
    }

    fn keep(&mut self, now: Instant) {
        self.position_ns = self.position_ns(now);
        self.since = self.since.map(|_| now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const SPAN: Span = Span {
        first_ns: 100 * SECOND,
        last_ns: 160 * SECOND,
    };

    fn after(start: Instant, seconds: f64) -> Instant {
        start + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn it_runs_at_its_rate_and_stands_still_while_paused() {
        let start = Instant::now();
        let mut clock = Clock::new(SPAN);
        assert_eq!(clock.position_ns(after(start, 9.0)), 100 * SECOND);
        assert_eq!(clock.when(101 * SECOND), None);
        clock.resume(start);
        assert_eq!(clock.position_ns(after(start, 1.5)), 101_500_000_000);
        assert_eq!(clock.when(102 * SECOND), Some(after(start, 2.0)));
        clock.set_rate(after(start, 2.0), 4.0);
        assert_eq!(clock.position_ns(after(start, 3.0)), 106 * SECOND);
        assert_eq!(clock.when(110 * SECOND), Some(after(start, 4.0)));
        clock.pause(after(start, 3.0));
        assert_eq!(clock.position_ns(after(start, 50.0)), 106 * SECOND);
        clock.resume(after(start, 60.0));
        clock.resume(after(start, 60.5));
        assert_eq!(clock.position_ns(after(start, 61.0)), 110 * SECOND);
        assert_eq!(clock.position_ns(after(start, 999.0)), 160 * SECOND);
    }

    #[test]
    fn it_jumps_within_the_recording() {
        let start = Instant::now();
        let mut clock = Clock::new(SPAN);
        assert_eq!(clock.jump_by(start, 5000), 105 * SECOND);
        assert_eq!(clock.jump_by(start, -9000), 100 * SECOND);
        assert_eq!(clock.jump_by(start, i64::MAX), 160 * SECOND);
        assert_eq!(clock.jump_by(start, i64::MIN), 100 * SECOND);
        clock.resume(start);
        clock.jump(after(start, 1.0), 120 * SECOND);
        assert_eq!(clock.position_ns(after(start, 2.0)), 121 * SECOND);
    }

    #[test]
    fn the_rate_stays_within_its_limits() {
        let now = Instant::now();
        let mut clock = Clock::new(SPAN);
        for (wanted, rate) in [
            (2.0, 2.0),
            (0.0, MIN_RATE),
            (-1.0, MIN_RATE),
            (1e9, MAX_RATE),
            (f64::NAN, MAX_RATE),
        ] {
            clock.set_rate(now, wanted);
            assert_eq!(clock.rate(), rate, "{wanted}");
        }
    }

    #[test]
    fn a_round_takes_some_time() {
        let span = Span {
            first_ns: 7,
            last_ns: 7,
        };
        assert_eq!(span.end_ns(), 100_000_007);
        assert_eq!(SPAN.end_ns(), SPAN.last_ns);
    }
}
