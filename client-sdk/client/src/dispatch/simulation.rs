//! The client's task, driven by method calls instead of a runtime, for the simulation. IO,
//! but only because [`Dispatch`] needs a runtime for a timer that is not used here.
//!
//! Events are method calls with the time, and [`Machine::take_sent`] returns the packets
//! to send. All decisions are those of [`Dispatch`], except for the order in which it
//! polls its inputs.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use amber_proto::{Device, MsgType, Packet};
use bytes::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::{Cancellation, Command, Dispatch, Status};
use crate::error::Result;
use crate::pending::{CallId, Pending};
use crate::subscription::{Queue, Signal};
use crate::subscriptions::{ListenerId, Terms};
use crate::transport::{Role, Transport, TransportError};
use crate::wire::Envelope;

/// A client without socket, clock and task.
pub struct Machine {
    dispatch: Dispatch<Wire>,
    calls: BTreeMap<u64, oneshot::Receiver<Result<Bytes>>>,
    listeners: BTreeMap<u64, (Device, Arc<Queue>)>,
    last_id: u64,
}

/// How a call has ended.
pub type Outcome = (u64, Result<Bytes>);

/// A signal to a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// The device has published this.
    Message(Bytes),
    /// The device publishes nothing for now.
    Interrupted,
    /// The device publishes again.
    Resumed,
}

struct Wire {
    role: Role,
    sent: Vec<Packet>,
}

impl Transport for Wire {
    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        packet: &Packet,
    ) -> Poll<std::result::Result<(), TransportError>> {
        self.sent.push(packet.clone());
        Poll::Ready(Ok(()))
    }

    fn poll_receive(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<std::result::Result<Packet, TransportError>> {
        Poll::Pending
    }

    fn role(&self) -> Role {
        self.role
    }
}

impl Machine {
    /// A client that has sent nothing yet. Its numbers begin after `last`, which the
    /// caller draws.
    pub fn new(role: Role, last: u32) -> Self {
        let (_, commands) = mpsc::channel(1);
        let (_, cancellations) = mpsc::unbounded_channel();
        let sent = Vec::new();
        let _runtime = runtime().enter();
        let mut dispatch = Dispatch::new(
            Wire { role, sent },
            "the simulated one".into(),
            commands,
            cancellations,
            Arc::new(Status::default()),
        );
        dispatch.pending = Pending::new(last);
        Self {
            dispatch,
            calls: BTreeMap::new(),
            listeners: BTreeMap::new(),
            last_id: 0,
        }
    }

    /// Contacts the mediator, as connecting does.
    pub fn announce(&mut self, now: Instant, patience: Duration) -> u64 {
        let ping = Envelope::new(MsgType::Ping, None, None).bytes();
        self.call(now, Device::MEDIATOR, ping, patience)
    }

    /// Sends a request; [`Machine::poll_outcome`] returns its result.
    pub fn call(
        &mut self,
        now: Instant,
        device: Device,
        message: Bytes,
        patience: Duration,
    ) -> u64 {
        let id = self.fresh_id();
        let (answer, receiver) = oneshot::channel();
        self.calls.insert(id, receiver);
        let command = Command::Call {
            id: CallId(id),
            device,
            message,
            started: now,
            deadline: now + patience,
            answer,
            sent: None,
        };
        self.dispatch.handle_command(now, command);
        self.flush(now);
        id
    }

    /// Drops the future of a call.
    pub fn cancel(&mut self, now: Instant, call: u64) {
        self.calls.remove(&call);
        let cancelled = Cancellation::Call(CallId(call));
        self.dispatch.handle_cancellation(now, cancelled);
        self.flush(now);
    }

    /// Subscribes; [`Machine::poll_signal`] returns its signals. `join` and `leave` begin
    /// and end the subscription, without their numbers.
    pub fn subscribe(
        &mut self,
        now: Instant,
        device: Device,
        (join, leave): (Bytes, Bytes),
        period: Duration,
    ) -> u64 {
        let id = self.fresh_id();
        let queue = Arc::new(Queue::default());
        self.listeners.insert(id, (device, queue.clone()));
        let terms = Terms {
            join,
            leave,
            period,
        };
        let (sent, _) = oneshot::channel();
        let command = Command::Subscribe {
            device,
            listener: ListenerId(id),
            terms,
            fields: &[],
            queue,
            sent,
        };
        self.dispatch.handle_command(now, command);
        self.flush(now);
        id
    }

    /// Drops a subscription.
    pub fn unsubscribe(&mut self, now: Instant, listener: u64) {
        let Some((device, queue)) = self.listeners.remove(&listener) else {
            return;
        };
        queue.close();
        let dropped = Cancellation::Listener(device, ListenerId(listener));
        self.dispatch.handle_cancellation(now, dropped);
        self.flush(now);
    }

    /// A packet has arrived.
    pub fn receive(&mut self, now: Instant, packet: Packet) {
        self.dispatch.handle_packet(now, packet);
        self.flush(now);
    }

    /// The network reports that nothing listens at the address.
    pub fn refused(&mut self, now: Instant) {
        let refused = io::ErrorKind::ConnectionRefused.into();
        self.dispatch.handle_unreachable(now, refused);
        self.flush(now);
    }

    /// When [`Machine::timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let dispatch = &self.dispatch;
        let timeouts = [
            dispatch.pending.next_timeout(),
            dispatch.subscriptions.next_timeout(),
            dispatch.liveness.next_timeout(),
            dispatch.next_piece_timeout(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// The time has come.
    pub fn timeout(&mut self, now: Instant) {
        self.dispatch.handle_timeout(now);
        self.flush(now);
    }

    /// Drops the last handle. Returns the last packets.
    pub fn close(mut self) -> Vec<Packet> {
        let _runtime = runtime().enter();
        let said = pin!(self.dispatch.say_goodbye()).poll(&mut no_waker());
        debug_assert!(said.is_ready(), "this transport never waits");
        std::mem::take(&mut self.dispatch.transport.sent)
    }

    /// The packets to send, in their order.
    pub fn take_sent(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.dispatch.transport.sent)
    }

    /// A call that has ended.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        let ended = |(id, receiver): (&u64, &mut oneshot::Receiver<Result<Bytes>>)| {
            receiver.try_recv().ok().map(|outcome| (*id, outcome))
        };
        let outcome = self.calls.iter_mut().find_map(ended)?;
        self.calls.remove(&outcome.0);
        Some(outcome)
    }

    /// The next signal to a listener.
    pub fn poll_signal(&mut self) -> Option<(u64, Signalled)> {
        for (id, (_, queue)) in &self.listeners {
            if let Poll::Ready(Some((signal, _))) = queue.poll_pop(&mut no_waker()) {
                let signal = match signal {
                    Signal::Message(bytes) | Signal::Long(_, bytes) => Signalled::Message(bytes),
                    Signal::Interrupted(_) => Signalled::Interrupted,
                    Signal::Resumed => Signalled::Resumed,
                };
                return Some((*id, signal));
            }
        }
        None
    }

    fn fresh_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn flush(&mut self, now: Instant) {
        while let Some(packet) = self.dispatch.outbox.first() {
            self.dispatch.transport.sent.push(packet.clone());
            self.dispatch.handle_sent(now, Ok(()));
        }
    }
}

fn no_waker() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime without IO needs nothing of the system")
    })
}
