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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use amber_map::tiles::Tiles;
use amber_navigation::explore::Survey;
use amber_navigation::geometry::{self, Finding};
use amber_navigation::kinematics::Wheels;
use amber_navigation::planner;
use amber_navigation::scan::Scan;
use amber_navigation::slam::recording::{Progress, Recording, Work, Worked};
use amber_navigation::slam::{Added, Config};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

use crate::geometry_log::GeometryLog;

/// Maximum number of waiting inputs: two seconds' worth. More are dropped and counted.
const MAX_INPUTS: usize = 64;

/// An input of the mapper.
#[derive(Debug)]
enum Input {
    Scan(Scan),
    Wheels(Duration, Wheels),
    Survey(Option<planner::Config>),
    Worked(Box<Worked>),
    Copy(oneshot::Sender<Recording>),
    /// Wakes the thread.
    End,
}

/// The mapper's report after each scan and each result of the worker.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) progress: Progress,
    /// The last pose.
    pub(super) pose: Option<Added>,
    /// The last survey, with its number.
    pub(super) survey: Option<(u64, Arc<Survey>)>,
    /// The last grid.
    pub(super) tiles: Arc<Tiles>,
    /// What is wrong with the geometry of the robot.
    pub(super) found: Vec<Finding>,
}

/// The handle to the threads. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Mapper {
    inputs: SyncSender<Input>,
    reports: watch::Receiver<Report>,
    dropped: AtomicU64,
    is_over: Arc<AtomicBool>,
}

impl Mapper {
    /// Starts the threads. `map` is the number of the map.
    pub(super) fn start(config: Config, geometry: geometry::Config, map: u32) -> io::Result<Self> {
        let (inputs, received) = sync_channel(MAX_INPUTS);
        let tiles = Tiles::new(map);
        let (reporter, reports) = watch::channel(Report {
            progress: Progress::default(),
            pose: None,
            survey: None,
            tiles: Arc::new(tiles.clone()),
            found: Vec::new(),
        });
        let (works, to_do) = sync_channel(1);
        let results = inputs.clone();
        thread::Builder::new()
            .name("worker".into())
            .spawn(move || work(&to_do, &results))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = Thread {
            recording: Recording::new(config, None).checking(geometry),
            tiles,
            surveys: 0,
            copies: Vec::new(),
            reports: reporter,
            log: GeometryLog::default(),
            is_over: is_over.clone(),
        };
        thread::Builder::new()
            .name("mapper".into())
            .spawn(move || thread.run(&received, &works))?;
        Ok(Self {
            inputs,
            reports,
            dropped: AtomicU64::new(0),
            is_over,
        })
    }

    /// Forwards a scan, unless the mapper is too slow.
    pub(super) fn scan(&self, scan: Scan) {
        self.offer(Input::Scan(scan));
    }

    /// Forwards the wheel speeds, unless the mapper is too slow.
    pub(super) fn wheels(&self, time: Duration, wheels: Wheels) {
        self.offer(Input::Wheels(time, wheels));
    }

    /// From now on, looks for frontiers, or no longer. `false` if the mapper is too slow.
    pub(super) fn survey(&self, config: Option<planner::Config>) -> bool {
        self.inputs.try_send(Input::Survey(config)).is_ok()
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

    pub(super) fn reports(&self) -> watch::Receiver<Report> {
        self.reports.clone()
    }

    /// The map so far. Waits for measurements that are waiting, and for work.
    ///
    /// Dropping the future does no harm.
    pub(super) async fn copy(&self) -> Option<Recording> {
        let inputs = self.inputs.clone();
        let (sender, copy) = oneshot::channel();
        // The queue may be full.
        let sent = spawn_blocking(move || inputs.send(Input::Copy(sender)));
        sent.await.ok()?.ok()?;
        copy.await.ok()
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // If the queue is full, the thread is awake.
        let _ = self.inputs.try_send(Input::End);
    }
}

/// The mapper.
struct Thread {
    recording: Recording,
    tiles: Tiles,
    surveys: u64,
    /// Those that want a copy of the map.
    copies: Vec<oneshot::Sender<Recording>>,
    reports: watch::Sender<Report>,
    log: GeometryLog,
    is_over: Arc<AtomicBool>,
}

impl Thread {
    fn run(mut self, inputs: &Receiver<Input>, works: &SyncSender<Work>) {
        let started = Instant::now();
        for input in inputs {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.handle(input);
            if self.recording.is_working() {
                continue;
            }
            for copy in self.copies.drain(..) {
                // Whoever wanted it may be gone.
                let _ = copy.send(self.recording.clone());
            }
            if let Some(work) = self.recording.work(started.elapsed()) {
                // There is one job at a time, so the worker is waiting for it.
                let _ = works.send(work);
            }
        }
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Wheels(time, wheels) => self.recording.handle_wheels(time, wheels),
            Input::Scan(scan) => {
                let pose = self.recording.handle_scan(scan);
                let progress = self.recording.progress();
                let found = self.recording.found();
                self.log.note(found);
                self.reports.send_modify(|report| {
                    report.progress = progress;
                    report.pose = pose.or(report.pose);
                    if report.found != found {
                        report.found = found.to_vec();
                    }
                });
            }
            Input::Survey(config) => self.recording.set_survey(config),
            Input::Worked(worked) => self.take(*worked),
            Input::Copy(sender) => self.copies.push(sender),
            Input::End => {}
        }
    }

    fn take(&mut self, worked: Worked) {
        self.recording.apply(&worked);
        let Worked {
            occupancy, survey, ..
        } = worked;
        if let Some(grid) = occupancy
            && let Err(error) = self.tiles.update(&grid)
        {
            tracing::error!("the grid cannot be shown: {error}");
        }
        let tiles = Arc::new(self.tiles.clone());
        let progress = self.recording.progress();
        self.surveys += 1;
        let survey = survey.map(|survey| (self.surveys, Arc::new(survey)));
        self.reports.send_modify(|report| {
            report.progress = progress;
            report.survey = survey;
            report.tiles = tiles;
        });
    }
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
