//! The main battery of the robot: it empties with the current of the motors, and its voltage falls
//! under load. PURE.
//!
//! Each device that measures the battery has its own, and is told the same currents, so they agree.

use std::time::Duration;

use crate::wheels::Reading;

/// The voltage of a full battery.
const FULL_V: f64 = 12.6;
/// The limit lets a simulated robot run for days.
const EMPTY_V: f64 = 11.5;
/// The voltage drop of an idle battery.
const IDLE_DRAIN_V_PER_S: f64 = 0.000_05;
/// The voltage drop per ampere second.
const DRAIN_V_PER_AS: f64 = 0.000_02;
/// The resistance between the battery and the controllers.
const OHM: f64 = 0.05;
/// The current of the computer and the sensors.
const IDLE_A: f64 = 0.5;
/// The voltage drop of a sagging battery, and the current that causes it.
const SAG_V: f64 = 0.8;
const SAG_A: f64 = 10.0;

#[derive(Clone, Debug)]
pub(crate) struct Battery {
    charge_v: f64,
    motors_a: f64,
    forced_v: Option<f64>,
    sags: bool,
    since: Duration,
}

impl Default for Battery {
    /// A full one.
    fn default() -> Self {
        Self {
            charge_v: FULL_V,
            motors_a: 0.0,
            forced_v: None,
            sags: false,
            since: Duration::ZERO,
        }
    }
}

impl Battery {
    /// What the wheels do.
    pub(crate) fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.motors_a = readings.iter().map(|reading| reading.current_a).sum();
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        self.since = now;
        self.charge_v -= seconds * (IDLE_DRAIN_V_PER_S + DRAIN_V_PER_AS * self.motors_a);
        self.charge_v = self.charge_v.max(EMPTY_V);
    }

    /// From now on it has this voltage; `None` for its own.
    pub(crate) fn force_v(&mut self, volts: Option<f64>) {
        self.forced_v = volts;
    }

    /// Whether something draws a large current from it.
    pub(crate) fn set_sag(&mut self, sags: bool) {
        self.sags = sags;
    }

    pub(crate) fn volts(&self) -> f64 {
        let own_v = self.charge_v - OHM * self.motors_a;
        let sag_v = if self.sags { SAG_V } else { 0.0 };
        self.forced_v.unwrap_or(own_v) - sag_v
    }

    /// The current out of the battery.
    pub(crate) fn amperes(&self) -> f64 {
        let sag_a = if self.sags { SAG_A } else { 0.0 };
        IDLE_A + self.motors_a + sag_a
    }
}
