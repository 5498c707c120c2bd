//! Messages as documented, what is accepted and dropped, and the limits.

use proptest::prelude::*;

use super::*;

fn id(text: &str) -> ClientId {
    text.to_owned().try_into().unwrap()
}

#[track_caller]
fn check(text: &str, message: &Message) {
    assert_eq!(Message::decode(text.as_bytes()).as_ref(), Ok(message));
    assert_eq!(String::from_utf8(message.encode()).unwrap(), text);
}

#[test]
fn all_messages() {
    check(
        r#"{"type":"control_command","data":{"command":"forward","timestamp":1632739200}}"#,
        &Message::ControlCommand {
            command: Command::Forward,
            timestamp: 1_632_739_200,
        },
    );
    check(
        r#"{"type":"register","data":{"client_type":"robot","client_id":"r1"}}"#,
        &Message::Register {
            client_type: Role::Robot,
            client_id: id("r1"),
            secret: None,
        },
    );
    check(
        r#"{"type":"register","data":{"client_type":"control","client_id":"c1","secret":"s"}}"#,
        &Message::Register {
            client_type: Role::Control,
            client_id: id("c1"),
            secret: Some(Secret("s".into())),
        },
    );
    check(
        r#"{"type":"heartbeat","data":{"client_type":"control","client_id":"c1","timestamp":5}}"#,
        &Message::Heartbeat {
            client_type: Role::Control,
            client_id: id("c1"),
            timestamp: 5,
        },
    );
    check(
        r#"{"type":"image_data","data":{"image":"iVBORw0KGgo=","timestamp":200}}"#,
        &Message::ImageData {
            image: "iVBORw0KGgo=".into(),
            timestamp: 200,
        },
    );
    check(
        r#"{"type":"image_fragment","data":{"sequence":1,"total":3,"image":"aGk=","timestamp":200}}"#,
        &Message::ImageFragment {
            sequence: 1,
            total: 3,
            image: "aGk=".into(),
            timestamp: 200,
        },
    );
    check(
        r#"{"type":"ack","data":{"of":"heartbeat","client_id":"c1","timestamp":5}}"#,
        &Message::Ack {
            of: "heartbeat".into(),
            client_id: id("c1"),
            timestamp: 5,
        },
    );
}

#[test]
fn accepted_as_by_the_original_server() {
    let forward = Message::ControlCommand {
        command: Command::Forward,
        timestamp: 1,
    };
    for text in [
        // Another order of keys.
        r#"{"data":{"timestamp":1,"command":"forward"},"type":"control_command"}"#,
        // Unknown keys, blanks, and the line feed of nc.
        "{\"type\":\"control_command\",\"x\":[1],\"data\":{\"command\":\"forward\",\"timestamp\":1,\"y\":{}}}",
        "  { \"type\" : \"control_command\", \"data\":{\"command\":\"forward\",\"timestamp\":1}}\r\n ",
        // Escapes.
        r#"{"type":"control\u005fcommand","data":{"command":"f\u006frward","timestamp":1}}"#,
    ] {
        assert_eq!(
            Message::decode(text.as_bytes()).as_ref(),
            Ok(&forward),
            "{text}"
        );
    }
    let milliseconds =
        r#"{"type":"control_command","data":{"command":"left","timestamp":18446744073709551615}}"#;
    assert!(Message::decode(milliseconds.as_bytes()).is_ok());
}

#[test]
fn dropped_as_by_the_original_server() {
    let good = r#"{"type":"control_command","data":{"command":"forward","timestamp":1}}"#;
    assert!(Message::decode(good.as_bytes()).is_ok());
    for text in [
        "",
        "{}",
        "null",
        "[]",
        "nonsense",
        "{\"type\":\"control_command\",\"data\":{\"command\":\"forward\",\"timestamp\":1}}\0",
        "\u{feff}{\"type\":\"control_command\",\"data\":{\"command\":\"forward\",\"timestamp\":1}}",
        r#"{"type":"control_command","data":{"command":"forward","timestamp":1}}{}"#,
        r#"{"type":"control_command","data":{"command":"forward","timestamp":-1}}"#,
        r#"{"type":"control_command","data":{"command":"forward","timestamp":1.5}}"#,
        r#"{"type":"control_command","data":{"command":"forward","timestamp":1.0}}"#,
        r#"{"type":"control_command","data":{"command":"forward","timestamp":"1"}}"#,
        r#"{"type":"control_command","data":{"command":"forward","timestamp":18446744073709551616}}"#,
        r#"{"type":"control_command","data":{"command":"forward"}}"#,
        r#"{"type":"control_command","data":{"command":"Forward","timestamp":1}}"#,
        r#"{"type":"control_command","data":{"command":"stop","timestamp":1}}"#,
        r#"{"type":"control_command"}"#,
        r#"{"type":"Control_Command","data":{"command":"forward","timestamp":1}}"#,
        r#"{"type":"unregister","data":{"client_type":"robot","client_id":"r1"}}"#,
        r#"{"type":"register","data":{"client_type":"boss","client_id":"r1"}}"#,
        r#"{"type":"register","data":{"client_type":"robot","client_id":7}}"#,
    ] {
        let bad = Message::decode(text.as_bytes());
        assert!(matches!(bad, Err(BadMessage::Json(_))), "{text}: {bad:?}");
    }
    let latin1 =
        b"{\"type\":\"register\",\"data\":{\"client_type\":\"robot\",\"client_id\":\"\xe9\"}}";
    assert!(Message::decode(latin1).is_err());
}

#[test]
fn client_ids_are_bounded() {
    let register = |id: &str| {
        let id = serde_json::to_string(id).unwrap();
        let text =
            format!(r#"{{"type":"register","data":{{"client_type":"robot","client_id":{id}}}}}"#);
        Message::decode(text.as_bytes()).is_ok()
    };
    for good in ["a", "robot 1", "żółw", &"a".repeat(64)] {
        assert!(register(good), "{good}");
    }
    for bad in [
        "",
        &"a".repeat(65),
        &"ż".repeat(33),
        "a\nb",
        "a\0",
        "\u{1b}[31m",
    ] {
        assert!(!register(bad), "{bad:?}");
    }
}

#[test]
fn fragment_numbers_are_checked() {
    let fragment = |sequence: u32, total: u32| {
        let text = format!(
            r#"{{"type":"image_fragment","data":{{"sequence":{sequence},"total":{total},"image":"","timestamp":0}}}}"#
        );
        Message::decode(text.as_bytes()).map(|_| ())
    };
    for (sequence, total) in [(1, 1), (3, 3), (1024, 1024)] {
        assert_eq!(fragment(sequence, total), Ok(()));
    }
    for (sequence, total) in [(0, 0), (0, 1), (2, 1), (1, 1025), (1, u32::MAX)] {
        assert_eq!(
            fragment(sequence, total),
            Err(BadMessage::Fragment { sequence, total })
        );
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let image = |length: usize| {
        let image = "A".repeat(length);
        format!(r#"{{"type":"image_data","data":{{"image":"{image}","timestamp":0}}}}"#)
    };
    let longest = image(MAX_DATAGRAM - image(0).len());
    assert!(Message::decode(longest.as_bytes()).is_ok());
    let too_long = image(MAX_DATAGRAM - image(0).len() + 1);
    let error = Message::decode(too_long.as_bytes()).unwrap_err();
    assert_eq!(error, BadMessage::TooLong(MAX_DATAGRAM + 1));

    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text = format!(
            r#"{{"x":{open}{close},"type":"control_command","data":{{"command":"left","timestamp":0}}}}"#
        );
        Message::decode(text.as_bytes())
    };
    assert!(nested(MAX_DEPTH - 1).is_ok());
    assert_eq!(nested(MAX_DEPTH), Err(BadMessage::TooDeep));
    assert_eq!(nested(30_000), Err(BadMessage::TooDeep));
    let in_string = r#"{"type":"image_data","data":{"image":"\"[[[[[[[[[[[[{{{{{","timestamp":0}}"#;
    assert!(Message::decode(in_string.as_bytes()).is_ok());
}

#[test]
fn secrets_are_compared_and_not_shown() {
    let secret = |text: &str| Secret::try_from(text.to_owned()).unwrap();
    assert_eq!(secret("open"), secret("open"));
    for other in ["", "oper", "open ", "xpen"] {
        assert_ne!(secret("open"), secret(other));
    }
    assert!(!format!("{:?}", secret("open")).contains("open"));
    assert!(Secret::try_from("a".repeat(257)).is_err());
}

proptest! {
    #[test]
    fn round_trip(
        client_id in "[^\\p{Cc}]{1,16}",
        image in "[A-Za-z0-9+/=\"\\\\]{0,200}",
        timestamp in any::<u64>(),
        total in 1..=MAX_FRAGMENTS,
        part in any::<u32>(),
        role in prop::sample::select(&[Role::Control, Role::Robot][..]),
    ) {
        let (client_id, sequence) = (id(&client_id), part % total + 1);
        let secret = (part % 2 == 0).then(|| Secret(image.clone()));
        for message in [
            Message::Register { client_type: role, client_id: client_id.clone(), secret },
            Message::Heartbeat { client_type: role, client_id, timestamp },
            Message::ImageData { image: image.clone(), timestamp },
            Message::ImageFragment { sequence, total, image, timestamp },
        ] {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn no_input_panics(text in "[\\[\\]{}:,\"\\\\a-e0-2 ]{0,60}") {
        let _ = Message::decode(text.as_bytes());
    }
}
