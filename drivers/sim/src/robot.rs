//! The robot with its devices and their faults. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. Call
//! [`Robot::advance`] before any other call with a time; then drain [`Robot::poll_output`] of each
//! device. [`Robot::next_timeout`] tells when to call again without further input: `None` while
//! everything is at rest.

mod fault;

use std::time::Duration;

use amber_map::{Point, Pose, Segment};

pub use self::fault::{Connection, Device, Fault, MARKERS, UnknownDevice, UnknownFault};

use crate::ceiling::{Ceiling, Seen};
use crate::hokuyo::{self, Hokuyo, Link, Model, Quirks, Sweep};
use crate::i2c::{Reply, Transfer};
use crate::maestro::{self, Maestro};
use crate::ninedof::{Errors, Motion, NineDof};
use crate::roboclaw::{self, Roboclaws};
use crate::stargazer::{Guide, Stargazer};
use crate::world::{STEP, StartError, World};

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
    /// Its start pose.
    pub start: Pose,
    /// The seed of all noise.
    pub seed: u64,
    /// The motor controllers.
    pub roboclaw: roboclaw::Config,
    /// The laser scanner.
    pub model: Model,
    /// The markers above the StarGazer.
    pub ceiling: Ceiling,
    /// The variants of its devices.
    pub variants: Variants,
}

/// The variants of the devices of a robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variants {
    /// The laser scanners.
    pub scanner: Quirks,
    /// The servo controller.
    pub maestro: maestro::Config,
    /// The marker sensor.
    pub stargazer: Guide,
}

/// The robot.
#[derive(Clone, Debug)]
pub struct Robot {
    world: World,
    roboclaws: Roboclaws,
    scanner: Hokuyo,
    ethernet_scanner: Hokuyo,
    ninedof: NineDof,
    ceiling: Ceiling,
    stargazer: Stargazer,
    maestro: Maestro,
    faults: Vec<(Fault, Option<Duration>)>,
    random: fastrand::Rng,
    scans: u64,
}

impl Robot {
    /// Creates a robot that was just switched on.
    ///
    /// # Errors
    /// The start pose is not free.
    pub fn new(config: Config) -> Result<Self, StartError> {
        let mut random = fastrand::Rng::with_seed(config.seed);
        let quirks = config.variants.scanner;
        Ok(Self {
            world: World::new(config.walls, config.start, random.u64(..))?,
            roboclaws: Roboclaws::new(config.roboclaw),
            scanner: Hokuyo::with_quirks(config.model, Link::Serial, quirks, Duration::ZERO),
            ethernet_scanner: Hokuyo::with_quirks(
                config.model,
                Link::Ethernet,
                // Ethernet scanners are too new for SCIP 1.1.
                Quirks {
                    starts_in_scip_1: false,
                    ..quirks
                },
                Duration::ZERO,
            ),
            ninedof: NineDof::new(Errors::of_seed(config.seed), Duration::ZERO),
            stargazer: Stargazer::new(
                config.seed,
                config.variants.stargazer,
                config.ceiling.mark_type(),
                Duration::ZERO,
            ),
            ceiling: config.ceiling,
            maestro: Maestro::new(config.variants.maestro, Duration::ZERO),
            faults: Vec::new(),
            random,
            scans: 0,
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
        for device in [Device::Hokuyo, Device::HokuyoTcp] {
            while let Some(sweep) = self.scanner_mut(device).and_then(|it| it.poll_sweep(now)) {
                let scan = self.measure(sweep);
                self.scans += 1;
                if let Some(scanner) = self.scanner_mut(device) {
                    scanner.handle_scan(now, sweep, scan);
                }
            }
        }
        self.maestro.advance(now);
        while let Some(time) = self.stargazer.poll_look(now) {
            let view = self.view(self.world.pose_at(time));
            self.stargazer.handle_view(&view);
        }
    }

    /// Bytes for a device.
    pub fn handle_bytes(&mut self, now: Duration, device: Device, bytes: &[u8]) {
        if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
            return;
        }
        match device {
            Device::Roboclaw => self.roboclaws.handle_bytes(now, bytes),
            Device::Hokuyo => self.scanner.handle_bytes(now, bytes),
            Device::HokuyoTcp => self.ethernet_scanner.handle_bytes(now, bytes),
            Device::Stargazer => self.stargazer.handle_bytes(now, bytes),
            Device::Maestro => self.maestro.handle_bytes(bytes),
            // The board uses transfers instead of bytes.
            Device::NineDof => {}
        }
        self.advance(now);
    }

    /// Carries out a transfer on the bus of the board; `None` if the bus is stuck.
    pub fn handle_transfer(&mut self, now: Duration, transfer: &Transfer) -> Option<Reply> {
        let device = Device::NineDof;
        if self.has(Fault::Stall(device)) {
            return None;
        }
        if self.has(Fault::Unplug(device)) {
            return Some(Reply::Nak);
        }
        let world = &self.world;
        let truth = |time| Motion::of(world, time);
        let mut reply = self.ninedof.transfer(now, transfer, &truth);
        if let Reply::Ack(bytes) = &mut reply {
            self.corrupt(device, bytes);
        }
        Some(reply)
    }

    /// The program that was connected to a device has disconnected.
    pub fn handle_hang_up(&mut self, device: Device) {
        match device {
            Device::Roboclaw => self.roboclaws.handle_unplug(),
            Device::Hokuyo => self.scanner.handle_hang_up(),
            Device::HokuyoTcp => self.ethernet_scanner.handle_hang_up(),
            // These devices do not notice who is connected.
            Device::NineDof | Device::Stargazer | Device::Maestro => {}
        }
    }

    /// The next bytes that a device sends.
    pub fn poll_output(&mut self, now: Duration, device: Device) -> Option<Vec<u8>> {
        loop {
            let mut bytes = match device {
                Device::Roboclaw => self.roboclaws.poll_output(now)?,
                Device::Hokuyo => self.scanner.poll_output()?,
                Device::HokuyoTcp => self.ethernet_scanner.poll_output()?,
                Device::Stargazer => self.stargazer.poll_output()?,
                Device::Maestro => self.maestro.poll_output()?,
                Device::NineDof => return None,
            };
            if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
                continue;
            }
            self.corrupt(device, &mut bytes);
            return Some(bytes);
        }
    }

    /// Whether a device has closed its connection since the last call. Send the output of
    /// [`Robot::poll_output`] first.
    pub fn poll_hang_up(&mut self, device: Device) -> bool {
        self.scanner_mut(device).is_some_and(Hokuyo::poll_hang_up)
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self, now: Duration) -> Option<Duration> {
        let resting = self.world.is_at_rest(self.roboclaws.drives());
        [
            (!resting).then_some(now + NAP),
            self.roboclaws.next_timeout(),
            self.scanner.next_timeout(),
            self.ethernet_scanner.next_timeout(),
            self.stargazer.next_timeout(),
            self.maestro.next_timeout(),
            self.next_fault_end(),
        ]
        .into_iter()
        .flatten()
        .min()
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

    /// The number of scans measured.
    #[must_use]
    pub fn scans(&self) -> u64 {
        self.scans
    }

    /// Whether the laser of a scanner is on.
    #[must_use]
    pub fn is_laser_on(&self) -> bool {
        self.scanner.is_laser_on() || self.ethernet_scanner.is_laser_on()
    }

    /// The board with accelerometer, gyroscope and magnetometer.
    #[must_use]
    pub fn ninedof(&self) -> &NineDof {
        &self.ninedof
    }

    /// The marker sensor.
    #[must_use]
    pub fn stargazer(&self) -> &Stargazer {
        &self.stargazer
    }

    /// Mutable access to the marker sensor, for tests.
    pub fn stargazer_mut(&mut self) -> &mut Stargazer {
        &mut self.stargazer
    }

    /// The servo controller.
    #[must_use]
    pub fn maestro(&self) -> &Maestro {
        &self.maestro
    }

    /// The markers in view now, the nearest first.
    pub fn markers_in_view(&self) -> impl Iterator<Item = u32> {
        let seen = self
            .ceiling
            .seen_from(self.world.pose(), self.world.walls());
        seen.into_iter().map(|seen| seen.id)
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
            Fault::LowBattery => self.roboclaws.set_battery_v(Some(LOW_BATTERY_V)),
            Fault::StuckWheel(wheel) => self.world.set_stuck(wheel, true),
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

    /// Pulls the reset line of the motor controllers.
    pub fn reset_roboclaws(&mut self, now: Duration) {
        self.roboclaws.handle_reset(now);
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
        match fault {
            Fault::LowBattery => self.roboclaws.set_battery_v(None),
            Fault::StuckWheel(wheel) => self.world.set_stuck(wheel, false),
            Fault::Unplug(device) => {
                // The plug also powers scanners and boards, so they restart.
                let now = self.world.now();
                if let Some(scanner) = self.scanner_mut(device) {
                    *scanner = scanner.restarted(now);
                }
                match device {
                    Device::NineDof => self.ninedof.restart(now),
                    Device::Stargazer => self.stargazer.restart(now),
                    Device::Maestro => self.maestro.restart(now),
                    Device::Roboclaw | Device::Hokuyo | Device::HokuyoTcp => {}
                }
            }
            Fault::Stall(_) | Fault::Corrupt(_) => {}
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
            let drives = self.roboclaws.drives();
            if self.world.is_at_rest(drives) {
                self.world.rest_until(now);
            } else {
                self.world.step(drives);
            }
            let readings = self.world.readings();
            self.roboclaws.handle_readings(self.world.now(), readings);
        }
    }

    fn measure(&mut self, sweep: Sweep) -> hokuyo::Scan {
        let model = self.scanner.model();
        let limit_m = f64::from(model.max_mm()) / 1000.0;
        let distances: Vec<_> = (0..=model.last_step())
            .map(|step| {
                let time = model.beam_time(sweep, step);
                let angle = model.angle(step);
                let way_m = self.world.beam(time, angle, limit_m)?;
                let pose = self.world.pose_at(time);
                let way = Point::new(way_m, 0.0).turned(pose.heading + angle);
                // Only the URG cannot see dark walls.
                let is_lost = model == Model::Urg04Lx && hokuyo::is_dark(pose.at.plus(way));
                (!is_lost).then_some(way_m)
            })
            .collect();
        model.measure(&distances, &mut self.random)
    }

    /// The view of the StarGazer from a pose.
    fn view(&self, pose: Pose) -> Vec<Seen> {
        let mut view = self.ceiling.seen_from(pose, self.world.walls());
        if let Some(reference) = self.stargazer.reference()
            && let Some(pose) = self.ceiling.from_marker(reference, pose)
        {
            view.iter_mut().for_each(|seen| seen.pose = pose);
        }
        view
    }

    fn scanner_mut(&mut self, device: Device) -> Option<&mut Hokuyo> {
        match device {
            Device::Roboclaw | Device::NineDof | Device::Stargazer | Device::Maestro => None,
            Device::Hokuyo => Some(&mut self.scanner),
            Device::HokuyoTcp => Some(&mut self.ethernet_scanner),
        }
    }
}

#[cfg(test)]
mod tests;
