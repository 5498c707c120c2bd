//! Tests of the options, and of the whole driver between a mediator and a robot in memory.

use amber_driver::devices::roboclaw::DriverMsg;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::create2 as sim;
use amber_values::WheelSpeeds;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, interval, sleep, timeout};

use super::*;
use crate::testing::{self, Plug};

#[test]
fn options_have_defaults_and_the_command_line_overrides_the_file() {
    let (settings, endpoint) = Options::default().settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 115200 baud");
    assert_eq!(settings.rules.max_speed_mm_s, Some(500));
    assert_eq!(settings.rules.idle_stop, Some(Duration::from_secs(4)));
    let file: Options = toml::from_str("baud = 19200\nmax_speed_mm_s = 200").unwrap();
    let flags = Options {
        max_speed_mm_s: Some(300),
        ..Options::default()
    };
    let (settings, endpoint) = flags.or(file).settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 19200 baud");
    assert_eq!(settings.rules.max_speed_mm_s, Some(300));
}

#[test]
fn invalid_values_are_rejected() {
    for (text, problem) in [
        ("baud = 57600", "baud: 57600 is neither 115200 nor 19200"),
        (
            "max_speed_mm_s = 501",
            "max_speed_mm_s: 501 is not within 1 to 500",
        ),
        (
            "max_speed_mm_s = 0",
            "max_speed_mm_s: 0 is not within 1 to 500",
        ),
        (
            "speeds_interval_ms = 14",
            "speeds_interval_ms: 14 is not within 15 to 1000",
        ),
    ] {
        let options: Options = toml::from_str(text).unwrap();
        assert_eq!(options.settings().unwrap_err().to_string(), problem);
    }
    assert!(toml::from_str::<Options>("brushes = true").is_err());
}

/// Serves the connection. The robot has its own battery, so it is always the same.
async fn serve(port: Plug<sim::Create2>, mut stream: DuplexStream) {
    let began = Instant::now();
    // Its time begins anew.
    port.with(|robot| robot.handle_bytes(Duration::ZERO, &[128, 173]));
    let mut tick = interval(Duration::from_millis(1));
    let mut bytes = [0; 64];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => Some(read.unwrap_or(0)),
            _ = tick.tick() => None,
        };
        let answers: Vec<u8> = port.with(|robot| {
            let now = began.elapsed();
            match read {
                Some(length) => robot.handle_bytes(now, &bytes[..length]),
                None => robot.advance(now),
            }
            std::iter::from_fn(|| robot.poll_output())
                .flatten()
                .collect()
        });
        if read == Some(0) || stream.write_all(&answers).await.is_err() {
            return;
        }
    }
}

type Mediator = testing::Mediator<sim::Create2>;

/// Runs a driver during the scenario, then shuts it down.
async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) -> Plug<sim::Create2> {
    let port = Plug::new(sim::Create2::default(), |port, stream| {
        Box::pin(serve(port, stream))
    });
    port.plug(plugged);
    let (settings, _) = Options::default().settings().unwrap();
    let theirs = port.clone();
    let driver = wheels::stream::driver::<Create2Logic, _>(settings, move || theirs.connect());
    testing::run(port.clone(), roboclaw::driver(driver), scenario).await;
    port
}

fn turns(robot: &mut sim::Create2) -> bool {
    !robot.drives().iter().all(|drive| drive.is_zero())
}

async fn drive(mediator: &mut Mediator, left_mm_s: i32, right_mm_s: i32) {
    let command = DriverMsg {
        motors_command: Some(WheelSpeeds::sides(left_mm_s, right_mm_s).into()),
        ..DriverMsg::data()
    };
    mediator.tell(&command.encode_to_vec()).await;
}

fn lift(mediator: &Mediator, is_lifted: bool) {
    let around = sim::Around {
        is_lifted,
        ..sim::Around::default()
    };
    mediator.port.with(|robot| robot.handle_around(around));
}

/// Waits until the robot obeys.
async fn is_taken(mediator: &Mediator) {
    let obeys = |robot: &mut sim::Create2| robot.mode() == sim::Mode::Safe;
    mediator.until("it is in safe mode", obeys).await;
}

#[tokio::test(start_paused = true)]
async fn a_robot_plugged_in_later_is_found_and_driven() {
    let port = check(false, async |mediator| {
        mediator
            .expect_health(Some("the port does not exist"))
            .await;
        drive(mediator, 300, 300).await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        is_taken(mediator).await;
        sleep(Duration::from_millis(200)).await;
        assert!(!mediator.port.with(turns), "an old command");
        drive(mediator, 300, -200).await;
        mediator.until("it drives", turns).await;
        mediator.expect_no_more_health();
    })
    .await;
    // The end of the driver stops the wheels, when the robot has read the last bytes.
    let stands = async {
        while port.with(|robot| robot.mode() != sim::Mode::Passive || turns(robot)) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(1), stands).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_robot_senses_is_a_trouble_and_the_reason_of_a_refusal() {
    check(true, async |mediator| {
        is_taken(mediator).await;
        drive(mediator, 300, 300).await;
        mediator.until("it drives", turns).await;
        lift(mediator, true);
        let problem = "a wheel hangs in the air: put the robot on the ground";
        let health = mediator.health().await;
        assert_eq!(health.as_deref(), Some(problem));
        assert!(!mediator.port.with(turns));
        lift(mediator, false);
        mediator.expect_health(None).await;
        assert!(!mediator.port.with(turns));
        drive(mediator, 300, 300).await;
        mediator.until("it drives", turns).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_battery_is_told() {
    check(true, async |mediator| {
        is_taken(mediator).await;
        let mut request = DriverMsg {
            get_battery: Some(true),
            ..DriverMsg::data()
        };
        request.set_syn(Some(SynNum(9)));
        mediator.tell(&request.encode_to_vec()).await;
        let answer = DriverMsg::decode(&mediator.hear().await.unwrap()[..]).unwrap();
        let millivolts = answer.battery.unwrap().voltage.unwrap();
        assert!((15_000..15_200).contains(&millivolts), "{millivolts}");
    })
    .await;
}
