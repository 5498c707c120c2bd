//! The main loop of a simulation: bytes, time and requests go to the robot, and its output goes
//! out. IO.
//!
//! ```text
//! ptys, TCP, control socket --> one task: Robot::advance to now, then handle --> drain all outputs
//!                                  ^                                                |
//!                                  +---- sleeps until next_timeout, or for ever <---+
//! ```
//!
//! Simulated time is real time multiplied by the speed. There is no tick: while the robot is at
//! rest and no program uses it, only the marker sensor works.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use amber_map::{Map, MapPose, Pose};
use tokio::time::Instant;
use tracing::info;

use crate::ceiling::Ceiling;
use crate::control::{Answer, Control, Request, Servo, SimulationState, Wheels};
use crate::folder::{Folder, FolderError};
use crate::hokuyo::Model;
use crate::i2c_port::I2cPort;
use crate::maestro;
use crate::ptys::{Ptys, serial};
use crate::reset_line::ResetLine;
use crate::roboclaw;
use crate::robot::{self, Connection, Device, Fault, MARKERS, Robot, Variants};
use crate::tcp::{TcpEvent, TcpPort};
use crate::world::{StartError, find_start};

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
    /// The motor controllers.
    pub roboclaw: roboclaw::Firmware,
    /// The model of laser scanner.
    pub hokuyo: Model,
    /// The address of a second laser scanner over TCP, if any.
    pub hokuyo_tcp: Option<SocketAddr>,
    /// The variants of the devices.
    pub variants: Variants,
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
    robot: Robot,
    map: String,
    speed: f64,
    began: Instant,
    /// The devices that are plugged in.
    ptys: Ptys,
    tcp: Option<TcpPort>,
    ninedof: I2cPort,
    control: Control,
    reset_line: ResetLine,
    /// Dropped last, after the others have removed their files.
    folder: Folder,
}

/// Events that wake the loop.
enum Event {
    Bytes(Device, Vec<u8>),
    HungUp(Device),
    Transfer(crate::i2c_port::PendingTransfer),
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
        let markers = ceiling.file();
        let robot = Robot::new(robot::Config {
            walls,
            start,
            seed: config.seed,
            roboclaw: roboclaw::Config {
                firmware: config.roboclaw,
                latency: Duration::ZERO,
                packet_pause: roboclaw::PACKET_PAUSE.mul_f64(config.speed.max(1.0)),
            },
            model: config.hokuyo,
            ceiling,
            variants: config.variants,
        })?;
        let mut folder = Folder::take(&config.folder)?;
        let written = folder.write(MARKERS, &markers);
        let path = folder.path().to_owned();
        let missing = |what: &str| format!("cannot create the {what} in {}", path.display());
        written.map_err(|error| failed(missing(MARKERS), error))?;
        let tcp = match config.hokuyo_tcp {
            None => None,
            Some(address) => {
                let port = TcpPort::open(address).await;
                Some(port.map_err(|error| failed(format!("cannot listen on {address}"), error))?)
            }
        };
        let control =
            Control::open(&path).map_err(|error| failed(missing("control socket"), error))?;
        let ninedof = I2cPort::open(&path.join(Device::NineDof.name()))
            .map_err(|error| failed(missing("bus"), error))?;
        let reset_line = ResetLine::open(&path.join(RESET_LINE))
            .map_err(|error| failed(missing("reset line"), error))?;
        Ok(Self {
            robot,
            map: config.map.name,
            speed: config.speed,
            began: Instant::now(),
            ptys: Ptys::open(&path)
                .map_err(|error| failed("cannot create a pseudo-terminal".to_owned(), error))?,
            tcp,
            ninedof,
            control,
            reset_line,
            folder,
        })
    }

    /// The existing devices and their locations.
    #[must_use]
    pub fn devices(&self) -> Vec<(Device, String)> {
        let serial = serial().map(|device| (device, self.path(device).display().to_string()));
        let tcp = self.tcp.as_ref().and_then(|port| port.address().ok());
        let tcp = tcp.map(|address| (Device::HokuyoTcp, address.to_string()));
        let bus = self.path(Device::NineDof).display().to_string();
        let bus = (Device::NineDof, bus);
        serial.chain(tcp).chain([bus]).collect()
    }

    /// Runs the simulation until the other future completes. Dropping the future ends it, too.
    ///
    /// # Errors
    /// The system fails.
    pub async fn run(mut self, end: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(end);
        self.began = Instant::now();
        let mut buffer = [0; 4_096];
        loop {
            let due = self.robot.next_timeout(self.now());
            let event = tokio::select! {
                () = &mut end => Event::End,
                Some(pending) = self.control.next() => Event::Request(pending),
                Some(pending) = self.ninedof.next() => Event::Transfer(pending),
                (device, bytes) = self.ptys.read() => {
                    Event::Bytes(device, checked(device, bytes)?)
                }
                event = read_tcp(&mut self.tcp, &mut buffer) => match checked(Device::HokuyoTcp, event)? {
                    TcpEvent::Bytes(count) => {
                        Event::Bytes(Device::HokuyoTcp, buffer[..count].to_vec())
                    }
                    TcpEvent::HungUp => Event::HungUp(Device::HokuyoTcp),
                },
                pulled = self.reset_line.pulled() => {
                    pulled.map_err(|error| failed("the reset line".to_owned(), error))?;
                    Event::Reset
                }
                () = sleep_until(self.began, self.speed, due) => Event::Time,
            };
            let now = self.now();
            self.robot.advance(now);
            match event {
                Event::End => return Ok(()),
                Event::Time => {}
                Event::Reset => self.robot.reset_roboclaws(now),
                Event::HungUp(device) => self.robot.handle_hang_up(device),
                Event::Request((request, answer)) => {
                    // The client may be gone.
                    let _ = answer.send(self.obey(now, request));
                }
                Event::Transfer((transfer, reply)) => {
                    if let Some(answer) = self.robot.handle_transfer(now, &transfer) {
                        let _ = reply.send(answer);
                    }
                }
                Event::Bytes(device, bytes) => self.robot.handle_bytes(now, device, &bytes),
            }
            self.settle(now)?;
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed().mul_f64(self.speed)
    }

    fn path(&self, device: Device) -> PathBuf {
        self.folder.path().join(device.name())
    }

    /// Updates the plugs, and sends the output of the devices.
    fn settle(&mut self, now: Duration) -> Result<(), Error> {
        for device in Device::ALL {
            let plugged = self.robot.is_plugged(device);
            match device.connection() {
                // The bus exists with and without the board.
                Connection::I2c => {}
                Connection::Tcp => {
                    if let (false, Some(tcp)) = (plugged, &mut self.tcp) {
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
                match (device, &mut self.tcp) {
                    (Device::HokuyoTcp, Some(tcp)) => tcp.write(&bytes),
                    (Device::HokuyoTcp, None) => {}
                    _ => checked(device, self.ptys.write(device, &bytes))?,
                }
            }
            if let (Device::HokuyoTcp, true, Some(tcp)) =
                (device, self.robot.poll_hang_up(device), &mut self.tcp)
            {
                tcp.hang_up();
                self.robot.handle_hang_up(device);
            }
        }
        Ok(())
    }

    fn obey(&mut self, now: Duration, request: Request) -> Answer {
        let result: Result<(), String> = match request {
            Request::State => return Answer::State(self.state(now)),
            Request::Clear => {
                self.robot.clear();
                Ok(())
            }
            Request::Reset => {
                self.robot.reset_roboclaws(now);
                Ok(())
            }
            Request::Replug { device } => device
                .parse()
                .map(|device| self.robot.replug(device))
                .map_err(|error: robot::UnknownDevice| error.to_string()),
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
        SimulationState {
            time_s: now.as_secs_f64(),
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
            scans: self.robot.scans(),
            laser_on: self.robot.is_laser_on(),
            markers: self.robot.markers_in_view().collect(),
            servos: self.robot.maestro().servos().iter().map(servo).collect(),
            faults: self.robot.faults().map(|fault| fault.to_string()).collect(),
        }
    }
}

fn servo(servo: &maestro::Servo) -> Servo {
    Servo {
        target_us: servo.target_us(),
        pulse_us: servo.pulse_us(),
        angle_deg: servo.angle_deg(),
    }
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

async fn read_tcp(port: &mut Option<TcpPort>, buffer: &mut [u8]) -> io::Result<TcpEvent> {
    match port {
        Some(port) => port.read(buffer).await,
        None => pending().await,
    }
}

/// Sleeps until a simulated time, or for ever.
async fn sleep_until(began: Instant, speed: f64, due: Option<Duration>) {
    match due {
        Some(due) => tokio::time::sleep_until(began + due.div_f64(speed)).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
