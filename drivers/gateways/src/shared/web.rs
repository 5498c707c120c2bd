//! WebSockets of a gateway: they carry texts as UDP sockets carry datagrams. IO.
//!
//! A task accepts the connections of a listener, and each connection has its own task. Texts
//! arrive over a bounded channel, so a fast peer waits in its own TCP connection. A peer gets one
//! text at a time: after each, the gateway hears that the peer can take the next.

pub mod request;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use ipnet::IpNet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use self::request::{Decision, MAX_HEAD, Refusal, decide};
use super::machine::{Link, Page, Socket};
use super::sockets::not_open;
use crate::limits::{
    BIND_RETRY, HANDSHAKE_TIME, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_IP, SILENT_PEER, WRITE_TIME,
};

/// Texts that wait for the gateway, of all peers together. Then peers wait.
const MAX_TEXTS: usize = 64;
/// Texts that wait for one peer: the gateway sends the next when the last one is written, and may
/// say good-bye.
const MAX_WAITING: usize = 2;
/// The time between two pings: three until a silent peer counts as gone.
const PING_PERIOD: Duration = Duration::from_secs(5);
/// The size of a read. The library clears such a buffer before each read, and 128 KB by default:
/// with that, each command of a hundred bytes costs more time for clearing than for all the rest.
const READ_BUFFER: usize = 4 * 1024;
/// Larger frames than any text of a protocol are an error of the peer.
const MAX_FRAME: usize = 1024 * 1024;

/// The WebSocket listeners that the machine has asked for, and their connections.
pub(super) struct Web {
    allowed: Arc<[IpNet]>,
    listeners: HashMap<Socket, Listener>,
    peers: HashMap<(Socket, SocketAddr), mpsc::Sender<Utf8Bytes>>,
    events: mpsc::Sender<Arrival>,
    arrived: mpsc::Receiver<Arrival>,
}

/// A report of the tasks.
enum Arrival {
    /// A connection is open. The channel takes its texts.
    Opened(Socket, SocketAddr, mpsc::Sender<Utf8Bytes>),
    Other(Event),
}

/// An event on a WebSocket.
pub(super) enum Event {
    /// A peer has connected, has taken a text, or is gone.
    Link(Socket, SocketAddr, Link),
    /// A text has arrived.
    Text(Socket, SocketAddr, Utf8Bytes),
    /// A connection was refused.
    Refused(SocketAddr, &'static str),
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

    /// Hands a text to the connection of a peer; `false` if there is none, if it has not taken the
    /// texts before, or if the bytes are not a text.
    pub(super) fn send(&self, socket: Socket, to: SocketAddr, bytes: Bytes) -> bool {
        let Ok(text) = Utf8Bytes::try_from(bytes) else {
            return false;
        };
        (self.peers.get(&(socket, to))).is_some_and(|texts| texts.try_send(text).is_ok())
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
                    return Event::Link(socket, peer, Link::Connected);
                }
                Some(Arrival::Other(event)) => {
                    if let Event::Link(socket, peer, Link::Gone) = &event {
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
                    page: page.clone(),
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

/// The listening socket.
#[derive(Clone)]
struct Door {
    socket: Socket,
    page: Page,
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
            let Some(seat) = Counts::enter(&inside, ip) else {
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
        // A command is forwarded first, and acknowledged later.
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_quickack(false);
        // Browsers open connections in advance that they may not use.
        if !matches!(timeout(HANDSHAKE_TIME, stream.readable()).await, Ok(Ok(()))) {
            return;
        }
        let shaken = timeout(HANDSHAKE_TIME, self.shake_hands(&mut stream)).await;
        match shaken {
            Ok(Ok(Some(rest))) => {
                let config = WebSocketConfig::default()
                    .read_buffer_size(READ_BUFFER)
                    .max_message_size(Some(MAX_FRAME))
                    .max_frame_size(Some(MAX_FRAME));
                let socket =
                    WebSocketStream::from_partially_read(stream, rest, Role::Server, Some(config));
                let conversation = Conversation {
                    socket: self.socket,
                    peer,
                    events: self.events.clone(),
                };
                conversation.hold(socket.await).await;
            }
            Ok(Ok(None) | Err(_)) => {}
            Err(_) => self.refused(peer, "no HTTP request in time").await,
        }
    }

    /// Answers the HTTP request. Returns bytes that have arrived after it, if a WebSocket begins.
    async fn shake_hands(&self, stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
        let mut head = Vec::with_capacity(1024);
        loop {
            match decide(&head, &self.page.origins) {
                Decision::Incomplete => {
                    let room = MAX_HEAD - head.len();
                    if (&mut *stream).take(room as u64).read_buf(&mut head).await? == 0 {
                        return Ok(None);
                    }
                }
                Decision::Accept { key, length } => {
                    let accept = derive_accept_key(key.as_bytes());
                    let response = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                         Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                    );
                    stream.write_all(response.as_bytes()).await?;
                    return Ok(Some(head.split_off(length)));
                }
                Decision::Page => {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                         Content-Length: {}\r\nConnection: close\r\n\r\n",
                        self.page.html.len()
                    );
                    stream.write_all(head.as_bytes()).await?;
                    stream.write_all(self.page.html.as_bytes()).await?;
                    stream.shutdown().await?;
                    return Ok(None);
                }
                Decision::Refuse(refusal) => {
                    self.refuse(stream, refusal).await?;
                    return Ok(None);
                }
            }
        }
    }

    async fn refuse(&self, stream: &mut TcpStream, refusal: Refusal) -> io::Result<()> {
        if let Ok(peer) = stream.peer_addr() {
            self.refused(peer, refusal.text()).await;
        }
        stream.write_all(refusal.response().as_bytes()).await?;
        stream.shutdown().await
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
        tokio::select! {
            () = self.read(stream) => {}
            () = self.write(sink, waiting) => {}
        }
        self.link(Link::Gone).await;
    }

    async fn read(&self, mut stream: impl StreamExt<Item = Received> + Unpin) {
        // A working peer answers the pings.
        while let Ok(Some(Ok(message))) = timeout(SILENT_PEER, stream.next()).await {
            let event = match message {
                Message::Text(text) => Event::Text(self.socket, self.peer, text),
                Message::Binary(_) => Event::Refused(self.peer, "binary message"),
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            if self.events.send(Arrival::Other(event)).await.is_err() {
                return;
            }
        }
    }

    async fn write(
        &self,
        mut sink: impl SinkExt<Message> + Unpin,
        mut waiting: mpsc::Receiver<Utf8Bytes>,
    ) {
        let mut ping_at = tokio::time::Instant::now() + PING_PERIOD;
        loop {
            // A peer that gets texts all the time also has to answer pings.
            let next = timeout_at(ping_at, waiting.recv()).await;
            if next.is_err() {
                ping_at += PING_PERIOD;
            }
            let message = match &next {
                Ok(Some(text)) => Message::Text(text.clone()),
                Ok(None) => Message::Close(None),
                Err(_) => Message::Ping(Bytes::new()),
            };
            let is_written = timeout(WRITE_TIME, sink.send(message)).await;
            if !matches!(is_written, Ok(Ok(()))) {
                return;
            }
            match next {
                Ok(Some(_)) => self.link(Link::Sent).await,
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    async fn link(&self, link: Link) {
        let event = Event::Link(self.socket, self.peer, link);
        let _ = self.events.send(Arrival::Other(event)).await;
    }
}

type Received = Result<Message, tokio_tungstenite::tungstenite::Error>;

/// The number of connections per IP address.
#[derive(Default)]
struct Counts(Mutex<HashMap<IpAddr, usize>>);

/// A connection that is counted until this is dropped.
struct Entered {
    counts: Arc<Counts>,
    ip: IpAddr,
}

impl Counts {
    fn enter(counts: &Arc<Self>, ip: IpAddr) -> Option<Entered> {
        let mut by_ip = counts.0.lock().ok()?;
        let all: usize = by_ip.values().sum();
        let from_here = by_ip.entry(ip).or_default();
        if all >= MAX_CONNECTIONS || *from_here >= MAX_CONNECTIONS_PER_IP {
            return None;
        }
        *from_here += 1;
        Some(Entered {
            counts: counts.clone(),
            ip,
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Ok(mut by_ip) = self.counts.0.lock()
            && let Some(count) = by_ip.get_mut(&self.ip)
        {
            *count -= 1;
            if *count == 0 {
                by_ip.remove(&self.ip);
            }
        }
    }
}

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

    #[test]
    fn connections_are_limited_in_all_and_per_address() {
        let counts = Arc::new(Counts::default());
        let ip = |number: usize| IpAddr::from([10, 0, 0, number as u8]);
        let enter = |number| Counts::enter(&counts, ip(number));
        let mut inside: Vec<_> = (0..MAX_CONNECTIONS_PER_IP).map(|_| enter(1)).collect();
        assert!(inside.iter().all(Option::is_some));
        assert!(enter(1).is_none(), "an address has its own limit");
        inside
            .extend((MAX_CONNECTIONS_PER_IP..MAX_CONNECTIONS).map(|number| enter(2 + number / 4)));
        assert!(inside.iter().all(Option::is_some));
        assert!(enter(99).is_none(), "all together have a limit");
        inside.remove(0);
        assert!(enter(99).is_some(), "who leaves makes room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_gets_texts_all_the_time_is_pinged() {
        let (events, _told) = mpsc::channel(MAX_TEXTS);
        let conversation = Conversation {
            socket: Socket(0),
            peer: SocketAddr::from(([127, 0, 0, 1], 1)),
            events,
        };
        let (texts, waiting) = mpsc::channel(MAX_WAITING);
        let (sent, mut written) = mpsc::unbounded_channel();
        let sink = unfold(sent, |sent, message: Message| async move {
            let _ = sent.send(message);
            Ok::<_, Infallible>(sent)
        });
        let talk = async {
            for _ in 0..16 {
                texts.send(Utf8Bytes::from("scan")).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            drop(texts);
        };
        tokio::join!(conversation.write(Box::pin(sink), waiting), talk);
        let mut pings = 0;
        while let Ok(message) = written.try_recv() {
            pings += usize::from(matches!(message, Message::Ping(_)));
        }
        assert_eq!(pings, 3);
    }
}
