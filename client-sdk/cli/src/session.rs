//! The connection of a command to the mediator, made on first use. IO.

use std::io::ErrorKind;
use std::time::Duration;

use amber_client::{Announcement, Client, Error, Mediator};
use amber_terminal::{Failure, note};

use super::{Options, reason};

/// The time between attempts to connect while there is no network.
const RETRY: Duration = Duration::from_secs(1);

/// How long a person waits for an answer. A mediator of this project says at once that no driver can
/// answer, and restarts drivers that hang, so only a busy machine needs this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command with its connection.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a Options,
    client: Option<Client>,
}

impl<'a> Session<'a> {
    /// Creates a session without a connection.
    pub(crate) fn new(options: &'a Options) -> Self {
        Self {
            options,
            client: None,
        }
    }

    /// The connection.
    ///
    /// # Errors
    /// The host is unknown, or no program listens there.
    pub(crate) async fn client(&mut self) -> Result<&Client, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => patient(Client::connect(&self.options.mediator).await?),
        };
        Ok(self.client.insert(client))
    }

    /// The connection, for commands that run for long: at boot, the network may come later than
    /// they do.
    ///
    /// # Errors
    /// The host is unknown, or no program listens there.
    pub(crate) async fn client_when_network_is_there(&mut self) -> Result<&Client, Failure> {
        let mut is_told = false;
        while self.client.is_none() {
            match Client::connect(&self.options.mediator).await {
                Ok(client) => self.client = Some(patient(client)),
                Err(error) if is_without_network(&error) => {
                    if !is_told {
                        note(format_args!("waiting for the network: {error}"));
                    }
                    is_told = true;
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.client().await
    }

    /// The mediator as a device.
    ///
    /// # Errors
    /// As [`Session::client`].
    pub(crate) async fn mediator(&mut self) -> Result<Mediator, Failure> {
        Ok(self.client().await?.mediator())
    }

    /// Leaves the mediator, which may know why the command has failed.
    pub(crate) async fn end(self, done: Result<(), Failure>) -> Result<(), Failure> {
        let Some(client) = self.client else {
            return done;
        };
        let done = match done {
            Err(failure) => Err(reason::explain(&client, failure).await),
            done => done,
        };
        client.close().await;
        done
    }
}

/// The same client with the time limit for answers that is right for its mediator.
fn patient(client: Client) -> Client {
    match client.announcement() {
        Announcement::Answered => client.with_deadline(PATIENCE),
        // Only the usual deadline shows that a device of the original system is missing.
        Announcement::Silent => client,
    }
}

/// Whether the system has no way to any such host, and may get one.
fn is_without_network(error: &Error) -> bool {
    match error {
        Error::Unreachable { source, .. } => matches!(
            source.kind(),
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown
        ),
        // The library has no other sign for EAI_AGAIN: no name server answers.
        Error::UnknownHost { source, .. } => source.to_string().contains("Temporary failure"),
        _ => false,
    }
}
