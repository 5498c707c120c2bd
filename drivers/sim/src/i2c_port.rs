//! An I2C bus behind a Unix socket, for any number of programs, like a real bus. See
//! [`i2c`](crate::i2c) for the bytes. IO.

use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::i2c::{Reply, Transfer};
use crate::unix_server::UnixServer;

/// A transfer, and the channel for its reply. Dropping the channel simulates the silence of a stuck
/// bus.
pub(crate) type PendingTransfer = (Transfer, oneshot::Sender<Reply>);

/// The socket and its incoming transfers.
#[derive(Debug)]
pub(crate) struct I2cPort {
    transfers: mpsc::Receiver<PendingTransfer>,
    _server: UnixServer,
}

impl I2cPort {
    /// Listens at a path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (sender, transfers) = mpsc::channel(16);
        let server = UnixServer::open(path, move |stream| serve(stream, sender.clone()))?;
        Ok(Self {
            transfers,
            _server: server,
        })
    }

    /// Waits for the next transfer. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<PendingTransfer> {
        self.transfers.recv().await
    }
}

/// Serves one connection until it closes.
async fn serve(mut stream: UnixStream, transfers: mpsc::Sender<PendingTransfer>) {
    let mut input = Vec::new();
    loop {
        while let Some((transfer, length)) = Transfer::parse(&input) {
            input.drain(..length);
            let (sender, reply) = oneshot::channel();
            if transfers.send((transfer, sender)).await.is_err() {
                return;
            }
            let Ok(reply) = reply.await else { continue };
            if stream.write_all(&reply.bytes()).await.is_err() {
                return;
            }
        }
        if !matches!(stream.read_buf(&mut input).await, Ok(count) if count > 0) {
            return;
        }
    }
}
