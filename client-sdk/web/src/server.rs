//! Accepts connections and answers their requests. IO.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use amber_terminal::note;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

pub use hyper::StatusCode;

use crate::limits::{ACCEPT_RETRY, HELLO_TIME, MAX_HEAD};
use crate::notes::Notes;

/// A request of a browser or of another program. Its body is not read.
pub type Request = hyper::Request<Incoming>;

/// The answer to a request.
pub type Answer = hyper::Response<Full<Bytes>>;

/// The number of connections, of all IP addresses and of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections.
    pub total: usize,
    /// Connections of one IP address, so that one does not keep out all others.
    pub per_ip: usize,
}

/// The state that all connections of a server share.
pub struct Server {
    limits: Limits,
    started: Instant,
    notes: Mutex<Notes>,
}

impl Server {
    /// A server without connections.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
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
        let counts = Arc::new(Counts::default());
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
            let ip = peer.ip().to_canonical();
            let Some(counted) = counts.enter(ip, self.limits) else {
                self.refused(peer, "too many connections");
                continue;
            };
            let _ = stream.set_nodelay(true);
            let service = service.clone();
            tokio::spawn(async move {
                let answer = service_fn(move |request: Request| {
                    let service = service.clone();
                    async move {
                        Ok::<_, Infallible>(match *request.method() {
                            Method::GET | Method::HEAD => service(request, peer).await,
                            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is supported"),
                        })
                    }
                });
                let mut builder = http1::Builder::new();
                let connection = builder
                    .timer(TokioTimer::new())
                    .header_read_timeout(HELLO_TIME)
                    .max_buf_size(MAX_HEAD)
                    .serve_connection(TokioIo::new(stream), answer)
                    .with_upgrades();
                // An error means that the peer is gone or does not speak HTTP.
                let _ = connection.await;
                drop(counted);
            });
        }
    }

    /// Shows that a request was refused, at a limited rate.
    pub fn refused(&self, who: impl Display, why: &str) {
        let now = self.started.elapsed();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = notes.line(now, format!("refused {who}: {why}")) {
            note(line);
        }
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
    let mut answer = Answer::new(Full::new(Bytes::from(format!("{text}\n"))));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, plain);
    answer
}

/// A page, a file or metrics, with these headers. Their names are in lower case.
#[must_use]
pub fn page(body: impl Into<Bytes>, headers: &[(&'static str, &'static str)]) -> Answer {
    let mut answer = Answer::new(Full::new(body.into()));
    for (name, value) in headers {
        let (name, value) = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// The number of connections per IP address.
#[derive(Debug, Default)]
pub struct Counts(Mutex<HashMap<IpAddr, usize>>);

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub struct Counted {
    counts: Arc<Counts>,
    ip: IpAddr,
}

impl Counts {
    /// Counts one more connection; `None` if there are as many as the limits allow.
    #[must_use]
    pub fn enter(self: &Arc<Self>, ip: IpAddr, limits: Limits) -> Option<Counted> {
        let mut by_ip = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = by_ip.values().sum();
        let from_here = by_ip.get(&ip).copied().unwrap_or_default();
        if total >= limits.total || from_here >= limits.per_ip {
            return None;
        }
        by_ip.insert(ip, from_here + 1);
        Some(Counted {
            counts: self.clone(),
            ip,
        })
    }
}

impl Drop for Counted {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[test]
    fn connections_are_limited_in_total_and_per_address() {
        let counts = Arc::new(Counts::default());
        let limits = Limits {
            total: 3,
            per_ip: 2,
        };
        let enter = |last: u8| counts.enter(IpAddr::from([127, 0, 0, last]), limits);
        let (first, _second) = (enter(1).unwrap(), enter(1).unwrap());
        assert!(enter(1).is_none());
        let _third = enter(2).unwrap();
        assert!(enter(3).is_none());
        drop(first);
        assert!(enter(3).is_some());
        assert!(enter(1).is_some());
    }

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

    #[tokio::test]
    async fn a_connection_above_the_limit_is_closed() {
        let address = served().await;
        let mut first = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        assert_eq!(second.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(ask(&mut first, "GET").await.starts_with("HTTP/1.1 200 OK"));
    }
}
