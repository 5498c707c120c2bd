//! Tests of the options, and of the whole driver between a mediator and an in-memory scanner.

use std::time::Duration;

use amber_driver::devices::hokuyo::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::ydlidar as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep_until};

use super::*;
use crate::scanner::layout::{NoEcho, Points};
use crate::testing::{self, Plug};

#[test]
fn the_defaults_fit_the_model() {
    for (text, place, points, max_mm) in [
        ("", "/dev/ttyUSB0 at 128000 baud", 640, 10_000),
        ("model = \"x3\"", "/dev/ttyUSB0 at 115200 baud", 380, 8_000),
        (
            "model = \"g4\"",
            "/dev/ttyUSB0 at 230400 baud",
            1_150,
            16_000,
        ),
        (
            "model = \"t-mini\"\nport = \"/dev/laser\"",
            "/dev/laser at 230400 baud",
            360,
            12_000,
        ),
    ] {
        let options: Options = toml::from_str(text).unwrap();
        let (settings, endpoint) = options.settings().unwrap();
        assert_eq!(endpoint.to_string(), place);
        assert_eq!(settings.layout.points, Points::Count(points));
        assert_eq!(settings.layout.max_mm, max_mm);
        assert_eq!(settings.layout.no_echo, NoEcho::Unknown);
    }
    assert!(toml::from_str::<Options>("model = \"x5\"").is_err());
    assert!(toml::from_str::<Options>("motor = 1").is_err());
}

/// Powers a scanner on and serves the connection.
async fn scan(_port: Plug<()>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut scanner = sim::Ydlidar::new(sim::Model::X4, Duration::ZERO);
    let mut written = [0; 64];
    let mut random = fastrand::Rng::with_seed(1);
    loop {
        let due = scanner.next_packet().unwrap_or(Duration::from_secs(3_600));
        let read = tokio::select! {
            read = stream.read(&mut written) => read.unwrap_or(0),
            () = sleep_until(begin + due) => usize::MAX,
        };
        match read {
            0 => return,
            usize::MAX => {}
            length => scanner.handle_bytes(begin.elapsed(), &written[..length]),
        }
        scanner.measure(begin.elapsed(), &mut random, |_, _| Some(1.234));
        while let Some(bytes) = scanner.poll_output() {
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

type Mediator = testing::Mediator<()>;

/// Requests a scan and returns whether a reply arrived.
async fn ask_scan(mediator: &mut Mediator) -> bool {
    let mut request = DriverMsg {
        get_single_scan: Some(true),
        ..DriverMsg::data()
    };
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    let Some(answer) = mediator.hear().await else {
        return false;
    };
    let answer = DriverMsg::decode(&answer[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    let scan = answer.scan.unwrap();
    assert_eq!((scan.angles.len(), scan.distances.len()), (640, 640));
    let is_right = |mm: &&i32| (**mm - 1_234).abs() <= 15;
    let right = scan.distances.iter().filter(is_right).count();
    assert!(right >= 630, "{right}: {:?}", scan.distances);
    true
}

#[tokio::test(start_paused = true)]
async fn a_scanner_may_be_plugged_in_later_and_unplugged() {
    let port = Plug::new((), |port, stream| Box::pin(scan(port, stream)));
    port.plug(false);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = hokuyo::driver(Ydlidar::new(settings, move || theirs.connect()));
    testing::run(port, driver, async |mediator| {
        for _ in 0..2 {
            mediator
                .expect_health(Some("the port does not exist"))
                .await;
            assert!(!ask_scan(mediator).await, "never an old scan");
            mediator.port.plug(true);
            mediator.expect_health(None).await;
            assert!(ask_scan(mediator).await);
            mediator.expect_no_more_health();
            mediator.port.plug(false);
        }
    })
    .await;
}
