//! Requests the parts of the drawing from the devices. IO.

use std::sync::Arc;
use std::time::Duration;

use amber_client::values::Target;
use amber_client::{DriveToPoint, Error, Hokuyo, LocationService, MapPose, Scan};
use amber_proto::location::Particle;

use crate::scene::{Drive, Ground, Located, Part};

/// A driver without these requests does not answer them: short, since they are repeated.
const DEADLINE: Duration = Duration::from_millis(700);

/// The devices of the drawing.
#[derive(Clone, Debug)]
pub struct Devices {
    location: LocationService,
    laser: Hokuyo,
    drive: DriveToPoint,
}

impl Devices {
    /// The parts come from these devices. The deadline of the laser stays as it is.
    #[must_use]
    pub fn new(location: LocationService, laser: Hokuyo, drive: DriveToPoint) -> Self {
        Self {
            location: location.with_deadline(DEADLINE),
            laser,
            drive: drive.with_deadline(DEADLINE),
        }
    }

    /// The map of the location driver.
    ///
    /// # Errors
    /// The driver does not answer, has no map, or its map is invalid.
    pub async fn map(&self) -> Part<Arc<Ground>> {
        let map = self.location.map().await;
        Ok(Arc::new(Ground::of_message(&map.map_err(in_words)?)?))
    }

    /// The pose.
    ///
    /// # Errors
    /// The driver does not answer, or does not know the pose.
    pub async fn pose(&self) -> Part<MapPose> {
        let pose = self.location.pose().await.map_err(in_words)?;
        match pose.is_known() {
            true => Ok(pose),
            false => Err(format!(
                "{} does not know the position yet",
                self.location.address()
            )),
        }
    }

    /// The pose, with its quality if the driver has it.
    ///
    /// # Errors
    /// Those of [`Devices::pose`].
    pub async fn located(&self) -> Part<Located> {
        let (pose, quality) = tokio::join!(self.pose(), self.location.quality());
        Ok(Located {
            pose: pose?,
            quality: quality.ok(),
        })
    }

    /// One scan.
    ///
    /// # Errors
    /// The scanner does not answer.
    pub async fn scan(&self) -> Part<Scan> {
        self.laser.scan().await.map_err(in_words)
    }

    /// The hypotheses of the location driver.
    ///
    /// # Errors
    /// The driver does not answer.
    pub async fn particles(&self) -> Part<Vec<Particle>> {
        self.location.particles().await.map_err(in_words)
    }

    /// The path and the targets of the robot.
    ///
    /// # Errors
    /// The driver does not answer.
    pub async fn drive(&self) -> Part<Drive> {
        let (progress, targets) = tokio::join!(self.drive.progress(), self.drive.next_targets());
        let targets: Vec<Target> = targets.map_err(in_words)?.targets;
        Ok(Drive::of(&progress.map_err(in_words)?, targets))
    }
}

fn in_words(error: Error) -> String {
    match error {
        // Its device is known.
        Error::Refused { message, .. } => message,
        error => error.to_string(),
    }
}
