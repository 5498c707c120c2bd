//! Joins messages that are longer than a frame: a recording has each of them once. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use amber_proto::feed::{Direction, Recorded};
use amber_proto::pieces::{Joined, Joiner};
use amber_proto::{ClientId, Device, DriverMsg};
use prost::Message;

/// The maximum number of messages whose receivers are remembered: more than the joiner has.
const MAX_RECEIVERS: usize = 64;

/// A device, or a client that sends a request to it.
type Sender = (Direction, Device, Option<ClientId>);

/// The messages of which pieces are missing. Recorders see every frame, so they call for none.
#[derive(Default)]
pub(crate) struct Pieces {
    joiner: Joiner<Sender, Duration>,
    receivers: VecDeque<Receivers>,
    /// Messages of which pieces are missing in the feed.
    pub(crate) incomplete: u64,
}

/// The clients of a message so far. Its pieces may go to some clients in another length than to
/// others, and again to single ones.
struct Receivers {
    sender: Sender,
    number: u32,
    clients: Vec<ClientId>,
}

/// What a frame is.
pub(crate) enum Part {
    /// A whole message.
    Whole,
    /// About pieces; a part of a message at most.
    Piece,
    /// The last missing piece of a message, and the clients that it comes from or goes to.
    Last(Joined<Duration>, Vec<ClientId>),
}

impl Pieces {
    /// A frame that has no field of its device, as all pieces.
    pub(crate) fn part(&mut self, time_ns: u64, frame: &Recorded<'_>) -> Part {
        let Ok(message) = DriverMsg::decode(frame.message) else {
            return Part::Whole;
        };
        let Some(piece) = message.piece else {
            return match message.missing.is_some() || message.receipt.is_some() {
                true => Part::Piece,
                false => Part::Whole,
            };
        };
        let client = match frame.direction {
            Direction::ToDriver => frame.clients().next(),
            Direction::FromDriver => None,
        };
        let sender = (frame.direction, frame.device, client);
        self.note_receivers(sender, piece.message(), frame);
        let now = Duration::from_nanos(time_ns);
        let joined = self.joiner.piece(now, sender, &piece);
        self.joiner.timeout(now);
        while self.joiner.poll_call().is_some() {}
        self.count_lost();
        let Some(joined) = joined else {
            return Part::Piece;
        };
        let number = piece.message();
        let is_it = |it: &Receivers| it.sender == sender && it.number == number;
        let known = self.receivers.iter().position(is_it);
        let known = known.and_then(|at| self.receivers.remove(at));
        Part::Last(joined, known.map_or(Vec::new(), |it| it.clients))
    }

    /// The unfinished messages, for the next file; `incomplete` stays here.
    pub(crate) fn take_unfinished(&mut self) -> Self {
        Self {
            joiner: std::mem::take(&mut self.joiner),
            receivers: std::mem::take(&mut self.receivers),
            incomplete: 0,
        }
    }

    /// Frames are missing: what is unfinished will not be finished.
    pub(crate) fn forget(&mut self) {
        self.joiner.forget(|_| true);
        self.receivers.clear();
        self.count_lost();
    }

    fn note_receivers(&mut self, sender: Sender, number: u32, frame: &Recorded<'_>) {
        let is_it = |it: &Receivers| it.sender == sender && it.number == number;
        let at = match self.receivers.iter().position(is_it) {
            Some(known) => known,
            None => {
                if self.receivers.len() == MAX_RECEIVERS {
                    self.receivers.pop_front();
                }
                self.receivers.push_back(Receivers {
                    sender,
                    number,
                    clients: Vec::new(),
                });
                self.receivers.len() - 1
            }
        };
        let clients = &mut self.receivers[at].clients;
        for client in frame.clients() {
            if !clients.contains(&client) {
                clients.push(client);
            }
        }
    }

    fn count_lost(&mut self) {
        while self.joiner.poll_lost().is_some() {
            self.incomplete += 1;
        }
    }
}
