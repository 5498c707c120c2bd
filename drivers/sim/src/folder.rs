//! The folder of a simulation. Other users cannot write to it, and it is removed at the end. IO.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// The file that marks a folder as in use.
const LOCK: &str = "lock";
/// The contents of that file if a simulation created the folder. A later simulation may then remove
/// it.
const MADE: &[u8] = b"made by amber sim\n";
/// Another simulation may remove the folder at the same time, but not this often.
const TRIES: usize = 10;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("another simulation is running in {}", .0.display())]
    InUse(PathBuf),
    /// A user who can write to the folder could redirect our files.
    #[error("cannot use {}: {reason}", folder.display())]
    Unsafe {
        folder: PathBuf,
        reason: &'static str,
    },
    #[error("cannot use {}: {error}", folder.display())]
    Io { folder: PathBuf, error: io::Error },
}

/// A folder that this process owns until the value is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    is_made: bool,
    files: Vec<PathBuf>,
    _lock: File,
}

impl Folder {
    /// Creates the folder if necessary, and locks it.
    pub(crate) fn take(path: &Path) -> Result<Self, FolderError> {
        let failed = |error| FolderError::Io {
            folder: path.to_owned(),
            error,
        };
        for _ in 0..TRIES {
            let made = make(path).map_err(failed)?;
            match check(path) {
                Err(FolderError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                    continue;
                }
                checked => checked?,
            }
            let lock = path.join(LOCK);
            let mut file = match open(
                OpenOptions::new().read(true).write(true).create(true),
                &lock,
            ) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(failed)?,
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(FolderError::InUse(path.to_owned())),
                Err(error) => return Err(failed(error.into())),
            }
            if !is_at(&file, &lock) {
                continue;
            }
            if made {
                file.write_all(MADE).map_err(failed)?;
            }
            let mut note = Vec::new();
            let is_made = made || {
                let limit = MADE.len() as u64;
                let read = (&file).take(limit).read_to_end(&mut note);
                read.map_err(failed)?;
                note == MADE
            };
            return Ok(Self {
                path: path.to_owned(),
                is_made,
                files: vec![lock],
                _lock: file,
            });
        }
        Err(failed(io::Error::other("it keeps being removed")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, which is removed at the end.
    pub(crate) fn write(&mut self, name: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        open(options.write(true).create(true).truncate(true), &path)?.write_all(text.as_bytes())?;
        // The lock is removed last.
        self.files.insert(0, path);
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        if self.is_made {
            // Files of other programs keep the folder from being removed.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Creates a folder with access for this user only, because write access means control of the
/// robot. Returns false if it exists.
fn make(path: &Path) -> io::Result<bool> {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    if let Some(parent) = path.parent() {
        builder.recursive(true).create(parent)?;
    }
    match builder.recursive(false).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that it is a folder to which only this user can write.
fn check(path: &Path) -> Result<(), FolderError> {
    let found = fs::symlink_metadata(path).map_err(|error| FolderError::Io {
        folder: path.to_owned(),
        error,
    })?;
    let reason = if found.is_symlink() {
        "it is a symbolic link"
    } else if !found.is_dir() {
        "it is not a folder"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if found.mode() & 0o002 != 0 {
        "every user can write to it"
    } else {
        return Ok(());
    };
    Err(FolderError::Unsafe {
        folder: path.to_owned(),
        reason,
    })
}

/// Opens a private file, without following symbolic links.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    options.mode(0o600).custom_flags(no_follow).open(path)
}

/// Whether this file is the one at the path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[track_caller]
    fn check_unsafe(path: &Path, reason: &str) {
        let error = Folder::take(path).unwrap_err().to_string();
        assert!(error.ends_with(reason), "{error}");
    }

    #[test]
    fn a_created_folder_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let mut folder = Folder::take(&path).unwrap();
        folder.write("markers", "x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("markers"))), (0o700, 0o600));
        assert!(matches!(Folder::take(&path), Err(FolderError::InUse(_))));
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_next_simulation_removes_the_files_of_a_killed_one() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("sim");
        let folder = Folder::take(&path).unwrap();
        // Ends without `drop`: the lock is released, the files stay.
        let mut folder = std::mem::ManuallyDrop::new(folder);
        folder._lock = File::open("/dev/null").unwrap();
        assert!(path.join(LOCK).exists());
        drop(Folder::take(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn an_existing_folder_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        drop(Folder::take(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn folders_of_other_users_and_links_are_rejected() {
        let parent = tempfile::tempdir().unwrap();
        let (target, link) = (parent.path().join("target"), parent.path().join("link"));
        fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        check_unsafe(&link, "it is a symbolic link");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o777)).unwrap();
        check_unsafe(&target, "every user can write to it");
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        check_unsafe(&file, "it is not a folder");
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(&target, Some(4711), None).unwrap();
            check_unsafe(&target, "it belongs to another user");
        }
    }

    #[test]
    fn links_in_the_folder_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let path = parent.path().join("sim");
        let mut folder = Folder::take(&path).unwrap();
        symlink(&precious, path.join("markers")).unwrap();
        folder.write("markers", "x").unwrap_err();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        drop(folder);
        fs::create_dir_all(&path).unwrap();
        symlink(&precious, path.join(LOCK)).unwrap();
        Folder::take(&path).unwrap_err();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    }
}
