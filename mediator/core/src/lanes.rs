//! Assigns sending sockets to hosts on the network. PURE.
//!
//! The system gives each socket one send buffer. A slow link, or an address that does not
//! answer, fills it, and then the system rejects datagrams for all hosts that use this socket.
//! So each active host gets its own socket, a *lane*. If there are more hosts than lanes, the
//! others share, and avoid lanes that were full recently.

use std::hash::BuildHasher;
use std::time::Instant;

use foldhash::fast::RandomState;

use crate::address::PackedAddress;
use crate::limits::{HOST_LANES, LANE_FULL, LANE_IDLE};

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: [Lane; HOST_LANES],
    random: RandomState,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The host that owns it, and the time of its last use.
    holder: Option<(PackedAddress, Instant)>,
    /// The last time at which its buffer was full.
    full: Option<Instant>,
}

impl Lane {
    fn is_free(&self, now: Instant) -> bool {
        let idle =
            |(_, used): (PackedAddress, Instant)| now.saturating_duration_since(used) >= LANE_IDLE;
        self.holder.is_none_or(idle) && !self.was_full(now)
    }

    fn was_full(&self, now: Instant) -> bool {
        (self.full).is_some_and(|full| now.saturating_duration_since(full) < LANE_FULL)
    }
}

impl Lanes {
    /// The lane for a client; the same for all ports of its host.
    pub fn lane_for(&mut self, now: Instant, client: PackedAddress) -> usize {
        let host = client.without_port();
        let holds = |lane: &Lane| lane.holder.is_some_and(|(holder, _)| holder == host);
        let own = self.lanes.iter().position(holds);
        let own = own.or_else(|| self.lanes.iter().position(|lane| lane.is_free(now)));
        if let Some(lane) = own {
            self.lanes[lane].holder = Some((host, now));
            return lane;
        }
        let first = (self.random.hash_one(host) % HOST_LANES as u64) as usize;
        let mut all = (first..HOST_LANES).chain(0..first);
        all.find(|lane| !self.lanes[*lane].was_full(now))
            .unwrap_or(first)
    }

    /// The buffer of a lane was full.
    pub fn note_full(&mut self, now: Instant, lane: usize) {
        self.lanes[lane].full = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::address::ClientAddress;

    fn client(host: usize, port: u16) -> PackedAddress {
        let address = (Ipv4Addr::from(0x0a00_0000 + host as u32), port).into();
        ClientAddress { socket: 0, address }.into()
    }

    #[test]
    fn each_host_has_its_own_lane_for_all_ports() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        let mut seen = BTreeSet::new();
        for host in 0..HOST_LANES {
            let lane = lanes.lane_for(now, client(host, 1));
            assert!(seen.insert(lane), "host {host}");
        }
        for host in 0..HOST_LANES {
            let lane = lanes.lane_for(now, client(host, 2));
            assert_eq!(lane, lanes.lane_for(now, client(host, 1)));
        }
    }

    #[test]
    fn only_an_idle_lane_is_reassigned() {
        let (mut lanes, start) = (Lanes::default(), Instant::now());
        for host in 0..HOST_LANES {
            lanes.lane_for(start, client(host, 1));
        }
        let kept = lanes.lane_for(start, client(0, 1));
        let late = start + LANE_IDLE - Duration::from_millis(1);
        let shared = lanes.lane_for(late, client(99, 1));
        assert_eq!(lanes.lane_for(late, client(0, 1)), kept);
        // All others are idle then.
        let now = start + LANE_IDLE;
        assert_eq!(lanes.lane_for(now, client(0, 1)), kept);
        let own = lanes.lane_for(now, client(99, 1));
        assert_ne!(own, kept);
        assert_eq!(lanes.lane_for(now, client(99, 1)), own);
        assert!(shared < HOST_LANES);
    }

    #[test]
    fn hosts_that_share_lanes_avoid_full_ones() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        for host in 0..HOST_LANES {
            lanes.lane_for(now, client(host, 1));
        }
        for lane in 0..HOST_LANES - 1 {
            lanes.note_full(now, lane);
        }
        for host in 100..200 {
            assert_eq!(lanes.lane_for(now, client(host, 1)), HOST_LANES - 1);
        }
        // Hosts with their own lane keep it.
        let own = lanes.lane_for(now, client(3, 1));
        lanes.note_full(now, own);
        assert_eq!(lanes.lane_for(now, client(3, 1)), own);
    }
}
