//! Opens WebSockets. IO.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::body::Body;
use crate::server::{Answer, Guest, Request, StatusCode, head, plain};
use crate::websocket::config;

/// A WebSocket with one peer.
pub type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers a request for a WebSocket, and calls `serve` with it in a separate task. `protocol` is
/// what peers speak there, `max_message` the largest message of a peer, in bytes. `serve` also gets the
/// place of the connection among the guests, and drops it when the peer has shown a token. The answer
/// to any other request is an error, and `serve` is not called.
pub fn upgrade<F>(
    mut request: Request,
    protocol: Option<&'static str>,
    max_message: usize,
    serve: impl FnOnce(Socket, Option<Arc<Guest>>) -> F + Send + 'static,
) -> Answer
where
    F: Future<Output = ()> + Send + 'static,
{
    let is_socket = request.method() == Method::GET
        && head(&request, "upgrade").is_some_and(|it| it.eq_ignore_ascii_case("websocket"))
        && head(&request, "sec-websocket-version") == Some("13");
    let key = head(&request, "sec-websocket-key").filter(|_| is_socket);
    let Some(accept) = key.map(|key| derive_accept_key(key.as_bytes())) else {
        let why = "only WebSocket connections are accepted here";
        return plain(StatusCode::UPGRADE_REQUIRED, why);
    };
    let Ok(accept) = HeaderValue::from_str(&accept) else {
        return plain(StatusCode::BAD_REQUEST, "invalid key");
    };
    let guest = request.extensions_mut().remove::<Arc<Guest>>();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // An error means that the peer is already gone.
        let Ok(upgraded) = upgraded.await else {
            return;
        };
        let io = TokioIo::new(upgraded);
        let socket =
            WebSocketStream::from_raw_socket(io, Role::Server, Some(config(max_message))).await;
        serve(socket, guest).await;
    });
    let mut answer = Answer::new(Body::whole(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut set = |name: HeaderName, value: HeaderValue| answer.headers_mut().insert(name, value);
    set(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    set(header::UPGRADE, HeaderValue::from_static("websocket"));
    set(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_static(protocol);
        set(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    answer
}
