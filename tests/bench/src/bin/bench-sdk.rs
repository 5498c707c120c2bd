//! The cost of the SDKs: a client and a driver written with them. IO.
//!
//! - `bench-sdk scanner HERTZ`: a driver that publishes laser scans,
//! - `bench-sdk ask ADDRESS SECONDS`: sends status requests to a dummy repeatedly, and prints the
//!   median latency in microseconds,
//! - `bench-sdk listen ADDRESS SECONDS`: subscribes to the scans, and prints their number and the
//!   CPU time of this process per scan, in microseconds.
#![allow(clippy::print_stdout)] // What a program is for.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_bench::process::CpuMeter;
use amber_bench::samples::Samples;
use amber_client::Client;
use amber_driver::{Driver, Request};
use amber_proto::hokuyo::{DriverMsg, Scan};

/// The number of points in a scan of the URG-04LX.
const POINTS: u32 = 682;

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    match words[..] {
        ["scanner", hertz] => {
            let period = Duration::from_secs(1).div_f64(hertz.parse()?);
            return Ok(amber_driver::serve(Scanner { period }));
        }
        ["ask", address, seconds] => {
            let duration = Duration::from_secs_f64(seconds.parse()?);
            let mut times = runtime()?.block_on(ask(address, duration))?;
            println!("{}", times.quantile_us(0.5));
        }
        ["listen", address, seconds] => {
            let duration = Duration::from_secs_f64(seconds.parse()?);
            let (scans, cpu) = runtime()?.block_on(listen(address, duration))?;
            println!(
                "{scans} {}",
                cpu.as_nanos() as f64 / 1e3 / scans.max(1) as f64
            );
        }
        _ => anyhow::bail!("usage: bench-sdk scanner HERTZ | ask|listen ADDRESS SECONDS"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(address: &str, duration: Duration) -> anyhow::Result<Samples> {
    let client = Client::connect(address).await?;
    let dummy = client.dummy(0);
    dummy.status().await?;
    let mut times = Samples::default();
    let begin = Instant::now();
    while begin.elapsed() < duration {
        let start = Instant::now();
        dummy.status().await?;
        times.add(start.elapsed().as_nanos() as u64);
    }
    client.close().await;
    Ok(times)
}

async fn listen(address: &str, duration: Duration) -> anyhow::Result<(u64, Duration)> {
    let client = Client::connect(address).await?;
    let mut scans = client.hokuyo(0).scans().await?;
    for _ in 0..10 {
        scans.next().await;
    }
    let cpu = CpuMeter::start(std::process::id());
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < duration {
        let scan = scans
            .next()
            .await
            .ok_or_else(|| anyhow::anyhow!("the end"))?;
        anyhow::ensure!(
            scan.message.points().len() == POINTS as usize,
            "no whole scan"
        );
        count += 1;
    }
    let cpu = cpu.elapsed();
    client.close().await;
    Ok((count, cpu))
}

struct Scanner {
    period: Duration,
}

impl Driver for Scanner {
    type Message = DriverMsg;

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        let scan = Scan {
            angles: (0..POINTS).map(|i| -120.0 + f64::from(i) * 0.352).collect(),
            distances: (0..POINTS).map(|i| 1000 + i as i32).collect(),
        };
        Some(DriverMsg {
            scan: Some(scan),
            ..DriverMsg::default()
        })
    }
}
