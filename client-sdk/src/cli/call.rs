//! `amber call`: one request, typed per device. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_proto::Device;
use bytes::Bytes;
use prost::Message;

use super::Failure;
use super::ninedof;
use super::output::{self, note};
use super::reason;
use super::scan::{self, ScanShown};
use super::stargazer;
use super::watch::Shown;
use crate::client::{Announcement, Client};
use crate::error::Error;
use crate::proxy::{self, WheelSpeeds, roboclaw};
use amber_reflect::{Schemas, read_fields, read_raw};

mod answers;
mod requests;

use answers::{RequestShown, Requests, Sent, Speeds, Status};
use requests::{KNOWN, Known, RAW, Request, only};

pub(super) const HELP: &str = "\
Examples:
  amber call dummy status
  amber call dummy enable true
  amber call dummy message hello
  amber call roboclaw speeds
  amber call roboclaw drive 200 -200
  amber call hokuyo scan
  amber call ninedof data
  amber call ninedof calibrate-gyro
  amber call stargazer pose
  amber call maestro set-angle 3 45
  amber call dummy
  amber call 110:0 --proto my_device.proto set_led=true --no-answer
  amber call dummy raw 1001a00301

FIELD=VALUE sends fields of the schema of the device; write values as in JSON.";

/// Options of `amber call`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0 or 4:0
    device: Device,
    /// Request, or FIELD=VALUE; without it, list the requests of the device
    request: Option<String>,
    /// Arguments of the request
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Time limit for the answer [default: 1; 3 for scans]
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    timeout: Option<Duration>,
    /// Do not wait for an answer (FIELD=VALUE and raw)
    #[arg(long)]
    no_answer: bool,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        self.read().map(|_| self)
    }

    /// Whether to list the requests only, without a mediator.
    pub(super) fn is_list(&self) -> bool {
        self.request.is_none()
    }

    pub(super) fn show_list(&self, json: bool) -> Result<(), Failure> {
        output::show(&self.list()?, json)
    }

    fn read(&self) -> Result<Request, Failure> {
        let Some(request) = &self.request else {
            return Ok(Request::List);
        };
        if request == RAW {
            let hex = only(&self.args).ok_or_else(|| self.usage(RAW, "HEX"))?;
            return Ok(Request::Raw(read_raw(hex)?));
        }
        if request.contains('=') {
            return self.read_fields(request).map(Request::Raw);
        }
        let mut known = KNOWN.iter().filter(|known| self.is_for(known));
        let known = known.find(|known| known.name == request);
        let known = known.ok_or_else(|| self.unknown(request))?;
        (known.read)(&self.args).ok_or_else(|| self.usage(known.name, known.args))
    }

    /// `FIELD=VALUE` ...: a DATA message with these extensions.
    fn read_fields(&self, first: &str) -> Result<Bytes, Failure> {
        let words = [first].into_iter();
        let words = words.chain(self.args.iter().map(String::as_str));
        let asked = self.device.device_type;
        Ok(read_fields(asked, words, &Schemas::with(&self.proto)?)?.into())
    }

    fn is_for(&self, known: &Known) -> bool {
        known.device_type == self.device.device_type
    }

    fn usage(&self, request: &str, args: &str) -> Failure {
        let usage = format!("amber call {} {request} {args}", self.device);
        Failure::wrong(format!("invalid arguments for request '{request}'"))
            .hint(format!("`{}`", usage.trim_end()))
    }

    fn unknown(&self, request: &str) -> Failure {
        let known = KNOWN.iter().filter(|known| self.is_for(known));
        let names: Vec<_> = known.map(|known| known.name).chain([RAW]).collect();
        let distance = |name: &str| strsim::damerau_levenshtein(request, name);
        let nearest = names.iter().min_by_key(|name| distance(name));
        let all = names.join(", ");
        let hint = match nearest {
            Some(name) if distance(name) <= 1 + name.len() / 3 => {
                format!("did you mean '{name}'? its requests are: {all}")
            }
            _ => format!("its requests are: {all}"),
        };
        let device_type = self.device.device_type;
        Failure::wrong(format!("{device_type} has no request '{request}'")).hint(hint)
    }

    /// The requests of this device.
    fn list(&self) -> Result<Requests, Failure> {
        let known = KNOWN.iter().filter(|known| self.is_for(known));
        let mut requests: Vec<_> = known
            .map(|known| RequestShown {
                name: known.name.into(),
                args: known.args.into(),
            })
            .collect();
        requests.push(RequestShown {
            name: RAW.into(),
            args: "HEX".into(),
        });
        let fields = Schemas::with(&self.proto)?.fields(self.device.device_type);
        Ok(Requests { requests, fields })
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let device = options.device;
    let client = &match options.timeout {
        Some(deadline) => client.clone().with_deadline(deadline),
        None => client.clone(),
    };
    match options.read()? {
        Request::List => options.show_list(json),
        Request::Raw(bytes) if options.no_answer => tell(client, device, bytes, json).await,
        Request::Raw(bytes) => {
            let answer = client.device(device).request_raw(bytes).await;
            let answer = answer.map_err(|error| match error {
                Error::TimedOut { .. } => Failure::from(error)
                    .hint("use `--timeout` to wait longer, or `--no-answer` for requests without an answer"),
                error => error.into(),
            })?;
            let schemas = Schemas::with(&options.proto)?;
            output::show(&Shown::answer(device, &answer, &schemas), json)
        }
        Request::DummyStatus => {
            let status = client.dummy(device.id.0).status().await?;
            output::show(&Status::from(status), json)
        }
        Request::Dummy(message) => tell(client, device, message.encode_to_vec(), json).await,
        Request::Speeds => {
            let speeds = client.roboclaw(device.id.0).speeds().await?;
            output::show(&Speeds::from(speeds), json)
        }
        Request::Drive(speeds) => {
            let command = roboclaw::command(speeds).encode_to_vec();
            tell(client, device, command, json).await?;
            if !json && speeds != WheelSpeeds::STOP {
                note("the wheels stop when this command exits; use `amber drive` to keep moving");
            }
            Ok(())
        }
        Request::Pose => stargazer::call(client, device, json).await,
        Request::Maestro(message) => tell(client, device, message.encode_to_vec(), json).await,
        Request::NineDof(request) => ninedof::call(client, device, request, json).await,
        Request::Scan => {
            let scanner = match options.timeout {
                Some(_) => client.hokuyo(device.id.0),
                None => scan::scanner(client, device),
            };
            let scan = scanner.scan().await?;
            output::show(&ScanShown::from(&scan), json)
        }
    }
}

/// A request that changes nothing, by its name in `amber call` or as `raw HEX`, for
/// benchmarks.
pub(super) fn question(device: Device, request: &str) -> Result<Bytes, Failure> {
    let mut words = request.split_whitespace().map(str::to_owned);
    let options = Options {
        device,
        request: words.next(),
        args: words.collect(),
        ..Options::default()
    };
    let message = match options.read()? {
        Request::Raw(bytes) => return Ok(bytes),
        Request::DummyStatus => proxy::dummy::question().encode_to_vec(),
        Request::Speeds => roboclaw::question().encode_to_vec(),
        Request::Scan => proxy::hokuyo::question().encode_to_vec(),
        Request::Pose => proxy::stargazer::question().encode_to_vec(),
        Request::NineDof(ninedof::Request::Data(sensors)) => {
            proxy::ninedof::question(sensors).encode_to_vec()
        }
        // A calibration has an answer, but is not for benchmarks.
        Request::List
        | Request::Dummy(_)
        | Request::Drive(_)
        | Request::Maestro(_)
        | Request::NineDof(_) => {
            return Err(
                Failure::wrong(format!("'{request}' is not a request to measure"))
                    .hint("use a request that only reads values, or leave out --request for PING"),
            );
        }
    };
    Ok(message.into())
}

/// Sends a command that the device does not answer, and asks for its outcome.
///
/// # Errors
/// No driver runs, the device does not work, or the driver refuses the command. A driver
/// that does not report outcomes refuses by a warning on stderr, which it may not repeat.
async fn tell(
    client: &Client,
    device: Device,
    message: impl Into<Bytes>,
    json: bool,
) -> Result<(), Failure> {
    let bytes = message.into();
    if client.announcement() == Announcement::Silent {
        client.device(device).send_raw(bytes).await?;
        return shown(json);
    }
    reason::carried_out(client, device, bytes).await?;
    shown(json)
}

fn shown(json: bool) -> Result<(), Failure> {
    match json {
        true => output::show(&Sent { sent: true }, json),
        false => {
            note("sent (this request has no answer)");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
