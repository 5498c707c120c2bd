//! The file that tells drivers how much real time is missing in simulated time. IO.
//!
//! It has eight bytes: the microseconds of real time that were left out, as a little-endian number.
//! A driver that measures with its own clock what the simulated robot does subtracts them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// The name of the file in the folder of the simulation.
pub const FILE: &str = "clock";

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct ClockFile {
    file: File,
    written: Duration,
}

impl ClockFile {
    /// Opens the file, which exists, and writes that no time was left out.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let file = File::options().write(true).open(folder.join(FILE))?;
        let mut new = Self {
            file,
            written: Duration::MAX,
        };
        new.write(Duration::ZERO)?;
        Ok(new)
    }

    /// Writes how much time was left out, if it has changed.
    pub(crate) fn write(&mut self, left_out: Duration) -> io::Result<()> {
        if left_out == self.written {
            return Ok(());
        }
        self.written = left_out;
        let micros = u64::try_from(left_out.as_micros()).unwrap_or(u64::MAX);
        self.file.write_all_at(&micros.to_le_bytes(), 0)
    }
}
