//! Follows the other devices: one task for each. IO.
//!
//! Scans and poses come by subscription. If nothing is published, as by some drivers of the original
//! system, the driver sends requests instead, until the device publishes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use amber_driver::client::proxy::{
    Bumper, Hokuyo, LocationService, LocationServicePoses, NineDof, Roboclaw,
};
use amber_driver::client::{self, Client, Error, Subscription};
use amber_driver::now;
use amber_proto::bumper::Contacts;
use amber_proto::hokuyo::Scanner;
use amber_proto::ninedof::{DataRequest, SubscribeAction};
use amber_values::{ImuReading, MapPose, Scan, WheelSpeeds};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{sleep, timeout};

use super::sources::Source;
use crate::robot_options::Devices;
use crate::sources::{self, RobotClock};

/// The number of inputs that may wait: a second of all devices.
const MAX_WAITING: usize = 64;
/// The time between two requests for wheel speeds, and how long to wait for an answer; older ones
/// are ignored.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
const WHEELS_DEADLINE: Duration = Duration::from_millis(150);
/// The time between two requests for a pose, as in the original DriveToPoint.
const POSE_PERIOD: Duration = Duration::from_millis(90);
const POSE_DEADLINE: Duration = Duration::from_millis(300);
const SCAN_DEADLINE: Duration = Duration::from_millis(500);
const IMU_PERIOD: Duration = Duration::from_millis(50);
const IMU_DEADLINE: Duration = Duration::from_millis(150);
/// Bumpers publish four times per second, and at each change.
const CONTACTS_PERIOD: Duration = Duration::from_millis(250);
const CONTACTS_DEADLINE: Duration = Duration::from_millis(200);
/// After this silence of a subscription the driver sends requests. Devices publish at least ten
/// times per second.
const SILENCE: Duration = Duration::from_millis(350);
/// The time between two failed requests.
const RETRY: Duration = Duration::from_millis(200);

/// An input, with the time of the measurement.
#[derive(Debug)]
pub(crate) enum SensorEvent {
    /// The connection to the devices.
    Connected(Client),
    Scan(Instant, Scan),
    /// What the scanner says of itself.
    Scanner(Scanner),
    Wheels(Instant, WheelSpeeds),
    Imu(Instant, ImuReading),
    Contacts(Instant, Contacts),
    Pose(Instant, MapPose),
    /// A request has failed.
    Failed(Source, String),
}

/// Starts the tasks, with the client of its own mediator or for the mediator at an address. They
/// end when the receiver is dropped.
pub(crate) fn follow(
    own: Client,
    devices_of: Option<String>,
    devices: Devices,
) -> mpsc::Receiver<SensorEvent> {
    let (feeds, received) = mpsc::channel(MAX_WAITING);
    let feeds = Sink {
        feeds,
        dropped: Arc::default(),
    };
    tokio::spawn(async move {
        let failed =
            |error: Error| feeds.offer(SensorEvent::Failed(Source::Wheels, error.to_string()));
        let client = sources::client(&own, devices_of.as_deref(), failed).await;
        if feeds
            .send(SensorEvent::Connected(client.clone()))
            .await
            .is_err()
        {
            return;
        }
        let wheels = Roboclaw::new(client.device(devices.wheels));
        tokio::spawn(until_ended(
            follow_wheels(wheels, feeds.clone()),
            feeds.clone(),
        ));
        if let Some(laser) = devices.laser {
            let laser = Hokuyo::new(client.device(laser)).with_deadline(SCAN_DEADLINE);
            let (scans, scanner) = (feeds.clone(), feeds.clone());
            let tell = move |told| scanner.offer(SensorEvent::Scanner(told));
            let describing = sources::watch_scanner(laser.clone(), tell);
            tokio::spawn(until_ended(describing, feeds.clone()));
            tokio::spawn(until_ended(follow_scans(laser, scans), feeds.clone()));
        }
        if let Some(poses) = devices.poses {
            let poses = LocationService::new(client.device(poses)).with_deadline(POSE_DEADLINE);
            tokio::spawn(follow_publisher(poses, feeds.clone()));
        }
        if let Some(bumper) = devices.bumper {
            let bumper = Bumper::new(client.device(bumper)).with_deadline(CONTACTS_DEADLINE);
            tokio::spawn(follow_publisher(bumper, feeds.clone()));
        }
        if let Some(imu) = devices.imu {
            let imu = NineDof::new(client.device(imu)).with_deadline(IMU_DEADLINE);
            tokio::spawn(follow_publisher(imu, feeds));
        }
    });
    received
}

/// Runs a task until the receiver is dropped.
async fn until_ended(task: impl Future<Output = ()>, feeds: Sink) {
    tokio::select! {
        () = task => {}
        () = feeds.closed() => {}
    }
}

/// The queue into which the tasks put their inputs.
#[derive(Clone)]
struct Sink {
    feeds: mpsc::Sender<SensorEvent>,
    dropped: Arc<AtomicU64>,
}

impl Sink {
    /// Forwards an input, unless the receiver is overloaded or has ended.
    fn offer(&self, feed: SensorEvent) {
        if let Err(TrySendError::Full(_)) = self.feeds.try_send(feed) {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(
                    dropped,
                    "dropped data of other devices: the driver is too slow"
                );
            }
        }
    }

    /// Forwards an input; waits while the receiver is busy.
    async fn send(&self, feed: SensorEvent) -> Result<(), Ended> {
        self.feeds.send(feed).await.map_err(|_| Ended)
    }

    async fn closed(&self) {
        self.feeds.closed().await;
    }
}

async fn follow_wheels(wheels: Roboclaw, feeds: Sink) {
    let wheels = wheels.with_deadline(WHEELS_DEADLINE);
    let take = |answer: Result<(Instant, WheelSpeeds), Error>| {
        feeds.offer(match answer {
            Ok((time, speeds)) => SensorEvent::Wheels(time, speeds),
            Err(error) => SensorEvent::Failed(Source::Wheels, error.to_string()),
        });
    };
    sources::watch_wheels(wheels, WHEELS_PERIOD, take).await;
}

async fn follow_scans(laser: Hokuyo, feeds: Sink) {
    let mut clock = RobotClock::default();
    let take = |scan: Result<Scan, Error>| {
        feeds.offer(match scan {
            Ok(scan) => {
                let age = clock.age(scan.timestamp_ms(), SystemTime::now());
                SensorEvent::Scan(before(now(), age), scan)
            }
            Err(error) => SensorEvent::Failed(Source::Scans, error.to_string()),
        });
    };
    sources::watch_scans(laser, take).await;
}

/// The receiver has ended.
struct Ended;

type Followed = Result<Infallible, Ended>;

/// A device that publishes, and answers requests for the same.
trait Publisher: Send + Sync + 'static {
    type Data: Send;
    /// The same as it is published, possibly with more data.
    type Published: Send;
    const SOURCE: Source;
    /// The time between two requests.
    const PERIOD: Duration;

    fn subscribe(
        &self,
    ) -> impl Future<Output = client::Result<Subscription<Self::Published>>> + Send;
    fn ask(&self) -> impl Future<Output = client::Result<Self::Data>> + Send;
    fn data(published: Self::Published) -> Self::Data;
    /// With the time of the measurement.
    fn feed(data: Self::Data, clock: &mut RobotClock) -> SensorEvent;
}

impl Publisher for LocationService {
    type Data = MapPose;
    type Published = LocationServicePoses;
    const SOURCE: Source = Source::Poses;
    const PERIOD: Duration = POSE_PERIOD;

    async fn subscribe(&self) -> client::Result<Subscription<LocationServicePoses>> {
        self.poses().await
    }

    async fn ask(&self) -> client::Result<MapPose> {
        self.pose().await
    }

    fn data(published: LocationServicePoses) -> MapPose {
        published.current_location
    }

    fn feed(pose: MapPose, clock: &mut RobotClock) -> SensorEvent {
        let age = clock.age(pose.timestamp_ms, SystemTime::now());
        SensorEvent::Pose(before(now(), age), pose)
    }
}

impl Publisher for NineDof {
    type Data = ImuReading;
    type Published = ImuReading;
    const SOURCE: Source = Source::Imu;
    const PERIOD: Duration = IMU_PERIOD;

    async fn subscribe(&self) -> client::Result<Subscription<ImuReading>> {
        let sensors = SubscribeAction {
            accel: Some(true),
            gyro: Some(true),
            ..SubscribeAction::default()
        };
        self.readings(IMU_PERIOD, sensors).await
    }

    async fn ask(&self) -> client::Result<ImuReading> {
        let sensors = DataRequest {
            accel: Some(true),
            gyro: Some(true),
            ..DataRequest::default()
        };
        self.data(sensors).await
    }

    fn data(published: ImuReading) -> ImuReading {
        published
    }

    fn feed(reading: ImuReading, _: &mut RobotClock) -> SensorEvent {
        SensorEvent::Imu(now(), reading)
    }
}

impl Publisher for Bumper {
    type Data = Contacts;
    type Published = Contacts;
    const SOURCE: Source = Source::Contacts;
    const PERIOD: Duration = CONTACTS_PERIOD;

    async fn subscribe(&self) -> client::Result<Subscription<Contacts>> {
        self.contact_updates().await
    }

    async fn ask(&self) -> client::Result<Contacts> {
        self.contacts().await
    }

    fn data(published: Contacts) -> Contacts {
        published
    }

    fn feed(contacts: Contacts, _: &mut RobotClock) -> SensorEvent {
        SensorEvent::Contacts(now(), contacts)
    }
}

/// Forwards the published data of a device. While it publishes nothing, sends requests.
async fn follow_publisher<P: Publisher>(device: P, feeds: Sink) -> Followed {
    let failed = |error: client::Error| SensorEvent::Failed(P::SOURCE, error.to_string());
    let mut clock = RobotClock::default();
    loop {
        let mut published = match device.subscribe().await {
            Ok(published) => published,
            Err(error) => {
                feeds.send(failed(error)).await?;
                sleep(RETRY).await;
                continue;
            }
        };
        let mut patience = SILENCE;
        loop {
            match timeout(patience, published.next()).await {
                Ok(Some(update)) => {
                    patience = SILENCE;
                    feeds
                        .send(P::feed(P::data(update.message), &mut clock))
                        .await?;
                    continue;
                }
                // The client has ended.
                Ok(None) => return Err(Ended),
                Err(_) => {}
            }
            tokio::select! {
                update = published.next() => {
                    let update = update.ok_or(Ended)?;
                    patience = SILENCE;
                    feeds.send(P::feed(P::data(update.message), &mut clock)).await?;
                }
                answer = device.ask() => match answer {
                    Ok(answer) => {
                        patience = P::PERIOD;
                        feeds.send(P::feed(answer, &mut clock)).await?;
                    }
                    Err(error) => {
                        patience = RETRY;
                        feeds.send(failed(error)).await?;
                    }
                },
            }
        }
    }
}

fn before(now: Instant, age: Duration) -> Instant {
    now.checked_sub(age).unwrap_or(now)
}
