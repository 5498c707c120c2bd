//! A dialogue with a StarGazer: one command after the other, each with its answer, sent slowly
//! because the device loses characters that arrive too fast. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::protocol::{Command, Message};

/// Time limit for an answer, once the whole command was sent.
const ANSWER: Duration = Duration::from_secs(1);

/// Time limit for storing parameters.
const UPDATE: Duration = Duration::from_secs(60);

/// How often a command is sent before the device counts as disconnected.
const MAX_TRIES: u8 = 3;

/// A parameter and its desired value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, such as `MarkType`.
    pub name: String,
    /// The value as a text.
    pub value: String,
}

/// The remaining commands and answers.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    left: VecDeque<SetupStep>,
    step: Option<SetupStep>,
    tries: u8,
    typing: VecDeque<u8>,
    /// The delay between two characters.
    pause: Duration,
    type_at: Instant,
    until: Instant,
    wanted: Vec<Parameter>,
    written: Vec<String>,
    version: Option<String>,
}

#[derive(Clone, Debug)]
enum SetupStep {
    Say(Command),
    /// Sent if a parameter was written.
    Store,
    Update,
}

impl Talk {
    /// Stops the device, sets these parameters, and starts it again.
    pub(super) fn set_up(now: Instant, pause: Duration, wanted: Vec<Parameter>) -> Self {
        let mut left = VecDeque::from([
            SetupStep::Say(Command::Do("CalcStop")),
            SetupStep::Say(Command::Read(VERSION.into())),
        ]);
        let read = |parameter: &Parameter| SetupStep::Say(Command::Read(parameter.name.clone()));
        left.extend(wanted.iter().map(read));
        left.extend([SetupStep::Store, SetupStep::Say(Command::Do("CalcStart"))]);
        Self::new(now, pause, wanted, left)
    }

    /// Starts the device, in case it was left stopped.
    pub(super) fn wake_up(now: Instant, pause: Duration) -> Self {
        let start = SetupStep::Say(Command::Do("CalcStart"));
        Self::new(now, pause, Vec::new(), [start].into())
    }

    fn new(
        now: Instant,
        pause: Duration,
        wanted: Vec<Parameter>,
        left: VecDeque<SetupStep>,
    ) -> Self {
        let mut talk = Self {
            left,
            step: None,
            tries: 0,
            typing: VecDeque::new(),
            pause,
            type_at: now,
            until: now,
            wanted,
            written: Vec::new(),
            version: None,
        };
        talk.next(now);
        talk
    }

    /// The next character to send now.
    pub(super) fn poll_byte(&mut self, now: Instant) -> Option<u8> {
        if now < self.type_at {
            return None;
        }
        let byte = self.typing.pop_front()?;
        self.type_at = now + self.pause;
        Some(byte)
    }

    /// When the next character or the answer is due.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        match (&self.step, self.typing.is_empty()) {
            (None, _) => None,
            (_, false) => Some(self.type_at),
            (_, true) => Some(self.until),
        }
    }

    /// A message from the device.
    pub(super) fn handle_message(&mut self, now: Instant, message: &Message) {
        // An answer cannot arrive before the whole command was sent.
        if !self.typing.is_empty() {
            return;
        }
        let is_done = match &self.step {
            None | Some(SetupStep::Store) => false,
            Some(SetupStep::Update) => *message == Message::Done("ParameterUpdate".into()),
            Some(SetupStep::Say(command)) => match command.answer(message) {
                None => false,
                Some(value) => {
                    if let Command::Read(name) = command.clone() {
                        self.has_value(&name, value.to_owned());
                    }
                    true
                }
            },
        };
        if is_done {
            self.next(now);
        }
    }

    /// Handles expired timers.
    ///
    /// # Errors
    /// The device does not answer; the text names the command.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), String> {
        let is_waiting = self.step.is_some() && self.typing.is_empty();
        if !is_waiting || now < self.until {
            return Ok(());
        }
        let name = match &self.step {
            Some(SetupStep::Say(command)) if self.tries < MAX_TRIES => {
                let bytes = command.bytes();
                self.type_in(now, bytes);
                return Ok(());
            }
            Some(SetupStep::Say(command)) => command.name(),
            None | Some(SetupStep::Store | SetupStep::Update) => "SetEnd",
        };
        Err(format!("the StarGazer does not answer {name}"))
    }

    /// Whether all commands were sent and answered.
    pub(super) fn is_done(&self) -> bool {
        self.step.is_none()
    }

    /// Whether the dialogue only starts the device: then any message counts as an answer.
    pub(super) fn only_wakes(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The firmware version, if it was requested.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The parameters that had other values.
    pub(super) fn written(&self) -> &[String] {
        &self.written
    }

    fn next(&mut self, now: Instant) {
        self.tries = 0;
        self.step = self.left.pop_front();
        match &self.step {
            None => {}
            Some(SetupStep::Store) => {
                if !self.written.is_empty() {
                    self.left.push_front(SetupStep::Update);
                    let end = Command::Do("SetEnd");
                    self.left.push_front(SetupStep::Say(end));
                }
                self.next(now);
            }
            Some(SetupStep::Update) => self.until = now + UPDATE,
            Some(SetupStep::Say(command)) => {
                let bytes = command.bytes();
                self.type_in(now, bytes);
            }
        }
    }

    fn type_in(&mut self, now: Instant, bytes: Vec<u8>) {
        self.tries += 1;
        // Keeps the delay after the previous character.
        self.type_at = self.type_at.max(now);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.until = self.type_at + self.pause.saturating_mul(length) + ANSWER;
        self.typing = bytes.into();
    }

    fn has_value(&mut self, name: &str, value: String) {
        if name == VERSION {
            self.version = Some(value);
            return;
        }
        let wanted = self.wanted.iter().find(|wanted| wanted.name == name);
        if let Some(wanted) = wanted.filter(|wanted| wanted.value != value) {
            self.written.push(name.to_owned());
            let write = Command::Write(wanted.name.clone(), wanted.value.clone());
            self.left.push_front(SetupStep::Say(write));
        }
    }
}

const VERSION: &str = "Version";

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const PAUSE: Duration = Duration::from_millis(30);

    /// The dialogue, a clock, and the characters sent.
    struct Bench {
        talk: Talk,
        now: Instant,
        typed: String,
        last: Option<Instant>,
    }

    impl Bench {
        fn new(wanted: &[(&str, &str)]) -> Self {
            let now = Instant::now();
            let wanted = wanted.iter().map(|(name, value)| Parameter {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
            });
            Self {
                talk: Talk::set_up(now, PAUSE, wanted.collect()),
                now,
                typed: String::new(),
                last: None,
            }
        }

        /// Advances the clock until a whole command has been sent.
        fn command(&mut self) -> Result<String, String> {
            while !self.typed.ends_with('`') {
                let Some(at) = self.talk.wake_at() else {
                    return Ok(String::new());
                };
                self.now = self.now.max(at);
                self.talk.handle_timeout(self.now)?;
                if let Some(byte) = self.talk.poll_byte(self.now) {
                    let last = self.last.replace(self.now);
                    assert!(last.is_none_or(|last| self.now - last >= PAUSE));
                    self.typed.push(byte.into());
                }
            }
            Ok(std::mem::take(&mut self.typed))
        }

        fn done(&mut self, text: &str) {
            self.talk
                .handle_message(self.now, &Message::Done(text.into()));
        }

        fn value(&mut self, name: &str, value: &str) {
            let (name, value) = (name.to_owned(), value.to_owned());
            self.talk
                .handle_message(self.now, &Message::Value { name, value });
        }
    }

    #[test]
    fn correct_parameters_are_not_written() {
        let mut bench = Bench::new(&[("RefID", "24")]);
        assert_eq!(bench.command().unwrap(), "~#CalcStop`");
        bench.done("CalcStop");
        assert_eq!(bench.command().unwrap(), "~@Version`");
        bench.done("Version");
        bench.value("Version", "1.2");
        assert_eq!(bench.command().unwrap(), "~@RefID`");
        bench.value("RefID", "24");
        assert_eq!(bench.command().unwrap(), "~#CalcStart`");
        assert!(!bench.talk.is_done());
        bench.done("CalcStart");
        assert!(bench.talk.is_done() && bench.talk.wake_at().is_none());
        assert_eq!(bench.talk.version(), Some("1.2"));
        assert!(bench.talk.written().is_empty());
    }

    #[test]
    fn wrong_parameters_are_written_and_stored() {
        let mut bench = Bench::new(&[("RefID", "24"), ("MarkType", "HLD1L")]);
        assert_eq!(bench.command().unwrap(), "~#CalcStop`");
        bench.done("CalcStop");
        assert_eq!(bench.command().unwrap(), "~@Version`");
        bench.value("Version", "1.2");
        assert_eq!(bench.command().unwrap(), "~@RefID`");
        bench.value("RefID", "16");
        assert_eq!(bench.command().unwrap(), "~#RefID|24`");
        bench.done("RefID|24");
        assert_eq!(bench.command().unwrap(), "~@MarkType`");
        bench.value("MarkType", "HLD1S");
        assert_eq!(bench.command().unwrap(), "~#MarkType|HLD1L`");
        bench.done("MarkType|HLD1L");
        assert_eq!(bench.command().unwrap(), "~#SetEnd`");
        bench.done("SetEnd");
        // Storing takes a while.
        bench.now += 50_000 * MS;
        assert_eq!(bench.talk.handle_timeout(bench.now), Ok(()));
        bench.done("ParameterUpdate");
        assert_eq!(bench.command().unwrap(), "~#CalcStart`");
        bench.done("CalcStart");
        assert!(bench.talk.is_done());
        assert_eq!(bench.talk.written(), ["RefID", "MarkType"]);
    }

    #[test]
    fn a_command_is_repeated_before_giving_up() {
        let mut bench = Bench::new(&[]);
        let begin = bench.now;
        for _ in 0..MAX_TRIES {
            assert_eq!(bench.command().unwrap(), "~#CalcStop`");
        }
        let error = bench.command().unwrap_err();
        assert_eq!(error, "the StarGazer does not answer CalcStop");
        assert!(bench.now - begin < 5_000 * MS);
    }

    #[test]
    fn unstored_parameters_are_reported() {
        let mut bench = Bench::new(&[("RefID", "24")]);
        bench.command().unwrap();
        bench.done("CalcStop");
        bench.command().unwrap();
        bench.value("Version", "1.2");
        bench.command().unwrap();
        bench.value("RefID", "16");
        bench.command().unwrap();
        bench.done("RefID|25");
        bench.done("RefID|24");
        bench.command().unwrap();
        bench.done("SetEnd");
        let error = bench.command().unwrap_err();
        assert_eq!(error, "the StarGazer does not answer SetEnd");
    }
}
