//! The main loop of a simulation: bytes, time and requests go to the robot, and its output goes
//! out. IO.
//!
//! ```text
//! ptys, TCP, control socket --> one task: RobotTwin::advance to now, then handle --> drain all outputs
//!                                  ^                                                |
//!                                  +---- sleeps until next_timeout, or for ever <---+
//! ```
//!
//! Simulated time is real time multiplied by the speed, except on a busy machine: see `clock`. There
//! is no tick: while the robot is at rest and no program uses it, only the marker sensor works.

use std::future::{Future, pending};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use amber_map::{Map, MapPose, Pose};
use tokio::task::yield_now;
use tokio::time::Instant;
use tracing::info;

use crate::bus_servos::Bus;
use crate::ceiling::{self, Ceiling};
use crate::clock::Clock;
use crate::clock_file::{self, ClockFile};
use crate::control::{Answer, Control, Request, SimulationState, Wheels};
use crate::device::{Connection, Device, UnknownDevice};
use crate::first::first;
use crate::folder::{Folder, FolderError};
use crate::gamepad::{Gamepad, Hold};
use crate::i2c_port::{I2cPort, PendingTransfer};
use crate::ptys::Ptys;
use crate::reset_line::ResetLine;
use crate::robot::{self, Fault, RobotTwin};
use crate::tcp::{TcpEvent, TcpPort};
use crate::world::{StartError, find_start};
use crate::{Devices, dynamixel, feetech};

/// The pipe in the folder that represents the reset line of the motor controllers.
pub const RESET_LINE: &str = "reset";
/// The maximum speed.
const MAX_SPEED: f64 = 1_000.0;

/// The configuration of a simulation.
#[derive(Clone, Debug)]
pub struct Config {
    /// The walls.
    pub map: Map,
    /// The folder for the links of the devices and the control socket. It is created if necessary,
    /// and then removed at the end. Other users must not be able to write to it.
    pub folder: PathBuf,
    /// The start pose in map coordinates: metres with y down, and degrees clockwise from x. If
    /// absent, a start in the map, or a position found between the walls.
    pub start: Option<(f64, f64, f64)>,
    /// The seed of all noise.
    pub seed: u64,
    /// The speed relative to real time.
    pub speed: f64,
    pub devices: Devices,
}

/// Why a simulation did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder is in use.
    #[error("another simulation is running in {}", .0.display())]
    InUse(PathBuf),
    /// Other users could redirect our files.
    #[error("{0}")]
    Unsafe(String),
    /// A file, socket or pseudo-terminal could not be created.
    #[error("{what}: {error}")]
    Io {
        /// The failed action.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The start pose is not free.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The speed is out of range.
    #[error("the speed must be above 0 and at most {MAX_SPEED}, not {0}")]
    Speed(f64),
    /// A coordinate is NaN or infinite.
    #[error("the start must be three finite numbers")]
    Place,
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::InUse(folder) => Self::InUse(folder),
            FolderError::Unsafe { .. } => Self::Unsafe(error.to_string()),
            FolderError::Io { folder, error } => {
                failed(format!("cannot use {}", folder.display()), error)
            }
        }
    }
}

impl Error {
    /// How to correct it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse(_) => Some("stop it, or choose another folder with --dir"),
            Self::Unsafe(_) => {
                Some("choose a folder of your own with --dir or AMBER_SIM_DIR, or remove this one")
            }
            Self::Start(_) => Some("choose another place with --start X,Y,HEADING"),
            Self::Io { .. } | Self::Speed(_) | Self::Place => None,
        }
    }
}

/// A simulation that is ready: its devices can be opened.
#[derive(Debug)]
pub struct Simulator {
    robot: RobotTwin,
    map: String,
    clock: Clock,
    clock_file: ClockFile,
    /// The devices that are plugged in.
    ptys: Ptys,
    tcp: Vec<(Device, TcpPort)>,
    buses: Vec<(Device, I2cPort)>,
    control: Control,
    reset_line: ResetLine,
    /// Dropped last, after the others have removed their files.
    folder: Folder,
}

/// Events that wake the loop.
enum Event {
    Bytes(Device, Vec<u8>),
    HungUp(Device),
    Transfer(Device, PendingTransfer),
    Request(crate::control::PendingRequest),
    Reset,
    Time,
    End,
}

impl Simulator {
    /// Creates the devices. They do not process their input before [`Simulator::run`].
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Panics
    /// Called outside a tokio runtime with IO and time.
    pub async fn open(config: Config) -> Result<Self, Error> {
        if !(config.speed > 0.0 && config.speed <= MAX_SPEED) {
            return Err(Error::Speed(config.speed));
        }
        let walls = config.map.faces();
        let start = match config.start {
            Some((x, y, degrees)) if [x, y, degrees].into_iter().all(f64::is_finite) => {
                MapPose::new(x, y, degrees.to_radians()).into()
            }
            Some(_) => return Err(Error::Place),
            None => find_start(&walls, &candidates(&config.map))?,
        };
        let ceiling = Ceiling::over(&config.map);
        let mut files = vec![(ceiling::FILE, ceiling.file())];
        files.extend(config.devices.camera.files(&walls));
        let robot = RobotTwin::new(robot::Config {
            walls,
            ceiling,
            start,
            seed: config.seed,
            speed: config.speed,
            devices: config.devices.clone(),
        })?;
        let mut folder = Folder::take(&config.folder)?;
        let path = folder.path().to_owned();
        let missing = |what: &str| format!("cannot create the {what} in {}", path.display());
        for (name, text) in files {
            let written = folder.write(name, &text);
            written.map_err(|error| failed(missing(name), error))?;
        }
        let clock_file = (folder.write(clock_file::FILE, "")).and_then(|()| ClockFile::open(&path));
        let clock_file = clock_file.map_err(|error| failed(missing(clock_file::FILE), error))?;
        let mut tcp = Vec::new();
        for (device, address) in config.devices.addresses() {
            let port = TcpPort::open(address).await;
            let port = port.map_err(|error| failed(format!("cannot listen on {address}"), error));
            tcp.push((device, port?));
        }
        let control =
            Control::open(&path).map_err(|error| failed(missing("control socket"), error))?;
        let bus = |device: Device| Ok((device, I2cPort::open(&path.join(device.name()))?));
        let buses: io::Result<_> = present(&robot, Connection::I2c).map(bus).collect();
        let buses = buses.map_err(|error| failed(missing("bus"), error))?;
        let reset_line = ResetLine::open(&path.join(RESET_LINE))
            .map_err(|error| failed(missing("reset line"), error))?;
        let ptys = Ptys::open(&path, present(&robot, Connection::Serial))
            .map_err(|error| failed("cannot create a pseudo-terminal".to_owned(), error))?;
        Ok(Self {
            robot,
            map: config.map.name,
            clock: Clock::new(config.speed),
            clock_file,
            ptys,
            tcp,
            buses,
            control,
            reset_line,
            folder,
        })
    }

    /// The existing devices and their locations.
    #[must_use]
    pub fn devices(&self) -> Vec<(Device, String)> {
        let path = |device| (device, self.path(device).display().to_string());
        let tcp = (self.tcp.iter())
            .filter_map(|(device, port)| Some((*device, port.address().ok()?.to_string())));
        let serial = present(&self.robot, Connection::Serial).map(path);
        let buses = present(&self.robot, Connection::I2c).map(path);
        serial.chain(tcp).chain(buses).collect()
    }

    /// Runs the simulation until the other future completes. Dropping the future ends it, too.
    ///
    /// # Errors
    /// The system fails.
    pub async fn run(mut self, end: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(end);
        let began = Instant::now();
        loop {
            let due = self.robot.next_timeout(self.clock.now());
            let wake = due.map(|due| began + self.clock.real(due));
            let event = tokio::select! {
                () = &mut end => Event::End,
                Some(pending) = self.control.next() => Event::Request(pending),
                (device, pending) = transfer(&mut self.buses) => Event::Transfer(device, pending),
                (device, bytes) = self.ptys.read() => {
                    Event::Bytes(device, checked(device, bytes)?)
                }
                (device, bytes) = read_tcp(&mut self.tcp) => match checked(device, bytes)? {
                    Some(bytes) => Event::Bytes(device, bytes),
                    None => Event::HungUp(device),
                },
                pulled = self.reset_line.pulled() => {
                    pulled.map_err(|error| failed("the reset line".to_owned(), error))?;
                    Event::Reset
                }
                () = sleep_until(wake) => Event::Time,
            };
            let now = self.clock.advance(began.elapsed(), due);
            (self.clock_file.write(self.clock.left_out()))
                .map_err(|error| failed("cannot write the clock".to_owned(), error))?;
            self.robot.advance(now);
            match event {
                Event::End => return Ok(()),
                Event::Time => {}
                Event::Reset => self.robot.reset(now),
                Event::HungUp(device) => self.robot.handle_hang_up(device),
                Event::Request((request, answer)) => {
                    // The client may be gone.
                    let _ = answer.send(self.obey(now, request));
                }
                Event::Transfer(device, (transfer, reply)) => {
                    if let Some(answer) = self.robot.handle_transfer(now, device, &transfer) {
                        let _ = reply.send(answer);
                    }
                }
                Event::Bytes(device, bytes) => self.robot.handle_bytes(now, device, &bytes),
            }
            self.settle(now)?;
            // Connections to the control socket have tasks of their own. They get their turns also while the
            // simulation is behind its time.
            yield_now().await;
        }
    }

    fn path(&self, device: Device) -> PathBuf {
        self.folder.path().join(device.name())
    }

    /// Updates the plugs, and sends the output of the devices.
    fn settle(&mut self, now: Duration) -> Result<(), Error> {
        for device in Device::all() {
            let plugged = self.robot.is_plugged(device);
            let mut tcp = self.tcp.iter_mut();
            let mut tcp = tcp.find(|(it, _)| *it == device).map(|(_, port)| port);
            match device.connection() {
                // The bus exists with and without the board.
                Connection::I2c => {}
                Connection::Tcp | Connection::Http => {
                    if let (false, Some(tcp)) = (plugged, &mut tcp) {
                        tcp.hang_up();
                    }
                }
                Connection::Serial => {
                    if checked(device, self.ptys.plug(device, plugged))? {
                        info!(%device, plugged);
                    }
                }
            }
            while let Some(bytes) = self.robot.poll_output(now, device) {
                match &mut tcp {
                    Some(tcp) => tcp.write(&bytes),
                    // Without a port, the bytes are lost.
                    None => checked(device, self.ptys.write(device, &bytes))?,
                }
            }
            if let (true, Some(tcp)) = (self.robot.poll_hang_up(device), tcp) {
                tcp.hang_up();
                self.robot.handle_hang_up(device);
            }
        }
        Ok(())
    }

    fn obey(&mut self, now: Duration, request: Request) -> Answer {
        let result: Result<(), String> = match request {
            Request::State => return Answer::State(Box::new(self.state(now))),
            Request::Clear => {
                self.robot.clear();
                Ok(())
            }
            Request::Reset => {
                self.robot.reset(now);
                Ok(())
            }
            Request::Hold { parts } => self.hold(now, &parts),
            Request::Turn { servo, steps } => self.turn(now, servo, steps),
            Request::Replug { device } => device
                .parse()
                .map(|device| self.robot.replug(device))
                .map_err(|error: UnknownDevice| error.to_string()),
            Request::Fault {
                fault,
                about,
                seconds,
            } => Fault::parse(&fault, about.as_deref())
                .map_err(|error| error.to_string())
                .and_then(|fault| Ok((fault, seconds.map(duration).transpose()?)))
                .map(|(fault, length)| {
                    info!(%fault, ?seconds, "fault");
                    self.robot.begin(now, fault, length);
                }),
            Request::Place {
                x_m,
                y_m,
                heading_deg,
            } => self
                .robot
                .place(MapPose::new(x_m, y_m, heading_deg.to_radians()).into())
                .map_err(|error| error.to_string()),
        };
        result.map_or_else(Answer::Error, |()| Answer::Done)
    }

    fn hold(&mut self, now: Duration, parts: &[String]) -> Result<(), String> {
        let held: Result<Vec<Hold>, String> = parts.iter().map(|part| part.parse()).collect();
        let gamepad = self.robot.twin_mut::<Gamepad>();
        let gamepad =
            gamepad.ok_or("the robot has no gamepad; `amber sim --gamepad xbox` has one")?;
        gamepad.hold(now, &held?);
        Ok(())
    }

    fn turn(&mut self, now: Duration, servo: u8, steps: f64) -> Result<(), String> {
        if let Some(bus) = self.robot.twin_mut::<Bus<feetech::Protocol>>() {
            return bus.turn_by_hand(now, servo, steps);
        }
        let bus = self.robot.twin_mut::<Bus<dynamixel::Protocol>>();
        let bus = bus.ok_or("the robot has no servos; `amber sim --feetech so101` has some")?;
        bus.turn_by_hand(now, servo, steps)
    }

    fn state(&self, now: Duration) -> SimulationState {
        let world = self.robot.world();
        let MapPose {
            x_m,
            y_m,
            heading_rad,
            ..
        } = world.pose().into();
        let [front_left, front_right, rear_left, rear_right] =
            world.wheel_speeds().map(|speed| speed * 1000.0);
        let mut state = SimulationState {
            time_s: now.as_secs_f64(),
            left_out_s: self.clock.left_out().as_secs_f64(),
            map: self.map.clone(),
            x_m,
            y_m,
            heading_deg: heading_rad.to_degrees(),
            wheels_mm_per_s: Wheels {
                front_left,
                front_right,
                rear_left,
                rear_right,
            },
            contacts: world.contacts(),
            touching: world.is_touching(),
            clearance_m: world.clearance_m(),
            travelled_m: world.travelled_m(),
            faults: self.robot.faults().map(|fault| fault.to_string()).collect(),
            ..SimulationState::default()
        };
        self.robot.show(&mut state);
        state
    }
}

/// The devices of a robot that programs connect to in this way.
fn present(robot: &RobotTwin, connection: Connection) -> impl Iterator<Item = Device> {
    Device::connected_by(connection).filter(|device| robot.has_device(*device))
}

/// Possible start poses, the best first.
fn candidates(map: &Map) -> Vec<Pose> {
    let nodes = map.nodes.iter().map(|at| Pose {
        at: *at,
        heading: 0.0,
    });
    map.robots.iter().copied().chain(nodes).collect()
}

fn failed(what: String, error: io::Error) -> Error {
    Error::Io { what, error }
}

fn checked<T>(device: Device, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| failed(device.to_string(), error))
}

fn duration(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{error}: {seconds}"))
}

/// Waits for bytes that arrive by TCP; `None` if the peer is gone. Dropping the future loses
/// nothing.
async fn read_tcp(ports: &mut [(Device, TcpPort)]) -> (Device, io::Result<Option<Vec<u8>>>) {
    let read = async |(device, port): &mut (Device, TcpPort)| {
        let mut buffer = vec![0; 4_096];
        let event = port.read(&mut buffer).await.map(|event| match event {
            TcpEvent::Bytes(count) => {
                buffer.truncate(count);
                Some(buffer)
            }
            TcpEvent::HungUp => None,
        });
        (*device, event)
    };
    first(ports.iter_mut().map(read)).await
}

/// Waits for a transfer on a bus. Dropping the future loses nothing.
async fn transfer(buses: &mut [(Device, I2cPort)]) -> (Device, PendingTransfer) {
    let next = async |(device, bus): &mut (Device, I2cPort)| match bus.next().await {
        Some(pending) => (*device, pending),
        None => pending().await,
    };
    first(buses.iter_mut().map(next)).await
}

/// Sleeps until then, or for ever.
async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
