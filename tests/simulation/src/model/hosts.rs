//! Whose machine an address belongs to, and who of them makes room. PURE.

use std::net::{IpAddr, SocketAddr};

use amber_mediator::counters::Count;

use super::{Cause, Changes, Model};
use crate::invariant::{Check, Invariant, holds};

impl Model {
    /// How many clients of the same host are known.
    pub(super) fn of_its_host(&self, address: &SocketAddr) -> usize {
        let host = host(address);
        let clients = self.people.keys();
        clients.filter(|other| self::host(other) == host).count()
    }

    /// Somebody may have come to a host that had so many before.
    pub(super) fn check_hosts(&self, changes: &Changes<'_>, before: usize) -> Check {
        let made_room = changes.counted(Count::ClientsEvictedForHost);
        let (Cause::Datagram(from, _), 1) =
            (changes.call.cause, changes.counted(Count::ClientsSeen))
        else {
            return holds(Invariant::HostHarmsItself, made_room == 0, || {
                format!("{made_room} made room for nobody")
            });
        };
        let limit = self.clients_per_host;
        let too_many = (before + 1).saturating_sub(limit);
        holds(
            Invariant::HostHarmsItself,
            made_room == too_many as u64 && (too_many == 0 || changes.gone.len() == too_many),
            || {
                let gone = changes.gone.len();
                format!(
                    "{from} comes where {before} of {limit} were: \
                     {made_room} made room for its host, {gone} are gone"
                )
            },
        )?;
        let other = changes.gone.keys().find(|gone| host(gone) != host(&from));
        holds(
            Invariant::HostHarmsItself,
            too_many == 0 || other.is_none(),
            || format!("{other:?} made room for {from}, of a host with {before} of {limit}"),
        )
    }
}

/// An IPv4 address, a network of 64 bits, or this machine.
fn host(address: &SocketAddr) -> u128 {
    match address.ip().to_canonical() {
        ip if ip.is_loopback() => 1,
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits() >> 64 << 64,
    }
}
