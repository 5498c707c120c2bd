//! A file that is being recorded. IO.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use amber_terminal::Failure;

use super::limits::WRITE_BYTES;
use crate::recordings::cannot_write;

/// A file, and the number of bytes written to it so far.
pub(super) struct Output {
    file: BufWriter<File>,
    written: Arc<AtomicU64>,
    path: PathBuf,
}

impl Output {
    /// Creates the file. An existing one is replaced only if that is wanted; what is not a regular
    /// file, such as a pipe, is written to.
    ///
    /// # Errors
    /// There is such a file, or it cannot be written.
    pub(super) fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        let file = match crate::file::is_stdout(path) {
            true => stdout(),
            false => open(path, force),
        };
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let text = format!("{} already exists", path.display());
                Failure::new(text).hint("name another file, or replace it with --force")
            }
            _ => cannot_write(path, &error),
        })?;
        Ok(Self {
            file: BufWriter::with_capacity(WRITE_BYTES, file),
            written: Arc::new(AtomicU64::new(0)),
            path: path.to_owned(),
        })
    }

    /// A counter of bytes that stays with the file.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the disk has everything.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        self.file.flush().map_err(failed)?;
        match self.file.get_ref().sync_data() {
            Ok(()) => Ok(()),
            // A pipe or a terminal.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            Err(error) => Err(cannot_write(&self.path, &error)),
        }
    }
}

fn open(path: &Path, force: bool) -> io::Result<File> {
    let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    let mut options = OpenOptions::new();
    options.write(true);
    match (is_special, force) {
        (true, _) => options.open(path),
        (false, true) => options.create(true).truncate(true).open(path),
        (false, false) => options.create_new(true).open(path),
    }
}

fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
