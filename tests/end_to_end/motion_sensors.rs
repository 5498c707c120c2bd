//! Motion sensors other than the three chips of the demo: the real driver and the simulated sensor
//! give the readings of device type 1.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use amber_client::Sensors;
use amber_client::blocking::Client;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, wait_for};
use crate::kit::with_and_without;

/// A simulated robot with one more device on an I2C bus. It ends with this.
pub(crate) struct Robot {
    pub(crate) folder: TempDir,
    device: &'static str,
    process: Child,
}

impl Robot {
    fn with(model: &str) -> Self {
        Self::with_device("mpu", model)
    }

    pub(crate) fn with_device(device: &'static str, model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command
            .args(["sim", "--until-eof"])
            .arg(format!("--{device}"));
        command
            .args([model, "--dir"])
            .arg(folder.path().join("sim"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let process = process.unwrap();
        let robot = Self {
            folder,
            device,
            process,
        };
        wait_for("the simulated device", || {
            Path::new(&robot.socket()).exists().then_some(())
        });
        robot
    }

    pub(crate) fn socket(&self) -> String {
        let socket = self.folder.path().join("sim").join(self.device);
        socket.to_str().unwrap().to_owned()
    }

    fn driver(&self, options: &str) -> String {
        let (bus, device) = (self.socket(), self.device);
        format!("ninedof:0=amber driver {device} --bus sim:{bus} {options}")
    }

    pub(crate) fn fault(&self, words: &[&str]) {
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

fn call(mediator: &Mediator, request: &str) -> Output {
    let mut command = mediator.amber(&["call", "ninedof", request]);
    command.output().unwrap()
}

#[test]
fn an_mpu_9250_measures_and_recovers() {
    let robot = Robot::with("mpu9250");
    let mediator = Mediator::start(&[&robot.driver("")]);
    mediator.wait_for_line("INFO ready: accelerometer and gyroscope MPU-9250 at 0x68");
    mediator.wait_for_line("INFO ready: magnetometer AK8963 at 0x0c");
    mediator.wait_for_line("gyroscope bias");
    let client = Client::connect(mediator.address).unwrap();
    let reading = client.ninedof(0).data(Sensors::ALL).unwrap();
    let accel = reading.acceleration_mg.unwrap();
    assert!(
        (accel.z - 1000.0).abs() < 30.0 && accel.x.abs() < 30.0,
        "{accel:?}"
    );
    let rate = reading.rate_deg_s.unwrap();
    assert!(rate.x.abs() + rate.y.abs() + rate.z.abs() < 1.0, "{rate:?}");
    // 450 milligauss down; the robot itself has up to 100.
    let field = reading.field_mgauss.unwrap();
    assert!((-580.0..-320.0).contains(&field.z), "{field:?}");
    assert!(!reading.attitude.unwrap().heading_calibrated);
    let tested = call(&mediator, "self-test");
    assert!(tested.status.success(), "{tested:?}");

    let pid = mediator.describe("ninedof:0").pid();
    for (fault, trouble) in [
        (
            "unplug",
            "accelerometer and gyroscope: no answer at 0x68 and 0x69: check its power",
        ),
        ("stall", "the bus is stuck"),
    ] {
        robot.fault(&[fault, "mpu"]);
        wait_for("its trouble", || {
            let troubles = mediator.describe("ninedof:0").troubles;
            troubles
                .into_iter()
                .find(|told| told.text.starts_with(trouble))
        });
        assert_eq!(
            call(&mediator, "data").status.code(),
            Some(1),
            "never old values"
        );
        robot.fault(&["clear"]);
        wait_for("no trouble", || {
            let troubles = mediator.describe("ninedof:0").troubles;
            troubles.is_empty().then_some(())
        });
        wait_for("all values", || {
            let reading = client.ninedof(0).data(Sensors::ALL).ok()?;
            reading.attitude
        });
    }
    let driver = mediator.describe("ninedof:0");
    assert_eq!((driver.pid(), driver.restarts()), (pid, 0));
    client.close();
}

#[test]
fn an_mpu_6050_has_no_magnetometer_and_says_so() {
    let robot = Robot::with("mpu6050");
    let mediator = Mediator::start(&[&robot.driver("--axes y,-x,z --accel-g 2")]);
    mediator.wait_for_line("INFO ready: accelerometer and gyroscope MPU-6050 at 0x68");
    let reading = wait_for("a reading", || {
        let output = mediator
            .amber(&["call", "ninedof", "data", "--json"])
            .output();
        serde_json::from_slice::<Value>(&output.unwrap().stdout).ok()
    });
    assert!(
        reading["acceleration_mg"]["z"].as_f64().unwrap() > 950.0,
        "{reading}"
    );
    assert!(
        reading["field_mgauss"].is_null() && reading["attitude"].is_null(),
        "{reading}"
    );
    let refused = call(&mediator, "calibrate-magnet");
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(
        text.contains("this sensor has no magnetometer"),
        "{refused:?}"
    );
    assert!(mediator.describe("ninedof:0").troubles.is_empty());
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_sensor() {
    let robot = Robot::with("mpu9255");
    let places = [&*robot.socket(), "/nowhere/bus"];
    with_and_without("ninedof", 1, places, |check, bus| {
        check.args(["mpu", "--bus", &format!("sim:{bus}")]);
    });
}

/// The sensors of other families, with a magnetometer each.
const FAMILIES: [(&str, &str, &str); 3] = [
    ("lsm6dsox", "lsm6dsox", "LSM6DSOX at 0x6a"),
    ("icm20948", "icm20948", "ICM-20948 at 0x69"),
    ("bno055", "bno055", "BNO055 (program 3.11) at 0x28"),
];

#[test]
fn the_other_families_measure_and_recover() {
    for (family, model, name) in FAMILIES {
        let robot = Robot::with_device(family, model);
        let mediator = Mediator::start(&[&robot.driver("")]);
        mediator.wait_for_line(name);
        let client = Client::connect(mediator.address).unwrap();
        let all_values = || {
            wait_for("all values", || {
                let reading = client.ninedof(0).data(Sensors::ALL).ok()?;
                reading.attitude.and(reading.acceleration_mg)
            })
        };
        let accel = all_values();
        assert!((accel.z - 1000.0).abs() < 30.0, "{family}: {accel:?}");
        robot.fault(&["unplug", family]);
        wait_for("its trouble", || {
            let troubles = mediator.describe("ninedof:0").troubles;
            let mut troubles = troubles.into_iter();
            troubles.find(|told| told.text.contains("no answer at 0x"))
        });
        let answer = call(&mediator, "data");
        assert_eq!(answer.status.code(), Some(1), "never old values");
        robot.fault(&["clear"]);
        all_values();
        client.close();
    }
}

#[test]
fn amber_init_finds_the_other_families() {
    for (family, model, name) in FAMILIES {
        let robot = Robot::with_device(family, model);
        let root = robot.folder.path().join("root");
        let folder = root.join("sys/bus/i2c/devices/i2c-1");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), "bcm2835 (i2c@7e804000)\n").unwrap();
        fs::create_dir_all(root.join("dev")).unwrap();
        std::os::unix::fs::symlink(robot.socket(), root.join("dev/i2c-1")).unwrap();
        let init = |more: &[&str]| {
            let mut init = Command::new(AMBER);
            init.arg("init").arg(robot.folder.path().join("home"));
            init.args(["--yes", "--root"]).arg(&root).args(more);
            init.output().unwrap()
        };
        // A BNO055 needs a second after it was switched on.
        wait_for("the sensor has started", || {
            init(&["--dry-run"]).status.success().then_some(())
        });
        let output = init(&[]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.contains(name), "{text}");
        assert!(
            text.contains("works         ninedof:0: acceleration "),
            "{text}"
        );
        let written = fs::read_to_string(robot.folder.path().join("home/amber.toml")).unwrap();
        assert!(
            written.contains(&format!("\"{family}\", \"--bus\"")),
            "{written}"
        );
    }
}

/// `amber init` finds it beside the other sensors, and what it writes works.
#[test]
fn amber_init_finds_it() {
    let robot = Robot::with("mpu9250");
    let root = robot.folder.path().join("root");
    for (bus, device) in [("i2c-1", "ninedof"), ("i2c-2", "mpu")] {
        let folder = root.join("sys/bus/i2c/devices").join(bus);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), "bcm2835 (i2c@7e804000)\n").unwrap();
        fs::create_dir_all(root.join("dev")).unwrap();
        let socket = robot.folder.path().join("sim").join(device);
        std::os::unix::fs::symlink(socket, root.join("dev").join(bus)).unwrap();
    }
    let mut init = Command::new(AMBER);
    init.arg("init").arg(robot.folder.path().join("home"));
    init.args(["--yes", "--root"]).arg(&root);
    let output = init.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for line in [
        "ninedof:0     motion sensors LSM303DLHC and L3GD20: ",
        "ninedof:1     motion sensor MPU: MPU-9250 at 0x68",
        "works         ninedof:0: acceleration ",
        "works         ninedof:1: acceleration ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let written = fs::read_to_string(robot.folder.path().join("home/amber.toml")).unwrap();
    assert!(written.contains("\"mpu\", \"--bus\""), "{written}");
    assert!(written.contains("\"--address=0x68\""), "{written}");
}
