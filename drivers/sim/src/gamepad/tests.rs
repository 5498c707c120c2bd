//! Tests of the gamepad through its bytes.

use serde_json::Value;

use super::*;

const MODELS: [Model; 3] = [Model::Xbox, Model::Playstation, Model::Switch];

fn hold(gamepad: &mut Gamepad, now: Duration, parts: &[&str]) {
    let held: Vec<Hold> = parts.iter().map(|part| part.parse().unwrap()).collect();
    gamepad.hold(now, &held);
}

/// The events until a time, without the ends of reports.
fn events(gamepad: &mut Gamepad, until: Duration) -> Vec<(u16, u16, i32)> {
    gamepad.handle_timeout(until);
    let bytes: Vec<u8> = std::iter::from_fn(|| gamepad.poll_output())
        .flatten()
        .collect();
    let events = bytes.chunks_exact(24).map(|event| {
        let [.., a, b, c, d, e, f, g, h] = *event else {
            panic!("24 bytes");
        };
        assert_eq!(event[..16], [0; 16]);
        (
            u16::from_ne_bytes([a, b]),
            u16::from_ne_bytes([c, d]),
            i32::from_ne_bytes([e, f, g, h]),
        )
    });
    events.filter(|event| *event != (SYN, 0, 0)).collect()
}

/// One that was opened, and said what it is.
fn open(model: Model) -> (Gamepad, Value) {
    let mut gamepad = Gamepad::new(model);
    gamepad.handle_bytes(b"\n");
    let said = gamepad.poll_output().unwrap();
    (gamepad, serde_json::from_slice(&said).unwrap())
}

#[test]
fn each_model_has_its_axes() {
    for (model, vendor, range, trigger) in [
        (Model::Xbox, 0x045E, [-32_768, 32_767], Some(1_023)),
        (Model::Playstation, 0x054C, [0, 255], Some(255)),
        (Model::Switch, 0x057E, [-32_767, 32_767], None),
    ] {
        let (mut gamepad, said) = open(model);
        assert_eq!(said["vendor"], vendor);
        assert_eq!(said["held"], serde_json::json!([]));
        for stick in ["0", "1", "3", "4"] {
            let axis = &said["axes"][stick];
            assert_eq!(
                [&axis["min"], &axis["max"]],
                [range[0], range[1]].map(Value::from).each_ref()
            );
        }
        assert_eq!(said["axes"]["5"]["max"].as_i64(), trigger);
        // Up is the smallest value.
        hold(&mut gamepad, Duration::ZERO, &["left-y=1", "left-x=1"]);
        let events = events(&mut gamepad, Duration::from_millis(100));
        let last = |code| events.iter().rfind(|event| event.1 == code).copied();
        assert_eq!(last(1), Some((ABS, 1, range[0])), "{model:?}");
        assert_eq!(last(0), Some((ABS, 0, range[1])), "{model:?}");
    }
}

#[test]
fn a_stick_moves_as_a_hand_moves_it_and_trembles() {
    let (mut gamepad, _) = open(Model::Playstation);
    assert_eq!(gamepad.next_timeout(), None);
    hold(&mut gamepad, Duration::ZERO, &["left-x=0.5"]);
    let first = events(&mut gamepad, REPORT);
    assert_eq!(first, [(ABS, 0, 141)], "within the rest of a stick");
    let moved = events(&mut gamepad, Duration::from_millis(50));
    assert_eq!(moved.last(), Some(&(ABS, 0, 192)));
    let trembled = events(&mut gamepad, Duration::from_secs(2));
    assert!((6..=8).contains(&trembled.len()), "{trembled:?}");
    assert!(
        trembled.iter().all(|it| (it.2 - 192).abs() <= 1),
        "{trembled:?}"
    );
    hold(&mut gamepad, Duration::from_secs(2), &[]);
    let released = events(&mut gamepad, Duration::from_secs(3));
    assert_eq!(released.last(), Some(&(ABS, 0, 128)));
    assert_eq!(gamepad.next_timeout(), None);
}

#[test]
fn buttons_have_the_codes_of_their_drivers() {
    for (part, xbox, others) in [
        ("south", 0x130, 0x130),
        ("west", 0x133, 0x134),
        ("north", 0x134, 0x133),
        ("left-shoulder", 0x136, 0x136),
        ("start", 0x13B, 0x13B),
    ] {
        for (model, code) in MODELS.into_iter().zip([xbox, others, others]) {
            let (mut gamepad, _) = open(model);
            hold(&mut gamepad, Duration::ZERO, &[part]);
            assert_eq!(events(&mut gamepad, Duration::ZERO), [(KEY, code, 1)]);
            gamepad.handle_bytes(b"\n");
            let said: Value = serde_json::from_slice(&gamepad.poll_output().unwrap()).unwrap();
            assert_eq!(said["held"], serde_json::json!([code]));
            hold(&mut gamepad, Duration::ZERO, &[]);
            assert_eq!(events(&mut gamepad, Duration::ZERO), [(KEY, code, 0)]);
        }
    }
}

#[test]
fn triggers_and_directions() {
    for (model, part, expected) in [
        (Model::Xbox, "right-trigger=1", vec![(ABS, 5, 1_023)]),
        (
            Model::Playstation,
            "right-trigger=1",
            vec![(KEY, 0x139, 1), (ABS, 5, 255)],
        ),
        (Model::Switch, "right-trigger=1", vec![(KEY, 0x139, 1)]),
        (Model::Xbox, "up", vec![(ABS, 0x11, -1)]),
        (Model::Switch, "right", vec![(ABS, 0x10, 1)]),
    ] {
        let (mut gamepad, _) = open(model);
        hold(&mut gamepad, Duration::ZERO, &[part]);
        let mut found = events(&mut gamepad, Duration::from_millis(100));
        // Only where each of them ends.
        found.reverse();
        found.sort_by_key(|event| (event.0, event.1));
        found.dedup_by_key(|event| (event.0, event.1));
        assert_eq!(found, expected, "{model:?} {part}");
    }
}

#[test]
fn nothing_is_sent_before_it_was_opened() {
    let mut gamepad = Gamepad::new(Model::Xbox);
    hold(&mut gamepad, Duration::ZERO, &["south", "left-y=1"]);
    assert_eq!(events(&mut gamepad, Duration::from_secs(1)), []);
    gamepad.handle_bytes(b"\n");
    assert!(gamepad.poll_output().is_some());
    gamepad.restart();
    hold(&mut gamepad, Duration::from_secs(1), &[]);
    assert_eq!(events(&mut gamepad, Duration::from_secs(2)), []);
}
