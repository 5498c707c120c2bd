//! The host of an address, and evictions within a host. PURE.

use std::net::{IpAddr, SocketAddr};

use amber_core::counters::Count;
use amber_core::limits::SILENT;

use super::{Cause, Changes, Model, Person};
use crate::invariant::{Check, Invariant, holds};

impl Model {
    /// The number of known clients of the same host.
    pub(super) fn of_its_host(&self, address: &SocketAddr) -> usize {
        let host = host(address);
        let clients = self.people.keys();
        clients.filter(|other| self::host(other) == host).count()
    }

    /// Checks evictions after a client may have joined a host with this number of clients.
    pub(super) fn check_hosts(&self, changes: &Changes<'_>, before: usize) -> Check {
        let made_room = changes.counted(Count::ClientsEvictedForHost);
        let (Cause::Datagram(from, _), 1) =
            (changes.call.cause, changes.counted(Count::ClientsSeen))
        else {
            return holds(Invariant::HostHarmsItself, made_room == 0, || {
                format!("{made_room} were evicted without a new client")
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
                    "{from} joined a host with {before} of {limit} clients: \
                     {made_room} of its host were evicted, {gone} are gone"
                )
            },
        )?;
        let other = changes.gone.keys().find(|gone| host(gone) != host(&from));
        holds(
            Invariant::HostHarmsItself,
            too_many == 0 || other.is_none(),
            || format!("{other:?} was evicted for {from}, whose host has {before} of {limit}"),
        )
    }

    /// Checks that no client of a full host that was heard a moment ago has gone while another one
    /// was silent. `heard` still has the times before the call.
    pub(super) fn check_who_was_evicted(&self, changes: &Changes<'_>) -> Check {
        let (Cause::Datagram(from, _), 1..) = (
            changes.call.cause,
            changes.counted(Count::ClientsEvictedForHost),
        ) else {
            return Ok(());
        };
        let is_silent = |person: &Person| changes.call.now - person.heard >= SILENT;
        let mut left = (self.people.iter()).filter(|(other, _)| host(other) == host(&from));
        let silent = left.find(|(_, person)| is_silent(person));
        let recent = changes.gone.iter().find(|(_, person)| !is_silent(person));
        holds(
            Invariant::SilentMakeRoom,
            silent.is_none() || recent.is_none(),
            || format!("{recent:?} was evicted for {from}, but {silent:?} was not"),
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
