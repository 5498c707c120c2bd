//! Watches Amber's devices for all sessions together: one task per topic. IO.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use amber_client::error::{Error, Unavailability};
use amber_client::proxy::{
    Battery, Bumper, Camera, DriveToPoint, Gamepad, Gps, Hokuyo, LocationService, NineDof,
    Roboclaw, Robot,
};
use amber_client::sources::{self, watch_poses, watch_scanner, watch_scans, watch_wheels};
use amber_client::{Client, Subscription};
use amber_map::Pose;
use amber_navigation::kinematics::Twist;
use amber_proto::camera::{Picture, PictureStream};
use amber_proto::ninedof::SubscribeAction;
use amber_proto::robot::{Odometry, Place};
use amber_proto::{Device, DeviceType};
use amber_scene::mount;
use amber_values::{MapPose, OpticalFrame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::maps;
use crate::pictures::{PictureWish, PictureWishes};
use crate::robot::{Measurement, News, Topic};

/// The time between two requests or readings.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
const ODOMETRY_PERIOD: Duration = Duration::from_millis(50);
const POSE_PERIOD: Duration = Duration::from_millis(100);
const IMU_PERIOD: Duration = Duration::from_millis(50);
const TARGETS_PERIOD: Duration = Duration::from_millis(500);
/// Drivers that know the position of the laser may start later.
const MOUNT_PERIOD: Duration = Duration::from_secs(2);
/// Older answers are ignored.
const DEADLINE: Duration = Duration::from_millis(300);
/// A device that has not answered for this long is one that the mediator does not know.
const PATIENCE: Duration = Duration::from_secs(5);
/// The device that reports the odometry.
const ROBOT: Device = Device::new(DeviceType::ROBOT, 0);
/// The time between two attempts to subscribe.
const RETRY: Duration = Duration::from_millis(250);
/// A program for which more measurements wait than this is busy: it gets no picture now, and the newest
/// one later. Pictures are large.
const BUSY: usize = 8;
/// The time between two looks whether a program is still busy.
const BUSY_PERIOD: Duration = Duration::from_millis(10);

/// The topics that are watched.
pub struct Feeds {
    own: Client,
    devices_of: Option<String>,
    sink: Sink,
    watched: HashMap<Topic, Watched>,
    cameras: HashMap<Device, WatchedCamera>,
}

/// The receiver of measurements.
#[derive(Clone)]
struct Sink {
    news: mpsc::Sender<News>,
    lost: Arc<AtomicU64>,
}

struct Watched {
    count: usize,
    task: AbortHandle,
}

/// A camera whose pictures are watched.
struct WatchedCamera {
    wishes: PictureWishes,
    strongest: watch::Sender<PictureWish>,
    task: AbortHandle,
}

impl Feeds {
    /// Watches over its own link, or as a client of the mediator at an address.
    pub fn new(own: Client, devices_of: Option<String>, news: mpsc::Sender<News>) -> Self {
        Self {
            own,
            devices_of,
            sink: Sink {
                news,
                lost: Arc::default(),
            },
            watched: HashMap::new(),
            cameras: HashMap::new(),
        }
    }

    /// The number of measurements since the last call that were dropped because too many waited.
    pub fn take_lost(&self) -> u64 {
        self.sink.take_lost()
    }

    /// Watches a topic: each call needs one of [`Feeds::unwatch`].
    pub fn watch(&mut self, topic: Topic) {
        if let Topic::Pictures(device, wish) = topic {
            return self.watch_pictures(device, wish);
        }
        if let Some(watched) = self.watched.get_mut(&topic) {
            watched.count += 1;
            return;
        }
        let sink = self.sink.clone();
        let task = self.spawn(async move |client| follow(topic, client, sink).await);
        self.watched.insert(topic, Watched { count: 1, task });
    }

    /// Watches a topic no longer, once for each [`Feeds::watch`].
    pub fn unwatch(&mut self, topic: Topic) {
        if let Topic::Pictures(device, wish) = topic {
            return self.unwatch_pictures(device, wish);
        }
        if let Some(watched) = self.watched.get_mut(&topic) {
            watched.count -= 1;
            if watched.count == 0 {
                watched.task.abort();
                self.watched.remove(&topic);
            }
        }
    }

    fn watch_pictures(&mut self, device: Device, wish: PictureWish) {
        if let Some(camera) = self.cameras.get_mut(&device) {
            camera.wishes.add(wish);
            return camera.update();
        }
        let (strongest, wanted) = watch::channel(wish);
        let sink = self.sink.clone();
        let following = async move |client: Client| {
            let camera = Camera::new(client.device(device));
            follow_pictures(camera, wanted, &sink).await;
        };
        let mut camera = WatchedCamera {
            wishes: PictureWishes::default(),
            strongest,
            task: self.spawn(following),
        };
        camera.wishes.add(wish);
        self.cameras.insert(device, camera);
    }

    fn unwatch_pictures(&mut self, device: Device, wish: PictureWish) {
        let Some(camera) = self.cameras.get_mut(&device) else {
            return;
        };
        camera.wishes.remove(wish);
        match camera.wishes.strongest() {
            Some(_) => camera.update(),
            None => {
                camera.task.abort();
                self.cameras.remove(&device);
            }
        }
    }

    /// Starts a task that follows something as a client.
    fn spawn<F>(&self, following: impl FnOnce(Client) -> F + Send + 'static) -> AbortHandle
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (own, devices_of) = (self.own.clone(), self.devices_of.clone());
        let task = async move {
            let failed = |error| tracing::warn!("cannot reach the devices: {error}");
            following(sources::client(&own, devices_of.as_deref(), failed).await).await;
        };
        tokio::spawn(task).abort_handle()
    }
}

impl WatchedCamera {
    fn update(&self) {
        let Some(strongest) = self.wishes.strongest() else {
            return;
        };
        self.strongest.send_if_modified(|wanted| {
            let is_other = *wanted != strongest;
            *wanted = strongest;
            is_other
        });
    }
}

async fn follow(topic: Topic, client: Client, sink: Sink) {
    match topic {
        Topic::Scans(device) => {
            let scanner = Hokuyo::new(client.device(device));
            let take = |scan| {
                if let Ok(scan) = scan {
                    sink.offer(device, Measurement::Scan(scan));
                }
            };
            let told = |told| {
                sink.offer(device, Measurement::Scanner(Box::new(told)));
            };
            tokio::select! {
                () = watch_scans(scanner.clone(), take) => {}
                () = watch_scanner(scanner, told) => {}
            }
        }
        Topic::Wheels(device) => follow_wheels(&client, device, &sink).await,
        Topic::Odometry(wheels) => follow_odometry(&client, wheels, &sink).await,
        Topic::Pose(device) => {
            let location = LocationService::new(client.device(device)).with_deadline(DEADLINE);
            let take = |found: Result<(MapPose, _), Error>| {
                if let Ok((pose, _)) = found {
                    sink.offer(device, Measurement::Pose(pose));
                }
            };
            loop {
                watch_poses(location.clone(), POSE_PERIOD, take).await;
                sleep(RETRY).await;
            }
        }
        Topic::Imu(device) => {
            let imu = NineDof::new(client.device(device)).with_deadline(DEADLINE);
            let sensors = SubscribeAction {
                accel: Some(true),
                gyro: Some(true),
                ..SubscribeAction::default()
            };
            loop {
                if let Ok(mut readings) = imu.readings(IMU_PERIOD, sensors).await {
                    while let Some(update) = readings.next().await {
                        sink.offer(device, Measurement::Imu(update.message));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Battery(device) => {
            let battery = Battery::new(client.device(device));
            loop {
                if let Ok(mut states) = battery.state_updates().await {
                    while let Some(update) = states.next().await {
                        sink.offer(device, Measurement::Battery(update.message));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Gps(device) => {
            let gps = Gps::new(client.device(device));
            loop {
                if let Ok(mut fixes) = gps.fix_updates().await {
                    while let Some(update) = fixes.next().await {
                        sink.offer(device, Measurement::Gps(update.message));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Gamepad(device) => {
            let gamepad = Gamepad::new(client.device(device));
            loop {
                if let Ok(mut states) = gamepad.state_updates().await {
                    while let Some(update) = states.next().await {
                        let state = Box::new(update.message);
                        sink.offer(device, Measurement::Gamepad(state));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Contacts(device) => {
            let bumper = Bumper::new(client.device(device));
            loop {
                if let Ok(mut contacts) = bumper.contact_updates().await {
                    while let Some(update) = contacts.next().await {
                        sink.offer(device, Measurement::Contacts(update.message));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Map(devices) => {
            let device = devices.location;
            let take = |grid| match grid {
                Ok(grid) => sink.offer(device, Measurement::Map(Arc::new(grid))),
                Err(problem) => {
                    tracing::warn!(%device, "no map: {problem}");
                    true
                }
            };
            maps::watch(&client, devices, take).await;
        }
        Topic::Mount(device) => {
            let mut ticks = ticks(MOUNT_PERIOD);
            let is_known = async {
                loop {
                    ticks.tick().await;
                    if let Some(pose) = mount::find(&client).await
                        && sink.offer(device, Measurement::Mount(pose))
                    {
                        return;
                    }
                }
            };
            is_known.await;
        }
        // They have a task of their own.
        Topic::Pictures(..) => {}
        Topic::Camera(device) => {
            let camera = Camera::new(client.device(device));
            loop {
                if let Ok(mut infos) = camera.info_updates().await {
                    while let Some(update) = infos.next().await {
                        let info = Box::new(update.message);
                        sink.offer(device, Measurement::CameraInfo(info));
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::CameraPlace(device) => {
            let robot = Robot::new(client.device(ROBOT));
            let mut last = None;
            loop {
                // A subscriber gets the shape at once.
                if let Ok(mut shapes) = robot.shape_updates().await {
                    while let Some(update) = shapes.next().await {
                        let place = update.message.camera.filter(is_finite);
                        let place = place.as_ref().map(OpticalFrame::from);
                        if let Some(place) = place
                            && last != Some(place)
                            && sink.offer(device, Measurement::CameraPlace(place))
                        {
                            last = Some(place);
                        }
                    }
                }
                sleep(RETRY).await;
            }
        }
        Topic::Targets(device) => {
            let driver = DriveToPoint::new(client.device(device)).with_deadline(DEADLINE);
            let mut ticks = ticks(TARGETS_PERIOD);
            let mut last = None;
            loop {
                ticks.tick().await;
                if let (Ok(next), Ok(visited)) =
                    (driver.next_targets().await, driver.visited_targets().await)
                {
                    let targets = Measurement::Targets {
                        next: next.targets,
                        visited: visited.targets,
                    };
                    if last.as_ref() != Some(&targets) {
                        sink.offer(device, targets.clone());
                        last = Some(targets);
                    }
                }
            }
        }
    }
}

async fn follow_wheels(client: &Client, device: Device, sink: &Sink) {
    let wheels = Roboclaw::new(client.device(device)).with_deadline(DEADLINE);
    let take = |answer| {
        if let Ok((_, speeds)) = answer {
            sink.offer(device, Measurement::Wheels(speeds));
        }
    };
    watch_wheels(wheels, WHEELS_PERIOD, take).await;
}

/// Follows the odometry of the robot; if no device reports it, the speeds of these wheels.
async fn follow_odometry(client: &Client, wheels: Device, sink: &Sink) {
    let robot = Robot::new(client.device(ROBOT)).with_deadline(PATIENCE);
    let Ok(mut published) = robot.odometry_updates(ODOMETRY_PERIOD).await else {
        // The client has ended.
        return;
    };
    let first = tokio::select! {
        biased;
        first = next_odometry(&mut published) => first,
        () = is_absent(&robot) => tokio::select! {
            biased;
            first = next_odometry(&mut published) => first,
            () = follow_wheels(client, wheels, sink) => return,
        },
    };
    let mut next = first;
    while let Some(measured) = next {
        sink.offer(ROBOT, measured);
        next = next_odometry(&mut published).await;
    }
}

/// Follows the pictures of a camera as they are wanted, which may change at any time.
async fn follow_pictures(camera: Camera, mut wanted: watch::Receiver<PictureWish>, sink: &Sink) {
    let device = camera.address();
    // The last subscription lives until there is the next one, so that the camera stays on. It keeps
    // only its newest picture itself.
    let mut subscription;
    loop {
        let wish = *wanted.borrow_and_update();
        let request = PictureStream {
            max_width: wish.max_width,
            ..PictureStream::default()
        };
        subscription = match camera.pictures(wish.period(), request).await {
            Ok(pictures) => pictures,
            Err(_) => {
                sleep(RETRY).await;
                continue;
            }
        };
        let mut held: Option<Picture> = None;
        loop {
            tokio::select! {
                biased;
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                next = subscription.next() => match next {
                    Some(update) => {
                        if held.replace(update.message).is_some() {
                            sink.lost.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    // The client has ended.
                    None => return,
                },
                () = sleep(BUSY_PERIOD), if held.is_some() => {}
            }
            if !sink.is_busy()
                && let Some(picture) = held.take()
            {
                sink.offer(device, Measurement::Picture(Arc::new(picture)));
            }
        }
    }
}

fn is_finite(place: &Place) -> bool {
    [place.x(), place.y(), place.z(), place.yaw(), place.pitch()]
        .iter()
        .all(|number| number.is_finite())
}

async fn next_odometry(published: &mut Subscription<Odometry>) -> Option<Measurement> {
    let it = published.next().await?.message;
    Some(Measurement::Odometry(
        Pose::new(it.x(), it.y(), it.heading()),
        Twist::new(it.forward(), it.turn()),
    ))
}

/// Waits until it is certain that no device reports the odometry.
async fn is_absent(robot: &Robot) {
    loop {
        match robot.odometry().await {
            Err(Error::NoSuchDevice { .. } | Error::TimedOut { .. }) => return,
            Err(Error::Unavailable {
                reason: Unavailability::NoSuchDevice,
                ..
            }) => {
                return;
            }
            // It reports it, or will do so.
            Ok(_) | Err(_) => sleep(PATIENCE).await,
        }
    }
}

impl Sink {
    /// Passes a measurement on, unless the gateway is overloaded: the next one is newer. Returns
    /// whether it was forwarded.
    fn offer(&self, device: Device, measurement: Measurement) -> bool {
        let report = News::Measured(device, measurement);
        let sent = self.news.try_send(report);
        if let Err(TrySendError::Full(_)) = sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        sent.is_ok()
    }

    /// Whether many measurements wait for the program.
    fn is_busy(&self) -> bool {
        self.news.max_capacity() - self.news.capacity() > BUSY
    }

    fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use amber_values::WheelSpeeds;

    use super::*;

    #[test]
    fn measurements_that_find_no_room_are_counted_once() {
        let (news, mut received) = mpsc::channel(2);
        let sink = Sink {
            news,
            lost: Arc::default(),
        };
        let device = Device::new(DeviceType::ROBOCLAW, 0);
        for _ in 0..5 {
            sink.offer(device, Measurement::Wheels(WheelSpeeds::STOP));
        }
        assert_eq!(sink.take_lost(), 3);
        assert_eq!(sink.take_lost(), 0);
        assert!(received.try_recv().is_ok());
    }

    #[test]
    fn a_program_is_busy_while_many_measurements_wait() {
        let (news, mut received) = mpsc::channel(2 * BUSY);
        let sink = Sink {
            news,
            lost: Arc::default(),
        };
        let device = Device::new(DeviceType::ROBOCLAW, 0);
        for _ in 0..=BUSY {
            assert!(!sink.is_busy());
            sink.offer(device, Measurement::Wheels(WheelSpeeds::STOP));
        }
        assert!(sink.is_busy());
        assert!(received.try_recv().is_ok());
        assert!(!sink.is_busy());
    }
}
