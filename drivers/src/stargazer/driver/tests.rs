//! Tests of the whole driver, between a mediator and an in-memory device.

use std::time::Duration;

use amber_driver::devices::stargazer;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_map::Pose;
use amber_proto::stargazer::subscribe_action::Action;
use amber_proto::stargazer::{DataRequest, LocalizationData, SubscribeAction};
use amber_sim::ceiling::{MarkType, Seen};
use amber_sim::stargazer as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::stargazer::Options;
use crate::stargazer::markers::MarkerFile;
use crate::testing::{self, Plug, check_bytes};

/// What the device does.
#[derive(Clone, Debug, PartialEq)]
enum Mood {
    Looks,
    SeesNothing,
    Silent,
    Garbled,
    /// Sends these bytes once, and then nothing.
    Says(&'static [u8]),
}

/// Powers a device on and serves the connection.
async fn serve(port: Plug<Mood>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut device = sim::Stargazer::new(1, sim::Guide::Newer, MarkType::Hld1S, Duration::ZERO);
    device.set_noise(false);
    let mut request = [0; 64];
    if let Mood::Says(bytes) = port.with(|mood| mood.clone()) {
        let _ = stream.write_all(bytes).await;
    }
    loop {
        let due = begin + device.next_timeout().unwrap_or(Duration::from_secs(86_400));
        let read = tokio::select! {
            read = stream.read(&mut request) => read.unwrap_or(0),
            () = sleep_until(due) => usize::MAX,
        };
        let (now, mood) = (begin.elapsed(), port.with(|mood| mood.clone()));
        match read {
            0 => return,
            usize::MAX => {}
            length => device.handle_bytes(now, &request[..length]),
        }
        while device.poll_look(now).is_some() {
            let seen = Seen {
                id: 7,
                pose: Pose::new(0.5, -0.25, 0.0),
            };
            let view = [seen];
            device.handle_view(if mood == Mood::SeesNothing {
                &[]
            } else {
                &view
            });
        }
        while let Some(mut bytes) = device.poll_output() {
            match mood {
                Mood::Looks | Mood::SeesNothing => {}
                Mood::Silent | Mood::Says(_) => continue,
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
async fn check(plugged: bool, mood: Mood, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(mood, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, _) = Options::default().settings(MarkerFile::default()).unwrap();
    let theirs = port.clone();
    let driver = stargazer::driver(Stargazer::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

/// Requests a fix. Returns the reply, if any, and its fix.
async fn ask(mediator: &mut Mediator) -> Option<Option<LocalizationData>> {
    let mut ask = DriverMsg {
        data_request: Some(DataRequest {}),
        ..DriverMsg::data()
    };
    ask.set_syn(Some(SynNum(5)));
    mediator.tell(&ask.encode_to_vec()).await;
    let answer = DriverMsg::decode(&*mediator.hear().await?).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    Some(answer.localization_data)
}

fn check_published(message: &[u8]) {
    let message = DriverMsg::decode(message).unwrap();
    assert_eq!(message.ack(), Some(SynNum(0)));
    let fix = message.localization_data.unwrap();
    assert_eq!((fix.marker_id, fix.lost_ms), (7, None));
    assert!((fix.x_pos - 50.0).abs() < 3.0 && (fix.y_pos + 25.0).abs() < 3.0);
}

async fn subscribe(mediator: &mut Mediator, action: Action, freq: Option<u32>) {
    let message = DriverMsg {
        subscribe_action: Some(SubscribeAction {
            action: action.into(),
            freq,
        }),
        ..DriverMsg::data()
    };
    mediator.tell(&message.encode_to_vec()).await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_has_the_bytes_that_clients_expect() {
    let fix = b"~^I534|+175.16|-3.66|-33.58|200.33`";
    check(true, Mood::Says(fix), async |mediator| {
        // The fix arrived when the driver started.
        sleep(Duration::from_millis(100)).await;
        mediator.tell(b"\x10\x01\x18\x64\xfa\x01\x00").await;
        let expected = b"\x10\x01\x20\x64\xf2\x01\x1a\
            \x0d\x71\x3d\x6a\xc0\x15\xec\x51\x06\xc2\x1d\x7b\x54\x48\x43\
            \x25\xf6\x28\x2f\x43\x28\x96\x04\x30\xd2\x09";
        let answer = DriverMsg::decode(&*mediator.hear().await.unwrap()).unwrap();
        let mut sorted = DriverMsg::decode(&expected[..]).unwrap();
        let time = |message: &mut DriverMsg| {
            let fix = message.localization_data.as_mut().unwrap();
            fix.timestamp.take().unwrap()
        };
        let mut found = answer;
        assert!(time(&mut found) < 1000);
        time(&mut sorted);
        assert_eq!(found, sorted);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_every_fix_or_one_per_period() {
    check(true, Mood::Looks, async |mediator| {
        let count = async |mediator: &mut Mediator| {
            // Drain messages that are still in transit.
            while tokio::time::timeout(Duration::from_millis(20), mediator.hear())
                .await
                .is_ok()
            {}
            let end = Instant::now() + Duration::from_millis(2050);
            let mut heard = 0;
            while let Ok(message) = tokio::time::timeout_at(end, mediator.hear()).await {
                if let Some(message) = message {
                    check_published(&message);
                    heard += 1;
                }
            }
            heard
        };
        sleep(Duration::from_secs(1)).await;
        assert_eq!(count(mediator).await, 0);
        // Bytes of a real client.
        mediator.tell(b"\x10\x01\x82\x02\x02\x08\x01").await;
        assert!((19..=22).contains(&count(mediator).await));
        subscribe(mediator, Action::Unsubscribe, None).await;
        mediator
            .tell(b"\x10\x01\x82\x02\x05\x08\x01\x10\xc8\x01")
            .await;
        assert!((9..=11).contains(&count(mediator).await));
        subscribe(mediator, Action::Unsubscribe, Some(0)).await;
        assert!(
            (9..=11).contains(&count(mediator).await),
            "the other kind continues"
        );
        mediator
            .tell(b"\x10\x01\x82\x02\x05\x08\x02\x10\xc8\x01")
            .await;
        assert_eq!(count(mediator).await, 0);
        // The request that drivers in other languages use.
        mediator.tell(b"\x10\x06").await;
        assert!((19..=22).contains(&count(mediator).await));
        mediator.tell(b"\x10\x07").await;
        assert_eq!(count(mediator).await, 0);
        subscribe(mediator, Action::Subscribe, None).await;
        subscribe(mediator, Action::Subscribe, Some(100)).await;
        mediator.tell(b"\x10\x06").await;
        mediator.tell(b"\x10\x04").await;
        assert_eq!(count(mediator).await, 0, "the client has died");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_device_plugged_in_later_is_found() {
    check(false, Mood::Looks, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        assert_eq!(ask(mediator).await, None);
        subscribe(mediator, Action::Subscribe, None).await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        for _ in 0..3 {
            check_published(&mediator.hear().await.unwrap());
        }
        mediator.port.plug(false);
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        mediator.tell(b"\x10\x02\x18\x07").await;
        let pong = mediator.hear().await;
        assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]));
        assert_eq!(mediator.hear().await, None);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        check_published(&mediator.hear().await.unwrap());
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silence_and_garbage_are_reported_but_a_dead_zone_is_not() {
    check(true, Mood::SeesNothing, async |mediator| {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(ask(mediator).await, Some(None), "there was no fix");
        mediator.port.with(|mood| *mood = Mood::Looks);
        sleep(Duration::from_secs(1)).await;
        let fix = ask(mediator).await.flatten().unwrap();
        assert_eq!(fix.lost_ms, None);
        mediator.port.with(|mood| *mood = Mood::SeesNothing);
        sleep(Duration::from_secs(5)).await;
        let old = ask(mediator).await.flatten().unwrap();
        assert!((4_500..=6_000).contains(&old.lost_ms.unwrap()), "{old:?}");
        mediator.expect_no_more_health();
        for (mood, trouble) in [
            (Mood::Silent, "the StarGazer is silent"),
            (Mood::Garbled, "the StarGazer sends only invalid data"),
        ] {
            mediator.port.with(|now| *now = mood);
            mediator.expect_health(Some(trouble)).await;
            assert_eq!(ask(mediator).await, None, "{trouble}");
            mediator.port.with(|mood| *mood = Mood::Looks);
            mediator.expect_health(None).await;
            sleep(Duration::from_secs(1)).await;
            assert!(ask(mediator).await.flatten().is_some());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_messages_do_no_harm() {
    check(true, Mood::Looks, async |mediator| {
        for message in [
            &b"\x10\x01\x18\x05"[..],
            b"\x10\x01\xfa\x01\x00",
            b"\x10\x01\x82\x02\x02\x08\x09",
            b"\x10\x01\xf2\x01\x00",
            b"\xff\xff",
        ] {
            mediator.tell(message).await;
        }
        sleep(Duration::from_secs(1)).await;
        assert!(ask(mediator).await.flatten().is_some());
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    use amber_proto::stargazer::{DataRequest, DriverMsg, LocalizationData, SubscribeAction};

    let data = DriverMsg {
        r#type: Some(1),
        ..DriverMsg::default()
    };
    check_bytes(
        "10 01 18 64 FA 01 00",
        DriverMsg {
            syn_num: Some(100),
            data_request: Some(DataRequest {}),
            ..data
        },
    );
    let subscription = |action, freq| DriverMsg {
        subscribe_action: Some(SubscribeAction { action, freq }),
        ..data
    };
    check_bytes("10 01 82 02 02 08 01", subscription(1, None));
    check_bytes("10 01 82 02 05 08 01 10 C8 01", subscription(1, Some(200)));
    check_bytes("10 01 82 02 05 08 02 10 C8 01", subscription(2, Some(200)));
    check_bytes(
        "10 01 20 64 F2 01 1A 0D 71 3D 6A C0 15 EC 51 06 C2 1D 7B 54 48 43 \
         25 F6 28 2F 43 28 96 04 30 D2 09",
        DriverMsg {
            ack_num: Some(100),
            localization_data: Some(LocalizationData {
                x_pos: -3.66,
                y_pos: -33.58,
                z_pos: 200.33,
                angle: 175.16,
                marker_id: 534,
                timestamp: Some(1234),
                lost_ms: None,
            }),
            ..data
        },
    );
}
