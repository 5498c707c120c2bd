//! Output files, as in `--png FILE`. IO.

use std::fs::{self, File, Metadata, OpenOptions};
#[cfg(feature = "record")]
use std::io::BufWriter;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use amber_terminal::{Failure, note, print};
use tempfile::NamedTempFile;

use crate::platform;

/// Whether this path means stdout.
pub(super) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Rejects writing a file to a terminal.
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

/// Writes a whole output file and reports it, or writes to stdout for `-`.
///
/// A regular file is replaced atomically, with its mode and owner: readers see either the
/// old file or the new one. A symbolic link keeps pointing to its target. Other
/// files, such as devices and pipes, are written to directly.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_stdout(path) {
        return print(bytes);
    }
    write_file(path, bytes).map_err(|error| cannot_write(path, &error))
}

/// Reports the written file, unless that is stdout.
pub(super) fn wrote(path: &Path) {
    if !is_stdout(path) {
        note(format!("wrote {}", path.display()));
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    file.write_all(bytes)?;
    close(file)
}

/// Like [`write`], but for an output file that is written in parts. If this is dropped, an
/// existing file stays unchanged.
#[cfg(feature = "record")]
pub(super) struct Output {
    to: To,
    path: PathBuf,
}

#[cfg(feature = "record")]
enum To {
    Stdout(BufWriter<io::Stdout>),
    File(BufWriter<Open>),
}

#[cfg(feature = "record")]
impl Output {
    /// Begins the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let to = match is_stdout(path) {
            true => To::Stdout(BufWriter::new(io::stdout())),
            false => {
                let file = open(path).map_err(|error| cannot_write(path, &error))?;
                To::File(BufWriter::with_capacity(256 * 1024, file))
            }
        };
        let path = path.to_owned();
        Ok(Self { to, path })
    }

    /// The same for a copy of `source`: if the path is its own, the new file must replace it at the
    /// end.
    ///
    /// # Errors
    /// It cannot be written, or is `source` and can only be written directly.
    pub(super) fn create_from(source: &File, path: &Path) -> Result<Self, Failure> {
        if is_same(source, path) && !can_be_replaced(path) {
            let shown = path.display();
            let text = format!("{shown} cannot be replaced while it is read");
            return Err(Failure::new(text).hint("name another file: `-o FILE`"));
        }
        Self::create(path)
    }

    /// Completes the file and reports it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let done = match self.to {
            To::Stdout(mut stdout) => match stdout.flush() {
                // The reader has closed the pipe.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                done => done,
            },
            To::File(file) => match file.into_inner() {
                Ok(file) => close(file),
                Err(error) => Err(error.into_error()),
            },
        };
        done.map_err(|error| cannot_write(&self.path, &error))?;
        wrote(&self.path);
        Ok(())
    }
}

#[cfg(feature = "record")]
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Stdout(stdout) => stdout.write(bytes),
            To::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stdout(stdout) => stdout.flush(),
            To::File(file) => file.flush(),
        }
    }
}

/// Whether a path is that of an open file.
#[cfg(feature = "record")]
pub(super) fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(other)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    platform::is_same_file(&file, &other)
}

/// Whether a new file can take the place of this one.
#[cfg(feature = "record")]
fn can_be_replaced(path: &Path) -> bool {
    let target = fs::canonicalize(path).and_then(|target| Ok((fs::metadata(&target)?, target)));
    target
        .is_ok_and(|(old, target)| is_replaceable(&old) && replacement(&target, Some(old)).is_ok())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot write {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => failure.hint("create the folder first"),
        io::ErrorKind::PermissionDenied => failure.hint("name a file in a folder of your own"),
        _ => failure,
    }
}

/// A file that is being written.
enum Open {
    /// Written directly to the file.
    Through(File),
    /// Written to a new file, which replaces the old one at the end.
    Replacement(Box<Replacement>),
}

struct Replacement {
    new: NamedTempFile,
    target: PathBuf,
    old: Option<Metadata>,
}

impl Open {
    fn file(&mut self) -> &mut File {
        match self {
            Self::Through(file) => file,
            Self::Replacement(replacement) => replacement.new.as_file_mut(),
        }
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

fn open(path: &Path) -> io::Result<Open> {
    let opened = match fs::canonicalize(path) {
        Ok(target) => {
            let old = fs::metadata(&target)?;
            match is_replaceable(&old) {
                true => replacement(&target, Some(old)),
                false => return through(path),
            }
        }
        // A link to a file that does not exist yet.
        Err(_) if fs::symlink_metadata(path).is_ok() => return through(path),
        Err(_) => replacement(path, None),
    };
    match opened {
        // The file may be writable although its folder is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => through(path),
        opened => opened,
    }
}

fn close(file: Open) -> io::Result<()> {
    let Replacement { new, target, old } = match file {
        Open::Through(mut file) => return file.flush(),
        Open::Replacement(replacement) => *replacement,
    };
    // It reads the new file even if the owner or the name has changed.
    let mut written = new.reopen()?;
    match put_in_place(new, &target, old.as_ref()) {
        // The file may be writable although its owner is not ours.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let Open::Through(mut file) = through(&target)? else {
                return Err(error);
            };
            io::copy(&mut written, &mut file)?;
            file.flush()
        }
        done => done,
    }
}

/// Only a regular file with one name: other hard links would keep the old content.
fn is_replaceable(old: &Metadata) -> bool {
    old.is_file() && platform::has_one_name(old)
}

fn replacement(target: &Path, old: Option<Metadata>) -> io::Result<Open> {
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
    platform::open_to_all(&mut builder);
    let new = builder.tempfile_in(folder)?;
    let target = target.to_owned();
    Ok(Open::Replacement(Box::new(Replacement {
        new,
        target,
        old,
    })))
}

fn put_in_place(new: NamedTempFile, target: &Path, old: Option<&Metadata>) -> io::Result<()> {
    if let Some(old) = old {
        platform::keep_owner(new.as_file(), old)?;
        new.as_file().set_permissions(old.permissions())?;
    }
    new.persist(target).map_err(|error| error.error)?;
    Ok(())
}

fn through(path: &Path) -> io::Result<Open> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    Ok(Open::Through(options.open(path)?))
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

    #[cfg(feature = "record")]
    #[test]
    fn a_file_is_replaced_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let begun = || {
            let mut output = Output::create(&path).unwrap();
            output.write_all(b"new ").unwrap();
            output.write_all(b"content").unwrap();
            output
        };
        drop(begun());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        begun().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new content");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(feature = "record")]
    #[test]
    fn a_file_that_is_read_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&path, "old").unwrap();
        let source = File::open(&path).unwrap();
        let mut output = Output::create_from(&source, &path).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(output);
        // All names of a file keep its content, so it would be written directly.
        fs::hard_link(&path, &other).unwrap();
        for name in [&path, &other] {
            assert!(is_same(&source, name) && Output::create_from(&source, name).is_err());
            assert_eq!(fs::read(name).unwrap(), b"old");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
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
