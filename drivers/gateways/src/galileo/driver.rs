//! The options of `amber driver galileo`. IO.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use amber_driver::options::{OptionsError, check};
use amber_navigation::kinematics::SkidSteer;
use amber_proto::Device;
use ipnet::IpNet;
use serde::Deserialize;

use super::discovery;
use super::doorkeeper::Door;
use super::foreign;
use super::gateway::Galileo;
use super::limits::{DISCOVERY_PORT, HTTP_PORT, MAX_ID, PORT, PROXY_PORT};
use super::proxy;
use super::server::{Config, Ids, Server};
use super::token::Token;
use crate::shared::options::{Network, NetworkOptions, RobotOptions, device, read};

/// The options of the command line.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Example:
  amber mediator --driver 'gateway:0=amber driver galileo'

Without a token, every program on the allowed networks may drive the robot. A token travels in
clear text: use a VPN beyond your own network.")]
pub struct Options {
    /// TOML file with these and more options: see docs/gateways/galileo.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:3547]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// File with the token for clients, in its first line [default: no token]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The maximum number of sessions [default: 128]
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<u32>,
    /// The maximum number of sessions of one IP address [default: 16]
    #[arg(long, value_name = "N")]
    pub max_sessions_per_ip: Option<u32>,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    robot: RobotOptions,
}

/// The options of the file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    token: Option<String>,
    token_hash: Option<String>,
    token_file: Option<PathBuf>,
    max_sessions: Option<u32>,
    max_sessions_per_ip: Option<u32>,
    local: Option<Vec<IpNet>>,
    devices: Option<Vec<String>>,
    paths_without_index: Vec<String>,
    network: NetworkOptions,
    robot: RobotOptions,
    /// Robots that speak Galileo, as devices of Amber.
    foreign: Vec<ForeignOptions>,
    /// Robots that clients reach through this gateway.
    proxy: Option<ProxyOptions>,
    /// Announcements in the local network.
    discovery: Option<DiscoveryOptions>,
}

/// The announcements in the file: the table `[discovery]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiscoveryOptions {
    id: String,
    #[serde(default)]
    mac: String,
    http_port: Option<u16>,
    to: Option<SocketAddr>,
}

/// The proxy in the file: the table `[proxy]`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProxyOptions {
    listen: Option<SocketAddr>,
    token: Option<String>,
    token_hash: Option<String>,
    token_file: Option<PathBuf>,
    max_sessions: Option<u32>,
    max_sessions_per_ip: Option<u32>,
    robots: Vec<ProxiedOptions>,
}

/// A robot behind the proxy: one table `[[proxy.robots]]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProxiedOptions {
    id: String,
    host: IpAddr,
    #[serde(default)]
    ports: Option<Vec<u16>>,
}

/// A foreign robot in the file: one table `[[foreign]]`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignOptions {
    robot: SocketAddr,
    #[serde(default)]
    token: String,
    #[serde(default, deserialize_with = "device")]
    wheels: Option<Device>,
    #[serde(default, deserialize_with = "device")]
    location: Option<Device>,
    #[serde(default, deserialize_with = "device")]
    scanner: Option<Device>,
    track_mm: Option<f64>,
    max_speed_mm_s: Option<f64>,
}

/// All options.
struct Setup {
    server: Config,
    foreign: Vec<foreign::Config>,
    proxy: Option<proxy::Config>,
    discovery: Option<discovery::Config>,
    network: Network,
}

impl Options {
    /// The gateway with these options, and its access rules.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn gateway(self) -> Result<(Galileo, Network), OptionsError> {
        let setup = self.setup()?;
        let server = Server::new(setup.server, random_ids());
        let galileo = Galileo::new(server, setup.foreign, setup.proxy, setup.discovery);
        Ok((galileo, setup.network))
    }

    /// Reads the file and checks all values.
    fn setup(self) -> Result<Setup, OptionsError> {
        let file: File = read(self.config.as_deref())?;
        let token = Secret {
            text: file.token,
            hash: file.token_hash,
            file: self.token_file.or(file.token_file),
        };
        let mut network = self.network.checked(file.network)?;
        let foreign = file.foreign.into_iter().map(ForeignOptions::checked);
        let foreign: Vec<_> = foreign.collect::<Result<_, _>>()?;
        // Answers of the robots must pass the gate.
        (network.allowed).extend(foreign.iter().map(|it| IpNet::from(it.robot.ip())));
        let proxy = file.proxy.map(ProxyOptions::checked).transpose()?;
        let robots = proxy.iter().flat_map(|proxy| &proxy.robots);
        (network.allowed).extend(robots.map(|it| IpNet::from(it.host)));
        let discovery = file.discovery.map(DiscoveryOptions::checked).transpose()?;
        let (robot, seat) = self.robot.checked(file.robot, network.shape().as_ref())?;
        let usual = Config::new(robot);
        let max = self.max_sessions.or(file.max_sessions);
        let per_ip = self.max_sessions_per_ip.or(file.max_sessions_per_ip);
        let config = Config {
            listen: self.listen.or(file.listen).unwrap_or(usual.listen),
            door: door(token, max, per_ip)?,
            seat,
            local: file.local.unwrap_or(usual.local),
            devices: file.devices.map(devices).transpose()?,
            without_index: file.paths_without_index,
            ..usual
        };
        Ok(Setup {
            server: config,
            foreign,
            proxy,
            discovery,
            network,
        })
    }
}

impl ForeignOptions {
    fn checked(self) -> Result<foreign::Config, OptionsError> {
        let track_mm = self.track_mm.unwrap_or(420.0);
        let max_mm_s = self.max_speed_mm_s.unwrap_or(400.0);
        Ok(foreign::Config {
            robot: self.robot,
            token: self.token,
            wheels: self.wheels,
            location: self.location,
            scanner: self.scanner,
            drive: SkidSteer {
                track_m: check("track_mm", track_mm, 10.0..=5_000.0)? / 1000.0,
                max_wheel_m_s: check("max_speed_mm_s", max_mm_s, 1.0..=10_000.0)? / 1000.0,
            },
        })
    }
}

impl ProxyOptions {
    fn checked(self) -> Result<proxy::Config, OptionsError> {
        let token = Secret {
            text: self.token,
            hash: self.token_hash,
            file: self.token_file,
        };
        let listen = self.listen.unwrap_or((LOOPBACK, PROXY_PORT).into());
        let robots = self.robots.into_iter().map(ProxiedOptions::checked);
        let robots: Vec<proxy::ProxiedRobot> = robots.collect::<Result<_, _>>()?;
        let is_itself =
            |it: &proxy::ProxiedRobot| it.host == listen.ip() && it.ports.contains(&listen.port());
        if robots.is_empty() || robots.iter().any(is_itself) {
            return Err(OptionsError::Value {
                name: "robots",
                problem: "a proxy needs robots, and cannot be one of them".into(),
            });
        }
        Ok(proxy::Config {
            listen,
            door: door(token, self.max_sessions, self.max_sessions_per_ip)?,
            robots,
        })
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl ProxiedOptions {
    fn checked(self) -> Result<proxy::ProxiedRobot, OptionsError> {
        Ok(proxy::ProxiedRobot {
            id: checked_id(self.id)?,
            host: self.host,
            ports: self.ports.unwrap_or(vec![PORT]),
        })
    }
}

/// The id of a robot.
fn checked_id(id: String) -> Result<String, OptionsError> {
    let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match !id.is_empty() && id.len() <= MAX_ID && is_hex {
        true => Ok(id),
        false => Err(OptionsError::Value {
            name: "id",
            problem: format!("it needs 1 to {MAX_ID} hex digits"),
        }),
    }
}

impl DiscoveryOptions {
    fn checked(self) -> Result<discovery::Config, OptionsError> {
        let everyone = SocketAddr::from((Ipv4Addr::BROADCAST, DISCOVERY_PORT));
        Ok(discovery::Config {
            id: checked_id(self.id)?,
            mac: self.mac,
            http_port: self.http_port.unwrap_or(HTTP_PORT),
            to: self.to.unwrap_or(everyone),
        })
    }
}

fn devices(names: Vec<String>) -> Result<Vec<Device>, OptionsError> {
    let device = |name: String| {
        name.parse().map_err(|error| OptionsError::Value {
            name: "devices",
            problem: format!("{error}"),
        })
    };
    names.into_iter().map(device).collect()
}

/// The conditions for a session.
fn door(token: Secret, max: Option<u32>, per_ip: Option<u32>) -> Result<Door, OptionsError> {
    let usual = Door::default();
    let max = max.unwrap_or(usual.max_sessions);
    let per_ip = per_ip.unwrap_or(usual.max_sessions_per_ip);
    Ok(Door {
        token: token.token()?,
        max_sessions: check("max_sessions", max, 1..=1_000)?,
        max_sessions_per_ip: check("max_sessions_per_ip", per_ip, 1..=1_000)?,
    })
}

/// A token as text, as a hash, or in a file.
struct Secret {
    text: Option<String>,
    hash: Option<String>,
    file: Option<PathBuf>,
}

impl Secret {
    /// The token. An empty one admits all, as the robots themselves do.
    fn token(self) -> Result<Option<Token>, OptionsError> {
        if let Some(path) = self.file {
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|error| OptionsError::Read { path, error })?;
            let token = text.lines().next().unwrap_or_default().trim();
            return Ok((!token.is_empty()).then(|| Token::new(token)));
        }
        if let Some(hash) = self.hash {
            let token = Token::from_hash(&hash).ok_or_else(|| OptionsError::Value {
                name: "token_hash",
                problem: "it is not a SHA-256 hash: 64 hex digits, as `sha256sum` prints them"
                    .into(),
            })?;
            return Ok(Some(token));
        }
        let token = self.text.as_deref().filter(|token| !token.is_empty());
        Ok(token.map(Token::new))
    }
}

/// Ids from the generator of the system.
fn random_ids() -> Ids {
    Box::new(|| {
        let mut id = [0; 4];
        // Without random numbers there are no sessions: zero is not a valid id.
        if getrandom::fill(&mut id).is_err() {
            tracing::error!("the system provides no random numbers");
        }
        id
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::testing::with_file;

    fn setup(text: &str) -> Result<Setup, OptionsError> {
        with_file(text, |file| {
            let options = Options {
                config: Some(file),
                ..Options::default()
            };
            options.setup()
        })
    }

    #[test]
    fn by_default_only_this_machine_is_served() {
        let setup = Options::default().setup().unwrap();
        let (config, network) = (setup.server, setup.network);
        assert_eq!(config.listen, "127.0.0.1:3547".parse().unwrap());
        assert_eq!(config.door, Door::default());
        assert_eq!(config.door.token, None);
        let Door {
            max_sessions,
            max_sessions_per_ip,
            ..
        } = config.door;
        assert_eq!((max_sessions, max_sessions_per_ip), (128, 16));
        assert!(network.allowed.iter().all(|it| it.addr().is_loopback()));
    }

    #[test]
    fn the_file_has_all_options() {
        let setup = setup(
            r#"
            listen = "0.0.0.0:3548"
            token = "28b1c5"
            max_sessions_per_ip = 64
            devices = ["hokuyo:0", "2:0"]
            paths_without_index = ["hokuyo/0"]
            local = ["10.0.0.0/8"]
            [network]
            allow = ["10.0.0.0/8"]
            [robot]
            max_speed_mm_s = 200
            [[foreign]]
            robot = "192.168.0.132:3547"
            token = "28b1c5"
            wheels = "roboclaw:1"
            [discovery]
            id = "7c9ebd3a"
            [proxy]
            listen = "0.0.0.0:10427"
            token = "sesame"
            [[proxy.robots]]
            id = "7c9ebd3a0123"
            host = "10.0.0.7"
            [[proxy.robots]]
            id = "11112222"
            host = "10.0.0.8"
            ports = [3547, 3548]
            "#,
        )
        .unwrap();
        let proxy = setup.proxy.unwrap();
        assert!(proxy.door.token.unwrap().is("sesame"));
        assert_eq!(proxy.robots[0].ports, [3547]);
        assert_eq!(proxy.robots[1].ports, [3547, 3548]);
        let discovery = setup.discovery.unwrap();
        assert_eq!(discovery.to.to_string(), "255.255.255.255:22002");
        assert_eq!((&*discovery.id, discovery.http_port), ("7c9ebd3a", 3546));
        let (config, network) = (setup.server, setup.network);
        let [robot] = &setup.foreign[..] else {
            panic!("{:?}", setup.foreign);
        };
        assert_eq!(robot.robot.port(), 3547);
        assert_eq!(robot.wheels, Some("roboclaw:1".parse().unwrap()));
        assert_eq!(robot.scanner, None);
        assert!(!format!("{robot:?}").contains("28b1c5"));
        assert_eq!(config.listen.port(), 3548);
        assert!(config.door.token.unwrap().is("28b1c5"));
        assert_eq!(config.door.max_sessions_per_ip, 64);
        assert_eq!(config.devices.unwrap().len(), 2);
        assert_eq!(config.without_index, ["hokuyo/0"]);
        let allowed: Vec<IpNet> = [
            "10.0.0.0/8",
            "192.168.0.132/32",
            "10.0.0.7/32",
            "10.0.0.8/32",
        ]
        .map(|it| it.parse().unwrap())
        .to_vec();
        assert_eq!(network.allowed, allowed);
        assert!((config.robot.drive.max_wheel_m_s - 0.2).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_announced_without_a_valid_id() {
        assert_eq!(Options::default().setup().unwrap().discovery, None);
        for id in ["", "robot", &"a".repeat(MAX_ID + 1)] {
            let error = setup(&format!("[discovery]\nid = \"{id}\"")).err().unwrap();
            assert_eq!(error.to_string(), "id: it needs 1 to 128 hex digits");
        }
    }

    #[test]
    fn a_proxy_has_robots_and_is_none_of_them() {
        let robot = |host| format!("[proxy]\n[[proxy.robots]]\nid = \"7c\"\nhost = \"{host}\"\n");
        let config = setup(&robot("127.0.0.1")).unwrap().proxy.unwrap();
        assert_eq!(config.listen, "127.0.0.1:10427".parse().unwrap());
        assert_eq!(config.door, Door::default());
        let itself = robot("127.0.0.1") + "ports = [10427]";
        for text in ["[proxy]", &itself] {
            let error = setup(text).err().unwrap().to_string();
            assert!(error.starts_with("robots: a proxy needs robots"), "{error}");
        }
    }

    #[test]
    fn tokens_come_as_text_hash_or_file() {
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let config = setup(&format!("token_hash = \"{hash}\"")).unwrap().server;
        assert!(config.door.token.unwrap().is("abc"));
        let config = setup("token = \"\"").unwrap().server;
        assert_eq!(config.door.token, None);
        let error = setup("token_hash = \"abc\"").err().unwrap().to_string();
        assert!(
            error.starts_with("token_hash: it is not a SHA-256 hash"),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "abc\nmore\n").unwrap();
        let options = Options {
            token_file: Some(file),
            ..Options::default()
        };
        assert!(
            options
                .setup()
                .unwrap()
                .server
                .door
                .token
                .unwrap()
                .is("abc")
        );
        let options = Options {
            token_file: Some(Path::new("/nowhere/token").into()),
            ..Options::default()
        };
        assert!(options.setup().is_err());
    }
}
