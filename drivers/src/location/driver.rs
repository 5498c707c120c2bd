//! The driver between the mediator, the devices and the filter. IO.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_driver::client::proxy::{Hokuyo, NineDof, Roboclaw};
use amber_driver::client::{Client, Scan, WheelSpeeds};
use amber_driver::devices::location::{
    Geometry, GeometryRequest, KnownPose, Location, LocationServiceDriver, LocationServiceLink,
    Map, Particles, PosesData, Quality,
};
use amber_driver::{Outcome, Reply, SendError, now};
use amber_navigation::scan::{Laser, Scan as PlaneScan};
use amber_proto::ninedof::SubscribeAction;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::engine::{Engine, Input};
use super::maps::{self, Loaded};
use super::tracker::{Report, Tracker};
use super::{Settings, answer, by_markers};
use crate::described::Described;
use crate::robot_options::Stated;
use crate::sources::{self, RobotClock};

/// How often wheel speeds are requested.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
/// How long to wait for wheel speeds; older ones are ignored.
const WHEELS_DEADLINE: Duration = Duration::from_millis(100);
/// How often the turn rate is measured, how long to wait for an answer, and the silence after which
/// the sensors are asked again.
const IMU_PERIOD: Duration = Duration::from_millis(50);
const IMU_DEADLINE: Duration = Duration::from_millis(150);
const IMU_SILENCE: Duration = Duration::from_secs(2);
/// How often the health is checked.
const HEALTH_PERIOD: Duration = Duration::from_millis(250);
/// Subscribers get at most one pose in this time.
const PUBLISH_PERIOD: Duration = Duration::from_millis(100);
/// A pose may be published this much too early, since scans do not arrive at equal intervals.
const PUBLISH_JITTER: Duration = Duration::from_millis(20);
/// The largest valid wheel speed; the original driver also ignored larger ones.
const MAX_SPEED_MM_S: u32 = 5_000;

#[derive(Debug)]
pub(crate) struct LocationDriver {
    robot: Described,
    settings: Settings,
    /// `Some` after the start.
    link: Option<LocationServiceLink>,
    /// `Some` after the start.
    engine: Option<Engine>,
    problems: Arc<Mutex<Problems>>,
    /// The map in use, for clients, or the reason why there is none.
    map: Arc<Mutex<Result<Map, String>>>,
    tasks: JoinSet<()>,
    /// Makes uploads wait for each other.
    uploading: Arc<tokio::sync::Mutex<()>>,
}

/// The reasons for missing data, for people.
#[derive(Debug)]
struct Problems {
    map: Option<String>,
    scans: String,
    wheels: String,
    external: Option<String>,
}

/// The time between two attempts to read a map that is missing or invalid.
const MAP_AGAIN: Duration = Duration::from_secs(2);

const NOT_READY: &str = "the driver is not ready: try again";
const NO_MAP: &str = "no map: start the driver with --map FILE, or upload a map";

impl Problems {
    fn new(settings: &Settings) -> Self {
        Self {
            map: Some(NO_MAP.into()),
            scans: format!("no scans from {}", settings.laser()),
            wheels: format!("no wheel speeds from {}", settings.robot.devices.wheels),
            external: None,
        }
    }
}

impl LocationDriver {
    pub(crate) fn new(stated: Stated, settings: Settings) -> Self {
        Self {
            robot: Described::new(stated),
            link: None,
            engine: None,
            problems: Arc::new(Mutex::new(Problems::new(&settings))),
            settings,
            map: Arc::new(Mutex::new(Err(NO_MAP.into()))),
            tasks: JoinSet::new(),
            uploading: Arc::default(),
        }
    }

    /// Starts the filter and the tasks around it.
    fn begin(&mut self) -> io::Result<()> {
        let Some(link) = self.link.clone() else {
            return Ok(());
        };
        *lock(&self.problems) = Problems::new(&self.settings);
        let geometry = (self.settings.robot).geometry(self.settings.config.max_range_m);
        let tracker = Tracker::new(self.settings.config.clone(), geometry);
        let publisher = link.clone();
        let mut due = Duration::ZERO;
        let clock = self.settings.robot.start_clock();
        let engine = Engine::start(tracker, clock, move |report, now| {
            if publisher.subscriptions() == 0 || now + PUBLISH_JITTER < due {
                return;
            }
            due = (due + PUBLISH_PERIOD).max(now);
            let data = PosesData {
                current_location: answer::pose(report, now, unix_ms()),
                quality: Some(answer::quality(report, now)),
            };
            match publisher.poses(data) {
                Ok(()) => {}
                Err(error @ SendError::TooLong(_)) => tracing::error!("{error}"),
                Err(error) => tracing::debug!("a pose was not published: {error}"),
            }
        })?;
        self.load_map(engine.clone());
        self.watch_sources(&link, &engine);
        if let Some(external) = self.settings.external {
            let (engine, problems) = (engine.clone(), self.problems.clone());
            self.tasks.spawn(async move {
                let error = external.receive(&engine, unix_ms).await;
                let why = format!("cannot receive poses at {}: {error}", external.listen);
                tracing::error!("{why}");
                lock(&problems).external = Some(why);
            });
        }
        self.watch_health(link, engine.clone());
        self.engine = Some(engine);
        Ok(())
    }

    fn report(&self) -> (Report, Duration) {
        let engine = self.engine.as_ref();
        engine.map_or_else(Default::default, |engine| (engine.report(), engine.now()))
    }

    /// Reads the map in a separate thread: the map of a large building takes a second. If the file is
    /// missing or invalid, it tries again.
    fn load_map(&mut self, engine: Engine) {
        let Some(path) = self.settings.map.clone() else {
            return;
        };
        let config = self.settings.config.clone();
        let problems = self.problems.clone();
        let used = self.map.clone();
        let reads = format!("reads the map {}", path.display());
        *lock(&used) = Err(reads.clone());
        lock(&problems).map = Some(reads);
        let uploading = self.uploading.clone();
        self.tasks.spawn(async move {
            loop {
                {
                    let _turn = uploading.lock().await;
                    if lock(&used).is_ok() {
                        // A client has uploaded a map.
                        return;
                    }
                    let (path, config) = (path.clone(), config.clone());
                    let loaded = spawn_blocking(move || maps::load(&path, &config)).await;
                    match loaded.unwrap_or_else(|error| Err(error.to_string())) {
                        Ok(loaded) => return use_map(loaded, &engine, &used).await,
                        Err(why) => {
                            let before = lock(&problems).map.replace(why.clone());
                            if before.as_ref() != Some(&why) {
                                tracing::error!("{why}");
                            }
                            *lock(&used) = Err(why);
                        }
                    }
                }
                sleep(MAP_AGAIN).await;
            }
        });
    }

    fn watch_sources(&mut self, link: &LocationServiceLink, engine: &Engine) {
        let (own, problems) = (link.devices().clone(), self.problems.clone());
        let (settings, engine) = (self.settings.clone(), engine.clone());
        self.tasks.spawn(async move {
            let client = connect(&own, &settings, &problems).await;
            let laser = Mutex::new(settings.robot.scanner);
            let scans = watch_scans(&client, &settings, &laser, &engine, &problems);
            let description = watch_description(&client, &settings, &laser);
            let wheels = watch_wheels(&client, &settings, &engine, &problems);
            let turn_rates = watch_turn_rates(&client, &settings, &engine);
            let markers = by_markers::watch(&client, settings.markers, &engine, unix_us);
            tokio::join!(scans, description, wheels, turn_rates, markers);
        });
    }

    fn watch_health(&mut self, link: LocationServiceLink, engine: Engine) {
        let problems = self.problems.clone();
        self.tasks.spawn(async move {
            let mut ticks = interval(HEALTH_PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let trouble = {
                    let problems = lock(&problems);
                    let (map, scans, wheels) =
                        (problems.map.as_deref(), &*problems.scans, &*problems.wheels);
                    let (report, fault) = (engine.report(), engine.fault());
                    answer::trouble(&report, engine.now(), map, scans, wheels, fault)
                        .or_else(|| problems.external.clone())
                };
                match trouble {
                    Some(why) => link.trouble(&why),
                    None => link.recovered(),
                }
            }
        });
    }
}

impl LocationServiceDriver for LocationDriver {
    async fn start(
        &mut self,
        link: LocationServiceLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let robot = self.robot.setup(&link).await;
        self.link = Some(link);
        self.settings.set_robot(robot);
        Ok(self.begin()?)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.robot.look_at()
    }

    /// If the robot has another shape, the driver begins again, with the map that it has.
    async fn wake(&mut self) {
        let Some(robot) = self.robot.changed() else {
            return;
        };
        self.shutdown().await;
        self.settings.set_robot(robot);
        if let Err(error) = self.begin() {
            tracing::error!("cannot begin again: {error}");
        }
    }

    async fn pose(&mut self, reply: Reply<Location>) {
        let (report, now) = self.report();
        reply.send(answer::pose(&report, now, unix_ms()));
    }

    async fn quality(&mut self, reply: Reply<Quality>) {
        let (report, now) = self.report();
        reply.send(answer::quality(&report, now));
    }

    async fn particles(&mut self, reply: Reply<Particles>) {
        if let Some(engine) = &self.engine {
            engine.send(Input::Particles(reply));
        }
    }

    async fn geometry(&mut self, asked: GeometryRequest, reply: Reply<Geometry>) {
        if let Some(engine) = &self.engine {
            engine.send(Input::Geometry {
                again: asked.again(),
                reply,
            });
        }
    }

    async fn map(&mut self, reply: Reply<Map>) {
        let used = lock(&self.map).clone();
        match used {
            Ok(map) => reply.send(map),
            Err(why) => reply.refuse(&why),
        }
    }

    async fn upload_map(&mut self, text: String, outcome: Outcome) {
        let Some(engine) = self.engine.clone() else {
            return;
        };
        let (path, config) = (self.settings.map.clone(), self.settings.config.clone());
        let (used, uploading) = (self.map.clone(), self.uploading.clone());
        self.tasks.spawn(async move {
            // Uploads take effect in the order of arrival.
            let _turn = uploading.lock().await;
            let prepared = spawn_blocking(move || {
                let loaded = maps::from_roson(&text, &config)?;
                maps::store(path.as_deref(), &text).map(|()| loaded)
            });
            let prepared = prepared.await;
            match prepared.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(loaded) => {
                    tracing::info!("using an uploaded map");
                    use_map(loaded, &engine, &used).await;
                    outcome.done();
                }
                Err(why) => {
                    tracing::error!("rejected an uploaded map: {why}");
                    outcome.refuse(&why);
                }
            }
        });
        // Finished tasks leave their results here.
        while self.tasks.try_join_next().is_some() {}
    }

    async fn set_pose(&mut self, known: KnownPose, outcome: Outcome) {
        let Some(engine) = self.engine.clone() else {
            return outcome.refuse(NOT_READY);
        };
        let hint = match answer::hint(&known) {
            Ok(hint) => hint,
            Err(why) => return outcome.refuse(&why),
        };
        let time = engine.now();
        // The filter may be busy.
        self.tasks.spawn(async move {
            let (reply, done) = oneshot::channel();
            engine.deliver(Input::Hint { time, hint, reply }).await;
            match done.await {
                Ok(Ok(())) => outcome.done(),
                Ok(Err(why)) => outcome.refuse(&why),
                Err(_) => outcome.refuse(NOT_READY),
            }
        });
        while self.tasks.try_join_next().is_some() {}
    }

    async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
        self.engine = None;
    }
}

/// Passes a map to the filter. From then on, clients also get it.
async fn use_map(loaded: Loaded, engine: &Engine, used: &Mutex<Result<Map, String>>) {
    engine.deliver(Input::Map(Box::new(loaded.map))).await;
    *lock(used) = loaded.message;
}

async fn connect(own: &Client, settings: &Settings, problems: &Mutex<Problems>) -> Client {
    sources::client(own, settings.robot.devices_of.as_deref(), |error| {
        let mut problems = lock(problems);
        problems.scans = error.to_string();
        problems.wheels = error.to_string();
    })
    .await
}

/// Follows what the scanner says of itself.
async fn watch_description(client: &Client, settings: &Settings, laser: &Mutex<Laser>) {
    let scanner = Hokuyo::new(client.device(settings.laser()));
    sources::watch_scanner(scanner, |told| {
        *lock(laser) = settings.robot.scanner_as_described(&told);
    })
    .await;
}

async fn watch_scans(
    client: &Client,
    settings: &Settings,
    laser: &Mutex<Laser>,
    engine: &Engine,
    problems: &Mutex<Problems>,
) {
    let scanner = Hokuyo::new(client.device(settings.laser()));
    let mut clock = RobotClock::default();
    sources::watch_scans(scanner, |received| match received {
        Ok(scan) => {
            let end = scan_end(&mut clock, &scan);
            let end = engine.since_start(end);
            let scan = PlaneScan::from_values(&scan, end, &lock(laser));
            engine.send(Input::Scan(scan));
        }
        Err(error) => {
            lock(problems).scans = format!("no scans from {}: {error}", settings.laser());
        }
    })
    .await;
}

async fn watch_wheels(
    client: &Client,
    settings: &Settings,
    engine: &Engine,
    problems: &Mutex<Problems>,
) {
    let client = client.clone().with_deadline(WHEELS_DEADLINE);
    let device = settings.robot.devices.wheels;
    let wheels = Roboclaw::new(client.device(device));
    let problem = |why: &dyn std::fmt::Display| {
        lock(problems).wheels = format!("no wheel speeds from {device}: {why}");
    };
    sources::watch_wheels(wheels, WHEELS_PERIOD, |received| match received {
        Ok((time, speeds)) if speeds.fastest_mm_s() <= MAX_SPEED_MM_S => {
            let time = engine.since_start(time);
            engine.send(Input::Wheels(time, WheelSpeeds::into(speeds)));
        }
        Ok((_, speeds)) => problem(&format!("{} mm/s is invalid", speeds.fastest_mm_s())),
        Err(error) => problem(&error),
    })
    .await;
}

/// The turn rate by the motion sensors, if there are some.
async fn watch_turn_rates(client: &Client, settings: &Settings, engine: &Engine) {
    let Some(device) = settings.robot.devices.imu else {
        return;
    };
    let sensors = SubscribeAction {
        gyro: Some(true),
        ..SubscribeAction::default()
    };
    let imu = NineDof::new(client.device(device)).with_deadline(IMU_DEADLINE);
    loop {
        if let Ok(mut readings) = imu.readings(IMU_PERIOD, sensors).await {
            while let Ok(Some(update)) = timeout(IMU_SILENCE, readings.next()).await {
                if let Some([.., rad_s]) = update.message.rate_rad_s() {
                    engine.send(Input::TurnRate(engine.now(), rad_s));
                }
            }
        }
        sleep(IMU_SILENCE).await;
    }
}

/// When the last beam of a scan was measured, by our own clock.
fn scan_end(clock: &mut RobotClock, scan: &Scan) -> Instant {
    let age = clock.age(scan.timestamp_ms(), SystemTime::now());
    now().checked_sub(age).unwrap_or_else(now)
}

fn unix_ms() -> i64 {
    unix_us() / 1_000
}

fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros().try_into().unwrap_or(i64::MAX))
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Holders only read or assign.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
