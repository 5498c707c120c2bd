//! Who may move a device, and until when: lease, halt and expiry. PURE.
//!
//! ```text
//!  requests --> what do they move? --> Motions: one Control per device --> allowed, or refused
//!                (description)             |
//!                                          +--> stop the device; report to the mediator
//! ```
//!
//! A [`Control`] decides for one device. [`Motions`] has all devices of a process.

mod control;
mod news;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use amber_proto::motion::{MotionReport, MotionState};
use amber_proto::{ClientId, Device};

pub(crate) use control::{Command, Control, Refusal, Request, Stop, client_name};

/// What a request does to the things that a device moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Motion {
    /// It moves nothing.
    Nothing,
    /// It stops all motion.
    Stops,
    /// It starts or changes a motion.
    Moves,
    /// The same; the motion goes on until it is done.
    Errand,
}

/// Why the harness stops a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCause {
    /// The last command is no longer valid.
    Expired,
    /// The client that moved the device is gone.
    ClientGone,
    /// The client that moved the device has lost the lease, or another client has taken it.
    LeaseLost {
        /// How, as a sentence.
        how: String,
        /// The client that has taken it; `None` if the lease was released or not kept.
        to: Option<ClientId>,
    },
    /// The device was halted.
    Halted {
        /// Who halted it, in words.
        by: String,
    },
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the command is no longer valid"),
            Self::ClientGone => f.write_str("the client is gone"),
            Self::LeaseLost { how, .. } => f.write_str(how),
            Self::Halted { by } => write!(f, "the device was halted by {by}"),
        }
    }
}

/// The requests of a device that moves, for the harness: what they do, and how to stop. Generated
/// from the option `moves` of a description.
#[derive(Debug)]
pub struct Moves<M> {
    /// What a request does.
    pub motion: fn(&M) -> Motion,
    /// The request that stops all motion; `None` if the device has none.
    pub stop: Option<fn() -> M>,
    /// The answer that refuses a request, if it has one.
    pub refusal: fn(&M, &str) -> Option<M>,
    /// Whether the driver itself stops what a client moved when that client is gone.
    pub handles_gone_clients: bool,
}

/// The client that holds the lease of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its id.
    pub client: ClientId,
    /// Its name, for people.
    pub name: String,
    /// Whether it took the lease by force. A driver that moves another device for this client may do
    /// the same there.
    pub was_forced: bool,
}

/// All devices of a process. In a process with one device, its name is `None`.
#[derive(Debug, Default)]
pub(crate) struct Motions {
    controls: BTreeMap<Option<Device>, Control>,
    /// Halts of an earlier process that no request has asked for yet.
    halted: BTreeMap<Device, String>,
    handles_gone_clients: bool,
}

impl Motions {
    /// `halted` are the devices that were halted when the previous process ended, and by whom.
    pub(crate) fn new(halted: BTreeMap<Device, String>, handles_gone_clients: bool) -> Self {
        Self {
            controls: BTreeMap::new(),
            halted,
            handles_gone_clients,
        }
    }

    /// A client asks for the lease, or for a halt. Returns the answer.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        device: Option<Device>,
        client: ClientId,
        request: Request<'_>,
    ) -> MotionState {
        self.control(device).request(now, client, request)
    }

    /// A request moves or stops a device.
    pub(crate) fn command(
        &mut self,
        now: Instant,
        device: Option<Device>,
        command: Command,
    ) -> Result<(), Refusal> {
        self.control(device).command(now, command)
    }

    /// The driver cannot move a device, for this reason, or it can again.
    pub(crate) fn block(&mut self, now: Instant, device: Option<Device>, why: Option<String>) {
        self.control(device).block(now, why);
    }

    /// The holder of the lease of a device.
    pub(crate) fn holder(&self, device: Option<Device>) -> Option<Holder> {
        self.controls.get(&device)?.holder()
    }

    /// A client is gone, for all devices.
    pub(crate) fn client_gone(&mut self, now: Instant, client: ClientId) {
        let stops = !self.handles_gone_clients;
        for control in self.controls.values_mut() {
            control.client_gone(now, client, stops);
        }
    }

    /// When [`Self::timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let timeouts = self.controls.values().filter_map(Control::next_timeout);
        timeouts.min()
    }

    /// The time of [`Self::next_timeout`] has come, and all requests that have come by now were handled.
    pub(crate) fn timeout(&mut self, now: Instant) {
        for control in self.controls.values_mut() {
            control.timeout(now);
        }
    }

    /// A device that must stop now, or that has outdated commands.
    pub(crate) fn poll_stop(&mut self) -> Option<(Option<Device>, Stop)> {
        let mut controls = self.controls.iter_mut();
        controls.find_map(|(device, control)| Some((*device, control.poll_stop()?)))
    }

    /// A report for the mediator.
    pub(crate) fn poll_report(&mut self, now: Instant) -> Option<(Option<Device>, MotionReport)> {
        let mut controls = self.controls.iter_mut();
        controls.find_map(|(device, control)| Some((*device, control.poll_report(now)?)))
    }

    fn control(&mut self, device: Option<Device>) -> &mut Control {
        let halted = &mut self.halted;
        self.controls.entry(device).or_insert_with(|| {
            let by = match device {
                Some(device) => halted.remove(&device),
                None => halted.pop_first().map(|(_, by)| by),
            };
            by.map_or_else(Control::default, Control::halted)
        })
    }
}

/// Reads the halts that the mediator hands to a new process: a line `DEVICE=BY` for each. Others are
/// ignored.
pub(crate) fn read_halts(text: &str) -> BTreeMap<Device, String> {
    let line = |line: &str| {
        let (device, by) = line.split_once('=')?;
        Some((device.parse().ok()?, by.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests;
