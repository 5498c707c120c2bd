//! The drivers, as the configuration of the mediator. PURE.

use std::collections::HashMap;
use std::fmt::Write;

use amber_proto::{Device, DeviceType};
use amber_sim::robot;

const fn echo(id: i32) -> Device {
    Device::new(DeviceType(80), id)
}

/// Echoes every frame; never affected by faults.
pub const ECHO: Device = echo(0);
/// The same, but affected by faults.
pub const VICTIM_ECHOES: [Device; 2] = [echo(1), echo(2)];
/// The dummies of the SDK: only the second is affected by faults.
pub const DUMMIES: [Device; 2] = [
    Device::new(DeviceType::DUMMY, 0),
    Device::new(DeviceType::DUMMY, 1),
];
/// The wheels of the simulated robot, never affected by faults.
pub const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
/// Its laser scanner, which is unplugged at times.
pub const LASER: Device = Device::new(DeviceType::HOKUYO, 0);
/// Never reads anything.
pub const DEAF: Device = Device::new(DeviceType(81), 0);
/// Writes continuously, or writes an invalid frame, on demand: see [`babbler`].
pub const BABBLER: Device = Device::new(DeviceType(82), 0);
/// Changes with each reload, or is absent.
pub const CHANGING: Device = Device::new(DeviceType(83), 0);
/// Has no driver.
pub const NOBODY: Device = Device::new(DeviceType(84), 0);

/// Drivers affected by faults.
pub const VICTIMS: [Device; 6] = [
    VICTIM_ECHOES[0],
    VICTIM_ECHOES[1],
    DUMMIES[1],
    LASER,
    DEAF,
    BABBLER,
];

/// While this file exists in the folder, [`BABBLER`] writes continuously.
pub const TALK: &str = "talk";
/// The file that it writes repeatedly.
pub const FRAMES: &str = "frames";
/// This file makes it write an invalid frame once.
pub const INVALID_FRAME: &str = "invalid-frame";

/// The shell script of [`BABBLER`], run in the folder.
pub fn babbler() -> String {
    format!(
        "while :; do
           if [ -e {TALK} ]; then cat {FRAMES}
           elif [ -e {INVALID_FRAME} ]; then rm -f {INVALID_FRAME}; echo this is no frame
           else sleep 0.1; fi
         done"
    )
}

/// The state of [`CHANGING`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changing {
    /// It is absent.
    Absent,
    /// It has a setting with this value.
    Setting(u32),
}

/// The devices of the simulated robot.
pub fn robot() -> impl Iterator<Item = Device> {
    let numbers = robot::Device::built_in().map(|device| format!("{device}:0").parse());
    numbers.filter_map(Result::ok)
}

/// The configuration for normal operation: the whole robot, two dummies and an echo.
pub fn everyday(places: &HashMap<String, String>) -> String {
    let mut text = String::new();
    for device in robot::Device::built_in() {
        add(
            &mut text,
            &format!("{device}:0"),
            &driver(device, places),
            "",
        );
    }
    for device in DUMMIES {
        let dummy = ["amber", "driver", "dummy"].map(String::from);
        add(&mut text, &address(device), &dummy, "");
    }
    add(&mut text, &address(ECHO), &["cat".to_owned()], "");
    text
}

/// The configuration for chaos: healthy drivers and victims.
pub fn chaos(places: &HashMap<String, String>, changing: Changing) -> String {
    // The table is small, so that spoofed addresses fill it.
    let mut text = String::from("[limits]\nclients = 600\n");
    let cat = ["cat".to_owned()];
    let dummy = ["amber", "driver", "dummy"].map(String::from);
    // Healthy drivers.
    add(&mut text, &address(ECHO), &cat, "");
    add(&mut text, &address(DUMMIES[0]), &dummy, "");
    add(
        &mut text,
        &address(WHEELS),
        &driver(amber_sim::roboclaw::DEVICE, places),
        "",
    );
    // These restart soon, and some of them are not given up for a long time.
    let soon = "backoff_min_ms = 20\nbackoff_max_ms = 200\ngrace_ms = 200\n";
    let often = format!("{soon}deaths = 1000\n");
    add(&mut text, &address(VICTIM_ECHOES[0]), &cat, &often);
    add(&mut text, &address(VICTIM_ECHOES[1]), &cat, soon);
    let hangs_soon = format!("{often}ping_interval_ms = 200\n");
    add(&mut text, &address(DUMMIES[1]), &dummy, &hangs_soon);
    add(
        &mut text,
        &address(LASER),
        &driver(amber_sim::hokuyo::DEVICE, places),
        &often,
    );
    let deaf = ["sleep", "1000000"].map(String::from);
    add(&mut text, &address(DEAF), &deaf, soon);
    let babbler = ["sh".to_owned(), "-c".to_owned(), babbler()];
    add(&mut text, &address(BABBLER), &babbler, &often);
    if let Changing::Setting(value) = changing {
        let setting = format!("{often}env = {{ SETTING = \"{value}\" }}\n");
        add(&mut text, &address(CHANGING), &cat, &setting);
    }
    text
}

fn driver(device: robot::Device, places: &HashMap<String, String>) -> Vec<String> {
    device.driver(places.get(device.name()).map_or("", String::as_str))
}

fn add(text: &mut String, device: &str, command: &[String], more: &str) {
    let _ = write!(
        text,
        "\n[[driver]]\ndevice = {device:?}\ncommand = {command:?}\n{more}"
    );
}

fn address(device: Device) -> String {
    format!("{}:{}", device.device_type.0, device.id.0)
}
