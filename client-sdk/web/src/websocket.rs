//! WebSockets over any connection. IO.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::limits::{CLOSE_TIME, READ_BUFFER};

/// How long the last messages of a peer are read after nothing more can be sent to it.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a peer is told that it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may not connect, now or later.
    Forbidden,
    /// All places are taken. It may try again.
    Full,
}

/// The settings of all WebSockets. `max_message` is the largest message of a peer, in bytes.
#[must_use]
pub fn config(max_message: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(max_message))
        .max_frame_size(Some(max_message))
}

/// Reads from a peer and writes to it until one of both ends. If writing ends first, the peer is gone: what
/// has arrived from it is still read, because its last word may be "stop".
pub async fn converse(reading: impl Future<Output = ()>, writing: impl Future<Output = ()>) {
    let (reading, writing) = (pin!(reading), pin!(writing));
    if let Either::Right(((), reading)) = select(reading, writing).await {
        // Nothing more can be done for a peer that still sends.
        let _ = timeout(LAST_WORDS, reading).await;
    }
}

/// Answers the close frame that has just been read: the library does so in further reads. Without
/// the answer, the peer takes the connection for lost.
pub async fn answer_close(stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin)) {
    let rest = async { while let Some(Ok(_)) = stream.next().await {} };
    // A peer that does not receive it is not told.
    let _ = timeout(CLOSE_TIME, rest).await;
}

/// Closes a WebSocket with a reason for its user, of at most 123 bytes.
pub async fn refuse<S>(mut socket: WebSocketStream<S>, refusal: Refusal, why: &'static str)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let code = match refusal {
        Refusal::Forbidden => CloseCode::Policy,
        Refusal::Full => CloseCode::Again,
    };
    let close = CloseFrame {
        code,
        reason: why.into(),
    };
    let closed = async {
        if socket.close(Some(close)).await.is_ok() {
            // The connection must not end before the peer has read the reason.
            answer_close(&mut socket).await;
        }
    };
    let _ = timeout(CLOSE_TIME, closed).await;
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_words_of_a_peer_are_read_although_nothing_can_be_sent_to_it() {
        // More than one poll reads at once, as in a busy process.
        let (words, mut said) = mpsc::unbounded_channel();
        let reading = async {
            tokio::task::yield_now().await;
            let _ = words.send("stop");
        };
        converse(reading, ready(())).await;
        assert_eq!(said.try_recv(), Ok("stop"));
        let start = Instant::now();
        converse(pending(), ready(())).await;
        assert_eq!(start.elapsed(), LAST_WORDS, "a peer that never ends");
        converse(ready(()), pending()).await;
    }
}
