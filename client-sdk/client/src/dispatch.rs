//! The task that owns the transport and the tables. IO.
//!
//! Handles send it [`Command`]s through a bounded channel. The task reads them only while
//! few packets wait to be sent, which slows down callers. Dropped futures and
//! subscriptions send [`Cancellation`]s through another channel, which needs no bound:
//! there are never more than calls and subscriptions.
//!
//! A caller closes its end of the answer channel *before* it posts the
//! cancellation. If the task handles the command first, the cancellation removes its
//! entry. If it handles the cancellation first, the command finds a closed channel and is
//! dropped. So no entry is left behind in either order.
//!
//! The task ends when the last handle is dropped or the transport has ended. Then all
//! waiting callers get the cause.

mod commands;
mod long;
mod outbox;
#[cfg(feature = "simulation")]
pub(crate) mod simulation;

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use amber_proto::mediator::{self, Unavailable, reply, request};
use amber_proto::pieces::Joiner;
use amber_proto::{ClientId, Device, DeviceMessage, MsgType, Packet};
use bytes::Bytes;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use tracing::{debug, trace};

pub(crate) use self::commands::{Cancellation, Command, Reports, Status};
use self::long::Uploads;
use self::outbox::Outbox;
use crate::error::{Error, Result, Unavailability};
use crate::liveness::{Answer, Liveness, PATIENCE, Renewal, Verdict};
use crate::pending::{Call, CallId, Pending};
use crate::subscription::{Interruption, Queue, Signal};
use crate::subscriptions::{Ask, Delivery, FeedKey, ListenerId, Subscriptions};
use crate::transport::{Role, Transport, TransportError};
use crate::wire::{Envelope, packet, sender, with_syn};

/// The time limit for the goodbye if the transport cannot send.
const GOODBYE: Duration = Duration::from_millis(500);
/// A datagram of so many bytes passes every network whole.
pub(crate) const UNFRAGMENTED: u32 = 1200;
/// Far enough away for "no timeout".
const NEVER: Duration = Duration::from_secs(86_400);

pub(crate) struct Dispatch<T> {
    transport: T,
    mediator: String,
    commands: mpsc::Receiver<Command>,
    cancellations: mpsc::UnboundedReceiver<Cancellation>,
    status: Arc<Status>,
    outbox: Outbox,
    pending: Pending<Waiter>,
    subscriptions: Subscriptions,
    queues: HashMap<ListenerId, Arc<Queue>>,
    liveness: Liveness,
    questions: u64,
    used: BTreeSet<Device>,
    joiner: Joiner<Device>,
    uploads: Uploads,
    sleep: Pin<Box<Sleep>>,
}

#[derive(Debug)]
enum Waiter {
    Caller(oneshot::Sender<Result<Bytes>>),
    Liveness,
}

enum Wakeup {
    Sent(std::result::Result<(), TransportError>),
    Received(std::result::Result<Packet, TransportError>),
    Command(Option<Command>),
    Cancellation(Cancellation),
    /// Packets take another way to the mediator now.
    Moved,
    Timeout,
}

/// Whether the task continues.
#[derive(Debug)]
pub(crate) enum Turn {
    GoOn,
    /// All handles are dropped, or one has closed the client.
    Leave,
    /// The transport has ended.
    Ended(Arc<str>),
}

impl<T: Transport> Dispatch<T> {
    pub(crate) fn new(
        transport: T,
        mediator: String,
        commands: mpsc::Receiver<Command>,
        cancellations: mpsc::UnboundedReceiver<Cancellation>,
        status: Arc<Status>,
    ) -> Self {
        let uploads = Uploads::new(transport.is_local(), anything());
        Self {
            transport,
            mediator,
            commands,
            cancellations,
            status,
            outbox: Outbox::default(),
            pending: Pending::new(anything()),
            subscriptions: Subscriptions::default(),
            queues: HashMap::new(),
            liveness: Liveness::default(),
            questions: 0,
            used: BTreeSet::new(),
            joiner: Joiner::default(),
            uploads,
            sleep: Box::pin(tokio::time::sleep(NEVER)),
        }
    }

    /// Works until the client or the transport ends.
    pub(crate) async fn run(mut self) {
        let cause = loop {
            match self.turn().await {
                Turn::GoOn => {}
                Turn::Leave => {
                    self.say_goodbye().await;
                    break "it was closed".into();
                }
                Turn::Ended(cause) => break cause,
            }
        };
        debug!(%cause, "client ends");
        self.end(cause);
    }

    /// Handles one event.
    pub(crate) async fn turn(&mut self) -> Turn {
        self.arm();
        let may_take_commands = !self.outbox.is_full();
        let wakeup = tokio::select! {
            wakeup = poll_fn(|cx| poll_transport(&mut self.transport, &self.outbox, cx)) => wakeup,
            command = self.commands.recv(), if may_take_commands => Wakeup::Command(command),
            Some(cancellation) = self.cancellations.recv() => Wakeup::Cancellation(cancellation),
            () = &mut self.sleep => Wakeup::Timeout,
        };
        let now = now();
        match wakeup {
            Wakeup::Sent(sent) => return self.handle_sent(now, sent),
            Wakeup::Received(Ok(packet)) => self.handle_packet(now, packet),
            Wakeup::Received(Err(TransportError::Unreachable(error))) => {
                self.handle_unreachable(now, error);
            }
            Wakeup::Received(Err(TransportError::Malformed(error))) => {
                debug!(%error, "dropped an invalid frame");
            }
            Wakeup::Received(Err(TransportError::Closed(cause))) => {
                return Turn::Ended(cause.into());
            }
            Wakeup::Command(None | Some(Command::Close)) => return Turn::Leave,
            Wakeup::Command(Some(command)) => self.handle_command(now, command),
            Wakeup::Cancellation(cancellation) => self.handle_cancellation(now, cancellation),
            Wakeup::Moved => self.handle_moved(now),
            Wakeup::Timeout => self.handle_timeout(now),
        }
        Turn::GoOn
    }

    fn handle_command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Call {
                id,
                device,
                message,
                started,
                deadline,
                answer,
                sent,
            } => {
                if answer.is_closed() {
                    return;
                }
                let call = Call {
                    id,
                    device,
                    started,
                    deadline,
                    waiter: Waiter::Caller(answer),
                };
                let syn = self.pending.insert(call);
                self.request(now, device, syn, &message, sent);
            }
            Command::Send {
                device,
                message,
                sent,
            } => {
                if !sent.is_closed() {
                    let syn = self.pending.number(device);
                    self.request(now, device, syn, &message, Some(sent));
                }
            }
            Command::Subscribe {
                device,
                listener,
                terms,
                fields,
                queue,
                sent,
            } => {
                if queue.is_closed() {
                    return;
                }
                self.queues.insert(listener, queue);
                match self.subscriptions.add(now, device, listener, terms, fields) {
                    Some(ask) => self.ask(now, ask, Some(sent)),
                    None => drop(sent.send(Ok(()))),
                }
                self.watch_mediator(now);
            }
            Command::Close => {}
        }
    }

    fn handle_cancellation(&mut self, now: Instant, cancellation: Cancellation) {
        match cancellation {
            Cancellation::Call(id) => {
                drop(self.pending.cancelled(id));
                self.end_uploads_without_caller();
            }
            Cancellation::Listener(device, listener) => {
                self.queues.remove(&listener);
                if let Some(leave) = self.subscriptions.remove(now, device, listener) {
                    self.send_numbered(device, leave, None);
                }
                self.watch_mediator(now);
            }
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        let Some(device) = sender(&packet.header) else {
            debug!(header = ?packet.header, "dropped a frame that names no device");
            return;
        };
        trace!(%device, bytes = packet.message.len(), "received");
        if device == Device::MEDIATOR {
            self.liveness.heard();
            self.status.heard.store(true, Ordering::Relaxed);
        }
        // A user's device may use another format than DriverMsg.
        let envelope = Envelope::decode(&packet.message[..]).unwrap_or_default();
        match envelope.is_about_pieces() {
            true => self.handle_pieces(now, device, envelope),
            false => self.handle_message(now, device, &envelope, packet.message, None),
        }
    }

    /// A message that came whole, or in pieces as one of a stream (0: of none).
    fn handle_message(
        &mut self,
        now: Instant,
        device: Device,
        envelope: &Envelope,
        message: Bytes,
        stream: Option<u32>,
    ) {
        match envelope.kind() {
            Some(MsgType::Ping) => {
                let pong = Envelope::new(MsgType::Pong, None, envelope.syn());
                self.send(device, pong.bytes(), None);
            }
            Some(MsgType::DriverDied) => {
                let why = why(&message);
                self.handle_driver_died(now, device, envelope, why);
            }
            Some(MsgType::ClientDied | MsgType::Subscribe | MsgType::Unsubscribe) => {
                debug!(%device, kind = ?envelope.kind(), "dropped a message not meant for clients");
            }
            Some(MsgType::Data | MsgType::Pong) | None => {
                match envelope
                    .ack()
                    .and_then(|ack| self.pending.answered(device, ack))
                {
                    Some(call) => {
                        self.answer(now, call, message);
                        self.end_uploads_without_caller();
                    }
                    None if envelope.kind().is_none()
                        || envelope.kind() == Some(MsgType::Data) && envelope.ack().is_none() =>
                    {
                        self.publish(now, device, message, stream);
                    }
                    None => trace!(%device, "dropped an answer without a waiting caller"),
                }
            }
        }
    }

    fn handle_driver_died(
        &mut self,
        now: Instant,
        device: Device,
        envelope: &Envelope,
        why: Option<Unavailable>,
    ) {
        let ack = envelope.ack();
        self.status.reports.forget(device);
        match ack {
            Some(ack) => {
                if let Some(call) = self.pending.answered(device, ack) {
                    self.fail(now, call, |call, _| unavailable(call.device, why));
                }
            }
            None => {
                let why = why.and_then(|why| why.message);
                self.forget_pieces(device);
                for call in self.pending.take_device(device) {
                    self.fail(now, call, |call, waited| Error::DriverDied {
                        device: call.device,
                        waited,
                        why: why.clone(),
                    });
                }
            }
        }
        for feed in self.subscriptions.driver_died(now, device, ack) {
            self.tell(feed, || Signal::Interrupted(Interruption::DriverDown));
        }
        self.end_uploads_without_caller();
    }

    fn handle_sent(&mut self, now: Instant, sent: std::result::Result<(), TransportError>) -> Turn {
        let error = match sent {
            Ok(()) => {
                self.outbox.sent();
                return Turn::GoOn;
            }
            Err(TransportError::Closed(cause)) => return Turn::Ended(cause.into()),
            Err(TransportError::Unreachable(error) | TransportError::Malformed(error)) => error,
        };
        if !self.outbox.try_again() {
            let error = self.handle_unreachable(now, error);
            self.outbox.fail(error);
        }
        Turn::GoOn
    }

    fn handle_unreachable(&mut self, now: Instant, error: std::io::Error) -> Error {
        debug!(mediator = %self.mediator, %error, "mediator unreachable");
        let error = Error::Unreachable {
            mediator: self.mediator.clone(),
            source: Arc::new(error),
        };
        for call in self.pending.take_all() {
            self.fail(now, call, |_, _| error.clone());
        }
        self.end_uploads_without_caller();
        for feed in self.subscriptions.mediator_lost(now) {
            self.tell(feed, || Signal::Interrupted(Interruption::MediatorLost));
        }
        self.liveness.unreachable(now);
        self.transport.look_for_another_way();
        error
    }

    /// The mediator knows this client by another address, or is itself another one.
    fn handle_moved(&mut self, now: Instant) {
        let ping = Envelope::new(MsgType::Ping, None, None).bytes();
        self.send(Device::MEDIATOR, ping, None);
        let interrupted = match self.liveness.moved(now) {
            // Its answer renews the subscriptions.
            Renewal::WithAnswer => self.subscriptions.mediator_lost(now),
            Renewal::Now => self.subscriptions.mediator_back(now),
        };
        for feed in interrupted {
            self.tell(feed, || Signal::Interrupted(Interruption::MediatorLost));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let overdue = self.pending.take_overdue(now);
        if !overdue.is_empty() {
            self.transport.look_for_another_way();
        }
        for call in overdue {
            self.fail(now, call, |call, waited| Error::TimedOut {
                device: call.device,
                waited,
            });
        }
        if self.liveness.handle_timeout(now) {
            self.ask_mediator(now);
        }
        for ask in self.subscriptions.handle_timeout(now) {
            self.ask(now, ask, None);
        }
        self.handle_piece_timeout(now);
    }

    fn answer(&mut self, now: Instant, call: Call<Waiter>, message: Bytes) {
        match call.waiter {
            Waiter::Caller(answer) => drop(answer.send(Ok(message))),
            Waiter::Liveness => {
                let why = match self
                    .liveness
                    .answered(call.started, now, statistics(message))
                {
                    Verdict::Same => return,
                    Verdict::Restarted => Interruption::MediatorRestarted,
                    Verdict::Forgotten => Interruption::Forgotten,
                    Verdict::BackAfterOutage => Interruption::MediatorLost,
                };
                for feed in self.subscriptions.mediator_back(now) {
                    self.tell(feed, || Signal::Interrupted(why));
                }
            }
        }
    }

    fn fail(
        &mut self,
        now: Instant,
        call: Call<Waiter>,
        error: impl FnOnce(&Call<Waiter>, Duration) -> Error,
    ) {
        let error = error(&call, call.waited(now));
        match call.waiter {
            Waiter::Caller(answer) => drop(answer.send(Err(error))),
            Waiter::Liveness => {
                if self.liveness.missed(call.started, now) {
                    for feed in self.subscriptions.mediator_lost(now) {
                        self.tell(feed, || Signal::Interrupted(Interruption::MediatorLost));
                    }
                }
            }
        }
    }

    fn publish(&mut self, now: Instant, device: Device, message: Bytes, stream: Option<u32>) {
        let published = self.subscriptions.published(now, device, &message);
        for Delivery { feed, resumed } in published.deliveries {
            if resumed {
                self.tell(feed, || Signal::Resumed);
            }
            self.tell(feed, || match stream {
                Some(stream) => Signal::Long(stream, message.clone()),
                None => Signal::Message(message.clone()),
            });
        }
        if let Some(leave) = published.leave {
            self.send_numbered(device, leave, None);
        }
    }

    fn tell(&self, feed: FeedKey, signal: impl Fn() -> Signal) {
        for listener in self.subscriptions.listeners(feed) {
            if let Some(queue) = self.queues.get(&listener) {
                queue.push(signal());
            }
        }
    }

    fn ask(&mut self, now: Instant, ask: Ask, sent: Option<oneshot::Sender<Result<()>>>) {
        match ask {
            Ask::Subscribe(feed) => self.subscribe(now, feed, sent),
            Ask::Renew(feed) => {
                let leave = self.subscriptions.leave(feed);
                self.send_numbered(feed.device, leave, None);
                self.subscribe(now, feed, sent);
            }
        }
    }

    fn subscribe(
        &mut self,
        now: Instant,
        feed: FeedKey,
        sent: Option<oneshot::Sender<Result<()>>>,
    ) {
        let syn = self.pending.number(feed.device);
        self.subscriptions.sent(feed, syn);
        let join = self.subscriptions.terms(feed).join;
        self.request(now, feed.device, syn, &join, sent);
    }

    fn send_numbered(
        &mut self,
        device: Device,
        message: Bytes,
        sent: Option<oneshot::Sender<Result<()>>>,
    ) {
        let syn = self.pending.number(device);
        self.send(device, with_syn(&message, syn), sent);
    }

    fn send(&mut self, device: Device, message: Bytes, sent: Option<oneshot::Sender<Result<()>>>) {
        trace!(%device, bytes = message.len(), "sends");
        if device != Device::MEDIATOR {
            let first = self.used.is_empty();
            self.used.insert(device);
            if first && self.transport.role() == Role::Driver {
                // From now on, the mediator reports unavailable devices.
                let ping = Envelope::new(MsgType::Ping, None, None).bytes();
                self.send(Device::MEDIATOR, ping, None);
            }
        }
        self.outbox.push(packet(device, message), sent);
    }

    fn watch_mediator(&mut self, now: Instant) {
        let wanted = self.transport.role() == Role::Client && !self.subscriptions.is_empty();
        self.liveness.watch(now, wanted);
    }

    fn ask_mediator(&mut self, now: Instant) {
        let what = request::What::GetStatistics(mediator::GetStatistics {});
        let message = mediator::DriverMsg {
            request: Some(mediator::Request { what: Some(what) }),
            // Whether the mediator lives must not depend on whether the network loses fragments.
            max_answer_bytes: Some(UNFRAGMENTED),
            ..mediator::DriverMsg::data()
        };
        // Callers use increasing ids.
        self.questions += 1;
        let call = Call {
            id: CallId(u64::MAX - self.questions),
            device: Device::MEDIATOR,
            started: now,
            deadline: now + PATIENCE,
            waiter: Waiter::Liveness,
        };
        let syn = self.pending.insert(call);
        self.send(
            Device::MEDIATOR,
            with_syn(&message.encode_to_vec(), syn),
            None,
        );
    }

    fn arm(&mut self) {
        let timeouts = [
            self.pending.next_timeout(),
            self.subscriptions.next_timeout(),
            self.liveness.next_timeout(),
            self.next_piece_timeout(),
        ];
        let next = timeouts
            .into_iter()
            .flatten()
            .min()
            .map(tokio::time::Instant::from_std);
        // Waking up too early costs one turn, but setting the timer costs on every call.
        let armed = self.sleep.deadline();
        let next = next.unwrap_or_else(|| tokio::time::Instant::now() + NEVER);
        if next < armed || self.sleep.is_elapsed() {
            self.sleep.as_mut().reset(next);
        }
    }

    /// A mediator that never answered may be one of the original system. Then the client
    /// must say goodbye to each driver.
    async fn say_goodbye(&mut self) {
        let died = Envelope::new(MsgType::ClientDied, None, None).bytes();
        match self.transport.role() {
            Role::Driver => {
                let feeds: Vec<_> = self.subscriptions.feeds().collect();
                for feed in feeds {
                    let leave = self.subscriptions.leave(feed);
                    self.send_numbered(feed.device, leave, None);
                }
            }
            Role::Client => {
                if !self.liveness.ever_answered() {
                    for device in std::mem::take(&mut self.used) {
                        self.send(device, died.clone(), None);
                    }
                }
                self.send(Device::MEDIATOR, died, None);
            }
        }
        let flush = async {
            while let Some(packet) = self.outbox.first() {
                let sent = poll_fn(|cx| self.transport.poll_send(cx, packet)).await;
                match sent {
                    Ok(()) => self.outbox.sent(),
                    Err(error) => {
                        debug!(%error, "goodbye not sent");
                        let cause = error.to_string().into();
                        self.outbox.fail(Error::Closed { cause });
                    }
                }
            }
        };
        let _ = tokio::time::timeout(GOODBYE, flush).await;
    }

    fn end(mut self, cause: Arc<str>) {
        // Set before waiting callers wake up: a new call must find it.
        let _ = self.status.cause.set(cause.clone());
        self.commands.close();
        let now = now();
        for call in self.pending.take_all() {
            let cause = cause.clone();
            self.fail(now, call, |_, _| Error::Closed { cause });
        }
        for queue in self.queues.values() {
            queue.close();
        }
        while let Ok(command) = self.commands.try_recv() {
            // Dropped answer channels report the end by themselves; queues do not.
            if let Command::Subscribe { queue, .. } = command {
                queue.close();
            }
        }
        self.status.ended.notify_one();
    }
}

fn poll_transport<T: Transport>(
    transport: &mut T,
    outbox: &Outbox,
    cx: &mut Context<'_>,
) -> Poll<Wakeup> {
    if transport.poll_moved(cx).is_ready() {
        return Poll::Ready(Wakeup::Moved);
    }
    if let Some(packet) = outbox.first()
        && let Poll::Ready(sent) = transport.poll_send(cx, packet)
    {
        return Poll::Ready(Wakeup::Sent(sent));
    }
    transport.poll_receive(cx).map(Wakeup::Received)
}

/// The report of the mediator about an unavailable device.
fn why(message: &[u8]) -> Option<Unavailable> {
    mediator::DriverMsg::decode(message).ok()?.unavailable
}

fn unavailable(device: Device, why: Option<Unavailable>) -> Error {
    match why {
        Some(why) if why.reason() != Unavailability::NoSuchDevice => Error::Unavailable {
            device,
            reason: why.reason(),
            message: why.message().into(),
            hint: why.hint,
        },
        _ => Error::NoSuchDevice { device },
    }
}

/// The relevant part of the mediator's statistics.
fn statistics(message: Bytes) -> Answer {
    let message = mediator::DriverMsg::decode(message).ok();
    match message.and_then(|message| message.reply?.what) {
        Some(reply::What::Statistics(statistics)) => Answer {
            uptime: statistics.uptime_ms.map(Duration::from_millis),
            client_id: statistics.client_id.map(ClientId),
        },
        _ => Answer::default(),
    }
}

/// A first number that another program is unlikely to use, small enough for any
/// language and for few bytes.
fn anything() -> u32 {
    // The keys of hash tables are the only random source of the standard library.
    RandomState::new().build_hasher().finish() as u32 & 0x00ff_ffff
}

/// The clock that tests can pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests;
