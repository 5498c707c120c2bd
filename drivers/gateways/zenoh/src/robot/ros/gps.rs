//! The position on Earth, for ROS 2. IO.

use amber_client::proxy::Gps;
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::ros::gps::nav_sat_fix;
use crate::ros::topics::Topic;

/// Publishes each fix that the device publishes. The time of the satellites is that of another clock.
pub(super) async fn fixes(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::Fix).await?;
    while_listened(shared, Source::Gps.topics(), async || {
        let device = shared.client.device(shared.devices().gps);
        let Ok(mut fixes) = Gps::new(device).fix_updates().await else {
            return;
        };
        while let Some(update) = fixes.next().await {
            publisher.publish(&nav_sat_fix(
                &update.message,
                &shared.config.frames,
                unix_ns(),
            ));
        }
    })
    .await;
    Ok(())
}
