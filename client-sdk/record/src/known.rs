//! The state of the mediator and its peers according to a feed, to begin another file in the middle
//! of the feed. PURE.

use std::collections::BTreeMap;

use amber_proto::ClientId;
use amber_proto::feed::{What, Writer};

/// The version of the mediator, and the ids in use. It begins empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    version: Option<String>,
    peers: BTreeMap<i32, String>,
}

impl Known {
    /// Follows the feed.
    pub fn note(&mut self, what: &What<'_>) {
        match what {
            What::Start(version) => self.version = Some((*version).to_owned()),
            What::Peer(id, address) => {
                self.peers.insert(id.0, (*address).to_owned());
            }
            What::PeerGone(id) => {
                self.peers.remove(&id.0);
            }
            _ => {}
        }
    }

    /// The records with which a feed that opens at this time would begin.
    pub fn records(&self, time_ns: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer {
            bytes: &mut bytes,
            time_ns,
        };
        if let Some(version) = &self.version {
            writer.start(version);
        }
        for (id, address) in &self.peers {
            writer.peer(ClientId(*id), address);
        }
        bytes
    }
}
