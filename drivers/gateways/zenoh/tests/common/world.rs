//! A simulated robot with targets.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use amber_client::OrderState;
use amber_client::blocking::Client;

use super::cable::Cable;
use super::{Operator, Process, Router, demo, next, robot_with, wait_for};

/// A goal appears within this time, or not at all.
const SOON: Duration = Duration::from_secs(15);

/// Longer than any errand lives without a sign of life.
const LONG: Duration = Duration::from_millis(2_500);

/// A goal far from the start, with y up. The other goal is the start.
const GOAL: (f64, f64) = (1.4, -1.0);

/// A simulated robot in the fleet, behind a cable that can be cut.
pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) cable: Cable,
    pub(crate) client: Client,
    /// The address of its mediator.
    pub(crate) address: String,
    start: (f64, f64),
    pub(crate) robot: Process,
    _demo: Process,
    /// The folder of its devices.
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new(settings: &str) -> Self {
        let router = Router::start();
        let cable = Cable::to(&router);
        let (process, address, folder) = demo();
        process.line("INFO ready: ");
        let client = Client::connect(&address).unwrap();
        let start = wait_for("the pose", || {
            let pose = client.location(0).pose().ok()?;
            (pose.quality > 0.9).then_some((pose.x_m, 0.0 - pose.y_m))
        });
        let file = folder.path().join("r1.toml");
        std::fs::write(&file, settings).unwrap();
        let robot = robot_with("r1", &address, &cable.router(), &file);
        let watcher = Operator::new(&router, "watcher");
        next(&watcher.tokens("amber/r1/drive-to-point/0/alive/*"), true);
        Self {
            router,
            cable,
            client,
            start,
            robot,
            address,
            folder,
            _demo: process,
        }
    }

    /// The goal that is farther away.
    pub(crate) fn goal(&self) -> (f64, f64) {
        let pose = wait_for("the pose", || self.client.location(0).pose().ok());
        let away = |(x, y): (f64, f64)| (pose.x_m - x).hypot(0.0 - pose.y_m - y);
        match away(GOAL) > away(self.start) {
            true => GOAL,
            false => self.start,
        }
    }

    pub(crate) fn has_targets(&self) -> bool {
        let targets = wait_for("the targets", || {
            self.client.drive_to_point(0).next_targets().ok()
        });
        !targets.targets.is_empty()
    }

    /// Whether the goal holds for a while without a further word. On a busy machine, it may end.
    pub(crate) fn holds(&self) -> bool {
        let (asked, mut set) = (Instant::now(), None);
        while asked.elapsed() < SOON {
            match (set, self.has_targets()) {
                (None, true) => set = Some(Instant::now()),
                (None, false) => {}
                (Some(_), false) => return false,
                (Some(since), true) if since.elapsed() > LONG => return true,
                (Some(_), true) => {}
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Waits for the end of the goal before the robot arrives. On an idle machine, it comes within two
    /// seconds.
    pub(crate) fn ends(&self, why: &str) {
        let since = Instant::now();
        wait_for(why, || (!self.has_targets()).then_some(()));
        let took = since.elapsed();
        let order = wait_for("the order", || self.client.drive_to_point(0).order(0).ok());
        assert_ne!(order.state(), OrderState::Arrived, "{why}: {took:?}");
        let _ = writeln!(std::io::stderr(), "{why}: {:.1} s", took.as_secs_f64());
    }

    pub(crate) fn abandoned(&self) -> u64 {
        let watcher = Operator::new(&self.router, "watcher");
        let info = wait_for("facts", || watcher.json("amber/r1/info"));
        info["counters"]["errands_abandoned"].as_u64().unwrap_or(0)
    }
}
