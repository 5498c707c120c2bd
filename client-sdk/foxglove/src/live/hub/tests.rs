use amber_proto::robot::Place;
use amber_proto::{DeviceMessage, DeviceType, hokuyo, location};
use prost::Message;
use serde_json::{Value, json};

use super::super::catalog::tests::described;
use super::*;

const HOKUYO: Device = Device::new(DeviceType::HOKUYO, 0);
const LOCATION: Device = Device::new(DeviceType::LOCATION, 0);

fn hub() -> Hub {
    let mut hub = Hub::new("7".to_owned(), false);
    hub.handle_devices(0, &described(&[DeviceType::HOKUYO, DeviceType::LOCATION]));
    assert_eq!(hub.take(), None, "nobody looks");
    hub
}

fn outputs(hub: &mut Hub) -> Vec<Output> {
    std::iter::from_fn(|| hub.take()).collect()
}

fn opened(hub: &mut Hub) -> ViewerId {
    let id = hub.open();
    outputs(hub);
    id
}

/// Subscribes to a topic.
fn subscribe(hub: &mut Hub, viewer: ViewerId, subscription: u32, topic: &str) -> Vec<Output> {
    let channel = hub.catalog.id(topic).unwrap();
    let all = json!([{ "id": subscription, "channelId": channel }]);
    let text = json!({ "op": "subscribe", "subscriptions": all }).to_string();
    hub.handle_text(viewer, &text);
    outputs(hub)
}

fn scan() -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.scan = Some(hokuyo::Scan {
        angles: vec![0.0],
        distances: vec![500],
    });
    message.encode_to_vec()
}

fn json_of(output: &Output) -> Value {
    match output {
        Output::Text(_, text) => serde_json::from_str(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_viewer_is_told_who_serves_and_all_channels() {
    let mut hub = hub();
    hub.open();
    let all = outputs(&mut hub);
    assert_eq!(all[0], Output::Devices(true));
    assert_eq!(json_of(&all[1])["op"], "serverInfo");
    assert_eq!(json_of(&all[1])["sessionId"], "7");
    let told = json_of(&all[2]);
    let channels = told["channels"].as_array().unwrap();
    let has = |topic: &str| channels.iter().any(|it| it["topic"] == topic);
    assert!(has("/hokuyo/0/scan") && has("/foxglove/hokuyo/0/scan") && has("/foxglove/tf"));
    assert_eq!(all.len(), 3);
    // The second one does not ask for the devices again.
    hub.open();
    assert!(!outputs(&mut hub).contains(&Output::Devices(true)));
}

#[test]
fn devices_are_asked_only_while_a_viewer_wants_their_messages() {
    let mut hub = hub();
    let (one, two) = (opened(&mut hub), opened(&mut hub));
    let upstream = Upstream::Published(HOKUYO);
    let started = [Output::Start(upstream.clone())];
    assert_eq!(subscribe(&mut hub, one, 1, "/hokuyo/0/scan"), started);
    assert_eq!(subscribe(&mut hub, two, 9, "/foxglove/hokuyo/0/scan"), []);
    hub.handle_message(5, HOKUYO, &scan());
    let all = outputs(&mut hub);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0], Output::Data(one, 1, protocol::data(1, 5, &scan())));
    assert!(matches!(&all[1], Output::Data(viewer, 9, _) if *viewer == two));
    hub.handle_text(one, r#"{"op":"unsubscribe","subscriptionIds":[1,4]}"#);
    assert_eq!(outputs(&mut hub), [Output::Forget(one, 1)]);
    hub.close(two);
    assert_eq!(outputs(&mut hub), [Output::Stop(upstream)]);
    hub.handle_message(5, HOKUYO, &scan());
    assert_eq!(outputs(&mut hub), []);
    hub.close(one);
    assert_eq!(outputs(&mut hub), [Output::Devices(false)]);
}

#[test]
fn a_later_viewer_gets_the_map_which_is_sent_only_once() {
    let mut hub = hub();
    let one = opened(&mut hub);
    let walls = "/foxglove/location/0/walls";
    let started = subscribe(&mut hub, one, 1, walls);
    assert_eq!(
        started,
        [Output::Start(Upstream::Asked(LOCATION, "map".into()))]
    );
    let mut message = location::DriverMsg::data();
    message.map = Some(location::Map {
        roson: Some(amber_map::Map::flat().to_roson()),
        grid: None,
    });
    let message = message.encode_to_vec();
    hub.handle_message(5, LOCATION, &message);
    let sent = outputs(&mut hub);
    let Output::Data(_, 1, bytes) = &sent[0] else {
        panic!("{sent:?}");
    };
    hub.handle_message(6, LOCATION, &message);
    assert_eq!(outputs(&mut hub), [], "the same map");
    let two = opened(&mut hub);
    let sent = subscribe(&mut hub, two, 2, walls);
    let again = protocol::data(2, 5, &bytes[13..]);
    assert_eq!(sent, [Output::Data(two, 2, again)]);
}

#[test]
fn the_robot_and_the_place_of_its_laser_are_repeated_every_second() {
    let mut hub = hub();
    hub.handle_shape(&Shape {
        laser: Some(Place {
            x: Some(0.1),
            ..Place::default()
        }),
        ..Shape::default()
    });
    let viewer = opened(&mut hub);
    subscribe(&mut hub, viewer, 1, "/foxglove/tf");
    let poses = subscribe(&mut hub, viewer, 2, "/foxglove/robot");
    assert_eq!(poses, [], "the upstream of the transforms is enough");
    let devices = described(&[DeviceType::HOKUYO, DeviceType::LOCATION]);
    for second in 1..3 {
        hub.handle_devices(second * 1_000_000_000, &devices);
        let all = outputs(&mut hub);
        assert_eq!(all.len(), 2, "{all:?}");
    }
}

#[test]
fn events_are_lines_which_all_count() {
    let mut hub = hub();
    let viewer = opened(&mut hub);
    let started = subscribe(&mut hub, viewer, 1, "/foxglove/log");
    assert_eq!(started, [Output::Start(Upstream::Events)]);
    hub.handle_event(5, &Event::default());
    assert!(matches!(outputs(&mut hub)[..], [Output::Line(..)]));
}

#[test]
fn a_device_that_is_gone_takes_its_channels_with_it() {
    let mut hub = hub();
    let viewer = opened(&mut hub);
    subscribe(&mut hub, viewer, 1, "/hokuyo/0/scan");
    hub.handle_devices(1, &described(&[DeviceType::LOCATION]));
    let all = outputs(&mut hub);
    assert_eq!(all[0], Output::Forget(viewer, 1));
    assert_eq!(json_of(&all[1])["op"], "unadvertise");
    assert_eq!(all[2], Output::Stop(Upstream::Published(HOKUYO)));
    assert_eq!(all.len(), 3);
}

#[test]
fn invalid_requests_are_explained() {
    let mut hub = hub();
    let viewer = opened(&mut hub);
    subscribe(&mut hub, viewer, 1, "/hokuyo/0/scan");
    let scan = hub.catalog.id("/hokuyo/0/scan").unwrap();
    let twice = json!({ "op": "subscribe", "subscriptions": [{ "id": 1, "channelId": scan }] });
    for (text, level, why) in [
        ("hello", 2, "invalid message"),
        (
            r#"{"op":"subscribe","subscriptions":[{"id":7,"channelId":999}]}"#,
            2,
            "channel 999 does not exist",
        ),
        (&*twice.to_string(), 2, "already exists"),
        (r#"{"op":"setParameters"}"#, 1, "accepts only subscribe"),
    ] {
        hub.handle_text(viewer, text);
        let all = outputs(&mut hub);
        let status = json_of(&all[0]);
        assert_eq!(
            (&status["op"], &status["level"]),
            (&json!("status"), &json!(level)),
            "{text}"
        );
        assert!(
            status["message"].as_str().unwrap().contains(why),
            "{status}"
        );
    }
}

fn call(service: u32, id: u32, payload: &[u8]) -> Vec<u8> {
    let numbers = [service, id, 4].map(u32::to_le_bytes);
    [&[2], numbers.as_flattened(), b"json", payload].concat()
}

#[test]
fn a_viewer_calls_a_request_of_a_device() {
    let mut hub = Hub::new("7".to_owned(), true);
    let viewer = opened(&mut hub);
    hub.handle_devices(0, &described(&[DeviceType::MAESTRO]));
    let told = outputs(&mut hub).iter().map(json_of).collect::<Vec<_>>();
    let told = told
        .iter()
        .find(|it| it["op"] == "advertiseServices")
        .unwrap();
    let services = told["services"].as_array().unwrap().iter();
    let set = services
        .clone()
        .find(|it| it["name"] == "/maestro/0/set-angle")
        .unwrap();
    let service = u32::try_from(set["id"].as_u64().unwrap()).unwrap();
    let payload = br#"{"angle": 45, "servo-address": 3}"#;
    hub.handle_binary(viewer, &call(service, 9, payload));
    let sent = outputs(&mut hub);
    let [Output::Call(id, words)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(words, &["angle=45", "servo-address=3"]);
    assert_eq!(hub.service(*id).unwrap().request, "set-angle");
    hub.handle_binary(viewer, &call(service, 9, payload));
    assert_eq!(
        json_of(&outputs(&mut hub)[0])["message"],
        "this call id is in use"
    );
    hub.handle_answer(*id, Ok(Value::Null));
    let expected = Output::Line(viewer, protocol::response(service, 9, &json!({})));
    assert_eq!(outputs(&mut hub), [expected]);

    // Calls that fail, and one whose viewer is gone.
    hub.handle_binary(viewer, &call(service, 10, payload));
    let sent = outputs(&mut hub);
    let [Output::Call(id, _)] = &sent[..] else {
        panic!("{sent:?}");
    };
    hub.handle_answer(*id, Err("no answer".to_owned()));
    let failure = json_of(&outputs(&mut hub)[0]);
    assert_eq!(
        (&failure["op"], &failure["callId"]),
        (&"serviceCallFailure".into(), &10.into())
    );
    for (bytes, why) in [
        (call(999, 1, b"{}"), "unknown service"),
        (
            call(service, 1, b"[]"),
            "the arguments are not a JSON object",
        ),
        (b"\x01abc".to_vec(), "invalid message"),
    ] {
        hub.handle_binary(viewer, &bytes);
        let message = json_of(&outputs(&mut hub)[0])["message"].clone();
        assert!(message.as_str().unwrap().starts_with(why), "{message}");
    }
    for number in 0..=MAX_CALLS as u32 {
        hub.handle_binary(viewer, &call(service, number, payload));
    }
    let last = outputs(&mut hub).pop().unwrap();
    assert_eq!(
        json_of(&last)["message"],
        "too many calls wait for their answers"
    );
    hub.close(viewer);
    hub.handle_answer(*id, Ok(Value::Null));
    assert_eq!(outputs(&mut hub), [Output::Devices(false)]);
}

#[test]
fn without_permission_nothing_can_be_called() {
    let mut hub = hub();
    let viewer = opened(&mut hub);
    hub.handle_binary(viewer, &call(1, 1, b"{}"));
    let status = json_of(&outputs(&mut hub)[0]);
    assert_eq!(status["op"], "status");
    assert!(
        status["message"].as_str().unwrap().contains("--calls"),
        "{status}"
    );
}
