//! Services that take seconds of readings: the self-test and the calibrations. PURE.

use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::ninedof::{Finding, ServiceReport};

use super::calibration::{Calibration, MIN_SAMPLES, Samples};
use super::sensors::{Sensor, Sensors};
use super::units::{Axes, Measured};

/// The interval between readings.
const PERIOD: Duration = Duration::from_millis(10);

/// Time limit for a service, whatever the request says.
const MAX_TIME: Duration = Duration::from_secs(120);

/// A service takes longer than requested if it has too few readings, because the bus or the machine
/// is slow. After this time it ends in any case, unless a longer one was requested.
const SLOW_TIME: Duration = Duration::from_secs(5);

/// The number of readings of a turn between two checks whether they are sufficient.
const LOOK_EVERY: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Checks that the sensors are present and report plausible values.
    SelfTest,
    /// Measures the gyroscope bias; the robot must stand still.
    Gyro,
    /// Measures the robot's own field; the robot must turn round.
    Magnet,
}

/// A running service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) kind: ServiceKind,
    /// The client's request; `None` for a service that the driver started.
    pub(super) origin: Option<Origin>,
    due: Instant,
    /// The requested end.
    ends: Instant,
    /// The end with too few readings.
    gives_up: Instant,
    samples: Samples,
    taken: usize,
}

/// The result of a service.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The self-test: a result per sensor.
    Findings([Result<String, String>; 3]),
    /// The bias or the hard iron, or why it could not be measured.
    Measured(ServiceKind, Result<Axes, String>),
}

impl ServiceKind {
    /// The duration, unless the request states another one.
    fn usual_time(self) -> Duration {
        Duration::from_secs(match self {
            Self::SelfTest => 1,
            Self::Gyro => 2,
            // It ends as soon as the robot has turned round.
            Self::Magnet => 60,
        })
    }
}

impl Service {
    pub(super) fn new(
        now: Instant,
        kind: ServiceKind,
        origin: Option<Origin>,
        time: Option<Duration>,
    ) -> Self {
        let ends = now + time.unwrap_or(kind.usual_time()).min(MAX_TIME);
        Self {
            kind,
            origin,
            due: now,
            ends,
            gives_up: ends.max(now + SLOW_TIME),
            samples: Samples::default(),
            taken: 0,
        }
    }

    /// The sensors that it reads.
    pub(super) fn wants(&self) -> Sensors {
        match self.kind {
            ServiceKind::SelfTest => Sensors::ALL,
            // The magnetic field shows whether the robot turns steadily.
            ServiceKind::Gyro => Sensors {
                accel: false,
                ..Sensors::ALL
            },
            ServiceKind::Magnet => Sensors {
                magnet: true,
                ..Sensors::default()
            },
        }
    }

    /// When the next reading is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The latest time at which it ends.
    pub(super) fn ends(&self) -> Instant {
        match self.taken {
            1..MIN_SAMPLES => self.gives_up,
            // Without any reading, the bus is gone.
            _ => self.ends,
        }
    }

    /// Adds an uncalibrated reading.
    pub(super) fn push(&mut self, now: Instant, measured: Measured) {
        self.samples.push(measured);
        self.taken += 1;
        self.due = now + PERIOD;
    }

    /// The result, once the service has ended.
    pub(super) fn outcome(&self, now: Instant, calibration: &Calibration) -> Option<Outcome> {
        let is_over = now >= self.ends();
        let looks = self.kind == ServiceKind::Magnet && self.taken.is_multiple_of(LOOK_EVERY);
        if !is_over && !looks {
            return None;
        }
        match self.kind {
            ServiceKind::SelfTest => Some(Outcome::Findings(self.samples.findings(calibration))),
            ServiceKind::Gyro => Some(Outcome::Measured(self.kind, self.samples.gyro_bias())),
            ServiceKind::Magnet => {
                let found = self.samples.hard_iron();
                (is_over || found.is_ok()).then_some(Outcome::Measured(self.kind, found))
            }
        }
    }
}

/// The report of a self-test, without the sensors that the board does not have.
pub(super) fn findings_report(
    findings: [Result<String, String>; 3],
    lacking: Sensors,
) -> ServiceReport {
    let all = Sensor::ALL.into_iter().zip(findings);
    ServiceReport {
        findings: all
            .filter(|(sensor, _)| !lacking.has(*sensor))
            .map(|(sensor, found)| finding(sensor.name(), found))
            .collect(),
    }
}

pub(super) fn calibration_report(
    kind: ServiceKind,
    found: Result<Axes, String>,
    stored: Option<Result<String, String>>,
) -> ServiceReport {
    let (about, unit) = match kind {
        ServiceKind::Magnet => ("magnet", "milligauss"),
        ServiceKind::Gyro | ServiceKind::SelfTest => ("gyro", "deg/s"),
    };
    let text =
        |[x, y, z]: Axes| format!("x {x:.2}, y {y:.2}, z {z:.2} {unit} subtracted from now on");
    let measured = finding(about, found.map(text));
    let stored = stored.map(|stored| finding("file", stored));
    ServiceReport {
        findings: [Some(measured), stored].into_iter().flatten().collect(),
    }
}

/// The report of a sensor that calibrates itself.
pub(super) fn own_report(kind: ServiceKind, found: Result<String, String>) -> ServiceReport {
    let about = match kind {
        ServiceKind::Magnet => "magnet",
        ServiceKind::Gyro | ServiceKind::SelfTest => "gyro",
    };
    ServiceReport {
        findings: vec![finding(about, found)],
    }
}

/// The report of a service that was not started.
pub(super) fn refusal(why: &str) -> ServiceReport {
    ServiceReport {
        findings: vec![finding("driver", Err(why.to_owned()))],
    }
}

fn finding(about: &str, found: Result<String, String>) -> Finding {
    Finding {
        about: Some(about.to_owned()),
        good: Some(found.is_ok()),
        text: Some(found.unwrap_or_else(|why| why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELF_TEST_MS: u64 = 1000;
    const NEVER_MS: u64 = 100_000;

    #[test]
    fn a_service_on_a_slow_bus_waits_for_enough_readings() {
        // Milliseconds per reading, and the end.
        for (period_ms, ends_ms) in [
            (10, SELF_TEST_MS),
            (50, SELF_TEST_MS),
            (100, 2000),
            (400, 5000),
            (NEVER_MS, SELF_TEST_MS),
        ] {
            let start = Instant::now();
            let mut service = Service::new(start, ServiceKind::SelfTest, None, None);
            let calibration = Calibration::default();
            let ended = (1..=10_000).find(|time_ms| {
                let now = start + Duration::from_millis(*time_ms);
                if time_ms % period_ms == 0 {
                    service.push(now, Measured::default());
                }
                service.outcome(now, &calibration).is_some()
            });
            assert_eq!(ended, Some(ends_ms), "{period_ms} ms");
        }
    }
}
