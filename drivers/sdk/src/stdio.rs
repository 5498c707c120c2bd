//! The process of a driver: stdin, stdout, signals and the log. IO.

use std::io::IsTerminal;
use std::pin::Pin;
use std::process::ExitCode;
use std::{env, io, panic, process};
#[cfg(unix)]
use std::{
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use amber_proto::Device;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::many::serve_many_as;
use crate::pipe::{Hosting, Peer, serve_as};
use crate::{Devices, Driver, ServeError, guard};

/// Serves on stdin and stdout until stdin ends or the process receives SIGTERM,
/// SIGINT, SIGHUP or SIGQUIT; this is all that a driver's `main` needs.
///
/// Sets up the log with [`init_logging`] and reserves stdout for the protocol.
/// From here on (on Unix), `println!` writes to stderr. Code that prints
/// **before** this call writes into the wire, and the mediator then restarts
/// the driver: if your `main` does other work first, begin it with
/// [`claim_stdout`]. A panic in any thread or task ends the process, and the
/// mediator starts it again.
///
/// The exit code is 0 if the mediator or a signal has stopped the driver. It is
/// 1 after an error, and if the mediator is gone.
pub fn serve<D: Driver>(driver: D) -> ExitCode {
    run(async |peer, wire| {
        let hosting = Hosting::Alone(peer);
        serve_as(hosting, wire.terminated, driver, wire.reader, wire.writer).await
    })
}

/// Like [`serve`], for several devices in one process.
pub fn serve_many(devices: Devices) -> ExitCode {
    run(async |peer, wire| {
        serve_many_as(peer, wire.terminated, devices, wire.reader, wire.writer).await
    })
}

/// The connection of the process to the mediator.
struct Wire {
    terminated: Pin<Box<dyn Future<Output = ()>>>,
    reader: Box<dyn AsyncRead + Unpin>,
    writer: Box<dyn AsyncWrite + Unpin>,
}

fn run(serve: impl AsyncFnOnce(Peer, Wire) -> Result<(), ServeError>) -> ExitCode {
    if let Some(code) = guard::run() {
        return code.into();
    }
    init_logging();
    die_of_panics();
    match try_run(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", with_sources(&error));
            ExitCode::FAILURE
        }
    }
}

/// Reserves stdout for the protocol: from now on `println!`, libraries in C and
/// child processes write to stderr, which goes to the log of the mediator.
///
/// [`serve`] does the same. Make this the first line of a `main` that does
/// other work before it serves. It does not return in the process of a
/// [`Guard`](crate::Guard). A second call does nothing, nor does a call on
/// other systems than Unix. If stdout cannot be reserved, [`serve`] reports it.
///
/// ```no_run
/// # struct MyDriver;
/// # impl amber_driver::Driver for MyDriver {
/// #     type Message = amber_driver::proto::dummy::DriverMsg;
/// #     async fn request(&mut self, _: amber_driver::Request<Self::Message>) -> Option<Self::Message> { None }
/// # }
/// fn main() -> std::process::ExitCode {
///     amber_driver::claim_stdout();
///     println!("this line goes to the log");
///     amber_driver::serve(MyDriver)
/// }
/// ```
pub fn claim_stdout() {
    if let Some(code) = guard::run() {
        // The rest of `main` is not for a guard.
        #[allow(clippy::exit)]
        process::exit(code.into());
    }
    #[cfg(unix)]
    {
        let mut wire = lock_wire();
        if wire.is_none() {
            *wire = redirect_stdout().ok();
        }
    }
}

/// Writes log lines of `tracing` to stderr, from level `info` upwards.
///
/// The environment variable `AMBER_LOG` changes that, e.g.
/// `AMBER_LOG=debug,amber_driver=trace`. If a mediator started this process, a
/// line has only level and text, and the mediator adds the rest. Does nothing
/// if the program has already set up its own log.
pub fn init_logging() {
    let all = Targets::new().with_default(tracing::Level::INFO);
    let (filter, problem) = match env::var("AMBER_LOG").unwrap_or_default() {
        unset if unset.is_empty() => (all, None),
        filter => match filter.parse() {
            Ok(filter) => (filter, None),
            Err(error) => (all, Some(error)),
        },
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // The mediator adds the time, and the name of the driver.
        .without_time()
        .with_target(peer() == Peer::Unknown);
    let registry = tracing_subscriber::registry().with(filter).with(lines);
    if registry.try_init().is_ok()
        && let Some(error) = problem
    {
        tracing::warn!("AMBER_LOG is invalid, so the level is `info`: {error}");
    }
}

/// A mediator of this project names here the devices that a driver serves.
const NAMED: &str = "AMBER_DEVICE";

/// A mediator of this project identifies itself to its drivers by an environment variable.
fn peer() -> Peer {
    match env::var_os(NAMED) {
        Some(_) => Peer::Amber,
        None => Peer::Unknown,
    }
}

/// The devices that the mediator names for this process, in the order of its configuration. None if
/// something else started the process, such as a mediator of the original system.
#[must_use]
pub fn named_devices() -> Vec<Device> {
    let named = env::var(NAMED).unwrap_or_default();
    let devices = named.split(',').filter_map(|name| name.parse().ok());
    devices.collect()
}

fn try_run(
    serve: impl AsyncFnOnce(Peer, Wire) -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let served = runtime.block_on(async {
        let (writer, end) = stdout().map_err(ServeError::Write)?;
        let wire = Wire {
            terminated: Box::pin(terminated().map_err(ServeError::Runtime)?),
            reader: stdin().map_err(ServeError::Read)?,
            writer,
        };
        serve(peer(), wire).await?;
        match end.is_closed() {
            true => Err(ServeError::Lost),
            false => Ok(()),
        }
    });
    // A thread that waits for a key press must not keep the process alive.
    runtime.shutdown_background();
    served
}

fn die_of_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        // The exit code of a panicking `main`. Without this, a task that panics would end unnoticed
        // while the driver continues.
        #[allow(clippy::exit)]
        process::exit(101);
    }));
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(unix)]
fn terminated() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    // Every signal that would end the process but leaves time to stop the wheels.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
            _ = quit.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn terminated() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// A pipe is read directly, anything else (a terminal, a file) through a thread.
#[cfg(unix)]
fn stdin() -> io::Result<Box<dyn AsyncRead + Unpin>> {
    use std::os::fd::AsFd;
    use tokio::net::unix::pipe;

    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(match pipe::Receiver::from_owned_fd(stdin) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    })
}

/// The wire, from [`claim_stdout`] until [`serve`] takes it.
#[cfg(unix)]
static WIRE: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// The end of the wire, kept to learn whether the mediator still reads.
#[cfg(unix)]
struct WireEnd(OwnedFd);

#[cfg(unix)]
impl WireEnd {
    /// Whether the other end has stopped reading. A mediator that stops a driver closes stdin, and
    /// continues to read until the driver has ended; a mediator that is gone has closed both.
    fn is_closed(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, poll};
        use std::os::fd::AsFd;

        let mut wire = [PollFd::new(self.0.as_fd(), PollFlags::empty())];
        let closed = PollFlags::POLLERR | PollFlags::POLLHUP;
        poll(&mut wire, END_OF_MEDIATOR_MS).is_ok_and(|ready| ready > 0)
            && wire[0].revents().is_some_and(|it| it.intersects(closed))
    }
}

/// A process that is killed closes its files one after the other. This is how long it may take
/// from stdin to stdout, in milliseconds.
#[cfg(unix)]
const END_OF_MEDIATOR_MS: u8 = 10;

/// Takes the wire, and redirects further printed output to stderr.
#[cfg(unix)]
fn stdout() -> io::Result<(Box<dyn AsyncWrite + Unpin>, WireEnd)> {
    use tokio::net::unix::pipe;

    let stdout = match lock_wire().take() {
        Some(wire) => wire,
        None => redirect_stdout()?,
    };
    let end = WireEnd(stdout.try_clone()?);
    let file = std::fs::File::from(stdout.try_clone()?);
    let writer: Box<dyn AsyncWrite + Unpin> = match pipe::Sender::from_owned_fd(stdout) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::fs::File::from_std(file)),
    };
    Ok((writer, end))
}

#[cfg(unix)]
fn lock_wire() -> MutexGuard<'static, Option<OwnedFd>> {
    WIRE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes descriptor 1 a copy of stderr, and returns the original.
#[cfg(unix)]
fn redirect_stdout() -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;

    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(io::stderr().as_fd())?;
    Ok(stdout)
}

#[cfg(not(unix))]
fn stdin() -> io::Result<Box<dyn AsyncRead + Unpin>> {
    Ok(Box::new(tokio::io::stdin()))
}

#[cfg(not(unix))]
fn stdout() -> io::Result<(Box<dyn AsyncWrite + Unpin>, WireEnd)> {
    Ok((Box::new(tokio::io::stdout()), WireEnd))
}

/// Other systems do not report whether the other end still reads.
#[cfg(not(unix))]
struct WireEnd;

#[cfg(not(unix))]
impl WireEnd {
    fn is_closed(&self) -> bool {
        false
    }
}
