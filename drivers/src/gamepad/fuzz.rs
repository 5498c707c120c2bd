//! Fuzz target: the logic of the driver, with a gamepad that sends anything at any time. IO: it reads
//! the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_gamepad::Event;
use amber_proto::gamepad::GamepadState;

use super::Options;
use super::logic::{GamepadLogic, Output};
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[("gamepad_driver", driver)];

fn driver(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    let settings = Options::default().settings();
    let (settings, _) = settings.expect("the defaults are good");
    let mut logic = GamepadLogic::new(settings, now);
    let mut opened = false;
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.byte().into()),
            1 => now += Duration::from_millis(u64::from(input.byte()) * 100),
            2 if opened => logic.failed(now, "unplugged"),
            3 => logic.handle_timeout(now),
            4 if opened => logic.handle_bytes(now, input.piece()),
            5 if input.byte() == 0 => logic.shut_down(),
            // An event.
            _ if opened => {
                let event = Event {
                    kind: (input.byte() % 4).into(),
                    code: input.number(),
                    value: i32::from(input.number()) - 32_768,
                };
                logic.handle_bytes(now, &event.bytes());
            }
            _ => {}
        }
        check(&logic.state(now));
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
                Output::Publish(state) => check(&state),
                Output::Say(_) | Output::End => {}
            }
        }
    }
}

/// Nothing is out of its range, and nothing is held without a gamepad.
fn check(state: &GamepadState) {
    for axis in [
        state.left_x(),
        state.left_y(),
        state.right_x(),
        state.right_y(),
    ] {
        assert!((-1.0..=1.0).contains(&axis), "{state:?}");
    }
    for trigger in [state.left_trigger(), state.right_trigger()] {
        assert!((0.0..=1.0).contains(&trigger), "{state:?}");
    }
    assert_eq!(state.buttons().count(), state.buttons.len(), "{state:?}");
    let rest = GamepadState {
        connected: Some(false),
        trouble: state.trouble.clone(),
        ..GamepadState::default()
    };
    assert!(state.connected() || *state == rest, "{state:?}");
}
