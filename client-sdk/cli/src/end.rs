//! Ctrl-C, Ctrl-Z, SIGTERM and SIGHUP, for commands that must stop the robot before they end. IO.

use std::time::{Duration, Instant};

use amber_terminal::Failure;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

/// Signals within this time are one: `timeout -s INT`, terminals and process supervisors send the same
/// signal to the process and to its group, a few milliseconds apart.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// The signal of Ctrl-Z. A robot must not wait for a process that sleeps, so it ends the process, too.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SIGTSTP: std::ffi::c_int = 20;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const SIGTSTP: std::ffi::c_int = 18;

/// The signals that end this process.
pub(super) struct End {
    last: Last,
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 4],
}

impl End {
    /// From here on, the signals no longer end the process.
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            last: Last::default(),
            signals: [
                listen(SignalKind::interrupt())?,
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
                listen(SignalKind::from_raw(SIGTSTP))?,
            ],
        })
    }

    /// Waits for one of the signals.
    #[cfg(unix)]
    async fn any(&mut self) {
        let [interrupt, terminate, hangup, sleep] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = sleep.recv() => {}
        }
    }

    /// Waits for the next signal to end. One that comes right after another is the same.
    pub(super) async fn wait(&mut self) {
        loop {
            self.any().await;
            if self.last.is_next(Instant::now()) {
                return;
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            last: Last::default(),
        })
    }

    #[cfg(not(unix))]
    async fn any(&mut self) {
        // An error means that Ctrl-C is not available.
        if super::interrupt().await.is_err() {
            std::future::pending().await
        }
    }
}

/// The time of the last signal that counted.
#[derive(Default)]
struct Last(Option<Instant>);

impl Last {
    /// Whether a signal at this time is not the same as the last one.
    fn is_next(&mut self, now: Instant) -> bool {
        let is_next = self
            .0
            .is_none_or(|last| now.saturating_duration_since(last) >= ONE_SIGNAL);
        if is_next {
            self.0 = Some(now);
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_half_a_second_are_one() {
        let (mut last, start) = (Last::default(), Instant::now());
        let times = [0, 3, 499, 500, 700, 1100];
        let next = times.map(|at_ms| last.is_next(start + Duration::from_millis(at_ms)));
        assert_eq!(next, [true, false, false, true, false, true]);
    }
}
