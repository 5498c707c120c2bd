//! Tests of the whole driver between a fake mediator and fake devices.

use std::time::Duration;

use amber_driver::devices::pid_follow_trajectory::{self, DriverMsg};
use amber_driver::proto::order::order::State as OrderState;
use amber_driver::proto::{DeviceMessage, MsgType};
use amber_proto::{Device, DeviceType};
use amber_values::{MapPose, WheelSpeeds};
use prost::Message;
use tokio::time::sleep;

use super::*;
use crate::moving::testing::{Fake, run};
use crate::robot_options::RobotOptions;

/// Fields 101 and 102 = true, with synNum 9.
const NEXT: &[u8] = b"\x10\x01\x18\x09\xa8\x06\x01";
const VISITED: &[u8] = b"\x10\x01\x18\x09\xb0\x06\x01";
/// Fields 105, 106 and 107 = true.
const STOP: &[u8] = b"\x10\x01\xc8\x06\x01";
const START: &[u8] = b"\x10\x01\xd0\x06\x01";
const STEP: &[u8] = b"\x10\x01\xd8\x06\x01";

async fn check(scenario: impl AsyncFnOnce(&mut Fake)) {
    let stated = RobotOptions::with_central_laser().stated().unwrap();
    let plan = Plan {
        poses: Device::new(DeviceType::LOCATION, 0),
        unguarded: false,
    };
    let driver = PidFollowTrajectory::new(stated, plan);
    run(pid_follow_trajectory::driver(driver), scenario).await;
}

/// A straight line from (1, 2) to (3, 2): longitudes are y.
fn set_targets() -> Vec<u8> {
    let message = DriverMsg {
        set_targets: Some(true),
        targets: Some(Targets {
            longitudes: vec![2.0, 2.0],
            latitudes: vec![1.0, 3.0],
            times: vec![0, 0],
        }),
        configuration: Some(Configuration {
            max_lookahead: Some(0.6),
            weight_angular: Some(0.95),
            weigh_linear: Some(0.05),
            max_centric_acceleration: Some(0.5),
            max_linear_velocity: Some(0.35),
            scale: Some(6.0),
            loop_sleep_time: Some(1_000),
        }),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

async fn ready(fake: &mut Fake) {
    fake.world().pose = Some(MapPose::new(1.0, 2.0, 0.0));
    fake.tell(&set_targets());
}

async fn drives(fake: &Fake) {
    fake.until("it drives", |world| world.speeds.front_left_mm_s > 100)
        .await;
}

#[tokio::test(start_paused = true)]
async fn answers_have_their_number_and_flag_and_swapped_coordinates() {
    check(async |fake| {
        // Nothing is set: the original crashed.
        assert_eq!(
            fake.ask(NEXT).await,
            b"\x10\x01\x20\x09\xa8\x06\x01\xba\x06\x00"
        );
        ready(fake).await;
        let answer = fake.ask(NEXT).await;
        let [one, two, three] = [1.0_f64, 2.0, 3.0].map(f64::to_le_bytes);
        let expected = [
            // Field 101; field 103 with y, x and times.
            b"\x10\x01\x20\x09\xa8\x06\x01\xba\x06\x28\x0a\x10".as_slice(),
            &two,
            &two,
            b"\x12\x10",
            &one,
            &three,
            b"\x1a\x02\x00\x00",
        ];
        assert_eq!(answer, expected.concat());
        assert_eq!(
            fake.ask(VISITED).await,
            b"\x10\x01\x20\x09\xb0\x06\x01\xba\x06\x00"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn start_and_stop() {
    check(async |fake| {
        ready(fake).await;
        fake.tell(START);
        drives(fake).await;
        // Ignored while the robot drives.
        fake.tell(&set_targets());
        fake.tell(STOP);
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= Duration::from_millis(60), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_ends_after_its_period() {
    check(async |fake| {
        ready(fake).await;
        fake.tell(STEP);
        drives(fake).await;
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= Duration::from_millis(1_100), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_robot_stops_when_the_client_leaves_or_something_is_in_the_way_or_the_pose_is_lost() {
    for lost in 0..3 {
        check(async |fake| {
            ready(fake).await;
            fake.tell(START);
            drives(fake).await;
            match lost {
                0 => fake.tell(&DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec()),
                1 => fake.world().ahead_mm = 240,
                _ => fake.world().pose = None,
            }
            let took = fake
                .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
                .await;
            assert!(took <= Duration::from_millis(1_000), "{lost}: {took:?}");
        })
        .await;
    }
}

/// An order to follow the straight line.
fn follow(id: u64) -> Vec<u8> {
    let set = DriverMsg::decode(&*set_targets()).unwrap();
    let message = DriverMsg {
        follow: Some(Follow {
            id,
            targets: set.targets.unwrap(),
            configuration: set.configuration.unwrap(),
            name: None,
        }),
        syn_num: Some(9),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

async fn order_of(fake: &mut Fake, message: &[u8]) -> Order {
    let answer = DriverMsg::decode(&*fake.ask(message).await).unwrap();
    answer.order.unwrap()
}

async fn order(fake: &mut Fake, id: u64) -> Order {
    let message = DriverMsg {
        order_id: Some(id),
        syn_num: Some(9),
        ..DriverMsg::data()
    };
    order_of(fake, &message.encode_to_vec()).await
}

#[tokio::test(start_paused = true)]
async fn an_order_replaces_the_trajectory_and_has_an_end() {
    check(async |fake| {
        ready(fake).await;
        fake.tell(START);
        drives(fake).await;
        let first = order(fake, 0).await;
        let begun = order_of(fake, &follow(100)).await;
        assert_eq!((begun.id(), begun.state()), (100, OrderState::Running));
        let replaced = order(fake, first.id()).await;
        assert_eq!(replaced.reason(), "replaced by client 7");
        let mut running = order(fake, 100).await;
        while running.visited() == 0 {
            sleep(Duration::from_millis(10)).await;
            running = order(fake, 100).await;
        }
        assert_eq!((running.targets(), running.visited()), (2, 1));
        assert!(running.remaining() > 1.0, "{running:?}");
        fake.world().pose = Some(MapPose::new(3.0, 2.0, 0.0));
        let mut ended = running;
        while ended.state() == OrderState::Running {
            sleep(Duration::from_millis(50)).await;
            ended = order(fake, 100).await;
        }
        assert_eq!((ended.state(), ended.visited()), (OrderState::Arrived, 2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_the_end_of_a_step_and_a_lost_client_end_an_order() {
    for (state, reason) in [
        (OrderState::Stopped, "stopped by client 8"),
        (OrderState::Cancelled, "cancelled by client 8"),
        (
            OrderState::ClientLost,
            "the client that gave the order is gone",
        ),
        (OrderState::Stopped, "the single step is over"),
    ] {
        check(async |fake| {
            ready(fake).await;
            let id = match reason.contains("step") {
                true => {
                    fake.tell(STEP);
                    order(fake, 0).await.id()
                }
                false => order_of(fake, &follow(100)).await.id(),
            };
            drives(fake).await;
            match state {
                OrderState::Cancelled => {
                    let message = DriverMsg {
                        cancel_id: Some(id),
                        ..DriverMsg::data()
                    };
                    fake.tell_as(8, &message.encode_to_vec());
                }
                OrderState::ClientLost => {
                    fake.tell(&DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec());
                }
                _ if reason.contains("client 8") => fake.tell_as(8, STOP),
                _ => {}
            }
            fake.until("a stop", |it| it.speeds == WheelSpeeds::STOP)
                .await;
            let ended = order(fake, id).await;
            assert_eq!((ended.state(), ended.reason()), (state, reason));
        })
        .await;
    }
}
