//! Decides what a board is told, and what follows from what it says. PURE.
//!
//! ```text
//!           opened            version            abilities             mode of a pin
//!  Absent ----------> Waking ---------> Asking ------------> SettingUp ------------> Ready
//!    ^                 | ^                |                    |     ^               |  |
//!    +--- no answer ---+-|----------------+--------------------+     +- it restarts -+  |
//!                        +------------------------------------------- it is silent -----+
//! ```
//!
//! Report each event to [`FirmataLogic`], drain [`FirmataLogic::poll_output`] after every change, and
//! carry out each output. Call [`FirmataLogic::handle_timeout`] at [`FirmataLogic::wake_at`].
//!
//! - Opening the port restarts most boards. Nothing but questions is sent before the board has said that
//!   it speaks Firmata and what its pins can do, so nothing is set on a board with another program.
//! - A servo gets its first pulse with its first command: without one, it would turn to the middle.
//! - A board has no memory of its settings. Once a second it is asked for the mode of a pin, and sends
//!   all levels again, so a lost or damaged message is put right. If it has restarted, it is set up again.
//! - A board that is silent may be starting. Its port stays open then: to open it again would restart it.
//! - Values are only those that the board has sent since then.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use amber_proto::board::BoardInfo;

use super::Settings;
use super::abilities::{described, resolution, spots};
use super::protocol::{Abilities, Command, Message, Parser, code};
use crate::board::{Mode, Model, Order, Pin, Service, Spot, Value, initial};
use crate::servos::Note;

/// How often a board that starts is asked.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How long a board may start: the boot loader waits 2 s, and then it shows its version with its light.
const STARTS: Duration = Duration::from_secs(6);
/// Time limit for an answer. The longest one has 1200 bytes.
const ANSWER: Duration = Duration::from_secs(1);
/// The interval between two checks.
const CHECK: Duration = Duration::from_secs(1);
/// How often a question is sent before the board counts as gone.
const MAX_TRIES: u8 = 3;
/// How many wrong modes in a row are no damaged bytes.
const ENOUGH_DOUBTS: u8 = 2;
/// So many missing analog values in a row, and a second more, and there are none.
const MISSING: u32 = 10;

/// The version of the protocol that has all commands of this driver.
const VERSION: (u8, u8) = (2, 5);

/// The pulses for which a servo is configured. Its own limits are those of the configuration of the
/// driver.
const PULSES_US: (u16, u16) = (544, 2400);

const RESTARTED: &str = "the board has restarted: its outputs were low, and have their safe values now. \
                         Check its supply";

const SILENT: &str = "the board does not answer any more: check its supply and its cable";
const NO_VALUES: &str = "the board sends no values of its analog inputs: check its cable, or restart it with \
                         its button";

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open the connection, then call [`FirmataLogic::opened`] or [`FirmataLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the board.
    Write(Vec<u8>),
    /// Nothing is left to do.
    End,
}

/// The logic of the driver.
#[derive(Debug)]
pub struct FirmataLogic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    /// Whether anything has arrived since the port was opened.
    has_heard: bool,
    said: Said,
    /// The pins that have pulses for a servo.
    attached: BTreeSet<u8>,
    /// The number of the pin whose mode was asked last.
    checked: u8,
    doubts: u8,
    analog_heard: Instant,
    last_words: Option<Vec<u8>>,
    outputs: VecDeque<Output>,
    pub(super) service: Service,
}

/// What a board has said of itself since the port was opened.
#[derive(Clone, Debug, Default)]
struct Said {
    version: Option<(u8, u8)>,
    firmware: Option<String>,
    abilities: Option<Vec<Abilities>>,
    channels: Option<Vec<Option<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent {
        until: Instant,
    },
    Opening,
    Waking {
        since: Instant,
        ask_at: Instant,
    },
    Asking {
        until: Instant,
        tries: u8,
    },
    SettingUp {
        until: Instant,
        tries: u8,
    },
    /// Without tries, nothing was asked.
    Ready {
        until: Instant,
        tries: u8,
    },
    Ended,
}

impl Model for FirmataLogic {
    fn service(&mut self) -> &mut Service {
        &mut self.service
    }

    fn carry_out(&mut self, orders: &[Order]) {
        for order in orders {
            let bytes = self.bytes(*order, true);
            self.write(bytes);
        }
    }

    fn info(&self) -> BoardInfo {
        let Said {
            version,
            firmware,
            abilities,
            channels,
        } = &self.said;
        let abilities = abilities.as_deref().unwrap_or_default();
        let channels = channels.as_deref().unwrap_or_default();
        BoardInfo {
            protocol: version.map(|(major, minor)| format!("Firmata {major}.{minor}")),
            firmware: firmware.clone(),
            restarts: Some(
                self.service
                    .counters
                    .restarts
                    .try_into()
                    .unwrap_or(u32::MAX),
            ),
            pins: described(abilities, channels),
        }
    }
}

impl FirmataLogic {
    /// Starts without a connection.
    #[must_use]
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            phase: Phase::Opening,
            parser: Parser::default(),
            has_heard: false,
            said: Said::default(),
            attached: BTreeSet::new(),
            checked: 0,
            doubts: 0,
            analog_heard: now,
            last_words: None,
            outputs: VecDeque::from([Output::Open]),
            service: Service::new(
                settings.pins.clone(),
                settings.reference_v,
                settings.publish_interval,
                now,
            ),
            settings,
        }
    }

    /// The connection is open.
    pub fn opened(&mut self, now: Instant) {
        if self.phase == Phase::Ended {
            return;
        }
        self.begin(now);
    }

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        // A farewell to a port that has failed, too, fails.
        if !matches!(self.phase, Phase::Absent { .. } | Phase::Ended) {
            self.last_words = None;
            self.give_up(now, problem.to_owned());
        }
    }

    /// Bytes from the board.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.has_heard = true;
        for byte in bytes {
            if let Some(message) = self.parser.push(*byte) {
                self.handle_message(now, message);
            }
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Waking { since, .. } if now >= since + STARTS => {
                let trouble = self.never_woke();
                self.give_up(now, trouble);
            }
            Phase::Waking { since, ask_at } if now >= ask_at => self.wake(since, now),
            Phase::Asking { until, tries } if now >= until => match tries < MAX_TRIES {
                true => self.ask(now, tries + 1),
                false => self.give_up(
                    now,
                    "the board speaks Firmata, but does not say what its pins can do: put \
                     StandardFirmata on it"
                        .to_owned(),
                ),
            },
            Phase::SettingUp { until, tries } if now >= until => match tries < MAX_TRIES {
                true => self.set_up(now, tries + 1),
                false => self.give_up(now, SILENT.to_owned()),
            },
            Phase::Ready { until, tries } if now >= until => match tries < MAX_TRIES {
                true => self.check(now, tries + 1),
                false => self.lose(now, SILENT),
            },
            _ => {}
        }
        if self.analog_due().is_some_and(|due| now >= due) {
            self.lose(now, NO_VALUES);
        }
    }

    /// Shuts down, after everything that moves got its safe value.
    pub fn shut_down(&mut self) {
        self.part();
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::End);
    }

    /// The guard has given everything that moves its safe value, because the driver was silent.
    pub fn guard_acted(&mut self) {
        let text = "stopped what moves: this driver did not run for a second";
        self.service.say(Note::Event(text));
        let stops = self.service.stops();
        self.service.take(&[], &stops);
        // A write that was under way may have come behind that of the guard, so they are written again.
        self.carry_out(&stops);
    }

    /// What gives everything that moves its safe value, while the board is known.
    #[must_use]
    pub fn last_words(&self) -> Option<Vec<u8>> {
        self.last_words.clone()
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`FirmataLogic::handle_timeout`] if nothing happens earlier.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        let due = match self.phase {
            Phase::Opening | Phase::Ended => None,
            Phase::Absent { until }
            | Phase::Asking { until, .. }
            | Phase::SettingUp { until, .. }
            | Phase::Ready { until, .. } => Some(until),
            Phase::Waking { since, ask_at } => Some(ask_at.min(since + STARTS)),
        };
        let all = [due, self.analog_due(), self.service.publish_at()];
        all.into_iter().flatten().min()
    }

    /// When it is certain that no analog values come.
    fn analog_due(&self) -> Option<Instant> {
        let silence = self.settings.sampling_interval * MISSING + Duration::from_secs(1);
        let is_ready = matches!(self.phase, Phase::Ready { .. });
        let has_analog = || self.analog().next().is_some();
        (is_ready && has_analog()).then(|| self.analog_heard + silence)
    }

    fn handle_message(&mut self, now: Instant, message: Message) {
        match (message, self.phase) {
            (Message::Version(major, minor), Phase::Waking { .. }) => {
                self.said.version = Some((major, minor));
                if major == VERSION.0 && minor >= VERSION.1 {
                    self.ask(now, 1);
                }
            }
            (Message::Firmware(name), phase) => {
                self.said.firmware = Some(name);
                // Nobody has asked.
                if let Phase::Ready { .. } = phase {
                    self.restarted(now);
                }
            }
            (Message::Abilities(abilities), Phase::Asking { .. }) => {
                self.said.abilities = Some(abilities);
                self.asked(now);
            }
            (Message::Channels(channels), Phase::Asking { .. }) => {
                self.said.channels = Some(channels);
                self.asked(now);
            }
            (Message::Pin(pin, _), Phase::SettingUp { .. }) if pin == self.checked => {
                self.works(now);
            }
            (Message::Pin(pin, mode), Phase::Ready { tries: 1.., .. }) if pin == self.checked => {
                self.handle_mode(now, mode);
            }
            (Message::Port(port, levels), Phase::SettingUp { .. } | Phase::Ready { .. }) => {
                self.handle_levels(port, levels);
            }
            (Message::Channel(channel, value), Phase::SettingUp { .. } | Phase::Ready { .. }) => {
                self.handle_value(now, channel, value);
            }
            (Message::Text(text), _) => self.service.remark(format!("the board says: {text}")),
            // The answer to an earlier question.
            _ => {}
        }
    }

    /// Nothing is known of the board.
    fn begin(&mut self, now: Instant) {
        self.parser.clear();
        self.has_heard = false;
        self.said = Said::default();
        self.write(Command::End.encode());
        self.wake(now, now);
    }

    /// Asks whether the board speaks Firmata.
    fn wake(&mut self, since: Instant, now: Instant) {
        self.write(Command::AskVersion.encode());
        let ask_at = now + ASK_AGAIN;
        self.phase = Phase::Waking { since, ask_at };
    }

    /// Asks what the board is. Some programs have no name, so the last answers count.
    fn ask(&mut self, now: Instant, tries: u8) {
        for question in [
            Command::AskFirmware,
            Command::AskAbilities,
            Command::AskChannels,
        ] {
            self.write(question.encode());
        }
        let until = now + ANSWER;
        self.phase = Phase::Asking { until, tries };
    }

    /// Sets the board up, if it has said everything.
    fn asked(&mut self, now: Instant) {
        let (Some(abilities), Some(channels)) = (&self.said.abilities, &self.said.channels) else {
            return;
        };
        let pins = self.service.pins().map(|(pin, _)| pin);
        let spots = spots(pins, abilities, channels);
        self.service.locate(spots);
        self.set_up(now, 1);
    }

    /// Sends all settings, and asks for the mode of a pin: its answer comes last.
    fn set_up(&mut self, now: Instant, tries: u8) {
        // The configuration allows no more than a second.
        let interval_ms = self.settings.sampling_interval.as_millis() as u16;
        let mut bytes = Command::Interval(interval_ms).encode();
        let pins = self.service.usable().map(|(pin, number, it)| {
            let start = initial(it).map(|value| Order { pin, value });
            (number, it.mode, start, it.safe == Some(Value::Released))
        });
        let pins: Vec<_> = pins.collect();
        for (number, mode, start, is_released) in pins {
            match mode {
                // It may still turn, if the board has not restarted.
                Mode::Servo if is_released => bytes.extend(released(number)),
                Mode::Servo => {}
                mode => bytes.extend(Command::Mode(number, mode).encode()),
            }
            bytes.extend(start.into_iter().flat_map(|order| self.bytes(order, true)));
        }
        let reports = self
            .analog()
            .map(|(.., channel)| Command::ReportChannel(channel));
        bytes.extend(reports.flat_map(Command::encode));
        self.write(bytes);
        self.ask_levels();
        self.checked = self.next_checked();
        self.write(Command::AskPin(self.checked).encode());
        let until = now + ANSWER;
        self.phase = Phase::SettingUp { until, tries };
    }

    /// The board has all settings.
    fn works(&mut self, now: Instant) {
        let until = now + CHECK;
        self.phase = Phase::Ready { until, tries: 0 };
        self.doubts = 0;
        self.analog_heard = now;
        let firmware = self.said.firmware.clone();
        let count = self.said.abilities.as_ref().map_or(0, Vec::len);
        self.service.is_well(now, || {
            let firmware = firmware.unwrap_or_else(|| "a program without a name".to_owned());
            format!("{firmware}, {count} pins")
        });
        let all = self.service.all_safe().into_iter();
        let words: Vec<_> = all.flat_map(|order| self.bytes(order, false)).collect();
        self.last_words = (!words.is_empty()).then(|| [Command::End.encode(), words].concat());
    }

    /// Asks for the mode of the next pin, and, the first time, for all levels.
    fn check(&mut self, now: Instant, tries: u8) {
        if tries == 1 {
            self.checked = self.next_checked();
            self.ask_levels();
        }
        self.write(Command::AskPin(self.checked).encode());
        let until = now + ANSWER;
        self.phase = Phase::Ready { until, tries };
    }

    /// A board without pins is asked for the first one, to know whether it is there.
    fn next_checked(&self) -> u8 {
        let numbers = || self.service.usable().map(|(_, number, _)| number);
        let next = numbers().filter(|number| *number > self.checked).min();
        next.or_else(|| numbers().min()).unwrap_or(0)
    }

    /// The digital inputs: the index and the number of each.
    fn inputs(&self) -> impl Iterator<Item = (usize, u8)> {
        let usable = self.service.usable();
        let inputs = usable.filter(|(.., pin)| pin.mode.is_input());
        inputs.map(|(index, number, _)| (index, number))
    }

    /// The analog inputs: the index, the number and the channel of each.
    fn analog(&self) -> impl Iterator<Item = (usize, u8, u8)> {
        let place = |(index, (pin, spot)): (usize, (&Pin, &Spot))| {
            let works = pin.mode == Mode::Analog && spot.problem.is_none();
            Some((index, spot.number?, spot.channel?)).filter(|_| works)
        };
        self.service.pins().enumerate().filter_map(place)
    }

    fn ask_levels(&mut self) {
        let ports: BTreeSet<u8> = self.inputs().map(|(_, number)| number / 8).collect();
        for port in ports {
            self.write(Command::ReportPort(port).encode());
        }
    }

    /// The mode of the checked pin.
    fn handle_mode(&mut self, now: Instant, mode: Option<u8>) {
        let is_checked = |(_, number, _): &(usize, u8, &Pin)| *number == self.checked;
        let pin = self.service.usable().find(is_checked);
        let expected = pin.and_then(|(_, number, pin)| match pin.mode {
            // Without pulses, it has any mode.
            Mode::Servo if !self.attached.contains(&number) => None,
            mode => Some(code(mode)),
        });
        if expected.is_none() || expected == mode {
            self.doubts = 0;
            let until = now + CHECK;
            self.phase = Phase::Ready { until, tries: 0 };
            return;
        }
        self.service.counters.garbled += 1;
        self.doubts += 1;
        match self.doubts < ENOUGH_DOUBTS {
            // A byte may be damaged.
            true => self.check(now, 2),
            false => self.restarted(now),
        }
    }

    fn restarted(&mut self, now: Instant) {
        self.service.counters.restarts += 1;
        self.service.say(Note::Event(RESTARTED));
        // If it has not, a damaged message has looked like it, and something may still move.
        self.part();
        self.set_up(now, 1);
    }

    fn handle_levels(&mut self, port: u8, levels: u8) {
        let of_port = self.inputs().filter(|(_, number)| number / 8 == port);
        let found: Vec<_> = of_port
            .map(|(pin, number)| (pin, levels & (1 << (number % 8)) != 0))
            .collect();
        for (pin, high) in found {
            self.service.set_level(pin, high);
        }
    }

    fn handle_value(&mut self, now: Instant, channel: u8, value: u16) {
        let found = self.analog().find(|(.., it)| *it == channel);
        let Some((index, number, _)) = found else {
            return;
        };
        let most = self.most(number, Mode::Analog);
        if value > most {
            self.service.counters.garbled += 1;
            return;
        }
        self.analog_heard = now;
        let fraction = f64::from(value) / f64::from(most);
        self.service.set_fraction(index, fraction);
    }

    /// The largest value of a pin.
    fn most(&self, number: u8, mode: Mode) -> u16 {
        let abilities = self.said.abilities.as_deref().unwrap_or_default();
        let modes = abilities.get(usize::from(number));
        let bits = modes.and_then(|modes| resolution(modes, mode));
        // A message has 14.
        (1 << bits.unwrap_or(8).clamp(1, 14)) - 1
    }

    /// The bytes of an order. `attaches` says whether a servo without pulses gets some.
    fn bytes(&mut self, order: Order, attaches: bool) -> Vec<u8> {
        let is_it = |(index, ..): &(usize, u8, &Pin)| *index == order.pin;
        let found = self.service.usable().find(is_it);
        let Some((_, number, pin)) = found else {
            return Vec::new();
        };
        let longest_us = pin.range.max_us.max(PULSES_US.1);
        match order.value {
            Value::Level(high) => Command::Level(number, high).encode(),
            Value::Duty(percent) => {
                let most = f64::from(self.most(number, Mode::Pwm));
                // A percentage of 14 bits.
                let value = (percent / 100.0 * most).round() as u16;
                Command::Value(number, value).encode()
            }
            Value::Pulse(us) => {
                let mut bytes = Vec::new();
                if attaches && self.attached.insert(number) {
                    bytes.extend(Command::ServoRange(number, PULSES_US.0, longest_us).encode());
                }
                bytes.extend(Command::Value(number, us).encode());
                bytes
            }
            Value::Released => {
                if attaches {
                    self.attached.remove(&number);
                }
                released(number)
            }
        }
    }

    /// Sends bytes, together with those that were not taken yet.
    fn write(&mut self, bytes: Vec<u8>) {
        match self.outputs.back_mut() {
            _ if bytes.is_empty() => {}
            Some(Output::Write(waiting)) => waiting.extend(bytes),
            _ => self.outputs.push_back(Output::Write(bytes)),
        }
    }

    /// Starts over, and leaves the port open. Logs the problem unless it was already logged.
    fn lose(&mut self, now: Instant, trouble: &str) {
        self.part();
        self.service.complain(now, trouble.to_owned());
        self.begin(now);
    }

    /// The same, with the port.
    fn give_up(&mut self, now: Instant, trouble: String) {
        self.part();
        self.service.complain(now, trouble);
        self.outputs.push_back(Output::Close);
        let until = self.service.try_again_at(now);
        self.phase = Phase::Absent { until };
    }

    /// The board may still hear what makes it safe, but nothing is known of it any more.
    fn part(&mut self) {
        if let Some(last_words) = self.last_words.take() {
            self.write(last_words);
        }
        self.service.forget();
        self.attached.clear();
    }

    fn never_woke(&self) -> String {
        let baud = self.settings.baud;
        match (self.said.version, self.has_heard) {
            (Some((major, minor)), _) => format!(
                "the board speaks Firmata {major}.{minor}, and this driver needs 2.5 or a later 2: put a \
                 current StandardFirmata on it"
            ),
            (None, false) => format!(
                "nothing arrives at {baud} baud: check --port and --baud, and whether the board has a \
                 program such as StandardFirmata"
            ),
            (None, true) => format!(
                "what arrives at {baud} baud is not Firmata: check --baud (57600 for StandardFirmata, \
                 115200 for FirmataExpress), and which program the board has"
            ),
        }
    }
}

/// Ends the pulses of a servo: as a digital output, the pin is low.
fn released(number: u8) -> Vec<u8> {
    Command::Mode(number, Mode::Output).encode()
}

#[cfg(test)]
mod tests;
