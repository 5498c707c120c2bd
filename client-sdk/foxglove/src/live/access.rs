//! Access of viewers. PURE.
//!
//! On the loopback address, viewers need no token: programs, Foxglove's own page, the desktop
//! programs, and pages that this machine serves. Pages of other sites are refused. For other
//! machines the address has a token. A page of another site does not know it, so the origin does
//! not matter there. On the loopback address the `Host` must be an address of this machine,
//! because a foreign site can point its own name to it.

use std::net::SocketAddr;

use amber_web::{Origins, Own, Reach, Token};

/// Pages that run in the browser of this machine and connect to it.
const KNOWN: [&str; 2] = ["https://app.foxglove.dev", "https://studio.foxglove.dev"];

/// The rules of one server.
#[derive(Clone)]
pub(super) struct Access {
    reach: Reach,
    token: Option<Token>,
    origins: Origins,
}

impl Access {
    /// The rules for a server that listens at this address. A token is needed, and so made, only
    /// if others can reach it.
    pub(super) fn new<E>(
        listen: SocketAddr,
        origins: &[String],
        token: impl FnOnce() -> Result<Token, E>,
    ) -> Result<Self, E> {
        let reach = Reach::of(listen);
        let token = match reach {
            Reach::ThisMachine => None,
            Reach::Others => Some(token()?),
        };
        Ok(Self {
            reach,
            token,
            origins: Origins {
                listed: KNOWN
                    .map(str::to_owned)
                    .into_iter()
                    .chain(origins.to_vec())
                    .collect(),
                of_this_machine: true,
                own: Own::Never,
            },
        })
    }

    /// The token that viewers need, if any.
    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(Token::text)
    }

    /// Whether a viewer may connect: checks the path of its request, and the headers `Host` and
    /// `Origin`.
    ///
    /// # Errors
    /// The reason why it may not.
    pub(super) fn admit(
        &self,
        path: &str,
        host: Option<&str>,
        origin: Option<&str>,
    ) -> Result<(), &'static str> {
        if let Some(token) = &self.token {
            return match token.is(path.trim_start_matches('/')) {
                true => Ok(()),
                false => {
                    Err("wrong or missing token: use the address that `amber foxglove` printed")
                }
            };
        }
        if !self.reach.admits(host) {
            return Err(
                "this server is only for its own machine: connect to ws://localhost, or \
                        start it with --listen 0.0.0.0:8765 to serve other machines",
            );
        }
        // The desktop programs have a file. Pages of the network cannot have this origin.
        let is_file = origin.is_some_and(|origin| origin.starts_with("file://"));
        match is_file || self.origins.admit(origin, host) {
            true => Ok(()),
            false => Err(
                "pages of this site may not connect: start `amber foxglove` with --origin \
                          and the site",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_web::access::TOKEN_BYTES;

    use super::*;

    fn access(listen: &str, origins: &[&str]) -> Access {
        let origins: Vec<_> = origins.iter().map(|it| (*it).to_owned()).collect();
        let token = || Ok::<_, ()>(Token::new([7; TOKEN_BYTES]));
        Access::new(listen.parse().unwrap(), &origins, token).unwrap()
    }

    #[test]
    fn on_this_machine_viewers_need_no_token_but_a_known_origin() {
        let access = access("127.0.0.1:8765", &["http://lab:8080"]);
        assert_eq!(access.token(), None);
        for (host, origin, is_admitted) in [
            ("127.0.0.1:8765", None, true),
            ("localhost:8765", None, true),
            ("[::1]:8765", None, true),
            ("localhost:8765", Some("https://app.foxglove.dev"), true),
            ("localhost:8765", Some("http://localhost:8080"), true),
            ("localhost:8765", Some("http://127.0.0.1"), true),
            ("localhost:8765", Some("file://"), true),
            ("localhost:8765", Some("http://lab:8080"), true),
            ("localhost:8765", Some("https://evil.example"), false),
            (
                "localhost:8765",
                Some("https://localhost.evil.example"),
                false,
            ),
            (
                "localhost:8765",
                Some("https://app.foxglove.dev.evil.example"),
                false,
            ),
            ("localhost:8765", Some("null"), false),
            ("localhost:8765", Some(""), false),
            // The name of a foreign site that points to this machine.
            ("evil.example:8765", None, false),
            ("evil.example:8765", Some("http://evil.example:8765"), false),
        ] {
            let found = access.admit("/", Some(host), origin);
            assert_eq!(found.is_ok(), is_admitted, "{host} {origin:?}: {found:?}");
        }
        assert!(access.admit("/", None, None).is_err());
    }

    #[test]
    fn viewers_of_other_machines_need_the_token() {
        for listen in ["0.0.0.0:8765", "192.168.1.5:8765", "[::]:8765"] {
            let access = access(listen, &[]);
            let token = access.token().unwrap();
            let admitted = |path: &str| access.admit(path, Some("robot:8765"), Some("http://x"));
            assert_eq!(admitted(&format!("/{token}")), Ok(()));
            for wrong in ["/", "", "/x", &token[..5], &format!("/{token}x")] {
                assert!(admitted(wrong).is_err(), "{wrong}");
            }
        }
    }
}
