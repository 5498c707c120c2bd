//! Tests of the whole driver, between a mediator and in-memory controllers.

use amber_driver::devices::roboclaw;
use amber_proto::battery_state::battery_state::Health;
use amber_values::WheelSpeeds;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::roboclaw::fake::{FakePair, Mood};
use crate::roboclaw::protocol::Check;
use crate::roboclaw::{Options, Preset};
use crate::testing::{self, Plug, check_bytes};

/// Controllers with a reply delay.
struct Controllers {
    pair: FakePair,
    delay: Duration,
}

async fn answer(port: Plug<Controllers>, mut stream: DuplexStream) {
    let mut packet = [0; 64];
    while let Ok(length @ 1..) = stream.read(&mut packet).await {
        let (reply, delay) =
            port.with(|shared| (shared.pair.reply(&packet[..length]), shared.delay));
        sleep(delay).await;
        if stream.write_all(&reply).await.is_err() {
            return;
        }
    }
}

type Mediator = testing::Mediator<Controllers>;

/// Runs a driver during the scenario, then shuts it down.
async fn check(scenario: impl AsyncFnOnce(&mut Mediator)) -> Plug<Controllers> {
    let controllers = Controllers {
        pair: FakePair::new(Check::Crc16),
        delay: Duration::ZERO,
    };
    let port = Plug::new(controllers, |port, stream| Box::pin(answer(port, stream)));
    let options = Options {
        preset: Some(Preset::Capo),
        ..Options::default()
    };
    let (setup, _) = options.setup().unwrap();
    let theirs = port.clone();
    let driver = roboclaw::driver(driver(setup, move || theirs.connect()));
    testing::run(port.clone(), driver, async move |mediator| {
        sleep(Duration::from_secs(1)).await;
        scenario(mediator).await;
    })
    .await;
    port
}

/// motorsCommand with 300 mm/s for all wheels.
const AHEAD: &[u8] = b"\x10\x01\xA2\x01\x0C\x08\xAC\x02\x10\xAC\x02\x18\xAC\x02\x20\xAC\x02";
/// motorsCommand with -300 mm/s on the left and 300 on the right.
const TURN: &[u8] = b"\x10\x01\xA2\x01\x1C\x08\xD4\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x10\xAC\x02\
    \x18\xD4\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x20\xAC\x02";
/// currentSpeedRequest with number 100.
const ASK: &[u8] = b"\x10\x01\x18\x64\xA8\x01\x01";
/// The answer 299, 299, -299, -299.
const ANSWER: &[u8] = b"\x10\x01\x20\x64\xB2\x01\x1C\x08\xAB\x02\x10\xAB\x02\
    \x18\xD5\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x20\xD5\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01";
const CLIENT_DIED: &[u8] = b"\x10\x04";

#[tokio::test(start_paused = true)]
async fn old_clients_are_understood_and_answered() {
    check(async |mediator| {
        mediator.tell(TURN).await;
        mediator
            .until("it turns", |shared| {
                shared.pair.speeds == [[1484, -1484]; 2]
            })
            .await;
        (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
        mediator.tell(ASK).await;
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
        // If a message holds both, only the request takes effect.
        let both = [ASK, &AHEAD[2..]].concat();
        mediator.tell(&both).await;
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
        // A request without a number gets no reply.
        mediator.tell(b"\x10\x01\xA8\x01\x01").await;
        assert_eq!(mediator.hear().await, None);
        mediator.tell(CLIENT_DIED).await;
        mediator
            .until("it stops", |shared| shared.pair.speeds == [[0; 2]; 2])
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_the_speeds_until_they_unsubscribe() {
    check(async |mediator| {
        // Nobody measures without a reason.
        assert_eq!(mediator.hear().await, None);
        (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2]; 2]);
        mediator.tell(b"\x10\x06").await;
        for _ in 0..20 {
            let heard = mediator.hear().await.expect("speeds");
            let heard = DriverMsg::decode(&heard[..]).unwrap();
            assert_eq!(heard.ack_num, Some(0));
            let speeds = WheelSpeeds::from(heard.current_speed.unwrap());
            assert_eq!(speeds, WheelSpeeds::sides(299, 299));
            assert!(heard.speed_age.is_some());
        }
        mediator.tell(b"\x10\x07").await;
        let mut more = 0;
        while mediator.hear().await.is_some() {
            more += 1;
        }
        assert!(more <= 3, "{more} after UNSUBSCRIBE");
    })
    .await;
}

/// Requests the battery.
async fn battery(mediator: &mut Mediator) -> DriverMsg {
    let ask = DriverMsg {
        r#type: Some(1),
        syn_num: Some(9),
        get_battery: Some(true),
        ..DriverMsg::default()
    };
    mediator.tell(&ask.encode_to_vec()).await;
    let answer = mediator.hear().await.expect("an answer");
    DriverMsg::decode(&answer[..]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_main_battery_is_told_and_published_once_a_second() {
    check(async |mediator| {
        let state = battery(mediator).await.battery.unwrap();
        assert_eq!((state.voltage(), state.health()), (12_100, Health::Good));
        assert!(state.present() && state.time.is_some());
        // The controllers do not know more than that.
        let unknown = (state.charge, state.current, state.cells);
        assert_eq!(unknown, (None, None, None));
        mediator.tell(b"\x10\x06").await;
        let mut with_battery = 0;
        for _ in 0..60 {
            let heard = mediator.hear().await.expect("speeds");
            let heard = DriverMsg::decode(&heard[..]).unwrap();
            with_battery += usize::from(heard.battery.is_some());
        }
        // 20 messages a second.
        assert!((3..=4).contains(&with_battery), "{with_battery}");
        mediator.tell(b"\x10\x07").await;
        while mediator.hear().await.is_some() {}
        // Both controllers are gone.
        (mediator.port).with(|shared| shared.pair.mood = [Mood::Silent; 2]);
        sleep(Duration::from_secs(5)).await;
        let answer = battery(mediator).await;
        assert_eq!(answer.battery, None);
        assert!(
            answer.battery_refused().contains("does not answer"),
            "{answer:?}"
        );
    })
    .await;
}

/// motorsCommand number 101 with 5000 mm/s for all, and the wish for its outcome.
const TOO_FAST: &[u8] = b"\x10\x01\x18\x65\xA2\x01\x0C\x08\x88\x27\x10\x88\x27\
    \x18\x88\x27\x20\x88\x27\xD0\x0B\x01";

#[tokio::test(start_paused = true)]
async fn every_refusal_is_reported_to_clients_that_ask_for_the_outcome() {
    check(async |mediator| {
        // The log line is not repeated so soon, the report is.
        for _ in 0..3 {
            mediator.tell(TOO_FAST).await;
            let reply = mediator.hear().await.expect("an outcome");
            let reply = amber_proto::mediator::DriverMsg::decode(&reply[..]).unwrap();
            assert_eq!(reply.ack_num, Some(101));
            assert_eq!(
                reply.outcome.unwrap().why_refused().as_deref(),
                Some("5000 mm/s is more than max_speed_mm_s = 1200")
            );
        }
        mediator
            .tell(&[AHEAD, b"\x18\x66\xD0\x0B\x01"].concat())
            .await;
        let accepted = mediator.hear().await;
        assert_eq!(
            accepted.as_deref(),
            Some(&b"\x10\x01\x20\x66\xDA\x0B\0"[..])
        );
        // Old clients get no reply to a command, with or without a number.
        mediator.tell(&[AHEAD, b"\x18\x67"].concat()).await;
        mediator.tell(&TOO_FAST[..TOO_FAST.len() - 3]).await;
        assert_eq!(mediator.hear().await, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_stdin_stops_the_wheels() {
    let port = check(async |mediator| {
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives", |shared| shared.pair.speeds == [[1484; 2]; 2])
            .await;
        mediator.port.with(|shared| shared.pair.heard.clear());
    })
    .await;
    port.with(|shared| {
        let commands = shared.pair.heard.iter().map(|(_, command, _)| *command);
        let commands: Vec<_> = commands.filter(|command| *command < 90).collect();
        assert_eq!(commands, [37, 37, 34, 34]);
    });
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_wheels_wait_for_a_new_command() {
    check(async |mediator| {
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives", |shared| shared.pair.speeds == [[1484; 2]; 2])
            .await;
        mediator.port.plug(false);
        for _ in 0..10 {
            mediator.tell(AHEAD).await;
            mediator.tell(ASK).await;
            assert_eq!(mediator.hear().await, None, "the speeds are unknown");
        }
        // The wheels may still turn after the outage, or may have lost power.
        mediator.port.with(|shared| shared.pair.heard.clear());
        mediator.port.plug(true);
        mediator
            .until("the controllers are back", |shared| {
                shared.pair.speeds == [[0; 2]; 2]
            })
            .await;
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        mediator.expect_health(None).await;
        sleep(Duration::from_secs(2)).await;
        mediator.expect_no_more_health();
        assert_eq!(mediator.port.with(|shared| shared.pair.speeds), [[0; 2]; 2]);
        let settings = mediator.port.with(|shared| shared.pair.take(28));
        assert_eq!(settings.len(), 2, "the settings are sent again");
        mediator.tell(AHEAD).await;
        mediator
            .until("it drives again", |shared| {
                shared.pair.speeds == [[1484; 2]; 2]
            })
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_is_not_taken_for_the_next_one() {
    check(async |mediator| {
        (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
        // Later than the driver's time limit, but within the time for stray bytes.
        (mediator.port).with(|shared| shared.delay = Duration::from_millis(105));
        mediator.tell(ASK).await;
        sleep(Duration::from_millis(120)).await;
        (mediator.port).with(|shared| shared.delay = Duration::ZERO);
        assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_and_incomplete_replies_give_no_answers_and_do_not_end_the_driver() {
    check(async |mediator| {
        for mood in [Mood::Garbled, Mood::Half, Mood::Silent] {
            (mediator.port).with(|shared| shared.pair.mood = [mood; 2]);
            for _ in 0..3 {
                mediator.tell(ASK).await;
                assert_eq!(mediator.hear().await, None, "{mood:?}");
            }
            (mediator.port).with(|shared| shared.pair.mood = [Mood::Well; 2]);
            sleep(Duration::from_secs(6)).await;
            // The last requests are answered when the controllers are back.
            while mediator.hear().await.is_some() {}
            (mediator.port).with(|shared| shared.pair.speeds = [[1484; 2], [-1484; 2]]);
            mediator.tell(ASK).await;
            assert_eq!(mediator.hear().await.as_deref(), Some(ANSWER), "{mood:?}");
            // The driver answers PINGs whatever the controllers do.
            mediator.tell(b"\x10\x02\x18\x07").await;
            assert_eq!(
                mediator.hear().await.as_deref(),
                Some(&b"\x10\x03\x20\x07"[..])
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn trouble_is_reported_while_it_lasts() {
    check(async |mediator| {
        for (mood, problem) in [
            (Mood::Garbled, "the front controller sends invalid replies"),
            (Mood::Half, "the front controller sends incomplete replies"),
            (Mood::Silent, "the front controller does not answer"),
        ] {
            (mediator.port).with(|shared| shared.pair.mood = [mood; 2]);
            mediator.expect_health(Some(problem)).await;
            (mediator.port).with(|shared| shared.pair.mood = [Mood::Well; 2]);
            mediator.expect_health(None).await;
            sleep(Duration::from_secs(6)).await;
        }
        // Too hot, then cool again.
        for (tenths, trouble) in [
            (701, Some("driving disabled: a controller is too hot")),
            (599, None),
        ] {
            (mediator.port).with(|shared| shared.pair.temperature = tenths);
            mediator.expect_health(trouble).await;
        }
        // A temperature error of the front controller, then a low battery, which remains.
        (mediator.port).with(|shared| shared.pair.status = [0x2, 0]);
        let fault = "driving disabled: front controller: temperature 1";
        mediator.expect_health(Some(fault)).await;
        (mediator.port).with(|shared| shared.pair.status = [0, 0]);
        mediator.expect_health(None).await;
        (mediator.port).with(|shared| shared.pair.status = [0x8_0000, 0]);
        let low = "driving disabled: the battery was low; restart this driver";
        mediator.expect_health(Some(low)).await;
        (mediator.port).with(|shared| shared.pair.status = [0, 0]);
        sleep(Duration::from_secs(60)).await;
        mediator.expect_no_more_health();
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    use amber_proto::roboclaw::{DriverMsg, MotorsSpeed};

    let speeds = |[front_left, front_right, rear_left, rear_right]: [i32; 4]| {
        Some(MotorsSpeed {
            front_left_speed: Some(front_left),
            front_right_speed: Some(front_right),
            rear_left_speed: Some(rear_left),
            rear_right_speed: Some(rear_right),
        })
    };
    let data = DriverMsg {
        r#type: Some(1),
        ..DriverMsg::default()
    };
    check_bytes(
        "10 01 A2 01 0C 08 AC 02 10 AC 02 18 AC 02 20 AC 02",
        DriverMsg {
            motors_command: speeds([300; 4]),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 A2 01 1C 08 D4 FD FF FF FF FF FF FF FF 01 10 AC 02 \
         18 D4 FD FF FF FF FF FF FF FF 01 20 AC 02",
        DriverMsg {
            motors_command: speeds([-300, 300, -300, 300]),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 18 64 A8 01 01",
        DriverMsg {
            syn_num: Some(100),
            current_speed_request: Some(true),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 20 64 B2 01 1C 08 AB 02 10 AB 02 18 D5 FD FF FF FF FF FF FF FF 01 \
         20 D5 FD FF FF FF FF FF FF FF 01",
        DriverMsg {
            ack_num: Some(100),
            current_speed: speeds([299, 299, -299, -299]),
            ..data
        },
    );
}
