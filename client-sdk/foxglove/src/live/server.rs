//! Accepts viewers: the beginning of their WebSocket. IO.

use std::net::SocketAddr;
use std::sync::Arc;

use amber_terminal::note;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::accept_hdr_async_with_config;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::access::Access;
use super::app::Input;
use super::limits::{HELLO_TIME, MAX_CONNECTIONS, MAX_MESSAGE, MAX_VIEWERS, RETRY};
use super::{protocol, session};

/// Serves viewers for ever.
pub(super) async fn run(listener: TcpListener, access: Access, inputs: mpsc::Sender<Input>) {
    let access = Arc::new(access);
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let viewers = Arc::new(Semaphore::new(MAX_VIEWERS));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, for example.
                note(format!("cannot accept a connection: {error}"));
                sleep(RETRY).await;
                continue;
            }
        };
        let Ok(place) = connections.clone().try_acquire_owned() else {
            note(format!("refused {peer}: too many connections"));
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (access, viewers, inputs) = (access.clone(), viewers.clone(), inputs.clone());
        tokio::spawn(async move {
            serve(stream, peer, &access, &viewers, inputs).await;
            drop(place);
        });
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    access: &Access,
    viewers: &Semaphore,
    inputs: mpsc::Sender<Input>,
) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let place = viewers.try_acquire();
    let is_full = place.is_err();
    #[allow(clippy::result_large_err)]
    let answer = |request: &Request, response: Response| {
        let answer = match is_full {
            true => refused(StatusCode::SERVICE_UNAVAILABLE, "too many viewers"),
            false => answer(access, request, response),
        };
        if let Err(refusal) = &answer {
            let why = refusal.body().as_deref().unwrap_or_default();
            note(format!("refused {peer}: {}", why.trim_end()));
        }
        answer
    };
    let socket = accept_hdr_async_with_config(stream, answer, Some(config));
    if let Ok(Ok(socket)) = timeout(HELLO_TIME, socket).await {
        session::serve(socket, peer, inputs).await;
    }
    drop(place);
}

/// Begins a WebSocket, or says why not.
#[allow(clippy::result_large_err)]
fn answer(
    access: &Access,
    request: &Request,
    mut response: Response,
) -> Result<Response, ErrorResponse> {
    let head = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
    let (host, origin) = (head(header::HOST), head(header::ORIGIN));
    // An origin that is no text is none that is known.
    let origin = match request.headers().contains_key(header::ORIGIN) {
        true => Some(origin.unwrap_or_default()),
        false => None,
    };
    if let Err(why) = access.admit(request.uri().path(), host, origin) {
        return refused(StatusCode::FORBIDDEN, why);
    }
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let offered = offered.iter().filter_map(|it| it.to_str().ok());
    let Some(name) = protocol::name(offered) else {
        let why = "this server speaks foxglove.sdk.v1 and foxglove.websocket.v1 only";
        return refused(StatusCode::BAD_REQUEST, why);
    };
    let name = HeaderValue::from_static(name);
    let headers = response.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    Ok(response)
}

#[allow(clippy::result_large_err)]
fn refused(status: StatusCode, why: &str) -> Result<Response, ErrorResponse> {
    let mut response = ErrorResponse::new(Some(format!("{why}\n")));
    *response.status_mut() = status;
    Err(response)
}
