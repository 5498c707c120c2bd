//! How each of the two controllers wants to be spoken to, and whether it
//! answers. PURE.

use std::time::{Duration, Instant};

use super::{Settings, Step};
use crate::roboclaw::protocol::{Check, Command, Dialect, Reply, StatusWidth};
use crate::roboclaw::units::Unit;

/// How often a controller may fail to answer before it counts as gone.
const MAX_FAILURES: u32 = 3;

/// How long it must have failed, too: on a noisy line several replies in a row
/// may be wrong, but not so many.
const GONE_AFTER: Duration = Duration::from_millis(300);

/// Both of them.
#[derive(Debug)]
pub(super) struct Controllers {
    addresses: [u8; 2],
    /// How packets end, if that is not to be found out.
    check: Option<Check>,
    units: [Controller; 2],
}

#[derive(Debug, Default)]
struct Controller {
    check: Option<Check>,
    status: Option<StatusWidth>,
    version: String,
    failures: u32,
    failing_since: Option<Instant>,
}

impl Controllers {
    /// Nobody has answered yet.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            addresses: [settings.front, settings.rear],
            check: settings.check,
            units: Default::default(),
        }
    }

    /// Whether one has said how it wants to be spoken to.
    pub(super) fn is_known(&self, unit: Unit) -> bool {
        self.unit(unit).check.is_some()
    }

    /// How packets of the front one end.
    pub(super) fn check(&self) -> Check {
        self.unit(Unit::Front).check()
    }

    /// What each has said of its firmware.
    pub(super) fn versions(&self) -> [String; 2] {
        Unit::BOTH.map(|unit| self.unit(unit).version.clone())
    }

    /// What says a command to one, and what comes back.
    pub(super) fn exchange(&self, unit: Unit, command: Command) -> Step {
        let controller = self.unit(unit);
        let dialect = match (controller.check, controller.status) {
            (Some(check), Some(status)) => Some(Dialect { check, status }),
            _ => None,
        };
        Step::Exchange {
            packet: command.encode(self.addresses[unit as usize], controller.check()),
            shape: command.shape(dialect),
        }
    }

    /// What one has answered, or in words why that makes no sense.
    pub(super) fn decode(
        &self,
        unit: Unit,
        command: Command,
        bytes: &[u8],
    ) -> Result<Reply, String> {
        let address = self.addresses[unit as usize];
        let reply = command.decode(address, self.unit(unit).check(), bytes);
        reply.map_err(|error| error.to_string())
    }

    /// One has answered.
    pub(super) fn answered(&mut self, unit: Unit) {
        let controller = &mut self.units[unit as usize];
        controller.failures = 0;
        controller.failing_since = None;
    }

    /// One has introduced itself.
    pub(super) fn learn(&mut self, unit: Unit, reply: Reply) {
        let controller = &mut self.units[unit as usize];
        match reply {
            Reply::Version(version, check) => {
                controller.version = version;
                controller.check = self.check.or(Some(check));
            }
            Reply::Status(status) => controller.status = Some(status.width),
            _ => {}
        }
    }

    /// One has not answered. Whether it counts as gone.
    pub(super) fn failed(&mut self, now: Instant, unit: Unit) -> bool {
        let controller = &mut self.units[unit as usize];
        controller.failures += 1;
        let since = *controller.failing_since.get_or_insert(now);
        let is_long = now.saturating_duration_since(since) >= GONE_AFTER;
        is_long && controller.failures >= MAX_FAILURES
    }

    fn unit(&self, unit: Unit) -> &Controller {
        &self.units[unit as usize]
    }
}

impl Controller {
    fn check(&self) -> Check {
        self.check.unwrap_or(Check::Legacy)
    }
}
