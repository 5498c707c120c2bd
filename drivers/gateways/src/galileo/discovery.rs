//! Announces the gateway in the local network, as the robots do. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::limits::DISCOVERY_PERIOD;
use crate::shared::clock::Now;
use crate::shared::machine::{Cast, Output, Outputs, Socket, local_address};

/// Its socket. Those of the server and of foreign robots count from 0.
const SOCKET: Socket = Socket(u32::MAX);

/// The version of the robots whose protocol this is.
const VERSION: &str = "5.0.0";

/// The content of the announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The id of the robot: hex digits.
    pub id: String,
    /// Its MAC address, for clients that show it.
    pub mac: String,
    /// The port of the robot's HTTP interface. The gateway has none.
    pub http_port: u16,
    /// The receivers of announcements.
    pub to: SocketAddr,
}

/// Sends an announcement once per period.
#[derive(Debug)]
pub struct Discovery {
    config: Config,
    next: Duration,
}

impl Discovery {
    /// The first announcement goes out one period after the start.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            next: Duration::ZERO,
        }
    }

    pub(super) fn start(&mut self, now: Now, out: &mut Outputs) {
        let local = local_address([self.config.to.ip()]);
        out.push(Output::Bind(SOCKET, local, Cast::Broadcast));
        self.next = now.elapsed + DISCOVERY_PERIOD;
    }

    pub(super) fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        if now.elapsed < self.next {
            return;
        }
        // Late announcements are skipped.
        self.next = now.elapsed + DISCOVERY_PERIOD;
        let Config {
            id,
            mac,
            http_port,
            to,
        } = &self.config;
        let text = json!({ "id": id, "port": http_port, "mac": mac, "version": VERSION });
        out.send(SOCKET, *to, text.to_string());
    }

    pub(super) fn next_timeout(&self) -> Duration {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_gateway_is_announced_once_per_second() {
        let to: SocketAddr = "255.255.255.255:22002".parse().unwrap();
        let mut discovery = Discovery::new(Config {
            id: "7c9ebd3a".into(),
            mac: "00:11:22:33:44:55".into(),
            http_port: 3546,
            to,
        });
        let mut out = Outputs::default();
        discovery.start(Now::from_millis(500), &mut out);
        let any = "0.0.0.0:0".parse().unwrap();
        assert_eq!(out.take(), Some(Output::Bind(SOCKET, any, Cast::Broadcast)));
        let mut sent = Vec::new();
        for ms in (500..=4_000).step_by(100) {
            discovery.handle_timeout(Now::from_millis(ms), &mut out);
            if let Some(output) = out.take() {
                sent.push((ms, output));
            }
        }
        let times: Vec<_> = sent.iter().map(|(ms, _)| *ms).collect();
        assert_eq!(times, [1_500, 2_500, 3_500]);
        let (_, Output::Send(SOCKET, address, bytes)) = &sent[0] else {
            panic!("{:?}", sent[0]);
        };
        assert_eq!(*address, to);
        let expected = json!({
            "id": "7c9ebd3a", "port": 3546, "mac": "00:11:22:33:44:55", "version": "5.0.0",
        });
        assert_eq!(serde_json::from_slice::<Value>(bytes).unwrap(), expected);
        assert_eq!(discovery.next_timeout(), Duration::from_millis(4_500));
    }
}
