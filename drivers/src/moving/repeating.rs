//! A command for another device, which is repeated while it holds. PURE.
//!
//! While something moves, the command is repeated, so that it may hold only briefly at the other device.
//! A stop is repeated for a while, because a message may be lost. After that nothing is sent, so that
//! others may move the device.

use std::time::{Duration, Instant};

use amber_driver::ClientId;

/// How often a command is repeated, ...
pub(crate) const PERIOD: Duration = Duration::from_millis(50);
/// ... and how long it holds at the other device: six periods, so that a few lost messages and a busy
/// computer do not matter. If the driver, the mediator or the network freezes, the device stops then.
pub(crate) const VALIDITY: Duration = Duration::from_millis(300);
/// A new command is sent at once, but not sooner than this after the last one.
const MIN_PERIOD: Duration = Duration::from_millis(10);
/// How long a stop is repeated.
const REPEAT_STOP: Duration = Duration::from_millis(500);

/// See the [module](self). `C` is a command; its default is the stop.
#[derive(Debug)]
pub(crate) struct Repeating<C> {
    told: C,
    commanders: Vec<ClientId>,
    commanded_at: Instant,
    /// It stops this long after the last command.
    idle_stop: Option<Duration>,
    sent_at: Option<Instant>,
    due: Instant,
    /// When something other than a stop was sent last, or a stop must be repeated again.
    moved_at: Option<Instant>,
}

impl<C: Copy + Default + PartialEq> Repeating<C> {
    /// Nothing moves.
    pub(crate) fn new(now: Instant, idle_stop: Option<Duration>) -> Self {
        Self {
            told: C::default(),
            commanders: Vec::new(),
            commanded_at: now,
            idle_stop,
            sent_at: None,
            due: now,
            moved_at: None,
        }
    }

    /// Takes the command of these clients.
    pub(crate) fn command(&mut self, now: Instant, clients: &[ClientId], command: C) {
        self.commanders = clients.to_vec();
        self.commanded_at = now;
        self.tell(now, command);
    }

    /// Stops.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.tell(now, C::default());
    }

    /// Repeats the stop again if the device was moved before: it may have missed it.
    pub(crate) fn stop_again(&mut self, now: Instant) {
        self.stop(now);
        if self.sent_at.is_some() {
            self.moved_at = Some(now);
            self.due = self.due.min(now);
        }
    }

    /// Stops if no command has come for too long. Returns whether that is so.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let is_idle = self.idle_at().is_some_and(|due| now >= due);
        if is_idle {
            self.stop(now);
        }
        is_idle
    }

    /// What to send now.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<C> {
        if now < self.due {
            return None;
        }
        self.due = now + PERIOD;
        if self.moves() {
            self.moved_at = Some(now);
        }
        let moved_at = self.moved_at?;
        if now.saturating_duration_since(moved_at) > REPEAT_STOP {
            self.moved_at = None;
            return None;
        }
        self.sent_at = Some(now);
        Some(self.told)
    }

    /// The driver ends: the stop, if something may move.
    pub(crate) fn last(&mut self) -> Option<C> {
        self.told = C::default();
        self.moved_at.take().map(|_| self.told)
    }

    /// When to call [`Self::expire`] and [`Self::poll`].
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let sends = self.moves() || self.moved_at.is_some();
        let due = sends.then_some(self.due);
        due.into_iter().chain(self.idle_at()).min()
    }

    /// Whether the device is told to move.
    pub(crate) fn moves(&self) -> bool {
        self.told != C::default()
    }

    /// The command that holds.
    pub(crate) fn told(&self) -> C {
        self.told
    }

    /// The clients that sent the last command.
    pub(crate) fn commanders(&self) -> &[ClientId] {
        &self.commanders
    }

    fn tell(&mut self, now: Instant, command: C) {
        if command == self.told {
            return;
        }
        self.told = command;
        let soon = self.sent_at.map_or(now, |at| at + MIN_PERIOD);
        self.due = self.due.min(soon);
    }

    fn idle_at(&self) -> Option<Instant> {
        let idle_stop = self.idle_stop?;
        self.moves().then(|| self.commanded_at + idle_stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What is sent within a time, in milliseconds from its beginning, and the end of the time.
    fn sent(
        repeating: &mut Repeating<i32>,
        from: Instant,
        time_ms: u32,
    ) -> (Vec<(u32, i32)>, Instant) {
        let mut sent = Vec::new();
        for ms in 0..time_ms {
            let now = from + MS * ms;
            if repeating.wake_at().is_some_and(|at| at <= now) {
                repeating.expire(now);
                sent.extend(repeating.poll(now).map(|command| (ms, command)));
            }
        }
        (sent, from + MS * time_ms)
    }

    #[test]
    fn a_command_is_repeated_until_it_expires_and_then_the_stop_for_a_while() {
        let start = Instant::now();
        let mut repeating = Repeating::new(start, Some(MS * 200));
        assert_eq!(repeating.wake_at(), None);
        repeating.command(start, &[ClientId(3)], 7);
        assert_eq!(repeating.commanders(), [ClientId(3)]);
        let (moving, now) = sent(&mut repeating, start, 200);
        assert_eq!(moving, [(0, 7), (50, 7), (100, 7), (150, 7)]);
        let (stops, now) = sent(&mut repeating, now, 1_000);
        let expected: Vec<_> = (0..10).map(|time| (time * 50, 0)).collect();
        assert_eq!(stops, expected);
        assert_eq!((repeating.wake_at(), repeating.last()), (None, None));
        // It is repeated again if it may have been missed.
        repeating.stop_again(now);
        let (stops, _) = sent(&mut repeating, now, 1_000);
        assert_eq!((stops[0], stops.len()), ((0, 0), 11));
    }

    #[test]
    fn a_new_command_is_sent_at_once_but_not_too_often() {
        let start = Instant::now();
        let mut repeating = Repeating::new(start, None);
        repeating.command(start, &[], 1);
        assert_eq!(repeating.poll(start), Some(1));
        repeating.command(start + MS * 4, &[], 2);
        assert_eq!(repeating.poll(start + MS * 4), None);
        assert_eq!(repeating.wake_at(), Some(start + MS * 10));
        assert_eq!(repeating.poll(start + MS * 10), Some(2));
        repeating.stop(start + MS * 30);
        assert_eq!(repeating.poll(start + MS * 30), Some(0));
        assert!(!repeating.moves());
    }

    #[test]
    fn what_never_moved_is_not_stopped() {
        let start = Instant::now();
        let mut repeating = Repeating::<i32>::new(start, Some(MS * 200));
        repeating.stop(start);
        repeating.stop_again(start);
        assert_eq!((repeating.poll(start), repeating.last()), (None, None));
        repeating.command(start + MS, &[], 5);
        repeating.poll(start + MS * 50);
        assert_eq!((repeating.last(), repeating.last()), (Some(0), None));
        assert!(!repeating.expire(start + MS * 900));
    }
}
