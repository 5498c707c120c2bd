//! Asks the devices for what is drawn. IO.

use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use amber_client::values::Target;
use amber_client::{Client, DriveToPoint, Error, Hokuyo, LocationService, MapPose, Scan};
use amber_map::MapFile;
use amber_proto::location::Particle;
use amber_terminal::Failure;

use super::Options;
use super::scene::{Drive, Ground, Located, Part};

/// A driver without these requests does not answer them: short, since they are repeated.
const DEADLINE: Duration = Duration::from_millis(700);

/// The devices of the drawing.
pub(super) struct Devices {
    location: LocationService,
    laser: Hokuyo,
    drive: DriveToPoint,
}

impl Devices {
    pub(super) fn new(client: &Client, options: &Options) -> Self {
        let location = client.location(options.location.id.0);
        let drive = client.drive_to_point(options.drive.id.0);
        Self {
            location: location.with_deadline(DEADLINE),
            laser: crate::scan::scanner(client, options.laser.laser),
            drive: drive.with_deadline(DEADLINE),
        }
    }

    /// The map of the location driver.
    pub(super) async fn map(&self) -> Part<Rc<Ground>> {
        let map = self.location.map().await;
        Ok(Rc::new(Ground::of_message(&map.map_err(in_words)?)?))
    }

    pub(super) async fn pose(&self) -> Part<MapPose> {
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
    pub(super) async fn located(&self) -> Part<Located> {
        let (pose, quality) = tokio::join!(self.pose(), self.location.quality());
        Ok(Located {
            pose: pose?,
            quality: quality.ok(),
        })
    }

    pub(super) async fn scan(&self) -> Part<Scan> {
        self.laser.scan().await.map_err(in_words)
    }

    pub(super) async fn particles(&self) -> Part<Vec<Particle>> {
        self.location.particles().await.map_err(in_words)
    }

    pub(super) async fn drive(&self) -> Part<Drive> {
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

/// The map in a file: .roson, or YAML with the image that it names.
pub(super) fn file(path: &Path) -> Result<Rc<Ground>, Failure> {
    let map = MapFile::read(path, |path| fs::read(path));
    let map =
        map.map_err(|error| Failure::wrong(error.to_string()).hint(error.hint().to_owned()))?;
    Ok(Rc::new(match map {
        MapFile::Roson { map, .. } => Ground::Walls(map),
        MapFile::Grid(grid) => Ground::Grid(grid),
    }))
}

#[cfg(test)]
mod tests {
    use amber_map::Map;

    use super::*;

    #[test]
    fn a_file_that_is_no_map_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("flat.roson"), Map::flat().to_roson()).unwrap();
        assert!(matches!(
            &*file(&path("flat.roson")).unwrap(),
            Ground::Walls(_)
        ));
        fs::write(path("picture.png"), b"\x89PNG\xff").unwrap();
        fs::write(path("broken.roson"), "{").unwrap();
        let yaml = "image: lab.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\n\
                    occupied_thresh: 0.65\nfree_thresh: 0.196\n";
        fs::write(path("lab.yaml"), yaml).unwrap();
        for (name, part) in [
            ("none.roson", "cannot read"),
            ("picture.png", "not text"),
            ("broken.roson", "not a .roson map"),
            ("lab.yaml", "lab.pgm"),
        ] {
            let why = format!("{:?}", file(&path(name)).unwrap_err());
            assert!(why.contains(part), "{name}: {why}");
        }
        fs::write(path("lab.pgm"), b"P5 2 1 255 \x00\xfe").unwrap();
        assert!(matches!(
            &*file(&path("lab.yaml")).unwrap(),
            Ground::Grid(_)
        ));
    }
}
