//! The options of `amber driver json-relay`. IO.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use amber_proto::{Device, DeviceType};
use amber_robot::controls::Seat;
use amber_robot::pictures::PictureWish;
use amber_robot::robot::RobotSetup;
use clap::ValueEnum;
use serde::Deserialize;

use super::codec::{ClientId, Secret};
use super::drive::Speeds;
use super::end::{self, End, Part};
use super::limits::{
    MAX_MTU, MAX_PICTURES_PER_S, MIN_MTU, PICTURE_WIDTH, PICTURES_PER_S, USUAL_MTU,
};
use super::server::{self, Server};
use crate::shared::options::{Network, NetworkOptions, RobotOptions, device, read};

/// The usual port of a server.
const PORT: u16 = 8080;

/// The options of the command line.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  amber mediator --driver 'gateway:0=amber driver json-relay'
  amber driver json-relay --role robot --server 192.168.0.5:8080 --id amber_0

The protocol has no passwords. Anyone on the allowed networks may drive the robot, unless the file
has a secret.")]
pub struct Options {
    /// TOML file with these and more options: see docs/gateways/json-relay.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Role: the server of the relay, or a robot or a control at another server [default: server]
    #[arg(long)]
    pub role: Option<Role>,
    /// Address that the server listens on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// The server of a robot or a control
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub server: Option<SocketAddr>,
    /// The name of the robot or the control there [default: amber]
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// The device with which Amber's clients drive the robots of the server; only for a control
    /// [default: roboclaw:1]
    #[arg(long, value_name = "DEVICE")]
    pub show_as: Option<Device>,
    /// A camera that shows the images of the robots, such as camera:1; not for a robot [default: none]
    #[arg(long, value_name = "DEVICE")]
    pub show_images_as: Option<Device>,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    robot: RobotOptions,
}

/// The role of the gateway in the relay.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The server; Amber's robot is one of its robots
    #[default]
    Server,
    /// Amber's robot follows the commands of another server
    Robot,
    /// Amber's clients drive the robots of another server
    Control,
}

/// The options of the file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    role: Option<Role>,
    listen: Option<SocketAddr>,
    server: Option<SocketAddr>,
    id: Option<String>,
    #[serde(deserialize_with = "device")]
    show_as: Option<Device>,
    #[serde(deserialize_with = "device")]
    show_images_as: Option<Device>,
    secret: Option<String>,
    ack: bool,
    last_wins: bool,
    open: bool,
    passthrough: bool,
    mtu: Option<usize>,
    camera_hz: Option<f64>,
    picture_width: Option<u32>,
    max_skew_s: Option<f64>,
    forward_mm_s: Option<i32>,
    turn_mm_s: Option<i32>,
    network: NetworkOptions,
    robot: RobotOptions,
}

/// The gateway, by its role.
#[derive(Debug)]
pub enum Relay {
    /// The server.
    Server(Box<Server>),
    /// A robot or a control at another server.
    End(Box<End>),
}

/// The checked options.
enum Setup {
    Server(Box<server::Settings>),
    End(Box<end::Settings>),
}

impl Options {
    /// Creates the gateway.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn setup(self) -> Result<(Relay, Network), OptionsError> {
        let (settings, network) = self.checked()?;
        let relay = match settings {
            Setup::Server(settings) => Relay::Server(Box::new(Server::new(*settings))),
            Setup::End(settings) => Relay::End(Box::new(End::new(*settings))),
        };
        Ok((relay, network))
    }

    /// Reads the file and checks all values.
    fn checked(self) -> Result<(Setup, Network), OptionsError> {
        let file: File = read(self.config.as_deref())?;
        let mut network = self.network.checked(file.network)?;
        let (robot, seat) = self.robot.checked(file.robot, network.shape().as_ref())?;
        let speeds = speeds(&robot, file.forward_mm_s, file.turn_mm_s)?;
        let mtu = check("mtu", file.mtu.unwrap_or(USUAL_MTU), MIN_MTU..=MAX_MTU)?;
        let secret = file
            .secret
            .map(|secret| Secret::try_from(secret).map_err(|error| value("secret", &error)));
        let secret = secret.transpose()?;
        let role = self.role.or(file.role).unwrap_or_default();
        let show_images_as = self.show_images_as.or(file.show_images_as);
        // Another server gets no pictures without being asked for them.
        let usual_hz = match role {
            Role::Server => PICTURES_PER_S,
            Role::Robot | Role::Control => 0.0,
        };
        let pictures = pictures(file.camera_hz.unwrap_or(usual_hz), file.picture_width)?;
        if role == Role::Server {
            let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
            let listen = self.listen.or(file.listen).unwrap_or(usual);
            let skew = file
                .max_skew_s
                .map(|skew| check("max_skew_s", skew, 0.1..=86_400.0));
            let settings = server::Settings {
                seat,
                speeds,
                secret,
                ack: file.ack,
                last_wins: file.last_wins,
                open: file.open,
                passthrough: file.passthrough,
                mtu,
                pictures,
                show_images_as,
                max_skew: skew.transpose()?.map(Duration::from_secs_f64),
                ..server::Settings::new(listen, robot)
            };
            return Ok((Setup::Server(Box::new(settings)), network));
        }
        let server = self.server.or(file.server).ok_or(OptionsError::Missing {
            name: "--server",
            hint: "use the address and port of the relay, such as 192.168.0.5:8080",
        })?;
        // Its datagrams must pass.
        network.allowed.push(server.ip().into());
        let id = self.id.or(file.id).unwrap_or_else(|| "amber".to_owned());
        let id = ClientId::try_from(id).map_err(|error| value("id", &error))?;
        let part = part(role, self.show_as.or(file.show_as), robot, seat, speeds);
        let settings = end::Settings {
            secret,
            mtu,
            pictures,
            show_images_as,
            ..end::Settings::new(server, id, part)
        };
        Ok((Setup::End(Box::new(settings)), network))
    }
}

fn part(
    role: Role,
    show_as: Option<Device>,
    robot: RobotSetup,
    seat: Seat,
    speeds: Speeds,
) -> Part {
    match role {
        Role::Control => Part::Control(show_as.unwrap_or(Device::new(DeviceType::ROBOCLAW, 1))),
        Role::Server | Role::Robot => Part::Robot(robot, seat, speeds),
    }
}

/// The pictures of the camera at a rate; `None` for the rate 0.
fn pictures(hz: f64, width: Option<u32>) -> Result<Option<PictureWish>, OptionsError> {
    let hz = check("camera_hz", hz, 0.0..=MAX_PICTURES_PER_S)?;
    let width = check("picture_width", width.unwrap_or(PICTURE_WIDTH), 16..=8192)?;
    Ok((hz > 0.0).then(|| PictureWish {
        // Casts from floating point saturate.
        period_ms: (1000.0 / hz) as u32,
        max_width: Some(width),
    }))
}

/// Speeds within the maximum of the robot.
fn speeds(
    robot: &RobotSetup,
    forward: Option<i32>,
    turn: Option<i32>,
) -> Result<Speeds, OptionsError> {
    // Casts from floating point saturate.
    let most = (robot.drive.max_wheel_m_s * 1000.0) as i32;
    let usual = Speeds::default();
    Ok(Speeds {
        forward_mm_s: check(
            "forward_mm_s",
            forward.unwrap_or(usual.forward_mm_s.min(most)),
            1..=most,
        )?,
        turn_mm_s: check(
            "turn_mm_s",
            turn.unwrap_or(usual.turn_mm_s.min(most)),
            1..=most,
        )?,
    })
}

fn value(name: &'static str, problem: &impl ToString) -> OptionsError {
    let problem = problem.to_string();
    OptionsError::Value { name, problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_file;

    fn setup(text: &str) -> Result<(Setup, Network), OptionsError> {
        with_file(text, |file| {
            let options = Options {
                config: Some(file),
                ..Options::default()
            };
            options.checked()
        })
    }

    #[test]
    fn by_default_it_is_a_server_for_this_machine() {
        let (Setup::Server(settings), network) = Options::default().checked().unwrap() else {
            panic!("no server");
        };
        assert_eq!(settings.listen, "127.0.0.1:8080".parse().unwrap());
        assert!(!settings.open && !settings.ack && settings.secret.is_none());
        let pictures = settings.pictures.unwrap();
        assert_eq!((pictures.period_ms, pictures.max_width), (200, Some(640)));
        assert_eq!(settings.speeds, Speeds::default());
        assert!(network.allowed.iter().all(|it| it.addr().is_loopback()));
    }

    #[test]
    fn the_file_has_all_options_of_a_server() {
        let text = r#"
            listen = "0.0.0.0:8081"
            secret = "sesame"
            ack = true
            last_wins = true
            open = true
            passthrough = true
            mtu = 60000
            camera_hz = 0
            max_skew_s = 5
            forward_mm_s = 300
            turn_mm_s = 100
            [network]
            allow = ["10.0.0.0/8"]
            [robot]
            max_speed_mm_s = 350
            "#;
        let (Setup::Server(settings), _) = setup(text).unwrap() else {
            panic!("no server");
        };
        assert_eq!((settings.listen.port(), settings.mtu), (8081, 60_000));
        assert_eq!(settings.max_skew, Some(Duration::from_secs(5)));
        assert!(settings.ack && settings.last_wins && settings.open && settings.passthrough);
        assert_eq!(
            (settings.speeds.forward_mm_s, settings.speeds.turn_mm_s),
            (300, 100)
        );
        assert!(settings.secret.is_some());
        assert_eq!(settings.pictures, None);
    }

    #[test]
    fn an_end_needs_a_server_whose_datagrams_pass() {
        let error = setup("role = \"robot\"").err().unwrap();
        assert_eq!(error.to_string(), "--server is required");
        let text = "role = \"control\"\nserver = \"10.1.2.3:8080\"\nid = \"c1\"\nshow_as = \"2:5\"\nshow_images_as = \"camera:1\"";
        let (Setup::End(settings), network) = setup(text).unwrap() else {
            panic!("no end");
        };
        assert_eq!(settings.id.as_str(), "c1");
        assert_eq!(settings.pictures, None);
        let camera = Device::new(DeviceType::CAMERA, 1);
        assert_eq!(settings.show_images_as, Some(camera));
        let Part::Control(device) = settings.part else {
            panic!("no control");
        };
        assert_eq!(device, Device::new(DeviceType::ROBOCLAW, 5));
        let server: std::net::IpAddr = "10.1.2.3".parse().unwrap();
        assert!(network.allowed.iter().any(|it| it.contains(&server)));
    }

    #[test]
    fn invalid_values_are_explained() {
        for (text, expected) in [
            ("mtu = 100", "mtu: 100 is not within 256 to 60000"),
            ("camera_hz = 99", "camera_hz: 99 is not within 0 to 30"),
            (
                "picture_width = 8",
                "picture_width: 8 is not within 16 to 8192",
            ),
            (
                "forward_mm_s = 500",
                "forward_mm_s: 500 is not within 1 to 400",
            ),
            (
                "role = \"robot\"\nserver = \"127.0.0.1:1\"\nid = \"\"",
                "id: a client id has 1 to 64 bytes and no control characters",
            ),
        ] {
            assert_eq!(setup(text).err().unwrap().to_string(), expected);
        }
    }
}
