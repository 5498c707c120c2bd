//! Checks the geometry while the robot works, without using the computer for long. PURE.
//!
//! A check ends when it rests on enough motion, and another one begins later: somebody may have bumped
//! into the laser.

use std::time::Duration;

use super::{Config, Counters, Findings, Geometry};
use crate::kinematics::Wheels;
use crate::scan::Scan;

/// How often the findings are drawn.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A check that has seen so many turns and straight ways is over.
const ENOUGH_RAD: f64 = 25.0;
const ENOUGH_M: f64 = 8.0;
/// The time until the next check.
const REST: Duration = Duration::from_secs(600);

/// The check of a robot that works.
#[derive(Clone, Debug)]
pub struct Watch {
    geometry: Geometry,
    findings: Findings,
    look_at: Duration,
    /// The last check is over; the next one begins then.
    rests_until: Option<Duration>,
    /// Whether an earlier check has given the findings.
    is_checked: bool,
}

impl Watch {
    /// Starts the first check.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let geometry = Geometry::new(config);
        Self {
            findings: geometry.findings(),
            geometry,
            look_at: Duration::ZERO,
            rests_until: None,
            is_checked: false,
        }
    }

    /// Forgets all measurements, and starts again.
    pub fn restart(&mut self) {
        *self = Self::new(self.geometry.config().clone());
    }

    /// The findings of the check, or of the last one while the next one knows less.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The counts of events of this check.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.geometry.counters()
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.geometry.handle_wheels(time, wheels);
    }

    /// A gyroscope has measured the turn rate, counter-clockwise.
    pub fn handle_turn_rate(&mut self, time: Duration, turn_rad_s: f64) {
        self.geometry.handle_turn_rate(time, turn_rad_s);
    }

    /// A scan has arrived. Returns whether the findings may have changed.
    pub fn handle_scan(&mut self, scan: &Scan) -> bool {
        let time = scan.end();
        if let Some(until) = self.rests_until {
            if time < until {
                return false;
            }
            self.rests_until = None;
            self.geometry = Geometry::new(self.geometry.config().clone());
        }
        self.geometry.handle_scan(scan.clone());
        if time < self.look_at {
            return false;
        }
        self.look_at = time + LOOK_EVERY;
        let findings = self.geometry.findings();
        let evidence = findings.evidence;
        let is_over = evidence.seen_rad >= ENOUGH_RAD && evidence.straight_m >= ENOUGH_M;
        if is_over {
            self.rests_until = Some(time + REST);
        }
        if self.is_checked && !is_over && findings.found.is_empty() {
            return false;
        }
        self.is_checked |= is_over;
        self.findings = findings;
        true
    }
}
