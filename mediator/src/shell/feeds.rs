//! The sockets of recorders. IO.
//!
//! A request creates one Unix socket for one connection. Only the user of the mediator can open
//! it: its folder is closed to others. The file is removed when the recorder has connected, or if
//! it does not connect in time. All writes are non-blocking; data that a recorder does not read
//! yet stays in the bounded buffer of the core.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use mio::Interest;
use mio::net::{UnixListener, UnixStream};
use rustix::process::getuid;
use tracing::{debug, info};

use super::poll::Source;
use super::{Alarm, Shell};
use amber_core::feeds::FeedKey;
use amber_core::limits::{FEED_PATIENCE, FEED_PAUSE, FEED_SOCKETS, FEED_WRITE_BYTES, FEEDS};
use amber_proto::Device;

/// The recorders of a mediator, and the sockets of those that have not connected yet.
#[derive(Debug, Default)]
pub(super) struct Recorders {
    next: u32,
    awaited: BTreeMap<FeedKey, Awaited>,
    connected: BTreeMap<FeedKey, Connection>,
}

/// A socket for a recorder.
#[derive(Debug)]
struct Awaited {
    listener: UnixListener,
    path: PathBuf,
    devices: Vec<Device>,
    until: Instant,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        // It may have been removed by hand.
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    /// The socket is full: wait until it is writable.
    blocked: bool,
    /// The recorder has left: it gets the waiting data, and then the end of the stream.
    ending: bool,
    /// When to write the waiting data, even if it is little.
    due: Option<Instant>,
}

/// The remaining work for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Everything is written.
    Nothing,
    /// The socket is full.
    Waits,
    /// The recorder is gone.
    Gone,
}

impl Shell {
    /// Creates the socket for a recorder. Returns its path, or an error and a hint.
    pub(super) fn make_feed(
        &mut self,
        devices: Vec<Device>,
    ) -> Result<String, (String, Option<String>)> {
        // A socket that nobody opens must not take the place of a recorder.
        if self.recorders.connected.len() >= FEEDS {
            let hint = "stop one of them".to_owned();
            return Err((format!("there are already {FEEDS} recorders"), Some(hint)));
        }
        if self.recorders.awaited.len() >= FEED_SOCKETS {
            self.recorders.awaited.pop_first();
        }
        let key = FeedKey(self.recorders.next);
        self.recorders.next += 1;
        let made = folder().and_then(|folder| {
            // Mediators in other containers may have the same process id.
            let name = format!("feed-{}-{:08x}", std::process::id(), fastrand::u32(..));
            let path = folder.join(name);
            let mut listener = UnixListener::bind(&path)
                .map_err(|error| format!("cannot make the socket {}: {error}", path.display()))?;
            let token = Source::Recorder(key).into();
            let watched =
                fs::set_permissions(&path, Permissions::from_mode(0o600)).and_then(|()| {
                    (self.poll.registry()).register(&mut listener, token, Interest::READABLE)
                });
            match watched {
                Ok(()) => Ok((listener, path)),
                Err(error) => {
                    let _ = fs::remove_file(&path);
                    Err(format!("cannot use the socket {}: {error}", path.display()))
                }
            }
        });
        let (listener, path) = made.map_err(|error| {
            let hint = "set XDG_RUNTIME_DIR of the mediator to its own folder";
            (error, Some(hint.to_owned()))
        })?;
        let until = Instant::now() + FEED_PATIENCE;
        let shown = path.to_string_lossy().into_owned();
        let awaited = Awaited {
            listener,
            path,
            devices,
            until,
        };
        self.recorders.awaited.insert(key, awaited);
        self.set_recorder_alarm();
        Ok(shown)
    }

    pub(super) fn recorder_connects(&mut self, key: FeedKey) {
        let Some(awaited) = self.recorders.awaited.get(&key) else {
            return;
        };
        let mut stream = match awaited.listener.accept() {
            Ok((stream, _)) => stream,
            // The recorder has already left; another one may connect.
            Err(error) => return debug!(%error, "a recorder did not connect"),
        };
        if self.recorders.connected.len() >= FEEDS {
            self.recorders.awaited.remove(&key);
            self.set_recorder_alarm();
            return info!("a recorder was refused: there are already {FEEDS}");
        }
        let token = Source::Feed(key).into();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = (self.poll.registry()).register(&mut stream, token, interest) {
            return debug!(%error, "a recorder cannot be watched");
        }
        let Some(mut awaited) = self.recorders.awaited.remove(&key) else {
            return;
        };
        let devices = std::mem::take(&mut awaited.devices);
        let shown = devices.iter().map(ToString::to_string).collect::<Vec<_>>();
        let shown = match shown.is_empty() {
            true => "all devices".to_owned(),
            false => shown.join(", "),
        };
        info!("a recorder records {shown}");
        let connection = Connection {
            stream,
            blocked: false,
            ending: false,
            due: None,
        };
        self.recorders.connected.insert(key, connection);
        self.core.open_feed(Instant::now(), key, devices);
        self.set_recorder_alarm();
    }

    /// A recorder can be written to, or it has left.
    pub(super) fn recorder_ready(&mut self, key: FeedKey) {
        let Some(connection) = self.recorders.connected.get_mut(&key) else {
            return;
        };
        connection.blocked = false;
        connection.due = Some(Instant::now());
        if !connection.ending && has_left(&connection.stream) {
            connection.ending = true;
            self.core.end_feed(Instant::now(), key);
        }
    }

    /// Bytes have waited long enough, or a recorder has not connected.
    pub(super) fn recorders_due(&mut self, now: Instant) {
        (self.recorders.awaited).retain(|_, awaited| awaited.until > now);
        self.feed_recorders();
        self.set_recorder_alarm();
    }

    /// Writes the waiting data of recorders, if there is much or it has waited for long.
    pub(super) fn feed_recorders(&mut self) {
        let now = Instant::now();
        let (mut gone, mut is_new) = (Vec::new(), false);
        for (key, connection) in &mut self.recorders.connected {
            if connection.blocked {
                continue;
            }
            let Some(feed) = self.core.feed_mut(now, *key) else {
                continue;
            };
            let waiting = feed.pending().len();
            let due = connection.due.is_some_and(|due| due <= now);
            if waiting < FEED_WRITE_BYTES && !due {
                if waiting > 0 && connection.due.is_none() {
                    connection.due = Some(now + FEED_PAUSE);
                    is_new = true;
                }
                continue;
            }
            let mut taken = 0;
            let rest = write(&mut connection.stream, feed.pending(), &mut taken);
            self.core.feeds_mut().wrote(now, *key, taken);
            connection.due = None;
            match rest {
                Rest::Nothing if connection.ending => gone.push(*key),
                Rest::Nothing => {}
                Rest::Waits => connection.blocked = true,
                Rest::Gone => gone.push(*key),
            }
        }
        for key in gone {
            self.recorder_gone(key);
        }
        if is_new {
            self.set_recorder_alarm();
        }
    }

    /// Writes the last records, as far as they fit.
    pub(super) fn end_recorders(&mut self) {
        let now = Instant::now();
        let keys: Vec<_> = self.recorders.connected.keys().copied().collect();
        for key in keys {
            self.core.end_feed(now, key);
            if let Some(connection) = self.recorders.connected.get_mut(&key) {
                (connection.blocked, connection.due) = (false, Some(now));
            }
        }
        self.feed_recorders();
        self.recorders.awaited.clear();
    }

    fn recorder_gone(&mut self, key: FeedKey) {
        self.recorders.connected.remove(&key);
        let (messages, bytes) = self.core.feeds_mut().close(key);
        match messages {
            0 => info!("a recorder has ended"),
            _ => info!(
                messages,
                bytes, "a recorder has ended; it was too slow for some frames"
            ),
        }
    }

    fn set_recorder_alarm(&mut self) {
        let Recorders {
            awaited, connected, ..
        } = &self.recorders;
        let awaited = awaited.values().map(|awaited| awaited.until);
        let waits = |connection: &&Connection| !connection.blocked;
        let connected = connected.values().filter(waits);
        match awaited.chain(connected.filter_map(|it| it.due)).min() {
            Some(due) => self.alarms.set(Alarm::Recorders, due),
            None => self.alarms.clear(Alarm::Recorders),
        }
    }
}

/// The answer to a program of another user.
pub(super) fn of_another_user() -> (String, Option<String>) {
    let text = "only programs of the mediator's user may record";
    let hint = "run `amber record` as this user, e.g. with sudo";
    (text.to_owned(), Some(hint.to_owned()))
}

/// Writes as much as the socket accepts, and counts it in `taken`.
fn write(stream: &mut UnixStream, bytes: &[u8], taken: &mut usize) -> Rest {
    while *taken < bytes.len() {
        match stream.write(&bytes[*taken..]) {
            Ok(0) => return Rest::Gone,
            Ok(count) => *taken += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Rest::Waits,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Rest::Gone,
        }
    }
    Rest::Nothing
}

/// Whether the other end has closed its direction. A recorder sends nothing.
fn has_left(stream: &UnixStream) -> bool {
    use nix::sys::socket::{MsgFlags, recv};
    use std::os::fd::AsRawFd;
    let mut ignored = [0; 64];
    loop {
        match recv(stream.as_raw_fd(), &mut ignored, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => return true,
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(nix::errno::Errno::EAGAIN) => return false,
            Err(_) => return true,
        }
    }
}

/// The folder for the sockets, which only this user can open: that of the service, that of the
/// session, or one of our own.
fn folder() -> Result<PathBuf, String> {
    let given = |name| env::var_os(name).filter(|value| !value.is_empty());
    // systemd separates several folders by colons.
    let service = given("RUNTIME_DIRECTORY").and_then(|folders| {
        let folders = folders.into_string().ok()?;
        folders.split(':').next().map(PathBuf::from)
    });
    let base = service.or_else(|| given("XDG_RUNTIME_DIR").map(PathBuf::from));
    let folder = match base {
        Some(base) => base.join("amber"),
        None => env::temp_dir().join(format!("amber-{}", getuid().as_raw())),
    };
    closed_folder(&folder)
        .map_err(|error| format!("cannot use the folder {}: {error}", folder.display()))?;
    Ok(folder)
}

/// Creates a folder that only this user can open, or checks an existing one.
fn closed_folder(folder: &Path) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_open_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let ours = base.path().join("ours");
        closed_folder(&ours).unwrap();
        closed_folder(&ours).unwrap();
        assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        let open = base.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        assert!(closed_folder(&open).is_err());
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        assert!(closed_folder(&link).is_err());
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(closed_folder(&file).is_err());
    }
}
