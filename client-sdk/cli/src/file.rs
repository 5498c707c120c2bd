//! Output files, as in `--png FILE`. IO.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use amber_terminal::{Failure, note, print};

/// Whether this path means stdout.
pub(super) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to write a file to a terminal.
///
/// # Errors
/// The path means stdout, and stdout is a terminal.
pub(super) fn check(option: &str, path: &Path) -> Result<(), Failure> {
    match is_stdout(path) && io::stdout().is_terminal() {
        true => Err(
            Failure::wrong(format!("{option} - would write a file to the terminal")).hint(format!(
                "name a file, or redirect stdout: `{option} - > FILE`"
            )),
        ),
        false => Ok(()),
    }
}

/// Writes a whole output file and says so, or writes to stdout for `-`.
///
/// A regular file is replaced at once, with its mode and owner: readers see the
/// old file or the new one. A symbolic link keeps pointing to its target. What
/// is not a regular file, such as a device or a pipe, is written to.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_stdout(path) {
        return print(bytes);
    }
    write_file(path, bytes)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

/// Reports the written file, unless that is stdout.
pub(super) fn wrote(path: &Path) {
    if !is_stdout(path) {
        note(format!("wrote {}", path.display()));
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let replaced = match fs::canonicalize(path) {
        Ok(target) => {
            let old = fs::metadata(&target)?;
            match is_replaceable(&old) {
                true => replace(&target, Some(&old), bytes),
                false => return write_through(path, bytes),
            }
        }
        // A link to a file that does not exist yet.
        Err(_) if fs::symlink_metadata(path).is_ok() => return write_through(path, bytes),
        Err(_) => replace(path, None, bytes),
    };
    match replaced {
        // The file may be writable although its folder or owner is not ours.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => write_through(path, bytes),
        replaced => replaced,
    }
}

/// Only a regular file with one name: other hard links would keep the old content.
fn is_replaceable(old: &Metadata) -> bool {
    #[cfg(unix)]
    let has_one_name = std::os::unix::fs::MetadataExt::nlink(old) == 1;
    #[cfg(not(unix))]
    let has_one_name = true;
    old.is_file() && has_one_name
}

fn replace(target: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if old.is_some() {
        // A file that we may not write must not be replaced either.
        OpenOptions::new().write(true).open(target)?;
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".amber-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        #[cfg(unix)]
        keep_owner(file.as_file(), old)?;
        file.as_file().set_permissions(old.permissions())?;
    }
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(unix)]
fn keep_owner(file: &fs::File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    match (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        true => Ok(()),
        false => fchown(file, Some(old.uid()), Some(old.gid())),
    }
}

fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_regular_file_keeps_its_mode_and_a_link_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old and longer").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        let before = fs::metadata(&file).unwrap().ino();
        write(&link, b"new").unwrap();
        let after = fs::metadata(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(after.mode() & 0o7777, 0o640);
        assert_ne!(after.ino(), before, "replaced in one step");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // Nothing else is left.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_new_file_and_a_link_to_one_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        symlink("later", &link).unwrap();
        write(&file, b"1").unwrap();
        write(&link, b"2").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"1");
        assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"2");
        let missing = folder.path().join("none").join("file");
        let failure = write(&missing, b"3").unwrap_err();
        assert!(
            format!("{failure:?}").contains("cannot write "),
            "{failure:?}"
        );
    }

    #[test]
    fn devices_and_pipes_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        // A link to the device, so that a mistake does not replace the device itself.
        let (full, null) = (folder.path().join("full"), folder.path().join("null"));
        symlink("/dev/full", &full).unwrap();
        symlink("/dev/null", &null).unwrap();
        let failure = write(&full, b"picture").unwrap_err();
        assert!(
            format!("{failure:?}").contains("No space left"),
            "{failure:?}"
        );
        write(&null, b"picture").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert!(fs::symlink_metadata(&null).unwrap().is_symlink());
    }

    #[test]
    fn all_names_of_a_file_get_its_new_content() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&file, "old").unwrap();
        fs::hard_link(&file, &other).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"new");
    }
}
