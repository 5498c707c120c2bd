//! The topics of the camera: pictures, and the optics for them. PURE.

use std::time::Duration;

use amber_proto::camera::{CameraInfo, Format, Picture};
use amber_robot::pictures::PictureWish;
use amber_values::CameraOptics;

use super::Server;
use crate::rosbridge::messages;
use crate::rosbridge::topics::Output as Published;
use crate::shared::clock::Now;

impl Server {
    /// The pictures that serve all clients.
    pub(super) fn picture_wish(&self) -> PictureWish {
        let sessions = self.clients.values().map(|client| &client.session);
        let period = sessions
            .filter_map(|it| it.period(Published::Picture))
            .min();
        let period_ms = period.unwrap_or_default().as_millis();
        PictureWish {
            period_ms: u32::try_from(period_ms).unwrap_or(u32::MAX).max(1),
            max_width: Some(self.config.picture_width_px),
        }
    }

    /// Publishes a picture, and the optics for it with the same time, by which programs match them.
    pub(super) fn take_picture(&mut self, now: Now, picture: &Picture) {
        if picture.format() != Format::Jpeg {
            return;
        }
        let captured_us = u64::try_from(picture.captured()).ok();
        let captured = captured_us.filter(|us| *us > 0);
        let time = captured.map_or(now.unix, Duration::from_micros);
        self.publish(now, Published::Picture, || messages::picture(picture, time));
        self.publish_optics(now, (picture.width(), picture.height()), time);
    }

    /// Publishes the optics, unless each picture has some of its own.
    pub(super) fn take_camera_info(&mut self, now: Now, info: CameraInfo) {
        let size = self.size_of_pictures(&info);
        self.camera = Some(info);
        if !self.wants(Published::Picture)
            && let Some(size) = size
        {
            self.publish_optics(now, size, now.unix);
        }
    }

    /// Publishes the optics for pictures of a size, once it is known whether the camera is calibrated.
    fn publish_optics(&mut self, now: Now, (width, height): (u32, u32), time: Duration) {
        let Some(camera) = &self.camera else {
            return;
        };
        let calibration = camera.calibration.as_ref();
        let optics = calibration.and_then(|it| CameraOptics::new(it, width, height));
        let optics = optics.unwrap_or_else(|| CameraOptics::uncalibrated(width, height));
        self.publish(now, Published::CameraInfo, || {
            messages::camera_info(&optics, time)
        });
    }

    /// The size of the pictures that clients would get. `None` if neither a picture nor a calibration
    /// tells it.
    fn size_of_pictures(&self, info: &CameraInfo) -> Option<(u32, u32)> {
        let calibrated = info.calibration.as_ref();
        let calibrated = calibrated.map(|it| (it.width(), it.height()));
        let (width, height) = info.width.zip(info.height).or(calibrated)?;
        let factor = width.div_ceil(self.config.picture_width_px).max(1);
        Some((width / factor, height / factor))
    }
}
