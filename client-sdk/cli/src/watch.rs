//! `amber watch`: shows the messages that a device publishes. IO.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use amber_client::{Client, MediatorAddress, Subscription, Update};
use amber_proto::Device;
use amber_reflect::{Schemas, arguments, help};
use amber_schema::{Interface, Kind, Method};
use amber_terminal::{Failure, Human, note};
use bytes::Bytes;
use serde::Serialize;

use super::message::{Shown, next, next_counted};
use super::names::suggestion;
use super::session::Session;
use super::{customs, descriptions, reason, views};

pub(super) const HELP: &str = "\
Examples:
  amber watch dummy
  amber watch hokuyo --rate
  amber watch ninedof --period 100ms --sensors accel,gyro
  amber watch ninedof readings period=20ms gyro
  amber watch ninedof --help

Without a stream, it shows everything that the device publishes. With a device, `--help` shows its
streams and their arguments with units.";

/// Options of `amber watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0 or 4:0
    #[arg(value_parser = amber_terminal::device)]
    device: Device,
    /// Stream of the device
    stream: Option<String>,
    /// Arguments of the stream: in their order, or as name=value
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// Show the message rate instead of the messages
    #[arg(long)]
    rate: bool,
    /// Description or messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Number of lines to show [default: until Ctrl-C]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between messages of a stream that has a period, such as 20ms or 1.5s
    /// [default: that of the stream]
    #[arg(long, value_name = "SECONDS", value_parser = period)]
    period: Option<Duration>,
    /// Sensors of a ninedof [default: accel,gyro,magnet]
    #[arg(long, value_name = "LIST")]
    sensors: Option<String>,
}

/// Reads `100ms`, `1.5s` and `0.1`.
fn period(text: &str) -> Result<Duration, String> {
    // Seconds, as everywhere; but most periods are milliseconds.
    if text
        .parse::<f64>()
        .is_ok_and(|number| number >= AMBIGUOUS_S)
    {
        return Err(format!(
            "a number without a unit is in seconds: write {text}ms or {text}s"
        ));
    }
    match amber_terminal::seconds(text)? {
        period if (MIN_PERIOD..=MAX_PERIOD).contains(&period) => Ok(period),
        _ => Err("not between 1ms and 3600s".to_owned()),
    }
}

/// Devices that publish regularly do so at least once in this time.
const SILENCE: Duration = Duration::from_secs(3);

/// A larger number without a unit may be meant as milliseconds.
const AMBIGUOUS_S: f64 = 5.0;

const MIN_PERIOD: Duration = Duration::from_millis(1);
const MAX_PERIOD: Duration = Duration::from_secs(3600);

/// The parsed command, before anything is sent.
#[derive(Debug)]
pub(super) struct Watch {
    options: Options,
    schemas: Schemas,
    plan: Plan,
}

/// The source of the messages, and a filter.
#[derive(Debug)]
struct Plan {
    /// The requests, unless these are SUBSCRIBE and UNSUBSCRIBE.
    requests: Option<(Bytes, Bytes, Duration)>,
    /// The stream that the command names.
    only: Option<Method>,
}

impl Options {
    /// Parses the stream and its arguments. The mediator is needed only if it alone may know the
    /// device.
    pub(super) async fn read(self, session: &mut Session<'_>) -> Result<Watch, Failure> {
        let schemas = descriptions::of(self.device, &self.proto, session).await?;
        let plan = self.plan(&schemas)?;
        Ok(Watch {
            options: self,
            schemas,
            plan,
        })
    }

    /// Help for the device, or for the stream, if the device is described.
    pub(super) fn help(&self, mediator: &MediatorAddress) -> Result<Option<String>, Failure> {
        let device = self.device;
        let known = descriptions::for_help(device, &self.proto, mediator)?;
        let Some(interface) = known.schemas.interface(device.device_type) else {
            note(format!("hint: {device} is not described: {}", known.hint));
            return Ok(None);
        };
        let streams: Vec<&Method> = match &self.stream {
            None => (interface.methods.iter())
                .filter(|it| it.is_stream())
                .collect(),
            Some(name) => vec![self.stream(Some(interface), name)?],
        };
        let mut out = format!("Usage: amber watch {device} [STREAM] [ARGUMENTS]\n");
        if streams.is_empty() {
            out += &format!("\n{} has no streams.\n", interface.name);
        }
        for method in streams {
            let custom = customs::of(device.device_type, &method.command);
            let shown = help::method(method, custom.spelling);
            let usage = format!("{} {}", method.command, arguments::usage(method));
            out += &format!("\n{}\n\n{shown}", usage.trim_end());
        }
        Ok(Some(out))
    }

    fn plan(&self, schemas: &Schemas) -> Result<Plan, Failure> {
        let interface = schemas.interface(self.device.device_type);
        let methods = interface.map_or(&[][..], |interface| &interface.methods);
        let method = match &self.stream {
            Some(name) => Some(self.stream(interface, name)?),
            // SUBSCRIBE requests all messages; a request starts one stream.
            None if methods.iter().any(|it| it.kind == Kind::Subscribe) => None,
            None => methods.iter().find(|method| method.is_stream()),
        };
        self.refuse_options(method)?;
        let Some(method) = method else {
            return Ok(Plan {
                requests: None,
                only: None,
            });
        };
        let custom = customs::of(self.device.device_type, &method.command);
        let mut words = self.args.clone();
        if let Some(period) = self.period {
            words.push(format!("period={}ms", period.as_secs_f64() * 1000.0));
        }
        words.extend(self.sensors.clone());
        let given = arguments::read(method, &words, custom.spelling).map_err(|error| {
            let (device, name) = (self.device, &method.command);
            let usage = format!("amber watch {device} {name} {}", arguments::usage(method));
            Failure::wrong(format!(
                "invalid arguments for stream '{name}': {}",
                error.text
            ))
            .hint(format!("`{}`", usage.trim_end()))
        })?;
        let only = self.stream.is_some().then(|| method.clone());
        if method.kind == Kind::Subscribe {
            let requests = None;
            return Ok(Plan { requests, only });
        }
        let schemas = schemas.for_device(Some(self.device.device_type));
        let requests = schemas.start_stop(method, &given)?;
        let period = arguments::period(method).and_then(|path| given.time_ms(path));
        let period = Duration::from_millis(period.unwrap_or_default());
        Ok(Plan {
            requests: Some((requests.start.into(), requests.stop.into(), period)),
            only,
        })
    }

    /// Options for some streams only.
    fn refuse_options(&self, method: Option<&Method>) -> Result<(), Failure> {
        let arguments = method.map(arguments::arguments).unwrap_or_default();
        let has_period = arguments.iter().any(|it| it.name == "period");
        let has_sensors = arguments.iter().any(|it| it.field.type_name == "bool");
        let refuse = |what, which| {
            let device = self.device;
            let message = format!("--{what} is not available for {device}");
            Err(Failure::wrong(message).hint(format!(
                "--{what} is for {which}; `amber watch {device} --help` shows those of the device"
            )))
        };
        if self.sensors.is_some() && !has_sensors {
            return refuse("sensors", "streams of several sensors");
        }
        if self.period.is_some() && !has_period {
            return refuse("period", "streams with a period");
        }
        Ok(())
    }

    fn stream<'a>(
        &self,
        interface: Option<&'a Interface>,
        name: &str,
    ) -> Result<&'a Method, Failure> {
        let found = interface.and_then(|interface| interface.method(name));
        let found = found.filter(|method| method.is_stream());
        found.ok_or_else(|| self.unknown(interface, name))
    }

    fn unknown(&self, interface: Option<&Interface>, name: &str) -> Failure {
        let failure = Failure::wrong(format!(
            "{} has no stream '{name}'",
            self.device.device_type
        ));
        let Some(interface) = interface else {
            return failure
                .hint("it has no description here; `--proto FILE` adds that of your own device");
        };
        let streams = interface.methods.iter().filter(|method| method.is_stream());
        let names: Vec<_> = streams.map(|method| method.command.as_str()).collect();
        match (names.is_empty(), interface.method(name)) {
            (_, Some(method)) => {
                let name = &method.command;
                failure.hint(format!(
                    "it is a request: `amber call {} {name}`",
                    self.device
                ))
            }
            (true, None) => failure.hint("it has no streams"),
            (false, None) => failure.hint(suggestion(name, &names, "streams")),
        }
    }
}

pub(super) async fn run(client: &Client, watch: Watch, json: bool) -> Result<(), Failure> {
    let device = watch.options.device;
    if device == Device::MEDIATOR {
        note("`amber events` shows these messages in words");
    }
    let plan = &watch.plan;
    let proxy = client.device(device);
    let updates = match plan.requests.clone() {
        Some((start, stop, period)) => proxy.subscribe_raw_by(start, stop, period).await?,
        None => proxy.subscribe_raw().await?,
    };
    match watch.options.rate {
        true => rates(updates, &watch.options, json).await,
        false => messages(client, updates, &watch, json).await,
    }
}

async fn messages(
    client: &Client,
    mut updates: Subscription<Bytes>,
    watch: &Watch,
    json: bool,
) -> Result<(), Failure> {
    let device = watch.options.device;
    let mut shown = 0;
    let period = watch.plan.requests.as_ref().map(|(.., period)| *period);
    let patience = SILENCE.max(2 * period.unwrap_or_default());
    let mut silence = pin!(tokio::time::sleep(patience));
    let mut is_silence_reported = false;
    while watch.options.count.is_none_or(|count| shown < count) {
        let update = tokio::select! {
            biased;
            update = next(&mut updates, device) => update?,
            () = &mut silence, if shown == 0 && !is_silence_reported => {
                is_silence_reported = true;
                report_silence(client, device, patience).await;
                continue;
            }
        };
        if show(watch, &update, json)? {
            shown += 1;
        }
    }
    Ok(())
}

/// Shows a message, unless it belongs to a different stream than that of the command.
fn show(watch: &Watch, update: &Update<Bytes>, json: bool) -> Result<bool, Failure> {
    let (device, plan) = (watch.options.device, &watch.plan);
    let schemas = watch.schemas.for_device(Some(device.device_type));
    let interface = watch.schemas.interface(device.device_type);
    let values = schemas.decode(&update.message).unwrap_or_default();
    let has_data = |method: &&Method| {
        let mut data = method.answer.iter();
        data.all(|field| schemas.value_at(&values, &field.path).is_some())
    };
    if plan.only.as_ref().is_some_and(|method| !has_data(&method)) {
        return Ok(false);
    }
    let streams = interface
        .into_iter()
        .flat_map(|interface| &interface.methods);
    let mut streams = streams.filter(|method| method.is_stream());
    if let Some(method) = plan.only.as_ref().or_else(|| streams.find(has_data))
        && views::show_published(device, method, &values, update.missed, json)?
    {
        return Ok(true);
    }
    amber_terminal::show(&Shown::new(device, update, &watch.schemas), json)?;
    Ok(true)
}

/// Reports why the device publishes nothing, if that is known.
async fn report_silence(client: &Client, device: Device, patience: Duration) {
    let seconds = patience.as_secs_f64();
    let why = match reason::of(client, device).await {
        Some(why) => why,
        None => "it may never publish; use `amber call` to send requests".to_owned(),
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
    let (mut received, mut bytes) = (0u64, 0u64);
    // What was missed before each message that was read, and before the last line.
    let (mut missed_before, mut missed_shown) = (0u64, 0u64);
    while options.count.is_none_or(|count| shown < count) {
        tokio::select! {
            update = next_counted(&mut updates, options.device) => {
                let update = update?;
                received += 1;
                missed_before += update.missed;
                bytes += update.message.len() as u64;
            }
            _ = ticks.tick() => {
                let missed = missed_before + updates.missed();
                let rate = Rate::new(
                    options.device,
                    since.elapsed(),
                    received,
                    missed - missed_shown,
                    bytes,
                );
                since = tokio::time::Instant::now();
                amber_terminal::show(&rate, json)?;
                (received, bytes, missed_shown) = (0, 0, missed);
                shown += 1;
            }
        }
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Rate {
    device: String,
    /// Those that the device has sent, as far as it is known.
    messages_per_s: f64,
    /// Those of them that were not read in time, or are longer than a frame and not complete.
    missed_per_s: f64,
    /// Those of the other messages.
    bytes_per_s: f64,
}

impl Rate {
    fn new(device: Device, time: Duration, received: u64, missed: u64, bytes: u64) -> Self {
        let per_s = |number: u64| number as f64 / time.as_secs_f64();
        Self {
            device: device.to_string(),
            messages_per_s: per_s(received + missed),
            missed_per_s: per_s(missed),
            bytes_per_s: per_s(bytes),
        }
    }
}

impl Human for Rate {
    fn human(&self) -> String {
        let (messages, bytes) = (self.messages_per_s, self.bytes_per_s);
        let missed = match self.missed_per_s {
            0.0 => String::new(),
            missed => format!("  {missed:.1} missed/s"),
        };
        format!("{messages:.1} messages/s  {bytes:.0} bytes/s{missed}\n")
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use amber_reflect::hex;

    use super::*;

    #[test]
    fn periods_are_read() {
        for (text, ms) in [
            ("100ms", 100.0),
            ("1.5s", 1500.0),
            ("0.1", 100.0),
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
    fn a_rate_says_how_much_was_missed() {
        let rate = |received, missed| {
            let device = Device::new(DeviceType(17), 0);
            Rate::new(device, Duration::from_secs(2), received, missed, 60_000).human()
        };
        assert_eq!(rate(30, 0), "15.0 messages/s  30000 bytes/s\n");
        let expected = "15.0 messages/s  30000 bytes/s  5.0 missed/s\n";
        assert_eq!(rate(20, 10), expected);
    }

    /// A device of a user, with a stream that starts by a request and may have a period.
    const LAMP: &str = r#"syntax = "proto2";
package lamp;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional Watch watch = 110;
  optional uint32 level = 111;
}
message Watch {
  enum Action { BEGIN = 1; END = 2; }
  required Action action = 1;
  optional uint32 period = 2 [(amber.unit) = "ms", (amber.absent_means) = "0"];
}
service Lamp {
  option (amber.device) = { type: 201 name: "lamp" };
  // How bright it is.
  rpc Levels(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = {
      request: "watch" period: "watch.period" data: "level"
      start: { field: "watch.action" value: "BEGIN" } stop: { field: "watch.action" value: "END" }
    };
  }
}
"#;
    const LAMP_TYPE: DeviceType = DeviceType(201);

    /// Reads a stream for which no mediator is needed.
    fn plan(options: &Options) -> Result<Plan, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lamp.proto");
        std::fs::write(&file, LAMP).unwrap();
        options.plan(&Schemas::with(&[file]).unwrap())
    }

    fn options(device_type: DeviceType, words: &[&str]) -> Options {
        let mut words = words.iter().map(|&word| word.to_owned());
        Options {
            device: Device::new(device_type, 0),
            stream: words.next(),
            args: words.collect(),
            rate: false,
            count: None,
            period: None,
            sensors: None,
            proto: vec![],
        }
    }

    #[test]
    fn only_some_devices_have_a_period_or_sensors() {
        let refused = |device_type, sensors: Option<&str>| {
            let options = Options {
                period: Some(Duration::from_millis(100)),
                sensors: sensors.map(str::to_owned),
                ..options(device_type, &[])
            };
            plan(&options).err()
        };
        assert_eq!(refused(DeviceType::NINEDOF, Some("accel,gyro")), None);
        assert_eq!(refused(LAMP_TYPE, None), None);
        assert_eq!(
            refused(LAMP_TYPE, Some("gyro")),
            Some(Failure::wrong("--sensors is not available for 201:0").hint(
                "--sensors is for streams of several sensors; `amber watch 201:0 --help` shows \
                     those of the device"
            ))
        );
        assert_eq!(
            refused(DeviceType::HOKUYO, None),
            Some(
                Failure::wrong("--period is not available for hokuyo:0").hint(
                    "--period is for streams with a period; `amber watch hokuyo:0 --help` shows \
                     those of the device"
                )
            )
        );
        assert!(refused(DeviceType::NINEDOF, Some("sonar")).is_some());
    }

    #[test]
    fn a_stream_starts_as_its_description_says() {
        let start = |device_type, words: &[&str]| {
            let plan = plan(&options(device_type, words)).unwrap();
            plan.requests
                .map(|(start, _, period)| (hex(&start), period.as_millis()))
        };
        let readings = |freq: &str, groups: &str| format!("1001620a08{freq}{groups}2801");
        let all = "100118012001";
        for (words, expected) in [
            (&[][..], (readings("64", all), 100)),
            (&["readings"], (readings("64", all), 100)),
            (&["readings", "0.02s"], (readings("14", all), 20)),
            (
                &["readings", "20ms", "gyro"],
                (readings("14", "100018012000"), 20),
            ),
            (
                &["readings", "period=20", "accel,gyro"],
                (readings("14", "100118012000"), 20),
            ),
        ] {
            assert_eq!(
                start(DeviceType::NINEDOF, words),
                Some(expected),
                "{words:?}"
            );
        }
        assert_eq!(start(DeviceType::HOKUYO, &[]), None);
        assert_eq!(start(DeviceType::HOKUYO, &["scans"]), None);
        assert_eq!(start(DeviceType(77), &[]), None);
        let levels = start(LAMP_TYPE, &["levels", "1s"]);
        assert_eq!(levels, Some(("1001f20605080110e807".to_owned(), 1000)));
    }

    #[test]
    fn an_unknown_stream_is_an_error_with_a_hint() {
        let wrong = |device_type, words: &[&str]| plan(&options(device_type, words)).err();
        assert_eq!(
            wrong(DeviceType::HOKUYO, &["scan"]),
            Some(
                Failure::wrong("hokuyo has no stream 'scan'")
                    .hint("it is a request: `amber call hokuyo:0 scan`")
            )
        );
        assert_eq!(
            wrong(DeviceType::HOKUYO, &["scns"]),
            Some(
                Failure::wrong("hokuyo has no stream 'scns'")
                    .hint("did you mean 'scans'? its streams are: scans")
            )
        );
        assert_eq!(
            wrong(DeviceType::NINEDOF, &["readings", "0ms"]),
            Some(
                Failure::wrong(
                    "invalid arguments for stream 'readings': argument 'period' must be above 0"
                )
                .hint("`amber watch ninedof:0 readings PERIOD [accel,gyro,magnet,extended]`")
            )
        );
        assert!(wrong(DeviceType::HOKUYO, &["scans", "5"]).is_some());
        assert_eq!(
            wrong(DeviceType(77), &["x"]),
            Some(
                Failure::wrong("77 has no stream 'x'").hint(
                    "it has no description here; `--proto FILE` adds that of your own device"
                )
            )
        );
    }

    #[test]
    fn messages_are_shown_by_name_with_units() {
        let shown = |device_type, bytes: &[u8]| {
            let device = Device::new(device_type, 0);
            Shown::answer(device, bytes, &Schemas::built_in()).human()
        };
        // currentSpeed { frontLeftSpeed: 5 }
        let speeds = b"\x10\x01\xb2\x01\x02\x08\x05";
        let expected = "currentSpeed: { frontLeftSpeed: 5 mm/s }\n";
        assert_eq!(shown(DeviceType::ROBOCLAW, speeds), expected);
        // A device without a description.
        let expected = "currentSpeed: { frontLeftSpeed: 5 }\n";
        assert_eq!(shown(DeviceType(77), speeds), expected);
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
