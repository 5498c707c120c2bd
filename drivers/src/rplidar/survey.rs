//! What a scanner says of itself, and how to scan with it. PURE.
//!
//! The numbers and the names of modes differ from unit to unit, so a scanner is asked for them:
//!
//! ```text
//!  info, health --> sample times, motor --> typical mode, or the names of all --> that mode
//! ```
//!
//! Old firmware does not know all questions, and is silent then.

use std::collections::VecDeque;
use std::time::Duration;

use super::capsule::Format;
use super::product::{Motor, Product};
use super::wire::{self, Question};

/// The firmware from which on a scanner knows EXPRESS_SCAN, and describes its modes.
const HAS_EXPRESS: (u8, u8) = (1, 17);
const HAS_MODES: (u8, u8) = (1, 24);
/// More modes are not asked for.
const MAX_MODES: u16 = 16;
/// The time between two points, in us, unless the scanner says it.
const STANDARD_US: f64 = 500.0;
const EXPRESS_US: f64 = 250.0;
/// The power of the motor for about ten turns per second.
const USUAL_PWM: u16 = 660;
const USUAL_RPM: u16 = 600;

/// Its answer when it has stopped to protect itself.
const PROTECTED: u8 = 2;

/// The questions and the answers.
#[derive(Clone, Debug)]
pub struct Survey {
    model: Option<Product>,
    mode: Option<String>,
    left: VecDeque<Question>,
    product: Option<Product>,
    name: String,
    firmware: (u8, u8),
    serial: String,
    fault: Option<u16>,
    /// Standard and express, in us.
    sample_us: (f64, f64),
    has_board: bool,
    rpm: u16,
    names: Vec<String>,
    found: Option<Mode>,
}

/// What a scanner says of a mode.
#[derive(Clone, Debug, PartialEq)]
struct Mode {
    number: u16,
    name: String,
    answer: Option<u8>,
    sample_us: f64,
    max_mm: Option<u16>,
}

/// How to scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The model.
    pub product: Product,
    /// Its full name, such as "A1M8".
    pub name: String,
    /// The firmware, such as "1.29".
    pub firmware: String,
    /// The serial number.
    pub serial: String,
    /// The name of the mode.
    pub mode: String,
    /// The request that starts the scan.
    pub start: Vec<u8>,
    /// How points are sent.
    pub format: Format,
    /// The time between two points.
    pub sample_time: Duration,
    /// The largest distance in the mode, if it is known.
    pub max_mm: Option<u16>,
    /// The requests that start and stop the motor, if it needs one.
    pub motor: Option<(Vec<u8>, Vec<u8>)>,
}

impl Survey {
    /// Nothing is known yet. `model` and `mode` are those that the user wants.
    #[must_use]
    pub fn new(model: Option<Product>, mode: Option<&str>) -> Self {
        Self {
            model,
            mode: mode.filter(|mode| !is(mode, "typical")).map(str::to_owned),
            left: [Question::Info, Question::Health].into(),
            product: None,
            name: String::new(),
            firmware: (0, 0),
            serial: String::new(),
            fault: None,
            sample_us: (STANDARD_US, EXPRESS_US),
            has_board: false,
            rpm: USUAL_RPM,
            names: Vec::new(),
            found: None,
        }
    }

    /// The question to ask now; `None` if all are answered.
    #[must_use]
    pub fn question(&self) -> Option<Question> {
        self.left.front().copied()
    }

    /// The code of the error for which the scanner has stopped.
    #[must_use]
    pub fn fault(&self) -> Option<u16> {
        self.fault
    }

    /// The question is not answered. Returns whether the scanner may not know it.
    pub fn handle_silence(&mut self) -> bool {
        let asked = self.left.pop_front();
        !matches!(asked, Some(Question::Info | Question::Health))
    }

    /// Takes the answer to the question.
    ///
    /// # Errors
    /// This driver cannot use the scanner: the reason.
    pub fn handle(&mut self, data: &[u8]) -> Result<(), String> {
        let Some(question) = self.left.pop_front() else {
            return Ok(());
        };
        match (question, data) {
            (Question::Info, &[model, minor, major, _, ref serial @ ..]) => {
                self.identify(model)?;
                self.firmware = (major, minor);
                self.serial = serial.iter().map(|byte| format!("{byte:02X}")).collect();
            }
            (Question::Health, &[status, low, high, ..]) => {
                let code = u16::from_le_bytes([low, high]);
                self.fault = (status == PROTECTED).then_some(code);
                self.ask_more();
            }
            (Question::SampleTimes, &[a, b, c, d, ..]) => {
                let us = |bytes| f64::from(u16::from_le_bytes(bytes));
                let usual = self.sample_us;
                self.sample_us = (or(us([a, b]), usual.0), or(us([c, d]), usual.1));
            }
            (Question::Board, &[flags, ..]) => self.has_board = flags & 1 != 0,
            (Question::UsualSpeed, &[low, high, ..]) => {
                let rpm = u16::from_le_bytes([low, high]);
                self.rpm = if rpm > 0 { rpm } else { self.rpm };
            }
            (Question::ModeCount, &[low, high, ..]) => {
                let count = u16::from_le_bytes([low, high]).min(MAX_MODES);
                self.left.extend((0..count).map(Question::Name));
            }
            (Question::TypicalMode, &[low, high, ..]) => {
                let number = u16::from_le_bytes([low, high]);
                self.choose(number, format!("mode {number}"));
                self.left.push_front(Question::Name(number));
            }
            (Question::Name(number), _) => self.handle_name(number, data),
            (Question::SampleTime(_), &[a, b, c, d, ..]) => {
                let us = f64::from(u32::from_le_bytes([a, b, c, d])) / 256.0;
                self.change_mode(|mode| mode.sample_us = us);
            }
            (Question::MaxDistance(_), &[a, b, c, d, ..]) => {
                let mm = f64::from(u32::from_le_bytes([a, b, c, d])) / 256.0 * 1_000.0;
                // Saturates.
                self.change_mode(|mode| mode.max_mm = (mm > 0.0).then_some(mm as u16));
            }
            (Question::Answer(_), &[answer, ..]) => {
                self.change_mode(|mode| mode.answer = Some(answer));
            }
            // It knows the question, but has no answer.
            _ => {}
        }
        Ok(())
    }

    fn identify(&mut self, model: u8) -> Result<(), String> {
        let said = Product::of(model);
        self.product = match (self.model, said) {
            (Some(wanted), Some(said)) if wanted != said => {
                let (wanted, name) = (wanted.name(), said.full_name(model));
                return Err(format!(
                    "the scanner is an RPLIDAR {name}, not {wanted}: check --model and --port"
                ));
            }
            (None, None) => {
                return Err(format!(
                    "the scanner says that it is model {model:#04x}, which is no known RPLIDAR: \
                     check --port, or choose the most similar --model"
                ));
            }
            (wanted, said) => wanted.or(said),
        };
        self.name = match (said, self.product) {
            (Some(said), _) => said.full_name(model),
            (None, product) => format!("{} ({model:#04x})", product.map_or("", Product::name)),
        };
        Ok(())
    }

    fn ask_more(&mut self) {
        let Some(product) = self.product else {
            return;
        };
        if self.firmware >= HAS_EXPRESS {
            self.left.push_back(Question::SampleTimes);
        }
        match product.motor() {
            Motor::Itself => {}
            Motor::Pwm => self.left.push_back(Question::Board),
            Motor::Rpm => self.left.push_back(Question::UsualSpeed),
        }
        if product.has_modes() || self.firmware >= HAS_MODES {
            self.left.push_back(match self.mode {
                Some(_) => Question::ModeCount,
                None => Question::TypicalMode,
            });
        }
    }

    fn handle_name(&mut self, number: u16, data: &[u8]) {
        let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(text).into_owned();
        if name.is_empty() {
            return;
        }
        match &self.mode {
            None => self.change_mode(|mode| mode.name = name),
            Some(wanted) if is(wanted, &name) => {
                self.left.clear();
                self.choose(number, name);
            }
            Some(_) => self.names.push(name),
        }
    }

    fn choose(&mut self, number: u16, name: String) {
        self.found = Some(Mode {
            number,
            name,
            answer: None,
            sample_us: 0.0,
            max_mm: None,
        });
        self.left.extend([
            Question::Answer(number),
            Question::SampleTime(number),
            Question::MaxDistance(number),
        ]);
    }

    fn change_mode(&mut self, change: impl FnOnce(&mut Mode)) {
        if let Some(mode) = &mut self.found {
            change(mode);
        }
    }

    /// How to scan, once all questions are answered.
    ///
    /// # Errors
    /// The scanner has no such mode, or this driver cannot read it.
    pub fn plan(&self) -> Result<Plan, String> {
        let product = self.product.ok_or("the scanner does not say what it is")?;
        let mode = match &self.found {
            Some(mode) => mode.clone(),
            None => self.old_mode()?,
        };
        // A scanner that does not say it has no other.
        let answer = mode.answer.unwrap_or(Format::Nodes as u8);
        let format = Format::of(answer).ok_or_else(|| {
            let name = &mode.name;
            format!("the mode {name} sends data of type {answer:02x}: choose another --mode")
        })?;
        let usual_us = match format {
            Format::Nodes => self.sample_us.0,
            _ => self.sample_us.1,
        };
        let motor = match product.motor() {
            Motor::Rpm => Some((wire::motor_rpm(self.rpm), wire::motor_rpm(0))),
            Motor::Pwm if self.has_board => Some((wire::motor_pwm(USUAL_PWM), wire::motor_pwm(0))),
            Motor::Pwm | Motor::Itself => None,
        };
        let (major, minor) = self.firmware;
        Ok(Plan {
            product,
            name: self.name.clone(),
            firmware: format!("{major}.{minor:02}"),
            serial: self.serial.clone(),
            start: match format {
                Format::Nodes => wire::SCAN.to_vec(),
                _ => wire::express_scan(mode.number),
            },
            format,
            sample_time: Duration::from_secs_f64(or(mode.sample_us, usual_us) / 1e6),
            max_mm: mode.max_mm,
            mode: mode.name,
            motor,
        })
    }

    /// The mode of a scanner that does not describe its modes.
    fn old_mode(&self) -> Result<Mode, String> {
        let describes = self.product.is_some_and(Product::has_modes);
        let has_express = self.firmware >= HAS_EXPRESS && !describes;
        let known = ["Standard", "Express"];
        let (names, usual) = match (self.names.is_empty(), has_express) {
            (false, _) => (self.names.join(", "), known[0]),
            (true, true) => (known.join(", "), known[1]),
            (true, false) => (known[0].to_owned(), known[0]),
        };
        let wanted = self.mode.as_deref().unwrap_or(usual);
        let number = known.iter().position(|name| is(name, wanted));
        let number = number.filter(|number| self.names.is_empty() && (*number == 0 || has_express));
        let Some(number) = number else {
            return Err(format!(
                "the scanner has no mode {wanted}, but {names}: check --mode"
            ));
        };
        let format = [Format::Nodes, Format::Express][number];
        Ok(Mode {
            // Always the old express mode.
            number: 0,
            name: known[number].to_owned(),
            answer: Some(format as u8),
            sample_us: 0.0,
            max_mm: None,
        })
    }
}

/// A number, or another one if it says nothing.
fn or(value: f64, usual: f64) -> f64 {
    if value > 0.0 { value } else { usual }
}

/// Whether two names are the same.
fn is(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests;
