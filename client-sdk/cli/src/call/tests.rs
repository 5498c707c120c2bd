use amber_client::fake::Fake;
use amber_proto::DeviceType;
use amber_reflect::read_hex;

use super::*;

fn message(request: &Request) -> &Bytes {
    match request {
        Request::Raw(bytes) => bytes,
        Request::Described(described) => &described.message,
        Request::List => panic!("no message"),
    }
}

/// Reads a request for which no mediator is needed.
fn call(options: Options) -> Result<Call, Failure> {
    let schemas = Schemas::with(&options.proto)?;
    options.by(schemas)
}

fn read(options: Options) -> Result<Request, Failure> {
    call(options).map(|call| call.request)
}

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

#[tokio::test]
async fn only_requests_without_effect_can_be_measured() {
    let options = crate::Options::default();
    for (device_type, request, is_measurable) in [
        (DeviceType::HOKUYO, "scan", true),
        (DeviceType::ROBOCLAW, "speeds", true),
        (DeviceType::ROBOCLAW, "drive 1 1", false),
        (DeviceType::ROBOCLAW, "", false),
        (DeviceType(77), "raw 1001", true),
    ] {
        let device = Device::new(device_type, 0);
        // No mediator is needed.
        let asked = question(device, request, &mut Session::new(&options)).await;
        assert_eq!(asked.is_ok(), is_measurable, "{request}");
        if device_type == DeviceType(77) {
            assert_eq!(asked.unwrap(), b"\x10\x01"[..]);
        }
    }
}

#[test]
fn a_slow_request_has_the_time_limit_of_its_description() {
    let scan = read(options_for(DeviceType::HOKUYO, "scan", &[])).unwrap();
    let Request::Described(scan) = scan else {
        panic!("it is described");
    };
    assert_eq!(scan.timeout(), Some(Duration::from_secs(3)));
}

#[test]
fn good_requests_are_read() {
    for (request, args) in [
        ("status", &[][..]),
        ("enable", &["true"]),
        ("message", &["hello"]),
        ("raw", &["1001B00601"]),
    ] {
        assert!(read(options(request, args)).is_ok(), "{request}");
    }
    assert_eq!(read_hex("10fF").unwrap(), &b"\x10\xff"[..]);
}

#[test]
fn wheels_take_a_speed_for_each_side_or_each_wheel() {
    let read = |args: &[&str]| read(options_for(DeviceType::ROBOCLAW, "drive", args));
    let sides = read(&["200", "-150"]).unwrap();
    let wheels = read(&["200", "-150", "200", "-150"]).unwrap();
    assert_eq!(message(&sides), message(&wheels));
    let named = read(&["frontLeftSpeed=0.2m/s", "rear-right-speed=-5"]).unwrap();
    let expected = b"\x10\x01\xa2\x01\x0e\x08\xc8\x01\x20\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(message(&named), &expected[..]);
    for (args, why) in [
        (&[][..], "the arguments are missing"),
        (&["1"], "expected 2 or 4 arguments, got 1"),
        (&["1", "2", "3"], "expected 2 or 4 arguments, got 3"),
        (
            &["1", "fast"],
            "argument 'front-right-speed': 'fast' is not a number",
        ),
        (
            &["1", "1.5"],
            "argument 'front-right-speed': '1.5' is not a whole number of mm/s",
        ),
    ] {
        let text = format!("invalid arguments for 'drive': {why}");
        let usage = "`amber call roboclaw:0 drive FRONT-LEFT-SPEED FRONT-RIGHT-SPEED \
                     REAR-LEFT-SPEED REAR-RIGHT-SPEED`";
        let expected = Failure::wrong(text).hint(usage);
        assert_eq!(read(args).unwrap_err(), expected, "{args:?}");
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
        (DeviceType::DUMMY, "status", &[], b"\xa0\x03\x01"),
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
        let run = tokio::spawn(async move { call(options).unwrap().run(&client, true).await });
        let asked = fake.receive().await.unwrap();
        assert_eq!(asked.device, Device::new(device_type, 0));
        assert_eq!(&asked.without_syn()[2..], sent, "{request}");
        run.abort();
    }
}

#[test]
fn any_device_is_asked_by_the_fields_of_its_schema() {
    let read = |request: &str, args: &[&str]| {
        let read = read(options_for(DeviceType::NINEDOF, request, args));
        message(&read.unwrap()).clone()
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
            self::read(options_for(DeviceType::NINEDOF, wrong, &[])).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn requests_of_a_device_are_listed_with_the_fields_of_its_schema() {
    let call = call(options("status", &[])).unwrap();
    assert_eq!(
        call.list().human(),
        "REQUEST            WHAT IT DOES\n\
         status             The flag and the text\n\
         enable true|false  Sets the flag\n\
         message MESSAGE    Sets the text\n\
         raw HEX            Sends a DriverMsg\n\
         enable=VALUE\nmessage=VALUE\nget_status=VALUE\n"
    );
    let json = serde_json::to_value(call.list()).unwrap();
    assert_eq!(json["requests"][1]["name"], "enable");
    assert_eq!(json["requests"][1]["args"], "true|false");
    assert_eq!(json["fields"][2], "get_status");
}

#[test]
fn raw_bytes_must_be_a_driver_msg() {
    assert!(read_raw("1001").is_ok());
    assert!(read_raw("ff").is_err());
    assert_eq!(read_hex("0x10, 01:ff").unwrap(), [0x10, 0x01, 0xff]);
}

#[test]
fn unknown_requests_list_the_known_ones() {
    let wrong = |request: &str, args: &[&str]| read(options(request, args)).err();
    assert_eq!(
        wrong("stats", &[]),
        Some(
            Failure::wrong("dummy has no request 'stats'")
                .hint("did you mean 'status'? its requests are: status, enable, message, raw")
        )
    );
    assert_eq!(
        wrong("fly", &[]),
        Some(
            Failure::wrong("dummy has no request 'fly'")
                .hint("its requests are: status, enable, message, raw")
        )
    );
    assert_eq!(
        wrong("enable", &["maybe"]),
        Some(
            Failure::wrong(
                "invalid arguments for 'enable': argument 'enable': 'maybe' is not true or false"
            )
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

#[test]
fn a_stream_or_an_unknown_device_is_no_request() {
    let failure = read(options_for(DeviceType::HOKUYO, "scans", &[])).unwrap_err();
    let expected = Failure::wrong("hokuyo has no request 'scans'")
        .hint("it is a stream: `amber watch hokuyo:0 scans`");
    assert_eq!(failure, expected);
    let failure = read(options_for(DeviceType(77), "fly", &[])).unwrap_err();
    let text = format!("{failure:?}");
    assert!(text.contains("77 has no request 'fly'"), "{text}");
}

#[test]
fn a_command_out_of_range_is_refused_before_it_is_sent() {
    let failure = read(options_for(DeviceType::MAESTRO, "set-angle", &["24", "45"])).unwrap_err();
    let expected = Failure::wrong(
        "invalid arguments for 'set-angle': argument 'servo-address': '24' is out of range: \
         from 0 to 23",
    )
    .hint("`amber call maestro:0 set-angle SERVO-ADDRESS ANGLE`");
    assert_eq!(failure, expected);
}

/// The arguments that a request cannot do without, such as `angle=1`.
fn needed(method: &Method) -> Vec<String> {
    let needed = arguments::arguments(method).into_iter();
    let word = |it: arguments::Argument<'_>| {
        let value = match (&*it.field.type_name, it.field.choices.first()) {
            (_, Some(choice)) => choice.name.clone(),
            ("bool", _) => "true".to_owned(),
            ("string", _) => "text".to_owned(),
            ("bytes", _) => "0a0b".to_owned(),
            _ if it.is_table() => "none".to_owned(),
            _ => it.field.min.unwrap_or(1.0).to_string(),
        };
        format!("{}={value}", it.name)
    };
    needed.filter(|it| it.is_required).map(word).collect()
}

/// Every request that a device describes can be called, with arguments that suit it.
#[test]
fn requests_are_those_that_the_devices_describe() {
    for interface in amber_reflect::built_in() {
        let methods = interface.methods.iter().filter(|it| !it.is_stream());
        for method in methods {
            let args = match (&*interface.name, &*method.command) {
                ("roboclaw" | "collision-avoidance", "drive" | "drive-as-roboclaw") => {
                    "100 100 100 100"
                }
                ("maestro", "set-angles") => "1=90",
                ("drive-to-point", "set-targets") => "1,2,0.3 -4,5m,30cm",
                ("pid-follow-trajectory", "set-targets") => "1,2,0.3s max-lookahead=50cm",
                ("gateway", "send-image") => "image=0a0b",
                ("mediator", "trace") => "5 0",
                ("mediator", "health") => "ok",
                _ => &needed(method).join(" "),
            };
            let args: Vec<_> = args.split_whitespace().collect();
            let device_type = DeviceType(interface.device_type);
            let request = read(options_for(device_type, &method.command, &args));
            let request = request
                .unwrap_or_else(|error| panic!("{} {}: {error:?}", interface.name, method.command));
            let schemas = Schemas::built_in();
            let fields = schemas.decode(message(&request)).unwrap();
            for path in &method.flags {
                assert_eq!(
                    schemas.value_at(&fields, path),
                    Some(&true.into()),
                    "{path}"
                );
            }
            for field in &method.request {
                let found = schemas.value_at(&fields, &field.path);
                assert!(found.is_some(), "{}", field.path);
            }
        }
    }
}

#[test]
fn help_names_arguments_with_their_units_and_ranges() {
    let help = |device_type, request: Option<&str>| {
        let options = Options {
            request: request.map(str::to_owned),
            ..options_for(device_type, "", &[])
        };
        options.help(&MediatorAddress::default()).unwrap().unwrap()
    };
    assert_eq!(
        help(DeviceType::MAESTRO, Some("set-angle")),
        "Usage: amber call maestro:0 set-angle SERVO-ADDRESS ANGLE\n\nTurns one servo.\n\n\
         Arguments, in this order or as name=value:\n  \
         servo-address  uint32, from 0 to 23\n  \
         angle          int32, deg\n"
    );
    let help_for = help(DeviceType::NINEDOF, Some("calibrate-gyro"));
    for words in [
        "uint32, from 0 to 120000 ms [default: 2s]",
        "without a unit is in s",
        "findings",
    ] {
        assert!(help_for.contains(words), "no '{words}' in {help_for}");
    }
    let all = help(DeviceType::ROBOCLAW, None);
    assert!(all.contains("Four driven wheels"), "{all}");
    let column_of = |request: &str, about: &str| {
        let line = all.lines().find(|line| line.starts_with(request));
        line.and_then(|line| line.find(about)).unwrap()
    };
    let speeds = column_of("speeds ", "The measured speeds");
    assert_eq!(speeds, column_of("stop ", "Stops the wheels"));
}

#[test]
fn an_answer_without_its_fields_is_an_error() {
    let answered = |device_type, request: &str, bytes: &[u8]| {
        let options = options_for(device_type, request, &[]);
        let Ok(Request::Described(asked)) = read(options) else {
            panic!("{request}");
        };
        let device = Device::new(device_type, 0);
        let answer = Answer::read(device, &asked.method, &Schemas::built_in(), bytes)?;
        views::show(device, &asked.method, &answer.values, true)
    };
    let failure = answered(DeviceType::ROBOCLAW, "speeds", b"\x10\x01").unwrap_err();
    assert!(
        format!("{failure:?}").contains("it has no 'currentSpeed'"),
        "{failure:?}"
    );
    let speeds = b"\x10\x01\xb2\x01\x02\x08\x01";
    assert_eq!(answered(DeviceType::ROBOCLAW, "speeds", speeds), Ok(true));
    let status = b"\x10\x01\x90\x03\x01\x9a\x03\x02hi";
    assert_eq!(answered(DeviceType::DUMMY, "status", status), Ok(false));
    // reply { refused { reason: NOT_ALLOWED message: "no" hint: "yes" } }
    let refused = b"\x10\x01\xaa\x0b\x0d\x32\x0b\x08\x03\x12\x02no\x1a\x03yes";
    let failure = answered(DeviceType::MEDIATOR, "reload", refused).unwrap_err();
    assert_eq!(failure, Failure::new("no").hint("yes"));
}

const BATTERY: &str = r#"syntax = "proto2";
package battery;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg {
  optional bool get_charge = 110;
  optional double charge = 111 [(amber.unit) = "%"];
  optional uint32 set_limit = 112 [(amber.unit) = "mA", (amber.max) = 5000];
}
service Battery {
  option (amber.device) = { type: 211 name: "gauge" };
  // How full the battery is.
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_charge" answer: "charge" timeout_ms: 2500 };
  }
  rpc SetLimit(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "set_limit" };
  }
}
"#;

/// The device of a user, by nothing but its description.
#[test]
fn a_described_device_of_a_user_is_called_by_method() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("battery.proto");
    std::fs::write(&file, BATTERY).unwrap();
    let call = |request: &str, args: &[&str]| {
        call(Options {
            proto: vec![file.clone()],
            ..options_for(DeviceType(211), request, args)
        })
    };
    let charge = call("charge", &[]).unwrap();
    assert_eq!(message(&charge.request), &b"\x10\x01\xf0\x06\x01"[..]);
    let limit = call("set-limit", &["1.5A"]).unwrap();
    assert_eq!(message(&limit.request), &b"\x10\x01\x80\x07\xdc\x0b"[..]);
    let failure = call("set-limit", &["6A"]).unwrap_err();
    let expected = Failure::wrong(
        "invalid arguments for 'set-limit': argument 'set-limit': '6A' is out of range: \
         from 0 to 5000 mA",
    )
    .hint("`amber call 211:0 set-limit SET-LIMIT`");
    assert_eq!(failure, expected);
    let Request::Described(described) = &charge.request else {
        panic!("it is described");
    };
    assert_eq!(described.timeout(), Some(Duration::from_millis(2500)));
    let schemas = charge.schemas.for_device(Some(DeviceType(211)));
    let bytes = b"\x10\x01\xf9\x06\0\0\0\0\0\0\x49\x40";
    let device = Device::new(DeviceType(211), 0);
    let answer = Answer::read(device, &described.method, schemas, bytes).unwrap();
    assert_eq!(answer.human(), "charge: 50.0 %\n");
    assert_eq!(serde_json::to_string(&answer).unwrap(), "{\"charge\":50.0}");
}
