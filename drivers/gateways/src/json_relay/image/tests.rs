//! Images in one message and in fragments, in every order that can be told apart.

use proptest::prelude::*;

use super::*;
use crate::json_relay::limits::{MAX_DATAGRAM, MAX_MTU, MIN_MTU, USUAL_MTU};

fn robot(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

/// Feeds fragments given as (milliseconds, sequence, total, text); returns the images. Senders stamp
/// fragments with the time when the image was taken.
fn images(fragments: &[(u64, u32, u32, &str)]) -> Vec<String> {
    let stamped = fragments
        .iter()
        .map(|&(ms, sequence, total, text)| (ms, ms, sequence, total, text));
    stamped_images(&stamped.collect::<Vec<_>>())
}

/// The same with a timestamp after the time.
fn stamped_images(fragments: &[(u64, u64, u32, u32, &str)]) -> Vec<String> {
    let mut reassembly = Reassembly::default();
    let found = fragments
        .iter()
        .filter_map(|&(ms, stamp, sequence, total, text)| {
            let now = Duration::from_millis(ms);
            reassembly.handle_fragment(now, robot(1), sequence, total, text.into(), stamp)
        });
    found.map(|image| image.texts.concat()).collect()
}

#[test]
fn a_short_image_is_one_message() {
    let sent = messages(b"hi", 7, USUAL_MTU).unwrap();
    let (image, timestamp) = ("aGk=".into(), 7);
    assert_eq!(sent, [Message::ImageData { image, timestamp }]);
}

#[test]
fn each_datagram_keeps_the_limit() {
    for mtu in [MIN_MTU, USUAL_MTU, MAX_MTU] {
        let sent = messages(&content(100_000), u64::MAX, mtu).unwrap();
        assert!(sent.iter().all(|message| message.encode().len() <= mtu));
        // And uses most of it.
        assert!(sent[0].encode().len() > mtu - 16);
    }
}

#[test]
fn too_long_images_are_refused() {
    let (size, mtu) = (1 << 20, 512);
    let refused = messages(&content(size), 0, mtu);
    assert_eq!(refused, Err(ImageTooLong { size, mtu }));
    assert!(messages(&content(size), 0, 10).is_err());
    assert!(messages(&content(size), 0, MAX_MTU).is_ok());
    const { assert!(MAX_MTU < MAX_DATAGRAM) };
}

#[test]
fn fragments_in_other_orders() {
    let whole = ["abc"];
    assert_eq!(
        images(&[(0, 1, 3, "a"), (0, 2, 3, "b"), (0, 3, 3, "c")]),
        whole
    );
    assert_eq!(
        images(&[(0, 1, 3, "a"), (0, 3, 3, "c"), (0, 2, 3, "b")]),
        whole
    );
    assert_eq!(images(&[(0, 1, 1, "abc")]), whole);
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        let part = |sequence| (0, sequence, 3, ["a", "b", "c"][sequence as usize - 1]);
        assert_eq!(images(&order.map(part)), whole, "{order:?}");
        // Some senders stamp each fragment.
        let part = |sequence: u32| {
            (
                0,
                199 + u64::from(sequence),
                sequence,
                3,
                ["a", "b", "c"][sequence as usize - 1],
            )
        };
        assert_eq!(stamped_images(&order.map(part)), whole, "{order:?}");
    }
    // A copy made by the network.
    assert_eq!(
        images(&[
            (0, 1, 3, "a"),
            (0, 2, 3, "b"),
            (0, 2, 3, "b"),
            (0, 3, 3, "c")
        ]),
        whole
    );
}

#[test]
fn fragments_of_two_images_may_overtake_each_other() {
    let both = [
        (0, 7, 1, 2, "a"),
        (1, 8, 1, 2, "x"),
        (2, 7, 2, 2, "b"),
        (3, 8, 2, 2, "y"),
    ];
    assert_eq!(stamped_images(&both), ["ab", "xy"]);
    // The newer one is complete first: the older one is no longer wanted.
    let newer_first = [
        (0, 7, 1, 2, "a"),
        (1, 8, 1, 2, "x"),
        (2, 8, 2, 2, "y"),
        (3, 7, 2, 2, "b"),
    ];
    assert_eq!(stamped_images(&newer_first), ["xy"]);
}

#[test]
fn a_new_image_does_not_mix_with_a_lost_one() {
    let expected = ["xy"];
    // The first image lacks its first, or its last fragment.
    assert_eq!(
        images(&[(0, 2, 2, "b"), (9, 1, 2, "x"), (9, 2, 2, "y")]),
        expected
    );
    assert_eq!(
        images(&[(0, 1, 2, "a"), (9, 1, 2, "x"), (9, 2, 2, "y")]),
        expected
    );
    // It has another number of fragments.
    let other_total = [
        (0, 1, 3, "a"),
        (0, 2, 3, "b"),
        (9, 1, 2, "x"),
        (9, 2, 2, "y"),
    ];
    assert_eq!(images(&other_total), expected);
    // It is too old.
    assert!(stamped_images(&[(0, 0, 1, 2, "a"), (2000, 0, 2, 2, "y")]).is_empty());
    assert_eq!(
        stamped_images(&[(0, 0, 1, 2, "x"), (1999, 0, 2, 2, "y")]),
        expected
    );
}

#[test]
fn robots_do_not_mix() {
    let mut reassembly = Reassembly::default();
    let mut feed = |port, sequence| {
        reassembly.handle_fragment(Duration::ZERO, robot(port), sequence, 2, "a".into(), 0)
    };
    assert_eq!(feed(1, 1), None);
    assert_eq!(feed(2, 2), None);
    assert!(feed(1, 2).is_some());
    assert_eq!(reassembly.used(), 1);
}

#[test]
fn memory_is_bounded() {
    let mut reassembly = Reassembly::default();
    let text = "A".repeat(60_000);
    for sequence in 1..=1024 {
        let now = Duration::ZERO;
        let image = reassembly.handle_fragment(now, robot(1), sequence, 1024, text.clone(), 0);
        assert_eq!(image, None);
        assert!(reassembly.used() <= MAX_IMAGE);
    }
    assert!(reassembly.abandoned() >= 7, "{}", reassembly.abandoned());
    reassembly.forget(robot(1));
    assert_eq!((reassembly.used(), reassembly.next_timeout()), (0, None));
}

#[test]
fn pieces_that_were_encoded_alone() {
    let texts = |texts: &[&str]| Image {
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        timestamps: vec![0; texts.len()],
    };
    assert_eq!(texts(&["aGk=", "aGk="]).decode(), Ok(b"hihi".to_vec()));
    assert_eq!(texts(&["aG", "k="]).decode(), Ok(b"hi".to_vec()));
    assert_eq!(texts(&["aGk"]).decode(), Ok(b"hi".to_vec()));
    assert_eq!(texts(&["?"]).decode(), Err(NotBase64));
    assert_eq!(texts(&["aGk=", "?"]).decode(), Err(NotBase64));
}

#[test]
fn formats() {
    assert_eq!(Image::format_of(b"\x89PNG\r\n"), Some("png"));
    assert_eq!(Image::format_of(&[0xff, 0xd8, 0xff, 0xe0]), Some("jpeg"));
    assert_eq!(Image::format_of(b"RIFF1234WEBP"), Some("webp"));
    assert_eq!(Image::format_of(b""), None);
}

proptest! {
    /// An image arrives as it was sent, and the fragments can be decoded alone or together.
    #[test]
    fn round_trip(size in 1..40_000_usize, mtu in MIN_MTU..3000) {
        let image = content(size);
        let Ok(sent) = messages(&image, 5, mtu) else {
            prop_assert!(size > 700 * (mtu - 200) / 2);
            return Ok(());
        };
        let mut reassembly = Reassembly::default();
        let mut found = None;
        for message in &sent {
            let message = Message::decode(&message.encode()).unwrap();
            match message {
                Message::ImageData { image, timestamp } => {
                    found = Some(Image::whole(image, timestamp));
                }
                Message::ImageFragment { sequence, total, image, timestamp } => {
                    prop_assert!(found.is_none());
                    let now = Duration::ZERO;
                    found = reassembly.handle_fragment(now, robot(1), sequence, total, image, timestamp);
                }
                other => panic!("{other:?}"),
            }
        }
        let found = found.unwrap();
        prop_assert_eq!(found.decode().unwrap(), image.clone());
        let alone = found.texts.iter().map(|text| BASE64.decode(text).unwrap());
        prop_assert_eq!(alone.collect::<Vec<_>>().concat(), image);
        prop_assert_eq!(found.messages(), sent);
    }
}
