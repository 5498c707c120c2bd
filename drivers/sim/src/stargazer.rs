//! A simulated Hagisonic StarGazer, which computes its position from markers on the ceiling: bytes
//! in, bytes out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each
//! `handle_*` and at [`Stargazer::next_timeout`]: while [`Stargazer::poll_look`] returns a time,
//! pass the markers visible then to [`Stargazer::handle_view`]; then drain
//! [`Stargazer::poll_output`].
//!
//! It looks for markers ten times per second, unless it is stopped.

mod parameters;
mod twin;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use amber_map::wrap;

use self::parameters::{Parameters, factory, takes};
pub use self::twin::{DEVICE, Options};
use crate::ceiling::{HEIGHT_M, MarkType, Seen};
use crate::wheels::gaussian;

/// The interval between two measurements.
const PERIOD: Duration = Duration::from_millis(100);

/// The time for storing parameters.
const STORING: Duration = Duration::from_secs(1);

/// The time for a restart.
const RESTART: Duration = Duration::from_secs(1);

/// The maximum length of a command.
const MAX_COMMAND: usize = 64;

/// The number of images for measuring the height.
const HEIGHT_LOOKS: u32 = 10;

/// The noise of positions, headings and heights, according to the manufacturer's guide.
const SIGMA_CM: f64 = 2.0;
const SIGMA_DEG: f64 = 1.0;
const SIGMA_HEIGHT_CM: f64 = 1.0;

/// Measurements that are overdue by more than this are skipped.
const TOO_LATE: Duration = Duration::from_millis(300);

/// The manufacturer's guides, which differ in how a map is built.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guide {
    // So does KIT's library.
    /// Builds the map from MapMode|Start, ends with MapDataSave
    Older,
    // There, CalcStart follows MapMode|Start.
    /// Builds the map from CalcStart, ends with ParameterUpdate (02.0904.16)
    #[default]
    Newer,
}

impl Guide {
    fn version(self) -> &'static str {
        match self {
            Self::Older => "LMR.Agv.2008.06.15",
            Self::Newer => "02.0904.16",
        }
    }

    fn end_of_map(self) -> &'static str {
        match self {
            Self::Older => "MapDataSave",
            Self::Newer => "ParameterUpdate",
        }
    }
}

/// A StarGazer.
#[derive(Clone, Debug)]
pub struct Stargazer {
    guide: Guide,
    mark_type: MarkType,
    random: fastrand::Rng,
    /// 1, or 0 for a device without noise.
    noise: f64,
    /// Commands with faster characters are not understood.
    min_pause: Duration,
    last_byte: Option<Duration>,
    command: Option<String>,
    outputs: VecDeque<Vec<u8>>,
    parameters: Parameters,
    stored: Parameters,
    /// When the parameters will be stored, and the message sent then.
    storing: Option<(Duration, &'static str)>,
    /// The next `CalcStart` starts building a map.
    starts_map: bool,
    mode: Mode,
    next_look: Duration,
    /// A look whose result is pending.
    looks_at: Option<Duration>,
}

/// What the device is doing.
#[derive(Clone, Debug, PartialEq)]
enum Mode {
    Stopped,
    Running,
    /// The markers found so far.
    Mapping(BTreeSet<u32>),
    /// The number of remaining looks.
    Height(u32),
}

impl Stargazer {
    /// Creates a device that was just switched on.
    #[must_use]
    pub fn new(seed: u64, guide: Guide, mark_type: MarkType, now: Duration) -> Self {
        let parameters = factory(guide.version(), mark_type);
        Self {
            guide,
            mark_type,
            noise: 1.0,
            starts_map: false,
            random: fastrand::Rng::with_seed(seed),
            min_pause: Duration::ZERO,
            last_byte: None,
            command: None,
            outputs: VecDeque::new(),
            stored: parameters.clone(),
            parameters,
            storing: None,
            mode: Mode::Running,
            next_look: now + PERIOD,
            looks_at: None,
        }
    }

    /// A power cycle: only stored parameters remain.
    pub fn restart(&mut self, now: Duration) {
        self.command = None;
        self.last_byte = None;
        self.outputs.clear();
        self.parameters = self.stored.clone();
        self.storing = None;
        self.starts_map = false;
        self.mode = Mode::Running;
        self.next_look = now + RESTART;
        self.looks_at = None;
    }

    /// Makes it as sensitive as real devices, which lose characters that arrive faster than this.
    pub fn set_min_pause(&mut self, min_pause: Duration) {
        self.min_pause = min_pause;
    }

    /// Turns noise off, so that fixes are exact to the hundredth.
    pub fn set_noise(&mut self, is_on: bool) {
        self.noise = f64::from(u8::from(is_on));
    }

    /// The value of a parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Whether it looks for markers.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.mode != Mode::Stopped
    }

    /// The marker to which it refers its position, if that is not the nearest.
    #[must_use]
    pub fn reference(&self) -> Option<u32> {
        let in_map = self.parameter("MarkMode") == Some("Map");
        (in_map && self.mode == Mode::Running)
            .then(|| self.parameter("RefID")?.parse().ok())
            .flatten()
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        for byte in bytes {
            let last = self.last_byte.replace(now);
            if last.is_some_and(|last| now < last + self.min_pause) {
                // Lost, as if never sent.
                continue;
            }
            match (byte, &mut self.command) {
                (b'~', command) => *command = Some(String::new()),
                (b'`', command) => {
                    if let Some(command) = command.take() {
                        self.obey(now, &command);
                    }
                }
                (_, Some(command)) if command.len() == MAX_COMMAND => self.command = None,
                (byte, Some(command)) => command.push(char::from(*byte)),
                (_, None) => {}
            }
        }
    }

    /// The time of a look that needs the visible markers.
    pub fn poll_look(&mut self, now: Duration) -> Option<Duration> {
        if let Some((done, said)) = self.storing.filter(|(done, _)| *done <= now) {
            self.storing = None;
            self.stored = self.parameters.clone();
            self.next_look = done + PERIOD;
            self.say(&format!("!{said}"));
        }
        if self.storing.is_some() || !self.is_running() || self.next_look > now {
            return None;
        }
        if now > self.next_look + TOO_LATE {
            let late = now - self.next_look;
            let missed = late.as_nanos() / PERIOD.as_nanos();
            self.next_look += PERIOD * u32::try_from(missed).unwrap_or(u32::MAX);
        }
        let at = self.next_look;
        self.next_look += PERIOD;
        self.looks_at = Some(at);
        Some(at)
    }

    /// The markers that were visible, the nearest first, in the frames of the markers or of the
    /// [reference](Self::reference).
    pub fn handle_view(&mut self, seen: &[Seen]) {
        let Some(now) = self.looks_at.take() else {
            return;
        };
        let Some(seen) = seen.first().copied() else {
            return self.say("*DeadZone");
        };
        let letter = match &mut self.mode {
            Mode::Stopped => return,
            Mode::Running => 'I',
            Mode::Mapping(found) => {
                if found.insert(seen.id) {
                    let count = found.len();
                    let wanted = self.parameters["IDNum"].parse().unwrap_or(1);
                    self.say(&format!("*MAPID|{}", seen.id));
                    if count >= wanted {
                        self.parameters.insert("MarkMode", "Map".to_owned());
                        self.mode = Mode::Running;
                        self.storing = Some((now + STORING, self.guide.end_of_map()));
                        return;
                    }
                }
                'F'
            }
            Mode::Height(left) => {
                *left -= 1;
                if *left == 0 {
                    let height = format!("{:.0}", HEIGHT_M * 1000.0);
                    self.parameters.insert("MarkHeight", height);
                    self.mode = Mode::Running;
                    self.storing = Some((now + STORING, "ParameterUpdate"));
                }
                'Z'
            }
        };
        let fix = self.fix(letter, seen);
        self.say(&fix);
    }

    /// The next bytes.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let look = self.is_running().then_some(self.next_look);
        self.storing.map_or(look, |(done, _)| Some(done))
    }

    fn fix(&mut self, letter: char, seen: Seen) -> String {
        let mut noise = |sigma: f64| self.noise * sigma * gaussian(&mut self.random);
        let x = seen.pose.at.x * 100.0 + noise(SIGMA_CM);
        let y = seen.pose.at.y * 100.0 + noise(SIGMA_CM);
        // The device counts headings clockwise, but in its frame y is to the left of x.
        let heading = -seen.pose.heading.to_degrees() + noise(SIGMA_DEG);
        let heading = wrap(heading.to_radians()).to_degrees();
        let height = HEIGHT_M * 100.0 + noise(SIGMA_HEIGHT_CM);
        let id = seen.id;
        format!("^{letter}{id}|{heading:+.2}|{x:+.2}|{y:+.2}|{height:.2}")
    }

    fn obey(&mut self, now: Duration, command: &str) {
        let (kind, rest) = match command.split_at_checked(1) {
            Some(parts) if self.storing.is_none() => parts,
            _ => return,
        };
        let is_stopped = !self.is_running();
        let (name, value) = match rest.split_once('|') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        match (kind, name, value) {
            ("@", name, None) if is_stopped => {
                if let Some(value) = self.parameter(name).map(str::to_owned) {
                    self.say(&format!("!{name}"));
                    self.say(&format!("${name}|{value}"));
                }
            }
            ("#", "CalcStop", None) => self.go(Mode::Stopped, now, "CalcStop"),
            ("#", "CalcStart", None) => {
                let mode = match std::mem::take(&mut self.starts_map) {
                    true => Mode::Mapping(BTreeSet::new()),
                    // Building a map continues to its end.
                    false if matches!(self.mode, Mode::Mapping(_)) => self.mode.clone(),
                    false => Mode::Running,
                };
                self.go(mode, now, "CalcStart");
            }
            ("#", "HeightCalc", None) => self.go(Mode::Height(HEIGHT_LOOKS), now, "HeightCalc"),
            ("#", "MapMode", Some("Start")) => match self.guide {
                Guide::Older => self.go(Mode::Mapping(BTreeSet::new()), now, "MapMode|Start"),
                Guide::Newer => {
                    self.starts_map = true;
                    self.go(Mode::Stopped, now, "MapMode|Start");
                }
            },
            ("#", "Reset", None) => {
                self.stored = factory(self.guide.version(), self.mark_type);
                self.restart(now);
                self.say("!Reset");
            }
            ("#", "SetEnd", None) if is_stopped => {
                self.storing = Some((now + STORING, "ParameterUpdate"));
                self.say("!SetEnd");
            }
            ("#", name, Some(value)) if is_stopped && takes(&self.parameters, name, value) => {
                if let Some(parameter) = self.parameters.get_mut(name) {
                    value.clone_into(parameter);
                    self.say(&format!("!{name}|{value}"));
                }
            }
            _ => {}
        }
    }

    fn go(&mut self, mode: Mode, now: Duration, said: &str) {
        if mode != Mode::Stopped && !self.is_running() {
            self.next_look = now + PERIOD;
        }
        self.mode = mode;
        self.say(&format!("!{said}"));
    }

    fn say(&mut self, text: &str) {
        self.outputs.push_back(format!("~{text}`").into_bytes());
    }
}

#[cfg(test)]
mod tests;
