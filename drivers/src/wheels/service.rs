//! The rules for the wheels, and whether they work: what the logic of every model keeps. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_values::WheelSpeeds;

use super::note::Refusals;
use super::{Motion, Note, Questions, Refusal, Sides, StopReason};
use crate::outage::Outage;

/// The time between two publications of the battery.
const PUBLISH_BATTERY: Duration = Duration::from_secs(1);

/// The rules for the wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Commands with a faster wheel are dropped, in mm/s; `None` for no limit.
    pub max_speed_mm_s: Option<u32>,
    /// The wheels stop this long after the last command.
    pub idle_stop: Option<Duration>,
    /// The clients whose death stops the wheels.
    pub stop_for: StopFor,
    /// The interval between measurements of the speeds for subscribers.
    pub speeds_interval: Duration,
}

impl Rules {
    /// The same for a model that publishes each of its measurements.
    pub fn publishing_each(self) -> Self {
        Self {
            speeds_interval: Duration::ZERO,
            ..self
        }
    }
}

/// The clients whose death stops the wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopFor {
    /// Only the client that sent the current command
    #[default]
    Commander,
    /// Any client, as in the original
    Anyone,
}

/// A reply or a log message.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<S> {
    /// The reply to a request.
    Answer(Origin, WheelSpeeds),
    /// Speeds for the subscribers, and their age.
    Publish(WheelSpeeds, Duration),
    /// A log message.
    Say(Note<S>),
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands dropped for any reason.
    pub refused: u64,
    /// Commands that were too fast.
    pub too_fast: u64,
    /// Replies that were missing, incomplete or invalid.
    pub bad_replies: u64,
    /// Requests for the speeds that got no reply.
    pub unanswered: u64,
    /// Resets of the controllers.
    pub resets: u64,
}

/// The rules, the newest command, who wants the speeds, the outage, and what the caller has not taken
/// yet.
#[derive(Debug)]
pub struct Service<S> {
    /// What the controllers and the clients did, without the unanswered requests.
    pub counters: Counters,
    /// The newest command.
    pub motion: Motion,
    /// Who wants the speeds.
    pub questions: Questions,
    rules: Rules,
    refusals: Refusals,
    outage: Outage,
    /// Commands dropped during the outage.
    dropped: u64,
    has_twisted: bool,
    battery_published: Option<Instant>,
    outputs: VecDeque<Output<S>>,
}

impl<S> Service<S> {
    /// Starts with the wheels standing still, without clients.
    pub fn new(now: Instant, rules: Rules) -> Self {
        Self {
            counters: Counters::default(),
            motion: Motion::new(now, rules.idle_stop),
            questions: Questions::new(rules.speeds_interval),
            rules,
            refusals: Refusals::default(),
            outage: Outage::default(),
            dropped: 0,
            has_twisted: false,
            battery_published: None,
            outputs: VecDeque::new(),
        }
    }

    /// The clients whose death stops the wheels.
    pub fn stop_for(&self) -> StopFor {
        self.rules.stop_for
    }

    /// The newest command, for a base that has one speed for the wheels of a side. Logs it once if a
    /// command has two.
    pub fn sides(&mut self) -> Sides {
        let target = self.motion.target();
        let sides = Sides::of(target);
        if sides.wheels() != target && !std::mem::replace(&mut self.has_twisted, true) {
            self.say(Note::Twisted);
        }
        sides
    }

    /// Whether the subscribers get the battery now.
    pub fn publishes_battery(&mut self, now: Instant) -> bool {
        let is_early = |then| now.saturating_duration_since(then) < PUBLISH_BATTERY;
        let is_due = !self.battery_published.is_some_and(is_early);
        if is_due {
            self.battery_published = Some(now);
        }
        is_due
    }

    /// The refusal of a command that is too fast.
    pub fn too_fast(&self, speeds: WheelSpeeds) -> Option<Refusal> {
        let max_mm_s = self.rules.max_speed_mm_s?;
        let fastest_mm_s = speeds.fastest_mm_s();
        (fastest_mm_s > max_mm_s).then_some(Refusal::TooFast {
            fastest_mm_s,
            max_mm_s,
        })
    }

    /// Counts a command that is dropped, and logs it now and then.
    pub fn refuse(&mut self, now: Instant, refusal: Refusal) {
        self.counters.refused += 1;
        match refusal {
            Refusal::TooFast { .. } => self.counters.too_fast += 1,
            // Logged when the controllers are back.
            Refusal::Away => {
                self.dropped += 1;
                return;
            }
            _ => {}
        }
        if let Some(count) = self.refusals.say(now, refusal) {
            self.say(Note::Refused { refusal, count });
        }
    }

    /// Stops the wheels. Logs it if they were commanded to turn.
    pub fn stop(&mut self, reason: StopReason) {
        if self.motion.stop() {
            self.say(Note::Stopped(reason));
        }
    }

    /// Answers and publishes speeds that were measured now or, for subscribers, some time ago.
    pub fn tell(&mut self, speeds: WheelSpeeds, askers: Vec<Origin>, published: Option<Duration>) {
        let answer = |origin| Output::Answer(origin, speeds);
        self.outputs.extend(askers.into_iter().map(answer));
        let publish = |age| Output::Publish(speeds, age);
        self.outputs.extend(published.map(publish));
    }

    /// The controllers work.
    pub fn works(&mut self, now: Instant, name: impl FnOnce() -> String) {
        let refused = std::mem::take(&mut self.dropped);
        let note = match self.outage.over(now) {
            Some(after) => Note::Back { after, refused },
            None => Note::Ready(name()),
        };
        self.say(note);
    }

    /// The controllers do not work. Logs the problem unless it was already logged.
    pub fn complain(&mut self, now: Instant, trouble: String) {
        if self.outage.complain(now, &trouble) {
            self.say(Note::Trouble(trouble));
        }
    }

    /// The connection is given up for now; returns when to retry.
    pub fn try_again_at(&mut self, now: Instant) -> Instant {
        self.outage.try_again_at(now)
    }

    /// The same for a problem that ends the connection: logs it unless it was already logged, and drops
    /// the command and the measurement.
    pub fn give_up(&mut self, now: Instant, trouble: String) -> Instant {
        self.complain(now, trouble);
        self.motion.forget();
        self.questions.give_up_reading();
        self.try_again_at(now)
    }

    /// The reason why the controllers do not work, if there is a problem.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        Counters {
            unanswered: self.questions.unanswered(),
            ..self.counters
        }
    }

    /// Logs a message.
    pub fn say(&mut self, note: Note<S>) {
        self.outputs.push_back(Output::Say(note));
    }

    /// The next reply or log message.
    pub fn poll_output(&mut self) -> Option<Output<S>> {
        self.outputs.pop_front()
    }
}
