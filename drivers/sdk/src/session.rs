//! The part of the protocol that all drivers share: frames from the mediator
//! in, frames to the mediator and work for the driver out. PURE.
//!
//! After each change, call [`Session::send_pieces`] if there is a [new long
//! message](Session::has_new_long), drain [`Session::poll_output`] and
//! [`Session::poll_from_device`]; take work from [`Session::poll_work`]
//! whenever the driver is free.

mod long;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use amber_proto::limits::MAX_PART;
use amber_proto::mediator::{self, Outcome};
use amber_proto::motion;
use amber_proto::pieces::Ability;
use amber_proto::{ClientId, Device, DeviceId, DeviceMessage, DeviceType, DriverHdr, DriverMsg};
use amber_proto::{MsgType, Packet, SynNum};
use bytes::Bytes;
use prost::Message;

use self::long::LongMessages;
use crate::motion::{Command, Holder, Motion, Motions, Moves, Refusal, Request as MotionRequest};
use crate::queue::{Queue, Work};
use crate::request::{MessageTooLong, Origin, Request};
use crate::subscribers::Subscribers;

/// The maximum size of the list of ids in a header, in bytes; more clients are served by several
/// frames.
///
/// With a device the header stays below `limits::SURE_HEADER`, the size up to which it cannot be
/// mistaken for text, and a frame stays below the 4096 bytes that a pipe writes atomically.
const MAX_IDS_BYTES: usize = 2_000;

/// How many clients that have died are remembered: more than the messages that a task of the driver
/// has written, but that are not sent yet, can be for.
const MAX_GONE: usize = 256;

/// The subscribers, the queued requests, and the pending output of a driver.
#[derive(Debug)]
pub struct Session<M> {
    subscribers: Subscribers,
    /// Clients that have died, the newest last. A task of the driver may have published to them before
    /// it learned that.
    gone: VecDeque<ClientId>,
    queue: Queue<M>,
    outputs: VecDeque<Packet>,
    from_devices: VecDeque<Packet>,
    long: LongMessages,
    complaints: Complaints,
    reports_outcomes: bool,
    /// Only for devices that move.
    motion: Option<MotionDesk<M>>,
}

/// Lease, halt and expiry, and the requests that stop devices.
#[derive(Debug)]
struct MotionDesk<M> {
    moves: Moves<M>,
    motions: Motions,
    /// They come before all other work.
    stops: VecDeque<Request<M>>,
    /// Whether the mediator understands reports.
    reports: bool,
}

impl<M> Default for Session<M> {
    fn default() -> Self {
        Self {
            subscribers: Subscribers::default(),
            gone: VecDeque::new(),
            queue: Queue::default(),
            outputs: VecDeque::new(),
            from_devices: VecDeque::new(),
            long: LongMessages::default(),
            complaints: Complaints::default(),
            reports_outcomes: false,
            motion: None,
        }
    }
}

impl<M: DeviceMessage> Session<M> {
    /// From now on there are lease, halt and expiry. `halted` are the devices that were halted
    /// before, and by whom. `reports`: the mediator understands reports about it.
    pub(crate) fn set_moves(
        &mut self,
        moves: Moves<M>,
        halted: BTreeMap<Device, String>,
        reports: bool,
    ) {
        let motions = Motions::new(halted, moves.handles_gone_clients);
        self.motion = Some(MotionDesk {
            moves,
            motions,
            stops: VecDeque::new(),
            reports,
        });
    }

    /// From now on, clients that ask are told that an outcome follows every command.
    pub(crate) fn set_reports_outcomes(&mut self) {
        self.reports_outcomes = true;
    }

    /// A frame from the mediator.
    pub fn handle_packet(&mut self, now: Instant, packet: Packet) {
        let device = device_of(&packet.header);
        if packet.header.client_ids.is_empty() && device.is_some() {
            self.from_devices.push_back(packet);
            return;
        }
        let base = DriverMsg::decode(&packet.message[..]).unwrap_or_default();
        if is_about_pieces(&base) {
            return self.handle_pieces(now, packet, &base);
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
        let joins = base.joins.as_ref().map(Ability::stated);
        match message.kind() {
            Some(MsgType::Ping) => self.pong(packet, message.syn()),
            Some(MsgType::Data) if clients.is_empty() => {
                self.complaints.about(Complaint::RequestFromNobody);
            }
            Some(MsgType::Data) => {
                // The id may belong to a new client now.
                self.gone.retain(|gone| !clients.contains(gone));
                self.long.note_ability(&clients, joins);
                let syn = message.syn();
                let mut origin = Origin {
                    clients,
                    device,
                    syn,
                    wants_outcome: syn.is_some() && wants_outcome(&packet.message),
                    joins,
                    ..Origin::default()
                };
                if self.motion.is_some() {
                    let terms = motion::DriverMsg::decode(&packet.message[..]).unwrap_or_default();
                    if self.handle_motion_request(now, &origin, &terms) {
                        return;
                    }
                    let valid = terms.valid_ms.map(|ms| Duration::from_millis(ms.into()));
                    origin.valid_until = valid.and_then(|valid| now.checked_add(valid));
                    origin.for_client = terms.for_client.map(ClientId);
                }
                self.push(Work::Request(Request { message, origin }));
            }
            Some(MsgType::Subscribe) => {
                self.long.note_ability(&clients, joins);
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
                    self.long.forget(client);
                    if self.gone.len() == MAX_GONE {
                        self.gone.pop_front();
                    }
                    self.gone.push_back(client);
                    if let Some(desk) = &mut self.motion {
                        desk.motions.client_gone(now, client);
                    }
                    self.push(Work::ClientDied(client));
                }
                self.settle_motion(now);
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

    /// The next work for the driver. Requests to move a device that are not allowed are answered
    /// instead.
    pub fn poll_work(&mut self, now: Instant) -> Option<Work<M>> {
        self.handle_timeout(now);
        loop {
            let stop = self.motion.as_mut().and_then(|it| it.stops.pop_front());
            if let Some(stop) = stop {
                return Some(Work::Request(stop));
            }
            let work = self.queue.pop()?;
            let Work::Request(request) = &work else {
                return Some(work);
            };
            match self.allow(now, request) {
                Ok(()) => return Some(work),
                Err(refusal) => self.refuse(request, &refusal.to_string()),
            }
        }
    }

    /// Whether there is work for the driver.
    pub fn has_work(&self) -> bool {
        !self.queue.is_empty() || self.motion.as_ref().is_some_and(|it| !it.stops.is_empty())
    }

    /// The holder of the lease of a device.
    pub(crate) fn holder(&self, device: Option<Device>) -> Option<Holder> {
        self.motion.as_ref()?.motions.holder(device)
    }

    /// The driver cannot move a device, for this reason, or it can again.
    pub(crate) fn block(&mut self, now: Instant, device: Option<Device>, why: Option<String>) {
        if let Some(desk) = &mut self.motion {
            desk.motions.block(now, device, why);
        }
        self.settle_motion(now);
    }

    /// When a command, a lease or the wait for one ends.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.motion.as_ref()?.motions.next_timeout()
    }

    /// The time of [`Self::next_timeout`] may have come. Before this, handle all packets that have come
    /// by now: one of them may keep a lease.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|due| due <= now) {
            if let Some(desk) = &mut self.motion {
                desk.motions.timeout(now);
            }
            self.settle_motion(now);
        }
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
        let bytes: Bytes = message.encode_to_vec().into();
        let is_cut = origin.joins.is_some_and(|it| long::is_cut(it, &bytes));
        if bytes.len() > MAX_PART || is_cut {
            return self.long.answer(origin, bytes);
        }
        self.send_bytes(origin.device, &origin.clients, &bytes);
        Ok(())
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

    /// Publishes to the clients of an origin, subscribers or not, except for those that have died.
    ///
    /// # Errors
    /// The message is too long.
    pub fn publish_to(&mut self, origin: &Origin, message: M) -> Result<(), MessageTooLong> {
        let clients: Vec<_> = (origin.clients.iter().copied())
            .filter(|client| !self.gone.contains(client))
            .collect();
        self.send(origin.device, &clients, &published(message))
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

    /// Answers a request for the lease or a halt. Returns whether it is one.
    fn handle_motion_request(
        &mut self,
        now: Instant,
        origin: &Origin,
        terms: &motion::DriverMsg,
    ) -> bool {
        let (Some(desk), Some(client)) = (&mut self.motion, origin.client()) else {
            return false;
        };
        let request = match (&terms.halt_request, &terms.lease_request) {
            (Some(request), _) => MotionRequest::Halt(request),
            (None, Some(request)) => MotionRequest::Lease {
                request,
                for_client: terms.for_client.map(ClientId),
            },
            (None, None) if terms.get_motion_state() => MotionRequest::State,
            (None, None) => return false,
        };
        let state = desk.motions.request(now, origin.device, client, request);
        if let Some(syn) = origin.syn {
            let mut answer = motion::DriverMsg::data();
            answer.set_ack(Some(syn));
            answer.motion_state = Some(state);
            let answer = answer.encode_to_vec().into();
            self.send_bytes(origin.device, &origin.clients, &answer);
        }
        self.settle_motion(now);
        true
    }

    /// Whether lease, halt and validity allow a request.
    fn allow(&mut self, now: Instant, request: &Request<M>) -> Result<(), Refusal> {
        let Some(desk) = &mut self.motion else {
            return Ok(());
        };
        let origin = &request.origin;
        let command = Command {
            motion: (desk.moves.motion)(&request.message),
            client: origin.client(),
            for_client: origin.for_client,
            valid_until: origin.valid_until,
        };
        if command.motion == Motion::Nothing {
            return Ok(());
        }
        let allowed = desk.motions.command(now, origin.device, command);
        self.settle_motion(now);
        allowed
    }

    fn refuse(&mut self, request: &Request<M>, why: &str) {
        let origin = &request.origin;
        let refusal = self.motion.as_ref().map(|desk| desk.moves.refusal);
        match refusal.and_then(|refusal| refusal(&request.message, why)) {
            // A text of this length fits.
            Some(answer) if origin.syn.is_some() => drop(self.answer(origin, answer)),
            _ => self.outcome(origin, Outcome::refusal(why)),
        }
    }

    /// Carries out what lease, halt and expiry have decided.
    fn settle_motion(&mut self, now: Instant) {
        let Some(desk) = &mut self.motion else {
            return;
        };
        while let Some((device, stop)) = desk.motions.poll_stop() {
            let motion = desk.moves.motion;
            for client in stop.outdated {
                self.queue.drop_requests(client, |request| {
                    request.origin.device == device && motion(&request.message) > Motion::Stops
                });
            }
            if let Some(cause) = stop.cause
                && let Some(message) = desk.moves.stop
            {
                let origin = Origin {
                    clients: stop.client.into_iter().collect(),
                    device,
                    stop_cause: Some(cause),
                    ..Origin::default()
                };
                let message = message();
                desk.stops.push_back(Request { message, origin });
            }
        }
        while let Some((device, report)) = desk.motions.poll_report(now) {
            if desk.reports {
                let mut message = motion::DriverMsg::data();
                message.motion_report = Some(report);
                let header = header(device, Vec::new());
                let message = message.encode_to_vec().into();
                self.outputs.push_back(Packet { header, message });
            }
        }
    }

    fn pong(&mut self, ping: Packet, syn: Option<SynNum>) {
        let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
        pong.set_ack(syn);
        // Tells the client that an outcome follows every command.
        let tells = self.reports_outcomes && wants_outcome(&ping.message);
        pong.outcome = tells.then(Outcome::accepted);
        let message = pong.encode_to_vec().into();
        let header = ping.header;
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
        if message.len() > MAX_PART || self.long.cuts(clients, &message) {
            if self.long.publish(device, clients, message)? < clients.len() {
                self.complaints.about(Complaint::LongForOldClient);
            }
            return Ok(());
        }
        self.send_bytes(device, clients, &message);
        Ok(())
    }

    fn send_bytes(&mut self, device: Option<Device>, clients: &[ClientId], message: &Bytes) {
        for client_ids in lists(clients) {
            let header = header(device, client_ids);
            let message = message.clone();
            self.outputs.push_back(Packet { header, message });
        }
    }
}

fn header(device: Option<Device>, client_ids: Vec<i32>) -> DriverHdr {
    DriverHdr {
        device_type: device.map(|device| device.device_type.0),
        device_id: device.map(|device| device.id.0),
        client_ids,
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
    LongForOldClient,
    PieceOfPiece,
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
            Complaint::LongForOldClient => {
                "a message is too long for a frame, and some clients do not join pieces"
            }
            Complaint::PieceOfPiece => "ignored a piece in pieces",
        };
        if self.made.contains(&complaint) {
            tracing::debug!("{text}");
        } else {
            self.made.push(complaint);
            tracing::warn!("{text} (logged once)");
        }
    }
}

/// Whether a message is a piece of a longer one, or about pieces.
fn is_about_pieces(base: &DriverMsg) -> bool {
    let is_about = base.piece.is_some() || base.missing.is_some() || base.receipt.is_some();
    is_about && base.r#type == i32::from(MsgType::Data)
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
