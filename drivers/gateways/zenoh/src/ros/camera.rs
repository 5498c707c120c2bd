//! A camera as messages of ROS 2. PURE.

use amber_proto::camera::{CameraInfo, Format, Picture};
use amber_proto::robot::{Place, Shape};
use amber_ros2::messages::{
    CameraInfo as RosCameraInfo, CompressedImage, Header, Quaternion, Transform, TransformStamped,
    Vector3,
};
use amber_values::{CameraOptics, OpticalFrame};

use super::convert::Frames;

/// A picture, with the time when it was taken. `None` if it is no JPEG file.
#[must_use]
pub fn image(picture: &Picture, frames: &Frames, stamp_ns: u64) -> Option<CompressedImage> {
    (picture.format() == Format::Jpeg).then(|| CompressedImage {
        header: Header::new(stamp_ns, &frames.camera),
        format: "jpeg".to_owned(),
        data: picture.data().to_vec(),
    })
}

/// The time when a picture was taken, in nanoseconds since 1970; `None` if the camera does not tell it.
#[must_use]
pub fn captured_ns(picture: &Picture) -> Option<u64> {
    let since_1970_us = u64::try_from(picture.captured()).ok()?;
    (since_1970_us > 0).then(|| since_1970_us.saturating_mul(1_000))
}

/// The optics for pictures of a size, which are 0 if the camera is not calibrated for them.
#[must_use]
pub fn info(
    known: &CameraInfo,
    (width, height): (u32, u32),
    frames: &Frames,
    stamp_ns: u64,
) -> RosCameraInfo {
    let calibration = known.calibration.as_ref();
    let optics = calibration.and_then(|it| CameraOptics::new(it, width, height));
    let optics = optics.unwrap_or_else(|| CameraOptics::uncalibrated(width, height));
    RosCameraInfo {
        header: Header::new(stamp_ns, &frames.camera),
        height,
        width,
        distortion_model: optics.distortion_model,
        d: optics.distortion,
        k: optics.camera,
        r: optics.rectification,
        p: optics.projection,
        ..RosCameraInfo::default()
    }
}

/// The size of the pictures of a camera, if nobody wants them smaller. `None` before the first one of a
/// camera that is not calibrated.
#[must_use]
pub fn size(known: &CameraInfo) -> Option<(u32, u32)> {
    let calibration = known.calibration.as_ref();
    let calibrated = calibration.map(|it| (it.width(), it.height()));
    known.width.zip(known.height).or(calibrated)
}

/// The optical frame on a robot of this shape. `None` if the place of the camera is unknown.
#[must_use]
pub fn optical_frame(shape: &Shape) -> Option<OpticalFrame> {
    let is_finite = |place: &&Place| {
        let numbers = [place.x(), place.y(), place.z(), place.yaw(), place.pitch()];
        numbers.iter().all(|number| number.is_finite())
    };
    shape
        .camera
        .as_ref()
        .filter(is_finite)
        .map(OpticalFrame::from)
}

/// The optical frame on the robot, for `tf_static`.
#[must_use]
pub fn mount(frame: &OpticalFrame, frames: &Frames, stamp_ns: u64) -> TransformStamped {
    let [x, y, z] = frame.translation_m;
    let translation = Vector3 { x, y, z };
    let [x, y, z, w] = frame.rotation;
    TransformStamped {
        header: Header::new(stamp_ns, &frames.base),
        child_frame_id: frames.camera.clone(),
        transform: Transform {
            translation,
            rotation: Quaternion { x, y, z, w },
        },
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::camera::Calibration;

    use super::*;

    #[test]
    fn a_picture_has_its_time_and_the_optical_frame() {
        let frames = Frames::with_prefix("r1/");
        let mut picture = Picture {
            data: Some(vec![0xff, 0xd8].into()),
            format: Some(Format::Jpeg.into()),
            captured: Some(1_000_002),
            ..Picture::default()
        };
        let stamp_ns = captured_ns(&picture).unwrap();
        let message = image(&picture, &frames, stamp_ns).unwrap();
        assert_eq!(message.header.frame_id, "r1/camera_optical_frame");
        assert_eq!(
            (message.header.stamp.sec, message.header.stamp.nanosec),
            (1, 2_000)
        );
        assert_eq!(
            (&*message.format, &message.data[..]),
            ("jpeg", &[0xff, 0xd8][..])
        );
        (picture.format, picture.captured) = (Some(Format::Gray8.into()), Some(-1));
        assert_eq!(image(&picture, &frames, 0), None);
        assert_eq!(captured_ns(&picture), None);
    }

    #[test]
    fn the_optics_are_those_of_the_picture() {
        let frames = Frames::with_prefix("");
        let calibration = Calibration {
            width: Some(640),
            height: Some(480),
            fx: Some(600.0),
            cx: Some(319.5),
            distortion_model: Some("plumb_bob".into()),
            distortion: vec![0.1; 5],
            ..Calibration::default()
        };
        let mut known = CameraInfo {
            calibration: Some(calibration),
            ..CameraInfo::default()
        };
        assert_eq!(size(&known), Some((640, 480)));
        let half = info(&known, (320, 240), &frames, 7);
        assert_eq!((half.width, half.height, half.d.len()), (320, 240, 5));
        assert_eq!((half.k[0], half.k[2], half.p[0]), (300.0, 159.5, 300.0));
        assert_eq!((half.r[0], &*half.distortion_model), (1.0, "plumb_bob"));
        let other = info(&known, (300, 200), &frames, 7);
        assert_eq!((other.width, other.k, other.d.len()), (300, [0.0; 9], 0));
        known.calibration = None;
        assert_eq!(size(&known), None);
        (known.width, known.height) = (Some(320), Some(240));
        assert_eq!(size(&known), Some((320, 240)));
    }

    #[test]
    fn the_place_is_that_of_the_shape() {
        let frames = Frames::with_prefix("r1/");
        let place = Place {
            x: Some(0.1),
            z: Some(0.2),
            ..Place::default()
        };
        let mut shape = Shape {
            camera: Some(place),
            ..Shape::default()
        };
        let frame = mount(&optical_frame(&shape).unwrap(), &frames, 0);
        assert_eq!(frame.header.frame_id, "r1/base_link");
        assert_eq!(frame.child_frame_id, "r1/camera_optical_frame");
        let (at, turn) = (frame.transform.translation, frame.transform.rotation);
        assert_eq!((at.x, at.y, at.z), (0.1, 0.0, 0.2));
        assert_eq!((turn.x, turn.y, turn.z, turn.w), (-0.5, 0.5, -0.5, 0.5));
        shape.camera = Some(Place {
            yaw: Some(f64::NAN),
            ..place
        });
        assert_eq!(optical_frame(&shape), None);
        assert_eq!(optical_frame(&Shape::default()), None);
    }
}
