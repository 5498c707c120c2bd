//! The codes of markers: the dictionary `DICT_4X4_50` of OpenCV. PURE.
//!
//! A marker has 6 x 6 cells. The outer ones are black, and the 16 inner ones are its code. Around it is a
//! white edge, at least one cell wide. Any two codes differ in four cells at least, however they are
//! turned, so one wrong cell does no harm.

use super::picture::{Picture, Px};
use super::projection::Homography;

/// The number of markers.
pub const COUNT: u32 = 50;

/// By id: 16 bits, row by row from the top left; 1 is white.
const CODES: [u16; COUNT as usize] = [
    0xb532, 0x0f9a, 0x332d, 0x9946, 0x549e, 0x79cd, 0x9e2e, 0xc4f2, 0xfeda, 0xcf56, 0xf991, 0x11a7,
    0x0eb7, 0x2a0f, 0x24b1, 0x263e, 0x4665, 0x6600, 0x6c5e, 0x76af, 0x868b, 0xb02b, 0xccd5, 0xdd82,
    0xfe47, 0x9471, 0xace4, 0xa554, 0x2123, 0x346f, 0x4415, 0x57b2, 0x9ecf, 0xf0cb, 0x08ae, 0x0929,
    0x1875, 0x04ff, 0x0df6, 0x1c5a, 0x1718, 0x2a28, 0x328c, 0x38b2, 0x24e8, 0x2eeb, 0x2d3f, 0x4b64,
    0x502e, 0x5013,
];

/// The cells of a side.
const CELLS: usize = 6;
/// So many cells of the code may be wrong.
const MAX_WRONG: u32 = 1;
/// So many of the 20 black cells around the code may be bright, and so many places around them dark.
const MAX_WRONG_BORDER: usize = 1;
const MAX_WRONG_EDGE: usize = 4;
/// White is brighter than black by this much.
const MIN_CONTRAST: f64 = 25.0;
/// A cell is unclear if its brightness is this near to the middle between black and white, as a part of
/// their difference. So many may be.
const UNCLEAR: f64 = 0.12;
const MAX_UNCLEAR: usize = 2;
/// Where a cell is looked at.
const SPOTS: [f64; 3] = [0.3, 0.5, 0.7];

/// A code that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) id: u32,
    /// Which of the four corners is the upper left one of the marker.
    pub(super) first: usize,
}

/// Whether a cell of a marker is white, counted from its upper left corner, with its black border.
///
/// `None` beside the marker, or if there is no marker with this id.
#[must_use]
pub fn is_white(id: u32, row: usize, column: usize) -> Option<bool> {
    let code = CODES.get(usize::try_from(id).ok()?)?;
    let is_inner = |place: usize| (1..CELLS - 1).contains(&place);
    match (
        row < CELLS && column < CELLS,
        is_inner(row) && is_inner(column),
    ) {
        (false, _) => None,
        (true, false) => Some(false),
        (true, true) => Some((code >> (15 - ((row - 1) * 4 + column - 1))) & 1 == 1),
    }
}

/// Reads what is between four corners, which are clockwise.
pub(super) fn read(picture: Picture<'_>, corners: [Px; 4]) -> Option<Read> {
    let square = Homography::of_square(corners)?;
    let cells = CELLS as f64;
    let brightness = |row: f64, column: f64| picture.at(square.at([column / cells, row / cells]));
    let cell = |row: usize, column: usize| -> f64 {
        let spots = SPOTS.iter().flat_map(|down| {
            SPOTS.map(|right| brightness(row as f64 + down, column as f64 + right))
        });
        spots.sum::<f64>() / 9.0
    };
    let around = (0..CELLS).flat_map(|place| {
        let along = place as f64 + 0.5;
        [
            brightness(-0.5, along),
            brightness(cells + 0.5, along),
            brightness(along, -0.5),
            brightness(along, cells + 0.5),
        ]
    });
    let around: Vec<f64> = around.collect();
    let is_border =
        |row: usize, column: usize| row.min(column) == 0 || row.max(column) == CELLS - 1;
    let places = (0..CELLS * CELLS).map(|index| (index / CELLS, index % CELLS));
    let (border, inner): (Vec<_>, Vec<_>) =
        places.partition(|(row, column)| is_border(*row, *column));
    let of = |places: Vec<(usize, usize)>| -> Vec<f64> {
        places
            .into_iter()
            .map(|(row, column)| cell(row, column))
            .collect()
    };
    let (border, inner) = (of(border), of(inner));
    let (black, white) = (median(&border), median(&around));
    let contrast = white - black;
    if contrast < MIN_CONTRAST {
        return None;
    }
    let is_bright = |value: &&f64| (**value - black) / contrast > 0.5;
    let is_unclear = |value: &&f64| ((**value - black) / contrast - 0.5).abs() < UNCLEAR;
    let is_marker = border.iter().filter(is_bright).count() <= MAX_WRONG_BORDER
        && around.iter().filter(|it| !is_bright(it)).count() <= MAX_WRONG_EDGE
        && inner.iter().filter(is_unclear).count() <= MAX_UNCLEAR;
    if !is_marker {
        return None;
    }
    let bits = inner.iter().fold(0, |bits: u16, value| {
        (bits << 1) | u16::from(is_bright(&value))
    });
    look_up(bits)
}

/// The marker with these cells, and how it is turned.
fn look_up(bits: u16) -> Option<Read> {
    let mut turned = bits;
    for first in 0..4 {
        let known =
            (CODES.iter().zip(0..)).find(|(code, _)| (**code ^ turned).count_ones() <= MAX_WRONG);
        if let Some((_, id)) = known {
            return Some(Read { id, first });
        }
        turned = turn(turned);
    }
    None
}

/// The cells as they are seen from the next corner: the upper right one becomes the upper left one.
fn turn(bits: u16) -> u16 {
    (0..16).fold(0, |turned, index| {
        let (row, column) = (index / 4, index % 4);
        let from = column * 4 + (3 - row);
        (turned << 1) | ((bits >> (15 - from)) & 1)
    })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_turns_are_none() {
        let mut bits = 0xb532;
        for _ in 0..4 {
            bits = turn(bits);
        }
        assert_eq!(bits, 0xb532);
        // The upper right cell moves to the upper left.
        assert_eq!(turn(0b0001_0000_0000_0000), 0b1000_0000_0000_0000);
    }

    #[test]
    fn any_two_codes_differ_in_four_cells_however_they_are_turned() {
        for (one, code) in CODES.iter().enumerate() {
            let mut turned = *code;
            for turns in 0..4 {
                let others = CODES.iter().enumerate();
                for (other, code) in others.filter(|(other, _)| (*other, turns) != (one, 0)) {
                    assert!((code ^ turned).count_ones() >= 4, "{one} {other} {turns}");
                }
                turned = turn(turned);
            }
        }
    }

    #[test]
    fn each_code_is_known_with_one_wrong_cell_but_not_with_two() {
        for (id, code) in (0..).zip(CODES) {
            assert_eq!(look_up(code), Some(Read { id, first: 0 }));
            // Seen from the next corner, its first corner is the last one.
            assert_eq!(look_up(turn(code)), Some(Read { id, first: 3 }));
            for wrong in 0..16 {
                assert_eq!(look_up(code ^ (1 << wrong)), Some(Read { id, first: 0 }));
                let two = code ^ (1 << wrong) ^ (1 << ((wrong + 5) % 16));
                assert_ne!(look_up(two), Some(Read { id, first: 0 }));
            }
        }
    }

    #[test]
    fn cells_are_those_that_opencv_draws() {
        let rows = ["......", ".#.##.", "..#.#.", "...##.", "...#..", "......"];
        for (row, cells) in rows.iter().enumerate() {
            for (column, cell) in cells.chars().enumerate() {
                assert_eq!(is_white(0, row, column), Some(cell == '#'));
            }
        }
        assert_eq!((is_white(50, 0, 0), is_white(0, 6, 0)), (None, None));
    }
}
