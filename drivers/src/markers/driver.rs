//! The driver between subscribers and the camera, of which it is a client. IO.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amber_driver::client::proxy::{Camera, Robot};
use amber_driver::devices::markers::{MarkersDriver, MarkersLink};
use amber_driver::{Link, Reply};
use amber_proto::camera::{CameraInfo, Format, Picture, PictureRequest, PictureStream};
use amber_proto::markers::Sightings;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::Settings;
use super::eye::Eye;
use super::optics::optics;
use crate::followed::follow_shape;
use crate::stream::complain;

/// A camera that sends nothing for this time is in trouble: it may need three seconds to start.
const SILENCE: Duration = Duration::from_secs(5);
/// The time until the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// The driver.
#[derive(Debug)]
pub(crate) struct MarkersOf {
    settings: Settings,
    eye: Arc<Mutex<Eye>>,
    /// `Some` after the start.
    camera: Option<Camera>,
    tasks: JoinSet<()>,
}

impl MarkersOf {
    pub(crate) fn new(settings: Settings, eye: Eye) -> Self {
        Self {
            settings,
            eye: Arc::new(Mutex::new(eye)),
            camera: None,
            tasks: JoinSet::new(),
        }
    }
}

impl MarkersDriver for MarkersOf {
    async fn start(&mut self, link: MarkersLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let devices = link.devices();
        let robot = Robot::new(devices.device(self.settings.robot));
        let camera = Camera::new(devices.device(self.settings.camera));
        self.camera = Some(camera.clone());
        let eye = self.eye.clone();
        self.tasks.spawn(async move {
            // Where the camera is on the robot.
            follow_shape(&robot, |shape| {
                if let Ok(shape) = shape {
                    lock(&eye).set_shape(&shape);
                }
            })
            .await;
        });
        let watch = Watch {
            settings: self.settings.clone(),
            eye: self.eye.clone(),
            camera,
            told: None,
        };
        self.tasks.spawn(watch.run(link));
        Ok(())
    }

    async fn sightings(&mut self, reply: Reply<Sightings>) {
        // Finished tasks leave their results here.
        while self.tasks.try_join_next().is_some() {}
        let Some(camera) = self.camera.clone().filter(|_| reply.is_possible()) else {
            return;
        };
        let (settings, eye) = (self.settings.clone(), self.eye.clone());
        self.tasks.spawn(async move {
            let sightings = async {
                let info = info(&camera, &settings).await?;
                let request = PictureRequest {
                    max_width: Some(settings.max_width),
                    format: Some(Format::Gray8.into()),
                    ..PictureRequest::default()
                };
                let picture = camera.picture(request).await;
                look(eye, info, picture.map_err(|error| error.to_string())?).await
            };
            match sightings.await {
                Ok(sightings) => reply.send(sightings),
                Err(why) => reply.refuse(&why),
            }
        });
    }

    async fn shutdown(&mut self) {
        self.tasks.shutdown().await;
    }
}

/// Looks at pictures while somebody has subscribed.
struct Watch {
    settings: Settings,
    eye: Arc<Mutex<Eye>>,
    camera: Camera,
    /// The trouble that was reported last.
    told: Option<String>,
}

impl Watch {
    async fn run(mut self, link: MarkersLink) {
        // What is wrong with the camera is told before somebody subscribes. It stays off for that.
        loop {
            let checked = info(&self.camera, &self.settings).await;
            let is_well = checked.is_ok();
            self.tell(&link, checked.map(|_| ()));
            if is_well || link.subscriptions() > 0 {
                break;
            }
            sleep(RETRY).await;
        }
        let mut subscriptions = Link::clone(&link);
        while subscriptions.listened_to().await {
            if let Err(why) = self.publish(&link).await {
                self.tell(&link, Err(why));
                sleep(RETRY).await;
            }
        }
    }

    /// Publishes what is seen until nobody is subscribed.
    async fn publish(&mut self, link: &MarkersLink) -> Result<(), String> {
        let info = info(&self.camera, &self.settings).await?;
        let stream = PictureStream {
            max_width: Some(self.settings.max_width),
            format: Some(Format::Gray8.into()),
            ..PictureStream::default()
        };
        let pictures = self.camera.pictures(self.settings.period, stream).await;
        let mut pictures = pictures.map_err(|error| error.to_string())?;
        while link.subscriptions() > 0 {
            let picture = match timeout(SILENCE, pictures.next()).await {
                Ok(Some(update)) => update.message,
                Ok(None) => return Err(format!("{} is gone", self.settings.camera)),
                Err(_) => return Err(self.why_silent().await),
            };
            let sightings = look(self.eye.clone(), info.clone(), picture).await?;
            complain(link.sightings_updates(sightings));
            self.tell(link, Ok(()));
        }
        Ok(())
    }

    async fn why_silent(&self) -> String {
        let device = self.settings.camera;
        match self.camera.picture(PictureRequest::default()).await {
            Ok(_) => format!("{device} sends single pictures, but no stream"),
            Err(error) => format!("no pictures from {device}: {error}"),
        }
    }

    /// Reports how it goes, if that has changed.
    fn tell(&mut self, link: &MarkersLink, outcome: Result<(), String>) {
        let trouble = outcome.err();
        if trouble == self.told {
            return;
        }
        match &trouble {
            Some(why) => {
                tracing::warn!("{why}");
                link.trouble(why);
            }
            None => {
                tracing::info!("{} can be used again", self.settings.camera);
                link.recovered();
            }
        }
        self.told = trouble;
    }
}

/// What the camera says of itself.
///
/// # Errors
/// It says nothing, or its pictures are of no use.
async fn info(camera: &Camera, settings: &Settings) -> Result<CameraInfo, String> {
    let device = settings.camera;
    let info = camera.info().await;
    let info = info.map_err(|error| format!("{device} does not answer: {error}"))?;
    // The size of the pictures does not matter here.
    let size = (info.calibration.as_ref()).map_or((640, 480), |it| (it.width(), it.height()));
    optics(device, &info, settings.view_rad, size)?;
    Ok(info)
}

/// Looks at a picture in a separate thread: it takes some milliseconds.
async fn look(
    eye: Arc<Mutex<Eye>>,
    info: CameraInfo,
    picture: Picture,
) -> Result<Sightings, String> {
    let looking = spawn_blocking(move || lock(&eye).look(&info, &picture));
    let seen = looking.await;
    seen.unwrap_or_else(|error| Err(error.to_string()))
}

fn lock(eye: &Mutex<Eye>) -> MutexGuard<'_, Eye> {
    // After a panic, the state is still whole: it is changed in single steps.
    eye.lock().unwrap_or_else(PoisonError::into_inner)
}
