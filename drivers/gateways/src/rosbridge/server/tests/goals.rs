//! Targets: as a topic, and as goals of an action.

use super::*;

#[test]
fn a_goal_ends_when_its_client_falls_silent() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let goal = json!({"pose": {"position": {"x": 1.0, "y": 2.0}}});
    let set = json!({"op": "publish", "topic": "/goal", "msg": goal});
    assert_eq!(world.say(1, set).len(), 1);
    assert_eq!(
        world.link(1, WebSocketEvent::Silent),
        [targets(0, Vec::new())]
    );
    assert_eq!(world.link(1, WebSocketEvent::Silent), []);
}

#[test]
fn a_goal_ends_with_its_client() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let msg = json!({"pose": {"position": {"x": 1, "y": -2}}});
    let said = world.say(1, json!({"op": "publish", "topic": "/goal", "msg": msg}));
    let target = Target {
        x_m: 1.0,
        y_m: 2.0,
        radius_m: 0.3,
    };
    assert_eq!(said, [targets(0, vec![target])]);
    let gone = world.link(1, WebSocketEvent::Gone);
    assert_eq!(gone, [targets(0, Vec::new()), Output::Close(User(0))]);
}

/// The operations that a client gets.
fn heard(outputs: &[Output]) -> Vec<Value> {
    let texts = outputs.iter().filter_map(|output| match output {
        Output::Send(_, _, text) => Some(serde_json::from_slice(text).unwrap()),
        _ => None,
    });
    texts.collect()
}

fn send_goal(id: &str) -> Value {
    json!({"op": "send_action_goal", "id": id, "action": "/navigate_to_pose", "feedback": true,
        "action_type": "nav2_msgs/action/NavigateToPose",
        "args": {"pose": {"pose": {"position": {"x": 1, "y": -2}}}}})
}

#[test]
fn a_goal_of_an_action_is_a_trip_with_feedback_and_a_result() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let said = world.say(1, send_goal("a"));
    let target = Target {
        x_m: 1.0,
        y_m: 2.0,
        radius_m: 0.3,
    };
    let trip = UserOrder::Trip(robot().targets, Trip(1), vec![target]);
    assert_eq!(said, [Output::Order(User(0), trip)]);
    let news = |world: &mut World, news: TripNews| {
        let event = Event::Trip(User(0), Trip(1), news);
        (world.server).handle_event(Now::from_millis(world.ms), event, &mut world.out);
        let heard = heard(&world.outputs());
        world.link(1, WebSocketEvent::Sent);
        heard
    };
    let progress = || TripNews::Progress {
        pose: MapPose::default(),
        remaining_m: Some(1.5),
    };
    let feedback = news(&mut world, progress());
    assert_eq!(feedback[0]["op"], "action_feedback");
    assert_eq!(feedback[0]["values"]["distance_remaining"], 1.5);
    assert!(world.server.sessions(Now::from_millis(0))[0].drives);

    let cancel = json!({"op": "cancel_action_goal", "id": "a", "action": "/navigate_to_pose"});
    let cancelled = world.say(1, cancel.clone());
    let order = UserOrder::CancelTrip(Trip(1));
    assert_eq!(cancelled, [Output::Order(User(0), order)]);
    let end = TripEnd::Cancelled("cancelled by client 8".into());
    let result = news(&mut world, TripNews::Ended(end));
    assert_eq!(
        (&result[0]["op"], &result[0]["status"]),
        (&json!("action_result"), &json!(5))
    );
    assert!(!world.server.sessions(Now::from_millis(0))[0].drives);
    assert_eq!(news(&mut world, progress()), [] as [Value; 0]);
    assert!(status(&world.say(1, cancel)).contains("no goal with this id"));
}

#[test]
fn the_end_of_a_replaced_goal_is_not_the_end_of_the_one_that_replaced_it() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.say(1, send_goal("a"));
    let pose = json!({"pose": {"position": {"x": 3, "y": 0}}});
    world.say(1, json!({"op": "publish", "topic": "/goal", "msg": pose}));
    let end = TripEnd::Failed("replaced by rosbridge (client 7)".into());
    let event = Event::Trip(User(0), Trip(1), TripNews::Ended(end));
    (world.server).handle_event(Now::from_millis(world.ms), event, &mut world.out);
    assert_eq!(heard(&world.outputs())[0]["status"], 6);
    assert!(world.server.sessions(Now::from_millis(0))[0].drives);
    // So it still ends with its client.
    let gone = world.link(1, WebSocketEvent::Gone);
    let end = UserOrder::Targets(robot().targets, Vec::new());
    assert!(gone.contains(&Output::Order(User(0), end)), "{gone:?}");
}

#[test]
fn a_goal_of_an_action_that_the_gateway_ends_says_why_at_once() {
    type Ends = fn(&mut World) -> Vec<Output>;
    let cases: [(Ends, &str); 5] = [
        (
            |world| world.say(1, json!({"op": "call_service", "service": "/stop"})),
            "stopped",
        ),
        (
            |world| world.say(2, json!({"op": "call_service", "service": "/stop"})),
            "stopped by another client",
        ),
        (|world| world.drive(1, 0.2), "replaced by a motion command"),
        (
            |world| {
                world.ms += 1_000;
                world.drive(2, 0.2)
            },
            ANOTHER,
        ),
        (
            |world| world.link(1, WebSocketEvent::Silent),
            "the connection was silent for too long",
        ),
    ];
    for (ends, why) in cases {
        let mut world = World::new();
        world.link(1, WebSocketEvent::Connected);
        world.link(2, WebSocketEvent::Connected);
        world.say(1, send_goal("a"));
        let mut outputs = ends(&mut world);
        outputs.extend(world.link(1, WebSocketEvent::Sent));
        let heard = heard(&outputs);
        let result = heard.iter().find(|it| it["op"] == "action_result");
        assert_eq!(result.unwrap()["values"]["error_msg"], why);
        assert!(outputs.contains(&targets(0, Vec::new())), "{outputs:?}");
    }
}

#[test]
fn a_goal_of_an_action_that_does_not_begin_has_a_result_at_once() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    let late = heard(&world.say_late(1, &send_goal("a")));
    assert_eq!(
        (&late[0]["id"], &late[0]["values"]),
        (&json!("a"), &json!(DELAYED))
    );
    world.link(1, WebSocketEvent::Sent);
    world.drive(2, 0.2);
    let occupied = heard(&world.say(1, send_goal("b")));
    assert_eq!(
        (&occupied[0]["values"], &occupied[0]["result"]),
        (&json!(ANOTHER), &json!(false))
    );
    world.link(1, WebSocketEvent::Sent);
    let mut other = send_goal("c");
    other["action"] = "/dock".into();
    let unknown = heard(&world.say(1, other));
    assert_eq!(
        (&unknown[0]["op"], &unknown[0]["status"]),
        (&json!("action_result"), &json!(0))
    );
}

#[test]
fn goals_are_limited_to_fifty_per_second() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    let mut orders = 0;
    for number in 0..60 {
        let msg = json!({"pose": {"position": {"x": number, "y": 0}}});
        let said = world.say(1, json!({"op": "publish", "topic": "/goal", "msg": msg}));
        let is_goal = |it: &&Output| matches!(it, Output::Order(_, UserOrder::Targets(_, to)) if !to.is_empty());
        orders += said.iter().filter(is_goal).count();
    }
    assert_eq!(orders, 50);
    assert_eq!(world.out.tally.count("too many messages"), 10);
}

#[test]
fn a_goal_needs_the_seat_and_ends_when_another_client_drives() {
    let mut world = World::new();
    world.link(1, WebSocketEvent::Connected);
    world.link(2, WebSocketEvent::Connected);
    let msg = json!({"pose": {"position": {"x": 1, "y": -2}}});
    let goal = json!({"op": "publish", "topic": "/goal", "msg": msg});
    world.drive(2, 0.2);
    assert_eq!(status(&world.say(1, goal.clone())), ANOTHER);
    assert_eq!(world.out.tally.count(ANOTHER), 1);
    world.pass(1_000);
    assert_eq!(world.say(1, goal).len(), 1);
    assert_eq!(status(&world.drive(2, 0.2)), ANOTHER);
    world.pass(1_000);
    let taken_over = world.drive(2, 0.2);
    assert_eq!(taken_over, [targets(0, Vec::new()), wheels(1, 200)]);
}
