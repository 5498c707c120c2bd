//! Tests of the whole driver between a fake mediator and fake devices.

use std::time::Duration;

use amber_driver::devices::collision_avoidance;
use amber_driver::proto::robot::{Place, Shape};
use amber_driver::proto::{DeviceMessage, MsgType, SynNum};
use prost::Message;
use tokio::time::sleep;

use super::*;
use crate::moving::testing::{Fake, World, run, wall};
use crate::robot_options::RobotOptions;

async fn check(scenario: impl AsyncFnOnce(&mut Fake)) {
    let options = RobotOptions::with_central_laser();
    let driver = CollisionAvoidance::new(options.stated().unwrap());
    run(collision_avoidance::driver(driver), scenario).await;
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn drive(speeds: WheelSpeeds) -> Vec<u8> {
    let message = DriverMsg {
        set_speed: Some(true),
        motors_speed: Some(speeds.into()),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

/// Drives until the wheels turn at full speed.
async fn driving(fake: &Fake, command: &[u8]) {
    let speeds = WheelSpeeds::sides(300, 250);
    while fake.world().speeds != speeds {
        fake.tell(command);
        sleep(ms(50)).await;
    }
}

/// Repeats a command for some time.
async fn repeat(fake: &Fake, command: &[u8], time: Duration) {
    for _ in 0..time.as_millis() / 50 {
        fake.tell(command);
        sleep(ms(50)).await;
    }
}

/// The bytes of a message without values, only with a flag and a number.
fn request(set: impl FnOnce(&mut DriverMsg)) -> Vec<u8> {
    let mut message = DriverMsg::data();
    message.set_syn(Some(SynNum(9)));
    set(&mut message);
    message.encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn messages_of_both_kinds_have_their_bytes() {
    check(async |fake| {
        let command = drive(WheelSpeeds::sides(300, 250));
        driving(fake, &command).await;
        // The driver measures the speeds every 50 ms.
        repeat(fake, &command, ms(100)).await;
        // type DATA, synNum 9, field 91 = true.
        let asked = request(|message| message.get_speed = Some(true));
        assert_eq!(asked, b"\x10\x01\x18\x09\xd8\x05\x01");
        let answer = fake.ask(&asked).await;
        // type DATA, ackNum 9, field 91 = true, field 94 = { 300, 250, 300, 250 }.
        assert_eq!(
            answer,
            b"\x10\x01\x20\x09\xd8\x05\x01\xf2\x05\x0c\x08\xac\x02\x10\xfa\x01\x18\xac\x02\x20\xfa\x01"
        );
        // Field 21 = true; field 22 in the answer.
        let answer = fake.ask(b"\x10\x01\x18\x09\xa8\x01\x01").await;
        assert_eq!(
            answer,
            b"\x10\x01\x20\x09\xb2\x01\x0c\x08\xac\x02\x10\xfa\x01\x18\xac\x02\x20\xfa\x01"
        );
        let answer = fake.ask(&request(|it| it.get_scan = Some(true))).await;
        let answer = DriverMsg::decode(&*answer).unwrap();
        assert_eq!((answer.get_scan, answer.ack()), (Some(true), Some(SynNum(9))));
        let scan = answer.scan.unwrap();
        assert_eq!((scan.angles, scan.distances), {
            let wall = wall(4_000);
            (wall.angles, wall.distances)
        });
        let answer = fake
            .ask(&request(|it| {
                it.get_speed_and_scan = Some(true);
                it.get_scan = Some(true);
            }))
            .await;
        let answer = DriverMsg::decode(&*answer).unwrap();
        assert_eq!((answer.get_speed_and_scan, answer.get_scan), (Some(true), None));
        assert!(answer.motors_speed.is_some() && answer.scan.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_of_roboclaw_drives_and_stops_by_leaving() {
    check(async |fake| {
        // Field 20 = { 300, 250, 300, 250 }.
        let command = b"\x10\x01\xa2\x01\x0c\x08\xac\x02\x10\xfa\x01\x18\xac\x02\x20\xfa\x01";
        driving(fake, command).await;
        let died = DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec();
        fake.tell_as(8, &died);
        repeat(fake, command, ms(200)).await;
        assert_ne!(fake.world().speeds, WheelSpeeds::STOP);
        fake.tell(&died);
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= ms(60), "{took:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silence_stops_the_wheels_and_then_nothing_is_sent() {
    check(async |fake| {
        driving(fake, &drive(WheelSpeeds::sides(300, 250))).await;
        let took = fake
            .until("a stop", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        assert!(took <= ms(560), "{took:?}");
        sleep(ms(700)).await;
        let commands = fake.world().commands;
        sleep(ms(3_000)).await;
        assert_eq!(fake.world().commands, commands, "another client may drive");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_laser_or_lost_wheels_stop_the_wheels_and_are_reported() {
    for (lose, reason) in [
        (
            (|world| world.laser_on = false) as fn(&mut crate::moving::testing::World),
            "hokuyo:0 sends no scans",
        ),
        (
            |world| world.wheels_on = false,
            "roboclaw:0 reports no wheel speeds",
        ),
    ] {
        check(async |fake| {
            let command = drive(WheelSpeeds::sides(300, 250));
            driving(fake, &command).await;
            lose(&mut fake.world());
            repeat(fake, &command, ms(750)).await;
            assert_eq!(fake.world().speeds, WheelSpeeds::STOP, "{reason}");
            let is_said = |world: &crate::moving::testing::World| {
                let trouble = world.trouble.as_deref();
                trouble.is_some_and(|trouble| trouble.starts_with(reason))
            };
            fake.until(reason, is_said).await;
            {
                let mut world = fake.world();
                (world.laser_on, world.wheels_on) = (true, true);
            }
            fake.until("a recovery", |world| world.trouble.is_none())
                .await;
            assert_eq!(
                fake.world().speeds,
                WheelSpeeds::STOP,
                "the old command is gone"
            );
            driving(fake, &command).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_that_appears_stops_the_wheels_within_a_scan() {
    check(async |fake| {
        let command = drive(WheelSpeeds::sides(300, 250));
        driving(fake, &command).await;
        fake.world().ahead_mm = 250;
        repeat(fake, &command, ms(150)).await;
        assert_eq!(fake.world().speeds, WheelSpeeds::STOP);
        // Away from it.
        let back = drive(WheelSpeeds::all(-100));
        repeat(fake, &back, ms(300)).await;
        assert_eq!(fake.world().speeds, WheelSpeeds::all(-100));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_speeds_and_scans() {
    check(async |fake| {
        fake.tell(&DriverMsg::of_kind(MsgType::Subscribe).encode_to_vec());
        for _ in 0..5 {
            let published = DriverMsg::decode(&*fake.hear().await).unwrap();
            assert_eq!(published.ack(), Some(SynNum(0)));
            assert!(published.motors_speed.is_some() && published.scan.is_some());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_robot_device_says_what_the_options_do_not_and_may_change_it() {
    let stated = RobotOptions::default().stated().unwrap();
    let driver = CollisionAvoidance::new(stated);
    run(collision_avoidance::driver(driver), async |fake| {
        let is_missing = |why: &str| why.contains("robot:0") && why.contains("laser-offset-mm");
        let said = |world: &World| world.trouble.as_deref().is_some_and(is_missing);
        fake.until("the missing device is reported", said).await;
        let shape = |max_m_s| {
            Some(Shape {
                laser: Some(Place::default()),
                length: Some(0.37),
                width: Some(0.33),
                track: Some(0.42),
                max_wheel_speed: Some(max_m_s),
                scan_turn: Some(0.1),
                ..Shape::default()
            })
        };
        fake.world().shape = Some(Shape {
            laser: None,
            ..shape(1.2).unwrap()
        });
        let said = |world: &World| {
            let why = world.trouble.as_deref().unwrap_or_default();
            why.contains("does not say where the laser is")
        };
        fake.until("the missing place is reported", said).await;
        fake.world().shape = shape(1.2);
        fake.until("it recovers", |world| world.trouble.is_none())
            .await;
        driving(fake, &drive(WheelSpeeds::sides(300, 250))).await;
        // The robot becomes slower: the wheels stop, and the same command is too fast.
        fake.world().shape = shape(0.2);
        fake.until("a stop", |world| world.speeds == WheelSpeeds::STOP)
            .await;
        sleep(ms(12_000)).await;
        repeat(fake, &drive(WheelSpeeds::sides(300, 250)), ms(1_000)).await;
        assert_eq!(fake.world().speeds, WheelSpeeds::STOP);
        repeat(fake, &drive(WheelSpeeds::sides(150, 150)), ms(1_000)).await;
        assert_eq!(fake.world().speeds, WheelSpeeds::sides(150, 150));
    })
    .await;
}
