//! How much real time is missing in simulated time. IO.
//!
//! On a busy machine the simulated robot stands still for moments (`amber sim`). What it drives in
//! simulated time is then less than its speed multiplied by real time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::options::OptionsError;

/// The option for drivers that measure what the robot does with their own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct SimClockOption {
    /// File `clock` in the folder of `amber sim`, for a simulated robot: time for which a busy machine
    /// held the simulation does not count
    #[arg(long, value_name = "FILE")]
    pub sim_clock: Option<PathBuf>,
}

impl SimClockOption {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn open(&self) -> Result<Option<SimClock>, OptionsError> {
        let open = |path: &PathBuf| {
            SimClock::open(path).map_err(|error| OptionsError::Value {
                name: "sim_clock",
                problem: format!("cannot read {}: {error}", path.display()),
            })
        };
        self.sim_clock.as_ref().map(open).transpose()
    }
}

/// The time since the start of a driver, of a simulated robot in simulated time.
#[derive(Debug)]
pub(crate) struct DriverClock {
    started: Instant,
    simulated: Option<SimClock>,
    /// The latest time that was now, in microseconds.
    latest_us: AtomicU64,
}

impl DriverClock {
    /// A clock that starts at this moment.
    pub(crate) fn new(started: Instant, simulated: Option<SimClock>) -> Self {
        Self {
            started,
            simulated,
            latest_us: AtomicU64::default(),
        }
    }

    /// The time of a moment that has just been.
    pub(crate) fn at(&self, moment: Instant) -> Duration {
        let since = moment.saturating_duration_since(self.started);
        let left_out = (self.simulated.as_ref()).map_or(Duration::ZERO, SimClock::left_out);
        since.saturating_sub(left_out)
    }

    /// The time now. It stands still, rather than going back, when the simulation has been held.
    pub(crate) fn now(&self, now: Instant) -> Duration {
        let time = self.at(now);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let latest_us = self.latest_us.fetch_max(us, Ordering::Relaxed);
        time.max(Duration::from_micros(latest_us))
    }
}

/// The file `clock` of a simulation: eight bytes, the microseconds that were left out, as a
/// little-endian number.
#[derive(Debug)]
pub(crate) struct SimClock {
    file: File,
    /// What had been left out before.
    before: Duration,
}

impl SimClock {
    fn open(path: &Path) -> io::Result<Self> {
        let mut clock = Self {
            file: File::open(path)?,
            before: Duration::ZERO,
        };
        clock.before = clock.left_out();
        Ok(clock)
    }

    /// The real time that was left out since this was opened; zero if the file is broken.
    pub(crate) fn left_out(&self) -> Duration {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Duration::from_micros(u64::from_le_bytes(bytes)).saturating_sub(self.before),
            Err(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        std::fs::write(&path, 1_500_000_u64.to_le_bytes()).unwrap();
        let clock = SimClock::open(&path).unwrap();
        assert_eq!(clock.left_out(), Duration::ZERO);
        std::fs::write(&path, 2_000_000_u64.to_le_bytes()).unwrap();
        assert_eq!(clock.left_out(), Duration::from_millis(500));
        std::fs::write(&path, "").unwrap();
        assert_eq!(clock.left_out(), Duration::ZERO);
    }

    #[test]
    fn the_clock_of_a_driver_stands_still_when_the_simulation_was_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        std::fs::write(&path, 0_u64.to_le_bytes()).unwrap();
        let (started, ms) = (Instant::now(), Duration::from_millis);
        let clock = DriverClock::new(started, Some(SimClock::open(&path).unwrap()));
        assert_eq!(clock.now(started + ms(500)), ms(500));
        std::fs::write(&path, 200_000_u64.to_le_bytes()).unwrap();
        assert_eq!(clock.now(started + ms(510)), ms(500));
        assert_eq!(clock.at(started + ms(510)), ms(310));
        assert_eq!(clock.now(started + ms(900)), ms(700));
        let real = DriverClock::new(started, None);
        assert_eq!(real.now(started + ms(900)), ms(900));
    }
}
