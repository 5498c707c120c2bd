//! One client waits for its answers while another floods the same driver. IO.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;

use crate::load::{self, Flood, Seen};

/// The loads: a name, the flood, and what the driver takes for each request in
/// microseconds; `bench-echo` takes next to nothing.
pub const FLOODED: [(&str, Flood, Option<u32>); 3] = [
    ("flooded, window 64", Flood::Window(64), None),
    ("flooded, 20 000 a second", Flood::PerSecond(20_000.0), None),
    (
        "flooded, 5 000 a second, 1 ms each",
        Flood::PerSecond(5_000.0),
        Some(1000),
    ),
];

/// What a client sees that always has one request open, alone and beside a
/// client that floods the same driver.
#[derive(Debug)]
pub struct Bystander {
    /// Without the flood.
    pub alone: Seen,
    /// Beside it.
    pub flooded: Seen,
    /// What came of the flood.
    pub flood: Seen,
}

/// Both, one after the other.
///
/// # Errors
/// The candidate does not answer at all.
pub fn bystander(
    to: SocketAddr,
    pid: u32,
    flood: Flood,
    duration: Duration,
) -> anyhow::Result<Bystander> {
    let alone = load::round_trips(to, pid, 64, duration)?;
    // The flood begins before the first request that counts, and ends after the last.
    let flooding = thread::spawn(move || load::flood(to, pid, 1, flood, 64, 2 * duration));
    thread::sleep(duration / 2);
    let flooded = load::round_trips(to, pid, 64, duration)?;
    let flood = flooding
        .join()
        .map_err(|_| anyhow!("the flood panicked"))??;
    Ok(Bystander {
        alone,
        flooded,
        flood,
    })
}

impl Bystander {
    /// What is reported of it.
    pub fn quantities(mut self, mut add: impl FnMut(&str, f64)) {
        let (alone, flooded) = (&mut self.alone, &mut self.flooded);
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let alone = alone.times.quantile_us(part);
            let flooded = flooded.times.quantile_us(part);
            add(&format!("alone_{name}_us"), alone);
            add(&format!("{name}_us"), flooded);
            add(&format!("times_{name}_alone"), flooded / alone);
        }
        add("lost_percent", flooded.lost_percent());
        add("flood_per_s", self.flood.per_second());
        add("flood_lost_percent", self.flood.lost_percent());
    }
}
