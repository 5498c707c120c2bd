//! Commands and what their drivers report.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use amber_proto::mediator::{DriverMsg, Outcome};
use amber_proto::{ClientId, Device, DeviceMessage, MsgType, maestro, mediator, motion, roboclaw};
use prost::Message;
use tokio::time::Instant;

use crate::client::{Announcement, Client};
use crate::error::Error;
use crate::fake::{Fake, Sent};
use crate::proxy::WheelSpeeds;

/// A client of a mediator that answers.
async fn announced() -> (Client, Fake) {
    let (client, fake) = Fake::new();
    let mut pong = mediator::DriverMsg::default();
    pong.set_kind(MsgType::Pong);
    fake.say(Device::MEDIATOR, &pong.encode_to_vec()).await;
    while client.announcement() == Announcement::Silent {
        tokio::task::yield_now().await;
    }
    (client, fake)
}

fn wants_outcome(sent: &Sent) -> bool {
    DriverMsg::decode(&*sent.bytes).unwrap().want_outcome()
}

async fn report(fake: &Fake, command: &Sent, refused: Option<&str>) {
    let answer = DriverMsg {
        outcome: Some(Outcome {
            refused: refused.map(str::to_owned),
        }),
        ..DriverMsg::data()
    };
    fake.answer(command, &answer.encode_to_vec()).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_reaches_its_caller() {
    let (client, mut fake) = announced().await;
    let driver = tokio::spawn(async move {
        for refused in [Some("there is no servo 99"), None] {
            let command = fake.receive().await.unwrap();
            assert!(wants_outcome(&command));
            report(&fake, &command, refused).await;
        }
        fake
    });
    let servos = client.maestro(0);
    match servos.set_angle(99, 4500).await {
        Err(Error::Refused { message, .. }) => assert_eq!(message, "there is no servo 99"),
        other => panic!("{other:?}"),
    }
    servos.set_angle(3, 45).await.unwrap();
    driver.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_command_that_moves_says_for_how_long_it_holds_and_reports_its_refusal() {
    let (client, mut fake) = announced().await;
    let driver = tokio::spawn(async move {
        let command = fake.receive().await.unwrap();
        assert!(wants_outcome(&command));
        let terms = motion::DriverMsg::decode(&*command.bytes).unwrap();
        assert_eq!((terms.valid_ms, terms.for_client), (Some(400), Some(7)));
        let sent = roboclaw::DriverMsg::decode(&*command.bytes).unwrap();
        assert!(sent.motors_command.is_some());
        report(&fake, &command, Some("another client drives")).await;
        fake
    });
    let wheels = (client.roboclaw(0))
        .with_validity(Duration::from_millis(400))
        .for_client(Some(ClientId(7)));
    match wheels.drive(WheelSpeeds::STOP).await {
        Err(Error::Refused { message, .. }) => assert_eq!(message, "another client drives"),
        other => panic!("{other:?}"),
    }
    driver.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_reports_nothing_is_waited_for_once() {
    let (client, mut fake) = announced().await;
    let servos = client.maestro(0);
    servos.set_angle(3, 45).await.unwrap();
    let began = Instant::now();
    for _ in 0..5 {
        servos.set_angle(3, 45).await.unwrap();
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    // A new process of the driver may be another program.
    let mut died = DriverMsg::default();
    died.set_kind(MsgType::DriverDied);
    fake.say(servos.address(), &died.encode_to_vec()).await;
    for _ in 0..6 {
        fake.receive().await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let refused = tokio::spawn(async move { servos.set_angle(3, 45).await });
    let command = fake.receive().await.unwrap();
    report(&fake, &command, Some("no")).await;
    assert!(matches!(refused.await.unwrap(), Err(Error::Refused { .. })));
}

#[tokio::test(start_paused = true)]
async fn without_waiting_a_refusal_is_passed_on_later() {
    let (client, mut fake) = announced().await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let servos = (client.maestro(0))
        .without_waiting(move |error| tell.lock().unwrap().push(error.to_string()));
    let began = Instant::now();
    servos.set_angle(99, 4500).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let command = fake.receive().await.unwrap();
    assert!(told.lock().unwrap().is_empty());
    report(&fake, &command, Some("there is no servo 99")).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let expected = "maestro:0 refused the request: there is no servo 99";
    assert_eq!(*told.lock().unwrap(), [expected]);
    // What waits for a report keeps no client alive.
    servos.set_angle(1, 1).await.unwrap();
    drop((servos, client));
    fake.receive().await.unwrap();
    assert!(fake.receive().await.is_none());
    assert_eq!(began.elapsed(), Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn the_original_system_gets_the_bytes_of_before_and_is_not_waited_for() {
    let (client, mut fake) = Fake::new();
    let began = Instant::now();
    let servos = client.maestro(0);
    servos.set_angle(3, 45).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!wants_outcome(&fake.receive().await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_only_sent_asks_for_nothing() {
    let (client, mut fake) = announced().await;
    let servos = client.device("maestro:0".parse().unwrap());
    servos.send(maestro::DriverMsg::default()).await.unwrap();
    assert!(!wants_outcome(&fake.receive().await.unwrap()));
}
