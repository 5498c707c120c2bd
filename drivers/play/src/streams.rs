//! Streams that clients start by a request. PURE.
//!
//! A device with such streams sends each client its own messages. A client of the player gets those
//! of one recorded client; with those of all, each measurement would come several times.

use std::collections::BTreeMap;

use amber_driver::{ClientId, Origin};

use crate::limits::SILENCE_NS;

/// The clients of one device, and the recorded client whose messages they get.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    clients: BTreeMap<ClientId, Origin>,
    followed: Option<i32>,
    last_ns: u64,
}

impl Streams {
    /// A client starts the stream.
    pub(crate) fn start(&mut self, origin: Origin) {
        if let Some(client) = origin.client() {
            self.clients.insert(client, origin);
        }
    }

    /// A client stops the stream, or is gone.
    pub(crate) fn stop(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }

    /// The clients that get the messages.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Origin> {
        self.clients.values()
    }

    /// Whether to send a message that was recorded for these clients.
    pub(crate) fn follows(&mut self, time_ns: u64, clients: &[i32]) -> bool {
        // The player may have jumped back.
        let is_over = time_ns.abs_diff(self.last_ns) > SILENCE_NS;
        match self.followed {
            Some(followed) if !is_over && !clients.contains(&followed) => return false,
            Some(followed) if clients.contains(&followed) => {}
            _ => self.followed = clients.first().copied(),
        }
        self.last_ns = time_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_messages_of_one_recorded_client_are_sent() {
        let mut streams = Streams::default();
        let sent = [
            (0, 3, true),
            (10, 9, false),
            (100, 3, true),
            (110, 9, false),
            // Client 3 has ended.
            (2050, 9, false),
            (2150, 9, true),
            (2250, 9, true),
            // Back.
            (0, 3, true),
            (10, 9, false),
        ];
        for (at_ms, client, expected) in sent {
            assert_eq!(streams.follows(at_ms * MS, &[client]), expected, "{at_ms}");
        }
    }

    #[test]
    fn clients_start_and_stop() {
        let mut streams = Streams::default();
        streams.start(Origin::of(ClientId(5)));
        streams.start(Origin::of(ClientId(6)));
        streams.start(Origin::of(ClientId(5)));
        streams.stop(ClientId(5));
        streams.stop(ClientId(7));
        let clients: Vec<_> = streams.clients().filter_map(Origin::client).collect();
        assert_eq!(clients, [ClientId(6)]);
    }
}
