//! Tests of the rules with a simulated clock and board.

use amber_driver::ClientId;
use amber_proto::board::{self as message, DigitalCommand, PulseCommand, PwmCommand, ServoCommand};
use amber_sim::firmata as sim;

use super::*;
use crate::board::Command as Wish;
use crate::firmata::Options;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const CLIENT: ClientId = ClientId(7);

const PINS: [&str; 7] = [
    "led=13:output",
    "motor=5:pwm",
    "pan=9:servo",
    "wheel=10:servo:release",
    "button=2:input-pull-up",
    "light=A1:analog",
    "relay=7:output:high",
];

/// The logic, a board and a clock.
struct Bench {
    logic: FirmataLogic,
    board: sim::Firmata,
    begin: Instant,
    now: Duration,
    is_plugged: bool,
    is_open: bool,
    is_silent: bool,
    garbles: bool,
    /// All bytes from the driver since the port was opened.
    heard: Vec<u8>,
    published: Vec<message::Pins>,
    opened: usize,
    notes: Vec<Note>,
    ended: bool,
}

fn settings(pins: &[&str]) -> Settings {
    let pins = pins.iter().map(|text| text.parse().unwrap());
    let options = Options {
        pin: Some(pins.collect()),
        ..Options::default()
    };
    options.settings().unwrap().0
}

impl Bench {
    /// Opens the port of a board that was switched on at this moment.
    fn new(model: sim::Model, pins: &[&str]) -> Self {
        let begin = Instant::now();
        let mut bench = Self {
            logic: FirmataLogic::new(settings(pins), begin),
            board: sim::Firmata::new(model, Duration::ZERO),
            begin,
            now: Duration::ZERO,
            is_plugged: true,
            is_open: false,
            is_silent: false,
            garbles: false,
            heard: Vec::new(),
            published: Vec::new(),
            opened: 0,
            notes: Vec::new(),
            ended: false,
        };
        bench.settle();
        bench
    }

    /// The same when it is set up.
    fn ready(model: sim::Model, pins: &[&str]) -> Self {
        let mut bench = Self::new(model, pins);
        bench.advance(4 * SECOND);
        assert!(bench.logic.service.is_ready(), "{:?}", bench.notes);
        bench
    }

    fn settle(&mut self) {
        let now = self.begin + self.now;
        loop {
            while let Some(mut bytes) = self.board.poll_output() {
                if self.garbles {
                    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                if self.is_open && !self.is_silent {
                    self.logic.handle_bytes(now, &bytes);
                }
            }
            if self.is_open && !self.is_plugged {
                self.is_open = false;
                self.logic.failed(now, "unplugged");
            }
            let Some(output) = self.logic.poll_output() else {
                break;
            };
            match output {
                Output::Open if self.is_plugged => {
                    self.is_open = true;
                    self.opened += 1;
                    self.heard.clear();
                    self.logic.opened(now);
                }
                Output::Open => self.logic.failed(now, "unplugged"),
                Output::Close => self.is_open = false,
                Output::Write(bytes) if self.is_open => {
                    self.heard.extend(&bytes);
                    self.board.handle_bytes(self.now, &bytes);
                }
                Output::Write(_) => {}
                Output::End => self.ended = true,
            }
        }
        self.published
            .extend(self.logic.service.poll_publication(now));
        while let Some(note) = self.logic.service.poll_note() {
            self.notes.push(note);
        }
    }

    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        loop {
            let of_logic = self.logic.wake_at();
            let of_logic = of_logic.map(|due| due.saturating_duration_since(self.begin));
            let due = of_logic.into_iter().chain(self.board.next_timeout()).min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            self.board.advance(self.now);
            self.settle();
            self.logic.handle_timeout(self.begin + self.now);
            self.settle();
        }
        self.now = end;
        self.board.advance(end);
        self.settle();
    }

    /// A command of a client. Returns why it is refused.
    fn tell(&mut self, wish: &Wish) -> Option<String> {
        let read = self.logic.service.read(wish);
        let why = match read {
            Ok(order) if self.logic.service.is_ready() => {
                self.logic.service.take(&[CLIENT], &[order]);
                self.logic.carry_out(&[order]);
                None
            }
            Ok(_) => Some("not ready".to_owned()),
            Err(why) => Some(why),
        };
        self.settle();
        why
    }

    fn stop(&mut self, stops: &[Order]) {
        self.logic.service.take(&[], stops);
        self.logic.carry_out(stops);
        self.settle();
    }

    /// The mode and the state of a pin of the board.
    fn pin(&self, number: usize) -> (u8, u16) {
        let pin = self.board.pins()[number];
        (pin.mode, pin.state)
    }

    fn pulse_us(&self, number: usize) -> u16 {
        self.board.pins()[number].pulse_us
    }

    /// What clients are told of a pin.
    fn told(&self, name: &str) -> message::Pin {
        let mut pins = self.logic.service.message().pins.into_iter();
        pins.find(|pin| pin.name() == name).unwrap()
    }
}

fn digital(pin: &str, high: bool) -> Wish {
    let pin = pin.to_owned();
    Wish::Digital(DigitalCommand { pin, high })
}

fn pwm(pin: &str, duty: f64) -> Wish {
    let pin = pin.to_owned();
    Wish::Pwm(PwmCommand { pin, duty })
}

fn servo(pin: &str, angle: f64) -> Wish {
    let pin = pin.to_owned();
    Wish::Servo(ServoCommand { pin, angle })
}

fn pulse(pin: &str, pulse: u32) -> Wish {
    let pin = pin.to_owned();
    Wish::Pulse(PulseCommand { pin, pulse })
}

const UNO: sim::Model = sim::Model::Uno;

#[test]
fn a_board_that_starts_is_asked_and_set_up_and_nothing_moves() {
    let mut bench = Bench::new(UNO, &PINS);
    bench.advance(3_600 * MS);
    // Nothing but the question for the version.
    let mut heard = bench.heard.iter();
    assert_eq!(heard.next(), Some(&0xF7));
    assert!(bench.heard.len() > 4 && heard.all(|byte| *byte == 0xF9));
    assert_eq!(bench.logic.last_words(), None);
    assert!(!bench.logic.service.is_ready() && bench.notes.is_empty());
    bench.advance(200 * MS);
    assert!(bench.logic.service.is_ready());
    let ready = Note::Ready("StandardFirmata.ino 2.5, 20 pins".into());
    assert_eq!(bench.notes, [ready]);
    assert_eq!(bench.pin(13), (0x01, 0));
    assert_eq!(bench.pin(5), (0x03, 0));
    assert_eq!(bench.pin(7), (0x01, 1), "its safe value");
    assert_eq!(bench.pin(2), (0x0B, 1));
    assert_eq!(bench.pin(15), (0x02, 0));
    assert_eq!((bench.pulse_us(9), bench.pulse_us(10)), (0, 0));
    // What nobody has configured stays as it is.
    assert_eq!((bench.pin(12), bench.pin(14)), ((0x01, 0), (0x02, 0)));
    // Before the end of the set-up, the level and the first value were there.
    assert_eq!(bench.told("button").high, Some(true));
    assert_eq!(bench.told("light").number, Some(15));
    assert_eq!(bench.told("light").fraction, Some(0.0));
    bench.advance(10 * SECOND);
    assert_eq!(bench.notes.len(), 1, "{:?}", bench.notes);
    assert_eq!(bench.logic.service.counters, Default::default());
}

#[test]
fn the_board_is_described_as_it_says_itself() {
    let info = Bench::ready(UNO, &[]).logic.info();
    assert_eq!(info.protocol(), "Firmata 2.5");
    assert_eq!(info.firmware(), "StandardFirmata.ino 2.5");
    assert_eq!((info.restarts(), info.pins.len()), (0, 20));
    use message::pin::Mode::{Analog, Input, InputPullUp, Output, Pwm, Servo};
    let modes = |pin: usize| info.pins[pin].modes().collect::<Vec<_>>();
    assert_eq!(modes(0), []);
    assert_eq!(modes(5), [Input, InputPullUp, Output, Pwm, Servo]);
    assert_eq!(modes(14), [Input, InputPullUp, Output, Analog, Servo]);
    assert_eq!((info.pins[14].label(), info.pins[14].number()), ("A0", 14));
    assert_eq!(info.pins[13].label, None);
}

#[test]
fn commands_reach_the_pins() {
    let mut bench = Bench::ready(UNO, &PINS);
    for (wish, pin, state) in [
        (digital("led", true), 13, 1),
        (digital("13", false), 13, 0),
        (digital("relay", false), 7, 0),
        (pwm("motor", 100.0), 5, 255),
        (pwm("motor", 50.0), 5, 128),
        (pwm("motor", 0.0), 5, 0),
    ] {
        assert_eq!(bench.tell(&wish), None, "{wish:?}");
        assert_eq!(bench.pin(pin).1, state, "{wish:?}");
    }
    for (wish, pin, us) in [
        (servo("pan", 90.0), 9, 1472),
        (servo("pan", 0.0), 9, 544),
        (pulse("pan", 1500), 9, 1500),
        (pulse("wheel", 1600), 10, 1600),
    ] {
        assert_eq!(bench.tell(&wish), None, "{wish:?}");
        assert_eq!(bench.pulse_us(pin), us, "{wish:?}");
    }
    assert_eq!(bench.told("pan").pulse, Some(1500));
    let heard = bench.heard.clone();
    for wish in [
        digital("motor", true),
        pwm("motor", 101.0),
        servo("pan", 181.0),
        pulse("pan", 2_401),
        digital("nothing", true),
    ] {
        assert!(bench.tell(&wish).is_some(), "{wish:?}");
    }
    assert_eq!(bench.heard, heard, "nothing was sent");
}

#[test]
fn a_servo_gets_its_pin_and_its_first_pulse_together() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.heard.clear();
    bench.tell(&pulse("pan", 1500));
    bench.tell(&pulse("pan", 1600));
    let first: [u8; 11] = [
        0xF0, 0x70, 9, 0x20, 0x04, 0x60, 0x12, 0xF7, 0xE9, 0x5C, 0x0B,
    ];
    assert_eq!(bench.heard, [&first[..], &[0xE9, 0x40, 0x0C]].concat());
}

#[test]
fn inputs_are_known_when_they_change() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.logic.service.set_listened(true);
    for level in [None, Some(false), None, Some(false)] {
        bench.board.connect(2, level);
        bench.advance(10 * MS);
    }
    bench.advance(10 * MS);
    let published = bench.published.iter();
    let of_button = published.map(|pins| (pins.pins[4].high(), pins.pins[4].changes()));
    let mut of_button: Vec<_> = of_button.collect();
    of_button.dedup();
    assert_eq!(of_button, [(true, 0), (false, 1), (true, 2), (false, 3)]);
    bench.board.set_volts(1, 2.5);
    bench.advance(40 * MS);
    let light = bench.told("light");
    assert!((light.fraction() - 0.5).abs() < 0.001, "{light:?}");
    assert!((light.voltage() - 2.5).abs() < 0.005, "{light:?}");
}

#[test]
fn a_mega_has_more_pins() {
    let pins = [
        "high=45:pwm",
        "far=60:output:low",
        "button=66:input",
        "light=A15:analog",
    ];
    let mut bench = Bench::ready(sim::Model::Mega, &pins);
    assert_eq!(bench.tell(&pwm("high", 25.0)), None);
    assert_eq!(bench.pin(45), (0x03, 64));
    assert_eq!(bench.tell(&digital("A6", true)), None);
    assert_eq!(bench.pin(60), (0x01, 1));
    bench.board.connect(66, Some(true));
    bench.board.set_volts(15, 5.0);
    bench.advance(50 * MS);
    assert_eq!(bench.told("button").high, Some(true));
    let light = bench.told("light");
    assert_eq!((light.number, light.fraction), (Some(69), Some(1.0)));
}

#[test]
fn what_a_pin_cannot_do_is_reported_and_the_others_work() {
    let pins = [
        "4:pwm",
        "A6:analog",
        "13:analog",
        "20:output",
        "1:input",
        "led=12:output",
        "A5:analog",
        "19:input",
    ];
    let mut bench = Bench::ready(UNO, &pins);
    let notes = bench.notes.iter().map(ToString::to_string);
    let notes: Vec<_> = notes.collect();
    let expected = [
        "pin 4 cannot be a PWM output on this board; it can be input, input-pull-up, output, servo",
        "pin A6: this board has no such pin",
        "pin 13 cannot be an analog input on this board; it can be input, input-pull-up, output, servo",
        "pin 20: this board has no such pin",
        "pin 1 cannot be a digital input on this board; it can be nothing, as it belongs to the board",
        "pin 19 is configured twice, by its number and its label",
        "ready: StandardFirmata.ino 2.5, 20 pins",
    ];
    assert_eq!(notes, expected);
    assert_eq!(bench.logic.service.trouble(), Some(expected[0]));
    assert_eq!(bench.tell(&pwm("4", 50.0)), Some(expected[0].to_owned()));
    assert_eq!(
        bench.tell(&digital("20", true)),
        Some(expected[3].to_owned())
    );
    assert_eq!(bench.tell(&digital("led", true)), None);
    assert_eq!(bench.pin(12), (0x01, 1));
    assert_eq!(bench.pin(4), (0x01, 0));
}

#[test]
fn another_program_on_the_board_gets_nothing_but_questions() {
    for (garbles, silent, trouble) in [
        (
            false,
            true,
            "nothing arrives at 57600 baud: check --port and --baud",
        ),
        (
            true,
            false,
            "what arrives at 57600 baud is not Firmata: check --baud",
        ),
    ] {
        let mut bench = Bench::new(UNO, &PINS);
        (bench.garbles, bench.is_silent) = (garbles, silent);
        bench.advance(7 * SECOND);
        let found = bench.logic.service.trouble().unwrap();
        assert!(found.starts_with(trouble) && found.len() < 200, "{found}");
        bench.advance(30 * SECOND);
        assert!(bench.heard.iter().all(|byte| matches!(byte, 0xF7 | 0xF9)));
        assert_eq!(bench.logic.last_words(), None);
        assert_eq!(bench.notes.len(), 1, "{:?}", bench.notes);
        (bench.garbles, bench.is_silent) = (false, false);
        bench.advance(10 * SECOND);
        assert_eq!(bench.logic.service.trouble(), None);
        assert!(bench.logic.service.is_ready());
    }
}

#[test]
fn an_old_firmata_is_named() {
    let begin = Instant::now();
    let mut logic = FirmataLogic::new(settings(&PINS), begin);
    logic.opened(begin);
    logic.handle_bytes(begin, &[0xF9, 2, 3]);
    logic.handle_timeout(begin + STARTS);
    let trouble = "the board speaks Firmata 2.3, and this driver needs 2.5 or a later 2";
    assert!(logic.service.trouble().unwrap().starts_with(trouble));
}

#[test]
fn everything_that_moves_is_safe_when_the_driver_ends_or_is_killed() {
    for is_killed in [false, true] {
        let mut bench = Bench::ready(UNO, &PINS);
        for wish in [
            digital("led", true),
            digital("relay", false),
            pwm("motor", 80.0),
            servo("pan", 45.0),
            pulse("wheel", 1600),
        ] {
            assert_eq!(bench.tell(&wish), None);
        }
        match is_killed {
            false => {
                bench.logic.shut_down();
                bench.settle();
                assert!(bench.ended);
            }
            true => {
                // In the middle of a message.
                bench.board.handle_bytes(bench.now, &[0xF0, 0x6D]);
                let last_words = bench.logic.last_words().unwrap();
                bench.board.handle_bytes(bench.now, &last_words);
            }
        }
        assert_eq!(bench.pin(13), (0x01, 1), "a light may stay on");
        assert_eq!(bench.pin(7), (0x01, 1));
        assert_eq!(bench.pin(5), (0x03, 0));
        assert_eq!(bench.pulse_us(10), 0);
        assert!(bench.pulse_us(9) > 0, "it holds its position");
    }
}

#[test]
fn without_outputs_that_move_there_are_no_last_words() {
    let bench = Bench::ready(UNO, &["13:output", "9:servo", "2:input"]);
    assert_eq!(bench.logic.last_words(), None);
}

#[test]
fn what_the_guard_has_done_is_done_again() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.tell(&pwm("motor", 80.0));
    bench.tell(&digital("led", true));
    bench.logic.guard_acted();
    bench.settle();
    assert_eq!((bench.pin(5).1, bench.pin(13).1), (0, 1));
    assert_eq!(bench.told("motor").duty, Some(0.0));
    assert!(
        matches!(bench.notes[..], [_, Note::Event(_)]),
        "{:?}",
        bench.notes
    );
}

#[test]
fn a_released_servo_begins_again_with_its_first_pulse() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.tell(&pulse("wheel", 1600));
    let stops = bench.logic.service.client_gone(CLIENT);
    bench.stop(&stops);
    assert_eq!((bench.pulse_us(10), bench.pin(10).0), (0, 0x01));
    assert_eq!(bench.told("wheel").pulse, None);
    bench.heard.clear();
    bench.tell(&pulse("wheel", 1600));
    assert_eq!(bench.pulse_us(10), 1600);
    assert_eq!(bench.heard[..3], [0xF0, 0x70, 10]);
}

/// What a board sends when it has started.
const BANNER: &[u8] = b"\xF9\x02\x05\xF0\x79\x02\x05\x41\x00\xF7";

#[test]
fn a_board_that_has_restarted_is_set_up_again_and_its_outputs_are_safe() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.tell(&digital("led", true));
    bench.tell(&pwm("motor", 80.0));
    bench.tell(&servo("pan", 45.0));
    bench.board.handle_bytes(bench.now, &[0xFF]);
    let now = bench.begin + bench.now;
    bench.logic.handle_bytes(now, BANNER);
    bench.settle();
    assert!(bench.logic.service.is_ready());
    assert_eq!((bench.logic.info().restarts(), bench.opened), (1, 1));
    let restarted = [Note::Event(RESTARTED)];
    assert_eq!(bench.notes[1..], restarted);
    assert_eq!((bench.pin(13), bench.pin(5)), ((0x01, 0), (0x03, 0)));
    assert_eq!((bench.pin(2), bench.pulse_us(9)), ((0x0B, 1), 0));
    assert_eq!(bench.told("led").high, Some(false));
    assert_eq!(bench.told("pan").pulse, None);
    bench.tell(&servo("pan", 45.0));
    assert_eq!(bench.pulse_us(9), 1008);
    bench.advance(10 * SECOND);
    assert_eq!(bench.notes[1..], restarted);
}

#[test]
fn what_only_looks_like_a_restart_leaves_nothing_turning() {
    // At 90 degrees it stands.
    let mut bench = Bench::ready(UNO, &["wheel=10:servo:90"]);
    bench.tell(&pulse("wheel", 1700));
    let now = bench.begin + bench.now;
    bench.logic.handle_bytes(now, BANNER);
    bench.settle();
    assert!(bench.logic.service.is_ready());
    assert_eq!(bench.pulse_us(10), 1472);
}

#[test]
fn a_board_that_takes_long_to_restart_keeps_its_port() {
    let sets: [&[&str]; 2] = [&PINS, &["motor=5:pwm"]];
    for pins in sets {
        let mut bench = Bench::ready(UNO, pins);
        bench.tell(&pwm("motor", 80.0));
        bench.board = bench.board.restarted(bench.now);
        bench.advance(2 * SECOND);
        // Only analog values are missed so soon.
        assert_eq!(bench.logic.service.trouble().is_some(), pins.len() > 1);
        bench.advance(3 * SECOND);
        assert!(bench.logic.service.is_ready(), "{:?}", bench.notes);
        assert_eq!(bench.logic.service.trouble(), None);
        assert_eq!((bench.opened, bench.pin(5)), (1, (0x03, 0)));
        assert_eq!(bench.told("motor").duty, Some(0.0));
    }
}

#[test]
fn a_lost_setting_is_noticed_by_the_modes() {
    let mut bench = Bench::ready(UNO, &["motor=5:pwm", "2:input"]);
    bench.tell(&pwm("motor", 80.0));
    // As after a restart whose message was lost.
    bench.board.handle_bytes(bench.now, &[0xFF]);
    bench.advance(3 * SECOND);
    assert_eq!((bench.pin(5), bench.pin(2).0), ((0x03, 0), 0x00));
    assert_eq!(bench.logic.service.counters.restarts, 1);
    assert_eq!(bench.told("motor").duty, Some(0.0));
    assert_eq!(bench.logic.service.trouble(), None);
}

#[test]
fn a_damaged_mode_is_no_restart() {
    let mut bench = Bench::ready(UNO, &["motor=5:pwm"]);
    bench.tell(&pwm("motor", 80.0));
    for _ in 0..20 {
        // The answer is lost, and a damaged one comes instead.
        bench.is_silent = true;
        bench.advance(1_100 * MS);
        bench.is_silent = false;
        let now = bench.begin + bench.now;
        bench
            .logic
            .handle_bytes(now, &[0xF0, 0x6E, 5, 0x01, 0, 0xF7]);
        bench.settle();
    }
    assert_eq!(bench.logic.service.counters.garbled, 20);
    assert_eq!(bench.logic.service.counters.restarts, 0);
    assert_eq!(bench.pin(5), (0x03, 204));
}

#[test]
fn a_lost_level_is_put_right_within_a_second() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.is_silent = true;
    bench.board.connect(2, Some(false));
    bench.advance(20 * MS);
    bench.is_silent = false;
    assert_eq!(bench.told("button").high, Some(true));
    bench.advance(1_100 * MS);
    assert_eq!(bench.told("button").high, Some(false));
    assert_eq!(bench.logic.service.trouble(), None);
}

#[test]
fn an_outage_is_reported_and_outputs_wait_for_a_new_command() {
    let mut bench = Bench::ready(UNO, &PINS);
    bench.tell(&pwm("motor", 80.0));
    bench.is_plugged = false;
    bench.advance(SECOND);
    assert_eq!(bench.logic.service.trouble(), Some("unplugged"));
    assert_eq!(
        bench.tell(&pwm("motor", 80.0)).as_deref(),
        Some("not ready")
    );
    assert_eq!(
        (bench.told("motor").duty, bench.told("button").high),
        (None, None)
    );
    bench.is_plugged = true;
    // It has kept its power.
    bench.advance(3 * SECOND);
    assert_eq!(bench.logic.service.trouble(), None);
    assert_eq!(bench.pin(5), (0x03, 0));
    assert!(matches!(
        &bench.notes[..],
        [Note::Ready(_), Note::Trouble(_), Note::Back(_)]
    ));
}

#[test]
fn silence_is_noticed_and_ends() {
    let sets: [&[&str]; 3] = [&PINS, &["13:output"], &[]];
    for pins in sets {
        let mut bench = Bench::ready(UNO, pins);
        bench.is_silent = true;
        bench.advance(5 * SECOND);
        let trouble = bench.logic.service.trouble().unwrap();
        assert!(trouble.starts_with("the board "), "{trouble}");
        bench.is_silent = false;
        bench.advance(10 * SECOND);
        assert_eq!(bench.logic.service.trouble(), None, "{:?}", bench.notes);
    }
}

#[test]
fn a_board_without_analog_values_is_not_believed() {
    let mut bench = Bench::ready(UNO, &PINS);
    // Only this input is off; questions are answered.
    bench.board.handle_bytes(bench.now, &[0xC1, 0]);
    bench.advance(1_500 * MS);
    let note = bench.notes.get(1).map(ToString::to_string).unwrap();
    assert!(
        note.starts_with("the board sends no values of its analog inputs"),
        "{note}"
    );
    bench.advance(3 * SECOND);
    assert_eq!(bench.logic.service.trouble(), None);
}

#[test]
fn texts_of_the_board_are_logged_once() {
    let mut bench = Bench::ready(UNO, &PINS);
    for _ in 0..3 {
        bench.board.handle_bytes(bench.now, &[0xF4, 13, 12]);
        bench.settle();
    }
    let said = Note::Trouble("the board says: Unknown pin mode".into());
    assert_eq!(bench.notes[1..], [said]);
}
