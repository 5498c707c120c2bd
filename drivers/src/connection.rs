//! The way to a device: a serial port or a TCP connection. IO.
//!
//! Drivers take a [`Connect`], so that they run over anything that carries
//! bytes, such as a pipe of a test.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serial2_tokio::SerialPort;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a request may take to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes to and from a device.
pub trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// Opens the way to a device, again and again.
pub trait Connect: Send + 'static {
    /// Opens it anew.
    ///
    /// Dropping the future gives up.
    fn connect(&mut self) -> impl Future<Output = io::Result<Box<dyn Connection>>> + Send;

    /// Where it leads, in words such as "/dev/ttyACM0".
    fn place(&self) -> String {
        "the port".into()
    }
}

/// Opens the way to a device, or says in words why it cannot.
///
/// Dropping the future gives up.
pub(crate) async fn open(connect: &mut impl Connect) -> Result<Box<dyn Connection>, String> {
    let connected = connect.connect().await;
    connected.map_err(|error| in_words(&error, &connect.place()))
}

/// Why a place cannot be opened.
pub(crate) fn in_words(error: &io::Error, place: &str) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => not_there(place),
        io::ErrorKind::PermissionDenied => {
            format!("no right to open {place}; see its group with ls -l")
        }
        _ => format!("cannot open {place}: {error}"),
    }
}

/// The same words whether it has just been pulled out or never was there, so
/// that an outage is told in one line.
fn not_there(place: &str) -> String {
    format!("{place} is not there")
}

/// How many bytes were read, or in words why there will be no more.
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

/// The open or closed way to a device that is read and written as a stream.
///
/// What goes wrong is told in words; the port should be closed then.
pub(crate) struct Port<C> {
    connect: C,
    connection: Option<Box<dyn Connection>>,
}

impl<C: Connect> Port<C> {
    /// A closed one.
    pub(crate) fn new(connect: C) -> Self {
        let connection = None;
        Self {
            connect,
            connection,
        }
    }

    /// Opens it anew. Dropping the future gives up.
    pub(crate) async fn open(&mut self) -> Result<(), String> {
        self.connection = None;
        self.connection = Some(open(&mut self.connect).await?);
        Ok(())
    }

    /// Closes it.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    /// Waits for bytes; for ever while it is closed.
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let Some(connection) = &mut self.connection else {
            return pending().await;
        };
        let read = connection.read(buffer).await;
        received(read, || self.connect.place())
    }

    /// Writes a request of some bytes, which must not take longer than a second.
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

/// Where a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a serial port, such as `/dev/ttyACM0`.
    Serial {
        /// The file of the port.
        path: PathBuf,
        /// Bits per second.
        baud: u32,
    },
    /// At a TCP server, `HOST:PORT`.
    Tcp(String),
}

impl Connect for Place {
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
}

/// A raw serial port: 8N1, no echo, no flow control, and ours alone.
struct Serial {
    port: SerialPort,
    /// Locked as long as it is open, so that a second driver that is started
    /// by mistake does not mix its bytes into ours.
    _lock: std::fs::File,
}

impl Serial {
    fn open(path: &Path, baud: u32) -> io::Result<Self> {
        let lock = lock(path)?;
        let port = SerialPort::open(path, baud)?;
        // What was sent before anybody listened means nothing now.
        port.discard_buffers()?;
        Ok(Self { port, _lock: lock })
    }
}

fn lock(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use nix::fcntl::OFlag;
        use std::os::unix::fs::OpenOptionsExt;
        // A terminal must neither block us until a modem answers nor become ours.
        options.custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
    }
    let file = options.open(path)?;
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "another program uses it")
        }
        std::fs::TryLockError::Error(error) => error,
    })?;
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

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Serial { path, baud } => write!(f, "{} at {baud} baud", path.display()),
            Self::Tcp(address) => write!(f, "tcp {address}"),
        }
    }
}
