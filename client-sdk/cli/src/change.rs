//! `amber start`, `stop`, `restart`, `reload` and `log-level`. IO.

use std::collections::BTreeMap;

use amber_client::error::Reason;
use amber_client::{Error, Mediator};
use amber_proto::Device;
use amber_proto::mediator::DriverState;
use amber_terminal::{Failure, Human};
use serde::Serialize;

/// The action that the mediator was asked for.
#[derive(Debug, Default, Serialize)]
pub(super) struct Done {
    done: bool,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    /// The number of drivers that a reload left unchanged, restarted, added and removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    drivers: BTreeMap<String, u64>,
    #[serde(skip)]
    text: String,
}

impl Done {
    pub(super) fn of(action: &'static str) -> Self {
        Self {
            done: true,
            action,
            ..Self::default()
        }
    }

    pub(super) fn to_driver(action: &'static str, device: Device) -> Self {
        Self {
            device: Some(device.to_string()),
            ..Self::of(action)
        }
    }

    pub(super) fn log_level(filter: &str) -> Self {
        Self {
            filter: Some(filter.to_owned()),
            ..Self::of("log-level")
        }
    }
}

/// Starts a driver; fails if it is already running.
pub(super) async fn start(mediator: &Mediator, device: Device, json: bool) -> Result<(), Failure> {
    let state = mediator.driver(device).await?.state();
    if matches!(state, DriverState::Up | DriverState::Starting) {
        return Err(
            Failure::new(format!("the driver of {device} is already running"))
                .hint(format!("`amber restart {device}` restarts it")),
        );
    }
    let done = Done::to_driver("start", device);
    show(done, mediator.start(device).await, json)
}

/// Shows the reply of the mediator to a change.
pub(super) fn show(done: Done, reply: Result<String, Error>, json: bool) -> Result<(), Failure> {
    match reply {
        Ok(text) => {
            let drivers = match done.action {
                "reload" => counts(&text),
                _ => BTreeMap::new(),
            };
            let done = Done {
                drivers,
                text,
                ..done
            };
            amber_terminal::show(&done, json)
        }
        Err(
            error @ Error::Refused {
                reason: Reason::NotAllowed,
                hint: None,
                ..
            },
        ) => Err(Failure::from(error).hint(
            "run this on the robot itself, or allow it in the configuration of the mediator",
        )),
        Err(error) => Err(error.into()),
    }
}

impl Human for Done {
    fn human(&self) -> String {
        format!("{}\n", self.text)
    }
}

/// The counts in a text like `drivers unchanged: 2, added: 1`, keyed by the last word of each.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let named = text.split([',', ';']).filter_map(|part| {
        let (name, count) = part.split_once(": ")?;
        let name = name.split_whitespace().next_back()?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(done: Done) -> serde_json::Value {
        serde_json::to_value(done).unwrap()
    }

    #[test]
    fn json_has_fields_with_values_instead_of_prose() {
        let device = "dummy:0".parse().unwrap();
        assert_eq!(
            json(Done::to_driver("stop", device)),
            serde_json::json!({ "done": true, "action": "stop", "device": "dummy:0" })
        );
        assert_eq!(
            json(Done::log_level("debug")),
            serde_json::json!({ "done": true, "action": "log-level", "filter": "debug" })
        );
        let text = "configuration read; drivers unchanged: 2, restarted: 0, added: 1, removed: 0";
        let reload = Done {
            drivers: counts(text),
            ..Done::of("reload")
        };
        assert_eq!(
            json(reload),
            serde_json::json!({
                "done": true,
                "action": "reload",
                "drivers": { "unchanged": 2, "restarted": 0, "added": 1, "removed": 0 },
            })
        );
    }
}
