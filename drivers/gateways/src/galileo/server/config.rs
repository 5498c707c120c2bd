//! The settings of a server. PURE.

use std::net::SocketAddr;

use amber_proto::Device;
use amber_robot::controls::Seat;
use amber_robot::robot::RobotSetup;
use ipnet::IpNet;

use crate::galileo::doorkeeper::Door;
use crate::galileo::limits::PORT;

/// The settings of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The conditions for a session.
    pub door: Door,
    /// The robot that sessions use.
    pub robot: RobotSetup,
    /// Whether several of them may drive at the same time.
    pub seat: Seat,
    /// Networks whose addresses cannot be forged from outside: their clients may get data before
    /// they have sent a frame.
    pub local: Vec<IpNet>,
    /// Devices that clients may use directly; `None` means all.
    pub devices: Option<Vec<Device>>,
    /// Paths whose clients expect BINARY frames without an index.
    pub without_index: Vec<String>,
}

impl Config {
    /// The usual settings for a robot: listens on this machine only, without a token.
    #[must_use]
    pub fn new(robot: RobotSetup) -> Self {
        let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
        let private = private.iter().filter_map(|it| it.parse::<IpNet>().ok());
        let mut local = crate::shared::options::loopback();
        local.extend(private);
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], PORT)),
            door: Door::default(),
            robot,
            seat: Seat::Exclusive,
            local,
            devices: None,
            without_index: Vec::new(),
        }
    }
}
