//! A robot as a node of ROS 2: real processes, a real router, and third-party nodes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_client::WheelSpeeds;
use amber_client::blocking::Client;
use amber_proto::{DeviceMessage, roboclaw};
use amber_ros2::attachment::Gid;
use amber_ros2::messages::{
    DiagnosticArray, Header, LaserScan, Odometry, PoseStamped, TfMessage, Twist,
};
use amber_ros2::{Attachment, DataKey, EntityKind, RosMessage, Token, decode, encode};
use amber_zenoh::problem::Kind;
use serde_json::Value;
use zenoh::Wait;
use zenoh_ext::{AdvancedSubscriberBuilderExt, HistoryConfig};

use self::common::{
    Operator, PATIENCE, Process, Router, demo, dummy_mediator, next, robot_with, settings, truth,
    wait_for, with_rights,
};

#[path = "ros/bridge.rs"]
mod bridge;
#[allow(dead_code)]
mod common;
#[path = "ros/sensors.rs"]
mod sensors;

const ROS: &str = "[ros]\n";

/// A robot with these settings, in a file of this folder.
fn robot(name: &str, settings: &str, folder: &Path, mediator: &str, router: &Router) -> Process {
    let file = folder.join(name).with_extension("toml");
    std::fs::write(&file, settings).unwrap();
    let robot = robot_with(name, mediator, router, &file);
    robot.line("a node of ROS 2");
    robot
}

/// The key of a topic of the robot r1.
fn key<M: RosMessage>(name: &str) -> String {
    DataKey::new(0, name, &M::TYPE).to_string()
}

/// Publishes as a node does.
struct Teleop<'a> {
    operator: &'a Operator,
    key: String,
    sent: i64,
    gid: Gid,
}

impl<'a> Teleop<'a> {
    fn new(operator: &'a Operator, robot: &str) -> Self {
        Self {
            operator,
            key: key::<Twist>(&format!("/{robot}/cmd_vel")),
            sent: 0,
            gid: Gid([9; 16]),
        }
    }

    fn drive(&mut self, forward_m_s: f64) {
        self.send(forward_m_s, 0, 33);
    }

    /// A command of this age, with so many bytes of its attachment.
    fn send(&mut self, forward_m_s: f64, age_ms: u64, attached: usize) {
        let age = Duration::from_millis(age_ms);
        self.put(forward_m_s, |now| now - age, attached);
    }

    /// A command with another time.
    fn send_at(&mut self, forward_m_s: f64, at: impl Fn(Duration) -> Duration) {
        self.put(forward_m_s, at, 33);
    }

    fn put(&mut self, forward_m_s: f64, at: impl Fn(Duration) -> Duration, attached: usize) {
        let mut twist = Twist::default();
        twist.linear.x = forward_m_s;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let sent = at(now);
        self.sent += 1;
        let attachment = Attachment {
            sequence: self.sent,
            source_ns: sent.as_nanos().try_into().unwrap(),
            gid: self.gid,
        };
        let put = (self.operator.session).put(self.key.clone(), encode(&twist));
        let attachment = attachment.encode()[..attached].to_vec();
        put.attachment(attachment).wait().unwrap();
    }
}

#[test]
fn a_robot_is_a_node_that_obeys_like_any_operator() {
    let router = Router::start();
    let (demo, address, folder) = demo();
    demo.line("INFO ready: ");
    let client = Client::connect(&address).unwrap();
    let wheels = client.roboclaw(0);
    let speed = || wheels.speeds().ok().map(|speeds| speeds.front_left_mm_s);
    let moves = || speed().filter(|speed| *speed > 50);
    let stands = || speed().filter(|speed| speed.abs() < 20);
    wait_for("the wheels", speed);
    let desk = Operator::new(&router, "desk");
    let tokens = desk.tokens("@ros2_lv/0/**");
    let robot = robot("r1", ROS, folder.path(), &address, &router);

    // The node comes first, then its publishers.
    let node: Token = next(&tokens, true).parse().unwrap();
    assert_eq!(
        (node.namespace.as_str(), node.node_name.as_str()),
        ("/r1", "amber")
    );
    assert_eq!(node.endpoint, None);
    let scan_token = loop {
        let token: Token = next(&tokens, true).parse().unwrap();
        let endpoint = token.endpoint.clone().expect("an endpoint");
        assert_eq!(token.session, node.session);
        if endpoint.name == "/r1/scan" {
            assert_eq!(endpoint.kind, EntityKind::Publisher);
            assert_eq!(endpoint.qos, "2::,5:,:,:,,");
            break token;
        }
    };

    // Scans are numbered, and have the identity of their publisher.
    let scans = attached::<LaserScan>(&desk, "/r1/scan");
    let (first, scan) = scans.recv_timeout(PATIENCE).unwrap();
    let (second, _) = scans.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first.gid, scan_token.gid());
    assert_eq!(second.sequence, first.sequence + 1);
    assert_eq!(
        (scan.header.frame_id.as_str(), scan.ranges.len()),
        ("r1/laser", 682)
    );

    // What no node would send, and what is late, moves nothing.
    let mut teleop = Teleop::new(&desk, "r1");
    teleop.send(0.2, 0, 0);
    teleop.send(0.2, 0, 32);
    teleop.send(f64::NAN, 0, 33);
    teleop.send(0.2, 900, 33);
    let counted = |name: &str| {
        let info = desk.json("amber/r1/info").unwrap();
        info["counters"][name].as_u64().unwrap_or(0)
    };
    wait_for("the counters", || {
        let all = [
            ("ros_dropped_attachment", 2),
            ("ros_dropped_not_finite", 1),
            ("ros_dropped_late", 1),
        ];
        all.iter()
            .all(|(name, count)| counted(name) == *count)
            .then_some(())
    });
    assert!(stands().is_some());

    // A command drives; then nobody else does.
    wait_for("motion", || {
        teleop.drive(0.15);
        moves()
    });
    teleop.drive(0.15);
    let mut alice = Operator::new(&router, "alice");
    let mut command = roboclaw::DriverMsg::data();
    command.motors_command = Some(WheelSpeeds::all(-200).into());
    let occupied = wait_for("a refusal", || {
        teleop.drive(0.15);
        alice
            .ask("amber/r1/roboclaw/0/drive", command.clone())
            .err()
    });
    assert_eq!(occupied.kind, Kind::Occupied);
    let info = desk.json("amber/r1/info").unwrap();
    let operators = info["operators"].as_array().unwrap();
    let has_ros = operators
        .iter()
        .any(|it| it["who"] == "ros" && it["drives"] == true);
    assert!(has_ros, "{info}");

    // Silence stops the wheels, long before the driver itself would after four seconds.
    teleop.drive(0.15);
    let silent = Instant::now();
    wait_for("a stop", stands);
    let took = silent.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");

    // The frames meet: the odometry is where the transform says.
    let odometry = attached::<Odometry>(&desk, "/r1/odom");
    let transforms = attached::<TfMessage>(&desk, "/tf");
    let (_, at) = odometry.recv_timeout(PATIENCE).unwrap();
    let found = wait_for("the transform of this time", || {
        let (_, message) = transforms.try_recv().ok()?;
        let mut all = message.transforms.into_iter();
        all.find(|it| it.child_frame_id == "r1/base_link")
    });
    assert_eq!(found.header.frame_id, "r1/odom");
    assert!((found.transform.translation.x - at.pose.pose.position.x).abs() < 0.01);

    // A killed robot is no node any more.
    robot.signal("KILL");
    assert!(next(&tokens, false).starts_with("@ros2_lv/0/"));
}

#[test]
fn clocks_that_differ_are_understood_or_refused_and_always_said() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let folder = tempfile::tempdir().unwrap();
    let robot = robot("r1", ROS, folder.path(), &address, &router);
    let desk = Operator::new(&router, "desk");
    let info = || wait_for("facts", || desk.json("amber/r1/info"));
    let counted = |name: &str| info()["counters"][name].as_u64().unwrap_or(0);
    // The clock of this node is behind: after a moment, the robot knows that and obeys.
    let mut behind = Teleop::new(&desk, "r1");
    wait_for("an order", || {
        behind.send(0.1, 700, 33);
        (counted("orders") > 0).then_some(())
    });
    let line = robot.line("the clock of a ROS 2 node is ");
    assert!(line.contains("s behind that of the robot"), "{line}");
    let clock = |info: &Value| info["clocks"]["/r1/cmd_vel"].as_i64().unwrap_or(0);
    // A busy machine is slow, too.
    assert!((-30_000..=-700).contains(&clock(&info())), "{}", info());
    let listed = common::fleet(&router, &[]);
    assert!(clock(&listed["robots"][0]["info"]) < -600, "{listed}");
    let states = attached::<DiagnosticArray>(&desk, "/diagnostics");
    wait_for("the diagnosis", || {
        let (_, array) = states.recv_timeout(PATIENCE).unwrap();
        let state = array
            .status
            .into_iter()
            .find(|it| it.name == "r1: clocks")?;
        state
            .message
            .contains("behind that of the robot")
            .then_some(())
    });
    // That of another one is ahead.
    let orders = counted("orders");
    let mut ahead = Teleop::new(&desk, "r1");
    ahead.gid = Gid([8; 16]);
    ahead.send_at(0.1, |now| now + Duration::from_millis(900));
    wait_for("a refusal", || {
        (counted("ros_dropped_future") == 1).then_some(())
    });
    assert_eq!(counted("orders"), orders);
    // A refused goal is said, too.
    let goal = PoseStamped {
        header: Header::new(0, "r1/odom"),
        ..PoseStamped::default()
    };
    let attachment = Attachment {
        sequence: 1,
        source_ns: 0,
        gid: Gid([7; 16]),
    };
    let put = (desk.session).put(key::<PoseStamped>("/r1/goal_pose"), encode(&goal));
    put.attachment(attachment.encode().to_vec()).wait().unwrap();
    robot.line("a goal of ROS 2 is not carried out: the pose must be in the frame map");
    wait_for("the diagnosis", || {
        let (_, array) = states.recv_timeout(PATIENCE).unwrap();
        let state = array.status.into_iter().find(|it| it.name == "r1: goals")?;
        state.message.contains("not in 'r1/odom'").then_some(())
    });
    assert!(clock(&info()) > 300, "{}", info());
}

#[test]
fn access_rules_bind_commands_to_certificates() {
    let (_kept, folder, router) = with_rights(
        "
        ros = {}
        [[robot]]
        name = 'r1'
        [[robot]]
        name = 'r2'
        [[operator]]
        name = 'alice'
        drives = ['r1']
        watches = ['r2']
        [[operator]]
        name = 'stranger'",
    );
    let alice = Operator::secure(&router, "alice", "alice", &folder);
    let stranger = Operator::secure(&router, "stranger", "stranger", &folder);
    let unseen = stranger.tokens("@ros2_lv/0/**");
    let start = |name: &str| {
        let (mediator, address) = dummy_mediator();
        let link = std::fs::read_to_string(settings(name, name, &folder)).unwrap();
        let settings = format!("{link}[ros]\ntf = 'namespaced'\n");
        let robot = robot(name, &settings, &folder, &address, &router);
        (mediator, robot)
    };
    let _robots = ["r1", "r2"].map(start);

    // She sees both nodes, and their caches; a stranger neither.
    for robot in ["r1", "r2"] {
        let tokens = alice.tokens(&format!("@ros2_lv/0/*/*/*/NN/%/%{robot}/amber"));
        next(&tokens, true);
        let fixed = key::<TfMessage>(&format!("/{robot}/tf_static"));
        assert!(latched::<TfMessage>(&alice, &fixed).is_some(), "{robot}");
        let caches = stranger.session.get(format!("{fixed}/@adv/**"));
        let answers = caches.timeout(PATIENCE).wait().unwrap();
        assert!(answers.recv().is_err(), "{robot}");
    }
    assert!(unseen.try_recv().is_err());

    // She drives one of them, and the stranger none.
    let orders = |robot: &str| {
        // A busy machine may lose a link for a moment.
        let info = wait_for("facts", || alice.json(&format!("amber/{robot}/info")));
        info["counters"]["orders"].as_u64().unwrap_or(0)
    };
    for (operator, robot) in [(&stranger, "r1"), (&stranger, "r2"), (&alice, "r2")] {
        Teleop::new(operator, robot).drive(0.1);
    }
    assert_eq!((orders("r1"), orders("r2")), (0, 0));
    let mut teleop = Teleop::new(&alice, "r1");
    wait_for("an order", || {
        teleop.drive(0.1);
        (orders("r1") > 0).then_some(())
    });
    assert_eq!(orders("r2"), 0);
}

/// What a subscriber gets that comes late.
fn latched<M: RosMessage + Send + 'static>(operator: &Operator, key: &str) -> Option<M> {
    let (sender, received) = std::sync::mpsc::channel();
    let _subscriber = (operator.session.declare_subscriber(key.to_owned()))
        .history(
            HistoryConfig::default()
                .detect_late_publishers()
                .max_samples(1),
        )
        .callback(move |sample| {
            let _ = sender.send(decode(&sample.payload().to_bytes()).unwrap());
        })
        .wait()
        .unwrap();
    received.recv_timeout(PATIENCE).ok()
}

/// The messages of a topic with their attachments.
fn attached<M: RosMessage + Send + 'static>(
    operator: &Operator,
    name: &str,
) -> std::sync::mpsc::Receiver<(Attachment, M)> {
    let (sender, received) = std::sync::mpsc::channel();
    (operator.session.declare_subscriber(key::<M>(name)))
        .callback(move |sample| {
            let attachment = sample.attachment().expect("an attachment").to_bytes();
            let attachment = Attachment::decode(&attachment).unwrap();
            let message = decode(&sample.payload().to_bytes()).unwrap();
            let _ = sender.send((attachment, message));
        })
        .background()
        .wait()
        .unwrap();
    received
}

/// Runs `peer.py`, and returns what it prints; `None` if it cannot run here.
fn peer(router: &Router, args: &[&str]) -> Option<Value> {
    script("peer.py", router, args)
}

/// The same for another script of this folder.
fn script(name: &str, router: &Router, args: &[&str]) -> Option<Value> {
    let (_, port) = router.endpoint.rsplit_once(':').unwrap();
    let mut python = Command::new("python3");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros");
    python.arg(folder.join(name)).arg(port);
    python.args(args).stdin(Stdio::null());
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    let Ok(output) = python.output() else {
        return skip();
    };
    if output.status.code() == Some(77) {
        return skip();
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    let result = serde_json::from_slice(&output.stdout);
    Some(result.unwrap_or_else(|error| panic!("{args:?}: {error}: {errors}")))
}

fn skip() -> Option<Value> {
    let why = "SKIP nodes of ROS 2: no python3 with zenoh-ros2-sdk, eclipse-zenoh and rosbags";
    let _ = writeln!(std::io::stderr(), "{why}");
    None
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

/// Place and direction of a message: x, y, and the angle of the quaternion.
fn placed(place: &Value, turn: &Value) -> (f64, f64, f64) {
    let angle = 2.0 * number(&turn["z"]).atan2(number(&turn["w"]));
    (number(&place["x"]), number(&place["y"]), angle)
}

/// Where something is that is given in another frame.
fn then(frame: (f64, f64, f64), place: (f64, f64, f64)) -> (f64, f64, f64) {
    let (sin, cos) = frame.2.sin_cos();
    let x = frame.0 + place.0 * cos - place.1 * sin;
    let y = frame.1 + place.0 * sin + place.1 * cos;
    (x, y, frame.2 + place.2)
}

/// The true pose with y up and angles counter-clockwise.
fn true_pose(truth: &Value) -> (f64, f64, f64) {
    let heading = -number(&truth["heading_deg"]).to_radians();
    (number(&truth["x_m"]), -number(&truth["y_m"]), heading)
}

#[track_caller]
fn assert_near(found: (f64, f64, f64), expected: (f64, f64, f64), what: &str) {
    let turned = (found.2 - expected.2).sin().abs();
    let away = (found.0 - expected.0).hypot(found.1 - expected.1);
    assert!(
        away < 0.15 && turned < 0.1,
        "{what}: {found:?} instead of {expected:?}"
    );
}

#[test]
fn other_peoples_nodes_see_read_and_drive_the_robot() {
    let router = Router::start();
    let (demo, address, folder) = demo();
    demo.line("INFO ready: ");
    let _robot = robot("r1", ROS, folder.path(), &address, &router);
    let client = Client::connect(&address).unwrap();

    // What `ros2 topic list` and `ros2 topic info` show.
    let Some(seen) = peer(&router, &["look"]) else {
        return;
    };
    for (topic, kind) in TOPICS {
        let types = seen["topics"][topic].as_array();
        let types = types.unwrap_or_else(|| panic!("{topic}: {seen}"));
        assert!(types.iter().any(|it| it == kind), "{topic}: {types:?}");
        let publisher = &seen["info"][topic]["publishers"][0];
        assert_eq!(publisher["node_name"], "amber", "{topic}");
        assert_eq!(publisher["node_namespace"], "/r1", "{topic}");
    }
    let commands = &seen["info"]["/r1/cmd_vel"];
    assert_eq!(commands["subscriber_count"], 2);
    let types = commands["topic_types"].as_array().unwrap();
    assert_eq!(types.len(), 2, "{types:?}");
    assert_eq!(seen["services"]["/r1/stop"][0], "std_srvs/srv/Trigger");

    // All topics, at rest.
    let location = client.location(0);
    wait_for("the pose", || {
        location.pose().ok().filter(|pose| pose.quality > 0.9)
    });
    let args = TOPICS.iter().flat_map(|(topic, kind)| [*topic, *kind]);
    let args: Vec<_> = ["read"].into_iter().chain(args).collect();
    let read = peer(&router, &args).unwrap();
    for (topic, _) in TOPICS {
        assert!(number(&read[topic]["count"]) >= 5.0, "{topic}: {read}");
    }
    check_scan(&client, &read["/r1/scan"]["last"]);
    let truth_before = truth(&folder);
    let expected = true_pose(&truth_before);
    check_poses(&read, expected);
    check_sensors(&read);

    // Who comes late gets what does not change.
    let late = ["late", "/tf_static", "tf2_msgs/msg/TFMessage"];
    let map = ["/r1/map", "nav_msgs/msg/OccupancyGrid"];
    let shape = ["/r1/robot_description", "std_msgs/msg/String"];
    let late: Vec<_> = late.into_iter().chain(map).chain(shape).collect();
    let late = peer(&router, &late).unwrap();
    let urdf = late["/r1/robot_description"]["last"]["data"].as_str();
    let urdf = urdf.unwrap_or_else(|| panic!("{late}"));
    assert!(
        urdf.contains("<robot") && urdf.contains("base_link"),
        "{urdf}"
    );
    let fixed = late["/tf_static"]["last"]["transforms"].as_array().unwrap();
    let frames = fixed
        .iter()
        .map(|it| it["child_frame_id"].as_str().unwrap());
    assert_eq!(
        frames.collect::<Vec<_>>(),
        ["r1/laser", "r1/imu", "r1/camera_optical_frame"]
    );
    assert_eq!(late["/tf_static"]["attachment"], 33);
    check_map(&late["/r1/map"]["last"], expected);

    // One metre by cmd_vel, and the wheels stop half a second after the last command.
    let driven = peer(&router, &["drive", "/r1", "1"]).unwrap();
    let rest_s = number(&driven["rest_s"]);
    assert!(number(&driven["moved_m"]) >= 1.0, "{driven}");
    assert!((0.3..3.0).contains(&rest_s), "{driven}");
    let after = true_pose(&truth(&folder));
    let moved_m = (after.0 - expected.0).hypot(after.1 - expected.1);
    assert!(
        (moved_m - number(&driven["total_m"])).abs() < 0.05,
        "{driven} {moved_m}"
    );

    let answer = peer(&router, &["stop", "/r1"]).unwrap();
    assert_eq!(answer["success"], true);
}

/// What the robot publishes again and again.
const TOPICS: [(&str, &str); 8] = [
    ("/r1/scan", "sensor_msgs/msg/LaserScan"),
    ("/r1/odom", "nav_msgs/msg/Odometry"),
    ("/tf", "tf2_msgs/msg/TFMessage"),
    ("/r1/joint_states", "sensor_msgs/msg/JointState"),
    ("/r1/imu", "sensor_msgs/msg/Imu"),
    ("/r1/mag", "sensor_msgs/msg/MagneticField"),
    ("/r1/pose", "geometry_msgs/msg/PoseWithCovarianceStamped"),
    ("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray"),
];

/// The scan of the same place as a client of Amber gets it: clockwise, in millimetres.
fn check_scan(client: &Client, scan: &Value) {
    let points = client.hokuyo(0).scan().unwrap();
    let points = points.points();
    let ranges = scan["ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), points.len());
    let first = -points.last().unwrap().angle_deg.to_radians();
    assert!((number(&scan["angle_min"]) - first).abs() < 1e-3, "{first}");
    let near = ranges
        .iter()
        .zip(points.iter().rev())
        .filter(|(range, point)| match range.as_f64() {
            Some(range_m) => (range_m - f64::from(point.distance_mm) / 1000.0).abs() < 0.15,
            None => !point.is_valid(),
        });
    let near = near.count();
    assert!(near * 10 > ranges.len() * 9, "{near} of {}", ranges.len());
}

fn check_poses(read: &Value, expected: (f64, f64, f64)) {
    let pose = &read["/r1/pose"]["last"]["pose"];
    let covariance = pose["covariance"].as_array().unwrap();
    assert!(
        number(&covariance[0]) < 0.1 && number(&covariance[35]) < 0.1,
        "{pose}"
    );
    let pose = &pose["pose"];
    let found = placed(&pose["position"], &pose["orientation"]);
    assert_near(found, expected, "pose");
    // From the map over the wheels to the robot.
    let transforms = read["/tf"]["last"]["transforms"].as_array().unwrap();
    let of = |child: &str| {
        let mut all = transforms.iter();
        let found = all.find(|it| it["child_frame_id"] == child);
        let found = &found.unwrap_or_else(|| panic!("{child}: {transforms:?}"))["transform"];
        placed(&found["translation"], &found["rotation"])
    };
    assert_near(then(of("r1/odom"), of("r1/base_link")), expected, "tf");
    let odometry = &read["/r1/odom"]["last"];
    assert_eq!(odometry["header"]["frame_id"], "r1/odom");
    assert_eq!(odometry["child_frame_id"], "r1/base_link");
}

fn check_sensors(read: &Value) {
    let imu = &read["/r1/imu"]["last"];
    let up = number(&imu["linear_acceleration"]["z"]);
    assert!((up - 9.8).abs() < 0.5, "{imu}");
    assert_eq!(imu["orientation_covariance"][0], -1.0);
    let joints = &read["/r1/joint_states"]["last"];
    assert_eq!(joints["name"][0], "front_left_wheel");
    assert_eq!(joints["position"].as_array().unwrap().len(), 4);
    let status = read["/diagnostics"]["last"]["status"].as_array().unwrap();
    let hokuyo = status.iter().find(|it| it["name"] == "r1: hokuyo:0");
    assert_eq!(hokuyo.unwrap()["level"], 0, "{status:?}");
}

/// The map is free where the robot stands, and has walls.
fn check_map(map: &Value, robot: (f64, f64, f64)) {
    let info = &map["info"];
    let (width, cell_m) = (number(&info["width"]), number(&info["resolution"]));
    let origin = &info["origin"]["position"];
    let column = ((robot.0 - number(&origin["x"])) / cell_m).floor();
    let row = ((robot.1 - number(&origin["y"])) / cell_m).floor();
    let cells = map["data"].as_array().unwrap();
    assert_eq!(cells.len() as f64, width * number(&info["height"]));
    assert_eq!(cells[(row * width + column) as usize], 0);
    let walls = cells.iter().filter(|cell| **cell == 100).count();
    assert!(walls > 100, "{walls}");
}
