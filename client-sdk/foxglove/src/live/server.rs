//! Accepts viewers and opens their WebSockets. IO.

use std::net::SocketAddr;
use std::sync::Arc;

use amber_web::websocket::{Refusal, refuse};
use amber_web::{Access, Advice, Answer, Counts, Limits, Request, StatusCode, head, plain, socket};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::input::Input;
use super::limits::{MAX_GUESTS, MAX_GUESTS_PER_IP, MAX_MESSAGE, MAX_VIEWERS};
use super::{protocol, session};

/// What people are told about refused viewers.
const ADVICE: Advice = Advice {
    host: "this server is only for its own machine: connect to ws://localhost, or start it with \
           --listen 0.0.0.0:8765 to serve other machines",
    origin: "pages of this site may not connect: start `amber foxglove` with --origin and the site",
    from_disk: "pages that are opened from disk may not connect: start `amber foxglove` with \
                --origin null",
    token: "wrong or missing token: use the address that `amber foxglove` printed",
};

/// Why a viewer with the token may not connect.
const FULL: &str = "too many viewers are connected: close one of them";

/// The state that all connections share.
struct Server {
    access: Access,
    inputs: mpsc::Sender<Input>,
    viewers: Arc<Counts>,
}

/// Serves viewers endlessly.
pub(super) async fn run(listener: TcpListener, access: Access, inputs: mpsc::Sender<Input>) {
    let server = Arc::new(Server {
        access,
        inputs,
        viewers: Arc::default(),
    });
    let limits = Limits {
        total: MAX_GUESTS,
        per_ip: MAX_GUESTS_PER_IP,
    };
    let connections = Arc::new(amber_web::Server::new(limits));
    let refusals = connections.clone();
    let answer = move |request, peer| {
        let answer = server
            .answer(request, peer, refusals.clone())
            .unwrap_or_else(|(status, why)| {
                refusals.refused(peer, why);
                plain(status, why)
            });
        std::future::ready(answer)
    };
    connections.run(listener, answer).await;
}

impl Server {
    /// Opens a WebSocket, or reports the reason for the refusal.
    fn answer(
        &self,
        request: Request,
        peer: SocketAddr,
        refusals: Arc<amber_web::Server>,
    ) -> Result<Answer, (StatusCode, &'static str)> {
        let (host, origin) = (head(&request, "host"), head(&request, "origin"));
        (self.access)
            .admit_at(request.uri().path(), host, origin)
            .map_err(|refused| (StatusCode::FORBIDDEN, ADVICE.about(refused)))?;
        let offered = request.headers().get_all("sec-websocket-protocol");
        let offered = offered.iter().filter_map(|it| it.to_str().ok());
        let name = protocol::name(offered).ok_or((
            StatusCode::BAD_REQUEST,
            "this server speaks foxglove.sdk.v1 and foxglove.websocket.v1 only: open its address \
             in Foxglove or Lichtblick",
        ))?;
        let limits = Limits {
            total: MAX_VIEWERS,
            per_ip: MAX_VIEWERS,
        };
        let place = self.viewers.enter(peer.ip().to_canonical(), limits);
        let inputs = self.inputs.clone();
        let serve = move |socket, guest| async move {
            // It has shown the token in its address.
            drop(guest);
            match place {
                Some(_place) => session::serve(socket, peer, inputs).await,
                None => {
                    refusals.refused(peer, FULL);
                    // Viewers show this reason, but not that of an answer by HTTP.
                    refuse(socket, Refusal::Full, FULL).await;
                }
            }
        };
        Ok(socket::upgrade(request, Some(name), MAX_MESSAGE, serve))
    }
}
