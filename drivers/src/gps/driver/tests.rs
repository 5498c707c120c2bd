//! Tests of the whole driver, between a mediator and an in-memory receiver.

use std::time::Duration;

use amber_driver::devices::gps::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_proto::gps::fix::Kind;
use amber_sim::gps as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::gps::Options;
use crate::testing::{self, Plug, check_bytes};

/// What the receiver does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Well,
    Covered,
    Silent,
    /// At a wrong speed.
    Garbled,
}

/// Powers a receiver on and serves the connection.
async fn serve(port: Plug<Mood>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let origin = sim::Origin::default();
    let mut receiver = sim::Receiver::new(sim::Model::NeoM8, origin, 1, Duration::ZERO);
    receiver.set_noise(false);
    let mut written = [0; 64];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut written) => read.unwrap_or(0),
            () = sleep_until(begin + receiver.next_epoch()) => usize::MAX,
        };
        match read {
            0 => return,
            usize::MAX => {}
            _ => panic!("the driver only listens"),
        }
        let mood = port.with(|mood| *mood);
        receiver.set_covered(mood == Mood::Covered);
        while let Some(time) = receiver.poll_epoch(begin.elapsed()) {
            receiver.measure(time, &sim::Motion::default());
        }
        while let Some(mut bytes) = receiver.poll_output() {
            match mood {
                Mood::Well | Mood::Covered => {}
                Mood::Silent => continue,
                Mood::Garbled => bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
            }
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

type Mediator = testing::Mediator<Mood>;

/// Runs a driver during the scenario, then shuts it down.
async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(Mood::Well, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = gps::driver(Gps::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

/// The answer to a request: the fix, or the reason why there is none.
async fn ask(mediator: &mut Mediator) -> Result<Fix, String> {
    let mut request = DriverMsg {
        get_fix: Some(true),
        ..DriverMsg::data()
    };
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    let answer = mediator.hear().await.expect("an answer");
    let answer = DriverMsg::decode(&answer[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    answer.fix.ok_or_else(|| answer.fix_refused.unwrap())
}

async fn published(mediator: &mut Mediator) -> Fix {
    loop {
        if let Some(message) = mediator.hear().await {
            let message = DriverMsg::decode(&message[..]).unwrap();
            assert_eq!(message.ack(), Some(SynNum(0)));
            return message.fix.unwrap();
        }
    }
}

fn check_place(fix: &Fix) {
    assert_eq!(fix.kind(), Kind::ThreeD);
    assert!((fix.latitude() - 50.0682).abs() < 1e-6, "{fix:?}");
    assert!((fix.longitude() - 19.9126).abs() < 1e-6, "{fix:?}");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_plugged_in_later_is_found() {
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        assert_eq!(ask(mediator).await, Err("the port does not exist".into()));
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        let first = ask(mediator).await.unwrap();
        assert_eq!((first.kind(), first.latitude), (Kind::None, None));
        sleep(Duration::from_secs(4)).await;
        let fix = ask(mediator).await.unwrap();
        check_place(&fix);
        assert!(fix.age() < 1_100 && fix.time.is_some(), "{fix:?}");
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_each_epoch_and_nothing_during_an_outage() {
    check(true, async |mediator| {
        mediator.tell(b"\x10\x06").await;
        for _ in 0..2 {
            assert_eq!(published(mediator).await.kind(), Kind::None);
        }
        for _ in 0..5 {
            let fix = published(mediator).await;
            check_place(&fix);
            assert_eq!(fix.age, None);
        }
        mediator.port.plug(false);
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        for _ in 0..5 {
            assert_eq!(mediator.hear().await, None);
        }
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        assert_eq!(published(mediator).await.kind(), Kind::None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_problem_is_named_and_does_not_end_the_driver() {
    check(true, async |mediator| {
        sleep(Duration::from_secs(4)).await;
        check_place(&ask(mediator).await.unwrap());
        for (mood, problem) in [
            (Mood::Covered, "no position: the antenna must see the sky"),
            (Mood::Garbled, "what arrives is not NMEA 0183: check --baud"),
            (Mood::Silent, "the receiver sends nothing: check its supply"),
        ] {
            mediator.port.with(|now| *now = mood);
            let said = mediator.health().await.unwrap();
            assert!(said.starts_with(problem), "{said}");
            match ask(mediator).await {
                Ok(fix) => assert_eq!((mood, fix.kind()), (Mood::Covered, Kind::None)),
                Err(why) => assert_eq!(why, said),
            }
            // The driver answers PINGs whatever the receiver does.
            mediator.tell(b"\x10\x02\x18\x07").await;
            let pong = mediator.hear().await;
            assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]), "{mood:?}");
            mediator.port.with(|mood| *mood = Mood::Well);
            mediator.expect_health(None).await;
            sleep(Duration::from_secs(5)).await;
            check_place(&ask(mediator).await.unwrap());
        }
        mediator.expect_no_more_health();
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    let data = DriverMsg::data();
    check_bytes(
        "10 01 18 05 B0 0E 01",
        DriverMsg {
            syn_num: Some(5),
            get_fix: Some(true),
            ..data.clone()
        },
    );
    let none = Fix {
        kind: Some(Kind::None.into()),
        satellites: Some(3),
        ..Fix::default()
    };
    check_bytes(
        "10 01 20 05 BA 0E 04 08 00 50 03",
        DriverMsg {
            ack_num: Some(5),
            fix: Some(none),
            ..data
        },
    );
}
