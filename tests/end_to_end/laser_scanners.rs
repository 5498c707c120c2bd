//! Laser scanners other than Hokuyo's: the real driver and the simulated scanner give the scans of
//! device type 4, and the scans show the walls that are there.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use amber_client::{Client, Hokuyo, Scan};
use amber_map::{Map, MapPose};
use amber_proto::mediator::Trouble;
use amber_sim::world::World;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::common::{AMBER, Mediator, wait_for};

/// Where the robot stands in the flat.
const PLACE: (f64, f64, f64) = (3.5, 2.6, 30.0);
/// The largest error of a distance: that of the scanner, and of the angle at a slanted wall.
const WITHIN_MM: f64 = 40.0;
/// How far a point at an edge may be off sideways.
const WITHIN_DEG: f64 = 0.6;

/// A simulated robot with one more laser scanner. It ends with this.
struct Robot {
    folder: TempDir,
    process: Child,
}

impl Robot {
    fn with(model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (x, y, heading) = PLACE;
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", "--ldrobot", model, "--start"]);
        command.arg(format!("{x},{y},{heading}"));
        command.arg("--dir").arg(folder.path().join("sim"));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let process = command.spawn().unwrap();
        let robot = Self { folder, process };
        wait_for("the simulated scanner", || {
            Path::new(&robot.port()).exists().then_some(())
        });
        robot
    }

    fn port(&self) -> String {
        let port = self.folder.path().join("sim/ldrobot");
        port.to_str().unwrap().to_owned()
    }

    fn driver(&self, model: &str) -> String {
        let port = self.port();
        format!("hokuyo:0=amber driver ldrobot --model {model} --port {port}")
    }

    fn fault(&self, words: &[&str]) {
        let mut command = Command::new(AMBER);
        command.args(["sim", "fault"]).args(words);
        command.env("AMBER_SIM_DIR", self.folder.path().join("sim"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of a mediator.
struct Peer {
    runtime: Runtime,
    laser: Hokuyo,
}

impl Peer {
    fn of(mediator: &Mediator) -> Self {
        let runtime = crate::robot::runtime();
        let client = runtime.block_on(Client::connect(mediator.address)).unwrap();
        let laser = client.hokuyo(0).with_deadline(Duration::from_secs(3));
        Self { runtime, laser }
    }

    fn scan(&self) -> Option<Scan> {
        self.runtime.block_on(self.laser.scan()).ok()
    }

    /// The next scan, of a scanner that works.
    fn next_scan(&self) -> Scan {
        wait_for("a scan", || self.scan())
    }
}

/// Checks that the points of a scan are on the walls, and returns how many there are.
#[track_caller]
fn check_walls(scan: &Scan, min_mm: i32, max_m: f64) -> usize {
    let (x, y, heading) = PLACE;
    let start = MapPose::new(x, y, heading.to_radians()).into();
    let world = World::new(Map::flat().faces(), start, 1).unwrap();
    let is_true = |angle_deg: f64, mm: i32| {
        (-6..=6).any(|step| {
            let angle_deg = angle_deg + f64::from(step) * WITHIN_DEG / 6.0;
            let seen_m = world.beam(Duration::ZERO, -angle_deg.to_radians(), max_m);
            seen_m.is_some_and(|seen_m| (seen_m * 1000.0 - f64::from(mm)).abs() <= WITHIN_MM)
        })
    };
    let points: Vec<_> = scan.valid_points().collect();
    for point in &points {
        let (angle_deg, mm) = (point.angle_deg, point.distance_mm);
        assert!(
            mm >= min_mm && is_true(angle_deg, mm),
            "{angle_deg} deg: {mm} mm"
        );
    }
    points.len()
}

fn troubles(mediator: &Mediator) -> Vec<Trouble> {
    mediator.describe("hokuyo:0").troubles
}

#[test]
fn an_ld19_shows_the_walls_although_bytes_are_damaged_and_plugs_pulled() {
    let robot = Robot::with("ld19");
    let mediator = Mediator::start(&[&robot.driver("ld19")]);
    mediator.wait_for_line("INFO ready: LD19, 400 points");
    let peer = Peer::of(&mediator);
    for _ in 0..3 {
        let scan = peer.next_scan();
        assert_eq!(scan.points().len(), 400);
        let measured = check_walls(&scan, 100, 12.0);
        assert!(measured > 380, "{measured}");
    }
    let scanner = peer.runtime.block_on(peer.laser.scanner()).unwrap();
    assert_eq!((scanner.model(), scanner.turns_right()), ("LD19", true));

    // A quarter of all packets has a wrong bit: they are left out.
    robot.fault(&["corrupt", "ldrobot"]);
    for _ in 0..5 {
        let scan = peer.next_scan();
        assert_eq!(scan.points().len(), 400);
        let measured = check_walls(&scan, 100, 12.0);
        assert!(measured > 200, "{measured}");
    }
    robot.fault(&["clear"]);

    for (fault, problem) in [
        ("unplug", " does not exist"),
        ("stall", "the scanner sends nothing: check "),
    ] {
        robot.fault(&[fault, "ldrobot"]);
        let is_told = || {
            troubles(&mediator)
                .into_iter()
                .find(|it| it.text.contains(problem))
        };
        wait_for(problem, is_told);
        assert_eq!(peer.scan(), None, "never an old scan");
        robot.fault(&["clear"]);
        wait_for("the end of the trouble", || {
            troubles(&mediator).is_empty().then_some(())
        });
        assert!(check_walls(&peer.next_scan(), 100, 12.0) > 380);
    }
    assert_eq!(mediator.describe("hokuyo:0").restarts(), 0);
}

#[test]
fn the_sideways_view_of_an_ld14p_is_corrected() {
    let robot = Robot::with("ld14p");
    let mediator = Mediator::start(&[&robot.driver("ld14p")]);
    mediator.wait_for_line("INFO ready: LD14P, 340 points");
    let peer = Peer::of(&mediator);
    let measured = check_walls(&peer.next_scan(), 100, 8.0);
    assert!(measured > 300, "{measured}");
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_scanner() {
    let robot = Robot::with("ld06");
    for (port, notes) in [(robot.port(), 0), ("/nowhere/port".to_owned(), 1)] {
        let mut check = Command::new(AMBER);
        check.args(["check", "--json", "--as", "hokuyo", "--timeout", "10", "--"]);
        check.args([
            "amber", "driver", "ldrobot", "--model", "ld06", "--port", &port,
        ]);
        let output = check.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{report}");
        assert_eq!(report["notes"], notes, "{report}");
    }
}
