//! Ctrl-C and other signals, for commands that must stop the robot before they end. IO.

use std::time::{Duration, Instant};

use amber_terminal::Failure;

use crate::platform::Signals;

/// Signals within this time are one: `timeout -s INT`, terminals and process supervisors send the same
/// signal to the process and to its group, a few milliseconds apart.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// The signals that end this process.
pub(super) struct End {
    last: Last,
    signals: Signals,
}

impl End {
    /// From here on, the signals no longer end the process.
    pub(super) fn new() -> Result<Self, Failure> {
        let signals = Signals::listen();
        Ok(Self {
            last: Last::default(),
            signals: signals
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?,
        })
    }

    /// Waits for the next signal to end. One that comes right after another is the same.
    pub(super) async fn wait(&mut self) {
        loop {
            self.signals.next().await;
            if self.last.is_next(Instant::now()) {
                return;
            }
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
