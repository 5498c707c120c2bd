//! The publications of the robot in ROS 2: one task for each device. IO.
//!
//! Each task queries its device while one of its topics has subscribers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use amber_client::proxy::{Hokuyo, LocationService, NineDof, Roboclaw};
use amber_client::sources::{watch_poses, watch_scanner, watch_scans, watch_wheels};
use amber_client::values::{LearnedLaser, MapPose, Scan};
use amber_map::Mounting;
use amber_proto::location::Quality;
use amber_proto::ninedof::SubscribeAction;
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceType};
use amber_robot::maps;
use amber_robot::robot::RobotSetup;
use amber_ros2::messages::TfMessage;
use amber_scene::mount;
use tokio::time::{interval, sleep};
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::{Shared, battery, bumper, camera, gps, joy, plans};
use crate::health::of_drivers;
use crate::limits::{DIAGNOSTICS_PERIOD, MEASUREMENT_DEADLINE, POSE_PERIOD, RETRY};
use crate::pacing::Pacing;
use crate::ros::camera::{mount as mount_of_camera, optical_frame};
use crate::ros::convert::{self, WheelState};
use crate::ros::diagnostics;
use crate::ros::topics::{Topic, TopicSet};

/// A task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The laser scanner.
    Scanner,
    /// The wheels, and all moving frames.
    Wheels,
    /// The motion sensors.
    Imu,
    Battery,
    /// The position on Earth.
    Gps,
    /// What the robot feels.
    Bumper,
    Gamepad,
    Camera,
    /// The pose on the map.
    Location,
    Map,
    /// The shape.
    Description,
    /// The way to the target.
    Plan,
    /// The fixed frames.
    Body,
    /// The states of the devices.
    Health,
}

impl Source {
    /// Those that belong to a device.
    pub(super) const OF_DEVICES: [Self; 12] = [
        Self::Scanner,
        Self::Wheels,
        Self::Imu,
        Self::Battery,
        Self::Gps,
        Self::Bumper,
        Self::Gamepad,
        Self::Camera,
        Self::Location,
        Self::Map,
        Self::Description,
        Self::Plan,
    ];
    /// Those that every robot has.
    pub(super) const OF_THE_ROBOT: [Self; 2] = [Self::Body, Self::Health];

    /// The topics to which it contributes.
    pub(super) fn topics(self) -> TopicSet {
        let topics: &[Topic] = match self {
            Self::Scanner => &[Topic::Scan],
            Self::Wheels => &[Topic::Odom, Topic::Tf, Topic::JointStates],
            Self::Imu => &[Topic::Imu, Topic::Mag],
            Self::Battery => &[Topic::BatteryState],
            Self::Gps => &[Topic::Fix],
            Self::Bumper => &[Topic::HazardDetection],
            Self::Gamepad => &[Topic::Joy],
            Self::Camera => &[Topic::Image, Topic::CameraInfo],
            Self::Location => &[Topic::Pose, Topic::Tf],
            Self::Map => &[Topic::Map],
            Self::Description => &[Topic::RobotDescription],
            Self::Plan => &[Topic::Plan],
            Self::Body => &[Topic::TfStatic],
            Self::Health => &[Topic::Diagnostics],
        };
        topics.iter().copied().collect()
    }

    pub(super) fn device(self, robot: &RobotSetup) -> Device {
        match self {
            Self::Scanner => robot.scanner,
            Self::Wheels => robot.wheels,
            Self::Imu => robot.imu,
            Self::Battery => robot.battery,
            Self::Gps => robot.gps,
            Self::Bumper => robot.bumper,
            Self::Gamepad => robot.gamepad,
            Self::Camera => robot.camera,
            Self::Location | Self::Map => robot.location,
            Self::Description => Device::new(DeviceType::ROBOT, 0),
            Self::Plan => robot.targets,
            Self::Body | Self::Health => Device::MEDIATOR,
        }
    }

    /// Runs until it is aborted, or Zenoh fails.
    pub(super) async fn run(self, shared: Arc<Shared>) {
        let ended = match self {
            Self::Scanner => scans(&shared).await,
            Self::Wheels => wheels(&shared).await,
            Self::Imu => imu(&shared).await,
            Self::Battery => battery::states(&shared).await,
            Self::Gps => gps::fixes(&shared).await,
            Self::Bumper => bumper::contacts(&shared).await,
            Self::Gamepad => joy::states(&shared).await,
            Self::Camera => camera::pictures(&shared).await,
            Self::Location => poses(&shared).await,
            Self::Map => map(&shared).await,
            Self::Description => plans::description(&shared).await,
            Self::Plan => plans::plan(&shared).await,
            Self::Body => body(&shared).await,
            Self::Health => health(&shared).await,
        };
        if let Err(error) = ended {
            tracing::error!("not published in ROS 2: {self:?}: {error}");
        }
    }
}

/// The publisher of a topic, if the configuration names it.
macro_rules! publisher {
    ($shared:expr, $topic:expr) => {
        match $shared.has($topic) {
            true => Some($shared.node.publisher($topic).await?),
            false => None,
        }
    };
}

/// Repeats an action while there are subscribers.
pub(super) async fn while_listened<F: Future<Output = ()>>(
    shared: &Shared,
    topics: TopicSet,
    mut work: impl FnMut() -> F,
) {
    loop {
        shared.listened(topics, true).await;
        tokio::select! {
            () = work() => sleep(RETRY).await,
            () = shared.listened(topics, false) => {}
        }
    }
}

async fn scans(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Scan).await?;
    let device = shared.devices().scanner;
    let shape = mount::shape(&shared.client).await;
    let turn_s = shape.and_then(|shape| shape.scan_turn);
    let turn = turn_s.and_then(|turn_s| Duration::try_from_secs_f64(turn_s).ok());
    let (laser, start) = (Mutex::new(LearnedLaser::new(turn)), Instant::now());
    while_listened(shared, Source::Scanner.topics(), async || {
        let mut pacing: Pacing<Scan> = Pacing::new(shared.robot.period(device));
        let take = |scan: Result<Scan, amber_client::Error>| {
            let Ok(scan) = scan else {
                return;
            };
            let time_ms = scan.timestamp_ms().and_then(|ms| u64::try_from(ms).ok());
            let time = time_ms.map_or_else(|| start.elapsed(), Duration::from_millis);
            let mut learned = laser.lock().unwrap_or_else(PoisonError::into_inner);
            let known = learned.handle(&scan, time);
            pacing.offer(scan);
            if let Some(scan) = pacing.poll(start.elapsed()) {
                let ended_ns = scan.timestamp_ms().map_or_else(unix_ns, ns_of_ms);
                let frames = &shared.config.frames;
                publisher.publish(&convert::scan(&scan, &known, frames, ended_ns));
            }
        };
        let scanner = Hokuyo::new(shared.client.device(device));
        let told = |told| {
            let mut learned = laser.lock().unwrap_or_else(PoisonError::into_inner);
            learned.describe(told);
        };
        tokio::select! {
            () = watch_scans(scanner.clone(), take) => {}
            () = watch_scanner(scanner, told) => {}
        }
    })
    .await;
    Ok(())
}

async fn wheels(shared: &Shared) -> Result<(), Error> {
    let odometry = publisher!(shared, Topic::Odom);
    let transforms = publisher!(shared, Topic::Tf);
    let joints = publisher!(shared, Topic::JointStates);
    let (config, robot) = (&shared.config, shared.devices());
    let start = Instant::now();
    // It continues from there when the wheels answer again.
    let mut state = WheelState::new(robot.drive, config.wheel_radius_m);
    let mut found = shared.found.subscribe();
    // The frames stay where they are, whoever listens: so the wheels are always watched.
    loop {
        // The robot may have moved while they were not: older poses are ignored.
        found.mark_unchanged();
        let mut on_map = None;
        let take = |measured| {
            let Ok((at, speeds)) = measured else {
                return;
            };
            let stamp_ns = ns_of(at);
            let time = at.saturating_duration_since(start);
            let Some(moved) = state.handle(time, stamp_ns, speeds, &config.frames) else {
                return;
            };
            if let Some(odometry) = &odometry {
                odometry.publish(&moved.odometry);
            }
            if let Some(joints) = &joints {
                joints.publish(&moved.joints);
            }
            if let Some(transforms) = &transforms {
                if found.has_changed().is_ok_and(|changed| changed) {
                    let newest = *found.borrow_and_update();
                    on_map = newest.and_then(|(then, found)| {
                        let then = then.saturating_duration_since(start);
                        state.map_to_odom(then, &found)
                    });
                }
                let odom = on_map.map(|it| convert::odom_frame(it, &config.frames, stamp_ns));
                let all = odom.into_iter().chain([moved.transform]);
                transforms.publish(&TfMessage {
                    transforms: all.collect(),
                });
            }
        };
        let device = shared.client.device(robot.wheels);
        let wheels = Roboclaw::new(device).with_deadline(MEASUREMENT_DEADLINE);
        watch_wheels(wheels, config.odom_period, take).await;
        sleep(RETRY).await;
    }
}

async fn imu(shared: &Shared) -> Result<(), Error> {
    let motion = publisher!(shared, Topic::Imu);
    let field = publisher!(shared, Topic::Mag);
    let frames = &shared.config.frames;
    while_listened(shared, Source::Imu.topics(), async || {
        let device = shared.client.device(shared.devices().imu);
        let sensors = SubscribeAction {
            accel: Some(motion.is_some()),
            gyro: Some(motion.is_some()),
            magnet: Some(field.is_some()),
            ..SubscribeAction::default()
        };
        let imu = NineDof::new(device);
        let Ok(mut readings) = imu.readings(shared.config.imu_period, sensors).await else {
            return;
        };
        while let Some(update) = readings.next().await {
            let stamp_ns = unix_ns();
            let message = convert::imu(&update.message, frames, stamp_ns);
            if let (Some(motion), Some(message)) = (&motion, message) {
                motion.publish(&message);
            }
            let message = convert::magnetic_field(&update.message, frames, stamp_ns);
            if let (Some(field), Some(message)) = (&field, message) {
                field.publish(&message);
            }
        }
    })
    .await;
    Ok(())
}

async fn poses(shared: &Shared) -> Result<(), Error> {
    let publisher = publisher!(shared, Topic::Pose);
    let mut topics = TopicSet::default();
    topics.set(Topic::Pose, shared.has(Topic::Pose));
    topics.set(
        Topic::Tf,
        shared.config.publish_map_to_odom && shared.has(Topic::Tf),
    );
    let take = |found: Result<(MapPose, Option<Quality>), _>| {
        let Ok((found, quality)) = found else {
            return;
        };
        let stamp_ns = found.timestamp_ms.map_or_else(unix_ns, ns_of_ms);
        let frames = &shared.config.frames;
        let message = convert::pose(&found, quality.as_ref(), frames, stamp_ns);
        if let (Some(publisher), Some(message)) = (&publisher, message) {
            publisher.publish(&message);
        }
        if shared.config.publish_map_to_odom {
            let age = Duration::from_nanos(unix_ns().saturating_sub(stamp_ns));
            let now = Instant::now();
            let then = now.checked_sub(age).unwrap_or(now);
            shared.found.send_replace(Some((then, found)));
        }
    };
    while_listened(shared, topics, async || {
        let device = shared.client.device(shared.devices().location);
        let location = LocationService::new(device).with_deadline(MEASUREMENT_DEADLINE);
        watch_poses(location, POSE_PERIOD, &take).await;
    })
    .await;
    Ok(())
}

async fn map(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Map).await?;
    let devices = shared.devices().maps();
    let device = devices.location;
    maps::watch(&shared.client, devices, |cells| {
        let message = cells.map(|cells| convert::map(&cells, &shared.config.frames, unix_ns()));
        match message {
            Ok(Some(message)) => publisher.publish(&message),
            Ok(None) => tracing::warn!(%device, "no map in ROS 2: it is too large"),
            Err(problem) => tracing::warn!(%device, "no map in ROS 2: {problem}"),
        }
        true
    })
    .await;
    Ok(())
}

/// The frames that are fixed on the robot.
async fn body(shared: &Shared) -> Result<(), Error> {
    let fixed = publisher!(shared, Topic::TfStatic);
    let frames = &shared.config.frames;
    // The mediator has told its drivers.
    let _ = shared.drivers.clone().wait_for(Option::is_some).await;
    let shape = mount::shape(&shared.client).await;
    let laser = shared.config.laser;
    let laser = laser.unwrap_or_else(|| laser_of(shape.as_ref()));
    if let Some(fixed) = &fixed {
        let stamp_ns = unix_ns();
        let camera = shape.as_ref().and_then(optical_frame);
        // All of them in one message: it is the only one that late subscribers get.
        let mut transforms = vec![
            convert::mount(&frames.laser, laser, frames, stamp_ns),
            convert::mount(&frames.imu, Mounting::default(), frames, stamp_ns),
        ];
        transforms.extend(camera.map(|frame| mount_of_camera(&frame, frames, stamp_ns)));
        fixed.publish(&TfMessage { transforms });
    }
    std::future::pending().await
}

/// The position of the laser, as the robot device says.
fn laser_of(shape: Option<&Shape>) -> Mounting {
    shape.and_then(mount::laser).unwrap_or_else(|| {
        let hint = "run `amber driver robot`, or set laser_offset_mm in [ros]";
        tracing::warn!("the position of the laser is unknown: assuming the centre; {hint}");
        Mounting::default()
    })
}

async fn health(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Diagnostics).await?;
    while_listened(shared, Source::Health.topics(), async || {
        let mut ticks = interval(DIAGNOSTICS_PERIOD);
        loop {
            ticks.tick().await;
            let drivers = shared.drivers.borrow().clone();
            let devices = drivers.map(|drivers| {
                let mut devices = of_drivers(&drivers);
                devices.retain(|device, _| shared.robot.shows(*device));
                devices
            });
            let name = shared.robot.name.as_str();
            publisher.publish(&diagnostics::array(
                name,
                devices.as_ref(),
                &shared.clocks.all(),
                shared.goals.last().as_deref(),
                unix_ns(),
            ));
        }
    })
    .await;
    Ok(())
}

/// The clock of the robot at this time.
fn ns_of(at: Instant) -> u64 {
    let age = at.elapsed().as_nanos();
    unix_ns().saturating_sub(u64::try_from(age).unwrap_or_default())
}

fn ns_of_ms(since_1970_ms: i64) -> u64 {
    u64::try_from(since_1970_ms).unwrap_or_default() * 1_000_000
}
