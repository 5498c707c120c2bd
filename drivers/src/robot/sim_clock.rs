//! How much real time is missing in simulated time. IO.
//!
//! On a busy machine the simulated robot stands still for moments (`amber sim`). What it drives in
//! simulated time is then less than its speed multiplied by real time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The file `clock` of a simulation: eight bytes, the microseconds that were left out, as a
/// little-endian number.
#[derive(Debug)]
pub(super) struct SimClock {
    file: File,
    /// What had been left out before.
    before: Duration,
}

impl SimClock {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut clock = Self {
            file: File::open(path)?,
            before: Duration::ZERO,
        };
        clock.before = clock.left_out();
        Ok(clock)
    }

    /// The real time that was left out since this was opened; zero if the file is broken.
    pub(super) fn left_out(&self) -> Duration {
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
}
