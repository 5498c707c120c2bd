//! Tests of the whole driver, between a mediator and a simulated bus.

use std::time::Duration;

use amber_driver::devices::maestro;
use amber_proto::maestro::{ServoAngles, SetAngleCommand};
use amber_proto::{DeviceMessage, MsgType};
use amber_sim::pca9685 as sim;
use prost::Message;
use tokio::time::sleep;

use super::*;
use crate::i2c::fake::Fake;
use crate::pca9685::Options;
use crate::testing::{self, Plug};

type Device = Fake<sim::Pca9685>;

async fn check(options: &str, scenario: impl AsyncFnOnce(&mut testing::Mediator<Device>)) {
    let options: Options = toml::from_str(options).unwrap();
    let (settings, servos, _) = options.settings().unwrap();
    let bus = Fake::of(sim::Pca9685::new(0x40, Duration::ZERO));
    // The bus is not a stream, so nobody connects to the port.
    let port = Plug::new(bus.clone(), |_, _| Box::pin(async {}));
    let open = move || -> Result<Box<dyn Bus>, String> {
        match &bus.state().broken {
            Some(why) => Err(why.clone()),
            None => Ok(Box::new(bus.clone())),
        }
    };
    let driver = maestro::driver(driver(settings, servos, open));
    testing::run(port, driver, scenario).await;
}

fn turn(servo: u32, angle: i32) -> Vec<u8> {
    let message = DriverMsg {
        set_angle_command: Some(SetAngleCommand {
            servo_address: servo,
            angle,
        }),
        ..DriverMsg::data()
    };
    message.encode_to_vec()
}

fn has_pulse(device: &mut Device, channel: usize, us: f64) -> bool {
    (device.state().chips.pulse_us(channel) - us).abs() < 2.5
}

#[tokio::test(start_paused = true)]
async fn requests_turn_servos_and_angles_are_known() {
    check("", async |mediator| {
        let is_ready = |device: &mut Device| !device.state().written.is_empty();
        mediator.until("it is set up", is_ready).await;
        sleep(Duration::from_millis(100)).await;
        mediator.tell(&turn(2, 90)).await;
        let turned = |device: &mut Device| has_pulse(device, 2, 1500.0);
        mediator.until("it turns", turned).await;
        mediator.tell(b"\x10\x01\x18\x07\xd0\x04\x01").await;
        let answer = mediator.hear().await.expect("an answer");
        let answer = DriverMsg::decode(&answer[..]).unwrap();
        let angles = ServoAngles {
            servo_addresses: vec![2],
            angles: vec![90],
        };
        assert_eq!(answer.angles, Some(angles));
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_chip_and_a_broken_bus_are_reported() {
    check("", async |mediator| {
        let is_ready = |device: &mut Device| !device.state().written.is_empty();
        mediator.until("it is set up", is_ready).await;
        let set_broken = |why: Option<&str>| {
            let why = why.map(str::to_owned);
            mediator.port.with(|device| device.state().broken = why);
        };
        set_broken(Some("the bus is stuck"));
        mediator.expect_health(Some("the bus is stuck")).await;
        mediator.port.with(|device| {
            device.state().missing = vec![0x40];
            device.state().broken = None;
        });
        mediator
            .expect_health(Some("no chip answers at address 0x40"))
            .await;
        mediator.port.with(|device| device.state().missing.clear());
        mediator.expect_health(None).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_turns_like_a_motor_stops_with_its_client() {
    check("[[servo]]\nid = 5\ncontinuous = true", async |mediator| {
        let is_ready = |device: &mut Device| !device.state().written.is_empty();
        mediator.until("it is set up", is_ready).await;
        sleep(Duration::from_millis(100)).await;
        mediator.tell(&turn(2, 90)).await;
        mediator.tell(&turn(5, 45)).await;
        let turned = |device: &mut Device| has_pulse(device, 5, 1950.0);
        mediator.until("it turns", turned).await;
        let died = DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec();
        mediator.tell(&died).await;
        let stopped = |device: &mut Device| has_pulse(device, 5, 0.0);
        mediator.until("it stops", stopped).await;
        mediator
            .port
            .with(|device| assert!(has_pulse(device, 2, 1500.0)));
    })
    .await;
}
