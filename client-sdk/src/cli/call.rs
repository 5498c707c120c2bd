//! `amber call`: one request, typed per device. IO.

use std::path::PathBuf;
use std::time::Duration;

use amber_proto::{Device, DeviceMessage, DeviceType, dummy};
use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde_json::Map;

use super::Failure;
use super::ninedof;
use super::output::{self, Human, fields, note};
use super::reflect::Schemas;
use super::scan::{self, ScanShown};
use super::stargazer;
use super::watch::Shown;
use crate::client::{Announcement, Client};
use crate::error::Error;
use crate::proxy::{self, DummyStatus, WheelSpeeds, maestro, roboclaw};

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

FIELD=VALUE asks any device by the fields of its schema; values are written as in JSON.";

/// Which device, and what to ask of it.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Which device, e.g. hokuyo, hokuyo:0 or 4:0
    device: Device,
    /// What to ask, or FIELD=VALUE; without it, show what there is
    request: Option<String>,
    /// What goes with the request
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
    /// The messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// How long the answer may take [default: 1, scans longer]
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds)]
    timeout: Option<Duration>,
    /// Do not wait for an answer (FIELD=VALUE and raw)
    #[arg(long)]
    no_answer: bool,
}

/// A request that some kind of device knows.
struct Known {
    device_type: DeviceType,
    name: &'static str,
    args: &'static str,
    /// `None` when the arguments do not fit.
    read: fn(&[String]) -> Option<Request>,
}

/// Any device can be sent bytes.
const RAW: &str = "raw";

const KNOWN: [Known; 16] = [
    Known {
        device_type: DeviceType::DUMMY,
        name: "status",
        args: "",
        read: |args| args.is_empty().then_some(Request::DummyStatus),
    },
    Known {
        device_type: DeviceType::DUMMY,
        name: "enable",
        args: "true|false",
        read: |args| {
            let enable = only(args)?.parse().ok()?;
            Some(Request::Dummy(dummy::DriverMsg {
                enable: Some(enable),
                ..dummy::DriverMsg::data()
            }))
        },
    },
    Known {
        device_type: DeviceType::DUMMY,
        name: "message",
        args: "TEXT",
        read: |args| {
            Some(Request::Dummy(dummy::DriverMsg {
                message: Some(only(args)?.to_owned()),
                ..dummy::DriverMsg::data()
            }))
        },
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "speeds",
        args: "",
        read: |args| args.is_empty().then_some(Request::Speeds),
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "drive",
        args: "LEFT_MM_S RIGHT_MM_S",
        read: |args| {
            let [left, right] = args else { return None };
            let speeds = WheelSpeeds::sides(left.parse().ok()?, right.parse().ok()?);
            Some(Request::Drive(speeds))
        },
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "stop",
        args: "",
        read: |args| args.is_empty().then_some(Request::Drive(WheelSpeeds::STOP)),
    },
    Known {
        device_type: DeviceType::HOKUYO,
        name: "scan",
        args: "",
        read: |args| args.is_empty().then_some(Request::Scan),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "data",
        args: "[accel,gyro,magnet]",
        read: |args| ninedof::Request::data(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "self-test",
        args: "",
        read: |args| {
            let test = Request::NineDof(ninedof::Request::SelfTest);
            args.is_empty().then_some(test)
        },
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "calibrate-gyro",
        args: "[SECONDS]",
        read: |args| ninedof::Request::calibrate_gyro(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "calibrate-magnet",
        args: "[SECONDS]",
        read: |args| ninedof::Request::calibrate_magnet(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::STARGAZER,
        name: "pose",
        args: "",
        read: |args| args.is_empty().then_some(Request::Pose),
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-angle",
        args: "SERVO DEGREES",
        read: |args| {
            let (servo, degrees) = two(args)?;
            Some(Request::Maestro(maestro::set_angle(servo, degrees)))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-same-angle",
        args: "SERVO[,SERVO...] DEGREES",
        read: |args| {
            let [servos, degrees] = args else { return None };
            let servos = servos.split(',').map(|servo| servo.parse().ok());
            let servos: Vec<_> = servos.collect::<Option<_>>()?;
            let message = maestro::set_same_angle(&servos, degrees.parse().ok()?);
            Some(Request::Maestro(message))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-angles",
        args: "SERVO=DEGREES [SERVO=DEGREES...]",
        read: |args| {
            let pairs = args.iter().map(|arg| {
                let (servo, degrees) = arg.split_once('=')?;
                Some((servo.parse().ok()?, degrees.parse().ok()?))
            });
            let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
            let message = maestro::set_angles(&pairs);
            (!pairs.is_empty()).then_some(Request::Maestro(message))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-speed",
        args: "SERVO SPEED",
        read: |args| {
            let (servo, speed) = two(args)?;
            Some(Request::Maestro(maestro::set_speed(servo, speed)))
        },
    },
];

/// A request whose arguments have been read.
enum Request {
    List,
    Raw(Bytes),
    DummyStatus,
    Dummy(dummy::DriverMsg),
    Speeds,
    Drive(WheelSpeeds),
    Scan,
    NineDof(ninedof::Request),
    Pose,
    Maestro(amber_proto::maestro::DriverMsg),
}

impl Options {
    /// Finds out what is wrong before anybody is asked.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        self.read().map(|_| self)
    }

    /// Whether nothing is asked: then nobody needs to be there.
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
            return read_raw(hex).map(Request::Raw);
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
        Failure::wrong(format!("wrong arguments for request '{request}'"))
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
                format!("did you mean '{name}'? there are: {all}")
            }
            _ => format!("there are: {all}"),
        };
        let device_type = self.device.device_type;
        Failure::wrong(format!("{device_type} has no request '{request}'")).hint(hint)
    }

    /// What this device can be asked.
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
                    .hint("`--timeout` waits longer, `--no-answer` is for requests that have none"),
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
                note(
                    "drivers stop the wheels when a client leaves, as this one does; `amber drive` stays",
                );
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

/// A request that only asks, by the name under which `amber call` knows it, or
/// `raw HEX`, for those who want to ask it often.
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
        // A calibration is answered too, but nobody wants to ask it often.
        Request::List
        | Request::Dummy(_)
        | Request::Drive(_)
        | Request::Maestro(_)
        | Request::NineDof(_) => {
            return Err(
                Failure::wrong(format!("'{request}' has no answer to wait for"))
                    .hint("only questions can be timed; a PING can, without --request"),
            );
        }
    };
    Ok(message.into())
}

/// Sends what the device does not answer, and waits until it is clear that
/// there is a driver for it: the mediator says at once when there is none, and
/// what it was asked later it answers later.
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
    let proxy = client.device(device);
    let mediator = client.mediator();
    tokio::select! {
        biased;
        answer = proxy.request_raw(bytes) => match answer {
            Ok(_) | Err(Error::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        },
        _ = mediator.ping() => {}
    }
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

/// What a device can be asked.
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
}

impl Human for Requests {
    fn human(&self) -> String {
        let mut out = String::new();
        for request in &self.requests {
            out += format!("{} {}", request.name, request.args).trim_end();
            out += "\n";
        }
        for field in &self.fields {
            out += &format!("{field}=VALUE\n");
        }
        out
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

#[derive(Debug, Serialize)]
struct Status {
    enable: bool,
    message: String,
}

impl From<DummyStatus> for Status {
    fn from(status: DummyStatus) -> Self {
        Self {
            enable: status.enable,
            message: status.message,
        }
    }
}

impl Human for Status {
    fn human(&self) -> String {
        fields(&[
            ("enable", Some(self.enable.to_string())),
            ("message", Some(self.message.clone())),
        ])
    }
}

/// Wheel speeds as people and programs want to see them.
#[derive(Debug, Serialize)]
struct Speeds {
    front_left_mm_s: i32,
    front_right_mm_s: i32,
    rear_left_mm_s: i32,
    rear_right_mm_s: i32,
}

impl From<WheelSpeeds> for Speeds {
    fn from(speeds: WheelSpeeds) -> Self {
        Self {
            front_left_mm_s: speeds.front_left_mm_s,
            front_right_mm_s: speeds.front_right_mm_s,
            rear_left_mm_s: speeds.rear_left_mm_s,
            rear_right_mm_s: speeds.rear_right_mm_s,
        }
    }
}

impl Human for Speeds {
    fn human(&self) -> String {
        let mm_s = |speed: i32| Some(format!("{speed:>5} mm/s"));
        fields(&[
            ("front left", mm_s(self.front_left_mm_s)),
            ("front right", mm_s(self.front_right_mm_s)),
            ("rear left", mm_s(self.rear_left_mm_s)),
            ("rear right", mm_s(self.rear_right_mm_s)),
        ])
    }
}

/// A servo, and a number for it.
fn two(args: &[String]) -> Option<(u32, i32)> {
    let [servo, number] = args else { return None };
    Some((servo.parse().ok()?, number.parse().ok()?))
}

fn only(args: &[String]) -> Option<&str> {
    match args {
        [argument] => Some(argument),
        _ => None,
    }
}

/// A DATA message out of `FIELD=VALUE`s.
///
/// # Errors
/// What is no FIELD=VALUE, a field that no schema has, or a value that does not fit.
pub fn read_fields<'a>(
    asked: DeviceType,
    words: impl IntoIterator<Item = &'a str>,
    schemas: &Schemas,
) -> Result<Vec<u8>, Failure> {
    let mut fields = Map::new();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            Failure::wrong(format!("'{word}' is no FIELD=VALUE")).hint("set_led=true")
        })?;
        // What is no JSON is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        fields.insert(name.into(), value);
    }
    schemas.encode(asked, &fields)
}

/// A message in hex. What is no `DriverMsg` cannot get a number, so nothing
/// could ever answer it.
fn read_raw(hex: &str) -> Result<Bytes, Failure> {
    let bytes = read_hex(hex)?;
    match dummy::DriverMsg::decode(&bytes[..]) {
        Ok(_) => Ok(bytes.into()),
        Err(_) => Err(Failure::wrong("these bytes are no DriverMsg, so they have no answer").hint(
            "`amber decode --message HEX` shows where they are wrong; 1001 is an empty DATA message",
        )),
    }
}

/// Bytes that are written as hex; blanks, colons, commas and `0x` between them
/// do not count.
///
/// # Errors
/// It is no hex, or half a byte is missing.
pub fn read_hex(text: &str) -> Result<Vec<u8>, Failure> {
    let bare = text.replace("0x", "").replace("\\x", "");
    let bare = bare
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | '_' | '-' | '|'));
    let digits: Option<Vec<_>> = bare.map(|digit| digit.to_digit(16)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => Ok(digits
            .chunks(2)
            .map(|pair| (pair[0] << 4 | pair[1]) as u8)
            .collect()),
        _ => Err(Failure::wrong(format!("'{text}' is no hex"))
            .hint("two digits per byte, e.g. 1001 for an empty DATA message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    fn options(request: &str, args: &[&str]) -> Options {
        options_for(DeviceType::DUMMY, request, args)
    }

    fn options_for(device_type: DeviceType, request: &str, args: &[&str]) -> Options {
        Options {
            device: Device::new(device_type, 0),
            request: Some(request.into()),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..Options::default()
        }
    }

    #[test]
    fn only_questions_can_be_asked_often() {
        let of = |device_type, request| question(Device::new(device_type, 0), request);
        assert!(of(DeviceType::HOKUYO, "scan").is_ok());
        assert!(of(DeviceType::ROBOCLAW, "speeds").is_ok());
        assert!(of(DeviceType::ROBOCLAW, "drive 1 1").is_err());
        assert!(of(DeviceType::ROBOCLAW, "").is_err());
        let hex = of(DeviceType(77), "raw 1001");
        assert_eq!(hex.unwrap(), b"\x10\x01"[..]);
    }

    #[test]
    fn good_requests_are_read() {
        for (request, args) in [
            ("status", &[][..]),
            ("enable", &["true"]),
            ("message", &["hello"]),
            ("raw", &["1001B00601"]),
        ] {
            assert!(options(request, args).read().is_ok(), "{request}");
        }
        assert_eq!(read_hex("10fF").unwrap(), &b"\x10\xff"[..]);
    }

    #[test]
    fn wheels_take_a_speed_for_each_side() {
        let read = |args: &[&str]| options_for(DeviceType::ROBOCLAW, "drive", args).read();
        match read(&["200", "-150"]) {
            Ok(Request::Drive(speeds)) => assert_eq!(speeds, WheelSpeeds::sides(200, -150)),
            _ => panic!("that is how it is written"),
        }
        for args in [
            &[][..],
            &["1"],
            &["1", "2", "3"],
            &["1", "fast"],
            &["1", "1.5"],
        ] {
            assert_eq!(
                read(args).err(),
                Some(
                    Failure::wrong("wrong arguments for request 'drive'")
                        .hint("`amber call roboclaw:0 drive LEFT_MM_S RIGHT_MM_S`")
                ),
                "{args:?}"
            );
        }
    }

    #[test]
    fn a_negative_speed_is_no_option() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            call: Options,
        }
        let line = ["amber", "roboclaw", "drive", "-200", "200"];
        let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
        assert_eq!(cli.call.args, ["-200", "200"]);
    }

    #[tokio::test]
    async fn devices_are_asked_by_their_requests() {
        for (device_type, request, args, sent) in [
            (
                DeviceType::ROBOCLAW,
                "speeds",
                &[][..],
                &b"\xa8\x01\x01"[..],
            ),
            (
                DeviceType::ROBOCLAW,
                "drive",
                &["1", "-1"],
                b"\xa2\x01\x1a\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\
                  \x18\x01\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            ),
            (
                DeviceType::ROBOCLAW,
                "stop",
                &[],
                b"\xa2\x01\x08\x08\0\x10\0\x18\0\x20\0",
            ),
            (DeviceType::HOKUYO, "scan", &[], b"\xc0\x02\x01"),
            (
                DeviceType::NINEDOF,
                "data",
                &["accel"],
                b"\x5a\x08\x08\x01\x10\0\x18\0\x20\x01",
            ),
            (
                DeviceType::NINEDOF,
                "self-test",
                &[],
                b"\x6a\x05\x08\x01\x10\xe8\x07",
            ),
            (DeviceType::STARGAZER, "pose", &[], b"\xfa\x01\x00"),
            (
                DeviceType::MAESTRO,
                "set-angle",
                &["2", "90"],
                b"\xb2\x04\x04\x08\x02\x10\x5a",
            ),
            (
                DeviceType::MAESTRO,
                "set-same-angle",
                &["0,1", "45"],
                b"\xba\x04\x06\x0a\x02\x00\x01\x10\x2d",
            ),
            (
                DeviceType::MAESTRO,
                "set-angles",
                &["0=45", "1=135"],
                b"\xc2\x04\x09\x0a\x02\x00\x01\x12\x03\x2d\x87\x01",
            ),
            (
                DeviceType::MAESTRO,
                "set-speed",
                &["2", "20"],
                b"\xca\x04\x04\x08\x02\x10\x14",
            ),
        ] {
            let (client, mut fake) = Fake::new();
            let options = options_for(device_type, request, args);
            let run = tokio::spawn(async move { run(&client, options, true).await });
            let asked = fake.receive().await.unwrap();
            assert_eq!(asked.device, Device::new(device_type, 0));
            assert_eq!(&asked.without_syn()[2..], sent, "{request}");
            run.abort();
        }
    }

    #[test]
    fn any_device_is_asked_by_the_fields_of_its_schema() {
        let read =
            |request: &str, args: &[&str]| match options_for(DeviceType::NINEDOF, request, args)
                .read()
            {
                Ok(Request::Raw(bytes)) => bytes,
                _ => panic!("{request}"),
            };
        assert_eq!(
            read("dataRequest={\"accel\": true}", &[]),
            b"\x10\x01\x5a\x02\x08\x01"[..]
        );
        assert_eq!(
            read("enable=true", &["message=hi"]),
            b"\x10\x01\x90\x03\x01\x9a\x03\x02hi"[..]
        );
        for wrong in ["enabel=true", "enable=7", "get_status"] {
            assert!(
                options_for(DeviceType::NINEDOF, wrong, &[]).read().is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn requests_of_a_device_are_listed_with_the_fields_of_its_schema() {
        let list = options("status", &[]).list().unwrap().human();
        assert_eq!(
            list,
            "status\nenable true|false\nmessage TEXT\nraw HEX\n\
             enable=VALUE\nmessage=VALUE\nget_status=VALUE\n"
        );
    }

    #[test]
    fn a_message_that_could_have_no_answer_is_refused() {
        assert!(read_raw("1001").is_ok());
        assert!(read_raw("ff").is_err());
        assert_eq!(read_hex("0x10, 01:ff").unwrap(), [0x10, 0x01, 0xff]);
    }

    #[test]
    fn wrong_requests_say_what_there_is() {
        let wrong = |request: &str, args: &[&str]| options(request, args).read().err();
        assert_eq!(
            wrong("stats", &[]),
            Some(
                Failure::wrong("dummy has no request 'stats'")
                    .hint("did you mean 'status'? there are: status, enable, message, raw")
            )
        );
        assert_eq!(
            wrong("fly", &[]),
            Some(
                Failure::wrong("dummy has no request 'fly'")
                    .hint("there are: status, enable, message, raw")
            )
        );
        assert_eq!(
            wrong("enable", &["maybe"]),
            Some(
                Failure::wrong("wrong arguments for request 'enable'")
                    .hint("`amber call dummy:0 enable true|false`")
            )
        );
        for (request, args) in [
            ("status", &["x"][..]),
            ("message", &[]),
            ("message", &["a", "b"]),
            ("raw", &["1"]),
            ("raw", &["xy"]),
        ] {
            assert!(wrong(request, args).is_some(), "{request} {args:?}");
        }
    }
}
