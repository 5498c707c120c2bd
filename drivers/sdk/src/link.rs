//! What a driver may do on its own account, from anywhere. IO.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amber_client::Client;
use amber_proto::limits::MAX_PART;
use amber_proto::mediator::Health;
use amber_proto::{Device, DeviceMessage};
use tokio::sync::{mpsc, watch};

use crate::health::HealthTable;
use crate::request::Origin;
use crate::session::MessageTooLong;

/// How many messages may wait to be written before [`SendError::Full`]: more
/// than a driver publishes in a second.
const MAX_WAITING: usize = 256;

/// A driver's link to the mediator, and through it to other devices.
///
/// [`Driver::start`](crate::Driver::start) gets one; clones are cheap and may
/// be given to other tasks and threads.
///
/// The methods that send never wait. What they send is written in the order
/// of the calls.
pub struct Link<M> {
    commands: mpsc::Sender<Command<M>>,
    subscriptions: watch::Receiver<usize>,
    client: Client,
    health: Arc<Mutex<HealthTable>>,
    /// Says that there is news in the table.
    health_changed: mpsc::Sender<()>,
}

/// The other end of a [`Link`].
pub(crate) struct Linked<M> {
    pub(crate) commands: mpsc::Receiver<Command<M>>,
    pub(crate) health: Arc<Mutex<HealthTable>>,
    pub(crate) health_changed: mpsc::Receiver<()>,
}

/// What a [`Link`] wants written.
#[derive(Debug)]
pub(crate) enum Command<M> {
    Answer(Origin, M),
    Publish(M),
    PublishFor(Device, M),
    PublishTo(Origin, M),
}

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It is longer than a frame may be.
    #[error(transparent)]
    TooLong(#[from] MessageTooLong),
    /// The mediator takes messages more slowly than the driver makes them.
    #[error("{MAX_WAITING} messages wait to be written")]
    Full,
    /// The driver has been shut down.
    #[error("the driver has been shut down")]
    ShutDown,
}

impl<M: DeviceMessage> Link<M> {
    /// A link and its other end.
    pub(crate) fn new(client: Client, subscriptions: watch::Receiver<usize>) -> (Self, Linked<M>) {
        let (commands, received) = mpsc::channel(MAX_WAITING);
        let (health_changed, changes) = mpsc::channel(1);
        let link = Self {
            commands,
            subscriptions,
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

    /// Sends a message to all subscribers, now; for data that comes when it
    /// comes. (For data at a fixed rate there is
    /// [`Driver::publish`](crate::Driver::publish).)
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish(&self, message: M) -> Result<(), SendError> {
        self.send(Command::Publish(check(message)?))
    }

    /// Sends a message to the subscribers of one of our devices; only in a
    /// process that serves several.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish_for(&self, device: Device, message: M) -> Result<(), SendError> {
        self.send(Command::PublishFor(device, check(message)?))
    }

    /// Sends a message as published data to the clients of an origin,
    /// subscribers or not: for devices whose clients subscribe by a request.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn publish_to(&self, origin: &Origin, message: M) -> Result<(), SendError> {
        self.send(Command::PublishTo(origin.clone(), check(message)?))
    }

    /// Answers a request whose handler has returned `None`.
    ///
    /// # Errors
    /// The message was not sent.
    pub fn answer(&self, origin: &Origin, message: M) -> Result<(), SendError> {
        self.send(Command::Answer(origin.clone(), check(message)?))
    }

    /// Says that the device does not work, though the driver does, and why:
    /// one sentence for people, such as "/dev/ttyACM0 is not there". In a process
    /// that serves several devices it is about all of them.
    ///
    /// `amber events`, `amber devices` and `amber status` show it until
    /// [`Link::recovered`] or the end of the driver. Saying the same again does
    /// nothing; of several troubles the last one counts, and what is said
    /// faster than it can be written is skipped. Control characters become
    /// spaces, and more than 200 bytes are cut off.
    ///
    /// It is not logged: what the log should tell is logged as usual. When the
    /// driver was not started by a mediator of this project, nothing is sent.
    pub fn trouble(&self, why: &str) {
        self.say(None, Health::in_trouble(why));
    }

    /// Says that the device works, which is what is assumed to begin with. Takes
    /// back every [`Link::trouble`] and [`Link::trouble_for`].
    pub fn recovered(&self) {
        self.say(None, Health::ok());
    }

    /// As [`Link::trouble`], about one of our devices; only in a process that
    /// serves several. The device must be one of ours.
    pub fn trouble_for(&self, device: Device, why: &str) {
        self.say(Some(device), Health::in_trouble(why));
    }

    /// As [`Link::recovered`], about one of our devices; only in a process
    /// that serves several.
    pub fn recovered_for(&self, device: Device) {
        self.say(Some(device), Health::ok());
    }

    /// How many subscriptions there are now.
    pub fn subscriptions(&self) -> usize {
        *self.subscriptions.borrow()
    }

    /// Waits until somebody is subscribed; `false` if that cannot happen any
    /// more, because the driver has been shut down.
    ///
    /// Dropping the future loses nothing.
    pub async fn listened_to(&mut self) -> bool {
        self.subscriptions
            .wait_for(|count| *count > 0)
            .await
            .is_ok()
    }

    /// The other devices of the robot, by way of our own stdin and stdout:
    /// `link.devices().dummy(0).status().await`.
    pub fn devices(&self) -> &Client {
        &self.client
    }

    fn say(&self, device: Option<Device>, health: Health) {
        if lock(&self.health).say(device, health) {
            // When it is full already, the news will be found, too.
            let _ = self.health_changed.try_send(());
        }
    }

    fn send(&self, command: Command<M>) -> Result<(), SendError> {
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => SendError::Full,
                mpsc::error::TrySendError::Closed(_) => SendError::ShutDown,
            })
    }
}

// Not derived: that would ask the same of the message.
impl<M> Clone for Link<M> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            subscriptions: self.subscriptions.clone(),
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

/// Nobody holds it for longer than it takes to look something up.
pub(crate) fn lock(health: &Mutex<HealthTable>) -> MutexGuard<'_, HealthTable> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves room for the fields that are set when it is sent.
fn check<M: DeviceMessage>(message: M) -> Result<M, SendError> {
    const TYPE_AND_ACK: usize = 2 + 6;
    match message.encoded_len() {
        length if length + TYPE_AND_ACK > MAX_PART => Err(MessageTooLong(length).into()),
        _ => Ok(message),
    }
}
