//! Simulated time, which goes slower while the machine has no time for the simulation. PURE.
//!
//! Simulated time is real time multiplied by the speed. A simulation that gets the processor later
//! than it wanted does not jump over the time in between: the robot would drive unseen, and the laser
//! would skip turns, while the programs that steer the robot also waited for the processor. More than
//! [`LATE`] of such a delay is left out of simulated time. All devices and the world have this one
//! clock, so motion, encoders and scans stay consistent with each other.
//!
//! Drivers and clients have real time, as on a real robot. What expires there, such as a lease or a
//! command with a time limit, also expires on a busy machine.

use std::time::Duration;

/// A delay up to this is not left out. Also on an idle machine, the system wakes a program some
/// milliseconds late.
const LATE: Duration = Duration::from_millis(20);

/// The clock of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    speed: f64,
    /// Simulated time.
    now: Duration,
    /// Real time that was left out.
    left_out: Duration,
}

impl Clock {
    /// A clock at zero.
    pub(crate) fn new(speed: f64) -> Self {
        Self {
            speed,
            now: Duration::ZERO,
            left_out: Duration::ZERO,
        }
    }

    /// Simulated time at the last call of [`Clock::advance`].
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Real time that is missing in simulated time.
    pub(crate) fn left_out(&self) -> Duration {
        self.left_out
    }

    /// The simulation works now, at this real time since the start. `due` is when it wanted to work
    /// at the latest, in simulated time: `None` if nothing changes by itself.
    pub(crate) fn advance(&mut self, real: Duration, due: Option<Duration>) -> Duration {
        let passed = real.saturating_sub(self.left_out);
        let mut now = passed.mul_f64(self.speed).max(self.now);
        let latest = due.map(|due| due.max(self.now) + LATE.mul_f64(self.speed));
        if let Some(latest) = latest.filter(|latest| now > *latest) {
            self.left_out += (now - latest).div_f64(self.speed);
            now = latest;
        }
        self.now = now;
        now
    }

    /// The real time since the start at this simulated time, if nothing is left out until then.
    pub(crate) fn real(&self, simulated: Duration) -> Duration {
        self.left_out + simulated.div_f64(self.speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn in_time_it_is_real_time_multiplied_by_the_speed() {
        let mut clock = Clock::new(2.0);
        assert_eq!(clock.real(ms(100)), ms(50));
        assert_eq!(clock.advance(ms(50), Some(ms(100))), ms(100));
        // Bytes came before it was due, and the system woke it a little late.
        assert_eq!(clock.advance(ms(60), Some(ms(200))), ms(120));
        assert_eq!(clock.advance(ms(115), Some(ms(200))), ms(230));
        assert_eq!(clock.left_out(), Duration::ZERO);
    }

    #[test]
    fn a_delay_is_left_out_and_stays_so() {
        let mut clock = Clock::new(1.0);
        clock.advance(ms(100), Some(ms(100)));
        let stopped = clock.advance(ms(650), Some(ms(150)));
        assert_eq!(stopped, ms(150) + LATE);
        assert_eq!(clock.left_out(), ms(500) - LATE);
        // From there it goes on at the usual speed.
        let due = stopped + ms(30);
        assert_eq!(clock.real(due), ms(680));
        assert_eq!(clock.advance(ms(680), Some(due)), due);
    }

    #[test]
    fn work_that_is_overdue_moves_the_time_by_small_steps_only() {
        let mut clock = Clock::new(1.0);
        for turn in 1..=5 {
            let now = clock.advance(ms(1_000 * turn), Some(Duration::ZERO));
            assert_eq!(now, LATE * turn as u32);
        }
    }

    #[test]
    fn at_rest_any_time_may_pass() {
        let mut clock = Clock::new(1.0);
        assert_eq!(clock.advance(ms(60_000), None), ms(60_000));
        assert_eq!(clock.left_out(), Duration::ZERO);
    }

    #[test]
    fn it_never_goes_back() {
        let mut clock = Clock::new(3.0);
        let mut before = Duration::ZERO;
        for real in (0..3_000).map(|step| ms(7 * step)) {
            let due = before + ms(real.as_millis() as u64 % 50);
            let now = clock.advance(real, (real.as_millis() % 5 > 0).then_some(due));
            assert!(now >= before, "{now:?} after {before:?}");
            before = now;
        }
    }
}
