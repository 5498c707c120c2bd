//! The sensor: its set-up, its samples, and what it learns. PURE, except for the [`Bus`].

use std::time::Duration;

use super::Settings;
use super::registers::{
    ADDRESSES, ATTITUDE, Again, Burst, CONFIG, DATA, Fused, NDOF, OPR_MODE, PROFILE, RUNNING,
    SETTINGS, Turned, UNIT_SEL, clock, fused, identity_on_any_page,
};
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read, transfer};
use crate::motion_sensor::calibration::Profile;
use crate::motion_sensor::chip::{Chip, Latest, Sample, SetUp};
use crate::motion_sensor::found::find;
use crate::motion_sensor::options::Placement;
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::setting::{changed, verify_all, write};

/// The time that a change of the mode takes.
const TO_CONFIG: Duration = Duration::from_millis(25);
const FROM_CONFIG: Duration = Duration::from_millis(20);
/// The time that a change of the clock takes.
const CLOCK_RUNS: Duration = Duration::from_millis(10);
/// After that, its registers are 0 for about 100 ms.
const COMPUTES: Duration = Duration::from_millis(120);

/// How often damaged data are read again.
const MAX_TRIES: usize = 3;
/// The settings are compared with every so many samples: after a short loss of power the sensor is in its
/// configuration mode, which the attitude shows at once.
const SAMPLES_PER_CHECK: u8 = 64;

#[derive(Debug)]
pub(super) struct Sensor {
    placement: Placement,
    has_crystal: bool,
    /// What it has learned: as the file says, or as it was read.
    profile: Option<Profile>,
    /// The same, if nobody knows it yet.
    news: Option<Profile>,
    /// Whether the set-up is there to read the profile.
    is_learning: bool,
    /// Where it was found.
    at: u8,
    is_known: bool,
    latest: Latest<Fused>,
    /// Whether a sample was used since the set-up.
    is_ready: bool,
    unchecked: u8,
}

impl Sensor {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            placement: settings.placement,
            has_crystal: settings.has_crystal,
            profile: settings.profile,
            news: None,
            is_learning: false,
            at: ADDRESSES[0],
            is_known: false,
            latest: Latest::default(),
            is_ready: false,
            unchecked: 0,
        }
    }

    fn verify(&self, bus: &mut dyn Bus) -> Result<(), Problem> {
        verify_all(bus, self.at, &RUNNING)?;
        verify_all(bus, self.at, &SETTINGS)
    }

    /// Reads what the sensor has learned.
    fn learn(&mut self, bus: &mut dyn Bus) -> Result<(), Problem> {
        let profile = Profile::new(read(bus, self.at, PROFILE)?);
        // A wrong bit would stay for ever.
        if profile == Profile::new(read(bus, self.at, PROFILE)?) {
            self.profile = Some(profile);
            self.news = Some(profile);
        }
        Ok(())
    }

    /// Writes the settings, and what the sensor has learned before.
    fn configure(&self, bus: &mut dyn Bus) -> Result<(), Problem> {
        write(bus, self.at, &SETTINGS)?;
        transfer(bus, self.at, &clock(self.has_crystal), &mut [])?;
        verify_all(bus, self.at, &SETTINGS)?;
        let Some(profile) = self.profile else {
            return Ok(());
        };
        let written = [&[PROFILE], &profile.bytes()[..]].concat();
        transfer(bus, self.at, &written, &mut [])?;
        match read(bus, self.at, PROFILE)? == profile.bytes() {
            true => Ok(()),
            false => Err(Problem::Chip("does not keep its calibration".into())),
        }
    }

    /// Data that were damaged nowhere; a problem if they are damaged again and again.
    fn read(&self, bus: &mut dyn Bus) -> Result<Sample<Fused>, Problem> {
        for _ in 0..MAX_TRIES {
            let burst: Burst = read(bus, self.at, DATA)?;
            let again: Again = read(bus, self.at, ATTITUDE)?;
            if let Some(fused) = fused(&burst, &again) {
                return Ok(Sample::Fresh(fused));
            }
            let [mode] = read(bus, self.at, OPR_MODE)?;
            if mode & 0x0F == CONFIG {
                return Ok(Sample::Lost(
                    "it has lost its settings: it was reset, or its power failed",
                ));
            }
            if again == [0; 20] {
                return Ok(Sample::Lost("another program has set it up anew"));
            }
        }
        Err(Problem::Chip(
            "its data are damaged on the bus; on a Raspberry Pi use the bus of dtoverlay=i2c-gpio"
                .into(),
        ))
    }
}

impl Chip<Fused> for Sensor {
    fn sensors(&self) -> Sensors {
        Sensors::ALL
    }

    fn name(&self) -> &'static str {
        "motion sensor"
    }

    /// Without a reset: the sensor would forget what it has learned.
    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem> {
        let known = self.is_known.then_some(self.at);
        let address = self.placement.address.or(known);
        let (at, name) = find(bus, &ADDRESSES, address, identity_on_any_page)?;
        self.at = at;
        self.is_known = true;
        let done = |settle| SetUp::Done {
            name: format!("{name} at {at:#04x}"),
            settle,
        };
        match step {
            0 => {
                self.latest = Latest::default();
                self.is_ready = false;
                self.unchecked = 0;
                // A driver with the same settings may use it at the same time.
                match self.verify(bus) {
                    Ok(()) if !self.is_learning => return Ok(done(Duration::ZERO)),
                    Ok(()) | Err(Problem::Chip(_)) => {}
                    Err(problem) => return Err(problem),
                }
                transfer(bus, at, &[OPR_MODE, CONFIG], &mut [])?;
                Ok(SetUp::Continues(TO_CONFIG))
            }
            1 => {
                if std::mem::take(&mut self.is_learning) {
                    self.learn(bus)?;
                }
                self.configure(bus)?;
                Ok(SetUp::Continues(CLOCK_RUNS))
            }
            2 => {
                transfer(bus, at, &[OPR_MODE, NDOF], &mut [])?;
                Ok(SetUp::Continues(FROM_CONFIG))
            }
            _ => {
                self.verify(bus)?;
                Ok(done(COMPUTES))
            }
        }
    }

    fn has_begun(&mut self, bus: &mut dyn Bus) -> Result<bool, Problem> {
        let bytes: [u8; 20] = read(bus, self.at, ATTITUDE)?;
        Ok(Turned::of(&bytes).is_some())
    }

    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<Fused>, Problem> {
        let sample = self.read(bus)?;
        let sample = self.latest.judge(sample);
        self.unchecked += 1;
        if self.unchecked >= SAMPLES_PER_CHECK {
            self.unchecked = 0;
            let registers: [u8; 8] = read(bus, self.at, UNIT_SEL)?;
            let change = changed(&RUNNING, UNIT_SEL, &registers);
            let change = change.or_else(|| changed(&SETTINGS, UNIT_SEL, &registers));
            if let Some(change) = change {
                return Ok(Sample::Changed(change));
            }
        }
        let Sample::Fresh(fused) = sample else {
            return Ok(sample.map(|fused| self.turned(fused)));
        };
        let is_full = fused.levels.is_some_and(|levels| levels.are_full());
        if is_full && self.profile.is_none() && self.is_ready {
            self.is_learning = true;
            return Ok(Sample::Reset);
        }
        self.is_ready = true;
        Ok(Sample::Fresh(Fused {
            profile: self.news.take(),
            ..self.turned(fused)
        }))
    }

    fn forget(&mut self) {
        self.is_known = false;
    }
}

impl Sensor {
    /// On the axes of the robot.
    fn turned(&self, fused: Fused) -> Fused {
        let mount = self.placement.mount;
        Fused {
            measured: mount.turned(fused.measured),
            world: fused.world.map(|world| mount.turned(world)),
            ..fused
        }
    }
}
