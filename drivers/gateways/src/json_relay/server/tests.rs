//! Registration, relaying, driving and the limits, on a virtual clock.

use std::sync::Arc;

use amber_proto::camera::Picture;
use amber_proto::gateway::RelayImage;
use amber_values::WheelSpeeds;

use super::*;
use crate::testing::robot;
use crate::testing::{Bench, START_UNIX};

const CONTROL: &str = "10.0.0.1:1000";
const ROBOT: &str = "10.0.0.2:2000";
const OTHER: &str = "10.0.0.3:3000";
const OUTSIDE: &str = "203.0.113.5:4000";

fn server() -> Bench<Server> {
    server_with(|_| {})
}

fn server_with(change: impl FnOnce(&mut Settings)) -> Bench<Server> {
    let mut settings = Settings::new("127.0.0.1:8080".parse().unwrap(), robot());
    change(&mut settings);
    Bench::new(Server::new(settings))
}

trait Peer {
    fn say(&mut self, from: &str, text: &str);
    fn register(&mut self, from: &str, role: &str, id: &str);
    fn command(&mut self, from: &str, command: &str, timestamp: u64);
    fn fragment(&mut self, from: &str, sequence: u32, total: u32, image: &str);
    /// Receiver and text of each datagram.
    fn heard(&mut self) -> Vec<(String, String)>;
    /// Receivers and reasons of errors, if there is nothing else.
    fn errors(&mut self) -> Vec<(String, String)>;
}

impl Peer for Bench<Server> {
    fn say(&mut self, from: &str, text: &str) {
        self.datagram(0, from, text.as_bytes());
    }

    fn register(&mut self, from: &str, role: &str, id: &str) {
        self.say(
            from,
            &format!(
                r#"{{"type":"register","data":{{"client_type":"{role}","client_id":"{id}"}}}}"#
            ),
        );
    }

    fn command(&mut self, from: &str, command: &str, timestamp: u64) {
        self.say(
            from,
            &format!(
                r#"{{"type":"control_command","data":{{"command":"{command}","timestamp":{timestamp}}}}}"#
            ),
        );
    }

    fn fragment(&mut self, from: &str, sequence: u32, total: u32, image: &str) {
        self.say(
            from,
            &format!(
                r#"{{"type":"image_fragment","data":{{"sequence":{sequence},"total":{total},"image":"{image}","timestamp":{}}}}}"#,
                199 + sequence
            ),
        );
    }

    fn heard(&mut self) -> Vec<(String, String)> {
        let sent = self.take_sent().into_iter();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        sent.map(|(to, bytes)| (to.to_string(), text(bytes)))
            .collect()
    }

    fn errors(&mut self) -> Vec<(String, String)> {
        let heard = self.heard().into_iter();
        let error = |(to, text): (String, String)| match Message::decode(text.as_bytes()) {
            Ok(Message::Error { reason, .. }) => (to, reason),
            other => panic!("{other:?}"),
        };
        heard.map(error).collect()
    }
}

fn heartbeat(role: &str, id: &str) -> String {
    format!(
        r#"{{"type":"heartbeat","data":{{"client_type":"{role}","client_id":"{id}","timestamp":7}}}}"#
    )
}

#[test]
fn a_command_goes_to_all_robots_and_moves_ours_for_half_a_second() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.register(OTHER, "robot", "r2");
    assert!(bench.heard().is_empty(), "there is no answer");
    bench.command(CONTROL, "left", 5);
    let text = r#"{"type":"control_command","data":{"command":"left","timestamp":5}}"#;
    let outputs = bench.take();
    let sent = outputs.iter().filter(|(_, output)| {
        matches!(output, Output::Send(_, to, bytes)
            if [ROBOT, OTHER].contains(&&*to.to_string()) && bytes == text)
    });
    assert_eq!(sent.count(), 2);
    let turn = WheelSpeeds::sides(-150, 150);
    let order = amber_robot::robot::UserOrder::Drive(robot().wheels, turn);
    assert!(outputs.contains(&(0, Output::Order(User(1), order))));
    bench.advance_ms(2000);
    assert_eq!(bench.take_drives(), [(500, WheelSpeeds::STOP)]);
}

/// A program may repeat a command faster than the period of copies, always with one timestamp.
#[test]
fn copies_do_not_silence_a_command() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.take();
    for _ in 0..10 {
        bench.command(CONTROL, "forward", 5);
        bench.advance_ms(15);
    }
    // At 0, 60 and 120 ms.
    assert_eq!(bench.count("duplicate command"), 7);
}

#[test]
fn commands_renew_the_pulse_and_copies_are_ignored() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.take();
    bench.command(CONTROL, "forward", 5);
    bench.advance_ms(49);
    bench.command(CONTROL, "forward", 5);
    assert_eq!(bench.count("duplicate command"), 1);
    assert_eq!(bench.heard().len(), 1);
    // The same stamp later is a new command: clocks with seconds only.
    bench.advance_ms(251);
    bench.command(CONTROL, "forward", 5);
    bench.advance_ms(2000);
    let (go, stop) = (WheelSpeeds::all(200), WheelSpeeds::STOP);
    assert_eq!(bench.take_drives(), [(300, go), (800, stop)]);
}

#[test]
fn one_control_drives_at_a_time() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(OTHER, "control", "c2");
    bench.command(CONTROL, "forward", 1);
    bench.command(OTHER, "backward", 1);
    assert_eq!(bench.count("another session drives"), 1);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::all(200))]);
    let drivers = bench.machine.sessions(Now::from_millis(0));
    let drivers = drivers.iter().filter(|session| session.drives);
    let drivers: Vec<_> = drivers.map(|session| &*session.purpose).collect();
    assert_eq!(drivers, ["control c1"]);
}

#[test]
fn only_registered_controls_command_and_only_registered_robots_send_images() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.command(OTHER, "forward", 1);
    bench.command(ROBOT, "forward", 1);
    // Another port of the host of a control is another program.
    bench.command("10.0.0.1:1001", "forward", 1);
    assert_eq!(bench.count("command from a client that is no control"), 3);
    bench.fragment(CONTROL, 1, 1, "aGk=");
    bench.fragment(OTHER, 1, 1, "aGk=");
    assert_eq!(bench.count("image from a client that is no robot"), 2);
    // Each learns why.
    let errors = bench.errors();
    let to: Vec<_> = errors.iter().map(|(to, _)| &**to).collect();
    assert_eq!(to, [OTHER, ROBOT, "10.0.0.1:1001", CONTROL, OTHER]);
    assert_eq!(errors[0].1, "command from a client that is no control");
    assert_eq!(errors[3].1, "image from a client that is no robot");

    let mut open = server_with(|settings| settings.open = true);
    open.register(ROBOT, "robot", "r1");
    open.register(CONTROL, "control", "c1");
    open.command(OTHER, "forward", 1);
    open.fragment(OTHER, 1, 1, "aGk=");
    assert_eq!(open.heard().len(), 2);
    open.command(OTHER, "backward", 1);
    open.advance_ms(2000);
    let (back, stop) = (WheelSpeeds::all(-200), WheelSpeeds::STOP);
    assert_eq!(open.take_drives(), [(20, back), (500, stop)]);
}

#[test]
fn a_program_that_is_both_gets_what_each_of_its_roles_gets() {
    let mut bench = server_with(|settings| settings.ack = true);
    bench.register(CONTROL, "control", "hands");
    bench.register(CONTROL, "robot", "wheels");
    let acks = |bench: &mut Bench<Server>| -> Vec<_> {
        let heard = bench.heard().into_iter();
        let ack = |(_, text): (String, String)| match Message::decode(text.as_bytes()).unwrap() {
            Message::Ack { of, client_id, .. } => format!("ack of {of} to {client_id}"),
            other => other.kind().to_owned(),
        };
        heard.map(ack).collect()
    };
    let registered = ["ack of register to hands", "ack of register to wheels"];
    assert_eq!(acks(&mut bench), registered);
    // As a robot it gets the command, as from the original server.
    bench.command(CONTROL, "forward", 1);
    let commanded = ["control_command", "ack of control_command to hands"];
    assert_eq!(acks(&mut bench), commanded);
    // As a control it gets the image.
    bench.fragment(CONTROL, 1, 1, "aGk=");
    bench.advance_ms(10);
    let shown = ["image_data", "ack of image_fragment to wheels"];
    assert_eq!(acks(&mut bench), shown);
    // Programs with one role get nothing back.
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.command(CONTROL, "forward", 1);
    bench.fragment(ROBOT, 1, 1, "aGk=");
    bench.advance_ms(10);
    let to: Vec<_> = bench.heard().into_iter().map(|(to, _)| to).collect();
    assert_eq!(to, [ROBOT, CONTROL]);
}

#[test]
fn clients_expire_60_s_after_their_last_sign_of_life_by_our_clock() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.advance_ms(50_000);
    // The client's own time is ignored.
    bench.say(ROBOT, &heartbeat("robot", "r1"));
    bench.advance_ms(9_000);
    assert_eq!(bench.machine.clients.len(), 2);
    bench.take();
    bench.advance_ms(2_000);
    assert_eq!(bench.machine.clients.len(), 1);
    let outputs = bench.take().into_iter().map(|(_, output)| output);
    assert_eq!(outputs.collect::<Vec<_>>(), [Output::Close(User(1))]);
    bench.advance_ms(60_000);
    assert!(bench.machine.clients.is_empty());
    assert_eq!(bench.machine.next_timeout(), None);
}

#[test]
fn commands_and_images_are_signs_of_life() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(OTHER, "control", "c2");
    bench.register(ROBOT, "robot", "r1");
    for second in 0..100 {
        bench.command(CONTROL, "forward", second);
        bench.fragment(ROBOT, 1, 1, "aGk=");
        bench.advance_ms(1_000);
    }
    let sessions = bench.machine.sessions(Now::from_millis(100_000));
    let left: Vec<_> = sessions.iter().map(|session| &*session.purpose).collect();
    assert_eq!(left, ["control c1", "robot r1"]);
}

#[test]
fn addresses_outside_of_private_networks_must_beat_every_10_s() {
    let mut bench = server();
    bench.register(OUTSIDE, "control", "c1");
    for _ in 0..5 {
        bench.advance_ms(9_000);
        assert_eq!(bench.machine.clients.len(), 1);
        bench.say(OUTSIDE, &heartbeat("control", "c1"));
    }
    bench.advance_ms(11_000);
    assert!(bench.machine.clients.is_empty());
}

#[test]
fn a_client_may_change_its_port_but_not_its_host() {
    let mut bench = server();
    bench.register(ROBOT, "robot", "r1");
    let address = |bench: &Bench<Server>| {
        let client = bench.machine.clients.values().next().unwrap();
        client.address.to_string()
    };
    bench.register("10.0.0.2:2001", "robot", "r1");
    assert_eq!(address(&bench), "10.0.0.2:2001");
    bench.say("10.0.0.2:2002", &heartbeat("robot", "r1"));
    assert_eq!(address(&bench), "10.0.0.2:2002");
    bench.register(OTHER, "robot", "r1");
    assert_eq!(bench.count("the name is taken by another host"), 1);
    bench.say(OTHER, &heartbeat("robot", "r1"));
    assert_eq!(bench.count("heartbeat from another host"), 1);
    bench.say(OTHER, &heartbeat("robot", "r9"));
    assert_eq!(bench.count("not registered"), 1);
    assert_eq!(address(&bench), "10.0.0.2:2002");
    // Names of controls are others than those of robots.
    bench.register(OTHER, "control", "r1");
    assert_eq!(bench.machine.clients.len(), 2);

    let mut original = server_with(|settings| settings.last_wins = true);
    original.register(ROBOT, "robot", "r1");
    original.register(OTHER, "robot", "r1");
    assert_eq!(address(&original), OTHER);
}

#[test]
fn the_seat_of_a_control_stays_at_its_port_while_it_drives() {
    let mut bench = server();
    let thief = "10.0.0.1:1001";
    bench.register(CONTROL, "control", "c1");
    bench.command(CONTROL, "forward", 1);
    bench.advance_ms(600);
    bench.register(thief, "control", "c1");
    bench.say(thief, &heartbeat("control", "c1"));
    assert_eq!(bench.count(IN_USE), 2);
    bench.command(thief, "backward", 1);
    assert_eq!(bench.count("command from a client that is no control"), 1);
    bench.command(CONTROL, "forward", 2);
    assert_eq!(bench.count("another session drives"), 0);
    // A program that has restarted gets its name back when the seat is free.
    bench.advance_ms(1_001);
    bench.register(thief, "control", "c1");
    bench.command(thief, "backward", 2);
    bench.advance_ms(1_000);
    let (go, back, stop) = (200, -200, 0);
    let speeds = bench
        .take_drives()
        .into_iter()
        .map(|(_, it)| it.front_left_mm_s);
    assert_eq!(speeds.collect::<Vec<_>>(), [go, stop, go, stop, back, stop]);
}

#[test]
fn one_host_cannot_take_all_places() {
    let mut bench = server();
    for i in 0..40 {
        bench.register(
            &format!("10.0.0.9:{}", 1000 + i),
            "control",
            &format!("x{i}"),
        );
    }
    bench.advance_ms(10);
    bench.register(CONTROL, "control", "c1");
    bench.command(CONTROL, "forward", 1);
    assert_eq!(bench.take_drives(), [(10, WheelSpeeds::all(200))]);
    assert_eq!(bench.machine.clients.len(), MAX_CLIENTS);
    // Whoever drives keeps the place, and the host with many gets no more.
    for i in 0..40 {
        bench.register(
            &format!("10.0.0.9:{}", 2000 + i),
            "control",
            &format!("y{i}"),
        );
    }
    bench.command(CONTROL, "left", 2);
    assert_eq!(bench.count("command from a client that is no control"), 0);
}

#[test]
fn commands_that_the_network_has_delayed_move_nothing() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    let stamp = |ms: u64| 1_700_000_000_000 + ms;
    bench.command(CONTROL, "forward", stamp(0));
    bench.advance_ms(3_000);
    bench.take();
    for late in [100, 1_000, 2_400] {
        bench.command(CONTROL, "forward", stamp(late));
    }
    assert_eq!(bench.count("command delayed by the network"), 3);
    assert_eq!(bench.take_drives(), []);
    bench.command(CONTROL, "forward", stamp(2_900));
    assert_eq!(bench.take_drives(), [(3_000, WheelSpeeds::all(200))]);
}

#[test]
fn numbers_of_clients_are_bounded() {
    let mut bench = server();
    for i in 0..40 {
        bench.register(&format!("10.0.1.{i}:1"), "control", &format!("c{i}"));
        bench.register(&format!("10.0.2.{i}:1"), "robot", &format!("r{i}"));
    }
    assert_eq!(bench.count("too many clients"), 16);
    assert_eq!(bench.machine.clients.len(), 2 * MAX_CLIENTS);
}

#[test]
fn a_secret_is_required_if_configured() {
    let secret = Secret::try_from("sesame".to_owned()).unwrap();
    let mut bench = server_with(|settings| settings.secret = Some(secret));
    bench.register(CONTROL, "control", "c1");
    let with = |secret: &str| {
        format!(
            r#"{{"type":"register","data":{{"client_type":"control","client_id":"c1","secret":"{secret}"}}}}"#
        )
    };
    bench.say(CONTROL, &with("sesam"));
    assert_eq!(bench.count("wrong secret"), 2);
    assert!(bench.machine.clients.is_empty());
    bench.say(CONTROL, &with("sesame"));
    assert_eq!(bench.machine.clients.len(), 1);
}

#[test]
fn acks_only_if_configured_and_only_to_registered_peers() {
    let mut bench = server_with(|settings| settings.ack = true);
    bench.register(CONTROL, "control", "c1");
    bench.command(CONTROL, "forward", 5);
    bench.say(CONTROL, &heartbeat("control", "c1"));
    bench.command(OUTSIDE, "forward", 5);
    bench.say(OUTSIDE, "nonsense");
    let ack = |of: &str, timestamp: u64| {
        let text = format!(
            r#"{{"type":"ack","data":{{"of":"{of}","client_id":"c1","timestamp":{timestamp}}}}}"#
        );
        (CONTROL.to_owned(), text)
    };
    let expected = [
        ack("register", 0),
        ack("control_command", 5),
        ack("heartbeat", 7),
    ];
    assert_eq!(bench.heard(), expected);
}

#[test]
fn fragments_are_forwarded_as_whole_images_in_order() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.register(OTHER, "robot", "r2");
    bench.take();
    bench.fragment(ROBOT, 1, 2, "aG");
    bench.fragment(OTHER, 1, 2, "eW");
    assert!(bench.heard().is_empty());
    bench.fragment(OTHER, 2, 2, "8=");
    bench.fragment(ROBOT, 2, 2, "k=");
    bench.advance_ms(10);
    let outputs: Vec<_> = bench.take().into_iter().map(|(_, output)| output).collect();
    let texts = outputs.iter().filter_map(|output| match output {
        Output::Send(_, to, bytes) => Some((to.to_string(), Message::decode(bytes).unwrap())),
        _ => None,
    });
    let parts: Vec<_> = texts
        .map(|(to, message)| match message {
            Message::ImageFragment {
                sequence,
                image,
                timestamp,
                ..
            } => {
                assert_eq!(to, CONTROL);
                (sequence, image, timestamp)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let part = |sequence, image: &str, timestamp| (sequence, image.to_owned(), timestamp);
    let expected = [
        part(1, "eW", 200),
        part(2, "8=", 201),
        part(1, "aG", 200),
        part(2, "k=", 201),
    ];
    assert_eq!(parts, expected);
    let images: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Image(image) => Some((image.source(), image.image.as_deref().unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(images, [("r2", &b"yo"[..]), ("r1", &b"hi"[..])]);
}

#[test]
fn passthrough_forwards_each_fragment_at_once() {
    let mut bench = server_with(|settings| settings.passthrough = true);
    bench.register(CONTROL, "control", "c1");
    bench.register(ROBOT, "robot", "r1");
    bench.fragment(ROBOT, 2, 2, "k=");
    assert_eq!(bench.heard().len(), 1);
}

#[test]
fn an_incomplete_image_is_counted_and_dropped() {
    let mut bench = server();
    bench.register(ROBOT, "robot", "r1");
    bench.fragment(ROBOT, 1, 2, "aG");
    bench.advance_ms(3000);
    assert_eq!(bench.count("incomplete image"), 1);
    assert_eq!(bench.machine.images.used(), 0);
}

#[test]
fn images_of_amber_clients_go_to_the_controls() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.take();
    let image = RelayImage {
        timestamp: Some(9),
        image: Some(Bytes::from_static(b"hi")),
        ..RelayImage::default()
    };
    bench.event(Event::Image(image));
    let text = r#"{"type":"image_data","data":{"image":"aGk=","timestamp":9}}"#;
    assert_eq!(bench.heard(), [(CONTROL.to_owned(), text.to_owned())]);
}

#[test]
fn controls_see_what_the_camera_sees_while_there_are_some() {
    let wish = PictureWish {
        period_ms: 200,
        max_width: Some(640),
    };
    let mut bench = server_with(|settings| settings.pictures = Some(wish));
    let watches = |bench: &mut Bench<Server>| {
        let outputs = bench.take().into_iter().map(|(_, output)| output);
        let is_watch = |it: &Output| matches!(it, Output::Watch(_) | Output::Unwatch(_));
        outputs.filter(is_watch).collect::<Vec<_>>()
    };
    let topic = Topic::Pictures(robot().camera, wish);
    bench.register(ROBOT, "robot", "r1");
    assert_eq!(watches(&mut bench), []);
    bench.register(CONTROL, "control", "c1");
    bench.register(OTHER, "control", "c2");
    assert_eq!(watches(&mut bench), [Output::Watch(topic)]);

    let picture = |captured_us| {
        let picture = Picture {
            data: Some(Bytes::from_static(b"hi")),
            captured: Some(captured_us),
            ..Picture::default()
        };
        Event::Measured(robot().camera, Measurement::Picture(Arc::new(picture)))
    };
    bench.event(picture(9_999_999));
    let text = r#"{"type":"image_data","data":{"image":"aGk=","timestamp":9}}"#;
    let heard = bench.heard();
    assert_eq!(
        heard,
        [CONTROL, OTHER].map(|to| (to.to_owned(), text.to_owned()))
    );
    // Without a time of its own, it is that of now.
    bench.event(picture(0));
    bench.advance_ms(10);
    let now = START_UNIX.as_secs().to_string();
    let heard = bench.heard();
    assert_eq!(heard.len(), 2);
    assert!(
        heard.iter().all(|(_, text)| text.contains(&now)),
        "{heard:?}"
    );

    // They are silent for a minute.
    bench.advance_ms(61_000);
    assert_eq!(watches(&mut bench), [Output::Unwatch(topic)]);
}

#[test]
fn receivers_outside_of_private_networks_get_4_mbit_per_second() {
    let mut bench = server();
    bench.register(OUTSIDE, "control", "far");
    bench.register(CONTROL, "control", "near");
    bench.register(ROBOT, "robot", "r1");
    bench.take();
    let text = "A".repeat(60_000);
    for _ in 0..100 {
        bench.say(
            ROBOT,
            &format!(r#"{{"type":"image_data","data":{{"image":"{text}","timestamp":0}}}}"#),
        );
        bench.advance_ms(10);
    }
    let (mut far, mut near) = (0, 0);
    for (to, bytes) in bench.take_sent() {
        let bytes_to = if to.to_string() == OUTSIDE {
            &mut far
        } else {
            &mut near
        };
        *bytes_to += bytes.len();
    }
    assert!(near > 5_900_000, "{near}");
    // A full bucket, and what flows in within a second.
    assert!((700_000..1_000_000).contains(&far), "{far}");
    assert!(bench.count("image too fast for its receiver") > 80);
}

#[test]
fn old_commands_are_dropped_only_if_configured() {
    let start_s = START_UNIX.as_secs();
    let mut strict = server_with(|settings| settings.max_skew = Some(Duration::from_secs(5)));
    strict.register(CONTROL, "control", "c1");
    for (timestamp, dropped) in [
        (start_s, 0),
        (start_s - 6, 1),
        (start_s * 1000 + 4_000, 1),
        (start_s * 1000 + 6_000, 2),
        (0, 3),
        (u64::MAX, 4),
    ] {
        strict.command(CONTROL, "forward", timestamp);
        assert_eq!(strict.count("command out of date"), dropped, "{timestamp}");
    }
    let mut usual = server();
    usual.register(CONTROL, "control", "c1");
    usual.command(CONTROL, "forward", 0);
    assert_eq!(usual.take_drives().len(), 1);
}

#[test]
fn the_robot_stops_when_the_gateway_stops() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.command(CONTROL, "forward", 1);
    bench.take();
    bench.stop();
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::STOP)]);
}

#[test]
fn bad_datagrams_are_counted_and_answered_with_a_limit() {
    let mut bench = server();
    bench.register(CONTROL, "control", "c1");
    bench.take();
    for text in ["", "{", "{\"type\":\"ack\"}", "\0"] {
        bench.say(CONTROL, text);
    }
    bench.say(CONTROL, &"[".repeat(100));
    assert_eq!(bench.count("not a valid message"), 4);
    assert_eq!(bench.count("JSON nested too deep"), 1);
    let errors = bench.errors();
    assert_eq!(errors.len(), 5);
    assert!(
        errors
            .iter()
            .all(|(to, reason)| to == CONTROL && !reason.is_empty())
    );
    // The reason says what is wrong.
    bench.command(CONTROL, "stop", 1);
    let (_, reason) = bench.errors().remove(0);
    assert!(
        reason.contains("`stop`") && reason.contains("`forward`"),
        "{reason}"
    );
    // A wrong word does not make the answer long.
    bench.command(CONTROL, &"x".repeat(60_000), 1);
    assert_eq!(bench.errors()[0].1.chars().count(), MAX_REASON);
    for _ in 0..100 {
        bench.say(CONTROL, "{");
    }
    assert_eq!(bench.errors().len(), 3);
    // Answers are not answered, and addresses that may be forged get none.
    bench.say(OTHER, r#"{"type":"error","data":{"reason":"?"}}"#);
    bench.say(OUTSIDE, "{");
    assert!(bench.heard().is_empty());
}

#[test]
fn a_control_whose_motion_is_refused_is_told_why_if_answers_are_configured() {
    for ack in [false, true] {
        let mut bench = server_with(|settings| settings.ack = ack);
        bench.register(CONTROL, "control", "c1");
        bench.take();
        bench.event(Event::Refused(User(1), "amber goto drives".into()));
        let text = r#"{"data":{"client_id":"c1","reason":"amber goto drives"},"type":"refused"}"#;
        let expected = ack.then(|| (CONTROL.to_owned(), text.to_owned()));
        assert_eq!(bench.heard(), Vec::from_iter(expected), "{ack}");
    }
}
