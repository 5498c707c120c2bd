//! The destination of each frame.

use super::*;

#[test]
fn a_request_and_its_answer_are_routed() {
    let mut world = World::new(&["5:0"]);
    assert_eq!(
        world.request(A, "5:0", b"ask"),
        to_driver(0, b"\x1a\x01\x02", b"ask")
    );
    let answer = world.write(0, b"\x1a\x01\x02", b"answer");
    assert_eq!(answer, to_client(A, b"\x08\x05\x10\0", b"answer"));
}

#[test]
fn each_known_id_gets_a_copy_in_order_with_duplicates() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.request(B, "5:0", b"");
    let seen = world.write(0, b"\x1a\x05\x02\x03\x63\x02\x03", b"x");
    let ports: Vec<u16> = seen.clients.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [A, B, A, B]);
    assert_eq!(world.dropped(DropReason::UnknownClient), 1);
}

#[test]
fn a_client_that_one_frame_names_very_often_gets_a_bounded_number_of_copies() {
    let most = 1 + limits::REPEATED_COPIES;
    // The ids of A, B and two unused ones, each many times.
    for order in [[2, 3, 90, 91], [91, 3, 2, 90], [3, 3, 3, 2]] {
        let mut world = World::new(&["5:0"]);
        world.request(A, "5:0", b"");
        world.request(B, "5:0", b"");
        let ids: Vec<u8> = std::iter::repeat_n(order, 4000).flatten().collect();
        let mut header = vec![0x1a];
        prost::encoding::encode_varint(ids.len() as u64, &mut header);
        header.extend(&ids);
        let copies = world.write(0, &header, b"x").clients.len();
        assert!((2..=most + 1).contains(&copies), "{copies}");
        let refused = world.dropped(DropReason::DuplicateClient);
        assert!(refused >= (ids.len() - 4 - limits::REPEATED_COPIES) as u64);
    }
}

#[test]
fn every_one_of_many_clients_gets_its_copy() {
    let clients = 10 * limits::REPEATED_COPIES as u16;
    let mut world = World::with_clients(&["5:0"], clients.into());
    let mut ids = Vec::new();
    for port in 0..clients {
        world.request(1000 + port, "5:0", b"");
        ids.push(i32::from(port) + 2);
    }
    // In another order, with a few duplicates.
    ids.reverse();
    ids.extend([2, 2, 3]);
    let mut packed = Vec::new();
    for id in &ids {
        prost::encoding::encode_varint(*id as u64, &mut packed);
    }
    let mut header = vec![0x1a];
    prost::encoding::encode_varint(packed.len() as u64, &mut header);
    header.extend(packed);
    assert_eq!(world.write(0, &header, b"x").clients.len(), ids.len());
    assert_eq!(world.dropped(DropReason::DuplicateClient), 0);
}

#[test]
fn a_frame_without_known_receivers_is_not_kept() {
    let mut world = World::new(&["dummy:0"]);
    let header = header(None, Some(99));
    let parsed = Header::parse(&header).unwrap();
    let frame = Frame {
        header: &header,
        message: b"x",
    };
    let key = world.keys[0];
    world.router.driver_frame(
        world.now,
        key,
        &parsed,
        frame,
        None,
        &mut { Portion::WHOLE },
        &mut world.out,
    );
    assert_eq!(world.out.datagrams().len(), 0);
    assert!(!world.out.is_empty(), "the caller sends and clears it");
}

#[test]
fn drivers_send_requests_to_drivers() {
    let mut world = World::new(&["5:0", "77:3"]);
    let asked = world.write(1, &header(Some(device("5:0")), None), b"ask");
    assert_eq!(asked, to_driver(0, &header(None, Some(2)), b"ask"));
    let answered = world.write(0, &header(None, Some(2)), b"answer");
    assert_eq!(
        answered,
        to_driver(1, &header(Some(device("5:0")), None), b"answer")
    );
}

#[test]
fn one_publication_reaches_clients_and_drivers() {
    let mut world = World::new(&["5:0", "77:3"]);
    world.request(A, "5:0", b"");
    world.write(1, &header(Some(device("5:0")), None), b"");
    let seen = world.write(0, b"\x1a\x02\x03\x02", b"x");
    assert_eq!(seen.clients, [(A, frame(b"\x08\x05\x10\0", b"x"))]);
    assert_eq!(
        seen.drivers,
        [(1, b"\x08\x05\x10\0".to_vec(), b"x".to_vec())]
    );
}

#[test]
fn frames_of_a_driver_with_several_devices_name_the_device() {
    let mut world = World::new(&["5:0,5:1"]);
    let both = header(Some(device("5:1")), Some(2));
    assert_eq!(world.request(A, "5:1", b"ask"), to_driver(0, &both, b"ask"));
    let answer = to_client(A, &header(Some(device("5:1")), None), b"answer");
    assert_eq!(world.write(0, &both, b"answer"), answer);
    for wrong in [header(None, Some(2)), header(Some(device("6:0")), Some(2))] {
        assert_eq!(world.write(0, &wrong, b"answer"), Seen::default());
    }
    assert_eq!(world.dropped(DropReason::WrongDevice), 2);
}

#[test]
fn huge_and_negative_numbers_and_id_0_are_routed() {
    for text in ["5:0", "-4:2147483647", "-2147483648:-1", "2147483647:0"] {
        let mut world = World::new(&[text]);
        assert_eq!(
            world.request(A, text, b"q"),
            to_driver(0, b"\x1a\x01\x02", b"q")
        );
        let answer = to_client(A, &header(Some(device(text)), None), b"a");
        assert_eq!(world.write(0, b"\x1a\x01\x02", b"a"), answer);
    }
}

#[test]
fn message_bytes_do_not_matter() {
    let mut world = World::new(&["5:0"]);
    for message in [&b""[..], b"\xff\xff\xff", b"not protobuf", b"\x10\x04"] {
        assert_eq!(
            world.request(A, "5:0", message),
            to_driver(0, b"\x1a\x01\x02", message)
        );
        let answer = to_client(A, b"\x08\x05\x10\0", message);
        assert_eq!(world.write(0, b"\x1a\x01\x02", message), answer);
    }
}

#[test]
fn parts_of_32767_bytes_pass_and_longer_ones_are_counted() {
    let mut world = World::new(&["5:0"]);
    let (longest, longer) = (vec![7; MAX_PART], vec![7; MAX_PART + 1]);
    assert_eq!(
        world.request(A, "5:0", &longest).drivers[0].2.len(),
        MAX_PART
    );
    assert_eq!(
        world.write(0, b"\x1a\x01\x02", &longest).clients[0].1.len(),
        MAX_PART + 8
    );
    assert_eq!(world.write(0, b"\x1a\x01\x02", &longer), Seen::default());
    assert_eq!(world.dropped(DropReason::DriverTooLong), 1);

    let mut datagram = b"\0\x04\x08\x05\x10\0\x80\0".to_vec();
    datagram.extend(&longer);
    assert_eq!(world.datagram(A, &datagram), Seen::default());
    assert_eq!(world.dropped(DropReason::DatagramTooLong), 1);
    assert_eq!(
        world.request(A, "5:0", b"on").drivers.len(),
        1,
        "nothing else is affected"
    );
}

#[test]
fn long_and_unusual_client_headers_are_rewritten() {
    let mut world = World::new(&["5:0"]);
    let mut long = b"\x08\x05\x10\0\x4a\xf8\xff\x01".to_vec();
    long.resize(long.len() + 32_760, 1);
    assert_eq!(long.len(), 32_768);
    let mut datagram = b"\x80\0".to_vec();
    datagram.extend(&long);
    datagram.extend(b"\0\x01m");
    assert_eq!(
        world.datagram(A, &datagram),
        to_driver(0, b"\x1a\x01\x02", b"m")
    );
}

#[test]
fn malformed_datagrams_change_only_their_counter() {
    let mut world = World::new(&["5:0"]);
    for (bytes, why) in [
        (&b""[..], DropReason::DatagramEmpty),
        (b"\0", DropReason::DatagramShort),
        (b"\0\x09\x08\x05", DropReason::DatagramHeaderLength),
        (b"\0\0\0\x09xx", DropReason::DatagramMessageLength),
        (b"\0\0\0\0xx", DropReason::DatagramTrailing),
        (b"\0\x02\x08\xff\0\0", DropReason::DatagramHeader),
    ] {
        let before = world.dropped(why);
        assert_eq!(world.datagram(A, bytes), Seen::default());
        assert_eq!(world.dropped(why), before + 1, "{why:?}");
    }
    assert_eq!(world.router.clients.len(), 0, "they make no client known");
    let no_port = client(0);
    let bytes = frame(&header(Some(device("5:0")), None), b"x");
    world
        .router
        .datagram(world.now, no_port, &bytes, &mut world.out);
    assert_eq!(world.dropped(DropReason::DatagramSource), 1);
}
