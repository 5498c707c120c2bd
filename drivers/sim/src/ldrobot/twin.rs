//! The laser scanner in the robot, at its centre, and what it measures between the walls. PURE.

use std::time::Duration;

use super::{Ldrobot, Model};
use crate::{device, scanner};

device::extra! {
    /// Add a laser scanner of LDROBOT, which sees all around
    "ldrobot" by Serial, told by "--model": Model => |model, _| Ldrobot::new(model, Duration::ZERO);
    "scan --plot": "laser scan, all around"
}
scanner::twin!(Ldrobot);
