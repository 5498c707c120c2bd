//! Bounds what drivers send to clients that have not proved their address. PURE.
//!
//! An old client cannot prove its address: it subscribes once, and may be silent for hours. But a
//! SUBSCRIBE with a forged source looks the same, and would make a driver flood a third party.
//! So the unproved clients of one host together get
//!
//! | where the host is                        | bytes per second | until                         |
//! |------------------------------------------|------------------|-------------------------------|
//! | this machine                             | any number       | they leave                    |
//! | in a network of this machine             | `near`           | they leave                    |
//! | elsewhere, so that a router leads there  | `distant`        | silent for [`STREAM_SILENCE`] |
//!
//! and in addition [`STREAM_BURST_BYTES`] at once. Each datagram from the host adds
//! [`STREAM_REPLY_BYTES`], so requests are answered at any rate.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::time::Instant;

use foldhash::fast::RandomState;
use ipnet::IpNet;

use super::client::Client;
use crate::address::Host;
use crate::hash::Set;
use crate::limits::{
    STREAM_BURST_BYTES, STREAM_BYTES_PER_SECOND, STREAM_BYTES_PER_SECOND_DISTANT, STREAM_HOSTS,
    STREAM_REPLY_BYTES, STREAM_SILENCE,
};
use crate::links::Interface;
use crate::moment::Moment;
use crate::rate::Digest;

/// Bytes per second for the unproved clients of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRates {
    /// In a network of this machine.
    pub near: u32,
    /// Elsewhere.
    pub distant: u32,
}

impl Default for StreamRates {
    fn default() -> Self {
        Self {
            near: STREAM_BYTES_PER_SECOND,
            distant: STREAM_BYTES_PER_SECOND_DISTANT,
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) rates: StreamRates,
    own: Set<IpAddr>,
    networks: Vec<IpNet>,
    /// Empty until the first use; then [`STREAM_HOSTS`], shared by all hosts. The hash has a
    /// secret key, so nobody can choose a host with which to share.
    allowances: Vec<Allowance>,
    random: RandomState,
    news: Digest,
}

/// What a host may be sent now.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    bytes: u32,
    /// When it last grew; never if it is still unused.
    grown: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    ThisMachine,
    Near,
    Distant,
}

impl Streams {
    /// Sets the addresses and networks of this machine.
    pub(super) fn set_interfaces(&mut self, interfaces: &[Interface]) {
        self.own = interfaces.iter().map(|one| one.address).collect();
        self.networks = interfaces.iter().map(|one| one.network).collect();
    }

    /// A datagram has come from an unproved client of a host.
    pub(super) fn heard(&mut self, host: Host) {
        if self.allowances.is_empty() {
            return;
        }
        let index = self.index(host);
        let allowance = &mut self.allowances[index];
        if allowance.grown.is_some() {
            let more = allowance.bytes + STREAM_REPLY_BYTES;
            allowance.bytes = more.min(STREAM_BURST_BYTES);
        }
    }

    /// Whether an unproved client may be sent this many bytes of a driver now; if so, they are
    /// charged.
    pub(super) fn pass(&mut self, now: Moment, client: &Client, bytes: usize) -> bool {
        let rate = match self.distance(client.address().ip()) {
            Distance::ThisMachine => return true,
            Distance::Near => self.rates.near,
            Distance::Distant if now.duration_since(client.heard) >= STREAM_SILENCE => {
                return false;
            }
            Distance::Distant => self.rates.distant,
        };
        if self.allowances.is_empty() {
            self.allowances = vec![Allowance::default(); STREAM_HOSTS];
        }
        let index = self.index(client.address.host());
        self.allowances[index].take(now, rate, bytes)
    }

    /// A client was sent less than a driver wanted. If it is time to log it: the number of
    /// datagrams since the last time.
    pub(super) fn cut(&mut self, now: Instant) -> Option<u64> {
        self.news.happened(now)
    }

    fn distance(&self, ip: IpAddr) -> Distance {
        if self.own.contains(&ip) {
            Distance::ThisMachine
        } else if self.networks.is_empty() || self.networks.iter().any(|net| net.contains(&ip)) {
            // A system that does not list its networks may be on any.
            Distance::Near
        } else {
            Distance::Distant
        }
    }

    fn index(&self, host: Host) -> usize {
        (self.random.hash_one(host) % STREAM_HOSTS as u64) as usize
    }
}

impl Allowance {
    fn take(&mut self, now: Moment, rate: u32, bytes: usize) -> bool {
        let grown = match self.grown {
            None => u128::from(STREAM_BURST_BYTES),
            Some(grown) => now.duration_since(grown).as_micros() * u128::from(rate) / 1_000_000,
        };
        if grown > 0 {
            self.grown = Some(now);
            let all = grown.saturating_add(self.bytes.into());
            self.bytes = all.min(STREAM_BURST_BYTES.into()) as u32;
        }
        let left = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.bytes.checked_sub(bytes));
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use amber_proto::ClientId;

    use super::*;
    use crate::address::ClientAddress;
    use crate::moment::Epoch;

    fn streams() -> Streams {
        let mut streams = Streams::default();
        let interface = |address: &str, network: &str| Interface {
            address: address.parse().unwrap(),
            network: network.parse().unwrap(),
            resolves: true,
        };
        streams.set_interfaces(&[
            interface("127.0.0.1", "127.0.0.0/8"),
            interface("10.0.0.1", "10.0.0.0/24"),
            interface("fe80::1", "fe80::/64"),
        ]);
        streams
    }

    fn client(now: Moment, address: &str) -> Client {
        let address: SocketAddr = address.parse().unwrap();
        let from = ClientAddress { socket: 0, address };
        Client::new(now, ClientId(1), from.into())
    }

    /// The bytes that pass within some time, of 1000 a millisecond.
    fn passed(streams: &mut Streams, address: &str, time: Duration) -> u64 {
        let (epoch, start) = (Epoch::at(Instant::now()), Instant::now());
        let client = client(epoch.moment(start), address);
        let passes = |ms: &u64| {
            let now = epoch.moment(start + Duration::from_millis(*ms));
            streams.pass(now, &client, 1000)
        };
        1000 * (0..time.as_millis() as u64).filter(passes).count() as u64
    }

    #[test]
    fn unproved_hosts_get_a_rate_that_depends_on_their_network() {
        const TIME: Duration = Duration::from_secs(20);
        const ALL: u64 = 20_000_000;
        let burst = u64::from(STREAM_BURST_BYTES);
        let rates = StreamRates {
            near: 100_000,
            distant: 5_000,
        };
        for (address, most) in [
            ("10.0.0.1:1", ALL),
            ("10.0.0.2:1", burst + 20 * 100_000),
            ("[fe80::2%3]:1", burst + 20 * 100_000),
            ("10.0.1.2:1", burst + 20 * 5_000),
            ("[fd00::2]:1", burst + 20 * 5_000),
        ] {
            let mut streams = Streams { rates, ..streams() };
            let bytes = passed(&mut streams, address, TIME);
            assert!((most - 4000..=most).contains(&bytes), "{address}: {bytes}");
        }
    }

    #[test]
    fn all_ports_of_a_host_share_its_rate_and_other_hosts_have_their_own() {
        let mut streams = streams();
        let (one, other) = ("10.0.1.2:1", "10.0.1.3:1");
        let bytes = passed(&mut streams, one, Duration::from_secs(1));
        assert!(bytes > 0);
        let rest = passed(&mut streams, "10.0.1.2:2", Duration::from_secs(1));
        assert!(rest < bytes / 10, "{rest}");
        // They share only if the hash says so.
        if streams.index(client_host(one)) != streams.index(client_host(other)) {
            assert_eq!(passed(&mut streams, other, Duration::from_secs(1)), bytes);
        }
    }

    fn client_host(address: &str) -> Host {
        let now = Epoch::at(Instant::now()).moment(Instant::now());
        client(now, address).address.host()
    }

    #[test]
    fn each_request_may_be_answered() {
        let (mut streams, start) = (streams(), Instant::now());
        let now = Epoch::at(start).moment(start);
        let client = client(now, "10.0.1.2:1");
        let reply = STREAM_REPLY_BYTES as usize;
        for _ in 0..1000 {
            streams.heard(client.address.host());
            assert!(streams.pass(now, &client, reply));
        }
        while streams.pass(now, &client, reply) {}
        // But the allowance of many datagrams is bounded.
        for _ in 0..1000 {
            streams.heard(client.address.host());
        }
        let passed = (0..1000).filter(|_| streams.pass(now, &client, reply));
        assert_eq!(
            passed.count() as u32,
            STREAM_BURST_BYTES / STREAM_REPLY_BYTES
        );
    }

    #[test]
    fn a_distant_client_must_give_a_sign_of_life() {
        let (mut streams, start) = (streams(), Instant::now());
        let epoch = Epoch::at(start);
        let (near, distant) = ("10.0.0.2:1", "10.0.1.2:1");
        for (address, is_kept) in [(near, true), (distant, false)] {
            let mut client = client(epoch.moment(start), address);
            let late = epoch.moment(start + STREAM_SILENCE);
            assert!(streams.pass(epoch.moment(start), &client, 1000));
            assert_eq!(streams.pass(late, &client, 1000), is_kept, "{address}");
            client.hear(late, 10);
            assert!(streams.pass(late, &client, 1000), "{address}");
        }
    }

    #[test]
    fn a_machine_without_known_networks_takes_everyone_for_a_neighbour() {
        let mut streams = Streams::default();
        let bytes = passed(&mut streams, "10.0.1.2:1", Duration::from_secs(3));
        assert!(bytes > 2 * u64::from(STREAM_BYTES_PER_SECOND), "{bytes}");
    }
}
