//! Linux and macOS. IO.

use std::ffi::c_int;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

use tempfile::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signal of Ctrl-Z. A robot must not wait for a process that sleeps, so it ends the process, too.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SIGTSTP: c_int = 20;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SIGTSTP: c_int = 18;

/// Ctrl-C, Ctrl-Z, SIGTERM and SIGHUP.
pub(crate) struct Signals([Signal; 4]);

impl Signals {
    /// From here on, they no longer end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self([
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::from_raw(SIGTSTP))?,
        ]))
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup, sleep] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = sleep.recv() => {}
        }
    }
}

/// Whether two descriptions are of one file.
#[cfg(feature = "record")]
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Whether there is only one hard link to a file.
pub(crate) fn has_one_name(file: &Metadata) -> bool {
    file.nlink() == 1
}

/// Gives a new file the usual rights, instead of those of a temporary one.
pub(crate) fn open_to_all(new: &mut Builder<'_, '_>) {
    new.permissions(PermissionsExt::from_mode(0o666));
}

/// Gives a new file the owner of the old one.
pub(crate) fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    match (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        true => Ok(()),
        false => fchown(file, Some(old.uid()), Some(old.gid())),
    }
}
