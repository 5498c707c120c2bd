//! Clients on a virtual clock.

use amber_proto::location::KnownPose;
use amber_values::{MapPose, Scan, Target, WheelSpeeds};
use serde_json::json;

use super::*;
use crate::testing::robot;

mod camera;
mod goals;

/// A gateway whose outputs a test sees.
struct World {
    server: Server,
    out: Outputs,
    ms: u64,
}

impl World {
    fn new() -> Self {
        let server = Server::new(Config {
            listen: "127.0.0.1:9090".parse().unwrap(),
            page: Page::default(),
            robot: robot(),
            seat: Seat::Exclusive,
            scan_turn: None,
            picture_width_px: 320,
        });
        let mut world = Self {
            server,
            out: Outputs::default(),
            ms: 0,
        };
        world.server.start(Now::default(), &mut world.out);
        world.outputs();
        world
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.out.take()).collect()
    }

    fn link(&mut self, port: u16, link: WebSocketEvent) -> Vec<Output> {
        let now = Now::from_millis(self.ms);
        (self.server).handle_link(now, LISTENER, peer(port), link, &mut self.out);
        self.outputs()
    }

    fn say(&mut self, port: u16, text: Value) -> Vec<Output> {
        let text = text.to_string();
        let datagram = Datagram {
            socket: LISTENER,
            from: peer(port),
            bytes: text.as_bytes(),
        };
        (self.server).handle_datagram(Now::from_millis(self.ms), datagram, &mut self.out);
        self.outputs()
    }

    /// A text that may have waited in the network.
    fn say_late(&mut self, port: u16, text: &Value) -> Vec<Output> {
        let text = text.to_string();
        let datagram = Datagram {
            socket: LISTENER,
            from: peer(port),
            bytes: text.as_bytes(),
        };
        (self.server).handle_old_text(Now::from_millis(self.ms), datagram, &mut self.out);
        self.outputs()
    }

    fn drive(&mut self, port: u16, m_s: f64) -> Vec<Output> {
        let msg = json!({"linear": {"x": m_s}});
        self.say(
            port,
            json!({"op": "publish", "topic": "/cmd_vel", "msg": msg}),
        )
    }

    fn measured(&mut self, measured: Measurement) -> Vec<Output> {
        let event = Event::Measured(robot().scanner, measured);
        (self.server).handle_event(Now::from_millis(self.ms), event, &mut self.out);
        self.outputs()
    }

    /// Lets time pass, as the runner does.
    fn pass(&mut self, ms: u64) -> Vec<(u64, Output)> {
        let end = self.ms + ms;
        let mut all = Vec::new();
        while let Some(due) = self.server.next_timeout()
            && due <= Duration::from_millis(end)
        {
            self.ms = self.ms.max(u64::try_from(due.as_millis()).unwrap());
            (self.server).handle_timeout(Now::from_millis(self.ms), &mut self.out);
            let ms = self.ms;
            all.extend(self.outputs().into_iter().map(|output| (ms, output)));
        }
        self.ms = end;
        all
    }
}

fn peer(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// The text of the only status among outputs.
fn status(outputs: &[Output]) -> String {
    let [Output::Send(_, _, text)] = outputs else {
        panic!("{outputs:?}");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(
        (&text["op"], &text["level"]),
        (&json!("status"), &json!("error"))
    );
    text["msg"].as_str().unwrap().to_owned()
}

fn wheels(user: u32, mm_s: i32) -> Output {
    Output::Order(
        User(user),
        UserOrder::Drive(robot().wheels, WheelSpeeds::all(mm_s)),
    )
}

fn stopped(user: u32, device: amber_proto::Device) -> Output {
    Output::Order(User(user), UserOrder::Stop(device))
}

fn targets(user: u32, targets: Vec<Target>) -> Output {
    Output::Order(User(user), UserOrder::Targets(robot().targets, targets))
}

#[test]
fn old_commands_move_nothing_but_a_stop_is_never_too_old() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let goal = json!({"pose": {"position": {"x": 1.0, "y": 2.0}}});
    let motions = [
        json!({"op": "publish", "topic": "/cmd_vel", "msg": {"linear": {"x": 0.2}}}),
        json!({"op": "publish", "topic": "/cmd_vel", "msg": {"angular": {"z": -0.2}}}),
        json!({"op": "publish", "topic": "/goal", "msg": goal}),
    ];
    for motion in motions {
        // The client is told.
        assert_eq!(status(&world.say_late(1, &motion)), DELAYED);
        world.link(1, WebSocketEvent::Sent);
    }
    assert_eq!(world.out.tally.count(DELAYED), 3);
    // The same client drives, and its stops arrive late.
    world.drive(1, 0.2);
    let rest = json!({"op": "publish", "topic": "/cmd_vel", "msg": {}});
    assert_eq!(world.say_late(1, &rest), [wheels(0, 0)]);
    world.ms = 100;
    world.drive(1, 0.2);
    let stop = json!({"op": "call_service", "service": "/stop"});
    assert!(
        world
            .say_late(1, &stop)
            .contains(&stopped(0, robot().wheels))
    );
    assert_eq!(world.out.tally.count(DELAYED), 3);
}

#[test]
fn a_command_holds_for_half_a_second() {
    let mut world = World::new();
    assert_eq!(
        world.link(1, WebSocketEvent::Connected),
        [Output::Open(User(0), Some(peer(1)))]
    );
    assert_eq!(world.drive(1, 0.2), [wheels(0, 200)]);
    world.ms = 400;
    assert_eq!(world.drive(1, 0.1), [wheels(0, 100)]);
    assert_eq!(world.pass(2_000), [(900, wheels(0, 0))]);
}

#[test]
fn the_robot_stops_when_the_client_that_drives_is_gone() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.drive(1, 0.2);
    let gone = world.link(1, WebSocketEvent::Gone);
    assert_eq!(gone, [wheels(0, 0), Output::Close(User(0))]);
    assert_eq!(world.pass(2_000), []);
}

#[test]
fn a_client_says_where_the_robot_is_while_another_one_drives() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    world.drive(1, 0.2);
    let mut covariance = vec![0.0; 36];
    covariance[0] = 0.25;
    covariance[7] = 0.25;
    let msg = json!({"header": {"frame_id": "map"}, "pose": {
        "pose": {"position": {"x": 1, "y": -2}, "orientation": {"w": 1}},
        "covariance": covariance}});
    let set = json!({"op": "publish", "topic": "/initialpose", "msg": msg});
    let known = KnownPose {
        x: 1.0,
        y: 2.0,
        alfa: 0.0,
        sigma: Some(0.5),
        sigma_alfa: None,
    };
    let here = Output::Order(User(1), UserOrder::Here(robot().location, known));
    assert_eq!(world.say(2, set), [here]);
    let elsewhere = json!({"op": "publish", "topic": "/initialpose", "id": "1",
        "msg": {"header": {"frame_id": "odom"}}});
    let told = status(&world.say(2, elsewhere));
    assert_eq!(told, "/initialpose: frame \"odom\" is unknown, use \"map\"");
}

#[test]
fn one_client_drives_and_anyone_stops() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    world.drive(1, 0.2);
    assert_eq!(status(&world.drive(2, -0.2)), ANOTHER);
    assert_eq!(world.out.tally.count(ANOTHER), 1);
    world.link(2, WebSocketEvent::Sent);
    assert!(world.server.sessions(Now::from_millis(0))[0].drives);
    let said = world.say(2, json!({"op": "call_service", "service": "/stop"}));
    let stops = [
        stopped(1, robot().targets),
        stopped(1, robot().wheels),
        // To the one who has lost the controls.
        wheels(0, 0),
    ];
    assert_eq!(said[..3], stops);
    assert!(matches!(&said[3], Output::Send(_, to, _) if *to == peer(2)));
    assert_eq!(world.pass(2_000), []);
}

#[test]
fn a_client_halts_everything_and_an_old_release_is_dropped() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let call = |args| json!({"op": "call_service", "service": "/halt", "args": args});
    let halt = |is_halted| Output::Order(User(0), UserOrder::Halt(is_halted));
    assert!(world.say(1, call(json!({}))).contains(&halt(true)));
    assert!((world.say(1, call(json!({"data": false})))).contains(&halt(false)));
    let late = world.say_late(1, &call(json!({"data": false})));
    assert!(!late.contains(&halt(false)), "{late:?}");
    assert!((world.say_late(1, &call(json!({"data": true})))).contains(&halt(true)));
}

#[test]
fn a_client_whose_motion_is_refused_is_told_why() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let why = "roboclaw:0 refused the request: amber goto holds the lease of this device";
    let event = Event::Refused(User(0), why.into());
    (world.server).handle_event(Now::from_millis(0), event, &mut world.out);
    let told = world.outputs();
    let [Output::Send(_, to, text)] = &told[..] else {
        panic!("{told:?}");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(text, json!({"op": "status", "level": "error", "msg": why}));
    assert_eq!(*to, peer(1));
}

#[test]
fn measurements_are_watched_while_a_client_subscribes() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    let subscribe = json!({"op": "subscribe", "topic": "/scan"});
    let scans = Topic::Scans(robot().scanner);
    assert_eq!(world.say(1, subscribe.clone()), [Output::Watch(scans)]);
    assert_eq!(world.say(2, subscribe), []);
    let scan = Scan::new(&[0.0], &[1000], None).unwrap();
    let sent = world.measured(Measurement::Scan(scan.clone()));
    let to: Vec<_> = (sent.iter())
        .map(|output| match output {
            Output::Send(_, to, text) => (*to, text.len() > 100),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(to, [(peer(1), true), (peer(2), true)]);
    // The next scan waits until the client has taken this one.
    assert_eq!(world.measured(Measurement::Scan(scan)), []);
    assert_eq!(world.link(1, WebSocketEvent::Sent).len(), 1);
    assert_eq!(
        world.say(1, json!({"op": "unsubscribe", "topic": "/scan"})),
        []
    );
    let gone = world.link(2, WebSocketEvent::Gone);
    assert_eq!(gone, [Output::Unwatch(scans), Output::Close(User(1))]);
}

#[test]
fn only_messages_for_a_client_that_does_not_read_are_dropped() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(
        1,
        json!({"op": "subscribe", "topic": "/scan", "throttle_rate": 100}),
    );
    let scan = || Measurement::Scan(Scan::new(&[0.0], &[1000], None).unwrap());
    world.measured(scan());
    world.link(1, WebSocketEvent::Sent);
    // The next but one comes when the second is due, before the timer.
    for ms in [50, 101] {
        world.ms = ms;
        world.measured(scan());
    }
    let slow = |world: &World| world.out.tally.count("client reads too slowly");
    assert_eq!(slow(&world), 0);
    for ms in [201, 302] {
        world.ms = ms;
        world.measured(scan());
    }
    world.pass(0);
    assert_eq!(slow(&world), 1);
}

#[test]
fn an_unknown_pose_is_not_published() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(1, json!({"op": "subscribe", "topic": "/pose"}));
    assert_eq!(world.measured(Measurement::Pose(MapPose::default())), []);
    let pose = MapPose::new(1.0, 2.0, 0.5);
    assert_eq!(world.measured(Measurement::Pose(pose)).len(), 1);
}

/// The frames of a message: parents, children, and the positions of the children along x.
fn frames(outputs: &[Output]) -> Vec<(String, String, f64)> {
    let [Output::Send(_, _, text)] = outputs else {
        panic!("{outputs:?}");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    let transforms = text["msg"]["transforms"].as_array().unwrap().iter();
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let frame = |one: &Value| {
        let parent = name(&one["header"]["frame_id"]);
        let x = one["transform"]["translation"]["x"].as_f64().unwrap();
        (parent, name(&one["child_frame_id"]), x)
    };
    transforms.map(frame).collect()
}

#[test]
fn frames_lead_from_the_map_to_the_laser() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let robot = robot();
    let (wheels, pose) = (Topic::Odometry(robot.wheels), Topic::Pose(robot.location));
    let watched = world.say(1, json!({"op": "subscribe", "topic": "/tf"}));
    assert_eq!(watched, [Output::Watch(wheels), Output::Watch(pose)]);
    for ms in [0, 50, 100, 150, 200] {
        world.ms = ms;
        world.measured(Measurement::Wheels(WheelSpeeds::all(200)));
        world.link(1, WebSocketEvent::Sent);
    }
    // The robot has driven 40 mm since its start.
    let sent = world.measured(Measurement::Pose(MapPose::new(1.0, 2.0, 0.0)));
    let both = frames(&sent);
    let names = |(parent, child, _): &(String, String, f64)| format!("{parent} {child}");
    let named: Vec<_> = both.iter().map(names).collect();
    assert_eq!(named, ["map odom", "odom base_link"]);
    assert!(
        (both[0].2 - 0.96).abs() < 1e-9 && (both[1].2 - 0.04).abs() < 1e-9,
        "{both:?}"
    );

    // The laser is fixed on the robot: who subscribes later is told as well.
    for port in [2, 3] {
        world.link(port, WebSocketEvent::Connected);
    }
    let subscribe = json!({"op": "subscribe", "topic": "/tf_static"});
    let mount = Topic::Mount(robot.scanner);
    let camera = Topic::CameraPlace(robot.camera);
    assert_eq!(
        world.say(2, subscribe.clone()),
        [Output::Watch(mount), Output::Watch(camera)]
    );
    let sent = world.measured(Measurement::Mount(Pose::new(0.12, 0.0, 0.0).into()));
    let mut both = vec![("base_link".to_owned(), "laser".to_owned(), 0.12)];
    assert_eq!(frames(&sent), both);
    world.link(2, WebSocketEvent::Sent);
    let place = OpticalFrame::new([0.2, 0.0, 0.3], 0.0, 0.0, 0.0);
    let sent = world.measured(Measurement::CameraPlace(place));
    both.push((
        "base_link".to_owned(),
        "camera_optical_frame".to_owned(),
        0.2,
    ));
    assert_eq!(frames(&sent), both);
    let sent = world.say(3, subscribe);
    assert_eq!(frames(&sent), both);
    let [Output::Send(_, _, text)] = &sent[..] else {
        panic!("{sent:?}");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    let transform = &text["msg"]["transforms"][1]["transform"];
    assert_eq!(transform["translation"]["z"], 0.3);
    assert_eq!(
        transform["rotation"],
        json!({"x": -0.5, "y": 0.5, "z": -0.5, "w": 0.5})
    );
}

#[test]
fn a_pose_has_the_type_that_a_client_asks_for() {
    let mut world = World::new();
    let kinds = ["Pose", "PoseStamped", "PoseWithCovarianceStamped"];
    let topics = ["/robot_pose", "/robot_pose", "/amcl_pose"];
    for (port, (topic, kind)) in (1..).zip(topics.into_iter().zip(kinds)) {
        world.link(port, WebSocketEvent::Connected);
        let kind = format!("geometry_msgs/{kind}");
        world.say(
            port,
            json!({"op": "subscribe", "topic": topic, "type": kind}),
        );
    }
    let sent = world.measured(Measurement::Pose(MapPose::new(1.0, 2.0, 0.0)));
    let places = [
        "/msg/position/x",
        "/msg/pose/position/x",
        "/msg/pose/pose/position/x",
    ];
    assert_eq!(sent.len(), 3);
    for (output, place) in sent.iter().zip(places) {
        let Output::Send(_, _, text) = output else {
            panic!("{output:?}");
        };
        let text: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(text.pointer(place), Some(&json!(1.0)), "{text}");
    }
}

#[test]
fn a_gamepad_is_published_as_ros_has_it() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(1, json!({"op": "subscribe", "topic": "/joy"}));
    let state = amber_proto::gamepad::GamepadState {
        connected: Some(true),
        left_x: Some(0.5),
        buttons: vec![9],
        ..amber_proto::gamepad::GamepadState::default()
    };
    let sent = world.measured(Measurement::Gamepad(Box::new(state)));
    let [Output::Send(_, _, text)] = &sent[..] else {
        panic!("{sent:?}");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(text["msg"]["axes"], json!([-0.5, 0.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!(text["msg"]["buttons"][9], 1, "{text}");
    assert_eq!(text["msg"]["header"]["frame_id"], "joy");
}

#[test]
fn what_is_not_carried_out_is_in_the_log() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    world.say(1, json!({"op": "subscribe", "topic": "/rosout"}));
    let sent = world.say(2, json!({"op": "publish", "topic": "/nowhere", "msg": {}}));
    let texts: Vec<_> = (sent.iter())
        .map(|output| match output {
            Output::Send(_, to, text) => {
                (to.port(), serde_json::from_slice::<Value>(text).unwrap())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((texts[0].0, texts[1].0), (1, 2));
    assert_eq!(texts[0].1["msg"]["msg"], texts[1].1["msg"]);
    assert_eq!(texts[0].1["msg"]["level"], 40);
}

#[test]
fn binary_messages_are_texts_or_explained() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let mut say = |bytes: &[u8]| {
        let datagram = Datagram {
            socket: LISTENER,
            from: peer(1),
            bytes,
        };
        (world.server).handle_datagram(Now::from_millis(0), datagram, &mut world.out);
        world.outputs()
    };
    let twist = br#"{"op":"publish","topic":"/cmd_vel","msg":{"linear":{"x":0.2}}}"#;
    assert_eq!(say(twist), [wheels(0, 200)]);
    assert_eq!(
        status(&say(b"\xa1\x62op\x64stop")),
        "message is not a text in UTF-8"
    );
}

#[test]
fn odometry_comes_from_the_robot() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let outputs = world.say(1, json!({"op": "subscribe", "topic": "/odom"}));
    assert_eq!(outputs, [Output::Watch(Topic::Odometry(robot().wheels))]);
    let pose = Pose::new(3.0, -1.0, 0.5);
    let measured = Measurement::Odometry(pose, Twist::new(0.2, 0.1));
    let [Output::Send(_, _, text)] = &world.measured(measured)[..] else {
        panic!("one message");
    };
    let text: Value = serde_json::from_slice(text).unwrap();
    let position = &text["msg"]["pose"]["pose"]["position"];
    assert_eq!(
        (&position["x"], &position["y"]),
        (&json!(3.0), &json!(-1.0))
    );
    assert_eq!(text["msg"]["twist"]["twist"]["linear"]["x"], 0.2);
}

#[test]
fn without_a_robot_device_odometry_adds_up_the_motion() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(1, json!({"op": "subscribe", "topic": "/odom"}));
    let mut x = 0.0;
    for step in 0..=20 {
        world.ms = step * 50;
        for output in world.measured(Measurement::Wheels(WheelSpeeds::all(200))) {
            if let Output::Send(_, _, text) = output {
                let text: Value = serde_json::from_slice(&text).unwrap();
                x = text["msg"]["pose"]["pose"]["position"]["x"]
                    .as_f64()
                    .unwrap();
                assert_eq!(text["msg"]["twist"]["twist"]["linear"]["x"], 0.2);
            }
        }
        world.link(1, WebSocketEvent::Sent);
    }
    assert!((x - 0.2).abs() < 1e-9, "{x}");
}

#[test]
fn bad_texts_are_counted_by_kind() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(1, json!([]));
    world.say(1, json!({"op": "publish", "topic": "/nowhere", "msg": {}}));
    let tally = &world.out.tally;
    assert_eq!(tally.count("not a JSON object with a string \"op\""), 1);
    assert_eq!(tally.count("operation refused"), 1);
}

#[test]
fn the_end_of_the_gateway_stops_the_robot() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.drive(1, 0.2);
    world.server.stop(Now::from_millis(10), &mut world.out);
    let outputs = world.outputs();
    let goodbye = Output::Disconnect(LISTENER, peer(1));
    assert_eq!(outputs, [wheels(0, 0), goodbye]);
}

#[test]
fn a_client_gets_the_map_when_it_subscribes() {
    let mut world = World::new();
    let subscribe = json!({"op": "subscribe", "topic": "/map", "type": "nav_msgs/OccupancyGrid"});
    let map = Topic::Map(robot().maps());
    let occupied = |width| {
        let layout = amber_map::Layout {
            low: amber_map::Point::new(0.0, 0.0),
            cell_m: 0.05,
            columns: width,
            rows: 1,
        };
        let cells = vec![amber_map::Cell::Occupied; width];
        let grid = amber_map::Occupancy::from_cells(layout, cells).unwrap();
        Measurement::Map(grid.into())
    };
    let widths = |outputs: Vec<Output>| -> Vec<(SocketAddr, u64)> {
        let texts = outputs.into_iter().map(|output| match output {
            Output::Send(_, to, text) => (to, serde_json::from_slice::<Value>(&text).unwrap()),
            other => panic!("{other:?}"),
        });
        texts
            .map(|(to, text)| (to, text["msg"]["info"]["width"].as_u64().unwrap()))
            .collect()
    };
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    assert_eq!(world.say(1, subscribe.clone()), [Output::Watch(map)]);
    assert_eq!(widths(world.measured(occupied(3))), [(peer(1), 3)]);
    // The map does not change, but another client gets it.
    assert_eq!(widths(world.say(2, subscribe.clone())), [(peer(2), 3)]);
    world.link(1, WebSocketEvent::Sent);
    world.link(2, WebSocketEvent::Sent);
    let both = [(peer(1), 4), (peer(2), 4)];
    assert_eq!(widths(world.measured(occupied(4))), both);
    // While no client subscribes, the map may change.
    world.link(1, WebSocketEvent::Gone);
    let gone = world.link(2, WebSocketEvent::Gone);
    assert!(gone.contains(&Output::Unwatch(map)), "{gone:?}");
    world.link(3, WebSocketEvent::Connected);
    assert_eq!(world.say(3, subscribe), [Output::Watch(map)]);
}
