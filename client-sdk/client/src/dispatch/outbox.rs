//! What waits to be sent. IO: it tells senders what became of their packets.

use std::collections::VecDeque;

use amber_proto::Packet;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// The number of unsent packets from which on no further commands are taken.
const MAX_WAITING: usize = 64;

/// Packets in the order in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Outgoing>);

#[derive(Debug)]
struct Outgoing {
    packet: Packet,
    sent: Option<oneshot::Sender<Result<()>>>,
    attempt: Attempt,
}

/// The system reports an earlier packet's refusal instead of sending this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    First,
    Second,
}

impl Outbox {
    pub(super) fn push(&mut self, packet: Packet, sent: Option<oneshot::Sender<Result<()>>>) {
        self.0.push_back(Outgoing {
            packet,
            sent,
            attempt: Attempt::First,
        });
    }

    /// Whether so much waits that callers must wait, too.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MAX_WAITING
    }

    /// The next packet to send.
    pub(super) fn first(&self) -> Option<&Packet> {
        self.0.front().map(|outgoing| &outgoing.packet)
    }

    /// The next packet was sent.
    pub(super) fn sent(&mut self) {
        self.finish(Ok(()));
    }

    /// The system has refused to send. Returns whether the next packet is to be tried again.
    pub(super) fn try_again(&mut self) -> bool {
        match self.0.front_mut() {
            Some(outgoing) if outgoing.attempt == Attempt::First => {
                outgoing.attempt = Attempt::Second;
                true
            }
            _ => false,
        }
    }

    /// The next packet is given up.
    pub(super) fn fail(&mut self, error: Error) {
        self.finish(Err(error));
    }

    fn finish(&mut self, result: Result<()>) {
        let outgoing = self.0.pop_front();
        if let Some(sent) = outgoing.and_then(|outgoing| outgoing.sent) {
            let _ = sent.send(result);
        }
    }
}
