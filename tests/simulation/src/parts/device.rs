//! A simulated device at the other end of a port or a bus, in the same process. IO, on the clock of
//! tokio.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amber_drivers::connection::{Connect, Connection};
use amber_drivers::i2c::{Bus, BusError, OpenBus};
use amber_map::{Point, Pose, Segment};
use amber_sim::Devices;
use amber_sim::ceiling::Ceiling;
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::robot::{Config, Device, Fault, RobotTwin};
use clap::{Args, Command, FromArgMatches};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::random::Random;

/// What lies in a port in each direction, in bytes.
const PORT: usize = 64 * 1024;
/// The longest garbage, in bytes.
const GARBAGE: usize = 500;

/// A room without anything in it, in metres.
const ROOM: (f64, f64) = (6.0, 5.0);

/// A simulated robot with the device, which its driver can open. Clones are the same device.
#[derive(Clone)]
pub struct Place {
    robot: Arc<Mutex<RobotTwin>>,
    device: Device,
    /// The other devices of the robot, which nobody uses.
    others: Vec<Device>,
    begin: Instant,
    /// What a program writes that opens the port.
    greeting: &'static [u8],
    opened: mpsc::UnboundedSender<DuplexStream>,
    changed: Arc<Notify>,
    garbage: Arc<Mutex<Vec<u8>>>,
}

/// The ports that were opened.
pub type Opened = mpsc::UnboundedReceiver<DuplexStream>;

impl Place {
    /// Switches a robot on whose options are these, as of `amber sim`. `device` is the name of one of its
    /// devices.
    ///
    /// # Errors
    /// There is no such option or device.
    pub fn new(
        options: &[&str],
        device: &str,
        greeting: &'static [u8],
        seed: u64,
    ) -> Result<(Self, Opened), String> {
        let command = Devices::augment_args(Command::new("sim").no_binary_name(true));
        let matches = command.try_get_matches_from(options);
        let devices = matches.and_then(|matches| Devices::from_arg_matches(&matches));
        let robot = RobotTwin::new(Config {
            walls: room(),
            ceiling: Ceiling::default(),
            start: Pose {
                at: Point::new(ROOM.0 / 3.0, ROOM.1 / 2.0),
                heading: 0.3,
            },
            seed,
            speed: 1.0,
            devices: devices.map_err(|error| error.to_string())?,
        });
        let robot = robot.map_err(|error| error.to_string())?;
        let device: Device = device.parse().map_err(|error| format!("{error}"))?;
        let others = Device::all().filter(|other| *other != device && robot.has_device(*other));
        let others = others.collect();
        let (opened, ports) = mpsc::unbounded_channel();
        let place = Self {
            robot: Arc::new(Mutex::new(robot)),
            device,
            others,
            begin: Instant::now(),
            greeting,
            opened,
            changed: Arc::default(),
            garbage: Arc::default(),
        };
        Ok((place, ports))
    }

    /// Starts a fault of the device for some time.
    pub fn fail(&self, fault: fn(Device) -> Fault, length: Duration) {
        let now = self.begin.elapsed();
        let mut robot = lock(&self.robot);
        robot.advance(now);
        robot.begin(now, fault(self.device), Some(length));
        drop(robot);
        self.changed.notify_one();
    }

    /// Lets some random bytes arrive at the port.
    pub fn spoil(&self, random: &mut Random) {
        let length = random.usize(1..=GARBAGE);
        lock(&self.garbage).extend((0..length).map(|_| random.u8(..)));
        self.changed.notify_one();
    }

    /// Lets the time pass for the device, and serves its port. Never ends.
    pub async fn run(self, mut opened: Opened) {
        let mut port: Option<DuplexStream> = None;
        let mut buffer = [0; 4096];
        loop {
            let due = lock(&self.robot).next_timeout(self.begin.elapsed());
            let far = Duration::from_secs(3600);
            let read = tokio::select! {
                biased;
                Some(next) = opened.recv() => {
                    port = Some(next);
                    None
                }
                read = read(&mut port, &mut buffer) => Some(read),
                () = self.changed.notified() => None,
                () = sleep_until(self.begin + due.unwrap_or(self.begin.elapsed() + far)) => None,
            };
            let output = self.step(&mut port, read.map(|length| &buffer[..length]));
            // Without a port, the bytes are lost.
            if let Some(open) = &mut port
                && !output.is_empty()
                && open.write_all(&output).await.is_err()
            {
                port = None;
            }
        }
    }

    /// Advances to now, with these bytes from the port (none: it was closed). Returns what the device
    /// sends.
    fn step(&self, port: &mut Option<DuplexStream>, read: Option<&[u8]>) -> Vec<u8> {
        let now = self.begin.elapsed();
        let mut robot = lock(&self.robot);
        robot.advance(now);
        match read {
            Some([]) => *port = None,
            Some(bytes) => robot.handle_bytes(now, self.device, bytes),
            None => {}
        }
        if !robot.is_plugged(self.device) {
            *port = None;
        }
        let mut output = std::mem::take(&mut *lock(&self.garbage));
        while let Some(bytes) = robot.poll_output(now, self.device) {
            output.extend(bytes);
        }
        for other in &self.others {
            while robot.poll_output(now, *other).is_some() {}
        }
        output
    }
}

impl Connect for Place {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        if !lock(&self.robot).is_plugged(self.device) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (mut near, far) = duplex(PORT);
        let sent = self.opened.send(far);
        sent.map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        near.write_all(self.greeting).await?;
        Ok(Box::new(near))
    }
}

impl OpenBus for Place {
    fn open(&mut self) -> Result<Box<dyn Bus>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Bus for Place {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let now = self.begin.elapsed();
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: read.len() as u8,
        };
        let mut robot = lock(&self.robot);
        robot.advance(now);
        match robot.handle_transfer(now, self.device, &transfer) {
            Some(Reply::Ack(bytes)) => {
                read.copy_from_slice(&bytes);
                Ok(())
            }
            Some(Reply::Nak) => Err(BusError::Nak),
            // A real bus says so after a second.
            None => Err(BusError::Broken("the bus is stuck".into())),
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for bytes; 0 if the port was closed.
async fn read(port: &mut Option<DuplexStream>, buffer: &mut [u8]) -> usize {
    match port {
        Some(port) => port.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

fn room() -> Vec<Segment> {
    let (width, height) = ROOM;
    let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
    let corner = |index: usize| Point::new(corners[index % 4].0, corners[index % 4].1);
    let wall = |index| Segment {
        from: corner(index),
        to: corner(index + 1),
    };
    (0..4).map(wall).collect()
}
