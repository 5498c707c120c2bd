//! HTTP: serves the files of the page, and upgrades to its WebSockets. IO.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use amber_web::websocket::Refusal;
use amber_web::{Access, Advice, Answer, Limits, Request, StatusCode, head, page, plain, socket};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::assets;
use crate::hub::FULL;
use crate::input::Input;
use crate::limits::{MAX_GUESTS, MAX_GUESTS_PER_IP, MAX_MESSAGE};
use crate::picture_clients::PictureClients;
use crate::robot_clients::RobotClients;
use crate::viewer::{self, Admission, Ended};

/// What people are told about refused pages.
const ADVICE: Advice = Advice {
    host: "this dashboard serves only its own machine: open it as http://localhost, or start it with \
           --listen 0.0.0.0:8026 to serve other machines",
    origin: "pages of other sites cannot connect: open the dashboard's own page, or allow the site \
             with --origin",
    from_disk: "pages that are opened from disk cannot connect: open the dashboard's own page, or \
                allow them with --origin null",
    token: "wrong or missing token: open the address that `amber dashboard` printed",
};

/// The path of the WebSocket of each page.
const SOCKET: &str = "/socket";
/// The path of the WebSocket for the pictures of a camera.
const PICTURES: &str = "/pictures";
/// The path of the WebSocket for pages that are clients of the mediator themselves.
const ROBOT: &str = "/robot";

/// What a WebSocket is for.
#[derive(Clone, Copy)]
enum Purpose {
    /// Everything that a page shows and says, except for pictures.
    Page,
    Pictures,
    /// The frames of a client.
    Robot,
}

/// The state that all connections share.
pub(crate) struct Server {
    access: Access,
    inputs: mpsc::Sender<Input>,
    picture_clients: PictureClients,
    robot_clients: RobotClients,
    connections: Arc<amber_web::Server>,
}

impl Server {
    pub(crate) fn new(access: Access, mediator: String, inputs: mpsc::Sender<Input>) -> Self {
        let limits = Limits {
            total: MAX_GUESTS,
            per_ip: MAX_GUESTS_PER_IP,
        };
        Self {
            access,
            inputs,
            picture_clients: PictureClients::new(mediator.clone()),
            robot_clients: RobotClients::new(mediator),
            connections: Arc::new(amber_web::Server::new(limits)),
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
        if let Err(refused) = self.access.admit(host, origin) {
            let why = ADVICE.about(refused);
            self.connections.refused(peer, why);
            return plain(StatusCode::FORBIDDEN, why);
        }
        match request.uri().path() {
            SOCKET => self.upgrade(request, peer, Purpose::Page),
            PICTURES => self.upgrade(request, peer, Purpose::Pictures),
            ROBOT => self.upgrade(request, peer, Purpose::Robot),
            path => match assets::find(path) {
                Some(asset) => page(asset.bytes, &asset.headers()),
                None => plain(StatusCode::NOT_FOUND, "the dashboard is at /"),
            },
        }
    }

    /// Opens a WebSocket.
    fn upgrade(self: Arc<Self>, request: Request, peer: SocketAddr, purpose: Purpose) -> Answer {
        let ip = peer.ip().to_canonical();
        socket::upgrade(
            request,
            None,
            MAX_MESSAGE,
            move |socket, guest| async move {
                let admit = |token: Option<&str>| self.admit(token, ip);
                let Some((socket, role, at)) = viewer::admitted(socket, guest, admit).await else {
                    return;
                };
                let ended = match purpose {
                    Purpose::Page => {
                        viewer::serve(socket, role, at, ip.to_string(), &self.inputs).await
                    }
                    Purpose::Pictures => self.picture_clients.serve(socket, role).await,
                    Purpose::Robot => self.robot_clients.serve(socket, role, at).await,
                };
                if ended == Ended::Full {
                    self.connections.refused(ip, FULL);
                }
            },
        )
    }

    /// The permission of a page with this token.
    fn admit(&self, token: Option<&str>, ip: IpAddr) -> Admission {
        self.access.role(token).map_err(|refused| {
            self.connections
                .refused(ip, "its token is wrong or missing");
            (Refusal::Forbidden, ADVICE.about(refused))
        })
    }
}
