//! The robot with its devices and what is wrong with them, in one piece. PURE.
//!
//! Time is a [`Duration`] since the simulation began and never goes back. Call
//! [`Robot::advance`] before anything else that comes with a time; afterwards
//! drain [`Robot::poll_output`] of each device. [`Robot::next_timeout`] says
//! when to come again if nothing else happens: never, while all is at rest.

mod fault;

use std::time::Duration;

pub use self::fault::{Device, Fault, UnknownDevice, UnknownFault};

use crate::ceiling::{Ceiling, Seen};
use crate::geometry::{Point, Pose, Segment};
use crate::hokuyo::{self, Hokuyo, Link, Model, Quirks, Sweep};
use crate::i2c::{Reply, Transfer};
use crate::maestro::{self, Maestro};
use crate::ninedof::{Errors, Motion, NineDof};
use crate::roboclaw::{self, Roboclaws};
use crate::stargazer::{Guide, Stargazer};
use crate::world::{STEP, StartError, World};

/// How long a moving world is left alone.
const NAP: Duration = Duration::from_millis(50);
/// The voltage of a battery that is low.
const LOW_BATTERY_V: f64 = 10.0;
/// With the fault `corrupt`, about one of so many replies or scans has a wrong bit.
const CORRUPT_ONE_IN: usize = 4;

/// How a robot is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it drives between.
    pub walls: Vec<Segment>,
    /// Where it begins.
    pub start: Pose,
    /// The seed of all noise.
    pub seed: u64,
    /// The motor controllers.
    pub roboclaw: roboclaw::Config,
    /// The laser scanner.
    pub model: Model,
    /// What the StarGazer looks up at.
    pub ceiling: Ceiling,
    /// Which variants of the devices it has.
    pub variants: Variants,
}

/// Which variants of its devices a robot has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variants {
    /// The laser scanners.
    pub scanner: Quirks,
    /// The servo controller.
    pub maestro: maestro::Config,
    /// The sensor that looks up at markers.
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
    /// A robot that was just switched on.
    ///
    /// # Errors
    /// It cannot stand where it should begin.
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
                // Scanners with Ethernet are too new for SCIP 1.1.
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

    /// Brings everything up to a time.
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
            // It has no bytes but transfers.
            Device::NineDof => {}
        }
        self.advance(now);
    }

    /// Something goes over the bus of a board; `None` when that is stuck.
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

    /// Whoever was connected to a device is gone.
    pub fn handle_hang_up(&mut self, device: Device) {
        match device {
            Device::Roboclaw => self.roboclaws.handle_unplug(),
            Device::Hokuyo => self.scanner.handle_hang_up(),
            Device::HokuyoTcp => self.ethernet_scanner.handle_hang_up(),
            // These do not know who speaks to them.
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

    /// Whether a device has dropped its connection since the last call. Send
    /// what [`Robot::poll_output`] has first.
    pub fn poll_hang_up(&mut self, device: Device) -> bool {
        self.scanner_mut(device).is_some_and(Hokuyo::poll_hang_up)
    }

    /// When something happens even if nothing comes in.
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

    /// The world as it truly is.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Puts the robot somewhere else.
    ///
    /// # Errors
    /// A wall is there; nothing has changed.
    pub fn place(&mut self, pose: Pose) -> Result<(), StartError> {
        self.world.place(pose)
    }

    /// How many scans were measured.
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

    /// The sensor that looks up at markers.
    #[must_use]
    pub fn stargazer(&self) -> &Stargazer {
        &self.stargazer
    }

    /// The same, to make it another one.
    pub fn stargazer_mut(&mut self) -> &mut Stargazer {
        &mut self.stargazer
    }

    /// The servo controller.
    #[must_use]
    pub fn maestro(&self) -> &Maestro {
        &self.maestro
    }

    /// The markers that it could see now, the nearest first.
    pub fn markers_in_view(&self) -> impl Iterator<Item = u32> {
        let seen = self
            .ceiling
            .seen_from(self.world.pose(), self.world.walls());
        seen.into_iter().map(|seen| seen.id)
    }

    /// Whether the plug of a device is in.
    #[must_use]
    pub fn is_plugged(&self, device: Device) -> bool {
        !self.has(Fault::Unplug(device))
    }

    /// What is wrong now.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        self.faults.iter().map(|(fault, _)| *fault)
    }

    /// Something goes wrong, for some time or until it is ended.
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

    /// The plug of a device is in again.
    pub fn replug(&mut self, device: Device) {
        self.stop(Fault::Unplug(device));
    }

    /// Nothing is wrong any more.
    pub fn clear(&mut self) {
        for (fault, _) in std::mem::take(&mut self.faults) {
            self.end(fault);
        }
    }

    /// The reset line of the motor controllers was pulled.
    pub fn reset_roboclaws(&mut self, now: Duration) {
        self.roboclaws.handle_reset(now);
    }

    /// Turns a bit round now and then, if that is what is wrong.
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
                // Scanners and boards get their power by the same plug, so they begin anew.
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
                // Only the URG is so weak.
                let is_lost = model == Model::Urg04Lx && hokuyo::is_dark(pose.at.plus(way));
                (!is_lost).then_some(way_m)
            })
            .collect();
        model.measure(&distances, &mut self.random)
    }

    /// What the StarGazer sees from a place.
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
