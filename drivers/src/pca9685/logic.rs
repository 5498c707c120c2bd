//! Decides what a PCA9685 is told. PURE.
//!
//! ```text
//!   Closed --open--> Open, chip unknown --set up--> Open, chip ready <--> checked once a second
//!      ^                    |                            |
//!      +--- the bus fails --+----------------------------+--> chip lost: checked until it answers
//! ```
//!
//! The chip has no memory for speeds, so pulses of servos with a speed change here, one step in 20 ms.
//! Servos that get no pulses turn with full speed at first, as on a Maestro: their position is unknown.
//!
//! A reset of the chip, which noise of motors can cause, ends all pulses; they are restored. After an
//! outage of the bus the chip either has its settings, and then its pulses, or had no power: then
//! servos get no pulses until the next command.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::registers::{CHANNELS, Timing, pulses};
use crate::i2c::registers::Problem;
use crate::servos::{Model, Note, Order, Service};

/// The interval between two checks of the settings.
const CHECK: Duration = Duration::from_secs(1);

/// The interval between two steps of a moving pulse.
const STEP: Duration = Duration::from_millis(20);

/// The change of a pulse in a step, in microseconds, for each unit of its speed.
const US_PER_STEP: f64 = 0.5;

/// An action for the caller, who reports the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open the bus, then call [`ServoLogic::opened`].
    Open,
    /// Find the chip and set it up, without pulses, then call [`ServoLogic::handle_set_up`].
    SetUp,
    /// Read whether the chip has kept its settings, then call [`ServoLogic::handle_check`].
    Check,
    /// Write this, then call [`ServoLogic::handle_written`].
    Write(Vec<Vec<u8>>),
    /// Nothing is left to do.
    End,
}

/// The logic of the driver.
#[derive(Debug)]
pub struct ServoLogic {
    timing: Timing,
    phase: Phase,
    channels: [Channel; CHANNELS as usize],
    /// What the last [`Action::Write`] gives the channels.
    being_written: Option<[u16; CHANNELS as usize]>,
    step_at: Option<Instant>,
    is_ending: bool,
    pub(super) service: Service,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed { until: Instant },
    Open { chip: Chip, until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chip {
    /// It was not set up since the start of the driver.
    Unknown,
    /// It does not answer, or was set up before the bus was closed.
    Lost,
    /// It was reset, and gets its pulses again.
    Reset,
    /// It works.
    Ready,
}

/// A channel. Pulses are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    target: Option<f64>,
    pulse: Option<f64>,
    /// In 25 us/s; 0 for no limit.
    speed: u16,
    /// The steps that the chip has; 0 for no pulses.
    written: u16,
}

impl Channel {
    fn turn(&mut self, us: f64) {
        self.target = Some(us);
        if self.speed == 0 || self.pulse.is_none() {
            self.pulse = Some(us);
        }
    }

    fn release(&mut self) {
        (self.target, self.pulse) = (None, None);
    }

    fn is_moving(&self) -> bool {
        self.pulse != self.target
    }

    fn step(&mut self) {
        if let (Some(pulse), Some(target)) = (&mut self.pulse, self.target) {
            let most = match self.speed {
                0 => f64::INFINITY,
                speed => f64::from(speed) * US_PER_STEP,
            };
            *pulse += (target - *pulse).clamp(-most, most);
        }
    }
}

impl Model for ServoLogic {
    fn service(&mut self) -> &mut Service {
        &mut self.service
    }

    fn is_connected(&self) -> bool {
        matches!(
            self.phase,
            Phase::Open {
                chip: Chip::Ready,
                ..
            }
        ) && !self.is_ending
    }

    fn carry_out(&mut self, now: Instant, orders: &[Order]) {
        for order in orders {
            let (Order::Turn { servo, .. } | Order::Speed { servo, .. } | Order::Release { servo }) =
                *order;
            let Some(channel) = self.channels.get_mut(usize::from(servo)) else {
                continue;
            };
            match *order {
                Order::Turn { us, .. } => channel.turn(us),
                Order::Speed { speed, .. } => channel.speed = speed,
                Order::Release { .. } => channel.release(),
            }
        }
        self.schedule_step(now);
    }

    fn hold(&mut self) {
        for channel in &mut self.channels {
            channel.target = channel.pulse;
        }
    }
}

impl ServoLogic {
    /// Starts without a connection. The given servos turn on and on, as motors do.
    pub fn new(timing: Timing, continuous: BTreeSet<u8>, now: Instant) -> Self {
        Self {
            timing,
            phase: Phase::Closed { until: now },
            channels: [Channel::default(); CHANNELS as usize],
            being_written: None,
            step_at: None,
            is_ending: false,
            service: Service::new(continuous),
        }
    }

    /// The bus was opened, or could not be opened.
    pub fn opened(&mut self, now: Instant, result: Result<(), String>) {
        match result {
            Ok(()) => {
                let chip = match self.was_set_up() {
                    true => Chip::Lost,
                    false => Chip::Unknown,
                };
                self.phase = Phase::Open { chip, until: now };
            }
            Err(why) => self.fail(now, Problem::Bus(why)),
        }
    }

    /// The chip was set up.
    pub fn handle_set_up(&mut self, now: Instant, result: Result<(), Problem>) {
        match result {
            Ok(()) => {
                let keeps = matches!(
                    self.phase,
                    Phase::Open {
                        chip: Chip::Reset,
                        ..
                    }
                );
                for channel in &mut self.channels {
                    channel.written = 0;
                    if !keeps {
                        channel.release();
                    }
                }
                self.works(now);
            }
            Err(problem) => self.fail(now, problem),
        }
    }

    /// The settings of the chip were read: whether it has kept them.
    pub fn handle_check(&mut self, now: Instant, result: Result<bool, Problem>) {
        match (result, self.phase) {
            (Ok(true), _) => self.works(now),
            (
                Ok(false),
                Phase::Open {
                    chip: Chip::Ready, ..
                },
            ) => {
                self.service.counters.errors += 1;
                let text = "the PCA9685 has lost its settings, as after a short loss of power: \
                            setting it up again";
                self.service.say(Note::Event(text));
                self.phase = Phase::Open {
                    chip: Chip::Reset,
                    until: now,
                };
            }
            // It had no power.
            (Ok(false), _) => {
                self.phase = Phase::Open {
                    chip: Chip::Unknown,
                    until: now,
                };
            }
            (Err(problem), _) => self.fail(now, problem),
        }
    }

    /// The pulses were written.
    pub fn handle_written(&mut self, now: Instant, result: Result<(), Problem>) {
        let written = self.being_written.take();
        match result {
            Ok(()) => {
                let channels = self.channels.iter_mut().zip(written.into_iter().flatten());
                channels.for_each(|(channel, steps)| channel.written = steps);
            }
            Err(problem) => self.fail(now, problem),
        }
    }

    /// The guard has ended the pulses of all continuous servos, because the driver was silent.
    pub fn handle_guard_acted(&mut self, now: Instant) {
        let text = "stopped what turns like a motor: this driver did not run for a second";
        self.service.say(Note::Event(text));
        let stops = self.service.stops();
        self.service.take(&[], &stops, true);
        // A write that was under way may have come behind that of the guard, so they are written again.
        self.carry_out(now, &stops);
    }

    /// Ends, after what turns like a motor was stopped.
    pub fn shut_down(&mut self, now: Instant) {
        if self.is_connected() {
            let stops = self.service.stops();
            self.service.take(&[], &stops, true);
            self.carry_out(now, &stops);
        }
        self.is_ending = true;
    }

    /// The next action for the caller.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.step(now);
        match self.phase {
            Phase::Open {
                chip: Chip::Ready,
                until,
            } => match self.changed() {
                Some(writes) => Some(Action::Write(writes)),
                None if self.is_ending => Some(Action::End),
                None => (now >= until).then_some(Action::Check),
            },
            _ if self.is_ending => Some(Action::End),
            Phase::Closed { until } => (now >= until).then_some(Action::Open),
            Phase::Open {
                chip: Chip::Lost,
                until,
            } => (now >= until).then_some(Action::Check),
            Phase::Open { until, .. } => (now >= until).then_some(Action::SetUp),
        }
    }

    /// When to call [`ServoLogic::poll_action`] if nothing happens earlier.
    pub fn wake_at(&self) -> Instant {
        let (Phase::Closed { until } | Phase::Open { until, .. }) = self.phase;
        self.step_at.map_or(until, |step_at| step_at.min(until))
    }

    /// Whether the bus does not work and is to be closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    fn was_set_up(&self) -> bool {
        // Without pulses it makes no difference.
        self.channels.iter().any(|channel| channel.written != 0)
    }

    /// Moves pulses towards their targets.
    fn step(&mut self, now: Instant) {
        if self.step_at.is_some_and(|at| now >= at) {
            self.channels.iter_mut().for_each(Channel::step);
            self.step_at = None;
            self.schedule_step(now);
        }
    }

    fn schedule_step(&mut self, now: Instant) {
        if self.step_at.is_none() && self.channels.iter().any(Channel::is_moving) {
            self.step_at = Some(now + STEP);
        }
    }

    /// The writes that change what has changed, one for each range of channels.
    fn changed(&mut self) -> Option<Vec<Vec<u8>>> {
        let steps = self.channels.map(|channel| {
            let steps = channel.pulse.map(|us| self.timing.steps(us));
            // 0 stands for no pulses.
            steps.map_or(0, |steps| steps.max(1))
        });
        let mut writes = Vec::new();
        let mut begin = 0;
        while begin < steps.len() {
            let differs = |at: usize| steps[at] != self.channels[at].written;
            let end = (begin..steps.len()).find(|at| !differs(*at));
            let end = end.unwrap_or(steps.len());
            if end > begin {
                // There are sixteen.
                writes.push(pulses(begin as u8, &steps[begin..end]));
            }
            begin = end + 1;
        }
        if writes.is_empty() {
            return None;
        }
        self.being_written = Some(steps);
        Some(writes)
    }

    fn works(&mut self, now: Instant) {
        self.phase = Phase::Open {
            chip: Chip::Ready,
            until: now + CHECK,
        };
        // Some may have come during an outage.
        let speeds = self.service.speeds();
        self.carry_out(now, &speeds);
        let hz = 1e6 / self.timing.period_us();
        self.service.is_well(now, &format!("PCA9685, {hz:.1} Hz"));
    }

    fn fail(&mut self, now: Instant, problem: Problem) {
        // What the chip has been told stays, except that nothing is to go on turning.
        let stops = self.service.stops();
        self.service.take(&[], &stops, true);
        for (servo, channel) in (0..).zip(&mut self.channels) {
            let pulse = (channel.written != 0).then(|| self.timing.us(channel.written));
            let pulse = pulse.filter(|_| !self.service.continuous().contains(&servo));
            (channel.target, channel.pulse) = (pulse, pulse);
        }
        self.step_at = None;
        self.being_written = None;
        let chip = match self.phase {
            Phase::Open {
                chip: Chip::Unknown,
                ..
            } => Chip::Unknown,
            _ => Chip::Lost,
        };
        self.phase = match problem {
            Problem::Chip(text) => {
                let until = self.service.complain(now, text);
                Phase::Open { chip, until }
            }
            Problem::Bus(text) => {
                let until = self.service.complain(now, text);
                Phase::Closed { until }
            }
        };
    }
}

#[cfg(test)]
mod tests;
