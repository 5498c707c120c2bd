//! Which commands of ROS 2 nodes are too old, if the clocks of nodes and robot need not agree. PURE.
//!
//! A command has the time at which it was sent, by the clock of its computer. How much longer it took
//! than the fastest command of the last half minute is known without that clock: see [`Lag`]. Two rules
//! protect what that cannot:
//!
//! - The first commands of a publisher are compared with nothing, so their times count as they are.
//! - A time in the future would be the fastest for half a minute, and later commands would seem late.
//!   So such commands are refused, unless the clocks are said not to agree.

use std::time::Duration;

use amber_robot::lag::Lag;

use super::convert::Refusal;
use crate::limits::{CLOCK_TROUBLE, ROS_AGE, ROS_SETTLED};

/// The known times of one publisher.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    lag: Lag,
    /// The first command, and the last one.
    known: Option<(Duration, Duration)>,
    /// How much the clock of the robot is ahead of that of the publisher, with the delay of the network.
    behind_ns: i128,
}

impl Clock {
    /// A command has arrived that was sent at `sent_ns` by the clock of its computer. `now` is any clock
    /// that never goes back, `now_ns` is that of the robot, both in nanoseconds since 1970.
    ///
    /// # Errors
    /// The network has delayed it, or it comes from the future.
    pub fn check(
        &mut self,
        now: Duration,
        now_ns: u64,
        sent_ns: u64,
        clocks_agree: bool,
    ) -> Result<(), Refusal> {
        let took_ns = i128::from(now_ns) - i128::from(sent_ns);
        let limit_ns = ROS_AGE.as_nanos() as i128;
        if clocks_agree && took_ns < -limit_ns {
            self.behind_ns = took_ns;
            return Err(Refusal::Future);
        }
        let lag = self.lag.arrived(now, sent_ns);
        self.behind_ns = took_ns - lag.as_nanos() as i128;
        let since = match self.known {
            Some((first, last)) if now < last + ROS_FORGOTTEN => first,
            _ => now,
        };
        self.known = Some((since, now));
        let is_new = now < since + ROS_SETTLED;
        if lag > ROS_AGE || (clocks_agree && is_new && took_ns > limit_ns) {
            return Err(Refusal::Old);
        }
        Ok(())
    }

    /// How many milliseconds the clock of the publisher is ahead, or behind if negative, if that is
    /// more than the network explains.
    #[must_use]
    pub fn trouble_ms(&self) -> Option<i64> {
        let ahead_ms = -self.behind_ns / 1_000_000;
        let is_trouble = ahead_ms.unsigned_abs() > CLOCK_TROUBLE.as_millis();
        is_trouble.then(|| i64::try_from(ahead_ms).unwrap_or(i64::MAX))
    }
}

/// As long as [`Lag`] remembers.
const ROS_FORGOTTEN: Duration = Duration::from_secs(600);

/// What to say about a clock.
#[must_use]
pub fn in_words(ahead_ms: i64) -> String {
    let seconds = ahead_ms.unsigned_abs() as f64 / 1000.0;
    let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
    format!("{seconds:.1} s {way} that of the robot")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: u64 = 1_700_000_000_000_000_000;

    /// Commands as (sent at, takes) in milliseconds, from a clock that is ahead by so much.
    fn check(agree: bool, ahead_ms: i64, commands: &[(u64, u64)]) -> (Vec<&'static str>, Clock) {
        let mut clock = Clock::default();
        let checked = commands.iter().map(|(sent_ms, takes_ms)| {
            let now = Duration::from_millis(sent_ms + takes_ms);
            let now_ns = NOW_NS + now.as_nanos() as u64;
            let sent_ns =
                (NOW_NS + sent_ms * 1_000_000).saturating_add_signed(ahead_ms * 1_000_000);
            match clock.check(now, now_ns, sent_ns, agree) {
                Ok(()) => "ok",
                Err(Refusal::Old) => "old",
                Err(Refusal::Future) => "future",
                Err(_) => "other",
            }
        });
        (checked.collect(), clock)
    }

    #[test]
    fn what_the_network_has_delayed_is_old_whatever_the_clocks_say() {
        let commands = [
            (0, 20),
            (1_200, 20),
            (2_000, 600),
            (2_500, 500),
            (2_900, 30),
        ];
        for (agree, ahead_ms) in [(true, 0), (false, 0), (false, 86_400_000), (false, -700)] {
            let (found, _) = check(agree, ahead_ms, &commands);
            assert_eq!(found, ["ok", "ok", "old", "ok", "ok"], "{agree} {ahead_ms}");
        }
    }

    #[test]
    fn a_clock_that_is_behind_is_understood_after_a_second_and_said() {
        let commands = [(0, 20), (900, 20), (1_100, 20), (2_000, 700), (2_800, 20)];
        let (found, clock) = check(true, -700, &commands);
        assert_eq!(found, ["old", "old", "ok", "old", "ok"]);
        assert_eq!(clock.trouble_ms(), Some(-720));
        assert_eq!(in_words(-720), "0.7 s behind that of the robot");
        // The clocks agree: an old command at the start is one.
        let (found, clock) = check(true, 0, &[(0, 3_000), (2_990, 20), (3_000, 20)]);
        assert_eq!(found, ["old", "ok", "ok"]);
        assert_eq!(clock.trouble_ms(), None);
    }

    #[test]
    fn a_command_from_the_future_is_refused_and_spoils_nothing() {
        let (found, clock) = check(true, 3_600_000, &[(0, 20), (2_000, 20)]);
        assert_eq!(found, ["future", "future"]);
        assert_eq!(clock.trouble_ms(), Some(3_599_980));
        assert_eq!(in_words(700), "0.7 s ahead of that of the robot");
        // The clock is set right: its commands count at once.
        let mut clock = clock;
        let now = Duration::from_secs(3);
        let right = clock.check(now, NOW_NS, NOW_NS - 20_000_000, true);
        assert_eq!((right, clock.trouble_ms()), (Ok(()), None));
    }
}
