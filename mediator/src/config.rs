//! The configuration: TOML or command line in, checked values out. PURE, but
//! for [`Config::read`].
//!
//! Everything has a default; `amber mediator --print-config` shows the whole.

pub mod erlang;
pub mod import;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use amber_proto::{Device, DeviceType};
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::queue::Bounds;
use crate::supervise::{Backoff, Policy, Restart};

/// The port of the original.
pub const DEFAULT_PORT: u16 = 26233;

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the mediator listens. An address family that the machine lacks is
    /// skipped when it stands here by default.
    pub listen: Vec<SocketAddr>,
    /// Who may start, stop and reload.
    pub admin: Admin,
    /// How much there may be of everything.
    pub limits: Limits,
    /// The drivers.
    pub drivers: Vec<DriverConfig>,
    /// Where all this was read from, to read it again.
    pub path: Option<PathBuf>,
}

/// Who may change things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admin {
    /// Only programs on the same machine.
    #[default]
    Loopback,
    /// Everybody who can send a datagram.
    Anyone,
}

/// How much there may be of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients known at once.
    pub clients: NonZeroUsize,
    /// What may wait for one driver.
    pub queue: Bounds,
}

/// One driver process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The devices that it serves; at least one.
    pub devices: Vec<Device>,
    /// Program and arguments; at least the program. `amber` is this very binary.
    pub command: Vec<String>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// Where it is started; relative paths in `command` are relative to this.
    pub directory: Option<PathBuf>,
    /// The rules for its life.
    pub policy: Policy,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}:{column}: {message}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// An entry makes no sense.
    #[error("{place}: {message}")]
    Entry {
        /// Which entry.
        place: String,
        /// What is wrong.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
}

impl ConfigError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => Some("`amber mediator -c FILE` names another file".into()),
            Self::File { hint, .. } | Self::Entry { hint, .. } => hint.clone(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: default_listen(),
            admin: Admin::default(),
            limits: Limits::default(),
            drivers: Vec::new(),
            path: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: NonZeroUsize::new(limits::CLIENTS).unwrap_or(NonZeroUsize::MIN),
            queue: Bounds::default(),
        }
    }
}

impl Config {
    /// Reads a file. Paths in it are relative to where it lies.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong; the error says
    /// where and what to do.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|error| ConfigError::Read {
            path: path.into(),
            error,
        })?;
        Self::parse(&text, path)
    }

    /// Reads a text that stands in a file.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| file_error(&error, text, path))?;
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut drivers = Vec::new();
        for (i, entry) in file.driver.into_iter().enumerate() {
            let place = format!("{}: [[driver]] number {}", path.display(), i + 1);
            drivers.push(entry.check(&place, directory)?);
        }
        let place = |name: &str| format!("{}: [limits] {name}", path.display());
        let clients = file.limits.clients;
        let config = Self {
            listen: file.mediator.listen,
            admin: file.mediator.admin,
            limits: Limits {
                clients: NonZeroUsize::new(clients)
                    .ok_or_else(|| entry_error(&place("clients"), "must be above 0", None))?,
                queue: Bounds {
                    frames: file.limits.queue_frames,
                    bytes: file.limits.queue_bytes,
                },
            },
            drivers,
            path: Some(path.into()),
        };
        config.check_devices()?;
        Ok(config)
    }

    /// Adds what stands on the command line as `--driver 'DEVICE=COMMAND ARGS...'`.
    ///
    /// The command is split like a shell would, but no shell is run.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add_driver(&mut self, text: &str) -> Result<(), ConfigError> {
        let place = format!("--driver '{text}'");
        let example = "write --driver 'hokuyo:0=amber driver hokuyo'";
        let (devices, command) = text.split_once('=').ok_or_else(|| {
            entry_error(
                &place,
                "there is no '=' between device and command",
                Some(example),
            )
        })?;
        let command = shell_words::split(command)
            .map_err(|_| entry_error(&place, "a quote is not closed", Some(example)))?;
        let entry = DriverEntry {
            devices: devices
                .split(',')
                .map(|device| device.trim().to_owned())
                .collect(),
            command,
            ..DriverEntry::default()
        };
        self.drivers.push(entry.check(&place, None)?);
        self.check_devices()
    }

    /// The whole as a file that means the same.
    pub fn to_toml(&self) -> String {
        let file = File {
            mediator: MediatorEntry {
                listen: self.listen.clone(),
                admin: self.admin,
            },
            limits: LimitsEntry {
                clients: self.limits.clients.get(),
                queue_frames: self.limits.queue.frames,
                queue_bytes: self.limits.queue.bytes,
            },
            driver: self.drivers.iter().map(DriverEntry::from).collect(),
        };
        toml::to_string(&file).unwrap_or_default()
    }

    fn check_devices(&self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for device in self.drivers.iter().flat_map(|driver| &driver.devices) {
            if !seen.insert(*device) {
                return Err(entry_error(
                    &format!("device {device}"),
                    "is served by two drivers",
                    Some("give one of them another id, such as ':1'"),
                ));
            }
        }
        Ok(())
    }
}

/// All addresses, IPv4 and IPv6.
pub fn default_listen() -> Vec<SocketAddr> {
    vec![
        (Ipv4Addr::UNSPECIFIED, DEFAULT_PORT).into(),
        (Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into(),
    ]
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    mediator: MediatorEntry,
    limits: LimitsEntry,
    driver: Vec<DriverEntry>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct MediatorEntry {
    listen: Vec<SocketAddr>,
    admin: Admin,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct LimitsEntry {
    clients: usize,
    queue_frames: usize,
    queue_bytes: usize,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct DriverEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    restart: Restart,
    backoff_min_ms: u64,
    backoff_max_ms: u64,
    deaths: usize,
    deaths_window_s: u64,
    grace_ms: u64,
    ping_interval_ms: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
}

impl Default for MediatorEntry {
    fn default() -> Self {
        Self {
            listen: default_listen(),
            admin: Admin::default(),
        }
    }
}

impl Default for LimitsEntry {
    fn default() -> Self {
        Self {
            clients: limits::CLIENTS,
            queue_frames: limits::QUEUE_FRAMES,
            queue_bytes: limits::QUEUE_BYTES,
        }
    }
}

impl Default for DriverEntry {
    fn default() -> Self {
        Self {
            device: None,
            devices: Vec::new(),
            command: Vec::new(),
            directory: None,
            restart: Restart::default(),
            backoff_min_ms: millis(limits::BACKOFF_MIN),
            backoff_max_ms: millis(limits::BACKOFF_MAX),
            deaths: limits::DEATHS,
            deaths_window_s: limits::DEATHS_WINDOW.as_secs(),
            grace_ms: millis(limits::GRACE),
            ping_interval_ms: millis(limits::DRIVER_PING_INTERVAL),
            env: BTreeMap::new(),
        }
    }
}

impl DriverEntry {
    fn check(self, place: &str, base: Option<&Path>) -> Result<DriverConfig, ConfigError> {
        let error = |message: &str, hint: Option<&str>| Err(entry_error(place, message, hint));
        let names: Vec<String> = match (self.device, self.devices) {
            (Some(device), devices) if devices.is_empty() => vec![device],
            (None, devices) if !devices.is_empty() => devices,
            (None, _) => return error("`device` is missing", Some("device = \"hokuyo:0\"")),
            (Some(_), _) => return error("has both `device` and `devices`", Some("keep one")),
        };
        let mut devices: Vec<Device> = Vec::new();
        for name in &names {
            let device: Device = match name.parse() {
                Ok(device) => device,
                Err(problem) => {
                    let hint = "write a name and an id such as 'hokuyo:0', or numbers: '4:0'";
                    return error(&format!("device '{name}': {problem}"), Some(hint));
                }
            };
            if device.device_type == DeviceType::MEDIATOR {
                return error("device type 0 is the mediator itself", None);
            }
            if devices.contains(&device) {
                return error(&format!("names {device} twice"), None);
            }
            devices.push(device);
        }
        if self.command.first().is_none_or(String::is_empty) {
            let hint = "command = [\"amber\", \"driver\", \"dummy\"]";
            return error("`command` is missing", Some(hint));
        }
        let (min, max) = (self.backoff_min_ms, self.backoff_max_ms);
        let Ok(backoff) = Backoff::new(Duration::from_millis(min), Duration::from_millis(max))
        else {
            let message = format!("backoff_min_ms = {min} and backoff_max_ms = {max}");
            return error(
                &message,
                Some("the first must be above 0 and at most the second"),
            );
        };
        if self.deaths == 0 || self.deaths_window_s == 0 || self.ping_interval_ms == 0 {
            return error(
                "deaths, deaths_window_s and ping_interval_ms must be above 0",
                None,
            );
        }
        Ok(DriverConfig {
            devices,
            command: self.command,
            env: self.env,
            directory: match (base, self.directory) {
                (Some(base), Some(directory)) => Some(base.join(directory)),
                (base, directory) => directory.or(base.map(Path::to_owned)),
            },
            policy: Policy {
                restart: self.restart,
                backoff,
                deaths: self.deaths,
                deaths_window: Duration::from_secs(self.deaths_window_s),
                grace: Duration::from_millis(self.grace_ms),
                ping_interval: Duration::from_millis(self.ping_interval_ms),
            },
        })
    }
}

impl From<&DriverConfig> for DriverEntry {
    fn from(driver: &DriverConfig) -> Self {
        let mut devices: Vec<String> = driver.devices.iter().map(Device::to_string).collect();
        Self {
            device: if devices.len() == 1 {
                devices.pop()
            } else {
                None
            },
            devices,
            command: driver.command.clone(),
            directory: driver.directory.clone(),
            restart: driver.policy.restart,
            backoff_min_ms: millis(driver.policy.backoff.min()),
            backoff_max_ms: millis(driver.policy.backoff.max()),
            deaths: driver.policy.deaths,
            deaths_window_s: driver.policy.deaths_window.as_secs(),
            grace_ms: millis(driver.policy.grace),
            ping_interval_ms: millis(driver.policy.ping_interval),
            env: driver.env.clone(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

fn entry_error(place: &str, message: &str, hint: Option<&str>) -> ConfigError {
    ConfigError::Entry {
        place: place.into(),
        message: message.into(),
        hint: hint.map(str::to_owned),
    }
}

fn file_error(error: &toml::de::Error, text: &str, path: &Path) -> ConfigError {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    ConfigError::File {
        path: path.into(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: error.message().lines().collect::<Vec<_>>().join(" "),
        hint: file_hint(error.message()),
    }
}

/// What to write instead, from the words of the error.
fn file_hint(message: &str) -> Option<String> {
    let hint = if message.starts_with("invalid type: map, expected a sequence") {
        "write [[driver]], with two brackets"
    } else if message.starts_with("invalid type: string") && message.ends_with("a sequence") {
        "write a list, such as [\"amber\", \"driver\", \"dummy\"]"
    } else if message.starts_with("invalid socket address") {
        "write an address and a port, such as \"127.0.0.1:26233\""
    } else {
        return nearest(message);
    };
    Some(hint.into())
}

/// The known name that an unknown one resembles: "unknown field `a`, expected
/// one of `b`, `c`".
fn nearest(message: &str) -> Option<String> {
    let mut quoted = message
        .strip_prefix("unknown field ")
        .or_else(|| message.strip_prefix("unknown variant "))?
        .split('`')
        .skip(1)
        .step_by(2);
    let wrong = quoted.next()?;
    let (_, nearest) = quoted
        .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
        .min_by_key(|(distance, _)| *distance)?;
    Some(format!("did you mean `{nearest}`?"))
}
