use std::fs;

use amber_proto::motion::{self, HaltRequest};
use amber_proto::prost::encoding::bytes as field;
use amber_proto::{DeviceMessage, MsgType, camera, hokuyo, roboclaw};
use proptest::prelude::*;

use super::*;

const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
const LASER: Device = Device::new(DeviceType::HOKUYO, 0);
const CAMERA: Device = Device::new(DeviceType::CAMERA, 0);

fn relay(role: Role) -> Relay {
    Relay::new(role, Duration::ZERO, Some(0.0))
}

fn frame(at_ms: f64, device: Device, message: &[u8]) -> Bytes {
    let bytes = packet(device, message.to_vec().into()).encode().unwrap();
    [&at_ms.to_le_bytes()[..], &bytes[..]].concat().into()
}

/// Says something that takes no time.
fn say(relay: &mut Relay, at_ms: u64, device: Device, message: &impl Message) -> Verdict {
    let bytes = frame(at_ms as f64, device, &message.encode_to_vec());
    relay.said(Duration::from_millis(at_ms), &bytes)
}

fn passes(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Pass(_))
}

fn why(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Refuse(refused) => refused.why,
        other => panic!("{other:?}"),
    }
}

fn speed(mm_s: i32) -> roboclaw::DriverMsg {
    roboclaw::DriverMsg {
        motors_command: Some(roboclaw::MotorsSpeed {
            front_left_speed: Some(mm_s),
            ..roboclaw::MotorsSpeed::default()
        }),
        syn_num: Some(7),
        ..roboclaw::DriverMsg::data()
    }
}

fn halt(halt: bool) -> motion::DriverMsg {
    motion::DriverMsg {
        halt_request: Some(HaltRequest {
            halt,
            name: Some("a page".to_owned()),
        }),
        ..motion::DriverMsg::data()
    }
}

const LIFT: Device = Device::new(DeviceType(201), 0);

/// A device of a user.
const LIFT_PROTO: &str = r#"
syntax = "proto2";
package lift;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional sint32 lift_speed = 130 [(amber.unit) = "mm/s"];
  optional bool get_height = 131;
  optional uint32 height = 132 [(amber.unit) = "mm"];
}
// A lift.
service Lift {
  option (amber.device) = { type: 201 name: "lift" };
  // Moves it.
  rpc Move(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "lift_speed" };
    option (amber.moves) = { stop: { set: { field: "lift_speed" value: "0" } } };
  }
  // How high it is.
  rpc Height(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_height" answer: "height" reads: true };
  }
}
"#;

/// The answer of the mediator with the description of the lift, and its schemas.
fn lift() -> (Packet, Schemas) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lift.proto");
    fs::write(&path, LIFT_PROTO).unwrap();
    let schemas = Schemas::with(&[path]).unwrap();
    let pool = schemas.for_device(Some(LIFT.device_type)).pool();
    let file = pool.get_file_by_name("lift.proto").unwrap();
    // The only field of a FileDescriptorSet.
    let mut files = Vec::new();
    field::encode(1, &file.encode_to_vec(), &mut files);
    let files = files.into();
    let told = What::Description(mediator::Description { files });
    (replied(told), schemas)
}

fn replied(told: What) -> Packet {
    let message = mediator::DriverMsg {
        reply: Some(Reply { what: Some(told) }),
        ack_num: Some(3),
        ..mediator::DriverMsg::data()
    };
    packet(Device::MEDIATOR, message.encode_to_vec().into())
}

fn asked(request: mediator::request::What) -> mediator::DriverMsg {
    mediator::DriverMsg {
        request: Some(mediator::Request {
            what: Some(request),
        }),
        ..mediator::DriverMsg::data()
    }
}

#[test]
fn a_page_that_drives_sends_what_other_clients_send() {
    let mut relay = relay(Role::Drive);
    let passed = say(&mut relay, 5, WHEELS, &speed(200));
    assert_eq!(
        passed,
        Verdict::Pass(packet(WHEELS, speed(200).encode_to_vec().into()))
    );
    let listing = asked(mediator::request::What::ListDrivers(
        mediator::ListDrivers::default(),
    ));
    assert!(passes(&say(&mut relay, 6, Device::MEDIATOR, &listing)));
    assert_eq!(relay.counts().passed, 2);
}

#[test]
fn a_view_only_page_reads_and_nothing_else() {
    let mut relay = relay(Role::Look);
    let mut may = |device, message: &[u8]| {
        let bytes = frame(1.0, device, message);
        passes(&relay.said(Duration::from_millis(1), &bytes))
    };
    for kind in [
        MsgType::Ping,
        MsgType::Pong,
        MsgType::Subscribe,
        MsgType::ClientDied,
    ] {
        let message = roboclaw::DriverMsg::of_kind(kind).encode_to_vec();
        assert!(may(WHEELS, &message), "{kind:?}");
        assert!(may(Device::MEDIATOR, &message), "{kind:?}");
    }
    let mut speeds = roboclaw::DriverMsg::data();
    speeds.current_speed_request = Some(true);
    assert!(may(WHEELS, &speeds.encode_to_vec()));
    let mut scan = hokuyo::DriverMsg::data();
    scan.get_single_scan = Some(true);
    assert!(may(LASER, &scan.encode_to_vec()));
    let pictures = camera::DriverMsg {
        stream_pictures: Some(camera::PictureStream {
            period: Some(100),
            ..camera::PictureStream::default()
        }),
        ..camera::DriverMsg::data()
    };
    assert!(may(CAMERA, &pictures.encode_to_vec()));

    assert!(!may(WHEELS, &speed(200).encode_to_vec()));
    assert!(!may(WHEELS, &speed(0).encode_to_vec()));
    assert!(!may(WHEELS, &halt(true).encode_to_vec()));
    let state = motion::DriverMsg {
        get_motion_state: Some(true),
        ..motion::DriverMsg::data()
    };
    assert!(may(WHEELS, &state.encode_to_vec()));
    // Also beside a request that reads, or with fields of another device.
    speeds.motors_command = speed(200).motors_command;
    assert!(!may(WHEELS, &speeds.encode_to_vec()));
    assert!(!may(LASER, &speeds.encode_to_vec()));
    // Unknown devices may do anything.
    let lamp: Device = "201:0".parse().unwrap();
    assert!(!may(lamp, &scan.encode_to_vec()));

    use mediator::request::What;
    for reading in [
        What::GetStatistics(mediator::GetStatistics::default()),
        What::ListDrivers(mediator::ListDrivers::default()),
        What::DescribeDriver(WHEELS.into()),
        What::ReadLog(mediator::ReadLog::default()),
    ] {
        let message = asked(reading).encode_to_vec();
        assert!(may(Device::MEDIATOR, &message));
    }
    for other in [
        What::ListProcesses(mediator::ListProcesses::default()),
        What::Reload(mediator::Reload::default()),
    ] {
        let message = asked(other).encode_to_vec();
        assert!(!may(Device::MEDIATOR, &message));
    }
    assert_eq!(relay.counts().refused, 8);
}

#[test]
fn a_users_own_device_is_known_by_the_description_that_the_page_got() {
    let (description, schemas) = lift();
    let message = |fields: Value| {
        let fields = fields.as_object().unwrap();
        schemas.encode(LIFT.device_type, fields).unwrap()
    };
    let height = message(json!({ "get_height": true }));
    let moved = message(json!({ "lift_speed": 50 }));
    let stopped = message(json!({ "lift_speed": 0 }));
    let released = halt(false).encode_to_vec();
    let both = message(json!({ "get_height": true, "lift_speed": 50 }));

    let say = |relay: &mut Relay, now, message: &[u8]| relay.said(now, &frame(1.0, LIFT, message));
    let now = Duration::from_millis(1);
    let late = now + MOTION_LAG * 2;
    // Without it, nobody knows what reads, and what moves something.
    let refused = say(&mut relay(Role::Look), now, &height);
    assert_eq!(why(&refused), "this page is view-only");
    assert!(passes(&say(&mut relay(Role::Drive), late, &moved)));

    let (mut looking, mut driving) = (relay(Role::Look), relay(Role::Drive));
    for relay in [&mut looking, &mut driving] {
        assert_eq!(relay.answered(description.clone()), description);
        assert!(passes(&say(relay, now, &height)));
    }
    for message in [&moved, &stopped, &both] {
        let refused = say(&mut looking, now, message);
        assert_eq!(why(&refused), "this page is view-only");
    }
    for message in [&moved, &released] {
        let refused = say(&mut driving, late, message);
        assert!(why(&refused).contains("the network delays this page"));
    }
    assert!(passes(&say(&mut driving, late, &stopped)));

    // Whoever answers: only the mediator has descriptions, and not of Amber's devices.
    let mut looking = relay(Role::Look);
    let of_a_driver = packet(LIFT, description.message.clone());
    assert_eq!(looking.answered(of_a_driver.clone()), of_a_driver);
    assert!(!passes(&say(&mut looking, now, &height)));
    let invalid = replied(What::Description(mediator::Description {
        files: Bytes::from_static(b"hello"),
    }));
    assert_eq!(looking.answered(invalid.clone()), invalid);
    assert!(!passes(&say(&mut looking, now, &height)));
}

#[test]
fn descriptions_take_bounded_memory() {
    let (description, _) = lift();
    let mut relay = relay(Role::Look);
    let told = mediator::DriverMsg::decode(description.message).unwrap();
    let Some(What::Description(found)) = told.reply.and_then(|it| it.what) else {
        panic!("no description");
    };
    for k in 0..2 * MAX_DESCRIPTIONS {
        // A field that nobody knows makes them differ.
        let mut files = found.files.to_vec();
        field::encode(15, &vec![0; k], &mut files);
        let files = files.into();
        relay.answered(replied(What::Description(mediator::Description { files })));
    }
    assert_eq!(relay.own.0.len(), MAX_DESCRIPTIONS);
}

#[test]
fn a_view_only_page_sees_no_command_lines() {
    let driver = mediator::Driver {
        command: vec!["driver".into(), "--password=secret".into()],
        pid: Some(7),
        ..mediator::Driver::default()
    };
    let told = replied(What::Driver(driver.clone()));
    assert_eq!(relay(Role::Drive).answered(told.clone()), told);
    let hidden = mediator::Driver {
        command: Vec::new(),
        ..driver
    };
    assert_eq!(
        relay(Role::Look).answered(told),
        replied(What::Driver(hidden))
    );
}

#[test]
fn a_refusal_names_the_request() {
    let mut relay = relay(Role::Look);
    let Verdict::Refuse(refused) = say(&mut relay, 1, WHEELS, &speed(200)) else {
        panic!("not refused");
    };
    assert_eq!((refused.device, refused.number), (WHEELS, 7));
    let told = refusal(refused);
    assert_eq!(
        (&told["t"], &told["number"]),
        (&json!("refused"), &json!(7))
    );
}

#[test]
fn a_late_motion_is_dropped_and_a_late_stop_or_question_passes() {
    let mut relay = relay(Role::Drive);
    let mut late = |message: &[u8]| {
        let bytes = frame(1000.0, WHEELS, message);
        relay.said(Duration::from_millis(1000) + MOTION_LAG * 2, &bytes)
    };
    // A release of a halt lets others move.
    for message in [speed(200).encode_to_vec(), halt(false).encode_to_vec()] {
        assert!(why(&late(&message)).contains("the network delays this page"));
    }
    let mut question = roboclaw::DriverMsg::data();
    question.current_speed_request = Some(true);
    for message in [
        speed(0).encode_to_vec(),
        halt(true).encode_to_vec(),
        question.encode_to_vec(),
    ] {
        assert!(passes(&late(&message)));
    }
    assert_eq!(relay.counts().late, 2);
}

#[test]
fn too_many_frames_are_dropped_but_no_stop() {
    let mut relay = relay(Role::Drive);
    let dropped = (0..2 * FRAME_RATE)
        .filter(|_| say(&mut relay, 1, WHEELS, &speed(200)) == Verdict::Drop)
        .count();
    assert_eq!(dropped, FRAME_RATE as usize);
    assert!(passes(&say(&mut relay, 1, WHEELS, &speed(0))));
    assert!(passes(&say(&mut relay, 1, WHEELS, &halt(true))));
    assert_eq!(say(&mut relay, 1, WHEELS, &halt(false)), Verdict::Drop);
    assert!(passes(&say(&mut relay, 1001, WHEELS, &speed(200))));
    assert_eq!(relay.counts().excess, u64::from(FRAME_RATE) + 1);
}

#[test]
fn a_silent_page_leaves_only_what_it_may_have_moved() {
    let mut relay = relay(Role::Drive);
    assert!(passes(&say(
        &mut relay,
        1,
        LASER,
        &hokuyo::DriverMsg::data()
    )));
    assert_eq!(relay.silent(), []);
    assert!(!relay.heard(), "its subscriptions go on");
    assert!(passes(&say(&mut relay, 2, WHEELS, &speed(200))));
    let left: Vec<_> = relay.silent().into_iter().map(|it| it.header).collect();
    let expected = [LASER, WHEELS, Device::MEDIATOR].map(|it| packet(it, Bytes::new()).header);
    for header in &expected {
        assert!(left.contains(header), "{left:?}");
    }
    assert!(relay.heard(), "it must announce itself again");
    assert!(!relay.heard());
    assert_eq!(relay.silent(), [], "it has moved nothing since");
}

#[test]
fn a_page_that_is_gone_leaves_all_devices_that_it_has_not_left_itself() {
    let mut relay = relay(Role::Drive);
    say(
        &mut relay,
        1,
        LASER,
        &hokuyo::DriverMsg::of_kind(MsgType::Subscribe),
    );
    say(&mut relay, 1, WHEELS, &speed(200));
    say(
        &mut relay,
        1,
        WHEELS,
        &roboclaw::DriverMsg::of_kind(MsgType::ClientDied),
    );
    let farewell: Bytes = mediator::DriverMsg::of_kind(MsgType::ClientDied)
        .encode_to_vec()
        .into();
    let expected = [LASER, Device::MEDIATOR].map(|it| packet(it, farewell.clone()));
    assert_eq!(relay.gone(), expected);
}

#[test]
fn a_page_uses_a_bounded_number_of_devices() {
    let mut relay = relay(Role::Drive);
    let ping = hokuyo::DriverMsg::of_kind(MsgType::Ping);
    for id in 0..MAX_USED_DEVICES as i32 {
        let device = Device::new(DeviceType::HOKUYO, id);
        assert!(passes(&say(&mut relay, 1, device, &ping)));
    }
    let one_more = Device::new(DeviceType::HOKUYO, MAX_USED_DEVICES as i32);
    let refused = say(&mut relay, 1, one_more, &ping);
    assert_eq!(why(&refused), "this page uses too many devices");
    assert!(passes(&say(&mut relay, 1, LASER, &ping)));
}

#[test]
fn what_is_no_frame_of_a_client_is_dropped() {
    let mut relay = relay(Role::Drive);
    let ping = mediator::DriverMsg::of_kind(MsgType::Ping).encode_to_vec();
    let whole = frame(1.0, WHEELS, &ping);
    let of_a_driver = {
        let mut packet = packet(WHEELS, ping.clone().into());
        packet.header.client_ids.push(3);
        let bytes = packet.encode().unwrap();
        [&1.0_f64.to_le_bytes()[..], &bytes[..]].concat()
    };
    let bad = [
        Bytes::new(),
        whole.slice(..7),
        whole.slice(..8),
        whole.slice(..whole.len() - 1),
        frame(f64::NAN, WHEELS, &ping),
        frame(1.0, WHEELS, b"\xff"),
        of_a_driver.into(),
    ];
    for bytes in &bad {
        assert_eq!(
            relay.said(Duration::ZERO, bytes),
            Verdict::Drop,
            "{bytes:?}"
        );
    }
    assert_eq!(relay.counts().malformed, bad.len() as u64);
}

proptest! {
    /// Whatever a view-only page sends, nothing moves.
    #[test]
    fn nothing_from_a_view_only_page_moves(
        device_type in 0..30,
        message in prop::collection::vec(any::<u8>(), 0..40),
        speed in any::<i32>(),
        with_speed in any::<bool>(),
    ) {
        let mut relay = relay(Role::Look);
        let mut bytes = message;
        if with_speed {
            bytes.extend(self::speed(speed).encode_to_vec());
        }
        let device = Device::new(DeviceType(device_type), 0);
        if let Verdict::Pass(packet) = relay.said(Duration::ZERO, &frame(0.0, device, &bytes)) {
            let interface = SCHEMAS.interface(device.device_type);
            let motion = interface.map_or(Motion::Nothing, |it| SCHEMAS.motion(it, &packet.message));
            prop_assert_eq!(motion, Motion::Nothing);
        }
    }
}
