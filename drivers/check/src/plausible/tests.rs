use amber_proto::{DeviceMessage, DeviceType, dummy, hokuyo, location, ninedof, roboclaw};
use amber_reflect::hex;
use prost::Message;

use super::*;
use crate::devices;

/// What is wrong with the values of a message, for a device of this type.
#[track_caller]
fn check(kind: DeviceType, message: impl DeviceMessage, what: Option<&str>) {
    let found = look(kind, &message.encode_to_vec()).err();
    assert_eq!(found.map(|it| it.what).as_deref(), what);
}

fn look(kind: DeviceType, message: &[u8]) -> Plausibility {
    let schemas = Schemas::built_in();
    let interface = devices::interface(&schemas, kind).unwrap();
    ranges(interface, &schemas, &values(&schemas, message)?)
}

fn scan(angles: &[f64], distances: &[i32]) -> hokuyo::DriverMsg {
    let (angles, distances) = (angles.to_vec(), distances.to_vec());
    hokuyo::DriverMsg {
        scan: Some(hokuyo::Scan { angles, distances }),
        ..hokuyo::DriverMsg::data()
    }
}

#[test]
fn scans() {
    for (angles, distances, what) in [
        (&[-120.0, 0.0][..], &[0, 5600][..], None),
        (&[], &[], None),
        (&[0.0], &[], Some("1 angles but 0 distances")),
        (&[f64::NAN], &[1], Some("NaN or infinite in scan.angles")),
        (&[240.0], &[1], Some("240 in scan.angles")),
        (&[0.0], &[-1], Some("-1 in scan.distances")),
        (&[0.0], &[65_536], Some("65536 in scan.distances")),
    ] {
        check(DeviceType::HOKUYO, scan(angles, distances), what);
    }
    check(DeviceType::HOKUYO, hokuyo::DriverMsg::data(), None);
    let error = look(DeviceType::HOKUYO, &scan(&[240.0], &[1]).encode_to_vec());
    assert_eq!(error.unwrap_err().expected, "from -180 to 180 deg");
}

#[test]
fn speeds() {
    for (speed, what) in [
        (Some(300), None),
        (Some(-1200), None),
        (None, Some("currentSpeed has no rearRightSpeed")),
        (Some(65_000), Some("currentSpeed.rearRightSpeed is 65000")),
    ] {
        let message = roboclaw::DriverMsg {
            current_speed: Some(roboclaw::MotorsSpeed {
                front_left_speed: Some(0),
                front_right_speed: Some(0),
                rear_left_speed: Some(0),
                rear_right_speed: speed,
            }),
            ..roboclaw::DriverMsg::data()
        };
        check(DeviceType::ROBOCLAW, message, what);
    }
}

#[test]
fn poses() {
    let place = |p, x| location::DriverMsg {
        current_location: Some(location::Location {
            p: Some(p),
            x: Some(x),
            ..Default::default()
        }),
        ..location::DriverMsg::data()
    };
    check(DeviceType::LOCATION, place(1.0, 3.5), None);
    check(
        DeviceType::LOCATION,
        place(95.0, 3.5),
        Some("currentLocation.p is 95"),
    );
    let what = Some("currentLocation.x is NaN or infinite");
    check(DeviceType::LOCATION, place(0.5, f64::INFINITY), what);
}

#[test]
fn readings() {
    let axes = |x_axis| ninedof::DriverMsg {
        sensor_data: Some(ninedof::SensorData {
            gyro: Some(ninedof::AxisData {
                x_axis,
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..ninedof::DriverMsg::data()
    };
    check(DeviceType::NINEDOF, axes(-500), None);
    let what = Some("sensorData.gyro.xAxis is 1000000");
    check(DeviceType::NINEDOF, axes(1_000_000), what);
    let attitude = |heading_deg, pitch_deg| ninedof::DriverMsg {
        sensor_data: Some(ninedof::SensorData {
            attitude: Some(ninedof::Attitude {
                heading_deg: Some(heading_deg),
                pitch_deg: Some(pitch_deg),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..ninedof::DriverMsg::data()
    };
    check(DeviceType::NINEDOF, attitude(350.0, -89.5), None);
    for (attitude, what) in [
        (
            attitude(1e9, 0.0),
            "sensorData.attitude.headingDeg is 1000000000",
        ),
        (
            attitude(0.0, -1e4),
            "sensorData.attitude.pitchDeg is -10000",
        ),
    ] {
        check(DeviceType::NINEDOF, attitude, Some(what));
    }
    // xAxis and zAxis are required, but absent here.
    let found = look(DeviceType::NINEDOF, b"\x10\x01\x52\x04\x12\x02\x10\x05");
    assert_eq!(found.unwrap_err().what, "sensorData.gyro has no xAxis");
}

#[test]
fn lists_of_targets_have_equal_length() {
    for (kind, field) in [
        (DeviceType::DRIVE_TO_POINT, "aa05"),
        (DeviceType::PID_FOLLOW_TRAJECTORY, "ba06"),
    ] {
        // One longitude.
        let bytes = format!("1001{field}0a0a080000000000000000");
        let bytes = amber_reflect::read_hex(&bytes).unwrap();
        let found = look(kind, &bytes).unwrap_err().what;
        assert!(
            found.starts_with("1 longitudes but 0 latitudes but 0 "),
            "{found}"
        );
    }
}

#[test]
fn fields_that_cannot_be_parsed() {
    // The field of one device under the number of another.
    let bytes = b"\x10\x01\xca\x02\x02\xff\xff";
    let found = look(DeviceType::HOKUYO, bytes).unwrap_err();
    assert_eq!(found.what, "its fields cannot be parsed");
}

#[test]
fn an_answer_needs_its_fields_and_its_flag() {
    let schemas = Schemas::built_in();
    let required = |kind, method: &str, message: &[u8]| {
        let interface = devices::interface(&schemas, kind).unwrap();
        let values = values(&schemas, message).unwrap();
        let method = interface.method(method).unwrap();
        let (needed, missing) = required(method, &schemas, &values);
        format!("{needed:?} {missing:?}")
    };
    let enabled = dummy::DriverMsg {
        enable: Some(true),
        ..dummy::DriverMsg::data()
    };
    let enabled = enabled.encode_to_vec();
    assert_eq!(
        required(DeviceType::DUMMY, "status", &enabled),
        r#"["enable", "message"] ["message"]"#
    );
    let configuration = b"\x10\x01\xc2\x05\x00";
    assert_eq!(hex(configuration), "1001c20500");
    assert_eq!(
        required(DeviceType::DRIVE_TO_POINT, "configuration", configuration),
        r#"["configuration", "getConfiguration"] ["getConfiguration"]"#
    );
    // A refusal needs no other field.
    let refused = b"\x10\x01\xaa\x0b\x08\x32\x06\x08\x04\x12\x02no";
    let interface = schemas.interface(DeviceType::MEDIATOR).unwrap();
    let found = super::required(
        interface.method("reload").unwrap(),
        &schemas,
        &super::values(&schemas, refused).unwrap(),
    );
    assert_eq!(found, (vec![], vec![]));
}

#[test]
fn published_data_belongs_to_a_stream() {
    let schemas = Schemas::built_in();
    let is_of_stream = |kind, message: &[u8]| {
        let interface = devices::interface(&schemas, kind).unwrap();
        stream(interface, &schemas, &values(&schemas, message).unwrap())
    };
    let text = b"\x10\x01\x20\x00\x9a\x03\x02hi";
    assert_eq!(is_of_stream(DeviceType::DUMMY, text), Ok(()));
    let found = is_of_stream(DeviceType::DUMMY, b"\x10\x01\x20\x00").unwrap_err();
    assert_eq!(found.expected, "a message with message");
    // A device without a stream may publish what it likes.
    assert_eq!(is_of_stream(DeviceType::MAESTRO, b"\x10\x01"), Ok(()));
}
