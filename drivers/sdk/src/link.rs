//! The messages that a driver may send without a request, from any task or thread. IO.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amber_client::Client;
use amber_proto::limits::{MAX_LONG, MAX_PART};
use amber_proto::mediator::{Health, Outcome};
use amber_proto::{Device, DeviceMessage};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::health::HealthTable;
use crate::motion::Holder;
use crate::orders::Author;
use crate::request::{MessageTooLong, Origin};

/// The number of messages that may wait to be written before [`SendError::Full`]: more than a
/// driver publishes in a second.
const MAX_WAITING: usize = 256;

/// The number of messages longer than a frame that may wait to be written.
const MAX_LONG_WAITING: usize = 4;

/// A driver's link to the mediator and, through it, to other devices.
///
/// [`Driver::start`](crate::Driver::start) receives one. Clones are cheap, and
/// you may pass them to other tasks and threads.
///
/// The methods that send never wait. Messages are written in the order of the
/// calls. Those that are longer than a frame (32 767 bytes) travel in pieces, to
/// the clients that join them; others do not get them.
pub struct Link<M> {
    /// The device that the driver serves, in a process that serves several.
    device: Option<Device>,
    commands: mpsc::Sender<Waiting<M>>,
    /// For messages longer than a frame.
    room: Arc<Semaphore>,
    subscriptions: watch::Receiver<usize>,
    holder: watch::Receiver<Option<Holder>>,
    client: Client,
    health: Arc<Mutex<HealthTable>>,
    /// Signals a change in the health table.
    health_changed: mpsc::Sender<()>,
}

/// The other end of a [`Link`].
pub(crate) struct Linked<M> {
    pub(crate) commands: mpsc::Receiver<Waiting<M>>,
    pub(crate) health: Arc<Mutex<HealthTable>>,
    pub(crate) health_changed: mpsc::Receiver<()>,
}

/// A command that waits, and its room if it is long.
pub(crate) type Waiting<M> = (Command<M>, Option<OwnedSemaphorePermit>);

/// A request of a [`Link`] to write a message.
#[derive(Debug)]
pub(crate) enum Command<M> {
    Answer(Origin, M),
    Publish(M),
    PublishFor(Device, M),
    PublishTo(Origin, M),
    Outcome(Origin, Outcome),
    Block(Option<Device>, Option<String>),
}

/// The client that holds the lease of a device, now and after each change: from [`Link::holder`].
#[derive(Clone, Debug)]
pub struct HolderWatch(watch::Receiver<Option<Holder>>);

impl HolderWatch {
    /// The client that holds the lease now; `None` while nobody holds it.
    pub fn latest(&mut self) -> Option<Holder> {
        self.0.borrow_and_update().clone()
    }

    /// Waits for a change since the last [`HolderWatch::latest`] or `changed`; `false` if the driver
    /// has been shut down.
    ///
    /// Dropping the future loses no change.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// The reasons why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The message is too long, or too long for a frame and the client does not join pieces.
    #[error(transparent)]
    TooLong(#[from] MessageTooLong),
    /// The mediator reads messages more slowly than the driver sends them.
    #[error("{MAX_WAITING} messages are already waiting to be written")]
    Full,
    /// The driver has been shut down.
    #[error("the driver has been shut down")]
    ShutDown,
}

impl<M: DeviceMessage> Link<M> {
    /// Creates a link and its other end.
    pub(crate) fn new(
        device: Option<Device>,
        client: Client,
        subscriptions: watch::Receiver<usize>,
        holder: watch::Receiver<Option<Holder>>,
    ) -> (Self, Linked<M>) {
        let (commands, received) = mpsc::channel(MAX_WAITING);
        let (health_changed, changes) = mpsc::channel(1);
        let link = Self {
            device,
            commands,
            room: Arc::new(Semaphore::new(MAX_LONG_WAITING)),
            subscriptions,
            holder,
            client,
            health: Arc::default(),
            health_changed,
        };
        let linked = Linked {
            commands: received,
            health: link.health.clone(),
            health_changed: changes,
        };
        (link, linked)
    }

    /// Sends a message to all subscribers now, for data that comes at irregular
    /// times. For data at a fixed rate, use
    /// [`Driver::publish`](crate::Driver::publish).
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish(&self, message: M) -> Result<(), SendError> {
        let bytes = check(&message, MAX_LONG)?;
        self.send_long(bytes, Command::Publish(message))
    }

    /// Sends a message to the subscribers of one device; only in a process that
    /// serves several.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish_for(&self, device: Device, message: M) -> Result<(), SendError> {
        let bytes = check(&message, MAX_LONG)?;
        self.send_long(bytes, Command::PublishFor(device, message))
    }

    /// Sends a message as published data to the clients of an origin,
    /// subscribers or not: for devices whose clients subscribe by a request.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish_to(&self, origin: &Origin, message: M) -> Result<(), SendError> {
        let bytes = check(&message, MAX_LONG)?;
        self.send_long(bytes, Command::PublishTo(origin.clone(), message))
    }

    /// Answers a request whose handler returned `None`.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn answer(&self, origin: &Origin, message: M) -> Result<(), SendError> {
        let longest = origin.joins.map_or(MAX_PART, |joins| joins.longest);
        let bytes = check(&message, longest)?;
        self.send_long(bytes, Command::Answer(origin.clone(), message))
    }

    /// Reports that the driver carries out a request that has no answer.
    /// Does nothing unless the sender asked for the outcome, as `amber call` does.
    ///
    /// # Errors
    /// The report was not sent.
    pub fn accepted(&self, origin: &Origin) -> Result<(), SendError> {
        self.report_outcome(origin, Outcome::accepted)
    }

    /// Reports that the driver does not carry out a request, with the reason: one sentence for
    /// people, such as "5000 mm/s is above the maximum of 1200 mm/s". Does nothing
    /// unless the sender asked for the outcome, as `amber call` does. Control
    /// characters become spaces, and text beyond 200 bytes is cut off.
    ///
    /// # Errors
    /// The report was not sent.
    pub fn refused(&self, origin: &Origin, why: &str) -> Result<(), SendError> {
        self.report_outcome(origin, || Outcome::refusal(why))
    }

    /// Reports that the device does not work although the driver does, with the reason:
    /// one sentence for people, such as "/dev/ttyACM0 does not exist". If the driver
    /// serves several devices, the report is about all of them.
    ///
    /// `amber events`, `amber devices` and `amber status` show it until
    /// [`Link::recovered`] or the end of the driver. Repeating a report does
    /// nothing, the most recent report counts, and reports faster than they can
    /// be written are skipped. Control characters become spaces, and text
    /// beyond 200 bytes is cut off.
    ///
    /// The report is not logged. If the driver was not started by a mediator of
    /// this project, nothing is sent.
    pub fn trouble(&self, why: &str) {
        self.say(self.device, Health::in_trouble(why));
    }

    /// Reports that the device works, which is also the initial state. It
    /// revokes every [`Link::trouble`] and [`Link::trouble_for`].
    pub fn recovered(&self) {
        self.say(self.device, Health::ok());
    }

    /// Like [`Link::trouble`], about one device that this process serves.
    pub fn trouble_for(&self, device: Device, why: &str) {
        self.say(Some(device), Health::in_trouble(why));
    }

    /// Like [`Link::recovered`], about one device that this process serves.
    pub fn recovered_for(&self, device: Device) {
        self.say(Some(device), Health::ok());
    }

    /// How many subscriptions there are now.
    pub fn subscriptions(&self) -> usize {
        *self.subscriptions.borrow()
    }

    /// Waits for the first subscriber; `false` if the driver has been shut
    /// down.
    ///
    /// Dropping the future loses no message.
    pub async fn listened_to(&mut self) -> bool {
        self.subscriptions
            .wait_for(|count| *count > 0)
            .await
            .is_ok()
    }

    /// The client that holds the lease of this device, now and after each change. For a driver that
    /// moves another device on behalf of this client.
    pub fn holder(&self) -> HolderWatch {
        HolderWatch(self.holder.clone())
    }

    /// The sender of a request, for the bookkeeping of [`orders`](crate::orders). If it holds the lease,
    /// it has the name that it gave for the lease, else `name`.
    pub fn author(&self, origin: &Origin, name: Option<&str>) -> Author {
        let holder = self.holder.borrow();
        let of_holder = (holder.as_ref())
            .filter(|holder| origin.client() == Some(holder.client))
            .map(|holder| &*holder.name);
        Author::of(origin, of_holder.or(name))
    }

    /// Reports that the driver cannot move the device for anybody now, with the reason: one sentence
    /// for people. For a driver that moves another device which refuses. The lease of this device
    /// ends, and clients that want to move it are told the reason, until it is reported that the
    /// driver can (`None`) or a client takes the lease by force.
    ///
    /// # Errors
    /// The report was not taken.
    pub fn block_motion(&self, why: Option<&str>) -> Result<(), SendError> {
        self.send(Command::Block(self.device, why.map(str::to_owned)))
    }

    /// The other devices of the robot, over our own stdin and stdout:
    /// `link.devices().dummy(0).status().await`.
    pub fn devices(&self) -> &Client {
        &self.client
    }

    fn say(&self, device: Option<Device>, health: Health) {
        if lock(&self.health).say(device, health) {
            // If the channel is full, the pending signal also covers this change.
            let _ = self.health_changed.try_send(());
        }
    }

    fn report_outcome(
        &self,
        origin: &Origin,
        outcome: impl FnOnce() -> Outcome,
    ) -> Result<(), SendError> {
        match origin.wants_outcome {
            true => self.send(Command::Outcome(origin.clone(), outcome())),
            false => Ok(()),
        }
    }

    fn send(&self, command: Command<M>) -> Result<(), SendError> {
        self.send_long(0, command)
    }

    /// Sends a message of so many bytes.
    fn send_long(&self, bytes: usize, command: Command<M>) -> Result<(), SendError> {
        let room = match bytes > MAX_PART {
            true => Some((self.room.clone().try_acquire_owned()).map_err(|_| SendError::Full)?),
            false => None,
        };
        self.commands
            .try_send((command, room))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => SendError::Full,
                mpsc::error::TrySendError::Closed(_) => SendError::ShutDown,
            })
    }
}

// Not derived, because `derive` would require `M: Clone`.
impl<M> Clone for Link<M> {
    fn clone(&self) -> Self {
        Self {
            device: self.device,
            commands: self.commands.clone(),
            room: self.room.clone(),
            subscriptions: self.subscriptions.clone(),
            holder: self.holder.clone(),
            client: self.client.clone(),
            health: self.health.clone(),
            health_changed: self.health_changed.clone(),
        }
    }
}

impl<M> fmt::Debug for Link<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("subscriptions", &*self.subscriptions.borrow())
            .finish_non_exhaustive()
    }
}

/// Every holder releases the lock after a short lookup.
pub(crate) fn lock(health: &Mutex<HealthTable>) -> MutexGuard<'_, HealthTable> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The length of a message, with room for the fields that are set when it is sent.
fn check<M: DeviceMessage>(message: &M, longest: usize) -> Result<usize, SendError> {
    const TYPE_AND_ACK: usize = 2 + 6;
    match message.encoded_len() {
        length if length + TYPE_AND_ACK > longest => Err(MessageTooLong(length).into()),
        length => Ok(length + TYPE_AND_ACK),
    }
}
