//! Other brokers under the same load: one client, one service process, all on
//! one machine. PURE.
//!
//! They were measured once, side by side with a `floor -b` in C, and are kept as
//! multiples of what that had in the same run.

/// What one of them had, as multiples of `floor -b`.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Which, and how it was connected.
    pub name: &'static str,
    /// Round trip of 64 bytes.
    pub round_trip: f64,
    /// Messages in a second with 64 in flight, of 64 bytes, 1 KiB and 6.8 kB;
    /// `None` where it was not measured.
    pub per_second: [Option<f64>; 3],
    /// CPU time for each of those of 64 bytes.
    pub cpu: f64,
}

/// `floor -b` in the same run: microseconds, thousands of messages a second for
/// the three sizes, microseconds of CPU.
const FLOOR: (f64, [f64; 3], f64) = (16.9, [360.0, 291.0, 115.0], 2.65);

const fn peer(name: &'static str, rtt_us: f64, thousands: [f64; 3], cpu_us: f64) -> Peer {
    let (floor_us, floor, floor_cpu_us) = FLOOR;
    Peer {
        name,
        round_trip: rtt_us / floor_us,
        per_second: [
            Some(thousands[0] / floor[0]),
            Some(thousands[1] / floor[1]),
            Some(thousands[2] / floor[2]),
        ],
        cpu: cpu_us / floor_cpu_us,
    }
}

/// All that were measured.
pub const PEERS: [Peer; 7] = [
    Peer {
        per_second: [Some(77.0 / 360.0), None, None],
        ..peer("mavlink-router (UDP, 253 B)", 30.0, [0.0; 3], 9.5)
    },
    peer("NATS", 52.0, [456.0, 187.0, 69.0], 1.8),
    peer("Mosquitto", 55.0, [47.0, 36.0, 35.0], 15.4),
    peer("ZeroMQ ipc", 85.0, [309.0, 198.0, 47.0], 2.5),
    peer("ZeroMQ tcp", 99.0, [303.0, 153.0, 38.0], 2.5),
    peer("Zenoh router, batched", 117.0, [40.0, 103.0, 80.0], 4.4),
    peer("original (Erlang)", 149.0, [7.0, 6.6, 4.6], 189.0),
];

/// The fastest with messages of a size, as an index of [`Peer::per_second`],
/// without those of a name.
pub fn fastest(size: usize, but: Option<&str>) -> Option<(&'static str, f64)> {
    let others = PEERS.iter().filter(|peer| Some(peer.name) != but);
    let speeds = others.filter_map(|peer| Some((peer.name, peer.per_second[size]?)));
    speeds.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nats_is_the_fastest_with_short_messages_only() {
        let names = |but| [0, 1, 2].map(|size| fastest(size, but).map(|(name, _)| name));
        let zenoh = Some("Zenoh router, batched");
        let zeromq = Some("ZeroMQ ipc");
        assert_eq!(names(None), [Some("NATS"), zeromq, zenoh]);
        assert_eq!(names(Some("NATS")), [zeromq, zeromq, zenoh]);
    }
}
