//! A gateway in the status: its sessions, and what it has dropped. PURE.

use std::collections::BTreeMap;

use amber_proto::gateway::{GatewayStatus, Peer};
use amber_proto::printable_line;
use amber_terminal::{Human, fields, millis};
use serde::Serialize;

/// A gateway, as it reports itself.
#[derive(Debug, Serialize)]
pub(super) struct Gateway {
    protocol: String,
    listening: Vec<String>,
    sessions: Vec<Session>,
    /// Bad and dropped datagrams by reason.
    reasons: BTreeMap<String, u64>,
}

/// A session of a gateway.
#[derive(Debug, Serialize)]
struct Session {
    peer: String,
    purpose: String,
    age_ms: u64,
    silent_ms: u64,
    drives: bool,
    /// Why the robot does not obey this peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl From<GatewayStatus> for Gateway {
    fn from(status: GatewayStatus) -> Self {
        let reasons = status.reasons.into_iter();
        Self {
            protocol: status.protocol.unwrap_or_default(),
            listening: status.listening,
            sessions: status.peers.into_iter().map(Session::from).collect(),
            reasons: reasons
                .map(|reason| (reason.text().to_owned(), reason.count()))
                .collect(),
        }
    }
}

impl From<Peer> for Session {
    fn from(peer: Peer) -> Self {
        Self {
            age_ms: peer.age_ms(),
            silent_ms: peer.silent_ms(),
            drives: peer.drives(),
            refused: peer.refused,
            peer: peer.address.unwrap_or_default(),
            purpose: peer.purpose.unwrap_or_default(),
        }
    }
}

impl Human for Gateway {
    fn human(&self) -> String {
        let mut out = fields(&[
            ("protocol", Some(printable_line(&self.protocol).to_string())),
            ("listening", Some(self.listening.join(", "))),
        ]);
        let none = if self.sessions.is_empty() {
            " none"
        } else {
            ""
        };
        out.push_str(&format!("sessions:{none}\n"));
        for session in &self.sessions {
            let drives = match &session.refused {
                Some(why) => format!(", is refused: {}", printable_line(why)),
                None if session.drives => ", drives".to_owned(),
                None => String::new(),
            };
            out.push_str(&format!(
                "  {} {} for {}, silent for {}{drives}\n",
                printable_line(&session.peer),
                printable_line(&session.purpose),
                millis(session.age_ms),
                millis(session.silent_ms),
            ));
        }
        for (reason, count) in &self.reasons {
            out.push_str(&format!("  {count} x {}\n", printable_line(reason)));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::gateway::Reason;

    use super::*;

    #[test]
    fn people_see_sessions_and_reasons() {
        let peer = Peer {
            address: Some("127.0.0.1:5".into()),
            purpose: Some("cmd_vel\u{1b}".into()),
            age_ms: Some(61_000),
            silent_ms: Some(20),
            drives: Some(true),
            refused: None,
        };
        let mut status = GatewayStatus {
            protocol: Some("galileo".into()),
            listening: vec!["127.0.0.1:3547".into()],
            peers: vec![peer],
            ..GatewayStatus::default()
        };
        status.reasons.push(Reason {
            text: Some("too short".into()),
            count: Some(7),
        });
        let text = Gateway::from(status).human();
        assert!(text.contains("127.0.0.1:3547"), "{text}");
        assert!(text.contains("cmd_vel\\x1b for 1m 1s"), "{text}");
        assert!(text.contains(", drives\n  7 x too short\n"), "{text}");
        assert!(
            Gateway::from(GatewayStatus::default())
                .human()
                .contains("sessions: none")
        );
    }
}
