//! Tests of the whole driver, between a mediator and an in-memory scanner.

use std::time::Duration;

use amber_driver::devices::hokuyo::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::hokuyo as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::hokuyo::Options;
use crate::testing::{self, Plug, check_bytes};

const DISTANCE_MM: u32 = 1234;

/// How the scanner answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Well,
    Silent,
    /// Every important byte has a wrong bit.
    Garbled,
    /// The second half of everything is missing.
    Half,
}

/// Powers a scanner on and serves the connection.
async fn scan(port: Plug<Mood>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut scanner = sim::Hokuyo::new(sim::Model::Urg04Lx, sim::Transport::Serial, Duration::ZERO);
    let mut request = [0; 64];
    loop {
        let due = scanner.next_timeout().map(|due| begin + due);
        let due = due.unwrap_or(begin + Duration::from_secs(86_400));
        let read = tokio::select! {
            read = stream.read(&mut request) => read.unwrap_or(0),
            () = sleep_until(due) => usize::MAX,
        };
        let now = begin.elapsed();
        match read {
            0 => return,
            usize::MAX => {}
            length => scanner.handle_bytes(now, &request[..length]),
        }
        while let Some(sweep) = scanner.poll_sweep(now) {
            let scan = sim::Scan {
                distances: vec![DISTANCE_MM; 768],
                intensities: vec![100; 768],
            };
            scanner.handle_scan(now, sweep, scan);
        }
        while let Some(mut bytes) = scanner.poll_output() {
            match port.with(|mood| *mood) {
                Mood::Well => {}
                Mood::Silent => bytes.clear(),
                Mood::Garbled => bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
                Mood::Half => bytes.truncate(bytes.len() / 2),
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
    check_with(Options::default(), plugged, scenario).await;
}

async fn check_with(options: Options, plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(Mood::Well, |port, stream| Box::pin(scan(port, stream)));
    port.plug(plugged);
    let (settings, _) = options.settings().unwrap();
    let theirs = port.clone();
    let driver = hokuyo::driver(Hokuyo::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

/// Requests a scan and returns whether a reply arrived.
async fn ask(mediator: &mut Mediator) -> bool {
    let mut ask = DriverMsg {
        get_single_scan: Some(true),
        ..DriverMsg::data()
    };
    ask.set_syn(Some(SynNum(5)));
    mediator.tell(&ask.encode_to_vec()).await;
    // The motor may have to reach its speed first.
    for _ in 0..3 {
        if let Some(answer) = mediator.hear().await {
            assert_eq!(check_scan(&answer).ack(), Some(SynNum(5)));
            return true;
        }
    }
    false
}

/// Requests the description of the scanner.
async fn describe(mediator: &mut Mediator) -> DriverMsg {
    let mut ask = DriverMsg {
        get_scanner: Some(true),
        ..DriverMsg::data()
    };
    ask.set_syn(Some(SynNum(6)));
    mediator.tell(&ask.encode_to_vec()).await;
    let answer = mediator.hear().await.expect("an answer");
    let answer = DriverMsg::decode(&answer[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(6)));
    answer
}

fn check_scan(message: &[u8]) -> DriverMsg {
    let message = DriverMsg::decode(message).unwrap();
    let scan = message.scan.as_ref().unwrap();
    assert_eq!(scan.distances, [DISTANCE_MM as i32; 682]);
    assert_eq!(scan.angles.len(), 682);
    message
}

#[tokio::test(start_paused = true)]
async fn a_scanner_plugged_in_later_is_found() {
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        assert!(!ask(mediator).await);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        assert!(ask(mediator).await);
        sleep(Duration::from_secs(60)).await;
        assert!(ask(mediator).await, "the laser turns on again");
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_connected_scanner_is_described_as_it_describes_itself() {
    // A tenth slower than usual.
    let options = Options {
        motor_speed: Some(10),
        ..Options::default()
    };
    check_with(options, false, async |mediator| {
        let problem = "the port does not exist";
        mediator.expect_health(Some(problem)).await;
        let refused = describe(mediator).await;
        assert_eq!(refused.scanner_refused.as_deref(), Some(problem));
        assert_eq!(refused.scanner, None);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        let scanner = describe(mediator).await.scanner.unwrap();
        assert_eq!(scanner.model(), "URG-04LX");
        assert_eq!(scanner.serial_number(), "H0706400");
        let limits = (scanner.min_distance(), scanner.max_distance());
        assert_eq!(limits, (20, 5_600));
        assert_eq!(
            (scanner.turn_time(), scanner.point_time()),
            (111_111, 108_506)
        );
        assert_eq!(
            (scanner.first_angle(), scanner.last_angle()),
            (-119.885, 119.885)
        );
        assert!((scanner.angle_step() - 0.352).abs() < 1e-3);
        mediator.port.plug(false);
        // Only a request shows that it is gone.
        assert!(!ask(mediator).await);
        let refused = describe(mediator).await;
        assert_eq!(refused.scanner, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn scans_resume_after_an_outage() {
    check(true, async |mediator| {
        mediator.tell(b"\x10\x06").await;
        for _ in 0..3 {
            let scan = mediator.hear().await.or(mediator.hear().await).unwrap();
            assert_eq!(check_scan(&scan).ack(), Some(SynNum(0)));
        }
        mediator.port.plug(false);
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        for _ in 0..5 {
            assert!(!ask(mediator).await, "never an old scan");
        }
        mediator.expect_no_more_health();
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        for _ in 0..3 {
            let scan = mediator.hear().await.or(mediator.hear().await).unwrap();
            assert_eq!(check_scan(&scan).ack(), Some(SynNum(0)));
        }
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn garbage_silence_and_incomplete_replies_give_no_scans_and_do_not_end_the_driver() {
    check(true, async |mediator| {
        assert!(ask(mediator).await);
        for mood in [Mood::Garbled, Mood::Silent, Mood::Half] {
            mediator.port.with(|now| *now = mood);
            assert!(!ask(mediator).await, "{mood:?}");
            let problem = "the scanner does not answer";
            mediator.expect_health(Some(problem)).await;
            assert!(!ask(mediator).await, "{mood:?}");
            // The driver answers PINGs whatever the scanner does.
            mediator.tell(b"\x10\x02\x18\x07").await;
            let pong = mediator.hear().await;
            assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]), "{mood:?}");
            mediator.port.with(|mood| *mood = Mood::Well);
            mediator.expect_health(None).await;
            assert!(ask(mediator).await, "{mood:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn publishing_recovers_from_garbage() {
    check(true, async |mediator| {
        mediator.tell(b"\x10\x06").await;
        mediator.hear().await.or(mediator.hear().await).unwrap();
        mediator.port.with(|mood| *mood = Mood::Garbled);
        let problem = "the scanner sends only invalid data";
        mediator.expect_health(Some(problem)).await;
        sleep(Duration::from_secs(30)).await;
        mediator.port.with(|mood| *mood = Mood::Well);
        mediator
            .expect_health(Some("the scanner does not answer"))
            .await;
        mediator.expect_health(None).await;
        let scan = mediator.hear().await.or(mediator.hear().await).unwrap();
        check_scan(&scan);
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    use amber_proto::hokuyo::{DriverMsg, Scan};

    let data = DriverMsg {
        r#type: Some(1),
        ..DriverMsg::default()
    };
    check_bytes(
        "10 01 18 64 C0 02 01",
        DriverMsg {
            syn_num: Some(100),
            get_single_scan: Some(true),
            ..data.clone()
        },
    );
    let scan = Scan {
        angles: vec![
            -119.885,
            f64::from_le_bytes([0, 0xd2, 0x6c, 0x3b, 0x90, 0x88, 0xc6, 0x3f]),
        ],
        distances: vec![392, 1000],
    };
    assert!((scan.angles[1] - 0.176_04).abs() < 1e-5);
    check_bytes(
        "10 01 20 64 CA 02 18 0A 10 71 3D 0A D7 A3 F8 5D C0 00 D2 6C 3B 90 88 C6 3F \
         12 04 88 03 E8 07 88 03 FB A0 9A 9C 92 2A",
        DriverMsg {
            ack_num: Some(100),
            scan: Some(scan),
            timestamp: Some(1_448_000_000_123),
            ..data
        },
    );
}
