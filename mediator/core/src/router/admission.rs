//! Decides which datagrams are admitted: access rules, and the rate of each client. PURE.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Instant;

use amber_proto::Device;

use crate::access::Access;
use crate::limits;
use crate::rate::{Digest, Rate};

#[derive(Debug)]
pub(super) struct Admission {
    access: Access,
    /// Counts changes of `access`, so that a use need not be checked again before the next.
    version: u32,
    /// Limits log messages about denied requests.
    denials: Digest,
    /// The datagrams per second that a client on another machine may send.
    rate: Rate,
    /// Ports on which mediators listen, including this one.
    mediator_ports: BTreeSet<u16>,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            access: Access::default(),
            version: 0,
            denials: Digest::default(),
            rate: Rate::per_second(limits::DATAGRAMS_PER_SECOND),
            mediator_ports: BTreeSet::from([crate::config::DEFAULT_PORT]),
        }
    }
}

impl Admission {
    pub(super) fn set_listening(&mut self, addresses: &[SocketAddr]) {
        let ports = addresses.iter().map(SocketAddr::port);
        self.mediator_ports.extend(ports);
    }

    pub(super) fn set_rate(&mut self, per_second: u32) {
        self.rate = Rate::per_second(per_second);
    }

    /// Returns whether the rules are new.
    pub(super) fn set_access(&mut self, access: Access) -> bool {
        let is_new = access != self.access;
        if is_new {
            self.access = access;
            self.version += 1;
        }
        is_new
    }

    /// The version of the rules, which changes with them.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// Whether the rules let an address use a device.
    pub(super) fn allows(&self, from: SocketAddr, device: Device) -> bool {
        self.access.allows(from, device)
    }

    /// A request was denied. If it is time to log it: the number of denials since the last time.
    pub(super) fn denied(&mut self, now: Instant) -> Option<u64> {
        self.denials.happened(now)
    }

    /// Whether a mediator may be listening at an address.
    pub(super) fn may_be_mediator(&self, from: SocketAddr) -> bool {
        self.mediator_ports.contains(&from.port())
    }

    /// The rate of datagrams that a client may send; `None` for any rate. The result of
    /// [`Admission::may_be_mediator`] is an argument, since the caller has it already.
    pub(super) fn rate_for(&self, from: SocketAddr, may_be_mediator: bool) -> Option<Rate> {
        if may_be_mediator {
            return Some(Rate::per_second(limits::MEDIATOR_PORT_DATAGRAMS_PER_SECOND));
        }
        (!from.ip().is_loopback()).then_some(self.rate)
    }
}
