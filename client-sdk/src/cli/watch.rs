//! `amber watch`: what a device publishes. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_proto::Device;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Failure;
use super::output::{self, Human, note};
use super::reflect::{self, Schemas};
use crate::client::Client;
use crate::subscription::{Event, Subscription, Update};

/// Which device, and what of it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which device, e.g. hokuyo, hokuyo:0 or 4:0
    device: Device,
    /// Show how much comes per second instead of what
    #[arg(long)]
    rate: bool,
    /// The messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// End after so many lines [default: go on until Ctrl-C]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    if options.device == Device::MEDIATOR {
        note("`amber events` shows in words what the mediator publishes");
    }
    let updates = client.device(options.device).subscribe_raw().await?;
    match options.rate {
        true => rates(updates, &options, json).await,
        false => messages(updates, &options, json).await,
    }
}

async fn messages(
    mut updates: Subscription<Bytes>,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    let schemas = Schemas::with(&options.proto)?;
    let mut shown = 0;
    while options.count.is_none_or(|count| shown < count) {
        let update = next(&mut updates, options.device).await?;
        output::show(&Shown::new(options.device, &update, &schemas), json)?;
        shown += 1;
    }
    Ok(())
}

async fn rates(
    mut updates: Subscription<Bytes>,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    let mut shown = 0;
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.tick().await;
    let mut since = tokio::time::Instant::now();
    let (mut messages, mut bytes) = (0u64, 0u64);
    while options.count.is_none_or(|count| shown < count) {
        tokio::select! {
            update = next(&mut updates, options.device) => {
                let update = update?;
                messages += 1 + update.missed;
                bytes += update.message.len() as u64;
            }
            _ = ticks.tick() => {
                let seconds = since.elapsed().as_secs_f64();
                since = tokio::time::Instant::now();
                let rate = Rate {
                    device: options.device.to_string(),
                    messages_per_s: messages as f64 / seconds,
                    bytes_per_s: bytes as f64 / seconds,
                };
                output::show(&rate, json)?;
                (messages, bytes) = (0, 0);
                shown += 1;
            }
        }
    }
    Ok(())
}

/// The next message; interruptions are told on the way.
pub(super) async fn next<T>(
    updates: &mut Subscription<T>,
    device: Device,
) -> Result<Update<T>, Failure> {
    loop {
        match updates.next_event().await {
            Some(Event::Message(update)) => {
                if update.missed > 0 {
                    note(format!("{device}: missed {} messages", update.missed));
                }
                return Ok(update);
            }
            Some(Event::Interrupted(why)) => {
                note(format!(
                    "{device}: interrupted: {why}; goes on when it is back"
                ));
            }
            Some(Event::Resumed) => note(format!("{device}: goes on")),
            None => return Err(Failure::new("the connection has ended")),
        }
    }
}

/// A message, by its schema or as bytes.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    device: String,
    bytes: usize,
    missed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

impl Shown {
    fn new(device: Device, update: &Update<Bytes>, schemas: &Schemas) -> Self {
        Self {
            missed: update.missed,
            ..Self::answer(device, &update.message, schemas)
        }
    }

    pub(super) fn answer(device: Device, bytes: &[u8], schemas: &Schemas) -> Self {
        let message = schemas.decode(bytes);
        Self {
            device: device.to_string(),
            bytes: bytes.len(),
            missed: 0,
            hex: message.is_none().then(|| reflect::hex(bytes)),
            message,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        match (&self.message, &self.hex) {
            (Some(message), _) => format!("{}\n", reflect::human(message)),
            (None, hex) => format!("{} bytes: {}\n", self.bytes, hex.as_deref().unwrap_or("")),
        }
    }
}

#[derive(Debug, Serialize)]
struct Rate {
    device: String,
    messages_per_s: f64,
    bytes_per_s: f64,
}

impl Human for Rate {
    fn human(&self) -> String {
        format!(
            "{:.1} messages/s  {:.0} bytes/s\n",
            self.messages_per_s, self.bytes_per_s
        )
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn what_has_no_schema_is_shown_in_hex() {
        let device = Device::new(DeviceType(77), 3);
        let shown = Shown::answer(device, b"\x10\x01\xff", &Schemas::load().unwrap());
        assert_eq!(shown.human(), "3 bytes: 1001ff\n");
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["hex"], "1001ff");
        assert_eq!(json.get("message"), None);
    }
}
