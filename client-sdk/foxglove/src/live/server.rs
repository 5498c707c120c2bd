//! Accepts viewers and opens their WebSockets. IO.

use std::net::SocketAddr;
use std::sync::Arc;

use amber_web::{Answer, Counts, Limits, Request, StatusCode, head, plain, socket};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::access::Access;
use super::app::Input;
use super::limits::{MAX_CONNECTIONS, MAX_MESSAGE, MAX_VIEWERS};
use super::{protocol, session};

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
        total: MAX_CONNECTIONS,
        per_ip: MAX_CONNECTIONS,
    };
    let connections = Arc::new(amber_web::Server::new(limits));
    let refusals = connections.clone();
    let answer = move |request, peer| {
        let answer = server
            .answer(request, peer)
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
    ) -> Result<Answer, (StatusCode, &'static str)> {
        let (host, origin) = (head(&request, "host"), head(&request, "origin"));
        (self.access)
            .admit(request.uri().path(), host, origin)
            .map_err(|why| (StatusCode::FORBIDDEN, why))?;
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
        let place = (self.viewers)
            .enter(peer.ip().to_canonical(), limits)
            .ok_or((StatusCode::SERVICE_UNAVAILABLE, "too many viewers"))?;
        let inputs = self.inputs.clone();
        let serve = move |socket| async move {
            session::serve(socket, peer, inputs).await;
            drop(place);
        };
        Ok(socket::upgrade(request, Some(name), MAX_MESSAGE, serve))
    }
}
