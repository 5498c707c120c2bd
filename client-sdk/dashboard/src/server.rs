//! HTTP: serves the files of the page, and upgrades to its WebSocket. IO.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use amber_web::{Answer, Counts, Limits, Request, StatusCode, head, page, plain, socket};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::access::Access;
use crate::assets;
use crate::input::Input;
use crate::limits::{MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP, MAX_MESSAGE, MAX_VIEWERS};
use crate::viewer::{self, Admission};

/// The path of the WebSocket.
const SOCKET: &str = "/socket";

/// A page may load only files of the dashboard itself.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The headers of all files of the page, besides the type.
const HEADERS: [(&str, &str); 4] = [
    // A newer program has newer files.
    ("cache-control", "no-cache"),
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
];

/// The state that all connections share.
pub(crate) struct Server {
    access: Access,
    inputs: mpsc::Sender<Input>,
    connections: Arc<amber_web::Server>,
    viewers: Arc<Counts>,
}

impl Server {
    pub(crate) fn new(access: Access, inputs: mpsc::Sender<Input>) -> Self {
        let limits = Limits {
            total: MAX_CONNECTIONS,
            per_ip: MAX_CONNECTIONS_PER_IP,
        };
        Self {
            access,
            inputs,
            connections: Arc::new(amber_web::Server::new(limits)),
            viewers: Arc::default(),
        }
    }

    /// Serves pages endlessly.
    pub(crate) async fn run(self, listener: TcpListener) {
        let server = Arc::new(self);
        let connections = server.connections.clone();
        let answer = move |request, peer| std::future::ready(server.clone().answer(request, peer));
        connections.run(listener, answer).await;
    }

    fn answer(self: Arc<Self>, request: Request, peer: SocketAddr) -> Answer {
        let (host, origin) = (head(&request, "host"), head(&request, "origin"));
        if let Err(refusal) = self.access.admit(host, origin) {
            self.connections.refused(peer, refusal.text());
            return plain(StatusCode::FORBIDDEN, refusal.text());
        }
        match request.uri().path() {
            SOCKET => self.upgrade(request, peer),
            path => match assets::find(path) {
                Some(asset) => {
                    let mut headers = vec![("content-type", asset.content_type)];
                    headers.extend(HEADERS);
                    page(asset.bytes, &headers)
                }
                None => plain(StatusCode::NOT_FOUND, "the dashboard is at /"),
            },
        }
    }

    /// Opens a WebSocket.
    fn upgrade(self: Arc<Self>, request: Request, peer: SocketAddr) -> Answer {
        let ip = peer.ip().to_canonical();
        let limits = Limits {
            total: MAX_VIEWERS,
            per_ip: MAX_VIEWERS,
        };
        let Some(place) = self.viewers.enter(ip, limits) else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
        };
        socket::upgrade(request, None, MAX_MESSAGE, move |socket| async move {
            let admit = |token: Option<&str>| self.admit(token, ip);
            viewer::serve(socket, ip.to_string(), admit, self.inputs.clone()).await;
            drop(place);
        })
    }

    /// The permission of a page with this token.
    fn admit(&self, token: Option<&str>, ip: IpAddr) -> Admission {
        self.access.role(token).ok_or_else(|| {
            self.connections
                .refused(ip, "its token is wrong or missing");
            "wrong or missing token: open the address that `amber dashboard` printed"
        })
    }
}
