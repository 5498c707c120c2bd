//! A robot in the layout of `zenoh-bridge-ros2dds`, alone and together with that of `rmw_zenoh`.

use amber_ros2::messages::{Path, Pose};
use amber_ros2::{BridgeEndpoint, BridgeToken, Qos};
use zenoh::time::{NTP64, Timestamp};

use super::*;

/// What a bridge publishes: a payload, and the time at which it was sent if somebody has noted it.
fn send(operator: &Operator, robot: &str, forward_m_s: f64, age: Option<Duration>) {
    let mut twist = Twist::default();
    twist.linear.x = forward_m_s;
    let key = format!("{robot}/cmd_vel");
    let stamp = age.map(|age| {
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - age;
        Timestamp::new(NTP64::from(sent), operator.session.zid().into())
    });
    let put = operator.session.put(key, encode(&twist)).timestamp(stamp);
    put.wait().unwrap();
}

/// The messages of a topic. They have no attachment.
fn bare<M: RosMessage + Send + 'static>(
    operator: &Operator,
    key: &str,
) -> (zenoh::pubsub::Subscriber<()>, std::sync::mpsc::Receiver<M>) {
    let (sender, received) = std::sync::mpsc::channel();
    let subscriber = (operator.session.declare_subscriber(key.to_owned()))
        .callback(move |sample| {
            assert!(sample.attachment().is_none(), "{}", sample.key_expr());
            let _ = sender.send(decode(&sample.payload().to_bytes()).unwrap());
        })
        .wait()
        .unwrap();
    (subscriber, received)
}

/// A bridge with a node that publishes commands and goals for a robot: its tokens.
fn announced(operator: &Operator, robot: &str) -> [zenoh::liveliness::LivelinessToken; 3] {
    let publisher = |name: &str, ros_type| {
        let name = format!("/{robot}/{name}");
        BridgeEndpoint::new(EntityKind::Publisher, &name, &ros_type, &Qos::DEFAULT)
    };
    let commands = publisher("cmd_vel", Twist::TYPE);
    let goals = publisher("goal_pose", PoseStamped::TYPE);
    [None, Some(commands), Some(goals)].map(|endpoint| {
        let session = operator.session.zid().to_string();
        let token = BridgeToken { session, endpoint }.to_string();
        let token = operator.session.liveliness().declare_token(token);
        token.wait().unwrap()
    })
}

#[test]
fn nodes_behind_a_bridge_and_nodes_with_rmw_zenoh_share_a_robot() {
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
    let tokens = desk.tokens("@/*/@ros2_lv/**");
    let nodes = desk.tokens("@ros2_lv/0/**");
    let both = "[ros]\nlayouts = ['ros2dds', 'rmw_zenoh']\n";
    let robot = robot("r1", both, folder.path(), &address, &router);

    // The robot is a bridge with nodes, and a node.
    let bridge: BridgeToken = next(&tokens, true).parse().unwrap();
    assert_eq!(bridge.endpoint, None);
    let mut commands = Vec::new();
    wait_for("the scan", || {
        let token: BridgeToken = next(&tokens, true).parse().unwrap();
        assert_eq!(token.session, bridge.session);
        let endpoint = token.endpoint.expect("an endpoint");
        if endpoint.name == "/r1/cmd_vel" {
            commands.push(endpoint.clone());
        }
        (endpoint.name == "/r1/scan").then(|| {
            assert_eq!(endpoint.kind, EntityKind::Publisher);
            assert_eq!(endpoint.ros_type, "sensor_msgs/msg/LaserScan");
            assert!(endpoint.qos.unwrap().starts_with(":0:0:0,5:typehash="));
        })
    });
    // A bridge wants one type for a topic.
    assert_eq!(commands.len(), 1, "{commands:?}");
    assert_eq!(commands[0].ros_type, "geometry_msgs/msg/Twist");
    assert!(next(&nodes, true).contains(&bridge.session));

    // The laser is asked once for both: they get the same scans.
    let counted = |name: &str| {
        let info = desk.json("amber/r1/info").unwrap();
        info["counters"][name].as_u64().unwrap_or(0)
    };
    let attached = attached::<LaserScan>(&desk, "/r1/scan");
    attached.recv_timeout(PATIENCE).unwrap();
    let (subscriber, scans) = bare::<LaserScan>(&desk, "r1/scan");
    let mut scan = scans.recv_timeout(PATIENCE).unwrap();
    assert_eq!(scan.header.frame_id, "r1/laser");
    let time = |scan: &LaserScan| (scan.header.stamp.sec, scan.header.stamp.nanosec);
    wait_for("a scan of the same time", || {
        let (_, other) = attached.recv_timeout(PATIENCE).unwrap();
        while time(&scan) < time(&other) {
            scan = scans.recv_timeout(PATIENCE).unwrap();
        }
        (time(&scan) == time(&other)).then_some(())
    });
    // In a layout in which nobody listens, nothing is sent.
    subscriber.undeclare().wait().unwrap();
    let ros_sent = |taken: usize| {
        let before = counted("ros_sent");
        let taken = (0..taken).map(|_| attached.recv_timeout(PATIENCE).unwrap());
        let taken = taken.count() as u64;
        (counted("ros_sent") - before, taken)
    };
    wait_for("the end of the other layout", || {
        let (sent, taken) = ros_sent(10);
        (sent <= taken + 3).then_some(())
    });

    // What is late or unreadable moves nothing.
    send(&desk, "r1", 0.2, Some(Duration::from_millis(900)));
    send(&desk, "r1", f64::NAN, None);
    let short = desk.session.put("r1/cmd_vel", vec![0, 1, 0, 0, 7]);
    short.wait().unwrap();
    wait_for("the counters", || {
        let all = ["late", "not_finite", "unreadable"];
        let mut all = all.iter().map(|name| format!("ros_dropped_{name}"));
        all.all(|name| counted(&name) == 1).then_some(())
    });
    assert!(stands().is_some());

    // A node that announces itself is an operator, and the same one as nodes with rmw_zenoh.
    let programs = || {
        let info = desk.json("amber/r1/info").unwrap();
        let all = info["operators"].as_array().unwrap().clone();
        let ros = all.into_iter().filter(|it| it["who"] == "ros");
        ros.collect::<Vec<_>>()
    };
    assert_eq!(programs(), Vec::<Value>::new());
    let node = announced(&desk, "r1");
    wait_for("the node", || (programs().len() == 1).then_some(()));
    wait_for("motion", || {
        send(&desk, "r1", 0.15, None);
        moves()
    });
    let mut teleop = Teleop::new(&desk, "r1");
    for _ in 0..3 {
        send(&desk, "r1", 0.15, None);
        teleop.drive(0.15);
    }
    let found = programs();
    assert!(found.len() == 1 && found[0]["drives"] == true, "{found:?}");
    let mut alice = Operator::new(&router, "alice");
    let mut command = roboclaw::DriverMsg::data();
    command.motors_command = Some(WheelSpeeds::all(-200).into());
    let occupied = wait_for("a refusal", || {
        send(&desk, "r1", 0.15, None);
        alice
            .ask("amber/r1/roboclaw/0/drive", command.clone())
            .err()
    });
    assert_eq!(occupied.kind, Kind::Occupied);

    // A goal holds without further messages, and ends with the node that has set it.
    wait_for("a stop", stands);
    let goal = PoseStamped {
        header: Header::new(0, "map"),
        pose: Pose::flat(1.4, -1.0, 0.0),
    };
    let (_plan, plans) = bare::<Path>(&desk, "r1/plan");
    let goal = encode(&goal);
    wait_for("motion to the goal", || {
        // On a busy machine, a sign of life may come too late.
        let put = desk.session.put("r1/goal_pose", goal.clone());
        put.wait().unwrap();
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) && moves().is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        moves()
    });
    // The plan ends there, with y up.
    let end = wait_for("a plan", || {
        let plan = plans.recv_timeout(PATIENCE).unwrap();
        assert_eq!(plan.header.frame_id, "map");
        // Without a target it is empty.
        Some(plan.poses.last()?.pose.position)
    });
    assert!((end.x - 1.4).hypot(end.y + 1.0) < 0.3, "{end:?}");
    assert_eq!(programs().len(), 1);
    for token in node {
        token.undeclare().wait().unwrap();
    }
    let gone = Instant::now();
    wait_for("the end of the operator", || {
        programs().is_empty().then_some(())
    });
    // Earlier than without a token.
    assert!(gone.elapsed() < Duration::from_secs(8), "{gone:?}");
    wait_for("a stop", stands);
    let (x, y, _) = true_pose(&truth(&folder));
    assert!((x - 1.4).hypot(y + 1.0) > 0.3, "at the goal: {x} {y}");

    // A killed robot is no bridge any more.
    robot.signal("KILL");
    assert!(next(&tokens, false).starts_with("@/"));
}

#[test]
fn access_rules_bind_bridges_to_certificates() {
    let (_kept, folder, router) = with_rights(
        "
        ros = { layouts = ['ros2dds'] }
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
    let unseen = stranger.tokens("@/*/@ros2_lv/*/**");
    let start = |name: &str| {
        let (mediator, address) = dummy_mediator();
        let link = std::fs::read_to_string(settings(name, name, &folder)).unwrap();
        let settings = format!("{link}[ros]\nlayouts = ['ros2dds']\ntf = 'namespaced'\n");
        let robot = robot(name, &settings, &folder, &address, &router);
        (mediator, robot)
    };
    let _robots = ["r1", "r2"].map(start);

    // She sees both robots, and their caches; a stranger neither.
    let tokens = alice.tokens("@/*/@ros2_lv/**");
    let mut missing: Vec<_> = ["/r1/stop", "/r2/stop"].into();
    while !missing.is_empty() {
        let token: BridgeToken = next(&tokens, true).parse().unwrap();
        missing.retain(|name| token.endpoint.as_ref().is_none_or(|it| it.name != *name));
    }
    for robot in ["r1", "r2"] {
        let fixed = format!("{robot}/tf_static");
        assert!(latched::<TfMessage>(&alice, &fixed).is_some(), "{robot}");
        let caches = stranger.session.get(format!("{fixed}/@adv/**"));
        let answers = caches.timeout(PATIENCE).wait().unwrap();
        assert!(answers.recv().is_err(), "{robot}");
    }
    assert!(unseen.try_recv().is_err());

    // She drives one of them, and the stranger none.
    // A busy machine may lose a link for a moment.
    let info = |robot: &str| wait_for("facts", || alice.json(&format!("amber/{robot}/info")));
    let orders = |robot: &str| info(robot)["counters"]["orders"].as_u64().unwrap_or(0);
    let is_driven = |robot: &str| {
        let operators = info(robot)["operators"].clone();
        let operators = operators.as_array().unwrap();
        operators.iter().any(|it| it["who"] == "ros")
    };
    let mut tokens = Vec::new();
    for (operator, robot) in [(&stranger, "r1"), (&stranger, "r2"), (&alice, "r2")] {
        tokens.push(announced(operator, robot));
        send(operator, robot, 0.1, None);
    }
    assert_eq!((orders("r1"), orders("r2")), (0, 0));
    assert!(!is_driven("r1") && !is_driven("r2"));
    tokens.push(announced(&alice, "r1"));
    wait_for("the node of alice", || is_driven("r1").then_some(()));
    wait_for("an order", || {
        send(&alice, "r1", 0.1, None);
        (orders("r1") > 0).then_some(())
    });
    assert_eq!(orders("r2"), 0);
    assert!(!is_driven("r2"));
    let stops = |robot: &str| {
        let asked = alice.session.get(format!("{robot}/stop"));
        let answers = asked.timeout(PATIENCE).wait().unwrap();
        answers.recv().is_ok()
    };
    assert!(stops("r1") && !stops("r2"));
}

#[test]
fn other_peoples_bridges_see_read_and_drive_the_robot() {
    let router = Router::start();
    let (demo, address, folder) = demo();
    demo.line("INFO ready: ");
    let settings = "[ros]\nlayouts = ['ros2dds']\n";
    let _robot = robot("r1", settings, folder.path(), &address, &router);
    let client = Client::connect(&address).unwrap();
    let bridge = |args: &[&str]| script("bridge.py", &router, args);

    // What a bridge makes known to its DDS nodes.
    let Some(seen) = bridge(&["look"]) else {
        return;
    };
    let tokens = seen["tokens"].as_array().unwrap().iter();
    let tokens = tokens.map(|it| it.as_str().unwrap().parse::<BridgeToken>().unwrap());
    let endpoints: Vec<_> = tokens.filter_map(|it| it.endpoint).collect();
    let has = |kind, name: &str, ros_type: &str| {
        let mut all = endpoints.iter();
        all.any(|it| it.kind == kind && it.name == name && it.ros_type == ros_type)
    };
    for (topic, ros_type) in TOPICS {
        assert!(
            has(EntityKind::Publisher, topic, ros_type),
            "{topic}: {seen}"
        );
    }
    let commands = (EntityKind::Subscription, "geometry_msgs/msg/Twist");
    assert!(has(commands.0, "/r1/cmd_vel", commands.1), "{seen}");
    assert!(
        has(EntityKind::Service, "/r1/stop", "std_srvs/srv/Trigger"),
        "{seen}"
    );

    // All topics, at rest.
    let location = client.location(0);
    wait_for("the pose", || {
        location.pose().ok().filter(|pose| pose.quality > 0.9)
    });
    let args = TOPICS.iter().flat_map(|(topic, kind)| [*topic, *kind]);
    let args: Vec<_> = ["read"].into_iter().chain(args).collect();
    let read = bridge(&args).unwrap();
    for (topic, _) in TOPICS {
        assert!(number(&read[topic]["count"]) >= 5.0, "{topic}: {read}");
    }
    check_scan(&client, &read["/r1/scan"]["last"]);
    let expected = true_pose(&truth(&folder));
    check_poses(&read, expected);
    check_sensors(&read);

    // Who comes late gets what does not change.
    let late = ["late", "/tf_static", "tf2_msgs/msg/TFMessage"];
    let map = ["/r1/map", "nav_msgs/msg/OccupancyGrid"];
    let late: Vec<_> = late.into_iter().chain(map).collect();
    let late = bridge(&late).unwrap();
    let fixed = late["/tf_static"]["last"]["transforms"].as_array().unwrap();
    assert_eq!(fixed.len(), 3, "{fixed:?}");
    check_map(&late["/r1/map"]["last"], expected);

    // A short way by cmd_vel, and the wheels stop half a second after the last command.
    let driven = bridge(&["drive", "/r1", "0.3"]).unwrap();
    let rest_s = number(&driven["rest_s"]);
    assert!(number(&driven["moved_m"]) >= 0.3, "{driven}");
    assert!((0.3..3.0).contains(&rest_s), "{driven}");
    let after = true_pose(&truth(&folder));
    let moved_m = (after.0 - expected.0).hypot(after.1 - expected.1);
    assert!(
        (moved_m - number(&driven["total_m"])).abs() < 0.05,
        "{driven} {moved_m}"
    );

    let answer = bridge(&["stop", "/r1"]).unwrap();
    assert_eq!(answer["success"], true);
}
