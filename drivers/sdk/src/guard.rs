//! A process that stops the hardware when its driver is killed. IO, except for `will`.
//!
//! ```text
//!   driver --- what to write, every 100 ms ---> guard: another process of the same program
//!      |  <-- ready, acted ---------------------  |
//!      +----------- device <----------------------+  when the socket ends, or after 1 s of silence
//! ```
//!
//! The guard gets a copy of the open device over the socket, so it needs no rights and no names, and
//! its own standard output is not the device: what a `main` prints does no harm.

mod will;

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{env, thread};

use nix::sys::prctl::set_name;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::will::{Watch, message};

/// The variable that makes a process a guard. The mediator knows it: it lets a guard outlive its
/// driver for a moment.
const VARIABLE: &str = "AMBER_MOTION_GUARD";

/// The name of the process. It differs from that of the driver, so that `killall` of the driver's name
/// leaves the guard to do its work.
const NAME: &std::ffi::CStr = c"motion-guard";

/// The interval between two signs of life of the driver ...
const SIGN_OF_LIFE: Duration = Duration::from_millis(100);
/// ... and how long the guard waits for one.
const MAX_SILENCE: Duration = Duration::from_secs(1);
/// How long a guard may take to start.
const MAX_START: Duration = Duration::from_secs(5);
/// The pause before a lost guard is replaced.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a failed write to the device is repeated: noise on the wires is short.
const MAX_WRITING: Duration = Duration::from_millis(500);
/// The pause before a failed write is repeated.
const RETRY: Duration = Duration::from_millis(5);

/// The guard has the device.
const READY: u8 = b'+';
/// The guard has written because the driver was silent.
const ACTED: u8 = b'!';

/// Stops the hardware when the driver is killed or hangs.
///
/// For hardware without a watchdog of its own, which otherwise goes on with what it was told last.
/// The guard is a second process. It has the same open device, and writes what
/// [`Guard::arm`] has set
///
/// - when the driver has ended in whatever way, SIGKILL included: within some milliseconds;
/// - when the driver hangs, for example by SIGSTOP: one second after its last sign of life, which
///   this module sends every 100 ms while the runtime works;
/// - when the `Guard` is dropped. Call [`Guard::disarm`] before if nothing is to be written.
///
/// The guard process is the program of the driver with the same arguments:
/// [`serve`](crate::serve), [`serve_many`](crate::serve_many) and
/// [`claim_stdout`](crate::claim_stdout) recognize it. So a `main` must not use the hardware before it
/// calls one of them. If the guard process ends, [`Guard::trouble`] says so and another one is
/// started.
///
/// ```no_run
/// # fn open() -> std::io::Result<std::fs::File> { std::fs::File::open("/dev/ttyUSB0") }
/// # async fn start() -> std::io::Result<()> {
/// let port = open()?;
/// let guard = amber_driver::Guard::start(port.try_clone()?)?;
/// guard.arm(&[b"stop\r".to_vec()]);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it stops the hardware"]
#[derive(Debug)]
pub struct Guard {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The trouble has changed, or the guard has acted.
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The message for the guard.
    message: Vec<u8>,
    /// The socket to the guard, if it runs.
    line: Option<UnixStream>,
    trouble: Option<String>,
    has_acted: bool,
    is_dropped: bool,
}

/// The open device. It is kept for the next guard.
type Device = Box<dyn AsRawFd + Send>;

impl Guard {
    /// Starts a guard for an open device: a descriptor on which a plain `write` does what is wanted,
    /// such as that of a serial port, of a socket, or of an I2C bus whose address was set with
    /// I2C_SLAVE. Keeps the device until the guard is dropped. At first there is nothing to write.
    ///
    /// Call it in the runtime of the driver, such as in its `start`. It blocks for some milliseconds.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(device: impl AsRawFd + Send + 'static) -> io::Result<Self> {
        let device: Device = Box::new(device);
        let (process, line) = Process::start(&*device)?;
        let shared = Arc::new(Shared::default());
        shared.lock().message = message(&[]);
        shared.set_line(line);
        tokio::spawn(keep(Arc::downgrade(&shared), device, process));
        Ok(Self { shared })
    }

    /// Sets what the guard writes: each element with one call of `write`, in this order, and repeated
    /// for half a second if that fails. Together less than 64 KiB. Takes effect immediately.
    pub fn arm(&self, writes: &[Vec<u8>]) {
        self.shared.lock().message = message(writes);
        // A failure is noticed at the next sign of life.
        let _ = self.shared.give_sign_of_life();
    }

    /// Nothing is to be written any more.
    pub fn disarm(&self) {
        self.arm(&[]);
    }

    /// Why a killed driver would not stop the hardware at this moment, if that is so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.lock().trouble.clone()
    }

    /// Whether the guard has written since the last call, because the driver was silent for a second.
    /// The device is then no longer as the driver has set it.
    #[must_use]
    pub fn has_acted(&self) -> bool {
        std::mem::take(&mut self.shared.lock().has_acted)
    }

    /// Waits until [`Guard::trouble`] has changed or the guard has acted. Dropping the future loses
    /// nothing.
    pub async fn changed(&self) {
        self.shared.news.notified().await;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_dropped = true;
        // Another copy of the socket waits for the end of the process.
        if let Some(line) = &state.line {
            let _ = line.shutdown(Shutdown::Write);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_line(&self, line: UnixStream) {
        self.lock().line = Some(line);
        let _ = self.give_sign_of_life();
    }

    /// Sends the message again. Returns whether the guard takes it.
    fn give_sign_of_life(&self) -> bool {
        let state = self.lock();
        if state.is_dropped {
            return true;
        }
        let Some(mut line) = state.line.as_ref() else {
            return false;
        };
        (line.write(&state.message)).is_ok_and(|count| count == state.message.len())
    }

    fn set_trouble(&self, trouble: Option<String>) {
        if let Some(trouble) = &trouble {
            tracing::warn!("{trouble}");
        }
        self.lock().trouble = trouble;
        self.news.notify_one();
    }

    fn lose(&self, why: &str) {
        self.lock().line = None;
        self.set_trouble(Some(format!(
            "if this driver were killed now, nothing would stop what it moves: {why}"
        )));
    }
}

/// Attends to the guard, and replaces it when it is lost.
async fn keep(shared: Weak<Shared>, device: Device, mut process: Process) {
    loop {
        let why = process.attend(&shared).await;
        let status = process.end();
        if let Some(shared) = shared.upgrade() {
            shared.lose(&format!("the guard {why} ({status})"));
        }
        process = loop {
            sleep(PAUSE).await;
            // It was dropped.
            let Some(shared) = shared.upgrade() else {
                return;
            };
            match Process::start(&*device) {
                Ok((process, line)) => {
                    shared.set_line(line);
                    break process;
                }
                Err(error) => shared.lose(&format!("the guard cannot be started: {error}")),
            }
        };
    }
}

/// The process of a guard, as the driver sees it.
struct Process {
    child: Child,
    line: tokio::net::UnixStream,
    begun: Instant,
    is_ready: bool,
}

impl Process {
    /// Starts it. Returns also the socket to it.
    fn start(device: &dyn AsRawFd) -> io::Result<(Self, UnixStream)> {
        if is_guard() {
            let why = "this process is a guard itself, and has not called `serve`";
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        }
        let (line, theirs) = UnixStream::pair()?;
        // The program that runs, even if its file was replaced.
        let child = Command::new("/proc/self/exe")
            .arg0(NAME.to_str().unwrap_or_default())
            .args(env::args_os().skip(1))
            .env(VARIABLE, "1")
            .stdin(OwnedFd::from(theirs))
            // Signals to the group of the driver do not reach it.
            .process_group(0)
            .spawn()?;
        let device = [device.as_raw_fd()];
        let device = [ControlMessage::ScmRights(&device)];
        let byte = [IoSlice::new(&[0])];
        sendmsg::<()>(line.as_raw_fd(), &byte, &device, MsgFlags::empty(), None)?;
        line.set_nonblocking(true)?;
        let process = Self {
            child,
            line: tokio::net::UnixStream::from_std(line.try_clone()?)?,
            begun: Instant::now(),
            is_ready: false,
        };
        Ok((process, line))
    }

    /// Gives signs of life until the process is of no use any more. Returns why.
    async fn attend(&mut self, shared: &Weak<Shared>) -> &'static str {
        let mut signs = interval(SIGN_OF_LIFE);
        signs.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut news = [0; 16];
        loop {
            tokio::select! {
                // The end of the process says more than a failed sign of life.
                biased;
                read = self.line.read(&mut news) => match read {
                    Ok(count @ 1..) => self.handle_news(&news[..count], shared),
                    _ => return "has ended",
                },
                _ = signs.tick() => match shared.upgrade() {
                    Some(shared) if !shared.give_sign_of_life() => return "does not read",
                    Some(_) if !self.is_ready && self.begun.elapsed() > MAX_START => {
                        return "does not start: does the program call `serve`?";
                    }
                    // After the `Guard` was dropped, only the end of the process is awaited.
                    _ => {}
                },
            }
        }
    }

    fn handle_news(&mut self, news: &[u8], shared: &Weak<Shared>) {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if news.contains(&READY) {
            self.is_ready = true;
            shared.set_trouble(None);
        }
        if news.contains(&ACTED) {
            shared.lock().has_acted = true;
            shared.news.notify_one();
        }
    }

    /// Ends the process, unless it has ended. Returns how it has ended.
    fn end(&mut self) -> String {
        // It has closed its end of the socket, or is of no use.
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

/// Whether this process is a guard.
fn is_guard() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Does the work of a guard if this process is one. Returns the exit code at the end.
pub(crate) fn run() -> Option<u8> {
    is_guard().then(|| match stand_guard() {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("the guard of a driver has failed: {error}");
            1
        }
    })
}

/// Waits for the end of the driver, and then writes what stops the hardware.
fn stand_guard() -> io::Result<()> {
    // It has to survive what ends the driver, also by a terminal or a service manager.
    let signals = [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGTSTP,
        Signal::SIGPIPE,
    ];
    SigSet::from_iter(signals).thread_block()?;
    set_name(NAME)?;
    crate::init_logging();
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let device = receive_device(&line)?;
    line.set_read_timeout(Some(MAX_SILENCE))?;
    // The driver may have ended already.
    let _ = line.write_all(&[READY]);
    let mut watch = Watch::default();
    let mut bytes = [0; 4096];
    loop {
        match line.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                if let Err(error) = watch.handle_bytes(&bytes[..count]) {
                    tracing::error!("{error}");
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let writes = watch.handle_silence();
                if !writes.is_empty() {
                    // Nobody may read the log, so that comes last.
                    let written = write(&device, writes);
                    let _ = line.write_all(&[ACTED]);
                    match written {
                        Ok(()) => tracing::warn!("the driver hangs: stopped what it moves"),
                        Err(error) => tracing::error!("cannot stop what the driver moves: {error}"),
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    write(&device, watch.will())?;
    if !watch.will().is_empty() {
        tracing::info!("the driver has ended: stopped what it moved");
    }
    Ok(())
}

/// The device comes with the first byte.
fn receive_device(line: &UnixStream) -> io::Result<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut byte = [IoSliceMut::new(&mut byte)];
    recvmsg(line, &mut byte, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let device = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut devices) => devices.next(),
        _ => None,
    });
    device.map(File::from).ok_or_else(|| {
        let why = "there is no device, because the driver has ended at its start";
        io::Error::new(ErrorKind::UnexpectedEof, why)
    })
}

/// Writes everything, also after one write has failed. A serial port of a driver does not block.
fn write(mut device: &File, writes: &[Vec<u8>]) -> io::Result<()> {
    let deadline = Instant::now() + MAX_WRITING;
    let mut result = Ok(());
    for bytes in writes {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match device.write(rest) {
                Ok(count @ 1..) => rest = &rest[count..],
                _ if Instant::now() < deadline => thread::sleep(RETRY),
                Ok(_) => {
                    result = Err(ErrorKind::WriteZero.into());
                    break;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
    }
    result
}
