//! Images between the JSON relay and Amber's clients. PURE.

use amber_proto::gateway::RelayImage;
use bytes::Bytes;

use super::image::Image;
use super::limits::{AMBER_PIECE, MAX_FRAGMENTS, MAX_IMAGE};

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
