//! Pieces of long messages, from peers. PURE, except for the start of a clock.

use std::time::{Duration, Instant};

use amber_proto::limits::{MAX_LONG, MAX_MISSING};
use amber_proto::pieces::{Joiner, Long};
use amber_proto::{DriverMsg, Piece};
use prost::Message;

use crate::Input;

/// What a joiner may keep in memory, in bytes.
const MOST: usize = 2 * MAX_LONG;

/// Pieces of good messages in any order, some of them changed, and time: a message that arrives is
/// complete and unchanged, and everything is bounded and ends.
pub(super) fn pieces(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    let mut joiner = match input.flag() {
        true => Joiner::default(),
        false => Joiner::with_receipts(),
    };
    let mut has_changed = false;
    while !input.is_empty() {
        let (sender, kind, index) = (input.byte() % 8, input.byte(), u32::from(input.byte()));
        let number = u32::from(kind % 8);
        let good = long(number);
        let message = good
            .piece(10, index % good.count(10))
            .expect("there is one");
        let mut piece = DriverMsg::decode(message)
            .expect("a message")
            .piece
            .expect("a piece");
        if kind & 0x80 != 0 {
            has_changed = true;
            change(&mut piece, &mut input);
        }
        if let Some(joined) = joiner.piece(now, sender, &piece) {
            assert!(joined.message.len() <= MAX_LONG);
            assert!(has_changed || joined.message == good.bytes);
        }
        assert!(joiner.memory() <= MOST);
        now += Duration::from_millis(u64::from(kind >> 3 & 0x0f) * 4);
        joiner.timeout(now);
        while let Some((sender, call)) = joiner.poll_call() {
            assert!(sender < 8 && (1..=MAX_MISSING).contains(&call.index.len()));
        }
        while joiner.poll_receipt().is_some() {}
        while joiner.poll_lost().is_some() {}
    }
    let end = now + Duration::from_secs(6);
    while let Some(due) = joiner.next_timeout() {
        assert!(due <= end);
        joiner.timeout(due);
    }
    assert_eq!(joiner.memory(), 0);
}

/// A message that only depends on its number.
fn long(number: u32) -> Long {
    let length = 15 + 40 * number as usize;
    Long {
        number,
        stream: Some(number % 4).filter(|stream| *stream != 0),
        syn: None,
        bytes: (0..length).map(|i| i as u8 ^ number as u8).collect(),
    }
}

fn change(piece: &mut Piece, input: &mut Input<'_>) {
    match input.byte() % 6 {
        0 => piece.index = Some(u32::from(input.number())),
        1 => piece.count = Some(u32::from(input.number())),
        2 => piece.data = Some(input.piece().to_vec().into()),
        3 => piece.data = Some(vec![0; usize::from(input.number())].into()),
        4 => piece.stream = Some(u32::from(input.byte())),
        _ => *piece = Piece::decode(input.piece()).unwrap_or_default(),
    }
}
