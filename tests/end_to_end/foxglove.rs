//! Foxglove and Lichtblick show the robot where it is.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use crate::common::{Mediator, Running, is_close_answered, root, wait_for};
use crate::robot::Robot;

#[test]
fn the_libraries_of_foxglove_draw_the_robot_where_it_is() {
    let folder = root().join("client-sdk/foxglove/tests/viewer");
    let node = |args: &[&str]| {
        Command::new("node")
            .args(args)
            .current_dir(&folder)
            .output()
    };
    let libraries = "import '@foxglove/ws-protocol'; import '@mcap/core'; import '@mcap/nodejs'; \
                     import '@mcap/support'; import 'protobufjs'; import 'ws'";
    let works = node(&["--input-type=module", "-e", libraries]);
    if !works.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP the libraries of Foxglove: needs node and `npm install` in \
             client-sdk/foxglove/tests/viewer"
        );
        return;
    }
    let robot = Robot::start();
    // Neither its heading nor the signs of x and y can be mixed up there.
    assert!(robot.sim(&["place", "3.3,2.5,25"]));
    let serve = ["foxglove", "--listen", "127.0.0.1:0", "--calls"];
    let mut server = Running::start(&robot.demo, &serve);
    let url = server.line().replace("foxglove: ", "");
    let truth = robot.state();
    let is_at_its_place = |seen: &Value| {
        let number = |name: &str| seen[name].as_f64().unwrap();
        let off_m = (number("x") - truth.x_m).hypot(number("y") + truth.y_m);
        let off_rad = number("heading") + truth.heading_deg.to_radians();
        off_m < 0.1 && off_rad.abs() < 0.05
    };
    let expect_picture = |seen: &Value| {
        let count = |name: &str| seen[name].as_u64().unwrap();
        assert!(count("points") > 500, "{seen}");
        assert!(count("on_walls") * 20 > count("points") * 19, "{seen}");
        assert_eq!(seen["robot_frame"], "base_link");
        // The messages of the devices themselves are there, too.
        assert_eq!(count("raw_distances"), 682);
        let speeds = seen["speeds"].as_array().unwrap();
        assert!(speeds.contains(&json!("frontLeftSpeed")), "{seen}");
    };
    let seen = wait_for("the robot at its place", || {
        let output = node(&["read.mjs", &url]).unwrap();
        assert!(output.status.success(), "{output:?}");
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        // The location driver notices only after a while that the robot has been carried.
        is_at_its_place(&seen).then_some(seen)
    });
    expect_picture(&seen);
    assert!(seen["raw_age_ms"].as_i64().unwrap() < 5_000, "{seen}");
    // It has called a request, too.
    let answer = &seen["answer"];
    assert_eq!(
        (&answer["callId"], &answer["encoding"]),
        (&1.into(), &"json".into())
    );
    let speeds = &answer["speeds"]["currentSpeed"];
    assert!(speeds["frontLeftSpeed"].is_number(), "{seen}");
    server.interrupt();

    // A recording shows the same.
    if cfg!(feature = "record") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("robot.mcap");
        let file = file.to_str().unwrap();
        assert!(robot.amber(&["record", "--for", "2", "--compress", "-o", file]));
        let output = node(&["file.mjs", file]).unwrap();
        assert!(output.status.success(), "{output:?}");
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(is_at_its_place(&seen), "{seen}");
        expect_picture(&seen);
        assert_eq!(seen["messages"], seen["counted"]);
        assert_eq!(seen["compression"], json!(["zstd"]));
    }
}

#[test]
fn a_viewer_gets_the_messages_to_which_it_subscribes() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    let mut server = Running::start(&mediator, &["foxglove", "--listen", "127.0.0.1:0"]);
    let (address, path) = address_of(&server.line());
    assert_eq!(path, "/");
    let mut viewer = connected(address, &path, &[]).unwrap();
    assert_eq!(text(&mut viewer)["op"], "serverInfo");
    let channel = wait_for("the channel of the device", || {
        let message = text(&mut viewer);
        let channels = message["channels"].as_array().unwrap().clone();
        channels
            .into_iter()
            .find(|it| it["topic"] == "/dummy/0/message")
    });
    let subscribe = json!({
        "op": "subscribe", "subscriptions": [{ "id": 5, "channelId": channel["id"] }],
    });
    viewer.send(Message::text(subscribe.to_string())).unwrap();
    let data = wait_for("data", || match viewer.read().unwrap() {
        Message::Binary(bytes) => Some(bytes),
        _ => None,
    });
    assert_eq!(&data[..5], b"\x01\x05\0\0\0");
    let unsubscribe = json!({ "op": "unsubscribe", "subscriptionIds": [5] });
    viewer.send(Message::text(unsubscribe.to_string())).unwrap();
    viewer.send(Message::text("{}")).unwrap();
    // What was on its way comes first.
    let status = wait_for("an answer", || match viewer.read().unwrap() {
        Message::Text(text) => serde_json::from_str::<Value>(&text).ok(),
        _ => None,
    });
    assert_eq!(status["op"], "status");
    assert!(is_close_answered(&mut viewer));
    // One viewer too many is told why.
    let mut viewers = Vec::new();
    let full = wait_for("the last place", || {
        let mut viewer = connected(address, "/", &[]).unwrap();
        match viewer.read().unwrap() {
            Message::Close(Some(close)) => Some(close),
            _ => {
                viewers.push(viewer);
                None
            }
        }
    });
    assert_eq!(u16::from(full.code), 1013);
    assert!(full.reason.contains("too many viewers"), "{full}");
    server.interrupt();
}

#[test]
fn pages_of_other_sites_and_viewers_without_the_token_are_refused() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    let own = [
        "foxglove",
        "--listen",
        "127.0.0.1:0",
        "--origin",
        "http://lab:8080/",
    ];
    let mut server = Running::start(&mediator, &own);
    let (address, _) = address_of(&server.line());
    let origin = |origin: &str| connected(address, "/", &[("Origin", origin)]).map(drop);
    assert_eq!(origin("https://evil.example"), Err(403));
    assert!(server.note().contains("pages of this site may not connect"));
    for allowed in [
        "https://app.foxglove.dev",
        "http://localhost:8080",
        "http://lab:8080",
    ] {
        assert_eq!(origin(allowed), Ok(()), "{allowed}");
    }
    assert_eq!(
        connected(address, "/", &[("Host", "evil.example")]).map(drop),
        Err(403)
    );
    let other = [("Sec-WebSocket-Protocol", "other")];
    assert_eq!(connected(address, "/", &other).map(drop), Err(400));
    server.interrupt();

    let mut server = Running::start(&mediator, &["foxglove", "--listen", "0.0.0.0:0"]);
    let (address, path) = address_of(&server.line());
    assert!(path.len() > 20, "{path}");
    assert_eq!(connected(address, "/", &[]).map(drop), Err(403));
    assert_eq!(connected(address, &path, &[]).map(drop), Ok(()));
    server.interrupt();
}

/// Address and path in the line of the server.
fn address_of(line: &str) -> (SocketAddr, String) {
    let url = line.rsplit("ws://").next().unwrap();
    let (host, path) = url.split_once('/').unwrap();
    let port: u16 = host.rsplit(':').next().unwrap().parse().unwrap();
    (SocketAddr::from(([127, 0, 0, 1], port)), format!("/{path}"))
}

type Viewer = WebSocket<TcpStream>;

/// A viewer, or the status of the refusal.
fn connected(address: SocketAddr, path: &str, heads: &[(&str, &str)]) -> Result<Viewer, u16> {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap();
    let mut request = format!("ws://{address}{path}")
        .into_client_request()
        .unwrap();
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", "foxglove.sdk.v1".parse().unwrap());
    for (name, value) in heads {
        let name: tungstenite::http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    match tungstenite::client(request, stream) {
        Ok((viewer, response)) => {
            assert_eq!(
                response.headers()["sec-websocket-protocol"],
                "foxglove.sdk.v1"
            );
            Ok(viewer)
        }
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

/// The next text.
fn text(viewer: &mut Viewer) -> Value {
    loop {
        if let Message::Text(text) = viewer.read().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}
