//! Watches what a client gets of a driver: each reading in time, or an outage with a cause, which the
//! driver reports and recovers from. PURE.
//!
//! Time is a [`Duration`] since the start.

use std::fmt;
use std::time::Duration;

/// An outage of at least this length must be reported.
const REPORTED: Duration = Duration::from_secs(6);
/// What a reading may be late beside half a period.
const JITTER: Duration = Duration::from_millis(30);

/// Why readings may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The driver has only just started.
    Start,
    /// The device was unplugged.
    Unplug,
    /// The device answers nothing, or holds its bus.
    Silence,
    /// A bit of every fourth message or transfer is wrong.
    Noise,
    /// Some hundred bytes of nothing came from the port.
    Garbage,
}

impl Cause {
    /// All causes, in the order of the tables.
    pub const ALL: [Self; 5] = [
        Self::Start,
        Self::Unplug,
        Self::Silence,
        Self::Noise,
        Self::Garbage,
    ];
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Readings that arrived.
    pub readings: u64,
    /// Readings that were due and did not arrive.
    pub missing: u64,
    /// Commands that the driver has refused.
    pub refused: u64,
    /// Faults by their cause, in the order of [`Cause::ALL`].
    pub faults: [u64; 5],
    /// The longest time from the end of a fault until readings were in time again.
    pub slowest: [Duration; 5],
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            readings,
            missing,
            refused,
            ..
        } = self;
        write!(
            f,
            "{readings} readings, {missing} missing, {refused} refused"
        )?;
        for (cause, (count, slowest)) in
            (Cause::ALL.iter()).zip(self.faults.iter().zip(&self.slowest))
        {
            write!(f, "; {cause:?} {count}x {:.2} s", slowest.as_secs_f64())?;
        }
        Ok(())
    }
}

/// What is known of the readings of one device.
#[derive(Debug)]
pub struct Watch {
    period: Duration,
    /// In the order of [`Cause::ALL`].
    limits: [Duration; 5],
    /// The last fault.
    cause: Cause,
    ends: Duration,
    last: Duration,
    has_begun: bool,
    trouble: Option<String>,
    /// Whether the driver has reported trouble since the last reading.
    is_reported: bool,
    /// What happened so far.
    pub counts: Counts,
}

impl Watch {
    /// A driver starts, of whose device a reading is due once in each period. `limits` are the longest
    /// times to recover, in the order of [`Cause::ALL`].
    #[must_use]
    pub fn new(period: Duration, limits: [Duration; 5]) -> Self {
        let mut counts = Counts::default();
        counts.faults[Cause::Start as usize] = 1;
        Self {
            period,
            limits,
            cause: Cause::Start,
            ends: Duration::ZERO,
            last: Duration::ZERO,
            has_begun: false,
            trouble: None,
            is_reported: false,
            counts,
        }
    }

    /// A fault begins now, and ends then. The one before it must be over.
    ///
    /// # Errors
    /// The driver still reports trouble.
    pub fn handle_fault(&mut self, cause: Cause, ends: Duration) -> Result<(), String> {
        if let Some(trouble) = &self.trouble {
            let before = self.cause;
            return Err(format!("it works after {before:?}, and reports: {trouble}"));
        }
        (self.cause, self.ends) = (cause, ends);
        self.counts.faults[cause as usize] += 1;
        Ok(())
    }

    /// The driver reports that its device works, or why not.
    pub fn handle_health(&mut self, trouble: Option<String>) {
        self.is_reported |= trouble.is_some();
        self.trouble = trouble;
    }

    /// A command was refused instead of carried out.
    pub fn handle_refusal(&mut self) {
        self.is_reported = true;
        self.counts.refused += 1;
    }

    /// A reading arrives.
    ///
    /// # Errors
    /// Readings before it are missing without a cause, or the outage was not reported.
    pub fn handle_reading(&mut self, now: Duration) -> Result<(), String> {
        self.check(now)?;
        let gap = now - self.last;
        if self.has_begun && self.is_late(gap) {
            let periods = gap.as_secs_f64() / self.period.as_secs_f64();
            self.counts.missing += (periods.round() as u64).saturating_sub(1);
            if gap > REPORTED + self.period && !self.is_reported {
                let seconds = gap.as_secs_f64();
                return Err(format!(
                    "nothing was said in {seconds:.1} s without readings"
                ));
            }
        }
        if !self.has_begun || self.is_late(gap) {
            let slowest = &mut self.counts.slowest[self.cause as usize];
            *slowest = (*slowest).max(now.saturating_sub(self.ends));
        }
        self.has_begun = true;
        self.last = now;
        self.is_reported = self.trouble.is_some();
        self.counts.readings += 1;
        Ok(())
    }

    /// Checks that the last reading is not too old.
    ///
    /// # Errors
    /// Readings are missing without a cause.
    pub fn check(&self, now: Duration) -> Result<(), String> {
        let until = self.ends + self.limits[self.cause as usize];
        if now <= until || !self.is_late(now - self.last) {
            return Ok(());
        }
        let seconds = |time: Duration| time.as_secs_f64();
        Err(format!(
            "no reading from {:.2} to {:.2} s; the last fault was {:?}, until {:.2} s; the driver \
             reports: {:?}",
            seconds(self.last),
            seconds(now),
            self.cause,
            seconds(self.ends),
            self.trouble
        ))
    }

    /// When the driver must have recovered from the last fault.
    #[must_use]
    pub fn settled_at(&self) -> Duration {
        self.ends + self.limits[self.cause as usize]
    }

    fn is_late(&self, gap: Duration) -> bool {
        gap > self.period * 3 / 2 + JITTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A watch after a start of 400 ms.
    fn started() -> Watch {
        let mut watch = Watch::new(100 * MS, [500 * MS; 5]);
        for ms in [400, 500, 600] {
            watch.handle_reading(ms * MS).unwrap();
        }
        assert_eq!(watch.counts.slowest[0], 400 * MS);
        watch
    }

    #[test]
    fn a_reading_that_is_missing_without_a_fault_is_an_error() {
        let mut watch = started();
        assert_eq!(watch.check(780 * MS), Ok(()));
        assert!(
            watch
                .handle_reading(900 * MS)
                .unwrap_err()
                .contains("Start")
        );
        assert!(watch.check(900 * MS).is_err());
        assert_eq!(watch.counts.readings, 3);
    }

    #[test]
    fn readings_may_be_missing_in_a_fault_and_until_the_limit_after_it() {
        let mut watch = started();
        watch.handle_fault(Cause::Noise, 2_000 * MS).unwrap();
        watch.handle_reading(1_000 * MS).unwrap();
        assert_eq!(watch.counts.missing, 3);
        watch.handle_reading(2_400 * MS).unwrap();
        assert_eq!(watch.counts.missing, 16);
        assert_eq!(watch.counts.slowest[Cause::Noise as usize], 400 * MS);
        // Later, there is no excuse.
        assert!(watch.check(2_700 * MS).is_err());
    }

    #[test]
    fn a_long_outage_must_be_reported_and_the_report_withdrawn() {
        for is_reported in [false, true] {
            let mut watch = started();
            watch.handle_fault(Cause::Unplug, 7_000 * MS).unwrap();
            if is_reported {
                watch.handle_health(Some("it is gone".into()));
            }
            let back = watch.handle_reading(7_100 * MS);
            assert_eq!(back.is_ok(), is_reported, "{back:?}");
            let next = watch.handle_fault(Cause::Silence, 9_000 * MS);
            assert_eq!(next.is_ok(), !is_reported, "{next:?}");
            watch.handle_health(None);
            watch.handle_fault(Cause::Silence, 9_000 * MS).unwrap();
        }
    }
}
