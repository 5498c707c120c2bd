//! One viewer: its WebSocket. IO.

use std::net::SocketAddr;

use amber_terminal::note;
use amber_web::mailbox::Pace;
use amber_web::socket::Socket;
use amber_web::websocket::{answer_close, converse};
use futures_util::{Stream, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};

use super::hub::ViewerId;
use super::input::Input;
use super::limits::{FRAME_PERIOD, PING_PERIOD, SILENT_VIEWER, WRITE_TIME};

/// How messages are sent to a viewer.
const PACE: Pace = Pace {
    frames: FRAME_PERIOD,
    pings: PING_PERIOD,
    patience: WRITE_TIME,
};

/// Serves a viewer until it is gone.
pub(super) async fn serve(socket: Socket, peer: SocketAddr, inputs: mpsc::Sender<Input>) {
    let (opened, viewer) = oneshot::channel();
    if inputs.send(Input::Opened(opened)).await.is_err() {
        return;
    }
    let Ok((id, mailbox)) = viewer.await else {
        return;
    };
    let (sink, stream) = socket.split();
    // Subscriptions are read even while a slow network takes no messages.
    converse(read(stream, id, &inputs), mailbox.send_to(sink, PACE)).await;
    let dropped = mailbox.dropped();
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
