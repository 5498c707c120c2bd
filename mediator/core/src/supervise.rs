//! The life of one driver process, as a state machine. PURE.
//!
//! The *wanted* state (up or down) and the actual [`State`] are separate. Everything that
//! happens is an [`Event`]; [`Supervisor::step`] handles each event in every state and returns
//! [`Action`]s for the shell. Time and randomness are arguments.
//!
//! ```text
//!             start                frame, PONG, or alive for a second
//!   Down ---------------> Starting ----------------------------------> Up
//!    ^  ^                  |    ^                                       |
//!    |  | stopped          |    | wait over                             |
//!    |  +---- Stopping <---|----|---------------------------------------+
//!    |         ^  asked, or bad framing, hang, stdout closed            |
//!    |         |           |    |                                       |
//!    |         |           +--> Backoff <-------------------------------+
//!    |         | ended as asked |      exited, could not be started
//!    |                          v
//!    +---- stop ------------- Failed   too many deaths in too short a time
//! ```
//!
//! - Start failure, exit, hang and bad framing are four different events under one policy. A
//!   start failure immediately waits for the longest backoff: a missing file rarely appears within
//!   milliseconds.
//! - The backoff doubles with each death. It starts again from the minimum when the driver has
//!   worked for a while.
//! - A stop closes stdin, then sends SIGTERM, then SIGKILL to the process group, each after a
//!   grace time. A faulty driver gets SIGTERM at once. A driver is not started again before
//!   it has ended.
//! - The supervisor learns whether a driver answers PINGs. A driver that has answered before
//!   hangs if it leaves three unanswered. A driver that leaves the first three unanswered gets no
//!   more.

mod backoff;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use self::backoff::{Backoff, BadBackoff};
use crate::limits;

/// When a driver that has ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Always, however it ended.
    #[default]
    Always,
    /// Unless it exited with code 0.
    OnFailure,
    /// Never.
    Never,
}

/// The rules for one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// When to start it again.
    pub restart: Restart,
    /// How long to wait before that.
    pub backoff: Backoff,
    /// The driver is given up after this many deaths within `deaths_window`.
    pub deaths: usize,
    /// See `deaths`.
    pub deaths_window: Duration,
    /// The time between closing stdin, SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The interval between PINGs.
    pub ping_interval: Duration,
}

/// The actual state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No process, and none is wanted.
    Down,
    /// The process has started, but has not shown yet that it works.
    Starting,
    /// It works.
    Up,
    /// It is being stopped.
    Stopping {
        /// The reason.
        why: Stop,
        /// The last step of the stop.
        rung: Rung,
        /// When the next step follows.
        until: Instant,
    },
    /// It has ended and will be restarted.
    Backoff {
        /// The time of the restart.
        until: Instant,
        /// The reason for its end.
        reason: String,
    },
    /// It is given up.
    Failed {
        /// Why.
        reason: String,
    },
}

/// The reason why a driver is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A stop was requested.
    Asked,
    /// It misbehaved.
    Fault(String),
}

/// The steps of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Its stdin was closed.
    InputClosed,
    /// It got SIGTERM.
    Terminated,
    /// It got SIGKILL.
    Killed,
}

/// An event in the life of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A start was requested.
    Start,
    /// A stop was requested.
    Stop,
    /// A restart was requested.
    Restart,
    /// The process was started.
    Spawned {
        /// Its process id.
        pid: u32,
    },
    /// The process could not be started.
    SpawnFailed(String),
    /// It wrote a valid frame.
    Frame,
    /// It answered a PING.
    Pong,
    /// It wrote bytes that are not a frame.
    BadFraming(String),
    /// It closed its stdout, but its process lives.
    OutputClosed,
    /// It closed its stdin, but its process lives.
    InputClosed,
    /// It leaves this many life-cycle frames unread.
    Deaf(usize),
    /// The process ended.
    Exited(Exit),
    /// The time of [`Supervisor::next_timeout`] has come.
    Timer,
}

/// The end of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// A description, such as "exited with code 1".
    pub text: String,
    /// It ended by itself with exit code 0.
    pub success: bool,
}

/// An action on the process of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// Start the process; answer with `Spawned` or `SpawnFailed`.
    Spawn,
    /// Close its stdin.
    CloseInput,
    /// Send SIGTERM to it and all that it has started.
    Terminate,
    /// Send SIGKILL to it and all that it has started.
    Kill,
}

/// The actions to take now, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An action on the process, for the shell.
    Process(ProcessAction),
    /// Send it a PING.
    Ping {
        /// The number that its PONG repeats.
        syn_num: u32,
    },
    /// It works: tell the listeners to events.
    Up,
    /// It is unavailable: tell its clients.
    Gone {
        /// Why.
        reason: String,
    },
    /// It is given up: tell the listeners to events.
    GiveUp {
        /// Why.
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Up,
    Down,
}

/// The life of one driver.
#[derive(Debug)]
pub struct Supervisor {
    policy: Policy,
    wanted: Wanted,
    state: State,
    since: Instant,
    pid: Option<u32>,
    attempt: u32,
    deaths: VecDeque<Instant>,
    starts: u32,
    last_exit: Option<String>,
    watch: Watch,
}

/// Whether the driver answers PINGs.
#[derive(Debug, Default)]
struct Watch {
    /// The time of the next PING; `None` for never again.
    next: Option<Instant>,
    pings: u32,
    answers: bool,
    /// PINGs without a PONG since the last PONG.
    unanswered: u8,
    /// The number of these during which nothing at all came from it.
    silent: u8,
    heard: bool,
}

impl Supervisor {
    /// A driver that is down.
    pub fn new(now: Instant, policy: Policy) -> Self {
        Self {
            policy,
            wanted: Wanted::Down,
            state: State::Down,
            since: now,
            pid: None,
            attempt: 0,
            deaths: VecDeque::new(),
            starts: 0,
            last_exit: None,
            watch: Watch::default(),
        }
    }

    /// Handles an event. `jitter` from 0 to 1 varies the backoff.
    pub fn step(&mut self, now: Instant, jitter: f64, event: Event) -> Vec<Action> {
        match event {
            Event::Start => self.start(now),
            Event::Stop => self.stop(now),
            Event::Restart => self.restart(now),
            Event::Spawned { pid } => self.spawned(now, pid),
            Event::SpawnFailed(error) => self.spawn_failed(now, jitter, error),
            Event::Frame => self.works(now),
            Event::Pong => {
                self.watch.answered(now + self.policy.ping_interval);
                self.works(now)
            }
            Event::BadFraming(what) => self.fault(now, format!("wrote an invalid frame: {what}")),
            Event::OutputClosed => self.fault(now, "closed its stdout".into()),
            Event::InputClosed => self.fault(now, "closed its stdin".into()),
            Event::Deaf(frames) => self.fault(
                now,
                format!("does not read: {frames} messages about clients are waiting for it"),
            ),
            Event::Exited(exit) => self.exited(now, jitter, exit),
            Event::Timer => self.timer(now),
        }
    }

    /// When `Event::Timer` is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Down | State::Failed { .. } => None,
            // It waits to be started.
            State::Starting if self.pid.is_none() => None,
            State::Starting => {
                let settled = self.since + limits::SETTLED;
                Some(self.watch.next.map_or(settled, |ping| ping.min(settled)))
            }
            State::Up => self.watch.next,
            State::Stopping { until, .. } | State::Backoff { until, .. } => Some(until),
        }
    }

    /// The actual state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The time at which it entered this state.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The process id, while there is a process.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The number of restarts.
    pub fn restarts(&self) -> u32 {
        self.starts.saturating_sub(1)
    }

    /// How it last ended.
    pub fn last_exit(&self) -> Option<&str> {
        self.last_exit.as_deref()
    }

    /// Whether its process has answered a PING, and so is expected to answer.
    pub fn answers_ping(&self) -> bool {
        self.watch.answers
    }

    /// Notes that a frame came, and returns whether that is all: then [`Supervisor::step`] is
    /// not needed. It is cheap, because it runs for every frame.
    pub fn heard(&mut self) -> bool {
        self.watch.heard = true;
        !matches!(self.state, State::Starting)
    }

    /// Whether the driver is wanted up.
    pub fn is_wanted(&self) -> bool {
        self.wanted == Wanted::Up
    }

    /// Sets another policy, from the next event on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Whether a stop was requested.
    pub fn is_asked_to_end(&self) -> bool {
        matches!(
            self.state,
            State::Stopping {
                why: Stop::Asked,
                ..
            }
        )
    }

    /// Whether a stop is complete.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Down | State::Failed { .. })
    }

    fn start(&mut self, now: Instant) -> Vec<Action> {
        self.wanted = Wanted::Up;
        match self.state {
            State::Down | State::Backoff { .. } | State::Failed { .. } => self.start_anew(now),
            // A stopping driver is started when it has ended.
            State::Starting | State::Up | State::Stopping { .. } => vec![],
        }
    }

    fn stop(&mut self, now: Instant) -> Vec<Action> {
        self.wanted = Wanted::Down;
        match &mut self.state {
            State::Down => vec![],
            State::Backoff { .. } | State::Failed { .. } => {
                self.enter(now, State::Down);
                vec![]
            }
            State::Starting | State::Up => self.end(now),
            State::Stopping { why, .. } => {
                *why = Stop::Asked;
                vec![]
            }
        }
    }

    fn restart(&mut self, now: Instant) -> Vec<Action> {
        self.wanted = Wanted::Up;
        match &mut self.state {
            State::Down | State::Backoff { .. } | State::Failed { .. } => self.start_anew(now),
            State::Starting | State::Up => self.end(now),
            State::Stopping { why, .. } => {
                *why = Stop::Asked;
                vec![]
            }
        }
    }

    /// Starts without the history of deaths, because a start was requested.
    fn start_anew(&mut self, now: Instant) -> Vec<Action> {
        self.attempt = 0;
        self.deaths.clear();
        self.spawn(now)
    }

    fn spawn(&mut self, now: Instant) -> Vec<Action> {
        self.starts += 1;
        self.watch = Watch::default();
        self.enter(now, State::Starting);
        vec![Action::Process(ProcessAction::Spawn)]
    }

    fn spawned(&mut self, now: Instant, pid: u32) -> Vec<Action> {
        match self.state {
            State::Starting => {
                self.pid = Some(pid);
                self.since = now;
                // Its PONG is the earliest sign that it works.
                self.ping(now)
            }
            // A stop was requested before the process existed.
            State::Stopping { .. } => {
                self.pid = Some(pid);
                vec![]
            }
            State::Down | State::Up | State::Backoff { .. } | State::Failed { .. } => vec![],
        }
    }

    fn spawn_failed(&mut self, now: Instant, jitter: f64, error: String) -> Vec<Action> {
        match self.state {
            State::Starting => {
                let reason = format!("could not be started: {error}");
                self.last_exit = Some(reason.clone());
                if self.policy.restart == Restart::Never {
                    return self.give_up(now, reason);
                }
                let until = now + self.policy.backoff.max();
                self.enter(
                    now,
                    State::Backoff {
                        until,
                        reason: reason.clone(),
                    },
                );
                vec![Action::Gone { reason }]
            }
            // A stop was requested before the process existed: no exit will follow.
            State::Stopping { .. } => {
                let text = format!("could not be started: {error}");
                let success = false;
                self.exited(now, jitter, Exit { text, success })
            }
            State::Down | State::Up | State::Backoff { .. } | State::Failed { .. } => vec![],
        }
    }

    fn works(&mut self, now: Instant) -> Vec<Action> {
        self.watch.heard = true;
        match self.state {
            State::Starting => {
                self.enter(now, State::Up);
                vec![Action::Up]
            }
            State::Down
            | State::Up
            | State::Stopping { .. }
            | State::Backoff { .. }
            | State::Failed { .. } => vec![],
        }
    }

    /// Stops it because a stop was requested: stdin is closed first.
    fn end(&mut self, now: Instant) -> Vec<Action> {
        let until = now + self.policy.grace;
        self.enter(
            now,
            State::Stopping {
                why: Stop::Asked,
                rung: Rung::InputClosed,
                until,
            },
        );
        vec![
            Action::Gone {
                reason: "stopped".into(),
            },
            Action::Process(ProcessAction::CloseInput),
        ]
    }

    /// Stops it because it misbehaves.
    fn fault(&mut self, now: Instant, reason: String) -> Vec<Action> {
        match self.state {
            State::Starting | State::Up => {
                let until = now + self.policy.grace;
                let why = Stop::Fault(reason.clone());
                self.forgive_if_useful(now);
                self.enter(
                    now,
                    State::Stopping {
                        why,
                        rung: Rung::Terminated,
                        until,
                    },
                );
                vec![
                    Action::Gone { reason },
                    Action::Process(ProcessAction::CloseInput),
                    Action::Process(ProcessAction::Terminate),
                ]
            }
            State::Down | State::Stopping { .. } | State::Backoff { .. } | State::Failed { .. } => {
                vec![]
            }
        }
    }

    fn exited(&mut self, now: Instant, jitter: f64, exit: Exit) -> Vec<Action> {
        self.pid = None;
        match &self.state {
            State::Starting | State::Up => {
                self.forgive_if_useful(now);
                self.last_exit = Some(exit.text.clone());
                self.died(now, jitter, exit.text, exit.success)
            }
            State::Stopping {
                why: Stop::Fault(fault),
                ..
            } => {
                let reason = fault.clone();
                self.last_exit = Some(format!("{reason}; the mediator ended it ({})", exit.text));
                self.died(now, jitter, reason, false)
            }
            State::Stopping {
                why: Stop::Asked, ..
            } => {
                self.last_exit = Some(format!("stopped; {}", exit.text));
                match self.wanted {
                    Wanted::Up => self.start_anew(now),
                    Wanted::Down => {
                        self.enter(now, State::Down);
                        vec![]
                    }
                }
            }
            State::Down | State::Backoff { .. } | State::Failed { .. } => vec![],
        }
    }

    fn died(&mut self, now: Instant, jitter: f64, reason: String, success: bool) -> Vec<Action> {
        match self.policy.restart {
            Restart::Never | Restart::OnFailure if success => {
                self.wanted = Wanted::Down;
                self.enter(now, State::Down);
                return vec![Action::Gone { reason }];
            }
            Restart::Never => return self.give_up(now, reason),
            Restart::OnFailure | Restart::Always => {}
        }
        self.deaths.push_back(now);
        let window = self.policy.deaths_window;
        self.deaths
            .retain(|death| now.duration_since(*death) < window);
        if self.deaths.len() >= self.policy.deaths {
            let (deaths, window_s) = (self.deaths.len(), window.as_secs());
            let reason = format!("died {deaths} times within {window_s} s, last: {reason}");
            return self.give_up(now, reason);
        }
        let until = now + self.policy.backoff.delay(self.attempt, jitter);
        self.attempt = self.attempt.saturating_add(1);
        self.enter(
            now,
            State::Backoff {
                until,
                reason: reason.clone(),
            },
        );
        vec![Action::Gone { reason }]
    }

    fn give_up(&mut self, now: Instant, reason: String) -> Vec<Action> {
        self.enter(
            now,
            State::Failed {
                reason: reason.clone(),
            },
        );
        vec![
            Action::Gone {
                reason: reason.clone(),
            },
            Action::GiveUp { reason },
        ]
    }

    fn timer(&mut self, now: Instant) -> Vec<Action> {
        match &mut self.state {
            State::Down | State::Failed { .. } => vec![],
            State::Starting if self.pid.is_none() => vec![],
            State::Starting => {
                let mut actions = self.ping(now);
                if now >= self.since + limits::SETTLED {
                    self.enter(now, State::Up);
                    actions.push(Action::Up);
                }
                actions
            }
            State::Up => self.ping(now),
            State::Backoff { until, .. } if now < *until => vec![],
            State::Backoff { .. } => self.spawn(now),
            State::Stopping { until, .. } if now < *until => vec![],
            State::Stopping { rung, until, .. } => {
                let grace = self.policy.grace;
                match rung {
                    Rung::InputClosed => {
                        *rung = Rung::Terminated;
                        *until = now + grace;
                        vec![Action::Process(ProcessAction::Terminate)]
                    }
                    // From here only the end of the process leads on. It takes a while, however
                    // short the grace time is.
                    Rung::Terminated | Rung::Killed => {
                        *rung = Rung::Killed;
                        *until = now + grace.max(limits::KILL_AGAIN);
                        vec![Action::Process(ProcessAction::Kill)]
                    }
                }
            }
        }
    }

    /// Sends a PING when it is due, and notices missing answers.
    fn ping(&mut self, now: Instant) -> Vec<Action> {
        match self.watch.due(now, self.policy.ping_interval) {
            Due::Nothing => vec![],
            Due::Ping(syn_num) => vec![Action::Ping { syn_num }],
            Due::Hung => {
                let reason = match self.watch.silent {
                    0 => format!("has not answered {} PINGs", self.watch.unanswered),
                    silent => {
                        format!("is unresponsive: {silent} PINGs unanswered, no other output")
                    }
                };
                self.fault(now, reason)
            }
        }
    }

    fn forgive_if_useful(&mut self, now: Instant) {
        if self.state == State::Up && now.duration_since(self.since) >= limits::USEFUL {
            self.attempt = 0;
        }
    }

    fn enter(&mut self, now: Instant, state: State) {
        self.state = state;
        self.since = now;
    }
}

enum Due {
    Nothing,
    Ping(u32),
    Hung,
}

impl Watch {
    fn due(&mut self, now: Instant, interval: Duration) -> Due {
        let first = self.pings == 0;
        if !first && self.next.is_none_or(|next| now < next) {
            return Due::Nothing;
        }
        if !first && self.unanswered > 0 {
            self.silent = if self.heard { 0 } else { self.silent + 1 };
            let hung =
                self.silent >= limits::DRIVER_PINGS || self.unanswered >= limits::DRIVER_PINGS_BUSY;
            if self.answers && hung {
                self.next = None;
                return Due::Hung;
            }
            if !self.answers && self.pings >= u32::from(limits::DRIVER_PINGS) {
                self.next = None;
                return Due::Nothing;
            }
        }
        self.pings += 1;
        self.unanswered += 1;
        self.heard = false;
        self.next = Some(now + interval);
        Due::Ping(self.pings)
    }

    fn answered(&mut self, next: Instant) {
        self.answers = true;
        self.unanswered = 0;
        self.silent = 0;
        // It may have been slow to start, so that PINGs had stopped.
        self.next.get_or_insert(next);
    }
}
