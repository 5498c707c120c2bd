//! Wheels other than those of the RoboClaws: the real driver and the simulated base drive the robot by
//! device type 2, and the world shows whether it moves as the driver says.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::{Client, Roboclaw, WheelSpeeds, blocking, sources};
use amber_proto::bumper::Contacts;
use amber_sim::control::{self, Answer, Request, SimulationState};
use amber_sim::robot::Device;
use amber_sim::{clock_file, create2, diffdrive, odrive, vesc};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::common::{AMBER, Mediator, PATIENCE, Running, signal, wait_for};
use crate::kit::with_and_without;
use crate::robot::{drives, fastest, runtime, stands};

/// The firmware stops the motors this long after the last command for them. A VESC and an ODrive do it
/// earlier.
const FIRMWARE_STOP_S: f64 = 2.0;
/// A guard stops the motors this long after the driver is killed, and after the last sign of life of
/// one that hangs.
const GUARD_STOP_S: [f64; 2] = [0.2, 1.2];
/// How long wheels without power roll from 300 mm/s, and a margin for a busy machine.
const ROLLING_S: f64 = 2.0;
const MARGIN_S: f64 = 1.0;
/// How long a busy machine is given for a way without a break in the time of the simulation.
const WHOLE_TIME: Duration = Duration::from_secs(300);
/// The relative tolerance of distances.
const TOLERANCE: f64 = 0.03;

/// A simulated robot with another base. It ends with this.
struct Base {
    device: Device,
    folder: TempDir,
    process: Child,
}

impl Base {
    /// Two wheels on an Arduino.
    fn with(firmware: &str) -> Self {
        Self::of(diffdrive::DEVICE, &["--diffdrive", firmware])
    }

    fn create2() -> Self {
        Self::of(create2::DEVICE, &["--create2"])
    }

    /// Two VESCs with this firmware.
    fn vesc(firmware: &str) -> Self {
        Self::of(vesc::DEVICE, &["--vesc", firmware])
    }

    fn odrive() -> Self {
        Self::of(odrive::DEVICE, &["--odrive", "0.5.6"])
    }

    fn of(device: Device, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof"]).args(options);
        // The corridor of the flat.
        command.args(["--start", "1.5,2.6,0", "--dir"]);
        command.arg(folder.path().join("sim"));
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let process = command.spawn().unwrap();
        let base = Self {
            device,
            folder,
            process,
        };
        wait_for("the simulated base", || {
            Path::new(&base.port()).exists().then_some(())
        });
        assert!(!base.folder.path().join("sim/roboclaw").exists());
        base
    }

    /// The real time for which a busy machine has held the simulation.
    fn left_out(&self) -> Duration {
        let file = self.folder.path().join("sim").join(clock_file::FILE);
        let micros = fs::read(file).unwrap().try_into().unwrap();
        Duration::from_micros(u64::from_le_bytes(micros))
    }

    fn port(&self) -> String {
        let port = self.folder.path().join("sim").join(self.device.name());
        port.to_str().unwrap().to_owned()
    }

    fn options(&self, port: &str) -> Vec<String> {
        let command = self.device.driver(port);
        assert_eq!(command[2], self.device.name());
        command
    }

    fn mediator(&self) -> Mediator {
        let driver = self.options(&self.port()).join(" ");
        let mediator = Mediator::start(&[&format!("roboclaw:0={driver}")]);
        mediator.wait_for_line("INFO ready: ");
        mediator
    }

    /// A mediator that does not start the driver again.
    fn mediator_without_restart(&self) -> (Mediator, TempDir) {
        let driver = self.options(&self.port());
        let (mediator, folder) = Mediator::configured(&format!(
            "[[driver]]\ndevice = 'roboclaw:0'\nrestart = 'never'\ncommand = {driver:?}\n"
        ));
        mediator.wait_for_line("INFO ready: ");
        (mediator, folder)
    }

    fn fault(&self, words: &[&str]) {
        let mut command = Command::new(AMBER);
        command.args(["sim", "fault"]).args(words);
        command.env("AMBER_SIM_DIR", self.folder.path().join("sim"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn state(&self) -> SimulationState {
        match control::ask(&self.folder.path().join("sim"), &Request::State) {
            Ok(Answer::State(state)) => *state,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the world is in this state.
    #[track_caller]
    fn until(&self, what: &str, is_true: impl Fn(&SimulationState) -> bool) -> SimulationState {
        let began = Instant::now();
        loop {
            let state = self.state();
            if is_true(&state) {
                return state;
            }
            // Simulated time goes slower on a busy machine.
            assert!(began.elapsed() < 4 * PATIENCE, "{what}: {state:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of a mediator.
struct Peer {
    runtime: Runtime,
    wheels: Roboclaw,
}

impl Peer {
    fn of(mediator: &Mediator) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(Client::connect(mediator.address)).unwrap();
        let wheels = client.roboclaw(0).with_deadline(Duration::from_secs(3));
        Self { runtime, wheels }
    }

    fn drive(&self, mm_s: i32) {
        let driven = self
            .runtime
            .block_on(self.wheels.drive(WheelSpeeds::all(mm_s)));
        driven.unwrap();
    }

    fn speeds(&self) -> Option<WheelSpeeds> {
        self.runtime.block_on(self.wheels.speeds()).ok()
    }

    /// Waits until a command is carried out.
    #[track_caller]
    fn drives_again(&self, base: &Base) {
        wait_for("a command that is carried out", || {
            let driven = self
                .runtime
                .block_on(self.wheels.drive(WheelSpeeds::all(100)));
            driven.ok()
        });
        base.until("it drives", drives);
        self.drive(0);
        base.until("it stands", stands);
    }
}

/// The troubles of the driver.
fn troubles(mediator: &Mediator) -> Vec<String> {
    troubles_of(mediator, "roboclaw:0")
}

fn troubles_of(mediator: &Mediator, device: &str) -> Vec<String> {
    let troubles = mediator.describe(device).troubles;
    troubles.into_iter().map(|it| it.text).collect()
}

/// The directions in which something is felt.
fn pressed(contacts: &Contacts) -> Vec<f64> {
    assert_eq!(contacts.contacts.len(), 8, "{contacts:?}");
    let pressed = contacts.contacts.iter().filter(|it| it.pressed());
    pressed.map(|it| it.angle()).collect()
}

#[test]
fn the_way_of_a_base_is_that_of_the_world() {
    let starts: [fn() -> Base; 5] = [
        || Base::with("bridge"),
        || Base::with("andino"),
        || Base::vesc("6.02"),
        Base::odrive,
        Base::create2,
    ];
    for start in starts {
        // Speeds tell a way only if the time between them is known: whole time, without a break.
        let patience = Instant::now() + WHOLE_TIME;
        while let Err(off) = drive_forth_and_back(&start()) {
            assert!(off.left_out_s > 0.0 && Instant::now() < patience, "{off:?}");
        }
    }
}

/// A way that differs from that of the world.
#[derive(Debug)]
#[allow(dead_code)] // Shown if a test fails.
struct Off {
    base: &'static str,
    told_mm: f64,
    moved_mm: f64,
    left_out_s: f64,
}

fn drive_forth_and_back(base: &Base) -> Result<(), Off> {
    let name = base.device.name();
    let mediator = base.mediator();
    let peer = Peer::of(&mediator);
    let begin = base.state();
    // Forth, and a part of the way back.
    let mut told_mm = 0.0;
    let mut last = None;
    let mut commanded_mm = 0.0;
    peer.runtime.block_on(async {
        let watching =
            sources::watch_wheels(peer.wheels.clone(), Duration::from_millis(50), |measured| {
                let (at, speeds) = measured.unwrap();
                let at = at - base.left_out();
                let mm_s = f64::from(speeds.front_left_mm_s + speeds.rear_right_mm_s) / 2.0;
                if let Some((before, mm_s_before)) = last {
                    let passed = at.saturating_duration_since(before);
                    told_mm += (mm_s + mm_s_before) / 2.0 * passed.as_secs_f64();
                }
                last = Some((at, mm_s));
            });
        let driving = async {
            for (mm_s, steps) in [(0, 3), (300, 50), (-200, 20), (0, 30)] {
                let started = Instant::now();
                for _ in 0..steps {
                    peer.wheels.drive(WheelSpeeds::all(mm_s)).await.unwrap();
                    sleep(Duration::from_millis(100)).await;
                }
                commanded_mm += f64::from(mm_s) * started.elapsed().as_secs_f64();
            }
        };
        tokio::select! {
            () = watching => panic!("no speeds"),
            () = driving => {}
        }
    });
    let end = base.until("it stands", stands);
    assert_eq!((begin.contacts, end.contacts), (0, 0));
    let moved_mm = (end.x_m - begin.x_m) * 1_000.0;
    // Starting and rolling out take time; a busy machine simulates less than real time.
    let part = moved_mm / commanded_mm;
    assert!(
        (0.2..1.15).contains(&part),
        "{name}: {moved_mm} of {commanded_mm}"
    );
    if (told_mm / moved_mm - 1.0).abs() < TOLERANCE {
        return Ok(());
    }
    Err(Off {
        base: name,
        told_mm,
        moved_mm,
        left_out_s: end.left_out_s - begin.left_out_s,
    })
}

#[test]
fn wheels_stop_when_the_driver_is_killed_or_frozen() {
    for base in [Base::with("bridge"), Base::vesc("6.02"), Base::odrive()] {
        let mediator = base.mediator();
        let peer = Peer::of(&mediator);
        for how in [Signal::SIGKILL, Signal::SIGSTOP] {
            wait_for("a command that is carried out", || {
                let driven = peer
                    .runtime
                    .block_on(peer.wheels.drive(WheelSpeeds::all(300)));
                driven.ok()
            });
            base.until("it drives fast", |state| fastest(state) > 290.0);
            let pid = mediator.describe("roboclaw:0").pid();
            let before = base.state();
            signal(pid, how);
            let stood = base.until("it stands", stands);
            let took_s = stood.time_s - before.time_s;
            let limit_s = FIRMWARE_STOP_S + ROLLING_S + MARGIN_S;
            assert!(took_s < limit_s, "{how}: {took_s} s");
            // The mediator may have replaced it meanwhile.
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGCONT);
            wait_for("the driver", || peer.speeds());
            // Nobody has commanded it since.
            assert!(stands(&base.state()));
        }
    }
}

/// It has no watchdog, and here nobody starts the driver again.
#[test]
fn a_guard_stops_a_create_2_when_its_driver_is_killed_or_frozen() {
    for (how, guard_s) in [Signal::SIGKILL, Signal::SIGSTOP]
        .into_iter()
        .zip(GUARD_STOP_S)
    {
        let base = Base::create2();
        let (mediator, _folder) = base.mediator_without_restart();
        let peer = Peer::of(&mediator);
        wait_for("a command that is carried out", || {
            let driven = peer
                .runtime
                .block_on(peer.wheels.drive(WheelSpeeds::all(300)));
            driven.ok()
        });
        base.until("it drives fast", |state| fastest(state) > 290.0);
        let pid = mediator.describe("roboclaw:0").pid();
        let before = base.state();
        signal(pid, how);
        let stood = base.until("it stands", stands);
        let took_s = stood.time_s - before.time_s;
        // Its motors brake.
        let limit_s = guard_s + MARGIN_S;
        assert!(took_s < limit_s, "{how}: {took_s} s");
        if how == Signal::SIGSTOP {
            signal(pid, Signal::SIGCONT);
            wait_for("the driver", || peer.speeds());
            assert!(stands(&base.state()), "nobody has commanded it since");
            peer.drives_again(&base);
        }
    }
}

#[test]
fn a_create_2_in_the_air_waits_for_the_ground_and_a_new_command() {
    let base = Base::create2();
    let mediator = base.mediator();
    let peer = Peer::of(&mediator);
    peer.drives_again(&base);
    peer.drive(200);
    base.until("it drives", drives);
    base.fault(&["lift"]);
    base.until("it stands", stands);
    let problem = "a wheel hangs in the air: put the robot on the ground";
    wait_for(problem, || (troubles(&mediator) == [problem]).then_some(()));
    let ahead = || {
        let driving = peer.wheels.drive(WheelSpeeds::all(200));
        peer.runtime.block_on(driving)
    };
    // On a busy machine, a report may come too late.
    let refusal = wait_for("a refusal", || ahead().err()).to_string();
    assert!(refusal.contains(problem), "{refusal}");
    base.fault(&["clear"]);
    wait_for("the end of the trouble", || {
        troubles(&mediator).is_empty().then_some(())
    });
    assert!(stands(&base.state()));
    peer.drives_again(&base);
}

#[test]
fn a_create_2_at_a_wall_drives_only_back() {
    let base = Base::create2();
    let mediator = base.mediator();
    let peer = Peer::of(&mediator);
    peer.drives_again(&base);
    let problem = "the bumper is pressed";
    let ahead = || {
        let driving = peer.wheels.drive(WheelSpeeds::all(300));
        peer.runtime.block_on(driving)
    };
    let refusal = wait_for("a wall", || ahead().err());
    assert!(refusal.to_string().contains(problem), "{refusal}");
    base.until("it stands", stands);
    peer.drive(-100);
    base.until("it drives back", drives);
    wait_for("the way ahead", || ahead().ok());
    assert_eq!(mediator.describe("roboclaw:0").restarts(), 0);
}

#[test]
fn what_a_create_2_feels_is_a_device_that_stops_those_who_drive() {
    let base = Base::create2();
    let driver = base.options(&base.port()).join(" ");
    let laser = base.folder.path().join("sim/hokuyo");
    let mediator = Mediator::start(&[
        &format!("roboclaw:0,bumper:0,battery:0={driver}"),
        &format!("hokuyo:0=amber driver hokuyo --port {}", laser.display()),
        "collision-avoidance:0=amber driver collision_avoidance --laser-offset-mm 0 --bumper bumper:0",
    ]);
    mediator.wait_for_line("INFO ready: ");
    let peer = Peer::of(&mediator);
    let client = blocking::Client::connect(mediator.address).unwrap();
    let (bumper, guard) = (client.bumper(0), client.collision_avoidance(0));
    let felt = || bumper.contacts().ok().map(|contacts| pressed(&contacts));
    let until = |what: &str, expected: &[f64]| {
        wait_for(what, || felt().filter(|it| it == expected));
    };
    let guarded = |mm_s| guard.drive(WheelSpeeds::all(mm_s));
    until("contacts", &[]);
    // One process measures all of it.
    let pid = mediator.describe("roboclaw:0").pid();
    assert_eq!(mediator.describe("bumper:0").pid(), pid);
    let state = wait_for("the battery", || client.battery(0).state().ok());
    assert!((13_000..16_000).contains(&state.voltage()), "{state:?}");
    let mut watch = Running::start(&mediator, &["watch", "bumper", "--json"]);
    let line = watch.line();
    assert!(line.contains("\"pressed\""), "{line}");
    watch.interrupt();

    // Clients of the wheels themselves drive into a wall.
    wait_for("the way ahead", || guarded(200).ok());
    let ahead = || {
        let driving = peer.wheels.drive(WheelSpeeds::all(300));
        peer.runtime.block_on(driving)
    };
    let is_at_wall = |error: &amber_client::Error| error.to_string().contains("the bumper is");
    wait_for("a wall", || ahead().err().filter(is_at_wall));
    until("both halves of the bumper", &[45.0, -45.0]);
    let text = "a bumper is pressed; drive away from there";
    let refused = |text: &str| {
        let is_it = |error: &amber_client::Error| error.to_string().contains(text);
        wait_for(text, || guarded(200).err().filter(is_it));
    };
    refused(text);
    wait_for(text, || {
        let all = troubles_of(&mediator, "collision-avoidance:0");
        all.iter().any(|it| it == text).then_some(())
    });
    wait_for("room ahead", || {
        guarded(-100).ok()?;
        felt().filter(Vec::is_empty)
    });

    base.fault(&["lift"]);
    until("both wheels in the air", &[90.0, -90.0]);
    refused("a wheel hangs in the air");
    base.fault(&["clear"]);
    until("the floor", &[]);

    base.fault(&["unplug", "create2"]);
    let gone = |error: &amber_client::Error| error.to_string().contains(" does not exist");
    wait_for("no contacts", || bumper.contacts().err().filter(gone));
    wait_for("its trouble", || {
        let all = troubles_of(&mediator, "bumper:0");
        all.iter()
            .any(|it| it.contains(" does not exist"))
            .then_some(())
    });
    wait_for("a refusal without wheels and bumper", || guarded(200).err());
    base.fault(&["clear"]);
    until("contacts", &[]);
    wait_for("a bumper that is heard", || {
        let refused = guarded(200).err().map(|error| error.to_string());
        refused
            .is_none_or(|why| !why.contains("bumper"))
            .then_some(())
    });
    assert_eq!(mediator.describe("bumper:0").restarts(), 0);
    client.close();
}

#[test]
fn an_unplugged_base_stops_and_waits_for_a_new_command_when_it_is_back() {
    let base = Base::with("bridge");
    let mediator = base.mediator();
    let peer = Peer::of(&mediator);
    for (fault, problem) in [
        ("unplug", " does not exist"),
        ("stall", "the board does not answer"),
    ] {
        peer.drive(200);
        base.until("it drives", drives);
        let before = base.state();
        base.fault(&[fault, "diffdrive"]);
        let stood = base.until("it stands", stands);
        let took_s = stood.time_s - before.time_s;
        assert!(
            took_s < FIRMWARE_STOP_S + ROLLING_S + MARGIN_S,
            "{fault}: {took_s} s"
        );
        wait_for(problem, || {
            let all = troubles(&mediator);
            all.iter().any(|it| it.contains(problem)).then_some(())
        });
        assert_eq!(peer.speeds(), None, "{fault}: no old speeds");
        base.fault(&["clear"]);
        wait_for("the end of the trouble", || {
            troubles(&mediator).is_empty().then_some(())
        });
        assert!(stands(&base.state()), "{fault}");
        wait_for("speeds", || peer.speeds());
        peer.drives_again(&base);
    }
    let driver = mediator.describe("roboclaw:0");
    assert_eq!(driver.restarts(), 0);
}

#[test]
fn damaged_answers_do_no_lasting_harm() {
    suffers(&Base::with("bridge"));
    suffers(&Base::create2());
    suffers(&Base::odrive());
}

fn suffers(base: &Base) {
    let mediator = base.mediator();
    let peer = Peer::of(&mediator);
    base.fault(&["corrupt", base.device.name()]);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        // It may be refused: a few damaged answers in a row are an outage.
        let turn = WheelSpeeds::sides(150, -150);
        let _ = peer.runtime.block_on(peer.wheels.drive(turn));
        if let Some(speeds) = peer.speeds() {
            assert_eq!(speeds.front_left_mm_s, speeds.rear_left_mm_s);
        }
    }
    base.fault(&["clear"]);
    peer.drives_again(base);
    assert_eq!(mediator.describe("roboclaw:0").restarts(), 0);
}

#[test]
fn the_drivers_follow_the_protocol_with_and_without_their_bases() {
    let bases = [
        Base::with("andino"),
        Base::create2(),
        Base::vesc("5.02"),
        Base::odrive(),
    ];
    thread::scope(|scope| {
        for base in &bases {
            scope.spawn(move || follows(base));
        }
    });
}

fn follows(base: &Base) {
    base.until("it has started", |state| state.time_s > 2.0);
    let places = [&*base.port(), "/nowhere/port"];
    with_and_without("roboclaw", 1, places, |check, port| {
        check.args(&base.options(port)[2..]);
    });
}
