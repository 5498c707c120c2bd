//! The demo's robot drives, scans and stops correctly. The simulated world provides the true state;
//! everything between it and the clients is real.

use std::pin::pin;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::{Client, Roboclaw, WheelSpeeds};
use amber_sim::control::{self, Answer, Request, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::interval;

use self::wander::Seen;
use crate::common::{Mediator, PATIENCE, demo, signal, wait_for};

#[allow(dead_code)] // The test has a main of its own.
#[path = "../../client-sdk/examples/wander.rs"]
mod wander;

/// How long the wheels turn without a command, in simulated seconds, with a margin for a busy
/// machine.
const IDLE_STOP_S: f64 = 4.0 + 4.0;
/// Braking time with a margin; much shorter than the time until a lost client is noticed.
pub const AT_ONCE_S: f64 = 1.5;
/// However slow the simulation is, nothing takes longer.
const LONGEST: Duration = Duration::from_secs(600);
/// The relative tolerance of distances and speeds.
const TOLERANCE: f64 = 0.03;

#[test]
fn wandering_touches_no_wall_and_gets_every_scan() {
    const SCANS_PER_S: f64 = 10.0;
    let robot = Robot::start();
    let at_first = robot.state();
    let (at_last, seen) = robot.while_wandering(|arrived| {
        let count = || arrived.load(Ordering::Relaxed);
        // Other drivers use the laser, too: it measured before the client subscribed.
        let before = wait_for("a scan", || Some(count()).filter(|&scans| scans > 0));
        let begin = robot.state();
        let end = robot.until("20 seconds", |state| state.time_s > begin.time_s + 20.0);
        let measured = end.scans - begin.scans;
        let (least, expected) = (200 - 3, (end.time_s - begin.time_s) * SCANS_PER_S);
        assert!(
            measured >= least && measured as f64 <= expected + 1.0,
            "{measured} scans, expected {least} to {expected}"
        );
        wait_for("every scan", || {
            (count() >= before + measured).then_some(())
        });
        // Without scans the client stops the robot.
        assert!(robot.amber(&["stop", "hokuyo:0"]));
        robot.until("it stands", stands)
    });
    assert_eq!(at_last.contacts, 0);
    let way_m = at_last.travelled_m - at_first.travelled_m;
    assert!(way_m > 1.0, "only {way_m} m in 20 s");

    assert_eq!(seen.missed.get(), 0);
    let measured = at_last.scans - at_first.scans;
    assert!(seen.scans.get() <= measured, "{seen:?} of {measured}");
}

#[test]
fn three_seconds_at_300_mm_per_s_are_90_cm() {
    let robot = Robot::start();
    let runtime = runtime();
    runtime.block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        // A busy machine may delay a command, but a real error is repeatable.
        let mut problems = Vec::new();
        while let Err(problem) = robot.try_900_mm(&client.roboclaw(0)).await {
            problems.push(problem);
            assert!(problems.len() < 4, "{problems:?}");
        }
        client.close().await;
    });
}

#[test]
fn wheels_stop_when_the_commanding_client_is_killed() {
    let robot = Robot::start();
    let mut driver = robot.turning();
    driver.kill().unwrap();
    let killed = robot.state();
    driver.wait().unwrap();
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - killed.time_s;
    assert!(took_s < IDLE_STOP_S, "{took_s} s");
}

#[test]
fn wheels_stop_at_once_when_the_commanding_client_ends() {
    let robot = Robot::start();
    // Ctrl-C, the end of a service, a closed terminal, Ctrl-Z.
    for how in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGTSTP,
    ] {
        let mut driver = robot.turning();
        signal(driver.id(), how);
        let told = robot.state();
        let stood = robot.until("it stands", stands);
        let took_s = stood.time_s - told.time_s;
        assert!(took_s < AT_ONCE_S, "{how}: {took_s} s");
        driver.wait().unwrap();
    }
}

#[test]
fn unplugged_devices_recover_without_a_restart() {
    const DRIVERS: [&str; 2] = ["roboclaw:0", "hokuyo:0"];
    let robot = Robot::start();
    let pids = DRIVERS.map(|driver| robot.demo.describe(driver).pid());
    let ((), seen) = robot.while_wandering(|_| {
        robot.until("it drives", drives);
        // Without the wheels' driver the controllers stop, without scans the client stops.
        for device in ["roboclaw", "hokuyo"] {
            assert!(robot.sim(&["fault", "unplug", device]));
            robot.until("it stands", stands);
            assert!(robot.sim(&["fault", "replug", device]));
            let scans = robot.state().scans;
            robot.until("it drives and sees again", |state| {
                drives(state) && state.scans > scans
            });
        }
        robot.wait_for_speeds();
        wait_for("a scan", || robot.amber(&["scan"]).then_some(()));
    });
    assert_eq!(seen.missed.get(), 0);
    for (driver, pid) in DRIVERS.into_iter().zip(pids) {
        let now = robot.demo.describe(driver);
        assert_eq!((now.pid(), now.restarts()), (pid, 0), "{driver}");
    }
    // The log describes this in a few lines.
    for driver in DRIVERS {
        let lines = robot.demo.output();
        let story = lines.iter().filter(|line| line.contains(driver)).count();
        assert!(story < 30, "{driver}: {lines:#?}");
    }
}

pub fn fastest(state: &SimulationState) -> f64 {
    let wheels = state.wheels_mm_per_s;
    let all = [
        wheels.front_left,
        wheels.front_right,
        wheels.rear_left,
        wheels.rear_right,
    ];
    all.into_iter().map(f64::abs).fold(0.0, f64::max)
}

pub fn stands(state: &SimulationState) -> bool {
    fastest(state) == 0.0
}

pub fn drives(state: &SimulationState) -> bool {
    fastest(state) > 50.0
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A demo whose wheels are ready.
pub struct Robot {
    pub demo: Mediator,
    folder: TempDir,
}

impl Robot {
    pub fn start() -> Self {
        Self::of(demo())
    }

    pub fn of((demo, folder): (Mediator, TempDir)) -> Self {
        let robot = Self { demo, folder };
        robot.wait_for_speeds();
        robot
    }

    #[track_caller]
    fn wait_for_speeds(&self) {
        wait_for("speeds", || {
            self.amber(&["call", "roboclaw", "speeds"]).then_some(())
        });
    }

    /// The folder with the devices of the simulation.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Runs `amber` and returns whether it succeeded.
    pub fn amber(&self, args: &[&str]) -> bool {
        let output = self.demo.amber(args).output().unwrap();
        output.status.success()
    }

    /// Runs `amber sim`.
    pub fn sim(&self, args: &[&str]) -> bool {
        let mut command = self.demo.amber(&["sim", "--dir"]);
        command.arg(self.folder.path().join("sim")).args(args);
        command.status().unwrap().success()
    }

    /// Carries the robot to a place, and waits until the location driver knows it there: at first it
    /// goes on at the old place.
    #[track_caller]
    pub fn carry(&self, x_m: f64, y_m: f64) {
        assert!(self.sim(&["place", &format!("{x_m},{y_m},0")]));
        wait_for("the robot at its place", || {
            let mut asked = self.demo.amber(&["call", "location", "pose", "--json"]);
            let pose: serde_json::Value =
                serde_json::from_slice(&asked.output().ok()?.stdout).ok()?;
            let off_m = (pose["x"].as_f64()? - x_m).hypot(pose["y"].as_f64()? - y_m);
            (pose["p"].as_f64()? > 0.9 && off_m < 0.1).then_some(())
        });
    }

    /// The true state. Tests ask for it again and again, so no process is started for it: on a busy
    /// machine, that would take a part of the times that are measured.
    pub fn state(&self) -> SimulationState {
        match control::ask(&self.folder.path().join("sim"), &Request::State) {
            Ok(Answer::State(state)) => *state,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the world is in this state. Simulated time goes slower on a busy machine, so the limit
    /// holds for both times.
    #[track_caller]
    pub fn until(&self, what: &str, is_true: impl Fn(&SimulationState) -> bool) -> SimulationState {
        let (began, first) = (Instant::now(), self.state());
        loop {
            let state = self.state();
            if is_true(&state) {
                return state;
            }
            let (waited, simulated_s) = (began.elapsed(), state.time_s - first.time_s);
            let is_late = waited > PATIENCE && simulated_s > PATIENCE.as_secs_f64();
            assert!(
                !is_late && waited < LONGEST,
                "waited {waited:?}, {simulated_s} s in the simulation, for {what}: {state:?}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Does something while the example drives around. The counter shows the scans that have
    /// arrived so far.
    pub fn while_wandering<T>(&self, action: impl FnOnce(&AtomicU64) -> T) -> (T, Seen) {
        let (enough, has_enough) = oneshot::channel::<()>();
        let arrived = AtomicU64::new(0);
        thread::scope(|scope| {
            let wandering = scope.spawn(|| runtime().block_on(self.wander(has_enough, &arrived)));
            let done = action(&arrived);
            drop(enough);
            (done, wandering.join().unwrap())
        })
    }

    async fn wander(&self, mut has_enough: oneshot::Receiver<()>, arrived: &AtomicU64) -> Seen {
        let client = Client::connect(self.demo.address).await.unwrap();
        let seen = Seen::default();
        {
            let mut wandering = pin!(wander::wander(&client, &seen));
            let mut tick = interval(Duration::from_millis(10));
            loop {
                tokio::select! {
                    wandered = &mut wandering => break wandered.unwrap(),
                    _ = &mut has_enough => break,
                    _ = tick.tick() => arrived.store(seen.scans.get(), Ordering::Relaxed),
                }
            }
        }
        client.roboclaw(0).stop().await.unwrap();
        client.close().await;
        seen
    }

    /// A process that makes the robot turn on the spot for a long time.
    pub fn turning(&self) -> Child {
        let mut command = self.demo.amber(&["drive", "--for", "600s"]);
        let child = command
            .args(["--left", "250", "--right", "-250"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.until("it turns", |state| fastest(state) > 240.0);
        child.unwrap()
    }

    /// Drives along the corridor, and returns any deviation.
    async fn try_900_mm(&self, wheels: &Roboclaw) -> Result<(), String> {
        const MM_S: i32 = 300;
        const TIME: Duration = Duration::from_secs(3);
        assert!(self.sim(&["place", "1.5,2.6,0"]));
        let begin = self.state();
        let mut settled = Vec::new();
        let started = Instant::now();
        while let left = TIME.saturating_sub(started.elapsed())
            && !left.is_zero()
        {
            wheels.drive(WheelSpeeds::all(MM_S)).await.unwrap();
            if left < TIME / 2 {
                settled.push(wheels.speeds().await.unwrap());
            }
            tokio::time::sleep(left.min(Duration::from_millis(100))).await;
        }
        wheels.stop().await.unwrap();
        let expected_m = started.elapsed().as_secs_f64() * f64::from(MM_S) / 1000.0;
        let end = self.until("it stands", stands);

        let is_off = |is: f64, should: f64| (is - should).abs() > should * TOLERANCE;
        let moved_m = (end.x_m - begin.x_m).hypot(end.y_m - begin.y_m);
        if is_off(moved_m, expected_m) {
            return Err(format!("moved {moved_m} m instead of {expected_m} m"));
        }
        for speeds in settled {
            let all = [
                speeds.front_left_mm_s,
                speeds.front_right_mm_s,
                speeds.rear_left_mm_s,
                speeds.rear_right_mm_s,
            ];
            if (all.into_iter()).any(|speed| is_off(speed.into(), MM_S.into())) {
                return Err(format!("measured {speeds:?} mm/s"));
            }
        }
        Ok(())
    }
}
