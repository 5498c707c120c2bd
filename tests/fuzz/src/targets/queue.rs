//! The queue of one driver. PURE.

use std::collections::HashMap;

use amber_core::queue::{Bounds, Lane, Queue};
use amber_proto::{ClientId, Frame};

use crate::Input;

const BOUNDS: Bounds = Bounds {
    frames: 8,
    bytes: 512,
    life_cycle: 64,
};

/// Frames in, pieces out: every driver reads whole frames, each client's in
/// their order; life-cycle frames all arrive; what does not arrive is counted.
pub(super) fn queue(data: &[u8]) {
    let mut input = Input(data);
    let mut queue = Queue::new(BOUNDS);
    let (mut pipe, mut sent, mut life_cycle) = (Vec::new(), 0_u64, 0);
    let mut number = 0_u32;
    while !input.is_empty() {
        match input.byte() % 8 {
            kind @ 0..=4 => {
                let client = ClientId(i32::from(input.byte() % 4) + 1);
                let lane = match kind {
                    0 => Lane::LifeCycle,
                    1 => Lane::ClientDied(client),
                    _ => Lane::Client(client),
                };
                number += 1;
                let padding = usize::from(input.byte());
                let mut message = number.to_be_bytes().to_vec();
                message.resize(4 + padding, 0);
                let who = [if kind < 2 { 0 } else { client.0 as u8 }];
                let frame = Frame {
                    header: &who,
                    message: &message,
                };
                queue.push(lane, frame).expect("it is short");
                if kind < 2 {
                    life_cycle += 1;
                } else {
                    sent += 1;
                }
            }
            5 | 6 => {
                let room = usize::from(input.byte());
                let chunk = queue.chunk();
                if !chunk.is_empty() {
                    let taken = room.min(chunk.len());
                    pipe.extend_from_slice(&chunk[..taken]);
                    queue.wrote(taken);
                }
            }
            _ => queue.writable(),
        }
    }
    queue.writable();
    while !queue.chunk().is_empty() {
        let chunk = queue.chunk();
        pipe.extend_from_slice(&chunk);
        let all = chunk.len();
        queue.wrote(all);
    }
    assert!(queue.is_empty());
    let tally = queue.tally();
    let dropped = tally.dropped_full + tally.dropped_client_gone;
    assert_eq!(tally.queued, tally.written + dropped);

    let (mut rest, mut newest, mut arrived, mut lived) = (&pipe[..], HashMap::new(), 0, 0);
    while let Some(frame) = Frame::from_stream(rest) {
        rest = &rest[frame.wire_len()..];
        let number = u32::from_be_bytes(frame.message[..4].try_into().expect("four bytes"));
        match frame.header[0] {
            0 => lived += 1,
            client => {
                arrived += 1;
                let before = newest.insert(client, number);
                assert!(before.is_none_or(|before| before < number), "out of order");
            }
        }
    }
    assert!(rest.is_empty(), "half a frame");
    assert_eq!(lived, life_cycle);
    assert_eq!(arrived + dropped, sent);
}
