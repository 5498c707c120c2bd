//! `amber ping`: round-trip times, as ping(8) shows them. IO.

use std::time::Duration;

use amber_client::{Client, DEFAULT_DEADLINE, Error};
use amber_proto::Device;
use amber_terminal::{Failure, Human, show};
use serde::Serialize;

/// Options of `amber ping`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device to ping, e.g. hokuyo, hokuyo:0, 4:0 or mediator
    #[arg(value_parser = amber_terminal::device)]
    device: Device,
    /// Number of PINGs [default: until Ctrl-C]
    #[arg(short, long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds between PINGs
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = amber_terminal::seconds)]
    interval: Duration,
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let mut summary = Summary::new(options.device);
    // Ctrl-C ends the series, and the summary is still shown.
    tokio::select! {
        done = series(client, &options, &mut summary, json) => done?,
        _ = super::interrupt() => {}
    }
    show(&summary.shown(), json)?;
    match summary.times.is_empty() && summary.sent > 0 {
        true => Err(summary.no_reply()),
        false => Ok(()),
    }
}

async fn series(
    client: &Client,
    options: &Options,
    summary: &mut Summary,
    json: bool,
) -> Result<(), Failure> {
    // Later replies are lost ones.
    let device = client
        .device(options.device)
        .with_deadline(DEFAULT_DEADLINE);
    let mut ticks = tokio::time::interval(options.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while options.count.is_none_or(|count| summary.sent < count) {
        ticks.tick().await;
        summary.sent += 1;
        let reply = match device.ping().await {
            Ok(time) => {
                summary.times.push(time);
                Reply::new(options.device, summary.sent, Ok(time))
            }
            Err(error @ Error::Closed { .. }) => return Err(error.into()),
            Err(error) => {
                let reply = Reply::new(options.device, summary.sent, Err(error.to_string()));
                summary.last_error = Some(error);
                reply
            }
        };
        show(&reply, json)?;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Reply {
    device: String,
    seq: u64,
    time_ms: Option<f64>,
    error: Option<String>,
}

impl Reply {
    fn new(device: Device, seq: u64, outcome: Result<Duration, String>) -> Self {
        Self {
            device: device.to_string(),
            seq,
            time_ms: outcome.as_ref().ok().copied().map(in_ms),
            error: outcome.err(),
        }
    }
}

impl Human for Reply {
    fn human(&self) -> String {
        match (self.time_ms, &self.error) {
            (Some(time), _) => {
                format!(
                    "reply from {}: seq={} time={time:.3} ms\n",
                    self.device, self.seq
                )
            }
            (None, error) => format!("seq={} {}\n", self.seq, error.as_deref().unwrap_or("lost")),
        }
    }
}

struct Summary {
    device: Device,
    sent: u64,
    /// Three months at one PING per second take 128 MB.
    times: Vec<Duration>,
    last_error: Option<Error>,
}

#[derive(Debug, Serialize)]
struct Shown {
    device: String,
    sent: u64,
    received: u64,
    lost_percent: f64,
    min_ms: Option<f64>,
    avg_ms: Option<f64>,
    max_ms: Option<f64>,
    p50_ms: Option<f64>,
}

impl Summary {
    fn new(device: Device) -> Self {
        Self {
            device,
            sent: 0,
            times: Vec::new(),
            last_error: None,
        }
    }

    fn shown(&self) -> Shown {
        let mut times = self.times.clone();
        times.sort();
        let received = times.len() as u64;
        let sum: Duration = times.iter().sum();
        Shown {
            device: self.device.to_string(),
            sent: self.sent,
            received,
            lost_percent: match self.sent {
                0 => 0.0,
                sent => 100.0 * (sent - received) as f64 / sent as f64,
            },
            min_ms: times.first().copied().map(in_ms),
            avg_ms: (received > 0).then(|| in_ms(sum) / received as f64),
            max_ms: times.last().copied().map(in_ms),
            p50_ms: times.get(times.len() / 2).copied().map(in_ms),
        }
    }

    fn no_reply(&self) -> Failure {
        let failure = Failure::new(format!("no reply from {}", self.device));
        if let (Some(Error::TimedOut { .. }), false) =
            (&self.last_error, self.device == Device::MEDIATOR)
        {
            return failure.hint(format!(
                "some old drivers never answer PING; `amber status {}` shows whether the driver runs",
                self.device
            ));
        }
        match self.last_error.as_ref().and_then(Error::hint) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let mut out = format!(
            "\n--- {} ---\n{} sent, {} received, {:.0} % lost\n",
            self.device, self.sent, self.received, self.lost_percent
        );
        if let (Some(min), Some(avg), Some(max), Some(p50)) =
            (self.min_ms, self.avg_ms, self.max_ms, self.p50_ms)
        {
            out.push_str(&format!(
                "min {min:.3} ms, avg {avg:.3} ms, max {max:.3} ms, p50 {p50:.3} ms\n"
            ));
        }
        out
    }
}

fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn the_summary_counts_lost_pings() {
        let mut summary = Summary::new(Device::new(DeviceType::DUMMY, 0));
        summary.sent = 4;
        summary.times = [3, 1, 2].map(Duration::from_millis).into();
        assert_eq!(
            summary.shown().human(),
            "\n--- dummy:0 ---\n4 sent, 3 received, 25 % lost\n\
             min 1.000 ms, avg 2.000 ms, max 3.000 ms, p50 2.000 ms\n"
        );
    }

    #[test]
    fn a_driver_that_never_answers_ping_is_explained() {
        let device = Device::new(DeviceType::DUMMY, 0);
        let mut summary = Summary::new(device);
        summary.sent = 1;
        summary.last_error = Some(Error::TimedOut {
            device,
            waited: Duration::from_secs(1),
        });
        assert_eq!(
            summary.no_reply(),
            Failure::new("no reply from dummy:0").hint(
                "some old drivers never answer PING; `amber status dummy:0` shows whether the \
                 driver runs"
            )
        );
    }

    #[test]
    fn nothing_received_has_no_times() {
        let mut summary = Summary::new(Device::MEDIATOR);
        summary.sent = 1;
        assert_eq!(
            summary.shown().human(),
            "\n--- mediator:0 ---\n1 sent, 0 received, 100 % lost\n"
        );
    }
}
