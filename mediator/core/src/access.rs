//! Access rules: which addresses may use which devices. PURE.
//!
//! The mediator does not read messages, so it decides by device: a laser may be open to the
//! whole laboratory, and the motors to one desk. The first matching rule decides; if none
//! matches, access is allowed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use amber_proto::{Device, DeviceType};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// All rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access(pub Vec<Rule>);

/// Allows or denies some addresses access to some devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether it allows or denies.
    pub action: Action,
    /// The addresses; empty for all.
    pub from: Vec<Network>,
    /// The devices; empty for all.
    pub devices: Vec<Devices>,
}

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Access is allowed.
    Allow,
    /// Access is denied.
    Deny,
}

/// A set of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// Programs on the same machine.
    Loopback,
    /// A network, or one address.
    Net(IpNet),
    /// Link-local addresses. The same address may belong to another host on each link.
    Link {
        /// The addresses.
        net: Ipv6Net,
        /// The interface of the link, by name or number.
        interface: String,
        /// The number of the interface.
        index: u32,
    },
}

/// A set of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// One device.
    One(Device),
    /// All devices of a type.
    Kind(DeviceType),
    /// All devices, including the mediator itself.
    All,
}

impl Access {
    /// Whether an address has access to a device.
    pub fn allows(&self, from: SocketAddr, device: Device) -> bool {
        let rule = self.0.iter().find(|rule| rule.matches(from, device));
        rule.is_none_or(|rule| rule.action == Action::Allow)
    }
}

impl Rule {
    fn matches(&self, from: SocketAddr, device: Device) -> bool {
        (self.from.is_empty() || self.from.iter().any(|network| network.contains(from)))
            && (self.devices.is_empty() || self.devices.iter().any(|some| some.contain(device)))
    }
}

impl Network {
    fn contains(&self, address: SocketAddr) -> bool {
        match (self, address) {
            (Self::Loopback, _) => address.ip().is_loopback(),
            (Self::Net(net), _) => net.contains(&address.ip()),
            (Self::Link { net, index, .. }, SocketAddr::V6(address)) => {
                net.contains(address.ip()) && address.scope_id() == *index
            }
            (Self::Link { .. }, SocketAddr::V4(_)) => false,
        }
    }
}

impl Devices {
    fn contain(self, device: Device) -> bool {
        match self {
            Self::One(one) => one == device,
            Self::Kind(kind) => kind == device.device_type,
            Self::All => true,
        }
    }
}

/// The reason why a text is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// The syntax is invalid.
    #[error("'{0}' is not a network")]
    Syntax(String),
    /// The text names a host in a network.
    #[error("'{written}' is an address within a network")]
    Host {
        /// The text.
        written: String,
        network: IpNet,
        address: IpAddr,
    },
    /// A link-local address needs an interface.
    #[error("'{0}' is a link-local address, which may belong to other hosts on other links")]
    NoInterface(String),
    /// An address with an interface that is not link-local.
    #[error("'{0}' names an interface, but is not a link-local address")]
    NeedlessInterface(String),
    /// This machine has no such interface.
    #[error("network interface '{0}' does not exist")]
    UnknownInterface(String),
}

impl ParseNetworkError {
    /// The correction to suggest.
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax(_) => "write \"192.168.1.0/24\", \"192.168.1.7\", \"fd00::/8\" or \
                                \"loopback\""
                .into(),
            Self::NoInterface(text) => format!(
                "write \"{text}%eth0\" with the interface of the link; \"fe80::/10\" stands for \
                 all link-local addresses"
            ),
            Self::NeedlessInterface(text) => {
                let address = text.split('%').next().unwrap_or_default();
                format!("write \"{address}\"")
            }
            Self::UnknownInterface(_) => "`ip link` shows the interfaces of this machine".into(),
            Self::Host {
                network, address, ..
            } => format!("write \"{network}\" for the network, or \"{address}\" for the address"),
        }
    }
}

impl Network {
    /// Reads `192.168.1.0/24`, `192.168.1.7`, `fd00::/8`, `fe80::1%eth0` or `loopback`.
    /// `index_of` finds the number of an interface by its name.
    ///
    /// # Errors
    /// The text is invalid, or there is no such interface.
    pub fn parse(
        text: &str,
        index_of: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, ParseNetworkError> {
        if text == "loopback" {
            return Ok(Self::Loopback);
        }
        let Some((address, interface)) = text.split_once('%') else {
            let net = parse_net(text)?;
            return match net {
                IpNet::V6(net) if is_on_link(net) && net != LINK_LOCAL => {
                    Err(ParseNetworkError::NoInterface(text.into()))
                }
                net => Ok(Self::Net(net)),
            };
        };
        let IpNet::V6(net) = parse_net(address)? else {
            return Err(ParseNetworkError::NeedlessInterface(text.into()));
        };
        if !is_on_link(net) {
            return Err(ParseNetworkError::NeedlessInterface(text.into()));
        }
        let number = interface.parse().ok();
        let index = number
            .or_else(|| index_of(interface))
            .ok_or_else(|| ParseNetworkError::UnknownInterface(interface.into()))?;
        Ok(Self::Link {
            net,
            interface: interface.into(),
            index,
        })
    }
}

/// All link-local addresses.
const LINK_LOCAL: Ipv6Net =
    Ipv6Net::new_assert(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10);

fn is_on_link(net: Ipv6Net) -> bool {
    LINK_LOCAL.contains(&net)
}

fn parse_net(text: &str) -> Result<IpNet, ParseNetworkError> {
    let net = text
        .parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| ParseNetworkError::Syntax(text.into()))?;
    if net.addr() != net.network() {
        return Err(ParseNetworkError::Host {
            written: text.into(),
            network: net.trunc(),
            address: net.addr(),
        });
    }
    Ok(canonical(net))
}

/// IPv4 networks in IPv6 notation become IPv4 networks.
fn canonical(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let v4 = v6.addr().to_ipv4_mapped();
    let prefix = v6.prefix_len().checked_sub(96);
    match (v4, prefix) {
        (Some(v4), Some(prefix)) => Ipv4Net::new(v4, prefix).map_or(net, IpNet::V4),
        _ => net,
    }
}

impl FromStr for Devices {
    type Err = amber_proto::ids::ParseDeviceError;

    /// Parses `hokuyo:0` or `4:0`, `hokuyo:*` for all of a type, `mediator`, and `*` for all.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_suffix(":*") {
            _ if text == "*" => Ok(Self::All),
            _ if text == "mediator" => Ok(Self::One(Device::MEDIATOR)),
            Some(kind) => Ok(Self::Kind(kind.parse()?)),
            None => Ok(Self::One(text.parse()?)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("loopback"),
            Self::Net(net) if net.prefix_len() == net.max_prefix_len() => net.addr().fmt(f),
            Self::Net(net) => net.fmt(f),
            Self::Link { net, interface, .. } if net.prefix_len() == net.max_prefix_len() => {
                write!(f, "{}%{interface}", net.addr())
            }
            Self::Link { net, interface, .. } => write!(f, "{net}%{interface}"),
        }
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(Device::MEDIATOR) => f.write_str("mediator"),
            Self::One(device) => device.fmt(f),
            Self::Kind(kind) => write!(f, "{kind}:*"),
            Self::All => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(action: Action, from: &[&str], devices: &[&str]) -> Rule {
        Rule {
            action,
            from: from.iter().map(|text| network(text).unwrap()).collect(),
            devices: devices.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    fn network(text: &str) -> Result<Network, ParseNetworkError> {
        Network::parse(text, |name| (name == "eth0").then_some(2))
    }

    #[track_caller]
    fn check(access: &Access, from: &str, device: &str, allowed: bool) {
        let device = match device {
            "mediator" => Device::MEDIATOR,
            device => device.parse().unwrap(),
        };
        // With a port, unless there is one.
        let from = from
            .parse()
            .unwrap_or_else(|_| (from.parse::<IpAddr>().unwrap(), 4000).into());
        assert_eq!(access.allows(from, device), allowed);
    }

    #[test]
    fn without_rules_everything_is_allowed() {
        check(&Access::default(), "8.8.8.8", "roboclaw:0", true);
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let access = Access(vec![
            rule(Action::Allow, &["loopback", "192.168.1.7"], &[]),
            rule(
                Action::Allow,
                &["192.168.1.0/24", "fd00::/8"],
                &["hokuyo:*", "mediator"],
            ),
            rule(Action::Deny, &[], &["roboclaw:0"]),
            rule(Action::Deny, &["192.168.1.66"], &[]),
            rule(Action::Allow, &["192.168.0.0/16"], &["*"]),
            rule(Action::Deny, &[], &[]),
        ]);
        for (from, device, allowed) in [
            ("127.0.0.1", "roboclaw:0", true),
            ("127.9.9.9", "roboclaw:0", true),
            ("::1", "roboclaw:0", true),
            ("192.168.1.7", "roboclaw:0", true),
            ("192.168.1.8", "roboclaw:0", false),
            ("192.168.1.8", "hokuyo:3", true),
            ("192.168.1.66", "hokuyo:3", true),
            ("192.168.1.66", "dummy:0", false),
            ("192.168.2.1", "roboclaw:1", true),
            ("fd12::1", "hokuyo:0", true),
            ("fd12::1", "mediator", true),
            ("fd12::1", "dummy:0", false),
            ("8.8.8.8", "hokuyo:0", false),
            ("8.8.8.8", "mediator", false),
        ] {
            check(&access, from, device, allowed);
        }
    }

    #[test]
    fn a_rule_may_contain_ipv4_in_ipv6_notation() {
        let access = Access(vec![rule(Action::Deny, &["::ffff:10.0.0.0/104"], &[])]);
        check(&access, "10.1.2.3", "dummy:0", false);
        check(&access, "11.1.2.3", "dummy:0", true);
    }

    #[test]
    fn ipv4_mapped_addresses_do_not_match_rules() {
        let access = Access(vec![
            rule(Action::Allow, &["loopback", "10.0.0.0/8"], &[]),
            rule(Action::Deny, &[], &[]),
        ]);
        check(&access, "::ffff:127.0.0.1", "dummy:0", false);
        check(&access, "::ffff:10.1.2.3", "dummy:0", false);
    }

    #[test]
    fn a_link_local_address_counts_on_its_own_link_only() {
        for (rule_for, from, allowed) in [
            ("fe80::1%eth0", "[fe80::1%2]:9", true),
            ("fe80::1%eth0", "[fe80::1%3]:9", false),
            ("fe80::1%2", "[fe80::1%2]:9", true),
            ("fe80::/64%eth0", "[fe80::7%2]:9", true),
            ("fe80::/64%eth0", "[fe80::7%3]:9", false),
            ("fe80::/10", "[fe80::7%3]:9", true),
        ] {
            let access = Access(vec![
                rule(Action::Allow, &[rule_for], &[]),
                rule(Action::Deny, &[], &[]),
            ]);
            check(&access, from, "dummy:0", allowed);
        }
    }

    #[test]
    fn networks_and_devices_survive_parsing_and_printing() {
        for text in [
            "loopback",
            "10.0.0.0/8",
            "192.168.1.7",
            "fd00::/8",
            "::1",
            "0.0.0.0/0",
            "fe80::/10",
            "fe80::1%eth0",
            "fe80::/64%7",
        ] {
            assert_eq!(network(text).unwrap().to_string(), text);
        }
        for text in ["hokuyo:0", "77:3", "roboclaw:*", "77:*", "mediator", "*"] {
            assert_eq!(text.parse::<Devices>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_networks_give_a_hint() {
        for (text, error, hint) in [
            (
                "192.168.1.7/24",
                "'192.168.1.7/24' is an address within a network",
                "write \"192.168.1.0/24\" for the network, or \"192.168.1.7\" for the address",
            ),
            (
                "fe80::1",
                "'fe80::1' is a link-local address, which may belong to other hosts on other links",
                "write \"fe80::1%eth0\" with the interface of the link; \"fe80::/10\" stands for \
                 all link-local addresses",
            ),
            (
                "fe80::1%eth9",
                "network interface 'eth9' does not exist",
                "`ip link` shows the interfaces of this machine",
            ),
            (
                "fd00::1%eth0",
                "'fd00::1%eth0' names an interface, but is not a link-local address",
                "write \"fd00::1\"",
            ),
            (
                "192.168.1",
                "'192.168.1' is not a network",
                "write \"192.168.1.0/24\", \"192.168.1.7\", \"fd00::/8\" or \"loopback\"",
            ),
        ] {
            let problem = network(text).unwrap_err();
            assert_eq!(
                (problem.to_string(), problem.hint()),
                (error.into(), hint.into())
            );
        }
    }
}
