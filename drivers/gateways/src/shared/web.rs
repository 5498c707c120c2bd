//! WebSockets of a gateway: they carry texts as UDP sockets carry datagrams. IO.
//!
//! A task accepts the connections of a listener, and each connection has its own task. Texts
//! arrive over a bounded channel, so a fast peer waits in its own TCP connection. A peer gets one
//! text at a time: after each, the gateway hears that the peer can take the next.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amber_web::handshake::{Served, Shaken};
use amber_web::places::{Counts, Limits};
use amber_web::websocket::{self, answer_close, converse};
use amber_web::{Advice, Origins, Own};
use bytes::Bytes;
use futures_util::{SinkExt, Stream, StreamExt};
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::machine::{Page, Socket, WebSocketEvent};
use super::sockets::not_open;
use super::stall::{PING_PERIOD, Stall};
use crate::limits::{
    BIND_RETRY, ERRAND_SILENCE, HANDSHAKE_TIME, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP,
    SEND_BUFFER, SILENT_PEER, WRITE_TIME,
};

/// Texts that wait for the gateway, of all peers together. Then peers wait.
const MAX_TEXTS: usize = 64;
/// Texts that wait for one peer: the gateway sends the next when the last one is written, and may
/// say good-bye.
const MAX_WAITING: usize = 2;
/// Larger frames than any text of a protocol are an error of the peer.
const MAX_FRAME: usize = 1024 * 1024;

/// The connections of a listener.
const PLACES: Limits = Limits {
    total: MAX_CONNECTIONS,
    per_ip: MAX_CONNECTIONS_PER_IP,
};

/// The WebSocket listeners that the machine has asked for, and their connections.
pub(super) struct Web {
    allowed: Arc<[IpNet]>,
    listeners: HashMap<Socket, Listener>,
    peers: HashMap<(Socket, SocketAddr), mpsc::Sender<Message>>,
    events: mpsc::Sender<Arrival>,
    arrived: mpsc::Receiver<Arrival>,
}

/// A report of the tasks.
enum Arrival {
    /// A connection is open. The channel takes its texts.
    Opened(Socket, SocketAddr, mpsc::Sender<Message>),
    Other(Event),
}

/// An event on a WebSocket.
pub(super) enum Event {
    /// A peer has connected, has taken a text, or is gone.
    Link(Socket, SocketAddr, WebSocketEvent),
    /// A text or binary message has arrived.
    Text(Socket, SocketAddr, Bytes, Age),
    /// A connection was refused.
    Refused(SocketAddr, &'static str),
}

/// How old a text may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It has just been sent.
    New,
    /// It may have waited in a network that has stalled.
    Old,
}

struct Listener {
    address: SocketAddr,
    page: Page,
    state: State,
}

enum State {
    Open(SocketAddr, JoinHandle<()>),
    /// When to retry, and the reason for the failure.
    Failed(Instant, String),
}

impl Web {
    pub(super) fn new(allowed: Vec<IpNet>) -> Self {
        let (events, arrived) = mpsc::channel(MAX_TEXTS);
        Self {
            allowed: allowed.into(),
            listeners: HashMap::new(),
            peers: HashMap::new(),
            events,
            arrived,
        }
    }

    /// Listens. If that fails, [`Web::retry`] tries again.
    pub(super) fn listen(&mut self, now: Instant, socket: Socket, address: SocketAddr, page: Page) {
        let state = self.opened(now, socket, address, &page);
        let listener = Listener {
            address,
            page,
            state,
        };
        self.listeners.insert(socket, listener);
    }

    /// Tries again to open the listeners that are due.
    pub(super) fn retry(&mut self, now: Instant) {
        let due: Vec<Socket> = (self.listeners.iter())
            .filter(|(_, it)| matches!(it.state, State::Failed(due, _) if due <= now))
            .map(|(socket, _)| *socket)
            .collect();
        for socket in due {
            if let Some(Listener { address, page, .. }) = self.listeners.remove(&socket) {
                self.listen(now, socket, address, page);
            }
        }
    }

    /// When to call [`Web::retry`].
    pub(super) fn retry_at(&self) -> Option<Instant> {
        let failed = self.listeners.values().filter_map(|it| match &it.state {
            State::Failed(due, _) => Some(*due),
            State::Open(..) => None,
        });
        failed.min()
    }

    /// The reason why a listener is not open.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.listeners.values().find_map(|it| match &it.state {
            State::Failed(_, why) => Some(&**why),
            State::Open(..) => None,
        })
    }

    /// The addresses that it listens on.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.values().filter_map(|it| match &it.state {
            State::Open(address, _) => Some(*address),
            State::Failed(..) => None,
        })
    }

    /// Whether this socket is a listener for WebSockets.
    pub(super) fn has(&self, socket: Socket) -> bool {
        self.listeners.contains_key(&socket)
    }

    /// Hands a text, or bytes that are no text in UTF-8, to the connection of a peer; `false` if
    /// there is none, or if it has not taken the texts before.
    pub(super) fn send(&self, socket: Socket, to: SocketAddr, bytes: Bytes) -> bool {
        let message = match Utf8Bytes::try_from(bytes.clone()) {
            Ok(text) => Message::Text(text),
            Err(_) => Message::Binary(bytes),
        };
        (self.peers.get(&(socket, to))).is_some_and(|texts| texts.try_send(message).is_ok())
    }

    /// Closes a connection after the texts that wait for it.
    pub(super) fn disconnect(&mut self, socket: Socket, peer: SocketAddr) {
        self.peers.remove(&(socket, peer));
    }

    /// The next event. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            match self.arrived.recv().await {
                Some(Arrival::Opened(socket, peer, texts)) => {
                    self.peers.insert((socket, peer), texts);
                    return Event::Link(socket, peer, WebSocketEvent::Connected);
                }
                Some(Arrival::Other(event)) => {
                    if let Event::Link(socket, peer, WebSocketEvent::Gone) = &event {
                        self.peers.remove(&(*socket, *peer));
                    }
                    return event;
                }
                // This struct itself holds a sender.
                None => std::future::pending().await,
            }
        }
    }

    fn opened(&self, now: Instant, socket: Socket, address: SocketAddr, page: &Page) -> State {
        match bound(address) {
            Ok((listener, address)) => {
                let door = Door {
                    socket,
                    page: Arc::new(served(page)),
                    allowed: self.allowed.clone(),
                    events: self.events.clone(),
                };
                State::Open(address, tokio::spawn(door.accept(listener)))
            }
            Err(error) => State::Failed(now + BIND_RETRY, not_open("TCP", address, &error)),
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        for listener in self.listeners.values() {
            if let State::Open(_, task) = &listener.state {
                task.abort();
            }
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}

/// What people are told about refused pages. A gateway has no host or token of its own: it accepts
/// sources by their network.
const ADVICE: Advice = Advice {
    host: "wrong host",
    origin: "pages of this origin may not connect: allow it with allow_origin",
    from_disk: "pages that are opened from disk may not connect: allow them with \
                allow_origin = [\"null\"] or --allow-origin null",
    token: "wrong token",
};

fn served(page: &Page) -> Served {
    let origins = Origins {
        listed: page.origins.clone(),
        of_this_machine: true,
        own: Own::ByAddress,
    };
    Served::new(page.html, origins, ADVICE)
}

/// The listening socket.
#[derive(Clone)]
struct Door {
    socket: Socket,
    page: Arc<Served>,
    allowed: Arc<[IpNet]>,
    events: mpsc::Sender<Arrival>,
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        let inside = Arc::new(Counts::default());
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(_) => {
                    // Out of file descriptors, for example.
                    tokio::time::sleep(BIND_RETRY).await;
                    continue;
                }
            };
            let ip = peer.ip().to_canonical();
            if !self.allowed.iter().any(|network| network.contains(&ip)) {
                self.refused(peer, "source not allowed").await;
                continue;
            }
            let Some(seat) = inside.enter(ip, PLACES) else {
                self.refused(peer, "too many connections").await;
                continue;
            };
            let door = self.clone();
            tokio::spawn(async move {
                door.admit(stream, peer).await;
                drop(seat);
            });
        }
    }

    async fn admit(&self, mut stream: TcpStream, peer: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let _ = socket2::SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
        // A command is forwarded first, and acknowledged later.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_quickack(false);
        // Browsers open connections in advance that they may not use.
        if !matches!(timeout(HANDSHAKE_TIME, stream.readable()).await, Ok(Ok(()))) {
            return;
        }
        let shaken = timeout(HANDSHAKE_TIME, self.page.shake_hands(&mut stream)).await;
        match shaken {
            Ok(Ok(Shaken::Open(rest))) => {
                let config = websocket::config(MAX_FRAME);
                let socket =
                    WebSocketStream::from_partially_read(stream, rest, Role::Server, Some(config));
                let conversation = Conversation {
                    socket: self.socket,
                    peer,
                    events: self.events.clone(),
                    since: tokio::time::Instant::now(),
                };
                conversation.hold(socket.await).await;
            }
            Ok(Ok(Shaken::Refused(why))) => self.refused(peer, why).await,
            Ok(Ok(Shaken::Done) | Err(_)) => {}
            Err(_) => self.refused(peer, "no HTTP request in time").await,
        }
    }

    async fn refused(&self, peer: SocketAddr, why: &'static str) {
        let refused = Arrival::Other(Event::Refused(peer, why));
        let _ = self.events.send(refused).await;
    }
}

/// An open WebSocket.
struct Conversation {
    socket: Socket,
    peer: SocketAddr,
    events: mpsc::Sender<Arrival>,
    since: tokio::time::Instant,
}

impl Conversation {
    async fn hold(self, stream: WebSocketStream<TcpStream>) {
        let (texts, waiting) = mpsc::channel(MAX_WAITING);
        let opened = Arrival::Opened(self.socket, self.peer, texts);
        if self.events.send(opened).await.is_err() {
            return;
        }
        let (sink, stream) = stream.split();
        // Commands are read even while a slow network takes no scans.
        converse(self.read(stream), self.write(sink, waiting)).await;
        self.link(WebSocketEvent::Gone).await;
    }

    async fn read(&self, mut stream: impl Stream<Item = Received> + Unpin) {
        let mut stall = Stall::new(self.since.elapsed());
        // Whether the silence of this peer means something, which has not been said yet.
        let mut tells_silence = false;
        loop {
            let patience = match tells_silence {
                true => ERRAND_SILENCE,
                false => SILENT_PEER,
            };
            // A working peer answers the pings.
            let message = match timeout(patience, stream.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(_)) | None) => return,
                Err(_) if tells_silence => {
                    tells_silence = false;
                    self.link(WebSocketEvent::Silent).await;
                    continue;
                }
                Err(_) => return,
            };
            let now = self.since.elapsed();
            stall.heard(now);
            let bytes = match message {
                Message::Text(text) => Bytes::from(text),
                // Some programs send their texts so.
                Message::Binary(bytes) => bytes,
                Message::Close(_) => return answer_close(&mut stream).await,
                Message::Pong(bytes) => {
                    if let Ok(pinged) = <[u8; 8]>::try_from(&bytes[..]) {
                        stall.answered(now, Duration::from_micros(u64::from_be_bytes(pinged)));
                        tells_silence = true;
                    }
                    continue;
                }
                Message::Ping(_) | Message::Frame(_) => continue,
            };
            let age = match stall.is_old(now) {
                true => Age::Old,
                false => Age::New,
            };
            let event = Event::Text(self.socket, self.peer, bytes, age);
            if self.events.send(Arrival::Other(event)).await.is_err() {
                return;
            }
        }
    }

    /// A ping that says when it was sent.
    fn ping(&self) -> Message {
        let now_us = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        Message::Ping(Bytes::copy_from_slice(&now_us.to_be_bytes()))
    }

    async fn write(
        &self,
        mut sink: impl SinkExt<Message> + Unpin,
        mut waiting: mpsc::Receiver<Message>,
    ) {
        let mut ping_at = tokio::time::Instant::now();
        loop {
            // A peer that gets texts all the time also has to answer pings.
            let next = tokio::select! {
                biased;
                () = sleep_until(ping_at) => Next::Ping,
                text = waiting.recv() => text.map_or(Next::Close, Next::Text),
            };
            let message = match &next {
                Next::Text(text) => text.clone(),
                Next::Close => Message::Close(None),
                Next::Ping => {
                    // After a pause, one is enough.
                    ping_at = tokio::time::Instant::now() + PING_PERIOD;
                    self.ping()
                }
            };
            let is_written = timeout(WRITE_TIME, sink.send(message)).await;
            if !matches!(is_written, Ok(Ok(()))) {
                return;
            }
            match next {
                Next::Text(_) => self.link(WebSocketEvent::Sent).await,
                Next::Close => return,
                Next::Ping => {}
            }
        }
    }

    async fn link(&self, link: WebSocketEvent) {
        let event = Event::Link(self.socket, self.peer, link);
        let _ = self.events.send(Arrival::Other(event)).await;
    }
}

/// What a peer gets next.
enum Next {
    Text(Message),
    Close,
    Ping,
}

type Received = Result<Message, tokio_tungstenite::tungstenite::Error>;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::sink::unfold;

    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_explained_and_tried_again() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let mut web = Web::new(Vec::new());
        let now = Instant::now();
        web.listen(now, Socket(0), address, Page::default());
        let why = format!(
            "another program uses TCP port {} of 127.0.0.1; stop it, or choose another port",
            address.port()
        );
        assert_eq!(web.trouble(), Some(&*why));
        drop(other);
        web.retry(now + BIND_RETRY);
        assert_eq!(web.trouble(), None);
        assert_eq!(web.addresses().collect::<Vec<_>>(), [address]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_silence_of_a_peer_that_answers_pings_is_told_once() {
        for answers in [true, false] {
            let (events, mut told) = mpsc::channel(MAX_TEXTS);
            let conversation = Conversation {
                socket: Socket(0),
                peer: SocketAddr::from(([127, 0, 0, 1], 1)),
                events,
                since: tokio::time::Instant::now(),
            };
            let pong = Message::Pong(Bytes::copy_from_slice(&0_u64.to_be_bytes()));
            let first = if answers {
                pong
            } else {
                Message::Ping(Bytes::new())
            };
            let messages = futures_util::stream::iter([Ok(first)]);
            let messages = messages.chain(futures_util::stream::pending());
            let start = tokio::time::Instant::now();
            conversation.read(Box::pin(messages)).await;
            assert!(start.elapsed() >= SILENT_PEER);
            let is_told = told.try_recv().is_ok_and(|it| {
                matches!(
                    it,
                    Arrival::Other(Event::Link(_, _, WebSocketEvent::Silent))
                )
            });
            assert_eq!(is_told, answers);
            assert!(told.try_recv().is_err());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_gets_texts_all_the_time_is_pinged() {
        let (events, _told) = mpsc::channel(MAX_TEXTS);
        let conversation = Conversation {
            socket: Socket(0),
            peer: SocketAddr::from(([127, 0, 0, 1], 1)),
            events,
            since: tokio::time::Instant::now(),
        };
        let (texts, waiting) = mpsc::channel(MAX_WAITING);
        let (sent, mut written) = mpsc::unbounded_channel();
        let sink = unfold(sent, |sent, message: Message| async move {
            let _ = sent.send(message);
            Ok::<_, Infallible>(sent)
        });
        let talk = async {
            for _ in 0..16 {
                texts.send(Message::text("scan")).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            drop(texts);
        };
        tokio::join!(conversation.write(Box::pin(sink), waiting), talk);
        let mut pings = 0;
        while let Ok(message) = written.try_recv() {
            pings += usize::from(matches!(message, Message::Ping(_)));
        }
        // Five per second, for 16 s; timers are late by a millisecond.
        assert!((79..=81).contains(&pings), "{pings}");
    }
}
