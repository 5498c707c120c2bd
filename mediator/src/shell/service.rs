//! The service manager that has started us, such as systemd: told when we are
//! ready, reload, stop, and that we still go round. IO.
//!
//! Each message is one datagram of `KEY=value` lines, as sd_notify(3) has it.
//! It is sent from the thread that owns the data path, so a loop that hangs is
//! noticed; and without waiting, so the manager cannot make it hang. A message
//! that is lost is made good by the next, which says everything again.

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

use crate::core::Core;
use crate::limits::{SERVICE_STATUS_PAUSE, SERVICE_TICK, SERVICE_TICK_MIN};

/// Variables that are meant for us, not for drivers.
pub(super) const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Service {
    socket: Option<UnixDatagram>,
    /// The longest time between two messages.
    tick: Duration,
    phase: Phase,
    /// When it was told last.
    told: Option<Instant>,
}

/// How far we are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting,
    Ready,
    Reloading,
    Stopping { patience: Duration },
}

impl Service {
    /// What the environment says of a service manager; without one, all that
    /// follows does nothing.
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
            // Half of what the watchdog allows, within reason.
            tick: watchdog.map_or(SERVICE_TICK, |us| {
                Duration::from_micros(us / 2).max(SERVICE_TICK_MIN)
            }),
            phase: Phase::Starting,
            told: None,
        }
    }

    /// Everything runs; also after a reload.
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

    /// We end, which may take so long.
    pub(super) fn stopping(&mut self, patience: Duration) {
        self.phase = Phase::Stopping { patience };
    }

    /// Tells how we are. Returns when to do so again, as the watchdog wants it.
    pub(super) fn tell(&mut self, core: &Core) -> Option<Instant> {
        let socket = self.socket.as_ref()?;
        let text = message(self.phase, &core.summary(), monotonic());
        // A full socket is one more reason for the next message.
        let _ = socket.send(text.as_bytes());
        let now = Instant::now();
        self.told = Some(now);
        Some(now + self.tick)
    }

    /// What there is to see may be different now. Returns when to tell it.
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
        // `Type=notify-reload` wants to know which reload this is.
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
    fn messages_say_how_far_we_are() {
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
    fn both_kinds_of_addresses_are_understood() {
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
