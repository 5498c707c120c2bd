//! Other brokers under the same load: one client and one service process on one machine. PURE.
//!
//! They were measured once, next to a `floor -b` in C. The values are multiples of that `floor -b`
//! in the same run.

/// The results of a broker, as multiples of `floor -b`.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name and transport.
    pub name: &'static str,
    /// Round-trip time of 64 bytes.
    pub round_trip: f64,
    /// Messages per second with 64 in flight, of 64 bytes, 1 KiB and 6.8 kB; `None` if not
    /// measured.
    pub per_second: [Option<f64>; 3],
    /// CPU time per message of 64 bytes.
    pub cpu: f64,
}

/// `floor -b` in the same run: microseconds, thousands of messages per second for the three sizes,
/// microseconds of CPU.
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

/// All measured brokers.
pub const PEERS: [Peer; 7] = [
    Peer {
        per_second: [Some(77.0 / 360.0), None, None],
        ..peer("mavlink-router (253 B)", 30.0, [0.0; 3], 9.5)
    },
    peer("NATS", 52.0, [456.0, 187.0, 69.0], 1.8),
    peer("Mosquitto", 55.0, [47.0, 36.0, 35.0], 15.4),
    peer("ZeroMQ ipc", 85.0, [309.0, 198.0, 47.0], 2.5),
    peer("ZeroMQ tcp", 99.0, [303.0, 153.0, 38.0], 2.5),
    peer("Zenoh router, batched", 117.0, [40.0, 103.0, 80.0], 4.4),
    peer("original (Erlang)", 149.0, [7.0, 6.6, 4.6], 189.0),
];

/// The fastest broker for a message size, given as an index of [`Peer::per_second`], apart from the
/// named one.
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
