//! Grey images: PGM and PNG. PURE.

use std::io::Cursor;

use crate::grid::MAX_CELLS;

/// Pixels with less alpha than this are unknown.
const OPAQUE: u8 = 128;

/// The reason why an image is rejected.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Neither PGM nor PNG.
    #[error("neither PGM nor PNG")]
    Format,
    /// The header of a PGM file is invalid.
    #[error("the header of the PGM file is invalid")]
    Header,
    /// The file is cut off, or a number is invalid.
    #[error("pixel {0} is missing or invalid")]
    Pixel(usize),
    /// The image is too large.
    #[error("{0} x {1} pixels are too many (at most {MAX_CELLS})")]
    TooLarge(usize, usize),
    /// The PNG file is invalid.
    #[error(transparent)]
    Png(#[from] png::DecodingError),
}

/// An image with a grey value per pixel; `None` if it is transparent.
pub(super) struct Image {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Row by row from the upper one.
    pub(super) pixels: Vec<Option<u8>>,
}

impl Image {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        if bytes.starts_with(b"\x89PNG") {
            return Self::from_png(bytes);
        }
        match bytes.get(..2) {
            Some(b"P5") => Self::from_pgm(bytes, true),
            Some(b"P2") => Self::from_pgm(bytes, false),
            _ => Err(ImageError::Format),
        }
    }

    fn from_pgm(bytes: &[u8], is_binary: bool) -> Result<Self, ImageError> {
        let mut words = Words { bytes, at: 2 };
        let header = [(); 3].map(|()| words.number());
        let [Some(columns), Some(rows), Some(max @ 1..=65_535)] = header else {
            return Err(ImageError::Header);
        };
        let count = size(columns, rows)?;
        let pixels = if is_binary {
            // One byte of white space ends the header.
            let data = bytes.get(words.at + 1..).unwrap_or_default();
            let width = if max > 255 { 2 } else { 1 };
            let mut values = data.chunks_exact(width).map(|value| match *value {
                [high, low] => u16::from_be_bytes([high, low]).into(),
                _ => value[0].into(),
            });
            collect(count, max, || values.next())
        } else {
            collect(count, max, || words.number())
        };
        Ok(Self {
            columns,
            rows,
            pixels: pixels?,
        })
    }

    fn from_png(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info()?;
        let (columns, rows) = (reader.info().width as usize, reader.info().height as usize);
        let count = size(columns, rows)?;
        let samples = reader.output_color_type().0.samples();
        let mut buffer = vec![0; count * samples];
        reader.next_frame(&mut buffer)?;
        let has_alpha = samples == 2 || samples == 4;
        let grey = |pixel: &[u8]| {
            let (colours, alpha) = pixel.split_at(samples - usize::from(has_alpha));
            let sum: usize = colours.iter().map(|colour| usize::from(*colour)).sum();
            let mean = (sum / colours.len()) as u8;
            alpha.iter().all(|alpha| *alpha >= OPAQUE).then_some(mean)
        };
        Ok(Self {
            columns,
            rows,
            pixels: buffer.chunks_exact(samples).map(grey).collect(),
        })
    }
}

fn size(columns: usize, rows: usize) -> Result<usize, ImageError> {
    let count = columns.checked_mul(rows);
    match count.filter(|count| *count <= MAX_CELLS) {
        Some(0) => Err(ImageError::Header),
        Some(count) => Ok(count),
        None => Err(ImageError::TooLarge(columns, rows)),
    }
}

/// Scales values to 0 to 255.
fn collect(
    count: usize,
    max: usize,
    mut next: impl FnMut() -> Option<usize>,
) -> Result<Vec<Option<u8>>, ImageError> {
    let mut pixels = Vec::new();
    for index in 0..count {
        match next() {
            Some(value) if value <= max => pixels.push(Some((value * 255 / max) as u8)),
            _ => return Err(ImageError::Pixel(index)),
        }
    }
    Ok(pixels)
}

/// The numbers of a text with comments.
struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn number(&mut self) -> Option<usize> {
        loop {
            match self.bytes.get(self.at)? {
                b'#' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n')?;
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => break,
            }
        }
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit());
        let digits = &rest[..end.unwrap_or(rest.len())];
        self.at += digits.len();
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(color: png::ColorType, columns: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, columns, 1);
        encoder.set_color(color);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        drop(writer);
        bytes
    }

    fn pixels(bytes: &[u8]) -> Vec<Option<u8>> {
        Image::parse(bytes).unwrap().pixels
    }

    #[test]
    fn all_kinds_of_images_give_the_same_pixels() {
        let expected = [Some(0), Some(255)];
        assert_eq!(pixels(b"P5 2 1 255\n\x00\xff"), expected);
        assert_eq!(
            pixels(b"P5\n# text\n2 1\n65535\n\x00\x00\xff\xff"),
            expected
        );
        assert_eq!(pixels(b"P2 2 1 100 0 # text\n 100"), expected);
        assert_eq!(
            pixels(&png(png::ColorType::Grayscale, 2, &[0, 255])),
            expected
        );
        let rgb = [0, 0, 0, 255, 255, 255];
        assert_eq!(pixels(&png(png::ColorType::Rgb, 2, &rgb)), expected);
        let rgba = [0, 0, 0, 255, 255, 255, 255, 10];
        assert_eq!(
            pixels(&png(png::ColorType::Rgba, 2, &rgba)),
            [Some(0), None]
        );
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (bytes, expected) in [
            (&b"GIF89a"[..], "neither PGM nor PNG"),
            (b"P5 2 x 255 ", "the header of the PGM file is invalid"),
            (b"P5 2 2 255 \x00\x00", "pixel 2 is missing or invalid"),
            (b"P2 1 1 9 10", "pixel 0 is missing or invalid"),
            (
                b"P5 99999 99999 255 ",
                "99999 x 99999 pixels are too many (at most 25000000)",
            ),
        ] {
            let error = Image::parse(bytes).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(expected));
        }
        let whole = png(png::ColorType::Grayscale, 2, &[0, 255]);
        assert!(Image::parse(&whole[..whole.len() / 2]).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(
            start in prop::sample::select(vec![&b"P5 "[..], b"P2 ", b"\x89PNG\r\n\x1a\n"]),
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let _ = Image::parse(&[start, &bytes].concat());
        }
    }
}
