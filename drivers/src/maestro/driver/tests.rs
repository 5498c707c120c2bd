//! Tests of the whole driver, between a mediator and an in-memory device.

use std::time::Duration;

use amber_driver::devices::maestro::{
    self, ServoAngles, SetDifferentAnglesCommand, SetSameAngleCommand,
};
use amber_proto::DeviceMessage;
use amber_sim::maestro as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::sleep;

use super::*;
use crate::maestro::Options;
use crate::testing::{self, Plug, check_bytes};

type Device = sim::Maestro;

/// Serves the connection of the device.
async fn serve(port: Plug<Device>, mut stream: DuplexStream) {
    let mut bytes = [0; 64];
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        let answer = port.with(|device| {
            device.handle_bytes(&bytes[..length]);
            device.poll_output().unwrap_or_default()
        });
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut testing::Mediator<Device>)) {
    check_with(
        sim::Config::default(),
        Options::default(),
        plugged,
        scenario,
    )
    .await;
}

async fn check_with(
    config: sim::Config,
    options: Options,
    plugged: bool,
    scenario: impl AsyncFnOnce(&mut testing::Mediator<Device>),
) {
    let device = sim::Maestro::new(config, Duration::ZERO);
    let port = Plug::new(device, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, servos, _) = options.settings().unwrap();
    let theirs = port.clone();
    let driver = maestro::driver(driver(settings, servos, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

/// Servo 2 to 90 degrees.
const TURN: &[u8] = b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a";

#[tokio::test(start_paused = true)]
async fn the_driver_works_with_every_framing_and_after_the_baud_rate_byte() {
    for (device, crc) in [
        (None, false),
        (None, true),
        (Some(5), false),
        (Some(5), true),
    ] {
        let config = sim::Config {
            device: 5,
            crc,
            detects_baud: true,
            ..sim::Config::default()
        };
        let options = Options {
            device,
            crc: Some(crc),
            detect_baud: Some(true),
            ..Options::default()
        };
        check_with(config, options, true, async |mediator| {
            sleep(Duration::from_millis(100)).await;
            mediator.tell(TURN).await;
            let turned = |device: &mut Device| device.servos()[2].target_us() == 1500.0;
            mediator.until("it turns", turned).await;
            mediator.expect_no_more_health();
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_with_a_fixed_baud_rate_survives_the_baud_rate_byte() {
    let options = Options {
        detect_baud: Some(true),
        ..Options::default()
    };
    check_with(sim::Config::default(), options, true, async |mediator| {
        // The device takes this byte as the start of a packet.
        let trouble = "the Maestro reports errors: serial protocol";
        mediator.expect_health(Some(trouble)).await;
        mediator.expect_health(None).await;
        mediator.tell(TURN).await;
        let turned = |device: &mut Device| device.servos()[2].target_us() == 1500.0;
        mediator.until("it turns", turned).await;
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_reported_to_clients_that_ask_for_the_outcome() {
    check(true, async |mediator| {
        sleep(Duration::from_millis(100)).await;
        // Servo 2 to 181 degrees, number 7, and the wish for the outcome.
        let request = b"\x10\x01\x18\x07\xb2\x04\x05\x08\x02\x10\xb5\x01\xd0\x0b\x01";
        // The log line is not repeated, the report is.
        for _ in 0..3 {
            mediator.tell(request).await;
            let reply = mediator.hear().await.expect("an outcome");
            let reply = amber_proto::mediator::DriverMsg::decode(&reply[..]).unwrap();
            assert_eq!(reply.ack_num, Some(7));
            assert_eq!(
                reply.outcome.unwrap().why_refused().as_deref(),
                Some("servo 2 turns from 0 to 180 degrees, not to 181")
            );
        }
        let accepted = [TURN, b"\x18\x08\xd0\x0b\x01"].concat();
        mediator.tell(&accepted).await;
        let reply = mediator.hear().await;
        assert_eq!(reply.as_deref(), Some(&b"\x10\x01\x20\x08\xda\x0b\0"[..]));
        // Old clients get no reply.
        mediator.tell(&request[..request.len() - 3]).await;
        assert_eq!(mediator.hear().await, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_turn_servos_without_replies() {
    check(true, async |mediator| {
        sleep(Duration::from_millis(100)).await;
        for message in [
            &b"\x10\x01\x18\x07"[..],
            b"\x10\x01\x18\x07\xb2\x04\x05\x08\xc8\x01\x10\x5a",
            b"\xff\xff",
            b"\x10\x01\xb2\x04\x00",
            TURN,
        ] {
            mediator.tell(message).await;
        }
        let turned = |device: &mut Device| device.servos()[2].target_us() == 1500.0;
        mediator.until("it turns", turned).await;
        assert_eq!(mediator.hear().await, None);
        mediator.tell(b"\x10\x02\x18\x07").await;
        let pong = mediator.hear().await;
        assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]));
        mediator.expect_no_more_health();
    })
    .await;
}

/// The request for the angles, with number 7.
const ANGLES: &[u8] = b"\x10\x01\x18\x07\xd0\x04\x01";

#[tokio::test(start_paused = true)]
async fn the_last_angle_of_each_servo_is_known_after_accepted_commands() {
    check(true, async |mediator| {
        sleep(Duration::from_millis(100)).await;
        let turn = |message: DriverMsg| message.encode_to_vec();
        let each = turn(DriverMsg {
            set_different_angles_command: Some(SetDifferentAnglesCommand {
                servo_addresses: vec![5, 0],
                angles: vec![10, 20],
            }),
            ..DriverMsg::data()
        });
        let same = |angle| {
            turn(DriverMsg {
                set_same_angle_command: Some(SetSameAngleCommand {
                    servo_addresses: vec![0, 5],
                    angle,
                }),
                ..DriverMsg::data()
            })
        };
        for (command, expected) in [
            (b"\x10\x01".to_vec(), vec![]),
            (TURN.to_vec(), vec![(2, 90)]),
            (each, vec![(0, 20), (2, 90), (5, 10)]),
            (same(30), vec![(0, 30), (2, 90), (5, 30)]),
            // Beyond the limit: nothing changes.
            (same(181), vec![(0, 30), (2, 90), (5, 30)]),
        ] {
            mediator.tell(&command).await;
            mediator.tell(ANGLES).await;
            let answer = mediator.hear().await.expect("an answer");
            let answer = DriverMsg::decode(&answer[..]).unwrap().angles.unwrap();
            let angles = answer.servo_addresses.into_iter().zip(answer.angles);
            assert_eq!(angles.collect::<Vec<_>>(), expected);
        }
    })
    .await;
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        // Dropped, because the device is not connected.
        mediator.tell(TURN).await;
        mediator.tell(ANGLES).await;
        let answer = mediator.hear().await.expect("an answer");
        let answer = DriverMsg::decode(&answer[..]).unwrap();
        assert_eq!(answer.angles, Some(ServoAngles::default()));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connecting_and_disconnecting_the_device_is_reported() {
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        mediator.tell(TURN).await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        sleep(Duration::from_secs(5)).await;
        let target = |device: &mut Device| device.servos()[2].target_us();
        assert_eq!(mediator.port.with(target), 0.0, "a late command is dropped");
        mediator.port.plug(false);
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        mediator.tell(TURN).await;
        mediator
            .until("it turns", |device| target(device) == 1500.0)
            .await;
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_device_are_reported() {
    check(true, async |mediator| {
        sleep(Duration::from_millis(100)).await;
        mediator.port.with(|device| device.handle_bytes(&[0x00]));
        let trouble = "the Maestro reports errors: serial protocol";
        mediator.expect_health(Some(trouble)).await;
        mediator.expect_health(None).await;
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    use amber_proto::maestro::{
        DriverMsg, SetAngleCommand, SetDifferentAnglesCommand, SetSameAngleCommand, SetSpeedCommand,
    };

    let data = DriverMsg {
        r#type: Some(1),
        ..DriverMsg::default()
    };
    check_bytes(
        "10 01 B2 04 04 08 02 10 5A",
        DriverMsg {
            set_angle_command: Some(SetAngleCommand {
                servo_address: 2,
                angle: 90,
            }),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 BA 04 06 0A 02 00 01 10 2D",
        DriverMsg {
            set_same_angle_command: Some(SetSameAngleCommand {
                servo_addresses: vec![0, 1],
                angle: 45,
            }),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 C2 04 09 0A 02 00 01 12 03 2D 87 01",
        DriverMsg {
            set_different_angles_command: Some(SetDifferentAnglesCommand {
                servo_addresses: vec![0, 1],
                angles: vec![45, 135],
            }),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 CA 04 04 08 02 10 14",
        DriverMsg {
            set_speed_command: Some(SetSpeedCommand {
                servo_address: 2,
                speed: 20,
            }),
            ..data
        },
    );
}
