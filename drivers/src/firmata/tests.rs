//! Tests of the options, and of the whole driver between a mediator and a board in memory.

use amber_driver::devices::board::{BoardInfo, DriverMsg, Pin, PwmCommand};
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_sim::firmata as sim;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, interval, sleep};

use super::*;
use crate::testing::{self, Plug};

#[test]
fn the_defaults_fit_an_uno() {
    let (settings, endpoint) = Options::default().settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyACM0 at 57600 baud");
    assert_eq!((settings.reference_v, settings.baud), (5.0, 57_600));
    assert_eq!(settings.sampling_interval, Duration::from_millis(20));
    assert_eq!(settings.publish_interval, Duration::from_millis(100));
    assert_eq!(settings.pins, Pins::default());
}

#[test]
fn the_file_sets_what_the_command_line_does_not() {
    let file: Options = toml::from_str(
        "port = \"/dev/ttyUSB0\"\nbaud = 115200\nreference_v = 3.3\nsampling_interval_ms = 50\n\
         publish_interval_ms = 50\n[[pin]]\npin = 13\nname = \"led\"\nmode = \"output\"\n",
    )
    .unwrap();
    let flags = Options {
        baud: Some(57_600),
        ..Options::default()
    };
    let (settings, endpoint) = flags.or(file.clone()).settings().unwrap();
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 57600 baud");
    assert_eq!(settings.reference_v, 3.3);
    assert_eq!(settings.pins.into_vec()[0].to_string(), "pin 13 (led)");
    let flags = Options {
        pin: Some(vec!["5:pwm".parse().unwrap()]),
        ..Options::default()
    };
    let (settings, _) = flags.or(file).settings().unwrap();
    let pins = settings.pins.into_vec();
    assert_eq!((pins.len(), pins[0].to_string().as_str()), (1, "pin 5"));
}

#[test]
fn invalid_values_are_rejected() {
    for (text, error) in [
        ("baud = 1", "baud: 1 is not within 2400 to 2000000"),
        ("reference_v = 0", "reference_v: 0 is not within 0.5 to 50"),
        (
            "reference_v = nan",
            "reference_v: NaN is not within 0.5 to 50",
        ),
        (
            "sampling_interval_ms = 4",
            "sampling_interval_ms: 4 is not within 5 to 1000",
        ),
        (
            "publish_interval_ms = 9",
            "publish_interval_ms: 9 is not within 10 to 10000",
        ),
        (
            "[[pin]]\npin = 5\nmode = \"pwm\"\nsafe = \"low\"",
            "pin: pin 5: safe must be 0 to 100, in percent, or keep",
        ),
    ] {
        let options: Options = toml::from_str(text).unwrap();
        assert_eq!(options.settings().unwrap_err().to_string(), error);
    }
    assert!(toml::from_str::<Options>("pins = []").is_err());
}

/// A board, from the moment when its port is opened.
type Base = Option<sim::Firmata>;
type Mediator = testing::Mediator<Base>;

/// Starts the board, as opening its port does, and serves the connection.
async fn serve(port: Plug<Base>, mut stream: DuplexStream) {
    let began = Instant::now();
    port.with(|board| *board = Some(sim::Firmata::new(sim::Model::Uno, Duration::ZERO)));
    let mut tick = interval(Duration::from_millis(5));
    let mut bytes = [0; 64];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => Some(read.unwrap_or(0)),
            _ = tick.tick() => None,
        };
        let answers: Vec<u8> = port.with(|board| {
            let board = board.as_mut().unwrap();
            let now = began.elapsed();
            match read {
                Some(length) => board.handle_bytes(now, &bytes[..length]),
                None => board.advance(now),
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

const PINS: [&str; 4] = [
    "led=13:output",
    "motor=5:pwm",
    "button=2:input-pull-up",
    "light=A0:analog",
];

/// Runs a driver during the scenario, then shuts it down.
async fn check(plugged: bool, scenario: impl AsyncFnOnce(&mut Mediator)) -> Plug<Base> {
    let port = Plug::new(None, |port, stream| Box::pin(serve(port, stream)));
    port.plug(plugged);
    let options = Options {
        pin: Some(PINS.map(|text| text.parse::<PinOptions>().unwrap()).into()),
        ..Options::default()
    };
    let (settings, _) = options.settings().unwrap();
    let theirs = port.clone();
    let driver = driver::driver(settings, move || theirs.connect());
    testing::run(port.clone(), board::driver(driver), scenario).await;
    port
}

/// Sends a request, and waits for its answer.
async fn ask(mediator: &mut Mediator, mut request: DriverMsg) -> DriverMsg {
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    loop {
        let heard = mediator.hear().await.expect("an answer");
        let answer = DriverMsg::decode(&heard[..]).unwrap();
        if answer.ack() == Some(SynNum(5)) {
            return answer;
        }
    }
}

async fn pins(mediator: &mut Mediator) -> Result<Vec<Pin>, String> {
    let request = DriverMsg {
        get_pins: Some(true),
        ..DriverMsg::data()
    };
    let answer = ask(mediator, request).await;
    answer
        .pins
        .map(|pins| pins.pins)
        .ok_or(answer.board_refused.unwrap_or_default())
}

async fn info(mediator: &mut Mediator) -> Result<BoardInfo, String> {
    let request = DriverMsg {
        get_board: Some(true),
        ..DriverMsg::data()
    };
    let answer = ask(mediator, request).await;
    answer.board.ok_or(answer.board_refused.unwrap_or_default())
}

async fn turn(mediator: &mut Mediator, duty: f64) {
    let pin = "motor".to_owned();
    let command = DriverMsg {
        set_pwm: Some(PwmCommand { pin, duty }),
        ..DriverMsg::data()
    };
    mediator.tell(&command.encode_to_vec()).await;
}

fn motor(board: &Base) -> u16 {
    board.as_ref().map_or(0, |board| board.pins()[5].state)
}

/// Waits until the board has all settings.
async fn ready(mediator: &mut Mediator) {
    let is_set = |board: &mut Base| board.as_ref().is_some_and(|it| it.pins()[5].mode == 3);
    mediator.until("it is set up", is_set).await;
    sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn a_board_plugged_in_later_is_found_and_used() {
    let port = check(false, async |mediator| {
        let problem = "the port does not exist";
        mediator.expect_health(Some(problem)).await;
        assert_eq!(pins(mediator).await, Err(problem.to_owned()));
        assert_eq!(info(mediator).await, Err(problem.to_owned()));
        turn(mediator, 50.0).await;
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        ready(mediator).await;
        assert_eq!(
            mediator.port.with(|board| motor(board)),
            0,
            "an old command"
        );
        let found = pins(mediator).await.unwrap();
        assert_eq!(found.len(), PINS.len());
        assert_eq!((found[2].name(), found[2].high), ("button", Some(true)));
        assert_eq!(info(mediator).await.unwrap().protocol(), "Firmata 2.5");
        turn(mediator, 50.0).await;
        mediator
            .until("it turns", |board| motor(board) == 128)
            .await;
        mediator.expect_no_more_health();
    })
    .await;
    // The end of the driver stops it.
    port.with(|board| assert_eq!(motor(board), 0));
}

#[tokio::test(start_paused = true)]
async fn what_moves_stops_with_its_client_and_by_a_request() {
    check(true, async |mediator| {
        ready(mediator).await;
        turn(mediator, 50.0).await;
        mediator
            .until("it turns", |board| motor(board) == 128)
            .await;
        let stop = DriverMsg {
            stop_outputs: Some(true),
            ..DriverMsg::data()
        };
        mediator.tell(&stop.encode_to_vec()).await;
        mediator.until("it stops", |board| motor(board) == 0).await;
        turn(mediator, 50.0).await;
        mediator
            .until("it turns", |board| motor(board) == 128)
            .await;
        // Client 7 is gone.
        mediator.tell(b"\x10\x04").await;
        mediator.until("it stops", |board| motor(board) == 0).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscribers_get_a_change_at_once() {
    check(true, async |mediator| {
        ready(mediator).await;
        mediator.tell(b"\x10\x06").await;
        let mut changes = 0;
        while changes < 5 {
            let level = (changes % 2 == 1).then_some(false);
            let before = Instant::now();
            mediator
                .port
                .with(|board| board.as_mut().unwrap().connect(2, level));
            loop {
                let heard = mediator.hear().await.expect("values");
                let heard = DriverMsg::decode(&heard[..]).unwrap();
                assert_eq!(heard.ack(), Some(SynNum(0)));
                let button = heard.pins.unwrap().pins[2].clone();
                if button.changes() == changes {
                    assert_eq!(button.high, Some(level.is_none()));
                    break;
                }
            }
            assert!(
                before.elapsed() < Duration::from_millis(25),
                "{:?}",
                before.elapsed()
            );
            changes += 1;
        }
    })
    .await;
}
