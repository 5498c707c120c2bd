//! Tests of the whole driver, between a mediator and an in-memory gamepad.

use std::time::Duration;

use amber_driver::devices::gamepad::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_proto::gamepad::gamepad_state::Button;
use amber_sim::gamepad as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::gamepad::Options;
use crate::testing::{self, Plug, check_bytes};

/// What a person does.
type Held = Vec<sim::Hold>;

/// Plugs a gamepad in, and serves the connection.
async fn serve(port: Plug<Held>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut pad = sim::Gamepad::new(sim::Model::Playstation);
    // Linux tells what it is when it is opened.
    pad.handle_bytes(b"\n");
    let mut held = Held::new();
    let mut written = [0; 64];
    loop {
        let wanted = port.with(|held| held.clone());
        if wanted != held {
            held = wanted;
            pad.hold(begin.elapsed(), &held);
        }
        pad.handle_timeout(begin.elapsed());
        while let Some(bytes) = pad.poll_output() {
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let next = begin.elapsed() + Duration::from_millis(5);
        tokio::select! {
            read = stream.read(&mut written) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => panic!("the driver only listens"),
            },
            () = sleep_until(begin + next) => {}
        }
    }
}

type Mediator = testing::Mediator<Held>;

fn hold(mediator: &Mediator, parts: &[&str]) {
    let parts = parts.iter().map(|part| part.parse().unwrap());
    mediator.port.with(|held| *held = parts.collect());
}

/// Runs a driver during the scenario, then shuts it down.
async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(Held::new(), |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = gamepad::driver(Gamepad::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

async fn ask(mediator: &mut Mediator) -> GamepadState {
    let mut request = DriverMsg {
        get_gamepad_state: Some(true),
        ..DriverMsg::data()
    };
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    let answer = mediator.hear().await.expect("an answer");
    let answer = DriverMsg::decode(&answer[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    answer.gamepad_state.unwrap()
}

async fn published(mediator: &mut Mediator) -> GamepadState {
    let message = mediator.hear().await.expect("at least twice a second");
    let message = DriverMsg::decode(&message[..]).unwrap();
    assert_eq!(message.ack(), Some(SynNum(0)));
    message.gamepad_state.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_gamepad_plugged_in_later_is_found() {
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        let none = ask(mediator).await;
        assert_eq!(
            (none.connected(), none.trouble()),
            (false, "the port does not exist")
        );
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        let state = ask(mediator).await;
        assert_eq!(
            state.name(),
            "Sony Computer Entertainment Wireless Controller"
        );
        hold(mediator, &["left-y=1", "left-shoulder"]);
        sleep(Duration::from_millis(300)).await;
        let state = ask(mediator).await;
        assert!(state.left_y() > 0.98 && state.left_x() == 0.0, "{state:?}");
        assert_eq!(state.buttons().collect::<Vec<_>>(), [Button::LeftShoulder]);
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_told_at_once_that_the_gamepad_is_gone() {
    check(true, async |mediator| {
        mediator.tell(b"\x10\x06").await;
        hold(mediator, &["left-y=-0.5", "south"]);
        let is_held = |state: &GamepadState| state.left_y() < -0.4 && !state.buttons.is_empty();
        while !is_held(&published(mediator).await) {}
        mediator.port.plug(false);
        let begin = Instant::now();
        while published(mediator).await.connected() {}
        assert!(
            begin.elapsed() <= Duration::from_millis(25),
            "{:?}",
            begin.elapsed()
        );
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        while !is_held(&published(mediator).await) {}
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    let data = DriverMsg::data();
    check_bytes(
        "10 01 18 05 80 0F 01",
        DriverMsg {
            syn_num: Some(5),
            get_gamepad_state: Some(true),
            ..data.clone()
        },
    );
    let state = GamepadState {
        connected: Some(true),
        buttons: vec![Button::South.into(), Button::LeftShoulder.into()],
        ..GamepadState::default()
    };
    check_bytes(
        "10 01 20 05 8A 0F 06 08 01 50 00 50 09",
        DriverMsg {
            ack_num: Some(5),
            gamepad_state: Some(state),
            ..data
        },
    );
}
