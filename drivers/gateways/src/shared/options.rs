//! The options that all gateways share: allowed senders, and the devices to use. IO.

use std::path::Path;
use std::time::Duration;

use amber_driver::client::blocking::Client;
use amber_driver::options::{OptionsError, check};
use amber_navigation::kinematics::SkidSteer;
use amber_proto::robot::Shape;
use amber_proto::{Device, DeviceType};
use amber_robot::controls::Seat;
use amber_robot::robot::RobotSetup;
use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::gate::{Gate, GateLimits};

/// The distance of the wheels of the Capo robot, and the maximum speed for programs of others.
const TRACK_MM: f64 = 420.0;
const MAX_MM_S: f64 = 400.0;
/// A robot device that is still starting may take this long for its answer.
const SHAPE_DEADLINE: Duration = Duration::from_secs(2);

/// Access to the gateway. In the file, this is the table `[network]`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkOptions {
    /// A network whose programs may use the gateway, e.g. 192.168.0.0/24 (may be given several
    /// times) [default: this machine]
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<IpNet>,
    /// Sessions use the devices of the mediator at this address [default: the one that started the
    /// gateway]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub devices_of: Option<String>,
    /// Datagrams per second that one source may send [default: 500]
    #[arg(long, value_name = "N")]
    pub source_rate: Option<u32>,
    /// Datagrams per second that all sources without a session may send [default: 2000]
    #[arg(long, value_name = "N")]
    pub listener_rate: Option<u32>,
}

/// The robot that foreign programs see. In the file, this is the table `[robot]`.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RobotOptions {
    /// The driver of the wheels [default: roboclaw:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub wheels: Option<Device>,
    /// The laser scanner [default: hokuyo:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub scanner: Option<Device>,
    /// The pose on the map [default: location:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub location: Option<Device>,
    /// The motion sensors [default: ninedof:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub imu: Option<Device>,
    /// The driver that drives to targets [default: drive-to-point:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub targets: Option<Device>,
    /// The driver that makes maps [default: mapping:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub mapping: Option<Device>,
    /// The battery [default: battery:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub battery: Option<Device>,
    /// The receiver of navigation satellites [default: gps:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub gps: Option<Device>,
    /// The gamepad at the robot [default: gamepad:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub gamepad: Option<Device>,
    /// The bumper [default: bumper:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub bumper: Option<Device>,
    /// The camera [default: camera:0]
    #[arg(long, value_name = "DEVICE")]
    #[serde(deserialize_with = "device")]
    pub camera: Option<Device>,
    /// Effective distance between left and right wheels in turns; larger than the real one if the
    /// wheels skid [default: that of the robot device, or 420]
    #[arg(long, value_name = "MM")]
    pub track_mm: Option<f64>,
    /// Maximum speed of a wheel [default: 400, or less if the robot device says so]
    #[arg(long, value_name = "MM/S")]
    pub max_speed_mm_s: Option<f64>,
    /// Let several sessions drive at the same time: the newest command counts
    #[arg(long)]
    pub shared_controls: bool,
}

/// The checked [`NetworkOptions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The networks whose programs may use the gateway.
    pub allowed: Vec<IpNet>,
    /// The mediator for the clients of sessions.
    pub mediator: String,
    /// The same, if it is not the one that started the gateway.
    pub devices_of: Option<String>,
    /// The maximum rates of sources.
    pub limits: GateLimits,
}

impl NetworkOptions {
    /// Checks the options of the command line, which override those of the file.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(self, file: Self) -> Result<Network, OptionsError> {
        let mut allowed = if self.allow.is_empty() {
            file.allow
        } else {
            self.allow
        };
        if allowed.is_empty() {
            allowed = loopback();
        }
        let usual = GateLimits::default();
        let source = self
            .source_rate
            .or(file.source_rate)
            .unwrap_or(usual.source_per_s);
        let listener = self.listener_rate.or(file.listener_rate);
        let listener = listener.unwrap_or(usual.listener_per_s);
        let devices_of = self.devices_of.or(file.devices_of);
        Ok(Network {
            allowed,
            mediator: devices_of.clone().unwrap_or_else(own_mediator),
            devices_of,
            limits: GateLimits {
                source_per_s: check("source_rate", source, 1..=1_000_000)?,
                listener_per_s: check("listener_rate", listener, 1..=1_000_000)?,
            },
        })
    }
}

impl Network {
    /// The shape of the robot, from its robot device. `None` if there is no such device, or if no
    /// mediator has started this process. Waits for a device that is still starting.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        if self.devices_of.is_none() && std::env::var_os("AMBER_MEDIATOR").is_none() {
            return None;
        }
        let client = Client::connect(&self.mediator).ok()?;
        client.robot(0).with_deadline(SHAPE_DEADLINE).shape().ok()
    }

    /// The gate for these networks and rates.
    #[must_use]
    pub fn gate(&self) -> Gate {
        Gate::new(self.allowed.clone(), self.limits)
    }
}

impl RobotOptions {
    /// Checks the options of the command line, which override those of the file. The shape has what
    /// both leave out.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(
        self,
        file: Self,
        shape: Option<&Shape>,
    ) -> Result<(RobotSetup, Seat), OptionsError> {
        let device = |own: Option<Device>, file: Option<Device>, usual| {
            own.or(file).unwrap_or(Device::new(usual, 0))
        };
        let described = |value: Option<f64>| value.filter(|it| *it > 0.0).map(|it| 1000.0 * it);
        let track_mm = self.track_mm.or(file.track_mm);
        let track_mm = track_mm.or_else(|| described(shape?.track));
        let track_mm = track_mm.unwrap_or(TRACK_MM);
        let fastest = described(shape.and_then(|it| it.max_wheel_speed));
        let usual_mm_s = fastest.map_or(MAX_MM_S, |fastest| fastest.min(MAX_MM_S));
        let max_mm_s = self.max_speed_mm_s.or(file.max_speed_mm_s);
        let max_mm_s = max_mm_s.unwrap_or(usual_mm_s);
        let robot = RobotSetup {
            wheels: device(self.wheels, file.wheels, DeviceType::ROBOCLAW),
            scanner: device(self.scanner, file.scanner, DeviceType::HOKUYO),
            location: device(self.location, file.location, DeviceType::LOCATION),
            imu: device(self.imu, file.imu, DeviceType::NINEDOF),
            targets: device(self.targets, file.targets, DeviceType::DRIVE_TO_POINT),
            mapping: device(self.mapping, file.mapping, DeviceType::MAPPING),
            battery: device(self.battery, file.battery, DeviceType::BATTERY),
            gps: device(self.gps, file.gps, DeviceType::GPS),
            gamepad: device(self.gamepad, file.gamepad, DeviceType::GAMEPAD),
            bumper: device(self.bumper, file.bumper, DeviceType::BUMPER),
            camera: device(self.camera, file.camera, DeviceType::CAMERA),
            drive: SkidSteer {
                track_m: check("track_mm", track_mm, 10.0..=5_000.0)? / 1000.0,
                max_wheel_m_s: check("max_speed_mm_s", max_mm_s, 1.0..=10_000.0)? / 1000.0,
            },
        };
        let seat = match self.shared_controls || file.shared_controls {
            true => Seat::Shared,
            false => Seat::Exclusive,
        };
        Ok((robot, seat))
    }
}

/// Reads the TOML file of a gateway; returns the defaults if there is no path.
///
/// # Errors
/// The file cannot be read, or contains an error.
pub fn read<T: DeserializeOwned + Default>(path: Option<&Path>) -> Result<T, OptionsError> {
    amber_driver::options::read(path)
}

/// Reads a device such as "roboclaw:0", for options in a file.
///
/// # Errors
/// It is not a device.
pub fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Device>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// The networks of this machine itself.
#[must_use]
pub fn loopback() -> Vec<IpNet> {
    let networks = ["127.0.0.0/8", "::1/128"];
    networks.iter().filter_map(|it| it.parse().ok()).collect()
}

/// The mediator that started this process, or the usual one.
fn own_mediator() -> String {
    std::env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_allowed_unless_networks_are_named() {
        let network = NetworkOptions::default()
            .checked(NetworkOptions::default())
            .unwrap();
        assert_eq!(network.allowed, loopback());
        assert_eq!(network.allowed.len(), 2);
        let file: NetworkOptions = toml::from_str("allow = [\"10.0.0.0/8\"]").unwrap();
        let network = NetworkOptions::default().checked(file).unwrap();
        assert_eq!(network.allowed, ["10.0.0.0/8".parse().unwrap()]);
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file = "wheels = \"2:1\"\nmax_speed_mm_s = 300\ntrack_mm = 330\n";
        let file: RobotOptions = toml::from_str(file).unwrap();
        let shape = Shape {
            track: Some(0.3),
            max_wheel_speed: Some(0.2),
            ..Shape::default()
        };
        let flags = RobotOptions {
            track_mm: Some(400.0),
            ..RobotOptions::default()
        };
        let (robot, seat) = flags.checked(file, Some(&shape)).unwrap();
        assert_eq!(robot.wheels, Device::new(DeviceType::ROBOCLAW, 1));
        assert!((robot.drive.track_m - 0.4).abs() < 1e-9);
        assert!((robot.drive.max_wheel_m_s - 0.3).abs() < 1e-9);
        assert_eq!(seat, Seat::Exclusive);
        let wrong = RobotOptions {
            track_mm: Some(1.0),
            ..RobotOptions::default()
        };
        let error = wrong.checked(RobotOptions::default(), None).unwrap_err();
        assert_eq!(error.to_string(), "track_mm: 1 is not within 10 to 5000");
    }

    #[test]
    fn the_robot_device_has_what_the_options_leave_out() {
        let drive = |track, max_wheel_speed| {
            let shape = Shape {
                track,
                max_wheel_speed,
                ..Shape::default()
            };
            let options = RobotOptions::default();
            let (robot, _) = options
                .checked(RobotOptions::default(), Some(&shape))
                .unwrap();
            (robot.drive.track_m, robot.drive.max_wheel_m_s)
        };
        assert_eq!(drive(None, None), (0.42, 0.4));
        assert_eq!(drive(Some(0.3), Some(0.2)), (0.3, 0.2));
        // Programs of others do not get the full speed of a fast robot by themselves.
        assert_eq!(drive(Some(0.0), Some(1.2)), (0.42, 0.4));
    }
}
