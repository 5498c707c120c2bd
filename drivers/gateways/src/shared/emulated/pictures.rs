//! The camera of a foreign robot as a device. IO.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use amber_driver::devices::camera::{CameraDriver, CameraLink};
use amber_driver::{Origin, Periodic, Reply, StreamRequest, now};
use amber_proto::camera::{
    CameraInfo, Control, ControlValue, Format, Picture, PictureRequest, PictureStream,
};
use amber_robot::robot::Measurement;

use super::{SILENT, Screen, Started};

/// How often clients are told what is known of a camera.
const INFO_PERIOD: Duration = Duration::from_secs(1);
/// A picture is sent if it comes at most so much before its time: those of a foreign robot come when
/// they come.
const EARLY: Duration = Duration::from_millis(20);
/// A picture that is made smaller or grey would have to be decoded.
const ONLY_JPEG: &str = "the pictures of a foreign robot are JPEG files";

pub(super) struct Camera {
    screen: Screen,
    link: Option<CameraLink>,
    subscribers: Arc<Mutex<Periodic<()>>>,
}

impl Camera {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            link: None,
            subscribers: Arc::default(),
        }
    }

    fn newest(&self) -> Option<Arc<Picture>> {
        match self.screen.latest() {
            Some(Measurement::Picture(picture)) => Some(picture),
            _ => None,
        }
    }

    fn known(&self) -> CameraInfo {
        let newest = self.newest();
        CameraInfo {
            source: Some("a foreign robot".to_owned()),
            is_on: Some(newest.is_some()),
            width: newest.as_ref().and_then(|it| it.width),
            height: newest.as_ref().and_then(|it| it.height),
            ..CameraInfo::default()
        }
    }
}

impl CameraDriver for Camera {
    async fn start(&mut self, link: CameraLink) -> Started {
        self.link = Some(link.clone());
        let subscribers = self.subscribers.clone();
        self.screen.publish_with(move |measurement| {
            if let Measurement::Picture(picture) = measurement {
                let mut all = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
                for (origin, ()) in all.take_due(now() + EARLY) {
                    let _ = link.pictures(&origin, Picture::clone(picture));
                }
            }
        });
        Ok(())
    }

    async fn picture(&mut self, request: PictureRequest, reply: Reply<Picture>) {
        match self.newest() {
            _ if request.format() != Format::Jpeg => reply.refuse(ONLY_JPEG),
            Some(picture) => reply.send(Picture::clone(&picture)),
            None => reply.refuse(SILENT),
        }
    }

    async fn pictures(&mut self, origin: Origin, request: StreamRequest<PictureStream>) {
        let Some(link) = &self.link else {
            return;
        };
        let (period, request) = match request {
            StreamRequest::Start(stream) if stream.format() != Format::Jpeg => {
                let _ = link.refused(&origin, ONLY_JPEG);
                return;
            }
            StreamRequest::Start(stream) => (stream.period(), StreamRequest::Start(())),
            StreamRequest::Stop(_) => (0, StreamRequest::Stop(())),
            StreamRequest::ClientGone => (0, StreamRequest::ClientGone),
        };
        let period = Duration::from_millis(period.into());
        let mut all = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let _ = match all.handle(now(), &origin, request, |()| period) {
            true => link.accepted(&origin),
            false => link.refused(&origin, "too many clients watch this camera"),
        };
    }

    async fn info(&mut self, reply: Reply<CameraInfo>) {
        reply.send(self.known());
    }

    async fn set_control(&mut self, _control: ControlValue, reply: Reply<Control>) {
        reply.refuse("the camera is that of a foreign robot");
    }

    fn period(&self) -> Option<Duration> {
        Some(INFO_PERIOD)
    }

    async fn publish(&mut self) -> Option<CameraInfo> {
        Some(self.known())
    }
}
