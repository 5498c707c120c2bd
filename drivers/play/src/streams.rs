//! Streams that clients start by a request. PURE.
//!
//! A device with such streams sends each client its own messages. A client of the player gets those
//! of one recorded client; with those of all, each measurement would come several times. If it wants
//! fewer than that client got, it gets those nearest to its times. Other messages of the device are for
//! its subscribers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use amber_driver::{ClientId, Origin};
use amber_record::play;

use crate::limits::SILENCE_NS;

/// The clients of one device, and the recorded client whose messages they get.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The fields of messages for subscribers.
    published: BTreeSet<u32>,
    clients: BTreeMap<ClientId, Listener>,
    followed: Option<i32>,
    last_ns: u64,
    /// The time between the last two messages.
    interval_ns: u64,
}

#[derive(Debug)]
struct Listener {
    origin: Origin,
    period_ns: u64,
    /// In the time of the recording; `None` before its first message, which comes at once.
    due_ns: Option<u64>,
}

impl Streams {
    /// Without clients. Messages with these fields are for subscribers.
    pub(crate) fn new(published: BTreeSet<u32>) -> Self {
        Self {
            published,
            ..Self::default()
        }
    }

    /// Whether a message is part of a stream.
    pub(crate) fn has(&self, message: &[u8]) -> bool {
        let fields = play::fields(message).unwrap_or_default();
        !(fields.iter()).any(|(number, _)| self.published.contains(number))
    }

    /// A client starts the stream, or changes its period.
    pub(crate) fn start(&mut self, origin: Origin, period: Duration) {
        let Some(client) = origin.client() else {
            return;
        };
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let before = self.clients.get(&client);
        // A client that repeats its request keeps its times.
        let before = before.filter(|before| before.period_ns == period_ns);
        let due_ns = before.and_then(|before| before.due_ns);
        let listener = Listener {
            origin,
            period_ns,
            due_ns,
        };
        self.clients.insert(client, listener);
    }

    /// A client stops the stream, or is gone.
    pub(crate) fn stop(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }

    /// The clients that get a message with this time, which must be one of the followed client.
    pub(crate) fn due(&mut self, time_ns: u64) -> Vec<Origin> {
        let (interval_ns, mut due) = (self.interval_ns, Vec::new());
        for listener in self.clients.values_mut() {
            let at_ns = listener.due_ns.unwrap_or(time_ns);
            // The player may have jumped back.
            let is_back = at_ns.saturating_sub(time_ns) > listener.period_ns;
            // Half an interval early is nearer than half an interval late.
            if !is_back && at_ns > time_ns.saturating_add(interval_ns / 2) {
                continue;
            }
            // Keeps the times, unless it is late.
            let from_ns = if is_back { time_ns } else { at_ns };
            let next_ns = from_ns.saturating_add(listener.period_ns);
            listener.due_ns = Some(next_ns.max(time_ns));
            due.push(listener.origin.clone());
        }
        due
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
        self.interval_ns = match is_over {
            true => 0,
            false => time_ns.saturating_sub(self.last_ns),
        };
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
    fn messages_for_subscribers_are_no_stream() {
        let streams = Streams::new([20].into());
        assert!(streams.has(b"\x10\x01\xb2\x01\x00"));
        assert!(!streams.has(b"\x10\x01\xa2\x01\x00"));
    }

    #[test]
    fn clients_start_and_stop() {
        let mut streams = Streams::default();
        for client in [5, 6, 5] {
            streams.start(Origin::of(ClientId(client)), Duration::ZERO);
        }
        streams.stop(ClientId(5));
        streams.stop(ClientId(7));
        let clients = streams.due(0).into_iter();
        let clients: Vec<_> = clients.filter_map(|it| it.client()).collect();
        assert_eq!(clients, [ClientId(6)]);
    }

    /// The numbers of the messages that a client with this period gets of one each 100 ms, each up to
    /// 20 ms early or late.
    fn numbers(period_ms: u64) -> Vec<u64> {
        let mut streams = Streams::default();
        let start = |streams: &mut Streams| {
            let period = Duration::from_millis(period_ms);
            streams.start(Origin::of(ClientId(5)), period);
        };
        start(&mut streams);
        let mut got = Vec::new();
        for number in 0..20 {
            let time_ns = (1000 + number * 100) * MS + [0, 20, 5][number as usize % 3] * MS;
            assert!(streams.follows(time_ns, &[3]));
            got.extend((!streams.due(time_ns).is_empty()).then_some(number));
            // As clients do now and then.
            start(&mut streams);
        }
        got
    }

    #[test]
    fn a_client_gets_as_few_messages_as_it_wants() {
        let all: Vec<_> = (0..20).collect();
        for period_ms in [0, 1, 50, 100] {
            assert_eq!(numbers(period_ms), all, "{period_ms}");
        }
        let each = |step| (0..20).step_by(step).collect::<Vec<_>>();
        assert_eq!(numbers(200), each(2));
        assert_eq!(numbers(500), each(5));
    }

    #[test]
    fn a_jump_back_ends_no_stream() {
        let mut streams = Streams::default();
        streams.start(Origin::of(ClientId(5)), Duration::from_secs(1));
        let mut is_due = |at_ms: u64| {
            streams.follows(at_ms * MS, &[3]);
            !streams.due(at_ms * MS).is_empty()
        };
        assert!(is_due(60_000) && !is_due(60_100));
        assert!(is_due(5_000) && !is_due(5_100) && is_due(6_000));
    }
}
