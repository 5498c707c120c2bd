//! What a robot asks of each of its simulated devices. PURE.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use amber_map::Segment;

use crate::camera::PictureFault;
use crate::ceiling::Ceiling;
use crate::control::SimulationState;
use crate::i2c::{Reply, Transfer};
use crate::wheels::Reading;
use crate::world::{Drives, World};

/// What all devices are told when they are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// The seed of all noise.
    pub(crate) seed: u64,
    /// The speed of the simulation relative to real time.
    pub(crate) speed: f64,
    /// What is around the robot.
    pub(crate) walls: &'a [Segment],
    /// What is above the robot.
    pub(crate) ceiling: &'a Ceiling,
}

/// What a device can measure.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The robot between the walls.
    pub(crate) world: &'a World,
    /// What is above it.
    pub(crate) ceiling: &'a Ceiling,
    /// For the noise of measurements.
    pub(crate) random: &'a mut fastrand::Rng,
}

/// A simulated device in its robot: bytes or transfers in, bytes out.
///
/// Time is a [`Duration`] since the start of the simulation and never decreases. The robot calls
/// [`Twin::advance`] before any other method with a time, and takes all output after each call.
/// Most methods have a default: a device ignores what does not concern it.
pub trait Twin: Any + Debug + Send {
    /// Brings the device to a time, to which the world has already come.
    fn advance(&mut self, _now: Duration, _around: &mut Surroundings<'_>) {}

    /// Bytes from the program that is connected.
    fn handle_bytes(&mut self, _now: Duration, _bytes: &[u8]) {}

    /// Carries out a transfer on the bus of the device.
    fn handle_transfer(&mut self, _now: Duration, _transfer: &Transfer, _world: &World) -> Reply {
        Reply::Nak
    }

    /// The program that was connected has disconnected.
    fn handle_hang_up(&mut self) {}

    /// The next bytes that the device sends.
    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        None
    }

    /// Whether the device has closed its connection since the last call.
    fn poll_hang_up(&mut self) -> bool {
        false
    }

    /// When its state changes without further input.
    fn next_timeout(&self) -> Option<Duration> {
        None
    }

    /// It was plugged in again. A device that gets its power by the plug restarts.
    fn handle_plug_in(&mut self, _now: Duration) {}

    /// The reset line of the robot was pulled.
    fn handle_reset(&mut self, _now: Duration) {}

    /// From now on the main battery has this voltage; `None` for its own.
    fn set_battery_v(&mut self, _volts: Option<f64>) {}

    /// Whether something draws a large current from the main battery.
    fn set_battery_sag(&mut self, _sags: bool) {}

    /// Whether something is between the robot and the sky.
    fn set_covered(&mut self, _is_covered: bool) {}

    /// Whether the wheels hang in the air.
    fn set_lifted(&mut self, _is_lifted: bool) {}

    /// Whether its pictures have a fault.
    fn set_picture_fault(&mut self, _fault: PictureFault, _is_on: bool) {}

    /// What it wants of the wheels, if it drives them.
    fn drives(&self) -> Option<Drives> {
        None
    }

    /// What the wheels do.
    fn handle_readings(&mut self, _now: Duration, _readings: [Reading; 4]) {}

    /// Adds what `amber sim state` shows of it.
    fn show(&self, _world: &World, _ceiling: &Ceiling, _state: &mut SimulationState) {}
}
