//! Finds Amber robots in the local network, by mDNS (RFC 6762) and DNS-SD (RFC 6763). IO, except
//! for [`FoundRobot`].
//!
//! A mediator announces the service `_amber._udp` with its port, and in the text record its version
//! and its devices. [`Announcement`] does so, and [`search`] finds the robots that do. Nothing else
//! needs this: addresses also work without it.
//!
//! The crate `mdns-sd` implements the protocol, in its own thread.

#![warn(missing_docs)]

mod robot;
#[cfg(target_os = "linux")]
mod sockets;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use amber_proto::Device;
use mdns_sd::{ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent, ServiceInfo};

pub use self::robot::FoundRobot;

/// The type of the service.
const SERVICE: &str = "_amber._udp.local.";

/// The port of all programs that answer and search by mDNS.
#[cfg(target_os = "linux")]
const MDNS_PORT: u16 = 5353;

/// The longest time that the daemon takes to open its sockets.
const START: Duration = Duration::from_secs(5);

/// The reason why robots cannot be announced or found: no network interface, no permission for
/// multicast.
#[derive(Debug, thiserror::Error)]
#[error("cannot use mDNS: {0}")]
pub struct Error(#[from] mdns_sd::Error);

/// An announced robot. Dropping it withdraws the announcement.
pub struct Announcement {
    daemon: ServiceDaemon,
    name: String,
    port: u16,
    announced: Option<(String, Vec<Device>)>,
}

impl Announcement {
    /// Prepares an announcement. Other machines see nothing before [`Announcement::update`].
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(name: &str, port: u16) -> Result<Self, Error> {
        let daemon = ServiceDaemon::new()?;
        // Its sockets exist when it answers.
        if let Ok(status) = daemon.status() {
            let _ = status.recv_timeout(START);
        }
        // An old system answers more than it needs to.
        #[cfg(target_os = "linux")]
        let _ = sockets::take_from_own_port_only(MDNS_PORT);
        Ok(Self {
            daemon,
            name: name.to_owned(),
            port,
            announced: None,
        })
    }

    /// Announces the robot with its devices, or changes what was announced. If another robot has
    /// the name, this one is announced as `NAME (2)` or the like.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn update(&mut self, version: &str, devices: &[Device]) -> Result<(), Error> {
        let new = (version.to_owned(), devices.to_vec());
        if self.announced.as_ref() == Some(&new) {
            return Ok(());
        }
        let host = format!("{}.local.", robot::host_label(&self.name));
        let text = robot::text(version, devices);
        let service = ServiceInfo::new(SERVICE, &self.name, &host, "", self.port, &text[..])?;
        self.daemon.register(service.enable_addr_auto())?;
        self.announced = Some(new);
        Ok(())
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // It says goodbye to the others; that they do not hear it costs them only a timeout.
        if let Ok(ended) = self.daemon.shutdown() {
            let _ = ended.recv_timeout(Duration::from_secs(1));
        }
    }
}

/// Searches for robots and returns those found in this time, in the order of their names. Calls
/// `found` for each as soon as it answers.
///
/// # Errors
/// See [`Error`].
pub fn search(
    time: Duration,
    mut found: impl FnMut(&FoundRobot),
) -> Result<Vec<FoundRobot>, Error> {
    let end = Instant::now() + time;
    let daemon = ServiceDaemon::new()?;
    // Also those that have just come and were not asked.
    daemon.accept_unsolicited(true)?;
    let events = daemon.browse(SERVICE)?;
    let mut robots = BTreeMap::new();
    while let Ok(event) = events.recv_timeout(end.saturating_duration_since(Instant::now())) {
        match event {
            ServiceEvent::ServiceResolved(service) => {
                let robot = robot_of(&service);
                let is_new = robots
                    .insert(service.fullname.clone(), robot.clone())
                    .is_none();
                if is_new {
                    found(&robot);
                }
            }
            ServiceEvent::ServiceRemoved(_, name) => {
                robots.remove(&name);
            }
            _ => {}
        }
    }
    let _ = daemon.shutdown();
    Ok(robots.into_values().collect())
}

fn robot_of(service: &ResolvedService) -> FoundRobot {
    let name = service.fullname.strip_suffix(&format!(".{SERVICE}"));
    let text = |key: &str| service.txt_properties.get_property_val_str(key);
    let mut robot = FoundRobot::read(name.unwrap_or(&service.fullname), text);
    let addresses = service.addresses.iter();
    robot.addresses = addresses.map(|ip| address(ip, service.port)).collect();
    // Those that work everywhere first: IPv4, then IPv6, then IPv6 of one link.
    robot.addresses.sort_by_key(|address| match address {
        SocketAddr::V4(_) => (0, *address),
        SocketAddr::V6(v6) => (1 + u8::from(v6.ip().is_unicast_link_local()), *address),
    });
    robot
}

fn address(ip: &ScopedIp, port: u16) -> SocketAddr {
    let mut address = SocketAddr::new(ip.to_ip_addr(), port);
    if let (SocketAddr::V6(address), ScopedIp::V6(ip)) = (&mut address, ip)
        && ip.addr().is_unicast_link_local()
    {
        address.set_scope_id(ip.scope_id().index);
    }
    address
}
