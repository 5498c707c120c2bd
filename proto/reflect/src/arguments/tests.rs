use super::*;
use crate::{built_in, hex};
use amber_schema::Interface;

fn interface(name: &str) -> &'static Interface {
    built_in().iter().find(|it| it.name == name).unwrap()
}

fn message(
    device: &str,
    method: &str,
    words: &str,
    spelling: Spelling<'_>,
) -> Result<String, Error> {
    let method = interface(device).method(method).unwrap();
    let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    let given = read(method, &words, spelling)?;
    let bytes = Schemas::built_in().request(method, &given)?;
    Ok(hex(&bytes[2..]))
}

fn plain(device: &str, method: &str, words: &str) -> Result<String, String> {
    message(device, method, words, Spelling::default()).map_err(|error| error.text)
}

#[test]
fn words_become_fields_in_their_order_or_by_name() {
    for (device, method, words, bytes) in [
        ("maestro", "set-angle", "2 90", "b2040408 02105a"),
        ("maestro", "set-angle", "angle=90 servo-address=2", ""),
        ("maestro", "set-angle", "angle=90 2", ""),
        ("maestro", "set-angle", "servoAddress=2 90deg", ""),
        ("maestro", "set-angle", "2 1.5707963267948966rad", ""),
    ] {
        let expected = if bytes.is_empty() {
            "b20404080210 5a"
        } else {
            bytes
        };
        let expected = expected.replace(' ', "");
        assert_eq!(plain(device, method, words).unwrap(), expected, "{words}");
    }
    let angles = "c204090a020001 12032d8701".replace(' ', "");
    for words in ["0=45 1=135", "0,45 1,135deg"] {
        assert_eq!(
            plain("maestro", "set-angles", words).unwrap(),
            angles,
            "{words}"
        );
    }
    assert_eq!(plain("maestro", "set-angles", "none").unwrap(), "c20400");
    assert_eq!(
        plain("maestro", "set-same-angle", "0,1 45").unwrap(),
        "ba04060a020001102d"
    );
    assert_eq!(plain("dummy", "message", "a=b").unwrap(), "9a0303613d62");
    assert_eq!(plain("ninedof", "self-test", "").unwrap(), "6a020801");
    assert_eq!(
        plain("ninedof", "self-test", "0.5s").unwrap(),
        "6a0508011 0f403".replace(' ', "")
    );
    assert_eq!(
        plain("mediator", "change-driver", "5 1 action=stop").unwrap(),
        plain("mediator", "change-driver", "device.type=5 1 STOP").unwrap()
    );
}

#[test]
fn settings_may_all_be_absent() {
    assert_eq!(plain("mapping", "start-map", "").unwrap(), "920d00");
    assert_eq!(plain("mapping", "explore", "").unwrap(), "a20d00");
}

#[test]
fn an_error_names_the_argument_the_value_and_the_range() {
    for (device, method, words, expected) in [
        (
            "maestro",
            "set-angle",
            "24 90",
            "argument 'servo-address': '24' is out of range: from 0 to 23",
        ),
        (
            "maestro",
            "set-angle",
            "-1 90",
            "argument 'servo-address': '-1' is out of range: from 0 to 23",
        ),
        ("maestro", "set-angle", "3", "argument 'angle' is missing"),
        (
            "maestro",
            "set-angle",
            "3 soon",
            "argument 'angle': 'soon' is not a number",
        ),
        (
            "maestro",
            "set-angle",
            "3 1.5",
            "argument 'angle': '1.5' is not a whole number of deg",
        ),
        (
            "maestro",
            "set-angle",
            "3 5ms",
            "argument 'angle': '5ms' is not in deg, and 'ms' cannot be converted",
        ),
        (
            "maestro",
            "set-angle",
            "3 1e12",
            "argument 'angle': '1e12' is too large for int32",
        ),
        ("maestro", "set-angle", "3 4 5", "unexpected argument '5'"),
        (
            "maestro",
            "set-angle",
            "3 angle=4 angle=5",
            "argument 'angle' is given twice",
        ),
        (
            "maestro",
            "set-angles",
            "3",
            "row '3' has 1 values, expected 2: SERVO-ADDRESSES=ANGLES...",
        ),
        (
            "maestro",
            "set-angles",
            "",
            "a row is missing: SERVO-ADDRESSES=ANGLES...",
        ),
        (
            "ninedof",
            "self-test",
            "121s",
            "argument 'milliseconds': '121s' is out of range: from 0 to 120000 ms",
        ),
        (
            "ninedof",
            "self-test",
            "0.5ms",
            "argument 'milliseconds': '0.5ms' is not a whole number of ms",
        ),
        (
            "ninedof",
            "data",
            "sonar",
            "'sonar' is not one of accel, gyro, magnet, extended",
        ),
        ("roboclaw", "drive", "", "the arguments are missing"),
        ("roboclaw", "drive", "1 2 3", "expected 4 arguments, got 3"),
        (
            "dummy",
            "enable",
            "maybe",
            "argument 'enable': 'maybe' is not true or false",
        ),
        ("dummy", "status", "x", "unexpected argument 'x'"),
        (
            "mediator",
            "change-driver",
            "5 1 fly",
            "argument 'action': 'fly' is not one of START, STOP, RESTART",
        ),
    ] {
        assert_eq!(
            plain(device, method, words),
            Err(expected.to_owned()),
            "{words}"
        );
    }
}

#[test]
fn spellings_give_defaults() {
    let sensors = Spelling {
        flags: Some("accel,gyro,magnet"),
        defaults: &[("extended", "true")],
        ..Spelling::default()
    };
    let data = |words| message("ninedof", "data", words, sensors).unwrap();
    assert_eq!(data("accel"), "5a080801100018002001");
    assert_eq!(data(""), "5a080801100118012001");
    assert_eq!(data("gyro=true"), "5a0410012001");
    let wheels = Spelling {
        spread: Some((2, &[0, 1, 0, 1])),
        ..Spelling::default()
    };
    let drive = |words| message("roboclaw", "drive", words, wheels);
    assert_eq!(drive("1 2").unwrap(), drive("1 2 1 2").unwrap());
    assert_eq!(
        drive("1").unwrap_err().text,
        "expected 2 or 4 arguments, got 1"
    );
    let seconds = Spelling {
        defaults: &[("milliseconds", "2")],
        ..Spelling::default()
    };
    let test = |words| message("ninedof", "self-test", words, seconds).unwrap();
    assert_eq!(test("2"), test("2000ms"));
    assert_eq!(test(""), test("2"));
}

#[test]
fn streams_start_and_stop_by_their_requests() {
    let method = interface("ninedof").method("readings").unwrap();
    let words = ["100ms".to_owned(), "accel,gyro".to_owned()];
    let given = read(method, &words, Spelling::default()).unwrap();
    let found = Schemas::built_in().start_stop(method, &given).unwrap();
    assert_eq!(
        hex(&found.start),
        "1001620a0864100118012000 2800".replace(' ', "")
    );
    assert_eq!(
        hex(&found.stop),
        "1001620a0800100118012000 2800".replace(' ', "")
    );
    assert_eq!(given.time_ms(period(method).unwrap()), Some(100));
    // A period that the stream needs has a default; another one has none.
    let given = read(method, &[], Spelling::default()).unwrap();
    assert_eq!(given.time_ms(period(method).unwrap()), Some(100));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lamp.proto");
    std::fs::write(&file, LAMP).unwrap();
    let schemas = Schemas::with(&[file]).unwrap();
    let lamp = schemas.own_interfaces().next().unwrap();
    let method = lamp.method("levels").unwrap();
    let given = read(method, &[], Spelling::default()).unwrap();
    let schemas = schemas.for_device(Some(amber_proto::DeviceType(201)));
    let found = schemas.start_stop(method, &given).unwrap();
    assert_eq!(given.time_ms(period(method).unwrap()), None);
    assert_eq!(hex(&found.start), "1001f206020801");
    assert_eq!(hex(&found.stop), "1001f206020802");
}

/// A device of a user, with a stream that starts by a request and needs no period.
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

#[test]
fn usage_lines_name_the_arguments() {
    for (device, method, expected) in [
        ("maestro", "set-angle", "SERVO-ADDRESS ANGLE"),
        ("maestro", "set-same-angle", "SERVO-ADDRESSES[,...] ANGLE"),
        ("maestro", "set-angles", "SERVO-ADDRESSES=ANGLES..."),
        ("ninedof", "data", "[accel,gyro,magnet,extended]"),
        ("ninedof", "readings", "PERIOD [accel,gyro,magnet,extended]"),
        ("dummy", "enable", "true|false"),
        ("dummy", "status", ""),
        (
            "drive-to-point",
            "set-targets",
            "LONGITUDES,LATITUDES,RADIUSES...",
        ),
    ] {
        let method = interface(device).method(method).unwrap();
        assert_eq!(usage(method), expected);
    }
}
