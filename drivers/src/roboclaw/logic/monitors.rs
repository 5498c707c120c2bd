//! The status of the controllers, and when it disables driving. PURE.

use std::time::Instant;

use super::battery::MainBattery;
use super::note::ControllerNote;
use super::watch::{StatusWatch, Verdict, Watch};
use super::{Job, Settings};
use crate::roboclaw::protocol::{Command, Fault, Status};
use crate::roboclaw::units::Unit;
use crate::wheels::{BatteryReading, Refusal, StopReason};

/// Errors, temperature and batteries.
#[derive(Debug)]
pub(super) struct Monitors {
    units: &'static [Unit],
    status: StatusWatch,
    temperature: Watch,
    battery: Watch,
    main_battery: MainBattery,
    looks_for_errors: bool,
    temperature_critical: i32,
    temperature_drop: i32,
    repeats: u8,
    battery_low: bool,
    hot: bool,
    /// Whether the current errors have already led to a reset.
    has_reset: bool,
}

/// The result of a reading.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    /// Log this.
    Say(ControllerNote),
    /// Stop the wheels.
    Stop(StopReason),
    /// Reset the controllers, if possible.
    Reset,
}

impl Monitors {
    pub(super) fn new(now: Instant, settings: &Settings) -> Self {
        let units = settings.layout.units();
        Self {
            units,
            status: StatusWatch::new(now, units, settings.status_interval(), settings.repeats),
            temperature: Watch::new(now, settings.temperature_interval),
            battery: Watch::new(now, settings.battery_interval),
            main_battery: MainBattery::default(),
            looks_for_errors: settings.error_interval.is_some(),
            temperature_critical: settings.temperature_critical,
            temperature_drop: settings.temperature_drop,
            repeats: settings.repeats,
            battery_low: false,
            hot: false,
            has_reset: false,
        }
    }

    /// Starts over; the controllers may have changed.
    pub(super) fn begin(&mut self, now: Instant) {
        self.status.begin(now);
        self.temperature.begin(now);
        self.battery.begin(now);
        self.main_battery = MainBattery::default();
    }

    /// When the next reading is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let values = [self.temperature.due(), self.battery.due()];
        values
            .into_iter()
            .flatten()
            .chain([self.status.due()])
            .min()
    }

    /// The reading that is due now.
    pub(super) fn next(&self, now: Instant) -> Option<Job> {
        if let Some(unit) = self.status.next(now) {
            return Some(Job::Status(unit));
        }
        if let Some(index) = self.temperature.next(now) {
            // Two are read together: without a second controller, twice the same.
            let unit = self.units.get(index).unwrap_or(&self.units[0]);
            return Some(Job::Temperature(*unit));
        }
        let commands = [Command::MainBattery, Command::LogicBattery];
        let index = self.battery.next(now)?;
        // The controllers share the batteries.
        Some(Job::Battery(self.units[0], commands[index]))
    }

    /// The reason why driving is disabled.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if self.battery_low {
            Some(Refusal::BatteryLow)
        } else if self.status.error().is_some() {
            Some(Refusal::Errors)
        } else {
            self.hot.then_some(Refusal::Hot)
        }
    }

    /// The same as a text.
    pub(super) fn trouble(&self) -> Option<String> {
        let what = match (self.refusal()?, self.status.error()) {
            (Refusal::Errors, Some((unit, fault))) => {
                ControllerNote::Fault(unit, fault).to_string()
            }
            (refusal, _) => refusal.to_string(),
        };
        Some(format!("driving disabled: {what}"))
    }

    pub(super) fn status_read(&mut self, now: Instant, unit: Unit, status: Status) -> Vec<Finding> {
        let verdict = self.status.read(now, unit, status);
        if !self.looks_for_errors {
            // This reading only showed that the controller is connected.
            self.status.forget();
            return Vec::new();
        }
        let faults = match verdict {
            Verdict::Nothing => return Vec::new(),
            Verdict::Clean => {
                self.has_reset = false;
                return vec![Finding::Say(ControllerNote::Clean)];
            }
            Verdict::New(faults) => faults,
        };
        let note =
            |(unit, fault): &(Unit, Fault)| Finding::Say(ControllerNote::Fault(*unit, *fault));
        let mut findings: Vec<_> = faults.iter().map(note).collect();
        if faults.iter().any(|(_, fault)| *fault == Fault::BatteryLow) {
            self.battery_low = true;
            findings.push(Finding::Stop(StopReason::BatteryLow));
        }
        let is_error = |(_, fault): &(Unit, Fault)| matches!(fault, Fault::Error(_));
        if faults.iter().any(is_error) {
            findings.push(Finding::Stop(StopReason::Errors));
            if !std::mem::replace(&mut self.has_reset, true) {
                findings.push(Finding::Reset);
            }
        }
        findings
    }

    pub(super) fn temperature_read(&mut self, now: Instant, tenths: i32) -> Vec<Finding> {
        let Some([front, rear]) = self.temperature.read(now, tenths) else {
            return Vec::new();
        };
        let tenths = front.max(rear);
        let changes = match self.hot {
            true => tenths < self.temperature_drop,
            false => tenths > self.temperature_critical,
        };
        if !self.temperature.confirms(now, changes, self.repeats) {
            return Vec::new();
        }
        self.hot = !self.hot;
        let hot = self.hot;
        let stop = hot.then_some(Finding::Stop(StopReason::Hot));
        let note = Finding::Say(ControllerNote::Temperature { hot, tenths });
        [note].into_iter().chain(stop).collect()
    }

    pub(super) fn battery_read(&mut self, now: Instant, tenths: i32) -> Vec<Finding> {
        // The main battery comes first.
        if self.battery.next(now) == Some(0) {
            self.main_battery.read(now, tenths);
        }
        match self.battery.read(now, tenths) {
            Some([main_dv, logic_dv]) if self.battery.has_moved_by(main_dv, 5) => {
                vec![Finding::Say(ControllerNote::Battery { main_dv, logic_dv })]
            }
            _ => Vec::new(),
        }
    }

    /// The last measurement of the main battery.
    pub(super) fn main_battery(&self, now: Instant) -> Option<BatteryReading> {
        self.main_battery.reading(now, self.battery_low)
    }

    /// The temperature could not be read; returns a log message for it.
    pub(super) fn temperature_failed(&mut self, now: Instant) -> Option<ControllerNote> {
        let note = ControllerNote::Unknown("temperature");
        self.temperature.failed(now).then_some(note)
    }

    /// A battery could not be measured; returns a log message for it.
    pub(super) fn battery_failed(&mut self, now: Instant) -> Option<ControllerNote> {
        let note = ControllerNote::Unknown("batteries");
        self.battery.failed(now).then_some(note)
    }
}
