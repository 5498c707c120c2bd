//! The battery of the robot, for ROS 2. IO.

use amber_client::proxy::Battery;
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::ros::battery::battery;
use crate::ros::topics::Topic;

/// Publishes each state that the device publishes.
pub(super) async fn states(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::BatteryState).await?;
    while_listened(shared, Source::Battery.topics(), async || {
        let device = shared.client.device(shared.devices().battery);
        let Ok(mut states) = Battery::new(device).state_updates().await else {
            return;
        };
        while let Some(update) = states.next().await {
            let state = update.message;
            let measured_ns = state.time.map(|us| us.saturating_mul(1000));
            let stamp_ns = measured_ns.unwrap_or_else(unix_ns);
            publisher.publish(&battery(&state, &shared.config.frames, stamp_ns));
        }
    })
    .await;
    Ok(())
}
