//! Answers the request for a WebSocket on a plain connection, without an HTTP server. IO.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use self::request::{Decision, decide};
use crate::access::{Advice, Origins};
use crate::headers;
use crate::limits::MAX_HEAD;

pub mod request;

/// The page of a server for WebSockets, and the pages that may connect.
#[derive(Clone, Debug)]
pub struct Served {
    origins: Origins,
    advice: Advice,
    /// The page with its head.
    page: String,
}

/// How a connection goes on.
#[derive(Debug)]
pub enum Shaken {
    /// As a WebSocket. These bytes have arrived after the request.
    Open(Vec<u8>),
    /// It was answered, and ends.
    Done,
    /// It was refused, and ends. The text is for counters.
    Refused(&'static str),
}

impl Served {
    /// A server with this page at `/`. Refusals tell people what to do.
    #[must_use]
    pub fn new(html: &str, origins: Origins, advice: Advice) -> Self {
        let policy = headers::policy_of(html);
        let always = headers::ALWAYS.map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n{}{}: {policy}\r\n\r\n",
            html.len(),
            always.concat(),
            headers::POLICY_NAME,
        );
        Self {
            origins,
            advice,
            page: head + html,
        }
    }

    /// Reads the request of a connection, and answers it.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn shake_hands<S>(&self, stream: &mut S) -> io::Result<Shaken>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut head = Vec::with_capacity(1024);
        loop {
            match decide(&head, &self.origins) {
                Decision::Incomplete => {
                    let room = MAX_HEAD - head.len();
                    if (&mut *stream).take(room as u64).read_buf(&mut head).await? == 0 {
                        return Ok(Shaken::Done);
                    }
                }
                Decision::Accept { key, length } => {
                    let accept = derive_accept_key(key.as_bytes());
                    let response = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                         Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                    );
                    stream.write_all(response.as_bytes()).await?;
                    return Ok(Shaken::Open(head.split_off(length)));
                }
                Decision::Page => {
                    stream.write_all(self.page.as_bytes()).await?;
                    stream.shutdown().await?;
                    return Ok(Shaken::Done);
                }
                Decision::Refuse(refusal) => {
                    let response = refusal.response(&self.advice);
                    stream.write_all(response.as_bytes()).await?;
                    stream.shutdown().await?;
                    return Ok(Shaken::Refused(refusal.text()));
                }
            }
        }
    }
}
