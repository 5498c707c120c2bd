//! The marker sensor: the input of the driver from its port. PURE.

use amber_drivers::stargazer::protocol::{Message, Parser};

use crate::input::Input;

/// Messages, in pieces: the same ones, however they are cut.
pub(super) fn messages(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let (mut whole, mut pieces) = (Parser::default(), Parser::default());
    whole.push(input.0);
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
    }
    assert_eq!(whole.spoilt(), pieces.spoilt());
    loop {
        let message = whole.poll();
        assert_eq!(message, pieces.poll());
        match message {
            None => break,
            Some(Message::Fix(sightings)) => {
                assert!(!sightings.is_empty());
                for seen in sightings {
                    assert!(seen.heading_deg.is_finite(), "{seen:?}");
                }
            }
            Some(_) => {}
        }
    }
}
