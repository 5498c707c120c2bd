//! Images between the JSON relay and Amber's clients. PURE.

use std::sync::Arc;
use std::time::Duration;

use amber_proto::camera::{Format, Picture};
use amber_proto::gateway::RelayImage;
use bytes::Bytes;

use super::image::{Image, size_of_jpeg};
use super::limits::{AMBER_PIECE, MAX_FRAGMENTS, MAX_IMAGE};
use crate::limits::MAX_AGE;
use crate::shared::clock::Now;

/// The pieces of an image for Amber's clients.
pub(super) fn for_amber(source: &str, timestamp: u64, file: Vec<u8>) -> Vec<RelayImage> {
    let format = Image::format_of(&file).map(str::to_owned);
    let file = Bytes::from(file);
    let total = file.len().div_ceil(AMBER_PIECE).max(1);
    let pieces = (0..total).map(|index| {
        let from = index * AMBER_PIECE;
        let number = |number: usize| u32::try_from(number).ok().filter(|_| total > 1);
        RelayImage {
            source: Some(source.to_owned()),
            timestamp: Some(timestamp),
            image: Some(file.slice(from..file.len().min(from + AMBER_PIECE))),
            format: format.clone(),
            sequence: number(index + 1),
            total: number(total),
        }
    });
    pieces.collect()
}

/// The time of a picture as the programs of the relay write it: in seconds since 1970. `None` if the camera
/// does not tell it.
pub(super) fn seconds(picture: &Picture) -> Option<u64> {
    let since_1970_us = u64::try_from(picture.captured()).ok()?;
    Some(since_1970_us / 1_000_000).filter(|seconds| *seconds > 0)
}

/// An image of a robot as a picture of a camera, with the time when it was complete. `None` if it is no JPEG
/// file: a camera has no others.
pub(super) fn picture(file: &[u8], now_us: i64, sequence: u32) -> Option<Picture> {
    let (width, height) = size_of_jpeg(file)?;
    Some(Picture {
        data: Some(Bytes::copy_from_slice(file)),
        format: Some(Format::Jpeg.into()),
        width: Some(width),
        height: Some(height),
        captured: Some(now_us),
        sequence: Some(sequence),
        damaged: None,
    })
}

/// The images that a camera shows: those of one robot, until it is silent for a while. Then another one may
/// be shown.
#[derive(Debug, Default)]
pub(super) struct ShownImages {
    from: Option<(String, Duration)>,
    count: u32,
}

impl ShownImages {
    /// The next picture, from this robot. `None` if another one is shown, or if it is no JPEG file.
    pub(super) fn next(&mut self, now: Now, source: &str, file: &[u8]) -> Option<Arc<Picture>> {
        let is_other =
            |(other, last): &(String, Duration)| other != source && now.since(*last) <= MAX_AGE;
        if self.from.as_ref().is_some_and(is_other) {
            return None;
        }
        let now_us = i64::try_from(now.unix.as_micros()).unwrap_or(i64::MAX);
        let picture = picture(file, now_us, self.count.wrapping_add(1))?;
        self.count = self.count.wrapping_add(1);
        self.from = Some((source.to_owned(), now.elapsed));
        Some(Arc::new(picture))
    }
}

/// Joins the pieces of images that Amber's clients send. They come in order.
#[derive(Debug, Default)]
pub(super) struct Joining {
    pieces: Vec<Bytes>,
    total: u32,
}

/// The reason why a piece of an image is dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OutOfOrder;

impl Joining {
    /// Accepts a piece; returns the file if it is complete.
    pub(super) fn push(&mut self, piece: &RelayImage) -> Result<Option<Vec<u8>>, OutOfOrder> {
        let bytes = piece.image.clone().unwrap_or_default();
        let (sequence, total) = (piece.sequence.unwrap_or(1), piece.total.unwrap_or(1));
        if sequence == 1 {
            self.pieces.clear();
            self.total = total;
        }
        let next = u32::try_from(self.pieces.len() + 1).ok();
        let size: usize = self.pieces.iter().map(Bytes::len).sum();
        let fits = size + bytes.len() <= MAX_IMAGE && total <= MAX_FRAGMENTS;
        if next != Some(sequence) || total != self.total || sequence > total || !fits {
            self.pieces.clear();
            return Err(OutOfOrder);
        }
        self.pieces.push(bytes);
        if sequence < total {
            return Ok(None);
        }
        let pieces = std::mem::take(&mut self.pieces);
        Ok(Some(pieces.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_in_pieces() {
        let file: Vec<u8> = [&[0xff, 0xd8, 0xff][..], &[7; 29_997]].concat();
        let pieces = for_amber("r1", 5, file.clone());
        let numbers = pieces.iter().map(|piece| (piece.sequence, piece.total));
        let expected = [1, 2, 3].map(|number| (Some(number), Some(3)));
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
        assert_eq!(pieces[0].format(), "jpeg");

        let mut joining = Joining::default();
        assert_eq!(joining.push(&pieces[0]), Ok(None));
        assert_eq!(joining.push(&pieces[1]), Ok(None));
        assert_eq!(joining.push(&pieces[2]), Ok(Some(file)));
        assert_eq!(joining.push(&pieces[2]), Err(OutOfOrder));
    }

    #[test]
    fn a_picture_has_the_size_that_its_file_tells() {
        let head = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc4\x00\x03x";
        let frame = b"\xff\xc0\x00\x11\x08\x00\xf0\x01\x40\x03123456789";
        let file = [&head[..], frame, b"\xff\xda\x00\x02data\xff\xd9"].concat();
        let found = picture(&file, 5, 7).unwrap();
        assert_eq!((found.width(), found.height()), (320, 240));
        assert_eq!((found.captured(), found.sequence()), (5, 7));
        assert_eq!(found.data(), file);
        for length in 0..head.len() + frame.len() {
            assert_eq!(picture(&file[..length], 5, 7), None, "{length}");
        }
        for other in [
            &b"\x89PNG\r\n\x1a\n"[..],
            b"\xff\xd8\xff\xda\x00\x02",
            b"\xff\xd8\xff\xe0\x00\x00\xff\xd9",
            b"\xff\xd8\xff\xc0\x00\x08\x08\x00\x00\x00\x00\x03",
        ] {
            assert_eq!(picture(other, 5, 7), None, "{other:?}");
        }
    }

    #[test]
    fn a_camera_shows_one_robot_at_a_time() {
        let file = b"\xff\xd8\xff\xc0\x00\x08\x08\x00\xf0\x01\x40\x03";
        let mut shown = ShownImages::default();
        let mut next = |ms, source, file: &[u8]| {
            let picture = shown.next(Now::from_millis(ms), source, file);
            picture.map(|picture| picture.sequence())
        };
        assert_eq!(next(0, "r1", file), Some(1));
        assert_eq!(next(900, "r2", file), None);
        assert_eq!(next(1_000, "r1", file), Some(2));
        assert_eq!(next(1_500, "r1", b"GIF8"), None);
        // The first one has been silent for more than a second.
        assert_eq!(next(2_001, "r2", file), Some(3));
        assert_eq!(next(2_002, "r1", file), None);
    }

    #[test]
    fn a_short_image_is_one_piece() {
        let pieces = for_amber("r1", 5, b"abc".to_vec());
        assert_eq!((pieces.len(), pieces[0].sequence), (1, None));
        assert_eq!(
            Joining::default().push(&pieces[0]),
            Ok(Some(b"abc".to_vec()))
        );
    }

    #[test]
    fn pieces_out_of_order_are_dropped() {
        let pieces = for_amber("r1", 5, vec![7; 30_000]);
        let mut joining = Joining::default();
        assert_eq!(joining.push(&pieces[0]), Ok(None));
        assert_eq!(joining.push(&pieces[2]), Err(OutOfOrder));
        assert_eq!(joining.push(&pieces[1]), Err(OutOfOrder));
    }
}
