//! Foreign robots as devices of Amber. IO.
//!
//! Each emulated device is a driver in the process of the gateway. It passes commands to the
//! machine, and answers with the last shown data, unless it is too old.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amber_driver::devices::drive_to_point::{
    self, Configuration, DriveToPointDriver, DriveToPointLink, NextTargetAnswer, NextTargetsAnswer,
    ProgressAnswer, ProgressUpdatesData, Targets as TargetTable, VisitedTargetAnswer,
    VisitedTargetsAnswer, progress,
};
use amber_driver::devices::hokuyo::{self, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::devices::location::{
    self, LocationServiceDriver, LocationServiceLink, PosesData,
};
use amber_driver::devices::ninedof::{self, NineDofDriver, NineDofLink};
use amber_driver::devices::roboclaw::{self, RoboclawDriver};
use amber_driver::{ClientId, Devices, Origin, Outcome, Periodic, Reply, StreamRequest, now};
use amber_navigation::drive_to_point::MAX_TARGETS;
use amber_proto::location::{Location, Map, Particles, Quality};
use amber_proto::ninedof::{
    DataRequest, SensorData, ServiceReport, ServiceRequest, SubscribeAction,
};
use amber_proto::roboclaw::MotorsSpeed;
use amber_proto::{Device, hokuyo::Scan as ScanMessage};
use amber_values::{ImuReading, MapPose, Row, Scan, Target};
use tokio::sync::mpsc;

use super::robot::{Asked, Emulated, Event, Measurement, Progress};
use crate::limits::MAX_AGE;

type Started = Result<(), Box<dyn Error + Send + Sync>>;
type Publish = Box<dyn Fn(&Measurement) + Send>;

/// The data that the machine shows on one device.
#[derive(Clone)]
pub(super) struct Screen {
    device: Device,
    events: mpsc::Sender<Event>,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    latest: Option<(Instant, Measurement)>,
    publish: Option<Publish>,
}

impl Screen {
    pub(super) fn new(device: Device, events: mpsc::Sender<Event>) -> Self {
        Self {
            device,
            events,
            shown: Arc::default(),
        }
    }

    /// Adds the driver of the device.
    pub(super) fn add_to(&self, devices: Devices, kind: Emulated) -> Devices {
        let (device, screen) = (self.device, self.clone());
        match kind {
            Emulated::Wheels => devices.add(device, roboclaw::driver(Wheels(screen))),
            Emulated::Scanner => devices.add(device, hokuyo::driver(Scanner(screen))),
            Emulated::Location => devices.add(device, location::driver(Positions(screen))),
            Emulated::Imu => devices.add(device, ninedof::driver(Imu::new(screen))),
            Emulated::Targets => devices.add(device, drive_to_point::driver(Targets(screen))),
        }
    }

    /// Shows a measurement, and publishes it.
    pub(super) fn show(&self, measurement: Measurement) {
        let mut shown = self.lock();
        if let Some(publish) = &shown.publish {
            publish(&measurement);
        }
        shown.latest = Some((now(), measurement));
    }

    fn publish_with(&self, publish: impl Fn(&Measurement) + Send + 'static) {
        self.lock().publish = Some(Box::new(publish));
    }

    /// The last measurement, unless it is old.
    fn latest(&self) -> Option<Measurement> {
        let shown = self.lock();
        let (at, measurement) = shown.latest.as_ref()?;
        (now().saturating_duration_since(*at) <= MAX_AGE).then(|| measurement.clone())
    }

    /// Passes a command to the machine.
    fn ask(&self, asked: Asked, outcome: Outcome) {
        match self.events.try_send(Event::Asked(self.device, asked)) {
            Ok(()) => outcome.done(),
            Err(_) => outcome.refuse("the gateway is busy"),
        }
    }

    async fn client_gone(&self, client: ClientId) {
        let gone = Event::Asked(self.device, Asked::ClientGone(client));
        let _ = self.events.send(gone).await;
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SILENT: &str = "the foreign robot reports nothing";

struct Wheels(Screen);

impl RoboclawDriver for Wheels {
    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        match outcome.client() {
            Some(client) => self.0.ask(Asked::Drive(client, speeds.into()), outcome),
            None => outcome.refuse("the command has no sender"),
        }
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        match self.0.latest() {
            Some(Measurement::Wheels(speeds)) => reply.send(speeds.into()),
            _ => reply.refuse(SILENT),
        }
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.0.client_gone(client).await;
    }
}

struct Scanner(Screen);

impl HokuyoDriver for Scanner {
    async fn start(&mut self, link: HokuyoLink) -> Started {
        self.0.publish_with(move |measurement| {
            if let Measurement::Scan(scan) = measurement {
                let (scan, timestamp_ms) = scan_message(scan);
                let _ = link.scans(ScansData { scan, timestamp_ms });
            }
        });
        Ok(())
    }

    async fn scan(&mut self, reply: Reply<ScanAnswer>) {
        match self.0.latest() {
            Some(Measurement::Scan(scan)) => {
                let (scan, timestamp_ms) = scan_message(&scan);
                reply.send(ScanAnswer { scan, timestamp_ms });
            }
            _ => reply.refuse(SILENT),
        }
    }
}

fn scan_message(scan: &Scan) -> (ScanMessage, Option<i64>) {
    let points = scan.points().iter();
    let message = ScanMessage {
        angles: points.clone().map(|point| point.angle_deg).collect(),
        distances: points.map(|point| point.distance_mm).collect(),
    };
    (message, scan.timestamp_ms())
}

struct Positions(Screen);

impl LocationServiceDriver for Positions {
    async fn start(&mut self, link: LocationServiceLink) -> Started {
        self.0.publish_with(move |measurement| {
            if let Measurement::Pose(pose) = *measurement {
                let _ = link.poses(PosesData {
                    current_location: pose.into(),
                    quality: None,
                });
            }
        });
        Ok(())
    }

    /// All zero while the pose is not known.
    async fn pose(&mut self, reply: Reply<Location>) {
        let pose = match self.0.latest() {
            Some(Measurement::Pose(pose)) => pose,
            _ => MapPose::default(),
        };
        reply.send(pose.into());
    }

    async fn quality(&mut self, reply: Reply<Quality>) {
        reply.refuse("the foreign robot does not report how it finds its pose");
    }

    async fn particles(&mut self, reply: Reply<Particles>) {
        reply.refuse("the foreign robot does not report how it finds its pose");
    }

    async fn map(&mut self, reply: Reply<Map>) {
        reply.refuse("the foreign robot does not report its map");
    }

    async fn upload_map(&mut self, _map: String, outcome: Outcome) {
        outcome.refuse("the foreign robot accepts no maps");
    }
}

struct Targets(Screen);

impl Targets {
    /// Nothing and nowhere while the robot is silent.
    fn shown(&self) -> Progress {
        match self.0.latest() {
            Some(Measurement::Progress(progress)) => progress,
            _ => Progress::default(),
        }
    }
}

impl DriveToPointDriver for Targets {
    async fn start(&mut self, link: DriveToPointLink) -> Started {
        self.0.publish_with(move |measurement| {
            if let Measurement::Progress(progress) = measurement {
                let (progress, location) = progress_message(progress);
                let _ = link.progress_updates(ProgressUpdatesData { progress, location });
            }
        });
        Ok(())
    }

    async fn set_targets(&mut self, targets: TargetTable, outcome: Outcome) {
        let Some(client) = outcome.client() else {
            return outcome.refuse("the request has no sender");
        };
        match checked(&targets) {
            Ok(targets) => self.0.ask(Asked::Targets(client, targets), outcome),
            Err(problem) => outcome.refuse(problem),
        }
    }

    async fn next_target(&mut self, reply: Reply<NextTargetAnswer>) {
        let progress = self.shown();
        reply.send(NextTargetAnswer {
            targets: one(progress.next.first()),
            location: location_of(&progress),
        });
    }

    async fn next_targets(&mut self, reply: Reply<NextTargetsAnswer>) {
        let progress = self.shown();
        reply.send(NextTargetsAnswer {
            targets: Target::table(&progress.next),
            location: location_of(&progress),
        });
    }

    async fn visited_target(&mut self, reply: Reply<VisitedTargetAnswer>) {
        let progress = self.shown();
        reply.send(VisitedTargetAnswer {
            targets: one(progress.visited.last()),
            location: location_of(&progress),
        });
    }

    async fn visited_targets(&mut self, reply: Reply<VisitedTargetsAnswer>) {
        let progress = self.shown();
        reply.send(VisitedTargetsAnswer {
            targets: Target::table(&progress.visited),
            location: location_of(&progress),
        });
    }

    async fn configuration(&mut self, reply: Reply<Configuration>) {
        reply.refuse("the foreign robot does not report its speed limit");
    }

    async fn progress(&mut self, reply: Reply<ProgressAnswer>) {
        let (progress, location) = progress_message(&self.shown());
        reply.send(ProgressAnswer { progress, location });
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.0.client_gone(client).await;
    }
}

/// The targets of a message, if a robot can drive to them.
fn checked(table: &TargetTable) -> Result<Vec<Target>, &'static str> {
    let targets = Target::rows(table).map_err(|_| "the columns of the targets differ in length")?;
    let is_valid = |it: &Target| {
        it.x_m.is_finite() && it.y_m.is_finite() && it.radius_m.is_finite() && it.radius_m > 0.0
    };
    if targets.len() > MAX_TARGETS {
        return Err("too many targets");
    }
    match targets.iter().all(is_valid) {
        true => Ok(targets),
        false => Err("coordinates and radius must be numbers, and the radius positive"),
    }
}

/// One target, or the pseudo target of zeros.
fn one(target: Option<&Target>) -> TargetTable {
    let none = Target {
        radius_m: 0.0,
        ..Target::default()
    };
    Target::table(&[target.copied().unwrap_or(none)])
}

/// All zero while the pose is not known.
fn location_of(progress: &Progress) -> drive_to_point::Location {
    let pose = progress.pose.unwrap_or_default();
    drive_to_point::Location {
        // Old clients read all fields.
        time_stamp: Some(pose.timestamp_ms.unwrap_or_default()),
        ..pose.into()
    }
}

fn progress_message(progress: &Progress) -> (drive_to_point::Progress, drive_to_point::Location) {
    let (state, reason) = match (progress.next.is_empty(), progress.pose) {
        (true, _) => (progress::State::Idle, "no targets are left"),
        (false, Some(_)) => (
            progress::State::Following,
            "the foreign robot drives by itself",
        ),
        (false, None) => (
            progress::State::NoPose,
            "the foreign robot does not report its pose",
        ),
    };
    let mut message = drive_to_point::Progress {
        reason: Some(reason.to_owned()),
        ..drive_to_point::Progress::default()
    };
    message.set_state(state);
    (message, location_of(progress))
}

/// The time between two readings unless a client asks for another.
const IMU_PERIOD: Duration = Duration::from_millis(100);

struct Imu {
    screen: Screen,
    link: Option<NineDofLink>,
    subscribers: Periodic<()>,
}

impl Imu {
    fn new(screen: Screen) -> Self {
        Self {
            screen,
            link: None,
            subscribers: Periodic::default(),
        }
    }

    fn reading(&self) -> Option<ImuReading> {
        match self.screen.latest() {
            Some(Measurement::Imu(reading)) => Some(reading),
            _ => None,
        }
    }
}

impl NineDofDriver for Imu {
    async fn start(&mut self, link: NineDofLink) -> Started {
        self.link = Some(link);
        Ok(())
    }

    async fn data(&mut self, _request: DataRequest, reply: Reply<SensorData>) {
        match self.reading() {
            Some(reading) => reply.send(reading.into()),
            None => reply.refuse(SILENT),
        }
    }

    async fn readings(&mut self, origin: Origin, request: StreamRequest<SubscribeAction>) {
        let period = match &request {
            StreamRequest::Start(wanted) => {
                (wanted.freq).map_or(IMU_PERIOD, |ms| Duration::from_millis(ms.into()))
            }
            _ => IMU_PERIOD,
        };
        let request = match request {
            StreamRequest::Start(_) => StreamRequest::Start(()),
            StreamRequest::Stop(_) => StreamRequest::Stop(()),
            StreamRequest::ClientGone => StreamRequest::ClientGone,
        };
        self.subscribers
            .handle(now(), &origin, request, |()| period);
    }

    fn wake_at(&self) -> Option<Instant> {
        self.subscribers.next_due()
    }

    async fn wake(&mut self) {
        let due = self.subscribers.take_due(now());
        if let (Some(link), Some(reading)) = (&self.link, self.reading()) {
            for (origin, ()) in due {
                let _ = link.readings(&origin, reading.into());
            }
        }
    }

    async fn self_test(&mut self, _request: ServiceRequest, reply: Reply<ServiceReport>) {
        reply.refuse("the sensors are those of a foreign robot");
    }

    async fn calibrate_gyro(&mut self, _request: ServiceRequest, reply: Reply<ServiceReport>) {
        reply.refuse("the sensors are those of a foreign robot");
    }

    async fn calibrate_magnet(&mut self, _request: ServiceRequest, reply: Reply<ServiceReport>) {
        reply.refuse("the sensors are those of a foreign robot");
    }
}
