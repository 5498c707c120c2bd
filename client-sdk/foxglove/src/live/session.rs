//! One viewer: its WebSocket. IO.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amber_terminal::note;
use amber_web::socket::Socket;
use amber_web::websocket::answer_close;
use bytes::Bytes;
use futures_util::{SinkExt, Stream, StreamExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{self, Message};

use super::app::Input;
use super::hub::ViewerId;
use super::limits::{FRAME_PERIOD, PING_PERIOD, SILENT_VIEWER, WRITE_TIME};
use super::outbox::{Frame, Outbox};

/// The outbox of a viewer, shared by the hub and the task of the viewer.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    outbox: Mutex<Outbox>,
    filled: Notify,
}

impl Mailbox {
    /// Changes the waiting messages.
    pub(super) fn change(&self, change: impl FnOnce(&mut Outbox)) {
        change(&mut self.lock());
        self.filled.notify_one();
    }

    async fn take(&self) -> Vec<Frame> {
        loop {
            let frames = self.lock().take();
            if !frames.is_empty() {
                return frames;
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outbox> {
        // No code that holds the lock can panic.
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a viewer until it is gone.
pub(super) async fn serve(socket: Socket, peer: SocketAddr, inputs: mpsc::Sender<Input>) {
    let (opened, viewer) = oneshot::channel();
    if inputs.send(Input::Opened(opened)).await.is_err() {
        return;
    }
    let Ok((id, mailbox)) = viewer.await else {
        return;
    };
    let mailbox: Arc<Mailbox> = mailbox;
    let (sink, stream) = socket.split();
    // Subscriptions are read even while a slow network takes no messages.
    tokio::select! {
        () = read(stream, id, &inputs) => {}
        () = write(sink, &mailbox) => {}
    }
    let dropped = mailbox.lock().dropped();
    if dropped > 0 {
        note(format!(
            "viewer {peer} is gone; {dropped} waiting messages were replaced by newer ones"
        ));
    }
    let _ = inputs.send(Input::Closed(id)).await;
}

async fn read(
    mut stream: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    id: ViewerId,
    inputs: &mpsc::Sender<Input>,
) {
    // A viewer that works answers the pings.
    while let Ok(Some(Ok(message))) = timeout(SILENT_VIEWER, stream.next()).await {
        let input = match message {
            Message::Text(text) => Input::Text(id, text.as_str().to_owned()),
            Message::Binary(bytes) => Input::Binary(id, bytes),
            Message::Close(_) => return answer_close(&mut stream).await,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}

async fn write(mut sink: impl SinkExt<Message> + Unpin, mailbox: &Mailbox) {
    let mut pings = interval(PING_PERIOD);
    let mut next = Instant::now();
    loop {
        let messages = tokio::select! {
            biased;
            _ = pings.tick() => vec![Message::Ping(Bytes::new())],
            frames = async {
                sleep_until(next).await;
                mailbox.take().await
            } => {
                next = Instant::now() + FRAME_PERIOD;
                frames.into_iter().map(message).collect()
            }
        };
        for message in messages {
            if !matches!(timeout(WRITE_TIME, sink.feed(message)).await, Ok(Ok(()))) {
                return;
            }
        }
        if !matches!(timeout(WRITE_TIME, sink.flush()).await, Ok(Ok(()))) {
            return;
        }
    }
}

fn message(frame: Frame) -> Message {
    match frame {
        Frame::Text(text) => Message::Text(text.into()),
        Frame::Binary(bytes) => Message::Binary(bytes),
    }
}
