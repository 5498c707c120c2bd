//! Descriptions that are right, and one for each rule that is broken.

use amber_proto::{DESCRIPTORS, DeviceType};
use prost_reflect::{DescriptorPool, FileDescriptor};
use protox::file::{ChainFileResolver, DescriptorSetFileResolver, File, FileResolver};

use super::*;

mod moves;

/// The descriptors of Amber's own devices.
fn built_in_pool() -> DescriptorPool {
    DescriptorPool::decode(DESCRIPTORS).unwrap()
}

/// Their interfaces.
fn built_in() -> Vec<Interface> {
    read_all(&built_in_pool(), &[]).unwrap()
}

/// A file of a user, as `battery.proto`.
struct Source(String);

impl FileResolver for Source {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "battery.proto" => File::from_source(name, &self.0),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn compiled(source: &str) -> FileDescriptor {
    let mut resolver = ChainFileResolver::new();
    resolver.add(DescriptorSetFileResolver::decode(DESCRIPTORS).unwrap());
    resolver.add(Source(source.to_owned()));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    compiler
        .open_file("battery.proto")
        .unwrap_or_else(|error| panic!("{error:?}\n{source}"));
    // A pool of bytes has the options; the compiler's own pool has lost them.
    let pool = DescriptorPool::decode(&*compiler.encode_file_descriptor_set()).unwrap();
    pool.get_file_by_name("battery.proto").unwrap()
}

const HEAD: &str = r#"syntax = "proto2";
package battery;
import "drivermsg.proto";
import "interface.proto";
"#;

const FIELDS: &str = r#"extend amber.DriverMsg {
  optional bool get_charge = 110;
  // How full the battery is.
  optional double charge = 111 [(amber.unit) = "%", (amber.min) = 0, (amber.max) = 100];
  optional uint32 capacity = 112 [(amber.unit) = "mA*h"];
  optional Watch watch = 113;
}
message Watch {
  optional uint32 period_ms = 1 [(amber.unit) = "ms", (amber.absent_means) = "1000"];
  optional Mode mode = 2;
}
enum Mode { ON = 1; OFF = 2; }
"#;

/// A battery with these methods; they begin in line 20.
fn battery(methods: &str) -> String {
    let device = "  option (amber.device) = { type: 211 name: \"gauge\" };\n";
    format!("{HEAD}{FIELDS}// A battery gauge.\nservice Battery {{\n{device}{methods}\n}}\n")
}

const ALL_KINDS: &str = r#"
  // The charge.
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = {
      flag: "get_charge" answer: "charge" may_answer: "capacity" timeout_ms: 3000 value: "Charge"
    };
  }
  rpc SetCapacity(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "capacity" };
  }
  rpc Charges(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "charge" };
  }
  rpc Watch(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = {
      request: "watch" period: "watch.period_ms" data: "charge"
      start: { field: "watch.mode" value: "ON" }
      stop: { field: "battery.watch.mode" value: "OFF" }
    };
  }
"#;

#[test]
fn a_description_becomes_a_model() {
    let interfaces = read(&compiled(&battery(ALL_KINDS)), &built_in()).unwrap();
    let [interface] = &interfaces[..] else {
        panic!("{interfaces:?}");
    };
    assert_eq!(
        (interface.device_type, interface.name.as_str()),
        (211, "gauge")
    );
    assert_eq!(interface.docs, "A battery gauge.");
    let commands: Vec<_> = interface
        .methods
        .iter()
        .map(|it| it.command.as_str())
        .collect();
    assert_eq!(commands, ["charge", "set-capacity", "charges", "watch"]);

    let charge = interface.method("charge").unwrap();
    assert_eq!(charge.docs, "The charge.");
    assert_eq!(
        charge.kind,
        Kind::Ask {
            repeats_flag: false,
            refusal: None,
            timeout_ms: Some(3000),
            duration: None,
        }
    );
    assert_eq!(charge.value.as_deref(), Some("Charge"));
    assert_eq!(charge.flags, ["battery.get_charge"]);
    let answer = &charge.answer[0];
    assert_eq!((answer.number, answer.unit.as_deref()), (111, Some("%")));
    assert_eq!((answer.min, answer.max), (Some(0.0), Some(100.0)));
    assert_eq!(answer.docs, "How full the battery is.");
    assert_eq!(charge.may_answer[0].name, "capacity");

    assert_eq!(interface.method("set-capacity").unwrap().kind, Kind::Tell);
    assert_eq!(interface.method("Charges").unwrap().kind, Kind::Subscribe);
    let watch = interface.method("Watch").unwrap();
    let setting = |value: &str| Setting {
        field: "battery.watch.mode".into(),
        value: value.into(),
    };
    let expected = Kind::StreamByRequest {
        period: Some("battery.watch.period_ms".into()),
        start: vec![setting("ON")],
        stop: vec![setting("OFF")],
    };
    assert_eq!(watch.kind, expected);
    let period = &watch.request[0].fields[0];
    assert_eq!(period.path, "battery.watch.period_ms");
    assert_eq!(period.absent_means.as_deref(), Some("1000"));
    assert_eq!(watch.request[0].fields[1].choices[1].name, "OFF");
}

#[test]
fn a_file_without_a_description_has_no_interface() {
    assert_eq!(
        read(&compiled(&format!("{HEAD}{FIELDS}")), &built_in()).unwrap(),
        []
    );
}

#[test]
fn messages_that_contain_themselves_end() {
    let source = format!(
        "{HEAD}extend amber.DriverMsg {{ optional Tree tree = 110; }}\n\
         message Tree {{ repeated Tree branches = 1; }}\n\
         service S {{ option (amber.device) = {{ type: 211 name: \"tree\" }};\n\
         rpc Grow(amber.DriverMsg) returns (amber.Nothing) {{\n\
         option (amber.tell) = {{ request: \"tree\" }}; }} }}\n"
    );
    let interfaces = read(&compiled(&source), &built_in()).unwrap();
    assert_eq!(interfaces[0].methods[0].request[0].fields[0].fields, []);
}

/// The one method of a battery, with a mistake, and the rule that it breaks.
#[track_caller]
fn check_method(returns: &str, option: &str, rule: &str) {
    let method =
        format!("  rpc Test(amber.DriverMsg) returns ({returns}) {{\n    option {option};\n  }}");
    let error = read(&compiled(&battery(&method)), &built_in()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("battery.proto:20: method Test: {rule}")
    );
}

#[test]
fn broken_rules_of_methods_are_named_with_their_line() {
    let (message, nothing, stream) = ("amber.DriverMsg", "amber.Nothing", "stream amber.DriverMsg");
    for (returns, option, rule) in [
        (
            message,
            "deprecated = true",
            "it needs exactly one of the options ask, tell and stream",
        ),
        (
            message,
            "(amber.ask) = { flag: \"get_charge\" }",
            "ask needs an answer field",
        ),
        (
            message,
            "(amber.ask) = { answer: \"charge\" }",
            "ask needs a flag or a request field",
        ),
        (
            nothing,
            "(amber.tell) = { }",
            "tell needs a flag or a request field",
        ),
        (stream, "(amber.stream) = { }", "stream needs a data field"),
        (
            nothing,
            "(amber.ask) = { flag: \"get_charge\" answer: \"charge\" }",
            "ask returns amber.DriverMsg",
        ),
        (
            message,
            "(amber.tell) = { request: \"capacity\" }",
            "tell returns amber.Nothing",
        ),
        (
            message,
            "(amber.stream) = { data: \"charge\" }",
            "stream returns a stream of amber.DriverMsg",
        ),
        (
            message,
            "(amber.ask) = { flag: \"get_charge\" answer: \"chrage\" }",
            "no extension of DriverMsg is called 'chrage'; did you mean 'charge'?",
        ),
        (
            nothing,
            "(amber.tell) = { request: \"nonsense\" }",
            "no extension of DriverMsg is called 'nonsense'",
        ),
        (
            nothing,
            "(amber.tell) = { request: \"amber.unit\" }",
            "'amber.unit' extends google.protobuf.FieldOptions, not amber.DriverMsg",
        ),
        (
            nothing,
            "(amber.tell) = { request: \"watch.speed\" }",
            "'battery.watch' has no field 'speed'",
        ),
        (
            message,
            "(amber.ask) = { flag: \"capacity\" answer: \"charge\" }",
            "flag 'capacity' is not of type bool",
        ),
        (
            message,
            "(amber.ask) = { request: \"capacity\" answer: \"charge\" repeats_flag: true }",
            "repeats_flag needs a flag",
        ),
        (
            nothing,
            "(amber.tell) = { request: \"watch\" set: { field: \"watch.mode\" value: \"MAYBE\" } }",
            "set: 'MAYBE' is not a value of 'battery.watch.mode'",
        ),
        (
            nothing,
            "(amber.tell) = { request: \"capacity\" set: { field: \"watch.mode\" value: \"ON\" } }",
            "set: 'watch.mode' is not inside the request",
        ),
        (
            stream,
            "(amber.stream) = { data: \"charge\" period: \"watch.period_ms\" }",
            "period needs a request field",
        ),
        (
            stream,
            "(amber.stream) = { data: \"charge\" request: \"watch\" }",
            "a stream by a request needs a value that stops it",
        ),
        (
            stream,
            "(amber.stream) = { data: \"charge\" request: \"watch\" period: \"capacity\"\
             stop: { field: \"watch.mode\" value: \"OFF\" } }",
            "period: 'capacity' is not inside the request",
        ),
        (
            stream,
            "(amber.stream) = { data: \"charge\" request: \"watch\" period: \"watch.mode\"\
             stop: { field: \"watch.mode\" value: \"OFF\" } }",
            "period: 'watch.mode' is not a whole number of ms",
        ),
    ] {
        check_method(returns, option, rule);
    }
}

/// A whole file with a mistake, and the error.
#[track_caller]
fn check_file(source: &str, expected: &str) {
    let error = read(&compiled(source), &built_in()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn service(options: &str, methods: &str) -> String {
    format!("{HEAD}{FIELDS}service S {{\n{options}\n{methods}\n}}\n")
}

const TELL: &str = "rpc Tell(amber.DriverMsg) returns (amber.Nothing) {\n\
                    option (amber.tell) = { request: \"capacity\" }; }";

#[test]
fn a_table_has_columns_only() {
    let table = |field: &str| {
        let row = format!("message Row {{ option (amber.columns) = true; {field} }}\n");
        let fields = "extend amber.DriverMsg { optional Row row = 130; }\n";
        let method = "rpc SetRows(amber.DriverMsg) returns (amber.Nothing) {\n\
                      option (amber.tell) = { request: \"row\" }; }";
        battery(method) + fields + &row
    };
    let good = compiled(&table(
        "repeated int32 x = 1 [packed = true]; repeated string name = 2;",
    ));
    assert!(read(&good, &[]).unwrap()[0].methods[0].request[0].columns);
    check_file(
        &table("optional int32 x = 1;"),
        "battery.proto:24: message Row: columns is only for a message of lists of single values",
    );
}

#[test]
fn broken_rules_of_services_are_named_with_their_line() {
    let device = |device: &str| service(&format!("option (amber.device) = {{ {device} }};"), "");
    for (source, expected) in [
        (service("", TELL), "service S: method Tell needs a device"),
        (
            device("type: 211 name: \"My Lamp\""),
            "service S: invalid device name 'My Lamp'",
        ),
        (
            device("type: 211 name: \"lamp-\""),
            "service S: invalid device name 'lamp-'",
        ),
        (
            device("type: 4 name: \"lamp\""),
            "service S: device type 4 is reserved",
        ),
        (
            device("type: 200 name: \"lamp\""),
            "service S: device type 200 is reserved",
        ),
        (
            device("type: 99 name: \"lamp\""),
            "service S: device type 99 is reserved",
        ),
        (
            device("type: -1 name: \"lamp\""),
            "service S: device type -1 is reserved",
        ),
        (
            device("type: 211 name: \"hokuyo\""),
            "service S: 'hokuyo' is the name of a device of Amber",
        ),
    ] {
        check_file(&source, &format!("battery.proto:17: {expected}"));
    }
    let two = "option (amber.device) = { type: 211 name: \"one\" };\n}\n\
               service T {\noption (amber.device) = { type: 211 name: \"two\" };";
    let expected = "battery.proto:20: service T: device type 211 is already used by battery.S";
    check_file(&service(two, ""), expected);
}

#[test]
fn two_methods_do_not_share_a_field() {
    for (second, line) in [
        (TELL.replace("Tell(", "Again("), 21),
        (
            "rpc Again(amber.DriverMsg) returns (amber.DriverMsg) {\n\
             option (amber.ask) = { request: \"capacity\" answer: \"charge\" }; }"
                .to_owned(),
            21,
        ),
    ] {
        let source = battery(&format!("{TELL}\n{second}").replacen("\n", " ", 1));
        let expected = format!("battery.proto:{line}: method Again: same fields as method Tell");
        check_file(&source, &expected);
    }
    let stream = |name: &str| {
        format!(
            "rpc {name}(amber.DriverMsg) returns (stream amber.DriverMsg) {{ \
             option (amber.stream) = {{ data: \"charge\" }}; }}\n"
        )
    };
    check_file(
        &battery(&(stream("One") + &stream("Two"))),
        "battery.proto:21: method Two: same fields as method One",
    );
    // Values inside the request may make the difference.
    let mode = |name: &str, mode: &str| {
        format!(
            "rpc {name}(amber.DriverMsg) returns (amber.Nothing) {{ option (amber.tell) = {{ \
             request: \"watch\" set: {{ field: \"watch.mode\" value: \"{mode}\" }} }}; }}\n"
        )
    };
    read(
        &compiled(&battery(&(mode("On", "ON") + &mode("Off", "OFF")))),
        &built_in(),
    )
    .unwrap();
}

#[test]
fn broken_rules_of_fields_are_named_with_their_line() {
    for (field, rule) in [
        (
            "optional double f = 150 [(amber.unit) = \"furlong\"];",
            "unknown unit 'furlong'",
        ),
        (
            "optional string f = 150 [(amber.unit) = \"m\"];",
            "unit is only for a number or for a message of numbers",
        ),
        (
            "optional bool f = 150 [(amber.min) = 1];",
            "min and max are only for a number or for a message of numbers",
        ),
        (
            "optional int32 f = 150 [(amber.min) = 2, (amber.max) = 1];",
            "min 2 is above max 1",
        ),
        (
            "repeated int32 f = 150 [(amber.absent_means) = \"1\"];",
            "absent_means is only for an optional field",
        ),
        (
            "optional int32 f = 150 [(amber.absent_means) = \"1.5\"];",
            "absent_means '1.5' is not a value of type int32",
        ),
        (
            "optional int32 f = 150 [(amber.max) = 3, (amber.absent_means) = \"4\"];",
            "absent_means 4 is outside of min and max",
        ),
    ] {
        let source = format!(
            "{HEAD}extend amber.DriverMsg {{\n  {field}\n}}\nservice S {{\n\
             option (amber.device) = {{ type: 211 name: \"gauge\" }};\n\
             rpc Tell(amber.DriverMsg) returns (amber.Nothing) {{\n\
             option (amber.tell) = {{ request: \"f\" }}; }}\n}}\n"
        );
        check_file(&source, &format!("battery.proto:6: field f: {rule}"));
    }
}

#[test]
fn a_range_outside_of_a_message_is_that_of_its_numbers() {
    let fields = "message Axes { optional int32 x = 1; optional int32 y = 2 [(amber.max) = 5]; }\n\
                  extend amber.DriverMsg {\n\
                  optional Axes axes = 150 [(amber.unit) = \"mm\", (amber.min) = -9];\n\
                  optional uint32 sure = 151 [(amber.always_set) = true];\n}\n";
    let tell = "rpc Tell(amber.DriverMsg) returns (amber.Nothing) {\n\
                option (amber.tell) = { request: [\"axes\", \"sure\"] }; }\n";
    let interfaces = read(&compiled(&(battery(tell) + fields)), &built_in()).unwrap();
    let [axes, sure] = &interfaces[0].methods[0].request[..] else {
        panic!("{interfaces:?}");
    };
    let ranges: Vec<_> = axes.fields.iter().map(|it| (it.min, it.max)).collect();
    assert_eq!(ranges, [(Some(-9.0), None), (Some(-9.0), Some(5.0))]);
    assert_eq!((axes.min, &axes.unit), (None, &None));
    assert_eq!(
        (axes.always_set, sure.always_set, sure.min),
        (false, true, None)
    );
}

#[test]
fn a_description_says_which_requests_are_harmless() {
    let methods = r#"
  rpc Charge(amber.DriverMsg) returns (amber.DriverMsg) {
    option (amber.ask) = { flag: "get_charge" answer: "charge" reads: true };
  }
  rpc SetCapacity(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = {
      request: "capacity" harmless: { set: { field: "capacity" value: "5" } }
    };
  }
  rpc Watch(amber.DriverMsg) returns (amber.Nothing) {
    option (amber.tell) = { request: "watch" harmless: {} };
  }
  rpc Charges(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "charge" };
  }
"#;
    let interfaces = read(&compiled(&battery(methods)), &built_in()).unwrap();
    let harmless: Vec<_> = interfaces[0]
        .methods
        .iter()
        .map(|it| &it.harmless)
        .collect();
    let five = Setting {
        field: "battery.capacity".into(),
        value: "5".into(),
    };
    let expected = [
        &Harmless::Any,
        &Harmless::With(vec![five]),
        &Harmless::With(vec![]),
        &Harmless::Any,
    ];
    assert_eq!(harmless, expected);
    let unknown = read(&compiled(&battery(ALL_KINDS)), &built_in()).unwrap();
    assert_eq!(unknown[0].methods[0].harmless, Harmless::Unknown);

    for (wrong, rule) in [
        (
            "capacity\" value: \"x",
            "'x' is not a value of 'battery.capacity'",
        ),
        ("charge\" value: \"5", "'charge' is not inside the request"),
    ] {
        let source = battery(&methods.replace("capacity\" value: \"5", wrong));
        check_file(
            &source,
            &format!("battery.proto:24: method SetCapacity: harmless: {rule}"),
        );
    }
}

#[test]
fn numbers_of_users_are_from_their_range() {
    let source = battery(ALL_KINDS).replace("get_charge = 110", "get_charge = 108");
    let expected = "battery.proto:6: field get_charge: number 108 is reserved";
    check_file(&source, expected);
    let error = read(&compiled(&source), &built_in()).unwrap_err();
    assert_eq!(
        error.hint.unwrap(),
        "choose an unused number from 110 to 179"
    );
}

#[test]
fn the_devices_of_amber_are_described() {
    let interfaces = built_in();
    let names: Vec<_> = interfaces
        .iter()
        .map(|it| (DeviceType(it.device_type), it.name.as_str()))
        .collect();
    assert_eq!(names, DeviceType::NAMES);
    for interface in &interfaces {
        assert!(!interface.docs.is_empty(), "{}", interface.name);
        for method in &interface.methods {
            assert!(
                !method.docs.is_empty(),
                "{} {}",
                interface.name,
                method.name
            );
        }
    }
}

/// Every extension of `DriverMsg` that Amber has is a part of a method.
#[test]
fn no_field_of_a_device_is_left_out() {
    let pool = built_in_pool();
    let mut described = std::collections::BTreeSet::new();
    for interface in built_in() {
        for method in interface.methods {
            if let Kind::Ask {
                refusal: Some(refusal),
                ..
            } = method.kind
            {
                described.insert(refusal.path);
            }
            let fields = method
                .request
                .into_iter()
                .chain(method.answer)
                .chain(method.may_answer);
            let fields = fields.map(|field| field.path).chain(method.flags);
            described.extend(fields);
        }
    }
    // These explain a DRIVER_DIED, and belong to requests to any device.
    for name in ["unavailable", "want_outcome", "outcome", "max_answer_bytes"] {
        described.insert(format!("amber.mediator_proto.{name}"));
    }
    // These belong to all devices that move.
    let of_motion = |name: &str| name.starts_with("amber.motion_proto.");
    for extension in pool.all_extensions() {
        if extension.containing_message().full_name() != "amber.DriverMsg" {
            continue;
        }
        let name = extension.full_name();
        if of_motion(name) {
            continue;
        }
        let inside = format!("{name}.");
        assert!(
            described
                .iter()
                .any(|path| path == name || path.starts_with(&inside)),
            "{name} is not described"
        );
    }
}

/// The mediator decides by the members of `Request`.
#[test]
fn every_request_to_the_mediator_is_described() {
    let interfaces = built_in();
    let mediator = interfaces.iter().find(|it| it.name == "mediator").unwrap();
    let described: Vec<_> = (mediator.methods.iter())
        .flat_map(|method| &method.request)
        .filter_map(|field| field.path.strip_prefix("amber.mediator_proto.request."))
        .collect();
    let pool = built_in_pool();
    let request = pool
        .get_message_by_name("amber.mediator_proto.Request")
        .unwrap();
    for field in request.fields() {
        assert!(
            described.contains(&field.name()),
            "{} is not described",
            field.name()
        );
    }
    assert_eq!(described.len(), request.fields().count());
}

#[test]
fn people_get_text_without_fixed_arguments() {
    let interfaces = read(&compiled(&battery(ALL_KINDS)), &built_in()).unwrap();
    let shown = text(&interfaces[0]);
    for line in [
        "gauge (device type 211)",
        "A battery gauge.",
        "charge  (request with an answer)",
        "    The charge.",
        "    charge  double  %, 0 to 100  How full the battery is.",
        "set-capacity  (request without an answer)",
        "charges  (stream, by SUBSCRIBE)",
        "watch  (stream, by a request; stops with mode = OFF)",
        "      period_ms  uint32  ms, absent means 1000",
    ] {
        assert!(
            shown.lines().any(|it| it == line),
            "no {line:?} in\n{shown}"
        );
    }
    assert!(!shown.contains("One of ON"), "{shown}");
    let document = markdown(&interfaces);
    let row = "| `charge` | double | %, 0 to 100 | How full the battery is. |";
    assert!(document.lines().any(|line| line == row), "{document}");
    assert!(document.contains("The client sets the field `get_charge` to true."));
    assert!(!document.contains("## Numbers"), "{document}");
    let caution = "It may move or change something, so `amber check` does not send it.";
    let changes = |command: &str| {
        let section = document.split(&format!("### gauge: {command}\n")).nth(1);
        section
            .unwrap()
            .split("\n### ")
            .next()
            .unwrap()
            .contains(caution)
    };
    assert!(changes("set-capacity") && !changes("charges"));
}

#[test]
fn several_devices_begin_with_a_table_of_their_numbers() {
    let mut interfaces = read(&compiled(&battery(ALL_KINDS)), &built_in()).unwrap();
    let mut other = interfaces[0].clone();
    (other.device_type, other.name) = (212, "lamp".into());
    other.numbers = vec![1, 3, 4, 6, 7, 8, 9];
    interfaces.push(other);
    let document = markdown(&interfaces);
    let (_, rows) = document.split_once("|---|---|---|\n").unwrap();
    let mut rows = rows.lines();
    assert_eq!(rows.next(), Some("| 211 | gauge | 110-113 |"));
    assert_eq!(rows.next(), Some("| 212 | lamp | 1, 3, 4, 6-9 |"));
}

#[test]
fn tools_get_json() {
    let interfaces = built_in();
    let dummy = interfaces.iter().find(|it| it.name == "dummy").unwrap();
    let json = serde_json::to_value(dummy).unwrap();
    assert_eq!(json["type"], 5);
    assert_eq!(json["methods"][0]["command"], "status");
    assert_eq!(json["methods"][0]["kind"], "ask");
    assert_eq!(json["methods"][0]["answer"][1]["type"], "string");
    assert_eq!(json["methods"][3]["kind"], "subscribe");
}
