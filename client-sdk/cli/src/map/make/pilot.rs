//! Steers the exploring robot: takes poses and surveys, and sends wheel speeds. IO.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use amber_client::{Roboclaw, WheelSpeeds};
use amber_navigation::drive_to_point::{self, Skipped};
use amber_navigation::explore::{Explorer, State};
use amber_navigation::kinematics::Wheels;
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::scan::Scan;
use amber_navigation::slam::recording::SURE_OVERLAP;
use amber_scene::Drive;
use amber_terminal::Failure;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::mapper::Report;
use super::{picture, shown};

/// The time between two decisions.
const PERIOD: Duration = Duration::from_millis(50);
/// How long a stop is repeated, because datagrams may be lost.
const REPEAT_STOP: Duration = Duration::from_millis(500);
/// How long a pose from the wheels alone is accepted if the scan does not match the map.
const UNSURE: f64 = 0.5;

/// The robot that explores.
#[derive(Debug)]
pub(super) struct Pilot {
    explorer: RefCell<Explorer>,
}

impl Pilot {
    pub(super) fn new(config: drive_to_point::Config) -> Result<Self, Failure> {
        let explorer = Explorer::new(config);
        let explorer = explorer.map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self {
            explorer: RefCell::new(explorer),
        })
    }

    pub(super) fn handle_scan(&self, scan: &Scan) {
        self.explorer.borrow_mut().handle_scan(scan);
    }

    pub(super) fn handle_wheels(&self, time: Duration, wheels: Wheels) {
        self.explorer.borrow_mut().handle_wheels(time, wheels);
    }

    pub(super) fn state(&self) -> State {
        self.explorer.borrow().state()
    }

    /// The number of places that the robot could not reach.
    pub(super) fn skipped(&self) -> usize {
        self.explorer.borrow().skipped().len()
    }

    /// The reason why the robot could not return to its start.
    pub(super) fn not_returned(&self) -> Option<Skipped> {
        self.explorer.borrow().not_returned()
    }

    /// The target of the robot.
    pub(super) fn drive(&self) -> Drive {
        let explorer = self.explorer.borrow();
        picture::drive(shown::name(explorer.state()), Some(explorer.drive()))
    }

    /// Drives until the exploration is finished. The caller stops the wheels at the end.
    pub(super) async fn run(
        &self,
        wheels: &Roboclaw,
        mut reports: watch::Receiver<Report>,
        since_start: impl Fn(Instant) -> Duration,
    ) -> Result<(), Failure> {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut surveyed = 0;
        let mut moved: Option<Duration> = None;
        loop {
            ticks.tick().await;
            let now = since_start(Instant::now());
            if reports.has_changed().unwrap_or(false) {
                let report = reports.borrow_and_update().clone();
                self.take(now, &report, &mut surveyed);
            }
            let speeds = WheelSpeeds::from(self.explorer.borrow_mut().step(now).wheels);
            if speeds != WheelSpeeds::STOP {
                moved = Some(now);
            }
            // While the robot stands still, other clients may drive.
            if moved.is_some_and(|moved| now.saturating_sub(moved) <= REPEAT_STOP) {
                wheels.drive(speeds).await?;
            }
            if self.state().is_over() {
                return Ok(());
            }
        }
    }

    fn take(&self, now: Duration, report: &Report, surveyed: &mut u64) {
        let mut explorer = self.explorer.borrow_mut();
        if let Some(added) = report.pose {
            let is_sure = added.overlap >= SURE_OVERLAP;
            explorer.handle_pose(PoseReading {
                time: added.time,
                pose: added.pose,
                quality: if is_sure { 1.0 } else { UNSURE },
            });
        }
        if let Some((number, survey)) = &report.survey
            && *number > *surveyed
        {
            *surveyed = *number;
            explorer.handle_survey(now, survey.as_ref().clone());
        }
    }
}
