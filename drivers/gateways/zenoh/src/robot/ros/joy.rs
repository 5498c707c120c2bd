//! The gamepad at the robot, for ROS 2. IO.

use amber_client::proxy::Gamepad;
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::ros::joy::joy;
use crate::ros::topics::Topic;

/// Publishes each state that the device publishes.
pub(super) async fn states(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Joy).await?;
    while_listened(shared, Source::Gamepad.topics(), async || {
        let device = shared.client.device(shared.devices().gamepad);
        let Ok(mut states) = Gamepad::new(device).state_updates().await else {
            return;
        };
        while let Some(update) = states.next().await {
            publisher.publish(&joy(&update.message, unix_ns()));
        }
    })
    .await;
    Ok(())
}
