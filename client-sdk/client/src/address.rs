//! The address of a mediator, as people write it. PURE.

use std::fmt;
use std::str::FromStr;

/// The UDP port on which mediators listen by default.
pub const DEFAULT_PORT: u16 = 26233;

/// The address of a mediator: `HOST`, `HOST:PORT`, `IPV6` or `[IPV6]:PORT`.
///
/// The port is 26233 unless it is given, the host is 127.0.0.1 unless it is
/// given: `27777` and `:27777` are ports of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediatorAddress {
    host: String,
    port: u16,
}

/// The text is not the address of a mediator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAddress {
    /// There is no host before the port.
    #[error("the host is missing")]
    NoHost,
    /// An IPv6 address begins with `[` and does not end with `]`.
    #[error("a ']' is missing")]
    NoBracket,
    /// The port is not a number from 0 to 65535.
    #[error("invalid port '{0}'")]
    Port(String),
}

impl MediatorAddress {
    /// The name or the IP address of the host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Default for MediatorAddress {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: DEFAULT_PORT,
        }
    }
}

impl FromStr for MediatorAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let usual = Self::default();
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or(InvalidAddress::NoBracket)?;
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(InvalidAddress::Port(rest.into())),
                }
            }
            // More than one colon: an IPv6 address without brackets.
            None if text.matches(':').count() > 1 => (text, None),
            None if text.parse::<u16>().is_ok() => (usual.host.as_str(), Some(text)),
            None => match text.split_once(':') {
                Some(("", port)) => (usual.host.as_str(), Some(port)),
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() {
            return Err(InvalidAddress::NoHost);
        }
        let invalid_port = |port: &str| InvalidAddress::Port(port.into());
        let port = match port {
            None => usual.port,
            Some(port) => port.parse().map_err(|_| invalid_port(port))?,
        };
        Ok(Self {
            host: host.into(),
            port,
        })
    }
}

impl fmt::Display for MediatorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_get_the_default() {
        for (text, read) in [
            ("127.0.0.1", "127.0.0.1:26233"),
            ("robot", "robot:26233"),
            ("robot:1", "robot:1"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("27777", "127.0.0.1:27777"),
            (":27777", "127.0.0.1:27777"),
            ("::1", "[::1]:26233"),
            ("[::1]", "[::1]:26233"),
            ("[fe80::1%eth0]:7", "[fe80::1%eth0]:7"),
        ] {
            assert_eq!(text.parse::<MediatorAddress>().unwrap().to_string(), read);
        }
    }

    #[test]
    fn invalid_addresses_are_explained() {
        for (text, message) in [
            ("", "the host is missing"),
            ("[]:1", "the host is missing"),
            ("[::1", "a ']' is missing"),
            ("[::1]7", "invalid port '7'"),
            ("robot:", "invalid port ''"),
            ("robot:x", "invalid port 'x'"),
            ("robot:70000", "invalid port '70000'"),
        ] {
            let error = text.parse::<MediatorAddress>().unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }
}
