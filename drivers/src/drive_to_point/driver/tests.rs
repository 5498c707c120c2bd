//! Tests of the whole driver between a fake mediator and fake devices.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::devices::drive_to_point::{self, DriverMsg, progress};
use amber_driver::proto::order::order::State as OrderState;
use amber_driver::proto::{DeviceMessage, MsgType, SynNum, motion};
use amber_navigation::drive_to_point::{Config, DriveToPoint as Logic};
use amber_proto::{Device, DeviceType};
use amber_values::{MapPose, WheelSpeeds};
use prost::Message;
use tokio::time::sleep;

use super::*;
use crate::drive_to_point::Plans;
use crate::moving::testing::{Fake, run};
use crate::robot_options::RobotOptions;

async fn check(scenario: impl AsyncFnOnce(&mut Fake)) {
    let stated = RobotOptions::with_central_laser().stated().unwrap();
    let mut setup = stated.setup().unwrap();
    setup.devices.poses = Some(Device::new(DeviceType::LOCATION, 0));
    let logic = Logic::new(Config::new(setup.collision.laser), &[]).unwrap();
    let plan = plan(None);
    let ready = Some((setup, ToPoint::new(logic, 380.0)));
    let driver = DriveToPoint::new(stated, plan, ready);
    run(drive_to_point::driver(driver), scenario).await;
}

fn plan(map: Option<PathBuf>) -> Plan {
    Plan {
        map,
        planner: Plans::Grid,
        poses: Device::new(DeviceType::LOCATION, 0),
        speed_mm_s: 380.0,
        any_client_stops: false,
    }
}

fn set_targets(xs: &[f64]) -> Vec<u8> {
    let message = DriverMsg {
        set_targets: Some(true),
        targets: Some(Targets {
            longitudes: xs.to_vec(),
            latitudes: vec![1.0; xs.len()],
            radiuses: vec![0.25; xs.len()],
        }),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

async fn ask(fake: &mut Fake, set: impl FnOnce(&mut DriverMsg)) -> DriverMsg {
    let mut message = DriverMsg::data();
    message.set_syn(Some(SynNum(9)));
    set(&mut message);
    let answer = fake.ask(&message.encode_to_vec()).await;
    let answer = DriverMsg::decode(&*answer).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(9)));
    answer
}

fn xs(answer: &DriverMsg) -> Vec<f64> {
    answer.targets.as_ref().unwrap().longitudes.clone()
}

async fn driving(fake: &Fake) {
    fake.tell(&set_targets(&[1.1, 3.0, 3.5]));
    fake.until("it drives", |world| world.speeds.front_left_mm_s > 100)
        .await;
}

#[tokio::test(start_paused = true)]
async fn each_answer_repeats_its_flag() {
    check(async |fake| {
        fake.world().pose = None;
        // type DATA, synNum 9, field 81 = true.
        let answer = fake.ask(b"\x10\x01\x18\x09\x88\x05\x01").await;
        // Field 81; field 85 with one target of zeros; field 86 with zeros.
        let zero = [0; 8];
        let expected = [
            b"\x10\x01\x20\x09\x88\x05\x01\xaa\x05\x1e\x0a\x08".as_slice(),
            &zero,
            b"\x12\x08",
            &zero,
            b"\x1a\x08",
            &zero,
            b"\xb2\x05\x26\x09",
            &zero,
            b"\x11",
            &zero,
            b"\x19",
            &zero,
            b"\x21",
            &zero,
            b"\x28\x00",
        ];
        assert_eq!(answer, expected.concat());
        // Field 87 = true; field 88 = { 380.0 }.
        let answer = fake.ask(b"\x10\x01\x18\x09\xb8\x05\x01").await;
        let mut expected = b"\x10\x01\x20\x09\xb8\x05\x01\xc2\x05\x09\x09".to_vec();
        expected.extend(380.0_f64.to_le_bytes());
        assert_eq!(answer, expected);
        let empty = ask(fake, |it| it.get_next_targets = Some(true)).await;
        assert_eq!((empty.get_next_targets, xs(&empty)), (Some(true), vec![]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_map_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flat.roson");
    let stated = RobotOptions::with_central_laser().stated().unwrap();
    let driver = DriveToPoint::new(stated, plan(Some(file.clone())), None);
    run(drive_to_point::driver(driver), async |fake| {
        let says = |fake: &Fake, part: &str| {
            let trouble = fake.world().trouble.clone();
            trouble.is_some_and(|why| why.contains(part) && why.contains("flat.roson"))
        };
        for (content, part) in [(None, "cannot read"), (Some("{"), "not a .roson map")] {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            while !says(fake, part) {
                sleep(Duration::from_millis(10)).await;
            }
        }
        std::fs::write(&file, include_str!("../../../map/maps/flat.roson")).unwrap();
        fake.until("it has read the map", |world| world.trouble.is_none())
            .await;
        let empty = ask(fake, |it| it.get_next_targets = Some(true)).await;
        assert_eq!(xs(&empty), [0.0; 0]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn targets_are_visited_in_order() {
    check(async |fake| {
        driving(fake).await;
        let next = ask(fake, |it| it.get_next_targets = Some(true)).await;
        assert_eq!(
            xs(&next),
            [3.0, 3.5],
            "the robot stands within the first one"
        );
        assert_eq!(next.location.unwrap().x, Some(1.0));
        let visited = ask(fake, |it| it.get_visited_target = Some(true)).await;
        assert_eq!(
            (visited.get_visited_target, xs(&visited)),
            (Some(true), vec![1.1])
        );
        let progress = ask(fake, |it| it.get_progress = Some(true)).await;
        let progress = progress.progress.unwrap();
        assert_eq!(progress.state(), progress::State::Following);
        assert_eq!(progress.path.unwrap().xs.last(), Some(&3.0));
        fake.tell(&set_targets(&[]));
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= Duration::from_millis(60), "{took:?}");
        let visited = ask(fake, |it| it.get_visited_targets = Some(true)).await;
        assert!(xs(&visited).is_empty());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn targets_end_with_their_client() {
    check(async |fake| {
        driving(fake).await;
        let died = DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec();
        fake.tell_as(8, &died);
        sleep(Duration::from_millis(200)).await;
        assert_ne!(fake.world().speeds, WheelSpeeds::STOP);
        fake.tell(&died);
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= Duration::from_millis(60), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_pose_or_laser_stops_the_wheels_and_is_reported() {
    for (is_laser, reason, limit_ms) in [
        (true, "hokuyo:0 sends no scans", 750),
        (false, "location:0 sends no poses", 1_000),
    ] {
        check(async |fake| {
            driving(fake).await;
            if is_laser {
                fake.world().laser_on = false;
            } else {
                fake.world().pose = None;
            }
            let took = fake
                .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
                .await;
            assert!(
                took <= Duration::from_millis(limit_ms),
                "{reason}: {took:?}"
            );
            fake.until(reason, |world| {
                let trouble = world.trouble.as_deref();
                trouble.is_some_and(|trouble| trouble.starts_with(reason))
            })
            .await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_state_and_path() {
    check(async |fake| {
        driving(fake).await;
        fake.tell(&DriverMsg::of_kind(MsgType::Subscribe).encode_to_vec());
        for _ in 0..3 {
            let published = DriverMsg::decode(&*fake.hear().await).unwrap();
            assert_eq!(published.ack(), Some(SynNum(0)));
            let progress = published.progress.unwrap();
            assert_eq!(progress.state(), progress::State::Following);
            assert!(progress.remaining.unwrap() > 1.0, "{progress:?}");
            assert!(published.location.is_some());
        }
        fake.world().pose = Some(MapPose::new(1.0, 3.0, 0.0));
        let jumped = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(jumped <= Duration::from_millis(500), "{jumped:?}");
    })
    .await;
}

/// An order to drive straight ahead, with so many targets.
fn go(id: u64, xs: &[f64]) -> Vec<u8> {
    let targets = DriverMsg::decode(&*set_targets(xs)).unwrap().targets;
    let message = DriverMsg {
        go: Some(Go {
            id,
            targets: targets.unwrap(),
            name: Some("a test".into()),
        }),
        syn_num: Some(9),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

/// The order in the driver's answer to a message.
async fn order_of(fake: &mut Fake, message: &[u8]) -> Order {
    let answer = DriverMsg::decode(&*fake.ask(message).await).unwrap();
    answer.order.unwrap()
}

async fn order(fake: &mut Fake, id: u64) -> Order {
    ask(fake, |it| it.order_id = Some(id)).await.order.unwrap()
}

fn bytes_of(set: impl FnOnce(&mut motion::DriverMsg)) -> Vec<u8> {
    let mut message = motion::DriverMsg::data();
    set(&mut message);
    message.encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn an_order_ends_when_its_targets_are_visited_and_its_end_is_remembered() {
    check(async |fake| {
        let begun = order_of(fake, &go(100, &[1.1, 3.0])).await;
        assert_eq!((begun.id(), begun.state()), (100, OrderState::Running));
        fake.until("it drives", |world| world.speeds.front_left_mm_s > 100)
            .await;
        let running = order(fake, 100).await;
        assert_eq!((running.targets(), running.visited()), (2, 1));
        assert_eq!(running.name(), "a test");
        assert!(running.remaining() > 1.0, "{running:?}");
        // The same request again starts nothing.
        let again = order_of(fake, &go(100, &[1.1, 3.0])).await;
        assert_eq!(again.visited(), 1);
        fake.world().pose = Some(MapPose::new(3.0, 1.0, 0.0));
        fake.until("it stands", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        let mut ended = order(fake, 100).await;
        while ended.state() == OrderState::Running {
            sleep(Duration::from_millis(50)).await;
            ended = order(fake, 100).await;
        }
        assert_eq!((ended.state(), ended.visited()), (OrderState::Arrived, 2));
        assert_eq!((ended.reason, ended.remaining), (None, None));
        let again = order_of(fake, &go(100, &[1.1, 3.0])).await;
        assert_eq!(again.state(), OrderState::Arrived);
        let unknown = order(fake, 5).await;
        assert_eq!((unknown.id(), unknown.state()), (5, OrderState::Unknown));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_way_to_end_an_order_has_its_state_and_reason() {
    type Ends = fn(&Fake);
    let died: Ends = |fake| fake.tell(&DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec());
    let replaced: Ends = |fake| fake.tell_as(8, &set_targets(&[2.0]));
    let stopped: Ends = |fake| fake.tell_as(8, &set_targets(&[]));
    let cancelled: Ends = |fake| {
        let message = DriverMsg {
            cancel_id: Some(100),
            ..DriverMsg::data()
        };
        fake.tell_as(8, &message.encode_to_vec());
    };
    let halted: Ends = |fake| {
        let halt = motion::HaltRequest {
            halt: true,
            name: Some("the operator".into()),
        };
        fake.tell_as(8, &bytes_of(|it| it.halt_request = Some(halt)));
    };
    let taken: Ends = |fake| {
        let lease = motion::LeaseRequest {
            action: motion::lease_request::Action::Take.into(),
            name: Some("a page".into()),
            period_ms: None,
        };
        fake.tell_as(8, &bytes_of(|it| it.lease_request = Some(lease)));
    };
    for (ends, state, reason, by) in [
        (
            died,
            OrderState::ClientLost,
            "the client that gave the order is gone",
            None,
        ),
        (
            replaced,
            OrderState::Replaced,
            "replaced by client 8",
            Some(8),
        ),
        (stopped, OrderState::Stopped, "stopped by client 8", Some(8)),
        (
            cancelled,
            OrderState::Cancelled,
            "cancelled by client 8",
            Some(8),
        ),
        (
            halted,
            OrderState::Halted,
            "the device was halted by the operator",
            None,
        ),
        (
            taken,
            OrderState::LeaseLost,
            "a page holds the lease",
            Some(8),
        ),
    ] {
        check(async |fake| {
            order_of(fake, &go(100, &[3.0])).await;
            fake.until("it drives", |world| world.speeds.front_left_mm_s > 100)
                .await;
            ends(fake);
            if state != OrderState::Replaced {
                fake.until("a stop", |it| it.speeds == WheelSpeeds::STOP)
                    .await;
            }
            let ended = order(fake, 100).await;
            assert_eq!(
                (ended.state(), ended.reason(), ended.ended_by),
                (state, reason, by)
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_carried_out_is_refused_and_the_last_one_goes_on() {
    check(async |fake| {
        order_of(fake, &go(100, &[3.0])).await;
        for (id, xs, why) in [
            (101, &[][..], "an order has at least one target"),
            (102, &[1.0, f64::NAN], "target 1 is invalid"),
            (103, &[1.0; 1_301], "1301 targets; at most 1300"),
        ] {
            let answer = DriverMsg::decode(&*fake.ask(&go(id, xs)).await).unwrap();
            assert!(answer.order_refused().starts_with(why), "{answer:?}");
            let known = order(fake, id).await;
            assert_eq!(known.state(), OrderState::Refused);
            assert!(known.reason().starts_with(why), "{known:?}");
        }
        assert_eq!(order(fake, 100).await.state(), OrderState::Running);
        // Client 8 takes the id of client 7.
        fake.tell_as(8, &go(100, &[3.0]));
        let answer = DriverMsg::decode(&*fake.hear().await).unwrap();
        let why = "the id 100 is that of";
        assert!(answer.order_refused().contains(why), "{answer:?}");
        let orders = ask(fake, |it| it.get_orders = Some(true)).await.orders;
        let ids: Vec<_> = orders.unwrap().orders.iter().map(Order::id).collect();
        assert_eq!(ids, [100, 103, 102, 101]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_skipped_target_and_targets_without_an_order_have_an_end_too() {
    check(async |fake| {
        // Nothing is there to drive to: the robot gives up, as it does not get on.
        fake.world().ahead_mm = 240;
        order_of(fake, &go(100, &[1.1, 3.0])).await;
        let mut ended = order(fake, 100).await;
        while ended.state() == OrderState::Running {
            sleep(Duration::from_secs(1)).await;
            ended = order(fake, 100).await;
        }
        assert_eq!(ended.state(), OrderState::Skipped);
        assert_eq!((ended.visited(), ended.skipped()), (1, 1));
        assert!(ended.reason().contains("no progress"), "{ended:?}");
        fake.tell(&set_targets(&[1.1, 3.0]));
        // 0 means the current order, or the last one.
        let latest = order(fake, 0).await;
        assert!(latest.id() < 1 << 32, "{latest:?}");
        assert_eq!(latest.targets(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_learn_the_end_of_an_order_at_once() {
    check(async |fake| {
        fake.tell(&DriverMsg::of_kind(MsgType::Subscribe).encode_to_vec());
        let mut published = DriverMsg::decode(&*fake.hear().await).unwrap();
        assert_eq!(published.order, None, "nothing new without orders");
        fake.tell(&set_targets(&[3.0]));
        fake.until("it drives", |world| world.speeds.front_left_mm_s > 100)
            .await;
        let started = tokio::time::Instant::now();
        fake.tell(&set_targets(&[]));
        loop {
            published = DriverMsg::decode(&*fake.hear().await).unwrap();
            let order = published.order.clone();
            if order.is_some_and(|it| it.state() == OrderState::Stopped) {
                break;
            }
        }
        let took = started.elapsed();
        assert!(took < Duration::from_millis(50), "{took:?}");
    })
    .await;
}
