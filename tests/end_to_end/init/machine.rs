//! A machine for `amber init`, described by files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use amber_harness::Program;
use tempfile::TempDir;

use super::Ended;
use crate::common::AMBER;

/// The USB devices of the machine: port, ids, name, and the simulated device behind it.
const USB: [(&str, [&str; 2], &str, &str); 11] = [
    (
        "ttyACM0",
        ["15d1", "0000"],
        "URG-Series USB Driver",
        "hokuyo",
    ),
    (
        "ttyACM1",
        ["03eb", "2404"],
        "USB Roboclaw 2x30A",
        "roboclaw",
    ),
    (
        "ttyACM2",
        ["1ffb", "008a"],
        "Pololu Mini Maestro 12",
        "maestro",
    ),
    (
        "ttyUSB0",
        ["10c4", "ea60"],
        "CP2102 USB to UART",
        "stargazer",
    ),
    ("ttyUSB1", ["10c4", "ea60"], "CP2102 USB to UART", "ldrobot"),
    ("ttyUSB2", ["1a86", "7523"], "USB Serial", "diffdrive"),
    ("ttyUSB3", ["10c4", "ea60"], "CP2102 USB to UART", "rplidar"),
    ("ttyUSB4", ["10c4", "ea60"], "CP2102 USB to UART", "ydlidar"),
    ("ttyACM3", ["1546", "01a8"], "u-blox GNSS receiver", "gps"),
    ("ttyACM4", ["1a86", "55d3"], "USB Single Serial", "feetech"),
    (
        "ttyUSB5",
        ["0403", "6014"],
        "USB <-> Serial Converter",
        "dynamixel",
    ),
];

/// A machine that is described by files, with simulated devices behind its ports.
pub(super) struct Machine {
    _sim: Program,
    pub(super) folder: TempDir,
}

impl Machine {
    /// Everything is plugged in.
    pub(super) fn full() -> Self {
        let machine = Self::with(&["hokuyo", "roboclaw", "maestro", "stargazer"]);
        machine.connect_bus("ninedof");
        machine
    }

    /// This simulated device is on the I2C bus of the machine.
    pub(super) fn connect_bus(&self, device: &str) {
        let bus = self.root().join("sys/bus/i2c/devices/i2c-1");
        write(&bus.join("name"), "bcm2835 (i2c@7e804000)\n");
        let sensors = self.folder.path().join("sim").join(device);
        symlink(sensors, self.root().join("dev/i2c-1")).unwrap();
    }

    /// These devices are plugged in by USB.
    pub(super) fn with(devices: &[&str]) -> Self {
        Self::simulated(devices, &[])
    }

    /// The same with options of `amber sim`.
    pub(super) fn simulated(devices: &[&str], options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command
            .arg("sim")
            .arg("--dir")
            .arg(folder.path().join("sim"))
            .args(options);
        let sim = Program::start(&mut command).unwrap();
        // A simulated board replaces the RoboClaws.
        for device in devices.iter().chain(&["ninedof"]) {
            sim.after(&format!("{device} ")).unwrap();
        }
        let machine = Self { folder, _sim: sim };
        for (port, ids, text, device) in USB.iter().filter(|(.., it)| devices.contains(it)) {
            let target = machine.folder.path().join("sim").join(device);
            plug(&machine.root(), port, ids, text, &target);
            let by_id = machine.by_id(device);
            fs::create_dir_all(by_id.parent().unwrap()).unwrap();
            symlink(machine.root().join("dev").join(port), by_id).unwrap();
        }
        machine
    }

    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(super) fn by_id(&self, device: &str) -> PathBuf {
        self.root()
            .join(format!("dev/serial/by-id/usb-{device}-if00"))
    }

    /// Where `amber init` writes unless the test says otherwise.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(super) fn command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(AMBER);
        command.arg("init").arg(folder).args(args);
        command.arg("--root").arg(self.root()).stdin(Stdio::null());
        command
    }

    pub(super) fn init(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(&self.home(), args).output().unwrap())
    }

    /// The option that names the port of the StarGazer, which has no ids of its own.
    pub(super) fn stargazer(&self) -> String {
        format!("stargazer={}", self.by_id("stargazer").display())
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.home().join(name)).unwrap()
    }
}

/// Describes a serial port of a USB device by files; `target` is the real port.
pub(super) fn plug(
    root: &Path,
    port: &str,
    [vendor, product]: &[&str; 2],
    text: &str,
    target: &Path,
) {
    let usb = root.join("sys/devices").join(port);
    write(&usb.join("idVendor"), vendor);
    write(&usb.join("idProduct"), product);
    write(&usb.join("product"), text);
    let interface = usb.join("1-1:1.0");
    write(&interface.join("bInterfaceNumber"), "00");
    let tty = root.join("sys/class/tty").join(port);
    fs::create_dir_all(&tty).unwrap();
    symlink(interface, tty.join("device")).unwrap();
    fs::create_dir_all(root.join("dev")).unwrap();
    symlink(target, root.join("dev").join(port)).unwrap();
}

pub(super) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
