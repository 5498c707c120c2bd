//! Starts drivers, a few in each turn of the loop. IO.
//!
//! Starting a process blocks for about a millisecond. So a reload with a thousand new drivers
//! starts them between other work: for [`STARTS_AT_ONCE`], then again after [`STARTS_PAUSE`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::child::Child;
use super::spawn::{self, Environment, SpawnError};
use super::{Alarm, Shell};
use amber_core::address::DriverKey;
use amber_core::limits::{STARTS_AT_ONCE, STARTS_PAUSE};
use amber_core::supervise::{Event, Exit};

/// Drivers that wait to be started.
#[derive(Debug)]
pub(super) struct Starts {
    waiting: VecDeque<DriverKey>,
    /// How long starts may still block until the next pause.
    time_left: Duration,
}

impl Starts {
    /// For the start of the mediator: no client waits yet.
    pub(super) fn without_pauses() -> Self {
        Self {
            waiting: VecDeque::new(),
            time_left: Duration::MAX,
        }
    }

    /// From now on starts pause, so that clients do not wait for them.
    pub(super) fn pause_from_now_on(&mut self) {
        self.time_left = STARTS_AT_ONCE;
    }
}

impl Shell {
    /// Starts a driver now, or when its turn comes.
    pub(super) fn start_driver(&mut self, key: DriverKey) {
        self.starts.waiting.push_back(key);
        self.start_while_there_is_time();
    }

    /// The pause is over.
    pub(super) fn start_more_drivers(&mut self) {
        self.starts.time_left = STARTS_AT_ONCE;
        self.start_while_there_is_time();
    }

    fn start_while_there_is_time(&mut self) {
        while !self.starts.time_left.is_zero()
            && let Some(key) = self.starts.waiting.pop_front()
        {
            let begin = Instant::now();
            if self.core.is_to_be_started(key) {
                self.spawn(key);
            } else {
                let exit = Exit {
                    text: "was stopped before it was started".into(),
                    success: true,
                };
                self.core.exited(Instant::now(), key, exit);
            }
            self.starts.time_left = self.starts.time_left.saturating_sub(begin.elapsed());
        }
        if self.starts.time_left.is_zero() && !self.alarms.is_set(Alarm::Start) {
            self.alarms.set(Alarm::Start, Instant::now() + STARTS_PAUSE);
        }
    }

    fn spawn(&mut self, key: DriverKey) {
        let Some(config) = self.core.driver_config(key).cloned() else {
            return;
        };
        let halts = self.core.halts(key);
        let (guard, strays) = (&mut self.guard, &mut self.strays);
        let environment = Environment {
            amber: &self.hooks.amber,
            mediator: self.for_drivers,
            halts: halts.as_deref(),
        };
        let started = spawn::spawn(&config, &environment, guard, strays);
        let child = started.and_then(|started| {
            let slot = started.slot;
            Child::new(self.poll.registry(), key, started).map_err(|error| {
                self.guard.forget(slot);
                SpawnError {
                    error: error.to_string(),
                    hint: spawn::NO_FILES.into(),
                }
            })
        });
        let now = Instant::now();
        match child {
            Ok(child) => {
                let pid = child.pid();
                self.children.insert(key, child);
                self.core.driver_event(now, key, Event::Spawned { pid });
            }
            Err(SpawnError { error, hint }) => {
                self.core.spawn_failed(now, key, error, hint);
            }
        }
    }
}
