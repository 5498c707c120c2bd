//! The connection to a device: a serial port or a TCP connection. IO.
//!
//! Drivers take a [`Connect`], so they run over any byte stream, such as a pipe in a test.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use amber_driver::Guard;
use serial2_tokio::SerialPort;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Time limit for a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for writing a request.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time for which a line is high or low that wakes a device.
const WAKE_PULSE: Duration = Duration::from_millis(100);

/// Bytes to and from a device.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// Opens the connection to a device, repeatedly.
pub trait Connect: Send + 'static {
    /// Opens the connection again.
    ///
    /// Dropping the future abandons the attempt.
    fn connect(&mut self) -> impl Future<Output = io::Result<Box<dyn Connection>>> + Send;

    /// The name of the endpoint, such as "/dev/ttyACM0".
    fn place(&self) -> String {
        "the port".into()
    }

    /// Starts a guard for the device that was just connected, once. `None` if there can be none, as in
    /// a test.
    ///
    /// # Errors
    /// There should be one, but it cannot be started.
    fn guard(&mut self) -> io::Result<Option<Guard>> {
        Ok(None)
    }
}

/// Opens the connection to a device. The error is a text for people.
///
/// Dropping the future abandons the attempt.
pub(crate) async fn open(connect: &mut impl Connect) -> Result<Box<dyn Connection>, String> {
    let connected = connect.connect().await;
    connected.map_err(|error| in_words(&error, &connect.place()))
}

/// Describes why an endpoint cannot be opened.
pub(crate) fn in_words(error: &io::Error, place: &str) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => not_there(place),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to open {place}; check its group with ls -l")
        }
        _ => format!("cannot open {place}: {error}"),
    }
}

/// The same text for a device that was unplugged and one that never existed, so that an outage is
/// logged once.
fn not_there(place: &str) -> String {
    format!("{place} does not exist")
}

/// Returns the number of bytes read, or the reason why no more will come.
pub(crate) fn received(
    read: io::Result<usize>,
    place: impl FnOnce() -> String,
) -> Result<usize, String> {
    match read {
        Ok(0) => Err(not_there(&place())),
        Ok(length) => Ok(length),
        Err(error) => Err(format!("{} has failed: {error}", place())),
    }
}

/// The connection to a device, open or closed, as a byte stream.
///
/// Errors are texts for people; close the port after an error.
pub(crate) struct Port<C> {
    connect: C,
    connection: Option<Box<dyn Connection>>,
}

impl<C: Connect> Port<C> {
    /// Creates a closed port.
    pub(crate) fn new(connect: C) -> Self {
        let connection = None;
        Self {
            connect,
            connection,
        }
    }

    /// Creates an open port.
    pub(crate) fn opened(connect: C, connection: Box<dyn Connection>) -> Self {
        let connection = Some(connection);
        Self {
            connect,
            connection,
        }
    }

    /// Opens the port again. Dropping the future abandons the attempt.
    pub(crate) async fn open(&mut self) -> Result<(), String> {
        self.connection = None;
        self.connection = Some(open(&mut self.connect).await?);
        Ok(())
    }

    /// Closes the port.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    /// Whether the port is open.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Waits for bytes; never returns while the port is closed.
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let Some(connection) = &mut self.connection else {
            return pending().await;
        };
        let read = connection.read(buffer).await;
        received(read, || self.connect.place())
    }

    /// Starts a guard that does these writes if the driver is killed or hangs.
    pub(crate) fn guard(&mut self, writes: &[Vec<u8>]) -> Result<Option<Guard>, String> {
        let started = self.connect.guard();
        let place = || self.connect.place();
        let guard = started.map_err(|error| format!("no guard for {}: {error}", place()))?;
        if let Some(guard) = &guard {
            guard.arm(writes);
        }
        Ok(guard)
    }

    /// Writes a request, within at most one second.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(connection) = &mut self.connection else {
            return Err(format!("{} is closed", self.connect.place()));
        };
        let write = async {
            connection.write_all(bytes).await?;
            connection.flush().await
        };
        let written = timeout(WRITE_TIMEOUT, write).await;
        let written = written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        written.map_err(|error| format!("cannot write to {}: {error}", self.connect.place()))
    }
}

impl<F> Connect for F
where
    F: FnMut() -> io::Result<Box<dyn Connection>> + Send + 'static,
{
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        self()
    }
}

/// The endpoint of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A serial port, such as `/dev/ttyACM0`.
    Serial {
        /// The device file of the port.
        path: PathBuf,
        /// Bits per second.
        baud: u32,
    },
    /// A TCP server, `HOST:PORT`.
    Tcp(String),
}

impl Connect for Endpoint {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        match self {
            Self::Serial { path, baud } => Ok(Box::new(Serial::open(path, *baud)?)),
            Self::Tcp(address) => {
                let connecting = TcpStream::connect(address.as_str());
                let stream = timeout(CONNECT_TIMEOUT, connecting)
                    .await
                    .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Serial { path, .. } => path.display().to_string(),
            Self::Tcp(address) => address.clone(),
        }
    }

    fn guard(&mut self) -> io::Result<Option<Guard>> {
        match self {
            Self::Serial { path, .. } => Guard::start(open_device(path)?).map(Some),
            Self::Tcp(_) => Ok(None),
        }
    }
}

/// A raw serial port: 8N1, no echo, no flow control, exclusive access.
struct Serial {
    port: SerialPort,
    /// Held while the port is open, so that a second driver started by mistake cannot mix its bytes
    /// into ours.
    _lock: Lock,
}

impl Serial {
    fn open(path: &Path, baud: u32) -> io::Result<Self> {
        let lock = lock(path)?;
        let port = SerialPort::open(path, baud)?;
        // Discard bytes that arrived before the port was open.
        port.discard_buffers()?;
        Ok(Self { port, _lock: lock })
    }
}

/// Opens a serial port at whose other end the line DTR is a switch, which is on while it is not set.
pub(crate) fn open_without_dtr(path: &Path, baud: u32) -> io::Result<Box<dyn Connection>> {
    let serial = Serial::open(path, baud)?;
    // A pseudo-terminal and some adapters have no such line.
    let _ = serial.port.set_dtr(false);
    Ok(Box::new(serial))
}

/// Opens a serial port at whose other end the line RTS wakes the device: it is high, low for a moment,
/// and high again. Setting RTS makes it low. Returns also the same port for a guard.
pub(crate) async fn open_and_wake(
    path: &Path,
    baud: u32,
) -> io::Result<(Box<dyn Connection>, std::fs::File)> {
    let serial = Serial::open(path, baud)?;
    // Opening sets RTS, so this comes first.
    let for_guard = open_device(path)?;
    for is_low in [false, true, false] {
        // A pseudo-terminal and some adapters have no such line.
        if serial.port.set_rts(is_low).is_err() {
            break;
        }
        sleep(WAKE_PULSE).await;
    }
    Ok((Box::new(serial), for_guard))
}

#[cfg(unix)]
type Lock = nix::fcntl::Flock<std::fs::File>;
#[cfg(not(unix))]
type Lock = std::fs::File;

/// Opens a device file, and leaves its settings as they are.
fn open_device(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use nix::fcntl::OFlag;
        use std::os::unix::fs::OpenOptionsExt;
        // Opening a terminal must not wait for a modem or make it our controlling terminal.
        options.custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
    }
    options.open(path)
}

fn lock(path: &Path) -> io::Result<Lock> {
    let file = open_device(path)?;
    #[cfg(unix)]
    let file = {
        use nix::errno::Errno;
        use nix::fcntl::{Flock, FlockArg};
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
            Errno::EWOULDBLOCK => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another program uses it")
            }
            error => error.into(),
        })?
    };
    Ok(file)
}

impl AsyncRead for Serial {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Serial {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.port).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.port).poll_shutdown(cx)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Serial { path, baud } => write!(f, "{} at {baud} baud", path.display()),
            Self::Tcp(address) => write!(f, "tcp {address}"),
        }
    }
}
