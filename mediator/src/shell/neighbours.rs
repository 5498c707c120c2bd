//! Asks the system for the hosts on its networks. IO.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use amber_core::limits::{NEIGHBOURS_AGE, NEWCOMERS_AGE};
use amber_core::links::{Interface, Links, Whereabouts};

/// The known facts about the networks, kept up to date.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    links: Links,
    asked: Option<Instant>,
}

impl Neighbours {
    /// The location of an address, as far as known.
    pub(super) fn find(&mut self, now: Instant, address: SocketAddr) -> Whereabouts {
        self.refresh(now, NEIGHBOURS_AGE);
        let found = self.links.find(address);
        if found != Whereabouts::Unresolved || !self.refresh(now, NEWCOMERS_AGE) {
            return found;
        }
        self.links.find(address)
    }

    /// Asks the system again if the information is older than `age`.
    fn refresh(&mut self, now: Instant, age: Duration) -> bool {
        let recent = |asked: Instant| now.saturating_duration_since(asked) < age;
        let is_old = !self.asked.is_some_and(recent);
        if is_old {
            self.asked = Some(now);
            self.links = look();
        }
        is_old
    }
}

/// All interfaces with their addresses. Empty if the system does not report them.
pub(super) fn interfaces() -> Vec<Interface> {
    use nix::net::if_::InterfaceFlags as Flags;

    use super::udp::to_std;

    let direct = Flags::IFF_LOOPBACK | Flags::IFF_NOARP | Flags::IFF_POINTOPOINT;
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    all.filter_map(|interface| {
        let address = to_std(&interface.address?)?.ip();
        let mask = to_std(&interface.netmask?)?.ip();
        Some(Interface {
            address,
            network: IpNet::with_netmask(address, mask).ok()?.trunc(),
            resolves: !interface.flags.intersects(direct),
        })
    })
    .collect()
}

/// Without the list of hosts, no address counts as unresolved.
fn look() -> Links {
    match hosts() {
        Ok(hosts) => Links::new(interfaces(), hosts),
        Err(error) => {
            tracing::debug!(%error, "the system does not list its neighbours");
            let unresolved = |interface| Interface {
                resolves: false,
                ..interface
            };
            Links::new(interfaces().into_iter().map(unresolved), [])
        }
    }
}

#[cfg(target_os = "linux")]
fn hosts() -> nix::Result<Vec<IpAddr>> {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
    };

    use amber_core::links::{DUMP_NEIGHBOURS, Dump, resolved};

    /// The longest message of the system.
    const PART: usize = 32 * 1024;

    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let protocol = SockProtocol::NetlinkRoute;
    let netlink = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    send(netlink.as_raw_fd(), &DUMP_NEIGHBOURS, MsgFlags::empty())?;
    let (mut hosts, mut part) = (Vec::new(), vec![0; PART]);
    loop {
        // The system answers during the call, so this never waits.
        let length = recv(netlink.as_raw_fd(), &mut part, MsgFlags::empty())?;
        if length == 0 || resolved(&part[..length], |ip| hosts.push(ip)) == Dump::Over {
            return Ok(hosts);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn hosts() -> nix::Result<Vec<IpAddr>> {
    Err(nix::errno::Errno::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_on_this_machine() {
        let mut neighbours = Neighbours::default();
        let now = Instant::now();
        let own = interfaces();
        assert!(!own.is_empty());
        for interface in own {
            let found = neighbours.find(now, (interface.address, 1).into());
            assert_eq!(found, Whereabouts::ThisMachine, "{interface:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_lists_its_neighbours() {
        hosts().unwrap();
    }
}
