//! The pixels of a picture: decodes what a camera sends. PURE.

use amber_proto::camera::{Format, Picture};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The largest picture that is decoded: 4096 x 4096 need 48 MB.
const MAX_PIXELS: usize = 1 << 24;

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// Pixels, row by row from the upper left corner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    width: usize,
    height: usize,
    /// 1: brightness. 3: a [`Colour`].
    channels: usize,
    bytes: Vec<u8>,
}

impl Pixels {
    /// Decodes a picture. Of a damaged one, the lower part is grey.
    ///
    /// # Errors
    /// It cannot be decoded, or it has no pixels or too many.
    pub(super) fn of(picture: &Picture) -> Result<Self, String> {
        match picture.format() {
            Format::Jpeg => Self::of_jpeg(picture.data()),
            Format::Gray8 => {
                let side = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
                let (width, height) = (side(picture.width()), side(picture.height()));
                Self::new((width, height), 1, picture.data().to_vec())
            }
        }
    }

    fn of_jpeg(file: &[u8]) -> Result<Self, String> {
        let failed = |error| format!("the picture cannot be decoded: {error:?}");
        let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        decoder.decode_headers().map_err(failed)?;
        let size = decoder.dimensions().unwrap_or_default();
        check(size)?;
        Self::new(size, 3, decoder.decode().map_err(failed)?)
    }

    fn new(
        (width, height): (usize, usize),
        channels: usize,
        bytes: Vec<u8>,
    ) -> Result<Self, String> {
        check((width, height))?;
        if bytes.len() != width * height * channels {
            return Err(format!(
                "a picture of {width} x {height} pixels cannot have {} bytes",
                bytes.len()
            ));
        }
        Ok(Self {
            width,
            height,
            channels,
            bytes,
        })
    }

    /// Width and height.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The mean colour of one of so many columns and rows of the picture.
    pub(super) fn mean(&self, (column, columns): Share, (row, rows): Share) -> Colour {
        // At least one pixel, also where the picture has fewer than there are columns.
        let part = |index: usize, count: usize, length: usize| {
            let start = (index * length / count.max(1)).min(length - 1);
            let end = ((index + 1) * length / count.max(1)).min(length);
            start..end.max(start + 1)
        };
        let (across, down) = (
            part(column, columns, self.width),
            part(row, rows, self.height),
        );
        let count = across.len() * down.len();
        let mut sums = [0_usize; 3];
        for y in down {
            let row = &self.bytes[y * self.width * self.channels..];
            for x in across.clone() {
                let pixel = &row[x * self.channels..][..self.channels];
                for (channel, sum) in sums.iter_mut().enumerate() {
                    *sum += usize::from(pixel[channel.min(self.channels - 1)]);
                }
            }
        }
        sums.map(|sum| u8::try_from(sum / count).unwrap_or(u8::MAX))
    }
}

/// An index, and the number of all.
pub(super) type Share = (usize, usize);

fn check((width, height): (usize, usize)) -> Result<(), String> {
    match width.checked_mul(height) {
        Some(0) => Err("the picture has no pixels".into()),
        Some(1..=MAX_PIXELS) => Ok(()),
        _ => Err(format!("the picture is too large: {width} x {height}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, height: u32, bytes: &[u8]) -> Picture {
        Picture {
            data: Some(bytes.to_vec().into()),
            format: Some(Format::Gray8.into()),
            width: Some(width),
            height: Some(height),
            ..Picture::default()
        }
    }

    #[test]
    fn means_are_those_of_the_parts() {
        let pixels = Pixels::of(&grey(4, 2, &[0, 10, 20, 30, 40, 50, 60, 70])).unwrap();
        assert_eq!(pixels.size(), (4, 2));
        for (across, down, expected) in [
            ((0, 1), (0, 1), 35),
            ((0, 2), (0, 1), 25),
            ((1, 2), (0, 2), 25),
            ((3, 4), (1, 2), 70),
            // More columns than pixels.
            ((7, 8), (3, 4), 70),
            ((0, 8), (0, 4), 0),
        ] {
            let mean = pixels.mean(across, down);
            assert_eq!(mean, [expected; 3], "{across:?} {down:?}");
        }
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        for (picture, words) in [
            (grey(2, 2, &[0; 3]), "cannot have 3 bytes"),
            (grey(0, 2, &[]), "no pixels"),
            (grey(u32::MAX, u32::MAX, &[]), "too large"),
            (grey(8_192, 8_192, &[]), "too large"),
            (
                Picture {
                    data: Some(b"\xff\xd8\xff\xd9".as_slice().into()),
                    ..Picture::default()
                },
                "the picture ",
            ),
        ] {
            let error = Pixels::of(&picture).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
