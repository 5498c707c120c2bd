//! The frames of Galileo: bytes to values and back. PURE.
//!
//! ```text
//! connect  01 "udp://HOST:PORT/PATH?token=TOKEN" 00
//! session  02 id0 id1 id2 id3 OP body        BINARY: body = u32 LE index + data
//! accept   02 id0 id1 id2 id3 01 {"status":true,"client_id":[id0,id1,id2,id3]}
//! ```

use std::fmt;

use super::limits::{CHUNK, MAX_CHUNK_IN, MAX_PATH, MAX_TEXT_IN, MAX_URL};

/// The length of the header of a session frame.
pub const HEADER: usize = 6;

/// The length of the index in a BINARY frame.
pub const INDEX: usize = 4;

const CONNECT: u8 = 1;
const SESSION: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 4]);

/// An id is half of a session's secret, so it must not appear in logs.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(..)")
    }
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A client wants a session: the address, without the NUL at its end.
    Connect(&'a [u8]),
    /// A frame of a session.
    Session {
        id: SessionId,
        /// Its content.
        op: Op<'a>,
    },
}

/// The contents of a session frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Never used, but the known clients accept it.
    Continuation,
    /// A message in JSON.
    Text(&'a [u8]),
    /// Bytes: from a client, the index and at most 1016 bytes of data.
    Binary(&'a [u8]),
    /// The end of the session.
    Close,
    /// A sign of life, answered by PONG.
    Ping,
    /// The answer to a PING.
    Pong,
}

/// The reason why a datagram is not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// It is empty, or shorter than a header.
    #[error("too short")]
    TooShort,
    /// The first byte is neither 1 nor 2.
    #[error("unknown frame type")]
    UnknownType,
    /// The operation is unknown.
    #[error("unknown operation")]
    UnknownOperation,
    /// The address or the text is too long.
    #[error("too long")]
    TooLong,
    /// The address is not valid.
    #[error("invalid address")]
    Url,
}

impl Bad {
    /// The reason, for counters.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::TooShort => "too short",
            Self::UnknownType => "unknown frame type",
            Self::UnknownOperation => "unknown operation",
            Self::TooLong => "too long",
            Self::Url => "invalid address",
        }
    }
}

impl<'a> Frame<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is not a frame.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Bad> {
        match *bytes {
            [CONNECT, ref url @ ..] => {
                let end = url.iter().position(|byte| *byte == 0);
                let url = &url[..end.unwrap_or(url.len())];
                if url.len() > MAX_URL {
                    return Err(Bad::TooLong);
                }
                Ok(Self::Connect(url))
            }
            [SESSION, a, b, c, d, op, ref body @ ..] => {
                let op = Op::decode(op, body)?;
                let id = SessionId([a, b, c, d]);
                Ok(Self::Session { id, op })
            }
            [] | [SESSION, ..] => Err(Bad::TooShort),
            _ => Err(Bad::UnknownType),
        }
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match *self {
            Self::Connect(url) => [&[CONNECT], url, &[0]].concat(),
            Self::Session { id, op } => {
                let (code, body) = op.parts();
                [&[SESSION], &id.0[..], &[code], body].concat()
            }
        }
    }
}

impl<'a> Op<'a> {
    fn decode(code: u8, body: &'a [u8]) -> Result<Self, Bad> {
        Ok(match code {
            0 => Self::Continuation,
            1 => {
                let nuls = body.iter().rev().take_while(|byte| **byte == 0).count();
                let text = &body[..body.len() - nuls];
                if text.len() > MAX_TEXT_IN {
                    return Err(Bad::TooLong);
                }
                Self::Text(text)
            }
            2 => Self::Binary(body),
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return Err(Bad::UnknownOperation),
        })
    }

    fn parts(self) -> (u8, &'a [u8]) {
        match self {
            Self::Continuation => (0, &[]),
            Self::Text(text) => (1, text),
            Self::Binary(bytes) => (2, bytes),
            Self::Close => (8, &[]),
            Self::Ping => (9, &[]),
            Self::Pong => (10, &[]),
        }
    }
}

/// Reads the body of a BINARY frame of a client: its index, and its data.
///
/// # Errors
/// It has no index, or more than 1016 bytes of data.
pub fn decode_chunk(body: &[u8]) -> Result<(u32, &[u8]), Bad> {
    let (index, data) = body.split_first_chunk::<INDEX>().ok_or(Bad::TooShort)?;
    if data.len() > MAX_CHUNK_IN {
        return Err(Bad::TooLong);
    }
    Ok((u32::from_le_bytes(*index), data))
}

/// Writes the body of a BINARY frame. `None` as index is for clients that expect the data alone.
#[must_use]
pub fn encode_chunk(index: Option<u32>, data: &[u8]) -> Vec<u8> {
    let index = index.map(u32::to_le_bytes);
    [index.as_ref().map_or(&[][..], |it| &it[..]), data].concat()
}

/// Splits data as the known clients do: pieces of 512 bytes, the last one shorter; one empty piece
/// if there is no data.
pub fn split(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let empty = data.is_empty().then_some(&[][..]);
    empty.into_iter().chain(data.chunks(CHUNK))
}

/// The reply to a connect: the session, or `None` for a refusal.
///
/// The known clients read the JSON from byte 6, and one of them allows nothing after it.
#[must_use]
pub fn encode_reply(session: Option<SessionId>) -> Vec<u8> {
    let json = match session {
        Some(SessionId([a, b, c, d])) => {
            format!(r#"{{"status":true,"client_id":[{a},{b},{c},{d}]}}"#)
        }
        None => r#"{"status":false,"client_id":[]}"#.to_owned(),
    };
    let frame = Frame::Session {
        id: session.unwrap_or(SessionId([0; 4])),
        op: Op::Text(json.as_bytes()),
    };
    frame.encode()
}

/// Reads the reply to a connect: `Some(None)` is a refusal. The JSON is at byte 6, or at byte 0 as
/// in the literal reading of the document.
#[must_use]
pub fn decode_reply(bytes: &[u8]) -> Option<Option<SessionId>> {
    #[derive(serde::Deserialize)]
    struct Reply {
        status: bool,
        #[serde(default)]
        client_id: Vec<u8>,
    }
    let json = match bytes.first()? {
        b'{' => bytes,
        _ => bytes.get(HEADER..)?,
    };
    let nuls = json.iter().rev().take_while(|byte| **byte == 0).count();
    let reply: Reply = serde_json::from_slice(&json[..json.len() - nuls]).ok()?;
    match (reply.status, <[u8; 4]>::try_from(reply.client_id)) {
        (true, Ok(id)) => Some(Some(SessionId(id))),
        (true, Err(_)) => None,
        (false, _) => Some(None),
    }
}

/// The address in a connect datagram.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// Host and port as written. A server in a local network ignores them.
    pub authority: String,
    /// The path without leading slashes.
    pub path: String,
    /// The parameters in their order.
    pub query: Vec<(String, String)>,
}

/// The query contains the token, so it must not appear in logs.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "udp://{}/{}", self.authority, self.path)
    }
}

impl Url {
    /// Reads the address of a connect datagram.
    ///
    /// # Errors
    /// It is not a valid address.
    pub fn parse(bytes: &[u8]) -> Result<Self, Bad> {
        const SCHEME: &str = "udp://";
        let text = std::str::from_utf8(bytes).map_err(|_| Bad::Url)?;
        let scheme = text.get(..SCHEME.len()).ok_or(Bad::Url)?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return Err(Bad::Url);
        }
        let (place, query) = match text[SCHEME.len()..].split_once('?') {
            Some((place, query)) => (place, query),
            None => (&text[SCHEME.len()..], ""),
        };
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let path = unescaped(path.trim_start_matches('/'));
        let path = path.trim_start_matches('/');
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_/.-".contains(c);
        if path.len() > MAX_PATH || !path.chars().all(is_legal) {
            return Err(Bad::Url);
        }
        let parameters = query.split('&').filter(|it| !it.is_empty());
        let query = parameters.map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (unescaped(name), unescaped(value))
        });
        Ok(Self {
            authority: authority.to_owned(),
            path: path.to_owned(),
            query: query.collect(),
        })
    }

    /// A parameter; the first if there are several.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| &**value)
    }
}

/// Replaces well-formed escapes such as %2F; others stay.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = (byte == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
