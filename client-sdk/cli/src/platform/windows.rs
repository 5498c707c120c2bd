//! Windows. IO.

use std::fs::{File, Metadata};
use std::io;

use tempfile::Builder;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// Ctrl-C, Ctrl-Break, a closed window, and the end of Windows. The system gives the process some
/// seconds after a closed window.
pub(crate) struct Signals {
    interrupt: CtrlC,
    break_key: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// From here on, they no longer end the process.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            break_key: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.break_key.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

/// Whether two descriptions may be of one file: the library does not tell.
#[cfg(feature = "record")]
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.len(), one.modified().ok()) == (other.len(), other.modified().ok())
}

/// Whether there is only one hard link to a file. The library does not tell, and they are rare here.
pub(crate) fn has_one_name(_: &Metadata) -> bool {
    true
}

/// A new file has the rights of its folder.
pub(crate) fn open_to_all(_: &mut Builder<'_, '_>) {}

/// A new file belongs to its user.
pub(crate) fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}
