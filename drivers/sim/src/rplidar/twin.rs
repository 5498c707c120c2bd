//! The laser scanner in the robot, at its centre, and what it measures between the walls. PURE.

use std::time::Duration;

use super::{Model, Rplidar};
use crate::{device, scanner};

device::extra! {
    /// Add an RPLIDAR, a laser scanner of Slamtec, which sees all around
    "rplidar" by Serial: Model => |model, _| Rplidar::new(model, Duration::ZERO);
    "scan --plot": "laser scan, all around"
}
scanner::twin!(Rplidar);
