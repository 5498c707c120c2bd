//! Messages that are longer than a frame: sends those of the driver in pieces, and joins requests.
//! PURE.

use std::collections::BTreeMap;
use std::time::Instant;

use amber_proto::limits::{MAX_LONG, OLD_CLIENT_DATAGRAM};
use amber_proto::pieces::{Ability, Joiner, Long, Paced, stream_of};
use amber_proto::{ClientId, Device, DeviceMessage, DriverMsg, MsgType, Packet};
use bytes::Bytes;
use prost::Message;

use super::{Complaint, MessageTooLong, Session, device_of, is_about_pieces};
use crate::request::Origin;

/// The maximum number of clients of which it is known what they join: as many as a mediator has.
const MAX_CLIENTS: usize = 4096;

/// `picture` of camera.proto: pictures go in pieces as soon as they do not fit into a datagram. As one
/// datagram, IP would cut them, and a lost part would cost the whole picture.
const PICTURE: u32 = 261;

/// Longer messages in one frame are more than old clients can receive, and the mediator warns of them.
const LONGEST_WHOLE: usize = OLD_CLIENT_DATAGRAM - 2 * 11;

/// The sender of a request, and the device that it is for.
type Sender = (ClientId, Option<Device>);

/// What a session knows about long messages.
#[derive(Debug)]
pub(super) struct LongMessages {
    /// What each client joins, according to its last request or SUBSCRIBE.
    abilities: BTreeMap<ClientId, Ability>,
    new: Vec<New>,
    paced: Paced,
    joiner: Joiner<Sender>,
    last_number: u32,
}

/// A message of the driver that has no time yet.
#[derive(Debug)]
struct New {
    long: Long,
    device: Option<Device>,
    clients: Vec<ClientId>,
    piece_bytes: usize,
}

impl Default for LongMessages {
    fn default() -> Self {
        Self {
            abilities: BTreeMap::new(),
            new: Vec::new(),
            paced: Paced::default(),
            joiner: Joiner::with_receipts(),
            last_number: 0,
        }
    }
}

impl LongMessages {
    /// A request or SUBSCRIBE says what its clients join.
    pub(super) fn note_ability(&mut self, clients: &[ClientId], joins: Option<Ability>) {
        for client in clients {
            match joins {
                Some(ability) => drop(self.abilities.insert(*client, ability)),
                None => drop(self.abilities.remove(client)),
            }
        }
        while self.abilities.len() > MAX_CLIENTS {
            self.abilities.pop_first();
        }
    }

    /// A client is gone.
    pub(super) fn forget(&mut self, client: ClientId) {
        self.abilities.remove(&client);
        self.paced.forget(client);
        self.joiner.forget(|(sender, _)| sender == client);
    }

    /// Whether published data goes in pieces although it fits into a frame. Not if one of the clients
    /// does not join them: a recording would have it twice.
    pub(super) fn cuts(&self, clients: &[ClientId], message: &[u8]) -> bool {
        let abilities = || clients.iter().map(|client| self.abilities.get(client));
        let joins = |it: Option<&Ability>| it.is_some_and(|it| message.len() <= it.longest);
        abilities().flatten().any(|it| is_cut(*it, message)) && abilities().all(joins)
    }

    /// Takes an answer.
    pub(super) fn answer(&mut self, origin: &Origin, bytes: Bytes) -> Result<(), MessageTooLong> {
        let length = bytes.len();
        let ability = origin.joins.filter(|ability| length <= ability.longest);
        let ability = ability.ok_or(MessageTooLong(length))?;
        let long = self.numbered(None, bytes);
        self.new.push(New {
            long,
            device: origin.device,
            clients: origin.clients.clone(),
            piece_bytes: piece_bytes(ability, length),
        });
        Ok(())
    }

    /// Takes published data. Returns how many of the clients join it.
    pub(super) fn publish(
        &mut self,
        device: Option<Device>,
        clients: &[ClientId],
        bytes: Bytes,
    ) -> Result<usize, MessageTooLong> {
        let length = bytes.len();
        if length > MAX_LONG {
            return Err(MessageTooLong(length));
        }
        let mut groups: BTreeMap<usize, Vec<ClientId>> = BTreeMap::new();
        for client in clients {
            let ability = self.abilities.get(client);
            if let Some(ability) = ability.filter(|ability| length <= ability.longest) {
                let piece_bytes = piece_bytes(*ability, length);
                groups.entry(piece_bytes).or_default().push(*client);
            }
        }
        let stream = Some(stream_of(&bytes).unwrap_or(0));
        let long = self.numbered(stream, bytes);
        let mut count = 0;
        for (piece_bytes, clients) in groups {
            count += clients.len();
            self.new.push(New {
                long: long.clone(),
                device,
                clients,
                piece_bytes,
            });
        }
        Ok(count)
    }

    fn numbered(&mut self, stream: Option<u32>, bytes: Bytes) -> Long {
        self.last_number = self.last_number.wrapping_add(1);
        Long {
            number: self.last_number,
            stream,
            syn: None,
            bytes,
        }
    }
}

/// Whether a client that joins pieces gets a message in pieces although it fits into a frame.
pub(super) fn is_cut(ability: Ability, message: &[u8]) -> bool {
    let whole = ability.piece_bytes.min(LONGEST_WHOLE);
    (whole < message.len() && message.len() <= ability.longest)
        && stream_of(message) == Some(PICTURE)
}

/// The bytes in a piece of a message. There are at least two pieces.
fn piece_bytes(ability: Ability, length: usize) -> usize {
    match length <= ability.piece_bytes {
        true => length.div_ceil(2),
        false => ability.piece_bytes,
    }
}

impl<M: DeviceMessage> Session<M> {
    /// The numbers of long messages begin after this. It should be random: clients may remember those
    /// of an earlier process.
    #[must_use]
    pub fn with_last_number(mut self, last_number: u32) -> Self {
        self.long.last_number = last_number;
        self
    }

    /// Whether a message in pieces waits for its first call of [`Self::send_pieces`].
    pub fn has_new_long(&self) -> bool {
        !self.long.new.is_empty()
    }

    /// Sends the pieces that are due, and calls for missing pieces of requests.
    pub fn send_pieces(&mut self, now: Instant) {
        for new in std::mem::take(&mut self.long.new) {
            let New {
                long,
                device,
                clients,
                piece_bytes,
            } = new;
            self.long
                .paced
                .push(now, long, device, clients, piece_bytes);
        }
        while let Some(burst) = self.long.paced.poll(now) {
            for piece in &burst.pieces {
                self.send_bytes(burst.device, &burst.clients, piece);
            }
        }
        self.long.joiner.timeout(now);
        self.settle_joiner();
    }

    /// When to call [`Self::send_pieces`].
    pub fn next_piece_timeout(&self) -> Option<Instant> {
        let timeouts = [
            self.long.paced.next_timeout(),
            self.long.joiner.next_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// A piece of a request, or a call for pieces of an earlier message.
    pub(super) fn handle_pieces(&mut self, now: Instant, packet: Packet, base: &DriverMsg) {
        let Some(client) = packet.header.client_ids.first().copied().map(ClientId) else {
            return self.complaints.about(Complaint::RequestFromNobody);
        };
        if let Some(call) = &base.missing {
            self.long.paced.missing(client, call);
            self.send_pieces(now);
        }
        let Some(piece) = &base.piece else {
            return;
        };
        let sender = (client, device_of(&packet.header));
        let joined = self.long.joiner.piece(now, sender, piece);
        self.settle_joiner();
        let Some(joined) = joined else {
            return;
        };
        let inner = DriverMsg::decode(&joined.message[..]).unwrap_or_default();
        match is_about_pieces(&inner) {
            true => self.complaints.about(Complaint::PieceOfPiece),
            false => self.handle_packet(
                now,
                Packet {
                    header: packet.header,
                    message: joined.message,
                },
            ),
        }
    }

    fn settle_joiner(&mut self) {
        while let Some(((client, device), call)) = self.long.joiner.poll_call() {
            let message = DriverMsg {
                missing: Some(call),
                ..data()
            };
            self.send_bytes(device, &[client], &message.encode_to_vec().into());
        }
        while let Some(((client, device), receipt)) = self.long.joiner.poll_receipt() {
            let message = DriverMsg {
                receipt: Some(receipt),
                ..data()
            };
            self.send_bytes(device, &[client], &message.encode_to_vec().into());
        }
        while let Some(lost) = self.long.joiner.poll_lost() {
            let (client, missing) = (lost.sender.0, lost.missing);
            tracing::debug!(%client, missing, "a long request is incomplete");
        }
    }
}

fn data() -> DriverMsg {
    DriverMsg {
        r#type: MsgType::Data.into(),
        ..DriverMsg::default()
    }
}

#[cfg(test)]
mod tests;
