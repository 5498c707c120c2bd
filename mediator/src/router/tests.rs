use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::limits;

/// A router with drivers that have one device each, or several, and what came out.
struct World {
    router: Router,
    out: Outbox,
    now: Instant,
    keys: Vec<DriverKey>,
}

/// What came out of one input, in readable form.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Client's port and its datagram.
    clients: Vec<(u16, Vec<u8>)>,
    /// Driver, header and message.
    drivers: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

const A: u16 = 1001;
const B: u16 = 1002;

fn client(port: u16) -> ClientAddress {
    ClientAddress {
        socket: 0,
        address: (Ipv4Addr::LOCALHOST, port).into(),
    }
}

fn device(text: &str) -> Device {
    text.parse().unwrap()
}

fn header(device: Option<Device>, client: Option<i32>) -> Vec<u8> {
    HeaderBytes::new(device, client.map(ClientId))
        .as_slice()
        .to_vec()
}

fn frame(header: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { header, message }.encode(&mut bytes).unwrap();
    bytes
}

impl World {
    /// Drivers with their devices, separated by commas; ids count from 1.
    fn new(drivers: &[&str]) -> Self {
        Self::with_clients(drivers, 100)
    }

    fn with_clients(drivers: &[&str], clients: usize) -> Self {
        let mut router = Router::new(NonZeroUsize::new(clients).unwrap(), Bounds::default());
        let mut keys = Vec::new();
        for (i, devices) in drivers.iter().enumerate() {
            let key = DriverKey(i as u32);
            router.add_driver(key, devices.split(',').map(device).collect());
            keys.push(key);
        }
        for key in &keys {
            router.driver_up(*key);
        }
        Self {
            router,
            out: Outbox::default(),
            now: Instant::now(),
            keys,
        }
    }

    /// A client sends a datagram.
    fn datagram(&mut self, port: u16, bytes: &[u8]) -> Seen {
        let for_mediator = self
            .router
            .datagram(self.now, client(port), bytes, &mut self.out)
            .is_some();
        let seen = self.seen();
        assert!(!for_mediator || seen == Seen::default());
        seen
    }

    /// A client sends a message to a device.
    fn request(&mut self, port: u16, to: &str, message: &[u8]) -> Seen {
        self.datagram(port, &frame(&header(Some(device(to)), None), message))
    }

    /// A driver writes a frame.
    fn write(&mut self, driver: usize, header: &[u8], message: &[u8]) -> Seen {
        let key = self.keys[driver];
        let parsed = Header::parse(header).unwrap();
        let frame = Frame { header, message };
        self.router.driver_frame(key, &parsed, frame, &mut self.out);
        self.seen()
    }

    fn announce(&mut self, port: u16) -> ClientId {
        self.router
            .announce(self.now, Sender::Client(client(port)))
            .unwrap()
    }

    fn driver_down(&mut self, driver: usize) -> Seen {
        self.router.driver_down(self.keys[driver], &mut self.out);
        self.seen()
    }

    fn seen(&mut self) -> Seen {
        let mut seen = Seen::default();
        for (to, bytes) in self.out.datagrams() {
            seen.clients.push((to.address.port(), bytes.to_vec()));
        }
        self.out.clear();
        let mut dirty = Vec::new();
        while let Some(key) = self.router.poll_dirty() {
            dirty.push(key);
        }
        dirty.sort();
        for key in dirty {
            let driver = self.keys.iter().position(|k| *k == key).unwrap();
            let queue = self.router.queue_mut(key).unwrap();
            let bytes = queue.chunk().to_vec();
            queue.wrote(bytes.len());
            let mut rest = &bytes[..];
            while let Some(frame) = Frame::from_stream(rest) {
                seen.drivers
                    .push((driver, frame.header.to_vec(), frame.message.to_vec()));
                rest = &rest[frame.wire_len()..];
            }
            assert!(rest.is_empty());
        }
        seen
    }

    fn dropped(&self, why: Drop) -> u64 {
        self.router.counters.dropped(why)
    }
}

fn to_driver(driver: usize, header: &[u8], message: &[u8]) -> Seen {
    Seen {
        drivers: vec![(driver, header.to_vec(), message.to_vec())],
        ..Seen::default()
    }
}

fn to_client(port: u16, header: &[u8], message: &[u8]) -> Seen {
    Seen {
        clients: vec![(port, frame(header, message))],
        ..Seen::default()
    }
}

/// CLIENT_DIED for one client.
fn client_died(driver: usize, id: i32) -> (usize, Vec<u8>, Vec<u8>) {
    (driver, header(None, Some(id)), vec![0x10, 4])
}

#[test]
fn a_request_and_its_answer() {
    let mut world = World::new(&["5:0"]);
    assert_eq!(
        world.request(A, "5:0", b"ask"),
        to_driver(0, b"\x1a\x01\x02", b"ask")
    );
    let answer = world.write(0, b"\x1a\x01\x02", b"answer");
    assert_eq!(answer, to_client(A, b"\x08\x05\x10\0", b"answer"));
}

#[test]
fn one_copy_per_entry_in_order_with_duplicates_and_without_the_unknown() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.request(B, "5:0", b"");
    let seen = world.write(0, b"\x1a\x05\x02\x03\x63\x02\x03", b"x");
    let ports: Vec<u16> = seen.clients.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [A, B, A, B]);
    assert_eq!(world.dropped(Drop::UnknownClient), 1);
}

#[test]
fn a_frame_for_nobody_does_not_stay() {
    let mut world = World::new(&["dummy:0"]);
    let header = header(None, Some(99));
    let parsed = Header::parse(&header).unwrap();
    let frame = Frame {
        header: &header,
        message: b"x",
    };
    let key = world.keys[0];
    world
        .router
        .driver_frame(key, &parsed, frame, &mut world.out);
    assert_eq!(world.out.datagrams().len(), 0);
    assert!(!world.out.is_empty(), "whoever sends it knows to clear it");
}

#[test]
fn drivers_ask_drivers_over_stdio() {
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
fn a_driver_of_several_devices_is_told_which_and_must_say_which() {
    let mut world = World::new(&["5:0,5:1"]);
    let both = header(Some(device("5:1")), Some(2));
    assert_eq!(world.request(A, "5:1", b"ask"), to_driver(0, &both, b"ask"));
    let answer = to_client(A, &header(Some(device("5:1")), None), b"answer");
    assert_eq!(world.write(0, &both, b"answer"), answer);
    for wrong in [header(None, Some(2)), header(Some(device("6:0")), Some(2))] {
        assert_eq!(world.write(0, &wrong, b"answer"), Seen::default());
    }
    assert_eq!(world.dropped(Drop::WrongDevice), 2);
}

#[test]
fn huge_and_negative_numbers_and_id_0_survive() {
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
fn messages_are_never_read() {
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
    assert_eq!(world.dropped(Drop::DriverTooLong), 1);

    let mut datagram = b"\0\x04\x08\x05\x10\0\x80\0".to_vec();
    datagram.extend(&longer);
    assert_eq!(world.datagram(A, &datagram), Seen::default());
    assert_eq!(world.dropped(Drop::DatagramTooLong), 1);
    assert_eq!(
        world.request(A, "5:0", b"on").drivers.len(),
        1,
        "nothing else is harmed"
    );
}

#[test]
fn long_and_strange_headers_of_clients_are_rewritten() {
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
fn malformed_datagrams_change_nothing_but_their_counter() {
    let mut world = World::new(&["5:0"]);
    for (bytes, why) in [
        (&b""[..], Drop::DatagramEmpty),
        (b"\0", Drop::DatagramShort),
        (b"\0\x09\x08\x05", Drop::DatagramHeaderLength),
        (b"\0\0\0\x09xx", Drop::DatagramMessageLength),
        (b"\0\0\0\0xx", Drop::DatagramTrailing),
        (b"\0\x02\x08\xff\0\0", Drop::DatagramHeader),
    ] {
        let before = world.dropped(why);
        assert_eq!(world.datagram(A, bytes), Seen::default());
        assert_eq!(world.dropped(why), before + 1, "{why:?}");
    }
    assert_eq!(world.router.clients.len(), 0, "they make nobody known");
    let no_port = client(0);
    let bytes = frame(&header(Some(device("5:0")), None), b"x");
    world
        .router
        .datagram(world.now, no_port, &bytes, &mut world.out);
    assert_eq!(world.dropped(Drop::DatagramSource), 1);
}

#[test]
fn an_unknown_device_is_answered_to_announced_clients_only() {
    let mut world = World::new(&["5:0"]);
    let ask = b"\x10\x01\x18\x09";
    assert_eq!(world.request(A, "123:4", ask), Seen::default());
    world.announce(A);
    let answer = b"\x10\x05\x20\x09";
    let wire = header(Some(device("123:4")), None);
    assert_eq!(world.request(A, "123:4", ask), to_client(A, &wire, answer));
    assert_eq!(
        world.request(A, "123:4", b"\xff"),
        to_client(A, &wire, b"\x10\x05")
    );
    assert_eq!(world.dropped(Drop::UnknownDevice), 3);
}

#[test]
fn unknown_device_answers_are_limited() {
    let mut world = World::new(&[]);
    world.announce(A);
    let limit = u64::from(limits::REFUSALS_PER_SECOND);
    let answers = |world: &mut World| -> usize {
        (0..limit + 5)
            .map(|_| world.request(A, "9:9", b"").clients.len())
            .sum()
    };
    assert_eq!(answers(&mut world) as u64, limit);
    assert_eq!(world.dropped(Drop::AnswerRateLimited), 5);
    world.now += Duration::from_secs(1);
    assert_eq!(answers(&mut world) as u64, limit);
}

#[test]
fn a_driver_that_is_down_is_like_an_unknown_device() {
    let mut world = World::new(&["5:0"]);
    world.announce(A);
    world.driver_down(0);
    let refused = to_client(A, b"\x08\x05\x10\0", b"\x10\x05\x20\x07");
    assert_eq!(world.request(A, "5:0", b"\x10\x01\x18\x07"), refused);
    assert_eq!(
        world.request(B, "5:0", b"\x10\x01\x18\x07"),
        Seen::default()
    );
    assert_eq!(world.dropped(Drop::DriverDown), 2);
}

#[test]
fn the_death_of_a_driver_is_told_once_to_those_who_used_it_and_may_know() {
    let mut world = World::new(&["5:0", "77:3"]);
    for port in [A, B] {
        world.request(port, "5:0", b"");
    }
    world.announce(A);
    world.announce(1003);
    assert_eq!(
        world.driver_down(0),
        to_client(A, b"\x08\x05\x10\0", b"\x10\x05")
    );
    assert_eq!(world.driver_down(0), Seen::default());
    assert_eq!(world.driver_down(1), Seen::default(), "nobody has used it");
}

#[test]
fn a_driver_that_asks_another_is_its_client() {
    let mut world = World::new(&["5:0", "77:3"]);
    world.write(1, &header(Some(device("5:0")), None), b"ask");
    assert_eq!(world.driver_down(1).drivers, [client_died(0, 2)]);
    world.router.driver_up(world.keys[1]);
    // The new process has another id, and has asked nothing yet.
    assert_eq!(world.driver_down(1), Seen::default());
}

#[test]
fn an_announced_driver_learns_of_deaths_and_of_what_is_not_there() {
    let mut world = World::new(&["5:0", "77:3"]);
    world
        .router
        .announce(world.now, Sender::DriverAsClient(world.keys[1]));
    let ask = b"\x10\x01\x18\x07";
    world.write(1, &header(Some(device("5:0")), None), ask);
    let died = to_driver(1, &header(Some(device("5:0")), None), b"\x10\x05");
    assert_eq!(world.driver_down(0), died);
    let refused = to_driver(1, &header(Some(device("9:9")), None), b"\x10\x05\x20\x07");
    assert_eq!(
        world.write(1, &header(Some(device("9:9")), None), ask),
        refused
    );
}

#[test]
fn a_driver_that_asks_the_mediator_without_reading_fills_no_memory() {
    let mut world = World::new(&["dummy:0"]);
    let key = world.keys[0];
    world.router.ping_driver(key, b"");
    world.router.queue_mut(key).unwrap().wrote(0);
    for from in [Sender::Driver(key), Sender::DriverAsClient(key)] {
        for _ in 0..2 * limits::QUEUE_FRAMES {
            world.router.reply(from, b"pong", &mut world.out);
        }
    }
    let queue = world.router.queue_mut(key).unwrap();
    assert_eq!(queue.len(), limits::QUEUE_FRAMES + 1);
}

#[test]
fn a_client_that_goes_is_told_to_each_driver_that_it_used() {
    let mut world = World::new(&["5:0", "77:3", "6:0,6:1"]);
    world.request(A, "5:0", b"");
    world.request(A, "6:1", b"");
    world.request(A, "5:0", b"");
    world.router.client_gone(ClientId(4));
    let mut told = vec![client_died(0, 4)];
    for text in ["6:0", "6:1"] {
        told.push((2, header(Some(device(text)), Some(4)), vec![0x10, 4]));
    }
    assert_eq!(world.seen().drivers, told);
    world.router.client_gone(ClientId(4));
    assert_eq!(world.seen(), Seen::default());
}

#[test]
fn a_driver_that_was_restarted_does_not_hear_of_clients_it_never_knew() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.driver_down(0);
    world.router.driver_up(world.keys[0]);
    world.router.client_gone(ClientId(2));
    assert_eq!(world.seen(), Seen::default());
}

#[test]
fn a_full_table_makes_room_by_forgetting_who_was_silent_longest() {
    let mut world = World::with_clients(&["5:0"], 2);
    world.request(A, "5:0", b"");
    world.request(B, "5:0", b"");
    world.request(A, "5:0", b"");
    let seen = world.request(1003, "5:0", b"new");
    assert_eq!(
        seen.drivers,
        [
            client_died(0, 3),
            (0, header(None, Some(4)), b"new".to_vec())
        ]
    );
    assert_eq!(world.router.clients.len(), 2);
    assert_eq!(world.router.counters.counted(Count::ClientsEvicted), 1);
}

#[test]
fn a_limit_beyond_all_measure_takes_no_memory() {
    let mut world = World::with_clients(&["dummy:0"], usize::MAX);
    assert_eq!(world.request(A, "dummy:0", b"x").drivers.len(), 1);
}

#[test]
fn ids_go_upwards_and_around_and_are_never_taken_twice() {
    let mut world = World::with_clients(&["5:0"], 3);
    world.router.next_id = i32::MAX;
    for (port, id) in [(A, i32::MAX), (B, 2), (1003, 3)] {
        let seen = world.request(port, "5:0", b"");
        assert_eq!(
            seen.drivers[0].1,
            header(None, Some(id)),
            "1 is the driver's"
        );
    }
}

#[test]
fn a_driver_that_is_being_stopped_is_not_listened_to() {
    let mut world = World::new(&["5:0"]);
    world.request(A, "5:0", b"");
    world.driver_down(0);
    assert_eq!(world.write(0, b"\x1a\x01\x02", b"late"), Seen::default());
    assert_eq!(world.dropped(Drop::DriverStopping), 1);
}

// What was recorded from the original.

impl World {
    /// What the recording driver does with a frame; returns what it writes.
    fn recording_driver(header: &[u8], message: &[u8]) -> Vec<u8> {
        if Header::parse(header).unwrap().device().is_some() {
            return vec![];
        }
        let text = String::from_utf8_lossy(message);
        if let Some(list) = text.strip_prefix("FAN:") {
            let client_ids: Vec<i32> = serde_json::from_str(list).unwrap();
            let header = amber_proto::DriverHdr {
                client_ids,
                ..Default::default()
            };
            return frame(&header.encode_to_vec(), b"FANNED");
        }
        if let Some(raw) = text.strip_prefix("RAW:") {
            return unhex(raw);
        }
        if let Some(ask) = text.strip_prefix("ASK:") {
            let ask: Value = serde_json::from_str(ask).unwrap();
            let number = |name: &str| ask[name].as_i64().unwrap() as i32;
            let to = Device::new(DeviceType(number("t")), number("i"));
            return frame(
                &self::header(Some(to), None),
                &unhex(ask["hex"].as_str().unwrap()),
            );
        }
        if message.first() == Some(&0x10) {
            vec![]
        } else {
            frame(header, message)
        }
    }

    /// Plays one datagram and all that follows from it.
    fn play(&mut self, port: u16, datagram: &[u8]) -> Seen {
        let mut all = Seen::default();
        let mut pending = self.datagram(port, datagram);
        loop {
            all.clients.append(&mut pending.clients);
            let Some((driver, header, message)) =
                (!pending.drivers.is_empty()).then(|| pending.drivers.remove(0))
            else {
                return all;
            };
            let written = Self::recording_driver(&header, &message);
            all.drivers.push((driver, header, message));
            if let Some(frame) = Frame::from_stream(&written) {
                let mut more = self.write(driver, frame.header, frame.message);
                pending.clients.append(&mut more.clients);
                pending.drivers.append(&mut more.drivers);
            }
        }
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

#[test]
fn every_recorded_case_gives_the_same_bytes() {
    let recorded = include_str!("../../../tests/golden/routing.json");
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    let drivers = ["77:3", "5:0", "-4:2147483647"];
    let mut world = World::new(&[]);
    // The ids of the recording: drivers 2, 3, 4, then clients 5 and 6.
    world.router.next_id = 2;
    for (i, text) in drivers.iter().enumerate() {
        let key = DriverKey(i as u32);
        world.router.add_driver(key, vec![device(text)]);
        world.router.driver_up(key);
        world.keys.push(key);
    }
    let port = |name: &Value| if name == "A" { A } else { B };
    let mut played = 0;
    for case in recorded["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if name.starts_with("message of") {
            // These give a rule for the bytes, and a length and a hash.
            let size: usize = name.split(' ').nth(2).unwrap().parse().unwrap();
            let mut message = b"ECHO".to_vec();
            message.extend((0..size - 4).map(|i| (i * 7 + size) as u8));
            let datagram = frame(&header(Some(device("77:3")), None), &message);
            assert_eq!(case["to_client"][0]["length"], datagram.len());
            let prefix = unhex(&text(&case["to_client"][0]["prefix"]));
            assert_eq!(datagram[..prefix.len()], prefix);
            let seen = world.play(A, &datagram);
            assert_eq!(
                seen.drivers,
                [(0, header(None, Some(5)), message)],
                "{name}"
            );
            assert_eq!(seen.clients, [(A, datagram)], "{name}");
            played += 1;
            continue;
        }
        let seen = world.play(port(&case["from_client"]), &unhex(&text(&case["datagram"])));
        let mut expected = Seen::default();
        for to in case["to_driver"].as_array().unwrap() {
            let driver = drivers.iter().position(|d| *d == to["device"]).unwrap();
            let (header, message) = (unhex(&text(&to["header"])), unhex(&text(&to["message"])));
            expected.drivers.push((driver, header, message));
        }
        for to in case["to_client"].as_array().unwrap() {
            expected
                .clients
                .push((port(&to["client"]), unhex(&text(&to["datagram"]))));
        }
        if case["same_bytes_required"] == false {
            match name {
                "driver answers with unpacked clientIDs" => {
                    let answer = frame(&header(Some(device("77:3")), None), b"UNPACKED");
                    expected.clients = vec![(A, answer.clone()), (B, answer)];
                }
                "driver header has own device and clientIDs" => {
                    expected.drivers.truncate(1);
                    let answer = frame(&header(Some(device("77:3")), None), b"BOTH");
                    expected.clients = vec![(A, answer)];
                }
                // For the mediator, which is not here; or for an unknown
                // device, from a client that is not announced.
                _ => {}
            }
        }
        // The original sent to several addresses in no fixed order.
        let sorted = |mut seen: Seen| {
            seen.clients.sort();
            seen.drivers.sort();
            seen
        };
        assert_eq!(sorted(seen), sorted(expected), "{name}");
        played += 1;
    }
    assert_eq!(played, recorded["cases"].as_array().unwrap().len());
}
