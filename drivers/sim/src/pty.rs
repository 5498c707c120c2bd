//! A pseudo-terminal that behaves like a serial port, at a fixed path. IO.
//!
//! The path is a symbolic link, replaced atomically, so that a program can reopen it after the
//! device was unplugged. Dropping a [`Pty`] unplugs the device: programs that have the port open
//! see a hang-up.
//!
//! This process keeps the other end open, too. Otherwise Linux reports a hang-up whenever no
//! program has the port open, and, unlike a serial port, passes the state that one program left
//! (exclusive use, unread bytes) on to the next. So this module uses inotify to notice when
//! programs open and close the port.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{self, OptionalActions, QueueSelector};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One end of a pseudo-terminal; programs open the other end by its path.
#[derive(Debug)]
pub struct Pty {
    controller: AsyncFd<OwnedFd>,
    port: OwnedFd,
    watch: AsyncFd<OwnedFd>,
    users: usize,
    link: PathBuf,
    device: PathBuf,
}

impl Pty {
    /// Creates a pseudo-terminal and points `link` at it, replacing an existing link.
    ///
    /// # Errors
    /// There are no more pseudo-terminals, or the link cannot be made.
    ///
    /// # Panics
    /// Called outside a tokio runtime with IO.
    pub fn open(link: &Path) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let device = ptsname(&controller, Vec::new())?;
        let device = PathBuf::from(device.to_string_lossy().into_owned());
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let port = rustix::fs::open(&device, flags, rustix::fs::Mode::empty())?;
        make_raw(&port)?;
        rustix::io::ioctl_fionbio(&controller, true)?;

        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(
            &watch,
            &device,
            inotify::WatchFlags::OPEN
                | inotify::WatchFlags::CLOSE_WRITE
                | inotify::WatchFlags::CLOSE_NOWRITE,
        )?;
        point(link, &device)?;
        Ok(Self {
            controller: readable(controller)?,
            port,
            watch: readable(watch)?,
            users: 0,
            link: link.to_owned(),
            device,
        })
    }

    /// The fixed path.
    #[must_use]
    pub fn link(&self) -> &Path {
        &self.link
    }

    /// The terminal behind it; a different one after each [`Pty::open`].
    #[must_use]
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Waits for bytes that a program wrote: at least one, at most the size of the buffer.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The system fails. Programs that open and close the port cause no errors.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            tokio::select! {
                biased;
                ready = self.watch.readable() => {
                    ready?.clear_ready();
                    self.note_users();
                }
                ready = self.controller.readable() => {
                    let mut ready = ready?;
                    let read = ready.try_io(|fd| {
                        rustix::io::read(fd, &mut *buffer).map_err(io::Error::from)
                    });
                    match read {
                        Ok(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Ok(result) => {
                            // A program may have just opened the port, and sent these bytes. That
                            // must be noticed now: later, it would discard the answer.
                            self.note_users();
                            return result;
                        }
                        // The port was not ready after all.
                        Err(_) => {}
                    }
                }
            }
        }
    }

    /// Passes bytes to the program that has the port open. As on a real line, bytes that are not
    /// read in time are lost. Returns the number of bytes that were accepted.
    ///
    /// # Errors
    /// The system fails.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::write(&self.controller, &bytes[written..]) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => break,
                Ok(count) => written += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }

    /// Notices that programs opened and closed the port, and resets it for the next one.
    fn note_users(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&self.watch, &mut buffer);
        while let Ok(event) = events.next() {
            if event.events().contains(inotify::ReadFlags::OPEN) {
                if self.users == 0 {
                    // Discard bytes that the device sent while the port was closed.
                    let _ = termios::tcflush(&self.port, QueueSelector::IFlush);
                }
                self.users += 1;
            } else {
                self.users = self.users.saturating_sub(1);
            }
            if self.users == 0 {
                // Errors of these calls do not matter to the next program.
                let _ = termios::ioctl_tiocnxcl(&self.port);
                let _ = termios::tcflush(&self.port, QueueSelector::IFlush);
                let _ = make_raw(&self.port);
            }
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Another process may have replaced the link.
        if fs::read_link(&self.link).is_ok_and(|target| target == self.device) {
            let _ = fs::remove_file(&self.link);
        }
    }
}

/// Creates the link or replaces it, atomically.
fn point(link: &Path, device: &Path) -> io::Result<()> {
    if fs::symlink_metadata(link).is_ok_and(|found| !found.is_symlink()) {
        let text = format!("{}: exists and is not a link", link.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let mut name = link.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = link.with_file_name(name);
    let _ = fs::remove_file(&fresh);
    symlink(device, &fresh)?;
    fs::rename(&fresh, link)
}

/// Registers a file with the runtime.
#[expect(
    deprecated,
    reason = "the replacement needs unsafe code; an owned file stays open"
)]
fn readable(file: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(file, Interest::READABLE)
}

fn make_raw(port: &OwnedFd) -> rustix::io::Result<()> {
    let mut settings = termios::tcgetattr(port)?;
    settings.make_raw();
    termios::tcsetattr(port, OptionalActions::Now, &settings)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::time::Duration;

    use super::*;

    fn open(path: &Path) -> fs::File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags((rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK).bits() as i32)
            .open(path)
            .unwrap()
    }

    async fn received(pty: &mut Pty) -> Vec<u8> {
        let mut buffer = [0; 100];
        let read = tokio::time::timeout(Duration::from_secs(10), pty.read(&mut buffer));
        let count = read.await.expect("bytes in time").unwrap();
        buffer[..count].to_vec()
    }

    #[tokio::test]
    async fn bytes_go_both_ways_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let mut pty = Pty::open(&folder.path().join("port")).unwrap();
        let all: Vec<u8> = (0..=255).collect();
        let mut file = open(pty.link());
        file.write_all(&all[..90]).unwrap();
        assert_eq!(received(&mut pty).await, &all[..90]);
        assert_eq!(pty.write(&all).unwrap(), 256);
        let mut buffer = [0; 256];
        let count = file.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], &all[..count]);
        assert!(count > 0);
    }

    #[tokio::test]
    async fn the_next_program_gets_a_reset_port() {
        let folder = tempfile::tempdir().unwrap();
        let mut pty = Pty::open(&folder.path().join("port")).unwrap();
        let first = open(pty.link());
        termios::ioctl_tiocexcl(&first).unwrap();
        pty.write(b"never read").unwrap();
        drop(first);
        pty.note_users();
        let mut second = open(pty.link());
        let error = second.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn the_next_program_gets_the_answer_to_its_first_request() {
        let folder = tempfile::tempdir().unwrap();
        let mut pty = Pty::open(&folder.path().join("port")).unwrap();
        let mut first = open(pty.link());
        first.write_all(b"first").unwrap();
        assert_eq!(received(&mut pty).await, b"first");
        // All this happens before the runtime looks for events again.
        drop(first);
        let mut second = open(pty.link());
        second.write_all(b"second").unwrap();
        assert_eq!(received(&mut pty).await, b"second");
        pty.write(b"answer").unwrap();
        let mut buffer = [0; 10];
        let nothing = tokio::time::timeout(Duration::from_millis(20), pty.read(&mut buffer));
        assert!(nothing.await.is_err());
        assert_eq!(second.read(&mut buffer).unwrap(), 6);
        assert_eq!(&buffer[..6], b"answer");
    }

    #[tokio::test]
    async fn unread_bytes_are_lost_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let mut pty = Pty::open(&folder.path().join("port")).unwrap();
        let _idle = open(pty.link());
        let block = [b'x'; 4000];
        let lost = (0..100).any(|_| pty.write(&block).unwrap() < block.len());
        assert!(lost);
    }

    #[tokio::test]
    async fn dropping_it_unplugs_the_device_and_the_path_can_return() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("port");
        let pty = Pty::open(&link).unwrap();
        let mut file = open(&link);
        drop(pty);
        assert!(!link.exists());
        // Linux reports a hang-up as zero bytes or as an error.
        assert!(matches!(file.read(&mut [0; 10]), Ok(0) | Err(_)));
        assert!(file.write(b"x").is_err());

        let mut pty = Pty::open(&link).unwrap();
        open(&link).write_all(b"again").unwrap();
        assert_eq!(received(&mut pty).await, b"again");
    }

    #[tokio::test]
    async fn files_of_other_programs_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("port");
        fs::write(&path, "precious").unwrap();
        assert!(Pty::open(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
