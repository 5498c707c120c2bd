//! Tests of the options, and of the whole driver between a mediator and an in-memory scanner.

use std::time::Duration;

use amber_driver::devices::hokuyo::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::ldrobot as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::scanner::layout::{NoEcho, Points};
use crate::testing::{self, Plug};

#[test]
fn the_defaults_fit_the_model() {
    let (settings, endpoint) = Options::default().settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 230400 baud");
    assert_eq!(settings.product, Product::Ld19);
    assert_eq!(settings.layout.points, Points::Count(400));
    assert!(settings.filters);
    let file: Options = toml::from_str("model = \"stl-27l\"\nangle_deg = 90").unwrap();
    let flags = Options {
        points: Some(Points::Compatible),
        ..Options::default()
    };
    let (settings, endpoint) = flags.or(file).settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 921600 baud");
    assert_eq!(settings.layout.points, Points::Compatible);
    assert_eq!(settings.layout.max_mm, 25_000);
    assert_eq!(settings.mount.angle_deg, 90.0);
    let file: Options = toml::from_str(
        "model = \"ld14p\"\nblank_deg = \"170:-170\"\npoints = 100\nno_echo = \"free\"",
    )
    .unwrap();
    let (settings, _) = file.settings().unwrap();
    assert_eq!(settings.layout.blank, "170:-170".parse().unwrap());
    assert_eq!(settings.layout.points, Points::Count(100));
    assert_eq!(settings.layout.no_echo, NoEcho::Free);
}

#[test]
fn invalid_values_are_rejected() {
    for text in [
        "points = 35",
        "points = 2901",
        "min_mm = 19",
        "max_mm = 20",
        "angle_deg = 181",
        "publish_ms = 1001",
        "timeout_ms = 9",
        "baud = 1",
    ] {
        let options: Options = toml::from_str(text).unwrap();
        let error = options.settings().unwrap_err().to_string();
        let name = error.split(':').next().unwrap();
        assert!(text.starts_with(name), "{error}");
    }
    for text in ["points = \"many\"", "blank_deg = \"1\"", "model = \"ld20\""] {
        assert!(toml::from_str::<Options>(text).is_err(), "{text}");
    }
}

const DISTANCE_M: f64 = 1.234;

/// What the scanner sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Well,
    Silent,
    /// Every packet has a wrong bit.
    Garbled,
    /// The motor stands still.
    Still,
}

/// Powers a scanner on and serves the connection.
async fn scan(port: Plug<Mood>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut scanner = sim::Ldrobot::new(sim::Model::Ld19, Duration::ZERO);
    let mut written = [0; 64];
    let mut random = fastrand::Rng::with_seed(1);
    loop {
        let due = begin + scanner.next_packet().unwrap();
        let read = tokio::select! {
            read = stream.read(&mut written) => read.unwrap_or(0),
            () = sleep_until(due) => usize::MAX,
        };
        match read {
            0 => return,
            usize::MAX => {}
            length => scanner.handle_bytes(begin.elapsed(), &written[..length]),
        }
        scanner.measure(begin.elapsed(), &mut random, |_, _| Some(DISTANCE_M));
        while let Some(mut bytes) = scanner.poll_output() {
            match port.with(|mood| *mood) {
                Mood::Well => {}
                Mood::Silent => bytes.clear(),
                Mood::Garbled => bytes[20] ^= 4,
                Mood::Still => {
                    let still = sim::Packet {
                        speed_deg_s: 0,
                        first: 100,
                        last: 100,
                        points: [(1_234, 200); 12],
                        stamp_ms: 0,
                    };
                    bytes = sim::packet(&still).to_vec();
                }
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
    let port = Plug::new(Mood::Well, |port, stream| Box::pin(scan(port, stream)));
    port.plug(plugged);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = hokuyo::driver(Ldrobot::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

/// Sends a request and returns the answer.
async fn ask(mediator: &mut Mediator, mut request: DriverMsg) -> Option<DriverMsg> {
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    let answer = DriverMsg::decode(&mediator.hear().await?[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    Some(answer)
}

/// Requests a scan and returns whether a reply arrived.
async fn ask_scan(mediator: &mut Mediator) -> bool {
    let request = DriverMsg {
        get_single_scan: Some(true),
        ..DriverMsg::data()
    };
    let answer = ask(mediator, request).await;
    answer.as_ref().inspect(|it| check_scan(it)).is_some()
}

fn check_scan(message: &DriverMsg) {
    let scan = message.scan.as_ref().unwrap();
    assert_eq!((scan.angles.len(), scan.distances.len()), (400, 400));
    let is_right = |mm: &&i32| (**mm - 1_234).abs() <= 15;
    let right = scan.distances.iter().filter(is_right).count();
    // A few are ghosts, which are invalid.
    assert!(right >= 395, "{right}: {:?}", scan.distances);
    let rest = scan.distances.iter().filter(|mm| !is_right(mm));
    assert_eq!(
        rest.filter(|mm| **mm != 1).count(),
        0,
        "{:?}",
        scan.distances
    );
}

async fn published(mediator: &mut Mediator) {
    let message = mediator.hear().await.expect("a scan");
    let message = DriverMsg::decode(&message[..]).unwrap();
    assert_eq!(message.ack(), Some(SynNum(0)));
    check_scan(&message);
}

#[tokio::test(start_paused = true)]
async fn a_scanner_plugged_in_later_is_found_and_described() {
    check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        assert!(!ask_scan(mediator).await);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        // The motor has reached its speed.
        sleep(Duration::from_secs(2)).await;
        assert!(ask_scan(mediator).await);
        let request = DriverMsg {
            get_scanner: Some(true),
            ..DriverMsg::data()
        };
        let scanner = ask(mediator, request).await.unwrap().scanner.unwrap();
        assert_eq!(scanner.model(), "LD19");
        assert_eq!(
            (scanner.min_distance(), scanner.max_distance()),
            (20, 12_000)
        );
        assert!(scanner.turns_right());
        assert_eq!(scanner.turn_time(), 100_000);
        assert_eq!(
            (scanner.first_angle(), scanner.last_angle()),
            (-179.55, 179.55)
        );
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn scans_resume_after_an_outage() {
    check(true, async |mediator| {
        mediator.tell(b"\x10\x06").await;
        mediator.hear().await.or(mediator.hear().await).unwrap();
        for _ in 0..20 {
            published(mediator).await;
        }
        mediator.port.plug(false);
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        for _ in 0..5 {
            assert!(!ask_scan(mediator).await, "never an old scan");
        }
        mediator.expect_no_more_health();
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        for _ in 0..20 {
            published(mediator).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_problem_is_named_and_does_not_end_the_driver() {
    check(true, async |mediator| {
        sleep(Duration::from_secs(3)).await;
        assert!(ask_scan(mediator).await);
        for (mood, problem) in [
            (
                Mood::Garbled,
                "what arrives is not from an LD19: check --model, --baud",
            ),
            (Mood::Silent, "the scanner sends nothing"),
            (Mood::Still, "the scanner does not turn"),
        ] {
            mediator.port.with(|now| *now = mood);
            let said = mediator.health().await.unwrap();
            assert!(said.starts_with(problem), "{said}");
            assert!(said.contains(": check "), "{said}");
            assert!(!ask_scan(mediator).await, "{mood:?}");
            // The driver answers PINGs whatever the scanner does.
            mediator.tell(b"\x10\x02\x18\x07").await;
            let pong = mediator.hear().await;
            assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]), "{mood:?}");
            mediator.port.with(|mood| *mood = Mood::Well);
            mediator.expect_health(None).await;
            sleep(Duration::from_secs(3)).await;
            assert!(ask_scan(mediator).await, "{mood:?}");
        }
    })
    .await;
}
