//! Waiting until a time, to within about a tenth of a millisecond where the system can. IO.
//!
//! The timers of tokio have milliseconds. A machine that sends packets half a millisecond apart would
//! send two or three at once with them.

use std::time::Instant;

use tokio::time::sleep_until;

/// Wakes the loop of a gateway.
#[derive(Debug)]
pub(super) struct Alarm {
    #[cfg(target_os = "linux")]
    precise: Option<precise::Timer>,
}

impl Alarm {
    /// A precise one costs two more system calls each time.
    pub(super) fn new(is_precise: bool) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = is_precise;
        Self {
            #[cfg(target_os = "linux")]
            precise: is_precise.then(precise::Timer::new).and_then(Result::ok),
        }
    }

    /// Waits until a time; for ever without one. Dropping the future loses nothing.
    pub(super) async fn until(&self, due: Option<Instant>) {
        let Some(due) = due else {
            return std::future::pending().await;
        };
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.precise
            && timer.until(due).await.is_ok()
        {
            return;
        }
        sleep_until(due.into()).await;
    }
}

#[cfg(target_os = "linux")]
mod precise {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    use amber_driver::now;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::time::sleep_until;

    /// The timers of tokio are late by at most one millisecond.
    const COARSE: Duration = Duration::from_millis(2);

    /// A timer of the system.
    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    /// Registers a timer with the runtime.
    #[expect(
        deprecated,
        reason = "the replacement needs unsafe code; an owned file stays open"
    )]
    fn registered(timer: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(timer, Interest::READABLE)
    }

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registered(timer).map(Self)
        }

        pub(super) async fn until(&self, due: Instant) -> io::Result<()> {
            if let Some(early) = due.checked_sub(COARSE)
                && early > now()
            {
                sleep_until(early.into()).await;
            }
            let left = due.saturating_duration_since(now());
            if left.is_zero() {
                return Ok(());
            }
            let once = Itimerspec {
                it_interval: Timespec::default(),
                // At most `COARSE`.
                it_value: Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let mut times = [0; 8];
                // An earlier alarm may have left it ready.
                let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut times)?));
                if let Ok(read) = read {
                    return read.map(|_| ());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use amber_driver::now;

    use super::*;

    /// By how much the alarm is late, in the best tenth of many times: other programs may use the
    /// processor in between.
    async fn lateness(alarm: &Alarm) -> Duration {
        let mut late = Vec::new();
        for _ in 0..200 {
            let due = now() + Duration::from_micros(500);
            alarm.until(Some(due)).await;
            late.push(now().checked_duration_since(due).expect("not early"));
        }
        late.sort();
        late[late.len() / 10]
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_precise_alarm_is_late_by_less_than_a_timer_of_tokio() {
        let late = lateness(&Alarm::new(true)).await;
        assert!(late < Duration::from_micros(300), "{late:?}");
    }

    #[tokio::test]
    async fn an_alarm_can_be_given_up_and_set_again() {
        for alarm in [Alarm::new(true), Alarm::new(false)] {
            let far = now() + Duration::from_secs(3600);
            let near = now() + Duration::from_millis(1);
            tokio::select! {
                () = alarm.until(Some(far)) => panic!("an hour has passed"),
                () = alarm.until(None) => panic!("there is no end of for ever"),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            alarm.until(Some(near)).await;
            let next = now() + Duration::from_millis(1);
            alarm.until(Some(next)).await;
            assert!(now() >= next);
        }
    }
}
