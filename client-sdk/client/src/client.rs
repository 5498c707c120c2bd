//! The handle: connect, and ask for devices. IO.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use amber_proto::Device;
use amber_proto::limits::{MAX_LONG, MAX_PART};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::address::{InvalidAddress, MediatorAddress};
use crate::dispatch::{Cancellation, Command, Dispatch, Reports, Status};
use crate::error::{Error, Result};
use crate::pending::CallId;
use crate::proxy::Proxy;
use crate::subscription::{Decode, Subscription};
use crate::subscriptions::{Fields, ListenerId, Terms};
use crate::transport::{Role, Transport, UdpTransport};
use crate::wire::SYN_LEN;

/// The default time to wait for an answer.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(1);

/// How many commands wait for the task before callers have to wait.
const MAX_COMMANDS: usize = 64;
const ANNOUNCE_TRIES: usize = 3;
const ANNOUNCE_PATIENCE: Duration = Duration::from_millis(200);

/// A connection to a mediator: a cheap handle that can be cloned.
///
/// All clones, proxies and subscriptions share one socket and one task. When
/// you drop the last of them, the task tells the mediator that this client is
/// gone, and ends. Dropping never blocks, so a program that exits right away
/// should call [`Client::close`] and wait.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    deadline: Duration,
    validity: Option<Duration>,
}

struct Shared {
    commands: mpsc::Sender<Command>,
    cancellations: mpsc::UnboundedSender<Cancellation>,
    status: Arc<Status>,
    last_id: AtomicU64,
    mediator: String,
    role: Role,
}

/// Whether the mediator has ever answered this client itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// It has answered, so it knows this client and reports dead drivers and
    /// unknown devices immediately.
    Answered,
    /// It has not answered. It may belong to the original system, which never
    /// does, or be unreachable. Only deadlines then detect a missing device.
    Silent,
}

impl Client {
    /// Connects to the mediator at `HOST`, `HOST:PORT`, `IPV6` or
    /// `[IPV6]:PORT`, such as `"127.0.0.1"`. The default port is 26233.
    ///
    /// Sends up to three PINGs to announce this client. A mediator of the
    /// original system never answers them, so silence is not an error:
    /// [`Client::announcement`] tells the two apart after 0.6 s at most. If a
    /// host has several addresses, the first one that answers is used.
    ///
    /// The client survives changes of the network: when this computer gets another
    /// address, or the name of the host stands for another one, it connects again,
    /// announces itself and subscribes again. It is a new client to the drivers then.
    ///
    /// Dropping the future cancels the attempt and leaves nothing behind.
    ///
    /// # Errors
    /// The address is invalid, the host is unknown, or the network reports
    /// that nothing listens there.
    pub async fn connect(mediator: impl fmt::Display) -> Result<Self> {
        let name = mediator.to_string();
        let unknown_host = |error| Error::UnknownHost {
            mediator: name.clone(),
            source: Arc::new(error),
        };
        let address: MediatorAddress = name.parse().map_err(|error: InvalidAddress| {
            unknown_host(io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        let addresses = tokio::net::lookup_host((address.host(), address.port()))
            .await
            .map_err(unknown_host)?;
        let mut silent = None;
        let mut failed = None;
        for socket in addresses {
            match Self::connect_to(socket, &address).await {
                Ok(client) if client.announcement() == Announcement::Answered => {
                    return Ok(client);
                }
                Ok(client) => silent = silent.or(Some(client)),
                Err(error) => failed = Some(error),
            }
        }
        match (silent, failed) {
            (Some(client), _) => Ok(client),
            (None, Some(error)) => Err(error),
            (None, None) => Err(unknown_host(io::ErrorKind::NotFound.into())),
        }
    }

    /// A client over any transport; its task runs on the current tokio runtime. Like [`transport`],
    /// it is not a part of the interface.
    ///
    /// Nothing is sent before it is used.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// [`transport`]: crate::transport
    #[doc(hidden)]
    pub fn over(transport: impl Transport) -> Self {
        let (client, dispatch) = Self::with_task(transport, "the other end".into());
        tokio::spawn(dispatch.run());
        client
    }

    /// The device with this address, for your own messages.
    pub fn device(&self, device: Device) -> Proxy {
        Proxy::new(self.clone(), device)
    }

    /// Returns the same client with another deadline for everything made from
    /// it.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns the same client; everything made from it says with each command that moves something
    /// that it holds only for this time. The driver stops the device then, unless a later command
    /// came: also if this program has frozen or the network is cut. Repeat commands at least three
    /// times in this time. Errands, such as a target to drive to, are not limited by it.
    ///
    /// Drivers without Amber's harness ignore it.
    #[must_use]
    pub fn with_validity(mut self, validity: Duration) -> Self {
        self.validity = Some(validity);
        self
    }

    /// For how long commands hold, if that is limited.
    pub(crate) fn validity(&self) -> Option<Duration> {
        self.validity
    }

    /// The time to wait for an answer.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Whether the mediator has ever answered this client itself.
    pub fn announcement(&self) -> Announcement {
        match self.shared.status.heard.load(Ordering::Relaxed) {
            true => Announcement::Answered,
            false => Announcement::Silent,
        }
    }

    /// The address of the mediator, for messages to people.
    pub fn mediator_address(&self) -> &str {
        &self.shared.mediator
    }

    /// Tells the mediator that this client leaves. Ends this client with all
    /// its clones and subscriptions: pending requests fail and streams end.
    ///
    /// Resolves when the message has been handed to the system, after half a
    /// second at most. Dropping the future does not cancel it.
    pub async fn close(self) {
        let ended = self.shared.commands.clone();
        if self.shared.commands.send(Command::Close).await.is_ok() {
            ended.closed().await;
        }
    }

    /// Resolves when the task has ended; keeps nothing alive.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let status = self.shared.status.clone();
        async move { status.ended.notified().await }
    }

    /// A client and the task that must be run for it.
    pub(crate) fn with_task<T: Transport>(transport: T, mediator: String) -> (Self, Dispatch<T>) {
        let (commands, commands_received) = mpsc::channel(MAX_COMMANDS);
        let (cancellations, cancellations_received) = mpsc::unbounded_channel();
        let status = Arc::new(Status::default());
        let role = transport.role();
        let dispatch = Dispatch::new(
            transport,
            mediator.clone(),
            commands_received,
            cancellations_received,
            status.clone(),
        );
        let shared = Shared {
            commands,
            cancellations,
            status,
            last_id: AtomicU64::new(0),
            mediator,
            role,
        };
        let client = Self {
            shared: Arc::new(shared),
            deadline: DEFAULT_DEADLINE,
            validity: None,
        };
        (client, dispatch)
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call(
        &self,
        device: Device,
        message: Bytes,
        deadline: Duration,
    ) -> Result<Bytes> {
        let call = self.ask(device, message, deadline, None).await?;
        call.answer().await
    }

    /// Sends a request within a deadline. Its answer may be waited for later or never, but is
    /// awaited for `wait` at least.
    pub(crate) async fn begin(
        &self,
        device: Device,
        message: Bytes,
        deadline: Duration,
        wait: Duration,
    ) -> Result<Asked> {
        let (sent, receiver) = oneshot::channel();
        let until = Instant::now() + deadline;
        let asking = self.ask(device, message, deadline.max(wait), Some(sent));
        let timed_out = Error::TimedOut {
            device,
            waited: deadline,
        };
        let call = timeout_at(until, asking).await.map_err(|_| timed_out)??;
        self.sent(device, call.started, until, receiver).await?;
        Ok(call)
    }

    async fn ask(
        &self,
        device: Device,
        message: Bytes,
        deadline: Duration,
        sent: Option<oneshot::Sender<Result<()>>>,
    ) -> Result<Asked> {
        check_length(device, &message, longest(device))?;
        let started = Instant::now();
        let until = started + deadline;
        let (answer, receiver) = oneshot::channel();
        // The guard is there before the command is: see `dispatch`.
        let call = Asked {
            guard: CallGuard {
                cancellations: self.shared.cancellations.clone(),
                id: CallId(self.fresh_id()),
                receiver,
                state: GuardState::Waiting,
            },
            status: self.shared.status.clone(),
            device,
            started,
            until,
        };
        let command = Command::Call {
            id: call.guard.id,
            device,
            message,
            started: started.into_std(),
            deadline: until.into_std(),
            answer,
            sent,
        };
        self.command(device, started, until, command).await?;
        Ok(call)
    }

    /// Whether drivers may report the outcomes of commands to this client.
    pub(crate) fn may_ask_for_outcomes(&self) -> bool {
        self.shared.role == Role::Client && self.announcement() == Announcement::Answered
    }

    /// Which drivers report them.
    pub(crate) fn reports(&self) -> ReportsOf {
        ReportsOf(self.shared.status.clone())
    }

    /// Sends a message without an answer.
    pub(crate) async fn send(
        &self,
        device: Device,
        message: Bytes,
        deadline: Duration,
    ) -> Result<()> {
        check_length(device, &message, longest(device))?;
        let started = Instant::now();
        let until = started + deadline;
        let (sent, receiver) = oneshot::channel();
        let command = Command::Send {
            device,
            message,
            sent,
        };
        self.command(device, started, until, command).await?;
        self.sent(device, started, until, receiver).await
    }

    pub(crate) async fn subscribe<T>(
        &self,
        device: Device,
        terms: Terms,
        fields: Fields,
        decode: Decode<T>,
    ) -> Result<Subscription<T>> {
        check_length(device, &terms.join, MAX_PART)?;
        let started = Instant::now();
        let until = started + self.deadline;
        let listener = ListenerId(self.fresh_id());
        // Its drop takes the command back, whenever that happens.
        let subscription = Subscription::new(self.clone(), device, listener, decode);
        let (sent, receiver) = oneshot::channel();
        let command = Command::Subscribe {
            device,
            listener,
            terms,
            fields,
            queue: subscription.queue().clone(),
            sent,
        };
        self.command(device, started, until, command).await?;
        match self.sent(device, started, until, receiver).await {
            // It is asked for again until the mediator is there.
            Ok(()) | Err(Error::Unreachable { .. }) => Ok(subscription),
            Err(error) => Err(error),
        }
    }

    /// Never blocks; when the task has ended there is nothing to take back.
    pub(crate) fn cancel(&self, cancellation: Cancellation) {
        let _ = self.shared.cancellations.send(cancellation);
    }

    async fn connect_to(address: SocketAddr, name: &MediatorAddress) -> Result<Self> {
        let unreachable = |error| Error::Unreachable {
            mediator: address.to_string(),
            source: Arc::new(error),
        };
        let transport = UdpTransport::connect(address).await.map_err(unreachable)?;
        let transport = transport.named(name);
        let (client, dispatch) = Self::with_task(transport, address.to_string());
        tokio::spawn(dispatch.run());
        client.announce().await?;
        Ok(client)
    }

    /// Makes the mediator know this client, if it is one that does.
    async fn announce(&self) -> Result<()> {
        let mediator = self
            .device(Device::MEDIATOR)
            .with_deadline(ANNOUNCE_PATIENCE);
        for _ in 0..ANNOUNCE_TRIES {
            match mediator.ping().await {
                Ok(_) => break,
                Err(Error::TimedOut { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn command(
        &self,
        device: Device,
        started: Instant,
        until: Instant,
        command: Command,
    ) -> Result<()> {
        match timeout_at(until, self.shared.commands.send(command)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.closed()),
            Err(_) => Err(Error::TimedOut {
                device,
                waited: started.elapsed(),
            }),
        }
    }

    async fn sent(
        &self,
        device: Device,
        started: Instant,
        until: Instant,
        receiver: oneshot::Receiver<Result<()>>,
    ) -> Result<()> {
        match timeout_at(until, receiver).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(_)) => Err(self.closed()),
            Err(_) => Err(Error::TimedOut {
                device,
                waited: started.elapsed(),
            }),
        }
    }

    fn closed(&self) -> Error {
        closed(&self.shared.status)
    }

    fn fresh_id(&self) -> u64 {
        self.shared.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("mediator", &self.shared.mediator)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// A request that has been handed to the task. Keeps no client alive.
pub(crate) struct Asked {
    guard: CallGuard,
    status: Arc<Status>,
    device: Device,
    started: Instant,
    until: Instant,
}

impl Asked {
    /// Waits for the answer.
    pub(crate) async fn answer(mut self) -> Result<Bytes> {
        // The task keeps the deadline of what it has; this is for commands that
        // it could not take because its transport is stuck.
        let Ok(result) = timeout_at(self.until, &mut self.guard.receiver).await else {
            return Err(Error::TimedOut {
                device: self.device,
                waited: self.started.elapsed(),
            });
        };
        self.guard.state = GuardState::Settled;
        result.unwrap_or_else(|_| Err(closed(&self.status)))
    }
}

/// What is known about the drivers' reports.
#[derive(Clone)]
pub(crate) struct ReportsOf(Arc<Status>);

impl std::ops::Deref for ReportsOf {
    type Target = Reports;

    fn deref(&self) -> &Reports {
        &self.0.reports
    }
}

fn closed(status: &Status) -> Error {
    let cause = status.cause.get().cloned();
    Error::Closed {
        cause: cause.unwrap_or_else(|| "its task was stopped".into()),
    }
}

/// Takes a call back when its future is dropped.
struct CallGuard {
    cancellations: mpsc::UnboundedSender<Cancellation>,
    id: CallId,
    receiver: oneshot::Receiver<Result<Bytes>>,
    state: GuardState,
}

#[derive(PartialEq, Eq)]
enum GuardState {
    Waiting,
    Settled,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        // First the receiver, then the cancellation: see `dispatch`.
        self.receiver.close();
        if self.state == GuardState::Waiting {
            // When the task has ended there is nothing to take back.
            let _ = self.cancellations.send(Cancellation::Call(self.id));
        }
    }
}

/// The longest message to a device. The mediator joins no pieces.
fn longest(device: Device) -> usize {
    match device == Device::MEDIATOR {
        true => MAX_PART,
        false => MAX_LONG,
    }
}

fn check_length(device: Device, message: &Bytes, longest: usize) -> Result<()> {
    let bytes = message.len() + SYN_LEN;
    match bytes > longest {
        true => Err(Error::TooLong { device, bytes }),
        false => Ok(()),
    }
}
