//! HTTP: the files of the page, and the beginning of its WebSocket. IO.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amber_gateways::shared::gate::Buckets;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role as Side, WebSocketConfig};

use crate::access::Access;
use crate::assets;
use crate::input::Input;
use crate::limits::{
    HELLO_TIME, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP, MAX_HEAD, MAX_MESSAGE, MAX_VIEWERS, RETRY,
    TOKEN_RATE,
};
use crate::viewer::{self, Admission};

/// The path of the WebSocket.
const SOCKET: &str = "/socket";

/// What a page may load: only the dashboard itself.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// What all connections share.
pub(crate) struct Server {
    access: Access,
    inputs: mpsc::Sender<Input>,
    counts: Arc<Counts>,
    viewers: Arc<Counts>,
    wrong_tokens: Mutex<Buckets<IpAddr>>,
    started: Instant,
}

impl Server {
    pub(crate) fn new(access: Access, inputs: mpsc::Sender<Input>) -> Self {
        Self {
            access,
            inputs,
            counts: Arc::default(),
            viewers: Arc::default(),
            wrong_tokens: Mutex::new(Buckets::new(TOKEN_RATE)),
            started: Instant::now(),
        }
    }

    /// Serves pages for ever.
    pub(crate) async fn run(self, listener: TcpListener) {
        let server = Arc::new(self);
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, for example.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            let ip = peer.ip().to_canonical();
            let limits = (MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP);
            let Some(place) = Counts::enter(&server.counts, ip, limits) else {
                tracing::warn!(%peer, "refused a connection: there are too many");
                continue;
            };
            let _ = stream.set_nodelay(true);
            let server = server.clone();
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let response = server.clone().answer(request, peer);
                    std::future::ready(Ok::<_, Infallible>(response))
                });
                let mut builder = http1::Builder::new();
                let connection = builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(HELLO_TIME)
                    .max_buf_size(MAX_HEAD)
                    .serve_connection(TokioIo::new(stream), answer)
                    .with_upgrades();
                if let Err(error) = connection.await {
                    tracing::debug!(%peer, "connection ended: {error}");
                }
                drop(place);
            });
        }
    }

    fn answer(self: Arc<Self>, request: Request<Incoming>, peer: SocketAddr) -> Answer {
        let head = |name: HeaderName| request.headers().get(name).and_then(|it| it.to_str().ok());
        let admitted = self.access.admit(head(header::HOST), head(header::ORIGIN));
        if let Err(refusal) = admitted {
            tracing::warn!(%peer, "refused a request: {}", refusal.text());
            return plain(StatusCode::FORBIDDEN, refusal.text());
        }
        if request.method() != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported");
        }
        match request.uri().path() {
            SOCKET => self.upgrade(request, peer),
            path => match assets::find(path) {
                Some(asset) => page(asset),
                None => plain(StatusCode::NOT_FOUND, "the dashboard is at /"),
            },
        }
    }

    /// Begins a WebSocket.
    fn upgrade(self: Arc<Self>, mut request: Request<Incoming>, peer: SocketAddr) -> Answer {
        let head = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
        let is_socket = head("upgrade").is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
        let version = head("sec-websocket-version");
        let Some(key) = head("sec-websocket-key").filter(|_| is_socket && version == Some("13"))
        else {
            return plain(
                StatusCode::UPGRADE_REQUIRED,
                "only WebSocket connections are accepted here",
            );
        };
        let accept = derive_accept_key(key.as_bytes());
        let ip = peer.ip().to_canonical();
        let Some(place) = Counts::enter(&self.viewers, ip, (MAX_VIEWERS, MAX_VIEWERS)) else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
        };
        let upgraded = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let upgraded = match upgraded.await {
                Ok(upgraded) => upgraded,
                Err(error) => return tracing::debug!(%peer, "no WebSocket: {error}"),
            };
            let config = WebSocketConfig::default()
                .max_message_size(Some(MAX_MESSAGE))
                .max_frame_size(Some(MAX_MESSAGE));
            let io = TokioIo::new(upgraded);
            let socket = WebSocketStream::from_raw_socket(io, Side::Server, Some(config)).await;
            let admit = |token: Option<&str>| self.admit(token, ip);
            viewer::serve(socket, ip.to_string(), admit, self.inputs.clone()).await;
            drop(place);
        });
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        if let Ok(accept) = HeaderValue::from_str(&accept) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        response
    }

    /// What a page with this token may do.
    fn admit(&self, token: Option<&str>, ip: IpAddr) -> Admission {
        if let Some(role) = self.access.role(token) {
            return Ok(role);
        }
        let now = Duration::max(self.started.elapsed(), Duration::ZERO);
        let mut wrong = (self.wrong_tokens.lock()).unwrap_or_else(PoisonError::into_inner);
        if wrong.take(now, ip) {
            tracing::warn!(%ip, "refused a page: its token is wrong or missing");
        }
        Err("wrong or missing token: open the address that `amber dashboard` printed")
    }
}

type Answer = Response<Full<Bytes>>;

fn page(asset: &'static assets::Asset) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from_static(asset.bytes)));
    for (name, value) in [
        (header::CONTENT_TYPE, asset.content_type),
        // A newer program has newer files.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn plain(status: StatusCode, text: &str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// The number of connections per IP address.
#[derive(Default)]
struct Counts(Mutex<HashMap<IpAddr, usize>>);

/// A connection that is counted until this is dropped.
struct Entered {
    counts: Arc<Counts>,
    ip: IpAddr,
}

impl Counts {
    /// `None` if there are as many as the limits: of all addresses, and of one.
    fn enter(counts: &Arc<Self>, ip: IpAddr, limits: (usize, usize)) -> Option<Entered> {
        let mut by_ip = counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = by_ip.values().sum();
        let from_here = by_ip.get(&ip).copied().unwrap_or_default();
        if all >= limits.0 || from_here >= limits.1 {
            return None;
        }
        by_ip.insert(ip, from_here + 1);
        Some(Entered {
            counts: counts.clone(),
            ip,
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut by_ip = (self.counts.0.lock()).unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}
