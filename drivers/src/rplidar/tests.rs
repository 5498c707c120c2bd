//! Tests of the options, and of the whole driver between a mediator and an in-memory scanner.

use std::time::Duration;

use amber_driver::devices::hokuyo::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::rplidar as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::testing::{self, Plug};

#[test]
fn the_speed_is_that_of_the_model_unless_it_is_not_known() {
    for (text, bauds) in [
        ("", BAUDS.to_vec()),
        ("model = \"a1\"", vec![115_200]),
        ("model = \"a2\"", vec![115_200, 256_000]),
        ("model = \"c1\"", vec![460_800]),
        ("model = \"s3\"", vec![1_000_000, 460_800]),
        ("model = \"s3\"\nbaud = 230400", vec![230_400]),
    ] {
        let options: Options = toml::from_str(text).unwrap();
        let (_, port) = options.settings().unwrap();
        assert_eq!(port.bauds, bauds, "{text}");
        assert_eq!(port.path, PathBuf::from("/dev/ttyUSB0"));
    }
}

#[test]
fn the_command_line_overrides_the_file() {
    let file = "mode = \"boost\"\nangle_deg = 90\npoints = 100\nno_echo = \"free\"\nmin_mm = 300";
    let file: Options = toml::from_str(file).unwrap();
    let flags = Options {
        points: Some(Points::Compatible),
        ..Options::default()
    };
    let (settings, _) = flags.or(file).settings().unwrap();
    assert_eq!(settings.mode.as_deref(), Some("boost"));
    assert_eq!(settings.points, Some(Points::Compatible));
    assert_eq!(
        (settings.mount.angle_deg, settings.min_mm),
        (90.0, Some(300))
    );
    assert_eq!(settings.no_echo, NoEcho::Free);
    let (settings, _) = Options::default().settings().unwrap();
    assert_eq!(settings.no_echo, NoEcho::Unknown);
}

#[test]
fn invalid_values_are_rejected() {
    for text in [
        "points = 35",
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
    for text in ["points = \"many\"", "model = \"a4\""] {
        assert!(toml::from_str::<Options>(text).is_err(), "{text}");
    }
}

/// Powers a scanner on and serves the connection. The device says whether it is silent.
async fn scan(port: Plug<bool>, mut stream: DuplexStream) {
    let begin = Instant::now();
    let mut scanner = sim::Rplidar::new(sim::Model::C1, Duration::ZERO);
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
            let is_silent = port.with(|is_silent| *is_silent);
            if !is_silent && stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }
}

type Mediator = testing::Mediator<bool>;

/// Runs a driver during the scenario, then shuts it down.
async fn check_driver(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(false, |port, stream| Box::pin(scan(port, stream)));
    port.plug(plugged);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = hokuyo::driver(Rplidar::new(settings, move || theirs.connect()));
    testing::run(port, driver, scenario).await;
}

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
    assert_eq!((scan.angles.len(), scan.distances.len()), (450, 450));
    let is_right = |mm: &&i32| (**mm - 1_234).abs() <= 15;
    let right = scan.distances.iter().filter(is_right).count();
    assert!(right >= 440, "{right}: {:?}", scan.distances);
    true
}

#[tokio::test(start_paused = true)]
async fn a_scanner_plugged_in_later_is_found() {
    check_driver(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        assert!(!ask_scan(mediator).await);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        assert!(ask_scan(mediator).await);
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_scanner_is_named_and_does_not_end_the_driver() {
    check_driver(true, async |mediator| {
        sleep(Duration::from_secs(3)).await;
        assert!(ask_scan(mediator).await);
        mediator.port.with(|is_silent| *is_silent = true);
        for problem in ["the scanner sends nothing", "the scanner does not answer"] {
            let said = mediator.health().await.unwrap();
            assert!(said.starts_with(problem), "{said}");
            assert!(said.contains(": check "), "{said}");
        }
        assert!(!ask_scan(mediator).await, "never an old scan");
        // The driver answers PINGs whatever the scanner does.
        mediator.tell(b"\x10\x02\x18\x07").await;
        let pong = mediator.hear().await;
        assert_eq!(pong.as_deref(), Some(&b"\x10\x03\x20\x07"[..]));
        mediator.port.with(|is_silent| *is_silent = false);
        mediator.expect_health(None).await;
        assert!(ask_scan(mediator).await);
    })
    .await;
}
