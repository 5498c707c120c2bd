//! Tests of the options, and of the whole driver between a mediator and a board in memory.

use amber_driver::devices::roboclaw::DriverMsg;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::diffdrive as sim;
use amber_sim::wheels::{Drive, Reading};
use amber_values::WheelSpeeds;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, interval, sleep};

use super::*;
use crate::testing::{self, Plug};

fn options() -> Options {
    Options {
        counts_per_turn: Some(1_865.0),
        wheel_diameter_mm: Some(120.0),
        ..Options::default()
    }
}

#[test]
fn what_cannot_be_guessed_is_required_and_the_rest_has_defaults() {
    let missing = Options::default().settings().unwrap_err().to_string();
    assert_eq!(missing, "--counts-per-turn is required");
    let missing = half_of(options()).settings().unwrap_err().to_string();
    assert_eq!(missing, "--wheel-diameter-mm is required");

    let (settings, endpoint) = options().settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 57600 baud");
    assert_eq!(settings.rules.max_speed_mm_s, Some(1_200));
    assert_eq!(settings.rules.idle_stop, Some(Duration::from_secs(4)));
    assert_eq!((settings.gains, settings.speed_unit), (None, None));
    assert_eq!(settings.wheels.frame_hz, 30);
    assert!((settings.wheels.scale.counts_per_mm - 4.947).abs() < 0.001);

    let file: Options = toml::from_str(
        "baud = 115200\nfirmware = \"andino\"\nwheel_diameter_mm = 66\ngains = \"30:20:0:100\"\n\
         speed_unit = \"frame\"\nswap_sides = true\nmax_speed_mm_s = 0",
    )
    .unwrap();
    let (settings, endpoint) = half_of(options()).or(file).settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 115200 baud");
    assert_eq!(settings.firmware, Firmware::Andino);
    assert_eq!(settings.unit(Family::Andino), SpeedUnit::Frame);
    assert_eq!(settings.gains, Some("30:20:0:100".parse().unwrap()));
    assert!(
        settings.wheels.scale.wiring.swaps_sides && !settings.wheels.scale.wiring.reverses_left
    );
    assert_eq!(settings.rules.max_speed_mm_s, None);
}

/// Without the diameter, which the file says.
fn half_of(options: Options) -> Options {
    Options {
        wheel_diameter_mm: None,
        ..options
    }
}

#[test]
fn invalid_values_are_rejected() {
    for text in [
        "counts_per_turn = 0",
        "wheel_diameter_mm = 0.5",
        "pid_rate_hz = 0",
        "baud = 1",
        "reply_timeout_ms = 49",
        "speeds_interval_ms = 19",
    ] {
        let file: Options = toml::from_str(text).unwrap();
        let error = file.or(options()).settings().unwrap_err().to_string();
        let name = error.split(':').next().unwrap();
        assert!(text.starts_with(name), "{error}");
    }
    for text in ["gains = \"1:2:3\"", "firmware = \"uno\"", "counts = 1"] {
        assert!(toml::from_str::<Options>(text).is_err(), "{text}");
    }
}

/// A board and its wheels.
struct Base {
    board: Option<sim::Diffdrive>,
    pulses: [f64; 2],
    /// All bytes from the driver.
    heard: Vec<u8>,
}

impl Base {
    fn turns(&self) -> bool {
        let drives = self.board.as_ref().map(sim::Diffdrive::drives);
        drives.is_some_and(|drives| drives != [Drive::RELEASED; 4])
    }
}

/// Starts the board, as opening its port does, and serves the connection.
async fn serve(port: Plug<Base>, mut stream: DuplexStream) {
    let began = Instant::now();
    port.with(|base| base.board = Some(sim::Diffdrive::new(sim::Firmware::Bridge, Duration::ZERO)));
    let mut tick = interval(Duration::from_millis(1));
    let mut bytes = [0; 64];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => Some(read.unwrap_or(0)),
            _ = tick.tick() => None,
        };
        let answers: Vec<u8> = port.with(|base| {
            let board = base.board.as_mut().unwrap();
            let now = began.elapsed();
            match read {
                Some(length) => {
                    base.heard.extend(&bytes[..length]);
                    board.handle_bytes(now, &bytes[..length]);
                }
                None => {
                    for (pulses, drive) in base.pulses.iter_mut().zip(board.drives()) {
                        if let Drive::Speed { qpps, .. } = drive {
                            *pulses += qpps / 1_000.0;
                        }
                    }
                    let [left, right] = base.pulses.map(|pulses| pulses as i64);
                    let reading = |pulses| Reading {
                        pulses,
                        ..Reading::default()
                    };
                    board.handle_readings(now, [left, right, left, right].map(reading));
                }
            }
            std::iter::from_fn(|| board.poll_output())
                .flatten()
                .collect()
        });
        if read == Some(0) || stream.write_all(&answers).await.is_err() {
            return;
        }
    }
}

type Mediator = testing::Mediator<Base>;

/// Runs a driver during the scenario, then shuts it down.
async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) -> Plug<Base> {
    let base = Base {
        board: None,
        pulses: [0.0; 2],
        heard: Vec::new(),
    };
    let port = Plug::new(base, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, _) = options().settings().unwrap();
    let theirs = port.clone();
    let driver = wheels::stream::driver::<DiffdriveLogic, _>(settings, move || theirs.connect());
    testing::run(port.clone(), roboclaw::driver(driver), scenario).await;
    port
}

async fn drive(mediator: &mut Mediator, left_mm_s: i32, right_mm_s: i32) {
    let command = DriverMsg {
        motors_command: Some(WheelSpeeds::sides(left_mm_s, right_mm_s).into()),
        ..DriverMsg::data()
    };
    mediator.tell(&command.encode_to_vec()).await;
}

/// Requests the speeds.
async fn ask(mediator: &mut Mediator) -> Option<WheelSpeeds> {
    let mut request = DriverMsg {
        current_speed_request: Some(true),
        ..DriverMsg::data()
    };
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    let answer = DriverMsg::decode(&mediator.hear().await?[..]).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(5)));
    Some(answer.current_speed.unwrap().into())
}

async fn drives(mediator: &mut Mediator) {
    drive(mediator, 300, -200).await;
    mediator.until("it drives", |base| base.turns()).await;
    sleep(Duration::from_millis(300)).await;
    let speeds = ask(mediator).await.expect("speeds");
    let (left_mm_s, right_mm_s) = (speeds.front_left_mm_s, speeds.front_right_mm_s);
    assert!((left_mm_s - 297).abs() <= 8, "{speeds:?}");
    assert!((right_mm_s + 200).abs() <= 8, "{speeds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_board_plugged_in_later_is_found_and_driven() {
    let port = check(false, async |mediator| {
        let problem = Some("the port does not exist");
        mediator.expect_health(problem).await;
        drive(mediator, 300, 300).await;
        assert_eq!(ask(mediator).await, None);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        // The last requests are answered when the board is back.
        while mediator.hear().await.is_some() {}
        assert!(!mediator.port.with(|base| base.turns()), "an old command");
        drives(mediator).await;
        mediator.expect_no_more_health();
    })
    .await;
    // The end of the driver stops the wheels.
    port.with(|base| {
        assert!(!base.turns());
        assert!(base.heard.ends_with(b"m 0 0\r"));
        assert!(!base.heard.contains(&b'u'), "gains that nobody gave");
    });
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_wheels_wait_for_a_new_command() {
    check(true, async |mediator| {
        mediator
            .until("it starts", |base| base.heard.ends_with(b"e\r"))
            .await;
        sleep(Duration::from_millis(200)).await;
        drives(mediator).await;
        mediator.port.plug(false);
        let problem = Some("the port does not exist");
        mediator.expect_health(problem).await;
        for _ in 0..3 {
            drive(mediator, 300, 300).await;
            assert_eq!(ask(mediator).await, None, "the speeds are unknown");
        }
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        // The last requests are answered when the board is back.
        while mediator.hear().await.is_some() {}
        assert!(!mediator.port.with(|base| base.turns()));
        drives(mediator).await;
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_the_speeds_and_there_is_no_battery() {
    check(true, async |mediator| {
        mediator
            .until("it starts", |base| base.heard.ends_with(b"e\r"))
            .await;
        sleep(Duration::from_millis(200)).await;
        drives(mediator).await;
        mediator.tell(b"\x10\x06").await;
        for _ in 0..20 {
            let heard = mediator.hear().await.expect("speeds");
            let heard = DriverMsg::decode(&heard[..]).unwrap();
            assert_eq!(heard.ack(), Some(SynNum(0)));
            let speeds = WheelSpeeds::from(heard.current_speed.unwrap());
            assert!((speeds.rear_left_mm_s - 297).abs() <= 8, "{speeds:?}");
            assert!(heard.speed_age.is_some() && heard.battery.is_none());
        }
        mediator.tell(b"\x10\x07").await;
        while mediator.hear().await.is_some() {}
        let mut request = DriverMsg {
            get_battery: Some(true),
            ..DriverMsg::data()
        };
        request.set_syn(Some(SynNum(9)));
        mediator.tell(&request.encode_to_vec()).await;
        let answer = DriverMsg::decode(&mediator.hear().await.unwrap()[..]).unwrap();
        let refused = "these wheels do not measure a battery";
        assert_eq!(answer.battery_refused(), refused);
    })
    .await;
}
