//! The driver between the file and clients. IO.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_driver::client::proxy::Roboclaw;
use amber_driver::devices::robot::{
    Odometry as OdometryMessage, OdometryRequest, RobotDriver as RobotMethods, RobotLink, Shape,
};
use amber_driver::{ClientId, Origin, Periodic, Reply, StreamRequest, now};
use amber_navigation::kinematics::SkidSteer;
use amber_proto::{Device, DeviceType};
use tokio::task::JoinHandle;

use super::odometry::Odometry;
use super::urdf;
use crate::robot_file::RobotFile;
use crate::sim_clock::SimClock;
use crate::sources;
use crate::stream::complain;

/// Wheels that publish no speeds are asked this often.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
const WHEELS_DEADLINE: Duration = Duration::from_millis(150);
/// Older speeds are no odometry.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A subscriber whose turn comes this soon gets the measurement that is there: the wheels measure
/// every 50 ms.
const EARLY: Duration = Duration::from_millis(25);
/// How often the driver looks for a change of the file, and repeats the shape: a datagram can get
/// lost.
const LOOK: Duration = Duration::from_secs(1);

/// The driver of the robot as a whole.
#[derive(Debug)]
pub(super) struct RobotDriver {
    file: Option<PathBuf>,
    seen: Option<Stamp>,
    look_at: Instant,
    shape: Shape,
    odometry: Arc<Mutex<Shared>>,
    following: Option<JoinHandle<()>>,
    /// `Some` after the start.
    link: Option<RobotLink>,
}

/// What the task that follows the wheels shares with the driver.
#[derive(Debug)]
struct Shared {
    started: Instant,
    odometry: Odometry,
    /// Of a simulated robot.
    clock: Option<SimClock>,
    measured: Option<Instant>,
    trouble: String,
    subscribers: Periodic<Duration>,
}

impl Shared {
    /// The time of a measurement since the start, of a simulated robot in simulated time.
    fn time(&self, measured: Instant) -> Duration {
        let left_out = self
            .clock
            .as_ref()
            .map_or(Duration::ZERO, SimClock::left_out);
        let since = measured.saturating_duration_since(self.started);
        since.saturating_sub(left_out)
    }

    /// The odometry, unless it is too old.
    fn message(&self) -> Result<OdometryMessage, String> {
        let none = || self.trouble.clone();
        let age = now().saturating_duration_since(self.measured.ok_or_else(none)?);
        if age > MAX_AGE {
            return Err(none());
        }
        let since_1970 = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let measured = since_1970.saturating_sub(age).as_micros();
        let message = self
            .odometry
            .message(measured.try_into().unwrap_or(u64::MAX));
        message.ok_or_else(none)
    }
}

/// What tells versions of a file apart.
type Stamp = (Option<SystemTime>, u64);

impl RobotDriver {
    pub(super) fn new(file: Option<PathBuf>, shape: Shape, clock: Option<SimClock>) -> Self {
        Self {
            seen: stamp(file.as_ref()),
            file,
            look_at: now() + LOOK,
            odometry: Arc::new(Mutex::new(Shared {
                started: now(),
                odometry: Odometry::new(drive(&shape)),
                clock,
                measured: None,
                trouble: String::new(),
                subscribers: Periodic::default(),
            })),
            following: None,
            shape,
            link: None,
        }
    }

    /// Follows the wheels with the role of the robot's wheels.
    fn follow(&mut self) {
        let Some(link) = self.link.clone() else {
            return;
        };
        if let Some(task) = self.following.take() {
            task.abort();
        }
        let device = wheels(&self.shape);
        lock(&self.odometry).trouble = format!("no wheel speeds from {device}");
        let shared = self.odometry.clone();
        self.following = Some(tokio::spawn(follow(link, device, shared)));
    }

    /// Reads the file again.
    fn reread(&mut self) {
        let Some(link) = &self.link else {
            return;
        };
        let read = RobotFile::read(self.file.as_deref()).and_then(|file| file.shape());
        match read {
            Ok(shape) => {
                link.recovered();
                if shape != self.shape {
                    tracing::info!("the file of the robot has changed");
                    lock(&self.odometry).odometry.set_drive(drive(&shape));
                    let has_other_wheels = wheels(&shape) != wheels(&self.shape);
                    self.shape = shape;
                    if has_other_wheels {
                        self.follow();
                    }
                }
            }
            Err(error) => {
                tracing::error!("{error}; the shape before counts");
                link.trouble(&error.to_string());
            }
        }
    }
}

fn stamp(file: Option<&PathBuf>) -> Option<Stamp> {
    let metadata = fs::metadata(file?).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

impl RobotMethods for RobotDriver {
    async fn start(&mut self, link: RobotLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        self.follow();
        Ok(())
    }

    async fn shape(&mut self, reply: Reply<Shape>) {
        reply.send(self.shape.clone());
    }

    async fn urdf(&mut self, reply: Reply<String>) {
        reply.send(urdf::text(&self.shape));
    }

    async fn odometry(&mut self, reply: Reply<OdometryMessage>) {
        let message = lock(&self.odometry).message();
        match message {
            Ok(message) => reply.send(message),
            Err(why) => reply.refuse(&why),
        }
    }

    async fn odometry_updates(&mut self, origin: Origin, request: StreamRequest<OdometryRequest>) {
        let period = |it: &OdometryRequest| Duration::from_millis(it.period().into());
        let request = match request {
            StreamRequest::Start(request) => StreamRequest::Start(period(&request)),
            StreamRequest::Stop(_) => StreamRequest::Stop(Duration::ZERO),
            StreamRequest::ClientGone => StreamRequest::ClientGone,
        };
        let subscribers = &mut lock(&self.odometry).subscribers;
        if !subscribers.handle(now(), &origin, request, |period| *period) {
            tracing::warn!("too many subscribers of the odometry");
        }
    }

    /// Each subscriber gets the shape at once, also when it subscribes again after a restart.
    async fn subscribed(&mut self, _client: ClientId) {
        if let Some(link) = &self.link {
            complain(link.shape_updates(self.shape.clone()));
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        Some(self.look_at)
    }

    async fn wake(&mut self) {
        self.look_at = now() + LOOK;
        let seen = stamp(self.file.as_ref());
        if seen != self.seen {
            self.seen = seen;
            self.reread();
        }
        if let Some(link) = &self.link {
            complain(link.shape_updates(self.shape.clone()));
        }
    }

    async fn shutdown(&mut self) {
        if let Some(task) = self.following.take() {
            task.abort();
        }
    }
}

/// Adds the speeds of the wheels to the odometry, and publishes it.
async fn follow(link: RobotLink, device: Device, shared: Arc<Mutex<Shared>>) {
    let client = link.devices();
    let wheels = Roboclaw::new(client.device(device)).with_deadline(WHEELS_DEADLINE);
    let publish = link.clone();
    sources::watch_wheels(wheels, WHEELS_PERIOD, |received| {
        let mut shared = lock(&shared);
        let (measured, speeds) = match received {
            Ok(received) => received,
            Err(error) => {
                shared.trouble = format!("no wheel speeds from {device}: {error}");
                return;
            }
        };
        let time = shared.time(measured);
        if !shared.odometry.handle_wheels(time, speeds.into()) {
            return;
        }
        shared.measured = Some(measured);
        let due = shared.subscribers.take_due(now() + EARLY);
        if due.is_empty() {
            return;
        }
        if let Ok(message) = shared.message() {
            for (origin, _) in due {
                complain(publish.odometry_updates(&origin, message));
            }
        }
    })
    .await;
}

fn drive(shape: &Shape) -> SkidSteer {
    SkidSteer {
        track_m: shape.track(),
        max_wheel_m_s: shape.max_wheel_speed(),
    }
}

fn wheels(shape: &Shape) -> Device {
    let role = shape.roles.iter().find(|it| it.role == "wheels");
    role.map_or(Device::new(DeviceType::ROBOCLAW, 0), |it| {
        Device::new(DeviceType(it.r#type), it.id)
    })
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Holders only compute.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
