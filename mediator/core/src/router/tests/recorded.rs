//! Replays recordings of the original mediator.

use amber_proto::DriverHdr;
use prost::Message;
use serde_json::Value;

use super::*;

impl World {
    /// What the recorded driver writes in answer to a frame.
    fn recording_driver(header: &[u8], message: &[u8]) -> Vec<u8> {
        if Header::parse(header).unwrap().device().is_some() {
            return vec![];
        }
        let text = String::from_utf8_lossy(message);
        if let Some(list) = text.strip_prefix("FAN:") {
            let client_ids: Vec<i32> = serde_json::from_str(list).unwrap();
            let header = DriverHdr {
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

    /// Plays one datagram and everything that follows from it.
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
fn every_recorded_case_produces_the_same_bytes() {
    let recorded = include_str!("../../../../../tests/golden/routing.json");
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
            // These cases name a rule for the bytes, a length and a hash.
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
                // For the mediator, which this harness leaves out; or for an unknown device,
                // from a client that is not announced.
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
