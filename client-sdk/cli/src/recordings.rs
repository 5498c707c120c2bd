//! What `amber record` has written, also on another machine: `amber info`, `amber recover`,
//! `amber export`, and drives for maps. IO.

use std::io;
use std::path::Path;

use amber_terminal::Failure;

pub(crate) mod drive;
pub(super) mod export;
pub(super) mod info;
mod pictures;
pub(super) mod recover;
pub(crate) mod size;

/// A file cannot be written, and what to do.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Failure::new(format!("cannot write {shown}: the disk is full")).hint(format!(
                "free some space, then run `amber recover {shown}` to repair the file"
            ))
        }
        io::ErrorKind::BrokenPipe => {
            Failure::new(format!("cannot write {shown}: its reader has closed it"))
        }
        io::ErrorKind::NotFound => Failure::new(format!("cannot write {shown}: {error}"))
            .hint("make the folder first, or name another one"),
        io::ErrorKind::IsADirectory => {
            Failure::new(format!("cannot write {shown}: it is a folder"))
        }
        _ => Failure::new(format!("cannot write {shown}: {error}")),
    }
}
