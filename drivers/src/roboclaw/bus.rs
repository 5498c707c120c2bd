//! Exchanges with the controllers, one at a time. IO.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::{timeout, timeout_at};

use super::logic::ExchangeError;
use super::protocol::{MAX_REPLY, PACKET_GAP, SILENCE, Shape};
use crate::connection::{Connection, received};

/// Time limit for waiting until stray bytes have passed.
const MAX_DRAIN: Duration = Duration::from_millis(100);

/// The bus of both controllers; its owner has exclusive access.
pub(super) struct Bus {
    connection: Box<dyn Connection>,
    /// The name of the port.
    place: String,
    reply_timeout: Duration,
}

impl Bus {
    pub(super) fn new(
        connection: Box<dyn Connection>,
        place: String,
        reply_timeout: Duration,
    ) -> Self {
        Self {
            connection,
            place,
            reply_timeout,
        }
    }

    /// Writes a packet in one piece and reads the reply.
    ///
    /// Without a valid reply, the bus then stays idle until both sides have discarded the packet.
    pub(super) async fn exchange(
        &mut self,
        packet: &[u8],
        shape: Shape,
    ) -> Result<Vec<u8>, ExchangeError> {
        let result = self.try_exchange(packet, shape).await;
        if matches!(result, Err(ExchangeError::Silent | ExchangeError::Half)) {
            self.settle().await?;
        }
        result
    }

    /// Waits until the bus is silent, for at least the gap between packets.
    pub(super) async fn settle(&mut self) -> Result<(), ExchangeError> {
        let mut strays = [0; MAX_REPLY];
        let settled = timeout(MAX_DRAIN, async {
            while let Ok(read) = timeout(PACKET_GAP, self.connection.read(&mut strays)).await {
                self.received(read)?;
            }
            Ok(())
        });
        settled.await.unwrap_or(Ok(()))
    }

    async fn try_exchange(
        &mut self,
        packet: &[u8],
        shape: Shape,
    ) -> Result<Vec<u8>, ExchangeError> {
        self.discard().await?;
        let deadline = tokio::time::Instant::now() + self.reply_timeout;
        let write = async {
            self.connection.write_all(packet).await?;
            self.connection.flush().await
        };
        match timeout_at(deadline, write).await {
            Ok(written) => written.map_err(|error| {
                ExchangeError::Port(format!("cannot write to {}: {error}", self.place))
            })?,
            // The port does not accept the bytes.
            Err(_) => return Err(ExchangeError::Silent),
        }
        let wanted = match shape {
            Shape::Nothing => return Ok(Vec::new()),
            Shape::Bytes(count) => count,
            Shape::UntilSilence => MAX_REPLY,
        };
        let mut reply = vec![0; wanted];
        let mut length = 0;
        while length < wanted {
            let read = self.connection.read(&mut reply[length..]);
            let read = match shape {
                Shape::UntilSilence if length > 0 => timeout(SILENCE, read).await,
                _ => timeout_at(deadline, read).await,
            };
            match read {
                Ok(read) => length += self.received(read)?,
                Err(_) if length == 0 => return Err(ExchangeError::Silent),
                Err(_) if shape == Shape::UntilSilence => break,
                Err(_) => return Err(ExchangeError::Half),
            }
        }
        reply.truncate(length);
        Ok(reply)
    }

    /// Discards bytes that arrived before the request.
    async fn discard(&mut self) -> Result<(), ExchangeError> {
        let mut bytes = [0; MAX_REPLY];
        poll_fn(|cx| {
            // Bounded, because a faulty device may send endlessly.
            for _ in 0..16 {
                let mut strays = ReadBuf::new(&mut bytes);
                match Pin::new(&mut self.connection).poll_read(cx, &mut strays) {
                    Poll::Pending => break,
                    Poll::Ready(read) => {
                        let read = read.map(|()| strays.filled().len());
                        if let Err(error) = self.received(read) {
                            return Poll::Ready(Err(error));
                        }
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    fn received(&self, read: io::Result<usize>) -> Result<usize, ExchangeError> {
        received(read, || self.place.clone()).map_err(ExchangeError::Port)
    }
}
