//! The folder for sockets that only this user can open. IO.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use amber_terminal::Failure;
use rustix::process::getuid;

/// The folder of this session, or one of our own.
pub(super) fn folder() -> Result<PathBuf, Failure> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    let folder = match session {
        Some(base) => PathBuf::from(base).join("amber"),
        None => std::env::temp_dir().join(format!("amber-{}", getuid().as_raw())),
    };
    closed(&folder).map_err(|error| {
        let text = format!("cannot use the folder {}: {error}", folder.display());
        Failure::new(text).hint("set XDG_RUNTIME_DIR to a folder that only you can open")
    })?;
    Ok(folder)
}

/// Makes the folder, or checks the one that exists.
fn closed(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // Do not follow a link that another user has made.
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.is_dir() && found.uid() == getuid().as_raw();
    match is_ours && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::other("other users can open it")),
    }
}
