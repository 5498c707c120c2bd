//! The laser scanner in the robot, at its centre, and what it measures between the walls. PURE.

use std::time::Duration;

use super::{Model, Ydlidar};
use crate::{device, scanner};

device::extra! {
    /// Add a YDLIDAR, a laser scanner, which sees all around
    "ydlidar" by Serial, told by "--model": Model => |model, _| Ydlidar::new(model, Duration::ZERO);
    "scan --plot": "laser scan, all around"
}
scanner::twin!(Ydlidar);
