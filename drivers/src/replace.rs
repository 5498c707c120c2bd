//! Files that are replaced as a whole. IO.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file atomically: readers see either the old or the new file, even after a power cut.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = beside(path);
    let written = write(&fresh, content).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // Nothing else can be done about it.
        let _ = fs::remove_file(&fresh);
    }
    written?;
    // The directory entry needs its own sync.
    match path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A file name in the same folder, unique to this process.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
