//! The sections `[limits]` and `[[access]]` of a file. PURE, except for looking up network
//! interfaces.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::problem::{At, ConfigError, Wrong};
use super::{Bounds, Limits, Names, numbered};
use crate::access::{Action, Network, Rule};
use crate::router::StreamRates;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsEntry {
    clients: Spanned<usize>,
    clients_per_host: Spanned<usize>,
    forget_clients_s: Spanned<u64>,
    queue_frames: usize,
    queue_bytes: usize,
    datagrams_per_second: Spanned<u32>,
    stream_bytes_per_second: Spanned<u32>,
    distant_stream_bytes_per_second: Spanned<u32>,
    log_lines_per_second: Spanned<u32>,
    stderr_lines_per_second: Spanned<u32>,
    deaths: Spanned<usize>,
    deaths_window_s: Spanned<u64>,
}

impl Default for LimitsEntry {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl From<&Limits> for LimitsEntry {
    fn from(limits: &Limits) -> Self {
        Self {
            clients: unplaced(limits.clients.get()),
            clients_per_host: unplaced(limits.clients_per_host.get()),
            forget_clients_s: unplaced(limits.forget_clients.as_secs()),
            queue_frames: limits.queue.frames,
            queue_bytes: limits.queue.bytes,
            datagrams_per_second: unplaced(limits.datagrams_per_second),
            stream_bytes_per_second: unplaced(limits.streams.near),
            distant_stream_bytes_per_second: unplaced(limits.streams.distant),
            log_lines_per_second: unplaced(limits.log_lines_per_second),
            stderr_lines_per_second: unplaced(limits.stderr_lines_per_second),
            deaths: unplaced(limits.deaths),
            deaths_window_s: unplaced(limits.deaths_window.as_secs()),
        }
    }
}

impl LimitsEntry {
    pub(super) fn check(self, at: &At<'_>) -> Result<Limits, ConfigError> {
        Ok(Limits {
            clients: count("clients", self.clients, at)?,
            clients_per_host: count("clients_per_host", self.clients_per_host, at)?,
            forget_clients: Duration::from_secs(above_0(
                "forget_clients_s",
                self.forget_clients_s,
                at,
            )?),
            queue: Bounds {
                frames: self.queue_frames,
                bytes: self.queue_bytes,
                ..Bounds::default()
            },
            datagrams_per_second: above_0("datagrams_per_second", self.datagrams_per_second, at)?,
            streams: StreamRates {
                near: above_0("stream_bytes_per_second", self.stream_bytes_per_second, at)?,
                distant: above_0(
                    "distant_stream_bytes_per_second",
                    self.distant_stream_bytes_per_second,
                    at,
                )?,
            },
            log_lines_per_second: above_0("log_lines_per_second", self.log_lines_per_second, at)?,
            stderr_lines_per_second: above_0(
                "stderr_lines_per_second",
                self.stderr_lines_per_second,
                at,
            )?,
            deaths: above_0("deaths", self.deaths, at)?,
            deaths_window: Duration::from_secs(above_0(
                "deaths_window_s",
                self.deaths_window_s,
                at,
            )?),
        })
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessEntry {
    action: Action,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    from: Vec<Spanned<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Spanned<String>>,
}

impl AccessEntry {
    pub(super) fn check(
        self,
        at: &At<'_>,
        interfaces: &dyn Fn(&str) -> Option<u32>,
        names: &Names,
    ) -> Result<Rule, ConfigError> {
        let from = each(self.from, at, |text| {
            Network::parse(text, interfaces)
                .map_err(|problem| Wrong::new(problem.to_string(), Some(&problem.hint())))
        })?;
        let devices = each(self.devices, at, |text| {
            let hint = "write 'hokuyo:0' or '4:0', 'hokuyo:*' for all of a kind, 'mediator' or '*'";
            numbered(text, names)
                .parse()
                .map_err(|problem: amber_proto::ids::ParseDeviceError| {
                    Wrong::new(format!("device '{text}': {problem}"), Some(hint))
                })
        })?;
        Ok(Rule {
            action: self.action,
            from,
            devices,
        })
    }
}

impl From<&Rule> for AccessEntry {
    fn from(rule: &Rule) -> Self {
        Self {
            action: rule.action,
            from: rule
                .from
                .iter()
                .map(|network| unplaced(network.to_string()))
                .collect(),
            devices: rule
                .devices
                .iter()
                .map(|some| unplaced(some.to_string()))
                .collect(),
        }
    }
}

fn each<T>(
    texts: Vec<Spanned<String>>,
    at: &At<'_>,
    read: impl Fn(&str) -> Result<T, Wrong>,
) -> Result<Vec<T>, ConfigError> {
    let one = |text: Spanned<String>| {
        let start = text.span().start;
        read(text.get_ref()).map_err(|wrong| wrong.within(at, start))
    };
    texts.into_iter().map(one).collect()
}

fn count(name: &str, value: Spanned<usize>, at: &At<'_>) -> Result<NonZeroUsize, ConfigError> {
    Ok(NonZeroUsize::new(above_0(name, value, at)?).unwrap_or(NonZeroUsize::MIN))
}

fn above_0<T: Default + PartialEq>(
    name: &str,
    value: Spanned<T>,
    at: &At<'_>,
) -> Result<T, ConfigError> {
    let start = value.span().start;
    let value = value.into_inner();
    if value == T::default() {
        let message = format!("[limits] {name} must be above 0");
        return Err(at.error(start, message, None));
    }
    Ok(value)
}

fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}
