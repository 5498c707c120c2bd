//! What the robot feels, for ROS 2. IO.

use amber_client::proxy::Bumper;
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::ros::bumper::hazards;
use crate::ros::topics::Topic;

/// Publishes what the device publishes.
pub(super) async fn contacts(shared: &Shared) -> Result<(), Error> {
    let publisher = shared.node.publisher(Topic::HazardDetection).await?;
    while_listened(shared, Source::Bumper.topics(), async || {
        let device = shared.client.device(shared.devices().bumper);
        let Ok(mut contacts) = Bumper::new(device).contact_updates().await else {
            return;
        };
        while let Some(update) = contacts.next().await {
            let contacts = update.message;
            let measured = contacts.time.map(|us| us.saturating_mul(1_000));
            let stamp_ns = measured.unwrap_or_else(unix_ns);
            publisher.publish(&hazards(&contacts, &shared.config.frames, stamp_ns));
        }
    })
    .await;
    Ok(())
}
