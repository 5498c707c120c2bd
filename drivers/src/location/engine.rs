//! The thread in which the filter works, so that answers never wait for it. IO.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use amber_driver::Reply;
use amber_driver::devices::location as message;
use amber_map::Pose;
use amber_navigation::geometry::Finding;
use amber_navigation::kinematics::Wheels;
use amber_navigation::location::{Hint, LocationMap};
use amber_navigation::scan::Scan;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use super::answer;
use super::tracker::{Report, Tracker};
use crate::geometry_log::GeometryLog;
use crate::sim_clock::DriverClock;

/// Maximum number of waiting inputs: two seconds' worth. More are dropped and counted.
const MAX_INPUTS: usize = 64;
/// How long the thread waits for input if nothing is due.
const IDLE: Duration = Duration::from_secs(1);

/// How long to wait before a busy filter gets input that must not be lost.
const BUSY: Duration = Duration::from_millis(10);

/// Input of the filter.
#[derive(Debug)]
pub(crate) enum Input {
    Scan(Scan),
    Wheels(Duration, Wheels),
    Map(Box<LocationMap>),
    Pose {
        time: Duration,
        pose: Pose,
        sigma_m: f64,
        sigma_rad: f64,
    },
    Particles(Reply<message::Particles>),
    /// The turn rate by a gyroscope.
    TurnRate(Duration, f64),
    /// What is known about the geometry; or check it from the beginning.
    Geometry {
        again: bool,
        reply: Reply<message::Geometry>,
    },
    /// Somebody says where the robot is, and wants to know whether that is possible.
    Hint {
        time: Duration,
        hint: Hint,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

/// The driver's handle to the thread. Dropping all clones ends the thread.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    inputs: SyncSender<Input>,
    report: watch::Receiver<Report>,
    /// What is wrong with the geometry of the robot.
    faults: watch::Receiver<Vec<Finding>>,
    dropped: Arc<AtomicU64>,
    clock: Arc<DriverClock>,
}

impl Engine {
    /// Starts the thread. `updated` gets each new report.
    pub(crate) fn start(
        tracker: Tracker,
        clock: DriverClock,
        updated: impl FnMut(&Report, Duration) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (inputs, received) = sync_channel(MAX_INPUTS);
        let (reports, report) = watch::channel(tracker.report());
        let (findings, faults) = watch::channel(Vec::new());
        let clock = Arc::new(clock);
        let own = clock.clone();
        thread::Builder::new()
            .name("filter".into())
            .spawn(move || run(tracker, &received, &reports, &findings, &own, updated))?;
        Ok(Self {
            inputs,
            report,
            faults,
            dropped: Arc::default(),
            clock,
        })
    }

    /// Forwards input; drops it if the filter is too slow.
    pub(crate) fn send(&self, input: Input) {
        if self.inputs.try_send(input).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "dropped input: the filter is too slow");
            }
        }
    }

    /// Forwards input that must not be lost; waits while the filter is busy.
    pub(crate) async fn deliver(&self, mut input: Input) {
        while let Err(TrySendError::Full(back)) = self.inputs.try_send(input) {
            input = back;
            sleep(BUSY).await;
        }
    }

    /// The state after the last update.
    pub(crate) fn report(&self) -> Report {
        *self.report.borrow()
    }

    /// What is wrong with the geometry of the robot, as a sentence.
    pub(crate) fn fault(&self) -> Option<String> {
        Some(self.faults.borrow().first()?.sentence.clone())
    }

    /// The time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now(Instant::now())
    }

    /// The time of a moment that has just been, since the start.
    pub(crate) fn since_start(&self, moment: Instant) -> Duration {
        self.clock.at(moment)
    }
}

fn run(
    mut tracker: Tracker,
    inputs: &Receiver<Input>,
    reports: &watch::Sender<Report>,
    findings: &watch::Sender<Vec<Finding>>,
    clock: &DriverClock,
    mut updated: impl FnMut(&Report, Duration),
) {
    let now = || clock.now(Instant::now());
    let mut log = GeometryLog::default();
    loop {
        let due = tracker.next_timeout();
        let wait = due.map_or(IDLE, |due| due.saturating_sub(now()));
        let mut is_news = false;
        match inputs.recv_timeout(wait.min(IDLE)) {
            Ok(input) => is_news |= take(&mut tracker, input),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // Scans wait for the wheel speeds that have already arrived.
        while let Ok(input) = inputs.try_recv() {
            is_news |= take(&mut tracker, input);
        }
        if is_news {
            let found = &tracker.findings().found;
            log.note(found);
            findings.send_replace(found.clone());
        }
        let is_new = tracker.update(now());
        let report = tracker.report();
        reports.send_replace(report);
        if is_new {
            updated(&report, now());
        }
    }
    tracing::debug!(counters = ?tracker.counters(), "ended");
}

/// Returns whether the findings about the geometry may have changed.
fn take(tracker: &mut Tracker, input: Input) -> bool {
    match input {
        Input::Scan(scan) => return tracker.handle_scan(scan),
        Input::TurnRate(time, rad_s) => tracker.handle_turn_rate(time, rad_s),
        Input::Geometry { again, reply } => {
            if again {
                tracker.check_again();
            }
            reply.send(answer::geometry(tracker.findings()));
            return again;
        }
        Input::Wheels(time, wheels) => tracker.handle_wheels(time, wheels),
        Input::Map(map) => tracker.handle_map(*map),
        Input::Pose {
            time,
            pose,
            sigma_m,
            sigma_rad,
        } => tracker.handle_external(time, pose, sigma_m, sigma_rad),
        Input::Hint { time, hint, reply } => {
            // Whoever asked may be gone.
            let _ = reply.send(tracker.handle_hint(time, hint));
        }
        Input::Particles(reply) => reply.send(answer::particles(tracker.particles())),
    }
    false
}

#[cfg(test)]
mod tests {
    use amber_navigation::geometry;
    use amber_navigation::location::Config;

    use super::*;

    fn speeds(time_ms: u64) -> Input {
        Input::Wheels(Duration::from_millis(time_ms), Wheels::STOP)
    }

    #[tokio::test]
    async fn a_busy_filter_loses_measurements_but_no_map() {
        let (inputs, received) = sync_channel(1);
        let (_reports, report) = watch::channel(Report::default());
        let (_findings, faults) = watch::channel(Vec::new());
        let engine = Engine {
            inputs,
            report,
            faults,
            dropped: Arc::default(),
            clock: Arc::new(DriverClock::new(Instant::now(), None)),
        };
        for time_ms in 0..3 {
            engine.send(speeds(time_ms));
        }
        assert_eq!(engine.dropped.load(Ordering::Relaxed), 2);
        let delivering = tokio::spawn({
            let engine = engine.clone();
            async move { engine.deliver(speeds(9)).await }
        });
        tokio::task::yield_now().await;
        let mut tracker = Tracker::new(
            Config::new(Pose::default()),
            geometry::Config::new(Pose::default()),
        );
        for last_ms in [0, 9] {
            let input = loop {
                match received.try_recv() {
                    Ok(input) => break input,
                    Err(_) => sleep(BUSY).await,
                }
            };
            take(&mut tracker, input);
            let expected = Some(Duration::from_millis(last_ms));
            assert_eq!(tracker.report().last_wheels, expected);
        }
        delivering.await.unwrap();
    }
}
