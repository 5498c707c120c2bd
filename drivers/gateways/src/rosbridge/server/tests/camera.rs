//! Pictures, and the optics for them.

use amber_proto::camera::{Calibration, CameraInfo, Format, Picture};
use amber_robot::pictures::PictureWish;

use super::*;

/// The text of the only message to a client.
fn text_to(port: u16, sent: &[Output]) -> Option<Value> {
    let mut texts = sent.iter().filter_map(|output| match output {
        Output::Send(_, to, text) if *to == peer(port) => serde_json::from_slice(text).ok(),
        _ => None,
    });
    let text = texts.next();
    assert_eq!(texts.next(), None);
    text
}

fn picture(captured_us: i64, data: &'static [u8]) -> Measurement {
    Measurement::Picture(Arc::new(Picture {
        data: Some(bytes::Bytes::from_static(data)),
        format: Some(Format::Jpeg.into()),
        width: Some(320),
        height: Some(240),
        captured: Some(captured_us),
        ..Picture::default()
    }))
}

#[test]
fn a_camera_is_watched_as_the_strongest_wish_of_the_clients_asks() {
    let mut world = World::new();
    let pictures = |period_ms| {
        Topic::Pictures(
            robot().camera,
            PictureWish {
                period_ms,
                max_width: Some(320),
            },
        )
    };
    let subscribe = |throttle_rate| {
        json!({"op": "subscribe", "topic": "/camera/image_raw/compressed", "queue_length": 9,
            "type": "sensor_msgs/CompressedImage", "throttle_rate": throttle_rate})
    };
    for port in [1, 2] {
        world.link(port, WebSocketEvent::Connected);
    }
    assert_eq!(world.say(1, subscribe(500)), [Output::Watch(pictures(500))]);
    assert_eq!(
        world.say(2, subscribe(0)),
        [Output::Watch(pictures(1)), Output::Unwatch(pictures(500))]
    );
    let sent = world.measured(picture(1_700_000_000_000_250, b"\xff\xd8 1"));
    for port in [1, 2] {
        let text = text_to(port, &sent).unwrap();
        assert_eq!(text["topic"], "/camera/image_raw/compressed");
        assert_eq!(
            (&text["msg"]["format"], &text["msg"]["data"]),
            (&json!("jpeg"), &json!("/9ggMQ=="))
        );
        let header = &text["msg"]["header"];
        assert_eq!(header["frame_id"], "camera_optical_frame");
        assert_eq!(
            header["stamp"],
            json!({"sec": 1_700_000_000, "nanosec": 250_000, "secs": 1_700_000_000, "nsecs": 250_000})
        );
    }

    // The second client does not read. It gets the newest, and the others count.
    for data in [b"\xff\xd8 2", b"\xff\xd8 3", b"\xff\xd8 4"] {
        world.ms += 100;
        let sent = world.measured(picture(0, data));
        assert_eq!(sent, []);
    }
    assert_eq!(world.out.tally.count("client reads too slowly"), 2);
    let text = text_to(2, &world.link(2, WebSocketEvent::Sent)).unwrap();
    assert_eq!(text["msg"]["data"], "/9ggNA==");
    // The first one reads, but wants only two pictures per second.
    assert_eq!(world.link(1, WebSocketEvent::Sent), []);
    let sent = world.pass(400);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].0, 500);

    assert_eq!(
        world.link(2, WebSocketEvent::Gone)[..2],
        [Output::Watch(pictures(500)), Output::Unwatch(pictures(1))]
    );
    let unsubscribe = json!({"op": "unsubscribe", "topic": "/camera/image_raw/compressed"});
    assert_eq!(world.say(1, unsubscribe), [Output::Unwatch(pictures(500))]);
}

#[test]
fn the_optics_are_those_of_the_pictures_and_have_their_time() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let subscribe = |topic: &str| json!({"op": "subscribe", "topic": topic});
    assert_eq!(
        world.say(1, subscribe("/camera/camera_info")),
        [Output::Watch(Topic::Camera(robot().camera))]
    );
    let calibration = Calibration {
        width: Some(640),
        height: Some(480),
        fx: Some(600.0),
        fy: Some(600.0),
        cx: Some(319.5),
        cy: Some(239.5),
        distortion_model: Some("plumb_bob".into()),
        distortion: vec![0.0; 5],
        ..Calibration::default()
    };
    // It is not on yet.
    let info = CameraInfo {
        calibration: Some(calibration),
        ..CameraInfo::default()
    };
    let sent = world.measured(Measurement::CameraInfo(Box::new(info.clone())));
    let text = text_to(1, &sent).unwrap();
    let size = (&text["msg"]["width"], &text["msg"]["height"]);
    assert_eq!(size, (&json!(320), &json!(240)));
    assert_eq!(
        (&text["msg"]["k"][0], &text["msg"]["K"][0]),
        (&json!(300.0), &json!(300.0))
    );
    assert_eq!(text["msg"]["p"][2], 159.5);
    assert_eq!(text["msg"]["distortion_model"], "plumb_bob");
    world.link(1, WebSocketEvent::Sent);

    // With pictures, there is one for each of them.
    world.say(1, subscribe("/camera/image_raw/compressed"));
    let sent = world.measured(Measurement::CameraInfo(Box::new(info)));
    assert_eq!(sent, []);
    let both = |world: &mut World, captured_us| {
        let first = world.measured(picture(captured_us, b"\xff\xd8"));
        let second = world.link(1, WebSocketEvent::Sent);
        world.link(1, WebSocketEvent::Sent);
        let mut texts = [first, second].map(|sent| text_to(1, &sent).unwrap());
        texts.sort_by_key(|text| text["topic"].to_string());
        texts
    };
    let [info, picture] = both(&mut world, 1_700_000_000_000_250);
    assert_eq!(picture["topic"], "/camera/image_raw/compressed");
    assert_eq!(info["topic"], "/camera/camera_info");
    assert_eq!(info["msg"]["header"], picture["msg"]["header"]);
    assert_eq!(info["msg"]["header"]["stamp"]["nsecs"], 250_000);

    // A camera that is not calibrated says so as in ROS.
    world.measured(Measurement::CameraInfo(Box::default()));
    let [text, _] = both(&mut world, 0);
    assert_eq!(text["msg"]["k"], json!(vec![0.0; 9]));
    assert_eq!(text["msg"]["width"], 320);
}
