//! Accepts connections and answers their requests. IO.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amber_terminal::note;
use bytes::Bytes;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

pub use hyper::StatusCode;

use crate::body::{Body, Parts, Taken};
use crate::limits::{ACCEPT_RETRY, CONNECTION_LIFE, HELLO_TIME, LAST_ANSWER, MAX_HEAD};
use crate::notes::Notes;
use crate::places::{Guests, Limits};

/// A request of a browser or of another program. Its body is not read.
pub type Request = hyper::Request<Incoming>;

/// The answer to a request.
pub type Answer = hyper::Response<Body>;

/// The state that all connections of a server share.
pub struct Server {
    guests: Arc<Mutex<Rooms>>,
    started: Instant,
    notes: Mutex<Notes>,
}

/// The connections that have not shown a token, and the way to end each.
struct Rooms {
    guests: Guests,
    exits: HashMap<u64, watch::Sender<bool>>,
}

/// A connection that has not shown a token. It gives its place back when this is dropped.
pub struct Guest {
    rooms: Arc<Mutex<Rooms>>,
    ip: IpAddr,
    number: u64,
    exit: watch::Receiver<bool>,
}

impl Guest {
    /// Waits until this guest must leave, because its network has too many.
    pub async fn must_leave(&self) {
        let _ = self.exit.clone().wait_for(|must_leave| *must_leave).await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.guests.leave(self.ip, self.number);
        rooms.exits.remove(&self.number);
    }
}

impl Server {
    /// A server without connections. The limits are those of connections without a token.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let rooms = Rooms {
            guests: Guests::new(limits),
            exits: HashMap::new(),
        };
        Self {
            guests: Arc::new(Mutex::new(rooms)),
            started: Instant::now(),
            notes: Mutex::default(),
        }
    }

    /// Serves until this future is dropped. Connections that are open then end with the runtime.
    pub async fn run<S, F>(self: Arc<Self>, listener: TcpListener, service: S)
    where
        S: Fn(Request, SocketAddr) -> F + Clone + Send + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, for example.
                    note(format_args!("cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            let guest = Arc::new(self.enter(peer.ip().to_canonical()));
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream, peer, guest, service.clone()));
        }
    }

    fn enter(&self, ip: IpAddr) -> Guest {
        let mut rooms = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, leaves) = rooms.guests.enter(ip);
        let (exit, must_leave) = watch::channel(false);
        if let Some(exit) = leaves.and_then(|number| rooms.exits.remove(&number)) {
            let _ = exit.send(true);
            self.refused(
                ip,
                "too many connections without a token: the oldest was closed",
            );
        }
        rooms.exits.insert(number, exit);
        Guest {
            rooms: self.guests.clone(),
            ip,
            number,
            exit: must_leave,
        }
    }

    /// Shows that a request was refused, at a limited rate.
    pub fn refused(&self, who: impl Display, why: &'static str) {
        let now = self.started.elapsed();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = notes.line(now, why, format!("refused {who}: {why}")) {
            note(line);
        }
    }
}

/// Answers the requests of a connection. It ends even if its peer reads nothing.
async fn serve<S, F>(stream: TcpStream, peer: SocketAddr, guest: Arc<Guest>, service: S)
where
    S: Fn(Request, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let visitor = guest.clone();
    let taken = Taken::default();
    let is_taken = taken.clone();
    let answer = service_fn(move |mut request: Request| {
        let (service, taken) = (service.clone(), taken.clone());
        // Its place goes to the WebSocket, if it opens one.
        request.extensions_mut().insert(visitor.clone());
        async move {
            let mut answer = match *request.method() {
                Method::GET | Method::HEAD => service(request, peer).await,
                _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported"),
            };
            answer.body_mut().report_to(&taken);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = http1::Builder::new();
    let connection = builder
        .timer(TokioTimer::new())
        .header_read_timeout(HELLO_TIME)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    tokio::pin!(connection);
    let served = async {
        // An error means that the peer is gone or does not speak HTTP.
        while timeout(CONNECTION_LIFE, connection.as_mut()).await.is_err() {
            // A peer that takes an endless answer may stay.
            if !is_taken.look() {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(LAST_ANSWER, connection).await;
                break;
            }
        }
    };
    tokio::select! {
        () = served => {}
        () = guest.must_leave() => {}
    }
}

/// A header of a request. One that is not text is empty.
#[must_use]
pub fn head<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let value = request.headers().get(name)?;
    Some(value.to_str().unwrap_or_default())
}

/// A line of text.
#[must_use]
pub fn plain(status: StatusCode, text: impl Display) -> Answer {
    let mut answer = Answer::new(Body::whole(format!("{text}\n").into()));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}

/// A page, a file or metrics, with these headers. Their names are in lower case.
#[must_use]
pub fn page(body: impl Into<Bytes>, headers: &[(&'static str, &'static str)]) -> Answer {
    answer(Body::whole(body.into()), headers)
}

/// An answer that goes on until its parts end, or the peer leaves. It also ends if the peer takes no
/// part for [`CONNECTION_LIFE`].
#[must_use]
pub fn endless(parts: impl Parts, headers: &[(&'static str, &'static str)]) -> Answer {
    answer(Body::endless(parts), headers)
}

fn answer(body: Body, headers: &[(&'static str, &'static str)]) -> Answer {
    let mut answer = Answer::new(body);
    for (name, value) in headers {
        let (name, value) = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        answer.headers_mut().insert(name, value);
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn served() -> SocketAddr {
        let any = "127.0.0.1:0".parse().unwrap();
        let (listener, address) = crate::place::listen(any, "amber").await.unwrap();
        let server = Arc::new(Server::new(Limits {
            total: 1,
            per_ip: 1,
        }));
        let service = |request: Request, _: SocketAddr| async move {
            plain(StatusCode::OK, request.uri().path())
        };
        tokio::spawn(server.run(listener, service));
        address
    }

    async fn ask(peer: &mut TcpStream, method: &str) -> String {
        let request = format!("{method} /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        peer.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn requests_are_answered_and_only_get_and_head() {
        let address = served().await;
        for (method, start, end) in [
            ("GET", "HTTP/1.1 200 OK\r\n", "\r\n\r\n/x\n"),
            ("HEAD", "HTTP/1.1 200 OK\r\n", "\r\n\r\n"),
            ("POST", "HTTP/1.1 405 ", "\r\n\r\nonly GET is supported\n"),
            ("\0", "HTTP/1.1 400 ", "\r\n\r\n"),
        ] {
            // The last connection may end a little later than its answer.
            let answer = loop {
                let mut peer = TcpStream::connect(address).await.unwrap();
                let answer = ask(&mut peer, method).await;
                if !answer.is_empty() {
                    break answer;
                }
            };
            assert!(answer.starts_with(start), "{method}: {answer}");
            assert!(answer.ends_with(end), "{method}: {answer}");
        }
    }

    /// One part per second.
    struct Ticks(tokio::time::Interval);

    impl Parts for Ticks {
        async fn next(&mut self) -> Option<Bytes> {
            self.0.tick().await;
            Some(Bytes::from_static(b"tick"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_answer_goes_on_while_its_peer_takes_it() {
        let any = "127.0.0.1:0".parse().unwrap();
        let (listener, address) = crate::place::listen(any, "amber").await.unwrap();
        let limits = Limits {
            total: 1,
            per_ip: 1,
        };
        let service = |_: Request, _: SocketAddr| async {
            let ticks = tokio::time::interval(Duration::from_secs(1));
            endless(Ticks(ticks), &[])
        };
        tokio::spawn(Arc::new(Server::new(limits)).run(listener, service));
        let mut peer = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.0\r\n\r\n";
        peer.write_all(request).await.unwrap();
        let began = tokio::time::Instant::now();
        let mut answer = Vec::new();
        while began.elapsed() < 3 * CONNECTION_LIFE {
            let read = peer.read_buf(&mut answer).await.unwrap();
            assert!(read > 0, "it has ended");
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
        assert!(answer.matches("tick").count() > 50, "{answer}");
    }

    #[tokio::test]
    async fn above_the_limit_the_oldest_connection_makes_room() {
        let address = served().await;
        let mut first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut second, "GET").await.starts_with("HTTP/1.1 200 OK"));
        assert_eq!(first.read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_peer_that_reads_no_answers_is_gone_after_a_while() {
        let address = served().await;
        let mut peer = TcpStream::connect(address).await.unwrap();
        let requests = "GET /x HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
        // Until neither side has room, or the server has closed the connection.
        let write = async { while peer.write_all(requests.as_bytes()).await.is_ok() {} };
        let is_stuck = timeout(Duration::from_secs(2), write).await.is_err();
        assert!(is_stuck, "the peer can write endlessly");
        tokio::time::pause();
        tokio::time::sleep(CONNECTION_LIFE + LAST_ANSWER + Duration::from_secs(1)).await;
        tokio::time::resume();
        // The server has closed it with unread requests, which is an error for the peer.
        let ended = timeout(Duration::from_secs(20), async {
            while peer.write_all(requests.as_bytes()).await.is_ok() {}
        });
        assert!(ended.await.is_ok(), "the connection is still open");
    }
}
