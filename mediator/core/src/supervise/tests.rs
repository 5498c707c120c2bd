use std::time::{Duration, Instant};

use super::*;

struct Life {
    supervisor: Supervisor,
    start: Instant,
    now: Instant,
}

fn policy() -> Policy {
    Policy {
        restart: Restart::Always,
        backoff: Backoff::new(limits::BACKOFF_MIN, limits::BACKOFF_MAX).unwrap(),
        deaths: 10,
        deaths_window: limits::DEATHS_WINDOW,
        grace: limits::GRACE,
        ping_interval: limits::DRIVER_PING_INTERVAL,
    }
}

fn exit(code: i32) -> Event {
    Event::Exited(Exit {
        text: format!("exited with code {code}"),
        success: code == 0,
    })
}

fn gone(reason: &str) -> Action {
    Action::Gone {
        reason: reason.into(),
    }
}

impl Life {
    fn new(policy: Policy) -> Self {
        let now = Instant::now();
        Self {
            supervisor: Supervisor::new(now, policy),
            start: now,
            now,
        }
    }

    fn up(policy: Policy) -> Self {
        let mut life = Self::new(policy);
        life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
        life.check(Event::Spawned { pid: 7 }, &[Action::Ping { syn_num: 1 }]);
        life.check(Event::Frame, &[Action::Up]);
        life
    }

    fn check(&mut self, event: Event, actions: &[Action]) {
        let got = self.supervisor.step(self.now, 1.0, event.clone());
        assert_eq!(got, actions, "{event:?} in {:?}", self.supervisor.state);
    }

    /// Advances to the next timeout, which must be `ms` after the last one.
    fn timer(&mut self, ms: u64, actions: &[Action]) {
        let due = self.supervisor.next_timeout().expect("a timeout");
        assert_eq!(
            due - self.now,
            Duration::from_millis(ms),
            "{:?}",
            self.supervisor.state
        );
        self.now = due;
        self.check(Event::Timer, actions);
    }
}

#[test]
fn a_silent_driver_is_up_after_a_second() {
    let mut life = Life::new(policy());
    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    life.check(Event::Spawned { pid: 7 }, &[Action::Ping { syn_num: 1 }]);
    life.timer(1000, &[Action::Up]);
    assert_eq!(life.supervisor.state, State::Up);
    assert_eq!(life.supervisor.pid(), Some(7));
}

#[test]
fn the_backoff_doubles_until_the_driver_has_been_useful() {
    let mut life = Life::up(policy());
    for delay in [100, 200, 400, 800] {
        life.check(exit(1), &[gone("exited with code 1")]);
        life.timer(delay, &[Action::Process(ProcessAction::Spawn)]);
        life.check(Event::Spawned { pid: 8 }, &[Action::Ping { syn_num: 1 }]);
        life.check(Event::Pong, &[Action::Up]);
    }
    life.now += limits::USEFUL;
    life.check(exit(1), &[gone("exited with code 1")]);
    life.timer(100, &[Action::Process(ProcessAction::Spawn)]);
    assert_eq!(life.supervisor.restarts(), 5);
}

#[test]
fn too_many_deaths_are_a_failure_until_a_start_is_requested() {
    let mut life = Life::up(Policy {
        deaths: 3,
        ..policy()
    });
    for delay in [100, 200] {
        life.check(exit(1), &[gone("exited with code 1")]);
        life.timer(delay, &[Action::Process(ProcessAction::Spawn)]);
        life.check(Event::Spawned { pid: 8 }, &[Action::Ping { syn_num: 1 }]);
    }
    let reason = "died 3 times within 60 s, last: exited with code 1";
    life.check(
        exit(1),
        &[
            gone(reason),
            Action::GiveUp {
                reason: reason.into(),
            },
        ],
    );
    assert_eq!(life.supervisor.next_timeout(), None);
    life.check(Event::Timer, &[]);
    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    life.check(Event::Spawned { pid: 9 }, &[Action::Ping { syn_num: 1 }]);
    life.check(exit(1), &[gone("exited with code 1")]);
    life.timer(100, &[Action::Process(ProcessAction::Spawn)]);
}

#[test]
fn old_deaths_do_not_count() {
    let mut life = Life::up(Policy {
        deaths: 2,
        ..policy()
    });
    for _ in 0..5 {
        life.now += limits::DEATHS_WINDOW;
        life.check(exit(1), &[gone("exited with code 1")]);
        life.timer(100, &[Action::Process(ProcessAction::Spawn)]);
        life.check(Event::Spawned { pid: 8 }, &[Action::Ping { syn_num: 1 }]);
        life.check(Event::Frame, &[Action::Up]);
    }
}

#[test]
fn a_start_failure_waits_longer_than_a_crash_and_is_retried_forever() {
    let mut life = Life::new(policy());
    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    for _ in 0..50 {
        let reason = "could not be started: no such file";
        life.check(Event::SpawnFailed("no such file".into()), &[gone(reason)]);
        life.timer(10_000, &[Action::Process(ProcessAction::Spawn)]);
    }
}

#[test]
fn restart_policies() {
    use Restart::*;
    for (restart, code, state) in [
        (Always, 0, "Backoff"),
        (Always, 1, "Backoff"),
        (OnFailure, 0, "Down"),
        (OnFailure, 1, "Backoff"),
        (Never, 0, "Down"),
        (Never, 1, "Failed"),
    ] {
        let mut life = Life::up(Policy {
            restart,
            ..policy()
        });
        life.supervisor.step(life.now, 1.0, exit(code));
        let got = format!("{:?}", life.supervisor.state);
        assert!(
            got.starts_with(state),
            "{restart:?} after code {code}: {got}"
        );
    }
}

#[test]
fn the_stop_ladder() {
    let mut life = Life::up(policy());
    life.check(
        Event::Stop,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.timer(1000, &[Action::Process(ProcessAction::Terminate)]);
    life.timer(1000, &[Action::Process(ProcessAction::Kill)]);
    life.timer(1000, &[Action::Process(ProcessAction::Kill)]);
    life.check(exit(0), &[]);
    assert_eq!(life.supervisor.state, State::Down);
    assert_eq!(life.supervisor.next_timeout(), None);
}

#[test]
fn a_stop_before_the_process_exists_ends_it_when_it_starts() {
    let mut life = Life::new(policy());
    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    life.check(
        Event::Stop,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.check(Event::Spawned { pid: 7 }, &[]);
    assert_eq!(life.supervisor.pid(), Some(7));
    life.timer(1000, &[Action::Process(ProcessAction::Terminate)]);
    life.check(exit(0), &[]);
    assert_eq!(life.supervisor.state, State::Down);

    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    life.check(
        Event::Stop,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.check(Event::SpawnFailed("no file".into()), &[]);
    assert_eq!(life.supervisor.state, State::Down);

    life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
    life.check(
        Event::Restart,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.check(
        Event::SpawnFailed("no file".into()),
        &[Action::Process(ProcessAction::Spawn)],
    );
}

#[test]
fn a_restart_starts_when_the_old_process_has_ended() {
    let mut life = Life::up(policy());
    life.check(
        Event::Restart,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.check(Event::Start, &[]);
    life.check(exit(0), &[Action::Process(ProcessAction::Spawn)]);
}

#[test]
fn a_stop_during_a_restart_wins() {
    let mut life = Life::up(policy());
    life.check(
        Event::Restart,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.check(Event::Stop, &[]);
    life.check(exit(1), &[]);
    assert_eq!(life.supervisor.state, State::Down);
}

#[test]
fn a_stop_ends_the_wait() {
    let mut life = Life::up(policy());
    life.check(exit(1), &[gone("exited with code 1")]);
    life.check(Event::Stop, &[]);
    assert_eq!(life.supervisor.state, State::Down);
    life.check(Event::Timer, &[]);
}

#[test]
fn a_restart_by_name_works_in_every_state() {
    for event in [exit(1), Event::Stop, Event::SpawnFailed("x".into())] {
        let mut life = Life::new(Policy {
            deaths: 1,
            ..policy()
        });
        life.check(Event::Start, &[Action::Process(ProcessAction::Spawn)]);
        life.supervisor.step(life.now, 1.0, event.clone());
        if event == Event::Stop {
            life.check(exit(0), &[]);
        }
        life.check(Event::Restart, &[Action::Process(ProcessAction::Spawn)]);
    }
}

#[test]
fn bad_framing_ends_the_driver_at_once_and_counts_as_a_death() {
    let mut life = Life::up(policy());
    let reason = "wrote an invalid frame: 48 65 6c";
    life.check(
        Event::BadFraming("48 65 6c".into()),
        &[
            gone(reason),
            Action::Process(ProcessAction::CloseInput),
            Action::Process(ProcessAction::Terminate),
        ],
    );
    life.check(Event::BadFraming("again".into()), &[]);
    life.check(Event::Frame, &[]);
    life.timer(1000, &[Action::Process(ProcessAction::Kill)]);
    life.check(exit(1), &[gone(reason)]);
    assert_eq!(
        life.supervisor.last_exit(),
        Some("wrote an invalid frame: 48 65 6c; the mediator ended it (exited with code 1)")
    );
    life.timer(100, &[Action::Process(ProcessAction::Spawn)]);
}

#[test]
fn a_closed_stdout_or_stdin_is_a_fault() {
    for (event, reason) in [
        (Event::OutputClosed, "closed its stdout"),
        (Event::InputClosed, "closed its stdin"),
    ] {
        let mut life = Life::up(policy());
        life.check(
            event,
            &[
                gone(reason),
                Action::Process(ProcessAction::CloseInput),
                Action::Process(ProcessAction::Terminate),
            ],
        );
    }
}

#[test]
fn without_a_grace_time_a_stop_is_immediate_but_sigkill_repeats_slowly() {
    let mut life = Life::up(Policy {
        grace: Duration::ZERO,
        ..policy()
    });
    life.check(
        Event::Stop,
        &[gone("stopped"), Action::Process(ProcessAction::CloseInput)],
    );
    life.timer(0, &[Action::Process(ProcessAction::Terminate)]);
    life.timer(0, &[Action::Process(ProcessAction::Kill)]);
    for _ in 0..3 {
        life.timer(100, &[Action::Process(ProcessAction::Kill)]);
    }
    life.check(exit(1), &[]);
    assert_eq!(life.supervisor.next_timeout(), None);
}

#[test]
fn a_driver_that_never_answers_gets_three_pings() {
    let mut life = Life::up(policy());
    life.timer(5000, &[Action::Ping { syn_num: 2 }]);
    life.timer(5000, &[Action::Ping { syn_num: 3 }]);
    life.timer(5000, &[]);
    assert_eq!(life.supervisor.next_timeout(), None);
    assert_eq!(life.supervisor.state, State::Up);
    assert!(!life.supervisor.answers_ping());
}

#[test]
fn a_driver_that_has_answered_must_keep_answering() {
    let mut life = Life::up(policy());
    life.check(Event::Pong, &[]);
    for syn_num in 2..=4 {
        life.timer(5000, &[Action::Ping { syn_num }]);
    }
    let reason = "is unresponsive: 3 PINGs unanswered, no other output";
    life.timer(
        5000,
        &[
            gone(reason),
            Action::Process(ProcessAction::CloseInput),
            Action::Process(ProcessAction::Terminate),
        ],
    );
}

#[test]
fn a_busy_driver_has_more_time_to_answer() {
    let mut life = Life::up(policy());
    life.check(Event::Pong, &[]);
    for syn_num in 2..=13 {
        life.timer(5000, &[Action::Ping { syn_num }]);
        assert!(life.supervisor.heard());
    }
    let reason = "has not answered 12 PINGs";
    life.timer(
        5000,
        &[
            gone(reason),
            Action::Process(ProcessAction::CloseInput),
            Action::Process(ProcessAction::Terminate),
        ],
    );
}

#[test]
fn a_driver_that_answers_late_gets_pings_again() {
    let mut life = Life::up(policy());
    life.timer(5000, &[Action::Ping { syn_num: 2 }]);
    life.timer(5000, &[Action::Ping { syn_num: 3 }]);
    life.timer(5000, &[]);
    life.check(Event::Pong, &[]);
    assert!(life.supervisor.answers_ping());
    life.timer(5000, &[Action::Ping { syn_num: 4 }]);
}

/// Every event is handled in every state, and no event starts a process while there is one or
/// while none is wanted.
#[test]
fn random_lives_keep_the_invariants() {
    let mut random = fastrand::Rng::with_seed(7);
    for seed in 0..300 {
        random.seed(seed);
        let mut life = Life::new(Policy {
            deaths: random.usize(1..12),
            ..policy()
        });
        let (mut process, mut wanted) = (false, false);
        for _ in 0..300 {
            life.now += Duration::from_millis(random.u64(0..3000));
            let event = match random.u8(0..13) {
                0 => Event::Start,
                1 => Event::Stop,
                2 => Event::Restart,
                3 => Event::Frame,
                4 => Event::Pong,
                5 => Event::BadFraming("x".into()),
                6 => Event::OutputClosed,
                12 => Event::InputClosed,
                7 if process => exit(random.i32(0..2)),
                _ => Event::Timer,
            };
            match event {
                Event::Start | Event::Restart => wanted = true,
                Event::Stop => wanted = false,
                Event::Exited(_) => process = false,
                _ => {}
            }
            let mut events = vec![event];
            while let Some(event) = events.pop() {
                for action in life.supervisor.step(life.now, random.f64(), event) {
                    let state = &life.supervisor.state;
                    match action {
                        Action::Process(ProcessAction::Spawn) => {
                            assert!(!process && wanted, "seed {seed}: spawn in {state:?}");
                            if random.u8(0..4) == 0 {
                                events.push(Event::SpawnFailed("x".into()));
                            } else {
                                process = true;
                                events.push(Event::Spawned { pid: 1 });
                            }
                        }
                        Action::Process(ProcessAction::Kill)
                        | Action::Process(ProcessAction::Terminate)
                        | Action::Process(ProcessAction::CloseInput) => {
                            assert!(process, "seed {seed}: {action:?} in {state:?}");
                        }
                        _ => {}
                    }
                }
            }
            let supervisor = &life.supervisor;
            if let Some(due) = supervisor.next_timeout() {
                assert!(due >= life.start, "seed {seed}");
            } else {
                assert!(
                    !process || supervisor.state == State::Up,
                    "seed {seed}: stuck"
                );
            }
            if !wanted {
                assert!(matches!(
                    supervisor.state,
                    State::Down | State::Stopping { .. }
                ));
            }
        }
    }
}
