//! The options of `amber driver apollo`. IO.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use amber_proto::Device;
use amber_robot::robot::RobotSetup;
use serde::Deserialize;

use super::frame::Layout;
use super::limits::{FRAME_PAYLOAD, MAX_LINES, MAX_MESSAGE, MAX_NAME};
use super::mapping::{Area, Origin};
use super::session::{Apollo, ReceiveLine, Received, SendLine, Sent, Settings};
use super::split::Format;
use crate::shared::options::{Network, NetworkOptions, RobotOptions, device, read};

/// The options of the command line.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  amber mediator --driver 'gateway:0=amber driver apollo --to 192.168.0.5'
  amber driver apollo --trajectory 127.0.0.1:8905 --area=-5,5,-5,5

Without a file, it sends Chassis (port 8900), LocalizationEstimate (8901) and PointCloud (8904).
The protocol has no passwords: a trajectory from a forged address moves the robot, but only within
the area.")]
pub struct Options {
    /// TOML file with the tables `send` and `receive`: see docs/gateways/apollo.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The host that receives the usual messages [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub to: Option<IpAddr>,
    /// Follow the ADCTrajectory messages that arrive here; needs --area
    #[arg(long, value_name = "ADDRESS:PORT", requires = "area")]
    pub trajectory: Option<SocketAddr>,
    /// The host that may send them [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Option<IpAddr>,
    /// Area that trajectories must not leave, in metres on the map with y up
    #[arg(
        long,
        value_name = "X0,X1,Y0,Y1",
        value_delimiter = ',',
        num_args = 1,
        allow_hyphen_values = true
    )]
    pub area: Vec<f64>,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    robot: RobotOptions,
}

/// The options of the file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    east_m: f64,
    north_m: f64,
    send: Option<Vec<SendOptions>>,
    receive: Vec<ReceiveOptions>,
    network: NetworkOptions,
    robot: RobotOptions,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SendOptions {
    message: Content,
    #[serde(default, deserialize_with = "device")]
    device: Option<Device>,
    name: Option<String>,
    to: SocketAddr,
    rate_hz: Option<f64>,
    #[serde(default)]
    legacy: bool,
    max_frames: Option<usize>,
    #[serde(default)]
    point_times: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiveOptions {
    message: Content,
    #[serde(default, deserialize_with = "device")]
    device: Option<Device>,
    name: Option<String>,
    bind: SocketAddr,
    peer: IpAddr,
    area: Option<AreaOptions>,
    max_age_s: Option<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct AreaOptions {
    x_m: [f64; 2],
    y_m: [f64; 2],
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Content {
    Chassis,
    Localization,
    PointCloud,
    Trajectory,
    Raw,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Options {
    /// Creates the gateway.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn setup(self) -> Result<(Apollo, Network), OptionsError> {
        let (settings, network) = self.checked()?;
        Ok((Apollo::new(settings), network))
    }

    /// Reads the file and checks all values.
    fn checked(self) -> Result<(Settings, Network), OptionsError> {
        let file: File = read(self.config.as_deref())?;
        let mut network = self.network.checked(file.network)?;
        let (robot, seat) = self.robot.checked(file.robot, network.shape().as_ref())?;
        let send = match file.send {
            Some(lines) => lines.into_iter().map(|line| line.checked(&robot)).collect(),
            None => usual_lines(&robot, self.to.unwrap_or(LOOPBACK)),
        };
        let receive = file.receive.into_iter().map(ReceiveOptions::checked);
        let mut receive = receive.collect::<Result<Vec<_>, _>>()?;
        if let Some(bind) = self.trajectory {
            let trajectory = ReceiveOptions {
                message: Content::Trajectory,
                device: None,
                name: None,
                bind,
                peer: self.peer.unwrap_or(LOOPBACK),
                area: area(&self.area)?,
                max_age_s: None,
            };
            receive.push(trajectory.checked()?);
        }
        let settings = Settings {
            robot,
            seat,
            origin: Origin {
                east_m: file.east_m,
                north_m: file.north_m,
            },
            send: send?,
            receive,
        };
        check("send", settings.send.len(), 0..=MAX_LINES)?;
        check("receive", settings.receive.len(), 0..=MAX_LINES)?;
        // The configured hosts may send.
        let peers = settings.receive.iter().map(|line| line.peer);
        network.allowed.extend(peers.map(ipnet::IpNet::from));
        Ok((settings, network))
    }
}

/// The messages that a stock Apollo on this host accepts, on its usual ports.
fn usual_lines(robot: &RobotSetup, host: IpAddr) -> Result<Vec<SendLine>, OptionsError> {
    let lines = [
        (Content::Chassis, 8900),
        (Content::Localization, 8901),
        (Content::PointCloud, 8904),
    ];
    let lines = lines.into_iter().map(|(message, port)| SendOptions {
        message,
        device: None,
        name: None,
        to: SocketAddr::new(host, port),
        rate_hz: None,
        legacy: false,
        max_frames: None,
        point_times: false,
    });
    lines.map(|line| line.checked(robot)).collect()
}

impl SendOptions {
    fn checked(self, robot: &RobotSetup) -> Result<SendLine, OptionsError> {
        let (what, name) = match self.message {
            Content::Chassis => (
                Sent::Chassis(self.device.unwrap_or(robot.wheels)),
                "Chassis",
            ),
            Content::Localization => {
                let device = self.device.unwrap_or(robot.location);
                (Sent::Localization(device), "LocalizationEstimate")
            }
            Content::PointCloud => {
                let device = self.device.unwrap_or(robot.scanner);
                (Sent::PointCloud(device, self.point_times), "PointCloud")
            }
            Content::Raw => (Sent::Raw(required(self.device)?), ""),
            Content::Trajectory => return Err(value("a trajectory can only be received")),
        };
        let rate_hz = check("rate_hz", self.rate_hz.unwrap_or(20.0), 0.1..=100.0)?;
        let most = MAX_MESSAGE / FRAME_PAYLOAD;
        Ok(SendLine {
            what,
            name: checked_name(self.name, name, self.device)?,
            to: self.to,
            period: Duration::from_secs_f64(1.0 / rate_hz),
            format: Format {
                layout: if self.legacy {
                    Layout::Legacy
                } else {
                    Layout::Current
                },
                max_frames: check("max_frames", self.max_frames.unwrap_or(most), 1..=most)?,
            },
        })
    }
}

impl ReceiveOptions {
    fn checked(self) -> Result<ReceiveLine, OptionsError> {
        let (what, name) = match self.message {
            Content::Chassis => (Received::Chassis(required(self.device)?), "Chassis"),
            Content::Localization => (
                Received::Localization(required(self.device)?),
                "LocalizationEstimate",
            ),
            Content::Trajectory => {
                let area = self.area.ok_or(OptionsError::Missing {
                    name: "area",
                    hint: "trajectories must not leave this area, such as \
                           area = { x_m = [-5, 5], y_m = [-5, 5] }",
                })?;
                let AreaOptions { x_m, y_m } = area;
                (Received::Trajectory(Area { x_m, y_m }), "ADCTrajectory")
            }
            Content::Raw => (Received::Raw(required(self.device)?), ""),
            Content::PointCloud => return Err(value("a point cloud can only be sent")),
        };
        let max_age = self
            .max_age_s
            .map(|age| check("max_age_s", age, 0.01..=86_400.0));
        Ok(ReceiveLine {
            what,
            name: checked_name(self.name, name, self.device)?,
            bind: self.bind,
            peer: self.peer,
            max_age: max_age.transpose()?.map(Duration::from_secs_f64),
        })
    }
}

/// The configured name, the usual one, or `amber.TYPE.ID` for messages of a device.
fn checked_name(
    name: Option<String>,
    usual: &str,
    device: Option<Device>,
) -> Result<String, OptionsError> {
    let of_device = |device: Device| format!("amber.{}.{}", device.device_type.0, device.id.0);
    let name = name.unwrap_or_else(|| match (usual, device) {
        ("", Some(device)) => of_device(device),
        _ => usual.to_owned(),
    });
    let valid = (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control);
    let problem = || {
        value(&format!(
            "a name has 1 to {MAX_NAME} bytes and no control characters"
        ))
    };
    valid.then_some(name).ok_or_else(problem)
}

fn area(numbers: &[f64]) -> Result<Option<AreaOptions>, OptionsError> {
    match *numbers {
        [] => Ok(None),
        [x0, x1, y0, y1] if x0 < x1 && y0 < y1 => Ok(Some(AreaOptions {
            x_m: [x0, x1],
            y_m: [y0, y1],
        })),
        _ => Err(OptionsError::Value {
            name: "area",
            problem: "it has the form X0,X1,Y0,Y1, with X0 < X1 and Y0 < Y1".to_owned(),
        }),
    }
}

fn required(device: Option<Device>) -> Result<Device, OptionsError> {
    device.ok_or(OptionsError::Missing {
        name: "device",
        hint: "it is Amber's device of this line, such as device = \"location:1\"",
    })
}

fn value(problem: &str) -> OptionsError {
    OptionsError::Value {
        name: "message",
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use amber_robot::controls::Seat;

    use super::*;
    use crate::shared::machine::Machine;
    use crate::testing::with_file;

    fn setup(text: &str) -> Result<(Settings, Network), OptionsError> {
        with_file(text, |file| {
            let options = Options {
                config: Some(file),
                ..Options::default()
            };
            options.checked()
        })
    }

    #[test]
    fn shared_controls_reach_the_machine() {
        let seat = |text| Machine::seat(&Apollo::new(setup(text).unwrap().0));
        assert_eq!(seat("[robot]\nshared_controls = true\n"), Seat::Shared);
        assert_eq!(seat(""), Seat::Exclusive);
    }

    #[test]
    fn by_default_the_usual_messages_go_to_this_machine_and_none_is_received() {
        let (settings, _) = Options::default().checked().unwrap();
        let lines = settings
            .send
            .iter()
            .map(|line| (&*line.name, line.to.to_string()));
        let expected = [
            ("Chassis", "127.0.0.1:8900".to_owned()),
            ("LocalizationEstimate", "127.0.0.1:8901".to_owned()),
            ("PointCloud", "127.0.0.1:8904".to_owned()),
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected);
        assert!(settings.receive.is_empty());
    }

    #[test]
    fn the_file_has_all_options() {
        let (settings, network) = setup(
            r#"
            east_m = 500000
            north_m = 4000000
            [[send]]
            message = "point-cloud"
            device = "hokuyo:1"
            name = "Cloud"
            to = "10.0.0.5:8904"
            rate_hz = 10
            legacy = true
            max_frames = 1
            point_times = true
            [[send]]
            message = "raw"
            device = "hokuyo:0"
            to = "10.0.0.5:9000"
            [[receive]]
            message = "trajectory"
            bind = "0.0.0.0:8905"
            peer = "10.0.0.5"
            area = { x_m = [-5, 5], y_m = [-4, 4] }
            max_age_s = 1
            [[receive]]
            message = "localization"
            device = "location:1"
            bind = "0.0.0.0:8906"
            peer = "10.0.0.5"
            "#,
        )
        .unwrap();
        assert_eq!(settings.send[0].format.layout, Layout::Legacy);
        assert_eq!(settings.send[0].period, Duration::from_millis(100));
        assert_eq!(settings.send[1].name, "amber.4.0");
        assert_eq!(settings.receive[0].max_age, Some(Duration::from_secs(1)));
        let peer: IpAddr = "10.0.0.5".parse().unwrap();
        assert!(network.allowed.iter().any(|it| it.contains(&peer)));
    }

    #[test]
    fn invalid_lines_are_explained() {
        let receive = "bind = \"127.0.0.1:1\"\npeer = \"127.0.0.1\"";
        for (text, expected) in [
            (
                format!("[[receive]]\nmessage = \"trajectory\"\n{receive}"),
                "area is required",
            ),
            (
                format!("[[receive]]\nmessage = \"chassis\"\n{receive}"),
                "device is required",
            ),
            (
                format!("[[receive]]\nmessage = \"point-cloud\"\n{receive}"),
                "message: a point cloud can only be sent",
            ),
        ] {
            assert_eq!(setup(&text).err().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn areas_of_the_command_line() {
        assert!(area(&[]).unwrap().is_none());
        assert_eq!(
            area(&[-1.0, 2.0, -3.0, 4.0]).unwrap().unwrap().y_m,
            [-3.0, 4.0]
        );
        for wrong in [
            &[1.0][..],
            &[1.0, 1.0, 0.0, 1.0],
            &[f64::NAN, 1.0, 0.0, 1.0],
        ] {
            assert!(area(wrong).is_err());
        }
    }
}
