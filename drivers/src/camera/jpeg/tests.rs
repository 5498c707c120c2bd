//! Files in the ways in which cameras damage them.

use proptest::prelude::*;

use super::*;
use crate::camera::pixels;

/// A file of a picture with a pattern.
fn file(width: u16, height: u16) -> Vec<u8> {
    let pixels = (0..usize::from(width) * usize::from(height)).flat_map(|at| {
        let (x, y) = (at % usize::from(width), at / usize::from(width));
        [(x * 7) as u8, (y * 5) as u8, (x ^ y) as u8]
    });
    let pixels: Vec<u8> = pixels.collect();
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 80);
    encoder
        .encode(&pixels, width, height, ColorType::Rgb)
        .unwrap();
    file
}

/// A file without its segments with this marker.
fn without(file: &[u8], marker: u8) -> Vec<u8> {
    let mut kept = file[..2].to_vec();
    let mut at = 2;
    loop {
        let end = at + 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if file[at + 1] == START_OF_SCAN {
            return [&kept[..], &file[at..]].concat();
        }
        if file[at + 1] != marker {
            kept.extend_from_slice(&file[at..end]);
        }
        at = end;
    }
}

/// A file with a preview in a segment before all others.
fn with_preview(file: &[u8]) -> Vec<u8> {
    let preview = [&b"Exif\0\0"[..], file].concat();
    let length = u16::try_from(preview.len() + 2).unwrap().to_be_bytes();
    [&file[..2], &[0xFF, 0xE1], &length, &preview, &file[2..]].concat()
}

fn split(splitter: &mut Splitter, bytes: &[u8]) -> Vec<Jpeg> {
    splitter.push(bytes);
    std::iter::from_fn(|| splitter.poll()).collect()
}

#[test]
fn a_whole_file_stays_as_it_is() {
    let bytes = file(64, 48);
    let jpeg = Jpeg::read(&bytes).unwrap();
    assert_eq!(jpeg.bytes, bytes);
    assert_eq!((jpeg.width, jpeg.height, jpeg.components), (64, 48, 3));
    assert!(!jpeg.is_damaged);
}

#[test]
fn what_follows_the_end_is_cut_off() {
    let bytes = file(64, 48);
    for rest in [&[0; 500][..], &[0xFF, 0xD9], b"\r\n--boundary\r\n", &bytes] {
        let jpeg = Jpeg::read(&[&bytes[..], rest].concat()).unwrap();
        assert!(jpeg.bytes == bytes && !jpeg.is_damaged);
    }
    let with = with_preview(&bytes);
    assert_eq!(Jpeg::read(&with).unwrap().bytes, with);
}

#[test]
fn a_file_without_end_gets_one_and_is_damaged() {
    let bytes = file(64, 48);
    for lost in [2, 3, bytes.len() / 3] {
        let cut = &bytes[..bytes.len() - lost];
        let padded = [cut, &[0; 300]].concat();
        for buffer in [cut, &padded] {
            let jpeg = Jpeg::read(buffer).unwrap();
            assert!(jpeg.is_damaged && jpeg.bytes.ends_with(&END));
            assert!(jpeg.bytes.len() <= cut.len() + 3, "the padding is gone");
            assert!(pixels::decode(&jpeg, true).is_ok());
        }
    }
}

#[test]
fn missing_tables_are_put_in() {
    let bytes = file(64, 48);
    let bare = without(&bytes, HUFFMAN_TABLES);
    // Four segments: 33 and 183 bytes for brightness, and the same for colours.
    assert_eq!((bare.len() + 432, USUAL_TABLES.len()), (bytes.len(), 432));
    let jpeg = Jpeg::read(&bare).unwrap();
    assert!(!jpeg.is_damaged);
    let [ours, whole] = [&jpeg, &Jpeg::read(&bytes).unwrap()].map(|it| pixels::decode(it, false));
    assert_eq!(ours.unwrap(), whole.unwrap());
}

#[test]
fn what_is_no_picture_is_refused() {
    let bytes = file(64, 48);
    let no_size = without(&bytes, 0xC0);
    let mut no_height = bytes.clone();
    let frame = bytes.windows(2).position(|it| it == [0xFF, 0xC0]).unwrap();
    no_height[frame + 5..frame + 7].fill(0);
    let mut huge = bytes.clone();
    huge[frame + 5..frame + 9].fill(0xFF);
    for (buffer, why) in [
        (&b""[..], NoPicture::Start),
        (b"RIFF", NoPicture::Start),
        (&bytes[..frame], NoPicture::Header),
        (&[0xFF, 0xD8, 0xFF, 0xD9], NoPicture::Header),
        (&[0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 7], NoPicture::Header),
        (&no_size, NoPicture::Size),
        (&no_height, NoPicture::Size),
        (&huge, NoPicture::Size),
    ] {
        assert_eq!(Jpeg::read(buffer), Err(why));
    }
}

#[test]
fn files_back_to_back_are_split_as_soon_as_they_are_whole() {
    let files = [file(64, 48), with_preview(&file(80, 48)), file(96, 48)];
    let mut splitter = Splitter::default();
    let mut widths = Vec::new();
    let all = files.concat();
    for (at, byte) in all.iter().enumerate() {
        for jpeg in split(&mut splitter, &[*byte]) {
            widths.push((at + 1, jpeg.width));
        }
    }
    let [first, second, third] = files.map(|file| file.len());
    let ends = [first, first + second, first + second + third];
    assert_eq!(widths, [(ends[0], 64), (ends[1], 80), (ends[2], 96)]);
    assert_eq!(splitter.broken(), 0);
}

#[test]
fn garbage_between_files_is_skipped() {
    let bytes = file(64, 48);
    // The begin of a file that is none, too.
    let noise = [&b"noise "[..], &[0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 9, 9]].concat();
    let mut splitter = Splitter::default();
    let found = split(
        &mut splitter,
        &[&noise[..], &bytes, &noise, &bytes].concat(),
    );
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|jpeg| jpeg.bytes == bytes));
    assert_eq!(splitter.broken(), 2);
}

#[test]
fn a_file_whose_end_is_lost_is_damaged_and_the_next_one_is_not() {
    // Large enough that its half has pixels.
    let bytes = file(320, 240);
    let half = &bytes[..bytes.len() / 2];
    let mut splitter = Splitter::default();
    let found = split(&mut splitter, &[half, &bytes].concat());
    let damaged: Vec<_> = found.iter().map(|it| (it.width, it.is_damaged)).collect();
    assert_eq!(damaged, [(320, true), (320, false)]);

    // The boundary is not read as a part of the picture.
    splitter.set_boundary("frame");
    let between = b"\r\n--frame\r\nContent-Type: image/jpeg\r\n\r\n";
    let found = split(&mut splitter, &[half, between, &bytes].concat());
    assert!(found[0].is_damaged && found[0].bytes.len() <= half.len() + 2);
    assert_eq!(found[1].bytes, bytes);
}

#[test]
fn the_text_before_a_file_is_kept_for_a_while() {
    let mut splitter = Splitter::default();
    let text = b"--b\r\nContent-Type: video/h264\r\n";
    assert!(split(&mut splitter, text).is_empty());
    assert!(
        splitter
            .between()
            .starts_with(b"--b\r\nContent-Type: video")
    );
    split(&mut splitter, &[b'x'; 3 * MAX_BETWEEN]);
    assert_eq!(splitter.between().len(), MAX_BETWEEN);
    assert!(splitter.buffer.len() < 3);
}

#[test]
fn a_file_without_an_end_does_not_fill_the_memory() {
    let bytes = file(64, 48);
    let mut splitter = Splitter::default();
    split(&mut splitter, &bytes[..bytes.len() - 2]);
    for _ in 0..200 {
        split(&mut splitter, &[0x55; 64 * 1024]);
        assert!(splitter.buffer.len() <= MAX_BYTES + 64 * 1024);
    }
    assert_eq!(splitter.broken(), 1);
    assert_eq!(split(&mut splitter, &bytes).len(), 1);
}

proptest! {
    #[test]
    fn what_was_repaired_needs_no_repair(cut in 0_usize..4_000, at in 0_usize..4_000, byte: u8) {
        let mut bytes = file(64, 48);
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Some(it) = bytes.get_mut(at) {
            *it = byte;
        }
        if let Ok(jpeg) = Jpeg::read(&bytes) {
            let again = Jpeg::read(&jpeg.bytes).unwrap();
            prop_assert_eq!(&again.bytes, &jpeg.bytes);
            prop_assert!(!again.is_damaged);
        }
    }

    #[test]
    fn pieces_do_not_change_what_is_found(
        cuts in prop::collection::vec(1_usize..900, 1..20),
        flips in prop::collection::vec((0_usize..9_000, any::<u8>()), 0..4),
    ) {
        let mut bytes = [file(64, 48), file(80, 48), file(64, 64)].concat();
        for (at, byte) in flips {
            if let Some(it) = bytes.get_mut(at) {
                *it = byte;
            }
        }
        let expected = split(&mut Splitter::default(), &bytes);
        let mut splitter = Splitter::default();
        let (mut found, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            found.extend(split(&mut splitter, piece));
            rest = others;
        }
        prop_assert_eq!(found, expected);
    }
}
