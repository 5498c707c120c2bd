//! Permissions to view and to drive. PURE.
//!
//! On the loopback address every page of the dashboard itself may drive. On other addresses a page
//! needs a token: one is for driving, one for viewing only. A page of another origin is refused in
//! any case. On the loopback address the `Host` must be an address of this machine, because a
//! foreign site can point its own name to it.

use std::net::SocketAddr;

use amber_web::{Origins, Own, Reach, Token};
use serde::Serialize;

/// The permission of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// View only.
    Look,
    /// View, drive, and change drivers.
    Drive,
}

/// The rules of one dashboard.
#[derive(Clone, Debug)]
pub struct Access {
    reach: Reach,
    tokens: Option<Tokens>,
}

/// Pages of the dashboard itself.
const OWN_PAGES: Origins = Origins {
    listed: Vec::new(),
    of_this_machine: false,
    own: Own::ByAnyHost,
};

/// The secrets of pages that are not on this machine.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// For driving.
    pub drive: Token,
    /// For viewing only.
    pub look: Token,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The page is from another site.
    Origin,
    /// The request names another host.
    Host,
}

impl Refusal {
    /// The problem and its solution.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Origin => "pages of other sites cannot connect: open the dashboard's own page",
            Self::Host => {
                "this dashboard serves only its own machine: open it as http://localhost, or \
                 start it with --listen 0.0.0.0:8026 to serve other machines"
            }
        }
    }
}

impl Access {
    /// The rules for a dashboard that listens at this address. `tokens` are needed, and so made,
    /// only if others can reach it.
    pub fn new<E>(
        listen: SocketAddr,
        tokens: impl FnOnce() -> Result<Tokens, E>,
    ) -> Result<Self, E> {
        let reach = Reach::of(listen);
        let tokens = match reach {
            Reach::ThisMachine => None,
            Reach::Others => Some(tokens()?),
        };
        Ok(Self { reach, tokens })
    }

    /// The tokens, if pages need one.
    #[must_use]
    pub fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// Whether a request may be answered, by its headers `Host` and `Origin`. Programs send no
    /// origin.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn admit(&self, host: Option<&str>, origin: Option<&str>) -> Result<(), Refusal> {
        if !self.reach.admits(host) {
            return Err(Refusal::Host);
        }
        match OWN_PAGES.admit(origin, host) {
            true => Ok(()),
            false => Err(Refusal::Origin),
        }
    }

    /// The permission of a page with this token; `None` if it may not even view.
    #[must_use]
    pub fn role(&self, token: Option<&str>) -> Option<Role> {
        let Some(tokens) = &self.tokens else {
            return Some(Role::Drive);
        };
        let token = token.unwrap_or_default();
        // Both tokens are always compared, so the time reveals nothing.
        match (tokens.drive.is(token), tokens.look.is(token)) {
            (true, _) => Some(Role::Drive),
            (false, true) => Some(Role::Look),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_web::access::TOKEN_BYTES;

    use super::*;

    fn access(listen: &str) -> Access {
        let tokens = || {
            Ok::<_, ()>(Tokens {
                drive: Token::new([1; TOKEN_BYTES]),
                look: Token::new([2; TOKEN_BYTES]),
            })
        };
        Access::new(listen.parse().unwrap(), tokens).unwrap()
    }

    #[test]
    fn on_this_machine_no_token_is_needed() {
        for listen in ["127.0.0.1:8026", "[::1]:8026", "127.0.0.2:0"] {
            assert_eq!(access(listen).role(None), Some(Role::Drive), "{listen}");
        }
    }

    #[test]
    fn others_need_a_token_and_one_of_them_is_view_only() {
        for listen in ["0.0.0.0:8026", "[::]:8026", "192.168.1.5:8026"] {
            let access = access(listen);
            let tokens = access.tokens().unwrap();
            assert_eq!(access.role(Some(tokens.drive.text())), Some(Role::Drive));
            assert_eq!(access.role(Some(tokens.look.text())), Some(Role::Look));
            let part = &tokens.drive.text()[1..];
            for wrong in [None, Some(""), Some("x"), Some(part)] {
                assert_eq!(access.role(wrong), None, "{listen} {wrong:?}");
            }
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for (listen, host, origin, expected) in [
            ("127.0.0.1:8026", "127.0.0.1:8026", None, Ok(())),
            ("127.0.0.1:8026", "localhost:8026", None, Ok(())),
            ("127.0.0.1:8026", "[::1]:8026", None, Ok(())),
            (
                "127.0.0.1:8026",
                "localhost:8026",
                Some("http://localhost:8026"),
                Ok(()),
            ),
            (
                "127.0.0.1:8026",
                "127.0.0.1:8026",
                Some("https://evil.example"),
                Err(Refusal::Origin),
            ),
            // Another program of this machine.
            (
                "127.0.0.1:8026",
                "127.0.0.1:8026",
                Some("http://127.0.0.1:3000"),
                Err(Refusal::Origin),
            ),
            (
                "127.0.0.1:8026",
                "127.0.0.1:8026",
                Some("null"),
                Err(Refusal::Origin),
            ),
            // The name of a foreign site that points to this machine.
            (
                "127.0.0.1:8026",
                "evil.example:8026",
                Some("http://evil.example:8026"),
                Err(Refusal::Host),
            ),
            // With tokens, the robot may have a name.
            (
                "0.0.0.0:8026",
                "robot.local:8026",
                Some("http://robot.local:8026"),
                Ok(()),
            ),
            (
                "0.0.0.0:8026",
                "robot.local:8026",
                Some("http://other.local:8026"),
                Err(Refusal::Origin),
            ),
        ] {
            let found = access(listen).admit(Some(host), origin);
            assert_eq!(found, expected, "{host} {origin:?}");
        }
        assert_eq!(access("127.0.0.1:1").admit(None, None), Err(Refusal::Host));
    }
}
