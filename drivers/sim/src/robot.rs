//! The robot with its devices and their faults. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. Call
//! [`RobotTwin::advance`] before any other call with a time; then drain [`RobotTwin::poll_output`] of each
//! device. [`RobotTwin::next_timeout`] tells when to call again without further input: `None` while
//! everything is at rest.

mod fault;

use std::any::Any;
use std::time::Duration;

use amber_map::{Pose, Segment};

pub use self::fault::{Fault, UnknownFault};
pub use crate::device::{Connection, Device, UnknownDevice, WrongModel};

use crate::Devices;
use crate::camera::PictureFault;
use crate::ceiling::Ceiling;
use crate::control::SimulationState;
use crate::i2c::{Reply, Transfer};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Drive;
use crate::world::{Drives, STEP, StartError, World};

/// The maximum time between updates of a moving world.
const NAP: Duration = Duration::from_millis(50);
/// The voltage of a low battery.
const LOW_BATTERY_V: f64 = 10.0;
/// With the fault `corrupt`, about one in this many replies or scans has a wrong bit.
const CORRUPT_ONE_IN: usize = 4;

/// The configuration of a robot.
#[derive(Clone, Debug)]
pub struct Config {
    /// The walls around it.
    pub walls: Vec<Segment>,
    /// The markers above it.
    pub ceiling: Ceiling,
    pub start: Pose,
    /// The seed of all noise.
    pub seed: u64,
    /// The speed of the simulation relative to real time.
    pub speed: f64,
    pub devices: Devices,
}

#[derive(Debug)]
pub struct RobotTwin {
    world: World,
    ceiling: Ceiling,
    twins: Vec<(Device, Box<dyn Twin>)>,
    faults: Vec<(Fault, Option<Duration>)>,
    random: fastrand::Rng,
}

impl RobotTwin {
    /// Creates a robot that was just switched on.
    ///
    /// # Errors
    /// The start pose is not free.
    pub fn new(config: Config) -> Result<Self, StartError> {
        let mut random = fastrand::Rng::with_seed(config.seed);
        let setup = Setup {
            seed: config.seed,
            speed: config.speed,
            walls: &config.walls,
            ceiling: &config.ceiling,
        };
        let mut twins = config.devices.twins(&setup);
        // One device drives the wheels: an extra one replaces the usual one.
        let drives = |(_, twin): &(Device, Box<dyn Twin>)| twin.drives().is_some();
        let extra = twins.iter().any(|it| it.0.is_extra && drives(it));
        twins.retain(|it| !(extra && drives(it)) || it.0.is_extra);
        Ok(Self {
            world: World::new(config.walls, config.start, random.u64(..))?,
            twins,
            ceiling: config.ceiling,
            faults: Vec::new(),
            random,
        })
    }

    /// Advances everything to a time.
    pub fn advance(&mut self, now: Duration) {
        while let Some(ends) = self.next_fault_end().filter(|ends| *ends <= now) {
            self.move_world(ends);
            for index in (0..self.faults.len()).rev() {
                if self.faults[index].1.is_some_and(|until| until <= ends) {
                    let (fault, _) = self.faults.remove(index);
                    self.end(fault);
                }
            }
        }
        self.move_world(now);
        let mut around = Surroundings {
            world: &self.world,
            ceiling: &self.ceiling,
            random: &mut self.random,
        };
        for (_, twin) in &mut self.twins {
            twin.advance(now, &mut around);
        }
    }

    /// Bytes for a device.
    pub fn handle_bytes(&mut self, now: Duration, device: Device, bytes: &[u8]) {
        if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
            return;
        }
        if let Some(twin) = self.twin_of(device) {
            twin.handle_bytes(now, bytes);
        }
        self.advance(now);
    }

    /// Carries out a transfer on the bus of a device; `None` if the bus is stuck.
    pub fn handle_transfer(
        &mut self,
        now: Duration,
        device: Device,
        transfer: &Transfer,
    ) -> Option<Reply> {
        if self.has(Fault::Stall(device)) {
            return None;
        }
        if self.has(Fault::Unplug(device)) {
            return Some(Reply::Nak);
        }
        let mut twins = self.twins.iter_mut();
        let (_, twin) = twins.find(|(other, _)| *other == device)?;
        let mut reply = twin.handle_transfer(now, transfer, &self.world);
        if let Reply::Ack(bytes) = &mut reply {
            self.corrupt(device, bytes);
        }
        Some(reply)
    }

    /// The program that was connected to a device has disconnected.
    pub fn handle_hang_up(&mut self, device: Device) {
        if let Some(twin) = self.twin_of(device) {
            twin.handle_hang_up();
        }
    }

    /// The next bytes that a device sends.
    pub fn poll_output(&mut self, now: Duration, device: Device) -> Option<Vec<u8>> {
        loop {
            let mut bytes = self.twin_of(device)?.poll_output(now)?;
            if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
                continue;
            }
            self.corrupt(device, &mut bytes);
            return Some(bytes);
        }
    }

    /// Whether a device has closed its connection since the last call. Send the output of
    /// [`RobotTwin::poll_output`] first.
    pub fn poll_hang_up(&mut self, device: Device) -> bool {
        self.twin_of(device).is_some_and(Twin::poll_hang_up)
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self, now: Duration) -> Option<Duration> {
        let resting = self.world.is_at_rest(self.drives());
        let moves = (!resting).then_some(now + NAP);
        let twins = self.twins.iter().map(|(_, twin)| twin.next_timeout());
        let all = twins.chain([moves, self.next_fault_end()]);
        all.flatten().min()
    }

    /// The true state of the world.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Moves the robot to another pose.
    ///
    /// # Errors
    /// A wall is there; nothing has changed.
    pub fn place(&mut self, pose: Pose) -> Result<(), StartError> {
        self.world.place(pose)
    }

    /// The first device of a type.
    #[must_use]
    pub fn twin<T: Twin>(&self) -> Option<&T> {
        let mut twins = self.twins.iter().map(|(_, twin)| &**twin as &dyn Any);
        twins.find_map(|twin| twin.downcast_ref())
    }

    /// The same, to change it.
    pub fn twin_mut<T: Twin>(&mut self) -> Option<&mut T> {
        let mut twins = (self.twins.iter_mut()).map(|(_, twin)| &mut **twin as &mut dyn Any);
        twins.find_map(|twin| twin.downcast_mut())
    }

    /// Adds what the devices show of themselves.
    pub fn show(&self, state: &mut SimulationState) {
        for (_, twin) in &self.twins {
            twin.show(&self.world, &self.ceiling, state);
        }
    }

    /// Whether the robot has a device, plugged in or not.
    #[must_use]
    pub fn has_device(&self, device: Device) -> bool {
        self.twins.iter().any(|(other, _)| *other == device)
    }

    /// Whether a device is plugged in.
    #[must_use]
    pub fn is_plugged(&self, device: Device) -> bool {
        !self.has(Fault::Unplug(device))
    }

    /// The active faults.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        self.faults.iter().map(|(fault, _)| *fault)
    }

    /// Starts a fault, for some time or until it is cleared.
    pub fn begin(&mut self, now: Duration, fault: Fault, length: Option<Duration>) {
        self.faults.retain(|(other, _)| *other != fault);
        self.faults.push((fault, length.map(|length| now + length)));
        match fault {
            Fault::LowBattery => self.set_battery_v(Some(LOW_BATTERY_V)),
            Fault::SaggingBattery => self.set_battery_sag(true),
            Fault::StuckWheel(wheel) => self.world.set_stuck(wheel, true),
            Fault::Tunnel => self.set_covered(true),
            Fault::Lift => self.set_lifted(true),
            Fault::Picture(fault) => self.set_picture_fault(fault, true),
            Fault::Unplug(device) => self.handle_hang_up(device),
            Fault::Stall(_) | Fault::Corrupt(_) => {}
        }
    }

    /// Plugs a device in again.
    pub fn replug(&mut self, device: Device) {
        self.stop(Fault::Unplug(device));
    }

    /// Clears all faults.
    pub fn clear(&mut self) {
        for (fault, _) in std::mem::take(&mut self.faults) {
            self.end(fault);
        }
    }

    /// Pulls the reset line.
    pub fn reset(&mut self, now: Duration) {
        for (_, twin) in &mut self.twins {
            twin.handle_reset(now);
        }
    }

    /// Flips a bit occasionally, if the device has the fault `corrupt`.
    fn corrupt(&mut self, device: Device, bytes: &mut [u8]) {
        let corrupt = self.has(Fault::Corrupt(device)) && !bytes.is_empty();
        if corrupt && self.random.usize(..CORRUPT_ONE_IN) == 0 {
            let place = self.random.usize(..bytes.len());
            bytes[place] ^= 1 << self.random.u32(..8);
        }
    }

    fn stop(&mut self, fault: Fault) {
        let before = self.faults.len();
        self.faults.retain(|(other, _)| *other != fault);
        if self.faults.len() < before {
            self.end(fault);
        }
    }

    fn end(&mut self, fault: Fault) {
        let now = self.world.now();
        match fault {
            Fault::LowBattery => self.set_battery_v(None),
            Fault::SaggingBattery => self.set_battery_sag(false),
            Fault::StuckWheel(wheel) => self.world.set_stuck(wheel, false),
            Fault::Tunnel => self.set_covered(false),
            Fault::Lift => self.set_lifted(false),
            Fault::Picture(fault) => self.set_picture_fault(fault, false),
            Fault::Unplug(device) => {
                if let Some(twin) = self.twin_of(device) {
                    twin.handle_plug_in(now);
                }
            }
            Fault::Stall(_) | Fault::Corrupt(_) => {}
        }
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        for (_, twin) in &mut self.twins {
            twin.set_battery_v(volts);
        }
    }

    fn set_battery_sag(&mut self, sags: bool) {
        for (_, twin) in &mut self.twins {
            twin.set_battery_sag(sags);
        }
    }

    fn set_covered(&mut self, is_covered: bool) {
        for (_, twin) in &mut self.twins {
            twin.set_covered(is_covered);
        }
    }

    fn set_lifted(&mut self, is_lifted: bool) {
        for (_, twin) in &mut self.twins {
            twin.set_lifted(is_lifted);
        }
    }

    fn set_picture_fault(&mut self, fault: PictureFault, is_on: bool) {
        for (_, twin) in &mut self.twins {
            twin.set_picture_fault(fault, is_on);
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.iter().any(|(other, _)| *other == fault)
    }

    fn next_fault_end(&self) -> Option<Duration> {
        self.faults.iter().filter_map(|(_, until)| *until).min()
    }

    fn move_world(&mut self, now: Duration) {
        while self.world.now() + STEP <= now {
            let drives = self.drives();
            if self.world.is_at_rest(drives) {
                self.world.rest_until(now);
            } else {
                self.world.step(drives);
            }
            let readings = self.world.readings();
            for (_, twin) in &mut self.twins {
                twin.handle_readings(self.world.now(), readings);
            }
        }
    }

    /// What the wheels are to do.
    fn drives(&self) -> Drives {
        let drives = self.twins.iter().find_map(|(_, twin)| twin.drives());
        drives.unwrap_or([Drive::RELEASED; 4].into())
    }

    fn twin_of(&mut self, device: Device) -> Option<&mut dyn Twin> {
        let mut twins = self.twins.iter_mut();
        let found = twins.find(|(other, _)| *other == device);
        found.map(|(_, twin)| &mut **twin)
    }
}

#[cfg(test)]
mod tests;
