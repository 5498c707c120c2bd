//! The action `navigate_to_pose`, `initialpose` and `save_map`: real processes, and clients as nodes of ROS 2
//! with `rmw_zenoh` have them.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;
use amber_proto::{DeviceMessage, roboclaw};
use amber_ros2::attachment::Gid;
use amber_ros2::messages::{
    CancelGoalRequest, CancelGoalResponse, GetResultRequest, GetResultResponse, GoalId, GoalInfo,
    GoalStatus, GoalStatusArray, Header, NavigateFeedbackMessage, NavigateGoal, Pose, PoseStamped,
    PoseWithCovarianceStamped, SaveMapRequest, SaveMapResponse, SendGoalRequest, SendGoalResponse,
    TrackedFeedbackMessage, TriggerRequest, TriggerResponse,
};
use amber_ros2::{
    Attachment, DataKey, Endpoint, EntityKind, Qos, RosMessage, RosType, Token, decode, encode,
};
use serde_json::json;
use zenoh::Wait;
use zenoh::handlers::FifoChannelHandler;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::Reply;
use zenoh_ext::{AdvancedSubscriberBuilderExt, HistoryConfig};

use self::common::world::World;
use self::common::{Operator, PATIENCE, Process, Router, amber, client, wait_for};

#[allow(dead_code)]
mod common;

/// A way through the whole flat on a busy machine.
const LONG_WAY: Duration = Duration::from_secs(180);
const ACTION: &str = "/r1/navigate_to_pose/_action";

/// A client of a service, with its token.
struct Service<'a> {
    operator: &'a Operator,
    key: String,
    token: String,
    sent: Cell<i64>,
    _token: LivelinessToken,
}

impl<'a> Service<'a> {
    fn new<M: RosMessage>(operator: &'a Operator, name: &str) -> Self {
        let (token, key) = endpoint(&operator.session.zid().to_string(), name, &M::TYPE);
        let declared = operator.session.liveliness().declare_token(&token);
        Self {
            operator,
            key,
            sent: Cell::new(0),
            _token: declared.wait().unwrap(),
            token,
        }
    }

    fn send(&self, request: &impl RosMessage) -> FifoChannelHandler<Reply> {
        self.sent.set(self.sent.get() + 1);
        (self.operator.session.get(&self.key))
            .payload(encode(request))
            .attachment(attachment(&self.token, self.sent.get()))
            .timeout(LONG_WAY)
            .wait()
            .unwrap()
    }

    /// Waits for the reply. Its attachment names the client.
    #[track_caller]
    fn reply<R: RosMessage>(&self, replies: &FifoChannelHandler<Reply>) -> Option<R> {
        let reply = replies.recv_timeout(LONG_WAY).ok()??;
        let sample = reply.result().expect("no error");
        let attachment = sample.attachment().expect("an attachment").to_bytes();
        let attachment = Attachment::decode(&attachment).unwrap();
        assert_eq!(attachment.gid, Gid::of_token(&self.token));
        Some(decode(&sample.payload().to_bytes()).unwrap())
    }

    /// Calls the service, as soon as somebody serves it.
    #[track_caller]
    fn call<R: RosMessage>(&self, request: &impl RosMessage) -> R {
        wait_for("a reply", || self.reply(&self.send(request)))
    }
}

/// A client of the action.
struct Client<'a> {
    send: Service<'a>,
    cancel: Service<'a>,
    result: Service<'a>,
}

impl<'a> Client<'a> {
    fn new(operator: &'a Operator) -> Self {
        let name = |part: &str| format!("{ACTION}/{part}");
        Self {
            send: Service::new::<SendGoalRequest>(operator, &name("send_goal")),
            cancel: Service::new::<CancelGoalRequest>(operator, &name("cancel_goal")),
            result: Service::new::<GetResultRequest>(operator, &name("get_result")),
        }
    }

    #[track_caller]
    fn go(&self, number: u8, frame: &str, (x, y): (f64, f64)) -> bool {
        let response: SendGoalResponse = self.send.call(&goal(number, frame, x, y));
        response.accepted
    }

    #[track_caller]
    fn result(&self, number: u8) -> GetResultResponse {
        self.result.call(&GetResultRequest {
            goal_id: id(number),
        })
    }

    #[track_caller]
    fn cancel(&self, number: u8) -> CancelGoalResponse {
        let goal_info = GoalInfo {
            goal_id: id(number),
            ..GoalInfo::default()
        };
        self.cancel.call(&CancelGoalRequest { goal_info })
    }
}

fn id(number: u8) -> GoalId {
    GoalId { uuid: [number; 16] }
}

fn goal(number: u8, frame: &str, x_m: f64, y_m: f64) -> SendGoalRequest {
    SendGoalRequest {
        goal_id: id(number),
        goal: NavigateGoal {
            pose: PoseStamped {
                header: Header::new(0, frame),
                pose: Pose::flat(x_m, y_m, 0.0),
            },
            behavior_tree: String::new(),
        },
    }
}

/// The token of a client of a service, and its key.
fn endpoint(session: &str, name: &str, ros_type: &RosType) -> (String, String) {
    let token = Token {
        domain: 0,
        session: session.to_owned(),
        node: 0,
        entity: 7,
        namespace: "/".to_owned(),
        node_name: "desk".to_owned(),
        endpoint: Some(Endpoint {
            kind: EntityKind::Client,
            name: name.to_owned(),
            dds_type: ros_type.dds_name(),
            hash: ros_type.hash_text(),
            qos: Qos::DEFAULT.to_string(),
        }),
    };
    (
        token.to_string(),
        DataKey::new(0, name, ros_type).to_string(),
    )
}

fn attachment(token: &str, sequence: i64) -> Vec<u8> {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let attachment = Attachment {
        sequence,
        source_ns: now.as_nanos().try_into().unwrap(),
        gid: Gid::of_token(token),
    };
    attachment.encode().to_vec()
}

/// The messages of a topic, also those that were published before.
fn heard<M: RosMessage + Send + 'static>(operator: &Operator, name: &str) -> Receiver<M> {
    let (sender, messages) = mpsc::channel();
    let key = DataKey::new(0, name, &M::TYPE).to_string();
    (operator.session.declare_subscriber(key))
        .history(HistoryConfig::default().detect_late_publishers())
        .callback(move |sample| {
            let _ = sender.send(decode(&sample.payload().to_bytes()).unwrap());
        })
        .background()
        .wait()
        .unwrap();
    messages
}

/// Waits until a goal has this state.
#[track_caller]
fn until(statuses: &Receiver<GoalStatusArray>, number: u8, status: i8) {
    let deadline = Instant::now() + LONG_WAY;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let array = statuses.recv_timeout(left).expect("this state");
        let mut all = array.status_list.iter();
        if all.any(|it| it.goal_info.goal_id == id(number) && it.status == status) {
            return;
        }
    }
}

#[test]
fn a_goal_is_reached_replaced_cancelled_and_refused_as_nodes_expect() {
    let world = World::new("[ros]\n");
    let desk = Operator::new(&world.router, "desk");
    // What clients look for: three services and two topics, with these types.
    let tokens = desk.tokens("@ros2_lv/0/*/*/*/*/*/*/*/%r1%navigate_to_pose%_action%$*/**");
    let mut found = BTreeMap::new();
    while found.len() < 6 {
        let (token, _) = tokens.recv_timeout(PATIENCE).unwrap();
        let endpoint = token.parse::<Token>().unwrap().endpoint.unwrap();
        let part = endpoint.name.rsplit('/').next().unwrap().to_owned();
        let kind = endpoint.kind.code();
        found.insert(
            (part, endpoint.hash),
            (kind, endpoint.dds_type, endpoint.qos),
        );
    }
    let parts: Vec<_> = (found.iter())
        .map(|((part, _), (kind, dds_type, qos))| {
            let name = dds_type.rsplit("::").next().unwrap();
            format!("{part} {kind} {name} {qos}")
        })
        .collect();
    assert_eq!(
        parts,
        [
            "cancel_goal SS CancelGoal_ ::,10:,:,:,,",
            "feedback MP NavigateToPose_FeedbackMessage_ ::,10:,:,:,,",
            "feedback MP NavigateToPose_FeedbackMessage_ ::,10:,:,:,,",
            "get_result SS NavigateToPose_GetResult_ ::,10:,:,:,,",
            "send_goal SS NavigateToPose_SendGoal_ ::,10:,:,:,,",
            "status MP GoalStatusArray_ :1:,1:,:,:,,",
        ]
    );

    // A goal is reached.
    let statuses = heard::<GoalStatusArray>(&desk, &format!("{ACTION}/status"));
    let feedback = heard::<NavigateFeedbackMessage>(&desk, &format!("{ACTION}/feedback"));
    let tracked = heard::<TrackedFeedbackMessage>(&desk, &format!("{ACTION}/feedback"));
    let client = Client::new(&desk);
    let first = world.goal();
    assert!(client.go(1, "map", first));
    assert!(!client.go(1, "map", first), "the same number twice");
    let waiting = client.result.send(&GetResultRequest { goal_id: id(1) });
    let progress = feedback.recv_timeout(PATIENCE).unwrap();
    assert_eq!(progress.goal_id, id(1));
    assert_eq!(progress.feedback.current_pose.header.frame_id, "map");
    assert_eq!(tracked.recv_timeout(PATIENCE).unwrap().goal_id, id(1));
    until(&statuses, 1, GoalStatus::EXECUTING);
    let drives = || {
        let info = wait_for("facts", || desk.json("amber/r1/info"));
        let operators = info["operators"].as_array().unwrap().iter();
        operators
            .filter(|it| it["who"] == "ros" && it["drives"] == true)
            .count()
    };
    wait_for("the driver", || (drives() == 1).then_some(()));
    let reached: GetResultResponse = client.result.reply(&waiting).expect("a result");
    assert_eq!(reached.status, GoalStatus::SUCCEEDED, "{reached:?}");
    let at = wait_for("the pose", || world.client.location(0).pose().ok());
    let away = (at.x_m - first.0).hypot(0.0 - at.y_m - first.1);
    assert!(away < 0.6, "{at:?}");
    assert!(feedback.try_iter().count() > 3, "feedback on the way");
    // Nobody drives any more, and nobody has to say that it lives.
    wait_for("the end", || (drives() == 0).then_some(()));

    // A newer goal replaces an older one, and is cancelled.
    let (there, back) = (world.goal(), first);
    assert!(client.go(2, "map", there));
    until(&statuses, 2, GoalStatus::EXECUTING);
    assert!(client.go(3, "map", (there.0, there.1)));
    let replaced = client.result(2);
    assert_eq!(replaced.status, GoalStatus::ABORTED, "{replaced:?}");
    assert!(
        replaced
            .result
            .error_msg
            .contains("replaced by fleet operator ros"),
        "{replaced:?}"
    );
    until(&statuses, 3, GoalStatus::EXECUTING);
    let cancelled = client.cancel(3);
    assert_eq!(cancelled.return_code, CancelGoalResponse::NONE);
    assert_eq!(cancelled.goals_canceling.len(), 1);
    assert_eq!(client.result(3).status, GoalStatus::CANCELED);
    assert!(!world.has_targets());
    let again = client.cancel(3);
    assert_eq!(again.return_code, CancelGoalResponse::GOAL_TERMINATED);
    assert_eq!(client.result(99).status, GoalStatus::UNKNOWN);

    // The reason is said, if the robot refuses.
    assert!(client.go(4, "r1/odom", back));
    let refused = client.result(4);
    assert_eq!(refused.status, GoalStatus::ABORTED);
    let why = &refused.result.error_msg;
    assert!(why.contains("must be in the frame map"), "{why}");
    world
        .robot
        .line("a goal of ROS 2 is not carried out: the pose must be");
    let mut alice = Operator::new(&world.router, "alice");
    let mut command = roboclaw::DriverMsg::data();
    command.motors_command = Some(WheelSpeeds::all(1).into());
    let mut number = 10;
    let occupied = wait_for("a refusal", || {
        let _ = alice.ask("amber/r1/roboclaw/0/drive", command.clone());
        number += 1;
        assert!(client.go(number, "map", back));
        // The machine may be so slow that the seat is free again.
        client.cancel(number);
        let result = client.result(number);
        (result.status == GoalStatus::ABORTED).then_some(result)
    });
    let why = &occupied.result.error_msg;
    assert!(why.contains("occupied by alice"), "{why}");
    // A program of the robot drives.
    let goto = loop {
        let (x, y) = world.goal();
        let mut goto = amber();
        goto.env("AMBER_MEDIATOR", &world.address);
        goto.args(["goto", "--", &x.to_string(), &(0.0 - y).to_string()]);
        let goto = Process::start(goto);
        // Alice has the lease of the wheels for a moment.
        if world.holds() {
            break goto;
        }
    };
    assert!(client.go(200, "map", back));
    let denied = client.result(200);
    assert_eq!(denied.status, GoalStatus::ABORTED, "{denied:?}");
    let why = &denied.result.error_msg;
    assert!(why.contains("amber goto"), "{why}");
    assert!(world.has_targets(), "it goes on");
    drop(goto);

    // `stop` ends a goal as well.
    wait_for("the free robot", || (!world.has_targets()).then_some(()));
    let mut number = 200;
    // The refusal counts for a moment.
    loop {
        number += 1;
        assert!(client.go(number, "map", world.goal()));
        if world.holds() {
            break;
        }
    }
    until(&statuses, number, GoalStatus::EXECUTING);
    let stop = Service::new::<TriggerRequest>(&desk, "/r1/stop");
    let stopped: TriggerResponse = stop.call(&TriggerRequest::default());
    assert!(stopped.success);
    assert_eq!(client.result(number).status, GoalStatus::ABORTED);
}

#[test]
fn a_goal_ends_with_its_client() {
    let world = World::new("[ros]\n");
    let watcher = Operator::with("desk", client(&world.router));
    let statuses = heard::<GoalStatusArray>(&watcher, &format!("{ACTION}/status"));
    // The node in Python holds its goal as long as it lives: its session has a lease of a minute.
    let mut number = 20;
    let frozen = loop {
        number += 1;
        let (x, y) = world.goal();
        let Some(node) = node(&world.router, &goal(number, "map", x, y)) else {
            return;
        };
        if world.holds() {
            break node;
        }
    };
    frozen.signal("STOP");
    world.ends("client frozen");
    until(&statuses, number, GoalStatus::ABORTED);
    frozen.signal("CONT");
    drop(frozen);
    wait_for("the counter", || (world.abandoned() > 0).then_some(()));
    // Killed: its token goes.
    let killed = loop {
        number += 1;
        let (x, y) = world.goal();
        let node = node(&world.router, &goal(number, "map", x, y)).unwrap();
        if world.holds() {
            break node;
        }
    };
    killed.signal("KILL");
    world.ends("client killed");
    until(&statuses, number, GoalStatus::ABORTED);
}

#[test]
fn a_node_says_where_the_robot_is_and_saves_the_map() {
    let world = World::new("[ros]\n");
    let desk = Operator::new(&world.router, "desk");
    let pose = || wait_for("the pose", || world.client.location(0).pose().ok());
    let known = pose();
    let key = DataKey::new(0, "/r1/initialpose", &PoseWithCovarianceStamped::TYPE).to_string();
    let say = |number, frame: &str, x_m: f64, y_m: f64, heading_rad: f64| {
        let mut message = PoseWithCovarianceStamped {
            header: Header::new(0, frame),
            ..PoseWithCovarianceStamped::default()
        };
        message.pose.pose = Pose::flat(x_m, y_m, heading_rad);
        (message.pose.covariance[0][0], message.pose.covariance[1][1]) = (0.01, 0.01);
        message.pose.covariance[5][5] = 0.01;
        let put = desk.session.put(&key, encode(&message));
        put.attachment(attachment("rviz", number)).wait().unwrap();
    };
    // Somewhere else, and turned: the robot does not know its pose any more.
    let (x, y) = (known.x_m, 0.0 - known.y_m);
    let mut number = 0;
    wait_for("doubt", || {
        number += 1;
        say(number, "map", x + 0.5, y, 2.0 - known.heading_rad);
        std::thread::sleep(Duration::from_millis(200));
        (pose().quality < 0.9).then_some(())
    });
    // The true one.
    number += 1;
    say(number, "map", x, y, 0.0 - known.heading_rad);
    wait_for("the true pose", || {
        let found = pose();
        let away = (found.x_m - known.x_m).hypot(found.y_m - known.y_m);
        (found.quality > 0.9 && away < 0.15).then_some(())
    });
    say(number + 1, "r1/odom", x, y, 0.0);
    world
        .robot
        .line("an initialpose of ROS 2 is ignored: the pose must be in the frame map");

    // There is no map that is being made, and then there is.
    let save = Service::new::<SaveMapRequest>(&desk, "/r1/map_saver/save_map");
    let request = SaveMapRequest {
        map_url: "file:///tmp/lab".to_owned(),
        ..SaveMapRequest::default()
    };
    let refused: SaveMapResponse = save.call(&request);
    assert!(!refused.result);
    world.robot.line("a map is not saved for a node of ROS 2: ");
    let mut start = amber();
    start.env("AMBER_MEDIATOR", &world.address);
    start.args(["call", "mapping", "start-map"]);
    assert!(start.output().unwrap().status.success());
    wait_for("a saved map", || {
        let saved: SaveMapResponse = save.call(&request);
        saved.result.then_some(())
    });
    assert!(world.folder.path().join("sim/lab.yaml").exists());
}

/// A node in Python that sends a goal and does nothing more; `None` if it cannot run here.
fn node(router: &Router, goal: &SendGoalRequest) -> Option<Process> {
    let session = format!("{:x}", fastrand::u128(1..));
    let config = json!({
        "id": session,
        "mode": "peer",
        "connect": { "endpoints": [router.endpoint] },
        "listen": { "endpoints": ["tcp/localhost:0"] },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": true } },
        "adminspace": { "enabled": true },
        "transport": { "link": { "tx": { "lease": 60_000, "keep_alive": 2 } } },
    });
    let name = format!("{ACTION}/send_goal");
    let (token, key) = endpoint(&session, &name, &SendGoalRequest::TYPE);
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect::<String>()
    };
    let mut probe = Command::new("python3");
    probe.args(["-c", "import zenoh"]).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP clients of actions: no python3 with eclipse-zenoh"
        );
        return None;
    }
    let mut python = Command::new("python3");
    python.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/ros/navigate.py"
    ));
    python.args([config.to_string(), token.clone(), key]);
    python.args([hex(&encode(goal)), hex(&attachment(&token, 1))]);
    let node = Process::start(python);
    node.line("accepted");
    Some(node)
}
