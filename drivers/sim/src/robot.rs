//! The robot with its devices and what is wrong with them, in one piece. PURE.
//!
//! Time is a [`Duration`] since the simulation began and never goes back. Call
//! [`Robot::advance`] before anything else that comes with a time; afterwards
//! drain [`Robot::poll_output`] of each device. [`Robot::next_timeout`] says
//! when to come again if nothing else happens: never, while all is at rest.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::geometry::{Pose, Segment};
use crate::hokuyo::{self, Hokuyo, Link, Model, Sweep};
use crate::roboclaw::{self, Roboclaws};
use crate::wheels::{UnknownWheel, Wheel};
use crate::world::{STEP, StartError, World};

/// How long a moving world is left alone.
const NAP: Duration = Duration::from_millis(50);
/// The voltage of a battery that is low.
const LOW_BATTERY_V: f64 = 10.0;
/// With the fault `corrupt`, about one of so many replies or scans has a wrong bit.
const CORRUPT_ONE_IN: usize = 4;

/// A device that somebody can be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The bus of the motor controllers.
    Roboclaw,
    /// The laser scanner.
    Hokuyo,
    /// The laser scanner that is connected by TCP.
    HokuyoTcp,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The plug of a device is out.
    Unplug(Device),
    /// A device neither hears nor says anything.
    Stall(Device),
    /// Some bits that a device sends are wrong.
    Corrupt(Device),
    /// The main battery is almost empty.
    LowBattery,
    /// A wheel does not turn.
    StuckWheel(Wheel),
}

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
}

/// The robot.
#[derive(Clone, Debug)]
pub struct Robot {
    world: World,
    roboclaws: Roboclaws,
    scanner: Hokuyo,
    ethernet_scanner: Hokuyo,
    faults: Vec<(Fault, Option<Duration>)>,
    random: fastrand::Rng,
    scans: u64,
}

impl Device {
    /// All devices.
    pub const ALL: [Self; 3] = [Self::Roboclaw, Self::Hokuyo, Self::HokuyoTcp];

    /// The name that people write.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Roboclaw => "roboclaw",
            Self::Hokuyo => "hokuyo",
            Self::HokuyoTcp => "hokuyo-tcp",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let mut all = Self::ALL.into_iter();
        all.find(|device| device.name() == name)
            .ok_or_else(|| UnknownDevice(name.to_owned()))
    }
}

/// No device has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such device (roboclaw, hokuyo, hokuyo-tcp): {0:?}")]
pub struct UnknownDevice(String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unplug(device) => write!(f, "unplug {device}"),
            Self::Stall(device) => write!(f, "stall {device}"),
            Self::Corrupt(device) => write!(f, "corrupt {device}"),
            Self::LowBattery => f.write_str("low-battery"),
            Self::StuckWheel(wheel) => write!(f, "stuck-wheel {wheel}"),
        }
    }
}

/// A fault is written as its name and, where it has one, what it is about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFault {
    /// There is no such fault.
    #[error("no such fault (unplug, stall, corrupt, low-battery, stuck-wheel): {0:?}")]
    Name(String),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
    /// There is no such wheel.
    #[error(transparent)]
    Wheel(#[from] UnknownWheel),
    /// It must be said which one.
    #[error("{0} needs to know what: name a {1}")]
    Missing(&'static str, &'static str),
}

impl Fault {
    /// A fault by its name and what it is about.
    ///
    /// # Errors
    /// One of them is not known, or missing.
    pub fn parse(name: &str, about: Option<&str>) -> Result<Self, UnknownFault> {
        let device = |name: &'static str| -> Result<Device, UnknownFault> {
            Ok(about
                .ok_or(UnknownFault::Missing(name, "device"))?
                .parse()?)
        };
        Ok(match name {
            "unplug" => Self::Unplug(device("unplug")?),
            "stall" => Self::Stall(device("stall")?),
            "corrupt" => Self::Corrupt(device("corrupt")?),
            "low-battery" => Self::LowBattery,
            "stuck-wheel" => {
                let missing = UnknownFault::Missing("stuck-wheel", "wheel");
                Self::StuckWheel(about.ok_or(missing)?.parse()?)
            }
            _ => return Err(UnknownFault::Name(name.to_owned())),
        })
    }
}

impl Robot {
    /// A robot that was just switched on.
    ///
    /// # Errors
    /// It cannot stand where it should begin.
    pub fn new(config: Config) -> Result<Self, StartError> {
        let mut random = fastrand::Rng::with_seed(config.seed);
        Ok(Self {
            world: World::new(config.walls, config.start, random.u64(..))?,
            roboclaws: Roboclaws::new(config.roboclaw),
            scanner: Hokuyo::new(config.model, Link::Serial, Duration::ZERO),
            ethernet_scanner: Hokuyo::new(config.model, Link::Ethernet, Duration::ZERO),
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
    }

    /// Bytes for a device.
    pub fn handle_bytes(&mut self, now: Duration, device: Device, bytes: &[u8]) {
        if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
            return;
        }
        match self.scanner_mut(device) {
            Some(scanner) => scanner.handle_bytes(now, bytes),
            None => self.roboclaws.handle_bytes(now, bytes),
        }
        self.advance(now);
    }

    /// Whoever was connected to a device is gone.
    pub fn handle_hang_up(&mut self, device: Device) {
        match self.scanner_mut(device) {
            Some(scanner) => scanner.handle_hang_up(),
            None => self.roboclaws.handle_unplug(),
        }
    }

    /// The next bytes that a device sends.
    pub fn poll_output(&mut self, now: Duration, device: Device) -> Option<Vec<u8>> {
        loop {
            let mut bytes = match self.scanner_mut(device) {
                Some(scanner) => scanner.poll_output()?,
                None => self.roboclaws.poll_output(now)?,
            };
            if self.has(Fault::Stall(device)) || self.has(Fault::Unplug(device)) {
                continue;
            }
            let corrupt = self.has(Fault::Corrupt(device)) && !bytes.is_empty();
            if corrupt && self.random.usize(..CORRUPT_ONE_IN) == 0 {
                let place = self.random.usize(..bytes.len());
                bytes[place] ^= 1 << self.random.u32(..8);
            }
            return Some(bytes);
        }
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
                // A scanner gets its power by the same plug, so it begins anew.
                let now = self.world.now();
                if let Some(scanner) = self.scanner_mut(device) {
                    *scanner = scanner.restarted(now);
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
                self.world.beam(time, model.angle(step), limit_m)
            })
            .collect();
        model.measure(&distances, &mut self.random)
    }

    fn scanner_mut(&mut self, device: Device) -> Option<&mut Hokuyo> {
        match device {
            Device::Roboclaw => None,
            Device::Hokuyo => Some(&mut self.scanner),
            Device::HokuyoTcp => Some(&mut self.ethernet_scanner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Map;
    use crate::world::find_start;

    const MS: Duration = Duration::from_millis(1);
    const NOTHING: [u8; 0] = [];

    fn robot() -> Robot {
        robot_with(1)
    }

    fn robot_with(seed: u64) -> Robot {
        let map = Map::flat();
        let start = find_start(&map.walls, &map.robots).unwrap();
        Robot::new(Config {
            walls: map.walls,
            start,
            seed,
            roboclaw: roboclaw::Config::default(),
            model: Model::Urg04Lx,
        })
        .unwrap()
    }

    fn exchange(robot: &mut Robot, now: Duration, device: Device, bytes: &[u8]) -> Vec<u8> {
        robot.advance(now);
        robot.handle_bytes(now, device, bytes);
        sent(robot, now, device)
    }

    fn sent(robot: &mut Robot, now: Duration, device: Device) -> Vec<u8> {
        std::iter::from_fn(|| robot.poll_output(now, device))
            .flatten()
            .collect()
    }

    fn drive(robot: &mut Robot, now: Duration, qpps: i32) {
        for address in [0x81, 0x80] {
            let speed = qpps.to_be_bytes();
            let mut packet = [&[address, 37], speed.as_slice(), &speed].concat();
            packet.extend(roboclaw::crc16(&packet).to_be_bytes());
            assert_eq!(exchange(robot, now, Device::Roboclaw, &packet), [0xFF]);
        }
    }

    #[test]
    fn three_seconds_at_300_mm_per_second_by_serial_bytes() {
        let mut robot = robot();
        let before = robot.world().pose();
        drive(&mut robot, MS * 1000, 1484);
        robot.advance(MS * 3000);
        let reply = exchange(&mut robot, MS * 3000, Device::Roboclaw, &[0x81, 18]);
        let qpps = i32::from_be_bytes(reply[..4].try_into().unwrap());
        assert!((f64::from(qpps) / 1484.0 - 1.0).abs() < 0.03, "{qpps}");
        drive(&mut robot, MS * 4000, 0);
        robot.advance(MS * 6000);
        let way = robot.world().pose().at.minus(before.at);
        assert!((way.length() - 0.9).abs() < 0.027, "{way:?}");
        assert_eq!(robot.world().contacts(), 0);
        assert_eq!(robot.next_timeout(MS * 6000), None, "all is at rest");
    }

    #[test]
    fn a_scan_shows_the_walls() {
        let mut robot = robot();
        exchange(&mut robot, MS * 1500, Device::Hokuyo, b"BM\n");
        let before = robot.scans();
        robot.advance(MS * 2000);
        assert_eq!(robot.scans(), before, "nobody asked");
        // From the middle of the hall to its end; through the door of the bath
        // on the left; to the wall on the right.
        for (step, expected_mm) in [(384, 3_500), (640, 2_600), (128, 600)] {
            let request = format!("GD{step:04}{step:04}01\n");
            let reply = exchange(&mut robot, MS * 2000, Device::Hokuyo, request.as_bytes());
            let lines: Vec<_> = reply.split(|byte| *byte == b'\n').collect();
            let value = lines[3][..3]
                .iter()
                .fold(0, |value, byte| value * 64 + u32::from(byte - 0x30));
            assert!(value.abs_diff(expected_mm) < 70, "step {step}: {value}");
        }
        assert_eq!(robot.scans(), before + 1, "one turn is measured once");
    }

    #[test]
    fn the_same_seed_is_the_same_robot() {
        let run = |seed| {
            let mut robot = robot_with(seed);
            drive(&mut robot, MS * 1000, 700);
            let scans = b"MD0044072501000\n";
            let mut all = exchange(&mut robot, MS * 1000, Device::Hokuyo, scans);
            for time in 10..40 {
                robot.advance(MS * 100 * time);
                all.extend(sent(&mut robot, MS * 100 * time, Device::Hokuyo));
                let speed = [0x80, 18];
                all.extend(exchange(
                    &mut robot,
                    MS * 100 * time,
                    Device::Roboclaw,
                    &speed,
                ));
            }
            all
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn an_unplugged_device_is_silent_and_a_scanner_forgets() {
        let mut robot = robot();
        let bm = |robot: &mut Robot, ms| exchange(robot, MS * ms, Device::Hokuyo, b"BM\n");
        assert_eq!(bm(&mut robot, 100), b"BM\n00P\n\n");
        assert_eq!(bm(&mut robot, 200), b"BM\n02R\n\n");
        let unplug = Fault::Unplug(Device::Hokuyo);
        robot.begin(MS * 300, unplug, Some(MS * 1000));
        assert!(!robot.is_plugged(Device::Hokuyo));
        assert_eq!(bm(&mut robot, 400), b"");
        assert_eq!(robot.next_timeout(MS * 400), Some(MS * 1300));
        assert_eq!(bm(&mut robot, 1300), b"BM\n00P\n\n");
        assert!(robot.is_plugged(Device::Hokuyo));

        robot.begin(MS * 1400, Fault::Unplug(Device::Roboclaw), None);
        assert_eq!(
            exchange(&mut robot, MS * 1500, Device::Roboclaw, &[0x80, 90]),
            NOTHING
        );
        robot.replug(Device::Roboclaw);
        assert!(!exchange(&mut robot, MS * 1600, Device::Roboclaw, &[0x80, 90]).is_empty());
    }

    #[test]
    fn motors_go_on_without_their_plug() {
        let mut robot = robot();
        drive(&mut robot, MS * 1000, 500);
        robot.begin(MS * 1000, Fault::Unplug(Device::Roboclaw), None);
        robot.advance(MS * 3000);
        assert!(robot.world().travelled_m() > 0.15);
    }

    #[test]
    fn faults_change_what_is_said() {
        let mut robot = robot();
        let status =
            |robot: &mut Robot, ms| exchange(robot, MS * ms, Device::Roboclaw, &[0x80, 90]);
        let fine = status(&mut robot, 100);
        robot.begin(MS * 200, Fault::LowBattery, None);
        assert_eq!(status(&mut robot, 200)[..4], [0, 8, 0, 0]);
        robot.clear();
        assert_eq!(status(&mut robot, 300), fine);
        robot.begin(MS * 400, Fault::Stall(Device::Roboclaw), None);
        assert_eq!(status(&mut robot, 400), NOTHING);
        robot.clear();
        robot.begin(MS * 500, Fault::Corrupt(Device::Roboclaw), None);
        let wrong = (0..100).any(|time| status(&mut robot, 500 + 20 * time) != fine);
        assert!(wrong);
        assert_eq!(robot.faults().count(), 1);
    }

    #[test]
    fn a_stuck_wheel_is_seen_by_its_current() {
        let mut robot = robot();
        robot.begin(MS, Fault::StuckWheel(Wheel::RearLeft), None);
        drive(&mut robot, MS * 100, 500);
        let reply = exchange(&mut robot, MS * 1000, Device::Roboclaw, &[0x80, 90]);
        assert_eq!(reply[..4], [0x00, 0x02, 0x20, 0x00]);
        let reply = exchange(&mut robot, MS * 1100, Device::Roboclaw, &[0x80, 19]);
        assert_eq!(reply[..4], [0; 4]);
    }

    #[test]
    fn faults_have_names() {
        for (name, about, fault) in [
            ("unplug", Some("hokuyo"), Fault::Unplug(Device::Hokuyo)),
            ("low-battery", None, Fault::LowBattery),
            (
                "stuck-wheel",
                Some("front-left"),
                Fault::StuckWheel(Wheel::FrontLeft),
            ),
        ] {
            assert_eq!(Fault::parse(name, about), Ok(fault));
        }
        for (name, about, error) in [
            (
                "melt",
                None,
                "no such fault (unplug, stall, corrupt, low-battery, stuck-wheel): \"melt\"",
            ),
            ("stall", None, "stall needs to know what: name a device"),
            (
                "stall",
                Some("gps"),
                "no such device (roboclaw, hokuyo, hokuyo-tcp): \"gps\"",
            ),
        ] {
            assert_eq!(Fault::parse(name, about).unwrap_err().to_string(), error);
        }
    }
}
