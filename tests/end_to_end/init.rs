//! `amber init` finds the devices of a simulated machine, and writes files that work.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use amber_drivers::probe::PROBES;
use amber_proto::mediator::DriverState;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use serde_json::Value;

use crate::camera::shim;
use crate::common::{AMBER, Mediator, root, wait_for};

mod machine;

use self::machine::{Machine, plug, write};

/// How the command ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "one object: {self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Runs a command with these answers to its questions.
fn answered(mut command: Command, answers: &str) -> Ended {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(answers.as_bytes()).unwrap();
    drop(stdin);
    Ended::of(child.wait_with_output().unwrap())
}

#[test]
fn a_dry_run_shows_what_is_there_and_writes_nothing() {
    let machine = Machine::full();
    let ended = machine.init(&["--dry-run"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "Looked at 4 serial ports, 1 I2C bus",
        "hokuyo:0      Hokuyo laser scanner: SOKUIKI Sensor URG-04LX, firmware 3.1.04",
        "roboclaw:0    RoboClaw motor controller: two controllers, ",
        "ninedof:0     motion sensors LSM303DLHC and L3GD20: a magnetometer, an accelerometer, ",
        "maestro:0     Pololu Maestro servo controller: servo 0 gets no pulses",
        "unknown       CP2102 USB to UART",
        "amber.toml would be:",
        "\"--servos=12\"",
        "laser_offset_mm = 0",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    assert!(!machine.home().exists());
}

#[test]
fn the_written_files_run_the_whole_robot() {
    let machine = Machine::full();
    let ended = machine.init(&["--yes", "--at", &machine.stargazer()]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "works         hokuyo:0: a scan of 682 points, ",
        "works         roboclaw:0: wheels 0 0 0 0 mm/s",
        "works         ninedof:0: acceleration ",
        "works         maestro:0: ",
        "works         stargazer:0: ",
        "amber mediator -c ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    let mut command = Command::new(AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0", "-c"]);
    command.arg(machine.home().join("amber.toml"));
    let mediator = Mediator::run(command);
    mediator.wait_until_ready();
    for device in [
        "robot:0",
        "battery:0",
        "collision-avoidance:0",
        "mapping:0",
        "location:0",
        "drive-to-point:0",
        "pid-follow-trajectory:0",
    ] {
        mediator.wait_for_state(device, DriverState::Up);
    }
    let output = mediator.amber(&["devices", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let devices = shown["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 12, "{shown}");
    assert!(devices.iter().all(|it| it["state"] == "up"), "{shown}");
    let output = mediator
        .amber(&["robot", "show", "--json"])
        .output()
        .unwrap();
    let robot: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(robot["laser"]["offset_mm"], 0.0, "{robot}");
}

#[test]
fn a_scanner_without_ids_of_its_own_is_named_and_listened_to() {
    let machine = Machine::simulated(&["ldrobot", "roboclaw"], &["--ldrobot", "ld19"]);
    let port = machine.by_id("ldrobot").display().to_string();
    let ended = machine.init(&["--yes", "--at", &format!("ldrobot={port}")]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "hokuyo:0      LDROBOT laser scanner: it turns ",
        "works         hokuyo:0: a scan of 400 points, ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    let command = format!("[\"amber\", \"driver\", \"ldrobot\", \"--port\", \"{port}\"]");
    assert!(machine.file("amber.toml").contains(&command));
    assert!(machine.file("robot.toml").contains("laser = \"hokuyo:0\""));
    // The port of another device.
    let wrong = format!("ldrobot={}", machine.by_id("roboclaw").display());
    let ended = machine.init(&["--dry-run", "--at", &wrong]);
    assert!(
        ended.out.contains("it does not answer: it must turn"),
        "{ended:?}"
    );
}

#[test]
fn a_scanner_that_says_what_it_is_is_named_and_asked() {
    let machine = Machine::simulated(&["rplidar"], &["--rplidar", "c1"]);
    let port = machine.by_id("rplidar").display().to_string();
    let ended = machine.init(&["--yes", "--at", &format!("rplidar={port}")]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "hokuyo:0      RPLIDAR laser scanner: C1M",
        "works         hokuyo:0: a scan of 450 points, ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    let command = format!("[\"amber\", \"driver\", \"rplidar\", \"--port\", \"{port}\"]");
    assert!(machine.file("amber.toml").contains(&command));
    let mut doctor = Command::new(AMBER);
    doctor.args(["doctor", "--json", "-c"]);
    doctor.arg(machine.home().join("amber.toml"));
    let told = Ended::of(doctor.output().unwrap());
    assert!(told.out.contains("is there: C1M"), "{told:?}");
}

#[test]
fn a_scanner_is_configured_with_the_model_that_it_says() {
    let machine = Machine::simulated(&["ydlidar"], &["--ydlidar", "t-mini"]);
    let port = machine.by_id("ydlidar").display().to_string();
    let ended = machine.init(&["--yes", "--at", &format!("ydlidar={port}")]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "hokuyo:0      YDLIDAR laser scanner: T-mini, firmware 1.1",
        "works         hokuyo:0: a scan of 360 points, ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    let file = machine.file("amber.toml");
    for text in ["\"ydlidar\", \"--port\"", "\"--model\", \"t-mini\""] {
        assert!(file.contains(text), "{text}: {file}");
    }
}

#[test]
fn servos_are_asked_for_their_ids_and_a_known_arm_is_recognized() {
    // A simulated line has each speed, so the servos of a Koch answer at that of new ones.
    for (maker, robot, text, option) in [
        (
            "feetech",
            "so101",
            "Feetech servos on a bus: servos 1 to 6, STS3215",
            "\"--preset=so101\"",
        ),
        (
            "dynamixel",
            "koch",
            "Dynamixel servos on a bus: servos 1 to 6, XL330-M288 and XL430-W250",
            "\"--ids=1,2,3,4,5,6\"",
        ),
    ] {
        let machine = Machine::simulated(&[maker], &[&format!("--{maker}"), robot]);
        let port = machine.by_id(maker).display().to_string();
        let ended = machine.init(&["--yes", "--at", &format!("{maker}={port}")]);
        assert_eq!(ended.code, 0, "{ended:?}");
        for text in [text, "works         bus-servos:0: 1 at 180.0 deg, 2 at "] {
            assert!(ended.out.contains(text), "{text}: {ended:?}");
        }
        let file = machine.file("amber.toml");
        assert!(file.contains(option), "{file}");
        let mut doctor = Command::new(AMBER);
        doctor.args(["doctor", "--json", "-c"]);
        doctor.arg(machine.home().join("amber.toml"));
        let told = Ended::of(doctor.output().unwrap());
        assert!(told.out.contains("is there: servos 1 to 6"), "{told:?}");
    }
}

#[test]
fn a_gps_receiver_is_known_by_its_ids_and_listened_to() {
    let machine = Machine::simulated(&["gps"], &["--gps", "neo-m8"]);
    let ended = machine.init(&["--yes"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "gps:0         GPS receiver: it has ",
        "works         gps:0: ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    let port = machine.by_id("gps").display().to_string();
    let command = format!("[\"amber\", \"driver\", \"gps\", \"--port\", \"{port}\"]");
    assert!(machine.file("amber.toml").contains(&command));
    let mut doctor = Command::new(AMBER);
    doctor.args(["doctor", "--json", "-c"]);
    doctor.arg(machine.home().join("amber.toml"));
    let told = Ended::of(doctor.output().unwrap());
    assert!(told.out.contains("is there: it has "), "{told:?}");
}

#[test]
fn a_robot_of_hobby_parts_is_configured_and_drives() {
    let options = [
        "--ldrobot",
        "ld19",
        "--diffdrive",
        "bridge",
        "--mpu",
        "mpu6050",
    ];
    let machine = Machine::simulated(&["ldrobot", "diffdrive"], &options);
    machine.connect_bus("mpu");
    let at = |device| format!("{device}={}", machine.by_id(device).display());
    let ended = machine.init(&["--yes", "--at", &at("ldrobot"), "--at", &at("diffdrive")]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for text in [
        "roboclaw:0    Arduino base with two wheels: firmware of ros_arduino_bridge",
        "works         roboclaw:0: wheels 0 0 0 0 mm/s",
        "works         hokuyo:0: a scan of 400 points, ",
        "works         ninedof:0: acceleration ",
    ] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    assert!(!machine.file("amber.toml").contains("battery:0"));
    the_guide_shows(&machine);

    let mut command = Command::new(AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0", "-c"]);
    command.arg(machine.home().join("amber.toml"));
    let mediator = Mediator::run(command);
    for device in [
        "roboclaw:0",
        "robot:0",
        "collision-avoidance:0",
        "mapping:0",
    ] {
        mediator.wait_for_state(device, DriverState::Up);
    }
    let driven = mediator
        .amber(&[
            "drive", "--left", "100", "--right", "100", "--for", "2", "--json",
        ])
        .output()
        .unwrap();
    let driven = Ended::of(driven);
    assert_eq!(driven.code, 0, "{driven:?}");
    let measured = &driven.json()["measured_mm_s"];
    assert!(measured[0].as_i64().is_some_and(|it| it > 0), "{measured}");
}

/// docs/from-parts.md shows drivers of this machine, and the whole shape, without the comments.
fn the_guide_shows(machine: &Machine) {
    let page = fs::read_to_string(root().join("docs/from-parts.md")).unwrap();
    for name in ["amber.toml", "robot.toml"] {
        let (_, shown) = page.split_once(&format!("```toml\n# {name}\n")).unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let root = machine.root().display().to_string();
        let written = machine.file(name).replace("sim:", "").replace(&root, "");
        let bare = |text: &str| {
            let lines = text
                .lines()
                .filter(|it| !it.is_empty() && !it.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        let (shown, written) = (bare(shown), bare(&written));
        match name {
            "robot.toml" => assert_eq!(shown, written),
            _ => assert!(written.contains(&shown), "{shown}\n\n{written}"),
        }
    }
}

#[test]
fn existing_files_are_replaced_only_by_force_and_are_kept() {
    let machine = Machine::with(&["hokuyo"]);
    write(&machine.home().join("amber.toml"), "# mine\n");
    let refused = machine.init(&["--yes"]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
    assert!(
        refused.err.contains("amber.toml exists already"),
        "{refused:?}"
    );
    assert!(refused.err.contains("hint: ") && refused.err.contains("--force"));
    assert_eq!(machine.file("amber.toml"), "# mine\n");
    assert!(!machine.home().join("robot.toml").exists());

    let forced = machine.init(&["--yes", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert_eq!(machine.file("amber.toml.old"), "# mine\n");
    assert!(machine.file("amber.toml").contains("hokuyo:0"));
    assert!(machine.home().join("robot.toml").exists());
}

#[test]
fn answers_are_read_from_stdin_and_missing_ones_write_nothing() {
    let machine = Machine::with(&["hokuyo", "roboclaw", "stargazer"]);
    let answers = format!("{}\n400 300\n120\n\n", machine.stargazer());
    let few = answered(machine.command(&machine.home(), &[]), "\n400\n");
    assert_eq!(few.code, 2, "{few:?}");
    assert!(
        few.err.contains("write 2 numbers") && few.err.contains("--yes"),
        "{few:?}"
    );
    assert!(!machine.home().exists());

    let ended = answered(machine.command(&machine.home(), &[]), &answers);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(
        ended.err.matches("]:").count(),
        4,
        "four questions: {ended:?}"
    );
    assert!(machine.file("amber.toml").contains("\"stargazer:0\""));
    assert!(
        machine
            .file("amber.toml")
            .contains("\"--pulses-per-turn=1865\"")
    );
    let robot = machine.file("robot.toml");
    for line in ["length_mm = 400", "laser_offset_mm = 120", "track_mm = 382"] {
        assert!(robot.contains(line), "{line}:\n{robot}");
    }
}

#[test]
fn programs_get_one_object() {
    let machine = Machine::with(&["hokuyo", "stargazer"]);
    let ended = machine.init(&["--yes", "--json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let told = ended.json();
    assert_eq!(told["serial_ports"], 2);
    let states: Vec<_> = told["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["state"])
        .collect();
    assert_eq!(states, ["ready", "unknown"]);
    assert_eq!(told["found"][0]["device"], "hokuyo:0");
    assert_eq!(told["readings"][0]["works"], true);
    assert_eq!(told["service_started"], false);
    let first = told["files"][0]["path"].as_str().unwrap();
    assert_eq!(Path::new(first), machine.home().join("amber.toml"));
    #[cfg(feature = "web")]
    {
        let address = told["dashboard"].as_str().unwrap();
        let (host, token) = address.split_once("/#").unwrap();
        assert!(
            host.starts_with("http://") && host.ends_with(":8026"),
            "{address}"
        );
        assert!(machine.file("dashboard.tokens").contains(token));
    }
}

#[test]
fn without_devices_it_says_what_was_looked_at_and_what_may_be_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let mut command = Command::new(AMBER);
    command.arg("init").arg(&home).args(["--yes", "--root"]);
    command.arg(folder.path().join("root"));
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended
            .out
            .starts_with("Looked at 0 serial ports, 0 I2C buses"),
        "{ended:?}"
    );
    assert!(
        ended.err.contains("error: no device was found"),
        "{ended:?}"
    );
    for hint in ["dialout", "i2c", "--at", "raspi-config"] {
        assert!(ended.err.contains(hint), "{hint}: {ended:?}");
    }
    assert!(!home.exists());
}

#[test]
fn a_port_that_a_driver_uses_is_left_to_it() {
    let machine = Machine::with(&["hokuyo", "maestro"]);
    let driver = format!(
        "hokuyo:0=amber driver hokuyo --port {}",
        machine.by_id("hokuyo").display()
    );
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line_with(&["INFO ready: ", " driver=hokuyo:0"]);
    let told = machine.init(&["--yes", "--json"]).json();
    let hokuyo = &told["found"][0];
    assert_eq!(hokuyo["state"], "busy", "{told}");
    assert!(
        hokuyo["note"].as_str().unwrap().contains("uses the port"),
        "{told}"
    );
    // It is configured, and only the other one is read.
    assert_eq!(hokuyo["device"], "hokuyo:0");
    assert_eq!(told["readings"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["readings"][0]["device"], "maestro:0");
    let scan = mediator
        .amber(&["call", "hokuyo", "scan"])
        .output()
        .unwrap();
    assert!(scan.status.success(), "{scan:?}");
    assert_eq!(mediator.describe("hokuyo:0").restarts(), 0);
}

#[test]
fn nothing_is_sent_to_a_port_that_may_be_anything() {
    let pty = openpty(None, None).unwrap();
    let file = fs::read_link(format!("/proc/self/fd/{}", pty.slave.as_raw_fd())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (port, ids) in [("ttyUSB0", ["10c4", "ea60"]), ("ttyACM0", ["2341", "0043"])] {
        plug(&root, port, &ids, "", &file);
    }
    let mut command = Command::new(AMBER);
    command.arg("init").arg(folder.path().join("home"));
    command.args(["--yes", "--json", "--root"]).arg(&root);
    let ended = Ended::of(command.output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    let told = ended.json();
    assert_eq!(told["found"][0]["state"], "no-driver", "{told}");
    assert_eq!(told["found"][1]["state"], "unknown", "{told}");
    fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let sent = File::from(pty.master).read(&mut [0; 1]);
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_service_is_started_only_after_a_yes() {
    let machine = Machine::with(&["hokuyo"]);
    let root = machine.root();
    fs::create_dir_all(root.join("run/systemd/system")).unwrap();
    write(&root.join("etc/systemd/system/amber.service"), "");
    let etc = root.join("etc/amber");
    fs::create_dir_all(&etc).unwrap();
    // A `systemctl` that writes down what it is asked, and says that the service does not run.
    let log = machine.folder.path().join("log");
    let script = machine.folder.path().join("bin/systemctl");
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> {}\n[ \"$1\" != is-active ]\n",
        log.display()
    );
    write(&script, &text);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", script.parent().unwrap().display());
    let run = |args: &[&str], answers: &str| {
        let mut command = machine.command(&etc, args);
        command.env("PATH", &path);
        answered(command, answers)
    };
    let declined = run(&["--force"], "\n\nno\n");
    assert_eq!(declined.code, 0, "{declined:?}");
    assert!(
        declined.out.contains("sudo systemctl enable --now amber"),
        "{declined:?}"
    );
    assert_eq!(run(&["--force", "--yes"], "").code, 0);
    assert!(!log.exists(), "--yes does not start it either");

    let started = run(&["--force"], "\n\nyes\n");
    assert_eq!(started.code, 0, "{started:?}");
    assert!(
        started.out.contains("The service amber runs."),
        "{started:?}"
    );
    let asked = fs::read_to_string(&log).unwrap();
    assert_eq!(asked, "is-active --quiet amber\nenable --now amber\n");
}

#[test]
fn the_doctor_says_of_each_device_whether_it_is_there() {
    let machine = Machine::with(&["hokuyo", "roboclaw"]);
    assert_eq!(machine.init(&["--yes"]).code, 0);
    let doctor = |device: &str| {
        let mut command = Command::new(AMBER);
        command.args(["doctor", "--json", "-c"]);
        command.arg(machine.home().join("amber.toml"));
        // Its exit code is about the whole machine.
        let told = Ended::of(command.output().unwrap()).json();
        let checks = told["checks"].as_array().unwrap().iter();
        let found = checks.filter_map(|it| it["found"].as_str());
        let of_device = found.filter_map(|found| found.strip_prefix(device));
        of_device.map(str::to_owned).collect::<Vec<_>>()
    };
    let port = machine.by_id("hokuyo").display().to_string();
    let there = format!(": {port} is there: SOKUIKI Sensor URG-04LX, firmware 3.1.04");
    let told = doctor("hokuyo:0");
    assert!(told.len() == 1 && told[0].starts_with(&there), "{told:?}");
    fs::remove_file(&port).unwrap();
    assert_eq!(doctor("hokuyo:0"), [format!(": {port} does not exist")]);

    let told = doctor("roboclaw:0");
    let stored = "battery 12.6 V (limits 10.5 and 34.0 V), motors at most 5.0 and 5.0 A";
    assert!(told.len() == 1 && told[0].contains(stored), "{told:?}");
    // Someone sets the lowest voltage of the rear controller to 13.0 V, and leaves the highest.
    let mut wheels = File::options()
        .write(true)
        .open(machine.by_id("roboclaw"))
        .unwrap();
    wheels
        .write_all(b"\x80\x39\x00\x82\x01\x54\x00\x09\x8C")
        .unwrap();
    drop(wheels);
    let low = ": the controller 128 stops its motors below 13.0 V, and the main battery has 12.6 V";
    let told = wait_for("the new limit", || {
        Some(doctor("roboclaw:0")).filter(|told| told.len() == 2)
    });
    assert_eq!(told[1], low);
}

#[test]
fn a_usb_camera_is_found_and_gives_a_picture() {
    let machine = Machine::with(&[]);
    let (sys, dev) = (machine.root().join("sys"), machine.root().join("dev"));
    let usb = sys.join("devices/1-3");
    write(&usb.join("idVendor"), "046d");
    write(&usb.join("idProduct"), "0825");
    let interface = usb.join("1-3:1.0");
    write(&interface.join("bInterfaceClass"), "0e");
    for (name, index) in [("video0", "0"), ("video1", "1")] {
        let node = sys.join("class/video4linux").join(name);
        write(&node.join("index"), index);
        symlink(&interface, node.join("device")).unwrap();
        write(&dev.join(name), "");
    }
    let camera = dev.join("video0");
    let mut init = machine.command(&machine.home(), &["--yes"]);
    init.env("LD_PRELOAD", shim(machine.folder.path()));
    let init = Ended::of(init.env("SHIM_DEVICE", &camera).output().unwrap());
    assert_eq!(init.code, 0, "{init:?}");
    for line in [
        "camera:0      USB camera: Shim, YUYV up to 320 x 240",
        "a picture of 320 x 240 pixels",
    ] {
        assert!(init.out.contains(line), "{init:?}");
    }
    let driver = format!("\"camera\", \"--device\", \"{}\"", camera.display());
    assert!(machine.file("amber.toml").contains(&driver), "{init:?}");
}

#[test]
fn the_page_has_the_table_of_the_probes() {
    let page = fs::read_to_string(root().join("docs/init.md")).unwrap();
    for probe in &PROBES {
        let row = format!("| {} | {} | {} |", probe.about, probe.sends, probe.is_safe);
        assert!(page.contains(&row), "docs/init.md lacks: {row}");
    }
}
