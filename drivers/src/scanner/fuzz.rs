//! What the fuzz targets of laser scanners share. PURE.

use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::{ClientId, SynNum};

use super::{Model, Output};
use crate::fuzz::Input;

/// The logic of a driver, between clients that want anything and a scanner that sends anything at any
/// time. `message` makes bytes that the scanner could send.
pub(crate) fn driver<M: Model>(
    mut input: Input<'_>,
    mut now: Instant,
    mut logic: M,
    message: impl Fn(&mut Input<'_>, &mut Instant) -> Vec<u8>,
) {
    let mut opened = false;
    while !input.is_empty() {
        match input.byte() % 9 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => logic.ask(now, origin(input.byte())),
            2 => logic.handle_listeners(now, usize::from(input.byte() % 3)),
            3 if opened => logic.failed(now, "unplugged"),
            4 => logic.handle_timeout(now),
            5 | 6 if opened => {
                let bytes = message(&mut input, &mut now);
                logic.handle_bytes(now, 0, &bytes);
            }
            7 if input.byte() == 0 => logic.shut_down(now),
            _ if opened => logic.handle_bytes(now, 0, input.piece()),
            _ => {}
        }
        let mut outputs = 0;
        while let Some(output) = logic.poll_output() {
            outputs += 1;
            assert!(outputs < 1_000, "it never comes to rest: {output:?}");
            match output {
                Output::Open => {
                    opened = input.flag();
                    match opened {
                        true => logic.opened(now),
                        false => logic.failed(now, "not there"),
                    }
                }
                Output::Close => opened = false,
                Output::Answer(_, measured) | Output::Publish(measured) => {
                    let scan = &measured.scan;
                    assert_eq!(scan.angles.len(), scan.distances.len());
                    assert!(scan.angles.is_sorted_by(|a, b| a < b));
                }
                Output::Write(_) | Output::Say(_) | Output::End => {}
            }
        }
    }
}

fn origin(number: u8) -> Origin {
    Origin {
        clients: vec![ClientId(number.into())],
        syn: Some(SynNum(number.into())),
        ..Origin::default()
    }
}
