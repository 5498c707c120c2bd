//! What is seen in a picture, as a message. PURE.

use amber_map::MapPose;
use amber_navigation::markers::{Fix, Found, MarkerPose, Mount, Picture, Places, find, poses};
use amber_proto::camera::{self, CameraInfo, Format};
use amber_proto::markers::{Corner, Quaternion, RobotPose, Sighting, Sightings};
use amber_proto::robot::Shape;

use super::Settings;
use super::optics::{mount, optics};

/// Finds markers in pictures, and remembers which ones have moved.
#[derive(Clone, Debug)]
pub(crate) struct Eye {
    settings: Settings,
    places: Places,
    /// Where the camera is on the robot, or why that is unknown.
    mount: Result<Mount, String>,
}

impl Eye {
    pub(crate) fn new(settings: Settings, places: Places) -> Self {
        let robot = settings.robot;
        Self {
            settings,
            places,
            mount: Err(format!("{robot} has not said where the camera is")),
        }
    }

    /// The robot device has said where the camera is.
    pub(crate) fn set_shape(&mut self, shape: &Shape) {
        self.mount = mount(self.settings.robot, shape);
    }

    /// The markers in a picture.
    ///
    /// # Errors
    /// The picture cannot be used: the reason.
    pub(crate) fn look(
        &mut self,
        info: &CameraInfo,
        picture: &camera::Picture,
    ) -> Result<Sightings, String> {
        let device = self.settings.camera;
        let size = (picture.width(), picture.height());
        let pixels = Picture::new(size.0 as usize, size.1 as usize, picture.data());
        let is_grey = picture.format.is_some() && picture.format() == Format::Gray8;
        let Some(pixels) = pixels.filter(|_| is_grey) else {
            return Err(format!(
                "{device} sends no grey pictures: its driver is older than this one"
            ));
        };
        let optics = optics(device, info, self.settings.view_rad, size)?;
        let found = find(pixels);
        let seen: Vec<_> = found.iter().map(|it| (it.id, it.corners)).collect();
        let (robot, no_pose) = match &self.mount {
            Ok(mount) => match self.places.locate(&optics, mount, &seen) {
                Ok(fix) => (Some(robot_pose(&fix)), None),
                Err(why) => (None, Some(why.to_string())),
            },
            Err(why) => (None, Some(why.clone())),
        };
        let sighting = |found: &Found| {
            let known = self.places.known(found.id);
            let side_m = known.map(|it| it.side_m).or(self.settings.side_m);
            let poses = side_m.and_then(|side_m| poses(&optics, &found.corners, side_m));
            let is_ambiguous = poses.map(|it| it.is_ambiguous());
            let pose = poses.map(|it| it.best);
            sighting(found, pose, is_ambiguous, known.is_some())
        };
        Ok(Sightings {
            captured: Some(picture.captured()),
            sequence: Some(picture.sequence()),
            width: Some(size.0),
            height: Some(size.1),
            found: found.iter().map(sighting).collect(),
            robot,
            no_pose,
            moved: self.places.moved().collect(),
        })
    }
}

fn robot_pose(fix: &Fix) -> RobotPose {
    let MapPose {
        x_m,
        y_m,
        heading_rad,
        ..
    } = fix.pose.into();
    RobotPose {
        x: Some(x_m),
        y: Some(y_m),
        heading: Some(heading_rad),
        position_sigma: Some(fix.sigma_m),
        heading_sigma: Some(fix.sigma_rad),
        used: fix.used.clone(),
    }
}

fn sighting(
    found: &Found,
    pose: Option<MarkerPose>,
    is_ambiguous: Option<bool>,
    is_known: bool,
) -> Sighting {
    let at = |axis: usize| pose.map(|it| it.at[axis]);
    let distance = |it: MarkerPose| it.at.iter().map(|part| part * part).sum::<f64>().sqrt();
    Sighting {
        id: Some(found.id),
        corners: found
            .corners
            .map(|[x, y]| Corner {
                x: Some(x),
                y: Some(y),
            })
            .to_vec(),
        x: at(0),
        y: at(1),
        z: at(2),
        rotation: pose.map(|it| {
            let [x, y, z, w] = it.rotation.quaternion().map(Some);
            Quaternion { x, y, z, w }
        }),
        distance: pose.map(distance),
        error: pose.map(|it| it.error_px),
        ambiguous: is_ambiguous,
        known: Some(is_known),
    }
}
