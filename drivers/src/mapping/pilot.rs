//! The robot while a map grows: hands its measurements to the mapper, and explores. IO.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_driver::devices::mapping::{DriverMsg, Explore, MappingServiceLink};
use amber_driver::{ClientId, Outcome};
use amber_navigation::explore::Explorer;
use amber_navigation::kinematics::Wheels;
use amber_navigation::odometry::Odometry;
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::sight::{self, Pace, Sight};
use amber_navigation::slam::Added;
use amber_navigation::slam::recording::SURE_OVERLAP;
use tokio::sync::watch;

use super::board::{Board, LastScans};
use super::mapper::{Mapper, Report};
use super::{Course, speed_m_s};
use crate::device_task::finish;
use crate::moving::pilot::{Input, Pilot};

/// The quality of a pose from the wheels alone, if the scan does not match the map.
const UNSURE: f64 = 0.5;
/// The largest valid wheel speed; the original driver also ignored larger ones.
pub(super) const MAX_SPEED_MM_S: u32 = 5_000;
/// The time between two looks at the path for the board.
const NOTE_PERIOD: Duration = Duration::from_millis(100);

/// A request for the task that owns the wheels.
#[derive(Debug)]
pub(super) enum Request {
    Explore(Outcome, Explore),
    ClientGone(ClientId),
}

/// The robot while a map grows.
pub(super) struct MapPilot {
    course: Course,
    mapper: Arc<Mapper>,
    reports: watch::Receiver<Report>,
    board: Arc<Mutex<Board>>,
    scans: LastScans,
    odometry: Odometry,
    sight: Sight,
    is_blind: bool,
    explorer: Option<Explorer>,
    /// The client for which the robot explores.
    owner: Option<ClientId>,
    /// The time of the last pose, and the number of the last survey.
    posed: Option<Duration>,
    surveyed: u64,
    noted: Duration,
}

impl MapPilot {
    pub(super) fn new(course: Course, mapper: Arc<Mapper>, board: Arc<Mutex<Board>>) -> Self {
        let collision = course.setup.collision;
        Self {
            course,
            odometry: Odometry::new(collision.drive),
            sight: Sight::new(collision.large_rooms),
            is_blind: false,
            reports: mapper.reports(),
            mapper,
            board,
            scans: LastScans::default(),
            explorer: None,
            owner: None,
            posed: None,
            surveyed: 0,
            noted: Duration::ZERO,
        }
    }

    fn explore(&mut self, client: Option<ClientId>, wanted: &Explore) -> Result<(), String> {
        let speed_m_s = match wanted.speed {
            Some(speed_mm_s) => speed_m_s(Some(speed_mm_s)).map_err(|error| error.to_string())?,
            None => self.course.speed_m_s,
        };
        let driving = self.course.driving(speed_m_s);
        let explorer = Explorer::new(driving).map_err(|error| error.to_string())?;
        if !self.mapper.survey(Some(driving.planner)) {
            return Err("this computer is too slow: the mapper has too many measurements".into());
        }
        self.board().note(&explorer);
        self.explorer = Some(explorer);
        self.owner = client;
        tracing::info!("exploring");
        Ok(())
    }

    /// Ends an exploration before it is done.
    fn stop_exploring(&mut self) {
        self.owner = None;
        let explorer = self.explorer.take();
        if explorer.is_some_and(|explorer| !explorer.state().is_over()) {
            self.mapper.survey(None);
            self.board().stop_early();
            tracing::info!("the exploration was stopped");
        }
    }

    /// Takes what the mapper has found.
    fn take_report(&mut self, now: Duration) {
        if !self.reports.has_changed().unwrap_or(false) {
            return;
        }
        let report = self.reports.borrow_and_update().clone();
        if let Some(added) = report.pose.filter(|added| self.posed != Some(added.time)) {
            self.posed = Some(added.time);
            self.take_pose(now, added);
        }
        if let Some((number, survey)) = &report.survey
            && *number > self.surveyed
        {
            self.surveyed = *number;
            if let Some(explorer) = &mut self.explorer {
                explorer.handle_survey(now, survey.as_ref().clone());
            }
        }
    }

    fn take_pose(&mut self, now: Duration, added: Added) {
        if let Some(explorer) = &mut self.explorer {
            let is_sure = added.overlap >= SURE_OVERLAP;
            explorer.handle_pose(PoseReading {
                time: added.time,
                pose: added.pose,
                quality: if is_sure { 1.0 } else { UNSURE },
            });
        }
        let scan = self.scans.points(&added);
        let time = SystemTime::now().checked_sub(now.saturating_sub(added.time));
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let unix_ms = since.and_then(|since| since.as_millis().try_into().ok());
        let mut board = self.board();
        board.scan = scan;
        board.pose_unix_ms = unix_ms;
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.board)
    }
}

/// The board. Holders only read or assign.
pub(super) fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pilot for MapPilot {
    type Request = Request;
    type Message = DriverMsg;
    type Link = MappingServiceLink;

    fn request(&mut self, _now: Duration, _link: &MappingServiceLink, request: Request) {
        match request {
            Request::Explore(outcome, wanted) if wanted.on == Some(false) => {
                self.stop_exploring();
                outcome.done();
            }
            Request::Explore(outcome, wanted) => {
                let done = self.explore(outcome.client(), &wanted);
                finish(outcome, done.err().as_deref());
            }
            Request::ClientGone(client) if self.owner == Some(client) => self.stop_exploring(),
            Request::ClientGone(_) => {}
        }
    }

    fn handle(&mut self, _now: Duration, input: Input) {
        match input {
            Input::Scan(scan, _) => {
                if let Some(explorer) = &mut self.explorer {
                    explorer.handle_scan(&scan);
                }
                let mount = self.course.mount();
                self.sight.look(&scan, mount, &self.odometry);
                self.scans.add(&scan, mount);
                self.mapper.scan(scan);
            }
            Input::Wheels(_, _, speeds) if speeds.fastest_mm_s() > MAX_SPEED_MM_S => {
                self.board().invalid_speeds += 1;
            }
            Input::Wheels(time, wheels, _) => {
                if let Some(explorer) = &mut self.explorer {
                    explorer.handle_wheels(time, wheels);
                }
                self.odometry.handle_wheels(time, wheels);
                self.mapper.wheels(time, wheels);
            }
            Input::Contacts(time, touches) => {
                if let Some(explorer) = &mut self.explorer {
                    explorer.handle_touches(time, &touches);
                }
            }
            Input::Imu(..) | Input::Pose(..) => {}
        }
    }

    fn step(&mut self, now: Duration) -> Wheels {
        self.take_report(now);
        self.is_blind = self.sight.pace(now) == Pace::Stop;
        let Some(explorer) = &mut self.explorer else {
            return Wheels::STOP;
        };
        if explorer.state().is_over() {
            return Wheels::STOP;
        }
        let wheels = explorer.step(now).wheels;
        let is_over = explorer.state().is_over();
        if is_over || now.saturating_sub(self.noted) >= NOTE_PERIOD {
            self.noted = now;
            lock(&self.board).note(explorer);
        }
        if is_over {
            match explorer.not_returned() {
                None => tracing::info!("explored, and back at the start"),
                Some(why) => tracing::warn!("explored, but not back at the start: {why}"),
            }
            self.owner = None;
            self.mapper.survey(None);
            self.board().stand();
            return Wheels::STOP;
        }
        wheels
    }

    fn tell(&mut self, _now: Duration, _link: &MappingServiceLink) {}

    fn notice(&mut self, trouble: Option<&str>) {
        let trouble = trouble.or(self.is_blind.then_some(sight::BLIND));
        let mut board = self.board();
        if board.trouble.as_deref() != trouble {
            board.trouble = trouble.map(str::to_owned);
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.is_blind.then_some(sight::BLIND.into())
    }

    fn client(&self) -> Option<ClientId> {
        self.owner
    }

    fn counters(&self) -> String {
        format!("{:?}", self.reports.borrow().progress.counters)
    }
}
