//! The description of the robot and its path, for ROS 2. IO.

use amber_client::proxy::{DriveToPoint, Robot};
use amber_ros2::messages::Text;
use tokio::time::sleep;
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::limits::RETRY;
use crate::ros::convert;
use crate::ros::topics::Topic;

/// The shape of the robot, as the robot device describes it.
pub(super) async fn description(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::RobotDescription).await?;
    let device = Source::Description.device(shared.devices());
    let robot = Robot::new(shared.client.device(device));
    let mut known = String::new();
    loop {
        match robot.urdf().await {
            Ok(text) if text != known => {
                known = text;
                publisher.publish(&Text {
                    data: known.clone(),
                });
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%device, "no robot_description: {error}"),
        }
        let mut updates = match robot.shape_updates().await {
            Ok(updates) => updates,
            Err(_) => {
                sleep(RETRY).await;
                continue;
            }
        };
        // A new shape, or the end of the device.
        let _ = updates.next().await;
        sleep(RETRY).await;
    }
}

/// The way to the target.
pub(super) async fn plan(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Plan).await?;
    while_listened(shared, Source::Plan.topics(), async || {
        let device = shared.client.device(shared.devices().targets);
        let Ok(mut updates) = DriveToPoint::new(device).progress_updates().await else {
            return;
        };
        while let Some(update) = updates.next().await {
            let Some(path) = &update.message.progress.path else {
                continue;
            };
            let points = path.xs.iter().copied().zip(path.ys.iter().copied());
            let message = convert::plan(points, &shared.config.frames, unix_ns());
            publisher.publish(&message);
        }
    })
    .await;
    Ok(())
}
