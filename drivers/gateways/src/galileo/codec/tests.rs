use proptest::prelude::*;

use super::*;
use crate::testing::unhex;

const ID: SessionId = SessionId([0x0a, 0x0b, 0x0c, 0x0d]);

fn session(op: Op<'_>) -> Vec<u8> {
    Frame::Session { id: ID, op }.encode()
}

#[test]
fn the_worked_packets_have_these_bytes() {
    let url = b"udp://192.168.0.132:3547/cmd_vel?token=28b1c5";
    let connect = "01 7564703a2f2f3139322e3136382e302e3133323a333534372f636d645f76656c3f746f6b656e3d\
                   323862316335 00";
    assert_eq!(Frame::Connect(url).encode(), unhex(connect));
    assert_eq!(Frame::decode(&unhex(connect)), Ok(Frame::Connect(url)));

    let accept = encode_reply(Some(ID));
    assert_eq!(accept.len(), 47);
    assert_eq!(accept[..6], unhex("020a0b0c0d01"));
    assert_eq!(
        &accept[6..],
        br#"{"status":true,"client_id":[10,11,12,13]}"#
    );
    assert_eq!(decode_reply(&accept), Some(Some(ID)));

    let text = session(Op::Text(br#"{"a":1}"#));
    assert_eq!(text[..6], unhex("020a0b0c0d01"));
    assert_eq!(&text[6..], br#"{"a":1}"#);
    let binary = encode_chunk(Some(0), b"ABC");
    assert_eq!(
        session(Op::Binary(&binary)),
        unhex("020a0b0c0d02 00000000 414243")
    );
    assert_eq!(session(Op::Ping), unhex("020a0b0c0d09"));
    assert_eq!(session(Op::Close), unhex("020a0b0c0d08"));
    assert_eq!(session(Op::Pong), unhex("020a0b0c0d0a"));
    for op in [
        Op::Ping,
        Op::Close,
        Op::Pong,
        Op::Continuation,
        Op::Text(b"{}"),
    ] {
        let frame = Frame::Session { id: ID, op };
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }
}

/// The table of the two known clients: how they split messages.
#[test]
fn data_is_split_as_the_known_clients_do() {
    for (length, pieces) in [
        (0, vec![0]),
        (3, vec![3]),
        (512, vec![512]),
        (513, vec![512, 1]),
        (1024, vec![512, 512]),
        (1300, vec![512, 512, 276]),
    ] {
        let data = vec![7; length];
        let split: Vec<_> = split(&data).map(<[u8]>::len).collect();
        assert_eq!(split, pieces, "{length}");
    }
    let frame = session(Op::Binary(&encode_chunk(Some(0), &[7; 512])));
    assert_eq!(frame.len(), 522);
    let empty = session(Op::Binary(&encode_chunk(Some(0), &[])));
    assert_eq!(empty.len(), 10);
}

#[test]
fn a_chunk_has_an_index_in_little_endian() {
    assert_eq!(
        decode_chunk(&unhex("01020000 414243")),
        Ok((513, &b"ABC"[..]))
    );
    assert_eq!(decode_chunk(&unhex("00000000")), Ok((0, &b""[..])));
    assert_eq!(decode_chunk(&unhex("000000")), Err(Bad::TooShort));
    // The document allows 1016 bytes.
    assert_eq!(decode_chunk(&[0; 4 + 1016]), Ok((0, &[0; 1016][..])));
    assert_eq!(decode_chunk(&[0; 4 + 1017]), Err(Bad::TooLong));
    assert_eq!(encode_chunk(None, b"ABC"), b"ABC");
}

#[test]
fn other_datagrams_are_bad() {
    let long = [&[1], &[b'a'; 1025][..]].concat();
    let long_text = [&unhex("020a0b0c0d01")[..], &[b'a'; 8193]].concat();
    for (bytes, bad) in [
        (unhex(""), Bad::TooShort),
        (unhex("02"), Bad::TooShort),
        (unhex("020a0b0c0d"), Bad::TooShort),
        (unhex("00"), Bad::UnknownType),
        (unhex("030a0b0c0d09"), Bad::UnknownType),
        (unhex("020a0b0c0d03"), Bad::UnknownOperation),
        (unhex("020a0b0c0dff"), Bad::UnknownOperation),
        (long, Bad::TooLong),
        (long_text, Bad::TooLong),
    ] {
        assert_eq!(Frame::decode(&bytes), Err(bad));
    }
}

#[test]
fn nuls_at_the_end_of_a_text_are_no_part_of_it() {
    let padded = [&unhex("020a0b0c0d01")[..], b"{}\0\0\0\0\0\0"].concat();
    let frame = Frame::Session {
        id: ID,
        op: Op::Text(b"{}"),
    };
    assert_eq!(Frame::decode(&padded), Ok(frame));
}

#[test]
fn replies_are_read_from_byte_6_or_0() {
    for (json, expected) in [
        (
            r#"{"status":true,"client_id":[10,11,12,13]}"#,
            Some(Some(ID)),
        ),
        (
            "{\"status\":true,\"client_id\":[10,11,12,13]}\0\0",
            Some(Some(ID)),
        ),
        (r#"{"status":false,"client_id":[]}"#, Some(None)),
        (r#"{"status":false}"#, Some(None)),
        (r#"{"status":true,"client_id":"CgsMDQ=="}"#, None),
        (r#"{"status":true,"client_id":[1,2,3]}"#, None),
        (r#"{"status":true,"client_id":[1,2,3,256]}"#, None),
        ("nonsense", None),
    ] {
        let prefixed = [&[2, 1, 2, 3, 4, 1], json.as_bytes()].concat();
        assert_eq!(decode_reply(&prefixed), expected, "{json}");
        assert_eq!(
            decode_reply(json.as_bytes()).flatten(),
            expected.flatten(),
            "{json}"
        );
    }
    assert_eq!(decode_reply(b""), None);
    assert_eq!(decode_reply(b"\x02\x01\x02"), None);
}

#[test]
fn addresses_have_path_and_token() {
    for (text, path, token) in [
        (
            "udp://192.168.0.132:3547/cmd_vel?token=28b1c5",
            "cmd_vel",
            Some("28b1c5"),
        ),
        ("UDP://robot:3547/cmd_vel?token=", "cmd_vel", Some("")),
        (
            "udp://robot:3547//galileo/status?token=undefined",
            "galileo/status",
            Some("undefined"),
        ),
        ("udp://robot/scan", "scan", None),
        ("udp://robot", "", None),
        (
            "udp://robot/a%2Fb?x=1&token=a%20b&token=c&&galileo_proxy_token=p",
            "a/b",
            Some("a b"),
        ),
        ("udp:///%2Fscan?token=100%&x", "scan", Some("100%")),
    ] {
        let url = Url::parse(text.as_bytes()).unwrap();
        assert_eq!(url.path, path, "{text}");
        assert_eq!(url.parameter("token"), token, "{text}");
    }
    let path = "a".repeat(129);
    for text in [
        "http://robot/scan",
        "udp:/",
        "",
        "udp://robot/sc an",
        "udp://robot/scan%00",
        "udp://robot/\u{fc}",
        &format!("udp://robot/{path}"),
    ] {
        assert_eq!(Url::parse(text.as_bytes()), Err(Bad::Url), "{text}");
    }
    assert_eq!(Url::parse(b"udp://robot/\xff"), Err(Bad::Url));
}

#[test]
fn tokens_and_ids_are_not_in_debug_output() {
    let url = Url::parse(b"udp://robot/scan?token=secret").unwrap();
    assert_eq!(format!("{url:?}"), "udp://robot/scan");
    assert_eq!(format!("{ID:?}"), "SessionId(..)");
}

proptest! {
    #[test]
    fn what_is_read_is_written_with_the_same_meaning(bytes: Vec<u8>) {
        if let Ok(frame) = Frame::decode(&bytes) {
            let again = frame.encode();
            prop_assert_eq!(Frame::decode(&again), Ok(frame));
        }
        let _ = Url::parse(&bytes);
        let _ = decode_reply(&bytes);
    }

    #[test]
    fn addresses_never_panic(text in "(?i)udp://[a-z0-9.:]{0,9}/{0,3}[a-z%0-9A-F/_.-]{0,20}\\?.{0,30}") {
        let _ = Url::parse(text.as_bytes());
    }
}
