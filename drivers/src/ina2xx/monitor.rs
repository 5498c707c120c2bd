//! Sets the sensor up, reads it, and notices when its settings are lost or it is gone. PURE, except
//! for the [`Bus`].

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use amber_proto::battery_state::BatteryState;

use super::part::{self, Part, Sample};
use crate::i2c::Bus;
use crate::i2c::registers::Problem;

/// The first values come 0.14 s after the settings.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);
/// With less, there is no battery at the sensor.
const PRESENT_MV: u32 = 500;
/// I2C has no checksums: of so many readings, the middle one counts.
const READINGS: usize = 3;
/// The same change of the settings is logged again after this time.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Settings of the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Where the sensor is; `None` for the first address where one is recognized.
    pub address: Option<u8>,
    /// What it is; `None` for what it says itself.
    pub part: Option<Part>,
    /// The resistance of the shunt.
    pub shunt_mohm: f64,
    /// Whether the battery is at IN-.
    pub inverts_current: bool,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The voltage.
    pub mv: u32,
    /// The current, negative while the battery is used; `None` if it is beyond the range.
    pub current_ma: Option<i32>,
}

impl Measured {
    /// The same as a message.
    #[must_use]
    pub fn state(self) -> BatteryState {
        BatteryState {
            voltage: Some(self.mv),
            current: self.current_ma,
            present: Some(self.mv >= PRESENT_MV),
            ..BatteryState::default()
        }
    }
}

/// A log message.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The sensor is set up: what it is and where, and its range.
    Ready(Part, u8, Range),
    /// It had other settings than these.
    Restored(u16, u16),
    /// The current is beyond the range.
    Beyond(Range),
}

/// The largest current, and what it follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The end of the range.
    pub most_ma: f64,
    /// The shunt; `None` for that of the chip.
    pub shunt_mohm: Option<f64>,
}

/// The sensor.
#[derive(Debug)]
pub struct Monitor {
    settings: Settings,
    found: Option<Found>,
    /// The last readings.
    recent: VecDeque<Sample>,
    /// The settings that another program has written or a reset, when it was logged.
    restored: Option<(Instant, u16)>,
    is_beyond: bool,
    notes: VecDeque<Note>,
}

/// Where the sensor is.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: u8,
    part: Part,
    /// When it got its settings; `None` once it has measured with them.
    begins: Option<Instant>,
}

impl Monitor {
    /// The sensor was not looked for yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            found: None,
            recent: VecDeque::new(),
            restored: None,
            is_beyond: false,
            notes: VecDeque::new(),
        }
    }

    /// The next log message.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Measures, or sets the sensor up.
    ///
    /// # Errors
    /// There is no measurement: the sensor is not there or begins, or the bus does not work.
    pub fn measure(&mut self, now: Instant, bus: &mut dyn Bus) -> Result<Measured, Problem> {
        let Some(found) = self.found else {
            self.set_up(now, bus)?;
            return not_yet("the sensor has just been set up");
        };
        let read = self.read(now, bus, found);
        if read.is_err() {
            // The next one may be another one.
            self.found = None;
            self.recent.clear();
        }
        match read?.and_then(|()| self.middle(found.part)) {
            Ok(measured) => Ok(measured),
            Err(why) => not_yet(why),
        }
    }

    fn set_up(&mut self, now: Instant, bus: &mut dyn Bus) -> Result<(), Problem> {
        let Settings { address, part, .. } = self.settings;
        let (at, part) = part::find(bus, address, part)?;
        if part::config(bus, at)? != part.config() {
            part::set_config(bus, at, part.config())?;
        }
        self.found = Some(Found {
            at,
            part,
            begins: Some(now),
        });
        self.is_beyond = false;
        self.notes
            .push_back(Note::Ready(part, at, self.range(part)));
        Ok(())
    }

    /// Takes a reading. The inner error is one after which the sensor is still there.
    fn read(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        found: Found,
    ) -> Result<Result<(), &'static str>, Problem> {
        let Found { at, part, begins } = found;
        if let Some(since) = begins {
            match part.has_begun(bus, at)? {
                true => {
                    self.found = Some(Found {
                        begins: None,
                        ..found
                    })
                }
                false if now.saturating_duration_since(since) < BEGINS_WITHIN => {
                    return Ok(Err("the sensor has just been set up"));
                }
                false => return Err(Problem::Chip("the sensor does not measure".into())),
            }
        }
        let sample = part.sample(bus, at)?;
        let (set, kept) = (part.config(), part::config(bus, at)?);
        if kept != set {
            // A damaged byte is not a change.
            if part::config(bus, at)? != kept {
                return Ok(Err(GARBAGE));
            }
            part::set_config(bus, at, set)?;
            let begins = Some(now);
            self.found = Some(Found { begins, ..found });
            self.note_restored(now, kept, set);
            return Ok(Err("the settings of the sensor were lost"));
        }
        if part.battery_mv(sample.bus).is_none() {
            return Ok(Err(GARBAGE));
        }
        self.recent.push_back(sample);
        if self.recent.len() > READINGS {
            self.recent.pop_front();
        }
        Ok(Ok(()))
    }

    /// The middle one of the last readings, or the newest one as long as there are less.
    fn middle(&mut self, part: Part) -> Result<Measured, &'static str> {
        let newest = *self.recent.back().ok_or(GARBAGE)?;
        let (shunt, bus) = match self.recent.len() < READINGS {
            true => (newest.shunt, newest.bus),
            false => (
                middle_of(self.recent.iter().map(|sample| sample.shunt)).unwrap_or(newest.shunt),
                middle_of(self.recent.iter().map(|sample| sample.bus)).unwrap_or(newest.bus),
            ),
        };
        let mv = part.battery_mv(bus).ok_or(GARBAGE)?;
        let current_ma = part.current_ma(shunt, self.settings.shunt_mohm);
        if current_ma.is_none() && !std::mem::replace(&mut self.is_beyond, true) {
            self.notes.push_back(Note::Beyond(self.range(part)));
        }
        let sign = match self.settings.inverts_current {
            true => 1.0,
            false => -1.0,
        };
        Ok(Measured {
            mv,
            // The cast limits.
            current_ma: current_ma.map(|ma| (sign * ma).round() as i32),
        })
    }

    fn note_restored(&mut self, now: Instant, kept: u16, set: u16) {
        let is_said = self.restored.is_some_and(|(then, said)| {
            said == kept && now.saturating_duration_since(then) < SAY_AGAIN
        });
        if !is_said {
            self.restored = Some((now, kept));
            self.notes.push_back(Note::Restored(kept, set));
        }
    }

    fn range(&self, part: Part) -> Range {
        let shunt_mohm = self.settings.shunt_mohm;
        Range {
            most_ma: part.most_current_ma(shunt_mohm),
            shunt_mohm: (part != Part::Ina260).then_some(shunt_mohm),
        }
    }
}

/// The problem of a reading that cannot be right.
const GARBAGE: &str = "the sensor sends values that it cannot have: check the wires SDA and SCL";

fn not_yet<T>(why: &str) -> Result<T, Problem> {
    Err(Problem::Chip(why.to_owned()))
}

fn middle_of<T: Copy + Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

impl Note {
    /// Whether it is a warning.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Ready(..))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(part, at, range) => write!(f, "ready: {part} at {at:#04x}, {range}"),
            Self::Restored(kept, set) => write!(
                f,
                "the settings of the sensor were {kept:#06x} and are {set:#06x} again: its supply has \
                 dipped, or another program uses it"
            ),
            Self::Beyond(range) => write!(
                f,
                "the current is beyond the range of the sensor, so it is not reported: {range}"
            ),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most_a = self.most_ma / 1000.0;
        match self.shunt_mohm {
            Some(mohm) => write!(f, "up to {most_a:.1} A with a shunt of {mohm} mohm"),
            None => write!(f, "up to {most_a:.1} A with its own shunt"),
        }
    }
}
