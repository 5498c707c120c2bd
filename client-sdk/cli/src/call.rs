//! `amber call`: sends one request, using the description of the device. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_client::{Announcement, Client, Error, MediatorAddress};
use amber_proto::Device;
use amber_reflect::arguments::{self, Given};
use amber_reflect::{Schemas, help, read_fields, read_raw};
use amber_schema::{Interface, Kind, Method};
use amber_terminal::{Failure, Human, note, show, table};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::customs::{self, Custom};
use super::message::Shown;
use super::names::suggestion;
use super::session::Session;
use super::{descriptions, reason, views};

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
  amber call maestro set-angle 3 45
  amber call maestro set-angle angle=45deg servo-address=3
  amber call dummy
  amber call maestro set-angle --help
  amber call 201:0 --proto my_device.proto set-brightness 40
  amber call 110:0 --proto my_device.proto set_led=true --no-answer
  amber call dummy raw 1001a00301

With a device, `--help` shows its requests; with a request, its arguments with their units. Write
`--` before an argument that begins with `-` and is not a number. FIELD=VALUE sends fields of the
schema of the device; write values as in JSON.";

/// A request that every device has: raw bytes.
const RAW: &str = "raw";

/// Extra time that a client waits beyond the time limit of the device: `ninedof` takes up to 5 s more
/// to get enough readings on a busy machine.
const MARGIN: Duration = Duration::from_secs(6);

/// Options of `amber call`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0 or 4:0
    #[arg(value_parser = amber_terminal::device)]
    device: Device,
    /// Request, or FIELD=VALUE; without it, list the requests of the device
    request: Option<String>,
    /// Arguments of the request: in their order, or as name=value
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// Description or messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Time limit for the answer [default: that of the request, usually 1]
    #[arg(long, value_name = "SECONDS", value_parser = amber_terminal::seconds)]
    timeout: Option<Duration>,
    /// Do not wait for an answer (FIELD=VALUE and raw)
    #[arg(long)]
    no_answer: bool,
}

/// A parsed request, before anything is sent.
#[derive(Debug)]
pub(super) struct Call {
    options: Options,
    schemas: Schemas,
    request: Request,
}

#[derive(Debug)]
enum Request {
    List,
    Raw(Bytes),
    Described(Box<Described>),
}

/// A method of a description with its arguments.
#[derive(Debug)]
struct Described {
    method: Method,
    given: Given,
    message: Bytes,
    custom: &'static Custom,
}

impl Options {
    /// Parses the request. The mediator is needed only if it alone may know the device.
    pub(super) async fn read(self, session: &mut Session<'_>) -> Result<Call, Failure> {
        let schemas = match self.request.as_deref() {
            Some(RAW) => Schemas::with(&self.proto)?,
            _ => descriptions::of(self.device, &self.proto, session).await?,
        };
        self.by(schemas)
    }

    /// Parses the request with these descriptions.
    fn by(self, schemas: Schemas) -> Result<Call, Failure> {
        let request = self.request(&schemas)?;
        Ok(Call {
            options: self,
            schemas,
            request,
        })
    }

    /// Help for the device, or for the request, if the device is described.
    pub(super) fn help(&self, mediator: &MediatorAddress) -> Result<Option<String>, Failure> {
        let device = self.device;
        let known = descriptions::for_help(device, &self.proto, mediator)?;
        let schemas = &known.schemas;
        let Some(interface) = schemas.interface(device.device_type) else {
            note(format!("hint: {device} is not described: {}", known.hint));
            return Ok(None);
        };
        let Some(name) = &self.request else {
            let mut out = format!("{}\n\n", interface.docs.trim());
            out.insert_str(
                0,
                &format!("Usage: amber call {device} REQUEST [ARGUMENTS]\n\n"),
            );
            out += "Requests:\n";
            let aliases = customs::aliases(device.device_type);
            out += &help::requests(interface, aliases.map(|alias| (alias.name, alias.about)));
            let example = interface.methods.iter().find(|method| !method.is_stream());
            if let Some(method) = example {
                let name = &method.command;
                out += &format!("\n`amber call {device} {name} --help` shows more about one.\n");
            }
            return Ok(Some(out));
        };
        let (method, _) = self
            .method(interface, name)
            .ok_or_else(|| self.unknown(schemas, name))?;
        let custom = customs::of(device.device_type, &method.command);
        let shown = help::method(method, custom.spelling);
        let (usage, more) = (self.usage(method), custom.help);
        Ok(Some(format!("Usage: {usage}\n\n{shown}{more}")))
    }

    fn request(&self, schemas: &Schemas) -> Result<Request, Failure> {
        let Some(request) = &self.request else {
            return Ok(Request::List);
        };
        if request == RAW {
            let [hex] = &self.args[..] else {
                let usage = format!("`amber call {} {RAW} HEX`", self.device);
                return Err(Failure::wrong("`raw` needs one argument").hint(usage));
            };
            return Ok(Request::Raw(read_raw(hex)?));
        }
        if request.contains('=') {
            return Ok(Request::Raw(self.fields(request, schemas)?));
        }
        let interface = schemas.interface(self.device.device_type);
        let (method, arguments) = interface
            .and_then(|interface| self.method(interface, request))
            .ok_or_else(|| self.unknown(schemas, request))?;
        let custom = customs::of(self.device.device_type, &method.command);
        let given = arguments::read(method, &arguments, custom.spelling).map_err(|error| {
            let text = format!("invalid arguments for '{request}': {}", error.text);
            Failure::wrong(text).hint(format!("`{}`", self.usage(method)))
        })?;
        let schemas = schemas.for_device(Some(self.device.device_type));
        Ok(Request::Described(Box::new(Described {
            message: schemas.request(method, &given)?.into(),
            method: method.clone(),
            given,
            custom,
        })))
    }

    /// The method of a name or an alias, with its arguments.
    fn method<'a>(
        &self,
        interface: &'a Interface,
        name: &str,
    ) -> Option<(&'a Method, Vec<String>)> {
        let mut aliases = customs::aliases(self.device.device_type);
        let (name, arguments) = match aliases.find(|alias| alias.name == name) {
            Some(alias) if self.args.is_empty() => {
                let arguments = alias.arguments.iter().map(|&it| it.to_owned());
                (alias.method, arguments.collect())
            }
            _ => (name, self.args.clone()),
        };
        let method = interface
            .method(name)
            .filter(|method| !method.is_stream())?;
        Some((method, arguments))
    }

    /// `FIELD=VALUE` ...: a DATA message with these extensions.
    fn fields(&self, first: &str, schemas: &Schemas) -> Result<Bytes, Failure> {
        let words = [first].into_iter();
        let words = words.chain(self.args.iter().map(String::as_str));
        Ok(read_fields(self.device.device_type, words, schemas)?.into())
    }

    fn usage(&self, method: &Method) -> String {
        let words = arguments::usage(method);
        let usage = format!("amber call {} {} {words}", self.device, method.command);
        usage.trim_end().to_owned()
    }

    fn unknown(&self, schemas: &Schemas, request: &str) -> Failure {
        let device_type = self.device.device_type;
        let text = format!("{device_type} has no request '{request}'");
        let Some(interface) = schemas.interface(device_type) else {
            return Failure::wrong(text).hint(
                "it has no description here, so its requests are: raw; `--proto FILE` adds the \
                 description of your own device",
            );
        };
        if let Some(stream) = interface.method(request) {
            let name = &stream.command;
            let hint = format!("it is a stream: `amber watch {} {name}`", self.device);
            return Failure::wrong(text).hint(hint);
        }
        let methods = interface
            .methods
            .iter()
            .filter(|method| !method.is_stream());
        let names = methods.map(|method| method.command.as_str());
        let aliases = customs::aliases(device_type).map(|alias| alias.name);
        let names: Vec<_> = names.chain(aliases).chain([RAW]).collect();
        Failure::wrong(text).hint(suggestion(request, &names, "requests"))
    }
}

impl Call {
    /// Whether to list the requests only, without a mediator.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.request, Request::List)
    }

    pub(super) fn show_list(&self, json: bool) -> Result<(), Failure> {
        show(&self.list(), json)
    }

    /// The requests of this device.
    fn list(&self) -> Requests {
        let device_type = self.options.device.device_type;
        let methods = self.schemas.interface(device_type).into_iter();
        let methods = methods.flat_map(|interface| &interface.methods);
        let shown = |name: &str, args: String, about: &str| RequestShown {
            name: name.into(),
            args,
            about: about.into(),
        };
        let requests = (methods.filter(|method| !method.is_stream())).map(|method| {
            let about = help::summary(&method.docs);
            shown(&method.command, arguments::usage(method), &about)
        });
        let aliases = customs::aliases(device_type)
            .map(|alias| shown(alias.name, String::new(), alias.about));
        let raw = shown(RAW, "HEX".into(), "Sends a DriverMsg");
        Requests {
            requests: requests.chain(aliases).chain([raw]).collect(),
            fields: self.schemas.fields(device_type),
        }
    }

    pub(super) async fn run(self, client: &Client, json: bool) -> Result<(), Failure> {
        let device = self.options.device;
        match &self.request {
            Request::List => self.show_list(json),
            Request::Raw(bytes) if self.options.no_answer => {
                tell(client, device, bytes.clone(), json).await
            }
            Request::Raw(bytes) => self.ask_raw(client, bytes.clone(), json).await,
            Request::Described(described) => match described.method.kind {
                Kind::Ask { .. } => self.ask(client, described, json).await,
                _ => {
                    tell(client, device, described.message.clone(), json).await?;
                    let is_zero = self.options.args.iter().all(|argument| argument == "0");
                    if let (Some(advice), false, false) = (described.custom.after, json, is_zero) {
                        note(advice);
                    }
                    Ok(())
                }
            },
        }
    }

    async fn ask_raw(&self, client: &Client, bytes: Bytes, json: bool) -> Result<(), Failure> {
        let device = self.options.device;
        let deadline = self.options.timeout.unwrap_or(client.deadline());
        let proxy = client.device(device).with_deadline(deadline);
        let answer = proxy.request_raw(bytes).await.map_err(|error| match error {
            Error::TimedOut { .. } => Failure::from(error)
                .hint("use `--timeout` to wait longer, or `--no-answer` for requests without an answer"),
            error => error.into(),
        })?;
        show(&Shown::answer(device, &answer, &self.schemas), json)
    }

    async fn ask(&self, client: &Client, asked: &Described, json: bool) -> Result<(), Failure> {
        let device = self.options.device;
        let duration = asked.duration();
        let deadline = (self.options.timeout)
            .or(duration.map(|duration| duration + MARGIN))
            .or(asked.timeout())
            .unwrap_or(client.deadline());
        if let (Some(advice), false) = (asked.custom.before, json) {
            let time = format!("{} s", duration.unwrap_or_default().as_secs_f64());
            note(advice.replace("{time}", &time));
        }
        let proxy = client.device(device).with_deadline(deadline);
        let answer = proxy.request_raw(asked.message.clone()).await?;
        let schemas = self.schemas.for_device(Some(device.device_type));
        let answer = Answer::read(device, &asked.method, schemas, &answer)?;
        if views::show(device, &asked.method, &answer.values, json)? {
            return Ok(());
        }
        show(&answer, json)
    }
}

impl Described {
    /// The time limit of the device.
    fn duration(&self) -> Option<Duration> {
        let path = arguments::duration(&self.method)?;
        self.given.time_ms(path).map(Duration::from_millis)
    }

    /// The time limit from the description.
    fn timeout(&self) -> Option<Duration> {
        match self.method.kind {
            Kind::Ask { timeout_ms, .. } => timeout_ms.map(|ms| Duration::from_millis(ms.into())),
            _ => None,
        }
    }
}

/// The answer to a request, with names and units.
struct Answer<'a> {
    method: &'a Method,
    /// The fields of the answer, as the description names them.
    values: Map<String, Value>,
}

impl<'a> Answer<'a> {
    fn read(
        device: Device,
        method: &'a Method,
        schemas: &Schemas,
        bytes: &[u8],
    ) -> Result<Self, Failure> {
        let bad = |message: String| Failure::from(Error::BadAnswer { device, message });
        let decoded = schemas.decode(bytes).unwrap_or_default();
        if let Kind::Ask {
            refusal: Some(refusal),
            ..
        } = &method.kind
            && let Some(why) = schemas.value_at(&decoded, &refusal.path)
        {
            return Err(refused(device, why));
        }
        let mut values = Map::new();
        for field in &method.answer {
            let value = schemas.value_at(&decoded, &field.path);
            let value = value.ok_or_else(|| bad(format!("it has no '{}'", field.name)))?;
            values.insert(field.name.clone(), value.clone());
        }
        for field in &method.may_answer {
            if let Some(value) = schemas.value_at(&decoded, &field.path) {
                values.insert(field.name.clone(), value.clone());
            }
        }
        Ok(Self { method, values })
    }
}

fn refused(device: Device, why: &Value) -> Failure {
    let text = |name: &str| why.get(name).and_then(Value::as_str);
    let failure = match text("message") {
        Some(message) => Failure::new(message),
        None => Failure::new(format!("{device} refuses the request: {why}")),
    };
    text("hint").map_or(failure.clone(), |hint| failure.hint(hint))
}

impl Serialize for Answer<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The fields of a single message need no name around them.
        let mut values = self.values.values();
        match (values.next(), values.next()) {
            (Some(inner @ Value::Object(_)), None) => inner.serialize(serializer),
            _ => self.values.serialize(serializer),
        }
    }
}

impl Human for Answer<'_> {
    fn human(&self) -> String {
        let fields = self.method.answer.iter().chain(&self.method.may_answer);
        let fields: Vec<_> = fields.cloned().collect();
        match help::lines(&fields, &self.values) {
            empty if empty.is_empty() => "the answer is empty\n".to_owned(),
            lines => lines,
        }
    }
}

/// A request that changes nothing, by its name in `amber call` or as `raw HEX`, for
/// benchmarks.
pub(super) async fn question(
    device: Device,
    request: &str,
    session: &mut Session<'_>,
) -> Result<Bytes, Failure> {
    let mut words = request.split_whitespace().map(str::to_owned);
    let options = Options {
        device,
        request: words.next(),
        args: words.collect(),
        ..Options::default()
    };
    match options.read(session).await?.request {
        Request::Raw(bytes) => Ok(bytes),
        // Slow requests are calibrations and the like, and the mediator is measured by PING.
        Request::Described(described)
            if matches!(described.method.kind, Kind::Ask { duration: None, .. })
                && device != Device::MEDIATOR =>
        {
            Ok(described.message)
        }
        _ => Err(
            Failure::wrong(format!("'{request}' is not a request to measure"))
                .hint("use a request that only reads values, or leave out --request for PING"),
        ),
    }
}

/// Sends a command that the device does not answer, and asks for its outcome.
///
/// # Errors
/// No driver runs, the device does not work, or the driver refuses the command. A driver
/// that does not report outcomes logs a warning to stderr instead, which it may not repeat.
async fn tell(client: &Client, device: Device, bytes: Bytes, json: bool) -> Result<(), Failure> {
    if client.announcement() == Announcement::Silent {
        client.device(device).send_raw(bytes).await?;
    } else {
        reason::carried_out(client, device, bytes).await?;
    }
    match json {
        true => show(&Sent { sent: true }, json),
        false => {
            note("sent (this request has no answer)");
            Ok(())
        }
    }
}

#[derive(Debug, Serialize)]
struct Sent {
    sent: bool,
}

impl Human for Sent {
    fn human(&self) -> String {
        String::new()
    }
}

/// The requests of a device.
#[derive(Debug, Serialize)]
struct Requests {
    requests: Vec<RequestShown>,
    /// The fields of its schema, for FIELD=VALUE.
    fields: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RequestShown {
    name: String,
    args: String,
    about: String,
}

impl Human for Requests {
    fn human(&self) -> String {
        let rows = self.requests.iter().map(|request| {
            let usage = format!("{} {}", request.name, request.args);
            [usage.trim_end().to_owned(), request.about.clone()]
        });
        let mut out = table(["REQUEST", "WHAT IT DOES"], &rows.collect::<Vec<_>>());
        for field in &self.fields {
            out += &format!("{field}=VALUE\n");
        }
        out
    }
}

#[cfg(test)]
mod tests;
