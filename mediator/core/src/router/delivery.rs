//! Answers and publications of drivers: one copy to each client that the header names. PURE.

use std::net::SocketAddr;
use std::time::Instant;

use amber_proto::feed::Direction as Way;
use amber_proto::limits::OLD_CLIENT_DATAGRAM;
use amber_proto::pieces::is_piece;
use amber_proto::{ClientId, Device, Header, HeaderBytes};
use tracing::warn;

use super::{Message, Outbox, Router};
use crate::address::DriverKey;
use crate::counters::{Count, DropReason};
use crate::hash::Set;
use crate::limits;
use crate::queue::Lane;

/// A part of the copies of one frame, so that a frame for many clients takes several turns.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    /// The named clients that had their turn before; afterwards including those of this portion.
    pub done: usize,
    /// The datagrams to send at most; at least one.
    pub datagrams: usize,
    /// When this many bytes are sent, the portion ends; at least one.
    pub bytes: usize,
    /// Afterwards: more named clients are left.
    pub unfinished: bool,
}

impl Portion {
    /// The whole frame.
    pub const WHOLE: Self = Self {
        done: 0,
        datagrams: usize::MAX,
        bytes: usize::MAX,
        unfinished: false,
    };
}

impl Router {
    /// Forwards a reply or publication: one copy to each client in the header, or to some of
    /// them.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        key: DriverKey,
        own_id: ClientId,
        header: &Header<'_>,
        message: Message<'_>,
        portion: &mut Portion,
        out: &mut Outbox,
    ) {
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let device = match (route.devices.as_slice(), header.device()) {
            ([only], _) => *only,
            (several, Some(device)) if several.contains(&device) => device,
            (several, named) => {
                self.counters.drop(DropReason::WrongDevice);
                let dropped = self.counters.dropped(DropReason::WrongDevice);
                if dropped.is_power_of_two() {
                    let named = named.map_or("none".into(), |device| device.to_string());
                    warn!(driver = %several[0], named, dropped,
                        "a driver with several devices must name one of them in its answers");
                }
                let (device, why) = (several[0], DropReason::WrongDevice);
                self.record_dropped_answer(device, why, header, message.bytes);
                return;
            }
        };
        let bytes = message.bytes.len();
        let is_long = bytes + 2 * 11 > OLD_CLIENT_DATAGRAM && !route.warned_of_long_messages;
        // Old clients get no pieces.
        if is_long && !is_piece(message.bytes) {
            route.warned_of_long_messages = true;
            warn!(driver = %device, bytes, "old Java and Python clients cannot receive this");
        }
        let header_out = HeaderBytes::new(Some(device), None);
        let Ok(frame) = out.write_message(header_out.as_slice(), message) else {
            return self.counters.drop(DropReason::DriverTooLong);
        };
        let before = portion.done;
        if before == 0 && self.feeds.is_open() {
            let clients = || header.client_ids();
            (self.feeds).frame(Way::FromDriver, device, None, clients, message.bytes);
        }
        self.counters
            .count_many(Count::Delivered, u64::from(before == 0));
        let epoch = self.clients.epoch();
        let (mut copies, mut to_clients) = (0, 0);
        let mut repeats = Repeats::after(header, before);
        let mut room = portion.bytes;
        for id in header.client_ids().skip(before) {
            if to_clients as usize >= portion.datagrams || room == 0 {
                portion.unfinished = true;
                break;
            }
            let named_before = before + copies as usize;
            copies += 1;
            if !repeats.allow(id, || header.client_ids().take(named_before)) {
                continue;
            }
            if let Some(client) = self.clients.client_mut(id) {
                if !client.is_proved() && !self.streams.pass(epoch.moment(now), client, frame.len())
                {
                    let address = client.address();
                    self.cut_stream(now, device, address);
                    continue;
                }
                client.sent.one_more();
                if client.uses.answered(key, device)
                    && let Some(route) = self.routes.get_mut(key)
                {
                    route.untold.insert(id);
                }
                out.send(client.address, &frame);
                to_clients += 1;
                room = room.saturating_sub(frame.len());
            } else if let Some(asker) = self.routes.of_id(id) {
                let asker_route = self.routes.get_mut(asker);
                if asker_route.is_some_and(|it| it.uses.answered(key, device))
                    && let Some(route) = self.routes.get_mut(key)
                {
                    route.untold.insert(id);
                }
                self.counters.count(Count::CopiesToDrivers);
                self.push(asker, Lane::Client(own_id), header_out, message.bytes);
            } else {
                self.counters.drop(DropReason::UnknownClient);
            }
        }
        portion.done = before + copies as usize;
        if repeats.refused > 0 {
            self.counters
                .drop_many(DropReason::DuplicateClient, repeats.refused);
            let dropped = self.counters.dropped(DropReason::DuplicateClient);
            if self.duplicates.happened(now).is_some() {
                warn!(driver = %device, dropped,
                    "a frame names the same client many times; further copies are dropped");
            }
        }
        self.counters.count_many(Count::Copies, copies);
        self.counters.count_many(Count::CopiesToClients, to_clients);
        self.counters.count_many(Count::DatagramsToSend, to_clients);
    }
}

impl Router {
    /// A client that has not proved its address gets no copy, because its host has got enough.
    fn cut_stream(&mut self, now: Instant, device: Device, to: SocketAddr) {
        self.counters.drop(DropReason::UnprovedStream);
        if let Some(datagrams) = self.streams.cut(now) {
            let last = to.ip();
            warn!(
                %device, %last, datagrams,
                "old clients on other machines get only some of the stream; \
                 `stream_bytes_per_second` and `distant_stream_bytes_per_second` under [limits] \
                 set how much"
            );
        }
    }
}

/// Detects clients that one frame names again. Old drivers name a client once per subscription,
/// and the original mediator sent each copy.
#[derive(Default)]
struct Repeats {
    /// The last id, as long as ids ascend. Most drivers keep their subscribers sorted; then
    /// there are no repetitions.
    last: Option<ClientId>,
    /// All ids so far, once they did not ascend.
    seen: Option<Set<ClientId>>,
    allowed: usize,
    refused: u64,
}

impl Repeats {
    /// After the first ids of a header.
    fn after(header: &Header<'_>, done: usize) -> Self {
        let mut repeats = Self::default();
        for (number, id) in header.client_ids().take(done).enumerate() {
            repeats.allow(id, || header.client_ids().take(number));
        }
        repeats.refused = 0;
        repeats
    }

    /// Whether the next id in a frame gets a copy. `before` are the previous ids.
    fn allow<I: Iterator<Item = ClientId>>(
        &mut self,
        id: ClientId,
        before: impl Fn() -> I,
    ) -> bool {
        if self.seen.is_none() && self.last.is_none_or(|last| last < id) {
            self.last = Some(id);
            return true;
        }
        let seen = self.seen.get_or_insert_with(|| before().collect());
        if seen.insert(id) {
            return true;
        }
        let allowed = self.allowed < limits::REPEATED_COPIES;
        self.allowed += usize::from(allowed);
        self.refused += u64::from(!allowed);
        allowed
    }
}
