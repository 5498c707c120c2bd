//! Decides how fast the wheels turn, and where the base is by what they have done. PURE.
//!
//! Report each event to [`BaseLogic`], then send what [`BaseLogic::poll_order`] returns. Call
//! [`BaseLogic::handle_timeout`] at [`BaseLogic::wake_at`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_map::Pose;
use amber_navigation::omni::{OmniBase, Velocity};
use amber_proto::Device;
use amber_proto::bus_servos::{ServoStates, servo_state::Kind};
use amber_proto::motion::MotionState;

use crate::moving::heard::Heard;
use crate::moving::refusal::refusal;
use crate::moving::repeating::Repeating;
use crate::outage::Outage;
use crate::servos::Note;

/// After a longer time between two measurements, it is not known how far the wheels have turned.
const MAX_GAP: Duration = Duration::from_secs(5);
/// The same if a wheel may have turned by any of so many degrees: servos jump back after 360.
const MAX_DOUBT_DEG: f64 = 340.0;
/// If the times of two measurements and the times at which they came differ by more, the clock was set.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// A wheel and its servo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wheel {
    pub(super) id: u8,
    /// Whether the servo turns the other way round.
    pub(super) is_reversed: bool,
}

/// What is known of the base.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    /// In the order of those of `base`.
    pub(super) wheels: [Wheel; 3],
    pub(super) wheel_radius_m: f64,
    pub(super) base: OmniBase,
    /// The base stops this long after the last command.
    pub(super) idle_stop: Option<Duration>,
}

/// What the servos are told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    /// Ids and speeds in degrees per second.
    pub(super) speeds: [(u32, f64); 3],
    /// The client for which they turn.
    pub(super) client: Option<ClientId>,
    pub(super) is_stop: bool,
}

impl Order {
    /// The speeds in the commands for the servos. These refuse a command if one of its servos does not
    /// answer, so each wheel is stopped by its own.
    pub(super) fn commands(&self) -> impl Iterator<Item = &[(u32, f64)]> {
        self.speeds.chunks(if self.is_stop { 1 } else { 3 })
    }
}

/// How the base moves, and where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub(super) measured: Velocity,
    pub(super) told: Velocity,
    /// In the frame of the start.
    pub(super) pose: Pose,
    /// When the wheels were measured, in microseconds since 1970.
    pub(super) time_us: i64,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Measurements of all wheels.
    pub(super) measurements: u64,
    /// Times in which the wheels turned by an unknown angle.
    pub(super) gaps: u64,
    /// Rejected commands.
    pub(super) refused: u64,
}

/// The logic of the driver.
#[derive(Debug)]
pub(super) struct BaseLogic {
    rules: Rules,
    /// The device that has the servos.
    servos: Device,
    command: Repeating<Velocity>,
    last: Option<Measurement>,
    state: Option<State>,
    pose: Pose,
    is_fresh: bool,
    /// Without measurements, the base stops.
    heard: Heard,
    /// Why a wheel cannot be used.
    fault: Option<String>,
    /// What is wrong with a wheel that can be used.
    warning: Option<String>,
    /// Why the servos refuse to turn for this driver.
    refusal: Option<String>,
    trouble: Option<String>,
    is_ready: bool,
    outage: Outage,
    notes: VecDeque<Note>,
    pub(super) counters: Counters,
}

/// What the wheels have measured.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    at: Instant,
    time_us: i64,
    wheels: [Turning; 3],
}

/// A wheel that turns, positive as the base counts it.
#[derive(Clone, Copy, Debug, Default)]
struct Turning {
    /// Of most servos, it jumps back after a turn.
    angle_deg: f64,
    speed_deg_s: f64,
}

impl BaseLogic {
    /// A base at rest, of which nothing was measured.
    pub(super) fn new(rules: Rules, servos: Device, now: Instant) -> Self {
        Self {
            command: Repeating::new(now, rules.idle_stop),
            rules,
            servos,
            last: None,
            state: None,
            pose: Pose::default(),
            is_fresh: false,
            heard: Heard::new(servos, "reports no wheels", now),
            fault: None,
            warning: None,
            refusal: None,
            trouble: None,
            is_ready: false,
            outage: Outage::default(),
            notes: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Clients want the base to drive. A stop is always obeyed.
    ///
    /// # Errors
    /// The base cannot drive: the reason.
    pub(super) fn drive(
        &mut self,
        now: Instant,
        clients: &[ClientId],
        velocity: Velocity,
    ) -> Result<(), String> {
        if velocity == Velocity::STOP {
            self.command.stop(now);
            return Ok(());
        }
        let unusable = match velocity.is_finite() {
            true => self.absence(now).or_else(|| self.refusal.clone()),
            false => Some("a speed must be a number".to_owned()),
        };
        if let Some(why) = unusable {
            self.counters.refused += 1;
            return Err(why);
        }
        let velocity = self.rules.base.limited(velocity);
        self.command.command(now, clients, velocity);
        Ok(())
    }

    /// The servos were measured.
    pub(super) fn handle(&mut self, now: Instant, states: &ServoStates) {
        let time_us = states.time.unwrap_or_default();
        if self.last.is_some_and(|last| last.time_us == time_us) {
            // An answer may repeat what was published.
            self.heard.repeated();
            return self.look(now);
        }
        self.heard.measured(now);
        match self.wheels(states) {
            Ok(wheels) => {
                if self.fault.take().is_some() {
                    // A wheel that is back may turn as it did before.
                    self.command.stop_again(now);
                }
                let measurement = Measurement {
                    at: now,
                    time_us,
                    wheels,
                };
                self.measured(measurement);
            }
            Err(fault) => {
                self.fault = Some(fault);
                self.last = None;
                self.command.stop(now);
            }
        }
        self.look(now);
    }

    /// The servos could not be measured.
    pub(super) fn failed(&mut self, now: Instant, problem: String) {
        self.heard.failed(problem);
        self.look(now);
    }

    /// Who moves the servos.
    pub(super) fn handle_motion(&mut self, now: Instant, state: &MotionState) {
        self.refusal = refusal(self.servos, state, self.command.commanders());
        if self.refusal.is_some() {
            self.command.stop(now);
        }
        self.look(now);
    }

    /// Whether to ask who moves the servos: they do not say when they refuse.
    pub(super) fn wants_motion_state(&self) -> bool {
        self.command.moves() || self.refusal.is_some()
    }

    /// A timer may have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.heard.looked(now);
        if self.command.expire(now) {
            self.notes.push_back(Note::Event(
                "the base stops: no command has come for a while",
            ));
        }
        if self.heard.is_silent(now) {
            self.command.stop(now);
        }
        self.look(now);
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_order`] if nothing happens earlier.
    pub(super) fn wake_at(&self) -> Instant {
        let look_at = self.heard.look_at();
        self.command.wake_at().map_or(look_at, |at| at.min(look_at))
    }

    /// What the servos must be told now.
    pub(super) fn poll_order(&mut self, now: Instant) -> Option<Order> {
        let velocity = self.command.poll(now)?;
        Some(self.order(velocity))
    }

    /// The driver ends: what stops the wheels, if they turn.
    pub(super) fn last_order(&mut self) -> Option<Order> {
        let velocity = self.command.last()?;
        Some(self.order(velocity))
    }

    /// The state, or why it is not known.
    pub(super) fn state(&self, now: Instant) -> Result<State, String> {
        let state = self.state.map(|state| State {
            told: self.command.told(),
            ..state
        });
        match (self.absence(now), state) {
            (None, Some(state)) => Ok(state),
            (absence, _) => Err(absence.unwrap_or_default()),
        }
    }

    /// The fastest of each.
    pub(super) fn limits(&self) -> Velocity {
        self.rules.base.limits()
    }

    /// Whether there was a measurement since the last call.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh)
    }

    /// Why the base does not work as it should.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The next log message.
    pub(super) fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    fn order(&self, velocity: Velocity) -> Order {
        let rims_m_s = self.rules.base.rims_m_s(velocity);
        let mut speeds = [(0, 0.0); 3];
        for ((speed, wheel), rim_m_s) in speeds.iter_mut().zip(self.rules.wheels).zip(rims_m_s) {
            let speed_deg_s = (rim_m_s / self.rules.wheel_radius_m).to_degrees();
            *speed = (wheel.id.into(), wheel.signed(speed_deg_s));
        }
        Order {
            speeds,
            client: self.command.commanders().first().copied(),
            is_stop: velocity == Velocity::STOP,
        }
    }

    /// The wheels among the servos.
    fn wheels(&mut self, states: &ServoStates) -> Result<[Turning; 3], String> {
        let servos = self.servos;
        let mut wheels = [Turning::default(); 3];
        let mut warning = None;
        for (turning, wheel) in wheels.iter_mut().zip(self.rules.wheels) {
            let id = wheel.id;
            let mut all = states.servos.iter();
            let state = all.find(|state| state.id == Some(id.into()));
            let state = state.ok_or_else(|| format!("{servos} has no servo {id}"))?;
            if state.kind() != Kind::Wheel {
                return Err(format!("servo {id} of {servos} is a joint, not a wheel"));
            }
            let problem = state.problem.as_deref();
            let (Some(angle_deg), Some(speed_deg_s)) = (state.angle, state.speed) else {
                let why = problem.unwrap_or("was not measured yet");
                return Err(format!("servo {id} {why}"));
            };
            let of_servo = |problem: &str| format!("servo {id} {problem}");
            warning = warning.or_else(|| problem.map(of_servo));
            *turning = Turning {
                angle_deg: wheel.signed(angle_deg),
                speed_deg_s: wheel.signed(speed_deg_s),
            };
        }
        self.warning = warning;
        Ok(wheels)
    }

    /// All wheels were measured.
    fn measured(&mut self, new: Measurement) {
        self.counters.measurements += 1;
        self.is_fresh = true;
        let velocity = match self.last.map(|last| self.motion(&last, &new)) {
            Some(Some((velocity, time_s))) => {
                self.pose = velocity.moved(self.pose, time_s);
                velocity
            }
            way => {
                self.counters.gaps += u64::from(way.is_some());
                self.by_speed(&new)
            }
        };
        self.last = Some(new);
        self.state = Some(State {
            measured: velocity,
            told: self.command.told(),
            pose: self.pose,
            time_us: new.time_us,
        });
    }

    /// The velocity between two measurements, and their time; `None` if it is not known.
    fn motion(&self, last: &Measurement, new: &Measurement) -> Option<(Velocity, f64)> {
        let time_s = new.seconds_since(last)?;
        let mut rims_m_s = [0.0; 3];
        for ((rim, new), last) in rims_m_s.iter_mut().zip(new.wheels).zip(last.wheels) {
            let turned_deg = new.turned_since(last, time_s)?;
            *rim = turned_deg.to_radians() * self.rules.wheel_radius_m / time_s;
        }
        Some((self.rules.base.velocity(rims_m_s), time_s))
    }

    /// The velocity by the speeds that the servos report.
    fn by_speed(&self, measurement: &Measurement) -> Velocity {
        let radius_m = self.rules.wheel_radius_m;
        let rim = |wheel: Turning| wheel.speed_deg_s.to_radians() * radius_m;
        self.rules.base.velocity(measurement.wheels.map(rim))
    }

    /// Why the wheels cannot be used.
    fn absence(&self, now: Instant) -> Option<String> {
        self.heard.absence(now).or_else(|| self.fault.clone())
    }

    /// Notes whether there is a trouble.
    fn look(&mut self, now: Instant) {
        let is_starting = !self.is_ready && self.heard.is_starting(now);
        let absence = self.absence(now);
        let reported = absence.clone().filter(|_| !is_starting);
        let trouble = reported
            .or_else(|| self.refusal.clone())
            .or_else(|| self.warning.clone());
        match &trouble {
            Some(text) if self.outage.complain(now, text) => {
                self.notes.push_back(Note::Trouble(text.clone()));
            }
            None if absence.is_none() && (self.trouble.is_some() || !self.is_ready) => {
                self.is_ready = true;
                self.notes.push_back(match self.outage.over(now) {
                    Some(after) => Note::Back(after),
                    None => Note::Ready("three wheels".to_owned()),
                });
            }
            Some(_) | None => {}
        }
        self.trouble = trouble;
    }
}

impl Wheel {
    /// A turn as the base counts it from that of the servo, or the other way round.
    fn signed(self, turn: f64) -> f64 {
        if self.is_reversed { -turn } else { turn }
    }
}

impl Measurement {
    /// The time since an earlier measurement; `None` if it is too long. The servos say it more
    /// exactly than it takes to hear of it, unless the clock of the robot was set in between.
    fn seconds_since(&self, earlier: &Self) -> Option<f64> {
        let heard = self.at.saturating_duration_since(earlier.at);
        let said = self.time_us.checked_sub(earlier.time_us);
        let said = said.and_then(|us| u64::try_from(us).ok());
        let said = said.map(Duration::from_micros);
        let time = said.filter(|said| said.abs_diff(heard) <= MAX_DELAY);
        let time = time.unwrap_or(heard).max(Duration::from_millis(1));
        (time <= MAX_GAP).then_some(time.as_secs_f64())
    }
}

impl Turning {
    /// The angle since an earlier measurement, also over a jump of the angle; `None` if it is in doubt.
    fn turned_since(self, earlier: Self, time_s: f64) -> Option<f64> {
        // It has turned as at one of these times, or stood, or something in between.
        let speeds = [self.speed_deg_s, earlier.speed_deg_s];
        let least_deg = speeds.into_iter().fold(0.0, f64::min) * time_s;
        let most_deg = speeds.into_iter().fold(0.0, f64::max) * time_s;
        let guess_deg = f64::midpoint(least_deg, most_deg);
        let error_deg = self.angle_deg - earlier.angle_deg - guess_deg;
        let turned_deg = guess_deg + (error_deg + 180.0).rem_euclid(360.0) - 180.0;
        (most_deg - least_deg < MAX_DOUBT_DEG).then_some(turned_deg)
    }
}

#[cfg(test)]
mod tests;
