//! Fuzz targets: what the driver reads from cameras. PURE.

use std::str::FromStr;

use super::http::{Address, Answer};
use super::jpeg::{Jpeg, Splitter};
use super::{calibration, pixels};
use crate::camera::audience::Wish;
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[
    ("camera_jpeg", jpeg),
    ("camera_http", http),
    ("camera_calibration", read_calibration),
];

/// The most pixels that are decoded: larger pictures take too long here.
const MAX_PIXELS: u32 = 1 << 16;

/// Files, in pieces: the same ones, however they are cut. What was repaired needs no repair.
fn jpeg(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let max_width = u32::from(input.byte());
    let (mut whole, mut pieces) = (Splitter::default(), Splitter::default());
    whole.push(input.0);
    let expected: Vec<_> = std::iter::from_fn(|| whole.poll()).collect();
    let mut found = Vec::new();
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
        found.extend(std::iter::from_fn(|| pieces.poll()));
    }
    assert_eq!(found, expected);
    assert_eq!(whole.broken(), pieces.broken());
    for picture in found {
        let again = Jpeg::read(&picture.bytes);
        assert!(again.is_ok_and(|again| again.bytes == picture.bytes && !again.is_damaged));
        if picture.width * picture.height <= MAX_PIXELS {
            let wish = Wish::from(&amber_proto::camera::PictureRequest {
                max_width: Some(max_width),
                ..Default::default()
            });
            let recipe = wish.recipe(picture.width);
            if let Ok(made) = pixels::make(&picture, recipe) {
                let small = Jpeg::read(&made.data);
                assert!(small.is_ok_and(|it| (it.width, it.height) == (made.width, made.height)));
            }
        }
    }
}

/// Answers of servers, in pieces.
fn http(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let read = |length: usize| {
        let mut answer = Answer::default();
        let mut pictures = 0;
        for piece in input.0.chunks(length) {
            if answer.push(piece).is_err() {
                return None;
            }
            while answer.poll().is_some() {
                pictures += 1;
            }
        }
        let _ = answer.other_type();
        Some((pictures, answer.is_over(), answer.is_single()))
    };
    assert_eq!(read(cut), read(usize::MAX));
    if let Ok(address) = Address::from_str(&String::from_utf8_lossy(data)) {
        let request = address.request();
        let lines = request.split(|byte| *byte == b'\n').count();
        assert!((7..=8).contains(&lines), "an address adds no lines");
    }
}

fn read_calibration(data: &[u8]) {
    if let Ok(read) = calibration::parse(&String::from_utf8_lossy(data)) {
        assert!(read.fx() > 0.0 && read.fy() > 0.0 && read.width() > 0);
        let again = calibration::parse(&calibration::to_yaml(&read, "fuzz"));
        assert!(again.is_ok_and(|it| it.fx == read.fx && it.distortion == read.distortion));
    }
}
