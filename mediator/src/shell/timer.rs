//! Wakes the loop for the next alarm. IO.
//!
//! Linux: one timer that lives as long as the loop. The next alarm is usually later than the
//! previous one, because most alarms are postponed by each message. The timer is then left as it
//! is: it fires too early, and is set anew. Waiting with a timeout instead would make the system
//! set and cancel a timer in each turn, which a virtual machine has to ask its host for.

use std::io;
use std::time::{Duration, Instant};

use mio::Registry;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Timer {
    timer: imp::Timer,
    /// When it fires.
    set: Option<Instant>,
}

impl Timer {
    /// A timer whose events are [`Source::Timer`](super::poll::Source::Timer).
    pub(super) fn new(registry: &Registry) -> io::Result<Self> {
        Ok(Self {
            timer: imp::Timer::new(registry)?,
            set: None,
        })
    }

    /// The loop is about to wait, and must wake at `next`. Returns the timeout for waiting: `None`
    /// if the timer wakes the loop, or if there is no alarm. The loop may wake too early.
    pub(super) fn timeout(&mut self, next: Option<Instant>) -> Option<Duration> {
        let next = next?;
        if self.set.is_some_and(|set| set <= next) {
            return None;
        }
        // Handling the last alarm may have taken time.
        let time = next.saturating_duration_since(Instant::now());
        if time.is_zero() || !self.timer.set(time) {
            return Some(time);
        }
        self.set = Some(next);
        None
    }

    /// It has fired.
    pub(super) fn fired(&mut self) {
        self.set = None;
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry};
    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

    use super::super::poll::Source;

    #[derive(Debug)]
    pub(super) struct Timer(TimerFd);

    impl Timer {
        pub(super) fn new(registry: &Registry) -> io::Result<Self> {
            // The clock of `Instant`.
            let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
            let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
            let token = Source::Timer.into();
            let descriptor = timer.as_fd().as_raw_fd();
            registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
            Ok(Self(timer))
        }

        /// Makes it fire after this time, which is not zero. Setting it again replaces that, so
        /// nothing reads it.
        pub(super) fn set(&self, time: Duration) -> bool {
            let after = Expiration::OneShot(TimeSpec::from_duration(time));
            self.0.set(after, TimerSetTimeFlags::empty()).is_ok()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;
    use std::time::Duration;

    use mio::Registry;

    #[derive(Debug)]
    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new(_: &Registry) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn set(&self, _: Duration) -> bool {
            false
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use mio::{Events, Poll};

    use super::super::poll::Source;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    struct Loop {
        poll: Poll,
        timer: Timer,
    }

    impl Loop {
        fn new() -> Self {
            let poll = Poll::new().unwrap();
            let timer = Timer::new(poll.registry()).unwrap();
            Self { poll, timer }
        }

        /// Waits until an alarm that is due at this time, like the loop of the mediator. Returns
        /// how often it woke up.
        fn wait_until(&mut self, next: Instant) -> u32 {
            let (mut events, mut wakes) = (Events::with_capacity(8), 0);
            while Instant::now() < next {
                let timeout = self.timer.timeout(Some(next));
                self.poll.poll(&mut events, timeout).unwrap();
                wakes += 1;
                for event in &events {
                    assert_eq!(Source::from(event.token()), Source::Timer);
                    self.timer.fired();
                }
            }
            wakes
        }
    }

    #[test]
    fn it_wakes_the_loop_at_the_next_alarm() {
        let mut world = Loop::new();
        for _ in 0..3 {
            let begin = Instant::now();
            assert_eq!(world.wait_until(begin + 5 * MS), 1);
            assert!(begin.elapsed() >= 5 * MS);
        }
    }

    #[test]
    fn a_postponed_alarm_wakes_the_loop_once_too_early() {
        let mut world = Loop::new();
        let begin = Instant::now();
        for ms in 20..40 {
            assert_eq!(world.timer.timeout(Some(begin + ms * MS)), None);
        }
        assert_eq!(world.timer.set, Some(begin + 20 * MS), "it is set once");
        assert!(world.wait_until(begin + 40 * MS) <= 2);
    }

    #[test]
    fn an_earlier_alarm_comes_first() {
        let mut world = Loop::new();
        let begin = Instant::now();
        assert_eq!(world.timer.timeout(Some(begin + 3_600_000 * MS)), None);
        assert_eq!(world.wait_until(begin + 5 * MS), 1);
    }

    #[test]
    fn an_alarm_that_is_due_needs_no_timer() {
        let mut world = Loop::new();
        let past = Instant::now();
        assert_eq!(world.timer.timeout(Some(past)), Some(Duration::ZERO));
        assert_eq!((world.timer.set, world.timer.timeout(None)), (None, None));
    }
}
