//! Who may talk to which device. PURE.
//!
//! The mediator does not read messages, so it decides by device: a laser may
//! be open to the whole laboratory and the motors to one desk. The first rule
//! that matches decides; where none does, all may.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use amber_proto::{Device, DeviceType};
use ipnet::{IpNet, Ipv4Net};

/// All rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access(pub Vec<Rule>);

/// Who may, or may not, talk to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether they may.
    pub action: Action,
    /// Where they are; empty means anywhere.
    pub from: Vec<Network>,
    /// To which devices; empty means all.
    pub devices: Vec<Devices>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// They may.
    Allow,
    /// They may not.
    Deny,
}

/// Some addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Programs on the same machine.
    Loopback,
    /// A network, or one address.
    Net(IpNet),
}

/// Some devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    /// One.
    One(Device),
    /// All of a kind.
    Kind(DeviceType),
    /// All, the mediator itself included.
    All,
}

impl Access {
    /// Whether whoever is at an address may talk to a device.
    pub fn allows(&self, from: IpAddr, device: Device) -> bool {
        // An IPv4 address may come dressed as one of IPv6.
        let from = from.to_canonical();
        let rule = self.0.iter().find(|rule| rule.matches(from, device));
        rule.is_none_or(|rule| rule.action == Action::Allow)
    }
}

impl Rule {
    fn matches(&self, from: IpAddr, device: Device) -> bool {
        (self.from.is_empty() || self.from.iter().any(|network| network.contains(from)))
            && (self.devices.is_empty() || self.devices.iter().any(|some| some.contain(device)))
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        match self {
            Self::Loopback => address.is_loopback(),
            Self::Net(net) => net.contains(&address),
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

/// Why a text names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseNetworkError {
    /// It is something else.
    #[error("'{0}' is no network")]
    Syntax(String),
    /// There is more than the part that names the network.
    #[error("'{written}' is an address within a network")]
    Host {
        /// What was written.
        written: String,
        /// The network.
        network: IpNet,
        /// The address.
        address: IpAddr,
    },
}

impl ParseNetworkError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Syntax(_) => "write \"192.168.1.0/24\", \"192.168.1.7\", \"fd00::/8\" or \
                                \"loopback\""
                .into(),
            Self::Host {
                network, address, ..
            } => format!("write \"{network}\" for all of it, or \"{address}\" for the one"),
        }
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    /// Reads `192.168.1.0/24`, `192.168.1.7`, `fd00::/8` or `loopback`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "loopback" {
            return Ok(Self::Loopback);
        }
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
        Ok(Self::Net(canonical(net)))
    }
}

/// A network of IPv4 addresses dressed as ones of IPv6, as what it is.
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

    /// Reads `hokuyo:0` or `4:0`, `hokuyo:*` for all of a kind, `mediator`, and `*`
    /// for all.
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
            from: from.iter().map(|text| text.parse().unwrap()).collect(),
            devices: devices.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    #[track_caller]
    fn check(access: &Access, from: &str, device: &str, allowed: bool) {
        let device = match device {
            "mediator" => Device::MEDIATOR,
            device => device.parse().unwrap(),
        };
        assert_eq!(access.allows(from.parse().unwrap(), device), allowed);
    }

    #[test]
    fn without_rules_all_may_do_all() {
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
    fn ipv4_in_the_dress_of_ipv6_is_ipv4_on_both_sides() {
        let access = Access(vec![rule(Action::Deny, &["10.0.0.0/8"], &[])]);
        check(&access, "::ffff:10.1.2.3", "dummy:0", false);
        let access = Access(vec![rule(Action::Deny, &["::ffff:10.0.0.0/104"], &[])]);
        check(&access, "10.1.2.3", "dummy:0", false);
        check(&access, "11.1.2.3", "dummy:0", true);
        let access = Access(vec![rule(Action::Deny, &["loopback"], &[])]);
        check(&access, "::ffff:127.0.0.1", "dummy:0", false);
    }

    #[test]
    fn networks_and_devices_are_read_as_they_are_written() {
        for text in [
            "loopback",
            "10.0.0.0/8",
            "192.168.1.7",
            "fd00::/8",
            "::1",
            "0.0.0.0/0",
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for text in ["hokuyo:0", "77:3", "roboclaw:*", "77:*", "mediator", "*"] {
            assert_eq!(text.parse::<Devices>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn wrong_networks_say_what_to_write() {
        for (text, error, hint) in [
            (
                "192.168.1.7/24",
                "'192.168.1.7/24' is an address within a network",
                "write \"192.168.1.0/24\" for all of it, or \"192.168.1.7\" for the one",
            ),
            (
                "192.168.1",
                "'192.168.1' is no network",
                "write \"192.168.1.0/24\", \"192.168.1.7\", \"fd00::/8\" or \"loopback\"",
            ),
        ] {
            let problem = text.parse::<Network>().unwrap_err();
            assert_eq!(
                (problem.to_string(), problem.hint()),
                (error.into(), hint.into())
            );
        }
    }
}
