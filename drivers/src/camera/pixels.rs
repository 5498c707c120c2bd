//! Pictures made smaller, of another quality, or without colours: decodes JPEG and encodes it again.
//! PURE.

use amber_proto::camera::Format;
use amber_proto::prost::bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::jpeg::Jpeg;

/// The quality of JPEG for a client that asks for none.
pub const USUAL_QUALITY: u8 = 75;

/// How a picture is made from that of the camera.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Width and height are divided by this.
    pub divisor: u32,
    /// 1 to 100; `None`: the file of the camera if it fits, else [`USUAL_QUALITY`].
    pub quality: Option<u8>,
    /// How the bytes are to be read.
    pub format: Format,
}

/// A picture for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The file, or all pixels.
    pub data: Bytes,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// Decoded pixels, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: usize,
    height: usize,
    /// 1: brightness. 3: brightness and two differences of colours, as in JPEG.
    channels: usize,
    bytes: Vec<u8>,
}

/// Makes a picture.
///
/// # Errors
/// The file cannot be decoded, or the picture would have no pixels.
pub fn make(jpeg: &Jpeg, recipe: Recipe) -> Result<Made, String> {
    let is_grey = recipe.format == Format::Gray8;
    if recipe.divisor == 1 && recipe.quality.is_none() && !is_grey {
        return Ok(Made {
            data: jpeg.bytes.clone(),
            width: jpeg.width,
            height: jpeg.height,
        });
    }
    let pixels = decode(jpeg, is_grey)?.smaller(recipe.divisor)?;
    let size = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let (width, height) = (size(pixels.width), size(pixels.height));
    let data = match recipe.format {
        Format::Gray8 => pixels.bytes.into(),
        Format::Jpeg => pixels.encode(recipe.quality.unwrap_or(USUAL_QUALITY))?,
    };
    Ok(Made {
        data,
        width,
        height,
    })
}

/// Decodes a file, with or without its colours.
///
/// # Errors
/// The file is none.
pub fn decode(jpeg: &Jpeg, is_grey: bool) -> Result<Pixels, String> {
    let (space, channels) = match is_grey || jpeg.components == 1 {
        true => (ColorSpace::Luma, 1),
        false => (ColorSpace::YCbCr, 3),
    };
    let options = DecoderOptions::default().jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&jpeg.bytes[..]), options);
    let bytes = decoder.decode();
    let bytes = bytes.map_err(|error| format!("cannot decode a picture: {error:?}"))?;
    let (width, height) = (jpeg.width as usize, jpeg.height as usize);
    if bytes.len() != width * height * channels {
        return Err("cannot decode a picture: its colours are not those of cameras".into());
    }
    Ok(Pixels {
        width,
        height,
        channels,
        bytes,
    })
}

/// Encodes pixels of a USB camera: pairs of them share their colours (YUYV).
///
/// # Errors
/// There are too few bytes.
pub fn encode_yuyv(
    bytes: &[u8],
    (width, height): (u32, u32),
    quality: u8,
) -> Result<Bytes, String> {
    let (width, height) = (width as usize, height as usize);
    let Some(bytes) = bytes.get(..width * height * 2) else {
        return Err(format!("{} bytes are too few for a picture", bytes.len()));
    };
    let (brightness, colours) = full_range();
    let pairs = bytes.chunks_exact(4).flat_map(|pair| {
        let colour = [1, 3].map(|at| colours[usize::from(pair[at])]);
        [0, 2].map(|at| [brightness[usize::from(pair[at])], colour[0], colour[1]])
    });
    let pixels = Pixels {
        width,
        height,
        channels: 3,
        bytes: pairs.flatten().collect(),
    };
    pixels.encode(quality)
}

/// Video uses 16 to 235 for brightness and 16 to 240 for colours; JPEG uses all values.
fn full_range() -> ([u8; 256], [u8; 256]) {
    let stretched = |value: usize, low: f32, range: f32, out: f32, zero: f32| {
        // Out of range, it is the nearest value.
        ((value as f32 - low) * out / range + zero).round() as u8
    };
    (
        std::array::from_fn(|value| stretched(value, 16.0, 219.0, 255.0, 0.0)),
        std::array::from_fn(|value| stretched(value, 128.0, 224.0, 255.0, 128.0)),
    )
}

impl Pixels {
    /// Each pixel is the mean of a square.
    fn smaller(self, divisor: u32) -> Result<Self, String> {
        let n = divisor as usize;
        if n <= 1 {
            return Ok(self);
        }
        let (width, height) = (self.width / n, self.height / n);
        if width * height == 0 {
            return Err(format!("a picture cannot be made {n} times smaller"));
        }
        let channels = self.channels;
        let (used, all) = (width * n * channels, self.width * channels);
        let mut bytes = Vec::with_capacity(width * height * channels);
        let mut sums = vec![0_u32; width * channels];
        let count = divisor * divisor;
        for rows in self.bytes.chunks_exact(all * n).take(height) {
            sums.fill(0);
            for row in rows.chunks_exact(all) {
                let squares = row[..used].chunks_exact(n * channels);
                for (sum, square) in sums.chunks_exact_mut(channels).zip(squares) {
                    for pixel in square.chunks_exact(channels) {
                        for (sum, value) in sum.iter_mut().zip(pixel) {
                            *sum += u32::from(*value);
                        }
                    }
                }
            }
            let mean = |sum: &u32| ((sum + count / 2) / count) as u8;
            bytes.extend(sums.iter().map(mean));
        }
        Ok(Self {
            width,
            height,
            channels,
            bytes,
        })
    }

    fn encode(&self, quality: u8) -> Result<Bytes, String> {
        let size = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
        let color = match self.channels {
            1 => ColorType::Luma,
            _ => ColorType::Ycbcr,
        };
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, quality.clamp(1, 100));
        encoder.set_sampling_factor(SamplingFactor::R_4_2_0);
        let done = encoder.encode(&self.bytes, size(self.width), size(self.height), color);
        done.map_err(|error| format!("cannot encode a picture: {error}"))?;
        Ok(file.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left dark, right bright, and the colours of a video in between.
    fn picture(width: usize, height: usize) -> Jpeg {
        let row = (0..width).flat_map(|x| [(x * 255 / (width - 1)) as u8, 90, 160]);
        let row: Vec<u8> = row.collect();
        let pixels = Pixels {
            width,
            height,
            channels: 3,
            bytes: row.repeat(height),
        };
        Jpeg::read(&pixels.encode(95).unwrap()).unwrap()
    }

    fn recipe(divisor: u32, quality: Option<u8>, format: Format) -> Recipe {
        Recipe {
            divisor,
            quality,
            format,
        }
    }

    #[test]
    fn the_file_of_the_camera_stays_as_it_is() {
        let jpeg = picture(64, 48);
        let made = make(&jpeg, recipe(1, None, Format::Jpeg)).unwrap();
        assert_eq!(made.data, jpeg.bytes);
        assert_eq!((made.width, made.height), (64, 48));
    }

    #[test]
    fn a_smaller_picture_shows_the_same() {
        let jpeg = picture(66, 49);
        for (divisor, size) in [(2, (33, 24)), (3, (22, 16)), (16, (4, 3))] {
            let made = make(&jpeg, recipe(divisor, None, Format::Jpeg)).unwrap();
            assert_eq!((made.width, made.height), size);
            let small = Jpeg::read(&made.data).unwrap();
            assert_eq!((small.width, small.height), size);
            let pixels = decode(&small, false).unwrap();
            let row = &pixels.bytes[..pixels.width * 3];
            let [first, last] = [row[0], row[row.len() - 3]].map(i32::from);
            let half = 127 / i32::try_from(pixels.width).unwrap();
            assert!((first - half).abs() < 12, "{divisor}: {first}");
            assert!((last - 255 + half).abs() < 12, "{divisor}: {last}");
            assert!((i32::from(row[1]) - 90).abs() < 4, "the colour stays");
        }
    }

    #[test]
    fn a_lower_quality_is_shorter() {
        let jpeg = picture(320, 240);
        let length = |quality| {
            let made = make(&jpeg, recipe(1, Some(quality), Format::Jpeg)).unwrap();
            made.data.len()
        };
        assert!(length(20) < length(60) && length(60) < length(95));
    }

    #[test]
    fn grey_pixels_are_the_brightness() {
        let jpeg = picture(64, 48);
        let made = make(&jpeg, recipe(2, None, Format::Gray8)).unwrap();
        assert_eq!(
            (made.width, made.height, made.data.len()),
            (32, 24, 32 * 24)
        );
        assert!(made.data[0] < 12 && made.data[31] > 243, "{:?}", made.data);
        assert_eq!(made.data[..32], made.data[32 * 10..32 * 11]);
    }

    #[test]
    fn a_picture_without_pixels_cannot_be_made() {
        let jpeg = picture(64, 48);
        assert!(make(&jpeg, recipe(49, None, Format::Jpeg)).is_err());
        let mut broken = jpeg.clone();
        broken.bytes = jpeg.bytes.slice(..20);
        assert!(make(&broken, recipe(2, None, Format::Jpeg)).is_err());
    }

    #[test]
    fn pixels_of_a_usb_camera_become_a_picture() {
        // Black and white pairs, with the colour of red in the lower half.
        let rows = (0..16).map(|y| if y < 8 { [128, 128] } else { [90, 240] });
        let rows = rows.flat_map(|[u, v]| [16, u, 16, v, 235, u, 235, v].repeat(8));
        let bytes: Vec<u8> = rows.collect();
        let file = encode_yuyv(&bytes, (32, 16), 95).unwrap();
        let jpeg = Jpeg::read(&file).unwrap();
        assert_eq!((jpeg.width, jpeg.height), (32, 16));
        let pixels = decode(&jpeg, false).unwrap().bytes;
        let near = |at: usize, expected: u8| pixels[at].abs_diff(expected) < 12;
        assert!(near(0, 0) && near(3 * 2, 255), "{:?}", &pixels[..12]);
        assert!(near(1, 128) && near(2, 128));
        let last = pixels.len() - 3;
        assert!(
            near(last + 1, 85) && near(last + 2, 255),
            "{:?}",
            &pixels[last..]
        );
        assert!(encode_yuyv(&bytes[1..], (32, 16), 95).is_err());
    }
}
