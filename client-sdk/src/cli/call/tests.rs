use amber_proto::DeviceType;

use super::super::output::Human;
use super::*;
use crate::fake::Fake;
use amber_reflect::read_hex;

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
fn only_requests_without_effect_can_be_measured() {
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
        _ => panic!("valid arguments"),
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
                Failure::wrong("invalid arguments for request 'drive'")
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
    let read = |request: &str, args: &[&str]| match options_for(DeviceType::NINEDOF, request, args)
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
fn raw_bytes_must_be_a_driver_msg() {
    assert!(read_raw("1001").is_ok());
    assert!(read_raw("ff").is_err());
    assert_eq!(read_hex("0x10, 01:ff").unwrap(), [0x10, 0x01, 0xff]);
}

#[test]
fn unknown_requests_list_the_known_ones() {
    let wrong = |request: &str, args: &[&str]| options(request, args).read().err();
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
            Failure::wrong("invalid arguments for request 'enable'")
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

/// What `amber call` sends for each of its requests, with arguments that suit it.
fn sent() -> Vec<(DeviceType, &'static str, Bytes)> {
    let arguments = |device_type, name| match (device_type, name) {
        (DeviceType::DUMMY, "enable") => "true",
        (DeviceType::DUMMY, "message") => "hello",
        (DeviceType::ROBOCLAW, "drive") => "100 100",
        (DeviceType::MAESTRO, "set-same-angle") => "1,2 90",
        (DeviceType::MAESTRO, "set-angles") => "1=90",
        (DeviceType::MAESTRO, _) => "1 90",
        _ => "",
    };
    let sent = KNOWN.iter().map(|known| {
        let args = arguments(known.device_type, known.name);
        let args: Vec<_> = args.split_whitespace().collect();
        let request = options_for(known.device_type, known.name, &args).read();
        let bytes = match request.unwrap_or_else(|error| panic!("{}: {error:?}", known.name)) {
            Request::DummyStatus => proxy::dummy::question().encode_to_vec(),
            Request::Dummy(message) => message.encode_to_vec(),
            Request::Speeds => roboclaw::question().encode_to_vec(),
            Request::Drive(speeds) => roboclaw::command(speeds).encode_to_vec(),
            Request::Scan => proxy::hokuyo::question().encode_to_vec(),
            Request::Pose => proxy::stargazer::question().encode_to_vec(),
            Request::Maestro(message) => message.encode_to_vec(),
            Request::NineDof(ninedof::Request::Data(sensors)) => {
                proxy::ninedof::question(sensors).encode_to_vec()
            }
            // Only the client itself makes these.
            Request::NineDof(_) => Vec::new(),
            Request::List | Request::Raw(_) => panic!("{} is a request", known.name),
        };
        (known.device_type, known.name, bytes.into())
    });
    sent.collect()
}

/// The descriptions and the requests of `amber call` are the same, by name and by field.
#[test]
fn requests_are_those_that_the_devices_describe() {
    let interfaces = amber_reflect::built_in();
    let schemas = Schemas::built_in();
    let sent = sent();
    for (device_type, name, bytes) in &sent {
        // Driving with speed 0.
        if *name == "stop" {
            continue;
        }
        let interface = interfaces
            .iter()
            .find(|it| it.device_type == device_type.0)
            .unwrap();
        let method = interface.method(name);
        let method = method.unwrap_or_else(|| panic!("{name} of {device_type} is not described"));
        let Some(fields) = schemas.decode(bytes) else {
            assert_eq!(*device_type, DeviceType::NINEDOF, "{name}");
            continue;
        };
        let request = method.request.iter().map(|field| &*field.path);
        let described = request.chain(method.flags.iter().map(String::as_str));
        let described: Vec<_> = described
            .map(|path| path.rsplit('.').next().unwrap())
            .collect();
        assert_eq!(
            fields.keys().collect::<Vec<_>>(),
            described,
            "{name} of {device_type}"
        );
    }
    // The other way round, for devices whose drivers are a part of Amber.
    for interface in interfaces {
        let has_requests = sent.iter().any(|(of, ..)| of.0 == interface.device_type);
        for method in interface
            .methods
            .iter()
            .filter(|method| !method.is_stream())
        {
            let found = sent
                .iter()
                .any(|(of, name, _)| of.0 == interface.device_type && *name == method.command);
            assert_eq!(found, has_requests, "{} {}", interface.name, method.name);
        }
    }
}
