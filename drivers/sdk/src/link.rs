//! What a driver may do on its own account, from anywhere. IO.

use std::fmt;

use amber_client::Client;
use amber_proto::limits::MAX_PART;
use amber_proto::{Device, DeviceMessage};
use tokio::sync::{mpsc, watch};

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
    /// A link whose commands go into `commands`.
    pub(crate) fn new(
        client: Client,
        subscriptions: watch::Receiver<usize>,
    ) -> (Self, mpsc::Receiver<Command<M>>) {
        let (commands, received) = mpsc::channel(MAX_WAITING);
        let link = Self {
            commands,
            subscriptions,
            client,
        };
        (link, received)
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

/// Leaves room for the fields that are set when it is sent.
fn check<M: DeviceMessage>(message: M) -> Result<M, SendError> {
    const TYPE_AND_ACK: usize = 2 + 6;
    match message.encoded_len() {
        length if length + TYPE_AND_ACK > MAX_PART => Err(MessageTooLong(length).into()),
        _ => Ok(message),
    }
}
