//! Laser scanners other than Hokuyo's: the real driver and the simulated scanner give the scans of
//! device type 4, and the scans show the walls that are there.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use amber_client::{Client, Hokuyo, Scan};
use amber_map::{Map, MapPose};
use amber_proto::mediator::Trouble;
use amber_sim::world::World;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::common::{AMBER, Mediator, wait_for};
use crate::kit::with_and_without;

/// Where the robot stands in the flat.
const PLACE: (f64, f64, f64) = (3.5, 2.6, 30.0);
/// The largest error of a distance: that of the scanner, and of the angle at a slanted wall.
const WITHIN_MM: f64 = 40.0;
/// How far a point at an edge may be off sideways.
const WITHIN_DEG: f64 = 0.6;

/// A simulated robot with one more laser scanner. It ends with this.
struct Robot {
    /// The driver of the scanner, which is also the name of its port.
    driver: &'static str,
    folder: TempDir,
    process: Child,
}

impl Robot {
    fn with(driver: &'static str, model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (x, y, heading) = PLACE;
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", &format!("--{driver}"), model]);
        command.args(["--start", &format!("{x},{y},{heading}")]);
        command.arg("--dir").arg(folder.path().join("sim"));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let process = command.spawn().unwrap();
        let robot = Self {
            driver,
            folder,
            process,
        };
        wait_for("the simulated scanner", || {
            Path::new(&robot.port()).exists().then_some(())
        });
        robot
    }

    fn port(&self) -> String {
        let port = self.folder.path().join("sim").join(self.driver);
        port.to_str().unwrap().to_owned()
    }

    fn driver(&self, options: &str) -> String {
        let (driver, port) = (self.driver, self.port());
        format!("hokuyo:0=amber driver {driver} --port {port} {options}")
    }

    /// Breaks the scanner.
    fn fault(&self, fault: &str) {
        self.command(&["fault", fault, self.driver]);
    }

    /// Ends all faults.
    fn mend(&self) {
        self.command(&["fault", "clear"]);
    }

    fn command(&self, words: &[&str]) {
        let mut command = Command::new(AMBER);
        command.arg("sim").args(words);
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

/// Unplugs the scanner, then silences it. The driver says so, and works again afterwards.
#[track_caller]
fn check_outages(robot: &Robot, mediator: &Mediator, peer: &Peer) {
    for (fault, problem) in [
        ("unplug", " does not exist"),
        ("stall", "the scanner sends nothing: check "),
    ] {
        robot.fault(fault);
        let is_told = || {
            troubles(mediator)
                .into_iter()
                .find(|it| it.text.contains(problem))
        };
        wait_for(problem, is_told);
        assert_eq!(peer.scan(), None, "never an old scan");
        robot.mend();
        wait_for("the end of the trouble", || {
            troubles(mediator).is_empty().then_some(())
        });
    }
    assert_eq!(mediator.describe("hokuyo:0").restarts(), 0);
}

fn troubles(mediator: &Mediator) -> Vec<Trouble> {
    mediator.describe("hokuyo:0").troubles
}

#[test]
fn an_ld19_shows_the_walls_although_bytes_are_damaged_and_plugs_pulled() {
    let robot = Robot::with("ldrobot", "ld19");
    let mediator = Mediator::start(&[&robot.driver("--model ld19")]);
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
    robot.fault("corrupt");
    for _ in 0..5 {
        let scan = peer.next_scan();
        assert_eq!(scan.points().len(), 400);
        let measured = check_walls(&scan, 100, 12.0);
        assert!(measured > 200, "{measured}");
    }
    robot.mend();

    check_outages(&robot, &mediator, &peer);
    assert!(check_walls(&peer.next_scan(), 100, 12.0) > 380);
}

#[test]
fn the_sideways_view_of_an_ld14p_is_corrected() {
    let robot = Robot::with("ldrobot", "ld14p");
    let mediator = Mediator::start(&[&robot.driver("--model ld14p")]);
    mediator.wait_for_line("INFO ready: LD14P, 340 points");
    let peer = Peer::of(&mediator);
    let measured = check_walls(&peer.next_scan(), 100, 8.0);
    assert!(measured > 300, "{measured}");
}

#[test]
fn an_a1_shows_the_walls_although_bytes_are_damaged_and_plugs_pulled() {
    let robot = Robot::with("rplidar", "a1");
    // The driver finds the model, its speed and its modes.
    let mediator = Mediator::start(&[&robot.driver("--mode typical")]);
    mediator.wait_for_line("INFO ready: RPLIDAR A1M8, firmware 1.29, Sensitivity, 1010 points");
    let peer = Peer::of(&mediator);
    for _ in 0..3 {
        let scan = peer.next_scan();
        assert_eq!(scan.points().len(), 1_010);
        let measured = check_walls(&scan, 150, 12.0);
        assert!(measured > 940, "{measured}");
    }
    let scanner = peer.runtime.block_on(peer.laser.scanner()).unwrap();
    assert_eq!(scanner.model(), "RPLIDAR A1M8");
    assert_eq!(scanner.serial_number(), "92D8ED93C0EA98C9A5E698F207064669");

    // A quarter of all capsules has a wrong bit: they and their neighbours are left out.
    robot.fault("corrupt");
    let measured = check_walls(&peer.next_scan(), 150, 12.0);
    assert!(measured > 400, "{measured}");
    robot.mend();
    wait_for("a whole scan", || {
        let measured = check_walls(&peer.scan()?, 150, 12.0);
        (measured > 940).then_some(())
    });

    check_outages(&robot, &mediator, &peer);
    assert!(check_walls(&peer.next_scan(), 150, 12.0) > 900);
}

#[test]
fn each_format_of_an_rplidar_shows_the_walls() {
    for (model, options, ready, points) in [
        (
            "a1",
            "--mode standard",
            "A1M8, firmware 1.29, Standard",
            250,
        ),
        ("a2", "--mode express", "A2M8, firmware 1.29, Express", 350),
        ("c1", "--model c1", "C1M1, firmware 1.01, DenseBoost", 450),
    ] {
        let robot = Robot::with("rplidar", model);
        let mediator = Mediator::start(&[&robot.driver(options)]);
        mediator.wait_for_line(&format!("INFO ready: RPLIDAR {ready}, {points} points"));
        let peer = Peer::of(&mediator);
        let measured = check_walls(&peer.next_scan(), 50, 12.0);
        assert!(measured * 100 > points * 90, "{model}: {measured}");
    }
}

#[test]
fn an_x4_shows_the_walls_although_bytes_are_damaged_and_plugs_pulled() {
    let robot = Robot::with("ydlidar", "x4");
    let mediator = Mediator::start(&[&robot.driver("--model x4")]);
    mediator.wait_for_line("INFO ready: YDLIDAR X4, firmware 1.5, 640 points");
    let peer = Peer::of(&mediator);
    for _ in 0..3 {
        let scan = peer.next_scan();
        assert_eq!(scan.points().len(), 640);
        let measured = check_walls(&scan, 120, 10.0);
        assert!(measured > 600, "{measured}");
    }
    let scanner = peer.runtime.block_on(peer.laser.scanner()).unwrap();
    assert_eq!(scanner.model(), "YDLIDAR X4");
    assert_eq!(scanner.serial_number(), "2018102000004019");

    // A quarter of all packets has a wrong bit: they are left out.
    robot.fault("corrupt");
    for _ in 0..3 {
        let measured = check_walls(&peer.next_scan(), 120, 10.0);
        assert!(measured > 300, "{measured}");
    }
    robot.mend();

    check_outages(&robot, &mediator, &peer);
    assert!(check_walls(&peer.next_scan(), 120, 10.0) > 600);
}

#[test]
fn each_model_of_ydlidar_shows_the_walls() {
    for (model, ready, points) in [
        ("x2", "X2", 380),
        ("x4-pro", "X4 Pro", 640),
        ("g2", "G2, firmware 1.2", 640),
        ("g4", "G4, firmware 2.0", 1_150),
        ("t-mini", "T-mini, firmware 1.1", 360),
    ] {
        let robot = Robot::with("ydlidar", model);
        let mediator = Mediator::start(&[&robot.driver(&format!("--model {model}"))]);
        mediator.wait_for_line(&format!("INFO ready: YDLIDAR {ready}, {points} points"));
        let peer = Peer::of(&mediator);
        let measured = check_walls(&peer.next_scan(), 30, 16.0);
        assert!(measured * 100 > points * 90, "{model}: {measured}");
    }
}

#[test]
fn the_drivers_follow_the_protocol_with_and_without_their_scanners() {
    thread::scope(|scope| {
        for (driver, model) in [("ldrobot", "ld06"), ("rplidar", "c1"), ("ydlidar", "x4")] {
            scope.spawn(move || {
                let robot = Robot::with(driver, model);
                let places = [&*robot.port(), "/nowhere/port"];
                with_and_without("hokuyo", 1, places, |check, port| {
                    check.args([driver, "--model", model, "--port", port]);
                });
            });
        }
    });
}
