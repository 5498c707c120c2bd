//! Cameras as ROS and Foxglove have them: the optical frame, and the optics of one picture. PURE.

use std::f64::consts::PI;

use amber_proto::camera::Calibration;
use amber_proto::robot::Place;

/// The largest whole factor by which pictures are made smaller.
const MAX_FACTOR: u32 = 64;

/// The optical frame of a camera in the frame of the robot: x to the right in the picture, y down, z
/// into the scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpticalFrame {
    /// The place of the camera: ahead, to the left and up.
    pub translation_m: [f64; 3],
    /// The rotation as a quaternion: x, y, z and w.
    pub rotation: [f64; 4],
}

impl OpticalFrame {
    /// The optical frame of a camera at a place, whose front is turned around x (ahead), then around
    /// y (to the left), then around z (up). Angles are positive counter-clockwise, so a positive
    /// pitch is downwards.
    #[must_use]
    pub fn new(translation_m: [f64; 3], roll_rad: f64, pitch_rad: f64, yaw_rad: f64) -> Self {
        let (roll, pitch, yaw) = (
            (roll_rad / 2.0).sin_cos(),
            (pitch_rad / 2.0).sin_cos(),
            (yaw_rad / 2.0).sin_cos(),
        );
        let front = product(
            product([0.0, 0.0, yaw.0, yaw.1], [0.0, pitch.0, 0.0, pitch.1]),
            [roll.0, 0.0, 0.0, roll.1],
        );
        Self {
            translation_m,
            // From ahead, left and up to right, down and into the scene.
            rotation: product(front, [-0.5, 0.5, -0.5, 0.5]),
        }
    }
}

/// What is absent is 0.
impl From<&Place> for OpticalFrame {
    fn from(place: &Place) -> Self {
        let roll_rad = if place.upside_down() { PI } else { 0.0 };
        let translation_m = [place.x(), place.y(), place.z()];
        Self::new(translation_m, roll_rad, place.pitch(), place.yaw())
    }
}

/// The rotation `b`, and then `a`.
fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let [ax, ay, az, aw] = a;
    let [bx, by, bz, bw] = b;
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// The optics of a camera for pictures of one size, in the terms of `sensor_msgs/CameraInfo` of ROS,
/// which are those of `foxglove.CameraCalibration`. Lengths are in pixels; the centre of the first
/// pixel is at (0, 0).
#[derive(Clone, Debug, PartialEq)]
pub struct CameraOptics {
    /// The size of the pictures.
    pub width_px: u32,
    /// The size of the pictures.
    pub height_px: u32,
    /// Such as "`plumb_bob`". Empty: the camera is not calibrated, and all numbers are 0.
    pub distortion_model: String,
    /// D: the coefficients of the model.
    pub distortion: Vec<f64>,
    /// K: focal lengths and centre, row by row.
    pub camera: [f64; 9],
    /// R: the rotation to the rectified picture, row by row.
    pub rectification: [f64; 9],
    /// P: the projection of the rectified picture, row by row.
    pub projection: [f64; 12],
}

impl CameraOptics {
    /// The optics for pictures of a size.
    ///
    /// Returns `None` if the calibration does not hold for them: they are neither those for which it
    /// was made, nor made from them by a whole factor, or a list has the wrong length.
    #[must_use]
    pub fn new(calibration: &Calibration, width_px: u32, height_px: u32) -> Option<Self> {
        let full = (calibration.width(), calibration.height());
        // Columns and rows that are left over are cut off.
        let factor =
            (1..=MAX_FACTOR).find(|n| (full.0 / n, full.1 / n) == (width_px, height_px))?;
        if width_px == 0 || height_px == 0 {
            return None;
        }
        let (fx, fy) = (calibration.fx(), calibration.fy());
        let (cx, cy) = (calibration.cx(), calibration.cy());
        let mut camera = [fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0];
        let rectification = match &calibration.rectification[..] {
            [] => [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            given => given.try_into().ok()?,
        };
        let mut projection = match &calibration.projection[..] {
            [] => [fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
            given => given.try_into().ok()?,
        };
        scale(&mut camera, 3, factor);
        scale(&mut projection, 4, factor);
        Some(Self {
            width_px,
            height_px,
            distortion_model: calibration.distortion_model().to_owned(),
            distortion: calibration.distortion.clone(),
            camera,
            rectification,
            projection,
        })
    }

    /// What ROS calls uncalibrated: all numbers are 0.
    #[must_use]
    pub fn uncalibrated(width_px: u32, height_px: u32) -> Self {
        Self {
            width_px,
            height_px,
            distortion_model: String::new(),
            distortion: Vec::new(),
            camera: [0.0; 9],
            rectification: [0.0; 9],
            projection: [0.0; 12],
        }
    }
}

/// Scales a matrix from directions to pixels, of three rows, for pictures that were made smaller.
fn scale(matrix: &mut [f64], columns: usize, factor: u32) {
    let n = f64::from(factor);
    // The centre of the first pixel is that of the first n pixels.
    let shift = 0.5 / n - 0.5;
    let (pixels, depth) = matrix.split_at_mut(2 * columns);
    for row in pixels.chunks_mut(columns) {
        for (value, depth) in row.iter_mut().zip(&*depth) {
            *value = *value / n + shift * depth;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    /// A vector in the optical frame, in the frame of the robot.
    fn turned(rotation: [f64; 4], [x, y, z]: [f64; 3]) -> [f64; 3] {
        let [qx, qy, qz, qw] = rotation;
        let [x, y, z, _] = product(product(rotation, [x, y, z, 0.0]), [-qx, -qy, -qz, qw]);
        [x, y, z]
    }

    #[track_caller]
    fn check(place: &Place, right: [f64; 3], down: [f64; 3], into: [f64; 3]) {
        let frame = OpticalFrame::from(place);
        for (axis, expected) in [
            ([1.0, 0.0, 0.0], right),
            ([0.0, 1.0, 0.0], down),
            ([0.0, 0.0, 1.0], into),
        ] {
            let found = turned(frame.rotation, axis);
            let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(far.fold(0.0, f64::max) < 1e-12, "{axis:?}: {found:?}");
        }
    }

    #[test]
    fn the_picture_is_seen_from_the_place() {
        let level = Place {
            x: Some(0.1),
            y: Some(0.02),
            z: Some(0.2),
            ..Place::default()
        };
        let frame = OpticalFrame::from(&level);
        assert_eq!(frame.translation_m, [0.1, 0.02, 0.2]);
        // The well-known one.
        assert_eq!(frame.rotation, [-0.5, 0.5, -0.5, 0.5]);
        let (ahead, left, up) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
        let minus = |axis: [f64; 3]| axis.map(|it| -it);
        check(&level, minus(left), minus(up), ahead);
        let to_the_left = Place {
            yaw: Some(FRAC_PI_2),
            ..level
        };
        check(&to_the_left, ahead, minus(up), left);
        let downwards = Place {
            pitch: Some(FRAC_PI_2),
            ..level
        };
        check(&downwards, minus(left), minus(ahead), minus(up));
        let upside_down = Place {
            upside_down: Some(true),
            ..level
        };
        check(&upside_down, left, up, ahead);
        // First downwards, then to the left.
        let both = Place {
            yaw: Some(FRAC_PI_2),
            ..downwards
        };
        check(&both, ahead, minus(left), minus(up));
    }

    fn calibration() -> Calibration {
        Calibration {
            width: Some(641),
            height: Some(480),
            fx: Some(600.0),
            fy: Some(610.0),
            cx: Some(319.5),
            cy: Some(239.5),
            distortion_model: Some("plumb_bob".into()),
            distortion: vec![0.1, -0.2, 0.0, 0.0, 0.0],
            ..Calibration::default()
        }
    }

    #[test]
    fn optics_are_those_of_the_picture() {
        let full = CameraOptics::new(&calibration(), 641, 480).unwrap();
        let camera = [600.0, 0.0, 319.5, 0.0, 610.0, 239.5, 0.0, 0.0, 1.0];
        assert_eq!(full.camera, camera);
        assert_eq!(
            full.rectification,
            [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        );
        assert_eq!(full.projection[..4], [600.0, 0.0, 319.5, 0.0]);
        assert_eq!(
            full.projection[4..],
            [0.0, 610.0, 239.5, 0.0, 0.0, 0.0, 1.0, 0.0]
        );
        // The odd column is cut off.
        let half = CameraOptics::new(&calibration(), 320, 240).unwrap();
        let camera = [300.0, 0.0, 159.5, 0.0, 305.0, 119.5, 0.0, 0.0, 1.0];
        assert_eq!(half.camera, camera);
        assert_eq!((half.width_px, half.height_px), (320, 240));
        assert_eq!(half.distortion, full.distortion);
        // The second camera of a stereo pair.
        let mut right = calibration();
        right.projection = vec![
            500.0, 0.0, 300.5, -60.0, 0.0, 500.0, 200.5, 0.0, 0.0, 0.0, 1.0, 0.0,
        ];
        let half = CameraOptics::new(&right, 320, 240).unwrap();
        assert_eq!(half.projection[..4], [250.0, 0.0, 150.0, -30.0]);
        assert_eq!(half.projection[8..], [0.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn a_calibration_holds_for_its_pictures_alone() {
        for (width, height) in [(640, 480), (1282, 960), (320, 180), (0, 0), (641, 240)] {
            let optics = CameraOptics::new(&calibration(), width, height);
            assert_eq!(optics, None, "{width}x{height}");
        }
        let mut short = calibration();
        short.projection = vec![1.0; 11];
        assert_eq!(CameraOptics::new(&short, 641, 480), None);
        let none = CameraOptics::uncalibrated(320, 240);
        assert_eq!((none.width_px, none.camera[0]), (320, 0.0));
    }
}
