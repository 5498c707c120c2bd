//! The request for a WebSocket: its target, and the check of its origin. PURE.

use httparse::{EMPTY_HEADER, Status};

use crate::access::{Advice, Origins, Refused};
use crate::limits::MAX_HEAD;

const MAX_HEADERS: usize = 64;

/// The decision about a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decision {
    /// The request is incomplete so far.
    Incomplete,
    /// Accept a WebSocket. The key is that of the client.
    Accept {
        /// `Sec-WebSocket-Key`.
        key: String,
        /// The end of the request.
        length: usize,
    },
    /// Send the page.
    Page,
    /// Refuse with this status.
    Refuse(Refusal),
}

/// The reason why a connection is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Not an HTTP request, or not a valid one.
    Invalid,
    /// A request for something other than a WebSocket or the page.
    NotFound,
    /// The page that connects is not from an allowed origin.
    Origin(Refused),
    /// A version of the protocol other than 13.
    Version,
}

impl Refusal {
    /// The status line and the reason.
    #[must_use]
    pub fn response(self, advice: &Advice) -> String {
        let (status, more, text) = match self {
            Self::Invalid => ("400 Bad Request", "", "invalid request"),
            Self::NotFound => ("404 Not Found", "", "the page is at /"),
            Self::Origin(refused) => ("403 Forbidden", "", advice.about(refused)),
            Self::Version => (
                "426 Upgrade Required",
                "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n",
                "unsupported WebSocket version",
            ),
        };
        format!(
            "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{text}\n",
            text.len() + 1
        )
    }

    /// The reason, for counters.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Invalid => "invalid HTTP request",
            Self::NotFound => "unknown HTTP path",
            Self::Origin(_) => "origin not allowed",
            Self::Version => "unsupported WebSocket version",
        }
    }
}

/// Decides about the first bytes of a connection.
#[must_use]
pub fn decide(bytes: &[u8], origins: &Origins) -> Decision {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => return Decision::Incomplete,
        Ok(Status::Partial) | Err(_) => return Decision::Refuse(Refusal::Invalid),
    };
    let header = |name: &str| {
        let same = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        let found = request.headers.iter().find(same)?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let lists = |name: &str, word: &str| {
        let words = header(name).unwrap_or("").split(',');
        words
            .map(str::trim)
            .any(|one| one.eq_ignore_ascii_case(word))
    };
    if request.method != Some("GET") {
        return Decision::Refuse(Refusal::Invalid);
    }
    if !lists("Upgrade", "websocket") {
        return match request.path {
            Some("/") => Decision::Page,
            _ => Decision::Refuse(Refusal::NotFound),
        };
    }
    if header("Sec-WebSocket-Version") != Some("13") {
        return Decision::Refuse(Refusal::Version);
    }
    if let Err(refused) = origins.admit(header("Origin"), header("Host")) {
        return Decision::Refuse(Refusal::Origin(refused));
    }
    match header("Sec-WebSocket-Key") {
        Some(key) if lists("Connection", "Upgrade") && (1..=64).contains(&key.len()) => {
            Decision::Accept {
                key: key.into(),
                length,
            }
        }
        _ => Decision::Refuse(Refusal::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::access::Own;

    const ADVICE: Advice = Advice {
        host: "host",
        origin: "use allow_origin",
        from_disk: "use allow_origin = [\"null\"]",
        token: "token",
    };

    fn origins(listed: &[&str]) -> Origins {
        Origins {
            listed: listed.iter().map(|&it| it.to_owned()).collect(),
            of_this_machine: true,
            own: Own::ByAddress,
        }
    }

    fn upgrade(more: &str) -> String {
        format!(
            "GET / HTTP/1.1\r\nHost: 192.168.0.5:9090\r\nConnection: keep-alive, Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
        )
    }

    #[test]
    fn programs_and_allowed_pages_may_connect() {
        let configured = origins(&["https://robots.example"]);
        let cases = [
            ("", true),
            ("Origin: http://localhost:8000\r\n", true),
            ("Origin: http://127.0.0.1:9090\r\n", true),
            ("Origin: http://[::1]\r\n", true),
            ("Origin: http://192.168.0.5:9090\r\n", true),
            ("Origin: https://robots.example\r\n", true),
            ("Origin: http://192.168.0.6:9090\r\n", false),
            ("Origin: http://192.168.0.5\r\n", false),
            ("Origin: https://evil.example\r\n", false),
            ("Origin: http://localhost.evil.example\r\n", false),
            ("Origin: http://127.0.0.1.evil.example\r\n", false),
            ("Origin: null\r\n", false),
            ("Origin: \r\n", false),
        ];
        for (more, allowed) in cases {
            let text = upgrade(more);
            let expected = match allowed {
                true => Decision::Accept {
                    key: "dGhlIHNhbXBsZSBub25jZQ==".into(),
                    length: text.len(),
                },
                false => Decision::Refuse(Refusal::Origin(match more.contains("null") {
                    true => Refused::FromDisk,
                    false => Refused::Origin,
                })),
            };
            assert_eq!(decide(text.as_bytes(), &configured), expected, "{more}");
        }
    }

    #[test]
    fn a_name_that_points_here_does_not_make_a_page_ours() {
        let text = upgrade("Origin: http://evil.example:9090\r\n")
            .replace("Host: 192.168.0.5:9090", "Host: evil.example:9090");
        assert_eq!(
            decide(text.as_bytes(), &origins(&[])),
            Decision::Refuse(Refusal::Origin(Refused::Origin))
        );
    }

    #[test]
    fn other_requests_get_the_page_or_an_error() {
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let old = upgrade("").replace("Version: 13", "Version: 8");
        let no_key = upgrade("").replace("Key: dGhlIHNhbXBsZSBub25jZQ==", "Key:");
        let cases = [
            (get("/"), Decision::Page),
            (get("/x"), Decision::Refuse(Refusal::NotFound)),
            (
                get("/").replace("GET", "POST"),
                Decision::Refuse(Refusal::Invalid),
            ),
            ("\u{1}\u{2}".into(), Decision::Refuse(Refusal::Invalid)),
            (String::new(), Decision::Incomplete),
            ("GET / HTTP/1.1\r\nHost".into(), Decision::Incomplete),
            (old, Decision::Refuse(Refusal::Version)),
            (no_key, Decision::Refuse(Refusal::Invalid)),
            (
                format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(MAX_HEAD)),
                Decision::Refuse(Refusal::Invalid),
            ),
        ];
        for (text, expected) in cases {
            let shown = &text[..text.len().min(40)];
            assert_eq!(
                decide(text.as_bytes(), &origins(&[])),
                expected,
                "{shown:?}"
            );
        }
    }

    #[test]
    fn a_refusal_is_a_complete_response() {
        for refusal in [
            Refusal::Invalid,
            Refusal::NotFound,
            Refusal::Origin(Refused::Origin),
            Refusal::Origin(Refused::FromDisk),
            Refusal::Version,
        ] {
            let response = refusal.response(&ADVICE);
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            assert!(
                head.contains(&format!("Content-Length: {}", body.len())),
                "{head}"
            );
        }
    }

    #[test]
    fn pages_from_disk_may_connect_if_that_is_allowed_and_else_the_option_is_named() {
        let text = upgrade("Origin: null\r\n");
        let allowed = decide(text.as_bytes(), &origins(&["null"]));
        assert!(matches!(allowed, Decision::Accept { .. }), "{allowed:?}");
        let Decision::Refuse(refusal) = decide(text.as_bytes(), &origins(&[])) else {
            panic!("it is accepted");
        };
        assert!(
            refusal
                .response(&ADVICE)
                .contains("allow_origin = [\"null\"]")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_decided(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decide(&bytes, &origins(&[]));
        }
    }
}
