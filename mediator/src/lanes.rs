//! Which sending socket a host on the network is served by. PURE.
//!
//! The system gives each socket one send buffer. What it cannot send yet stays there: a slow
//! link, or an address that does not answer, fills the buffer, and then the system refuses
//! datagrams for everybody whom that socket serves. So each host in use gets a socket, a
//! *lane*, of its own. When there are more hosts than lanes, the rest share, and avoid lanes
//! that were full lately.

use std::hash::BuildHasher;
use std::time::Instant;

use foldhash::fast::RandomState;

use crate::limits::{HOST_LANES, LANE_FULL, LANE_IDLE};
use crate::router::Place;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: [Lane; HOST_LANES],
    random: RandomState,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The host that has it for itself, and when it was last sent something.
    holder: Option<(Place, Instant)>,
    /// When its buffer was last full.
    full: Option<Instant>,
}

impl Lane {
    fn is_free(&self, now: Instant) -> bool {
        let idle = |(_, used): (Place, Instant)| now.saturating_duration_since(used) >= LANE_IDLE;
        self.holder.is_none_or(idle) && !self.was_full(now)
    }

    fn was_full(&self, now: Instant) -> bool {
        (self.full).is_some_and(|full| now.saturating_duration_since(full) < LANE_FULL)
    }
}

impl Lanes {
    /// The lane for a client, which is the same for all ports of its host.
    pub fn lane_for(&mut self, now: Instant, client: Place) -> usize {
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
    use crate::router::ClientAddress;

    fn client(host: usize, port: u16) -> Place {
        let address = (Ipv4Addr::from(0x0a00_0000 + host as u32), port).into();
        ClientAddress { socket: 0, address }.into()
    }

    #[test]
    fn each_host_has_a_lane_of_its_own_for_all_its_ports() {
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
    fn a_lane_is_given_away_only_when_its_host_was_not_used_for_a_while() {
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
    fn hosts_that_share_avoid_full_lanes() {
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
        // Those that have one keep it.
        let own = lanes.lane_for(now, client(3, 1));
        lanes.note_full(now, own);
        assert_eq!(lanes.lane_for(now, client(3, 1)), own);
    }
}
