//! Datagrams that come and go, and what the system says of their destinations. IO.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use mio::net::UdpSocket;
use tracing::{debug, warn};

use super::poll::Source;
use super::udp::{Receiver, Rest};
use super::{Shell, errors, neighbours, udp};
use amber_core::Core;
use amber_core::address::ClientAddress;
use amber_core::counters::DropReason;
use amber_core::origin::Reach;
use amber_core::router::Unreachable;

/// A socket that receives.
pub(super) struct Inlet {
    pub(super) socket: UdpSocket,
    pub(super) receiver: Receiver,
    pub(super) reach: Reach,
    /// Index of the address that it belongs to, for [`ClientAddress::socket`].
    pub(super) listener: u8,
}

impl Shell {
    /// Receives datagrams from a socket.
    pub(super) fn receive(&mut self, index: usize) {
        self.count_lost_lines();
        let now = self.now;
        self.count_lost_datagrams(now, index);
        let core = &mut self.core;
        let own = &mut self.own_addresses;
        if own.are_old(now) {
            let interfaces = neighbours::interfaces();
            own.set(interfaces.iter().map(|interface| interface.address));
            core.set_interfaces(&interfaces);
        }
        let inlet = &mut self.inlets[index];
        let (socket, reach) = (inlet.listener, inlet.reach);
        let each = |address, bytes: &[u8]| match own.check(address, reach) {
            Ok(()) => core.datagram(now, ClientAddress { socket, address }, bytes),
            Err(why) => core.refuse_datagram(why),
        };
        match inlet.receiver.receive(&mut self.batch, &inlet.socket, each) {
            Ok(Rest::Nothing) => {}
            Ok(Rest::Unknown) => self.again(Source::Socket(index)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // An error of the socket is cleared when it is returned.
                debug!(%error, "receiving failed");
                self.again(Source::Errors(index));
                self.again(Source::Socket(index));
            }
        }
    }

    /// Counts datagrams that the system dropped: because they were to several machines, or because
    /// the receive buffer was full.
    fn count_lost_datagrams(&mut self, now: Instant, index: usize) {
        let Inlet {
            socket,
            receiver,
            reach,
            listener,
        } = &mut self.inlets[index];
        let counters = self.core.counters_mut();
        let lost = receiver.newly_lost(now, socket, || {
            if *reach == Reach::Everything {
                return 0;
            }
            let dropped = self.sender.dropped_to_groups(*listener);
            let known = &mut self.dropped_to_groups[usize::from(*listener)];
            let newly = dropped.wrapping_sub(std::mem::replace(known, dropped));
            counters.drop_many(DropReason::DatagramToGroup, newly.into());
            dropped
        });
        if lost == 0 {
            return;
        }
        counters.drop_many(DropReason::ReceiveBufferFull, lost);
        if let Some(datagrams) = self.lost_datagrams.happened_times(now, lost) {
            let hint = udp::has_little_room(socket).then_some(
                "the system grants only small buffers for them: see `sysctl net.core.rmem_max`",
            );
            warn!(
                datagrams,
                hint,
                "datagrams were lost: they arrived faster than the mediator could receive them"
            );
        }
    }

    /// Handles errors about unreachable addresses. This comes before the datagrams, because a
    /// datagram that arrives later may be from a new program at that address.
    pub(super) fn take_errors(&mut self, index: usize) {
        let core = &mut self.core;
        let inlet = &self.inlets[index];
        if take_errors(core, self.now, inlet.listener, &inlet.socket) {
            self.again(Source::Errors(index));
        }
    }

    /// The same for a sending socket: the system reports errors to any socket of the address.
    pub(super) fn take_send_errors(&mut self, number: usize) {
        let Some((listener, socket)) = self.sender.socket_at(number) else {
            return;
        };
        if take_errors(&mut self.core, self.now, listener, socket) {
            self.again(Source::SendErrors(number));
        }
    }

    /// Sends the outgoing datagrams. Returns true if a destination turned out to be
    /// unreachable.
    pub(super) fn send(&mut self) -> bool {
        let core = &mut self.core;
        if core.is_traced() {
            core.send_traced(Instant::now());
        }
        if core.outbox().is_empty() {
            return false;
        }
        let unreachable = core.transmit(|outbox, counters| self.sender.send(outbox, counters));
        for address in &unreachable {
            core.unreachable(Instant::now(), *address, Unreachable::NoRoute);
        }
        self.give_back();
        !unreachable.is_empty()
    }
}

/// Handles network errors about addresses. Returns true if there are more.
fn take_errors(core: &mut Core, now: Instant, listener: u8, socket: &impl AsFd) -> bool {
    let taken = errors::take(socket, |address, how| {
        let from = ClientAddress {
            socket: listener,
            address,
        };
        core.unreachable(now, from, how);
    });
    taken.unwrap_or_else(|error| {
        debug!(%error, "reading errors failed");
        false
    })
}
