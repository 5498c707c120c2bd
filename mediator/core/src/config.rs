//! The configuration: reads TOML or the command line, and returns checked values. PURE.
//!
//! Everything has a default; `amber mediator --print-config` shows all settings.

mod problem;
mod sections;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use amber_proto::{Device, DeviceType};
use serde::{Deserialize, Serialize};
use toml::Spanned;

pub use self::problem::ConfigError;
use self::problem::{At, Wrong};
use self::sections::{AccessEntry, LimitsEntry};
use crate::access::Access;
use crate::limits;
use crate::queue::Bounds;
use crate::router::StreamRates;
use crate::supervise::{Backoff, Policy, Restart};

/// The hint if two drivers serve one device.
const OTHER_ID: &str = "give one of them another id, such as ':1'";

/// The port of the original mediator.
pub const DEFAULT_PORT: u16 = 26233;

/// The types of users' devices by their names, as descriptions have them.
pub type Names = BTreeMap<String, DeviceType>;

/// Reads the names in descriptions of users' devices. The error is a sentence.
pub type Describe<'a> = &'a dyn Fn(&[PathBuf]) -> Result<Names, String>;

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Addresses to listen on. A default address is skipped if the machine lacks its address
    /// family.
    pub listen: Vec<SocketAddr>,
    /// The name of the robot in the network; `None`: the name of the machine.
    pub name: Option<String>,
    /// Whether other machines may find this mediator by mDNS.
    pub announce: bool,
    /// The descriptions of users' devices, whose names this configuration uses.
    pub proto: Vec<PathBuf>,
    /// The names in these descriptions.
    pub names: Names,
    /// The programs that may start, stop and reload.
    pub admin: Admin,
    /// Limits on clients, queues and rates.
    pub limits: Limits,
    /// The access rules.
    pub access: Access,
    pub drivers: Vec<DriverConfig>,
    /// The file says that there are none: `driver = []`.
    pub no_drivers: bool,
    /// The file that this was read from, for reloads.
    pub path: Option<PathBuf>,
}

/// The programs that may make changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admin {
    /// Only programs on the same machine.
    #[default]
    Loopback,
    /// All programs that can send a datagram.
    Anyone,
}

/// Limits on clients, queues and rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of known clients.
    pub clients: NonZeroUsize,
    /// Maximum number of known clients of one host: one IPv4 address, one IPv6 network of 64 bits,
    /// or this machine.
    pub clients_per_host: NonZeroUsize,
    /// A client that is silent for this long and holds nothing is forgotten.
    pub forget_clients: Duration,
    /// Bounds of the queue of each driver.
    pub queue: Bounds,
    /// Datagrams per second that one client may send.
    pub datagrams_per_second: u32,
    /// Bytes per second from drivers to the clients of one host that have not proved their
    /// address.
    pub streams: StreamRates,
    /// Log lines per second, in total.
    pub log_lines_per_second: u32,
    /// Logged lines per second of one driver's stderr.
    pub stderr_lines_per_second: u32,
    /// A driver is given up after this many deaths within `deaths_window`, unless its own entry
    /// has other values.
    pub deaths: usize,
    /// See `deaths`.
    pub deaths_window: Duration,
}

/// One driver process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// The devices that it serves; at least one.
    pub devices: Vec<Device>,
    /// Program and arguments; at least the program. `amber` is this binary.
    pub command: Vec<String>,
    /// Additional environment variables.
    pub env: BTreeMap<String, String>,
    /// The working directory; relative paths in `command` are relative to it.
    pub directory: Option<PathBuf>,
    /// The rules for restarting and stopping it.
    pub policy: Policy,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: default_listen(),
            name: None,
            announce: true,
            proto: Vec::new(),
            names: Names::new(),
            admin: Admin::default(),
            limits: Limits::default(),
            access: Access::default(),
            drivers: Vec::new(),
            no_drivers: false,
            path: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: NonZeroUsize::new(limits::CLIENTS).unwrap_or(NonZeroUsize::MIN),
            clients_per_host: NonZeroUsize::new(limits::CLIENTS_PER_HOST)
                .unwrap_or(NonZeroUsize::MIN),
            forget_clients: limits::FORGET,
            queue: Bounds::default(),
            datagrams_per_second: limits::DATAGRAMS_PER_SECOND,
            streams: StreamRates::default(),
            log_lines_per_second: limits::LOG_LINES_PER_SECOND,
            stderr_lines_per_second: limits::STDERR_LINES_PER_SECOND,
            deaths: limits::DEATHS,
            deaths_window: limits::DEATHS_WINDOW,
        }
    }
}

impl Config {
    /// Parses the text of a file. Paths in it are relative to the folder of `path`.
    ///
    /// `interfaces` has the numbers of the network interfaces that an access rule may name. The
    /// descriptions of users' devices are not read.
    ///
    /// # Errors
    /// The text is invalid.
    pub fn parse(
        text: &str,
        path: &Path,
        interfaces: &dyn Fn(&str) -> Option<u32>,
    ) -> Result<Self, ConfigError> {
        Self::parse_with(text, path, interfaces, &|_| Ok(Names::new()))
    }

    /// The same with the descriptions of users' devices, so that it may name them.
    ///
    /// # Errors
    /// The text is invalid, or a description cannot be read.
    pub fn parse_with(
        text: &str,
        path: &Path,
        interfaces: &dyn Fn(&str) -> Option<u32>,
        describe: Describe<'_>,
    ) -> Result<Self, ConfigError> {
        let at = At { text, path };
        let file: File = toml::from_str(text).map_err(|error| at.toml_error(&error))?;
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let listen = file.mediator.listen;
        check_listen(listen.get_ref()).map_err(|wrong| wrong.within(&at, listen.span().start))?;
        let name = file.mediator.name;
        let name = name.map(|name| check_name(name, &at)).transpose()?;
        let proto = file.mediator.proto;
        let span = proto.span();
        let proto: Vec<_> = (proto.into_inner().into_iter())
            .map(|file| directory.map_or_else(|| file.clone(), |folder| folder.join(&file)))
            .collect();
        let names = match &proto[..] {
            [] => Ok(Names::new()),
            files => describe(files).map_err(|why| at.error(span.start, why, None)),
        };
        let names = names?;
        let limits = file.limits.check(&at)?;
        let mut drivers = Vec::new();
        let mut seen = BTreeMap::new();
        let no_drivers = file.driver.as_ref().is_some_and(Vec::is_empty);
        for entry in file.driver.unwrap_or_default() {
            let span = entry.span();
            let driver = entry
                .into_inner()
                .check(directory, &limits, &names)
                .map_err(|wrong| wrong.within(&at, span.start))?;
            for device in &driver.devices {
                if let Some(before) = seen.insert(*device, span.start) {
                    let first = at.line_and_column(before).0;
                    let message = format!(
                        "device {device} is served by two drivers; the first is in line {first}"
                    );
                    return Err(at.error(span.start, message, Some(OTHER_ID.into())));
                }
            }
            drivers.push(driver);
        }
        let access = file
            .access
            .into_iter()
            .map(|entry| entry.check(&at, interfaces, &names));
        Ok(Self {
            listen: listen.into_inner(),
            name,
            announce: file.mediator.announce,
            proto,
            admin: file.mediator.admin,
            limits,
            access: Access(access.collect::<Result<_, _>>()?),
            drivers,
            no_drivers,
            path: Some(path.into()),
            names,
        })
    }

    /// Reads further descriptions of users' devices, for [`Config::add_driver`].
    ///
    /// # Errors
    /// A description cannot be read.
    pub fn add_proto(
        &mut self,
        files: &[PathBuf],
        describe: Describe<'_>,
    ) -> Result<(), ConfigError> {
        let read = describe(files).map_err(|why| Wrong::new(why, None).in_entry("--proto"));
        self.names.extend(read?);
        self.proto.extend_from_slice(files);
        Ok(())
    }

    /// Replaces the addresses to listen on by those of the command line.
    ///
    /// # Errors
    /// There are too many.
    pub fn set_listen(&mut self, listen: &[SocketAddr]) -> Result<(), ConfigError> {
        check_listen(listen).map_err(|wrong| wrong.in_entry("--listen"))?;
        self.listen = listen.to_vec();
        Ok(())
    }

    /// Adds a driver from the command line: `--driver 'DEVICE=COMMAND ARGS...'`.
    ///
    /// The command is split into shell words, but no shell runs.
    ///
    /// # Errors
    /// The text is invalid.
    pub fn add_driver(&mut self, text: &str) -> Result<(), ConfigError> {
        let place = format!("--driver '{text}'");
        let example = "write --driver 'hokuyo:0=amber driver hokuyo'";
        let (devices, command) = text.split_once('=').ok_or_else(|| {
            Wrong::new("'=' is missing between device and command", Some(example)).in_entry(&place)
        })?;
        let command = shell_words::split(command)
            .map_err(|_| Wrong::new("a quote is not closed", Some(example)).in_entry(&place))?;
        let entry = DriverEntry {
            devices: devices
                .split(',')
                .map(|device| Spanned::new(0..0, device.trim().to_owned()))
                .collect(),
            command,
            ..DriverEntry::default()
        };
        let driver = entry
            .check(None, &self.limits, &self.names)
            .map_err(|wrong| wrong.in_entry(&place))?;
        let taken = |device: &&Device| self.drivers.iter().any(|d| d.devices.contains(device));
        if let Some(device) = driver.devices.iter().find(taken) {
            let message = format!("device {device} is already served by another driver");
            return Err(Wrong::new(message, Some(OTHER_ID)).in_entry(&place));
        }
        self.drivers.push(driver);
        Ok(())
    }

    /// The configuration as a file with the same meaning.
    pub fn to_toml(&self) -> String {
        let drivers = self.drivers.iter();
        let drivers: Vec<_> = drivers
            .map(|driver| Spanned::new(0..0, DriverEntry::from(driver)))
            .collect();
        let file = File {
            mediator: MediatorEntry {
                listen: Spanned::new(0..0, self.listen.clone()),
                name: self.name.clone().map(|name| Spanned::new(0..0, name)),
                announce: self.announce,
                proto: Spanned::new(0..0, self.proto.clone()),
                admin: self.admin,
            },
            limits: LimitsEntry::from(&self.limits),
            access: self.access.0.iter().map(AccessEntry::from).collect(),
            driver: (self.no_drivers || !drivers.is_empty()).then_some(drivers),
        };
        toml::to_string(&file).unwrap_or_default()
    }
}

/// All addresses of the machine, IPv4 and IPv6.
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    access: Vec<AccessEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<Vec<Spanned<DriverEntry>>>,
}

fn check_listen(listen: &[SocketAddr]) -> Result<(), Wrong> {
    let (count, most) = (listen.len(), limits::LISTEN_ADDRESSES);
    if count <= most {
        return Ok(());
    }
    Err(Wrong::new(
        format!("{count} addresses to listen on, more than {most}"),
        Some("0.0.0.0 and [::] stand for all addresses of the machine"),
    ))
}

/// A name that fits into a label of DNS: RFC 6763, section 4.1.1.
fn check_name(name: Spanned<String>, at: &At<'_>) -> Result<String, ConfigError> {
    let text = name.get_ref();
    let is_valid = !text.trim().is_empty()
        && text.len() <= limits::NAME_BYTES
        && !text.chars().any(char::is_control);
    if is_valid {
        return Ok(name.into_inner());
    }
    let most = limits::NAME_BYTES;
    let message = format!("{text:?} cannot be the name of a robot");
    let hint = format!("write 1 to {most} bytes without control characters");
    Err(at.error(name.span().start, message, Some(hint)))
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct MediatorEntry {
    listen: Spanned<Vec<SocketAddr>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Spanned<String>>,
    announce: bool,
    #[serde(skip_serializing_if = "is_empty")]
    proto: Spanned<Vec<PathBuf>>,
    admin: Admin,
}

fn is_empty(files: &Spanned<Vec<PathBuf>>) -> bool {
    files.get_ref().is_empty()
}

/// The number of a device with the name of a user's device, such as `201:0` for `lamp:0`; other texts as
/// they are.
fn numbered(name: &str, names: &Names) -> String {
    let (kind, id) = name.split_once(':').unwrap_or((name, "0"));
    let usual = kind.to_ascii_lowercase().replace('_', "-");
    match names.get(&usual) {
        Some(number) if kind.parse::<DeviceType>().is_err() => format!("{}:{id}", number.0),
        _ => name.to_owned(),
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct DriverEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<Spanned<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<Spanned<String>>,
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    restart: Restart,
    backoff_min_ms: u64,
    backoff_max_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    deaths: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deaths_window_s: Option<u64>,
    grace_ms: u64,
    ping_interval_ms: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
}

impl Default for MediatorEntry {
    fn default() -> Self {
        Self {
            listen: Spanned::new(0..0, default_listen()),
            name: None,
            announce: true,
            proto: Spanned::new(0..0, Vec::new()),
            admin: Admin::default(),
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
            deaths: None,
            deaths_window_s: None,
            grace_ms: millis(limits::GRACE),
            ping_interval_ms: millis(limits::DRIVER_PING_INTERVAL),
            env: BTreeMap::new(),
        }
    }
}

impl DriverEntry {
    fn check(
        self,
        base: Option<&Path>,
        limits: &Limits,
        known: &Names,
    ) -> Result<DriverConfig, Wrong> {
        let error = |message: &str, hint: Option<&str>| Err(Wrong::new(message, hint));
        let names: Vec<Spanned<String>> = match (self.device, self.devices) {
            (Some(device), devices) if devices.is_empty() => vec![device],
            (None, devices) if !devices.is_empty() => devices,
            (None, _) => return error("`device` is missing", Some("device = \"hokuyo:0\"")),
            (Some(_), _) => return error("has both `device` and `devices`", Some("keep one")),
        };
        let mut devices: Vec<Device> = Vec::new();
        for name in names {
            let span = name.span();
            let wrong = |message: String, hint| Err(Wrong::new(message, hint).at(span));
            let name = name.into_inner();
            let device: Device = match numbered(&name, known).parse() {
                Ok(device) => device,
                Err(problem) => {
                    let hint = "write a name and an id such as 'hokuyo:0', or numbers: '4:0'; \
                                [mediator] proto = [\"lamp.proto\"] has names of your own";
                    return wrong(format!("device '{name}': {problem}"), Some(hint));
                }
            };
            if device.device_type == DeviceType::MEDIATOR {
                return wrong("device type 0 is the mediator itself".into(), None);
            }
            if devices.contains(&device) {
                return wrong(format!("names {device} twice"), None);
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
                Some("backoff_min_ms must be above 0 and at most backoff_max_ms"),
            );
        };
        let deaths = self.deaths.unwrap_or(limits.deaths);
        let deaths_window = self
            .deaths_window_s
            .map_or(limits.deaths_window, Duration::from_secs);
        if deaths == 0 || deaths_window.is_zero() || self.ping_interval_ms == 0 {
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
                deaths,
                deaths_window,
                grace: Duration::from_millis(self.grace_ms),
                ping_interval: Duration::from_millis(self.ping_interval_ms),
            },
        })
    }
}

impl From<&DriverConfig> for DriverEntry {
    fn from(driver: &DriverConfig) -> Self {
        let unplaced = |device: &Device| Spanned::new(0..0, device.to_string());
        let mut devices: Vec<_> = driver.devices.iter().map(unplaced).collect();
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
            deaths: Some(driver.policy.deaths),
            deaths_window_s: Some(driver.policy.deaths_window.as_secs()),
            grace_ms: millis(driver.policy.grace),
            ping_interval_ms: millis(driver.policy.ping_interval),
            env: driver.env.clone(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
