//! Pictures over HTTP, as network cameras, phones and other programs send them. PURE.
//!
//! ```text
//! HTTP/1.1 200 OK
//! Content-Type: multipart/x-mixed-replace; boundary=frame
//!
//! --frame
//! Content-Type: image/jpeg
//! Content-Length: 18700
//!
//! FF D8 ...
//! ```
//!
//! Cameras agree neither on the boundary nor on the length: some leave out the first boundary, some
//! put dashes into the header, some send wrong lengths or none. So pictures are found by their own
//! structure ([`Splitter`]), and everything between them is skipped. The boundary only ends a picture
//! whose end is missing.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::jpeg::{Jpeg, Splitter};

/// The longest head of an answer, in bytes.
const MAX_HEAD: usize = 8_192;
/// The longest line that says how long a chunk is, and the longest chunk.
const MAX_CHUNK_LINE: usize = 256;
const MAX_CHUNK: usize = 64 << 20;

/// The address of pictures: `http://[USER:PASSWORD@]HOST[:PORT][/PATH]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Host and port, for a connection.
    pub server: String,
    /// As it was written, without user and password.
    shown: String,
    host: String,
    path: String,
    authorization: Option<String>,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => {
                return Err(format!(
                    "{scheme} is not supported, only http: for others, let ffmpeg read it with --command"
                ));
            }
            None => return Err("it must begin with http://".into()),
        };
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        // An address of IPv6 has colons in brackets.
        let port = host
            .rsplit_once(':')
            .filter(|(_, port)| !port.contains(']'));
        let server = match port {
            Some((_, port)) if port.parse::<u16>().is_ok_and(|port| port > 0) => host.to_owned(),
            Some((_, port)) => return Err(format!("{port:?} is not a port")),
            None => format!("{host}:80"),
        };
        // What is written goes into the request.
        let is_clean = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
        if host.is_empty() || server.starts_with(':') || !is_clean(rest) {
            return Err(
                "it needs a host, and no spaces, as in http://192.168.1.5:81/stream".into(),
            );
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self {
            server,
            shown: format!("http://{host}{path}"),
            host: host.to_owned(),
            path: path.to_owned(),
            authorization: user.map(|user| STANDARD.encode(user)),
        })
    }
}

impl Address {
    /// The request for the pictures.
    #[must_use]
    pub fn request(&self) -> Vec<u8> {
        let authorization = self.authorization.as_ref();
        let authorization =
            authorization.map_or_else(String::new, |it| format!("Authorization: Basic {it}\r\n"));
        let Self { host, path, .. } = self;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{authorization}\
             User-Agent: amber\r\nAccept: multipart/x-mixed-replace, image/jpeg\r\n\r\n"
        )
        .into_bytes()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

// A password is not for logs.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Reads the answer to one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What has arrived of the head; `None` behind it.
    head: Option<Vec<u8>>,
    has_begun: bool,
    chunks: Option<Chunks>,
    /// A single picture ends with the answer.
    is_single: bool,
    is_over: bool,
    splitter: Splitter,
}

impl Answer {
    /// Takes bytes.
    ///
    /// # Errors
    /// These are not pictures. The error says what to check.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        if !self.has_begun {
            self.has_begun = true;
            self.head = Some(Vec::new());
        }
        let Some(head) = &mut self.head else {
            return self.body(bytes);
        };
        head.extend_from_slice(bytes);
        let Some(end) = end_of_head(head).filter(|end| *end <= MAX_HEAD) else {
            return match head.len() > MAX_HEAD {
                true => Err(NOT_HTTP.into()),
                false => Ok(()),
            };
        };
        let body = head.split_off(end);
        let head = Head::parse(head)?;
        head.check()?;
        self.head = None;
        self.is_single = head.mime.starts_with("image/");
        self.chunks = head.is_chunked.then(Chunks::default);
        if let Some(boundary) = &head.boundary {
            self.splitter.set_boundary(boundary);
        }
        self.body(&body)
    }

    /// The next picture.
    pub fn poll(&mut self) -> Option<Jpeg> {
        self.splitter.poll()
    }

    /// Whether the server has said that no more will come.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether this address has one picture, so that the next one needs another request.
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// What arrives instead of pictures, if the server says so.
    pub fn other_type(&self) -> Option<String> {
        let between = String::from_utf8_lossy(self.splitter.between()).to_ascii_lowercase();
        let types = between
            .lines()
            .filter_map(|line| line.strip_prefix("content-type:"));
        let last = types.map(str::trim).next_back()?;
        (!last.starts_with("image/j")).then(|| last.to_owned())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.chunks {
            Some(chunks) => {
                chunks.decode(bytes, |piece| self.splitter.push(piece))?;
                self.is_over |= chunks.state == ChunkState::Over;
            }
            None => self.splitter.push(bytes),
        }
        Ok(())
    }
}

const NOT_HTTP: &str = "what answers there does not speak HTTP: check host and port";

/// Where the empty line behind the head ends.
fn end_of_head(head: &[u8]) -> Option<usize> {
    let mut ends = (1..head.len()).filter(|at| head[*at] == b'\n');
    ends.find(|at| head[..*at].ends_with(b"\n") || head[..*at].ends_with(b"\n\r"))
        .map(|at| at + 1)
}

/// The lines before the pictures, as far as they matter.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    mime: String,
    boundary: Option<String>,
    is_chunked: bool,
    location: Option<String>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or_default().split_whitespace();
        let version = first.next().unwrap_or_default();
        let status = first.next().and_then(|status| status.parse().ok());
        let Some(status) = status.filter(|_| version.starts_with("HTTP/")) else {
            return Err(NOT_HTTP.into());
        };
        let mut head = Self {
            status,
            mime: String::new(),
            boundary: None,
            is_chunked: false,
            location: None,
        };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match &*name.trim().to_ascii_lowercase() {
                "content-type" => head.content_type(value),
                "transfer-encoding" => {
                    head.is_chunked = value.to_ascii_lowercase().contains("chunked")
                }
                "location" => head.location = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(head)
    }

    fn content_type(&mut self, value: &str) {
        let mut parts = value.split(';');
        self.mime = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let boundary = parts
            .filter_map(|part| part.split_once('='))
            .find_map(|(name, value)| {
                let is_it = name.trim().eq_ignore_ascii_case("boundary");
                // Some write the dashes that only belong before the parts.
                is_it.then(|| {
                    value
                        .trim()
                        .trim_matches('"')
                        .trim_start_matches('-')
                        .to_owned()
                })
            });
        self.boundary = boundary.filter(|boundary| !boundary.is_empty());
    }

    /// Whether pictures follow.
    fn check(&self) -> Result<(), String> {
        match self.status {
            200..=299 => {}
            300..=399 => {
                let to = self.location.as_deref().unwrap_or("another address");
                return Err(format!("the camera is at {to}: use this address"));
            }
            401 | 403 => {
                return Err("the camera wants another user and password: \
                            http://USER:PASSWORD@HOST/PATH"
                    .into());
            }
            404 => return Err("the camera has nothing at this path: check the address".into()),
            503 => return Err("the camera is busy: many serve one program only".into()),
            status => return Err(format!("the camera answers with the error {status}")),
        }
        match &*self.mime {
            ""
            | "multipart/x-mixed-replace"
            | "multipart/mixed"
            | "image/jpeg"
            | "image/jpg"
            | "video/x-motion-jpeg"
            | "video/x-mjpeg"
            | "application/octet-stream" => Ok(()),
            "text/html" => Err(
                "a web page is at this address: use that of its pictures, such as \
                                /stream, /video or /?action=stream"
                    .into(),
            ),
            other => Err(format!("{other} is at this address, and not JPEG pictures")),
        }
    }
}

/// The chunked transfer coding: `HEX LENGTH, line end, data, line end`, until a length of 0.
#[derive(Clone, Debug, Default)]
struct Chunks {
    state: ChunkState,
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    /// In the line with the length.
    #[default]
    Length,
    /// So many bytes of data are left.
    Data(usize),
    /// In the line end behind the data.
    LineEnd,
    Over,
}

impl Chunks {
    fn decode(&mut self, mut bytes: &[u8], mut found: impl FnMut(&[u8])) -> Result<(), String> {
        while let [first, rest @ ..] = bytes {
            match self.state {
                ChunkState::Over => return Ok(()),
                ChunkState::Data(left) => {
                    let (piece, others) = bytes.split_at(left.min(bytes.len()));
                    found(piece);
                    bytes = others;
                    self.state = match left - piece.len() {
                        0 => ChunkState::LineEnd,
                        left => ChunkState::Data(left),
                    };
                }
                ChunkState::LineEnd => {
                    bytes = rest;
                    if *first == b'\n' {
                        self.state = ChunkState::Length;
                    }
                }
                ChunkState::Length => {
                    bytes = rest;
                    if *first == b'\n' {
                        let length = self.length().ok_or(BROKEN_CHUNKS)?;
                        self.line.clear();
                        self.state = match length {
                            0 => ChunkState::Over,
                            length => ChunkState::Data(length),
                        };
                    } else if self.line.len() < MAX_CHUNK_LINE {
                        self.line.push(*first);
                    } else {
                        return Err(BROKEN_CHUNKS.into());
                    }
                }
            }
        }
        Ok(())
    }

    fn length(&self) -> Option<usize> {
        let line = std::str::from_utf8(&self.line).ok()?;
        let digits = line.split(';').next()?.trim();
        let length = usize::from_str_radix(digits, 16).ok()?;
        (length <= MAX_CHUNK).then_some(length)
    }
}

const BROKEN_CHUNKS: &str = "the camera sends chunks of HTTP that make no sense";

#[cfg(test)]
mod tests;
