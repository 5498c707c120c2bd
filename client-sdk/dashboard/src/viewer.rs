//! One page: its WebSocket. IO.
//!
//! The page says hello with its token first. After that, its messages go to the hub, and the frames
//! that wait for it are sent at a bounded rate.

use std::sync::Arc;

use amber_web::mailbox::Pace;
use amber_web::socket::Socket;
use amber_web::websocket::{Refusal, answer_close, converse, refuse};
use amber_web::{Guest, Role};
use futures_util::{Stream, StreamExt};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::hub::{self, FULL, Said, ViewerId};
use crate::input::Input;
use crate::limits::{
    FOR_DRIVING, FRAME_PERIOD, HELLO_TIME, PING_PERIOD, SILENT_PAGE, TARGET_SILENCE, WRITE_TIME,
};

/// How frames are sent to a page.
const PACE: Pace = Pace {
    frames: FRAME_PERIOD,
    pings: PING_PERIOD,
    patience: WRITE_TIME,
};

/// The permission of a new page, or the reason why it is refused.
pub(crate) type Admission = Result<Role, (Refusal, &'static str)>;

/// How the conversation with a page has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The page is gone, or may not connect.
    Gone,
    /// All places are taken.
    Full,
}

/// One of these places for a page that may do this: the last ones are for pages that may drive.
pub(crate) fn place(places: &Semaphore, role: Role) -> Option<SemaphorePermit<'_>> {
    let kept = match role {
        Role::Drive => 0,
        Role::Look => FOR_DRIVING,
    };
    let has_place = places.available_permits() > kept;
    has_place.then(|| places.try_acquire().ok()).flatten()
}

/// Waits for the hello of a page, which is a guest until it has shown its token. Returns the page with
/// its permission and the time on its clock in ms; `None` if it is refused.
pub(crate) async fn admitted(
    mut socket: Socket,
    guest: Option<Arc<Guest>>,
    admit: impl FnOnce(Option<&str>) -> Admission,
) -> Option<(Socket, Role, Option<f64>)> {
    let must_leave = async {
        match &guest {
            Some(guest) => guest.must_leave().await,
            None => std::future::pending().await,
        }
    };
    let said = tokio::select! {
        said = hello(&mut socket, admit) => said,
        () = must_leave => Err((Refusal::Full, "too many connections wait: try again")),
    };
    match said {
        Ok((role, at)) => Some((socket, role, at)),
        Err((refusal, why)) => {
            refuse(socket, refusal, why).await;
            None
        }
    }
}

/// Serves a page until it is gone. `at` is the time on its clock in ms.
pub(crate) async fn serve(
    socket: Socket,
    role: Role,
    at: Option<f64>,
    address: String,
    inputs: &mpsc::Sender<Input>,
) -> Ended {
    let (opened, page) = oneshot::channel();
    if inputs
        .send(Input::Opened(role, address, opened))
        .await
        .is_err()
    {
        return Ended::Gone;
    }
    let Ok((id, mailbox)) = page.await else {
        refuse(socket, Refusal::Full, FULL).await;
        return Ended::Full;
    };
    // The first time on the clock of the page.
    let hello = hub::Message {
        at,
        said: Said::Hello { token: None },
    };
    let (sink, stream) = socket.split();
    // Commands are read even while a slow network takes no scans.
    let reading = async {
        if inputs.send(Input::Said(id, hello)).await.is_ok() {
            read(stream, id, inputs).await;
        }
    };
    converse(reading, mailbox.send_to(sink, PACE)).await;
    let _ = inputs.send(Input::Closed(id)).await;
    Ended::Gone
}

/// The first message: the permission of the page, and the time on its clock.
async fn hello(
    socket: &mut Socket,
    admit: impl FnOnce(Option<&str>) -> Admission,
) -> Result<(Role, Option<f64>), (Refusal, &'static str)> {
    let first = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).ok(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    };
    match timeout(HELLO_TIME, first).await {
        Ok(Some(hub::Message {
            at,
            said: Said::Hello { token },
        })) => admit(token.as_deref()).map(|role| (role, at)),
        _ => Err((Refusal::Forbidden, "the first message must be hello")),
    }
}

async fn read(
    mut stream: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    id: ViewerId,
    inputs: &mpsc::Sender<Input>,
) {
    // Whether the silence of this page means something, which has not been said yet.
    let mut tells_silence = false;
    loop {
        let patience = match tells_silence {
            true => TARGET_SILENCE,
            false => SILENT_PAGE,
        };
        // A page that works answers the pings.
        let message = match timeout(patience, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(_)) | None) => return,
            Err(_) if tells_silence => {
                tells_silence = false;
                if inputs.send(Input::Silent(id)).await.is_err() {
                    return;
                }
                continue;
            }
            Err(_) => return,
        };
        let text = match message {
            Message::Text(text) => text,
            Message::Close(_) => return answer_close(&mut stream).await,
            Message::Pong(_) => {
                tells_silence = true;
                continue;
            }
            _ => continue,
        };
        let input = match serde_json::from_str(&text) {
            Ok(message) => Input::Said(id, message),
            Err(error) => Input::Notice(id, format!("invalid message: {error}")),
        };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}
