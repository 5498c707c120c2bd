//! Tests of the options, and of the whole driver between a mediator and VESCs in memory.

use amber_driver::devices::roboclaw::DriverMsg;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::vesc::{CAN_ID, Firmware, Vescs};
use amber_sim::wheels::{Drive, Reading};
use amber_values::WheelSpeeds;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, interval, sleep};

use super::*;
use crate::testing::{self, Plug};

fn options() -> Options {
    Options {
        can_id: Some(CAN_ID),
        pole_pairs: Some(7),
        gear_ratio: Some(10.0),
        wheel_diameter_mm: Some(120.0),
        min_erpm: Some(100),
        ..Options::default()
    }
}

#[test]
fn what_cannot_be_guessed_is_required_and_the_rest_has_defaults() {
    let without = |change: fn(&mut Options)| {
        let mut options = options();
        change(&mut options);
        options.settings().unwrap_err().to_string()
    };
    let missing = without(|options| options.can_id = None);
    assert_eq!(missing, "--can-id is required");
    let missing = without(|options| options.pole_pairs = None);
    assert_eq!(missing, "--pole-pairs is required");
    let missing = without(|options| options.wheel_diameter_mm = None);
    assert_eq!(missing, "--wheel-diameter-mm is required");
    let both = without(|options| options.second_port = Some("/dev/ttyACM1".into()));
    assert!(
        both.starts_with("can_id: is for a second VESC on the CAN bus"),
        "{both}"
    );

    let (settings, first, second) = Options {
        gear_ratio: None,
        min_erpm: None,
        ..options()
    }
    .settings()
    .unwrap();
    assert_eq!(first.to_string(), "/dev/ttyACM0 at 115200 baud");
    assert_eq!((second, settings.reach), (None, Reach::Can(CAN_ID)));
    assert_eq!(settings.rules.max_speed_mm_s, Some(1_200));
    assert_eq!(settings.rules.idle_stop, Some(Duration::from_secs(4)));
    assert!((settings.wheels.erpm_per_mm_s - 1.114).abs() < 0.001);
    assert_eq!(
        (settings.wheels.min_erpm, settings.wheels.brake_ma),
        (900, 5_000)
    );
    assert_eq!(settings.wheels.wiring, Wiring::default());

    let file: Options = toml::from_str(
        "port = \"/dev/ttyAMA0\"\nsecond_port = \"/dev/ttyAMA1\"\nbaud = 230400\npole_pairs = 15\n\
         wheel_diameter_mm = 170\nbrake_ma = 0\nswap_sides = true\nmax_speed_mm_s = 0",
    )
    .unwrap();
    let (settings, first, second) = file.settings().unwrap();
    assert_eq!(first.to_string(), "/dev/ttyAMA0 at 230400 baud");
    assert_eq!(second.unwrap().to_string(), "/dev/ttyAMA1 at 230400 baud");
    assert_eq!(settings.reach, Reach::Port);
    assert!((settings.wheels.erpm_per_mm_s - 1.685).abs() < 0.001);
    assert!(settings.wheels.wiring.swaps_sides && !settings.wheels.wiring.reverses_left);
    assert_eq!(
        (settings.wheels.brake_ma, settings.rules.max_speed_mm_s),
        (0, None)
    );
}

#[test]
fn invalid_values_are_rejected() {
    for text in [
        "pole_pairs = 0",
        "wheel_diameter_mm = 0.5",
        "gear_ratio = 0",
        "can_id = 255",
        "min_erpm = 100001",
        "brake_ma = 500001",
        "baud = 1",
        "reply_timeout_ms = 49",
        "speeds_interval_ms = 19",
    ] {
        let file: Options = toml::from_str(text).unwrap();
        let error = file.or(options()).settings().unwrap_err().to_string();
        let name = error.split(':').next().unwrap();
        assert!(text.starts_with(name), "{error}");
    }
    for text in ["can_id = 256", "pole_pairs = -1", "poles = 14"] {
        assert!(toml::from_str::<Options>(text).is_err(), "{text}");
    }
}

/// Two VESCs and their wheels.
struct Base {
    vescs: Vescs,
    began: Instant,
    qpps: [f64; 2],
    /// All bytes from the driver.
    heard: Vec<u8>,
}

impl Base {
    fn turns(&self) -> bool {
        self.vescs.drives().iter().any(|drive| !drive.is_zero())
    }
}

/// Serves the connection.
async fn serve(port: Plug<Base>, mut stream: DuplexStream) {
    let mut tick = interval(Duration::from_millis(1));
    let mut bytes = [0; 64];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => Some(read.unwrap_or(0)),
            _ = tick.tick() => None,
        };
        let answers: Vec<u8> = port.with(|base| {
            let now = base.began.elapsed();
            match read {
                Some(length) => {
                    base.heard.extend(&bytes[..length]);
                    base.vescs.handle_bytes(now, &bytes[..length]);
                }
                None => {
                    for (qpps, drive) in base.qpps.iter_mut().zip(base.vescs.drives()) {
                        *qpps = match drive {
                            Drive::Speed { qpps, .. } => qpps,
                            Drive::Duty(_) => 0.0,
                        };
                    }
                    let [left, right] = base.qpps.map(|qpps| Reading {
                        speed_qpps: qpps.round() as i32,
                        ..Reading::default()
                    });
                    base.vescs.handle_readings(now, [left, right, left, right]);
                }
            }
            let answers = std::iter::from_fn(|| base.vescs.poll_output());
            answers.flatten().collect()
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
        vescs: Vescs::new(Firmware::V6_02),
        began: Instant::now(),
        qpps: [0.0; 2],
        heard: Vec::new(),
    };
    let port = Plug::new(base, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let (settings, ..) = options().settings().unwrap();
    let theirs = port.clone();
    let driver = driver::driver(settings, move || theirs.connect(), None);
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
    sleep(Duration::from_millis(50)).await;
    let speeds = ask(mediator).await;
    assert_eq!(speeds, Some(WheelSpeeds::sides(300, -200)));
}

#[tokio::test(start_paused = true)]
async fn vescs_plugged_in_later_are_found_and_driven() {
    let port = check(false, async |mediator| {
        let problem = Some("the port does not exist");
        mediator.expect_health(problem).await;
        drive(mediator, 300, 300).await;
        assert_eq!(ask(mediator).await, None);
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        // The last requests are answered when they are back.
        while mediator.hear().await.is_some() {}
        assert!(!mediator.port.with(|base| base.turns()), "an old command");
        drives(mediator).await;
        mediator.port.plug(false);
        mediator.expect_health(problem).await;
        assert_eq!(ask(mediator).await, None, "the speeds are unknown");
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        while mediator.hear().await.is_some() {}
        assert!(!mediator.port.with(|base| base.turns()), "an old command");
        drives(mediator).await;
        mediator.expect_no_more_health();
    })
    .await;
    // The end of the driver stops the wheels.
    port.with(|base| {
        let brake = protocol::Command::Brake(5_000).encode(Some(CAN_ID));
        assert!(!base.turns() && base.heard.ends_with(&brake));
    });
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_trouble_and_the_battery_is_told() {
    check(true, async |mediator| {
        let last = protocol::Command::Values.encode(Some(CAN_ID));
        let starts = |base: &mut Base| base.heard.ends_with(&last);
        mediator.until("it starts", starts).await;
        sleep(Duration::from_millis(20)).await;
        drives(mediator).await;
        mediator
            .port
            .with(|base| base.vescs.set_battery_v(Some(10.0)));
        let trouble = mediator.health().await.unwrap();
        let expected = "driving disabled: the first VESC reports UNDER_VOLTAGE: check the battery";
        assert!(trouble.starts_with(expected), "{trouble}");
        mediator.port.with(|base| base.vescs.set_battery_v(None));
        mediator.expect_health(None).await;
        assert!(!mediator.port.with(|base| base.turns()), "an old command");
        let mut request = DriverMsg {
            get_battery: Some(true),
            ..DriverMsg::data()
        };
        request.set_syn(Some(SynNum(9)));
        mediator.tell(&request.encode_to_vec()).await;
        let answer = DriverMsg::decode(&mediator.hear().await.unwrap()[..]).unwrap();
        assert_eq!(answer.battery.unwrap().voltage, Some(12_600));
    })
    .await;
}
