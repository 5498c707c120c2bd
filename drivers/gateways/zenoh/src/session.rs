//! Sessions with the routers of the fleet. IO.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, sleep};
use zenoh::{Config, Session};

use crate::certificate::{self, BadFile};
use crate::config::FleetLink;
use crate::diagnosis::{self, Trouble};
use crate::limits::{LINK_PERIOD, RETRY};

/// An unreachable router is logged once per this many attempts.
const LOG_EVERY: u32 = 30;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Zenoh does not accept it.
    #[error("Zenoh rejects the configuration: {0}")]
    Zenoh(String),
    /// A file of it is missing or invalid.
    #[error(transparent)]
    File(#[from] BadFile),
}

/// Opens a session as a client of a router. Retries until there is one; later, Zenoh itself
/// reconnects.
///
/// # Errors
/// The configuration is invalid.
pub async fn open(link: &FleetLink) -> Result<Session, Refused> {
    let config = config(link)?;
    if let Some(tls) = &link.tls {
        // What a person must change is no reason to wait.
        certificate::check(tls)?;
    }
    let mut attempts = 0u32;
    loop {
        match zenoh::open(config.clone()).await {
            Ok(session) => {
                tracing::info!(routers = %link.connect.join(" "), "connected to the fleet");
                return Ok(session);
            }
            Err(error) if attempts.is_multiple_of(LOG_EVERY) => {
                let Trouble { text, hint } = diagnosis::find(link).await;
                tracing::warn!("{text}, retrying; {hint}");
                tracing::debug!("{}", plain(&error));
            }
            Err(_) => {}
        }
        attempts = attempts.wrapping_add(1);
        sleep(RETRY).await;
    }
}

/// Logs losing a router and finding one again, as long as the session lives.
pub async fn watch_link(session: Session) {
    let mut looks = interval(LINK_PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_linked = true;
    while !session.is_closed() {
        looks.tick().await;
        let is_linked = session.info().routers_zid().await.next().is_some();
        match (was_linked, is_linked) {
            (true, false) => tracing::warn!("lost the router: nobody in the fleet sees this robot"),
            (false, true) => tracing::info!("found a router: in the fleet again"),
            _ => {}
        }
        was_linked = is_linked;
    }
}

/// A client that finds only the routers that are named, and listens nowhere.
fn config(link: &FleetLink) -> Result<Config, Refused> {
    let refused = |error: zenoh::Error| Refused::Zenoh(plain(&error));
    Config::from_json5(&settings(link).to_string()).map_err(refused)
}

/// The text of an error of Zenoh, without the places in its source code.
pub(crate) fn plain(error: &zenoh::Error) -> String {
    without_places(&error.to_string())
}

/// Removes each ` at /FOLDER/FILE.rs:LINE.`
fn without_places(text: &str) -> String {
    let mut short = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" at /") {
        short.push_str(before.trim_end());
        rest = match after.split_once(".rs:") {
            Some((file, after)) if !file.contains(' ') => {
                let after = after.trim_start_matches(|it: char| it.is_ascii_digit());
                after.strip_prefix('.').unwrap_or(after)
            }
            _ => {
                short.push_str(" at /");
                after
            }
        };
    }
    short.push_str(rest);
    short
}

fn settings(link: &FleetLink) -> Value {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut protocols: Vec<_> = (link.connect.iter())
        .filter_map(|endpoint| Some(endpoint.split_once('/')?.0))
        .collect();
    protocols.dedup();
    let mut settings = json!({
        "mode": "client",
        "connect": {
            "endpoints": link.connect,
            // After a restart of the router, all robots are back within seconds.
            "retry": { "period_init_ms": 500, "period_max_ms": 1000, "period_increase_factor": 2 },
        },
        "listen": { "endpoints": [] },
        // It is a client: it neither listens nor looks for others.
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
        "timestamping": { "enabled": true },
        "transport": { "link": {
            "rx": { "max_message_size": link.max_message },
            "protocols": protocols,
            "tx": { "lease": millis(link.lease), "keep_alive": 4 },
        } },
    });
    if let Some(tls) = &link.tls {
        settings["transport"]["link"]["tls"] = json!({
            "root_ca_certificate": tls.ca,
            "connect_certificate": tls.certificate,
            "connect_private_key": tls.key,
            "enable_mtls": true,
            "verify_name_on_connect": true,
        });
    }
    settings
}

#[cfg(test)]
mod tests {
    use crate::config::Tls;
    use crate::limits::MAX_TO_ROBOT;

    use super::*;

    #[test]
    fn errors_of_zenoh_are_shown_without_places_in_source_code() {
        for (text, short) in [
            (
                "no listener on tcp/[::]:7447: [taken (os error 98) at /home/me/tcp.rs:61.] at \
                 /home/me/unicast.rs:338.",
                "no listener on tcp/[::]:7447: [taken (os error 98)]",
            ),
            ("no link!  at /a/b.rs:4.", "no link!"),
            ("no file at /etc/zenoh.json5", "no file at /etc/zenoh.json5"),
            ("", ""),
        ] {
            assert_eq!(without_places(text), short);
        }
    }

    #[test]
    fn zenoh_accepts_the_configuration() {
        let mut link = FleetLink {
            connect: vec!["tcp/127.0.0.1:7447".into()],
            lease: Duration::from_secs(2),
            max_message: MAX_TO_ROBOT,
            tls: None,
        };
        config(&link).unwrap();
        link.connect = vec!["tls/fleet.example:7447".into()];
        link.tls = Some(Tls {
            ca: "ca.pem".into(),
            certificate: "r1.pem".into(),
            key: "r1.key".into(),
        });
        config(&link).unwrap();
        let settings = settings(&link);
        assert_eq!(settings["transport"]["link"]["protocols"], json!(["tls"]));
    }
}
