//! The robot as a base, which drives the wheels instead of the usual controllers. PURE.

use std::time::Duration;

use super::{Around, Create2};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::{Drives, OUTLINE, World};

/// The Create 2.
pub const DEVICE: Device = Device {
    name: "create2",
    connection: Connection::Serial,
    is_extra: true,
    driver: "create2",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[
        ("call wheels speeds", "wheel speeds"),
        ("watch bumper", "what the bumper and the cliff sensors feel"),
    ],
};

/// A wall that is nearer to the outline than this presses the bumper.
const TOUCH_M: f64 = 0.01;
/// A direction between ahead and a corner.
const SLANTED_RAD: f64 = 0.35;

/// Whether the robot is one.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Drive the wheels by an iRobot Create 2 instead of the RoboClaws
    #[arg(id = "create2", long = "create2")]
    pub is_fitted: bool,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = || Box::new(Create2::default()) as Box<dyn Twin>;
        let twins = self.is_fitted.then(|| (DEVICE, twin()));
        twins.into_iter().collect()
    }
}

impl Twin for Create2 {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        let bumps = bumps(now, around.world);
        self.handle_around(Around {
            bumps,
            ..self.around()
        });
        Create2::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Create2::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Create2::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Create2::next_timeout(self)
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
    }

    fn set_lifted(&mut self, is_lifted: bool) {
        self.handle_around(Around {
            is_lifted,
            ..self.around()
        });
    }

    fn drives(&self) -> Option<Drives> {
        Some(Create2::drives(self).into())
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        Create2::handle_readings(self, now, readings);
    }
}

/// Whether a wall presses the bumper, the front of the robot, on the left and on the right.
fn bumps(now: Duration, world: &World) -> [bool; 2] {
    let corner_rad = (OUTLINE.half_width_m / OUTLINE.half_length_m).atan();
    let touches = |angle_rad: f64| {
        let (sin, cos) = angle_rad.sin_cos();
        let edge_m = (OUTLINE.half_length_m / cos).min(OUTLINE.half_width_m / sin.abs());
        world.beam(now, angle_rad, edge_m + TOUCH_M).is_some()
    };
    [1.0, -1.0].map(|side| {
        let mut angles = [0.0, SLANTED_RAD, corner_rad].into_iter();
        angles.any(|angle_rad| touches(side * angle_rad))
    })
}
