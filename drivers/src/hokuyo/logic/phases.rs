//! The phases of the scanner: which request is sent when, and when the driver gives up. PURE.

use std::time::{Duration, Instant};

use super::settings::angles;
use super::*;

impl ScannerLogic {
    /// Performs the next step, if one is possible now.
    pub(super) fn proceed(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Absent { until } if now >= *until => {
                self.phase = Phase::Opening;
                self.service.push(Output::Open);
            }
            Phase::Ended => self.service.push(Output::End),
            Phase::Absent { .. }
            | Phase::Opening
            | Phase::Waking { .. }
            | Phase::Stopping { .. } => {}
            Phase::Setting { left } if self.asked.is_none() => match left.pop_front() {
                Some(request) => self.request(now, request),
                None => self.get_ready(now),
            },
            Phase::Ready if self.asked.is_none() => self.proceed_ready(now),
            Phase::Setting { .. } | Phase::Ready => {}
        }
    }

    fn proceed_ready(&mut self, now: Instant) {
        if self.streams && now.saturating_duration_since(self.last_scan) > USELESS {
            return self.give_up(now, "the scanner sends only invalid data".into());
        }
        self.service.forget_askers(now);
        let is_asked = self.service.has_askers();
        let wants_stream = self.service.has_listeners() || (!self.has_gd && is_asked);
        if wants_stream && !self.streams {
            let request = self.geometry.continuous(self.skipped());
            self.request(now, request);
        } else if is_asked && !self.streams {
            let request = match self.is_lit {
                true => self.geometry.single(),
                false => "BM".into(),
            };
            self.request(now, request);
        } else if self.dark_at().is_some_and(|due| now >= due) {
            self.request(now, "QT".into());
        }
    }

    pub(super) fn begin_setting(&mut self, now: Instant) {
        self.has_gd = true;
        // It may be another scanner.
        self.description = Description::default();
        let sensitivity = u8::from(self.settings.high_sensitivity);
        let left = [
            "VV".to_owned(),
            "PP".to_owned(),
            format!("HS{sensitivity}"),
            format!("CR{:02}", self.settings.motor_speed),
            // It tells the speed of the motor.
            "II".to_owned(),
        ];
        self.phase = Phase::Setting { left: left.into() };
        self.proceed(now);
    }

    fn get_ready(&mut self, now: Instant) {
        self.phase = Phase::Ready;
        self.angles = angles(self.geometry, self.settings.angles);
        let (description, points) = (&self.description, self.geometry.points());
        let name = || format!("{}, {points} points", description.name());
        self.service.works(now, name);
        self.proceed(now);
    }

    fn request(&mut self, now: Instant, request: String) {
        self.service
            .push(Output::Write(format!("{request}\n").into()));
        self.heard = now;
        // The first try; `ask_again` keeps the count for a repeated request.
        let tries = 1;
        self.asked = Some(Asked {
            request,
            tries,
            spoilt: self.parser.spoilt(),
        });
    }

    /// Nothing has arrived in time. To start over takes a second and turns the laser off and on, so
    /// a scanner whose stream pauses is first asked for a sign of life.
    pub(super) fn break_silence(&mut self, now: Instant) {
        if !self.streams || self.asked.is_some() {
            return self.ask_again(now);
        }
        if mem::replace(&mut self.is_probed, true) {
            return self.give_up(now, "the scanner answers, but sends no more scans".into());
        }
        self.request(now, PROBE.into());
    }

    /// No valid reply has arrived: repeats the request.
    pub(super) fn ask_again(&mut self, now: Instant) {
        let Some(asked) = self.asked.take_if(|asked| asked.tries < MAX_TRIES) else {
            return self.give_up(now, "the scanner does not answer".into());
        };
        let tries = asked.tries + 1;
        self.request(now, asked.request);
        if let Some(asked) = &mut self.asked {
            asked.tries = tries;
        }
    }

    /// Starts over. Logs the problem unless it was already logged.
    pub(super) fn give_up(&mut self, now: Instant, trouble: String) {
        let again = self.service.fails(now, trouble);
        self.asked = None;
        self.streams = false;
        self.is_probed = false;
        self.is_lit = false;
        self.parser.clear();
        self.phase = match self.phase {
            Phase::Stopping { .. } | Phase::Ended => Phase::Ended,
            _ => Phase::Absent { until: again },
        };
        self.proceed(now);
    }

    pub(super) fn light(&mut self, is_lit: bool) {
        if self.is_lit != is_lit {
            self.is_lit = is_lit;
            self.spins_up = is_lit;
            self.service.say(Note::Laser(is_lit));
        }
    }

    /// When the scanner has been silent for too long.
    pub(super) fn silent_at(&self) -> Option<Instant> {
        let waits = self.asked.is_some() || self.streams;
        let period = self.period() * (u32::from(self.skipped()) + 1);
        let longest = match self.spins_up {
            true => SPIN_UP,
            false => self.settings.timeout.max(3 * period),
        };
        waits.then_some(self.heard + longest)
    }

    /// When to turn the laser off.
    pub(super) fn dark_at(&self) -> Option<Instant> {
        let is_wanted = self.service.has_listeners() || self.service.has_askers();
        let is_idle = !is_wanted && self.asked.is_none();
        let idle = self.settings.laser_idle?;
        (is_idle && (self.is_lit || self.streams)).then(|| self.service.wanted() + idle)
    }

    /// How many scans to skip between two published scans.
    pub(super) fn skipped(&self) -> u8 {
        let period = self.period();
        let wanted = self.settings.publish.as_millis();
        let apart = wanted.div_ceil(period.as_millis().max(1)).clamp(1, 10);
        u8::try_from(apart - 1).unwrap_or(9)
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_secs(60) / u32::from(self.geometry.rpm)
    }
}
