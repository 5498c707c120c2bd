//! The options of `amber driver rosbridge`. IO.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use serde::Deserialize;

use super::server::{Config, Server};
use crate::shared::machine::Page;
use crate::shared::options::{Network, NetworkOptions, RobotOptions, read};

/// The port of the original server.
const PORT: u16 = 9090;

/// Texts with such pictures have some 80 kB. Wider ones fill a Wi-Fi that also carries commands.
const PICTURE_WIDTH: u32 = 640;

/// The page for browsers that open the address of the gateway.
const PAGE: &str = include_str!("../../examples/rosbridge/robot.html");

/// The options of the gateway.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  amber mediator --driver 'gateway:0=amber driver rosbridge'
  amber driver rosbridge --listen 0.0.0.0:9090 --allow 192.168.0.0/24")]
pub struct Options {
    /// TOML file with these options: see docs/gateways/rosbridge.md
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:9090]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Let web pages of this origin connect, e.g. `https://robots.example` (may be given several
    /// times) [default: pages of this machine and of the gateway itself]
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// The time of one turn of a laser scanner that does not report it itself [default: 100]
    #[arg(long, value_name = "MS")]
    scan_turn_ms: Option<f64>,
    /// Wider pictures of the camera are made smaller, to a half, a third and so on [default: 640]
    #[arg(long, value_name = "PX")]
    picture_width: Option<u32>,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    robot: RobotOptions,
}

/// The options of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    allow_origin: Vec<String>,
    scan_turn_ms: Option<f64>,
    picture_width: Option<u32>,
    network: NetworkOptions,
    robot: RobotOptions,
}

impl Options {
    /// The gateway with these options, and its access rules.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn setup(self) -> Result<(Server, Network), OptionsError> {
        let file: File = read(self.config.as_deref())?;
        let network = self.network.checked(file.network)?;
        let (robot, seat) = self.robot.checked(file.robot, network.shape().as_ref())?;
        let usual = SocketAddr::from(([127, 0, 0, 1], PORT));
        let origins = match self.allow_origin.is_empty() {
            true => file.allow_origin,
            false => self.allow_origin,
        };
        let turn_ms = self.scan_turn_ms.or(file.scan_turn_ms);
        let turn_ms = turn_ms.map(|ms| check("scan_turn_ms", ms, 1.0..=10_000.0));
        let scan_turn = turn_ms
            .transpose()?
            .map(|ms| Duration::from_secs_f64(ms / 1000.0));
        let width = self.picture_width.or(file.picture_width);
        let width = width.unwrap_or(PICTURE_WIDTH);
        let config = Config {
            listen: (self.listen.or(file.listen)).unwrap_or(usual),
            page: Page {
                html: PAGE,
                origins,
            },
            robot,
            seat,
            scan_turn,
            picture_width_px: check("picture_width", width, 16..=8192)?,
        };
        Ok((Server::new(config), network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_only_this_machine_is_served() {
        let (server, network) = Options::default().setup().unwrap();
        assert_eq!(server.config().listen, "127.0.0.1:9090".parse().unwrap());
        assert!(network.allowed.iter().all(|it| it.addr().is_loopback()));
    }

    #[test]
    fn the_file_has_all_options() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rosbridge.toml");
        let text = r#"
            listen = "0.0.0.0:9091"
            allow_origin = ["https://robots.example"]
            scan_turn_ms = 25
            picture_width = 320
            [network]
            allow = ["10.0.0.0/8"]
            [robot]
            max_speed_mm_s = 200
            "#;
        std::fs::write(&file, text).unwrap();
        let options = Options {
            config: Some(file.clone()),
            ..Options::default()
        };
        let (server, network) = options.clone().setup().unwrap();
        let config = server.config();
        assert_eq!(config.listen.port(), 9091);
        assert_eq!(config.page.origins, ["https://robots.example"]);
        assert_eq!(config.scan_turn, Some(Duration::from_millis(25)));
        assert_eq!(config.picture_width_px, 320);
        assert_eq!(config.robot.drive.max_wheel_m_s, 0.2);
        assert_eq!(network.allowed.len(), 1);
        std::fs::write(&file, "scan_turn_ms = 0").unwrap();
        let error = options.setup().unwrap_err().to_string();
        assert!(error.starts_with("scan_turn_ms: "), "{error}");
    }
}
