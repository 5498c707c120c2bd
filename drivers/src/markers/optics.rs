//! The optics of the camera, from what it says of itself, and its place on the robot. PURE.

use amber_map::Pose;
use amber_navigation::markers::{Lens, Mount, Optics};
use amber_proto::Device;
use amber_proto::camera::{Calibration, CameraInfo};
use amber_proto::robot::Shape;

/// The optics for pictures of this size.
///
/// # Errors
/// They are unknown: the reason, and what to do.
pub(crate) fn optics(
    camera: Device,
    info: &CameraInfo,
    view_rad: Option<f64>,
    (width, height): (u32, u32),
) -> Result<Optics, String> {
    let calibration = match (&info.calibration, view_rad) {
        (Some(calibration), _) => calibration,
        (None, Some(view_rad)) => {
            return Ok(Optics::of_view(width as usize, height as usize, view_rad));
        }
        (None, None) => {
            return Err(format!(
                "{camera} is not calibrated: give its driver --calibration, or this one --fov-deg"
            ));
        }
    };
    let whole = (calibration.width(), calibration.height());
    let factor = whole.0.checked_div(width).unwrap_or_default();
    let fits = factor > 0 && (whole.0 / factor, whole.1 / factor) == (width, height);
    if !fits {
        return Err(format!(
            "the calibration of {camera} is for pictures of {} x {}, not of {width} x {height}",
            whole.0, whole.1
        ));
    }
    let focal_px = [calibration.fx(), calibration.fy()];
    let centre_px = [calibration.cx(), calibration.cy()];
    let is_usable = focal_px.into_iter().all(|px| px.is_finite() && px > 0.0)
        && centre_px.into_iter().all(f64::is_finite);
    if !is_usable {
        return Err(format!("the calibration of {camera} has no focal length"));
    }
    let lens = lens(calibration).ok_or_else(|| {
        let model = calibration.distortion_model();
        format!("the calibration of {camera} has a distortion of an unknown kind: '{model}'")
    })?;
    let optics = Optics {
        focal_px,
        centre_px,
        lens,
    };
    Ok(optics.smaller(f64::from(factor)))
}

fn lens(calibration: &Calibration) -> Option<Lens> {
    let numbers = &calibration.distortion[..];
    if !numbers.iter().all(|it| it.is_finite()) {
        return None;
    }
    if numbers.iter().all(|it| *it == 0.0) && calibration.distortion_model() != "equidistant" {
        return Some(Lens::Straight);
    }
    match (calibration.distortion_model(), numbers.len()) {
        ("plumb_bob", 4 | 5) | ("rational_polynomial", 8) => {
            let mut all = [0.0; 8];
            all[..numbers.len()].copy_from_slice(numbers);
            Some(Lens::Polynomial(all))
        }
        ("equidistant", 4) => Some(Lens::Equidistant(numbers.try_into().ok()?)),
        _ => None,
    }
}

/// Where the camera is on the robot.
///
/// # Errors
/// The robot device does not say it.
pub(crate) fn mount(robot: Device, shape: &Shape) -> Result<Mount, String> {
    let place = shape.camera.as_ref().ok_or_else(|| {
        format!("{robot} does not say where the camera is: set camera_offset_mm in its file")
    })?;
    Ok(Mount {
        pose: Pose::new(place.x(), place.y(), place.yaw()),
        height_m: place.z,
        pitch_rad: place.pitch(),
        upside_down: place.upside_down(),
    })
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use amber_proto::robot::Place;

    use super::*;

    const CAMERA: Device = Device::new(DeviceType::CAMERA, 0);

    fn info(model: &str, distortion: &[f64]) -> CameraInfo {
        CameraInfo {
            calibration: Some(Calibration {
                width: Some(641),
                height: Some(480),
                fx: Some(500.0),
                fy: Some(510.0),
                cx: Some(319.5),
                cy: Some(239.5),
                distortion_model: Some(model.into()),
                distortion: distortion.to_vec(),
                ..Calibration::default()
            }),
            ..CameraInfo::default()
        }
    }

    #[test]
    fn optics_follow_the_size_of_the_pictures() {
        let whole = optics(CAMERA, &info("plumb_bob", &[0.0; 5]), None, (641, 480)).unwrap();
        assert_eq!(
            (whole.focal_px, whole.lens),
            ([500.0, 510.0], Lens::Straight)
        );
        // A picture with an odd width loses a column.
        let half = optics(CAMERA, &info("plumb_bob", &[0.1; 5]), None, (320, 240)).unwrap();
        assert_eq!(
            (half.focal_px, half.centre_px),
            ([250.0, 255.0], [159.5, 119.5])
        );
        let lens = Lens::Polynomial([0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0]);
        assert_eq!(half.lens, lens);
        let wide = optics(CAMERA, &info("equidistant", &[0.0; 4]), None, (641, 480)).unwrap();
        assert_eq!(wide.lens, Lens::Equidistant([0.0; 4]));
    }

    #[test]
    fn without_a_calibration_the_view_must_be_given() {
        let bare = CameraInfo::default();
        let view_rad = Some(1.2);
        let known = optics(CAMERA, &bare, view_rad, (640, 480)).unwrap();
        assert_eq!(known, Optics::of_view(640, 480, 1.2));
        for (info, size, words) in [
            (
                &bare,
                (640, 480),
                "camera:0 is not calibrated: give its driver --calibration",
            ),
            (
                &info("plumb_bob", &[]),
                (640, 360),
                "for pictures of 641 x 480, not of 640 x 360",
            ),
            (&info("plumb_bob", &[]), (0, 0), "not of 0 x 0"),
            (
                &info("fisheye", &[0.1]),
                (641, 480),
                "an unknown kind: 'fisheye'",
            ),
            (
                &info("plumb_bob", &[f64::NAN; 5]),
                (641, 480),
                "an unknown kind",
            ),
        ] {
            let error = optics(CAMERA, info, None, size).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn the_place_is_that_of_the_robot_device() {
        let robot = Device::new(DeviceType::ROBOT, 0);
        let shape = Shape {
            camera: Some(Place {
                x: Some(0.1),
                yaw: Some(0.5),
                pitch: Some(0.2),
                ..Place::default()
            }),
            ..Shape::default()
        };
        let mount = mount(robot, &shape).unwrap();
        assert_eq!(mount.pose, Pose::new(0.1, 0.0, 0.5));
        assert_eq!((mount.height_m, mount.pitch_rad), (None, 0.2));
        let error = super::mount(robot, &Shape::default()).unwrap_err();
        assert!(error.starts_with("robot:0 does not say where"), "{error}");
    }
}
