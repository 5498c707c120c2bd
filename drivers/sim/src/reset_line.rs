//! The reset line of the motor controllers: a named pipe instead of a GPIO file. IO.
//!
//! Programs write `0` and `1` into it as into `/sys/class/gpio/gpioN/value`: the line is active
//! low, so a `1` after a `0` is a reset.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// The pipe, and the last level of the line.
#[derive(Debug)]
pub(crate) struct ResetLine {
    pipe: pipe::Receiver,
    path: PathBuf,
    is_low: bool,
}

impl ResetLine {
    /// Creates the pipe, or opens an existing one.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        // Also open for writing here; otherwise the pipe would end with each writer.
        let pipe = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(path)?;
        Ok(Self {
            pipe,
            path: path.to_owned(),
            is_low: false,
        })
    }

    /// Waits for a reset. Dropping the future loses nothing.
    pub(crate) async fn pulled(&mut self) -> io::Result<()> {
        let mut byte = [0];
        loop {
            self.pipe.read_exact(&mut byte).await?;
            match byte {
                [b'0'] => self.is_low = true,
                [b'1'] if std::mem::take(&mut self.is_low) => return Ok(()),
                _ => {}
            }
        }
    }
}

impl Drop for ResetLine {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
