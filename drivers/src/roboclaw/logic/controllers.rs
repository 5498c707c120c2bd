//! The packet format of each controller, and whether it answers. PURE.

use std::time::{Duration, Instant};

use super::{ControllerAction, Settings};
use crate::roboclaw::protocol::{Check, Command, Dialect, Reply, StatusWidth};
use crate::roboclaw::units::{Layout, Unit};

/// How many replies may fail before a controller counts as gone.
const MAX_FAILURES: u32 = 3;

/// The replies must also fail for this time: on a noisy line several replies in a row can be
/// invalid, but not this many.
const GONE_AFTER: Duration = Duration::from_millis(300);

/// All controllers.
#[derive(Debug)]
pub(super) struct Controllers {
    layout: Layout,
    /// The configured packet format; `None` to detect it.
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
    /// Starts with all formats unknown.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            layout: settings.layout,
            check: settings.check,
            units: Default::default(),
        }
    }

    /// Whether the format of a controller is known.
    pub(super) fn is_known(&self, unit: Unit) -> bool {
        self.unit(unit).check.is_some()
    }

    /// Their firmware and packet format, for people.
    pub(super) fn name(&self) -> String {
        let check = self.units[0].check();
        let [first, second] = &self.units;
        match self.layout {
            Layout::Pair { .. } => {
                let (front, rear) = (&first.version, &second.version);
                format!("front '{front}', rear '{rear}', {check:?} packets")
            }
            Layout::One { .. } => format!("'{}', {check:?} packets", first.version),
        }
    }

    /// The exchange that sends a command to a controller.
    pub(super) fn exchange(&self, unit: Unit, command: Command) -> ControllerAction {
        let controller = self.unit(unit);
        let dialect = match (controller.check, controller.status) {
            (Some(check), Some(status)) => Some(Dialect { check, status }),
            _ => None,
        };
        ControllerAction::Exchange {
            packet: command.encode(self.layout.address(unit), controller.check()),
            shape: command.shape(dialect),
        }
    }

    /// Decodes a reply. The error describes why it is invalid.
    pub(super) fn decode(
        &self,
        unit: Unit,
        command: Command,
        bytes: &[u8],
    ) -> Result<Reply, String> {
        let address = self.layout.address(unit);
        let reply = command.decode(address, self.unit(unit).check(), bytes);
        reply.map_err(|error| error.to_string())
    }

    /// A controller has answered.
    pub(super) fn answered(&mut self, unit: Unit) {
        let controller = &mut self.units[unit.index()];
        controller.failures = 0;
        controller.failing_since = None;
    }

    /// Learns the format of a controller from its reply.
    pub(super) fn learn(&mut self, unit: Unit, reply: Reply) {
        let controller = &mut self.units[unit.index()];
        match reply {
            Reply::Version(version, check) => {
                controller.version = version;
                controller.check = self.check.or(Some(check));
            }
            Reply::Status(status) => controller.status = Some(status.width),
            _ => {}
        }
    }

    /// A controller has not answered. Returns whether it counts as gone.
    pub(super) fn failed(&mut self, now: Instant, unit: Unit) -> bool {
        let controller = &mut self.units[unit.index()];
        controller.failures += 1;
        let since = *controller.failing_since.get_or_insert(now);
        let is_long = now.saturating_duration_since(since) >= GONE_AFTER;
        is_long && controller.failures >= MAX_FAILURES
    }

    fn unit(&self, unit: Unit) -> &Controller {
        &self.units[unit.index()]
    }
}

impl Controller {
    fn check(&self) -> Check {
        self.check.unwrap_or(Check::Legacy)
    }
}
