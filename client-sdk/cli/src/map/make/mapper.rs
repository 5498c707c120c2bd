//! The two threads that make the map, so that receiving never waits for them. IO.
//!
//! ```text
//!   measurements --> mapper: a pose per scan --> reports
//!                      |  ^
//!                 work v  | result
//!                    worker: loops, corrections, the grid (a second or less)
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_navigation::explore::Survey;
use amber_navigation::grid::{GridError, Occupancy};
use amber_navigation::kinematics::Wheels;
use amber_navigation::planner;
use amber_navigation::scan::Scan;
use amber_navigation::slam::recording::{Finished, Progress, Recording, Work, Worked};
use amber_navigation::slam::{Added, Config};
use amber_terminal::Failure;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Maximum number of waiting inputs: two seconds' worth. More are dropped and counted.
const MAX_INPUTS: usize = 64;

/// An input of the mapper.
#[derive(Debug)]
enum Input {
    Scan(Scan),
    Wheels(Duration, Wheels),
    Worked(Box<Worked>),
    Finish,
}

/// The mapper's report after each scan and each result of the worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) progress: Progress,
    /// The last pose.
    pub(super) pose: Option<Added>,
    /// The last survey, with its number.
    pub(super) survey: Option<(u64, Arc<Survey>)>,
    /// The last grid.
    pub(super) grid: Option<Arc<Occupancy>>,
}

/// The command's handle to the threads.
#[derive(Debug)]
pub(super) struct Mapper {
    inputs: SyncSender<Input>,
    reports: watch::Receiver<Report>,
    dropped: AtomicU64,
    started: Instant,
    thread: JoinHandle<Recording>,
}

impl Mapper {
    /// Starts the threads. With the configuration of a planner, they look for frontiers.
    pub(super) fn start(config: Config, survey: Option<planner::Config>) -> io::Result<Self> {
        let (inputs, received) = sync_channel(MAX_INPUTS);
        let (reporter, reports) = watch::channel(Report::default());
        let started = Instant::now();
        let (works, to_do) = sync_channel(1);
        let results = inputs.clone();
        thread::Builder::new()
            .name("worker".into())
            .spawn(move || work(&to_do, &results))?;
        let recording = Recording::new(config, survey);
        let thread = thread::Builder::new()
            .name("mapper".into())
            .spawn(move || run(recording, &received, &works, &reporter, started))?;
        Ok(Self {
            inputs,
            reports,
            dropped: AtomicU64::new(0),
            started,
            thread,
        })
    }

    /// The time since the start.
    pub(super) fn since_start(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.started)
    }

    /// Forwards a scan, unless the mapper is too slow.
    pub(super) fn scan(&self, scan: Scan) {
        self.offer(Input::Scan(scan));
    }

    /// Forwards the wheel speeds, unless the mapper is too slow.
    pub(super) fn wheels(&self, time: Duration, wheels: Wheels) {
        self.offer(Input::Wheels(time, wheels));
    }

    fn offer(&self, input: Input) {
        if self.inputs.try_send(input).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of measurements dropped because the mapper was too slow.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Its reports.
    pub(super) fn reports(&self) -> watch::Receiver<Report> {
        self.reports.clone()
    }

    /// Finishes the map.
    ///
    /// Dropping the future leaves a thread that ends by itself.
    pub(super) async fn finish(
        self,
        name: String,
        cell_m: f64,
    ) -> Result<Result<Finished, GridError>, Failure> {
        let finishing = spawn_blocking(move || {
            // The mapper has ended if it does not receive this.
            let _ = self.inputs.send(Input::Finish);
            let recording = self.thread.join().ok()?;
            Some(recording.finish(&name, cell_m))
        });
        let finished = finishing.await.ok().flatten();
        finished.ok_or_else(|| Failure::new("making the map failed: this is a bug in amber"))
    }
}

/// The mapper.
fn run(
    mut recording: Recording,
    inputs: &Receiver<Input>,
    works: &SyncSender<Work>,
    reports: &watch::Sender<Report>,
    started: Instant,
) -> Recording {
    let mut is_ending = false;
    let mut surveys = 0;
    while !is_ending || recording.is_working() {
        let Ok(input) = inputs.recv() else {
            break;
        };
        match input {
            Input::Wheels(time, wheels) => recording.handle_wheels(time, wheels),
            Input::Scan(scan) => {
                let pose = recording.handle_scan(scan);
                reports.send_modify(|report| {
                    report.progress = recording.progress();
                    report.pose = pose.or(report.pose);
                });
            }
            Input::Worked(worked) => {
                recording.apply(&worked);
                surveys += 1;
                let Worked {
                    occupancy, survey, ..
                } = *worked;
                reports.send_modify(|report| {
                    report.progress = recording.progress();
                    report.survey = survey.map(|survey| (surveys, Arc::new(survey)));
                    report.grid = occupancy.map(Arc::new);
                });
            }
            Input::Finish => is_ending = true,
        }
        if !is_ending && let Some(work) = recording.work(started.elapsed()) {
            // There is one job at a time, so the worker is waiting for it.
            let _ = works.send(work);
        }
    }
    recording
}

/// The worker.
fn work(to_do: &Receiver<Work>, results: &SyncSender<Input>) {
    for work in to_do {
        let worked = Box::new(work.run());
        if results.send(Input::Worked(worked)).is_err() {
            break;
        }
    }
}
