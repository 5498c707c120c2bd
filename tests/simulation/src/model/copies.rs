//! Messages of drivers to clients, and to drivers that sent them requests. PURE.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use amber_core::limits::REPEATED_COPIES;
use amber_proto::Header;
use amber_proto::limits::MAX_PART;

use super::{Call, Cause, Changes, Model, Owner};
use crate::invariant::{Invariant, holds};
use crate::messages;

impl Model {
    /// The datagrams that a frame of a driver must produce.
    pub(super) fn expected_copies(&mut self, call: &Call<'_>) -> Vec<(SocketAddr, Vec<u8>)> {
        let Cause::Frame(pid, header, message) = call.cause else {
            return Vec::new();
        };
        let (Ok(header), Some(life)) = (Header::parse(header), self.lives.get(&pid)) else {
            return Vec::new();
        };
        if !life.up() || !header.has_clients() || message.len() > MAX_PART {
            return Vec::new();
        }
        let device = match (&life.devices[..], header.device()) {
            ([only], _) => *only,
            (several, Some(device)) if several.contains(&device) => device,
            _ => return Vec::new(),
        };
        let datagram = messages::frame(Some(device), message);
        let mut copies = Vec::new();
        let mut named = BTreeSet::new();
        let mut repeats_left = REPEATED_COPIES;
        for id in messages::ids(&header) {
            if !named.insert(id) {
                if repeats_left == 0 {
                    continue;
                }
                repeats_left -= 1;
            }
            match self.owners.get(&id) {
                Some(Owner::Client(address)) => {
                    // The device is back, so its next death is another one.
                    if let Some(person) = self.people.get_mut(address) {
                        person.told.remove(&device);
                    }
                    copies.push((*address, datagram.clone()));
                }
                Some(Owner::Process(asker)) => {
                    if let Some(asker) = self.lives.get_mut(asker) {
                        asker.copies.push((device, message.to_vec()));
                    }
                }
                None => self.seen.unknown += 1,
            }
        }
        copies
    }

    /// Removes the expected copies; the rest are the mediator's own messages.
    pub(super) fn check_copies<'a>(
        &mut self,
        changes: &Changes<'a>,
        copies: &[(SocketAddr, Vec<u8>)],
    ) -> Result<Vec<&'a (SocketAddr, Vec<u8>)>, crate::Broken> {
        let mut own = Vec::new();
        let mut expected = copies.iter();
        let mut next = expected.next();
        for sent in changes.call.sent {
            let to = sent.0;
            holds(
                Invariant::NothingToStrangers,
                self.spoke.contains(&to) && to.port() != 0,
                || {
                    format!(
                        "{to} has never sent anything, but gets {} bytes",
                        sent.1.len()
                    )
                },
            )?;
            if next == Some(sent) {
                next = expected.next();
            } else {
                own.push(sent);
            }
        }
        holds(Invariant::RepliesReachTheNamed, next.is_none(), || {
            format!(
                "{:?} is named, but gets nothing, or gets it in another order",
                next.map(|(to, _)| to)
            )
        })?;
        Ok(own)
    }
}
