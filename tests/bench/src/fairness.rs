//! One client sends requests while another floods the same driver. IO.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::load::{self, Asker, Flood, Seen};
use crate::samples::Samples;

/// The loads: a name, the flood, and the driver's time per request in microseconds; `bench-echo`
/// needs almost none.
pub const FLOODED: [(&str, Flood, Option<u32>); 3] = [
    ("flooded, window 64", Flood::Window(64), None),
    ("flooded, 20 000 a second", Flood::PerSecond(20_000.0), None),
    (
        "flooded, 5 000 a second, 1 ms each",
        Flood::PerSecond(5_000.0),
        Some(1000),
    ),
];

/// The results of a client with one request in flight, alone and next to a client that floods the
/// same driver.
#[derive(Debug)]
pub struct Bystander {
    /// Without the flood.
    pub alone: Asked,
    /// With the flood.
    pub flooded: Asked,
    /// The results of the flood.
    pub flood: Seen,
}

/// The results of requests.
#[derive(Debug, Default)]
pub struct Asked {
    /// The number of requests.
    pub sent: u64,
    /// The latencies of those answered within [`load::PATIENCE`].
    pub times: Samples,
}

/// Measures both, one after the other.
///
/// # Errors
/// The candidate does not answer at all.
pub fn bystander(
    to: SocketAddr,
    pid: u32,
    flood: Flood,
    duration: Duration,
) -> anyhow::Result<Bystander> {
    let mut asker = Asker::new(to, 64)?;
    asker.warm_up()?;
    let alone = ask_for(&mut asker, duration)?;
    // The flood starts before the first measured request and ends after the last.
    let flooding = thread::spawn(move || load::flood(to, pid, 1, flood, 64, 2 * duration));
    ask_for(&mut asker, duration / 2)?;
    let flooded = ask_for(&mut asker, duration)?;
    let flood = flooding
        .join()
        .map_err(|_| anyhow!("the flood panicked"))??;
    Ok(Bystander {
        alone,
        flooded,
        flood,
    })
}

fn ask_for(asker: &mut Asker, duration: Duration) -> anyhow::Result<Asked> {
    let start = Instant::now();
    let mut asked = Asked::default();
    while start.elapsed() < duration {
        asked.sent += 1;
        if let Some(time) = asker.ask()? {
            asked.times.add(time);
        }
    }
    Ok(asked)
}

impl Bystander {
    /// Reports the quantities.
    pub fn quantities(mut self, mut add: impl FnMut(&str, f64)) {
        let (alone, flooded) = (&mut self.alone, &mut self.flooded);
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let alone = alone.times.quantile_us(part);
            let flooded = flooded.times.quantile_us(part);
            add(&format!("alone_{name}_us"), alone);
            add(&format!("{name}_us"), flooded);
            add(&format!("times_{name}_alone"), flooded / alone);
        }
        let lost = |asked: &Asked| asked.sent.saturating_sub(asked.times.len() as u64);
        add("lost", (lost(flooded) + lost(alone)) as f64);
        add("flood_per_s", self.flood.per_second());
        add("flood_lost_percent", self.flood.lost_percent());
    }
}
