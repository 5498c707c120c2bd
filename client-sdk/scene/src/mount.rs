//! The position of the laser on the robot. IO.

use std::time::Duration;

use amber_client::Client;
use amber_map::{Mounting, Pose};
use amber_proto::robot::Shape;

/// The robot device answers from memory, so without an answer in this time there is none.
const DEADLINE: Duration = Duration::from_millis(500);
/// What to do if the position of the laser is unknown.
pub const HINT: &str = "run `amber driver robot` with laser_offset_mm in its file (docs/robot.md)";
/// A laser farther away is not on the robot.
const MAX_MM: f64 = 2_000.0;

/// The position of the laser in the form of command line options. Clockwise is positive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mount {
    /// The distance ahead of the centre between the wheels.
    pub offset_mm: f64,
    /// The distance to the left of the centre.
    pub left_mm: f64,
    /// The direction of its front, to the right of that of the robot.
    pub angle_deg: f64,
}

impl Mount {
    /// The same as a pose on the robot.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn pose(self) -> Result<Pose, String> {
        let checked = |name, value: f64, max: f64| match value.abs() <= max {
            true => Ok(value),
            false => Err(format!(
                "--{name} {value}: it must be within -{max} to {max}"
            )),
        };
        let ahead_mm = checked("laser-offset-mm", self.offset_mm, MAX_MM)?;
        let left_mm = checked("laser-left-mm", self.left_mm, MAX_MM)?;
        let angle_deg = checked("laser-angle-deg", self.angle_deg, 180.0)?;
        Ok(Pose::new(
            ahead_mm / 1000.0,
            left_mm / 1000.0,
            -angle_deg.to_radians(),
        ))
    }
}

/// The shape of the robot, from the robot device. `None` if there is no such device.
pub async fn shape(client: &Client) -> Option<Shape> {
    let robot = client.robot(0).with_deadline(DEADLINE);
    robot.shape().await.ok()
}

/// The position of the laser, from the robot device. `None` if that does not know it. A wrong
/// position does more harm than none.
pub async fn find(client: &Client) -> Option<Mounting> {
    laser(&shape(client).await?)
}

/// The position of the laser on a robot of this shape.
#[must_use]
pub fn laser(shape: &Shape) -> Option<Mounting> {
    let place = shape.laser.as_ref()?;
    let is_number = [place.x(), place.y(), place.yaw()]
        .iter()
        .all(|number| number.is_finite());
    is_number.then(|| Mounting {
        pose: Pose::new(place.x(), place.y(), place.yaw()),
        is_upside_down: place.upside_down(),
    })
}

#[cfg(test)]
mod tests {
    use amber_proto::robot::Place;

    use super::*;

    #[test]
    fn the_position_is_known_if_the_robot_device_says_it() {
        let shape = |laser| Shape {
            laser,
            ..Shape::default()
        };
        assert_eq!(laser(&shape(None)), None);
        let place = Place {
            x: Some(0.1),
            yaw: Some(-1.5),
            ..Place::default()
        };
        let known = laser(&shape(Some(place)));
        assert_eq!(known, Some(Pose::new(0.1, 0.0, -1.5).into()));
        let upside_down = Place {
            upside_down: Some(true),
            ..place
        };
        assert!(laser(&shape(Some(upside_down))).unwrap().is_upside_down);
        let broken = Place {
            x: Some(f64::NAN),
            ..place
        };
        assert_eq!(laser(&shape(Some(broken))), None);
    }

    #[test]
    fn options_have_millimetres_and_degrees_to_the_right() {
        let mount = Mount {
            offset_mm: 0.0,
            left_mm: -50.0,
            angle_deg: 90.0,
        };
        let expected = Pose::new(0.0, -0.05, -std::f64::consts::FRAC_PI_2);
        assert_eq!(mount.pose(), Ok(expected));
        let far = Mount {
            offset_mm: 9e9,
            ..mount
        };
        assert!(far.pose().unwrap_err().contains("laser-offset-mm"));
    }
}
