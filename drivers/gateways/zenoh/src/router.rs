//! A Zenoh router in this program, for a fleet that has no `zenohd`. IO.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use zenoh::{Config, Session};

use crate::session::plain;

use crate::limits::{MAX_ROUTED, MAX_SESSIONS};

/// The settings of the router.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A configuration of `zenohd`, such as the `router.json5` of `amber-zenoh access`.
    pub config: Option<PathBuf>,
    /// The addresses to listen on, such as `tcp/127.0.0.1:7447`; if there are none, those of the
    /// configuration.
    pub listen: Vec<String>,
}

/// The reason why there is no router.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The file is missing or cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Zenoh does not take the configuration, or the endpoint has another transport.
    #[error("invalid configuration of the router: {0}")]
    Refused(String),
    /// For example, the port is taken.
    #[error("no router at {at}: {why}")]
    Failed {
        /// The intended address.
        at: String,
        /// The reason.
        why: String,
    },
}

/// A router that runs until it is closed.
#[derive(Debug)]
pub struct Router {
    session: Session,
    /// The addresses that it listens on.
    pub listen: Vec<String>,
    /// Whether anyone who reaches it may drive all robots: it requires no certificates, and is
    /// reachable from other machines.
    pub is_open: bool,
}

impl Router {
    /// Starts a router.
    ///
    /// # Errors
    /// See [`RouterError`].
    pub async fn start(options: &Options) -> Result<Self, RouterError> {
        let mut config = match &options.config {
            Some(path) => read(path)?,
            None => Config::from_json5(&usual().to_string()).map_err(refused)?,
        };
        if let Some(unknown) = options.listen.iter().find(|it| !is_endpoint(it)) {
            let why = format!("'{unknown}' does not begin with tcp/ or tls/");
            return Err(RouterError::Refused(why));
        }
        if !options.listen.is_empty() {
            let endpoints = json!(options.listen).to_string();
            (config.insert_json5("listen/endpoints", &endpoints)).map_err(refused)?;
        }
        let listen = endpoints(&config);
        let opened = zenoh::open(config).await;
        let session = opened.map_err(|error| RouterError::Failed {
            at: listen.join(" "),
            why: plain(&error),
        })?;
        Ok(Self {
            session,
            is_open: listen.iter().any(|it| is_open(it)),
            listen,
        })
    }

    /// Ends the router and all its links.
    ///
    /// # Errors
    /// Those of Zenoh.
    pub async fn close(self) -> Result<(), zenoh::Error> {
        self.session.close().await
    }
}

/// Without a file: this machine only, without discovery.
fn usual() -> serde_json::Value {
    json!({
        "mode": "router",
        "listen": { "endpoints": ["tcp/127.0.0.1:7447"] },
        "scouting": scouting(),
        "timestamping": { "enabled": true },
        "transport": {
            "unicast": { "max_sessions": MAX_SESSIONS },
            "link": { "rx": { "max_message_size": MAX_ROUTED } },
        },
    })
}

/// Nodes of ROS 2 are peers: they send each other nothing through the router, which only tells them
/// where the others are. Without that they would not find each other.
pub(crate) fn scouting() -> serde_json::Value {
    json!({ "multicast": { "enabled": false }, "gossip": { "enabled": true } })
}

fn read(path: &Path) -> Result<Config, RouterError> {
    let text = std::fs::read_to_string(path).map_err(|error| RouterError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let mut config = Config::from_json5(&text).map_err(refused)?;
    // Files for `zenohd` may leave it out.
    config.insert_json5("mode", "\"router\"").map_err(refused)?;
    Ok(config)
}

/// The listening addresses in the configuration.
fn endpoints(config: &Config) -> Vec<String> {
    let json = config.get_json("listen/endpoints").unwrap_or_default();
    match serde_json::from_str(&json) {
        Ok(serde_json::Value::Array(list)) => texts(&list),
        // One list for each mode.
        Ok(serde_json::Value::Object(modes)) => {
            let list = modes.get("router").and_then(|it| it.as_array());
            list.map_or_else(Vec::new, |it| texts(it))
        }
        _ => Vec::new(),
    }
}

fn texts(list: &[serde_json::Value]) -> Vec<String> {
    let texts = list.iter().filter_map(|it| it.as_str());
    texts.map(str::to_owned).collect()
}

/// Whether it has a transport that this program supports.
fn is_endpoint(text: &str) -> bool {
    text.starts_with("tcp/") || text.starts_with("tls/")
}

/// Whether others than this machine reach an endpoint, without certificates.
fn is_open(endpoint: &str) -> bool {
    let Some(address) = endpoint.strip_prefix("tcp/") else {
        return false;
    };
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let is_local = match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_loopback(),
        Err(_) => address.starts_with("localhost:"),
    };
    !is_local
}

fn refused(error: zenoh::Error) -> RouterError {
    RouterError::Refused(plain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_for_others_without_certificates_is_open() {
        for (endpoint, open) in [
            ("tcp/127.0.0.1:7447", false),
            ("tcp/[::1]:7447", false),
            ("tcp/localhost:7447", false),
            ("tcp/0.0.0.0:7447", true),
            ("tcp/192.168.0.7:7447", true),
            ("tcp/[::]:7447#iface=eth0", true),
            ("tcp/fleet.example:7447", true),
            ("tls/0.0.0.0:7447", false),
        ] {
            assert_eq!(is_open(endpoint), open, "{endpoint}");
        }
    }

    #[test]
    fn it_listens_on_this_machine_unless_the_file_or_the_user_says_otherwise() {
        let usual = Config::from_json5(&usual().to_string()).unwrap();
        assert_eq!(endpoints(&usual), ["tcp/127.0.0.1:7447"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.json5");
        std::fs::write(&path, "{ listen: { endpoints: ['tls/[::]:7447'] } }").unwrap();
        assert_eq!(endpoints(&read(&path).unwrap()), ["tls/[::]:7447"]);
        std::fs::write(&path, "{ listen: 7 }").unwrap();
        assert!(matches!(read(&path), Err(RouterError::Refused(_))));
        let missing = read(&folder.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none: "), "{missing}");
    }
}
