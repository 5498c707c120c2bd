//! Requests the data that all pages show, once for all of them. IO.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use amber_client::sources::watch_scans;
use amber_client::{Client, DriveToPoint, Hokuyo, LocationService, MappingService};
use amber_proto::mapping::Progress;
use amber_proto::mediator::{Event, event::Kind};
use amber_proto::{Device, DeviceType};
use amber_scene::{Devices, Growing, mount};
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use crate::frames;
use crate::input::{Input, Measured};
use crate::limits::{DRIVERS_PERIOD, RETRY};
use crate::parts::Parts;

/// Maps change rarely: only when one is uploaded.
const MAP: Duration = Duration::from_secs(5);
/// The shape of the robot changes only when its file does.
const SHAPE: Duration = Duration::from_secs(5);
/// Poses and scans come ten times per second.
const POSE: Duration = Duration::from_millis(100);
const SLOW: Duration = Duration::from_millis(400);
/// The driver that makes maps tells its state at least once a second.
const SILENCE: Duration = Duration::from_secs(4);
/// Older answers are ignored.
const DEADLINE: Duration = Duration::from_millis(700);

/// A connection to the mediator; retries until it is established.
pub(crate) async fn connected(mediator: &str, inputs: &mpsc::Sender<Input>) -> Client {
    loop {
        match Client::connect(mediator).await {
            Ok(client) => return client,
            Err(error) => {
                let _ = inputs.send(Input::Drivers(Err(error.to_string()))).await;
            }
        }
        sleep(RETRY).await;
    }
}

/// The drivers and the events of the mediator.
pub(crate) async fn watch_mediator(client: Client, inputs: mpsc::Sender<Input>) {
    let mediator = client.mediator();
    let drivers = repeat(DRIVERS_PERIOD, async || {
        let drivers = mediator.drivers().await;
        let drivers = drivers.map_err(|error| error.to_string());
        let _ = inputs.send(Input::Drivers(drivers)).await;
    });
    let events = async {
        let mut events = match mediator.events().await {
            Ok(events) => events,
            Err(_) => return pending().await,
        };
        while let Some(update) = events.next().await {
            if is_farewell(&update.message) {
                continue;
            }
            let event = frames::text(&frames::event(&update.message));
            if inputs.send(Input::Event(event)).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(drivers, events);
}

/// The measurements of these devices. Devices that the robot lacks are skipped. After new targets, the
/// path is asked for at once: a short drive may end before the next time.
pub(crate) async fn watch_robot(
    client: Client,
    parts: Parts,
    inputs: mpsc::Sender<Input>,
    new_targets: Arc<Notify>,
) {
    let send = async |measured| {
        let _ = inputs.send(Input::Measured(measured)).await;
    };
    // Measurements are dropped instead of waiting: the next one is newer.
    let offer = |measured| {
        if inputs.try_send(Input::Measured(measured)).is_err() {
            tracing::debug!("dropped a measurement: the dashboard is busy");
        }
    };
    let device = |part: Option<Device>, usual| client.device(part.unwrap_or(Device::new(usual, 0)));
    let scanner = Hokuyo::new(device(parts.scanner, DeviceType::HOKUYO));
    let location = LocationService::new(device(parts.location, DeviceType::LOCATION));
    let targets = DriveToPoint::new(device(parts.targets, DeviceType::DRIVE_TO_POINT));
    let devices = Devices::new(location, scanner.clone(), targets);

    let on_map = async {
        if parts.location.is_none() {
            return;
        }
        let shapes = repeat(SHAPE, async || {
            let shape = mount::shape(&client).await;
            send(Measured::Shape(shape.map(Box::new))).await;
        });
        let map = repeat(MAP, async || send(Measured::Map(devices.map().await)).await);
        let poses = repeat(POSE, async || {
            send(Measured::Pose(devices.pose().await)).await
        });
        let located = repeat(SLOW, async || {
            send(Measured::Located(devices.located().await)).await;
        });
        let particles = repeat(SLOW, async || {
            send(Measured::Particles(devices.particles().await)).await;
        });
        tokio::join!(shapes, map, poses, located, particles);
    };
    let scans = async {
        if parts.scanner.is_some() {
            let take = |scan: Result<_, amber_client::Error>| {
                offer(Measured::Scan(scan.map_err(|error| error.to_string())));
            };
            watch_scans(scanner.with_deadline(DEADLINE), take).await;
        }
    };
    let drive = async {
        if parts.targets.is_none() {
            return;
        }
        let mut ticks = ticks(SLOW);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = new_targets.notified() => {}
            }
            send(Measured::Drive(devices.drive().await)).await;
        }
    };
    let mapping = async {
        let Some(device) = parts.mapping else {
            return;
        };
        let mapping = MappingService::new(client.device(device)).with_deadline(DEADLINE);
        let mut growing = Growing::default();
        loop {
            let Ok(mut updates) = mapping.progress_updates().await else {
                sleep(RETRY).await;
                continue;
            };
            loop {
                let progress = match timeout(SILENCE, updates.next()).await {
                    Ok(Some(update)) => update.message,
                    Ok(None) => break,
                    // The driver no longer runs, so no map grows.
                    Err(_) => Progress::default(),
                };
                let mut drawn = None;
                if growing.is_outdated(&progress) {
                    // What is missing comes with the next update.
                    let _ = growing.follow(&mapping).await;
                    // A large map takes long, and leases must be kept meanwhile.
                    let drawing = spawn_blocking(move || {
                        let ground = growing.ground();
                        let shown = ground.map(|ground| frames::text(&frames::map(&Ok(ground))));
                        (growing, shown)
                    });
                    match drawing.await {
                        Ok(done) => (growing, drawn) = done,
                        Err(_) => return,
                    }
                }
                send(Measured::Mapping(Box::new(progress), drawn)).await;
            }
        }
    };
    tokio::join!(on_map, scans, drive, mapping);
}

/// No robot device says where the laser is.
pub(crate) fn unknown_mount() -> String {
    let hint = mount::HINT;
    format!("the position of the laser on the robot is unknown: {hint}")
}

/// Whether a client has left in order. The dashboard's own clients do that all the time, so these
/// events would hide the others.
fn is_farewell(event: &Event) -> bool {
    event.kind() == Kind::ClientGone && event.text().ends_with(" left")
}

async fn repeat(period: Duration, action: impl AsyncFn()) {
    let mut ticks = ticks(period);
    loop {
        ticks.tick().await;
        action().await;
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
