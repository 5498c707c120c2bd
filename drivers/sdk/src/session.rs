//! The part of the protocol that all drivers share: frames from the mediator
//! in, frames to the mediator and work for the driver out. PURE.
//!
//! After each change, drain [`Session::poll_output`] and
//! [`Session::poll_from_device`]; take work from [`Session::poll_work`]
//! whenever the driver is free.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_proto::limits::MAX_PART;
use amber_proto::mediator::{self, Outcome};
use amber_proto::{ClientId, Device, DeviceId, DeviceMessage, DeviceType, DriverHdr};
use amber_proto::{MsgType, Packet, SynNum};
use bytes::Bytes;
use prost::Message;

use crate::queue::{Queue, Work};
use crate::request::{Origin, Request};
use crate::subscribers::Subscribers;

/// The maximum size of the list of ids in a header, in bytes; more clients are served by several
/// frames.
///
/// With a device the header stays below `limits::SURE_HEADER`, the size up to which it cannot be
/// mistaken for text, and a frame stays below the 4096 bytes that a pipe writes atomically.
const MAX_IDS_BYTES: usize = 2_000;

/// The message is too long for a frame; it was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes is too long: the limit is {MAX_PART}")]
pub struct MessageTooLong(pub usize);

/// The subscribers, the queued requests, and the pending output of a driver.
#[derive(Debug)]
pub struct Session<M> {
    subscribers: Subscribers,
    queue: Queue<M>,
    outputs: VecDeque<Packet>,
    from_devices: VecDeque<Packet>,
    complaints: Complaints,
}

impl<M> Default for Session<M> {
    fn default() -> Self {
        Self {
            subscribers: Subscribers::default(),
            queue: Queue::default(),
            outputs: VecDeque::new(),
            from_devices: VecDeque::new(),
            complaints: Complaints::default(),
        }
    }
}

impl<M: DeviceMessage> Session<M> {
    /// A frame from the mediator.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) {
        let device = device_of(&packet.header);
        if packet.header.client_ids.is_empty() && device.is_some() {
            self.from_devices.push_back(packet);
            return;
        }
        let Ok(message) = M::decode(&packet.message[..]) else {
            return self.complaints.about(Complaint::NoDriverMsg);
        };
        let clients: Vec<_> = packet
            .header
            .client_ids
            .iter()
            .copied()
            .map(ClientId)
            .collect();
        match message.kind() {
            Some(MsgType::Ping) => self.pong(packet.header, message.syn()),
            Some(MsgType::Data) if clients.is_empty() => {
                self.complaints.about(Complaint::RequestFromNobody);
            }
            Some(MsgType::Data) => {
                let syn = message.syn();
                let origin = Origin {
                    clients,
                    device,
                    syn,
                    wants_outcome: syn.is_some() && wants_outcome(&packet.message),
                };
                self.push(Work::Request(Request { message, origin }));
            }
            Some(MsgType::Subscribe) => {
                for client in clients {
                    if self.subscribers.subscribe(device, client, now) {
                        self.push(Work::Subscribed(client));
                    }
                }
            }
            Some(MsgType::Unsubscribe) => {
                for client in clients {
                    self.subscribers.unsubscribe(device, client);
                }
            }
            Some(MsgType::ClientDied) => {
                // The client is gone for all devices, not only for the one in the header.
                for client in clients {
                    self.subscribers.remove(client);
                    self.push(Work::ClientDied(client));
                }
            }
            Some(MsgType::Pong | MsgType::DriverDied) => {}
            None => self.complaints.about(Complaint::UnknownType),
        }
    }

    /// The next frame for the mediator.
    pub fn poll_output(&mut self) -> Option<Packet> {
        self.outputs.pop_front()
    }

    /// The next answer or publication of another device or of the mediator.
    pub fn poll_from_device(&mut self) -> Option<Packet> {
        self.from_devices.pop_front()
    }

    /// The next work for the driver.
    pub fn poll_work(&mut self) -> Option<Work<M>> {
        self.queue.pop()
    }

    /// Whether there is work for the driver.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether reading must pause until work has been taken.
    pub fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    /// Answers a request. A request without a number is not answered.
    ///
    /// # Errors
    /// The message is too long.
    pub fn answer(&mut self, origin: &Origin, mut message: M) -> Result<(), MessageTooLong> {
        let Some(syn) = origin.syn else {
            self.complaints.about(Complaint::RequestWithoutNumber);
            return Ok(());
        };
        message.set_kind(MsgType::Data);
        message.set_syn(None);
        message.set_ack(Some(syn));
        self.send(origin.device, &origin.clients, &message)
    }

    /// Reports to the sender of a request whether it is carried out, if the sender asked for it.
    pub fn outcome(&mut self, origin: &Origin, outcome: Outcome) {
        let (Some(syn), true) = (origin.syn, origin.wants_outcome) else {
            return;
        };
        let mut message = mediator::DriverMsg::data();
        message.set_ack(Some(syn));
        message.outcome = Some(outcome);
        self.send_bytes(
            origin.device,
            &origin.clients,
            &message.encode_to_vec().into(),
        );
    }

    /// Publishes to the subscribers of a device.
    ///
    /// # Errors
    /// The message is too long.
    pub fn publish(&mut self, device: Option<Device>, message: M) -> Result<(), MessageTooLong> {
        let clients: Vec<_> = self.subscribers.of(device).collect();
        self.send(device, &clients, &published(message))
    }

    /// Publishes to the subscribers of every device.
    ///
    /// # Errors
    /// The message is too long.
    pub fn publish_everywhere(&mut self, message: M) -> Result<(), MessageTooLong>
    where
        M: Clone,
    {
        let devices: Vec<_> = self.subscribers.devices().collect();
        for device in devices {
            self.publish(device, message.clone())?;
        }
        Ok(())
    }

    /// Publishes to the clients of an origin, subscribers or not.
    ///
    /// # Errors
    /// The message is too long.
    pub fn publish_to(&mut self, origin: &Origin, message: M) -> Result<(), MessageTooLong> {
        self.send(origin.device, &origin.clients, &published(message))
    }

    /// When to publish next; `None` while there are no subscribers.
    pub fn next_due(&self) -> Option<Instant> {
        self.subscribers.next_due()
    }

    /// A device that is due to publish now.
    pub fn take_due(&mut self, now: Instant, period: Duration) -> Option<Option<Device>> {
        self.subscribers.take_due(now, period)
    }

    /// The number of subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.subscribers.count()
    }

    fn pong(&mut self, header: DriverHdr, syn: Option<SynNum>) {
        let mut message = M::of_kind(MsgType::Pong);
        message.set_ack(syn);
        let message = message.encode_to_vec().into();
        self.outputs.push_back(Packet { header, message });
    }

    fn push(&mut self, work: Work<M>) {
        if self.queue.push(work).is_some() {
            self.complaints.about(Complaint::TooManyRequests);
        }
    }

    fn send(
        &mut self,
        device: Option<Device>,
        clients: &[ClientId],
        message: &M,
    ) -> Result<(), MessageTooLong> {
        let message: Bytes = message.encode_to_vec().into();
        if message.len() > MAX_PART {
            return Err(MessageTooLong(message.len()));
        }
        self.send_bytes(device, clients, &message);
        Ok(())
    }

    fn send_bytes(&mut self, device: Option<Device>, clients: &[ClientId], message: &Bytes) {
        for client_ids in lists(clients) {
            let header = DriverHdr {
                device_type: device.map(|device| device.device_type.0),
                device_id: device.map(|device| device.id.0),
                client_ids,
            };
            let message = message.clone();
            self.outputs.push_back(Packet { header, message });
        }
    }
}

/// Whether a request asks for its outcome. The device's own messages do not have the field.
fn wants_outcome(message: &Bytes) -> bool {
    mediator::DriverMsg::decode(message.clone()).is_ok_and(|message| message.want_outcome())
}

/// A problem with a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complaint {
    NoDriverMsg,
    UnknownType,
    RequestFromNobody,
    RequestWithoutNumber,
    TooManyRequests,
}

/// Logs each kind of problem once, so that no peer can flood the log.
#[derive(Debug, Default)]
struct Complaints {
    made: Vec<Complaint>,
}

impl Complaints {
    fn about(&mut self, complaint: Complaint) {
        let text = match complaint {
            Complaint::NoDriverMsg => "ignored a message that is not a DriverMsg",
            Complaint::UnknownType => "ignored a message without a known type",
            Complaint::RequestFromNobody => "ignored a request without a client",
            Complaint::RequestWithoutNumber => "did not answer a request without synNum",
            Complaint::TooManyRequests => "too many requests are waiting; dropped the oldest",
        };
        if self.made.contains(&complaint) {
            tracing::debug!("{text}");
        } else {
            self.made.push(complaint);
            tracing::warn!("{text} (logged once)");
        }
    }
}

fn published<M: DeviceMessage>(mut message: M) -> M {
    message.set_kind(MsgType::Data);
    message.set_syn(None);
    message.set_ack(Some(SynNum(0)));
    message
}

fn device_of(header: &DriverHdr) -> Option<Device> {
    Some(Device {
        device_type: DeviceType(header.device_type?),
        id: DeviceId(header.device_id?),
    })
}

/// Splits the ids into lists that fit into one header each.
fn lists(clients: &[ClientId]) -> Vec<Vec<i32>> {
    let mut lists: Vec<Vec<i32>> = Vec::new();
    let mut room = 0;
    for client in clients {
        let length = prost::length_delimiter_len(client.0 as usize);
        if room < length {
            lists.push(Vec::new());
            room = MAX_IDS_BYTES;
        }
        room -= length;
        if let Some(list) = lists.last_mut() {
            list.push(client.0);
        }
    }
    lists
}

#[cfg(test)]
mod tests;
