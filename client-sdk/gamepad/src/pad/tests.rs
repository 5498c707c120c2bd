//! Tests of the state of a gamepad.

use proptest::prelude::*;

use super::*;
use crate::event::REPORT;

const LEFT_SHOULDER: u16 = 0x136;
const X: u16 = 0;
const Y: u16 = 1;
/// As an Xbox pad, and as a PlayStation pad.
const WIDE: Range = Range {
    min: -32_768,
    max: 32_767,
    flat: 128,
};
const BYTE: Range = Range {
    min: 0,
    max: 255,
    flat: 0,
};

fn event(kind: u16, code: u16, value: i32) -> Event {
    Event { kind, code, value }
}

fn pad(range: Range, codes: &[u16], held: &[u16]) -> Pad {
    let description = Description {
        name: "a pad".to_owned(),
        vendor: 0,
        axes: codes.iter().map(|code| (*code, range)).collect(),
        held: held.to_vec(),
    };
    Pad::new(description, DEAD_ZONE)
}

fn buttons(pad: &Pad) -> Vec<Button> {
    pad.state().buttons().collect()
}

#[test]
fn the_stick_counts_from_the_edge_of_its_rest() {
    for (range, rest, up, half) in [(WIDE, 0, -32_768, -18_350), (BYTE, 128, 0, 56)] {
        let mut pad = pad(range, &[X, Y], &[]);
        pad.handle(event(ABS, Y, rest));
        pad.handle(event(ABS, X, rest));
        let state = pad.state();
        assert_eq!((state.left_x, state.left_y), (Some(0.0), Some(0.0)));
        assert!(state.left_x().is_sign_positive());
        pad.handle(event(ABS, Y, up));
        let state = pad.state();
        assert!(state.left_x().abs() < 0.01, "{state:?}");
        assert!((state.left_y() - 1.0).abs() < 0.01, "{state:?}");
        // Half of the way behind the rest.
        pad.handle(event(ABS, Y, half));
        let state = pad.state();
        assert!((state.left_y() - 0.5).abs() < 0.01, "{state:?}");
    }
}

#[test]
fn each_axis_has_its_place() {
    for (code, value, place) in [
        (0x00, 255, 0),
        (0x01, 0, 1),
        (0x03, 255, 2),
        (0x04, 0, 3),
        (0x02, 255, 4),
        (0x15, 255, 4),
        (0x05, 255, 5),
        (0x14, 255, 5),
    ] {
        let is_trigger = place > 3;
        let mut pad = pad(BYTE, &[0, 1, 3, 4, code], &[]);
        for code in [0, 1, 3, 4] {
            pad.handle(event(ABS, code, 128));
        }
        pad.handle(event(ABS, code, if is_trigger { 0 } else { 128 }));
        pad.handle(event(ABS, code, value));
        let state = pad.state();
        let all = [
            state.left_x,
            state.left_y,
            state.right_x,
            state.right_y,
            state.left_trigger,
            state.right_trigger,
        ];
        for (index, found) in all.iter().copied().enumerate() {
            let expected = match index == place {
                true => Some(1.0),
                false if index < 4 => Some(0.0),
                false => None,
            };
            // 128 is not quite the centre.
            let is_near = found
                .zip(expected)
                .is_none_or(|(a, b)| (a - b).abs() < 0.01);
            assert!(
                is_near && found.is_some() == expected.is_some(),
                "{code:#x} {all:?}"
            );
        }
    }
}

#[test]
fn a_stick_that_is_moved_at_the_start_does_not_count_before_it_was_at_rest() {
    let mut pad = pad(BYTE, &[X, Y], &[]);
    pad.handle(event(ABS, Y, 0));
    assert_eq!(pad.state().left_y, Some(0.0));
    pad.handle(event(ABS, Y, 127));
    pad.handle(event(ABS, Y, 0));
    assert_eq!(pad.state().left_y, Some(1.0));
    // The other axis has not said anything yet.
    pad.handle(event(ABS, X, 255));
    let state = pad.state();
    assert_eq!((state.left_x, state.left_y), (Some(0.0), Some(1.0)));
    assert_eq!(state.right_x, None);
}

#[test]
fn a_button_that_is_held_at_the_start_counts_after_its_release() {
    let mut pad = pad(WIDE, &[], &[LEFT_SHOULDER]);
    let pressed = |value| event(KEY, LEFT_SHOULDER, value);
    let held = [Button::LeftShoulder];
    pad.handle(pressed(1));
    assert_eq!(buttons(&pad), []);
    pad.handle(pressed(0));
    pad.handle(pressed(1));
    assert_eq!(buttons(&pad), held);
    // Some events were lost: perhaps that of its release.
    pad.handle(event(SYN, DROPPED, 0));
    assert_eq!(buttons(&pad), []);
    pad.handle(pressed(1));
    assert_eq!(buttons(&pad), [], "a repeated press");
    pad.handle(pressed(0));
    pad.handle(pressed(1));
    assert_eq!(buttons(&pad), held);
}

#[test]
fn each_button_has_its_place() {
    use Button::*;
    for (code, by_label, by_place) in [
        (0x130, South, South),
        (0x131, East, East),
        (0x133, West, North),
        (0x134, North, West),
        (0x136, LeftShoulder, LeftShoulder),
        (0x137, RightShoulder, RightShoulder),
        (0x13A, Select, Select),
        (0x13B, Start, Start),
        (0x13C, Mode, Mode),
        (0x13D, LeftStick, LeftStick),
        (0x13E, RightStick, RightStick),
        (0x220, Up, Up),
        (0x221, Down, Down),
        (0x222, Left, Left),
        (0x223, Right, Right),
    ] {
        for (vendor, expected) in [(0x045E, by_label), (0x054C, by_place), (0x057E, by_place)] {
            let description = Description {
                vendor,
                ..Description::default()
            };
            let mut pad = Pad::new(description, DEAD_ZONE);
            pad.handle(event(KEY, code, 1));
            assert_eq!(buttons(&pad), [expected], "{code:#x} {vendor:#x}");
            pad.handle(event(KEY, code, 0));
            assert_eq!(buttons(&pad), []);
        }
    }
}

#[test]
fn the_direction_pad_is_four_buttons() {
    let mut pad = pad(WIDE, &[], &[]);
    for (code, value, expected) in [
        (0x10, -1, vec![Button::Left]),
        (0x10, 1, vec![Button::Right]),
        (0x11, -1, vec![Button::Up, Button::Right]),
        (0x10, 0, vec![Button::Up]),
        (0x11, 1, vec![Button::Down]),
        (0x11, 0, vec![]),
    ] {
        pad.handle(event(ABS, code, value));
        assert_eq!(buttons(&pad), expected, "{code:#x} {value}");
    }
}

#[test]
fn triggers_without_an_axis_are_buttons() {
    let mut none = pad(BYTE, &[], &[]);
    assert_eq!(none.state().left_trigger, None);
    none.handle(event(KEY, 0x138, 1));
    assert_eq!(none.state().left_trigger, Some(1.0));
    none.handle(event(KEY, 0x138, 0));
    assert_eq!(none.state().left_trigger, Some(0.0));
    // A PlayStation pad has both.
    let mut both = pad(BYTE, &[0x05], &[]);
    both.handle(event(ABS, 0x05, 0));
    both.handle(event(ABS, 0x05, 142));
    both.handle(event(KEY, 0x139, 1));
    let state = both.state();
    assert!((state.right_trigger() - 0.496).abs() < 0.002, "{state:?}");
}

proptest! {
    #[test]
    fn nothing_is_out_of_its_range(
        axes: [(i32, i32, i32); 6],
        events in proptest::collection::vec((0..4_u16, 0..0x230_u16, -40_000..40_000), 0..60),
        is_pressed: bool,
    ) {
        let codes = [0, 1, 3, 4, 2, 5];
        let axes = axes.into_iter().zip(codes).map(|((min, max, flat), code)| {
            (code, Range { min, max, flat })
        });
        let held = if is_pressed { vec![LEFT_SHOULDER] } else { Vec::new() };
        let description = Description { axes: axes.collect(), held, ..Description::default() };
        let mut pad = Pad::new(description, DEAD_ZONE);
        let (mut may_hold, mut was_up) = (false, !is_pressed);
        for (kind, code, value) in events {
            pad.handle(event(kind, code, value));
            pad.handle(event(SYN, REPORT, 0));
            match (kind, code, value) {
                (KEY, LEFT_SHOULDER, 0) => (may_hold, was_up) = (false, true),
                (KEY, LEFT_SHOULDER, _) => may_hold = was_up,
                (SYN, DROPPED, _) => (may_hold, was_up) = (false, false),
                _ => {}
            }
            let state = pad.state();
            let is_held = state.buttons().any(|it| it == Button::LeftShoulder);
            prop_assert_eq!(is_held, may_hold);
            prop_assert!(state.left_x().hypot(state.left_y()) <= 1.002);
            prop_assert!(state.right_x().hypot(state.right_y()) <= 1.002);
            for trigger in [state.left_trigger(), state.right_trigger()] {
                prop_assert!((0.0..=1.0).contains(&trigger));
            }
        }
    }
}
