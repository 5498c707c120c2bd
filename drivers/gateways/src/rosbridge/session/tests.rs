use super::*;

/// A session that a test talks to.
#[derive(Default)]
struct Client {
    session: Session,
}

impl Client {
    fn say(&mut self, text: Value) -> Result<Option<Effect>, Problem> {
        let text = text.to_string();
        (self.session).receive(text.as_bytes(), Now::from_millis(5_000))
    }

    fn hear(&mut self, ms: u64) -> Vec<Value> {
        let mut heard = Vec::new();
        while let Some(text) = self.session.next(Duration::from_millis(ms)) {
            heard.push(serde_json::from_slice(&text).unwrap());
        }
        heard
    }

    fn offer(&mut self, output: Output, number: u32, ms: u64) {
        let now = Duration::from_millis(ms);
        let message = Message::new(output, number.into(), now);
        self.session.offer(output, &message.into(), now);
    }

    /// Numbers offered earlier that arrive at this time.
    fn numbers(&mut self, ms: u64) -> Vec<u64> {
        let heard = self.hear(ms);
        heard
            .iter()
            .map(|text| text["msg"].as_u64().unwrap())
            .collect()
    }
}

#[test]
fn a_twist_drives_and_a_goal_is_a_target() {
    let mut client = Client::default();
    client
        .say(json!({"op": "advertise", "topic": "/cmd_vel", "type": "geometry_msgs/Twist"}))
        .unwrap();
    let drive = client.say(json!({"op": "publish", "topic": "/cmd_vel",
        "msg": {"linear": {"x": 0.1, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 0.2}}}));
    let twist = Twist {
        forward_m_s: 0.1,
        turn_rad_s: 0.2,
    };
    assert_eq!(drive, Ok(Some(Effect::Drive(twist))));
    for topic in ["/goal", "goal", "/goal_pose", "/move_base_simple/goal"] {
        let goal = client.say(json!({"op": "publish", "topic": topic,
            "msg": {"header": {"frame_id": "map"}, "pose": {"position": {"x": 1, "y": -2}}}}));
        let target = Target {
            x_m: 1.0,
            y_m: 2.0,
            radius_m: 0.3,
        };
        assert_eq!(goal, Ok(Some(Effect::Goal(target))), "{topic}");
    }
    assert_eq!(client.hear(0), Vec::<Value>::new());
}

#[test]
fn refused_operations_are_explained() {
    let cases = [
        (
            json!({"op": "publish", "topic": "/cmd_val", "msg": {}}),
            "no topic \"/cmd_val\" to publish on",
        ),
        (
            json!({"op": "publish", "topic": "/scan", "msg": {}}),
            "no topic \"/scan\" to publish on",
        ),
        (
            json!({"op": "publish", "topic": "/cmd_vel", "msg": {"linear": {"x": "1"}}}),
            "/cmd_vel: linear.x is not a number",
        ),
        (
            json!({"op": "subscribe", "topic": "/cmd_vel"}),
            "no topic \"/cmd_vel\" to subscribe to",
        ),
        (
            json!({"op": "subscribe", "topic": "/scan", "type": "sensor_msgs/Imu"}),
            "/scan has the type \"sensor_msgs/msg/LaserScan\", not \"sensor_msgs/Imu\"",
        ),
        (
            json!({"op": "advertise", "topic": "/cmd_vel", "type": "std_msgs/String"}),
            "not \"std_msgs/String\"",
        ),
        (
            json!({"op": "advertise_service", "service": "/x", "type": "y"}),
            "operation \"advertise_service\" is not supported",
        ),
    ];
    for (mut text, expected) in cases {
        let mut client = Client::default();
        text["id"] = "seven".into();
        assert_eq!(client.say(text.clone()), Err(Problem::Refused), "{text}");
        let heard = client.hear(0);
        let status = heard.first().expect("a status");
        assert_eq!(
            (&status["op"], &status["level"], &status["id"]),
            (&json!("status"), &json!("error"), &json!("seven"))
        );
        assert!(
            status["msg"].as_str().unwrap().contains(expected),
            "{status}"
        );
    }
    let mut client = Client::default();
    for (bytes, problem) in [
        (&b"{"[..], Malformed::NoOperation),
        (b"\xa1\x62op\x64stop", Malformed::NotText),
    ] {
        let malformed = client.session.receive(bytes, Now::default());
        assert_eq!(malformed, Err(Problem::Malformed(problem)));
        let status = &client.hear(0)[0];
        assert_eq!(
            (&status["op"], &status["msg"]),
            (&json!("status"), &json!(problem.text()))
        );
    }
}

#[test]
fn a_map_is_saved_and_the_answer_comes_when_it_is() {
    let mut client = Client::default();
    let call = |url: &str| {
        json!({"op": "call_service", "id": "s", "service": "/map_saver/save_map",
            "args": {"map_topic": "map", "map_url": url}})
    };
    for (url, name) in [("lab", "lab"), ("file:///tmp/maps/lab", "lab"), ("", "map")] {
        let effect = client.say(call(url));
        let Ok(Some(Effect::SaveMap(number, saved_as))) = effect else {
            panic!("{effect:?}");
        };
        assert_eq!(saved_as, name);
        assert_eq!(client.hear(0), Vec::<Value>::new(), "not saved yet");
        // Results of nobody do no harm.
        client.session.saved(number + 1, Ok(()));
        client.session.saved(number, Ok(()));
        let saved = json!({"op": "service_response", "id": "s", "result": true,
            "service": "/map_saver/save_map", "values": {"result": true}});
        assert_eq!(client.hear(0), [saved]);
    }
    for _ in 0..MAX_SAVES {
        client.say(call("lab")).unwrap();
    }
    assert_eq!(client.say(call("lab")), Err(Problem::Refused));
    assert_eq!(client.hear(0)[0]["result"], false);
    // The last one ends first.
    client
        .session
        .saved(3 + MAX_SAVES as u32, Err("there is no map".into()));
    let heard = client.hear(0);
    assert_eq!(heard[0]["msg"], "there is no map");
    assert_eq!(heard[1]["values"]["result"], false);
    client.say(call("lab")).unwrap();
}

#[test]
fn the_level_hides_less_serious_problems() {
    let mut client = Client::default();
    let subscribe = json!({"op": "subscribe", "topic": "/scan", "compression": "png"});
    client.say(subscribe.clone()).unwrap();
    assert_eq!(client.hear(0).len(), 0);
    client
        .say(json!({"op": "set_level", "level": "warning"}))
        .unwrap();
    client.say(subscribe).unwrap();
    assert!(
        client.hear(0)[0]["msg"]
            .as_str()
            .unwrap()
            .contains("sent as JSON")
    );
    client
        .say(json!({"op": "set_status_level", "level": "none"}))
        .unwrap();
    client.say(json!({"op": "fragment"})).unwrap_err();
    assert_eq!(client.hear(0).len(), 0);
}

#[test]
fn without_a_throttle_rate_every_message_is_sent() {
    let mut client = Client::default();
    assert!(!client.session.wants(Output::Scan));
    client
        .say(json!({"op": "subscribe", "topic": "/scan"}))
        .unwrap();
    assert!(client.session.wants(Output::Scan));
    for number in 0..5 {
        client.offer(Output::Scan, number, 0);
        client.offer(Output::Imu, number, 0);
        assert_eq!(client.numbers(0), [u64::from(number)]);
    }
    assert_eq!(client.session.take_dropped(), 0);
}

#[test]
fn a_throttle_rate_leaves_the_newest_message() {
    let mut client = Client::default();
    client
        .say(json!({"op": "subscribe", "topic": "/scan", "throttle_rate": 200}))
        .unwrap();
    let mut numbers = Vec::new();
    for number in 0..10 {
        let ms = u64::from(number) * 100;
        client.offer(Output::Scan, number, ms);
        numbers.extend(client.numbers(ms));
    }
    assert_eq!(numbers, [0, 2, 4, 6, 8]);
    assert_eq!(client.session.deadline(), Some(Duration::from_millis(1000)));
    assert_eq!(client.numbers(1000), [9]);
    assert_eq!(client.session.take_dropped(), 0);
    assert_eq!(client.session.deadline(), None);
    // The client does not read when the time has come.
    for number in 0..3 {
        client.offer(Output::Scan, number, 2_000);
    }
    assert_eq!(client.session.take_dropped(), 2);
}

#[test]
fn a_queue_keeps_messages_for_later() {
    let mut client = Client::default();
    client
        .say(json!({"op": "subscribe", "topic": "/scan", "throttle_rate": 100, "queue_length": 3}))
        .unwrap();
    for number in 0..6 {
        client.offer(Output::Scan, number, 10);
    }
    let arrived: Vec<_> = [10, 60, 110, 210, 310].map(|ms| client.numbers(ms)).into();
    assert_eq!(arrived, [vec![3], vec![], vec![4], vec![5], vec![]]);
    assert_eq!(client.session.take_dropped(), 3);
}

#[test]
fn two_subscriptions_to_one_topic_get_one_message_at_the_faster_rate() {
    let mut client = Client::default();
    for (id, rate) in [("a", 500), ("b", 100), ("b", 200)] {
        client
            .say(json!({"op": "subscribe", "id": id, "topic": "/scan", "throttle_rate": rate}))
            .unwrap();
    }
    let at = |client: &mut Client, ms: u64| {
        client.offer(Output::Scan, 1, ms);
        client.numbers(ms).len()
    };
    assert_eq!([0, 199, 200].map(|ms| at(&mut client, ms)), [1, 0, 1]);
    client
        .say(json!({"op": "unsubscribe", "id": "b", "topic": "/scan"}))
        .unwrap();
    assert_eq!([500, 699, 700].map(|ms| at(&mut client, ms)), [0, 0, 1]);
    client
        .say(json!({"op": "unsubscribe", "topic": "/scan"}))
        .unwrap();
    assert!(!client.session.wants(Output::Scan));
}

#[test]
fn topics_take_turns_on_a_slow_connection() {
    let mut client = Client::default();
    for topic in ["/scan", "/imu"] {
        client
            .say(json!({"op": "subscribe", "topic": topic, "queue_length": 50}))
            .unwrap();
    }
    for number in 0..3 {
        client.offer(Output::Scan, number, 0);
        client.offer(Output::Imu, number, 0);
    }
    let topics: Vec<_> = (1..=6)
        .filter_map(|ms| client.session.next(Duration::from_millis(ms)))
        .map(|text| String::from_utf8_lossy(&text).contains("/scan"))
        .collect();
    assert_eq!(topics, [true, false, true, false, true, false]);
}

#[test]
fn services_answer() {
    let mut client = Client::default();
    let cases = [
        ("/stop", json!({}), json!({"success": true, "message": ""})),
        (
            "/halt",
            json!({"data": false}),
            json!({"success": true, "message": ""}),
        ),
        (
            "/rosapi/topic_type",
            json!(["/scan"]),
            json!({"type": "sensor_msgs/msg/LaserScan"}),
        ),
        (
            "/rosapi/get_time",
            Value::Null,
            json!({"time": {"sec": 5, "nanosec": 0, "secs": 5, "nsecs": 0}}),
        ),
    ];
    for (service, args, values) in cases {
        let effect =
            client.say(json!({"op": "call_service", "id": "1", "service": service, "args": args}));
        let expected = match service {
            "/stop" => Some(Effect::Stop),
            "/halt" => Some(Effect::Halt(false)),
            _ => None,
        };
        assert_eq!(effect, Ok(expected));
        let response = json!({"op": "service_response", "id": "1", "service": service, "values": values, "result": true});
        assert_eq!(client.hear(0), [response]);
    }
    client
        .say(json!({"op": "call_service", "service": "/rosapi/topics"}))
        .unwrap();
    let topics = &client.hear(0)[0]["values"];
    let places = topics["topics"].as_array().unwrap();
    assert_eq!(places.len(), topics["types"].as_array().unwrap().len());
    assert!(places.contains(&json!("/cmd_vel")) && places.contains(&json!("/odom")));
    client
        .say(json!({"op": "call_service", "service": "/reboot"}))
        .unwrap_err();
    let answer = &client.hear(0)[0];
    assert_eq!(answer["result"], false);
    assert!(
        answer["values"]
            .as_str()
            .unwrap()
            .contains("does not exist")
    );
}

#[test]
fn a_topic_has_the_type_that_the_client_asks_for() {
    let kinds = [
        (json!({}), Output::BarePose),
        (json!({"type": "geometry_msgs/Pose"}), Output::BarePose),
        (json!({"type": "geometry_msgs/PoseStamped"}), Output::Pose),
        (
            json!({"type": "geometry_msgs/msg/PoseStamped"}),
            Output::Pose,
        ),
    ];
    for (kind, output) in kinds {
        let mut client = Client::default();
        let mut subscribe = json!({"op": "subscribe", "topic": "/robot_pose"});
        subscribe
            .as_object_mut()
            .unwrap()
            .extend(kind.as_object().unwrap().clone());
        client.say(subscribe.clone()).unwrap();
        assert!(client.session.wants(output), "{subscribe}");
        // Another subscription follows it, unless it wants another type.
        client
            .say(json!({"op": "subscribe", "topic": "/robot_pose"}))
            .unwrap();
        let other =
            json!({"op": "subscribe", "topic": "/robot_pose", "type": "geometry_msgs/Twist"});
        assert_eq!(client.say(other), Err(Problem::Refused));
        assert_eq!(client.session.subscriptions.len(), 1);
    }
    for (topic, kind) in [
        ("/tf", "tf2_msgs/TFMessage"),
        ("/tf_static", "tf/tfMessage"),
        ("/amcl_pose", "geometry_msgs/PoseWithCovarianceStamped"),
        ("/rosout", "rosgraph_msgs/Log"),
    ] {
        let mut client = Client::default();
        client
            .say(json!({"op": "subscribe", "topic": topic, "type": kind}))
            .unwrap();
    }
}

#[test]
fn the_most_compact_form_of_all_subscriptions_is_sent() {
    let mut client = Client::default();
    let mut first = |compression: &str| {
        client
            .say(json!({"op": "subscribe", "topic": "/scan", "compression": compression}))
            .unwrap();
        let message = Message::new(Output::Scan, json!({"ranges": [1.5]}), Duration::ZERO);
        client
            .session
            .offer(Output::Scan, &message.into(), Duration::ZERO);
        client.session.next(Duration::ZERO).unwrap()
    };
    assert!(first("none").starts_with(b"{\"op\":\"publish\""));
    let block = [&b"\x66ranges\xd8\x55\x44"[..], &1.5_f32.to_le_bytes()].concat();
    assert!(first("cbor").ends_with(&block));
    assert!(
        first("cbor-raw")
            .windows(9)
            .any(|bytes| bytes == b"\x65bytes\x58\x3c\x00")
    );
    assert!(first("none").starts_with(b"\xa3\x62op"));
}

#[test]
fn a_command_that_is_not_carried_out_is_explained() {
    let mut client = Client::default();
    let twist = json!({"op": "publish", "id": "p:1", "topic": "/cmd_vel", "msg": {}});
    client.say(twist).unwrap();
    client.session.refuse_command("another client drives");
    let status = &client.hear(0)[0];
    assert_eq!(status["id"], "p:1");
    assert_eq!(status["msg"], "another client drives");
    let problem = client.session.take_problem();
    assert_eq!(
        problem,
        Some((Level::Error, "another client drives".into()))
    );
}

#[test]
fn a_client_that_does_not_read_fills_no_memory() {
    let mut client = Client::default();
    for number in 0..1000 {
        client
            .say(json!({"op": "call_service", "service": "/rosapi/get_time"}))
            .unwrap();
        let subscribe =
            json!({"op": "subscribe", "id": number, "topic": "/scan", "queue_length": 1e9});
        let _ = client.say(subscribe);
        client.offer(Output::Scan, number, 10);
    }
    assert_eq!(client.hear(10).len(), MAX_REPLIES + MAX_QUEUE);
    assert!(client.session.take_dropped() > 1000);
}
