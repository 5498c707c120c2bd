//! The connection of a command to the mediator, made on first use. IO.

use amber_client::{Client, Mediator};
use amber_terminal::Failure;

use super::{Options, reason};

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
            None => Client::connect(&self.options.mediator).await?,
        };
        Ok(self.client.insert(client))
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
