//! `amber watch`: the messages that a device publishes. IO.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use amber_proto::ninedof::DriverMsg as NineDofMsg;
use amber_proto::stargazer::DriverMsg as StargazerMsg;
use amber_proto::{Device, DeviceType};
use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Failure;
use super::ninedof::{ReadingShown, USUAL_PERIOD};
use super::output::{self, Human, note};
use super::reason;
use super::stargazer::FixShown;
use crate::client::Client;
use crate::proxy::Sensors;
use crate::subscription::{Event, Subscription, Update};
use amber_reflect::{Schemas, hex, human};

pub(super) const HELP: &str = "\
Examples:
  amber watch dummy
  amber watch hokuyo --rate
  amber watch ninedof --period 100ms --sensors accel,gyro
  amber watch stargazer --period 1s";

/// Options of `amber watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0 or 4:0
    device: Device,
    /// Show the message rate instead of the messages
    #[arg(long)]
    rate: bool,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Number of lines to show [default: until Ctrl-C]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between messages of a ninedof or stargazer, such as 20ms or 1.5s
    /// [default: 100ms for ninedof, every message for stargazer]
    #[arg(long, value_parser = period)]
    period: Option<Duration>,
    /// Sensors of a ninedof [default: accel,gyro,magnet]
    #[arg(long, value_name = "LIST")]
    sensors: Option<Sensors>,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        let device_type = self.device.device_type;
        let has_period = [DeviceType::NINEDOF, DeviceType::STARGAZER].contains(&device_type);
        let refuse = |what, which| {
            let message = format!("--{what} is not available for {}", self.device);
            Err(Failure::wrong(message).hint(format!("--{what} is for {which}")))
        };
        if self.sensors.is_some() && device_type != DeviceType::NINEDOF {
            return refuse("sensors", "ninedof");
        }
        if self.period.is_some() && !has_period {
            return refuse("period", "ninedof and stargazer");
        }
        Ok(self)
    }
}

/// Reads `100ms` and `1.5s`.
fn period(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err("the unit is missing: write e.g. 100ms or 1.5s".to_owned());
    }
    match super::seconds(text)? {
        period if (MIN_PERIOD..=MAX_PERIOD).contains(&period) => Ok(period),
        _ => Err("not between 1ms and 3600s".to_owned()),
    }
}

/// Devices that publish regularly do so at least once in this time.
const SILENCE: Duration = Duration::from_secs(3);

const MIN_PERIOD: Duration = Duration::from_millis(1);
const MAX_PERIOD: Duration = Duration::from_secs(3600);

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    if options.device == Device::MEDIATOR {
        note("`amber events` shows these messages in words");
    }
    let updates = match options.device.device_type {
        DeviceType::NINEDOF => {
            let ninedof = client.ninedof(options.device.id.0);
            let period = options.period.unwrap_or(USUAL_PERIOD);
            let sensors = options.sensors.unwrap_or(Sensors::ALL);
            ninedof.subscribe_raw(period, sensors).await?
        }
        DeviceType::STARGAZER => {
            let stargazer = client.stargazer(options.device.id.0);
            stargazer.subscribe_raw(options.period).await?
        }
        _ => client.device(options.device).subscribe_raw().await?,
    };
    match options.rate {
        true => rates(updates, &options, json).await,
        false => messages(client, updates, &options, json).await,
    }
}

async fn messages(
    client: &Client,
    mut updates: Subscription<Bytes>,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    let schemas = Schemas::with(&options.proto)?;
    let mut shown = 0;
    let patience = SILENCE.max(2 * options.period.unwrap_or_default());
    let mut silence = pin!(tokio::time::sleep(patience));
    let mut is_silence_reported = false;
    while options.count.is_none_or(|count| shown < count) {
        let update = tokio::select! {
            biased;
            update = next(&mut updates, options.device) => update?,
            () = &mut silence, if shown == 0 && !is_silence_reported => {
                is_silence_reported = true;
                report_silence(client, options.device, patience).await;
                continue;
            }
        };
        let device = options.device;
        if let Some(reading) = reading(device, &update) {
            output::show(&reading, json)?;
        } else if let Some(fix) = fix(device, &update) {
            output::show(&fix, json)?;
        } else {
            output::show(&Shown::new(device, &update, &schemas), json)?;
        }
        shown += 1;
    }
    Ok(())
}

/// Reports why the device publishes nothing, if that is known.
async fn report_silence(client: &Client, device: Device, patience: Duration) {
    let seconds = patience.as_secs_f64();
    let why = match reason::of(client, device).await {
        Some(why) => why,
        None => "it may never publish; `amber call` sends requests".to_owned(),
    };
    note(format!(
        "{device} has published nothing for {seconds:.0} s: {why}"
    ));
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

/// The next message; reports interruptions.
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
                    "{device}: interrupted: {why}; continues when the device is back"
                ));
            }
            Some(Event::Resumed) => note(format!("{device}: continues")),
            None => return Err(Failure::new("the connection to the mediator has ended")),
        }
    }
}

// Messages with a better form than their schema.

fn fix(device: Device, update: &Update<Bytes>) -> Option<FixShown> {
    if device.device_type != DeviceType::STARGAZER {
        return None;
    }
    let message = StargazerMsg::decode(&update.message[..]).ok()?;
    let fix = message.localization_data?.into();
    Some(FixShown::of(device, &fix, update.missed))
}

fn reading(device: Device, update: &Update<Bytes>) -> Option<ReadingShown> {
    if device.device_type != DeviceType::NINEDOF {
        return None;
    }
    let message = NineDofMsg::decode(&update.message[..]).ok()?;
    let reading = message.sensor_data?.into();
    Some(ReadingShown::of(device, &reading, update.missed))
}

/// A message, by its schema or in hex.
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
        let message = schemas.for_device(Some(device.device_type)).decode(bytes);
        Self {
            device: device.to_string(),
            bytes: bytes.len(),
            missed: 0,
            hex: message.is_none().then(|| hex(bytes)),
            message,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        match (&self.message, &self.hex) {
            (Some(message), _) => format!("{}\n", human(message)),
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
    fn periods_have_units() {
        for (text, ms) in [
            ("100ms", 100.0),
            ("1.5s", 1500.0),
            ("0.5ms", f64::NAN),
            ("2h", f64::NAN),
        ] {
            let read = period(text).map(|period| period.as_secs_f64() * 1000.0);
            assert_eq!(read.ok(), Some(ms).filter(|ms| !ms.is_nan()), "{text}");
        }
        for text in ["", "ms", "100", "-1s", "nans", "1e9s"] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_some_devices_have_a_period_or_sensors() {
        let options = |device_type, sensors| Options {
            device: Device::new(device_type, 0),
            rate: false,
            count: None,
            period: Some(USUAL_PERIOD),
            sensors,
            proto: vec![],
        };
        let refused = |device_type, sensors| options(device_type, sensors).checked().err();
        assert_eq!(refused(DeviceType::NINEDOF, Some(Sensors::ALL)), None);
        assert_eq!(refused(DeviceType::STARGAZER, None), None);
        assert_eq!(
            refused(DeviceType::STARGAZER, Some(Sensors::ALL)),
            Some(
                Failure::wrong("--sensors is not available for stargazer:0")
                    .hint("--sensors is for ninedof")
            )
        );
        assert_eq!(
            refused(DeviceType::HOKUYO, None),
            Some(
                Failure::wrong("--period is not available for hokuyo:0")
                    .hint("--period is for ninedof and stargazer")
            )
        );
    }

    #[test]
    fn messages_without_a_schema_are_shown_in_hex() {
        let device = Device::new(DeviceType(77), 3);
        let shown = Shown::answer(device, b"\x10\x01\xff", &Schemas::built_in());
        assert_eq!(shown.human(), "3 bytes: 1001ff\n");
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["hex"], "1001ff");
        assert_eq!(json.get("message"), None);
    }
}
