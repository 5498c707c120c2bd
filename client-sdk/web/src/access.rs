//! Decides which requests a server may answer. PURE.
//!
//! This is the only place with such rules: for the dashboard, the gateways with WebSockets, the server
//! for viewers, and the metrics.
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
    ///
    /// # Errors
    /// The page may not connect.
    pub fn admit(&self, origin: Option<&str>, host: Option<&str>) -> Result<(), Refused> {
        let Some(origin) = origin else {
            return Ok(());
        };
        let mut listed = self.listed.iter();
        if listed.any(|it| it.eq_ignore_ascii_case(origin)) {
            return Ok(());
        }
        if origin.eq_ignore_ascii_case(FROM_DISK) {
            return Err(Refused::FromDisk);
        }
        let Some((_, authority)) = origin.split_once("://") else {
            return Err(Refused::Origin);
        };
        if self.of_this_machine && is_this_machine(authority) {
            return Ok(());
        }
        let is_own = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
        let is_admitted = match self.own {
            Own::Never => false,
            Own::ByAddress => is_own && address_of(authority).is_some(),
            Own::ByAnyHost => is_own,
        };
        match is_admitted {
            true => Ok(()),
            false => Err(Refused::Origin),
        }
    }
}

/// The origin of a page that is opened from disk, and of some other pages without a site. It can be
/// [listed](Origins::listed) like a site.
pub const FROM_DISK: &str = "null";

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It names another host.
    Host,
    /// Its page is from another site.
    Origin,
    /// Its page is opened from disk.
    FromDisk,
    /// Its token is wrong or missing.
    Token,
}

/// What people are told about refused requests: each text names the option that allows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// See [`Refused::Host`].
    pub host: &'static str,
    /// See [`Refused::Origin`].
    pub origin: &'static str,
    /// See [`Refused::FromDisk`].
    pub from_disk: &'static str,
    /// See [`Refused::Token`].
    pub token: &'static str,
}

impl Advice {
    /// The text for a refusal.
    #[must_use]
    pub fn about(&self, refused: Refused) -> &'static str {
        match refused {
            Refused::Host => self.host,
            Refused::Origin => self.origin,
            Refused::FromDisk => self.from_disk,
            Refused::Token => self.token,
        }
    }
}

/// What a page or program may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// View only.
    Look,
    /// View, drive, and change drivers.
    Drive,
}

/// The secrets in the addresses that a server prints.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// For driving.
    pub drive: Token,
    /// For viewing only, if that is possible.
    pub look: Option<Token>,
}

impl Role {
    /// Its name for pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Drive => "drive",
        }
    }
}

/// The rules of one server.
#[derive(Clone, Debug)]
pub struct Access {
    reach: Reach,
    origins: Origins,
    tokens: Option<Tokens>,
}

impl Access {
    /// The rules of a server that listens at this address. `tokens` are needed, and so made, only if
    /// others can reach it.
    ///
    /// # Errors
    /// The tokens cannot be made.
    pub fn new<E>(
        listen: SocketAddr,
        origins: Origins,
        tokens: impl FnOnce() -> Result<Tokens, E>,
    ) -> Result<Self, E> {
        let reach = Reach::of(listen);
        let tokens = match reach {
            Reach::ThisMachine => None,
            Reach::Others => Some(tokens()?),
        };
        Ok(Self {
            reach,
            origins,
            tokens,
        })
    }

    /// The tokens, if requests need one.
    #[must_use]
    pub fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// Whether a request may be answered, by its headers `Host` and `Origin`. Programs send no
    /// origin.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn admit(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), Refused> {
        match self.reach.admits(host) {
            true => self.origins.admit(origin, host),
            false => Err(Refused::Host),
        }
    }

    /// The same for a server whose addresses have the token as their path. A page of another site does
    /// not know the token, so with one the origin does not matter.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn admit_at(
        &self,
        path: &str,
        host: Option<&str>,
        origin: Option<&str>,
    ) -> Result<(), Refused> {
        match &self.tokens {
            Some(_) => self.role(Some(path.trim_start_matches('/'))).map(drop),
            None => self.admit(host, origin),
        }
    }

    /// What a request with this token may do.
    ///
    /// # Errors
    /// It may not even view.
    pub fn role(&self, token: Option<&str>) -> Result<Role, Refused> {
        let Some(tokens) = &self.tokens else {
            return Ok(Role::Drive);
        };
        let token = token.unwrap_or_default();
        // Both tokens are always compared, so the time reveals nothing.
        let may_look = tokens.look.as_ref().is_some_and(|look| look.is(token));
        match (tokens.drive.is(token), may_look) {
            (true, _) => Ok(Role::Drive),
            (false, true) => Ok(Role::Look),
            (false, false) => Err(Refused::Token),
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

    /// The token with this text; `None` if that is none.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        bytes.try_into().ok().map(Self::new)
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

    fn access(listen: &str, listed: &[&str]) -> Access {
        let tokens = || {
            Ok::<_, ()>(Tokens {
                drive: Token::new([1; TOKEN_BYTES]),
                look: Some(Token::new([2; TOKEN_BYTES])),
            })
        };
        let origins = Origins {
            listed: listed.iter().map(|&it| it.to_owned()).collect(),
            of_this_machine: false,
            own: Own::ByAnyHost,
        };
        Access::new(listen.parse().unwrap(), origins, tokens).unwrap()
    }

    #[test]
    fn on_this_machine_no_token_is_needed() {
        for listen in ["127.0.0.1:8026", "[::1]:8026", "127.0.0.2:0"] {
            assert_eq!(access(listen, &[]).role(None), Ok(Role::Drive), "{listen}");
        }
    }

    #[test]
    fn others_need_a_token_and_one_of_them_is_view_only() {
        for listen in ["0.0.0.0:8026", "[::]:8026", "192.168.1.5:8026"] {
            let access = access(listen, &[]);
            let tokens = access.tokens().unwrap();
            assert_eq!(access.role(Some(tokens.drive.text())), Ok(Role::Drive));
            let look = tokens.look.as_ref().unwrap();
            assert_eq!(access.role(Some(look.text())), Ok(Role::Look));
            let part = &tokens.drive.text()[1..];
            for wrong in [None, Some(""), Some("x"), Some(part)] {
                assert_eq!(
                    access.role(wrong),
                    Err(Refused::Token),
                    "{listen} {wrong:?}"
                );
            }
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let (here, all) = ("127.0.0.1:8026", "0.0.0.0:8026");
        for (listen, host, origin, expected) in [
            (here, "127.0.0.1:8026", None, Ok(())),
            (here, "localhost:8026", None, Ok(())),
            (here, "[::1]:8026", None, Ok(())),
            (
                here,
                "localhost:8026",
                Some("http://localhost:8026"),
                Ok(()),
            ),
            (
                here,
                "127.0.0.1:8026",
                Some("https://evil.example"),
                Err(Refused::Origin),
            ),
            // Another program of this machine.
            (
                here,
                "127.0.0.1:8026",
                Some("http://127.0.0.1:3000"),
                Err(Refused::Origin),
            ),
            (here, "127.0.0.1:8026", Some("null"), Err(Refused::FromDisk)),
            (here, "127.0.0.1:8026", Some(""), Err(Refused::Origin)),
            // The name of a foreign site that points to this machine.
            (
                here,
                "evil.example:8026",
                Some("http://evil.example:8026"),
                Err(Refused::Host),
            ),
            // With tokens, the robot may have a name.
            (
                all,
                "robot.local:8026",
                Some("http://robot.local:8026"),
                Ok(()),
            ),
            (
                all,
                "robot.local:8026",
                Some("http://other.local:8026"),
                Err(Refused::Origin),
            ),
        ] {
            let found = access(listen, &[]).admit(Some(host), origin);
            assert_eq!(found, expected, "{host} {origin:?}");
        }
        let without_host = access("127.0.0.1:1", &[]).admit(None, None);
        assert_eq!(without_host, Err(Refused::Host));
    }

    #[test]
    fn a_token_in_the_path_admits_any_page() {
        let here = access("127.0.0.1:8765", &["file://"]);
        for (path, host, origin, expected) in [
            ("/", "localhost:8765", None, Ok(())),
            ("/", "localhost:8765", Some("file://"), Ok(())),
            (
                "/",
                "localhost:8765",
                Some("http://x"),
                Err(Refused::Origin),
            ),
            ("/", "evil.example:8765", None, Err(Refused::Host)),
        ] {
            let found = here.admit_at(path, Some(host), origin);
            assert_eq!(found, expected, "{host} {origin:?}");
        }
        for listen in ["0.0.0.0:8765", "192.168.1.5:8765", "[::]:8765"] {
            let access = access(listen, &[]);
            let token = access.tokens().unwrap().drive.text();
            let admit = |path: &str| access.admit_at(path, Some("robot:8765"), Some("http://x"));
            assert_eq!(admit(&format!("/{token}")), Ok(()));
            for wrong in ["/", "", "/x", &token[..5], &format!("/{token}x")] {
                assert_eq!(admit(wrong), Err(Refused::Token), "{wrong}");
            }
        }
    }

    #[test]
    fn listed_sites_and_pages_from_disk_may_connect() {
        let access = access("127.0.0.1:1", &["https://lab.example", FROM_DISK]);
        let admit = |origin| access.admit(Some("localhost:1"), Some(origin));
        assert_eq!(admit("null"), Ok(()));
        assert_eq!(admit("https://lab.example"), Ok(()));
        assert_eq!(admit("https://lab.example.evil"), Err(Refused::Origin));
    }

    #[test]
    fn a_token_is_equal_only_to_its_whole_text_and_does_not_get_into_a_log() {
        let token = Token::new([7; TOKEN_BYTES]);
        assert!(token.is(token.text()));
        let again = Token::of_text(token.text()).unwrap();
        assert!(again.is(token.text()));
        assert!(Token::of_text(&token.text()[..5]).is_none());
        let longer = format!("{}x", token.text());
        for wrong in ["", "x", &token.text()[..5], &longer] {
            assert!(!token.is(wrong), "{wrong}");
        }
        assert!(!format!("{token:?}").contains(token.text()));
    }
}
