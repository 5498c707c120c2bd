//! The camera, for ROS 2. IO.

use std::sync::{Mutex, PoisonError};

use amber_client::proxy::Camera;
use amber_proto::camera::{CameraInfo, PictureStream};
use zenoh::Error;

use super::super::publisher::unix_ns;
use super::Shared;
use super::sources::{Source, while_listened};
use crate::ros::camera::{captured_ns, image, info, size};
use crate::ros::topics::{Topic, TopicSet};

/// Publishes the pictures and the optics. The camera is on only while somebody subscribes to pictures.
pub(super) async fn pictures(shared: &Shared) -> Result<(), Error> {
    let images = match shared.has(Topic::Image) {
        true => Some(shared.node.publisher(Topic::Image).await?),
        false => None,
    };
    let optics = match shared.has(Topic::CameraInfo) {
        true => Some(shared.node.publisher(Topic::CameraInfo).await?),
        false => None,
    };
    let (config, frames) = (&shared.config, &shared.config.frames);
    let camera = || Camera::new(shared.client.device(shared.devices().camera));
    let only_images: TopicSet = [Topic::Image].into_iter().collect();
    let known: Mutex<Option<CameraInfo>> = Mutex::new(None);

    let seeing = while_listened(shared, only_images, async || {
        let request = PictureStream {
            max_width: config.picture_width_px,
            ..PictureStream::default()
        };
        let Ok(mut pictures) = camera().pictures(config.camera_period, request).await else {
            return;
        };
        while let Some(update) = pictures.next().await {
            let picture = update.message;
            let stamp_ns = captured_ns(&picture).unwrap_or_else(unix_ns);
            let Some(image) = image(&picture, frames, stamp_ns) else {
                continue;
            };
            if let Some(images) = &images {
                images.publish(&image);
            }
            // With the same time, by which nodes match them.
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(optics), Some(known)) = (&optics, &*known) {
                let size = (picture.width(), picture.height());
                optics.publish(&info(known, size, frames, stamp_ns));
            }
        }
    });
    let knowing = while_listened(shared, Source::Camera.topics(), async || {
        let Ok(mut infos) = camera().info_updates().await else {
            return;
        };
        while let Some(update) = infos.next().await {
            let message = update.message;
            // Otherwise each picture has one of its own.
            let is_seeing = shared.interest.borrow().intersects(only_images);
            if let (false, Some(optics), Some(size)) = (is_seeing, &optics, size(&message)) {
                optics.publish(&info(&message, size, frames, unix_ns()));
            }
            *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        }
    });
    tokio::join!(seeing, knowing);
    Ok(())
}
