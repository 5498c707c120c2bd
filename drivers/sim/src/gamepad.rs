//! A simulated gamepad: what a person does with it in, events of Linux out. PURE.
//!
//! It stands for an input device of Linux. A program that has opened it sends a line, as it would ask
//! Linux what the device is. The answer is a line of JSON: the name, the number of the maker, the ranges
//! of the axes, and the buttons that are held. Then follow the changes, each a `struct input_event` of a
//! system with 64 bits.
//!
//! Sticks and triggers move as a hand moves them, and tremble while they are held.

mod part;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Map, Value, json};

pub use self::part::Hold;
use self::part::Part;
pub use self::twin::{DEVICE, Options};

const SYN: u16 = 0;
const KEY: u16 = 1;
const ABS: u16 = 3;

/// The time between two reports while something moves.
const REPORT: Duration = Duration::from_millis(8);
/// The largest part of its way that a stick moves between two reports.
const STEP: f64 = 0.1;
/// How often a held stick trembles, and how far.
const TREMBLE: Duration = Duration::from_millis(250);
const TREMOR: f64 = 0.004;

/// The models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Model {
    /// As an Xbox One pad: axes of 16 bits, triggers of 10 bits, buttons named by their labels
    Xbox,
    /// As a DualShock 4: axes and triggers of 8 bits, which rest at 128 and 0
    Playstation,
    /// As a Switch Pro pad: triggers are buttons
    Switch,
}

/// What an axis belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stick,
    Trigger,
    /// The direction pad.
    Hat,
}

/// An axis and its range.
#[derive(Clone, Copy, Debug)]
struct Axis {
    kind: Kind,
    code: u16,
    min: i32,
    max: i32,
    flat: i32,
    /// Where it is, and where the hand moves it: from -1 or 0 to 1.
    at: f64,
    wanted: f64,
    /// What was last reported.
    value: i32,
}

impl Axis {
    fn new(kind: Kind, code: u16, [min, max]: [i32; 2], flat: i32) -> Self {
        let mut axis = Self {
            kind,
            code,
            min,
            max,
            flat,
            at: 0.0,
            wanted: 0.0,
            value: 0,
        };
        axis.value = axis.raw(0.0);
        axis
    }

    /// The value at a part of its way.
    fn raw(&self, part: f64) -> i32 {
        let (min, max) = (f64::from(self.min), f64::from(self.max));
        let part = part.clamp(-1.0, 1.0);
        let rest = match self.kind {
            Kind::Stick | Kind::Hat => ((min + max) / 2.0).ceil(),
            Kind::Trigger => min,
        };
        let end = if part < 0.0 { min } else { max };
        (rest + part.abs() * (end - rest)).round() as i32
    }

    fn is_moving(&self) -> bool {
        self.at != self.wanted
    }

    fn trembles(&self) -> bool {
        self.kind == Kind::Stick && self.wanted != 0.0
    }
}

/// A gamepad.
#[derive(Clone, Debug)]
pub struct Gamepad {
    model: Model,
    axes: Vec<Axis>,
    buttons: BTreeSet<u16>,
    /// Whether a program has asked what it is.
    is_open: bool,
    /// When it reports next, if it moves or trembles.
    next: Option<Duration>,
    /// The direction of the next tremble.
    tremor: f64,
    output: VecDeque<Vec<u8>>,
}

impl Gamepad {
    /// A gamepad at rest.
    pub fn new(model: Model) -> Self {
        let (stick, flat, triggers) = match model {
            Model::Xbox => ([-32_768, 32_767], 128, Some(1_023)),
            Model::Playstation => ([0, 255], 0, Some(255)),
            Model::Switch => ([-32_767, 32_767], 500, None),
        };
        let sticks = [0, 1, 3, 4].map(|code| Axis::new(Kind::Stick, code, stick, flat));
        let triggers = triggers.into_iter().flat_map(|max| {
            let trigger = |code| Axis::new(Kind::Trigger, code, [0, max], 0);
            [2, 5].map(trigger)
        });
        let hats = [0x10, 0x11].map(|code| Axis::new(Kind::Hat, code, [-1, 1], 0));
        Self {
            model,
            axes: sticks.into_iter().chain(triggers).chain(hats).collect(),
            buttons: BTreeSet::new(),
            is_open: false,
            next: None,
            tremor: TREMOR,
            output: VecDeque::new(),
        }
    }

    /// From now on a person holds these parts, and nothing else.
    pub fn hold(&mut self, now: Duration, held: &[Hold]) {
        for axis in &mut self.axes {
            axis.wanted = 0.0;
        }
        let mut buttons = BTreeSet::new();
        for hold in held {
            match hold.part {
                Part::Stick { axis, sign } => self.want(axis, sign * hold.value),
                Part::Trigger { axis, button } => {
                    if self.model != Model::Xbox && hold.value > 0.0 {
                        buttons.insert(button);
                    }
                    self.want(axis, hold.value);
                }
                Part::Button(code) => {
                    buttons.insert(match (self.model, code) {
                        (Model::Xbox, 0x133) => 0x134,
                        (Model::Xbox, 0x134) => 0x133,
                        _ => code,
                    });
                }
                Part::Direction { axis, sign } => self.want(axis, sign),
            }
        }
        let changed = self.buttons.symmetric_difference(&buttons);
        let changes: Vec<_> = changed
            .map(|code| (KEY, *code, i32::from(buttons.contains(code))))
            .collect();
        self.buttons = buttons;
        self.report(&changes);
        self.next = Some(now + REPORT);
    }

    /// Bytes of the program that has opened it: each line asks what it is.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if bytes.contains(&b'\n') {
            self.is_open = true;
            self.output.push_back(self.description());
        }
    }

    /// When to call [`Gamepad::handle_timeout`].
    pub fn next_timeout(&self) -> Option<Duration> {
        self.next
    }

    /// Moves as a hand does.
    pub fn handle_timeout(&mut self, now: Duration) {
        while let Some(due) = self.next.filter(|due| *due <= now) {
            let mut changes = Vec::new();
            let is_moving = self.axes.iter().any(Axis::is_moving);
            self.tremor = -self.tremor;
            for axis in &mut self.axes {
                let tremor = match axis.trembles() && !is_moving {
                    true => self.tremor,
                    false => 0.0,
                };
                let way = (axis.wanted - axis.at).clamp(-STEP, STEP);
                axis.at = match (axis.wanted - axis.at).abs() <= STEP {
                    true => axis.wanted,
                    false => axis.at + way,
                };
                let value = axis.raw(axis.at + tremor);
                if value != axis.value {
                    axis.value = value;
                    changes.push((ABS, axis.code, value));
                }
            }
            self.report(&changes);
            self.next = if self.axes.iter().any(Axis::is_moving) {
                Some(due + REPORT)
            } else if self.axes.iter().any(Axis::trembles) {
                Some(due + TREMBLE)
            } else {
                None
            };
        }
    }

    /// The next bytes for the program.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.output.pop_front()
    }

    /// It was unplugged, and plugged in again.
    pub fn restart(&mut self) {
        self.is_open = false;
        self.output.clear();
    }

    fn want(&mut self, code: u16, wanted: f64) {
        let mut axes = self.axes.iter_mut();
        if let Some(axis) = axes.find(|axis| axis.code == code) {
            axis.wanted = wanted;
        }
    }

    /// Sends the changes of one moment.
    fn report(&mut self, changes: &[(u16, u16, i32)]) {
        if !self.is_open || changes.is_empty() {
            return;
        }
        let end = [(SYN, 0, 0)];
        let events = changes.iter().chain(&end);
        let bytes = events.flat_map(|(kind, code, value)| {
            let mut bytes = vec![0; 16];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(code.to_ne_bytes());
            bytes.extend(value.to_ne_bytes());
            bytes
        });
        self.output.push_back(bytes.collect());
    }

    fn description(&self) -> Vec<u8> {
        let (name, vendor) = match self.model {
            Model::Xbox => ("Microsoft X-Box One pad", 0x045E),
            Model::Playstation => ("Sony Computer Entertainment Wireless Controller", 0x054C),
            Model::Switch => ("Nintendo Switch Pro Controller", 0x057E),
        };
        let axes = self.axes.iter().map(|axis| {
            let range = json!({ "min": axis.min, "max": axis.max, "flat": axis.flat });
            (axis.code.to_string(), range)
        });
        let axes: Map<String, Value> = axes.collect();
        let held: Vec<_> = self.buttons.iter().collect();
        let text = json!({ "name": name, "vendor": vendor, "axes": axes, "held": held });
        format!("{text}\n").into_bytes()
    }
}
