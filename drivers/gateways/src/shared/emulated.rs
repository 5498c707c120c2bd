//! Foreign robots as devices of Amber. IO.
//!
//! Each emulated device is a driver in the process of the gateway. It passes commands to the
//! machine, and answers with the last shown data, unless it is too old.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amber_driver::devices::camera;
use amber_driver::devices::drive_to_point::{
    self, Configuration, DriveToPointDriver, DriveToPointLink, Go, NextTargetAnswer,
    NextTargetsAnswer, ProgressAnswer, ProgressUpdatesData, Targets as TargetTable,
    VisitedTargetAnswer, VisitedTargetsAnswer, progress,
};
use amber_driver::devices::hokuyo::{self, HokuyoDriver, HokuyoLink, ScanAnswer, ScansData};
use amber_driver::devices::location::{
    self, Geometry, GeometryRequest, KnownPose, LocationServiceDriver, LocationServiceLink,
    PosesData,
};
use amber_driver::devices::ninedof::{self, NineDofDriver, NineDofLink};
use amber_driver::devices::roboclaw::{self, RoboclawDriver};
use amber_driver::orders::{Author, End, LATEST, Orders};
use amber_driver::{ClientId, Devices, Origin, Outcome, Periodic, Reply, StreamRequest, now};
use amber_navigation::drive_to_point::MAX_TARGETS;
use amber_proto::battery_state::BatteryState;
use amber_proto::hokuyo::{Scan as ScanMessage, Scanner as ScannerMessage};
use amber_proto::location::{Location, Map, Particles, Quality};
use amber_proto::ninedof::{
    DataRequest, SensorData, ServiceReport, ServiceRequest, SubscribeAction,
};
use amber_proto::roboclaw::MotorsSpeed;
use amber_proto::{Device, order};
use amber_robot::robot::{Measurement, OrderNumber, Progress};
use amber_values::{ImuReading, MapPose, Row, Scan, Target};
use tokio::sync::mpsc;

use self::pictures::Camera;
use super::event::{Asked, Emulated, Event};
use crate::limits::MAX_AGE;

mod pictures;

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
            Emulated::Camera => devices.add(device, camera::driver(Camera::new(screen))),
            Emulated::Targets => devices.add(device, drive_to_point::driver(Targets::new(screen))),
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
        match self.try_ask(asked) {
            Ok(()) => outcome.done(),
            Err(why) => outcome.refuse(why),
        }
    }

    fn try_ask(&self, asked: Asked) -> Result<(), &'static str> {
        let sent = self.events.try_send(Event::Asked(self.device, asked));
        sent.map_err(|_| "the gateway is busy")
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

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("the foreign robot does not report its battery");
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

    async fn scanner(&mut self, reply: Reply<ScannerMessage>) {
        reply.refuse("the foreign robot does not describe its scanner");
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

    async fn geometry(&mut self, _asked: GeometryRequest, reply: Reply<Geometry>) {
        reply.refuse("the foreign robot does not report its geometry");
    }

    async fn map(&mut self, reply: Reply<Map>) {
        reply.refuse("the foreign robot does not report its map");
    }

    async fn upload_map(&mut self, _map: String, outcome: Outcome) {
        outcome.refuse("the foreign robot accepts no maps");
    }

    async fn set_pose(&mut self, _known: KnownPose, outcome: Outcome) {
        outcome.refuse("the foreign robot finds its pose by itself");
    }
}

struct Targets {
    screen: Screen,
    link: Option<DriveToPointLink>,
    errands: Arc<Mutex<Errands>>,
}

/// The orders, and the number that the machine has for the current one.
#[derive(Default)]
struct Errands {
    orders: Orders,
    number: OrderNumber,
}

impl Errands {
    /// The order that runs, or the last one.
    fn newest(&self) -> Option<order::Order> {
        Some(self.orders.find(LATEST)?.to_wire(None))
    }

    /// The foreign robot has come so far.
    fn follow(&mut self, progress: &Progress) {
        let Some(targets) = self.orders.current().map(|order| order.targets) else {
            return;
        };
        if let Some((number, why)) = progress.refused
            && number == self.number
        {
            self.orders.end(End::Refused(why.into()));
        } else if progress.order == Some(self.number) {
            let visited = progress.visited.len();
            self.orders.note_progress(visited, 0);
            if progress.next.is_empty() {
                self.orders.end(match visited == targets {
                    true => End::Arrived,
                    false => End::StoppedByRule("the foreign robot was told to stop".into()),
                });
            }
        }
    }
}

impl Targets {
    fn new(screen: Screen) -> Self {
        Self {
            screen,
            link: None,
            errands: Arc::default(),
        }
    }

    /// Nothing and nowhere while the robot is silent.
    fn shown(&self) -> Progress {
        match self.screen.latest() {
            Some(Measurement::Progress(progress)) => progress,
            _ => Progress::default(),
        }
    }

    fn errands(&self) -> MutexGuard<'_, Errands> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn author(&self, origin: &Origin, name: Option<&str>) -> Author {
        match &self.link {
            Some(link) => link.author(origin, name),
            None => Author::of(origin, name),
        }
    }

    /// Passes new targets to the machine; none stop the robot.
    fn set(&self, id: u64, by: Author, targets: Vec<Target>) -> Result<(), &'static str> {
        let mut errands = self.errands();
        let number = OrderNumber(errands.number.0 + 1);
        let (client, count) = (by.client, targets.len());
        self.screen
            .try_ask(Asked::Targets(client, number, targets))?;
        errands.number = number;
        if count == 0 {
            errands.orders.end(End::Stopped(by));
        } else {
            errands.orders.begin(id, by, count);
        }
        Ok(())
    }
}

impl DriveToPointDriver for Targets {
    async fn start(&mut self, link: DriveToPointLink) -> Started {
        self.link = Some(link.clone());
        let errands = self.errands.clone();
        self.screen.publish_with(move |measurement| {
            if let Measurement::Progress(progress) = measurement {
                let mut errands = errands.lock().unwrap_or_else(PoisonError::into_inner);
                errands.follow(progress);
                let order = errands.newest();
                let (progress, location) = progress_message(progress);
                let _ = link.progress_updates(ProgressUpdatesData {
                    progress,
                    location,
                    order,
                });
            }
        });
        Ok(())
    }

    async fn set_targets(&mut self, targets: TargetTable, outcome: Outcome) {
        if outcome.client().is_none() {
            return outcome.refuse("the request has no sender");
        }
        let by = self.author(outcome.origin(), None);
        if outcome.origin().stop_cause.is_some() {
            let end = End::of_stop(by.clone(), outcome.origin());
            self.errands().orders.end(end);
        }
        let set = checked(&targets).and_then(|targets| self.set(LATEST, by, targets));
        match set {
            Ok(()) => outcome.done(),
            Err(problem) => outcome.refuse(problem),
        }
    }

    async fn go(&mut self, go: Go, reply: Reply<order::Order>) {
        let by = self.author(reply.origin(), go.name.as_deref());
        let known = match self.errands().orders.repeated(go.id, by.client) {
            Err(taken) => return reply.refuse(&taken.to_string()),
            Ok(known) => known.cloned(),
        };
        if let Some(known) = known {
            return match &known.end {
                Some(End::Refused(why)) => reply.refuse(why),
                _ => reply.send(known.to_wire(None)),
            };
        }
        let targets = checked(&go.targets).and_then(|targets| match targets.is_empty() {
            true => Err("an order has at least one target; to stop the robot, cancel it"),
            false => Ok(targets),
        });
        match targets.and_then(|targets| self.set(go.id, by.clone(), targets)) {
            Ok(()) => reply.send(self.errands().orders.answer(go.id, None)),
            Err(why) => {
                let count = go.targets.longitudes.len();
                self.errands().orders.refuse(go.id, by, count, why);
                reply.refuse(why);
            }
        }
    }

    async fn order(&mut self, id: u64, reply: Reply<order::Order>) {
        reply.send(self.errands().orders.answer(id, None));
    }

    async fn cancel_order(&mut self, id: u64, reply: Reply<order::Order>) {
        let by = self.author(reply.origin(), None);
        let order = self.errands().orders.find(id).cloned();
        if let Some(order) = order.filter(|order| order.end.is_none()) {
            self.errands().orders.end(End::Cancelled(by));
            // As the client that gave the order: the machine obeys only that one.
            if let Err(why) = self.set(LATEST, order.by, Vec::new()) {
                return reply.refuse(why);
            }
        }
        reply.send(self.errands().orders.answer(id, None));
    }

    async fn orders(&mut self, reply: Reply<order::Orders>) {
        reply.send(self.errands().orders.list(None));
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
        let order = self.errands().newest();
        reply.send(ProgressAnswer {
            progress,
            location,
            order,
        });
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        {
            let mut errands = self.errands();
            if errands
                .orders
                .current()
                .is_some_and(|it| it.by.client == client)
            {
                errands.orders.end(End::ClientLost);
            }
        }
        self.screen.client_gone(client).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A progress of the order with this number, with so many targets ahead and behind.
    fn progress(number: u64, next: usize, visited: usize) -> Progress {
        Progress {
            next: vec![Target::default(); next],
            visited: vec![Target::default(); visited],
            order: Some(OrderNumber(number)),
            ..Progress::default()
        }
    }

    #[test]
    fn an_order_ends_as_the_progress_of_its_own_number_says() {
        let refused = Progress {
            refused: Some((OrderNumber(2), "another client drives")),
            ..progress(1, 1, 0)
        };
        let others = Progress {
            refused: Some((OrderNumber(1), "another client drives")),
            ..progress(1, 0, 2)
        };
        let stopped = "the foreign robot was told to stop";
        for (shown, end, visited) in [
            (Progress::default(), None, 0),
            (others, None, 0),
            (progress(2, 1, 1), None, 1),
            (progress(2, 0, 2), Some(End::Arrived), 2),
            (
                progress(2, 0, 1),
                Some(End::StoppedByRule(stopped.into())),
                1,
            ),
            (
                refused,
                Some(End::Refused("another client drives".into())),
                0,
            ),
        ] {
            let by = Author::of(&Origin::of(ClientId(7)), None);
            let mut errands = Errands {
                number: OrderNumber(2),
                ..Errands::default()
            };
            errands.orders.begin(100, by, 2);
            errands.follow(&shown);
            let order = errands.orders.find(100).unwrap();
            assert_eq!((&order.end, order.visited), (&end, visited), "{shown:?}");
        }
    }
}
