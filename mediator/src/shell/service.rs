//! Reports to the service manager that started us, such as systemd: ready, reloading, stopping,
//! alive. IO.
//!
//! Each message is one datagram of `KEY=value` lines; see sd_notify(3). The thread that owns
//! the data path sends it, so the watchdog notices a hanging loop. The socket is non-blocking,
//! so the service manager cannot make the mediator hang. A lost message does no harm, because
//! the next one repeats everything.
//!
//! This is our own code instead of the crate sd-notify: that crate opens a new socket for each
//! message, and its send blocks while the service manager's queue is full.

use std::env;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use tracing::warn;

use amber_core::Core;
use amber_core::limits::{SERVICE_STATUS_PAUSE, SERVICE_TICK, SERVICE_TICK_MIN};

/// Variables for the mediator, not for drivers.
pub(super) const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Service {
    socket: Option<UnixDatagram>,
    /// The longest time between two messages.
    tick: Duration,
    phase: Phase,
    /// The time of the last message.
    told: Option<Instant>,
}

/// The phase of the mediator.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting,
    Ready,
    Reloading,
    Stopping { patience: Duration },
}

impl Service {
    /// Reads the environment. Without a service manager, all other methods do nothing.
    pub(super) fn from_env() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|path| {
            connect(path.as_bytes())
                .inspect_err(|error| warn!(%error, "cannot reach the service manager"))
                .ok()
        });
        let number = |name| {
            env::var(name)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
        };
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|us| ours && *us > 0);
        Self {
            socket,
            // Half of the watchdog's timeout, within limits.
            tick: watchdog.map_or(SERVICE_TICK, |us| {
                Duration::from_micros(us / 2).max(SERVICE_TICK_MIN)
            }),
            phase: Phase::Starting,
            told: None,
        }
    }

    /// All drivers were started; also after a reload.
    pub(super) fn ready(&mut self) {
        if !matches!(self.phase, Phase::Stopping { .. }) {
            self.phase = Phase::Ready;
        }
    }

    /// The configuration is being read again.
    pub(super) fn reloading(&mut self) {
        if self.phase == Phase::Ready {
            self.phase = Phase::Reloading;
        }
    }

    /// The mediator is stopping, which may take this long.
    pub(super) fn stopping(&mut self, patience: Duration) {
        self.phase = Phase::Stopping { patience };
    }

    /// Sends the state. Returns when to send it again for the watchdog.
    pub(super) fn tell(&mut self, core: &Core) -> Option<Instant> {
        let socket = self.socket.as_ref()?;
        let text = message(self.phase, &core.summary(), monotonic());
        // If the socket is full, the next message replaces this one.
        let _ = socket.send(text.as_bytes());
        let now = Instant::now();
        self.told = Some(now);
        Some(now + self.tick)
    }

    /// The state may have changed. Returns when to send it.
    pub(super) fn changed(&self) -> Option<Instant> {
        Some(self.told? + self.tick.min(SERVICE_STATUS_PAUSE))
    }
}

fn connect(path: &[u8]) -> io::Result<UnixDatagram> {
    let address = match path {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(std::ffi::OsString::from_vec(path.into()))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

fn message(phase: Phase, status: &str, now: Duration) -> String {
    let phase = match phase {
        Phase::Starting => String::new(),
        Phase::Ready => "READY=1\n".into(),
        // `Type=notify-reload` needs to know when this reload began.
        Phase::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.as_micros()),
        Phase::Stopping { patience } => {
            format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\n", patience.as_micros())
        }
    };
    format!("{phase}STATUS={status}\nWATCHDOG=1\n")
}

fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_the_phase() {
        let now = Duration::from_micros(7);
        let patience = Duration::from_secs(3);
        for (phase, expected) in [
            (Phase::Starting, ""),
            (Phase::Ready, "READY=1\n"),
            (Phase::Reloading, "RELOADING=1\nMONOTONIC_USEC=7\n"),
            (
                Phase::Stopping { patience },
                "STOPPING=1\nEXTEND_TIMEOUT_USEC=3000000\n",
            ),
        ] {
            assert_eq!(
                message(phase, "all is well", now),
                format!("{expected}STATUS=all is well\nWATCHDOG=1\n")
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn path_and_abstract_addresses_both_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("amber-test-{}", process::id());
        let listeners = [
            UnixDatagram::bind(&path).unwrap(),
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
        ];
        let names = [
            path.as_os_str().as_bytes().to_vec(),
            format!("@{name}").into_bytes(),
        ];
        for (listener, name) in listeners.iter().zip(names) {
            connect(&name).unwrap().send(b"x").unwrap();
            assert_eq!(listener.recv(&mut [0; 8]).unwrap(), 1);
        }
        assert!(connect(b"/no/such/socket").is_err());
    }
}
