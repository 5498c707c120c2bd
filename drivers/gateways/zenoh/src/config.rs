//! The configuration of one robot in the fleet. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use amber_gateways::shared::options::RobotOptions;
use amber_proto::Device;
use amber_proto::robot::Shape;
use amber_robot::controls::Seat;
use amber_robot::robot::RobotSetup;
use serde::Deserialize;

use crate::limits::{LEASE, MAX_OPERATORS, MAX_TO_OPERATOR, MAX_TO_ROBOT};
use crate::names::{Name, ROS_OPERATOR};
use crate::ros::config::{RosConfig, RosTable};

/// The file of a robot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// The connection to the fleet.
    pub zenoh: ZenohTable,
    /// The robot in the fleet.
    pub fleet: FleetTable,
    /// Its devices and its drive, as for other gateways.
    pub robot: RobotOptions,
    /// The rates of devices.
    pub rate: Vec<RateTable>,
    /// The robot as a node of ROS 2.
    pub ros: Option<RosTable>,
    /// The operator who uses far robots.
    pub operator: OperatorTable,
    /// Far robots whose devices a local mediator shows.
    pub remote: Vec<RemoteTable>,
}

/// The table `[zenoh]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZenohTable {
    /// The routers, such as `tls/fleet.example:7447`.
    pub connect: Vec<String>,
    /// Without messages for this time, the other side considers the link lost.
    pub lease_ms: Option<u64>,
    /// The certificate of the authority that has signed those of the routers.
    pub ca: Option<PathBuf>,
    /// The certificate of this program.
    pub certificate: Option<PathBuf>,
    /// The key of this certificate.
    pub key: Option<PathBuf>,
}

/// The table `[fleet]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetTable {
    /// The name of the robot.
    pub name: Option<Name>,
    /// The mediator of the robot.
    pub mediator: Option<String>,
    /// The devices that the fleet sees; all if there are none.
    pub devices: Vec<DeviceText>,
    /// The operators who may take the seat from another operator.
    pub may_force: Vec<Name>,
}

/// The table `[[rate]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateTable {
    /// The devices; with an operator, all if there are none.
    #[serde(default)]
    pub devices: Vec<DeviceText>,
    /// The operator with an individual stream; without one, the rate applies to all.
    #[serde(default)]
    pub operator: Option<Name>,
    /// Maximum number of messages per second of each; newer messages replace older ones.
    pub max_hz: f64,
}

/// The table `[operator]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorTable {
    /// The name of the operator, as in the certificate.
    pub name: Option<Name>,
}

/// The table `[[remote]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteTable {
    /// The far robot.
    pub robot: Name,
    /// The local id of its devices with the id 0; the others follow.
    #[serde(default)]
    pub first_id: i32,
    /// The device that accepts the commands of a Roboclaw there, of any type.
    #[serde(default)]
    pub wheels: Option<DeviceText>,
    /// Whether to listen to the streams for this operator, whose rate the robot limits.
    #[serde(default)]
    pub own_rate: bool,
}

/// A device as text, such as `hokuyo:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DeviceText(pub Device);

impl TryFrom<String> for DeviceText {
    type Error = <Device as FromStr>::Err;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// The connection to the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLink {
    /// The routers.
    pub connect: Vec<String>,
    /// Without messages for this time, the other side considers the link lost.
    pub lease: Duration,
    /// The longest message that this side takes, in bytes: Zenoh drops longer ones.
    pub max_message: usize,
    /// Certificates, for endpoints that begin with `tls/`.
    pub tls: Option<Tls>,
}

/// The certificates of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// That of the authority.
    pub ca: PathBuf,
    /// The certificate of this program.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The devices that move the robot, and its drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controls {
    /// The devices.
    pub robot: RobotSetup,
    /// Whether several operators may drive at the same time.
    pub seat: Seat,
}

/// The checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The connection to the fleet.
    pub link: FleetLink,
    /// The name of the robot.
    pub name: Name,
    pub mediator: String,
    /// The devices that the fleet sees; all if there are none.
    pub devices: Vec<Device>,
    /// The periods of devices with a limited rate.
    pub periods: Vec<(Device, Duration)>,
    /// The streams of single operators.
    pub own_streams: Vec<OwnStreams>,
    /// The devices that move the robot.
    pub controls: Controls,
    /// The same as in the file: the robot device says what it leaves out.
    pub options: RobotOptions,
    /// The operators who may take the seat from another operator.
    pub may_force: Vec<Name>,
    /// The robot as a node of ROS 2, if it is one.
    pub ros: Option<RosConfig>,
}

/// The streams of one operator, with an individual rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnStreams {
    /// The operator.
    pub who: Name,
    /// The devices; all if there are none.
    pub devices: Vec<Device>,
    /// The shortest time between two messages of a device.
    pub period: Duration,
}

/// A far robot whose devices a local mediator shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarRobot {
    pub name: Name,
    /// The local id of its devices with the id 0; the others follow.
    pub first_id: i32,
    /// The device that accepts the commands of a Roboclaw there.
    pub wheels: Device,
    /// Whether to listen to the streams for this operator.
    pub own_rate: bool,
}

/// The checked configuration of a process that shows far devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConfig {
    /// The connection to the fleet.
    pub link: FleetLink,
    /// The operator.
    pub who: Name,
    pub robots: Vec<FarRobot>,
}

impl Default for Controls {
    fn default() -> Self {
        let usual = RobotOptions::default().checked(RobotOptions::default(), None);
        let (robot, seat) = usual.expect("the defaults are valid");
        Self { robot, seat }
    }
}

impl ZenohTable {
    /// Checks the table. `routers` are those of the command line, which override the file.
    ///
    /// # Errors
    /// A value is invalid or missing.
    pub fn checked(self, routers: Vec<String>) -> Result<FleetLink, OptionsError> {
        let mut connect = match routers.is_empty() {
            true => self.connect,
            false => routers,
        };
        if connect.is_empty() {
            connect.push("tcp/127.0.0.1:7447".to_owned());
        }
        let is_known = |it: &String| it.starts_with("tcp/") || it.starts_with("tls/");
        if let Some(unknown) = connect.iter().find(|it| !is_known(it)) {
            return Err(OptionsError::Value {
                name: "connect",
                problem: format!("'{unknown}' does not begin with tcp/ or tls/"),
            });
        }
        let uses_tls = connect.iter().any(|it| it.starts_with("tls/"));
        let tls = match (self.ca, self.certificate, self.key) {
            (None, None, None) if !uses_tls => None,
            (Some(ca), Some(certificate), Some(key)) => Some(Tls {
                ca,
                certificate,
                key,
            }),
            _ => {
                return Err(OptionsError::Value {
                    name: "zenoh",
                    problem: "links with TLS need `ca`, `certificate` and `key`".to_owned(),
                });
            }
        };
        let lease_ms = self.lease_ms.unwrap_or(LEASE.as_millis() as u64);
        let lease_ms = check("lease_ms", lease_ms, 500..=60_000)?;
        Ok(FleetLink {
            connect,
            lease: Duration::from_millis(lease_ms),
            max_message: MAX_TO_OPERATOR,
            tls,
        })
    }
}

impl File {
    /// Checks the file. Name, mediator and routers of the command line override the file.
    ///
    /// # Errors
    /// A value is invalid or missing.
    pub fn checked(
        self,
        name: Option<Name>,
        mediator: Option<String>,
        routers: Vec<String>,
    ) -> Result<Config, OptionsError> {
        let name = name.or(self.fleet.name).ok_or(OptionsError::Missing {
            name: "--name",
            hint: "each robot of a fleet has a unique name, such as --name r1",
        })?;
        let mediator = mediator.or(self.fleet.mediator);
        let options = self.robot;
        let (robot, seat) = RobotOptions::default().checked(options.clone(), None)?;
        let (mut periods, mut own_streams) = (Vec::new(), Vec::new());
        for rate in self.rate {
            let hz = check("max_hz", rate.max_hz, 0.01..=1_000.0)?;
            let period = Duration::from_secs_f64(1.0 / hz);
            let devices = rate.devices.iter().map(|it| it.0);
            match rate.operator {
                Some(who) => own_streams.push(OwnStreams {
                    who,
                    devices: devices.collect(),
                    period,
                }),
                None if rate.devices.is_empty() => {
                    return Err(OptionsError::Value {
                        name: "rate",
                        problem: "a rate without `devices` needs an `operator`".to_owned(),
                    });
                }
                None => periods.extend(devices.map(|device| (device, period))),
            }
        }
        let operators: BTreeSet<_> = own_streams.iter().map(|it| &it.who).collect();
        if operators.len() > MAX_OPERATORS {
            return Err(OptionsError::Value {
                name: "rate",
                problem: format!("rates for more than {MAX_OPERATORS} operators"),
            });
        }
        let ros = match self.ros {
            Some(table) => table.checked(&name)?,
            None => None,
        };
        Ok(Config {
            link: FleetLink {
                max_message: MAX_TO_ROBOT,
                ..self.zenoh.checked(routers)?
            },
            ros,
            name,
            mediator: mediator.unwrap_or_else(|| "127.0.0.1".to_owned()),
            devices: self.fleet.devices.iter().map(|it| it.0).collect(),
            periods,
            own_streams,
            controls: Controls { robot, seat },
            options,
            may_force: self.fleet.may_force,
        })
    }
}

impl Config {
    /// Takes the distance of the wheels and their speed from the shape of the robot, if the file does
    /// not say them.
    #[must_use]
    pub fn with_shape(mut self, shape: &Shape) -> Self {
        let own = RobotOptions::default();
        // A shape that is out of range says nothing.
        if let Ok((robot, seat)) = own.checked(self.options.clone(), Some(shape)) {
            self.controls = Controls { robot, seat };
        }
        self
    }
}

impl FarRobot {
    /// A robot whose devices have these ids, with the usual wheels.
    #[must_use]
    pub fn new(name: Name, first_id: i32) -> Self {
        let wheels = Device::new(amber_proto::DeviceType::ROBOCLAW, 0);
        Self {
            name,
            first_id,
            wheels,
            own_rate: false,
        }
    }
}

impl File {
    /// Checks the file of a process that shows far devices. The command line overrides the file.
    ///
    /// # Errors
    /// A value is invalid or missing.
    pub fn checked_remote(
        self,
        robot: Option<FarRobot>,
        who: Option<Name>,
        routers: Vec<String>,
    ) -> Result<RemoteConfig, OptionsError> {
        let who = who.or(self.operator.name).ok_or(OptionsError::Missing {
            name: "--operator",
            hint: "each operator has a name, as in the certificate, such as --operator alice",
        })?;
        if who.as_str() == ROS_OPERATOR {
            return Err(OptionsError::Value {
                name: "--operator",
                problem: format!("'{who}' is the name of the nodes of ROS 2: use another one"),
            });
        }
        let mut robots: Vec<FarRobot> = Vec::new();
        let listed = self.remote.into_iter().map(|it| {
            let usual = FarRobot::new(it.robot, it.first_id);
            let wheels = it.wheels.map_or(usual.wheels, |wheels| wheels.0);
            FarRobot {
                wheels,
                own_rate: it.own_rate,
                ..usual
            }
        });
        let listed: Vec<_> = listed.collect();
        for it in robot.map_or(listed, |robot| vec![robot]) {
            check("first_id", it.first_id, 0..=1_000_000)?;
            if let Some(other) = robots.iter().find(|other| other.first_id == it.first_id) {
                return Err(OptionsError::Value {
                    name: "first_id",
                    problem: format!(
                        "{} and {} have the same first_id: their devices would have the same ids",
                        other.name, it.name
                    ),
                });
            }
            robots.push(it);
        }
        if robots.is_empty() {
            return Err(OptionsError::Missing {
                name: "--robot",
                hint: "name a robot of the fleet, or list [[remote]] robots in the file",
            });
        }
        Ok(RemoteConfig {
            link: self.zenoh.checked(routers)?,
            who,
            robots,
        })
    }
}

impl Config {
    /// The shortest time between two messages of a device.
    #[must_use]
    pub fn period(&self, device: Device) -> Duration {
        let mut periods = self.periods.iter();
        let found = periods.find(|(of, _)| *of == device);
        found.map_or(Duration::ZERO, |(_, period)| *period)
    }

    /// The operators with a stream of this device for themselves, and the shortest time between two
    /// messages. It is not shorter than that for all; of several entries, the first counts.
    #[must_use]
    pub fn own_periods(&self, device: Device) -> BTreeMap<&Name, Duration> {
        let covers = |it: &&OwnStreams| it.devices.is_empty() || it.devices.contains(&device);
        let mut periods = BTreeMap::new();
        for streams in self.own_streams.iter().filter(covers) {
            let period = streams.period.max(self.period(device));
            periods.entry(&streams.who).or_insert(period);
        }
        periods
    }

    /// Whether the fleet sees this device.
    #[must_use]
    pub fn shows(&self, device: Device) -> bool {
        self.devices.is_empty() || self.devices.contains(&device)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    fn checked(text: &str) -> Result<Config, OptionsError> {
        toml::from_str::<File>(text)
            .unwrap()
            .checked(None, None, Vec::new())
    }

    #[test]
    fn only_the_name_has_no_default() {
        assert!(checked("").unwrap_err().to_string().contains("--name"));
        let config = checked("[fleet]\nname = 'r1'").unwrap();
        assert_eq!(config.link.connect, ["tcp/127.0.0.1:7447"]);
        assert_eq!(config.link.lease, LEASE);
        assert_eq!(config.mediator, "127.0.0.1");
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        assert!(config.shows(hokuyo));
        assert_eq!(config.period(hokuyo), Duration::ZERO);
        assert_eq!(config.controls, Controls::default());
        assert_eq!(config.ros, None);
        let with_ros = checked("[fleet]\nname = 'r1'\n[ros]").unwrap();
        assert_eq!(with_ros.ros.unwrap().namespace, "/r1");
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = "
            [zenoh]
            connect = ['tls/fleet.example:7447']
            lease_ms = 3000
            ca = 'ca.pem'
            certificate = 'r1.pem'
            key = 'r1.key'
            [fleet]
            name = 'r1'
            mediator = '127.0.0.1:26234'
            devices = ['hokuyo:0', '77:3']
            may_force = ['carol']
            [robot]
            max_speed_mm_s = 300
            [[rate]]
            devices = ['hokuyo:0']
            max_hz = 4
            [[rate]]
            operator = 'bob'
            devices = ['hokuyo:0']
            max_hz = 0.5
            [[rate]]
            operator = 'bob'
            max_hz = 20";
        let config = checked(text).unwrap();
        assert_eq!(config.link.tls.unwrap().key, PathBuf::from("r1.key"));
        let hokuyo = Device::new(DeviceType::HOKUYO, 0);
        let config = checked(text).unwrap();
        assert_eq!(config.may_force[0].as_str(), "carol");
        assert_eq!(config.period(hokuyo), Duration::from_millis(250));
        let dummy = Device::new(DeviceType::DUMMY, 0);
        assert!(config.shows(hokuyo) && !config.shows(dummy));
        let bob: Name = "bob".parse().unwrap();
        let own = |device| config.own_periods(device)[&bob];
        assert_eq!(own(hokuyo), Duration::from_secs(2));
        assert_eq!(own(dummy), Duration::from_millis(50));
        assert!((config.controls.robot.drive.max_wheel_m_s - 0.3).abs() < 1e-9);
    }

    #[test]
    fn far_robots_have_ids_of_their_own() {
        let checked = |text: &str| {
            let file = toml::from_str::<File>(text).unwrap();
            file.checked_remote(None, None, Vec::new())
        };
        let two = "
            [operator]
            name = 'alice'
            [[remote]]
            robot = 'r2'
            first_id = 10
            [[remote]]
            robot = 'r3'
            first_id = 20
            wheels = '77:0'
            own_rate = true";
        let config = checked(two).unwrap();
        let wheels = config.robots.iter().map(|it| it.wheels.to_string());
        assert_eq!(wheels.collect::<Vec<_>>(), ["roboclaw:0", "77:0"]);
        assert!(!config.robots[0].own_rate && config.robots[1].own_rate);
        for (text, part) in [
            (two.replace("20", "10"), "r2 and r3 have the same"),
            (two.replace("20", "-1"), "first_id"),
            (two.replace("name = 'alice'", ""), "--operator"),
            ("[operator]\nname = 'alice'".to_owned(), "--robot"),
        ] {
            let error = checked(&text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, part) in [
            ("[zenoh]\nconnect = ['udp/a:1']", "udp/a:1"),
            ("[zenoh]\nconnect = ['tls/a:1']", "certificate"),
            ("[zenoh]\nca = 'ca.pem'", "certificate"),
            ("[zenoh]\nlease_ms = 1", "lease_ms"),
            ("[[rate]]\ndevices = ['hokuyo:0']\nmax_hz = 0", "max_hz"),
            ("[[rate]]\nmax_hz = 1", "operator"),
        ] {
            let error = checked(&format!("fleet = {{ name = 'r1' }}\n{text}")).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        for text in [
            "[fleet]\nname = 'a/b'",
            "[fleet]\ndevices = ['spoon:0']",
            "x = 1",
        ] {
            assert!(toml::from_str::<File>(text).is_err(), "{text}");
        }
    }
}
