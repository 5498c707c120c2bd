//! `amber call`: one request, typed per device. IO.

use amber_proto::{Device, DeviceMessage, DeviceType, dummy};
use bytes::Bytes;
use serde::Serialize;

use super::Failure;
use super::ninedof;
use super::output::{self, Human, fields, note};
use super::reflect::Schemas;
use super::scan::{self, ScanShown};
use super::stargazer;
use super::watch::Shown;
use crate::client::{Announcement, Client};
use crate::error::Error;
use crate::proxy::{DummyStatus, WheelSpeeds, maestro, roboclaw};

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
  amber call dummy raw 1001a00301";

/// Which device, and what to ask of it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which device, e.g. hokuyo, hokuyo:0 or 4:0
    device: Device,
    /// What to ask; a wrong name shows what there is
    request: String,
    /// What goes with the request
    #[arg(allow_negative_numbers = true)]
    args: Vec<String>,
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

    fn read(&self) -> Result<Request, Failure> {
        if self.request == RAW {
            let hex = only(&self.args).ok_or_else(|| self.usage("HEX"))?;
            return read_hex(hex).map(Bytes::from).map(Request::Raw);
        }
        let mut known = KNOWN.iter().filter(|known| self.is_for(known));
        let known = known.find(|known| known.name == self.request);
        let known = known.ok_or_else(|| self.unknown())?;
        (known.read)(&self.args).ok_or_else(|| self.usage(known.args))
    }

    fn is_for(&self, known: &Known) -> bool {
        known.device_type == self.device.device_type
    }

    fn usage(&self, args: &str) -> Failure {
        let usage = format!("amber call {} {} {args}", self.device, self.request);
        Failure::wrong(format!("wrong arguments for request '{}'", self.request))
            .hint(format!("`{}`", usage.trim_end()))
    }

    fn unknown(&self) -> Failure {
        let known = KNOWN.iter().filter(|known| self.is_for(known));
        let names: Vec<_> = known.map(|known| known.name).chain([RAW]).collect();
        let distance = |name: &str| strsim::damerau_levenshtein(&self.request, name);
        let nearest = names.iter().min_by_key(|name| distance(name));
        let all = names.join(", ");
        let hint = match nearest {
            Some(name) if distance(name) <= 1 + name.len() / 3 => {
                format!("did you mean '{name}'? there are: {all}")
            }
            _ => format!("there are: {all}"),
        };
        let device_type = self.device.device_type;
        Failure::wrong(format!("{device_type} has no request '{}'", self.request)).hint(hint)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let device = options.device;
    match options.read()? {
        Request::Raw(bytes) => {
            let answer = client.device(device).request_raw(bytes).await?;
            output::show(&Shown::answer(device, &answer, &Schemas::load()?), json)
        }
        Request::DummyStatus => {
            let status = client.dummy(device.id.0).status().await?;
            output::show(&Status::from(status), json)
        }
        Request::Dummy(message) => tell(client, device, message, json).await,
        Request::Speeds => {
            let speeds = client.roboclaw(device.id.0).speeds().await?;
            output::show(&Speeds::from(speeds), json)
        }
        Request::Drive(speeds) => {
            tell(client, device, roboclaw::command(speeds), json).await?;
            if !json && speeds != WheelSpeeds::STOP {
                note(
                    "drivers stop the wheels when a client leaves, as this one does; `amber drive` stays",
                );
            }
            Ok(())
        }
        Request::Pose => stargazer::call(client, device, json).await,
        Request::Maestro(message) => tell(client, device, message, json).await,
        Request::NineDof(request) => ninedof::call(client, device, request, json).await,
        Request::Scan => {
            let scan = scan::scanner(client, device).scan().await?;
            output::show(&ScanShown::from(&scan), json)
        }
    }
}

/// Sends what the device does not answer, and waits until it is clear that
/// there is a driver for it: the mediator says at once when there is none, and
/// what it was asked later it answers later.
async fn tell(
    client: &Client,
    device: Device,
    message: impl DeviceMessage,
    json: bool,
) -> Result<(), Failure> {
    let bytes: Bytes = message.encode_to_vec().into();
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
            request: request.into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        }
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
