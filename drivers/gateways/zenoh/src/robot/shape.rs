//! Notices that the robot has another shape: its file was changed, or its device has appeared. IO.

use std::time::Duration;

use amber_client::Client;
use amber_map::Mounting;
use amber_proto::Device;
use amber_proto::robot::Shape;
use amber_scene::mount;
use amber_values::OpticalFrame;
use tokio::time::{Instant, sleep};

use crate::config::{Config, Controls};
use crate::limits::{RETRY, SEARCH};
use crate::ros::camera::optical_frame;

/// The time between two requests for the shape at the start.
const AGAIN: Duration = Duration::from_millis(100);

/// The shape at the start. If the mediator has a robot device that does not run yet, this waits a moment
/// for it.
pub(super) async fn first(client: &Client) -> Option<Shape> {
    let deadline = Instant::now() + SEARCH;
    loop {
        let shape = mount::shape(client).await;
        if shape.is_some() || Instant::now() >= deadline || !is_listed(client).await {
            return shape;
        }
        sleep(AGAIN).await;
    }
}

async fn is_listed(client: &Client) -> bool {
    let robot = client.robot(0).address();
    let drivers = client.mediator().drivers().await.unwrap_or_default();
    let mut devices = drivers.iter().flat_map(|driver| &driver.devices);
    devices.any(|device| Device::from(*device) == robot)
}

/// Resolves when the robot device says another shape than the known one, as far as it is used here. A
/// device that is gone says nothing.
pub(super) async fn other(config: Config, client: Client, known: Option<Shape>) {
    let known = Used::of(&config, known.as_ref());
    let robot = client.robot(0);
    loop {
        // A subscriber gets the shape at once.
        if let Ok(mut updates) = robot.shape_updates().await {
            while let Some(update) = updates.next().await {
                if Used::of(&config, Some(&update.message)) != known {
                    return;
                }
            }
        }
        sleep(RETRY).await;
    }
}

/// What the robot in the fleet needs of its shape.
#[derive(Debug, PartialEq)]
struct Used {
    controls: Controls,
    laser: Option<Mounting>,
    camera: Option<OpticalFrame>,
    scan_turn_s: Option<f64>,
}

impl Used {
    fn of(config: &Config, shape: Option<&Shape>) -> Self {
        let controls = |shape| config.clone().with_shape(shape).controls;
        Self {
            controls: shape.map_or(config.controls, controls),
            laser: shape.and_then(mount::laser),
            camera: shape.and_then(optical_frame),
            scan_turn_s: shape.and_then(|shape| shape.scan_turn),
        }
    }
}
