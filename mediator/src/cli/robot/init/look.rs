//! Asks what is plugged in who it is. IO.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use amber_drivers::probe::{self, Identity, Kind, NoAnswer, PROBES};
use amber_terminal::Failure;
use serde::Serialize;

use super::found::{I2cBus, Machine, Port};
use super::models::{Meaning, meaning};
use crate::cli::robot::doctor::facts::holder;

/// The device types with a role in the robot, whatever the model.
pub(super) const LASER: &str = "hokuyo";
pub(super) const WHEELS: &str = "roboclaw";
pub(super) const MOTION_SENSOR: &str = "ninedof";
pub(super) const BATTERY: &str = "battery";

/// The user says that this device is at this port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(super) kind: Kind,
    pub(super) port: PathBuf,
}

/// A port, a bus or a USB device, and what is known about it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) place: String,
    pub(super) state: State,
    /// What it is, for people.
    pub(super) what: String,
    /// Its name in the configuration, if it is there: `hokuyo:0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    #[serde(skip)]
    pub(super) kind: Option<Kind>,
    /// Options of the driver, beside its port.
    #[serde(skip)]
    pub(super) options: Vec<String>,
}

/// What is known about a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// The device has answered.
    Ready,
    /// Another program uses the port.
    Busy,
    /// This user may not open the port.
    Denied,
    /// The device should be there, but does not answer.
    Silent,
    /// The port or bus does not work.
    Failed,
    /// Its driver cannot use it as it is.
    Unusable,
    /// Amber has no driver for it.
    NoDriver,
    /// Nothing says what is connected.
    Unknown,
}

impl State {
    /// Whether the device gets into the configuration.
    fn is_configured(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Busy | Self::Denied | Self::Silent | Self::Failed
        )
    }
}

/// Everything that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) ports: usize,
    pub(super) buses: usize,
    pub(super) findings: Vec<Finding>,
    /// Ports and buses that were not touched, with the reason.
    pub(super) left_alone: Vec<(String, &'static str)>,
}

/// The ports that could have any device, with what is known of them.
pub(super) fn unknown(machine: &Machine) -> Vec<(String, String)> {
    let ports = machine.ports.iter();
    let unknown = ports.filter_map(|port| match known(port) {
        None | Some(Meaning::Adapter) => Some((port.path.display().to_string(), words(port))),
        Some(_) => None,
    });
    unknown.collect()
}

fn known(port: &Port) -> Option<Meaning> {
    port.usb.as_ref().and_then(meaning)
}

/// A port in words.
fn words(port: &Port) -> String {
    match &port.usb {
        None => "a serial port of this computer".to_owned(),
        Some(usb) if usb.text.is_empty() => {
            format!("a USB device {:04x}:{:04x}", usb.vendor, usb.product)
        }
        Some(usb) => usb.text.clone(),
    }
}

impl Looked {
    /// Asks all devices. Takes seconds.
    ///
    /// # Errors
    /// The user names a port that does not exist.
    pub(super) fn at(machine: &Machine, at: &[At]) -> Result<Self, Failure> {
        let mut findings = Vec::new();
        let mut named: Vec<_> = at.iter().collect();
        for port in &machine.ports {
            let is_here = |at: &&At| is_same(&at.port, &port.path);
            let said = named.iter().position(is_here);
            findings.push(port_finding(port, said.map(|at| named.remove(at).kind)));
        }
        for at in named {
            let port = at.port.display();
            let mut left_alone = machine.left_alone.iter();
            if let Some((_, why)) =
                left_alone.find(|(place, _)| is_same(&at.port, Path::new(place)))
            {
                return Err(Failure::wrong(format!("{port} cannot be used: {why}")).hint(
                    "on a Raspberry Pi: `sudo raspi-config`, Interface Options, Serial Port, no login \
                     shell, but the hardware",
                ));
            }
            if !at.port.exists() {
                return Err(Failure::wrong(format!("{port} does not exist"))
                    .hint("`ls -l /dev/serial/by-id` lists what is plugged in"));
            }
            findings.push(asked(at.kind, &at.port, &[]));
        }
        findings.extend(machine.buses.iter().flat_map(bus_findings));
        let cameras = machine.cameras.iter();
        findings.extend(cameras.map(|camera| asked(Kind::Camera, &camera.path, &[])));
        for usb in &machine.others {
            let place = || format!("USB {:04x}:{:04x}", usb.vendor, usb.product);
            match meaning(usb) {
                Some(Meaning::NoDriver(what)) => {
                    findings.push(no_driver(place(), what, &usb.text));
                }
                Some(Meaning::Gamepad) => findings.push(gamepad(place(), &usb.text)),
                Some(Meaning::Camera) => findings.push(camera(place(), &usb.text)),
                _ => {}
            }
        }
        number(&mut findings);
        Ok(Self {
            ports: machine.ports.len(),
            buses: machine.buses.len(),
            findings,
            left_alone: machine.left_alone.clone(),
        })
    }

    /// What gets into the configuration, with its kind and the name of its device.
    pub(super) fn configured(&self) -> impl Iterator<Item = (&Finding, Kind, &str)> {
        let all = self.findings.iter();
        all.filter_map(|it| Some((it, it.kind?, it.device.as_deref()?)))
    }

    /// The first device of a type, such as [`LASER`].
    pub(super) fn first(&self, device_type: &str) -> Option<&str> {
        self.first_of(device_type).map(|(_, _, device)| device)
    }

    /// The same, and how it was found.
    pub(super) fn first_of(&self, device_type: &str) -> Option<(&Finding, Kind, &str)> {
        let mut configured = self.configured();
        configured.find(|(_, kind, _)| kind.probe().device == device_type)
    }
}

/// Whether two paths lead to the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    a == b || real(a).is_some_and(|a| Some(a) == real(b))
}

/// Names the devices: the first of a device type has the number 0.
fn number(findings: &mut [Finding]) {
    let mut counts = BTreeMap::new();
    for finding in findings.iter_mut().filter(|it| it.state.is_configured()) {
        if let Some(kind) = finding.kind {
            let name = kind.probe().device;
            let count = counts.entry(name).or_insert(0);
            finding.device = Some(format!("{name}:{count}"));
            *count += 1;
        }
    }
}

fn port_finding(port: &Port, said: Option<Kind>) -> Finding {
    let place = || port.path.display().to_string();
    match (known(port), said) {
        (Some(Meaning::Device(kind, options)), said) if said.is_none_or(|it| it == kind) => {
            asked(kind, &port.path, options)
        }
        (_, Some(kind)) => asked(kind, &port.path, &[]),
        (Some(Meaning::NoDriver(what)), None) => {
            let text = port.usb.as_ref().map_or("", |usb| usb.text.as_str());
            no_driver(place(), what, text)
        }
        (Some(Meaning::Second(what)), None) => Finding {
            note: Some("connect a device to the pins and name it with --at, to use it".into()),
            ..Finding::new(place(), State::Unknown, what)
        },
        _ => Finding {
            note: Some(format!(
                "anything could be connected; to say what, add for example --at stargazer={}",
                port.path.display()
            )),
            ..Finding::new(place(), State::Unknown, words(port))
        },
    }
}

fn bus_findings(bus: &I2cBus) -> Vec<Finding> {
    let mut findings = Vec::new();
    for probe in PROBES.iter().filter(|probe| probe.kind.is_on_i2c()) {
        let found = probe::i2c(probe.kind, &bus.location);
        // A bus without known chips is normal.
        if found == Err(NoAnswer::Silent) {
            continue;
        }
        let mut finding = judged(probe.kind, bus.location.to_string(), &[], found);
        if finding.state != State::Ready {
            // Nothing says that a sensor is there, and nothing else can be found on this bus.
            finding.kind = None;
            finding.what = format!("an I2C bus ({})", bus.adapter);
            findings.push(finding);
            break;
        }
        findings.push(finding);
    }
    findings
}

/// Asks the device at a serial port, or a camera.
fn asked(kind: Kind, port: &Path, options: &[&str]) -> Finding {
    let by = holder(port);
    let found = match by {
        None if kind == Kind::Camera => probe::camera(port),
        None => probe::serial(kind, port),
        Some(_) => Err(NoAnswer::Busy),
    };
    let mut finding = judged(kind, port.display().to_string(), options, found);
    if finding.state == State::Busy {
        let by = by.unwrap_or_else(|| "another program".to_owned());
        finding.note = Some(format!(
            "{by} uses the port, so the device was not asked, and is not checked"
        ));
    }
    finding
}

fn judged(
    kind: Kind,
    place: String,
    options: &[&str],
    found: Result<Identity, NoAnswer>,
) -> Finding {
    let about = kind.probe().about;
    let options = options.iter().map(|it| (*it).to_owned());
    let (state, what, more, note) = match found {
        Ok(found) => {
            let state = match found.unusable {
                None => State::Ready,
                Some(_) => State::Unusable,
            };
            let what = format!("{about}: {}", found.text);
            (state, what, found.options, found.unusable)
        }
        Err(error) => {
            let (state, note) = match &error {
                NoAnswer::Busy => (State::Busy, None),
                NoAnswer::Denied => (
                    State::Denied,
                    Some("this user may not open it: `amber doctor` says which group may".into()),
                ),
                NoAnswer::Silent => (
                    State::Silent,
                    Some(format!("it does not answer: {}", kind.probe().if_silent)),
                ),
                NoAnswer::Failed(why) => (State::Failed, Some(why.clone())),
            };
            (state, about.to_owned(), Vec::new(), note)
        }
    };
    Finding {
        kind: Some(kind),
        options: options.chain(more).collect(),
        note,
        ..Finding::new(place, state, what)
    }
}

/// The name of a device, with what it says of itself.
fn named(what: &str, text: &str) -> String {
    match text {
        "" => what.to_owned(),
        text => format!("{what} ({text})"),
    }
}

fn gamepad(place: String, text: &str) -> Finding {
    Finding {
        note: Some(
            "`amber drive --gamepad` drives with it; if it stays at the robot, add a [[driver]] with the \
             command [\"amber\", \"driver\", \"gamepad\"]"
                .into(),
        ),
        ..Finding::new(place, State::Unknown, named("a gamepad", text))
    }
}

fn camera(place: String, text: &str) -> Finding {
    Finding {
        note: Some("there is no /dev/video* for it: see whether `sudo dmesg` says why".into()),
        ..Finding::new(place, State::Unknown, named("a camera", text))
    }
}

fn no_driver(place: String, what: &str, text: &str) -> Finding {
    Finding {
        note: Some(
            "Amber has no driver for it; docs/write-a-driver.md shows how to write one".into(),
        ),
        ..Finding::new(place, State::NoDriver, named(what, text))
    }
}

impl Finding {
    fn new(place: String, state: State, what: impl Into<String>) -> Self {
        Self {
            place,
            state,
            what: what.into(),
            device: None,
            note: None,
            kind: None,
            options: Vec::new(),
        }
    }
}
