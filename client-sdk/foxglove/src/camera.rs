//! Pictures and the optics of cameras. PURE.

use std::ops::Range;

use amber_proto::camera::{self, Calibration, Format, Picture};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::frames::{camera, timestamp};
use crate::messages::{CameraCalibration, CompressedImage};

/// The fields with the picture in a message, and with the file in a picture.
const PICTURE: u32 = 261;
const DATA: u32 = 1;
/// The field with the file in [`CompressedImage`].
pub(crate) const IMAGE_DATA: u32 = 2;

/// The size of a picture in pixels.
pub(crate) type Size = (u32, u32);

/// The size of a picture, unless it is nonsense.
pub(crate) fn size(width: u32, height: u32) -> Option<Size> {
    (width > 0 && height > 0).then_some((width, height))
}

/// A picture without its file; `None` if viewers cannot draw it. They ask for JPEG, so nobody needs
/// other formats there.
pub(crate) fn image(
    picture: &Picture,
    device_id: i32,
    measured_ns: u64,
) -> Option<CompressedImage> {
    let is_jpeg = picture.format == Some(Format::Jpeg.into());
    is_jpeg.then(|| CompressedImage {
        timestamp: timestamp(measured_ns),
        data: Vec::new(),
        format: "jpeg".to_owned(),
        frame_id: camera(device_id),
    })
}

/// Where the file of a picture is in an encoded message; `None` if it is not in one piece.
pub(crate) fn place_of_file(message: &[u8], picture: &Picture) -> Option<Range<usize>> {
    let outer = field(message, 0..message.len(), PICTURE)?;
    let file = field(message, outer, DATA)?;
    // The last one of several would count.
    (message[file.clone()] == *picture.data()).then_some(file)
}

/// Where the first field with this number is within a part of the bytes.
fn field(bytes: &[u8], part: Range<usize>, wanted: u32) -> Option<Range<usize>> {
    let mut rest = &bytes[part.clone()];
    while !rest.is_empty() {
        let (number, wire) = decode_key(&mut rest).ok()?;
        if (number, wire) == (wanted, WireType::LengthDelimited) {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            let start = part.end - rest.len();
            return (length <= rest.len()).then(|| start..start + length);
        }
        skip_field(wire, number, &mut rest, DecodeContext::default()).ok()?;
    }
    None
}

/// The optics for pictures of this size, which may be a part of the size of the calibration. `None` if
/// the calibration is invalid.
pub(crate) fn calibration(
    known: &Calibration,
    size: Size,
    device_id: i32,
    measured_ns: u64,
) -> Option<CameraCalibration> {
    let x = Scale::new(known.width(), size.0)?;
    let y = Scale::new(known.height(), size.1)?;
    let k = [
        [x.length(known.fx()), 0.0, x.place(known.cx())],
        [0.0, y.length(known.fy()), y.place(known.cy())],
        [0.0, 0.0, 1.0],
    ];
    let rectification = match known.rectification.len() {
        0 => vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        9 => known.rectification.clone(),
        _ => return None,
    };
    let projection = match &known.projection[..] {
        [] => k.map(|[a, b, c]| [a, b, c, 0.0]),
        &[a, b, c, d, e, f, g, h, i, j, k, l] => [
            [x.length(a), x.length(b), x.place(c), x.length(d)],
            [y.length(e), y.length(f), y.place(g), y.length(h)],
            [i, j, k, l],
        ],
        _ => return None,
    };
    let made = CameraCalibration {
        timestamp: timestamp(measured_ns),
        frame_id: camera(device_id),
        width: size.0,
        height: size.1,
        distortion_model: known.distortion_model().to_owned(),
        d: known.distortion.clone(),
        k: k.concat(),
        r: rectification,
        p: projection.concat(),
    };
    let lists = [&made.d, &made.k, &made.r, &made.p];
    let is_finite = lists
        .iter()
        .all(|list| list.iter().all(|it| it.is_finite()));
    is_finite.then_some(made)
}

/// How one direction of a picture was made smaller.
#[derive(Clone, Copy, Debug)]
struct Scale {
    factor: f64,
}

impl Scale {
    /// From the size of the calibration to that of the picture.
    fn new(calibrated: u32, size: u32) -> Option<Self> {
        if calibrated == 0 || size == 0 {
            return None;
        }
        // Cameras make pictures smaller by whole factors, and leave out the rest of a row or column.
        let divisor = calibrated / size;
        let is_whole = divisor > 0 && calibrated / divisor == size;
        let factor = match is_whole {
            true => 1.0 / f64::from(divisor),
            false => f64::from(size) / f64::from(calibrated),
        };
        Some(Self { factor })
    }

    fn length(self, pixels: f64) -> f64 {
        pixels * self.factor
    }

    /// The centre of the first pixel is at 0.
    fn place(self, pixels: f64) -> f64 {
        (pixels + 0.5) * self.factor - 0.5
    }
}

/// The file of a picture, in the message for viewers.
pub(crate) fn with_file(image: CompressedImage, picture: &Picture) -> CompressedImage {
    CompressedImage {
        data: picture.data().to_vec(),
        ..image
    }
}

/// Reads a message of a camera.
pub(crate) fn read(message: &[u8]) -> Option<camera::DriverMsg> {
    prost::Message::decode(message).ok()
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceMessage;
    use prost::Message;

    use super::*;

    fn picture() -> Picture {
        Picture {
            data: Some(b"\xff\xd8file\xff\xd9"[..].into()),
            format: Some(Format::Jpeg.into()),
            width: Some(640),
            height: Some(480),
            captured: Some(1_700_000_000_123_456),
            sequence: Some(7),
            damaged: None,
        }
    }

    fn known() -> Calibration {
        Calibration {
            width: Some(640),
            height: Some(480),
            fx: Some(500.0),
            fy: Some(510.0),
            cx: Some(319.5),
            cy: Some(241.5),
            distortion_model: Some("plumb_bob".into()),
            distortion: vec![0.1, -0.2, 0.0, 0.0, 0.0],
            ..Calibration::default()
        }
    }

    #[test]
    fn a_picture_is_a_file_in_the_optical_frame() {
        let made = image(&picture(), 1, 1_500_000_000).unwrap();
        let made = with_file(made, &picture());
        assert_eq!(
            (&*made.format, &*made.frame_id),
            ("jpeg", "camera_1_optical_frame")
        );
        assert!(made.data.starts_with(b"\xff\xd8"));
        assert_eq!(made.timestamp.unwrap().nanos, 500_000_000);
        let mut gray = picture();
        gray.format = Some(Format::Gray8.into());
        assert_eq!(image(&gray, 0, 0), None);
    }

    #[test]
    fn the_file_is_found_in_its_message() {
        let mut message = camera::DriverMsg::data();
        message.set_ack(Some(amber_proto::SynNum(5)));
        message.picture = Some(picture());
        let bytes = message.encode_to_vec();
        let file = place_of_file(&bytes, &picture()).unwrap();
        assert_eq!(bytes[file], *picture().data());
        // Two pictures in one message are one, with the file of the last.
        let second = camera::DriverMsg {
            picture: Some(Picture {
                data: Some(b"second"[..].into()),
                ..Picture::default()
            }),
            ..camera::DriverMsg::default()
        };
        let twice = [bytes.clone(), second.encode_to_vec()].concat();
        let read = read(&twice).unwrap().picture.unwrap();
        assert_eq!(read.data(), b"second");
        assert_eq!(place_of_file(&twice, &read), None);
        assert_eq!(place_of_file(b"\x10\x01", &picture()), None);
        assert_eq!(place_of_file(&bytes[..20], &picture()), None);
    }

    #[test]
    fn optics_are_those_of_smaller_pictures() {
        // Divisor, size of the picture, fx, cx, cy.
        for (size, fx, cx, cy) in [
            ((640, 480), 500.0, 319.5, 241.5),
            ((320, 240), 250.0, 159.5, 120.5),
            // 213 * 3 = 639: one column is left out.
            (
                (213, 160),
                500.0 / 3.0,
                320.0 / 3.0 - 0.5,
                242.0 / 3.0 - 0.5,
            ),
            ((1280, 960), 1000.0, 639.5, 483.5),
        ] {
            let made = calibration(&known(), size, 0, 5).unwrap();
            assert_eq!((made.width, made.height), size);
            for (found, expected) in [(made.k[0], fx), (made.k[2], cx), (made.k[5], cy)] {
                assert!((found - expected).abs() < 1e-9, "{size:?}: {made:?}");
            }
            assert_eq!((made.k[8], made.d.len(), made.r[4]), (1.0, 5, 1.0));
            // Without one of its own, the projection is that of the camera.
            assert_eq!(
                [made.p[0], made.p[2], made.p[3]],
                [made.k[0], made.k[2], 0.0]
            );
            assert_eq!(
                [made.p[5], made.p[6], made.p[10]],
                [made.k[4], made.k[5], 1.0]
            );
            assert_eq!(made.frame_id, "camera_optical_frame");
        }
    }

    #[test]
    fn a_projection_is_scaled_and_nonsense_is_refused() {
        let stereo = Calibration {
            projection: vec![
                400.0, 0.0, 319.5, -40.0, 0.0, 410.0, 239.5, 0.0, 0.0, 0.0, 1.0, 0.0,
            ],
            ..known()
        };
        let made = calibration(&stereo, (320, 240), 0, 5).unwrap();
        let expected = [
            200.0, 0.0, 159.5, -20.0, 0.0, 205.0, 119.5, 0.0, 0.0, 0.0, 1.0, 0.0,
        ];
        for (found, expected) in made.p.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{:?}", made.p);
        }
        let wrong = |change: fn(&mut Calibration)| {
            let mut wrong = known();
            change(&mut wrong);
            calibration(&wrong, (320, 240), 0, 5)
        };
        assert_eq!(wrong(|it| it.width = None), None);
        assert_eq!(wrong(|it| it.projection = vec![1.0; 5]), None);
        assert_eq!(wrong(|it| it.rectification = vec![1.0]), None);
        assert_eq!(wrong(|it| it.fx = Some(f64::NAN)), None);
    }
}
