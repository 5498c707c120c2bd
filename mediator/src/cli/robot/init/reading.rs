//! Starts the configured devices for a moment, and takes a reading of each. IO.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use amber_client::Sensors;
use amber_client::blocking::Client;
use amber_drivers::probe::Kind;
use amber_mediator::shell::this_program;
use amber_proto::Device;
use amber_proto::camera::PictureRequest;
use amber_proto::mediator::Driver;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::files::{self, Robot};
use super::look::{Looked, State};

/// A device may take this long to give its first reading.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first scan of a laser that was off takes more than a second.
const DEADLINE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);

/// The first reading of a device.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Reading {
    pub(super) device: String,
    pub(super) works: bool,
    /// What it measures, or why it does not.
    pub(super) reading: String,
}

/// Takes a reading of each device that has answered. `folder` is that of the files.
pub(super) fn all(looked: &Looked, robot: &Robot, folder: &Path) -> Vec<Reading> {
    let ready = looked.configured();
    let ready: Vec<_> = ready
        .filter(|(it, kind, _)| it.state == State::Ready && !releases_at_start(*kind))
        .collect();
    let drivers = ready.iter().map(|(finding, kind, device)| {
        let command = files::command(finding, *kind, robot);
        format!("{device}={}", shell_words::join(command))
    });
    let drivers: Vec<_> = drivers.collect();
    if drivers.is_empty() {
        return Vec::new();
    }
    let failed = |why: String| -> Vec<Reading> {
        let all = ready.iter().map(|(_, _, device)| Reading {
            device: (*device).to_owned(),
            works: false,
            reading: why.clone(),
        });
        all.collect()
    };
    let mediator = match Mediator::start(&drivers, folder) {
        Ok(mediator) => mediator,
        Err(error) => return failed(format!("cannot start a mediator: {error}")),
    };
    let client = match Client::connect(&mediator.address) {
        Ok(client) => client.with_deadline(DEADLINE),
        Err(error) => return failed(error.to_string()),
    };
    let readings = ready.iter().map(|(_, kind, device)| {
        let taken = patiently(&client, *kind, device);
        Reading {
            device: (*device).to_owned(),
            works: taken.is_ok(),
            reading: taken.unwrap_or_else(|why| why),
        }
    });
    let readings = readings.collect();
    client.close();
    readings
}

/// Whether the start of its driver is more than a question: this one ends all pulses, and an arm that
/// other programs hold would fall.
fn releases_at_start(kind: Kind) -> bool {
    kind == Kind::Pca9685
}

/// The first reading, or the reason why there is none.
fn patiently(client: &Client, kind: Kind, device: &str) -> Result<String, String> {
    let device: Device = device.parse().map_err(|error| format!("{error}"))?;
    let end = Instant::now() + PATIENCE;
    loop {
        match reading(client, kind, device.id.0) {
            Ok(reading) => return Ok(reading),
            Err(_) if Instant::now() < end => sleep(PAUSE),
            Err(error) => {
                // The driver knows more.
                let drivers = client.mediator().drivers().unwrap_or_default();
                let why = drivers.iter().find_map(|driver| trouble(driver, device));
                return Err(why.unwrap_or_else(|| error.to_string()));
            }
        }
    }
}

/// What a driver reports about its device.
fn trouble(driver: &Driver, device: Device) -> Option<String> {
    let mut devices = driver.devices.iter();
    if !devices.any(|it| it.r#type == device.device_type.0 && it.id == device.id.0) {
        return None;
    }
    let trouble = driver.troubles.first().map(|trouble| trouble.text.clone());
    trouble.or_else(|| driver.reason.clone())
}

/// One reading, for people.
fn reading(client: &Client, kind: Kind, id: i32) -> amber_client::Result<String> {
    Ok(match kind {
        Kind::Hokuyo | Kind::Ldrobot | Kind::Rplidar | Kind::Ydlidar => {
            let scan = client.hokuyo(id).scan()?;
            let nearest = scan.valid_points().map(|point| point.distance_mm).min();
            let nearest = match nearest {
                Some(mm) => format!("the nearest at {:.2} m", f64::from(mm) / 1000.0),
                None => "nothing within its range".to_owned(),
            };
            format!("a scan of {} points, {nearest}", scan.points().len())
        }
        Kind::Roboclaw | Kind::Diffdrive | Kind::Create2 | Kind::Vesc | Kind::Odrive => {
            let wheels = client.roboclaw(id);
            let speeds = wheels.speeds()?;
            let battery = wheels.battery().ok().and_then(|it| it.voltage);
            let battery = battery.map_or_else(String::new, |mv| {
                format!(", battery {:.1} V", f64::from(mv) / 1000.0)
            });
            format!(
                "wheels {} {} {} {} mm/s{battery}",
                speeds.front_left_mm_s,
                speeds.front_right_mm_s,
                speeds.rear_left_mm_s,
                speeds.rear_right_mm_s
            )
        }
        Kind::Ninedof | Kind::Mpu | Kind::Lsm6dsox | Kind::Icm20948 | Kind::Bno055 => {
            let reading = client.ninedof(id).data(Sensors::ALL)?;
            let vector = |name: &str, unit: &str, it: Option<amber_client::values::Vector>| match it
            {
                Some(it) => format!("{name} {:.0} {:.0} {:.0} {unit}", it.x, it.y, it.z),
                None => format!("no {name}"),
            };
            [
                vector("acceleration", "mg", reading.acceleration_mg),
                vector("turn rate", "deg/s", reading.rate_deg_s),
                vector("field", "mG", reading.field_mgauss),
            ]
            .join(", ")
        }
        Kind::Ina2xx => {
            let state = client.battery(id).state()?;
            let volts = f64::from(state.voltage()) / 1000.0;
            match state.current {
                Some(ma) => format!("{volts:.2} V, {:.2} A", f64::from(ma) / 1000.0),
                None => format!("{volts:.2} V"),
            }
        }
        Kind::Firmata => {
            let info = client.board(id).info()?;
            let (firmware, count) = (info.firmware(), info.pins.len());
            format!("{firmware}, {count} pins; none is configured yet")
        }
        Kind::Camera => {
            let picture = client.camera(id).picture(PictureRequest::default())?;
            format!(
                "a picture of {} x {} pixels",
                picture.width(),
                picture.height()
            )
        }
        Kind::Gps => {
            let fix = client.gps(id).fix()?;
            match fix.latitude.zip(fix.longitude) {
                Some((latitude, longitude)) => format!("{latitude:.6} {longitude:.6} deg"),
                None => "no position yet: the antenna must see the sky".to_owned(),
            }
        }
        Kind::Feetech | Kind::Dynamixel => {
            let servos = client.bus_servos(id).servos()?.servos;
            let angles = servos.iter().map(|servo| match servo.angle {
                Some(deg) => format!("{} at {deg:.1} deg", servo.id()),
                None => format!("{} is silent", servo.id()),
            });
            angles.collect::<Vec<_>>().join(", ")
        }
        Kind::Maestro | Kind::Pca9685 => {
            client.maestro(id).angles()?;
            "it answers; no servo has moved".to_owned()
        }
        Kind::Stargazer => match client.stargazer(id).pose()? {
            Some(pose) => format!(
                "marker {}, {:.0} {:.0} cm",
                pose.marker, pose.x_cm, pose.y_cm
            ),
            None => "no marker in view yet".to_owned(),
        },
    })
}

/// A mediator for this machine only; it ends when this is dropped.
struct Mediator {
    process: Child,
    address: String,
}

impl Mediator {
    fn start(drivers: &[String], folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(this_program()?);
        command.args(["mediator", "--listen", "127.0.0.1:0", "--log", "error"]);
        for driver in drivers {
            command.args(["--driver", driver]);
        }
        let process = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut mediator = Self {
            process,
            address: String::new(),
        };
        let mut line = String::new();
        if let Some(stdout) = mediator.process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.trim_end().strip_prefix("listening on ") {
            Some(address) => mediator.address = address.to_owned(),
            None => return Err(io::Error::other("it does not listen")),
        }
        Ok(mediator)
    }
}

impl Drop for Mediator {
    fn drop(&mut self) {
        // It stops the drivers.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}
