//! The sockets that the mediator listens on, from the configuration. IO.

use std::io;
use std::net::SocketAddr;

use mio::Poll;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use tracing::warn;

use super::{Hooks, Mediator, port_holder, udp};
use amber_core::config::Config;
use amber_core::limits::LISTEN_ADDRESSES;

/// The reason why the mediator cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another program listens there.
    #[error("{address} is in use{}", by(holder.as_deref()))]
    InUse {
        address: SocketAddr,
        /// That program, if it can be found.
        holder: Option<String>,
    },
    /// Any other error.
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, io::Error),
    /// More addresses than supported.
    #[error("{0} addresses to listen on, more than {LISTEN_ADDRESSES}")]
    TooMany(usize),
    /// The configuration names no address.
    #[error("no address to listen on")]
    Nothing,
    /// The system cannot wait for datagrams and signals.
    #[error("cannot wait for datagrams and signals: {0}")]
    Poll(io::Error),
}

fn by(holder: Option<&str>) -> String {
    holder.map_or(String::new(), |holder| format!(" by {holder}"))
}

impl Mediator {
    /// Binds the addresses of the configuration, and handles SIGTERM, SIGINT, SIGHUP and
    /// SIGCHLD of this process from now on.
    ///
    /// # Errors
    /// An address is not available, or the system refuses a resource that the mediator needs.
    /// An address family that the machine lacks is skipped with a log message, unless no other
    /// address is left.
    pub fn bind(config: Config, hooks: Hooks) -> Result<Self, BindError> {
        let mut listeners = Vec::new();
        let mut skipped = None;
        if config.listen.len() > LISTEN_ADDRESSES {
            return Err(BindError::TooMany(config.listen.len()));
        }
        for address in &config.listen {
            match udp::listen(*address) {
                Ok(listener) => listeners.push(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    let holder = port_holder::of(address.port());
                    return Err(BindError::InUse {
                        address: *address,
                        holder,
                    });
                }
                Err(error) if address.ip().is_unspecified() && lacks_family(&error) => {
                    warn!(%address, %error, "skipped");
                    skipped = Some(BindError::Other(*address, error));
                }
                Err(error) => return Err(BindError::Other(*address, error)),
            }
        }
        if listeners.is_empty() {
            return Err(skipped.unwrap_or(BindError::Nothing));
        }
        Ok(Self {
            config,
            addresses: listeners.iter().map(|listener| listener.address).collect(),
            listeners,
            hooks,
            poll: Poll::new().map_err(BindError::Poll)?,
            signals: Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD]).map_err(BindError::Poll)?,
        })
    }
}

fn lacks_family(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL))
}
