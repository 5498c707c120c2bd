//! Fuzz targets: the driver's half and the simulated board. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_proto::ClientId;
use amber_proto::board::{DigitalCommand, PulseCommand, PwmCommand, ServoCommand};
use amber_sim::firmata as sim;

use super::Options;
use super::logic::{FirmataLogic, Output};
use crate::board::{Command, Model as _, PinOptions};
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[("firmata_driver", driver), ("firmata_device", device)];

const PINS: [&str; 9] = [
    "led=13:output",
    "relay=7:output:high",
    "motor=5:pwm",
    "pan=9:servo",
    "wheel=10:servo:release",
    "button=2:input-pull-up",
    "light=A0:analog",
    "16:input",
    "4:pwm",
];

/// What a board may say, each with its end.
const MESSAGES: [&[u8]; 8] = [
    b"\xF9\x02\x05",
    b"\xF0\x79\x02\x05\x41\x00\xF7",
    // Six pins, of which one is analog.
    b"\xF0\x6C\x7F\x00\x01\x01\x01\x7F\x0B\x01\x7F\x01\x01\x7F\x03\x08\x7F\x03\x10\x7F\x02\x0A\x7F\xF7",
    b"\xF0\x6A\x7F\x7F\x7F\x7F\x7F\x7F\x00\xF7",
    b"\xF0\x6E\x02\x0B\x01\xF7",
    b"\xF0\x6E\x05\x03\x00\xF7",
    b"\x90\x04\x00",
    b"\xE0\x7F\x07",
];

/// The driver's logic, with a board that says anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    let options = Options {
        pin: Some(
            PINS.map(|text| text.parse::<PinOptions>().expect("good"))
                .into(),
        ),
        ..Options::default()
    };
    let (settings, _) = options.settings().expect("they are good");
    let mut logic = FirmataLogic::new(settings, now);
    let mut board = sim::Firmata::new(sim::Model::Uno, Duration::ZERO);
    let begin = now;
    while !input.is_empty() {
        match input.byte() % 12 {
            0 => now += Duration::from_millis(u64::from(input.byte()) * 8),
            1 => command(&mut logic, &mut input),
            2 => {
                let stops = logic.service().client_gone(ClientId(1));
                carry_out(&mut logic, &[], &stops);
            }
            3 if input.byte() == 0 => logic.shut_down(),
            4 => logic.failed(now, "unplugged"),
            5 => logic.handle_bytes(now, input.piece()),
            6 => logic.guard_acted(),
            7 => {
                let is_listened = input.flag();
                logic.service().set_listened(is_listened);
            }
            8 => logic.handle_bytes(now, MESSAGES[usize::from(input.byte()) % MESSAGES.len()]),
            // What the simulated board says, so that the driver comes to an end of its questions.
            _ => {
                board.advance(now - begin);
                while let Some(bytes) = board.poll_output() {
                    logic.handle_bytes(now, &bytes);
                }
            }
        }
        now += Duration::from_millis(1);
        board.advance(now - begin);
        logic.handle_timeout(now);
        check(&mut logic, now);
        let mut outputs = 0;
        while let Some(output) = logic.poll_output() {
            outputs += 1;
            assert!(outputs < 100, "it never comes to rest: {output:?}");
            match output {
                Output::Open => match input.flag() {
                    true => logic.opened(now),
                    false => logic.failed(now, "not there"),
                },
                Output::Write(bytes) => {
                    assert!(!bytes.is_empty());
                    board.handle_bytes(now - begin, &bytes);
                }
                Output::Close => {}
                Output::End => return,
            }
        }
        let notes = std::iter::from_fn(|| logic.service().poll_note());
        assert!(notes.count() < 100);
    }
}

fn command(logic: &mut FirmataLogic, input: &mut Input<'_>) {
    let pin = PINS[usize::from(input.byte()) % PINS.len()];
    let pin = pin.split(['=', ':']).next().unwrap_or_default().to_owned();
    let number = f64::from(input.number()) / 100.0 - 100.0;
    let command = match input.byte() % 4 {
        0 => Command::Digital(DigitalCommand {
            pin,
            high: input.flag(),
        }),
        1 => Command::Pwm(PwmCommand { pin, duty: number }),
        2 => Command::Servo(ServoCommand { pin, angle: number }),
        _ => Command::Pulse(PulseCommand {
            pin,
            pulse: input.number().into(),
        }),
    };
    match logic.service().read(&command) {
        Ok(order) => carry_out(logic, &[ClientId(1)], &[order]),
        Err(why) => logic.service().refuse(why),
    }
}

fn carry_out(logic: &mut FirmataLogic, clients: &[ClientId], orders: &[crate::board::Order]) {
    if logic.service().is_ready() {
        logic.service().take(clients, orders);
        logic.carry_out(orders);
    }
}

/// What clients are told makes sense, and the last words are known only while the board is.
fn check(logic: &mut FirmataLogic, now: Instant) {
    let is_ready = logic.service().is_ready();
    assert!(is_ready || logic.last_words().is_none());
    let published = logic.service().poll_publication(now);
    assert!(is_ready || published.is_none());
    for pin in logic.service().message().pins {
        assert!(pin.fraction.is_none_or(|it| (0.0..=1.0).contains(&it)));
        assert!(pin.duty.is_none_or(|it| (0.0..=100.0).contains(&it)));
        assert!(pin.pulse.is_none_or(|it| (544..=2400).contains(&it)));
    }
    assert!(logic.info().pins.len() <= 128);
}

/// The simulated board, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let model = match input.flag() {
        true => sim::Model::Uno,
        false => sim::Model::Mega,
    };
    let mut board = sim::Firmata::new(model, now);
    while !input.is_empty() {
        match input.byte() % 6 {
            0 => {
                now += Duration::from_millis(u64::from(input.byte()) * 4);
                board.advance(now);
            }
            1 => {
                let level = input.flag().then(|| input.flag());
                board.connect(input.byte(), level);
            }
            2 => board.set_volts(input.byte() % 20, f64::from(input.byte()) / 40.0),
            3 if input.byte() == 0 => board = board.restarted(now),
            _ => board.handle_bytes(now, input.piece()),
        }
        board.advance(now);
        while let Some(answer) = board.poll_output() {
            assert!(!answer.is_empty() && answer.len() <= 2_000);
        }
        assert!(board.next_timeout().is_none_or(|due| due > now));
        assert!(board.pins().iter().all(|pin| pin.pulse_us < 1 << 14));
    }
}
