//! Decides which requests a server may answer. PURE.
//!
//! A server on the loopback address is for this machine only. The header `Host` must then be an
//! address or the name of this machine, because a foreign site can point its own name to it. A server
//! that others can reach asks for a token instead.

use std::net::{IpAddr, SocketAddr};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// The machines that can reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only the machine of the server.
    ThisMachine,
    /// Also other machines.
    Others,
}

impl Reach {
    /// The reach of a server that listens at this address.
    #[must_use]
    pub fn of(listen: SocketAddr) -> Self {
        match listen.ip().to_canonical().is_loopback() {
            true => Self::ThisMachine,
            false => Self::Others,
        }
    }

    /// Whether a request with this header `Host` may be answered.
    #[must_use]
    pub fn admits(self, host: Option<&str>) -> bool {
        match self {
            Self::ThisMachine => host.is_some_and(is_this_machine),
            Self::Others => true,
        }
    }
}

/// Whether a host, perhaps with a port, is a loopback address or the name of this machine.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    match address_of(host) {
        Some(address) => address.to_canonical().is_loopback(),
        None => name_of(host).eq_ignore_ascii_case("localhost"),
    }
}

/// The IP address of a host, perhaps with a port; `None` if it is a name.
fn address_of(host: &str) -> Option<IpAddr> {
    name_of(host).parse().ok()
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    let without_port = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    without_port.trim_start_matches('[').trim_end_matches(']')
}

/// The pages that may connect. Browsers let any page in the world open a WebSocket to this machine, and
/// tell only the page's origin. Programs send none (RFC 6455, section 10.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origins {
    /// These, such as `https://robots.example`.
    pub listed: Vec<String>,
    /// All pages of this machine.
    pub of_this_machine: bool,
    /// Pages of the server itself.
    pub own: Own,
}

/// Which pages count as those of the server itself: their origin has the host and port of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// None: it has no pages.
    Never,
    /// Those at an IP address. A name could belong to a foreign site that has pointed it to this host.
    ByAddress,
    /// Those at any host, because the page also needs a token or a host of this machine.
    ByAnyHost,
}

impl Origins {
    /// Whether a request with these headers `Origin` and `Host` may be answered.
    #[must_use]
    pub fn admit(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else {
            return true;
        };
        let mut listed = self.listed.iter();
        if listed.any(|it| it.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Some((_, authority)) = origin.split_once("://") else {
            return false;
        };
        if self.of_this_machine && is_this_machine(authority) {
            return true;
        }
        let is_own = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
        match self.own {
            Own::Never => false,
            Own::ByAddress => is_own && address_of(authority).is_some(),
            Own::ByAnyHost => is_own,
        }
    }
}

/// The number of random bytes in a token.
pub const TOKEN_BYTES: usize = 16;

/// A secret in the address that a user opens.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The token of these random bytes.
    #[must_use]
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Its text. It needs no escapes in a URL.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is the token. The time that this takes does not depend on the token.
    #[must_use]
    pub fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// A log line must not contain a token.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_and_localhost_are_this_machine() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "127.8.0.1",
            "[::1]",
            "[::1]:80",
            "localhost:1",
            "LOCALHOST",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.0.1",
            "0.0.0.0",
            "localhost:80:80",
            "127.0.0.1@evil.example",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn a_server_on_the_loopback_address_needs_a_host_of_this_machine() {
        let reach = |listen: &str| Reach::of(listen.parse().unwrap());
        for listen in ["127.0.0.1:1", "[::1]:1", "127.0.0.2:0"] {
            assert_eq!(reach(listen), Reach::ThisMachine, "{listen}");
        }
        for listen in ["0.0.0.0:1", "[::]:1", "192.168.1.5:1"] {
            assert_eq!(reach(listen), Reach::Others, "{listen}");
        }
        assert!(Reach::ThisMachine.admits(Some("localhost:1")));
        assert!(!Reach::ThisMachine.admits(Some("evil.example:1")));
        assert!(!Reach::ThisMachine.admits(None));
        assert!(Reach::Others.admits(Some("robot.local:1")) && Reach::Others.admits(None));
    }

    #[test]
    fn a_token_is_equal_only_to_its_whole_text_and_does_not_get_into_a_log() {
        let token = Token::new([7; TOKEN_BYTES]);
        assert!(token.is(token.text()));
        let longer = format!("{}x", token.text());
        for wrong in ["", "x", &token.text()[..5], &longer] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert!(!format!("{token:?}").contains(token.text()));
    }
}
