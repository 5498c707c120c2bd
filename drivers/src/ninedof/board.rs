//! The chips on the bus: sets them up, reads them, and detects chips that are missing, lost power,
//! or stopped. PURE, except for the [`Bus`].
//!
//! ```text
//!  Absent --answers and keeps its settings--> Warming --first sample--> Ready
//!    ^                                           |                        |
//!    +---- no answer, other settings, no new samples for some time -------+
//! ```
//!
//! Each chip is independent: if one is missing, the others are still read.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::bus::{Bus, BusError};
use super::registers::{
    ACCEL_ADDRESS, ACCEL_SETTINGS, GYRO_ADDRESSES, GYRO_SETTINGS, Gain, INERTIAL, MAGNET_ADDRESS,
    MAGNET_ID, MAGNET_SETTINGS, MAGNET_STATUS, Raw, Sample, Sensor, Sensors, Setting, WHO_AM_I,
    gyro_name, inertial_sample, magnet_sample, magnet_settings,
};
use crate::outage::Outage;

/// A chip without a new sample for this time has stopped measuring; chips take hundreds of samples
/// per second.
const STOPPED: Duration = Duration::from_millis(100);

/// After a change of its range, a chip has taken samples with the right one: two of the slowest, with
/// 220 Hz.
const SETTLE: Duration = Duration::from_millis(10);

/// Time limit for the first sample.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long a chip must work before its problem counts as solved: some problems come and go.
const STABLE: Duration = Duration::from_secs(2);

/// How often a transfer is tried before a chip counts as missing. Noise on the wires is short.
const MAX_TRIES: usize = 2;

/// The result of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The digits of the requested sensors that could be read.
    pub raw: Raw,
    /// The requested sensors that will deliver their first sample soon.
    pub settling: Sensors,
}

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A sensor works.
    Ready(Sensor, String),
    /// A sensor works again after an outage of this length.
    Back(Sensor, Duration),
    /// A sensor does not work.
    Trouble(Sensor, String),
}

/// The chips.
#[derive(Debug)]
pub struct Board {
    gain: Gain,
    chips: [Chip; 3],
    notes: VecDeque<Note>,
}

#[derive(Debug)]
struct Chip {
    sensor: Sensor,
    state: State,
    outage: Outage,
    /// When it started to work.
    works: Option<Instant>,
    was_ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent { until: Instant },
    Warming { address: u8, since: Instant },
    Ready { address: u8, fresh: Instant },
}

/// The reason why a chip cannot be read.
enum Problem {
    /// This chip has a problem.
    Chip(String),
    /// The whole bus does not work.
    Bus(String),
}

impl Board {
    /// Creates the chips, in an unknown state.
    pub fn new(gain: Gain, now: Instant) -> Self {
        let chip = |sensor| Chip {
            sensor,
            state: State::Absent { until: now },
            outage: Outage::default(),
            works: None,
            was_ready: false,
        };
        Self {
            gain,
            chips: Sensor::ALL.map(chip),
            notes: VecDeque::new(),
        }
    }

    /// The bus was reopened, so the chips may be different ones.
    pub fn reopened(&mut self, now: Instant) {
        for chip in &mut self.chips {
            chip.state = State::Absent { until: now };
        }
    }

    /// Reads some sensors, and sets up chips that need it.
    ///
    /// # Errors
    /// The bus does not work.
    pub fn read(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        wanted: Sensors,
    ) -> Result<Reading, String> {
        let mut reading = Reading::default();
        for chip in &mut self.chips {
            if !wanted.has(chip.sensor) {
                continue;
            }
            match chip.read(now, bus, self.gain, &mut self.notes) {
                Ok(digits) => reading.raw.set(chip.sensor, digits),
                Err(Problem::Chip(problem)) => {
                    chip.fails(now, problem, &mut self.notes);
                    let until = chip.outage.try_again_at(now);
                    chip.state = State::Absent { until };
                }
                Err(Problem::Bus(problem)) => return Err(problem),
            }
            if matches!(chip.state, State::Warming { .. }) {
                reading.settling.add(chip.sensor);
            }
        }
        Ok(reading)
    }

    /// The current problem of the chips, or one that ended a moment ago.
    pub fn trouble(&self) -> Option<String> {
        let troubles = self.chips.iter().filter_map(|chip| {
            let trouble = chip.outage.trouble()?;
            Some(format!("{}: {trouble}", chip.sensor))
        });
        let troubles: Vec<_> = troubles.collect();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }

    /// The next log message.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }
}

impl Chip {
    fn read(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        gain: Gain,
        notes: &mut VecDeque<Note>,
    ) -> Result<Option<[i16; 3]>, Problem> {
        if let State::Absent { until } = self.state {
            if now < until {
                return Ok(None);
            }
            let (address, name) = set_up(bus, self.sensor, gain)?;
            self.state = State::Warming {
                address,
                since: now,
            };
            if !std::mem::replace(&mut self.was_ready, true) {
                notes.push_back(Note::Ready(self.sensor, name));
            }
        }
        let address = match self.state {
            State::Warming { address, .. } | State::Ready { address, .. } => address,
            State::Absent { .. } => return Ok(None),
        };
        if let State::Warming { since, .. } = self.state
            && (now < since || !has_begun(bus, self.sensor, address)?)
        {
            return self.await_first(now);
        }
        match (sample(bus, self.sensor, address, gain)?, self.state) {
            (Sample::Fresh(digits), _) => {
                self.state = State::Ready {
                    address,
                    fresh: now,
                };
                self.works(now, notes);
                Ok(Some(digits))
            }
            (Sample::Old(digits), State::Ready { fresh, .. })
                if now.saturating_duration_since(fresh) < STOPPED =>
            {
                Ok(Some(digits))
            }
            // It lost power, perhaps between two readings.
            (Sample::Old(_) | Sample::Reset, State::Ready { .. }) => {
                self.state = State::Absent { until: now };
                self.read(now, bus, gain, notes)
            }
            (Sample::Old(_), _) => self.await_first(now),
            (Sample::Reset, _) => Err(Problem::Chip("does not keep its settings".into())),
            (Sample::Changed(change), _) => {
                self.fails(now, change.to_string(), notes);
                let (address, _) = set_up(bus, self.sensor, gain)?;
                // The next sample may have the other range.
                self.state = State::Warming {
                    address,
                    since: now + SETTLE,
                };
                Ok(None)
            }
            (Sample::Overflow, _) => {
                self.state = State::Ready {
                    address,
                    fresh: now,
                };
                let text = "the magnetic field is out of range";
                self.fails(now, text.into(), notes);
                Ok(None)
            }
        }
    }

    /// The first sample is not ready; the registers would read as zeros.
    fn await_first(&self, now: Instant) -> Result<Option<[i16; 3]>, Problem> {
        match self.state {
            State::Warming { since, .. } if now.saturating_duration_since(since) >= WARM_UP => {
                Err(Problem::Chip("does not start measuring".into()))
            }
            _ => Ok(None),
        }
    }

    fn works(&mut self, now: Instant, notes: &mut VecDeque<Note>) {
        let since = *self.works.get_or_insert(now);
        let is_stable = now.saturating_duration_since(since) >= STABLE;
        if (is_stable || self.outage.trouble().is_none())
            && let Some(lasted) = self.outage.over(now)
        {
            notes.push_back(Note::Back(self.sensor, lasted));
        }
    }

    fn fails(&mut self, now: Instant, problem: String, notes: &mut VecDeque<Note>) {
        self.works = None;
        if self.outage.complain(now, &problem) {
            notes.push_back(Note::Trouble(self.sensor, problem));
        }
    }
}

/// Sets a chip up. Returns its address and its display name.
fn set_up(bus: &mut dyn Bus, sensor: Sensor, gain: Gain) -> Result<(u8, String), Problem> {
    let (address, name, settings): (u8, &str, &[Setting]) = match sensor {
        Sensor::Accel => {
            // The accelerometer has no documented identity register, but it must answer.
            read::<1>(bus, ACCEL_ADDRESS, WHO_AM_I)?;
            (ACCEL_ADDRESS, "LSM303DLHC", &ACCEL_SETTINGS)
        }
        Sensor::Gyro => {
            let (address, name) = find_gyro(bus)?;
            (address, name, &GYRO_SETTINGS)
        }
        Sensor::Magnet => {
            let id = read::<3>(bus, MAGNET_ADDRESS, MAGNET_ID)?;
            if &id != b"H43" {
                let text =
                    format!("unexpected chip at {MAGNET_ADDRESS:#04x}, with identity {id:02x?}");
                return Err(Problem::Chip(text));
            }
            (MAGNET_ADDRESS, "LSM303DLHC", &magnet_settings(gain))
        }
    };
    for setting in settings {
        transfer(bus, address, setting, &mut [])?;
    }
    for [register, value] in settings {
        let [kept] = read(bus, address, *register)?;
        if kept != *value {
            let text = format!("register {register:#04x} reads {kept:#04x}, not {value:#04x}");
            return Err(Problem::Chip(text));
        }
    }
    Ok((address, format!("{name} at {address:#04x}")))
}

fn find_gyro(bus: &mut dyn Bus) -> Result<(u8, &'static str), Problem> {
    let mut found = "no answer".to_owned();
    for address in GYRO_ADDRESSES {
        match read(bus, address, WHO_AM_I) {
            Ok([who_am_i]) => match gyro_name(who_am_i) {
                Some(name) => return Ok((address, name)),
                None => {
                    found =
                        format!("unexpected chip at {address:#04x}, with identity {who_am_i:#04x}")
                }
            },
            Err(Problem::Chip(_)) => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(Problem::Chip(found))
}

/// Whether the first sample is ready. Needed for chips whose data registers do not report it.
fn has_begun(bus: &mut dyn Bus, sensor: Sensor, address: u8) -> Result<bool, Problem> {
    if sensor != Sensor::Magnet {
        return Ok(true);
    }
    let [status] = read(bus, address, MAGNET_STATUS)?;
    Ok(status & 1 != 0)
}

fn sample(bus: &mut dyn Bus, sensor: Sensor, address: u8, gain: Gain) -> Result<Sample, Problem> {
    Ok(match sensor {
        Sensor::Accel => inertial_sample(&ACCEL_SETTINGS, read(bus, address, INERTIAL)?),
        Sensor::Gyro => inertial_sample(&GYRO_SETTINGS, read(bus, address, INERTIAL)?),
        Sensor::Magnet => magnet_sample(gain, read(bus, address, MAGNET_SETTINGS)?),
    })
}

fn read<const N: usize>(bus: &mut dyn Bus, address: u8, register: u8) -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    transfer(bus, address, &[register], &mut bytes)?;
    Ok(bytes)
}

fn transfer(
    bus: &mut dyn Bus,
    address: u8,
    written: &[u8],
    read: &mut [u8],
) -> Result<(), Problem> {
    let mut tries = 1;
    loop {
        match bus.transfer(address, written, read) {
            Ok(()) => return Ok(()),
            Err(BusError::Nak) if tries < MAX_TRIES => tries += 1,
            Err(BusError::Nak) => return Err(Problem::Chip("no answer".into())),
            Err(BusError::Broken(text)) => return Err(Problem::Bus(text)),
        }
    }
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(..))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(sensor, name) => write!(f, "ready: {sensor} {name}"),
            Self::Back(sensor, after) => {
                write!(
                    f,
                    "{sensor}: works again after {:.1} s",
                    after.as_secs_f64()
                )
            }
            Self::Trouble(sensor, text) => write!(f, "{sensor}: {text}; retrying"),
        }
    }
}

#[cfg(test)]
mod tests;
