//! Reads configuration files: bounded in size, without blocking. IO.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use amber_core::config::{Config, ConfigError, Describe};
use amber_core::limits::CONFIG_BYTES;

/// Reads a configuration. Paths in it are relative to the file's folder. `describe` reads the
/// descriptions of users' devices that it names.
///
/// # Errors
/// The file cannot be read or is invalid; the error names the place and a hint.
pub fn read_config(path: &Path, describe: Describe<'_>) -> Result<Config, ConfigError> {
    let read = read(path).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| io::Error::other(error.utf8_error()))
    });
    let text = read.map_err(|error| ConfigError::Read {
        path: path.into(),
        error,
    })?;
    let interfaces = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    Config::parse_with(&text, path, &interfaces, describe)
}

/// Reads a configuration or the settings of the original mediator from a regular file.
///
/// # Errors
/// The file cannot be read, is too long, or is not a regular file: a pipe or a device might
/// never end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Unlike opening a pipe, this never blocks.
    let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let found = File::from(found);
    check(&found.metadata()?)?;
    let file = reopen(&found, path)?;
    check(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(CONFIG_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > CONFIG_BYTES {
        true => Err(too_long()),
        false => Ok(bytes),
    }
}

fn check(found: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        let kind = kind(found.file_type());
        return Err(io::Error::other(format!(
            "it is {kind}, not a regular file"
        )));
    }
    match found.len() > CONFIG_BYTES {
        true => Err(too_long()),
        false => Ok(()),
    }
}

/// Opens the file that was checked: the path may name another one by now. Without `/proc`, the path
/// is opened without waiting, since it may be a pipe.
fn reopen(found: &File, path: &Path) -> io::Result<File> {
    match File::open(format!("/proc/self/fd/{}", found.as_raw_fd())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            Ok(File::from(open(path, flags, Mode::empty())?))
        }
        opened => opened,
    }
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

fn too_long() -> io::Error {
    let mib = CONFIG_BYTES >> 20;
    io::Error::other(format!("it is longer than {mib} MiB"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let long = File::create(path("long")).unwrap();
        long.set_len(CONFIG_BYTES + 1).unwrap();
        for (path, problem) in [
            (path("pipe"), "it is a pipe, not a regular file"),
            (path("socket"), "it is a socket, not a regular file"),
            (path(""), "it is a folder, not a regular file"),
            ("/dev/zero".into(), "it is a device, not a regular file"),
            (path("long"), "it is longer than 1 MiB"),
        ] {
            assert_eq!(read(&path).unwrap_err().to_string(), problem);
        }
        long.set_len(CONFIG_BYTES).unwrap();
        assert_eq!(read(&path("long")).unwrap().len() as u64, CONFIG_BYTES);
    }
}
