//! Pages that are clients of the mediator themselves: a WebSocket and a UDP socket each. IO.
//!
//! A binary message of the page is the time on its clock and a frame; one to the page is a frame. Texts
//! are about the connection: `hello`, `refused`, `unreachable` and `moved` to the page, and `silent` from
//! it. [`crate::relay`] decides what passes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use amber_client::MediatorAddress;
use amber_client::transport::{Transport, TransportError, UdpTransport};
use amber_proto::Packet;
use amber_web::Role;
use amber_web::mailbox::{Mailbox, Pace};
use amber_web::socket::Socket;
use amber_web::websocket::{Refusal, answer_close, converse, refuse};
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::net::lookup_host;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::backlog::{Frame, Room};
use crate::frames;
use crate::hub::FULL;
use crate::limits::{
    MAX_FRAME_BYTES, MAX_FRAMES, MAX_ROBOT_CLIENTS, PING_PERIOD, SILENT_PAGE, TARGET_SILENCE,
    WRITE_TIME,
};
use crate::relay::{Relay, Verdict, refusal};
use crate::viewer::{Ended, place};

/// Frames are sent at once: a program waits for its answers.
const PACE: Pace = Pace {
    frames: Duration::ZERO,
    pings: PING_PERIOD,
    patience: WRITE_TIME,
};

const ROOM: Room = Room {
    lines: MAX_FRAMES,
    line_bytes: MAX_FRAME_BYTES,
};

/// All such pages.
pub(crate) struct RobotClients {
    mediator: String,
    places: Semaphore,
}

impl RobotClients {
    /// None yet.
    pub(crate) fn new(mediator: String) -> Self {
        Self {
            mediator,
            places: Semaphore::new(MAX_ROBOT_CLIENTS),
        }
    }

    /// Serves a page that may do this, until it is gone. `at` is the time on its clock in ms.
    pub(crate) async fn serve(&self, socket: Socket, role: Role, at: Option<f64>) -> Ended {
        let Some(_place) = place(&self.places, role) else {
            refuse(socket, Refusal::Full, FULL).await;
            return Ended::Full;
        };
        let Some(transport) = open(&self.mediator).await else {
            refuse(socket, Refusal::Full, "the mediator is unavailable").await;
            return Ended::Gone;
        };
        let started = Instant::now();
        let mailbox = Arc::new(Mailbox::<()>::new(ROOM));
        let mut page = Page {
            relay: Relay::new(role, Duration::ZERO, at),
            transport,
            mailbox: mailbox.clone(),
            started,
        };
        page.tell(&json!({
            "t": "hello", "role": role.name(), "mediator": self.mediator,
            "local": page.transport.is_local(),
        }));
        let (sink, stream) = socket.split();
        converse(page.run(stream), mailbox.send_to(sink, PACE)).await;
        for packet in page.relay.gone() {
            page.send(packet).await;
        }
        let counts = page.relay.counts();
        let dropped = mailbox.dropped();
        tracing::debug!(?counts, dropped, "a page is no client any more");
        Ended::Gone
    }
}

/// A socket to the mediator, which follows changes of the network.
async fn open(mediator: &str) -> Option<UdpTransport> {
    let name: MediatorAddress = mediator.parse().ok()?;
    let found = lookup_host((name.host(), name.port())).await.ok()?;
    for address in found {
        match UdpTransport::connect(address).await {
            Ok(transport) => return Some(transport.named(&name)),
            Err(error) => tracing::debug!(%address, "no way to the mediator: {error}"),
        }
    }
    None
}

struct Page {
    relay: Relay,
    transport: UdpTransport,
    mailbox: Arc<Mailbox<()>>,
    started: Instant,
}

/// What has happened at the socket of the mediator.
enum Received {
    Packet(Result<Packet, TransportError>),
    /// The mediator does not know the new address of this client.
    Moved,
}

impl Page {
    /// Runs until the page is gone.
    async fn run(
        &mut self,
        stream: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    ) {
        let mut stream = pin!(stream);
        let mut heard = Instant::now();
        // Whether the silence of this page means something, which has not been dealt with yet.
        let mut tells_silence = false;
        loop {
            let patience = match tells_silence {
                true => TARGET_SILENCE,
                false => SILENT_PAGE,
            };
            let transport = &mut self.transport;
            let received = poll_fn(|cx| {
                if let Poll::Ready(()) = transport.poll_moved(cx) {
                    return Poll::Ready(Received::Moved);
                }
                transport.poll_receive(cx).map(Received::Packet)
            });
            tokio::select! {
                biased;
                said = stream.next() => {
                    heard = Instant::now();
                    if self.relay.heard() {
                        self.tell(&json!({ "t": "moved" }));
                    }
                    match said {
                        Some(Ok(Message::Binary(bytes))) => {
                            let now = self.started.elapsed();
                            match self.relay.said(now, &bytes) {
                                Verdict::Pass(packet) => self.send(packet).await,
                                Verdict::Drop => {}
                                Verdict::Refuse(refused) => self.tell(&refusal(refused)),
                            }
                        }
                        // The only text of a page after its hello: answers are missing.
                        Some(Ok(Message::Text(_))) => self.transport.look_for_another_way(),
                        Some(Ok(Message::Pong(_))) => tells_silence = true,
                        Some(Ok(Message::Close(_))) => return answer_close(&mut stream).await,
                        Some(Ok(_)) => {}
                        Some(Err(_)) | None => return,
                    }
                }
                received = received => match received {
                    Received::Packet(Ok(packet)) => {
                        if let Ok(bytes) = self.relay.answered(packet).encode() {
                            self.mailbox.change(|backlog| backlog.line(Frame::Binary(bytes)));
                        }
                    }
                    Received::Packet(Err(TransportError::Unreachable(error))) => self.fail(&error),
                    Received::Packet(Err(TransportError::Malformed(_))) => {}
                    Received::Packet(Err(TransportError::Closed(_))) => return,
                    Received::Moved => self.tell(&json!({ "t": "moved" })),
                },
                () = sleep_until(heard + patience) => {
                    if !tells_silence {
                        return;
                    }
                    tells_silence = false;
                    for packet in self.relay.silent() {
                        self.send(packet).await;
                    }
                }
            }
        }
    }

    async fn send(&mut self, packet: Packet) {
        let sent = poll_fn(|cx| self.transport.poll_send(cx, &packet)).await;
        if let Err(TransportError::Unreachable(error)) = sent {
            self.fail(&error);
        }
    }

    fn fail(&self, error: &std::io::Error) {
        self.tell(&json!({ "t": "unreachable", "text": error.to_string() }));
    }

    fn tell(&self, told: &Value) {
        let line = frames::text(told);
        self.mailbox.change(|backlog| backlog.line(line));
    }
}
