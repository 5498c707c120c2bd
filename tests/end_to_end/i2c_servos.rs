//! Servos on a PCA9685: the real driver and the simulated chip. What turns like a motor stops when the
//! driver is killed, although the chip has no watchdog; also when it is the mediator that kills it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use amber_client::blocking::Client;
use amber_sim::control::{Servo, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, is_running, signal, wait_for};
use crate::kit::with_and_without;

/// A simulated robot with a PCA9685. It ends with this.
struct Robot {
    folder: TempDir,
    process: Child,
}

impl Robot {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", "--pca9685", "--dir"]);
        command.arg(folder.path().join("sim"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let process = process.unwrap();
        let robot = Self { folder, process };
        wait_for("the simulated chip", || {
            Path::new(&robot.socket()).exists().then_some(())
        });
        robot
    }

    fn socket(&self) -> String {
        let socket = self.folder.path().join("sim/pca9685");
        socket.to_str().unwrap().to_owned()
    }

    /// A mediator with the driver, which is not started again. Servo 5 turns like a motor.
    fn mediator(&self) -> (Mediator, TempDir) {
        let file = self.folder.path().join("servos.toml");
        fs::write(&file, "[[servo]]\nid = 5\ncontinuous = true\n").unwrap();
        let (bus, file) = (self.socket(), file.display());
        Mediator::configured(&format!(
            "[[driver]]\ndevice = 'maestro:0'\nrestart = 'never'\ngrace_ms = 100\n\
             command = ['amber', 'driver', 'pca9685', '--bus', 'sim:{bus}', '--config', '{file}']\n"
        ))
    }

    fn sim(&self, words: &[&str]) -> String {
        let mut command = Command::new(AMBER);
        command.arg("sim").args(words);
        command.env("AMBER_SIM_DIR", self.folder.path().join("sim"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn servos(&self) -> Vec<Servo> {
        let text = self.sim(&["state", "--json"]);
        let state: SimulationState = serde_json::from_str(&text).unwrap();
        state.i2c_servos
    }

    #[track_caller]
    fn wait_for_pulse(&self, servo: usize, us: f64) {
        wait_for("the pulse of a servo", || {
            let found = self.servos()[servo].pulse_us;
            ((found - us).abs() < 2.5).then_some(())
        });
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Turns servo 2 to 90 degrees, and lets servo 5 turn as long as the client exists.
fn turn(robot: &Robot, mediator: &Mediator) -> Client {
    mediator.wait_for_line("INFO ready: PCA9685, 50.0 Hz");
    let client = Client::connect(mediator.address).unwrap();
    let servos = client.maestro(0);
    servos.set_angle(2, 90).unwrap();
    servos.set_angle(5, 45).unwrap();
    robot.wait_for_pulse(2, 1500.0);
    robot.wait_for_pulse(5, 1950.0);
    client
}

#[test]
fn a_killed_driver_leaves_nothing_turning() {
    let robot = Robot::start();
    let (mediator, _folder) = robot.mediator();
    let client = turn(&robot, &mediator);
    signal(mediator.describe("maestro:0").pid(), Signal::SIGKILL);
    robot.wait_for_pulse(5, 0.0);
    // A position is held.
    robot.wait_for_pulse(2, 1500.0);
    client.close();
}

#[test]
fn the_mediator_kills_a_driver_that_hangs_but_not_its_guard() {
    let robot = Robot::start();
    let (mediator, _folder) = robot.mediator();
    let client = turn(&robot, &mediator);
    let pid = mediator.describe("maestro:0").pid();
    signal(pid, Signal::SIGSTOP);
    let stopped = mediator.amber(&["stop", "maestro:0"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    wait_for("the end of the driver", || (!is_running(pid)).then_some(()));
    robot.wait_for_pulse(5, 0.0);
    robot.wait_for_pulse(2, 1500.0);
    client.close();
}

#[test]
fn what_turns_like_a_motor_stops_with_its_client() {
    let robot = Robot::start();
    let (mediator, _folder) = robot.mediator();
    let client = turn(&robot, &mediator);
    client.close();
    robot.wait_for_pulse(5, 0.0);
    robot.wait_for_pulse(2, 1500.0);
}

/// Servo 3 is on its way, slowly.
#[test]
fn a_halt_stops_what_turns_and_what_moves() {
    let robot = Robot::start();
    let (mediator, _folder) = robot.mediator();
    let client = turn(&robot, &mediator);
    let servos = client.maestro(0);
    servos.set_angle(3, 90).unwrap();
    robot.wait_for_pulse(3, 1500.0);
    servos.set_speed(3, 1).unwrap();
    servos.set_angle(3, 0).unwrap();
    wait_for("a movement", || {
        (robot.servos()[3].pulse_us > 1502.0).then_some(())
    });
    let halted = mediator.amber(&["halt", "maestro"]).output().unwrap();
    assert!(halted.status.success(), "{halted:?}");
    robot.wait_for_pulse(5, 0.0);
    robot.wait_for_pulse(2, 1500.0);
    // The driver has ended the movement before the pulses: at 25 us/s it would take half a minute.
    let us = robot.servos()[3].pulse_us;
    assert!((1502.0..2300.0).contains(&us), "{us}");
    assert_eq!(servos.angles().unwrap(), [(2, 90), (3, 0)]);
    let released = mediator
        .amber(&["halt", "maestro", "--release"])
        .output()
        .unwrap();
    assert!(released.status.success(), "{released:?}");
    servos.set_angle(5, 45).unwrap();
    robot.wait_for_pulse(5, 1950.0);
    let held = robot.servos()[3].pulse_us;
    assert_eq!(held, us, "it has not moved on");
    client.close();
}

#[test]
fn an_outage_is_reported_and_ends() {
    let robot = Robot::start();
    let (mediator, _folder) = robot.mediator();
    let client = turn(&robot, &mediator);
    for (fault, trouble) in [("unplug", "no "), ("stall", "the bus is stuck")] {
        robot.sim(&["fault", fault, "pca9685"]);
        wait_for("its trouble", || {
            let troubles = mediator.describe("maestro:0").troubles;
            troubles
                .into_iter()
                .find(|told| told.text.starts_with(trouble))
        });
        robot.sim(&["fault", "clear"]);
        wait_for("no trouble", || {
            let troubles = mediator.describe("maestro:0").troubles;
            troubles.is_empty().then_some(())
        });
    }
    client.maestro(0).set_angle(2, 0).unwrap();
    robot.wait_for_pulse(2, 2400.0);
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_chip() {
    let robot = Robot::start();
    let places = [&*robot.socket(), "/nowhere/bus"];
    with_and_without("maestro", 0, places, |check, bus| {
        check.args(["pca9685", "--bus", &format!("sim:{bus}")]);
    });
}

/// It is found, and nothing is written to it: not even its driver is started.
#[test]
fn amber_init_finds_it() {
    let robot = Robot::start();
    let root = robot.folder.path().join("root");
    let folder = root.join("sys/bus/i2c/devices/i2c-1");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("name"), "bcm2835 (i2c@7e804000)\n").unwrap();
    fs::create_dir_all(root.join("dev")).unwrap();
    std::os::unix::fs::symlink(robot.socket(), root.join("dev/i2c-1")).unwrap();
    let mut init = Command::new(AMBER);
    init.arg("init").arg(robot.folder.path().join("home"));
    init.args(["--yes", "--root"]).arg(&root);
    let output = init.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let line = "maestro:0     servo controller PCA9685: PCA9685 at 0x40";
    assert!(text.contains(line), "{text}");
    let written = fs::read_to_string(robot.folder.path().join("home/amber.toml")).unwrap();
    assert!(written.contains("\"pca9685\", \"--bus\""), "{written}");
}
