//! Messages that are longer than a frame: joins those of devices, and sends requests. IO, like the
//! task that it is a part of; the decisions are in `amber_proto::pieces`.

use std::time::Instant;

use amber_proto::limits::MAX_PART;
use amber_proto::pieces::{Ability, Joined, Long, Upload, Verdict};
use amber_proto::{Device, SynNum};
use bytes::Bytes;
use prost::Message;
use tokio::sync::oneshot;
use tracing::debug;

use super::Dispatch;
use crate::error::{Error, Result};
use crate::transport::Transport;
use crate::wire::{Envelope, missing, with_syn};

/// The requests that are sent in pieces.
pub(super) struct Uploads {
    under_way: Vec<UnderWay>,
    ability: Ability,
    /// Says in each request what this client joins.
    joins: Bytes,
    last_number: u32,
}

struct UnderWay {
    device: Device,
    syn: SynNum,
    /// Whether a call waits for the answer. The upload ends with it.
    has_caller: bool,
    started: Instant,
    upload: Upload,
    sent: Option<oneshot::Sender<Result<()>>>,
}

impl Uploads {
    /// None. Numbers begin after `last_number`.
    pub(super) fn new(is_local: bool, last_number: u32) -> Self {
        let ability = Ability::of_client(is_local);
        Self {
            under_way: Vec::new(),
            ability,
            joins: ability.to_append(),
            last_number,
        }
    }

    fn find(&self, device: Device, number: u32) -> Option<usize> {
        let is_it = |it: &UnderWay| it.device == device && it.upload.long().number == number;
        self.under_way.iter().position(is_it)
    }
}

impl UnderWay {
    /// Reports to the sender that the message was not delivered in time.
    fn end(self, now: Instant) {
        let error = Error::TimedOut {
            device: self.device,
            waited: now.saturating_duration_since(self.started),
        };
        if let Some(sent) = self.sent {
            let _ = sent.send(Err(error));
        }
    }
}

impl<T: Transport> Dispatch<T> {
    /// Sends a request or SUBSCRIBE, which says that this client joins pieces.
    pub(super) fn request(
        &mut self,
        now: Instant,
        device: Device,
        syn: SynNum,
        message: &[u8],
        sent: Option<oneshot::Sender<Result<()>>>,
    ) {
        let plain = with_syn(message, syn);
        let joins = &self.uploads.joins[..];
        let fits = plain.len() + joins.len() <= MAX_PART;
        match device != Device::MEDIATOR && (fits || plain.len() > MAX_PART) {
            true => {
                let message = with_syn(&[message, joins].concat(), syn);
                match fits {
                    true => self.send(device, message, sent),
                    false => self.upload(now, device, syn, message, sent),
                }
            }
            // An old driver may take it only if it does not become longer.
            false => self.send(device, plain, sent),
        }
    }

    fn upload(
        &mut self,
        now: Instant,
        device: Device,
        syn: SynNum,
        bytes: Bytes,
        sent: Option<oneshot::Sender<Result<()>>>,
    ) {
        let uploads = &mut self.uploads;
        uploads.last_number = uploads.last_number.wrapping_add(1);
        let long = Long {
            number: uploads.last_number,
            stream: None,
            syn: Some(syn),
            bytes,
        };
        uploads.under_way.push(UnderWay {
            device,
            syn,
            has_caller: self.pending.has(device, syn),
            started: now,
            upload: Upload::new(now, long, uploads.ability.piece_bytes),
            sent,
        });
        self.send_uploads();
    }

    /// A piece, a call for pieces, or a receipt.
    pub(super) fn handle_pieces(&mut self, now: Instant, device: Device, envelope: Envelope) {
        if let Some(piece) = &envelope.piece
            && let Some(joined) = self.joiner.piece(now, device, piece)
        {
            self.handle_joined(now, device, joined);
        }
        if let Some(call) = &envelope.missing
            && let Some(at) = self.uploads.find(device, call.message())
        {
            self.uploads.under_way[at].upload.missing(&call.index);
        }
        if let Some(receipt) = &envelope.receipt
            && let Some(at) = self.uploads.find(device, receipt.message())
            && (self.uploads.under_way[at].upload).receipt(now, receipt.upto())
        {
            let done = self.uploads.under_way.swap_remove(at);
            if let Some(sent) = done.sent {
                let _ = sent.send(Ok(()));
            }
        }
        self.send_uploads();
        self.settle_joiner();
    }

    fn handle_joined(&mut self, now: Instant, device: Device, joined: Joined) {
        let envelope = Envelope::decode(&joined.message[..]).unwrap_or_default();
        if envelope.is_about_pieces() {
            debug!(%device, "dropped a piece in pieces");
            return;
        }
        let stream = Some(joined.stream.unwrap_or(0));
        self.handle_message(now, device, &envelope, joined.message, stream);
    }

    /// The driver of a device has died: what follows is from another process.
    pub(super) fn forget_pieces(&mut self, device: Device) {
        self.joiner.forget(|sender| sender == device);
        let now = super::now();
        let uploads = std::mem::take(&mut self.uploads.under_way);
        for it in uploads {
            match it.device == device {
                true => it.end(now),
                false => self.uploads.under_way.push(it),
            }
        }
        self.settle_joiner();
    }

    /// The calls that they belonged to have been answered, cancelled or given up.
    pub(super) fn end_uploads_without_caller(&mut self) {
        if self.uploads.under_way.is_empty() {
            return;
        }
        let now = super::now();
        for it in std::mem::take(&mut self.uploads.under_way) {
            match it.has_caller && !self.pending.has(it.device, it.syn) {
                true => it.end(now),
                false => self.uploads.under_way.push(it),
            }
        }
    }

    /// When [`Self::handle_piece_timeout`] is due.
    pub(super) fn next_piece_timeout(&self) -> Option<Instant> {
        let uploads = self.uploads.under_way.iter();
        let uploads = uploads.map(|it| it.upload.next_timeout()).min();
        [self.joiner.next_timeout(), uploads]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn handle_piece_timeout(&mut self, now: Instant) {
        self.end_uploads_without_caller();
        if self.next_piece_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.joiner.timeout(now);
        for mut it in std::mem::take(&mut self.uploads.under_way) {
            match it.upload.timeout(now) {
                Verdict::GoesOn => self.uploads.under_way.push(it),
                Verdict::Stuck => it.end(now),
                Verdict::NotUnderstood => {
                    let error = Error::TooLong {
                        device: it.device,
                        bytes: it.upload.long().bytes.len(),
                    };
                    if let Some(sent) = it.sent {
                        let _ = sent.send(Err(error.clone()));
                    }
                    if let Some(call) = self.pending.answered(it.device, it.syn) {
                        self.fail(now, call, |_, _| error);
                    }
                }
            }
        }
        self.send_uploads();
        self.settle_joiner();
    }

    fn send_uploads(&mut self) {
        let mut pieces = Vec::new();
        for it in &mut self.uploads.under_way {
            let device = it.device;
            pieces.extend(std::iter::from_fn(|| it.upload.poll()).map(|piece| (device, piece)));
        }
        for (device, piece) in pieces {
            self.send(device, piece, None);
        }
    }

    /// Sends the calls for missing pieces, and counts what is lost.
    fn settle_joiner(&mut self) {
        while let Some((device, call)) = self.joiner.poll_call() {
            self.send(device, missing(call), None);
        }
        while let Some(lost) = self.joiner.poll_lost() {
            debug!(device = %lost.sender, missing = lost.missing, "a long message is incomplete");
            let Some(stream) = lost.stream else {
                continue;
            };
            for listener in self.subscriptions.readers(lost.sender, stream) {
                if let Some(queue) = self.queues.get(&listener) {
                    queue.miss();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
